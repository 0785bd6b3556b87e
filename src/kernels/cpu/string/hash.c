// StringToHashBucket.
#include "base/hash.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// The kernels.
typedef struct hash_bucket_t {
  enum { FARM, MURMUR, SIP } hash;
  uint64_t buckets;
  uint64_t key[2];
} hash_bucket_t;

static rn_status_t bucket_init(const rn_kernel_init_t* init, void* state) {
  hash_bucket_t* bucket = state;
  bucket->buckets = (uint64_t)rn_init_int(init, "num_buckets");
  if ((int64_t)bucket->buckets < 1) return rn_invalid_argument("num_buckets must be at least 1");
  bucket->hash = strstr(init->op->name, "Fast")     ? FARM
                 : strstr(init->op->name, "Strong") ? SIP
                                                    : MURMUR;
  if (bucket->hash == SIP) {
    const rn_attr_value_t* key = rn_init_attr(init, "key");
    if (key->count != 2) return rn_invalid_argument("Key must have 2 elements");
    bucket->key[0] = (uint64_t)key->list_i[0];
    bucket->key[1] = (uint64_t)key->list_i[1];
  }
  return RN_OK;
}

static rn_status_t to_bucket(rn_kernel_ctx_t* ctx) {
  const hash_bucket_t* bucket = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  for (int64_t i = 0; i < input->count; ++i) {
    rn_str_t text = rn_tstring_view(&RN_DATA(input, const rn_tstring_t)[i]);
    uint64_t hash = bucket->hash == FARM  ? rn_farm_fingerprint64(text)
                    : bucket->hash == SIP ? rn_sip_hash64(text, bucket->key)
                                          : rn_murmur_hash64(text, RN_HASH64_SEED);
    RN_DATA(out, int64_t)[i] = (int64_t)(hash % bucket->buckets);
  }
  return RN_OK;
}

#define BUCKET(name)                                                                       \
  {                                                                                        \
    .op = name, .device = "CPU", .state_size = sizeof(hash_bucket_t), .init = bucket_init, \
    .compute = to_bucket                                                                   \
  }

static const rn_kernel_def_t rows[] = {BUCKET("StringToHashBucketFast"),
                                       BUCKET("StringToHashBucketStrong"),
                                       BUCKET("StringToHashBucket")};
RN_KERNEL_FAMILY(cpu_string_hash, rows);
