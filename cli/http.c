// A small HTTP/1 client: see http.h.
#include "cli/http.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/net.h"
#include "net/token.h"

#define MAX_ANSWER (64u << 20)

static rn_status_t open_socket(const rn_cli_http_t* request, int64_t deadline_ns,
                               rn_socket_t** out) {
  const rn_env_t* env = request->env;
  rn_socket_t* socket = NULL;
  RN_RETURN_IF_ERROR(
      env->net->connect(env->net_self, request->address, deadline_ns, request->allocator, &socket));
  *out = socket;
  if (!request->tls) return RN_OK;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_tls_connect(request->tls, socket, request->address, NULL, out));
  bool wants_write;
  return rn_tls_handshake(*out, deadline_ns, &wants_write);
}

static rn_status_t talk(const rn_cli_http_t* request, rn_socket_t* socket, int64_t deadline_ns,
                        rn_strbuf_t* answer) {
  char text[1024 + RN_TOKEN_MAX];
  char token[RN_TOKEN_MAX + 1];
  RN_RETURN_IF_ERROR(rn_token_read(request->env, request->token_file, request->allocator, token));
  int size = snprintf(
      text, sizeof text,
      "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nUser-Agent: runnel\r\n%s%s%s%s%s%s\r\n",
      request->method, request->path, request->address, request->token ? "X-Runnel: " : "",
      request->token ? request->token : "", request->token ? "\r\n" : "",
      token[0] ? "Authorization: Bearer " : "", token, token[0] ? "\r\n" : "");
  if (size < 0 || (size_t)size >= sizeof text)
    return rn_invalid_argument("the address is too long");
  RN_RETURN_IF_ERROR(rn_net_write_all(socket, rn_str_n(text, (size_t)size), deadline_ns));
  for (;;) {
    char bytes[8192];
    size_t got = 0;
    RN_RETURN_IF_ERROR(socket->vtable->read(socket, bytes, sizeof bytes, deadline_ns, &got));
    if (!got) return rn_strbuf_status(answer);
    rn_strbuf_append_n(answer, bytes, got);
    if (answer->size > MAX_ANSWER) return rn_resource_exhausted("the response is too long");
  }
}

static rn_status_t take_answer(rn_str_t answer, int* out_code, rn_strbuf_t* out_body) {
  rn_str_t head = answer;
  rn_str_split(&head, ' ');
  int64_t code;
  const char* end = memmem(answer.data, answer.size, "\r\n\r\n", 4);
  if (!rn_str_starts_with(answer, RN_STR("HTTP/1.")) || !end ||
      !rn_str_to_i64(rn_str_split(&head, ' '), &code))
    return rn_unavailable("the response is not HTTP");
  *out_code = (int)code;
  end += 4;
  rn_strbuf_append_n(out_body, end, answer.size - (size_t)(end - answer.data));
  return rn_strbuf_status(out_body);
}

// A TLS ClientHello with nothing in it but versions, ciphers and groups: enough for a TLS server to
// answer with a record of its own.
static const unsigned char client_hello[] = {
    0x16, 3, 1, 0, 86,                                  // record: handshake
    1, 0, 0, 82,                                        // ClientHello
    3, 3, 'r', 'u', 'n', 'n', 'e', 'l', ' ', 'a', 's',  // version; 32 bytes of
                                                        // "random"
    'k', 's', ' ', 'w', 'h', 'e', 't', 'h', 'e', 'r', ' ', 'y', 'o', 'u', ' ', 's', 'p', 'e', 'a',
    'k', ' ', 'T', 'L', 0,                              // no session
    0, 8, 0x13, 1, 0x13, 2, 0x13, 3, 0xc0, 0x2b, 1, 0,  // ciphers; no compression
    0, 33, 0, 0x2b, 0, 5, 4, 3, 4, 3, 3,                // versions 1.3 and 1.2
    0, 0x0a, 0, 6, 0, 4, 0, 0x1d, 0, 0x17,              // groups x25519 and P-256
    0, 0x0d, 0, 4, 0, 2, 4, 3,                          // signatures: ECDSA P-256
    0, 0x33, 0, 2, 0, 0,                                // no key share: the server asks again
};

