// Segment reductions, sorted and unsorted.
#include "kernels/cpu/math/segment.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/reduce.h"
#include "kernels/cpu/isa/segments.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/row_batches.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

typedef struct segment_t {
  rn_combine_op_t op;
  bool is_mean;
} segment_t;

// The incoming row is the left operand, as in stock: if two numbers are unordered, max and min
// return the left one, so NaN replaces what was there.
static rn_status_t segment_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t name = rn_str(init->op->name);
  segment_t* segment = state;
  segment->is_mean = rn_str_ends_with(name, RN_STR("Mean"));
  segment->op = rn_str_ends_with(name, RN_STR("Max"))    ? RN_COMBINE_MAX
                : rn_str_ends_with(name, RN_STR("Min"))  ? RN_COMBINE_MIN
                : rn_str_ends_with(name, RN_STR("Prod")) ? RN_COMBINE_MUL
                                                         : RN_COMBINE_ADD;
  return RN_OK;
}

// Divides a row by the number of rows summed into it; integer division truncates.
static void divide_row(rn_dtype_t dtype, void* row, int64_t n, int64_t by) {
  _Alignas(16) char divisor[16] = {0};
  switch (dtype) {
    case RN_FLOAT:
    case RN_COMPLEX64: {
      float value = (float)by;
      memcpy(divisor, &value, sizeof value);
      break;
    }
    case RN_DOUBLE:
    case RN_COMPLEX128: {
      double value = (double)by;
      memcpy(divisor, &value, sizeof value);
      break;
    }
    case RN_HALF: {
      uint16_t value = rn_float_to_half((float)by);
      memcpy(divisor, &value, sizeof value);
      break;
    }
    case RN_BFLOAT16: {
      uint16_t value = rn_float_to_bfloat16((float)by);
      memcpy(divisor, &value, sizeof value);
      break;
    }
    default:
      memcpy(divisor, &by, sizeof by);  // the low bytes are the number in a smaller type
  }
  rn_combine(RN_COMBINE_DIV, dtype)(row, divisor, 0, row, n);
}

static inline int64_t id_at(const rn_tensor_t* ids, int64_t i) {
  return ids->dtype == RN_INT32 ? RN_DATA(ids, const int32_t)[i] : RN_DATA(ids, const int64_t)[i];
}

// Whether no id is less than the one before.
#define IS_SORTED(T)                                                 \
  static bool is_sorted_##T(const T* ids, int64_t n) {               \
    bool is_wrong = false;                                           \
    for (int64_t i = 1; i < n; ++i) is_wrong |= ids[i] < ids[i - 1]; \
    return !is_wrong;                                                \
  }
IS_SORTED(int32_t)
IS_SORTED(int64_t)

static rn_status_t check_sorted(const rn_tensor_t* data, const rn_tensor_t* ids,
                                int64_t* out_rows) {
  RN_RETURN_IF_ERROR(rn_segment_check(data, ids));
  *out_rows = 0;
  if (ids->count == 0) return RN_OK;
  int64_t last = rn_int_at(ids, ids->count - 1);
  RN_RETURN_IF_ERROR(rn_segment_rows(last, out_rows));
  if (id_at(ids, 0) >= 0 && (ids->dtype == RN_INT32 ? is_sorted_int32_t(ids->data, ids->count)
                                                    : is_sorted_int64_t(ids->data, ids->count)))
    return RN_OK;
  int64_t before = INT64_MIN;
  for (int64_t i = 0; i < ids->count; ++i) {
    const int64_t id = id_at(ids, i);
    if (id < before) return rn_invalid_argument("segment ids are not increasing");
    before = id;
    if (id < 0 || id > last)
      return rn_invalid_argument(
          "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input is not "
          "sorted.",
          (long long)id, (long long)last + 1);
  }
  return RN_OK;
}

// The loop that combines all rows of a segment of floats at once, if that is their type.
static rn_segment_fn_t floats_of(rn_combine_op_t op, rn_dtype_t dtype) {
  const rn_segment_fns_t* fns = RN_ISA_PICK(&rn_segments_);
  if (dtype != RN_FLOAT) return NULL;
  return op == RN_COMBINE_ADD   ? fns->sum
         : op == RN_COMBINE_MUL ? fns->product
         : op == RN_COMBINE_MAX ? fns->max
                                : fns->min;
}

