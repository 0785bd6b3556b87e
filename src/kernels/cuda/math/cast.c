// Cast.
#include "kernels/cuda/math/cast.h"

#include "kernels/cuda/ahead.h"
#include "kernels/cuda/loops.h"

typedef struct cuda_cast_t {
  int cut_bits;  // low bits of a float source that Truncate clears first; 0 to round
} cuda_cast_t;

static int bits_to_cut(rn_dtype_t source, rn_dtype_t target) {
  if (source == RN_FLOAT) return target == RN_HALF ? 13 : target == RN_BFLOAT16 ? 16 : 0;
  if (source == RN_DOUBLE) return target == RN_HALF ? 42 : target == RN_FLOAT ? 29 : 0;
  return 0;
}

static rn_status_t cast_init(const rn_kernel_init_t* init, void* state) {
  cuda_cast_t* cast = state;
  if (rn_init_bool(init, "Truncate"))
    cast->cut_bits = bits_to_cut(rn_dtype_base(init->input_types[0]), init->output_types[0]);
  if (!cast->cut_bits) rn_cuda_rehearse(init, state);
  return RN_OK;
}

rn_status_t rn_cuda_convert(rn_kernel_ctx_t* ctx, const void* address, rn_dtype_t source,
                            rn_tensor_t* out) {
  rn_jit_program_t program;
  rn_jit_operand_t operand = {.address = (uintptr_t)address};
  rn_jit_begin(&program, 0, 0);
  rn_jit_output(&program, rn_jit_input(&program, source, RN_JIT_LINEAR, RN_JIT_FULL), out->dtype);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = out->count}, &operand, &out);
}

// Clears the low |bits| of the floats of |input|, except infinities and NaN.
static rn_status_t cut(rn_kernel_ctx_t* ctx, const rn_tensor_t* input, int bits, rn_tensor_t* out) {
  const bool is_float = input->dtype == RN_FLOAT;
  const rn_dtype_t whole = is_float ? RN_UINT32 : RN_UINT64;
  RN_RETURN_IF_ERROR(rn_temp(ctx, whole, rn_tensor_shape(input), out));
  rn_jit_program_t program, *p = &program;
  rn_jit_operand_t operand = {.address = (uintptr_t)input->data};
  rn_jit_begin(p, 0, 0);
  int x = rn_jit_input(p, whole, RN_JIT_LINEAR, RN_JIT_FULL);
  int shift = rn_jit_constant(p, whole, bits), one = rn_jit_constant(p, whole, 1);
  int mantissa = rn_jit_constant(p, whole, is_float ? 24 : 53);
  int cleared =
      rn_jit_op2(p, RN_SCALAR_LEFT_SHIFT, rn_jit_op2(p, RN_SCALAR_RIGHT_SHIFT, x, shift), shift);
  int exponent =
      rn_jit_op2(p, RN_SCALAR_RIGHT_SHIFT, rn_jit_op2(p, RN_SCALAR_LEFT_SHIFT, x, one), mantissa);
  int is_special =
      rn_jit_op2(p, RN_SCALAR_EQUAL, exponent, rn_jit_constant(p, whole, is_float ? 0xff : 0x7ff));
  rn_jit_output(p, rn_jit_op3(p, RN_SCALAR_SELECT, is_special, x, cleared), whole);
  return rn_cuda_run(ctx, p, &(rn_jit_sizes_t){.count = out->count}, &operand, &out);
}

static rn_status_t cast(rn_kernel_ctx_t* ctx) {
  const cuda_cast_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  rn_dtype_t target = rn_dtype_base(ctx->kernel->output_types[0]);
  bool fits = rn_dtype_size(target) == rn_dtype_size(input->dtype);
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, fits, rn_tensor_shape(input), &out));
  if (out->count == 0 || (out->data == input->data && target == input->dtype)) return RN_OK;
  if (!state->cut_bits) return rn_cuda_convert(ctx, input->data, input->dtype, out);
  rn_status_t status = cut(ctx, input, state->cut_bits, &temp);
  if (rn_ok(status)) status = rn_cuda_convert(ctx, temp.data, input->dtype, out);
  rn_tensor_clear(&temp);
  return status;
}

#define TYPES (RN_TYPES_NUMBERS | RN_T(BOOL))

static const rn_kernel_def_t rows[] = {
    {.op = "Cast",
     .device = "GPU",
     .types = {{"SrcT", TYPES}, {"DstT", TYPES}},
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,
     .state_size = sizeof(cuda_cast_t),
     .init = cast_init,
     .compute = cast},
};
RN_KERNEL_FAMILY(cuda_cast, rows);
