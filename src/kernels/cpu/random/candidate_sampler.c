// Candidate sampling: draws classes from a distribution, and computes the expected count of each.
#include <float.h>
#include <math.h>

#include "base/fs.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/random/alias.h"
#include "kernels/kernel_rows.h"

#define MOST_BYTES ((size_t)1 << 32)  // of a file of words
#define TRIES_BETWEEN_LOOKS 4096
#define WORDS_PER_SAMPLE 2048  // what a call reserves for each candidate

typedef enum kind_t { UNIFORM, LOG_UNIFORM, LEARNED, FIXED, ALL } kind_t;

typedef struct sampler_t {
  rn_allocator_t allocator;
  kind_t kind;
  rn_random_stream_t stream;
  int64_t range, true_count, sampled;
  bool is_unique;
  int64_t possible;  // classes of a fixed distribution that have a weight
  double log_range;
  // Learned: counts in a Fenwick tree. |mutex| guards them.
  rn_mutex_t mutex;
  int32_t* counts;
  int32_t total, top;  // top: the largest power of two <= range
  // Fixed.
  float* weights;
  double weight_total;
  rn_alias_t* aliases;
} sampler_t;

// Numbers from the words of a stream, as TensorFlow computes them.
static uint64_t word64(rn_philox_single_t* words) {
  uint64_t low = rn_philox_word(words);
  return low | (uint64_t)rn_philox_word(words) << 32;
}

static uint64_t below64(rn_philox_single_t* words, uint64_t n) {
  if ((n & (n - 1)) == 0) return word64(words) & (n - 1);
  uint64_t skewed = UINT64_MAX % n + 1, value;
  do value = word64(words);
  while (value < skewed);
  return value % n;
}

// Learned counts.
static void count_up(sampler_t* s, int64_t value) {
  for (int64_t i = value + 1; i <= s->range; i += i & -i) ++s->counts[i];
  ++s->total;
}

static int32_t counts_before(const sampler_t* s, int64_t value) {
  int32_t sum = 0;
  for (int64_t i = value; i > 0; i -= i & -i) sum += s->counts[i];
  return sum;
}

// The class of the |n|-th of all counted items.
static int64_t class_of_count(const sampler_t* s, int32_t n) {
  int64_t at = 0;
  for (int64_t step = s->top; step; step /= 2)
    if (at + step <= s->range && s->counts[at + step] <= n) {
      at += step;
      n -= s->counts[at];
    }
  return at;
}

static int64_t draw(const sampler_t* s, rn_philox_single_t* words) {
  switch (s->kind) {
    case UNIFORM:
      return (int64_t)below64(words, (uint64_t)s->range);
    case LOG_UNIFORM: {
      uint32_t high = rn_philox_word(words), low = rn_philox_word(words);
      int64_t value = (int64_t)exp(rn_words_to_double(high, low) * s->log_range) - 1;
      return value % s->range;  // rounding may exceed the range
    }
    case LEARNED:
      return class_of_count(s, (int32_t)rn_philox_below(words, (uint32_t)s->total));
    default:
      return rn_alias_draw(s->aliases, s->range, words);
  }
}

static float probability(const sampler_t* s, int64_t value) {
  bool is_class = value >= 0 && value < s->range;
  switch (s->kind) {
    case UNIFORM:
      return (float)(1.0 / (double)s->range);
    case LOG_UNIFORM:
      return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / s->log_range);
    case LEARNED:
      return is_class
                 ? (float)(counts_before(s, value + 1) - counts_before(s, value)) / (float)s->total
                 : 0;
    default:
      return is_class ? (float)((double)s->weights[value] / s->weight_total) : 0;
  }
}

static float expected(float p, int64_t sampled, int64_t tries) {
  if (sampled == tries) return p * (float)sampled;
  return (float)-expm1((double)tries * log1p(-(double)p));
}

// Creation.
static rn_status_t sampler_init(const rn_kernel_init_t* init, sampler_t* s, kind_t kind) {
  s->allocator = init->allocator;
  s->kind = kind;
  s->true_count = rn_init_int(init, "num_true");
  s->sampled = rn_init_int(init, "num_sampled");
  s->is_unique = rn_init_bool(init, "unique");
  s->range = kind == ALL ? s->sampled : rn_init_int(init, "range_max");
  rn_mutex_init(&s->stream.mutex);
  rn_mutex_init(&s->mutex);
  s->stream.philox =
      rn_philox_seeded(init->env, rn_init_int(init, "seed"), rn_init_int(init, "seed2"));
  s->log_range = log1p((double)s->range);
  if (kind == LEARNED && s->range >= INT32_MAX)
    return rn_invalid_argument("range_max is too large: %lld", (long long)s->range);
  return RN_OK;
}