// The loop that sums or multiplies all rows of a segment of doubles.
static rn_reduce_fn_t sum_of(rn_combine_op_t op, rn_dtype_t dtype) {
  if (dtype != RN_DOUBLE) return NULL;
  const rn_reduce_table_t* table = RN_ISA_PICK_NARROW(&rn_reduce_table_);
  return op == RN_COMBINE_ADD   ? table->fn[RN_REDUCE_SUM][dtype]
         : op == RN_COMBINE_MUL ? table->fn[RN_REDUCE_PROD][dtype]
                                : NULL;
}

static rn_status_t segment_reduce(rn_kernel_ctx_t* ctx) {
  const segment_t* segment = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *ids = rn_in(ctx, 1);
  int64_t rows;
  RN_RETURN_IF_ERROR(check_sorted(data, ids, &rows));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, 1, rows, &out));
  if (out->count == 0) return RN_OK;
  const int64_t row = out->count / rows, bytes = row * (int64_t)rn_dtype_size(data->dtype);
  rn_combine_fn_t fn = rn_combine(segment->op, data->dtype);
  rn_combine_fn_t assign = rn_combine(RN_COMBINE_ASSIGN, data->dtype);
  rn_segment_fn_t floats = floats_of(segment->op, data->dtype);
  rn_reduce_fn_t sum = sum_of(segment->op, data->dtype);
  // Ids without rows give 1 for products and 0 for everything else.
  _Alignas(16) char empty[16] = {0};
  if (segment->op == RN_COMBINE_MUL) rn_combine_identity(RN_COMBINE_MUL, data->dtype, empty);
  int64_t next = 0;
  for (int64_t i = 0; i < ids->count;) {
    int64_t id = id_at(ids, i), first = i;
    for (; next < id; ++next) {
      char* hole = (char*)out->data + next * bytes;
      assign(hole, empty, 0, hole, row);
    }
    char* to = (char*)out->data + id * bytes;
    const char* from = (const char*)data->data + i * bytes;
    for (++i; i < ids->count && id_at(ids, i) == id;) ++i;
    if (floats) {
      floats((const float*)from, i - first, row, (float*)to);
    } else if (sum) {
      sum(from, 1, i - first, row, row, to);
    } else {
      memcpy(to, from, (size_t)bytes);
      for (int64_t k = 1; k < i - first; ++k) fn(from + k * bytes, to, 1, to, row);
    }
    if (segment->is_mean) divide_row(data->dtype, to, row, i - first);
    next = id + 1;
  }
  return RN_OK;
}

typedef struct segment_rows_t {
  rn_combine_fn_t fn;
  char* to;
  const char* from;
  int64_t row, bytes;  // elements and bytes per row
} segment_rows_t;

static void combine_rows(void* arg, const int64_t* ids, const int64_t* places, int count) {
  const segment_rows_t* job = arg;
  for (int i = 0; i < count; ++i) {
    char* to = job->to + ids[i] * job->bytes;
    job->fn(job->from + places[i] * job->bytes, to, 1, to, job->row);
  }
}

// Rows of one element of the usual types, one after the other.
#define EACH(EXPRESSION)                  \
  for (int64_t i = 0; i < n; ++i) {       \
    if (ids[i] < 0) continue;             \
    const T_ x = from[i], y = to[ids[i]]; \
    to[ids[i]] = EXPRESSION;              \
  }                                       \
  break
#define SINGLES_OF(T, U, I)                                                                 \
  static void singles_##T##_##I(rn_combine_op_t op, const T* from, const I* ids, int64_t n, \
                                T* to) {                                                    \
    typedef T T_;                                                                           \
    switch (op) {                                                                           \
      case RN_COMBINE_ADD:                                                                  \
        EACH((T)((U)x + (U)y));                                                             \
      case RN_COMBINE_MUL:                                                                  \
        EACH((T)((U)x * (U)y));                                                             \
      case RN_COMBINE_MAX:                                                                  \
        EACH(x < y ? y : x);                                                                \
      default:                                                                              \
        EACH(y < x ? y : x);                                                                \
    }                                                                                       \
  }
#define SINGLES_BY(I)              \
  SINGLES_OF(float, float, I)      \
  SINGLES_OF(double, double, I)    \
  SINGLES_OF(int32_t, uint32_t, I) \
  SINGLES_OF(int64_t, uint64_t, I)
SINGLES_BY(int32_t)
SINGLES_BY(int64_t)

static bool has_singles(const rn_tensor_t* data, const rn_tensor_t* ids) {
  return (ids->dtype == RN_INT32 || ids->dtype == RN_INT64) && ids->count == data->count &&
         (data->dtype == RN_FLOAT || data->dtype == RN_DOUBLE || data->dtype == RN_INT32 ||
          data->dtype == RN_INT64);
}

