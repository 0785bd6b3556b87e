// FFT, IFFT, RFFT and IRFFT on a GPU, by cuFFT or by kernels of ours.
//
// Ours transform forward only: the conjugate of what goes in and comes out turns the direction.
#include "kernels/cpu/array.h"
#include "kernels/cpu/signal/fft_call.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/libs/cufft.h"

// After launch.h, which has its types.
#include "kernels/cuda/signal/fft_args.h"

// Longer prime factors are convolutions.
#define MAX_PRIME 61

typedef enum cuda_fft_kind_t { COMPLEX, FROM_REAL, TO_REAL } cuda_fft_kind_t;

// One call. The sizes are [outer, axes...]: the other axes count as one.
typedef struct cuda_fft_t {
  cuda_fft_kind_t kind;
  bool is_backward;
  rn_dtype_t number;                   // complex
  int axes;                            // that are transformed
  const int64_t* lengths;              // of these
  int64_t in_dims[RN_FFT_MAX_RANK];    // as given
  int64_t used_dims[RN_FFT_MAX_RANK];  // as transformed: cropped, or padded with zeros
  int64_t out_dims[RN_FFT_MAX_RANK];
  double scale;
} cuda_fft_t;

static rn_status_t make(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t count, rn_tensor_t* out) {
  return rn_temp(ctx, dtype, (rn_shape_t){1, &count}, out);
}

// |x| := what |y| is; the old one is given back, for work that is issued later.
static void replace(rn_tensor_t* x, rn_tensor_t* y) {
  rn_tensor_clear(x);
  *x = *y;
  *y = (rn_tensor_t){0};
}

// Copies between blocks of [outer, axes...], as real or complex numbers.
static rn_status_t move(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, const rn_tensor_t* from,
                        const int64_t* from_dims, rn_tensor_t* to, const int64_t* dims,
                        bool conjugates, double scale) {
  struct fft_move_args args = {.from = from->data,
                               .to = to->data,
                               .rank = 1 + fft->axes,
                               .count = rn_dims_product(dims, 0, 1 + fft->axes),
                               .conjugates = conjugates,
                               .scale = scale};
  memcpy(args.from_dims, from_dims, (size_t)args.rank * sizeof *from_dims);
  memcpy(args.dims, dims, (size_t)args.rank * sizeof *dims);
  rn_cuda_name_t name = rn_cuda_name("signal/fft/move", from->dtype);
  name = rn_cuda_name(name.text, to->dtype);
  return rn_cuda_each(ctx, name.text, args.count, &args, sizeof args);
}

// ---- our own kernels

static int64_t next_radix(int64_t n) {
  if (n % 4 == 0) return 4;
  if (n % 2 == 0) return 2;
  for (int64_t p = 3; p * p <= n; p += 2)
    if (n % p == 0) return p;
  return n;
}

static bool is_smooth(int64_t n) {
  while (n > 1) {
    int64_t radix = next_radix(n);
    if (radix > MAX_PRIME) return false;
    n /= radix;
  }
  return true;
}

static rn_status_t issue_pass(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, struct fft_pass_args args) {
  const char* base = args.radix == 4   ? "signal/fft/pass4"
                     : args.radix == 2 ? "signal/fft/pass2"
                                       : "signal/fft/pass";
  const bool is_butterfly = args.radix == 2 || args.radix == 4;
  const int64_t count = args.outer * args.sub * args.width;
  return rn_cuda_each(ctx, rn_cuda_name(base, dtype).text,
                      is_butterfly ? count / args.radix : count, &args, sizeof args);
}

// Transforms |x| along the middle axis of [outer, n, inner]; n has small prime factors only.
static rn_status_t passes(rn_kernel_ctx_t* ctx, rn_tensor_t* x, int64_t outer, int64_t n,
                          int64_t inner) {
  if (n == 1) return RN_OK;
  rn_tensor_t y = {0};
  RN_RETURN_IF_ERROR(make(ctx, x->dtype, outer * n * inner, &y));
  rn_status_t status = RN_OK;
  int64_t left = n, width = inner;
  while (left > 1 && rn_ok(status)) {
    const int64_t radix = next_radix(left);
    status = issue_pass(ctx, x->dtype,
                        (struct fft_pass_args){.x = x->data,
                                               .y = y.data,
                                               .outer = outer,
                                               .sub = left,
                                               .width = width,
                                               .radix = radix});
    rn_tensor_t old = *x;
    *x = y;
    y = old;
    left /= radix;
    width *= radix;
  }
  rn_tensor_clear(&y);
  return status;
}

