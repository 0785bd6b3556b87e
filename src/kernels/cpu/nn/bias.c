// BiasAdd, its gradient, and L2Loss; isa/bias.c has the loops.
#include "kernels/cpu/isa/bias.h"
#include "base/pool.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/nn/bias.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Elements per piece of work: about 30 us of memory traffic.
#define PIECE_ELEMENTS (1 << 16)
#define SMALL_ELEMENTS (1 << 14)  // for threads that are awake anyway
#define MOST_PIECES 64

// The type the loops use: unsigned for signed integers, two floats for a complex number.
static rn_dtype_t plain_type(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_INT8:
      return RN_UINT8;
    case RN_INT16:
      return RN_UINT16;
    case RN_INT32:
      return RN_UINT32;
    case RN_INT64:
      return RN_UINT64;
    case RN_COMPLEX64:
      return RN_FLOAT;
    case RN_COMPLEX128:
      return RN_DOUBLE;
    default:
      return dtype;
  }
}
static bool is_narrow(rn_dtype_t dtype) { return dtype == RN_HALF || dtype == RN_BFLOAT16; }

typedef struct nn_bias_job_t {
  const rn_bias_fns_t* fns;
  rn_dtype_t dtype;
  const char *x, *bias;
  char* out;
  rn_bias_view_t view;
  size_t item;
  bool is_narrow;  // 16-bit floats
  int64_t piece;   // rows
} nn_bias_job_t;

static void add_rows(void* arg, int64_t begin, int64_t end) {
  const nn_bias_job_t* job = arg;
  size_t row = (size_t)job->view.channels * job->item;
  const char* x = job->x + (size_t)begin * row;
  char* out = job->out + (size_t)begin * row;
  if (!job->is_narrow) {
    job->fns->add(x, job->bias, out, end - begin, job->view.channels);
    return;
  }
  for (int64_t r = begin; r < end; ++r, x += row, out += row)
    rn_vector_run(RN_VECTOR_ADD, job->dtype, x, 1, job->bias, 1, out, job->view.channels);
}

// Channels before space: one number per run of |inner|, possibly two floats wide.
static void add_planes(void* arg, int64_t begin, int64_t end) {
  const nn_bias_job_t* job = arg;
  size_t plane = (size_t)job->view.inner * job->item;
  for (int64_t p = begin; p < end; ++p) {
    const char* bias = job->bias + (size_t)(p % job->view.channels) * job->item;
    const char* x = job->x + (size_t)p * plane;
    char* out = job->out + (size_t)p * plane;
    if (rn_dtype_is_complex(job->dtype))
      job->fns->add(x, bias, out, job->view.inner, 2);
    else
      rn_vector_run(RN_VECTOR_ADD, job->dtype, x, 1, bias, 0, out, job->view.inner);
  }
}

static rn_status_t add_compute(rn_kernel_ctx_t* ctx) {
  const rn_bias_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *bias = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_bias_check(x, bias, state->is_nchw));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  if (out->count == 0) return RN_OK;
  rn_bias_view_t view = rn_bias_view(x, state->is_nchw);
  nn_bias_job_t job = {.fns = &RN_ISA_PICK(rn_bias_)[plain_type(x->dtype)],
                       .dtype = x->dtype,
                       .x = x->data,
                       .bias = bias->data,
                       .out = out->data,
                       .item = rn_dtype_size(x->dtype),
                       .is_narrow = is_narrow(x->dtype),
                       .view = view};
  if (view.inner > 1) {
    rn_pool_for(rn_ctx_pool(ctx), view.outer * view.channels, PIECE_ELEMENTS / view.inner + 1,
                add_planes, &job);
    return RN_OK;
  }
  if (rn_dtype_is_complex(x->dtype)) {
    job.view.channels *= 2;
    job.item /= 2;
  }
  rn_pool_for_small(rn_ctx_pool(ctx), view.outer, PIECE_ELEMENTS / view.channels + 1,
                    SMALL_ELEMENTS / view.channels + 1, add_rows, &job);
  return RN_OK;
}

// The gradient: sums per piece of rows, added in order.

static void sum_rows(void* arg, int64_t begin, int64_t end) {
  const nn_bias_job_t* job = arg;
  size_t row = (size_t)job->view.channels * job->item;
  job->fns->sum_rows(job->x + (size_t)begin * row, end - begin, job->view.channels,
                     job->out + (size_t)(begin / job->piece) * row);
}

static rn_status_t sum_columns(rn_kernel_ctx_t* ctx, nn_bias_job_t* job, rn_dtype_t dtype,
                               char* sums) {
  int64_t rows = job->view.outer, channels = job->view.channels;
  job->piece = PIECE_ELEMENTS / channels + 1;
  if (job->piece < rows / MOST_PIECES + 1) job->piece = rows / MOST_PIECES + 1;
  int64_t pieces = (rows + job->piece - 1) / job->piece;
  job->out = sums;
  if (pieces == 1) {
    sum_rows(job, 0, rows);
    return RN_OK;
  }
  int64_t dims[2] = {pieces, channels};
  rn_tensor_t parts = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, dtype, (rn_shape_t){2, dims}, &parts));
  job->out = parts.data;
  rn_pool_for(rn_ctx_pool(ctx), rows, job->piece, sum_rows, job);
  job->fns->sum_rows(parts.data, pieces, channels, sums);
  rn_tensor_clear(&parts);
  return RN_OK;
}

