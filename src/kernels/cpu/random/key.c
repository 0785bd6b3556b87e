// Positions in streams of random numbers, from seeds and from keys and counters: see random.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/random/random.h"

// TensorFlow's seed scrambling, so that similar seeds give unrelated streams: the block that this
// key makes of them.
#define MIX_KEY (UINT64_C(0x02461e29) << 32 | UINT64_C(0x3ec8f720))

rn_status_t rn_random_stream_init(const rn_kernel_init_t* init, void* state) {
  rn_random_stream_t* stream = state;
  rn_mutex_init(&stream->mutex);
  stream->philox =
      rn_philox_seeded(init->env, rn_init_int(init, "seed"), rn_init_int(init, "seed2"));
  return RN_OK;
}

void rn_random_stream_destroy(void* state) {
  rn_mutex_destroy(&((rn_random_stream_t*)state)->mutex);
}

rn_status_t rn_random_seeded(const rn_tensor_t* seed, rn_philox_t* out) {
  if (seed->rank != 1 || seed->count != 2)
    return rn_invalid_argument("seed must have shape [2], not %s", rn_text_of(seed).text);
  if (seed->dtype != RN_INT32 && seed->dtype != RN_INT64)
    return rn_invalid_argument("Invalid seed type: %s", rn_dtype_name(seed->dtype));
  rn_philox_t mixer = {.key = MIX_KEY,
                       .block = (uint64_t)rn_int_at(seed, 0),
                       .stream = (uint64_t)rn_int_at(seed, 1)};
  uint32_t words[4];
  rn_philox_words(&mixer, words);
  *out = (rn_philox_t){.key = words[0] | (uint64_t)words[1] << 32,
                       .stream = words[2] | (uint64_t)words[3] << 32};
  return RN_OK;
}

enum { ALGORITHM_PHILOX = 1, ALGORITHM_THREEFRY = 2, ALGORITHM_ANY = 3 };

rn_status_t rn_random_check_key(const rn_tensor_t* key, const rn_tensor_t* counter,
                                const rn_tensor_t* algorithm) {
  if (algorithm->rank != 0)
    return rn_invalid_argument("input 3 (0-based) must have shape [], not %s",
                               rn_text_of(algorithm).text);
  int64_t id = rn_int_at(algorithm, 0);
  if (key->rank != 1 || key->count != 1)
    return rn_invalid_argument(
        "key must have shape [1], not %s. (Note that batched keys are not supported yet.)",
        rn_text_of(key).text);
  // Stock requires as many numbers as the algorithm's own id says.
  if (counter->rank != 1 || (id != ALGORITHM_ANY && counter->count < id))
    return rn_invalid_argument(
        "counter must be a vector with length at least %lld; got shape: %s. (Note that batched "
        "counters are not supported yet.)",
        (long long)id, rn_text_of(counter).text);
  if (id != ALGORITHM_PHILOX && id != ALGORITHM_ANY)
    return rn_invalid_argument("Unsupported algorithm id: %lld", (long long)id);
  if (counter->count < 2)
    return rn_invalid_argument(
        "counter must be a vector with length at least 2; got shape: %s. (Note that batched "
        "counters are not supported yet.)",
        rn_text_of(counter).text);
  return RN_OK;
}

rn_status_t rn_random_from_key(const rn_tensor_t* key, const rn_tensor_t* counter,
                               const rn_tensor_t* algorithm, rn_philox_t* out) {
  RN_RETURN_IF_ERROR(rn_random_check_key(key, counter, algorithm));
  const uint64_t* numbers = RN_DATA(counter, const uint64_t);
  *out = (rn_philox_t){
      .key = RN_DATA(key, const uint64_t)[0], .block = numbers[0], .stream = numbers[1]};
  return RN_OK;
}