static rn_status_t init_uniform(const rn_kernel_init_t* init, void* state) {
  return sampler_init(init, state, UNIFORM);
}
static rn_status_t init_log_uniform(const rn_kernel_init_t* init, void* state) {
  return sampler_init(init, state, LOG_UNIFORM);
}
static rn_status_t init_all(const rn_kernel_init_t* init, void* state) {
  return sampler_init(init, state, ALL);
}

static rn_status_t init_learned(const rn_kernel_init_t* init, void* state) {
  sampler_t* s = state;
  RN_RETURN_IF_ERROR(sampler_init(init, s, LEARNED));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, (size_t)s->range + 1, &s->counts));
  for (s->top = 1; s->top <= s->range / 2;) s->top *= 2;
  // One count per class.
  for (int64_t i = 1; i <= s->range; ++i) s->counts[i] = (int32_t)(i & -i);
  s->total = (int32_t)s->range;
  return RN_OK;
}

// The weights of a fixed distribution, in vocabulary order: those of this shard.
typedef struct weights_t {
  sampler_t* s;
  int64_t shards, shard, word, count;
  double distortion;
} weights_t;

static void add_weight(weights_t* w, double weight) {
  if (w->word++ % w->shards != w->shard) return;
  if (w->count < w->s->range) w->s->weights[w->count] = (float)weight;
  ++w->count;
}

// One word per line; its count follows the last comma.
static rn_status_t add_line(weights_t* w, rn_str_t line) {
  size_t comma = line.size;
  while (comma > 0 && line.data[comma - 1] != ',') --comma;
  if (comma == 0) return RN_OK;
  char number[64] = {0}, *stop = NULL;
  size_t length = line.size - comma;
  memcpy(number, line.data + comma, length < sizeof number ? length : sizeof number - 1);
  double weight = strtod(number, &stop);
  if (stop == number)
    return rn_invalid_argument("Wrong vocabulary format at line: %.*s", RN_STR_ARGS(line));
  add_weight(w, pow(weight, w->distortion));
  return RN_OK;
}

static rn_status_t read_weights(const rn_kernel_init_t* init, rn_str_t file, weights_t* w) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, init->allocator);
  char* path = NULL;
  rn_status_t status = rn_str_dup(init->allocator, file, &path);
  if (rn_ok(status)) status = rn_fs_read(init->env, path, MOST_BYTES, &text);
  rn_str_t rest = rn_strbuf_view(&text);
  while (rn_ok(status) && rest.size > 0) {
    const char* end = memchr(rest.data, '\n', rest.size);
    size_t size = end ? (size_t)(end - rest.data) : rest.size;
    status = add_line(w, rn_str_n(rest.data, size));
    size_t step = size + (end != NULL);
    rest = rn_str_n(rest.data + step, rest.size - step);
  }
  if (path) rn_free(init->allocator, path, file.size + 1);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t init_fixed(const rn_kernel_init_t* init, void* state) {
  sampler_t* s = state;
  RN_RETURN_IF_ERROR(sampler_init(init, s, FIXED));
  const rn_attr_value_t* unigrams = rn_init_attr(init, "unigrams");
  rn_str_t file = rn_init_string(init, "vocab_file");
  int64_t reserved = rn_init_int(init, "num_reserved_ids");
  weights_t w = {.s = s,
                 .shards = rn_init_int(init, "num_shards"),
                 .shard = rn_init_int(init, "shard"),
                 .distortion = rn_init_float(init, "distortion")};
  if ((file.size > 0) == (unigrams->count > 0))
    return rn_invalid_argument("Must provide either vocab_file or unigrams.");
  if (w.shard >= w.shards)
    return rn_invalid_argument("Shard must be in range 0 to num_shards - 1, got %lld",
                               (long long)w.shard);
  if (s->range >= INT32_MAX)
    return rn_invalid_argument("range_max is too large: %lld", (long long)s->range);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, (size_t)s->range, &s->weights));
  for (int64_t i = 0; i < reserved && i <= s->range * w.shards; ++i) add_weight(&w, 0);
  if (file.size > 0)
    RN_RETURN_IF_ERROR(read_weights(init, file, &w));
  else
    for (int32_t i = 0; i < unigrams->count; ++i)
      add_weight(&w, pow((double)unigrams->list_f[i], w.distortion));
  if (w.count != s->range)
    return rn_invalid_argument("range_max is %lld, but the distribution has %lld classes",
                               (long long)s->range, (long long)w.count);
  for (int64_t i = 0; i < s->range; ++i) s->possible += s->weights[i] > 0;
  return rn_alias_make(s->allocator, s->weights, s->range, &s->weight_total, &s->aliases);
}