static rn_status_t issue_chirp(rn_kernel_ctx_t* ctx, const char* base, rn_dtype_t dtype,
                               int64_t count, const struct fft_chirp_args* args) {
  return rn_cuda_each(ctx, rn_cuda_name(base, dtype).text, count, args, sizeof *args);
}

// |y| and |filter| are scratch of [outer, m, inner] and m numbers.
static rn_status_t convolve(rn_kernel_ctx_t* ctx, rn_tensor_t* x, struct fft_chirp_args args,
                            rn_tensor_t* y, rn_tensor_t* filter) {
  const rn_dtype_t dtype = x->dtype;
  const int64_t count = args.outer * args.m * args.inner;
  args.y = filter->data;
  RN_RETURN_IF_ERROR(issue_chirp(ctx, "signal/fft/chirp_filter", dtype, args.m, &args));
  RN_RETURN_IF_ERROR(passes(ctx, filter, 1, args.m, 1));
  args.filter = filter->data;
  args.x = x->data;
  args.y = y->data;
  RN_RETURN_IF_ERROR(issue_chirp(ctx, "signal/fft/chirp_in", dtype, count, &args));
  RN_RETURN_IF_ERROR(passes(ctx, y, args.outer, args.m, args.inner));
  args.x = args.y = y->data;
  RN_RETURN_IF_ERROR(issue_chirp(ctx, "signal/fft/chirp_product", dtype, count, &args));
  RN_RETURN_IF_ERROR(passes(ctx, y, args.outer, args.m, args.inner));
  args.x = y->data;
  args.y = x->data;
  return issue_chirp(ctx, "signal/fft/chirp_out", dtype, args.outer * args.n * args.inner, &args);
}

// Transforms |x| along the middle axis of [outer, n, inner].
static rn_status_t transform(rn_kernel_ctx_t* ctx, rn_tensor_t* x, int64_t outer, int64_t n,
                             int64_t inner) {
  if (is_smooth(n)) return passes(ctx, x, outer, n, inner);
  if (n >= INT32_MAX) return rn_unimplemented("FFT of 2^31 numbers or more on a GPU");
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  struct fft_chirp_args args = {.outer = outer, .n = n, .m = m, .inner = inner};
  rn_tensor_t y = {0}, filter = {0};
  rn_status_t status = make(ctx, x->dtype, outer * m * inner, &y);
  if (rn_ok(status)) status = make(ctx, x->dtype, m, &filter);
  if (rn_ok(status)) status = convolve(ctx, x, args, &y, &filter);
  rn_tensor_clear(&y);
  rn_tensor_clear(&filter);
  return status;
}

// Along the axes but the last.
static rn_status_t transform_outer(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* x,
                                   const int64_t* dims) {
  for (int i = 1; i < fft->axes; ++i)
    RN_RETURN_IF_ERROR(transform(ctx, x, rn_dims_product(dims, 0, i), dims[i],
                                 rn_dims_product(dims, i + 1, 1 + fft->axes)));
  return RN_OK;
}

static rn_status_t transform_last(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* x) {
  const int64_t n = fft->lengths[fft->axes - 1];
  return transform(ctx, x, rn_dims_product(fft->used_dims, 0, fft->axes), n, 1);
}

// Half spectra become whole ones.
static rn_status_t mirror(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* x) {
  struct fft_mirror_args args = {.from = x->data,
                                 .rows = rn_dims_product(fft->used_dims, 0, fft->axes),
                                 .n = fft->lengths[fft->axes - 1]};
  rn_tensor_t whole = {0};
  RN_RETURN_IF_ERROR(make(ctx, x->dtype, args.rows * args.n, &whole));
  args.to = whole.data;
  rn_status_t status = rn_cuda_each(ctx, rn_cuda_name("signal/fft/mirror", x->dtype).text,
                                    args.rows * args.n, &args, sizeof args);
  replace(x, &whole);
  return status;
}

