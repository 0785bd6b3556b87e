// StringNGrams and UnsortedSegmentJoin.
#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// String attributes, copied one after the other.
typedef struct groups_texts_t {
  rn_allocator_t allocator;
  char* bytes;  // Owned
  size_t size;
} groups_texts_t;

static rn_status_t keep_texts(const rn_kernel_init_t* init, groups_texts_t* texts,
                              const char* const* names, int count, rn_str_t* out) {
  texts->allocator = init->allocator;
  texts->size = 1;
  for (int i = 0; i < count; ++i) texts->size += rn_init_string(init, names[i]).size;
  RN_RETURN_IF_ERROR(rn_alloc(init->allocator, texts->size, (void**)&texts->bytes));
  char* to = texts->bytes;
  for (int i = 0; i < count; ++i) {
    rn_str_t text = rn_init_string(init, names[i]);
    if (text.size) memcpy(to, text.data, text.size);
    out[i] = rn_str_n(to, text.size);
    to += text.size;
  }
  return RN_OK;
}

static void drop_texts(groups_texts_t* texts) {
  if (texts->bytes) rn_free(texts->allocator, texts->bytes, texts->size);
}

// N-grams.

enum { SEPARATOR, LEFT, RIGHT, TEXTS };

typedef struct ngrams_t {
  groups_texts_t kept;
  rn_str_t texts[TEXTS];
  int64_t* widths;  // Owned
  int32_t width_count;
  int64_t padding;  // < 0 for as much as a width needs
  bool keeps_short;
} ngrams_t;

static rn_status_t ngrams_init(const rn_kernel_init_t* init, void* state) {
  static const char* const names[TEXTS] = {"separator", "left_pad", "right_pad"};
  ngrams_t* ngrams = state;
  const rn_attr_value_t* widths = rn_init_attr(init, "ngram_widths");
  RN_RETURN_IF_ERROR(keep_texts(init, &ngrams->kept, names, TEXTS, ngrams->texts));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(init->allocator, (size_t)widths->count + 1, &ngrams->widths));
  ngrams->width_count = (int32_t)widths->count;
  for (int32_t i = 0; i < ngrams->width_count; ++i) ngrams->widths[i] = widths->list_i[i];
  ngrams->padding = rn_init_int(init, "pad_width");
  ngrams->keeps_short = rn_init_bool(init, "preserve_short_sequences");
  return RN_OK;
}

static void ngrams_destroy(void* state) {
  ngrams_t* ngrams = state;
  if (ngrams->widths)
    RN_FREE_ARRAY(ngrams->kept.allocator, ngrams->widths, (size_t)ngrams->width_count + 1);
  drop_texts(&ngrams->kept);
}

static int64_t padding_for(const ngrams_t* ngrams, int64_t width) {
  return ngrams->padding < 0 || ngrams->padding > width - 1 ? width - 1 : ngrams->padding;
}

// The number of n-grams of |length| words. False if there are more than 2^31 - 1 words with
// padding.
static bool count_of(const ngrams_t* ngrams, int64_t length, int64_t width, int64_t* out) {
  int64_t padded = 0;
  if (!rn_mul_i64_ok(2, padding_for(ngrams, width), &padded) ||
      !rn_add_i64_ok(padded, length, &padded) || padded > INT32_MAX)
    return false;
  *out = padded - width + 1 > 0 ? padded - width + 1 : 0;
  return true;
}

// The width of the only n-gram of a run too short for any other: all of it, with padding.
static int64_t whole_width(const ngrams_t* ngrams, int64_t length) {
  return length + 2 * (ngrams->padding > 0 ? ngrams->padding : 0);
}

static rn_status_t count_row(const ngrams_t* ngrams, int64_t length, int64_t* inout_total) {
  int64_t before = *inout_total;
  for (int32_t w = 0; w < ngrams->width_count; ++w) {
    int64_t count = 0;
    if (!count_of(ngrams, length, ngrams->widths[w], &count) ||
        !rn_add_i64_ok(*inout_total, count, inout_total))
      return rn_invalid_argument("Pad width could lead to integer overflow, got pad_width = %lld",
                                 (long long)padding_for(ngrams, ngrams->widths[w]));
  }
  if (!ngrams->keeps_short || *inout_total != before || length == 0) return RN_OK;
  ++*inout_total;
  // Longer padding is possible only if there are no widths at all.
  return ngrams->padding > INT32_MAX
             ? rn_invalid_argument("Pad width is too large: %lld", (long long)ngrams->padding)
             : RN_OK;
}

typedef struct groups_run_t {
  const rn_tensor_t* data;
  int64_t begin, length;
} groups_run_t;

