// Cast.
#include "kernels/cpu/loops.h"
#include "kernels/cpu/math/cast_small.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

typedef struct cast_t {
  rn_run_fn_t fn;
  size_t source_size;
  size_t target_size;
  rn_dtype_t source, target;
  int cut_bits;  // low bits of a float source that Truncate clears first; 0 to round
} cast_t;

static int bits_to_cut(rn_dtype_t source, rn_dtype_t target) {
  if (source == RN_FLOAT) return target == RN_HALF ? 13 : target == RN_BFLOAT16 ? 16 : 0;
  if (source == RN_DOUBLE) return target == RN_HALF ? 42 : target == RN_FLOAT ? 29 : 0;
  return 0;
}

static void small_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  (void)steps;
  const cast_t* cast = arg;
  rn_cast_small(cast->source, cast->target, in[0], out, n);
}

static void widen_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  (void)arg, (void)steps;
  rn_vector_table()->widen_half(in[0], out, n);
}
static void narrow_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  (void)arg, (void)steps;
  rn_vector_table()->narrow_half(in[0], out, n);
}

static rn_status_t cast_init(const rn_kernel_init_t* init, void* state) {
  cast_t* cast = state;
  rn_dtype_t source = rn_dtype_base(init->input_types[0]), target = init->output_types[0];
  cast->source = source;
  cast->target = target;
  cast->source_size = rn_dtype_size(source);
  cast->target_size = rn_dtype_size(target);
  // Quantized numbers convert like the integers they are stored in.
  cast->fn = rn_casts()->fn[rn_dtype_stored(source)][rn_dtype_stored(target)];
  if (source == RN_HALF && target == RN_FLOAT) cast->fn = widen_run;
  if (source == RN_FLOAT && target == RN_HALF) cast->fn = narrow_run;
  if (rn_init_bool(init, "Truncate")) cast->cut_bits = bits_to_cut(source, target);
  if (!cast->fn && rn_cast_small_has(source, target)) cast->fn = small_run;
  if (!cast->fn && source != target)
    return rn_unimplemented("Cast %s to %s is not supported", rn_dtype_name(source),
                            rn_dtype_name(target));
  return RN_OK;
}

// Clears the low bits of a block of floats, except infinities and NaN.
static void cut_floats(const uint32_t* in, uint32_t* out, int64_t n, int bits) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = (in[i] & 0x7f800000) == 0x7f800000 ? in[i] : in[i] >> bits << bits;
}

static void cut_doubles(const uint64_t* in, uint64_t* out, int64_t n, int bits) {
  const uint64_t exponent = UINT64_C(0x7ff0000000000000);
  for (int64_t i = 0; i < n; ++i)
    out[i] = (in[i] & exponent) == exponent ? in[i] : in[i] >> bits << bits;
}

static void truncating_run(void* arg, const void* const* in, const int* steps, void* out,
                           int64_t n) {
  const cast_t* cast = arg;
  uint64_t block[RN_VECTOR_BLOCK];
  const void* blocks[] = {block};
  for (int64_t start = 0; start < n; start += RN_VECTOR_BLOCK) {
    int64_t count = n - start < RN_VECTOR_BLOCK ? n - start : RN_VECTOR_BLOCK;
    if (cast->source_size == 4)
      cut_floats((const uint32_t*)in[0] + start, (uint32_t*)block, count, cast->cut_bits);
    else
      cut_doubles((const uint64_t*)in[0] + start, block, count, cast->cut_bits);
    cast->fn(NULL, blocks, steps, (char*)out + (size_t)start * cast->target_size, count);
  }
}

static void copying_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  (void)steps;
  const cast_t* cast = arg;
  if (out != in[0]) memcpy(out, in[0], (size_t)n * cast->source_size);
}

static rn_status_t cast_compute(rn_kernel_ctx_t* ctx) {
  cast_t* cast = ctx->state;
  rn_dtype_t source = rn_in(ctx, 0)->dtype;
  if (rn_dtype_base(ctx->kernel->output_types[0]) == source) {
    if (rn_dtype_is_plain(source))
      return rn_elementwise_compute(ctx, 1, 1, RN_GRAIN_CHEAP, copying_run, cast);
    rn_tensor_t kept = {0};
    RN_RETURN_IF_ERROR(rn_tensor_keep(rn_in(ctx, 0), ctx->kernel->host_memory, &kept));
    rn_set_output(ctx, 0, &kept);
    return RN_OK;
  }
  return rn_elementwise_compute(ctx, 1, 1, RN_GRAIN_CHEAP,
                                cast->cut_bits ? truncating_run : cast->fn, cast);
}

static const rn_kernel_def_t rows[] = {
    {.op = "Cast",
     .device = "CPU",
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(cast_t),
     .init = cast_init,
     .compute = cast_compute},
    {.op = "_HostCast",
     .device = "CPU",
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(cast_t),
     .init = cast_init,
     .compute = cast_compute},
};
RN_KERNEL_FAMILY(cpu_cast, rows);
