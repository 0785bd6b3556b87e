// runnel cert: an authority and certificates for the tasks and clients of a cluster.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cluster.h"
#include "net/openssl.h"

#define MAX_PEM (1u << 20)

typedef struct cert_maker_t {
  rn_cli_t* cli;
  const rn_openssl_t* o;
  const char *dir, *client;
  const char* operator;  // NULL: none
  int64_t days;
  bool is_quiet;
  X509* ca;
  EVP_PKEY* ca_key;
} cert_maker_t;

static rn_status_t failed(const cert_maker_t* maker, const char* what) {
  return rn_internal("%s: %s", what, rn_openssl_reason(maker->o));
}

static rn_status_t path_of(const cert_maker_t* maker, rn_arena_t* arena, const char* name,
                           const char* suffix, rn_str_t* out) {
  return rn_arena_printf(arena, out, "%s/%s%s", maker->dir, name, suffix);
}

// Only the owner may read a key.
static rn_status_t write_file(const char* path, rn_str_t data, mode_t mode) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  ssize_t put = fd >= 0 ? write(fd, data.data, data.size) : -1;
  int error = put == (ssize_t)data.size ? 0 : errno ? errno : ENOSPC;
  if (fd >= 0 && close(fd) != 0 && !error) error = errno;
  return error ? rn_unavailable("'%s': %s", path, strerror(error)) : RN_OK;
}

static rn_status_t write_pem(const cert_maker_t* maker, rn_str_t path, X509* certificate,
                             EVP_PKEY* key) {
  const rn_openssl_t* o = maker->o;
  BIO* bio = o->BIO_new(o->BIO_s_mem());
  if (!bio) return rn_out_of_memory();
  int made = certificate ? o->PEM_write_bio_X509(bio, certificate)
                         : o->PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
  char* data = NULL;
  long size = o->BIO_ctrl(bio, BIO_CTRL_INFO, 0, &data);
  rn_status_t status = made && size > 0 ? write_file(path.data, rn_str_n(data, (size_t)size),
                                                     certificate ? 0644 : 0600)
                                        : failed(maker, path.data);
  o->BIO_free(bio);
  return status;
}

static rn_status_t write_pair(const cert_maker_t* maker, const char* name, X509* certificate,
                              EVP_PKEY* key) {
  rn_arena_t arena;
  rn_str_t path = {0};
  rn_arena_init(&arena, maker->cli->allocator);
  rn_status_t status = path_of(maker, &arena, name, "-key.pem", &path);
  if (rn_ok(status)) status = write_pem(maker, path, NULL, key);
  if (rn_ok(status)) status = path_of(maker, &arena, name, ".pem", &path);
  if (rn_ok(status)) status = write_pem(maker, path, certificate, NULL);
  if (rn_ok(status) && !maker->is_quiet) printf("%s\n", path.data);
  rn_arena_clear(&arena);
  return status;
}

static bool extend(const cert_maker_t* maker, X509* certificate, X509* issuer, int nid,
                   const char* value) {
  const rn_openssl_t* o = maker->o;
  X509V3_CTX context = {0};
  o->X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
  X509_EXTENSION* extension = o->X509V3_EXT_conf_nid(NULL, &context, nid, value);
  bool ok = extension && o->X509_add_ext(certificate, extension, -1);
  o->X509_EXTENSION_free(extension);
  return ok;
}