// |parts| is 1, or 2 for complex numbers, whose halves are adjacent.
static void sum_planes(const nn_bias_job_t* job, int64_t parts, char* sums) {
  int64_t channels = job->view.channels, inner = job->view.inner;
  size_t step = (size_t)parts * job->item;
  memset(sums, 0, (size_t)channels * step);
  for (int64_t n = 0; n < job->view.outer; ++n)
    for (int64_t c = 0; c < channels; ++c) {
      const char* plane = job->x + (size_t)((n * channels + c) * inner) * step;
      char sum[16], *to = sums + (size_t)c * step;
      if (parts == 1)
        job->fns->sum(plane, inner, sum);
      else
        job->fns->sum_rows(plane, inner, parts, sum);
      job->fns->add(to, sum, to, 1, parts);
    }
}

static rn_status_t gradient_run(rn_kernel_ctx_t* ctx, const rn_tensor_t* dy, rn_bias_view_t view,
                                rn_tensor_t* temp, void* sums) {
  rn_dtype_t dtype = is_narrow(dy->dtype) ? RN_FLOAT : plain_type(dy->dtype);
  int64_t parts = rn_dtype_is_complex(dy->dtype) ? 2 : 1;
  nn_bias_job_t job = {.fns = &RN_ISA_PICK(rn_bias_)[dtype],
                       .x = dy->data,
                       .item = rn_dtype_size(dtype),
                       .view = view};
  int64_t wide_count = dy->count + view.channels;
  if (is_narrow(dy->dtype)) {
    const rn_vector_table_t* table = rn_vector_table();
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &wide_count}, temp));
    (dy->dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(dy->data, temp->data,
                                                                       dy->count);
    job.x = temp->data;
  }
  char* to = temp->data ? (char*)temp->data + (size_t)dy->count * job.item : sums;
  if (view.inner > 1) {
    sum_planes(&job, parts, to);
  } else {
    job.view.channels *= parts;
    RN_RETURN_IF_ERROR(sum_columns(ctx, &job, dtype, to));
  }
  if (temp->data) {
    const rn_vector_table_t* table = rn_vector_table();
    (dy->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)((const float*)to, sums,
                                                                         view.channels);
  }
  return RN_OK;
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_bias_state_t* state = ctx->state;
  const rn_tensor_t* dy = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_bias_grad_check(dy));
  rn_bias_view_t view = rn_bias_view(dy, state->is_nchw);
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &view.channels}, &out));
  if (dy->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  rn_status_t status = gradient_run(ctx, dy, view, &temp, out->data);
  rn_tensor_clear(&temp);
  return status;
}

// L2Loss: half the sum of squares.

typedef struct squares_t {
  const rn_bias_fns_t* fns;
  const char* x;
  size_t item;
  int64_t piece;
  double parts[MOST_PIECES];  // in the element type
} squares_t;

static void square_piece(void* arg, int64_t begin, int64_t end) {
  squares_t* job = arg;
  job->fns->sum_squares(job->x + (size_t)begin * job->item, end - begin,
                        (char*)job->parts + (size_t)(begin / job->piece) * job->item);
}

static rn_status_t loss_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  bool narrowed = is_narrow(x->dtype);
  rn_dtype_t dtype = narrowed ? RN_FLOAT : x->dtype;
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  const rn_vector_table_t* table = rn_vector_table();
  squares_t job = {.fns = &RN_ISA_PICK(rn_bias_)[dtype],
                   .x = x->data,
                   .item = rn_dtype_size(dtype),
                   .piece = PIECE_ELEMENTS};
  if (narrowed) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &x->count}, &temp));
    (x->dtype == RN_HALF ? table->widen_half : table->widen_bfloat16)(x->data, temp.data, x->count);
    job.x = temp.data;
  }
  if (job.piece < x->count / MOST_PIECES + 1) job.piece = x->count / MOST_PIECES + 1;
  rn_pool_for(rn_ctx_pool(ctx), x->count, job.piece, square_piece, &job);
  double sum[1] = {0};
  job.fns->sum(job.parts, (x->count + job.piece - 1) / job.piece, sum);
  if (dtype == RN_DOUBLE) {
    *(double*)out->data = sum[0] / 2;
  } else {
    float half;
    memcpy(&half, sum, sizeof half);
    half /= 2;
    if (x->dtype == RN_FLOAT)
      *(float*)out->data = half;
    else
      (x->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(&half, out->data, 1);
  }
  rn_tensor_clear(&temp);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "BiasAdd",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(rn_bias_state_t),
     .init = rn_bias_init,
     .compute = add_compute},
    {.op = "BiasAddV1",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(rn_bias_state_t),
     .compute = add_compute},
    {.op = "BiasAddGrad",
     .device = "CPU",
     .types = {{"T", RN_TYPES_NUMBERS}},
     .state_size = sizeof(rn_bias_state_t),
     .init = rn_bias_init,
     .compute = gradient_compute},
    {.op = "L2Loss", .device = "CPU", .types = {{"T", RN_TYPES_FLOATS}}, .compute = loss_compute},
};
RN_KERNEL_FAMILY(cpu_bias, rows);
