// Bincount in all its forms, and HistogramFixedWidth.
#include "kernels/cpu/math/counts.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"

// Adds weight |w| (one if NULL) to bin |bin|, or sets it to one.
static inline void count_one(rn_tensor_t* bins, int64_t bin, const rn_tensor_t* weights, int64_t w,
                             bool is_binary) {
  switch (bins->dtype) {
#define CASE(type, T, U)                                                                 \
  case RN_##type: {                                                                      \
    T* at = RN_DATA(bins, T) + bin;                                                      \
    *at = is_binary ? 1 : (T)((U)*at + (weights ? (U)RN_DATA(weights, const T)[w] : 1)); \
    break;                                                                               \
  }
    CASE(INT32, int32_t, uint32_t)
    CASE(INT64, int64_t, uint64_t)
    CASE(FLOAT, float, float)
    CASE(DOUBLE, double, double)
#undef CASE
    default:
      break;
  }
}

static bool has_negative(const rn_tensor_t* input) {
  int64_t all = 0;  // the sign of what all bits together say
  if (input->dtype == RN_INT32)
    for (int64_t i = 0; i < input->count; ++i) all |= RN_DATA(input, const int32_t)[i];
  else
    for (int64_t i = 0; i < input->count; ++i) all |= rn_int_at(input, i);
  return all < 0;
}

// Counts n values below |size| into |sums|, without weights. Neighbours of the same value wait for
// each other's sum, unless they are counted side by side. Returns false if a value is negative.
enum { SIDES = 4, FEW = 1024 };
#define COUNT_FEW(T, U)                                                                          \
  static bool count_few_##T(const void* data, int64_t n, int64_t size, int32_t* sums) {          \
    int32_t sides[SIDES][FEW + 1] = {{0}}; /* the last one is for what is too large */           \
    const T *values = data, limit = (T)size;                                                     \
    T signs = 0;                                                                                 \
    int64_t i = 0;                                                                               \
    for (; i + SIDES <= n; i += SIDES) _Pragma("GCC unroll 4") for (int s = 0; s < SIDES; ++s) { \
        const T value = values[i + s];                                                           \
        signs |= value;                                                                          \
        ++sides[s][(U)value < (U)limit ? value : limit];                                         \
      }                                                                                          \
    for (; i < n; ++i) {                                                                         \
      signs |= values[i];                                                                        \
      ++sides[0][(U)values[i] < (U)limit ? values[i] : limit];                                   \
    }                                                                                            \
    for (int64_t b = 0; b < size; ++b)                                                           \
      sums[b] = sides[0][b] + sides[1][b] + sides[2][b] + sides[3][b];                           \
    return signs >= 0;                                                                           \
  }
COUNT_FEW(int32_t, uint32_t)
COUNT_FEW(int64_t, uint64_t)

// Writes counts to bins, from bin |first| on. A float that counts one by one stops at 2^24, as in
// stock.
static void write_counts(const int32_t* sums, int64_t size, rn_tensor_t* bins, int64_t first) {
  switch (bins->dtype) {
#define CASE(type, T, COUNT)                                                     \
  case RN_##type:                                                                \
    for (int64_t b = 0; b < size; ++b) RN_DATA(bins, T)[first + b] = (T)(COUNT); \
    break;
    CASE(INT32, int32_t, sums[b])
    CASE(INT64, int64_t, sums[b])
    CASE(FLOAT, float, sums[b] < 1 << 24 ? sums[b] : 1 << 24)
    CASE(DOUBLE, double, sums[b])
#undef CASE
    default:
      break;
  }
}

// Counts each of |rows| rows of |input| into a row of |size| bins.
static rn_status_t count_rows(const rn_tensor_t* input, int64_t rows, int64_t size,
                              const rn_tensor_t* weights, bool is_binary, rn_tensor_t* out) {
  const rn_tensor_t* given = weights->count ? weights : NULL;
  const int64_t columns = rows ? input->count / rows : 0;
  const char* values = input->data;
  if (!given && size <= FEW && columns >= size && columns <= INT32_MAX) {
    int32_t sums[FEW];
    bool is_ok = true;
    for (int64_t r = 0; r < rows; ++r) {
      const void* row = values + (size_t)(r * columns) * rn_dtype_size(input->dtype);
      is_ok &= (input->dtype == RN_INT32 ? count_few_int32_t : count_few_int64_t)(row, columns,
                                                                                  size, sums);
      for (int64_t b = 0; b < size && is_binary; ++b) sums[b] = sums[b] > 0;
      write_counts(sums, size, out, r * size);
    }
    return is_ok ? RN_OK : rn_invalid_argument("Input arr must be non-negative!");
  }
  if (has_negative(input)) return rn_invalid_argument("Input arr must be non-negative!");
  if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
  if (input->dtype == RN_INT32 && out->dtype == RN_FLOAT && given &&
      !is_binary) {  // the usual types
    for (int64_t r = 0; r < rows; ++r) {
      float* bins = RN_DATA(out, float) + r * size;
      for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
        const int32_t value = RN_DATA(input, const int32_t)[i];
        if (value < size) bins[value] += RN_DATA(given, const float)[i];
      }
    }
    return RN_OK;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = r * columns; i < (r + 1) * columns; ++i) {
      int64_t value = rn_int_at(input, i);
      if (value < size) count_one(out, r * size + value, given, i, is_binary);
    }
  return RN_OK;
}

