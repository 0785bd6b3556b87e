// Skipgram and NegTrain: word2vec with negative samples, from before GraphDef version 19.
//
// Skipgram draws from the stream with key 0, as TensorFlow does, so that the examples are the same.
#include <inttypes.h>
#include <math.h>

#include "base/fs.h"
#include "base/map.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/random/alias.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cpu/training/apply.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

#define MOST_BYTES ((size_t)1 << 32)  // of a file of words
#define EXAMPLES 3000                 // drawn at a time
#define SENTENCE 1000                 // words that are taken together
#define TRIES_BETWEEN_LOOKS 4096
#define WORDS_PER_SAMPLE 8  // what NegTrain reserves of its stream

typedef struct word2vec_pair_t {
  int32_t word, label;
} word2vec_pair_t;

typedef struct skipgram_t {
  rn_allocator_t allocator;
  int64_t batch_size, window, min_count;
  float subsample;
  rn_str_t* words;     // Owned, with |text|: by descending count after the first, "UNK"
  int32_t* counts;     // Owned: of each word
  int32_t vocabulary;  // number of words
  int32_t* corpus;     // Owned: the text as words
  int64_t corpus_size;
  rn_strbuf_t text;
  rn_mutex_t mutex;  // guards the rest
  rn_philox_single_t numbers;
  word2vec_pair_t* examples;  // Owned
  int32_t* sentence;          // Owned
  int next;                   // of |examples|
  int64_t at;                 // in |corpus|
  int32_t in_sentence, label, label_end;
  int32_t epoch;
  int64_t processed;
} skipgram_t;

// Reading the text.

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool next_word(rn_str_t* text, rn_str_t* out) {
  size_t from = 0;
  while (from < text->size && is_blank(text->data[from])) ++from;
  size_t end = from;
  while (end < text->size && !is_blank(text->data[end])) ++end;
  *out = rn_str_n(text->data + from, end - from);
  *text = rn_str_n(text->data + end, text->size - end);
  return end > from;
}

// A word of the text.
typedef struct word2vec_word_t {
  rn_str_t text;
  int32_t count, first;  // |first|: how many other words came before it
  int32_t id;            // in the vocabulary; 0 if it is too rare
} word2vec_word_t;

static int by_count(const void* a, const void* b) {
  const word2vec_word_t *x = *(word2vec_word_t*const*)a, *y = *(word2vec_word_t*const*)b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return x->first < y->first ? -1 : 1;
}

static rn_status_t count_words(skipgram_t* s, rn_arena_t* arena, rn_map_t* words) {
  rn_str_t rest = rn_strbuf_view(&s->text), word;
  while (next_word(&rest, &word)) {
    word2vec_word_t* known = rn_map_get(words, word);
    if (!known) {
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &known));
      known->text = word;
      known->first = (int32_t)words->count;
      RN_RETURN_IF_ERROR(rn_map_put(words, word, known));
    }
    known->count++;
    if (++s->corpus_size == INT32_MAX) return rn_invalid_argument("The text file is too large");
  }
  return RN_OK;
}

// Numbers the frequent words by descending count, from 1.
static rn_status_t make_vocabulary(skipgram_t* s, rn_arena_t* arena, rn_map_t* words) {
  word2vec_word_t** ordered = NULL;
  const rn_map_entry_t* entry = NULL;
  size_t at = 0, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, words->count, &ordered));
  while ((entry = rn_map_next(words, &at))) {
    word2vec_word_t* word = entry->value;
    if (word->count >= s->min_count) ordered[count++] = word;
  }
  qsort(ordered, count, sizeof(word2vec_word_t*), by_count);
  s->vocabulary = (int32_t)count + 1;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, count + 1, &s->words));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, count + 1, &s->counts));
  s->words[0] = RN_STR("UNK");
  s->counts[0] = (int32_t)s->corpus_size;
  for (size_t i = 0; i < count; ++i) {
    ordered[i]->id = (int32_t)i + 1;
    s->words[i + 1] = ordered[i]->text;
    s->counts[i + 1] = ordered[i]->count;
    s->counts[0] -= ordered[i]->count;
  }
  return RN_OK;
}