#define COMBINE_SINGLES(I)                                                     \
  static void combine_singles_##I(rn_combine_op_t op, const rn_tensor_t* data, \
                                  const rn_tensor_t* ids, void* out) {         \
    if (data->dtype == RN_FLOAT)                                               \
      singles_float_##I(op, data->data, ids->data, ids->count, out);           \
    else if (data->dtype == RN_DOUBLE)                                         \
      singles_double_##I(op, data->data, ids->data, ids->count, out);          \
    else if (data->dtype == RN_INT32)                                          \
      singles_int32_t_##I(op, data->data, ids->data, ids->count, out);         \
    else                                                                       \
      singles_int64_t_##I(op, data->data, ids->data, ids->count, out);         \
  }
COMBINE_SINGLES(int32_t)
COMBINE_SINGLES(int64_t)

// The first element >= limit, or the count.
static int64_t first_beyond(const rn_tensor_t* ids, int64_t limit) {
  enum { BLOCK = 256 };
  int64_t block[BLOCK], i = 0;
  for (int64_t begin = 0; begin < ids->count; begin += BLOCK) {
    const int64_t n = ids->count - begin < BLOCK ? ids->count - begin : BLOCK;
    rn_read_indices(ids, begin, n, block);
    for (i = 0; i < n; ++i)
      if (block[i] >= limit) return begin + i;
  }
  return ids->count;
}

// Bytes per nanosecond, for rows read and added.
#define BYTES_PER_NS 16.0

static rn_status_t unsorted_segment(rn_kernel_ctx_t* ctx) {
  const segment_t* segment = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *ids = rn_in(ctx, 1), *number = rn_in(ctx, 2);
  int64_t rows;
  RN_RETURN_IF_ERROR(rn_unsorted_segment_check(data, ids, number, &rows));
  const int64_t wrong = data->count > 0 ? first_beyond(ids, rows) : ids->count;
  if (wrong < ids->count)
    return rn_invalid_argument("segment_ids%s = %lld is out of range [0, %lld)",
                               rn_place_text(ids, wrong).text, (long long)rn_int_at(ids, wrong),
                               (long long)rows);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, ids->rank, rows, &out));
  if (out->count == 0) return RN_OK;
  _Alignas(16) char start[16];
  rn_combine_identity(segment->op, data->dtype, start);
  RN_RETURN_IF_ERROR(rn_move_fill(rn_ctx_pool(ctx), out->dtype, start, out->data, out->count));
  const int64_t row = out->count / rows, bytes = row * (int64_t)rn_dtype_size(data->dtype);
  if (row == 1 && has_singles(data, ids)) {
    (ids->dtype == RN_INT32 ? combine_singles_int32_t : combine_singles_int64_t)(segment->op, data,
                                                                                 ids, out->data);
    return RN_OK;
  }
  segment_rows_t job = {rn_combine(segment->op, data->dtype), out->data, data->data, row, bytes};
  rn_row_batches(rn_ctx_pool(ctx), ids, rows, 5 + (double)bytes / BYTES_PER_NS, combine_rows, &job);
  return RN_OK;
}

#define SEGMENT(name, types_)                                                            \
  {                                                                                      \
    .op = name, .device = "CPU", .types = {{"T", types_}, {"Tindices", RN_TYPES_INDEX}}, \
    .state_size = sizeof(segment_t), .init = segment_init, .compute = segment_reduce     \
  }
#define UNSORTED(name, types_)                                                         \
  {                                                                                    \
    .op = name, .device = "CPU",                                                       \
    .types = {{"T", types_}, {"Tindices", RN_TYPES_INDEX | RN_T(INT16)}},              \
    .state_size = sizeof(segment_t), .init = segment_init, .compute = unsorted_segment \
  }

static const rn_kernel_def_t rows[] = {
    SEGMENT("SegmentSum", RN_TYPES_NUMBERS),
    SEGMENT("SegmentMean", RN_TYPES_NUMBERS),
    SEGMENT("SegmentProd", RN_TYPES_NUMBERS),
    SEGMENT("SegmentMax", RN_TYPES_REAL),
    SEGMENT("SegmentMin", RN_TYPES_REAL),
    UNSORTED("UnsortedSegmentSum", RN_TYPES_NUMBERS),
    UNSORTED("UnsortedSegmentProd", RN_TYPES_NUMBERS),
    UNSORTED("UnsortedSegmentMax", RN_TYPES_REAL),
    UNSORTED("UnsortedSegmentMin", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cpu_segment, rows);