static rn_status_t bincount(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *weights = rn_in(ctx, 2);
  int64_t size;
  RN_RETURN_IF_ERROR(rn_bincount_size(rn_in(ctx, 1), &size));
  RN_RETURN_IF_ERROR(rn_bincount_check(input, weights));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &size}, &out));
  return count_rows(input, 1, size, weights, false, out);
}

static rn_status_t dense_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "binary_output");
  return RN_OK;
}

static rn_status_t dense_bincount(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *input = rn_in(ctx, 0), *weights = rn_in(ctx, 2);
  int64_t size;
  RN_RETURN_IF_ERROR(rn_dense_bincount_check(input, rn_in(ctx, 1), weights, &size));
  const bool has_rows = input->rank == 2;
  const int64_t rows = has_rows ? rn_tensor_dim(input, 0) : 1, dims[2] = {rows, size};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, has_rows ? (rn_shape_t){2, dims} : (rn_shape_t){1, &size}, &out));
  return count_rows(input, rows, size, weights, *(const bool*)ctx->state, out);
}

static rn_status_t check_splits(const rn_tensor_t* splits, int64_t count) {
  const int64_t* at = RN_DATA(splits, const int64_t);
  if (splits->count == 0) return rn_invalid_argument("Splits must be non-empty");
  if (at[0] != 0)
    return rn_invalid_argument("Splits must start with 0, not with %lld", (long long)at[0]);
  if (at[splits->count - 1] != count)
    return rn_invalid_argument(
        "Splits must end with the number of values, got %lld instead of %lld",
        (long long)at[splits->count - 1], (long long)count);
  return RN_OK;
}

static rn_status_t ragged_bincount(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *splits = rn_in(ctx, 0), *values = rn_in(ctx, 1), *weights = rn_in(ctx, 3);
  int64_t size, row = -1;
  RN_RETURN_IF_ERROR(rn_bincount_size(rn_in(ctx, 2), &size));
  RN_RETURN_IF_ERROR(check_splits(splits, values->count));
  RN_RETURN_IF_ERROR(rn_bincount_check(values, weights));
  const int64_t dims[2] = {splits->count - 1, size};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &out));
  if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
  for (int64_t i = 0; i < values->count; ++i) {
    // The last split is the number of values, so this ends.
    while (i >= RN_DATA(splits, const int64_t)[row + 1]) ++row;
    int64_t value = rn_int_at(values, i);
    if (value < 0) return rn_invalid_argument("Input must be non-negative");
    if (value < size)
      count_one(out, row * size + value, weights->count ? weights : NULL, i,
                *(const bool*)ctx->state);
  }
  return RN_OK;
}

static rn_status_t check_sparse(const rn_tensor_t* indices, const rn_tensor_t* values,
                                const rn_tensor_t* shape) {
  if (indices->rank != 2)
    return rn_invalid_argument("Sparse indices must be rank 2 but is rank %d", indices->rank);
  if (values->rank != 1)
    return rn_invalid_argument("Sparse values must be rank 1 but is rank %d", values->rank);
  if (shape->rank != 1)
    return rn_invalid_argument("Sparse dense_shape must be rank 1 but is rank %d", shape->rank);
  const int64_t count = rn_tensor_dim(indices, 0), rank = rn_tensor_dim(indices, 1);
  if (count != values->count)
    return rn_invalid_argument(
        "Number of elements in indices (%lld) and values (%lld) do not match", (long long)count,
        (long long)values->count);
  if (rank != shape->count)
    return rn_invalid_argument("Index rank (%lld) and shape rank (%lld) do not match",
                               (long long)rank, (long long)shape->count);
  return RN_OK;
}

