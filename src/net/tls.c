// TLS streams: see tls.h. OpenSSL reads and writes the socket below through our own BIO, which
// waits as long as the call above it may.
#include <stdio.h>

#include "net/tls_internal.h"

#define MAX_RECORD ((size_t)16 << 10)

typedef struct stream_t {
  rn_socket_t socket;  // first
  rn_tls_t* tls;       // Retained
  rn_socket_t* below;  // Owned
  rn_mutex_t mutex;    // guards what follows: one end reads while another writes
  SSL* ssl;
  int64_t deadline_ns;  // of the running call
  rn_status_t failure;  // Owned: of the socket below
  bool wants_write, has_http2;
  bool is_shaken;  // the handshake is complete
  char wanted[256], peer[256];
} stream_t;

// The BIO below OpenSSL.

static int on_moved(stream_t* stream, BIO* bio, rn_status_t status, size_t size, int flag) {
  const rn_openssl_t* o = stream->tls->o;
  o->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
  if (rn_ok(status)) return (int)size;
  if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
    o->BIO_set_flags(bio, flag | BIO_FLAGS_SHOULD_RETRY);
    rn_status_free(status);
  } else {
    stream->failure = rn_status_join(stream->failure, status);
  }
  return -1;
}

int rn_tls_bio_read(BIO* bio, char* out, int size) {
  // The only function that is needed before the stream exists.
  const rn_openssl_t* o = NULL;
  if (!rn_ok(rn_openssl(&o))) return -1;
  stream_t* stream = o->BIO_get_data(bio);
  size_t got = 0;
  rn_status_t status =
      stream->below->vtable->read(stream->below, out, (size_t)size, stream->deadline_ns, &got);
  return on_moved(stream, bio, status, got, BIO_FLAGS_READ);
}

int rn_tls_bio_write(BIO* bio, const char* data, int size) {
  const rn_openssl_t* o = NULL;
  if (!rn_ok(rn_openssl(&o))) return -1;
  stream_t* stream = o->BIO_get_data(bio);
  size_t put = 0;
  rn_status_t status =
      stream->below->vtable->write(stream->below, data, (size_t)size, stream->deadline_ns, &put);
  return on_moved(stream, bio, status, put, BIO_FLAGS_WRITE);
}

long rn_tls_bio_control(BIO* bio, int command, long number, void* arg) {
  (void)bio, (void)number, (void)arg;
  return command == BIO_CTRL_FLUSH;
}

// The status of an OpenSSL call that returned |result|: RN_OK with |*out_ended| at the end of the
// stream.
static rn_status_t outcome(stream_t* stream, int result, bool* out_ended) {
  const rn_openssl_t* o = stream->tls->o;
  int error = o->SSL_get_error(stream->ssl, result);
  rn_status_t failure = stream->failure;
  stream->failure = RN_OK;
  stream->wants_write = error == SSL_ERROR_WANT_WRITE;
  if (!rn_ok(failure)) {
    o->ERR_clear_error();
    return failure;
  }
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return rn_deadline_exceeded("Timer expired");
  if (error == SSL_ERROR_ZERO_RETURN) {
    *out_ended = true;
    return RN_OK;
  }
  long verified = o->SSL_get_verify_result(stream->ssl);
  if (verified != X509_V_OK) {
    o->ERR_clear_error();
    return rn_unavailable("TLS: the certificate is not accepted: %s",
                          o->X509_verify_cert_error_string(verified));
  }
  return rn_unavailable("TLS: %s", rn_openssl_reason(o));
}

static rn_status_t tls_read(rn_socket_t* socket, void* out, size_t size, int64_t deadline_ns,
                            size_t* out_size) {
  stream_t* stream = (stream_t*)socket;
  const rn_openssl_t* o = stream->tls->o;
  rn_status_t status = RN_OK;
  bool is_ended = false;
  *out_size = 0;
  rn_mutex_lock(&stream->mutex);
  stream->deadline_ns = deadline_ns;
  // Reads whole records if there is room, so that none stays buffered and invisible to poll.
  while (*out_size < size && !is_ended && rn_ok(status) &&
         (*out_size == 0 || size - *out_size >= MAX_RECORD)) {
    size_t room = size - *out_size;
    int got =
        o->SSL_read(stream->ssl, (char*)out + *out_size, room > INT32_MAX ? INT32_MAX : (int)room);
    if (got > 0)
      *out_size += (size_t)got;
    else
      status = outcome(stream, got, &is_ended);
    stream->deadline_ns = RN_AT_ONCE;
  }
  rn_mutex_unlock(&stream->mutex);
  if (*out_size && !rn_ok(status)) {  // a real error is reported again by the next call
    rn_status_free(status);
    status = RN_OK;
  }
  return status;
}