static rn_status_t read_text(const rn_kernel_init_t* init, skipgram_t* s, rn_arena_t* arena,
                             rn_map_t* words) {
  rn_str_t path, rest, word;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, rn_init_string(init, "filename"), &path));
  RN_RETURN_IF_ERROR(rn_fs_read(init->env, path.data, MOST_BYTES, &s->text));
  RN_RETURN_IF_ERROR(count_words(s, arena, words));
  if (s->corpus_size < s->window * 10)
    return rn_invalid_argument("The text file %s contains too little data: %" PRId64 " words",
                               path.data, s->corpus_size);
  RN_RETURN_IF_ERROR(make_vocabulary(s, arena, words));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, (size_t)s->corpus_size, &s->corpus));
  rest = rn_strbuf_view(&s->text);
  for (int64_t i = 0; next_word(&rest, &word); ++i)
    s->corpus[i] = ((word2vec_word_t*)rn_map_get(words, word))->id;
  return RN_OK;
}

// The probability with which a word is kept.
static float keep_probability(const skipgram_t* s, int32_t word) {
  float scale = s->subsample * (float)s->corpus_size, count = (float)s->counts[word];
  return (sqrtf(count / scale) + 1) * scale / count;
}

static rn_status_t skipgram_init(const rn_kernel_init_t* init, void* state) {
  skipgram_t* s = state;
  s->allocator = init->allocator;
  rn_mutex_init(&s->mutex);
  rn_strbuf_init(&s->text, init->allocator);
  s->batch_size = rn_init_int(init, "batch_size");
  s->window = rn_init_int(init, "window_size");
  s->min_count = rn_init_int(init, "min_count");
  s->subsample = rn_init_float(init, "subsample");
  if (s->batch_size < 0 || s->batch_size > INT32_MAX)
    return rn_invalid_argument("batch_size must not be negative, got %" PRId64, s->batch_size);
  if (s->window < 1 || s->window > INT32_MAX)
    return rn_invalid_argument("window_size must be at least 1, got %" PRId64, s->window);
  rn_arena_t arena;
  rn_map_t words;
  rn_arena_init(&arena, init->allocator);
  rn_map_init(&words, init->allocator);
  rn_status_t status = read_text(init, s, &arena, &words);
  rn_map_clear(&words);
  rn_arena_clear(&arena);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, EXAMPLES, &s->examples));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, SENTENCE, &s->sentence));
  s->numbers = rn_philox_single(rn_philox(0, 0));
  s->at = s->corpus_size;
  s->in_sentence = SENTENCE;
  s->next = EXAMPLES;
  s->epoch = -1;
  return RN_OK;
}

static void skipgram_destroy(void* state) {
  skipgram_t* s = state;
  rn_mutex_destroy(&s->mutex);
  rn_strbuf_clear(&s->text);
  if (s->words) RN_FREE_ARRAY(s->allocator, s->words, s->vocabulary);
  if (s->counts) RN_FREE_ARRAY(s->allocator, s->counts, s->vocabulary);
  if (s->corpus) RN_FREE_ARRAY(s->allocator, s->corpus, s->corpus_size);
  if (s->examples) RN_FREE_ARRAY(s->allocator, s->examples, EXAMPLES);
  if (s->sentence) RN_FREE_ARRAY(s->allocator, s->sentence, SENTENCE);
}

// Drawing examples.

// Words may be so unlikely to be kept that a sentence takes very long, so this looks whether the
// step is over.
static rn_status_t next_sentence(rn_kernel_ctx_t* ctx, skipgram_t* s) {
  int64_t tries = 0;
  for (int i = 0; i < SENTENCE; ++s->at) {
    if (++tries % TRIES_BETWEEN_LOOKS == 0) RN_RETURN_IF_ERROR(rn_step_stopped(ctx->step));
    if (s->at >= s->corpus_size) {
      ++s->epoch;
      s->at = 0;
    }
    int32_t word = s->corpus[s->at];
    if (s->subsample > 0 &&
        rn_word_to_float(rn_philox_word(&s->numbers)) > keep_probability(s, word))
      continue;
    s->sentence[i++] = word;
  }
  return RN_OK;
}

static rn_status_t next_example(rn_kernel_ctx_t* ctx, skipgram_t* s, word2vec_pair_t* out) {
  for (;; ++s->label) {
    if (s->label >= s->label_end) {
      ++s->processed;
      if (++s->in_sentence >= SENTENCE) {
        RN_RETURN_IF_ERROR(next_sentence(ctx, s));
        s->in_sentence = 0;
      }
      int64_t skip = 1 + (int64_t)rn_philox_below(&s->numbers, (uint32_t)s->window);
      int64_t first = s->in_sentence - skip, end = s->in_sentence + skip + 1;
      s->label = first > 0 ? (int32_t)first : 0;
      s->label_end = end < SENTENCE ? (int32_t)end : SENTENCE;
    }
    if (s->in_sentence != s->label) break;
  }
  *out = (word2vec_pair_t){s->sentence[s->in_sentence], s->sentence[s->label++]};
  return RN_OK;
}