// Whether a TLS server listens at the address.
static bool speaks_tls(const rn_cli_http_t* request, int64_t deadline_ns) {
  const rn_env_t* env = request->env;
  rn_socket_t* socket = NULL;
  unsigned char head[2] = {0};
  size_t got = 0;
  rn_status_t status =
      env->net->connect(env->net_self, request->address, deadline_ns, request->allocator, &socket);
  if (rn_ok(status))
    status = rn_net_write_all(socket, rn_str_n((const char*)client_hello, sizeof client_hello),
                              deadline_ns);
  if (rn_ok(status)) status = socket->vtable->read(socket, head, sizeof head, deadline_ns, &got);
  bool is_tls = rn_ok(status) && got == 2 && (head[0] == 0x16 || head[0] == 0x15) && head[1] == 3;
  rn_status_free(status);
  if (socket) socket->vtable->close(socket);
  return is_tls;
}

// Explains the failure if one side uses TLS and the other does not.
static rn_status_t explain(const rn_cli_http_t* request, int64_t deadline_ns, rn_status_t status) {
  if (rn_ok(status) || rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) return status;
  rn_status_t longer = RN_OK;
  if (!request->tls && speaks_tls(request, deadline_ns))
    longer = rn_failed_precondition(
        "it uses TLS: give --tls-cert, --tls-key and --tls-ca, or set RUNNEL_TLS_CERT, "
        "RUNNEL_TLS_KEY and RUNNEL_TLS_CA");
  else if (request->tls && strstr(rn_status_message(status), "wrong version number"))
    longer = rn_failed_precondition("it does not use TLS: omit the certificates");
  if (rn_ok(longer)) return status;
  rn_status_free(status);
  return longer;
}

rn_status_t rn_cli_http(const rn_cli_http_t* request, int* out_code, rn_strbuf_t* out_body) {
  int64_t deadline = request->env->now_ns(request->env->self) + request->timeout_ns;
  rn_socket_t* socket = NULL;
  rn_strbuf_t answer;
  rn_strbuf_init(&answer, request->allocator);
  rn_status_t status = open_socket(request, deadline, &socket);
  if (rn_ok(status)) status = talk(request, socket, deadline, &answer);
  if (rn_ok(status)) status = take_answer(rn_strbuf_view(&answer), out_code, out_body);
  if (socket) socket->vtable->close(socket);
  rn_strbuf_clear(&answer);
  return explain(request, deadline, status);
}

static const char* or_env(const char* value, const char* name) {
  if (value) return value;
  value = getenv(name);
  return value && value[0] ? value : NULL;
}

static rn_status_t find_files(rn_cli_t* cli, const char* cert, const char* key, const char* ca,
                              rn_tls_options_t* out) {
  *out = (rn_tls_options_t){.allocator = cli->allocator,
                            .cert = or_env(cert, "RUNNEL_TLS_CERT"),
                            .key = or_env(key, "RUNNEL_TLS_KEY"),
                            .ca = or_env(ca, "RUNNEL_TLS_CA")};
  if (!out->cert == !out->key && !out->key == !out->ca) return RN_OK;
  return rn_cli_usage(cli, "--tls-cert, --tls-key and --tls-ca go together");
}

rn_status_t rn_cli_tls_files(rn_cli_t* cli, rn_tls_options_t* out) {
  return find_files(cli, rn_cli_text(cli, "--tls-cert"), rn_cli_text(cli, "--tls-key"),
                    rn_cli_text(cli, "--tls-ca"), out);
}

rn_status_t rn_cli_tls(rn_cli_t* cli, rn_tls_t** out) {
  rn_tls_options_t files;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_cli_tls_files(cli, &files));
  return files.cert ? rn_tls_create(&files, out) : RN_OK;
}

rn_status_t rn_cli_tls_of_env(rn_cli_t* cli, rn_tls_t** out) {
  rn_tls_options_t files;
  *out = NULL;
  RN_RETURN_IF_ERROR(find_files(cli, NULL, NULL, NULL, &files));
  return files.cert ? rn_tls_create(&files, out) : RN_OK;
}
