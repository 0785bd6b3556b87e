// TLS, with OpenSSL, which is loaded on first use.
//
// Within a cluster, both ends present a certificate of the same authority. The subject's common
// name identifies a task ("/job:ps/replica:0/task:0") or a client (any other name). A public server
// presents its certificate to any client, and may verify theirs. A guest is a client of other
// servers.
#ifndef RUNNEL_NET_TLS_H_
#define RUNNEL_NET_TLS_H_

#include "base/net.h"

typedef struct rn_tls_t rn_tls_t;

typedef struct rn_tls_options_t {
  rn_allocator_t allocator;
  const char *cert, *key, *ca;  // files in PEM form, or their text
  // A server whose clients need no certificate, unless it |verifies_clients|: by |ca| or, if that
  // is NULL, the system's authorities. It accepts TLS 1.2, too.
  bool is_public, verifies_clients;
  // A client of a server that is not of the cluster: |cert| and |key| may be NULL, and so may |ca|,
  // for the system's authorities. It accepts TLS 1.2, too.
  bool is_guest;
} rn_tls_options_t;

// UNIMPLEMENTED without OpenSSL. Errors name the file.
RN_MUST_USE rn_status_t rn_tls_create(const rn_tls_options_t* options, rn_tls_t** out);
// Streams that are made from now on use the certificates of |options|, which must be of the same
// kind as those of rn_tls_create; existing streams keep theirs. On failure nothing changes. Any
// thread may call it.
RN_MUST_USE rn_status_t rn_tls_replace(rn_tls_t* tls, const rn_tls_options_t* options);
void rn_tls_retain(rn_tls_t* tls);   // NULL is fine
void rn_tls_release(rn_tls_t* tls);  // NULL is fine

// A stream over |socket|, which it takes, also when it fails. A server that |has_http2| prefers it
// to HTTP/1 if the client can choose. A client requires that the server's certificate names the
// task |peer| or, if that is NULL, |host|.
RN_MUST_USE rn_status_t rn_tls_accept(rn_tls_t* tls, rn_socket_t* socket, bool has_http2,
                                      rn_socket_t** out);
RN_MUST_USE rn_status_t rn_tls_connect(rn_tls_t* tls, rn_socket_t* socket, const char* host,
                                       const char* peer, rn_socket_t** out);
// Continues the handshake until it is complete or the deadline passes: then DEADLINE_EXCEEDED, and
// |*out_wants_write| says what it waits for. The stream must not be used before.
RN_MUST_USE rn_status_t rn_tls_handshake(rn_socket_t* stream, int64_t deadline_ns,
                                         bool* out_wants_write);
// The common name of the other end, after the handshake; "" if it presented no certificate, or for
// a stream without TLS.
rn_str_t rn_tls_peer(const rn_socket_t* stream);

#endif  // RUNNEL_NET_TLS_H_