static rn_status_t draw_locked(rn_kernel_ctx_t* ctx, skipgram_t* s, int32_t* words,
                               int32_t* labels) {
  // After a batch there are always examples left, as in TensorFlow: the counters show that.
  for (int64_t i = -1; i < s->batch_size; ++i) {
    if (i >= 0) {
      words[i] = s->examples[s->next].word;
      labels[i] = s->examples[s->next++].label;
    }
    if (s->next < EXAMPLES) continue;
    for (int k = 0; k < EXAMPLES; ++k) RN_RETURN_IF_ERROR(next_example(ctx, s, &s->examples[k]));
    s->next = 0;
  }
  return RN_OK;
}

static rn_status_t skipgram(rn_kernel_ctx_t* ctx) {
  skipgram_t* s = ctx->state;
  rn_tensor_t* outs[7];
  int64_t vocabulary = s->vocabulary;
  const rn_shape_t shapes[7] = {{1, &vocabulary},   {1, &vocabulary}, RN_SHAPE_SCALAR,
                                RN_SHAPE_SCALAR,    RN_SHAPE_SCALAR,  {1, &s->batch_size},
                                {1, &s->batch_size}};
  for (int i = 0; i < 7; ++i) RN_RETURN_IF_ERROR(rn_output(ctx, i, shapes[i], &outs[i]));
  for (int32_t i = 0; i < s->vocabulary; ++i) {
    RN_DATA(outs[1], int32_t)[i] = s->counts[i];
    if (!rn_tstring_assign(&RN_DATA(outs[0], rn_tstring_t)[i], s->words[i].data, s->words[i].size))
      return rn_out_of_memory();
  }
  rn_mutex_lock(&s->mutex);
  rn_status_t status = draw_locked(ctx, s, RN_DATA(outs[5], int32_t), RN_DATA(outs[6], int32_t));
  *RN_DATA(outs[2], int64_t) = s->corpus_size;
  *RN_DATA(outs[3], int32_t) = s->epoch;
  *RN_DATA(outs[4], int64_t) = s->processed;
  rn_mutex_unlock(&s->mutex);
  return status;
}

// NegTrain.

typedef struct neg_train_t {
  rn_allocator_t allocator;
  int64_t samples, vocabulary;
  rn_alias_t* aliases;  // Owned
  rn_random_stream_t stream;
} neg_train_t;

static rn_status_t neg_train_init(const rn_kernel_init_t* init, void* state) {
  neg_train_t* s = state;
  s->allocator = init->allocator;
  rn_mutex_init(&s->stream.mutex);
  s->stream.philox = rn_philox_seeded(init->env, 0, 0);
  s->samples = rn_init_int(init, "num_negative_samples");
  const rn_attr_value_t* counts = rn_init_attr(init, "vocab_count");
  if (s->samples > INT32_MAX)
    return rn_invalid_argument("num_negative_samples is too large: %" PRId64, s->samples);
  s->vocabulary = counts->count;
  float* weights = NULL;
  double total = 0;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(s->allocator, (size_t)s->vocabulary, &weights));
  bool is_valid = true;
  for (int64_t i = 0; i < s->vocabulary; ++i) {
    weights[i] = powf((float)counts->list_i[i], 0.75f);
    is_valid = is_valid && weights[i] >= 0;
  }
  rn_status_t status =
      is_valid ? rn_alias_make(s->allocator, weights, s->vocabulary, &total, &s->aliases)
               : rn_invalid_argument("vocab_count must not be negative");
  RN_FREE_ARRAY(s->allocator, weights, s->vocabulary);
  RN_RETURN_IF_ERROR(status);
  return total > 0 || s->samples <= 0 ? RN_OK : rn_invalid_argument("vocab_count has no word");
}

static void neg_train_destroy(void* state) {
  neg_train_t* s = state;
  rn_mutex_destroy(&s->stream.mutex);
  if (s->aliases) RN_FREE_ARRAY(s->allocator, s->aliases, s->vocabulary);
}

// Moves |out| towards |in|, or away from it, by |step|, and adds the same for |in| to |sum|.
static void attract(const float* in, float* out, float* sum, float step, int64_t dims) {
  for (int64_t d = 0; d < dims; ++d) {
    sum[d] += out[d] * step;
    out[d] += in[d] * step;
  }
}