// The next bytes to write, at most one record: from the first piece if it has enough, else gathered
// from several. A repeated call has at least the bytes of the first.
static rn_str_t next_record(const rn_str_t* pieces, size_t count, size_t skip, char* room) {
  while (count && skip >= pieces->size) skip -= pieces->size, pieces++, count--;
  if (!count) return (rn_str_t){0};
  if (pieces->size - skip >= MAX_RECORD) return rn_str_n(pieces->data + skip, MAX_RECORD);
  size_t size = 0;
  for (; count && size < MAX_RECORD; pieces++, count--, skip = 0) {
    size_t left = pieces->size - skip, n = left < MAX_RECORD - size ? left : MAX_RECORD - size;
    if (n) memcpy(room + size, pieces->data + skip, n);
    size += n;
  }
  return rn_str_n(room, size);
}

static rn_status_t tls_write_pieces(rn_socket_t* socket, const rn_str_t* pieces, size_t count,
                                    int64_t deadline_ns, size_t* out_size) {
  stream_t* stream = (stream_t*)socket;
  const rn_openssl_t* o = stream->tls->o;
  char room[MAX_RECORD];
  rn_status_t status = RN_OK;
  *out_size = 0;
  rn_mutex_lock(&stream->mutex);
  stream->deadline_ns = deadline_ns;
  while (rn_ok(status)) {
    rn_str_t record = next_record(pieces, count, *out_size, room);
    if (!record.size) break;
    bool is_ended = false;
    int put = o->SSL_write(stream->ssl, record.data, (int)record.size);
    if (put > 0)
      *out_size += (size_t)put;
    else
      status = outcome(stream, put, &is_ended);
    if (is_ended) status = rn_unavailable("TLS: the peer has ended the stream");
    stream->deadline_ns = RN_AT_ONCE;
  }
  rn_mutex_unlock(&stream->mutex);
  if (*out_size && rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED) {
    rn_status_free(status);
    status = RN_OK;
  }
  return status;
}

static rn_status_t tls_write(rn_socket_t* socket, const void* data, size_t size,
                             int64_t deadline_ns, size_t* out_size) {
  rn_str_t piece = rn_str_n(data, size);
  return tls_write_pieces(socket, &piece, 1, deadline_ns, out_size);
}

// Tells the peer, if that is possible at once.
static void tls_finish(rn_socket_t* socket) {
  stream_t* stream = (stream_t*)socket;
  rn_mutex_lock(&stream->mutex);
  stream->deadline_ns = RN_AT_ONCE;
  stream->tls->o->SSL_shutdown(stream->ssl);
  stream->tls->o->ERR_clear_error();
  rn_mutex_unlock(&stream->mutex);
  stream->below->vtable->finish(stream->below);
}

static void tls_shutdown(rn_socket_t* socket) {
  stream_t* stream = (stream_t*)socket;
  stream->below->vtable->shutdown(stream->below);
}

static rn_status_t tls_address(rn_socket_t* socket, rn_strbuf_t* out) {
  stream_t* stream = (stream_t*)socket;
  return stream->below->vtable->address(stream->below, out);
}

static rn_status_t tls_peer_address(rn_socket_t* socket, rn_strbuf_t* out) {
  stream_t* stream = (stream_t*)socket;
  return stream->below->vtable->peer_address(stream->below, out);
}

static bool tls_is_local(rn_socket_t* socket) {
  stream_t* stream = (stream_t*)socket;
  return stream->below->vtable->is_local(stream->below);
}

static void tls_close(rn_socket_t* socket) {
  stream_t* stream = (stream_t*)socket;
  rn_tls_t* tls = stream->tls;
  if (stream->ssl) {
    stream->deadline_ns = RN_AT_ONCE;
    if (stream->is_shaken) tls->o->SSL_shutdown(stream->ssl);  // sends close_notify if possible
    tls->o->ERR_clear_error();
    tls->o->SSL_free(stream->ssl);
  }
  if (stream->below) stream->below->vtable->close(stream->below);
  rn_status_free(stream->failure);
  rn_mutex_destroy(&stream->mutex);
  RN_FREE(tls->allocator, stream);
  rn_tls_release(tls);
}

static rn_socket_t* tls_below(rn_socket_t* socket) { return ((stream_t*)socket)->below; }

static bool tls_has_more(rn_socket_t* socket) {
  stream_t* stream = (stream_t*)socket;
  rn_mutex_lock(&stream->mutex);
  bool has_more = stream->tls->o->SSL_pending(stream->ssl) > 0;
  rn_mutex_unlock(&stream->mutex);
  return has_more;
}

static const rn_socket_vtable_t tls_socket = {.read = tls_read,
                                              .write = tls_write,
                                              .write_pieces = tls_write_pieces,
                                              .finish = tls_finish,
                                              .shutdown = tls_shutdown,
                                              .address = tls_address,
                                              .peer_address = tls_peer_address,
                                              .is_local = tls_is_local,
                                              .close = tls_close,
                                              .below = tls_below,
                                              .has_more = tls_has_more};