// Whole spectra of real rows lose their second half.
static rn_status_t halve(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* x) {
  rn_tensor_t half = {0};
  RN_RETURN_IF_ERROR(make(ctx, x->dtype, rn_dims_product(fft->out_dims, 0, 1 + fft->axes), &half));
  rn_status_t status = move(ctx, fft, x, fft->used_dims, &half, fft->out_dims, false, 1);
  replace(x, &half);
  return status;
}

static rn_status_t run_own(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* x,
                           rn_tensor_t* out) {
  RN_RETURN_IF_ERROR(
      move(ctx, fft, rn_in(ctx, 0), fft->in_dims, x, fft->used_dims, fft->is_backward, 1));
  if (fft->kind == TO_REAL) {
    RN_RETURN_IF_ERROR(transform_outer(ctx, fft, x, fft->used_dims));
    RN_RETURN_IF_ERROR(mirror(ctx, fft, x));
    RN_RETURN_IF_ERROR(transform_last(ctx, fft, x));
  } else {
    RN_RETURN_IF_ERROR(transform_last(ctx, fft, x));
    if (fft->kind == FROM_REAL) RN_RETURN_IF_ERROR(halve(ctx, fft, x));
    RN_RETURN_IF_ERROR(transform_outer(ctx, fft, x, fft->out_dims));
  }
  return move(ctx, fft, x, fft->out_dims, out, fft->out_dims, fft->is_backward, fft->scale);
}

static rn_status_t compute_own(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* out) {
  rn_tensor_t x = {0};
  RN_RETURN_IF_ERROR(make(ctx, fft->number, rn_dims_product(fft->used_dims, 0, 1 + fft->axes), &x));
  rn_status_t status = run_own(ctx, fft, &x, out);
  rn_tensor_clear(&x);
  return status;
}

// ---- cuFFT

static int32_t cufft_type(const cuda_fft_t* fft) {
  const bool is_wide = fft->number == RN_COMPLEX128;
  if (fft->kind == FROM_REAL) return is_wide ? CUFFT_D2Z : CUFFT_R2C;
  if (fft->kind == TO_REAL) return is_wide ? CUFFT_Z2D : CUFFT_C2R;
  return is_wide ? CUFFT_Z2Z : CUFFT_C2C;
}

// The input as cuFFT wants it: cropped or padded, and a copy of its own where cuFFT writes to it.
static rn_status_t cufft_input(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* copy,
                               const void** out) {
  const rn_tensor_t* in = rn_in(ctx, 0);
  *out = in->data;
  const size_t size = (size_t)(1 + fft->axes) * sizeof *fft->in_dims;
  if (fft->kind != TO_REAL && memcmp(fft->in_dims, fft->used_dims, size) == 0) return RN_OK;
  RN_RETURN_IF_ERROR(make(ctx, in->dtype, rn_dims_product(fft->used_dims, 0, 1 + fft->axes), copy));
  *out = copy->data;
  return move(ctx, fft, in, fft->in_dims, copy, fft->used_dims, false, 1);
}

// |*out_done| is false if there is no cuFFT or it does not take the call.
static rn_status_t compute_cufft(rn_kernel_ctx_t* ctx, const cuda_fft_t* fft, rn_tensor_t* out,
                                 bool* out_done) {
  *out_done = false;
  rn_cufft_t* cufft = NULL;
  if (fft->axes > RN_CUFFT_MAX_AXES) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cufft_get(rn_cuda_card(ctx), ctx->step->env, &cufft));
  if (!cufft) return RN_OK;
  rn_cufft_problem_t problem = {
      .type = cufft_type(fft), .axes = fft->axes, .batch = fft->used_dims[0]};
  memcpy(problem.lengths, fft->lengths, (size_t)fft->axes * sizeof *fft->lengths);
  rn_tensor_t copy = {0};
  const void* in = NULL;
  rn_status_t status = cufft_input(ctx, fft, &copy, &in);
  if (rn_ok(status))
    status = rn_cufft_transform(cufft, &problem, fft->is_backward, in, out->data, out_done);
  if (rn_ok(status) && *out_done && fft->is_backward)
    status = move(ctx, fft, out, fft->out_dims, out, fft->out_dims, false, fft->scale);
  rn_tensor_clear(&copy);
  return status;
}