// A certificate for |name| with a key of its own; |hosts| is "DNS:a,IP:1.2.3.4", or NULL for a
// self-signed authority.
static rn_status_t make(const cert_maker_t* maker, const char* name, const char* hosts, X509** out,
                        EVP_PKEY** out_key) {
  const rn_openssl_t* o = maker->o;
  uint64_t serial = 0;
  *out = o->X509_new();
  *out_key = o->EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
  X509* made = *out;
  if (!made || !*out_key || o->RAND_bytes((unsigned char*)&serial, sizeof serial) != 1)
    return failed(maker, name);
  X509* issuer = hosts ? maker->ca : made;
  X509_NAME* subject = o->X509_get_subject_name(made);
  bool ok = o->X509_set_version(made, 2) &&
            o->ASN1_INTEGER_set_uint64(o->X509_get_serialNumber(made), serial >> 1) &&
            o->X509_gmtime_adj(o->X509_getm_notBefore(made), -3600) &&
            o->X509_gmtime_adj(o->X509_getm_notAfter(made), maker->days * 86400) &&
            o->X509_set_pubkey(made, *out_key) &&
            o->X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char*)name,
                                          -1, -1, 0) &&
            o->X509_set_issuer_name(made, o->X509_get_subject_name(issuer)) &&
            extend(maker, made, issuer, NID_basic_constraints,
                   hosts ? "critical,CA:FALSE" : "critical,CA:TRUE") &&
            extend(maker, made, issuer, NID_key_usage,
                   hosts ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign") &&
            extend(maker, made, issuer, NID_subject_key_identifier, "hash");
  if (ok && hosts)
    ok = extend(maker, made, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
         extend(maker, made, issuer, NID_authority_key_identifier, "keyid") &&
         (!*hosts || extend(maker, made, issuer, NID_subject_alt_name, hosts));
  ok = ok && o->X509_sign(made, hosts ? maker->ca_key : *out_key, o->EVP_sha256());
  return ok ? RN_OK : failed(maker, name);
}

static rn_status_t issue(const cert_maker_t* maker, const char* name, const char* hosts,
                         const char* file) {
  X509* certificate = NULL;
  EVP_PKEY* key = NULL;
  rn_status_t status = make(maker, name, hosts, &certificate, &key);
  if (rn_ok(status)) status = write_pair(maker, file, certificate, key);
  maker->o->X509_free(certificate);
  maker->o->EVP_PKEY_free(key);
  return status;
}

// Loads the existing authority, if there is one.
static rn_status_t load_authority(cert_maker_t* maker, rn_str_t path, rn_str_t key_path) {
  const rn_openssl_t* o = maker->o;
  rn_strbuf_t pem, key_pem;
  rn_strbuf_init(&pem, maker->cli->allocator);
  rn_strbuf_init(&key_pem, maker->cli->allocator);
  rn_status_t status = rn_fs_read(maker->cli->env, path.data, MAX_PEM, &pem);
  if (rn_ok(status)) status = rn_fs_read(maker->cli->env, key_path.data, MAX_PEM, &key_pem);
  BIO* bio = rn_ok(status) ? o->BIO_new_mem_buf(pem.data, (int)pem.size) : NULL;
  BIO* key_bio = rn_ok(status) ? o->BIO_new_mem_buf(key_pem.data, (int)key_pem.size) : NULL;
  if (bio) maker->ca = o->PEM_read_bio_X509(bio, NULL, NULL, NULL);
  if (key_bio) maker->ca_key = o->PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
  o->BIO_free(bio);
  o->BIO_free(key_bio);
  if (rn_ok(status) && (!maker->ca || !maker->ca_key))
    status =
        rn_invalid_argument("'%s' or its key cannot be read: %s", path.data, rn_openssl_reason(o));
  rn_strbuf_clear(&pem);
  rn_strbuf_clear(&key_pem);
  return status;
}

static rn_status_t find_authority(cert_maker_t* maker) {
  rn_arena_t arena;
  rn_str_t path = {0}, key_path = {0};
  rn_arena_init(&arena, maker->cli->allocator);
  rn_status_t status = path_of(maker, &arena, "ca", ".pem", &path);
  if (rn_ok(status)) status = path_of(maker, &arena, "ca", "-key.pem", &key_path);
  if (rn_ok(status) && rn_fs_exists(maker->cli->env, path.data)) {
    status = load_authority(maker, path, key_path);
  } else if (rn_ok(status)) {
    status = make(maker, "Runnel cluster authority", NULL, &maker->ca, &maker->ca_key);
    if (rn_ok(status)) status = write_pair(maker, "ca", maker->ca, maker->ca_key);
  }
  rn_arena_clear(&arena);
  return status;
}

static bool is_ip(const char* host) {
  return strchr(host, ':') || strspn(host, "0123456789.") == strlen(host);
}

// Adds "host:port" or "[v6]:port" as a name of the certificate; this machine gets all its names.
static void put_hosts(const char* address, char* out, size_t room) {
  const char* colon = strrchr(address, ':');
  size_t size = colon ? (size_t)(colon - address) : strlen(address);
  if (size > 1 && address[0] == '[') address++, size -= 2;
  char host[256];
  snprintf(host, sizeof host, "%.*s", (int)size, address);
  bool is_here =
      strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
  if (is_here)
    snprintf(out, room, "DNS:localhost,IP:127.0.0.1,IP:::1");
  else
    snprintf(out, room, "%s:%s", is_ip(host) ? "IP" : "DNS", host);
}

static rn_status_t make_each(cert_maker_t* maker, const rn_cli_cluster_t* cluster) {
  RN_RETURN_IF_ERROR(rn_openssl(&maker->o));
  RN_RETURN_IF_ERROR(rn_cli_at(rn_fs_make_directories(maker->cli->env, maker->dir), maker->dir));
  RN_RETURN_IF_ERROR(find_authority(maker));
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    char name[512], file[512], hosts[512];
    snprintf(name, sizeof name, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(task->job), task->index);
    snprintf(file, sizeof file, "%.*s-%d", RN_STR_ARGS(task->job), task->index);
    put_hosts(task->address.data, hosts, sizeof hosts);
    if (strchr(file, '/')) return rn_invalid_argument("%s.pem is not a valid file name", file);
    RN_RETURN_IF_ERROR(issue(maker, name, hosts, file));
  }
  RN_RETURN_IF_ERROR(issue(maker, maker->client, "", maker->client));
  if (!maker->operator) return RN_OK;
  char name[256];
  snprintf(name, sizeof name, "operator/%s", maker->operator);
  return issue(maker, name, "", maker->operator);
}