static rn_status_t check_index(const int64_t* index, int64_t i, const int64_t* dims, int64_t rank) {
  bool is_inside = true;
  for (int64_t d = 0; d < rank; ++d) is_inside &= index[d] >= 0 && index[d] < dims[d];
  if (is_inside) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  for (int64_t d = 0; d < rank; ++d)
    rn_strbuf_printf(&text, d ? ", %lld" : "%lld", (long long)index[d]);
  rn_status_t status =
      rn_invalid_argument("Sparse index tuple indices[%lld, :] = [%.*s] is out of bounds",
                          (long long)i, RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t sparse_bincount(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *indices = rn_in(ctx, 0), *values = rn_in(ctx, 1), *shape = rn_in(ctx, 2);
  const rn_tensor_t* weights = rn_in(ctx, 4);
  int64_t size;
  RN_RETURN_IF_ERROR(rn_bincount_size(rn_in(ctx, 3), &size));
  RN_RETURN_IF_ERROR(check_sparse(indices, values, shape));
  RN_RETURN_IF_ERROR(rn_bincount_check(values, weights));
  const int64_t rank = shape->count, *dims = RN_DATA(shape, const int64_t);
  const bool has_rows = rank != 1;
  for (int64_t i = 0; i < values->count; ++i)
    RN_RETURN_IF_ERROR(check_index(RN_DATA(indices, const int64_t) + i * rank, i, dims, rank));
  const int64_t out_dims[2] = {rank ? dims[0] : 0, size};
  if (out_dims[0] < 0)
    return rn_invalid_argument("dense_shape (%lld) must be non-negative", (long long)out_dims[0]);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, has_rows ? (rn_shape_t){2, out_dims} : (rn_shape_t){1, &size}, &out));
  if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
  for (int64_t i = 0; i < values->count; ++i) {
    int64_t value = rn_int_at(values, i);
    int64_t row = has_rows ? RN_DATA(indices, const int64_t)[i * rank] : 0;
    if (value < 0 && !has_rows) return rn_invalid_argument("Input arr must be non-negative!");
    if (value >= 0 && value < size)
      count_one(out, row * size + value, weights->count ? weights : NULL, i,
                *(const bool*)ctx->state);
  }
  return RN_OK;
}

static rn_status_t has_nan(void) {
  return rn_invalid_argument("Histogram values must not contain NaN");
}

static rn_status_t count_places(const float* values, int64_t n, double low, double step,
                                int32_t bins, int32_t* out) {
  enum { BLOCK = 512 };
  int32_t places[BLOCK];
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
    if (!rn_spans()->to_bins(values + begin, low, step, bins, places, count)) return has_nan();
    for (int64_t i = 0; i < count; ++i) ++out[places[i]];
  }
  return RN_OK;
}

static rn_status_t histogram(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *values = rn_in(ctx, 0), *range = rn_in(ctx, 1), *number = rn_in(ctx, 2);
  double low, step;
  int64_t bins;
  RN_RETURN_IF_ERROR(rn_histogram_check(range, number, &low, &step, &bins));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &bins}, &out));
  memset(out->data, 0, rn_tensor_bytes(out));
  if (values->dtype == RN_FLOAT && out->dtype == RN_INT32)
    return count_places(RN_DATA(values, const float), values->count, low, step, (int32_t)bins,
                        RN_DATA(out, int32_t));
  for (int64_t i = 0; i < values->count; ++i) {
    const double place = (rn_number_at(values, i) - low) / step;
    if (place != place) return has_nan();
    const int64_t bin = place < 0 ? 0 : place >= (double)bins ? bins - 1 : (int64_t)place;
    rn_int_set(out, bin, rn_int_at(out, bin) + 1);
  }
  return RN_OK;
}

#define TYPES (RN_TYPES_INDEX | RN_T(FLOAT) | RN_T(DOUBLE))

static const rn_kernel_def_t rows[] = {
    {.op = "Bincount", .device = "CPU", .types = {{"T", TYPES}}, .compute = bincount},
    {.op = "DenseBincount",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .state_size = sizeof(bool),
     .init = dense_init,
     .compute = dense_bincount},
    {.op = "RaggedBincount",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .state_size = sizeof(bool),
     .init = dense_init,
     .compute = ragged_bincount},
    {.op = "SparseBincount",
     .device = "CPU",
     .types = {{"T", TYPES}},
     .state_size = sizeof(bool),
     .init = dense_init,
     .compute = sparse_bincount},
    {.op = "HistogramFixedWidth", .device = "CPU", .types = {{"T", TYPES}}, .compute = histogram},
};
RN_KERNEL_FAMILY(cpu_bincount, rows);
