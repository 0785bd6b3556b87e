// Ops that update rows of a variable by index. As in stock, indices out of bounds are skipped and
// divisors of 0 are not looked for: both are in device memory.
#include "kernels/cuda/state/scatter.h"

#include "kernels/cpu/array/gather.h"
#include "kernels/cpu/math/scatter.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cuda/state/rows.h"
#include "kernels/cuda/state/scatter_args.h"

// Rows are moved in the largest units that their size and addresses allow.
static rn_status_t assign(rn_kernel_ctx_t* ctx, struct rn_scatter_args* args, size_t size) {
  int64_t bytes = args->rows.width * (int64_t)size;
  uint64_t all = (uint64_t)bytes | (uintptr_t)args->into | (uintptr_t)args->updates;
  int64_t unit = (int64_t)size;
  if (!args->is_scalar)
    for (unit = 16; all % (uint64_t)unit; unit /= 2) continue;
  static const char* const names[] = {"state/scatter/assign_1", "state/scatter/assign_2",
                                      "state/scatter/assign_4", "state/scatter/assign_8",
                                      "state/scatter/assign_16"};
  rn_cuda_rows_set_width(&args->rows, bytes / unit);
  return rn_cuda_each(ctx, names[__builtin_ctzll((uint64_t)unit)],
                      args->rows.count * args->rows.width, args, sizeof *args);
}

rn_status_t rn_cuda_scatter(rn_kernel_ctx_t* ctx, rn_combine_op_t op, const rn_tensor_t* indices,
                            int depth, const rn_tensor_t* updates, rn_tensor_t* into) {
  static const int32_t codes[] = {
      [RN_COMBINE_ADD] = RN_SCATTER_ADD, [RN_COMBINE_SUB] = RN_SCATTER_SUB,
      [RN_COMBINE_MUL] = RN_SCATTER_MUL, [RN_COMBINE_DIV] = RN_SCATTER_DIV,
      [RN_COMBINE_MIN] = RN_SCATTER_MIN, [RN_COMBINE_MAX] = RN_SCATTER_MAX};
  if (into->count == 0 || updates->count == 0) return RN_OK;
  rn_cuda_rows_t rows;
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, indices, depth, rn_tensor_shape(into), &rows));
  struct rn_scatter_args args = {.into = into->data,
                                 .updates = updates->data,
                                 .op = codes[op],
                                 .is_scalar = updates->rank == 0,
                                 .rows = rows.args};
  rn_status_t status =
      op == RN_COMBINE_ASSIGN
          ? assign(ctx, &args, rn_dtype_size(into->dtype))
          : rn_cuda_each(ctx, rn_cuda_name("state/scatter/combine", into->dtype).text,
                         rows.args.count * rows.args.width, &args, sizeof args);
  rn_tensor_clear(&rows.keys);
  return status;
}

static rn_status_t scatter_init(const rn_kernel_init_t* init, void* state) {
  *(rn_combine_op_t*)state = rn_scatter_op(init->op);
  return RN_OK;
}

static rn_status_t scatter_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *updates = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_scatter_check_locked(ctx, variable));
  if (indices->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  return rn_cuda_scatter(ctx, *(rn_combine_op_t*)ctx->state, indices, 1, updates, &variable->value);
}

static rn_status_t scatter(rn_kernel_ctx_t* ctx) { return rn_variable_update(ctx, scatter_locked); }

static rn_status_t scatter_nd_init(const rn_kernel_init_t* init, void* state) {
  rn_bad_index_t policy;
  *(rn_combine_op_t*)state = rn_scatter_op(init->op);
  return rn_bad_index_init(init, &policy);
}

static rn_status_t scatter_nd_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable) {
  const rn_tensor_t *indices = rn_in(ctx, 1), *updates = rn_in(ctx, 2);
  if (!rn_tensor_is_set(&variable->value)) return rn_variable_uninitialized(ctx, 0, variable);
  RN_RETURN_IF_ERROR(rn_scatter_nd_check(ctx, &variable->value));
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  return rn_cuda_scatter(ctx, *(rn_combine_op_t*)ctx->state, indices,
                         (int)rn_tensor_dim(indices, indices->rank - 1), updates, &variable->value);
}

static rn_status_t scatter_nd(rn_kernel_ctx_t* ctx) {
  return rn_variable_update(ctx, scatter_nd_locked);
}

#define ROW(name, attr, types_, init_, function)                                          \
  {                                                                                       \
    .op = name, .device = "GPU", .types = {{attr, types_}, {"Tindices", RN_TYPES_INDEX}}, \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_combine_op_t), .init = init_,     \
    .compute = function                                                                   \
  }
#define BOTH(ending, types_)                                 \
  ROW("Scatter" ending, "T", types_, scatter_init, scatter), \
      ROW("ResourceScatter" ending, "dtype", types_, scatter_init, scatter)
#define ND(ending, types_)                                           \
  ROW("ScatterNd" ending, "T", types_, scatter_nd_init, scatter_nd), \
      ROW("ResourceScatterNd" ending, "T", types_, scatter_nd_init, scatter_nd)
#define WITH_BOOL (RN_TYPES_NUMBERS | RN_T(BOOL))

static const rn_kernel_def_t rows[] = {
    BOTH("Update", WITH_BOOL),     BOTH("Add", RN_TYPES_NUMBERS), BOTH("Sub", RN_TYPES_NUMBERS),
    BOTH("Mul", RN_TYPES_NUMBERS), BOTH("Div", RN_TYPES_NUMBERS), BOTH("Min", RN_TYPES_REAL),
    BOTH("Max", RN_TYPES_REAL),    ND("Update", WITH_BOOL),       ND("Add", WITH_BOOL),
    ND("Sub", WITH_BOOL),          ND("Min", RN_TYPES_REAL),      ND("Max", RN_TYPES_REAL),
};
RN_KERNEL_FAMILY(cuda_scatter, rows);