// Writes n-gram |k| of |count|, |width| words wide, with |padding| on each side of the run.
static void join(const ngrams_t* ngrams, groups_run_t run, int64_t k, int64_t count, int64_t width,
                 int64_t padding, rn_strbuf_t* buf) {
  int64_t left = padding > k ? padding - k : 0;
  int64_t right = padding > count - k - 1 ? padding - (count - k - 1) : 0;
  int64_t first = left > 0 ? 0 : k - padding, words = width - left - right;
  buf->size = 0;
  for (int64_t i = 0; i < width && !buf->failed; ++i) {
    if (i) rn_strbuf_append(buf, ngrams->texts[SEPARATOR]);
    rn_strbuf_append(buf, i < left           ? ngrams->texts[LEFT]
                          : i < left + words ? rn_text_at(run.data, run.begin + first + i - left)
                                             : ngrams->texts[RIGHT]);
  }
}

static rn_status_t write_text(rn_tensor_t* out, int64_t i, rn_strbuf_t* buf) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  rn_str_t text = rn_strbuf_view(buf);
  bool done = rn_tstring_assign(&RN_DATA(out, rn_tstring_t)[i], text.data, text.size);
  return done ? RN_OK : rn_out_of_memory();
}

static rn_status_t write_row(const ngrams_t* ngrams, groups_run_t run, rn_tensor_t* out,
                             int64_t* inout_at, rn_strbuf_t* buf) {
  int64_t before = *inout_at;
  for (int32_t w = 0; w < ngrams->width_count; ++w) {
    int64_t width = ngrams->widths[w], count = 0;
    (void)count_of(ngrams, run.length, width, &count);  // was checked before
    for (int64_t k = 0; k < count; ++k) {
      join(ngrams, run, k, count, width, padding_for(ngrams, width), buf);
      RN_RETURN_IF_ERROR(write_text(out, (*inout_at)++, buf));
    }
  }
  if (!ngrams->keeps_short || *inout_at != before || run.length == 0) return RN_OK;
  join(ngrams, run, 0, 1, whole_width(ngrams, run.length),
       ngrams->padding > 0 ? ngrams->padding : 0, buf);
  return write_text(out, (*inout_at)++, buf);
}

static rn_status_t check_splits(const rn_tensor_t* data, const rn_tensor_t* splits) {
  int64_t before = 0;
  for (int64_t i = 0; i < splits->count; ++i) {
    int64_t split = rn_int_at(splits, i);
    if (i == 0 && split != 0)
      return rn_invalid_argument("First split value must be 0, got %lld", (long long)split);
    if (split < before || split > data->count)
      return rn_invalid_argument("Invalid split value %lld, must be in [%lld, %lld]",
                                 (long long)split, (long long)before, (long long)data->count);
    before = split;
  }
  if (splits->count && before != data->count)
    return rn_invalid_argument("Last split value must be data size. Expected %lld, got %lld",
                               (long long)data->count, (long long)before);
  return RN_OK;
}

static rn_status_t string_ngrams(rn_kernel_ctx_t* ctx) {
  const ngrams_t* ngrams = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *splits = rn_in(ctx, 1);
  rn_tensor_t *out = NULL, *out_splits = NULL;
  int64_t total = 0, at = 0;
  rn_strbuf_t buf;
  for (int32_t w = 0; w < ngrams->width_count; ++w)
    if (ngrams->widths[w] <= 0)
      return rn_invalid_argument("ngram_widths must contain positive values");
  RN_RETURN_IF_ERROR(check_splits(data, splits));
  if (ngrams->keeps_short && ngrams->width_count == 0 && ngrams->padding < 0)
    return rn_invalid_argument(
        "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not "
        "provided, got %lld",
        (long long)ngrams->padding);
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(splits), &out_splits));
  if (splits->count < 1 || data->count < 1) {  // no output, not even padding
    for (int64_t i = 0; i < splits->count; ++i) rn_int_set(out_splits, i, 0);
    return rn_output(ctx, 0, rn_tensor_shape(data), &out);
  }
  rn_int_set(out_splits, 0, 0);
  for (int64_t i = 0; i + 1 < splits->count; ++i) {
    RN_RETURN_IF_ERROR(count_row(ngrams, rn_int_at(splits, i + 1) - rn_int_at(splits, i), &total));
    if (splits->dtype == RN_INT32 && total > INT32_MAX)
      return rn_invalid_argument("There are too many n-grams for splits of type int32");
    rn_int_set(out_splits, i + 1, total);
  }
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &total}, &out));
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i + 1 < splits->count && rn_ok(status); ++i) {
    int64_t begin = rn_int_at(splits, i);
    groups_run_t run = {data, begin, rn_int_at(splits, i + 1) - begin};
    status = write_row(ngrams, run, out, &at, &buf);
  }
  rn_strbuf_clear(&buf);
  return status;
}

// Unsorted segments.

typedef struct segments_t {
  groups_texts_t kept;
  rn_str_t separator;
} segments_t;