static void sampler_destroy(void* state) {
  sampler_t* s = state;
  rn_mutex_destroy(&s->stream.mutex);
  rn_mutex_destroy(&s->mutex);
  if (s->counts) RN_FREE_ARRAY(s->allocator, s->counts, s->range + 1);
  if (s->weights) RN_FREE_ARRAY(s->allocator, s->weights, s->range);
  if (s->aliases) RN_FREE_ARRAY(s->allocator, s->aliases, s->range);
}

// Sampling. A set of the classes drawn, with open addressing.
typedef struct candidate_sampler_seen_t {
  int64_t* slots;  // value + 1; 0 if free
  uint64_t mask;
} candidate_sampler_seen_t;

static bool see(candidate_sampler_seen_t* seen, int64_t value) {
  uint64_t at = (uint64_t)value * UINT64_C(0x9E3779B97F4A7C15) >> 20 & seen->mask;
  for (; seen->slots[at]; at = (at + 1) & seen->mask)
    if (seen->slots[at] == value + 1) return false;
  seen->slots[at] = value + 1;
  return true;
}

static rn_status_t too_few(const sampler_t* s) {
  return rn_invalid_argument("Too few classes can be drawn to have %lld different ones",
                             (long long)s->sampled);
}

static rn_status_t draw_unique(rn_kernel_ctx_t* ctx, const sampler_t* s, rn_philox_single_t* words,
                               int64_t* out, int64_t* out_tries) {
  int64_t size = 16, tries = 0;
  while (size < 2 * s->sampled) size *= 2;
  rn_tensor_t slots = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &size}, &slots));
  memset(slots.data, 0, rn_tensor_bytes(&slots));
  candidate_sampler_seen_t seen = {RN_DATA(&slots, int64_t), (uint64_t)size - 1};
  rn_status_t status = RN_OK;
  for (int64_t picked = 0; picked < s->sampled && rn_ok(status);) {
    if (++tries == INT32_MAX)  // where stock ends the process
      status = too_few(s);
    else if (tries % TRIES_BETWEEN_LOOKS == 0)  // classes may be so rare that this takes very long
      status = rn_step_stopped(ctx->step);
    int64_t value = draw(s, words);
    if (see(&seen, value)) out[picked++] = value;
  }
  rn_tensor_clear(&slots);
  *out_tries = tries;
  return status;
}

static rn_status_t sample_locked(rn_kernel_ctx_t* ctx, sampler_t* s, rn_tensor_t* outs[3]) {
  const rn_tensor_t* truth = rn_in(ctx, 0);
  int64_t* candidates = RN_DATA(outs[0], int64_t);
  int64_t tries = s->sampled;
  rn_philox_single_t words = rn_philox_single(
      rn_random_stream_reserve(&s->stream, (uint64_t)s->sampled * WORDS_PER_SAMPLE / 4));
  if (s->kind == ALL) {
    for (int64_t i = 0; i < s->sampled; ++i) candidates[i] = i;
  } else if (s->is_unique) {
    RN_RETURN_IF_ERROR(draw_unique(ctx, s, &words, candidates, &tries));
  } else {
    for (int64_t i = 0; i < s->sampled; ++i) candidates[i] = draw(s, &words);
  }
  for (int o = 1; o < 3; ++o) {
    const int64_t* values = o == 1 ? RN_DATA(truth, const int64_t) : candidates;
    for (int64_t i = 0; i < outs[o]->count; ++i) RN_DATA(outs[o], float)
    [i] = s->kind == ALL ? 1 : expected(probability(s, values[i]), s->sampled, tries);
  }
  if (s->kind == LEARNED)
    for (int64_t i = 0; i < truth->count && s->total < INT32_MAX; ++i) {
      int64_t value = RN_DATA(truth, const int64_t)[i];
      if (value >= 0 && value < s->range) count_up(s, value);
    }
  return RN_OK;
}

static rn_status_t sample(rn_kernel_ctx_t* ctx) {
  sampler_t* s = ctx->state;
  const rn_tensor_t* truth = rn_in(ctx, 0);
  if (truth->rank != 2) return rn_invalid_argument("true_classes must be a matrix");
  if (rn_tensor_dim(truth, 1) != s->true_count)
    return rn_invalid_argument("true_classes must have num_true columns, expected: %lld was: %lld",
                               (long long)rn_tensor_dim(truth, 1), (long long)s->true_count);
  for (int64_t i = 0; i < truth->count; ++i) {
    int64_t value = RN_DATA(truth, const int64_t)[i];
    if (value < 0 || value >= s->range)
      return rn_invalid_argument("`true_candidate` out of range [0, %lld), received %lld",
                                 (long long)s->range, (long long)value);
  }
  if (s->is_unique && s->sampled > s->range)
    return rn_invalid_argument("Sampler's range is too small.");
  if (s->is_unique && s->weights && s->sampled > s->possible) return too_few(s);
  rn_tensor_t* outs[3];
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &s->sampled}, &outs[0]));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(truth), &outs[1]));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &s->sampled}, &outs[2]));
  if (s->kind != LEARNED) return sample_locked(ctx, s, outs);
  rn_mutex_lock(&s->mutex);
  rn_status_t status = sample_locked(ctx, s, outs);
  rn_mutex_unlock(&s->mutex);
  return status;
}

