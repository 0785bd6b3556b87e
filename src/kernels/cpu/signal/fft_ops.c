// FFT, IFFT, RFFT and IRFFT over the last one, two, three or any number of axes.
#include "kernels/cpu/array.h"
#include "kernels/cpu/signal/fft.h"
#include "kernels/cpu/signal/fft_call.h"
#include "kernels/kernel_rows.h"

typedef struct fft_state_t {
  rn_fft_cache_t cache;
  rn_fft_op_t op;
} fft_state_t;

// Transforms |data|, complex, in place along the axes but the last; the sizes are |dims|.
static rn_status_t outer_axes(const rn_fft_env_t* env, const rn_fft_call_t* call,
                              rn_fft_columns_t c, const int64_t* dims, int rank) {
  for (int i = 0; i + 1 < call->rank; ++i) {
    int axis = rank - call->rank + i;
    c.outer = rn_dims_product(dims, 0, axis);
    c.n = call->lengths[i];
    c.inner = rn_dims_product(dims, axis + 1, rank);
    RN_RETURN_IF_ERROR(rn_fft_columns(env, &c));
  }
  return RN_OK;
}

// The rows of |in|, cropped to the output's outer axes and to the spectrum's half.
static void crop(const rn_tensor_t* in, const int64_t* dims, int64_t width, char* to) {
  size_t item = rn_dtype_size(in->dtype);
  int64_t rows = rn_dims_product(dims, 0, in->rank - 1),
          from_width = rn_tensor_dim(in, in->rank - 1);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, row = 0, stride = 1;
    for (int d = in->rank - 2; d >= 0; --d) {
      row += rest % dims[d] * stride;
      rest /= dims[d];
      stride *= rn_tensor_dim(in, d);
    }
    memcpy(to + (size_t)(r * width) * item,
           (const char*)in->data + (size_t)(row * from_width) * item, (size_t)width * item);
  }
}

// IRFFT transforms the last axis last: only there are the numbers known to be real.
static rn_status_t to_real(rn_kernel_ctx_t* ctx, const rn_fft_env_t* env, const rn_fft_call_t* call,
                           rn_fft_rows_t* rows, rn_fft_columns_t columns) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, call->dims, sizeof dims);
  dims[in->rank - 1] = rows->in_used;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, in->dtype, (rn_shape_t){in->rank, dims}, &temp));
  crop(in, dims, rows->in_used, temp.data);
  columns.data = temp.data;
  rn_status_t status = outer_axes(env, call, columns, dims, in->rank);
  rows->in = temp.data;
  rows->in_row = rows->in_used;
  rows->in_dims = dims;
  if (rn_ok(status)) status = rn_fft_rows(env, rows);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t compute(rn_kernel_ctx_t* ctx) {
  fft_state_t* state = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_fft_call_t call = {0};
  RN_RETURN_IF_ERROR(rn_fft_check(ctx, &state->op, &call));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){in->rank, call.dims}, &out));
  RN_RETURN_IF_ERROR(rn_fft_check_types(ctx, &state->op));
  if (out->count == 0) return RN_OK;
  if (in->count == 0 || call.rank == 0) {
    memset(out->data, 0, (size_t)out->count * rn_dtype_size(out->dtype));
    return RN_OK;
  }
  int last = in->rank - 1;
  int64_t n = call.lengths[call.rank - 1], width = rn_tensor_dim(in, last);
  bool is_wide = in->dtype == RN_DOUBLE || in->dtype == RN_COMPLEX128;
  rn_fft_env_t env = {&state->cache, ctx->kernel->allocator, rn_ctx_pool(ctx)};
  rn_fft_rows_t rows = {
      .kind = !state->op.is_real ? RN_FFT_COMPLEX
                                 : (state->op.is_backward ? RN_FFT_TO_REAL : RN_FFT_FROM_REAL),
      .width = is_wide ? RN_FFT_DOUBLE : RN_FFT_FLOAT,
      .is_backward = state->op.is_backward,
      .n = n,
      .scale = state->op.is_backward ? 1 / (double)n : 1,
      .in = in->data,
      .in_row = width,
      .in_used = width < n ? width : n,
      .out = out->data,
      .rank = last,
      .in_dims = rn_tensor_dims(in),
      .out_dims = call.dims,
  };
  if (rows.kind == RN_FFT_TO_REAL) rows.in_used = n / 2 + 1;
  double outer = 1;
  for (int i = 0; i + 1 < call.rank; ++i) outer *= (double)call.lengths[i];
  // The rows apply the scale of all axes.
  if (state->op.is_backward) rows.scale /= outer;
  rn_fft_columns_t columns = {
      .width = rows.width, .is_backward = state->op.is_backward, .scale = 1};
  if (rows.kind == RN_FFT_TO_REAL && call.rank > 1)
    return to_real(ctx, &env, &call, &rows, columns);
  RN_RETURN_IF_ERROR(rn_fft_rows(&env, &rows));
  columns.data = out->data;
  return outer_axes(&env, &call, columns, call.dims, in->rank);
}

static rn_status_t init(const rn_kernel_init_t* init, void* memory) {
  fft_state_t* state = memory;
  rn_fft_cache_init(&state->cache);
  state->op = rn_fft_op(init->def->op);
  return RN_OK;
}

static void destroy(void* state) { rn_fft_cache_clear(&((fft_state_t*)state)->cache); }

#define ROW(name)                                                                                 \
  {                                                                                               \
    .op = name, .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(fft_state_t), \
    .init = init, .destroy = destroy, .compute = compute                                          \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FFT"),        ROW("IFFT"),        ROW("RFFT"),      ROW("IRFFT"),      ROW("FFT2D"),
    ROW("IFFT2D"),     ROW("RFFT2D"),      ROW("IRFFT2D"),   ROW("FFT3D"),      ROW("IFFT3D"),
    ROW("RFFT3D"),     ROW("IRFFT3D"),     ROW("FFTND"),     ROW("IFFTND"),     ROW("RFFTND"),
    ROW("IRFFTND"),    ROW("BatchFFT"),    ROW("BatchIFFT"), ROW("BatchFFT2D"), ROW("BatchIFFT2D"),
    ROW("BatchFFT3D"), ROW("BatchIFFT3D"),
};
RN_KERNEL_FAMILY(cpu_fft, rows);
