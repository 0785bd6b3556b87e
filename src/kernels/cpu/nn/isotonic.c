// IsotonicRegression: the nonincreasing rows that are closest to the input's in the squared sense,
// by pooling adjacent violators. A segment is a run of equal elements of the result.
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Elements per piece of work.
#define PIECE_ELEMENTS (1 << 14)

// A segment from its first element up to the next one's: the sum and the number of its elements.
typedef struct isotonic_segment_t {
  double sum;
  int64_t count;
} isotonic_segment_t;

typedef struct isotonic_job_t {
  const rn_tensor_t* x;
  rn_tensor_t *y, *segments;
  isotonic_segment_t* stack;  // as many as elements
  int64_t width;
} isotonic_job_t;

static void put(rn_tensor_t* y, int64_t i, double value) {
  switch (y->dtype) {
    case RN_DOUBLE:
      RN_DATA(y, double)[i] = value;
      break;
    case RN_FLOAT:
      RN_DATA(y, float)[i] = (float)value;
      break;
    case RN_HALF:
      RN_DATA(y, uint16_t)[i] = rn_float_to_half((float)value);
      break;
    default:
      RN_DATA(y, uint16_t)[i] = rn_float_to_bfloat16((float)value);
  }
}

// Whether the mean of |above| is smaller than that of the segment |below| it.
static bool violates(const isotonic_segment_t* above, const isotonic_segment_t* below) {
  return above->sum * (double)below->count < below->sum * (double)above->count;
}

static void fit_row(const isotonic_job_t* job, int64_t row) {
  int64_t first = row * job->width, top = -1, at = first;
  isotonic_segment_t* stack = job->stack + first;
  for (int64_t i = 0; i < job->width; ++i) {
    stack[++top] = (isotonic_segment_t){rn_number_at(job->x, first + i), 1};
    for (; top > 0 && violates(&stack[top - 1], &stack[top]); --top) {
      stack[top - 1].sum += stack[top].sum;
      stack[top - 1].count += stack[top].count;
    }
  }
  for (int64_t s = 0; s <= top; ++s)
    for (int64_t i = 0; i < stack[s].count; ++i, ++at) {
      put(job->y, at, stack[s].sum / (double)stack[s].count);
      RN_DATA(job->segments, int32_t)[at] = (int32_t)s;
    }
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) fit_row(arg, r);
}

static rn_status_t isotonic_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t *y = NULL, *segments = NULL, memory = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(x), &segments));
  if (x->count == 0) return RN_OK;
  int64_t bytes = 0;
  if (!rn_mul_i64_ok(x->count, sizeof(isotonic_segment_t), &bytes)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  isotonic_job_t job = {.x = x, .y = y, .segments = segments, .stack = memory.data};
  job.width = x->rank ? rn_tensor_dim(x, x->rank - 1) : 1;
  rn_pool_for(rn_ctx_pool(ctx), x->count / job.width, PIECE_ELEMENTS / job.width + 1, run_piece,
              &job);
  rn_tensor_clear(&memory);
  return RN_OK;
}

// As in stock, integers give float if they fit exactly, otherwise double.
#define ROW(in, out)                                                               \
  {                                                                                \
    .op = "IsotonicRegression", .device = "CPU",                                   \
    .types = {{"T", in}, {"output_dtype", RN_T(out)}}, .compute = isotonic_compute \
  }
static const rn_kernel_def_t rows[] = {
    ROW(RN_T(INT8) | RN_T(INT16) | RN_T(FLOAT), FLOAT),
    ROW(RN_T(INT32) | RN_T(INT64) | RN_T(DOUBLE), DOUBLE),
    ROW(RN_T(HALF), HALF),
    ROW(RN_T(BFLOAT16), BFLOAT16),
};
RN_KERNEL_FAMILY(cpu_isotonic, rows);
