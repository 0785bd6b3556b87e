// Elementwise ops with broadcasting: each is a program of one operation.
#include "kernels/cpu/math/operands.h"
#include "kernels/cpu/math/select.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/loops.h"

typedef struct cuda_elementwise_t {
  rn_scalar_code_t code;
  bool has_number;           // the last operand is an attribute
  bool allows_other_shapes;  // Equal and NotEqual: shapes that do not fit give one answer
  float number;
} cuda_elementwise_t;

static rn_status_t elementwise_init(const rn_kernel_init_t* init, void* state) {
  cuda_elementwise_t* op = state;
  op->code = rn_scalar_find(init->op->name);
  if (op->code == RN_SCALAR_COUNT)
    return rn_internal("The loop compiler does not know %s", init->op->name);
  if (rn_scalar_op(op->code)->result >= RN_SCALAR_GIVES_REAL)
    RN_RETURN_IF_ERROR(rn_check_complex_pair(init));
  op->has_number = rn_scalar_op(op->code)->operands > init->input_count;
  if (op->has_number)
    op->number = rn_init_float(
        init, rn_op_attr_index(init->op, RN_STR("alpha")) >= 0 ? "alpha" : "tolerance");
  if (op->code == RN_SCALAR_EQUAL || op->code == RN_SCALAR_NOT_EQUAL)
    op->allows_other_shapes = !rn_init_bool(init, "incompatible_shape_error");
  rn_cuda_rehearse(init, state);
  return RN_OK;
}

// The inputs that the output may overwrite: every element is read where it is written.
static uint64_t in_place(const rn_kernel_ctx_t* ctx, const rn_broadcast_t* broadcast) {
  const size_t size = rn_dtype_size(rn_dtype_base(ctx->kernel->output_types[0]));
  uint64_t candidates = 0;
  for (int k = 0; k < ctx->kernel->input_count; ++k)
    if ((broadcast->contiguous >> k & 1) && rn_dtype_size(rn_in(ctx, k)->dtype) == size)
      candidates |= UINT64_C(1) << k;
  return candidates;
}

// Computes output 0 over |broadcast|.
static rn_status_t run(rn_kernel_ctx_t* ctx, const rn_broadcast_t* broadcast) {
  const cuda_elementwise_t* op = ctx->state;
  const int count = ctx->kernel->input_count;
  if (broadcast->rank > RN_JIT_MAX_RANK)
    return rn_unimplemented("Broadcasting over %d dimensions on a GPU", broadcast->rank);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output_in_place(ctx, 0, in_place(ctx, broadcast), rn_broadcast_shape(broadcast), &out));
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operands[RN_BROADCAST_OPERANDS];
  int values[RN_JIT_MAX_OPERANDS] = {-1, -1, -1, -1};
  rn_jit_begin(&program, broadcast->rank, 0);
  for (int k = 0; k < count; ++k) {
    const rn_tensor_t* tensor = rn_in(ctx, k);
    rn_jit_access_t access = rn_cuda_operand(broadcast, tensor, k, &operands[k]);
    values[k] = rn_jit_input(&program, tensor->dtype, access, RN_JIT_FULL);
  }
  if (op->has_number) values[count] = rn_jit_constant(&program, rn_in(ctx, 0)->dtype, op->number);
  rn_jit_output(&program, rn_jit_op(&program, op->code, values), out->dtype);
  rn_jit_sizes_t sizes = {.count = out->count};
  for (int d = 0; d < broadcast->rank; ++d) sizes.dims[d] = broadcast->dims[d];
  return rn_cuda_run(ctx, &program, &sizes, operands, &out);
}

// Shapes that do not fit are not equal.
static rn_status_t answer(rn_kernel_ctx_t* ctx, bool differs) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_jit_program_t program;
  rn_jit_begin(&program, 0, 0);
  rn_jit_output(&program, rn_jit_constant(&program, RN_BOOL, differs), RN_BOOL);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = 1}, NULL, &out);
}

