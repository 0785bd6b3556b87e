// LowerBound, UpperBound (search in sorted rows) and NthElement (selects).
#include <inttypes.h>
#include <stdlib.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Searches per piece of work, at about 50 ns each.
#define PIECE_SEARCHES 2048

// X(enumerator, C type): types that are compared directly; 16-bit floats are converted to float
// first.
#define TYPES(X)      \
  X(INT8, int8_t)     \
  X(INT16, int16_t)   \
  X(INT32, int32_t)   \
  X(INT64, int64_t)   \
  X(UINT8, uint8_t)   \
  X(UINT16, uint16_t) \
  X(UINT32, uint32_t) \
  X(UINT64, uint64_t) \
  X(FLOAT, float)     \
  X(DOUBLE, double)

typedef struct ordering_job_t {
  rn_dtype_t dtype;
  bool is_upper;
  const void *sorted, *values;
  int64_t length, width;  // row length of |sorted| and of |values|
  rn_tensor_t* out;
} ordering_job_t;

// Where |value| belongs in a row, without branches: IS_BEFORE tells whether |x| comes before it.
#define PLACE_IN(T, row, length, IS_BEFORE, out)   \
  do {                                             \
    int64_t low = 0;                               \
    for (int64_t left = length; left > 0;) {       \
      const int64_t half = left / 2;               \
      const T x = (row)[low + half];               \
      const bool is_before = IS_BEFORE;            \
      low += is_before * (half + 1);               \
      left = half - (is_before & (left % 2 == 0)); \
    }                                              \
    out = low;                                     \
  } while (0)

#define SEARCH(N, T)                                                       \
  case RN_##N:                                                             \
    for (int64_t i = begin; i < end; ++i) {                                \
      const T* row = (const T*)job->sorted + i / job->width * job->length; \
      const T value = ((const T*)job->values)[i];                          \
      int64_t place;                                                       \
      if (job->is_upper)                                                   \
        PLACE_IN(T, row, job->length, !(value < x), place);                \
      else                                                                 \
        PLACE_IN(T, row, job->length, x < value, place);                   \
      rn_int_set(job->out, i, place);                                      \
    }                                                                      \
    break;

static void search_piece(void* arg, int64_t begin, int64_t end) {
  const ordering_job_t* job = arg;
  switch (job->dtype) {
    TYPES(SEARCH)
    default:
      break;
  }
}

// |tensor|'s elements in one of TYPES; the caller clears |temp|.
static rn_status_t comparable(rn_kernel_ctx_t* ctx, const rn_tensor_t* tensor, rn_tensor_t* temp,
                              rn_dtype_t* out_dtype, const void** out_data) {
  const rn_vector_table_t* table = rn_vector_table();
  *out_dtype = tensor->dtype;
  *out_data = tensor->data;
  if (tensor->dtype != RN_HALF && tensor->dtype != RN_BFLOAT16) return RN_OK;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &tensor->count}, temp));
  (tensor->dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(tensor->data, temp->data,
                                                                         tensor->count);
  *out_dtype = RN_FLOAT;
  *out_data = temp->data;
  return RN_OK;
}

rn_status_t rn_bound_begin(rn_kernel_ctx_t* ctx, rn_tensor_t** out) {
  const rn_tensor_t *sorted = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  if (sorted->rank != 2) return rn_invalid_argument("sorted input argument must be a matrix");
  if (values->rank != 2) return rn_invalid_argument("values must be a matrix");
  if (rn_tensor_dim(sorted, 0) != rn_tensor_dim(values, 0))
    return rn_invalid_argument("Leading dim_size of both tensors must match.");
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(values), out));
  if (values->count > 0 && (*out)->dtype == RN_INT32 && rn_tensor_dim(sorted, 1) > INT32_MAX)
    return rn_invalid_argument("trim(sorted_inputs) is too large for int32 output");
  return RN_OK;
}

static rn_status_t bound(rn_kernel_ctx_t* ctx, bool is_upper) {
  const rn_tensor_t *sorted = rn_in(ctx, 0), *values = rn_in(ctx, 1);
  ordering_job_t job = {.is_upper = is_upper};
  RN_RETURN_IF_ERROR(rn_bound_begin(ctx, &job.out));
  if (values->count == 0) return RN_OK;
  job.length = rn_tensor_dim(sorted, 1);
  job.width = rn_tensor_dim(values, 1);
  rn_tensor_t temps[2] = {{0}};
  rn_status_t status = comparable(ctx, sorted, &temps[0], &job.dtype, &job.sorted);
  if (rn_ok(status)) status = comparable(ctx, values, &temps[1], &job.dtype, &job.values);
  if (rn_ok(status))
    rn_pool_for(rn_ctx_pool(ctx), values->count, PIECE_SEARCHES, search_piece, &job);
  rn_tensor_clear(&temps[0]);
  rn_tensor_clear(&temps[1]);
  return status;
}

static rn_status_t lower_compute(rn_kernel_ctx_t* ctx) { return bound(ctx, false); }
static rn_status_t upper_compute(rn_kernel_ctx_t* ctx) { return bound(ctx, true); }

// NthElement divides a copy of each row until element n is in its place.
typedef struct nth_t {
  bool is_reverse;
} nth_t;

static rn_status_t nth_init(const rn_kernel_init_t* init, void* state) {
  ((nth_t*)state)->is_reverse = rn_init_bool(init, "reverse");
  return RN_OK;
}

enum { MOST_ROUNDS = 64, SHORT = 8 };

