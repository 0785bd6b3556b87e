// Certificates and keys: see pem.h.
#include "net/pem.h"

#include <string.h>

static bool is_text(const char* pem) { return strstr(pem, "-----BEGIN ") != NULL; }

// |result| is OpenSSL's: 1 is success.
static rn_status_t outcome(const rn_openssl_t* o, const char* pem, const char* what, int result) {
  if (result == 1) return RN_OK;
  return rn_invalid_argument("%s: %s", is_text(pem) ? what : pem, rn_openssl_reason(o));
}

static rn_status_t open_text(const rn_openssl_t* o, const char* pem, BIO** out) {
  *out = o->BIO_new_mem_buf(pem, -1);
  if (*out) return RN_OK;
  o->ERR_clear_error();
  return rn_out_of_memory();
}

rn_status_t rn_pem_use_chain(const rn_openssl_t* o, SSL_CTX* context, const char* pem) {
  if (!is_text(pem))
    return outcome(o, pem, "", o->SSL_CTX_use_certificate_chain_file(context, pem));
  BIO* bio = NULL;
  RN_RETURN_IF_ERROR(open_text(o, pem, &bio));
  X509* certificate = o->PEM_read_bio_X509(bio, NULL, NULL, NULL);
  int result = certificate ? o->SSL_CTX_use_certificate(context, certificate) : 0;
  o->X509_free(certificate);
  rn_status_t status = outcome(o, pem, "The certificate", result);
  while (rn_ok(status) && (certificate = o->PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
    result = (int)o->SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 0, certificate);
    if (result != 1) o->X509_free(certificate);  // else the context has it
    status = outcome(o, pem, "An intermediate certificate", result);
  }
  o->ERR_clear_error();  // of the end of the text
  o->BIO_free(bio);
  return status;
}

rn_status_t rn_pem_use_key(const rn_openssl_t* o, SSL_CTX* context, const char* pem) {
  if (!is_text(pem)) {
    RN_RETURN_IF_ERROR(
        outcome(o, pem, "", o->SSL_CTX_use_PrivateKey_file(context, pem, SSL_FILETYPE_PEM)));
  } else {
    BIO* bio = NULL;
    RN_RETURN_IF_ERROR(open_text(o, pem, &bio));
    EVP_PKEY* key = o->PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    int result = key ? o->SSL_CTX_use_PrivateKey(context, key) : 0;
    o->EVP_PKEY_free(key);
    o->BIO_free(bio);
    RN_RETURN_IF_ERROR(outcome(o, pem, "The key", result));
  }
  return outcome(o, pem, "The key", o->SSL_CTX_check_private_key(context));
}

rn_status_t rn_pem_trust(const rn_openssl_t* o, SSL_CTX* context, const char* pem) {
  if (!is_text(pem))
    return outcome(o, pem, "", o->SSL_CTX_load_verify_locations(context, pem, NULL));
  BIO* bio = NULL;
  RN_RETURN_IF_ERROR(open_text(o, pem, &bio));
  X509_STORE* store = o->SSL_CTX_get_cert_store(context);
  rn_status_t status = RN_OK;
  int count = 0;
  for (X509* certificate; rn_ok(status); ++count) {
    certificate = o->PEM_read_bio_X509(bio, NULL, NULL, NULL);
    if (!certificate) break;
    status =
        outcome(o, pem, "The authority's certificate", o->X509_STORE_add_cert(store, certificate));
    o->X509_free(certificate);
  }
  if (rn_ok(status) && !count) status = outcome(o, pem, "The authority's certificate", 0);
  o->ERR_clear_error();
  o->BIO_free(bio);
  return status;
}
