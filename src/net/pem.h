// Certificates and keys in PEM form, from a file or as text, for a context of OpenSSL.
#ifndef RUNNEL_NET_PEM_H_
#define RUNNEL_NET_PEM_H_

#include "net/openssl.h"

// Each takes the path of a file, or the text itself, which has a line "-----BEGIN ...". Errors name
// the file.

// The certificate that this end presents, followed by those of intermediate authorities.
RN_MUST_USE rn_status_t rn_pem_use_chain(const rn_openssl_t* o, SSL_CTX* context, const char* pem);
// Its key, which must match.
RN_MUST_USE rn_status_t rn_pem_use_key(const rn_openssl_t* o, SSL_CTX* context, const char* pem);
// The authorities that certify the other end.
RN_MUST_USE rn_status_t rn_pem_trust(const rn_openssl_t* o, SSL_CTX* context, const char* pem);

#endif  // RUNNEL_NET_PEM_H_