// Selection with the middle of three as the pivot; after too many rounds (of a row that was made
// for it) what is left is sorted, as is what is short. Whether an element is less decides where it
// goes, not a branch, which would be mispredicted half of the time.
#define SELECT(N, T)                                                                      \
  static int compare_##N(const void* a, const void* b) {                                  \
    T x = *(const T*)a, y = *(const T*)b;                                                 \
    return (x > y) - (x < y);                                                             \
  }                                                                                       \
  /* Moves the elements of [low, high) that are less than the pivot, or not greater, to   \
     the front, and returns the end of them. */                                           \
  static inline int64_t divide_##N(T* x, int64_t low, int64_t high, T pivot, bool less) { \
    for (int64_t j = low; j < high; ++j) {                                                \
      const T moved = x[j];                                                               \
      x[j] = x[low];                                                                      \
      x[low] = moved;                                                                     \
      low += less ? moved < pivot : !(pivot < moved);                                     \
    }                                                                                     \
    return low;                                                                           \
  }                                                                                       \
  static void select_##N(void* row, int64_t count, int64_t n) {                           \
    T* x = row;                                                                           \
    int64_t low = 0, high = count;                                                        \
    for (int round = 0; high - low > SHORT; ++round) {                                    \
      if (round == MOST_ROUNDS) {                                                         \
        qsort(x + low, (size_t)(high - low), sizeof(T), compare_##N);                     \
        return;                                                                           \
      }                                                                                   \
      const int64_t last = high - 1, middle = low + (high - low) / 2;                     \
      const T a = x[low], b = x[middle], c = x[last];                                     \
      const bool ab = a < b, bc = b < c, ac = a < c;                                      \
      const int64_t at = ab == bc ? middle : ab == ac ? last : low;                       \
      const T pivot = x[at];                                                              \
      x[at] = c;                                                                          \
      const int64_t place = divide_##N(x, low, last, pivot, true);                        \
      x[last] = x[place];                                                                 \
      x[place] = pivot;                                                                   \
      if (n < place) {                                                                    \
        high = place;                                                                     \
        continue;                                                                         \
      }                                                                                   \
      const bool has_less = place > low;                                                  \
      low = place + 1;                                                                    \
      if (!has_less) low = divide_##N(x, low, high, pivot, false);                        \
      if (n < low) return;                                                                \
    }                                                                                     \
    for (int64_t i = low + 1; i < high; ++i) {                                            \
      const T moved = x[i];                                                               \
      int64_t j = i;                                                                      \
      for (; j > low && moved < x[j - 1]; --j) x[j] = x[j - 1];                           \
      x[j] = moved;                                                                       \
    }                                                                                     \
  }
TYPES(SELECT)

#define SELECTOR(N, T) [RN_##N] = select_##N,
static void (*const selectors[RN_DTYPE_COUNT])(void*, int64_t, int64_t) = {TYPES(SELECTOR)};

static rn_status_t nth_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* in, int64_t n,
                            rn_tensor_t* out) {
  rn_tensor_t wide = {0}, row = {0};
  rn_dtype_t dtype;
  const void* data = NULL;
  int64_t length = rn_tensor_dim(in, in->rank - 1);
  rn_status_t status = comparable(ctx, in, &wide, &dtype, &data);
  if (rn_ok(status)) status = rn_temp(ctx, dtype, (rn_shape_t){1, &length}, &row);
  size_t item = rn_dtype_size(dtype), narrow = rn_dtype_size(in->dtype);
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i) {
    memcpy(row.data, (const char*)data + (size_t)(i * length) * item, (size_t)length * item);
    selectors[dtype](row.data, length, n);
    const char* found = (const char*)row.data + (size_t)n * item;
    char* to = (char*)out->data + (size_t)i * narrow;
    const rn_vector_table_t* table = rn_vector_table();
    if (item == narrow)
      memcpy(to, found, item);
    else
      (in->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)((const void*)found,
                                                                           (void*)to, 1);
  }
  rn_tensor_clear(&wide);
  rn_tensor_clear(&row);
  return status;
}

static rn_status_t nth_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *in = rn_in(ctx, 0), *at = rn_in(ctx, 1);
  if (at->rank != 0) return rn_invalid_argument("N must be scalar but has rank %d", at->rank);
  int64_t n = *RN_DATA(at, const int32_t);
  if (n < 0) return rn_invalid_argument("n must be non-negative but is %" PRId64, n);
  if (in->rank < 1)
    return rn_invalid_argument("Input must be at least rank 1 but is rank %d", in->rank);
  int64_t length = rn_tensor_dim(in, in->rank - 1);
  if (length <= n) return rn_invalid_argument("Input must have last dimension > n = %" PRId64, n);
  rn_shape_t shape = rn_tensor_shape(in);
  shape.rank--;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count == 0) return RN_OK;
  return nth_rows(ctx, in, ((const nth_t*)ctx->state)->is_reverse ? length - 1 - n : n, out);
}

#define BOUND(op_, compute_)                                                                   \
  {                                                                                            \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_REAL}, {"out_type", RN_TYPES_INDEX}}, \
    .compute = compute_                                                                        \
  }
static const rn_kernel_def_t rows[] = {
    BOUND("LowerBound", lower_compute),
    BOUND("UpperBound", upper_compute),
    {.op = "NthElement",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .host_args = RN_HOST_ARGS("n"),
     .state_size = sizeof(nth_t),
     .init = nth_init,
     .compute = nth_compute},
};
RN_KERNEL_FAMILY(cpu_ordering, rows);