static rn_status_t make_all(cert_maker_t* maker, const rn_cli_cluster_t* cluster) {
  rn_status_t status = make_each(maker, cluster);
  if (maker->ca) maker->o->X509_free(maker->ca);
  if (maker->ca_key) maker->o->EVP_PKEY_free(maker->ca_key);
  return status;
}

rn_status_t rn_cli_cert_make(rn_cli_t* cli, const rn_cli_cluster_t* cluster, const char* dir) {
  cert_maker_t maker = {.cli = cli, .dir = dir, .client = "client", .days = 365, .is_quiet = true};
  return make_all(&maker, cluster);
}

static rn_status_t cert(rn_cli_t* cli) {
  const char *text = rn_cli_text(cli, "--cluster"), *client = rn_cli_text(cli, "--client");
  cert_maker_t maker = {.cli = cli,
                        .dir = rn_cli_text(cli, "--dir"),
                        .client = client ? client : "client",
                        .operator= rn_cli_text(cli, "--operator"),
                        .days = rn_cli_number(cli, "--days", 365)};
  if (!maker.dir) return rn_cli_usage(cli, "--dir must name the folder for the certificates");
  if (!*maker.client || strchr(maker.client, '/'))
    return rn_cli_usage(cli, "a client's name must not be empty or contain '/'");
  if (maker.operator&&(!*maker.operator|| strchr(maker.operator, '/') ||
                       strcmp(maker.operator, maker.client) == 0))
    return rn_cli_usage(cli,
                        "an operator's name must not be empty, contain '/' or be the client's");
  rn_cli_cluster_t cluster;
  rn_cli_cluster_init(&cluster, cli->allocator);
  rn_status_t status = text ? rn_cli_cluster_parse(&cluster, cli->env, text) : RN_OK;
  if (rn_ok(status)) status = make_all(&maker, &cluster);
  rn_cli_cluster_clear(&cluster);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(FOLDER, "--dir", "DIR", "the folder for the certificates"),
    RN_OPTION(TEXT, "--cluster", "CLUSTER",
              "as 'runnel server' takes it; one certificate per task is made"),
    RN_OPTION(TEXT, "--client", "NAME", "the name of the client (default client)"),
    RN_OPTION(TEXT, "--operator", "NAME",
              "also make NAME.pem for an operator, who may stop tasks and clear their variables"),
    RN_OPTION(NUMBER, "--days", "N", "how long they are valid (default 365)", .least = 1,
              .most = 36500),
    {0},
};

const rn_cli_command_t rn_cli_cert_command = {
    .name = "cert",
    .summary = "make certificates for a cluster",
    .about =
        "Makes a certificate authority and certificates that it signs: one per task of the "
        "cluster, DIR/ps-0.pem with DIR/ps-0-key.pem, and one for a client. If the folder has an "
        "authority already, that one signs them. For tests and for clusters of one owner: anyone "
        "with ca-key.pem can issue certificates, so keep that file private.",
    .run = cert,
    .options = options,
    .examples =
        "runnel cert --dir certs --cluster ps=a:2222,worker=b:2222\n"
        "runnel server --cluster ps=a:2222,worker=b:2222 --job ps \\\n"
        "    --tls-cert certs/ps-0.pem --tls-key certs/ps-0-key.pem --tls-ca certs/ca.pem",
};
