// CountUpTo: reads and increments a variable until it reaches a limit.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

static rn_status_t count_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "limit");
  return RN_OK;
}

static rn_status_t count_locked(rn_kernel_ctx_t* ctx, rn_variable_t* variable, int64_t* out) {
  int64_t limit = *(const int64_t*)ctx->state;
  if (!rn_tensor_is_set(&variable->value)) return rn_variable_uninitialized(ctx, 0, variable);
  if (variable->value.rank != 0)
    return rn_invalid_argument("input is not a scalar: %s", rn_text_of(&variable->value).text);
  if (variable->value.dtype != rn_dtype_base(ctx->kernel->output_types[0]))
    return rn_invalid_argument("The variable is of type %s, not %s",
                               rn_dtype_name(variable->value.dtype),
                               rn_dtype_name(ctx->kernel->output_types[0]));
  *out = rn_int_at(&variable->value, 0);
  if (*out >= limit) return rn_out_of_range("Reached limit of %" PRId64, limit);
  RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, 0, variable));
  rn_int_set(&variable->value, 0, *out + 1);
  return RN_OK;
}

static rn_status_t count_compute(rn_kernel_ctx_t* ctx) {
  rn_variable_t* variable = NULL;
  int64_t before = 0;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status = count_locked(ctx, variable, &before);
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  rn_int_set(out, 0, before);
  return RN_OK;
}

#define ROW(op_)                                                                                 \
  {                                                                                              \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_INDEX}}, .state_size = sizeof(int64_t), \
    .init = count_init, .compute = count_compute                                                 \
  }
static const rn_kernel_def_t rows[] = {ROW("CountUpTo"), ROW("ResourceCountUpTo")};
RN_KERNEL_FAMILY(cpu_count_up_to, rows);
