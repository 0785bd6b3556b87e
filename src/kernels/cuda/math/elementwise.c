// Elementwise ops with broadcasting: each is a program of one operation.
#include "kernels/cpu/array.h"
#include "kernels/cuda/loops.h"

typedef struct cuda_elementwise_t {
  rn_scalar_code_t code;
  bool has_number;  // the last operand is an attribute
  float number;
} cuda_elementwise_t;

static rn_status_t elementwise_init(const rn_kernel_init_t* init, void* state) {
  cuda_elementwise_t* op = state;
  op->code = rn_scalar_find(init->op->name);
  if (op->code == RN_SCALAR_COUNT)
    return rn_internal("The loop compiler does not know %s", init->op->name);
  op->has_number = rn_scalar_op(op->code)->operands > init->input_count;
  if (!op->has_number) return RN_OK;
  op->number =
      rn_init_float(init, rn_op_attr_index(init->op, RN_STR("alpha")) >= 0 ? "alpha" : "tolerance");
  return RN_OK;
}

static rn_status_t incompatible(const rn_tensor_t* a, const rn_tensor_t* b) {
  return rn_invalid_argument("Incompatible shapes: %s vs. %s", rn_text_of(a).text,
                             rn_text_of(b).text);
}

static rn_status_t elementwise(rn_kernel_ctx_t* ctx) {
  const cuda_elementwise_t* op = ctx->state;
  const int count = ctx->kernel->input_count;
  const rn_tensor_t* tensors[RN_BROADCAST_OPERANDS];
  for (int k = 0; k < count; ++k) tensors[k] = rn_in(ctx, k);
  rn_broadcast_t broadcast;
  if (!rn_broadcast_make(tensors, count, &broadcast)) return incompatible(tensors[0], tensors[1]);
  if (broadcast.rank > RN_JIT_MAX_RANK)
    return rn_unimplemented("Broadcasting over %d dimensions on a GPU", broadcast.rank);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output_in_place(ctx, 0, (UINT64_C(1) << count) - 1, rn_broadcast_shape(&broadcast), &out));
  if (out->count == 0) return RN_OK;
  rn_jit_program_t program;
  rn_jit_operand_t operands[RN_BROADCAST_OPERANDS];
  int values[RN_JIT_MAX_OPERANDS] = {-1, -1, -1, -1};
  rn_jit_begin(&program, broadcast.rank, 0);
  for (int k = 0; k < count; ++k) {
    rn_jit_access_t access = rn_cuda_operand(&broadcast, tensors[k], k, &operands[k]);
    values[k] = rn_jit_input(&program, tensors[k]->dtype, access, RN_JIT_FULL);
  }
  if (op->has_number) values[count] = rn_jit_constant(&program, tensors[0]->dtype, op->number);
  rn_jit_output(&program, rn_jit_op(&program, op->code, values), out->dtype);
  rn_jit_sizes_t sizes = {.count = out->count};
  for (int d = 0; d < broadcast.rank; ++d) sizes.dims[d] = broadcast.dims[d];
  return rn_cuda_run(ctx, &program, &sizes, operands, &out);
}

#define NUMBERS RN_TYPES_NUMBERS
#define REAL RN_TYPES_REAL
#define INEXACT (RN_TYPES_FLOATS | RN_TYPES_COMPLEX)
#define FLOATS RN_TYPES_FLOATS
#define WHOLE (RN_TYPES_INTS | RN_TYPES_UINTS)
#define EQUATED (RN_TYPES_NUMBERS | RN_T(BOOL))
#define NONE RN_T(BOOL)
#define X(name, set)                                     \
  {.op = #name,                                          \
   .device = "GPU",                                      \
   .types = {{RN_T(BOOL) == (set) ? NULL : "T", (set)}}, \
   .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,      \
   .state_size = sizeof(cuda_elementwise_t),             \
   .init = elementwise_init,                             \
   .compute = elementwise},
static const rn_kernel_def_t rows[] = {
#include "kernels/cuda/math/elementwise.def"
};
#undef X
RN_KERNEL_FAMILY(cuda_elementwise, rows);
