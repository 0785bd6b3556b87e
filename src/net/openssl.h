// OpenSSL's functions, loaded from the system's libraries on first use, so that a task without TLS
// does not need them.
#ifndef RUNNEL_NET_OPENSSL_H_
#define RUNNEL_NET_OPENSSL_H_

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/status.h"

// Connections.
#define RN_OPENSSL_SSL(X)               \
  X(TLS_method)                         \
  X(SSL_CTX_new)                        \
  X(SSL_CTX_free)                       \
  X(SSL_CTX_ctrl)                       \
  X(SSL_CTX_set_options)                \
  X(SSL_CTX_use_certificate_chain_file) \
  X(SSL_CTX_use_PrivateKey_file)        \
  X(SSL_CTX_use_certificate)            \
  X(SSL_CTX_use_PrivateKey)             \
  X(SSL_CTX_get_cert_store)             \
  X(SSL_CTX_set_default_verify_paths)   \
  X(SSL_CTX_check_private_key)          \
  X(SSL_CTX_load_verify_locations)      \
  X(SSL_CTX_set_verify)                 \
  X(SSL_CTX_set_alpn_select_cb)         \
  X(SSL_CTX_set_alpn_protos)            \
  X(SSL_CTX_set_num_tickets)            \
  X(SSL_select_next_proto)              \
  X(SSL_new)                            \
  X(SSL_free)                           \
  X(SSL_set_bio)                        \
  X(SSL_get_rbio)                       \
  X(SSL_set_accept_state)               \
  X(SSL_set_connect_state)              \
  X(SSL_do_handshake)                   \
  X(SSL_get_error)                      \
  X(SSL_read)                           \
  X(SSL_write)                          \
  X(SSL_pending)                        \
  X(SSL_shutdown)                       \
  X(SSL_set1_host)                      \
  X(SSL_get0_param)                     \
  X(SSL_get_verify_result)              \
  X(SSL_get1_peer_certificate)

// BIOs and certificates.
#define RN_OPENSSL_CRYPTO(X)       \
  X(X509_VERIFY_PARAM_set1_ip_asc) \
  X(X509_get_subject_name)         \
  X(X509_NAME_get_text_by_NID)     \
  X(X509_verify_cert_error_string) \
  X(X509_free)                     \
  X(X509_STORE_add_cert)           \
  X(ERR_get_error)                 \
  X(ERR_peek_error)                \
  X(ERR_reason_error_string)       \
  X(ERR_clear_error)               \
  X(BIO_meth_new)                  \
  X(BIO_meth_free)                 \
  X(BIO_meth_set_read)             \
  X(BIO_meth_set_write)            \
  X(BIO_meth_set_ctrl)             \
  X(BIO_new)                       \
  X(BIO_set_data)                  \
  X(BIO_get_data)                  \
  X(BIO_set_init)                  \
  X(BIO_set_flags)                 \
  X(BIO_clear_flags)               \
  X(BIO_s_mem)                     \
  X(BIO_ctrl)                      \
  X(BIO_free)                      \
  X(BIO_new_mem_buf)               \
  X(EVP_PKEY_Q_keygen)             \
  X(EVP_PKEY_free)                 \
  X(EVP_sha256)                    \
  X(PEM_write_bio_PrivateKey)      \
  X(PEM_read_bio_PrivateKey)       \
  X(PEM_write_bio_X509)            \
  X(PEM_read_bio_X509)             \
  X(X509_new)                      \
  X(X509_set_version)              \
  X(X509_get_serialNumber)         \
  X(X509_getm_notBefore)           \
  X(X509_getm_notAfter)            \
  X(X509_gmtime_adj)               \
  X(X509_set_pubkey)               \
  X(X509_NAME_add_entry_by_txt)    \
  X(X509_set_issuer_name)          \
  X(X509_sign)                     \
  X(X509V3_set_ctx)                \
  X(X509V3_EXT_conf_nid)           \
  X(X509_add_ext)                  \
  X(X509_EXTENSION_free)           \
  X(ASN1_INTEGER_set_uint64)       \
  X(RAND_bytes)

typedef struct rn_openssl_t {
#define RN_OPENSSL_FIELD(name) __typeof__(&(name)) name;
  RN_OPENSSL_SSL(RN_OPENSSL_FIELD)
  RN_OPENSSL_CRYPTO(RN_OPENSSL_FIELD)
#undef RN_OPENSSL_FIELD
} rn_openssl_t;

// The table, or UNIMPLEMENTED if OpenSSL cannot be loaded.
RN_MUST_USE rn_status_t rn_openssl(const rn_openssl_t** out);
// A description of this thread's oldest error; clears all errors.
const char* rn_openssl_reason(const rn_openssl_t* o);

#endif  // RUNNEL_NET_OPENSSL_H_
