// What TLS streams share: certificates, authorities and protocols. See tls.h.
#include "net/pem.h"
#include "net/tls_internal.h"

static const unsigned char protocols[] = "\x02h2\x08http/1.1";

static int on_protocols(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                        const unsigned char* offered, unsigned size, void* arg) {
  const rn_openssl_t* o = ((const rn_tls_t*)arg)->o;
  size_t skip = rn_tls_has_http2(o, ssl) ? 0 : 3;
  int result = o->SSL_select_next_proto((unsigned char**)out, out_size, protocols + skip,
                                        (unsigned)(sizeof protocols - 1 - skip), offered, size);
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static rn_status_t use_certificates(const rn_tls_t* tls, SSL_CTX* context,
                                    const rn_tls_options_t* options) {
  const rn_openssl_t* o = tls->o;
  bool verifies = !options->is_public || options->verifies_clients;
  if (verifies)
    o->SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  if (options->cert) RN_RETURN_IF_ERROR(rn_pem_use_chain(o, context, options->cert));
  if (options->key) RN_RETURN_IF_ERROR(rn_pem_use_key(o, context, options->key));
  if (options->ca) return rn_pem_trust(o, context, options->ca);
  if (verifies && o->SSL_CTX_set_default_verify_paths(context) != 1) return rn_out_of_memory();
  return RN_OK;
}

static rn_status_t set_up_context(rn_tls_t* tls, SSL_CTX* context,
                                  const rn_tls_options_t* options) {
  const rn_openssl_t* o = tls->o;
  o->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION,
                  tls->is_open ? TLS1_2_VERSION : TLS1_3_VERSION, NULL);
  o->SSL_CTX_ctrl(context, SSL_CTRL_MODE,
                  SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                      SSL_MODE_RELEASE_BUFFERS,
                  NULL);
  o->SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_TICKET);
  o->SSL_CTX_set_num_tickets(context, 0);
  o->SSL_CTX_set_alpn_select_cb(context, on_protocols, tls);
  if (o->SSL_CTX_set_alpn_protos(context, protocols, 3) != 0) return rn_out_of_memory();
  return use_certificates(tls, context, options);
}

rn_status_t rn_tls_replace(rn_tls_t* tls, const rn_tls_options_t* options) {
  const rn_openssl_t* o = tls->o;
  SSL_CTX* context = o->SSL_CTX_new(o->TLS_method());
  if (!context) return rn_out_of_memory();
  rn_status_t status = set_up_context(tls, context, options);
  if (rn_ok(status)) {
    rn_mutex_lock(&tls->mutex);
    SSL_CTX* old = tls->context;
    tls->context = context;
    context = old;
    rn_mutex_unlock(&tls->mutex);
  }
  if (context) o->SSL_CTX_free(context);
  return status;
}

static rn_status_t set_up(rn_tls_t* tls, const rn_tls_options_t* options) {
  RN_RETURN_IF_ERROR(rn_openssl(&tls->o));
  const rn_openssl_t* o = tls->o;
  tls->method = o->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "runnel");
  if (!tls->method) return rn_out_of_memory();
  o->BIO_meth_set_read(tls->method, rn_tls_bio_read);
  o->BIO_meth_set_write(tls->method, rn_tls_bio_write);
  o->BIO_meth_set_ctrl(tls->method, rn_tls_bio_control);
  return rn_tls_replace(tls, options);
}

rn_status_t rn_tls_create(const rn_tls_options_t* options, rn_tls_t** out) {
  *out = NULL;
  bool is_complete = options->is_guest
                         ? !options->cert == !options->key
                         : options->cert && options->key && (options->ca || options->is_public);
  if (!is_complete)
    return rn_invalid_argument("TLS needs a certificate, its key and a certificate authority");
  rn_tls_t* tls = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &tls));
  tls->refs = 1;
  tls->allocator = options->allocator;
  tls->is_open = options->is_public || options->is_guest;
  rn_mutex_init(&tls->mutex);
  rn_status_t status = set_up(tls, options);
  if (!rn_ok(status)) {
    rn_tls_release(tls);
    return status;
  }
  *out = tls;
  return RN_OK;
}

void rn_tls_retain(rn_tls_t* tls) {
  if (tls) tls->refs++;
}

void rn_tls_release(rn_tls_t* tls) {
  if (!tls || --tls->refs) return;
  if (tls->context) tls->o->SSL_CTX_free(tls->context);
  if (tls->method) tls->o->BIO_meth_free(tls->method);
  rn_mutex_destroy(&tls->mutex);
  RN_FREE(tls->allocator, tls);
}
