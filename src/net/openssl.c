// Loading OpenSSL: see openssl.h.
#include "net/openssl.h"

#include <dlfcn.h>
#include <pthread.h>

#define SSL_LIBRARY "libssl.so.3"
#define CRYPTO_LIBRARY "libcrypto.so.3"

// Filled once and then only read; it is a property of the process, like the libraries it points
// into.
static struct {
  pthread_once_t once;
  rn_openssl_t table;
  const char* missing;  // NULL: everything was found
} loaded = {.once = PTHREAD_ONCE_INIT};

static const char* const names[] = {
#define NAME(name) #name,
    RN_OPENSSL_SSL(NAME) RN_OPENSSL_CRYPTO(NAME)
#undef NAME
};

static void load(void) {
  void* ssl = dlopen(SSL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* crypto = dlopen(CRYPTO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!ssl || !crypto) {
    loaded.missing = ssl ? CRYPTO_LIBRARY : SSL_LIBRARY;
    return;
  }
  void** table = (void**)&loaded.table;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    table[i] = dlsym(ssl, names[i]);  // also finds symbols of libcrypto, which libssl depends on
    if (!table[i]) table[i] = dlsym(crypto, names[i]);
    if (!table[i] && !loaded.missing) loaded.missing = names[i];
  }
}

rn_status_t rn_openssl(const rn_openssl_t** out) {
  pthread_once(&loaded.once, load);
  *out = &loaded.table;
  if (!loaded.missing) return RN_OK;
  return rn_unimplemented(
      "TLS needs OpenSSL 3, which could not be loaded: %s is missing (Debian: libssl3)",
      loaded.missing);
}

const char* rn_openssl_reason(const rn_openssl_t* o) {
  const char* reason = o->ERR_reason_error_string(o->ERR_peek_error());
  o->ERR_clear_error();
  return reason ? reason : "no reason is given";
}
