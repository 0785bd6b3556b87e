// The key of a prediction in the cache: version, signature, wanted outputs, and the inputs bit by
// bit, so that NaN equals itself and -0 does not equal 0.
#ifndef RUNNEL_SERVE_MODEL_CACHE_KEY_H_
#define RUNNEL_SERVE_MODEL_CACHE_KEY_H_

#include "serve/predict.h"

// The hash of the key of |predict|, and the bytes that it takes. |seed| is secret, so that clients
// cannot choose inputs that collide.
uint64_t rn_cache_key_hash(const rn_predict_t* predict, uint64_t seed, size_t* out_size);
// Writes the key to |to|, which has room for it.
void rn_cache_key_write(const rn_predict_t* predict, char* to);
// Whether |key|, which rn_cache_key_write wrote, and which is as long, is that of |predict|.
bool rn_cache_key_equals(const rn_predict_t* predict, const char* key);

#endif  // RUNNEL_SERVE_MODEL_CACHE_KEY_H_