// ---- the kernel

static rn_status_t describe(const rn_tensor_t* in, const rn_fft_op_t* op, const rn_fft_call_t* call,
                            cuda_fft_t* out) {
  const int first = in->rank - call->rank;
  if (1 + call->rank > RN_FFT_MAX_RANK)
    return rn_unimplemented("FFT over %d axes on a GPU", call->rank);
  const bool is_wide = in->dtype == RN_DOUBLE || in->dtype == RN_COMPLEX128;
  *out = (cuda_fft_t){.kind = !op->is_real      ? COMPLEX
                              : op->is_backward ? TO_REAL
                                                : FROM_REAL,
                      .is_backward = op->is_backward,
                      .number = is_wide ? RN_COMPLEX128 : RN_COMPLEX64,
                      .axes = call->rank,
                      .lengths = call->lengths,
                      .scale = 1};
  out->in_dims[0] = out->used_dims[0] = out->out_dims[0] = rn_dims_product(call->dims, 0, first);
  for (int i = 0; i < call->rank; ++i) {
    out->in_dims[1 + i] = rn_tensor_dim(in, first + i);
    out->used_dims[1 + i] = call->lengths[i];
    out->out_dims[1 + i] = call->dims[first + i];
    if (op->is_backward) out->scale /= (double)call->lengths[i];
  }
  if (out->kind == TO_REAL) out->used_dims[call->rank] = call->lengths[call->rank - 1] / 2 + 1;
  return RN_OK;
}

static rn_status_t compute(rn_kernel_ctx_t* ctx) {
  const rn_fft_op_t* op = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  rn_fft_call_t call = {0};
  RN_RETURN_IF_ERROR(rn_fft_check(ctx, op, &call));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){in->rank, call.dims}, &out));
  RN_RETURN_IF_ERROR(rn_fft_check_types(ctx, op));
  if (out->count == 0) return RN_OK;
  if (in->count == 0 || call.rank == 0) return rn_cuda_zero(ctx, out);
  cuda_fft_t fft;
  RN_RETURN_IF_ERROR(describe(in, op, &call, &fft));
  bool is_done = false;
  RN_RETURN_IF_ERROR(compute_cufft(ctx, &fft, out, &is_done));
  return is_done ? RN_OK : compute_own(ctx, &fft, out);
}

static rn_status_t init(const rn_kernel_init_t* init, void* state) {
  *(rn_fft_op_t*)state = rn_fft_op(init->def->op);
  return RN_OK;
}

#define ROW(name, host)                                                                    \
  {                                                                                        \
    .op = name, .device = "GPU", .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE,         \
    .host_args = host, .state_size = sizeof(rn_fft_op_t), .init = init, .compute = compute \
  }
#define LENGTH RN_HOST_ARGS("fft_length")
#define LENGTH_AND_AXES RN_HOST_ARGS("fft_length", "axes")
#define RANK(suffix)                                                             \
  ROW("FFT" suffix, NULL), ROW("IFFT" suffix, NULL), ROW("RFFT" suffix, LENGTH), \
      ROW("IRFFT" suffix, LENGTH), ROW("BatchFFT" suffix, NULL), ROW("BatchIFFT" suffix, NULL)
static const rn_kernel_def_t rows[] = {
    RANK(""),
    RANK("2D"),
    RANK("3D"),
    ROW("FFTND", LENGTH_AND_AXES),
    ROW("IFFTND", LENGTH_AND_AXES),
    ROW("RFFTND", LENGTH_AND_AXES),
    ROW("IRFFTND", LENGTH_AND_AXES),
};
RN_KERNEL_FAMILY(cuda_fft, rows);