static rn_status_t elementwise(rn_kernel_ctx_t* ctx) {
  const cuda_elementwise_t* op = ctx->state;
  const int count = ctx->kernel->input_count;
  const rn_tensor_t* tensors[RN_BROADCAST_OPERANDS];
  for (int k = 0; k < count; ++k) tensors[k] = rn_in(ctx, k);
  rn_broadcast_t broadcast;
  if (rn_broadcast_make(tensors, count, &broadcast)) return run(ctx, &broadcast);
  if (op->allows_other_shapes) return answer(ctx, op->code == RN_SCALAR_NOT_EQUAL);
  return rn_broadcast_error(tensors[0], tensors[1]);
}

// All inputs have as many elements as the first, whose shape the result has.
static rn_status_t linear(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* first = rn_in(ctx, 0);
  rn_broadcast_t broadcast;
  (void)rn_broadcast_make(&first, 1, &broadcast);
  broadcast.contiguous = (1u << ctx->kernel->input_count) - 1;
  return run(ctx, &broadcast);
}

static rn_status_t of_one_count(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_one_count(ctx));
  return linear(ctx);
}

static rn_status_t of_one_shape(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_one_shape(ctx));
  return linear(ctx);
}

static rn_status_t approximate_equal(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_approximate_equal(ctx));
  return linear(ctx);
}

static rn_status_t clip(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_clip(ctx));
  return elementwise(ctx);
}

static rn_status_t betainc(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_check_betainc(ctx));
  return elementwise(ctx);
}

static rn_status_t select_v2(rn_kernel_ctx_t* ctx) {
  rn_broadcast_t broadcast;
  RN_RETURN_IF_ERROR(rn_select_broadcast(ctx, &broadcast));
  return run(ctx, &broadcast);
}

// Select: the condition has one element, one per row or one per element.
static rn_status_t select_v1(rn_kernel_ctx_t* ctx) {
  int64_t rows = 0;
  RN_RETURN_IF_ERROR(rn_select_check(ctx, &rows));
  if (rows < 0) return linear(ctx);
  const rn_tensor_t* yes = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, 6, rn_tensor_shape(yes), &out));
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operands[3] = {{.period = out->count / rows}};
  int values[RN_JIT_MAX_OPERANDS] = {-1, -1, -1, -1};
  rn_jit_begin(&program, 0, 0);
  for (int k = 0; k < 3; ++k) {
    operands[k].address = (uintptr_t)rn_in(ctx, k)->data;
    values[k] = rn_jit_input(&program, rn_in(ctx, k)->dtype,
                             k           ? RN_JIT_LINEAR
                             : rows == 1 ? RN_JIT_SCALAR
                                         : RN_JIT_COLUMN,
                             RN_JIT_FULL);
  }
  rn_jit_output(&program, rn_jit_op(&program, RN_SCALAR_SELECT, values), out->dtype);
  return rn_cuda_run(ctx, &program, &(rn_jit_sizes_t){.count = out->count}, operands, &out);
}

#define NUMBERS RN_TYPES_NUMBERS
#define REAL RN_TYPES_REAL
#define PRECISE (RN_T(FLOAT) | RN_T(DOUBLE))
#define COMPLEX RN_TYPES_COMPLEX
#define INEXACT (RN_TYPES_FLOATS | RN_TYPES_COMPLEX)
#define FLOATS RN_TYPES_FLOATS
#define WHOLE (RN_TYPES_INTS | RN_TYPES_UINTS)
#define EQUATED (RN_TYPES_NUMBERS | RN_T(BOOL))
#define NONE RN_T(BOOL)
#define X(name, set) CHECKED(name, set, elementwise)
#define CHECKED(name, set, function)                     \
  {.op = #name,                                          \
   .device = "GPU",                                      \
   .types = {{RN_T(BOOL) == (set) ? NULL : "T", (set)}}, \
   .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,      \
   .state_size = sizeof(cuda_elementwise_t),             \
   .init = elementwise_init,                             \
   .compute = function},
static const rn_kernel_def_t rows[] = {
#include "kernels/cuda/math/elementwise.def"
};
#undef X
RN_KERNEL_FAMILY(cuda_elementwise, rows);
