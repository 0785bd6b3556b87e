// Reductions over axes: sums, products, extremes, means, norms, all and any; and the places of
// extremes.
#include "kernels/cpu/math/axes.h"
#include "kernels/cuda/jit/shapes.h"
#include "kernels/cuda/loops.h"

typedef struct cuda_reduction_t {
  rn_jit_reduction_t kind;
  bool is_norm, keep_dims;
} cuda_reduction_t;

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* state) {
  static const struct {
    const char* name;
    rn_jit_reduction_t kind;
  } ops[] = {{"Sum", RN_JIT_SUM},          {"Mean", RN_JIT_MEAN},      {"Prod", RN_JIT_PROD},
             {"Max", RN_JIT_MAX},          {"Min", RN_JIT_MIN},        {"All", RN_JIT_ALL},
             {"Any", RN_JIT_ANY},          {"ArgMax", RN_JIT_ARG_MAX}, {"ArgMin", RN_JIT_ARG_MIN},
             {"EuclideanNorm", RN_JIT_SUM}};
  cuda_reduction_t* reduction = state;
  rn_str_t name = rn_str(init->op->name);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i)
    if (rn_str_is(name, ops[i].name)) reduction->kind = ops[i].kind;
  reduction->is_norm = rn_str_is(name, "EuclideanNorm");
  if (rn_op_attr_index(init->op, RN_STR("keep_dims")) >= 0)
    reduction->keep_dims = rn_init_bool(init, "keep_dims");
  return RN_OK;
}

// The square root of the sum of squares of |x|. That of integers is computed in double and cut off.
static int norm_of(rn_jit_program_t* program, int x, rn_dtype_t dtype) {
  if (rn_dtype_is_complex(dtype)) {
    int squares = rn_jit_op2(program, RN_SCALAR_MUL, x, rn_jit_op1(program, RN_SCALAR_CONJ, x));
    int sum = rn_jit_reduce(program, RN_JIT_SUM, squares);
    int root = rn_jit_op1(program, RN_SCALAR_SQRT, rn_jit_op1(program, RN_SCALAR_REAL_PART, sum));
    return rn_jit_cast(program, root, dtype);
  }
  int sum = rn_jit_reduce(program, RN_JIT_SUM, rn_jit_op1(program, RN_SCALAR_SQUARE, x));
  if (rn_dtype_is_integer(dtype)) sum = rn_jit_cast(program, sum, RN_DOUBLE);
  return rn_jit_cast(program, rn_jit_op1(program, RN_SCALAR_SQRT, sum), dtype);
}

// Reduces |input| over the axes that |goes| marks.
static rn_status_t run(rn_kernel_ctx_t* ctx, const rn_tensor_t* input, const bool* goes,
                       rn_tensor_t* out) {
  const cuda_reduction_t* reduction = ctx->state;
  rn_jit_view_t view;
  rn_jit_operand_t operand = {0};
  RN_RETURN_IF_ERROR(rn_jit_reduction(rn_tensor_shape(input), goes, &view, &operand));
  operand.address = (uintptr_t)input->data;
  rn_jit_program_t program;
  rn_jit_begin(&program, view.rank, 0);
  int x = rn_jit_input(&program, input->dtype, view.access[0], RN_JIT_FULL);
  if (reduction->kind >= RN_JIT_ARG_MAX && input->dtype == RN_BOOL)
    x = rn_jit_cast(&program, x, RN_UINT8);
  int result = reduction->is_norm ? norm_of(&program, x, input->dtype)
                                  : rn_jit_reduce(&program, reduction->kind, x);
  rn_jit_output(&program, result, out->dtype);
  return rn_cuda_run(ctx, &program, &view.sizes, &operand, &out);
}

static rn_status_t reduce(rn_kernel_ctx_t* ctx) {
  const cuda_reduction_t* reduction = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  bool goes[RN_MAX_RANK];
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(rn_read_axes(input, rn_in(ctx, 1), goes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, rn_reduced_shape(input, goes, reduction->keep_dims, dims), &out));
  return out->count ? run(ctx, input, goes, out) : RN_OK;
}

static rn_status_t arg_extreme(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  bool goes[RN_MAX_RANK] = {false};
  int64_t dims[RN_MAX_RANK];
  int axis = 0;
  RN_RETURN_IF_ERROR(rn_read_arg_axis(input, rn_in(ctx, 1), &axis));
  goes[axis] = true;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_reduced_shape(input, goes, false, dims), &out));
  return out->count ? run(ctx, input, goes, out) : RN_OK;
}

#define ROW(name, set, axes, function)                                               \
  {                                                                                  \
    .op = name, .device = "GPU", .types = {{set ? "T" : NULL, set}},                 \
    .host_args = RN_HOST_ARGS(axes), .flags = RN_KERNEL_REPLAYS,                     \
    .state_size = sizeof(cuda_reduction_t), .init = reduce_init, .compute = function \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Sum", RN_TYPES_NUMBERS, "reduction_indices", reduce),
    ROW("Mean", RN_TYPES_NUMBERS, "reduction_indices", reduce),
    ROW("Prod", RN_TYPES_NUMBERS, "reduction_indices", reduce),
    ROW("Max", RN_TYPES_REAL, "reduction_indices", reduce),
    ROW("Min", RN_TYPES_REAL, "reduction_indices", reduce),
    ROW("EuclideanNorm", RN_TYPES_NUMBERS, "reduction_indices", reduce),
    ROW("All", 0, "reduction_indices", reduce),
    ROW("Any", 0, "reduction_indices", reduce),
    ROW("ArgMax", RN_TYPES_REAL | RN_T(BOOL), "dimension", arg_extreme),
    ROW("ArgMin", RN_TYPES_REAL | RN_T(BOOL), "dimension", arg_extreme),
};
RN_KERNEL_FAMILY(cuda_reduce, rows);
