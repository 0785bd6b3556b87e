// Segment reductions, sorted and unsorted.
#include "kernels/cpu/math/segment.h"
#include "kernels/cpu/combine.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/row_batches.h"
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

static rn_status_t check_sorted(const rn_tensor_t* data, const rn_tensor_t* ids,
                                int64_t* out_rows) {
  RN_RETURN_IF_ERROR(rn_segment_check(data, ids));
  *out_rows = 0;
  if (ids->count == 0) return RN_OK;
  int64_t last = rn_int_at(ids, ids->count - 1);
  RN_RETURN_IF_ERROR(rn_segment_rows(last, out_rows));
  for (int64_t i = 0; i < ids->count; ++i) {
    int64_t id = rn_int_at(ids, i);
    if (i > 0 && id < rn_int_at(ids, i - 1))
      return rn_invalid_argument("segment ids are not increasing");
    if (id < 0 || id > last)
      return rn_invalid_argument(
          "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input is not "
          "sorted.",
          (long long)id, (long long)last + 1);
  }
  return RN_OK;
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
  // Ids without rows give 1 for products and 0 for everything else.
  _Alignas(16) char empty[16] = {0};
  if (segment->op == RN_COMBINE_MUL) rn_combine_identity(RN_COMBINE_MUL, data->dtype, empty);
  int64_t next = 0;
  for (int64_t i = 0; i < ids->count;) {
    int64_t id = rn_int_at(ids, i), first = i;
    for (; next < id; ++next) {
      char* hole = (char*)out->data + next * bytes;
      assign(hole, empty, 0, hole, row);
    }
    char* to = (char*)out->data + id * bytes;
    memcpy(to, (const char*)data->data + i * bytes, (size_t)bytes);
    for (++i; i < ids->count && rn_int_at(ids, i) == id; ++i)
      fn((const char*)data->data + i * bytes, to, 1, to, row);
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

// Bytes per nanosecond, for rows read and added.
#define BYTES_PER_NS 16.0

static rn_status_t unsorted_segment(rn_kernel_ctx_t* ctx) {
  const segment_t* segment = ctx->state;
  const rn_tensor_t *data = rn_in(ctx, 0), *ids = rn_in(ctx, 1), *number = rn_in(ctx, 2);
  int64_t rows;
  RN_RETURN_IF_ERROR(rn_unsorted_segment_check(data, ids, number, &rows));
  for (int64_t i = 0; i < ids->count && data->count > 0; ++i) {
    int64_t id = rn_int_at(ids, i);
    if (id >= rows)
      return rn_invalid_argument("segment_ids%s = %lld is out of range [0, %lld)",
                                 rn_place_text(ids, i).text, (long long)id, (long long)rows);
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_segment_output(ctx, data, ids->rank, rows, &out));
  if (out->count == 0) return RN_OK;
  _Alignas(16) char start[16];
  rn_combine_identity(segment->op, data->dtype, start);
  RN_RETURN_IF_ERROR(rn_move_fill(rn_ctx_pool(ctx), out->dtype, start, out->data, out->count));
  const int64_t row = out->count / rows, bytes = row * (int64_t)rn_dtype_size(data->dtype);
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