static rn_status_t segments_init(const rn_kernel_init_t* init, void* state) {
  static const char* const names[] = {"separator"};
  segments_t* segments = state;
  return keep_texts(init, &segments->kept, names, 1, &segments->separator);
}

static void segments_destroy(void* state) { drop_texts(&((segments_t*)state)->kept); }

static rn_status_t check_segments(const rn_tensor_t* input, const rn_tensor_t* ids,
                                  const rn_tensor_t* count) {
  if (count->rank != 0) return rn_invalid_argument("Number of segments must be a scalar");
  int64_t segments = rn_int_at(count, 0);
  if (segments < 0)
    return rn_invalid_argument("Number of segments must be non-negative but got %lld",
                               (long long)segments);
  if (ids->rank == 0) return rn_invalid_argument("Segment_id cannot have rank 0");
  if (ids->rank > input->rank)
    return rn_invalid_argument("Segment_id rank %d exceeds input rank %d", ids->rank, input->rank);
  for (int d = 0; d < ids->rank; ++d)
    if (rn_tensor_dim(ids, d) != rn_tensor_dim(input, d))
      return rn_invalid_argument("Segment dimension is %lld while input dimension is %d in rank %d",
                                 (long long)rn_tensor_dim(ids, d), input->rank, d);
  for (int64_t i = 0; i < ids->count; ++i)
    if (rn_int_at(ids, i) < 0 || rn_int_at(ids, i) >= segments)
      return rn_invalid_argument(
          "segment_ids are not allowed to exceed num_segments or to have negative values.");
  return RN_OK;
}

// Sets |sizes| to the bytes of each output. As in stock, a separator precedes a string only if the
// output is not empty: leading empty strings leave no separators.
static rn_status_t measure(const rn_tensor_t* input, const rn_tensor_t* ids, int64_t inner,
                           size_t separator, size_t* sizes) {
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = rn_int_at(ids, i);
    for (int64_t k = 0; k < inner; ++k) {
      size_t* size = &sizes[id * inner + k];
      if (!rn_add_ok(*size, *size ? separator : 0, size) ||
          !rn_add_ok(*size, rn_text_at(input, i * inner + k).size, size))
        return rn_out_of_memory();
    }
  }
  return RN_OK;
}

static void put(char* bytes, size_t* inout_at, rn_str_t text) {
  if (text.size) memcpy(bytes + *inout_at, text.data, text.size);
  *inout_at += text.size;
}

static rn_status_t join_segments(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  rn_str_t separator = ((const segments_t*)ctx->state)->separator;
  const rn_tensor_t *input = rn_in(ctx, 0), *ids = rn_in(ctx, 1);
  int64_t dims[RN_MAX_RANK], count = rn_int_at(rn_in(ctx, 2), 0);
  int rank = 0;
  rn_tensor_t* out = NULL;
  size_t* sizes = NULL;
  dims[rank++] = count;
  for (int d = ids->rank; d < input->rank; ++d) dims[rank++] = rn_tensor_dim(input, d);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){(int16_t)rank, dims}, &out));
  int64_t inner = count ? out->count / count : 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)out->count + 1, &sizes));
  RN_RETURN_IF_ERROR(measure(input, ids, inner, separator.size, sizes));
  rn_tstring_t* strings = RN_DATA(out, rn_tstring_t);
  for (int64_t i = 0; i < out->count; ++i) {
    if (!rn_tstring_resize(&strings[i], sizes[i])) return rn_out_of_memory();
    sizes[i] = 0;
  }
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = rn_int_at(ids, i);
    for (int64_t k = 0; k < inner; ++k) {
      int64_t to = id * inner + k;
      char* bytes = (char*)rn_tstring_view(&strings[to]).data;
      if (sizes[to]) put(bytes, &sizes[to], separator);
      put(bytes, &sizes[to], rn_text_at(input, i * inner + k));
    }
  }
  return RN_OK;
}

static rn_status_t unsorted_segment_join(rn_kernel_ctx_t* ctx) {
  rn_arena_t arena;
  RN_RETURN_IF_ERROR(check_segments(rn_in(ctx, 0), rn_in(ctx, 1), rn_in(ctx, 2)));
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = join_segments(ctx, &arena);
  rn_arena_clear(&arena);
  return status;
}

static const rn_kernel_def_t rows[] = {
    {.op = "StringNGrams",
     .device = "CPU",
     .state_size = sizeof(ngrams_t),
     .init = ngrams_init,
     .destroy = ngrams_destroy,
     .compute = string_ngrams},
    {.op = "UnsortedSegmentJoin",
     .device = "CPU",
     .state_size = sizeof(segments_t),
     .init = segments_init,
     .destroy = segments_destroy,
     .compute = unsorted_segment_join},
};
RN_KERNEL_FAMILY(cpu_string_groups, rows);