// Creating streams.

static rn_status_t wrap(rn_tls_t* tls, rn_socket_t* socket, stream_t** out) {
  const rn_openssl_t* o = tls->o;
  stream_t* stream = NULL;
  rn_status_t status = RN_NEW(tls->allocator, &stream);
  if (!rn_ok(status)) {
    socket->vtable->close(socket);
    return status;
  }
  stream->socket.vtable = &tls_socket;
  stream->tls = tls;
  rn_tls_retain(tls);
  stream->below = socket;
  rn_mutex_init(&stream->mutex);
  rn_mutex_lock(&tls->mutex);
  stream->ssl = o->SSL_new(tls->context);
  rn_mutex_unlock(&tls->mutex);
  BIO* bio = stream->ssl ? o->BIO_new(tls->method) : NULL;
  if (!bio) {
    o->ERR_clear_error();
    tls_close(&stream->socket);
    return rn_out_of_memory();
  }
  o->BIO_set_data(bio, stream);
  o->BIO_set_init(bio, 1);
  o->SSL_set_bio(stream->ssl, bio, bio);
  *out = stream;
  return RN_OK;
}

rn_status_t rn_tls_accept(rn_tls_t* tls, rn_socket_t* socket, bool has_http2, rn_socket_t** out) {
  stream_t* stream = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(wrap(tls, socket, &stream));
  stream->has_http2 = has_http2;
  tls->o->SSL_set_accept_state(stream->ssl);
  *out = &stream->socket;
  return RN_OK;
}

// |address| is "host:port" or "[v6]:port".
static bool want_host(stream_t* stream, const char* address) {
  const rn_openssl_t* o = stream->tls->o;
  const char* colon = strrchr(address, ':');
  size_t size = colon ? (size_t)(colon - address) : strlen(address);
  if (size > 1 && address[0] == '[' && address[size - 1] == ']') address++, size -= 2;
  char host[256];
  snprintf(host, sizeof host, "%.*s", (int)size, address);
  if (o->X509_VERIFY_PARAM_set1_ip_asc(o->SSL_get0_param(stream->ssl), host)) return true;
  o->ERR_clear_error();
  return o->SSL_set1_host(stream->ssl, host);
}

rn_status_t rn_tls_connect(rn_tls_t* tls, rn_socket_t* socket, const char* host, const char* peer,
                           rn_socket_t** out) {
  stream_t* stream = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(wrap(tls, socket, &stream));
  tls->o->SSL_set_connect_state(stream->ssl);
  if (peer) {
    snprintf(stream->wanted, sizeof stream->wanted, "%s", peer);
  } else if (!want_host(stream, host)) {
    tls->o->ERR_clear_error();
    tls_close(&stream->socket);
    return rn_invalid_argument("'%s' is not a host", host);
  }
  *out = &stream->socket;
  return RN_OK;
}

static rn_status_t take_name(stream_t* stream) {
  const rn_openssl_t* o = stream->tls->o;
  X509* certificate = o->SSL_get1_peer_certificate(stream->ssl);
  int size = certificate
                 ? o->X509_NAME_get_text_by_NID(o->X509_get_subject_name(certificate),
                                                NID_commonName, stream->peer, sizeof stream->peer)
                 : -1;
  o->X509_free(certificate);
  if (stream->tls->is_open && size <= 0) {
    stream->peer[0] = '\0';
    return RN_OK;
  }
  if (size <= 0 || strlen(stream->peer) != (size_t)size)
    return rn_unavailable("TLS: the certificate has no common name");
  if (stream->wanted[0] && strcmp(stream->wanted, stream->peer) != 0)
    return rn_unavailable("TLS: expected the certificate of %s, got that of %s", stream->wanted,
                          stream->peer);
  return RN_OK;
}

rn_status_t rn_tls_handshake(rn_socket_t* socket, int64_t deadline_ns, bool* out_wants_write) {
  stream_t* stream = (stream_t*)socket;
  bool is_ended = false;
  rn_mutex_lock(&stream->mutex);
  stream->deadline_ns = deadline_ns;
  int result = stream->tls->o->SSL_do_handshake(stream->ssl);
  stream->is_shaken = result == 1;
  rn_status_t status = result == 1 ? take_name(stream) : outcome(stream, result, &is_ended);
  if (is_ended) status = rn_unavailable("TLS: the peer has ended the handshake");
  *out_wants_write = stream->wants_write;
  rn_mutex_unlock(&stream->mutex);
  return status;
}

bool rn_tls_has_http2(const rn_openssl_t* o, SSL* ssl) {
  return ((const stream_t*)o->BIO_get_data(o->SSL_get_rbio(ssl)))->has_http2;
}

rn_str_t rn_tls_peer(const rn_socket_t* socket) {
  if (socket->vtable != &tls_socket) return (rn_str_t){0};
  return rn_str(((const stream_t*)socket)->peer);
}
