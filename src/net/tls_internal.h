// What tls.c (streams) and tls_context.c (what streams share) have in common.
#ifndef RUNNEL_NET_TLS_INTERNAL_H_
#define RUNNEL_NET_TLS_INTERNAL_H_

#include "base/sync.h"
#include "net/openssl.h"
#include "net/tls.h"

struct rn_tls_t {
  _Atomic int refs;
  rn_allocator_t allocator;
  const rn_openssl_t* o;
  BIO_METHOD* method;
  bool is_open;      // a public server's or a guest's: peers need no common name
  rn_mutex_t mutex;  // guards what follows
  SSL_CTX* context;  // of new streams; each keeps the one that it was made with
};

// A stream's BIO below OpenSSL.
int rn_tls_bio_read(BIO* bio, char* out, int size);
int rn_tls_bio_write(BIO* bio, const char* data, int size);
long rn_tls_bio_control(BIO* bio, int command, long number, void* arg);

// Whether a server's stream offers HTTP/2.
bool rn_tls_has_http2(const rn_openssl_t* o, SSL* ssl);

#endif  // RUNNEL_NET_TLS_INTERNAL_H_
