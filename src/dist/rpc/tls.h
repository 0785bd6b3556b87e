// TLS with certificates at both ends, over OpenSSL, which is opened when it is first wanted.
//
// Both ends show a certificate of the same authority. The subject's common name says who it is: a
// task by its name, "/job:ps/replica:0/task:0", or a client by any other.
#ifndef RUNNEL_DIST_RPC_TLS_H_
#define RUNNEL_DIST_RPC_TLS_H_

#include "base/net.h"

typedef struct rn_tls_t rn_tls_t;

typedef struct rn_tls_options_t {
  rn_allocator_t allocator;
  const char *cert, *key, *ca;  // files in PEM form
} rn_tls_options_t;

// UNIMPLEMENTED where there is no OpenSSL; the files' errors name them.
RN_MUST_USE rn_status_t rn_tls_create(const rn_tls_options_t* options, rn_tls_t** out);
void rn_tls_retain(rn_tls_t* tls);   // NULL is fine
void rn_tls_release(rn_tls_t* tls);  // NULL is fine

// A stream over |socket|, which it takes, also when it fails. A server's end asks the client for
// its certificate; a client's end wants the server's to name |peer| (a task), or, where that is
// NULL, to be made out for |host|.
RN_MUST_USE rn_status_t rn_tls_accept(rn_tls_t* tls, rn_socket_t* socket, rn_socket_t** out);
RN_MUST_USE rn_status_t rn_tls_connect(rn_tls_t* tls, rn_socket_t* socket, const char* host,
                                       const char* peer, rn_socket_t** out);
// Goes on with the handshake until it is over or the deadline passes: then DEADLINE_EXCEEDED, and
// |*out_wants_write| says what it waits for. Nothing else may be done with the stream before.
RN_MUST_USE rn_status_t rn_tls_handshake(rn_socket_t* stream, int64_t deadline_ns,
                                         bool* out_wants_write);
// The common name of the other end, once the handshake is over; "" of a stream that is not TLS.
rn_str_t rn_tls_peer(const rn_socket_t* stream);

#endif  // RUNNEL_DIST_RPC_TLS_H_