// ComputeAccidentalHits: which candidates are true classes.
static rn_status_t init_hits(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "num_true");
  return RN_OK;
}

// The last position of every candidate, by its hash; at least half of the table is empty.
typedef struct candidate_sampler_place_t {
  int64_t value, at;  // |at| is -1 if empty
} candidate_sampler_place_t;
typedef struct candidate_sampler_places_t {
  candidate_sampler_place_t* items;
  int bits;  // log2 of the number of items
} candidate_sampler_places_t;

// The item of |value|, or the empty one where it belongs.
static candidate_sampler_place_t* find(const candidate_sampler_places_t* places, int64_t value) {
  const uint64_t mask = (UINT64_C(1) << places->bits) - 1;
  uint64_t at = (uint64_t)value * 0x9e3779b97f4a7c15u >> (64 - places->bits);
  while (places->items[at].at >= 0 && places->items[at].value != value) at = (at + 1) & mask;
  return &places->items[at];
}

static rn_status_t output_hits(rn_kernel_ctx_t* ctx, const candidate_sampler_places_t* places) {
  const rn_tensor_t* truth = rn_in(ctx, 0);
  int64_t columns = rn_tensor_dim(truth, 1), hits = 0, n = 0;
  for (int64_t i = 0; i < truth->count; ++i)
    hits += find(places, RN_DATA(truth, const int64_t)[i])->at >= 0;
  rn_tensor_t* outs[3];
  for (int o = 0; o < 3; ++o)
    RN_RETURN_IF_ERROR(rn_output(ctx, o, (rn_shape_t){1, &hits}, &outs[o]));
  for (int64_t i = 0; i < truth->count; ++i) {
    int64_t at = find(places, RN_DATA(truth, const int64_t)[i])->at;
    if (at < 0) continue;
    RN_DATA(outs[0], int32_t)[n] = (int32_t)(i / columns);
    RN_DATA(outs[1], int64_t)[n] = at;
    RN_DATA(outs[2], float)[n++] = -FLT_MAX;
  }
  return RN_OK;
}

static rn_status_t accidental_hits(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *truth = rn_in(ctx, 0), *sampled = rn_in(ctx, 1);
  if (truth->rank != 2 || rn_tensor_dim(truth, 1) != *(int64_t*)ctx->state)
    return rn_invalid_argument("true_candidates must be a batch_size * num_true matrix");
  if (sampled->rank != 1)
    return rn_invalid_argument(
        "sampled_candidates must be a vector, which is typically an output from CandidateSampler");
  rn_allocator_t allocator = ctx->kernel->allocator;
  candidate_sampler_places_t places = {.bits = 1};
  while ((int64_t)1 << places.bits < 2 * sampled->count) places.bits++;
  size_t count = (size_t)1 << places.bits;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &places.items));
  for (size_t i = 0; i < count; ++i) places.items[i].at = -1;
  for (int64_t i = 0; i < sampled->count; ++i) {
    int64_t value = RN_DATA(sampled, const int64_t)[i];
    *find(&places, value) = (candidate_sampler_place_t){value, i};
  }
  rn_status_t status = output_hits(ctx, &places);
  RN_FREE_ARRAY(allocator, places.items, count);
  return status;
}

#define SAMPLER(name, function)                                                     \
  {                                                                                 \
    .op = name, .device = "CPU", .state_size = sizeof(sampler_t), .init = function, \
    .destroy = sampler_destroy, .compute = sample                                   \
  }

static const rn_kernel_def_t rows[] = {
    SAMPLER("UniformCandidateSampler", init_uniform),
    SAMPLER("LogUniformCandidateSampler", init_log_uniform),
    SAMPLER("LearnedUnigramCandidateSampler", init_learned),
    SAMPLER("ThreadUnsafeUnigramCandidateSampler", init_learned),
    SAMPLER("FixedUnigramCandidateSampler", init_fixed),
    SAMPLER("AllCandidateSampler", init_all),
    {.op = "ComputeAccidentalHits",
     .device = "CPU",
     .state_size = sizeof(int64_t),
     .init = init_hits,
     .compute = accidental_hits},
};
RN_KERNEL_FAMILY(cpu_candidate_sampler, rows);