static float dot(const float* a, const float* b, int64_t dims) {
  float sum = 0;
  for (int64_t d = 0; d < dims; ++d) sum += a[d] * b[d];
  return sum;
}

static rn_status_t check_inputs(rn_kernel_ctx_t* ctx, const rn_tensor_t* in,
                                const rn_tensor_t* out) {
  const neg_train_t* s = ctx->state;
  const rn_tensor_t *examples = rn_in(ctx, 2), *labels = rn_in(ctx, 3);
  if (in->rank != 2) return rn_invalid_argument("Must be a matrix");
  if (!rn_shape_eq(rn_tensor_shape(in), rn_tensor_shape(out)))
    return rn_invalid_argument("w_in.shape == w_out.shape");
  if (examples->rank != 1) return rn_invalid_argument("Must be a vector");
  if (!rn_shape_eq(rn_tensor_shape(examples), rn_tensor_shape(labels)))
    return rn_invalid_argument("examples.shape == labels.shape");
  if (rn_in(ctx, 4)->rank != 0) return rn_invalid_argument("Must be a scalar");
  int64_t words = rn_tensor_dim(in, 0);
  if (words != s->vocabulary)
    return rn_invalid_argument("vocab_size mismatches: %" PRId64 " vs. %" PRId64, words,
                               s->vocabulary);
  for (int64_t i = 0; i < examples->count; ++i)
    for (int k = 2; k < 4; ++k) {
      int64_t word = rn_int_at(rn_in(ctx, k), i);
      if (word < 0 || word >= words)
        return rn_invalid_argument("%s[%" PRId64 "] = %" PRId64 " is not in [0, %" PRId64 ")",
                                   k == 2 ? "examples" : "labels", i, word, words);
    }
  return RN_OK;
}

static rn_status_t train_locked(rn_kernel_ctx_t* ctx, rn_variable_t* const* variables) {
  neg_train_t* s = ctx->state;
  for (int i = 0; i < 2; ++i)
    RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, i, variables[i]));
  rn_tensor_t *w_in = &variables[0]->value, *w_out = &variables[1]->value, sums = {0};
  RN_RETURN_IF_ERROR(check_inputs(ctx, w_in, w_out));
  const int32_t *examples = RN_DATA(rn_in(ctx, 2), int32_t),
                *labels = RN_DATA(rn_in(ctx, 3), int32_t);
  int64_t count = rn_in(ctx, 2)->count, dims = rn_tensor_dim(w_in, 1);
  float rate = *RN_DATA(rn_in(ctx, 4), float);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &dims}, &sums));
  uint64_t samples = s->samples > 0 ? (uint64_t)s->samples : 0;
  rn_philox_single_t words = rn_philox_single(
      rn_random_stream_reserve(&s->stream, (uint64_t)count * samples * WORDS_PER_SAMPLE / 4));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < count && rn_ok(status); ++i) {
    float *in = RN_DATA(w_in, float) + examples[i] * dims, *sum = RN_DATA(&sums, float);
    float* out = RN_DATA(w_out, float) + labels[i] * dims;
    memset(sum, 0, (size_t)dims * sizeof *sum);
    attract(in, out, sum, 1 / (expf(dot(in, out, dims)) + 1) * rate, dims);
    for (uint64_t j = 0; j < samples; ++j) {
      int64_t sample = rn_alias_draw(s->aliases, s->vocabulary, &words);
      if (sample == labels[i]) continue;
      float* other = RN_DATA(w_out, float) + sample * dims;
      attract(in, other, sum, -1 / (expf(-dot(in, other, dims)) + 1) * rate, dims);
    }
    for (int64_t d = 0; d < dims; ++d) in[d] += sum[d];
    if (i % 1024 == 1023) status = rn_step_stopped(ctx->step);
  }
  rn_tensor_clear(&sums);
  return status;
}

static rn_status_t neg_train(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variables[2];
  for (int i = 0; i < 2; ++i) RN_RETURN_IF_ERROR(rn_variable_of(ctx, i, &variables[i]));
  rn_variable_t* locked[2] = {variables[0], variables[1]};
  int count = rn_apply_lock(locked, 2);
  rn_status_t status = train_locked(ctx, variables);
  rn_apply_unlock(locked, count);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "Skipgram",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(skipgram_t),
     .init = skipgram_init,
     .destroy = skipgram_destroy,
     .compute = skipgram},
    {.op = "NegTrain",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(neg_train_t),
     .init = neg_train_init,
     .destroy = neg_train_destroy,
     .compute = neg_train},
};
RN_KERNEL_FAMILY(cpu_word2vec, rows);
