// The update ops of optimizers on a GPU, with the roles and checks of kernels/cpu/training/apply.h.
//
// The numbers (learning rates and so on) stay on the device, so their ranges are not checked, and
// rows out of bounds are skipped, both as in stock.
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cpu/training/apply.h"
#include "kernels/cuda/state/rows.h"
#include "kernels/cuda/training/updates.h"

static const char* const row_rule_names[] = {
#define RULE(name, variables) "training/training/rows_" #name,
    RN_RULES(RULE)
#undef RULE
};

static rn_status_t apply_dense(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                               rn_variable_t* const* variables, rn_cuda_updates_t* updates) {
  RN_RETURN_IF_ERROR(rn_cuda_updates_add(ctx, updates, variables, rn_in(ctx, apply->gradient)));
  return rn_cuda_updates_issue(ctx, updates);
}

static rn_status_t apply_sparse(rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                rn_variable_t* const* variables, const rn_cuda_updates_t* updates) {
  const rn_tensor_t *indices = rn_in(ctx, apply->indices), *var = &variables[0]->value;
  if (var->count == 0 || indices->count == 0) return RN_OK;
  struct rn_training_args args = {.flags = apply->flags,
                                  .integer = updates->args.integer,
                                  .gradient = rn_in(ctx, apply->gradient)->data};
  memcpy(args.numbers, updates->args.numbers, sizeof args.numbers);
  for (int k = 0; k < apply->variable_count; ++k) args.variables[k] = variables[k]->value.data;
  rn_cuda_rows_t rows;
  RN_RETURN_IF_ERROR(rn_cuda_rows(ctx, indices, 1, rn_tensor_shape(var), &rows));
  args.rows = rows.args;
  rn_status_t status = rn_cuda_each(ctx, rn_cuda_name(row_rule_names[apply->rule], var->dtype).text,
                                    rows.args.count * rows.args.width, &args, sizeof args);
  rn_tensor_clear(&rows.keys);
  return status;
}

static rn_status_t apply_compute(rn_kernel_ctx_t* ctx) {
  const rn_apply_t* apply = ctx->state;
  rn_cuda_updates_t updates;
  RN_RETURN_IF_ERROR(rn_cuda_updates_begin(ctx, apply, &updates));
  rn_apply_held_t held = {0};
  rn_status_t status = rn_apply_hold(ctx, apply, &held);
  if (rn_ok(status))
    status = apply->indices < 0 ? apply_dense(ctx, apply, held.variables, &updates)
                                : apply_sparse(ctx, apply, held.variables, &updates);
  rn_apply_release(&held);
  RN_RETURN_IF_ERROR(status);
  rn_variable_pass_on(ctx);
  return RN_OK;
}

#define ROW_OF(op_, rule_, types_)                                                            \
  {                                                                                           \
    .op = op_, .device = "GPU", .types = {{"T", types_}}, .flags = RN_KERNEL_REPLAYS,         \
    .state_size = sizeof(rn_apply_t), .init = rn_apply_init_##rule_, .compute = apply_compute \
  }
#define ROW(op, rule) ROW_OF(op, rule, RN_TYPES_FLOATS)
#define WIDE_ROW(op, rule) ROW_OF(op, rule, RN_TYPES_FLOATS | RN_TYPES_COMPLEX)
#define SPARSE(name, rule) ROW("SparseApply" name, rule), ROW("ResourceSparseApply" name, rule)
#define DENSE(name, rule) ROW("Apply" name, rule), ROW("ResourceApply" name, rule)
#define WIDE(name, rule) WIDE_ROW("Apply" name, rule), WIDE_ROW("ResourceApply" name, rule)

// The ops that stock has on GPUs.
static const rn_kernel_def_t rows[] = {
    WIDE("GradientDescent", gradient_descent),
    WIDE("Momentum", momentum),
    WIDE_ROW("ResourceApplyKerasMomentum", keras_momentum),
    ROW("ResourceSparseApplyKerasMomentum", keras_momentum),
    WIDE("Adam", adam),
    ROW("ResourceApplyAdamWithAmsgrad", adam_amsgrad),
    DENSE("AdaMax", ada_max),
    WIDE("Adagrad", adagrad),
    SPARSE("Adagrad", adagrad),
    WIDE("AdagradV2", adagrad_v2),
    SPARSE("AdagradV2", adagrad_v2),
    DENSE("AdagradDA", adagrad_da),
    WIDE("Adadelta", adadelta),
    SPARSE("Adadelta", adadelta),
    WIDE("RMSProp", rms_prop),
    WIDE("CenteredRMSProp", centered_rms_prop),
    DENSE("Ftrl", ftrl),
    SPARSE("Ftrl", ftrl),
    DENSE("FtrlV2", ftrl_v2),
    SPARSE("FtrlV2", ftrl_v2),
    DENSE("AddSign", add_sign),
    DENSE("PowerSign", power_sign),
    DENSE("ProximalGradientDescent", proximal_gradient_descent),
    DENSE("ProximalAdagrad", proximal_adagrad),
    SPARSE("ProximalAdagrad", proximal_adagrad),
};
RN_KERNEL_FAMILY(cuda_training, rows);

const rn_kernel_def_t* rn_cuda_update_row(rn_str_t name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    if (rn_str_is(name, rows[i].op)) return &rows[i];
  return NULL;
}
