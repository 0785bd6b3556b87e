// The update ops of optimizers: dense and sparse, on references and on resources, from one table of
// rules.
//
// The role of each argument is derived once from the op's definition: references and resources are
// variables, "grad" and "delta" the gradient, "indices" its rows, and everything else is a number,
// in order. isa/training.c has the rules.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/training.h"
#include "kernels/cpu/row_batches.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

#define MAX_VARIABLES 4

typedef struct apply_t {
  rn_rule_t rule;
  int variable_count;
  int gradient;  // input index
  int indices;   // input index; -1 if dense
  int number_count;
  int numbers[RN_RULE_MAX_NUMBERS];  // input indices
  int flags;
} apply_t;

static const struct {
  const char* name;
  int variables;
} rules[] = {
#define RULE(name, variables) {#name, variables},
    RN_RULES(RULE)
#undef RULE
};

// "SparseApplyCenteredRMSProp" and related ops have the rule centered_rms_prop; each rule has its
// own init function.
static rn_status_t apply_init(const rn_kernel_init_t* init, void* state, rn_rule_t rule) {
  apply_t* apply = state;
  *apply = (apply_t){
      .rule = rule, .variable_count = rules[rule].variables, .gradient = -1, .indices = -1};
  for (int i = apply->variable_count; i < init->op->input_count; ++i) {
    rn_str_t name = rn_str(init->op->inputs[i].name);
    if (rn_str_is(name, "grad") || rn_str_is(name, "delta"))
      apply->gradient = i;
    else if (rn_str_is(name, "indices"))
      apply->indices = i;
    else if (apply->number_count < RN_RULE_MAX_NUMBERS)
      apply->numbers[apply->number_count++] = i;
  }
  if (apply->indices >= 0) apply->flags |= RN_RULE_SPARSE;
  if (rn_init_bool(init, "use_nesterov")) apply->flags |= RN_RULE_NESTEROV;
  if (rn_init_bool(init, "multiply_linear_by_lr")) apply->flags |= RN_RULE_MULTIPLY_LINEAR;
  bool has_update_slots = rn_op_attr_index(init->op, RN_STR("update_slots")) >= 0;
  if (!has_update_slots || rn_init_bool(init, "update_slots")) apply->flags |= RN_RULE_UPDATE_SLOTS;
  return RN_OK;
}

// The variables of one update, locked together in order of address.
typedef struct training_held_t {
  rn_variable_t* variables[MAX_VARIABLES];
  rn_variable_t* locked[MAX_VARIABLES];
  int locked_count;
} training_held_t;

static void release(training_held_t* held) {
  while (held->locked_count > 0) rn_mutex_unlock(&held->locked[--held->locked_count]->mutex);
}

static rn_status_t hold(rn_kernel_ctx_t* ctx, int count, training_held_t* held) {
  for (int i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_variable_of(ctx, i, &held->variables[i]));
  rn_variable_t* previous = NULL;
  for (int i = 0; i < count; ++i) {
    rn_variable_t* next = NULL;
    for (int k = 0; k < count; ++k)
      if (held->variables[k] > previous && (!next || held->variables[k] < next))
        next = held->variables[k];
    if (!next) break;
    rn_mutex_lock(&next->mutex);
    held->locked[held->locked_count++] = previous = next;
  }
  for (int i = 0; i < count; ++i) {
    if (!rn_in(ctx, i)->is_ref && !rn_tensor_is_set(&held->variables[i]->value))
      return rn_internal("Invalid variable reference.");
    RN_RETURN_IF_ERROR(rn_variable_make_writable_locked(ctx, i, held->variables[i]));
    if (held->variables[0]->value.dtype != held->variables[i]->value.dtype)
      return rn_invalid_argument(
          "var is %s, %s is %s", rn_dtype_name(held->variables[0]->value.dtype),
          ctx->kernel->op->inputs[i].name, rn_dtype_name(held->variables[i]->value.dtype));
    if (!rn_tensor_same_shape(&held->variables[0]->value, &held->variables[i]->value))
      return rn_invalid_argument("var and %s do not have the same shape",
                                 ctx->kernel->op->inputs[i].name);
  }
  return RN_OK;
}

// The ranges that stock requires of the numbers of sparse Ftrl and proximal Adagrad. A non-scalar
// counts as NaN, which is in no range.
static rn_status_t check_range(const rn_kernel_ctx_t* ctx, const apply_t* apply, int input,
                               double value) {
  const bool is_ftrl = (apply->flags & RN_RULE_SPARSE) &&
                       (apply->rule == RN_RULE_ftrl || apply->rule == RN_RULE_ftrl_v2);
  if (!is_ftrl && apply->rule != RN_RULE_proximal_adagrad) return RN_OK;
  const rn_str_t name = rn_str(ctx->kernel->op->inputs[input].name);
  const rn_tensor_t* number = rn_in(ctx, input);
  if (rn_str_is(name, "lr")) {
    if (value > 0 || (value == 0 && (apply->flags & RN_RULE_MULTIPLY_LINEAR))) return RN_OK;
    return rn_invalid_argument("lr is not a positive scalar%s: %s",
                               is_ftrl ? " (or zero if multiply_linear_by_lr is set)" : "",
                               rn_text_of(number).text);
  }
  if (rn_str_is(name, "lr_power"))
    return value <= 0 ? RN_OK
                      : rn_invalid_argument("lr_power is not a non-positive scalar: %s",
                                            rn_text_of(number).text);
  if (value >= 0) return RN_OK;
  return rn_invalid_argument("%s regularization strength is not a non-negative scalar: %s",
                             rn_str_is(name, "l2_shrinkage") ? "l2 shrinkage"
                             : rn_str_is(name, "l1")         ? "l1"
                                                             : "l2",
                             rn_text_of(number).text);
}

// The op's numbers in the types in which the rules compute.
typedef struct training_numbers_t {
  float f32[RN_RULE_MAX_NUMBERS];
  double f64[RN_RULE_MAX_NUMBERS];
  float _Complex c64[RN_RULE_MAX_NUMBERS];
  double _Complex c128[RN_RULE_MAX_NUMBERS];
} training_numbers_t;

static rn_status_t read_numbers(const rn_kernel_ctx_t* ctx, const apply_t* apply,
                                training_numbers_t* numbers) {
  float* f32 = numbers->f32;
  double* f64 = numbers->f64;
  for (int i = 0; i < apply->number_count; ++i) {
    const rn_tensor_t* number = rn_in(ctx, apply->numbers[i]);
    if (number->count != 1 || number->rank != 0) {
      RN_RETURN_IF_ERROR(check_range(ctx, apply, apply->numbers[i], NAN));
      return rn_invalid_argument(
          "%s is not a %s: %s", ctx->kernel->op->inputs[apply->numbers[i]].name,
          strstr(ctx->kernel->op->name, "RMSProp") ? "scalar " : "scalar", rn_text_of(number).text);
    }
    const rn_vector_table_t* table = rn_vector_table();
    switch (number->dtype) {
      case RN_DOUBLE:
        f64[i] = *RN_DATA(number, double);
        f32[i] = (float)f64[i];
        break;
      case RN_INT64:
        f64[i] = (double)*RN_DATA(number, int64_t);
        f32[i] = (float)f64[i];
        break;
      case RN_HALF:
        table->widen_half(RN_DATA(number, uint16_t), &f32[i], 1);
        f64[i] = f32[i];
        break;
      case RN_BFLOAT16:
        table->widen_bfloat16(RN_DATA(number, uint16_t), &f32[i], 1);
        f64[i] = f32[i];
        break;
      case RN_COMPLEX64:
        numbers->c64[i] = *RN_DATA(number, float _Complex);
        break;
      case RN_COMPLEX128:
        numbers->c128[i] = *RN_DATA(number, double _Complex);
        break;
      default:
        f32[i] = *RN_DATA(number, float);
        f64[i] = f32[i];
        break;
    }
    RN_RETURN_IF_ERROR(check_range(ctx, apply, apply->numbers[i], f64[i]));
  }
  return RN_OK;
}

typedef struct training_job_t {
  const apply_t* apply;
  rn_dtype_t dtype;
  size_t item;
  char* variables[MAX_VARIABLES];
  const char* gradient;
  int64_t width;  // of a row
  training_numbers_t numbers;
} training_job_t;

// Converts 16-bit floats to float, block by block, and rounds once.
static void run_narrow(const training_job_t* job, const size_t at, size_t gradient_at, int64_t n) {
  const rn_vector_table_t* table = rn_vector_table();
  bool is_half = job->dtype == RN_HALF;
  rn_widen_fn_t widen = is_half ? table->widen_half : table->widen_bfloat16;
  rn_narrow_fn_t narrow = is_half ? table->narrow_half : table->narrow_bfloat16;
  float wide[MAX_VARIABLES][256], gradient[256];
  void* v[MAX_VARIABLES];
  for (int64_t start = 0; start < n; start += 256) {
    int64_t count = n - start < 256 ? n - start : 256;
    for (int i = 0; i < job->apply->variable_count; ++i) {
      widen((const uint16_t*)job->variables[i] + at + (size_t)start, wide[i], count);
      v[i] = wide[i];
    }
    widen((const uint16_t*)job->gradient + gradient_at + (size_t)start, gradient, count);
    RN_ISA_PICK(rn_rule_table_)
        .f32[job->apply->rule](v, gradient, job->numbers.f32, job->apply->flags, count);
    for (int i = 0; i < job->apply->variable_count; ++i)
      narrow(wide[i], (uint16_t*)job->variables[i] + at + (size_t)start, count);
  }
}

// Updates |n| elements from element |at| of the variables, with the gradient from element
// |gradient_at|.
static void run_rule(const training_job_t* job, int64_t at, int64_t gradient_at, int64_t n) {
  if (job->dtype == RN_HALF || job->dtype == RN_BFLOAT16) {
    run_narrow(job, (size_t)at, (size_t)gradient_at, n);
    return;
  }
  void* v[MAX_VARIABLES];
  for (int i = 0; i < job->apply->variable_count; ++i)
    v[i] = job->variables[i] + (size_t)at * job->item;
  const void* gradient = job->gradient + (size_t)gradient_at * job->item;
  rn_rule_t rule = job->apply->rule;
  const training_numbers_t* numbers = &job->numbers;
  switch (job->dtype) {
    case RN_DOUBLE:
      RN_ISA_PICK(rn_rule_table_).f64[rule](v, gradient, numbers->f64, job->apply->flags, n);
      break;
    case RN_COMPLEX64:
      RN_ISA_PICK(rn_rule_table_).c64[rule](v, gradient, numbers->c64, job->apply->flags, n);
      break;
    case RN_COMPLEX128:
      RN_ISA_PICK(rn_rule_table_).c128[rule](v, gradient, numbers->c128, job->apply->flags, n);
      break;
    default:
      RN_ISA_PICK(rn_rule_table_).f32[rule](v, gradient, numbers->f32, job->apply->flags, n);
      break;
  }
}

static void dense_piece(void* arg, int64_t begin, int64_t end) {
  run_rule(arg, begin, begin, end - begin);
}

static rn_status_t apply_dense(rn_kernel_ctx_t* ctx, const rn_tensor_t* var, training_job_t* job) {
  const rn_tensor_t* gradient = rn_in(ctx, job->apply->gradient);
  if (!rn_tensor_same_shape(var, gradient))
    return rn_invalid_argument("var and %s do not have the same shape%s %s",
                               ctx->kernel->op->inputs[job->apply->gradient].name,
                               rn_text_of(var).text, rn_text_of(gradient).text);
  rn_pool_for(rn_ctx_pool(ctx), var->count, 32768, dense_piece, job);
  return RN_OK;
}

static int64_t index_at(const rn_tensor_t* indices, int64_t i) {
  return indices->dtype == RN_INT32 ? RN_DATA(indices, int32_t)[i] : RN_DATA(indices, int64_t)[i];
}

static void update_rows(void* arg, const int64_t* rows, const int64_t* places, int count) {
  const training_job_t* job = arg;
  size_t size = (size_t)job->width * job->item;
  for (int i = 0; i < count; ++i)
    for (int v = 0; v < job->apply->variable_count; ++v)
      rn_row_prefetch(job->variables[v] + (size_t)rows[i] * size, size);
  for (int i = 0; i < count; ++i)
    run_rule(job, rows[i] * job->width, places[i] * job->width, job->width);
}

// Nanoseconds per element of a rule: most have a square root or a division.
#define ELEMENT_NS 0.5

// Whether empty rows are an error, as in stock for some rules.
static bool needs_columns(rn_rule_t rule) {
  return rule == RN_RULE_adagrad || rule == RN_RULE_adagrad_v2 || rule == RN_RULE_adagrad_da ||
         rule == RN_RULE_ftrl || rule == RN_RULE_ftrl_v2 ||
         rule == RN_RULE_proximal_gradient_descent || rule == RN_RULE_proximal_adagrad;
}

// A row may occur twice; then it is updated twice, in order.
static rn_status_t apply_sparse(rn_kernel_ctx_t* ctx, const rn_tensor_t* var, training_job_t* job) {
  const rn_tensor_t* gradient = rn_in(ctx, job->apply->gradient);
  const rn_tensor_t* indices = rn_in(ctx, job->apply->indices);
  if (var->rank < 1) return rn_invalid_argument("var must be at least 1 dimensional");
  if (indices->rank != 1) return rn_invalid_argument("indices must be one-dimensional");
  if (gradient->rank != var->rank || rn_tensor_dim(gradient, 0) != indices->count)
    return rn_invalid_argument("grad must be the same size as indices in the first dimension.");
  for (int d = 1; d < var->rank; ++d)
    if (rn_tensor_dim(var, d) != rn_tensor_dim(gradient, d))
      return rn_invalid_argument("var and grad must match in dimension %d", d);
  if (needs_columns(job->apply->rule) &&
      rn_dims_product(rn_tensor_dims(gradient), 1, gradient->rank) == 0)
    return rn_invalid_argument("Inner dimension should be greater than zero.");
  int64_t rows = rn_tensor_dim(var, 0);
  job->width = rows ? var->count / rows : 0;
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t row = index_at(indices, i);
    if (row >= 0 && row < rows) continue;
    if (strstr(ctx->kernel->op->name, "KerasMomentum"))
      return rn_invalid_argument("indices[%lld] = %lld is not in [0, %lld)", (long long)i,
                                 (long long)row, (long long)rows);
    return rn_invalid_argument("Index %lld at offset %lld in indices is out of range",
                               (long long)row, (long long)i);
  }
  rn_row_batches(rn_ctx_pool(ctx), indices, rows, 10 + ELEMENT_NS * (double)job->width, update_rows,
                 job);
  return RN_OK;
}

static rn_status_t apply_compute(rn_kernel_ctx_t* ctx) {
  const apply_t* apply = ctx->state;
  training_job_t job = {.apply = apply};
  RN_RETURN_IF_ERROR(read_numbers(ctx, apply, &job.numbers));
  training_held_t held = {0};
  rn_status_t status = hold(ctx, apply->variable_count, &held);
  if (rn_ok(status)) {
    const rn_tensor_t* var = &held.variables[0]->value;
    job.dtype = var->dtype;
    job.item = rn_dtype_size(var->dtype);
    job.gradient = rn_in(ctx, apply->gradient)->data;
    for (int i = 0; i < apply->variable_count; ++i)
      job.variables[i] = held.variables[i]->value.data;
    if (rn_in(ctx, apply->gradient)->dtype != var->dtype)
      status = rn_invalid_argument("var is %s, grad is %s", rn_dtype_name(var->dtype),
                                   rn_dtype_name(rn_in(ctx, apply->gradient)->dtype));
    else
      status = apply->indices < 0 ? apply_dense(ctx, var, &job) : apply_sparse(ctx, var, &job);
  }
  release(&held);
  RN_RETURN_IF_ERROR(status);
  rn_variable_pass_on(ctx);
  return RN_OK;
}

#define INIT(name, variables)                                                 \
  static rn_status_t init_##name(const rn_kernel_init_t* init, void* state) { \
    return apply_init(init, state, RN_RULE_##name);                           \
  }
RN_RULES(INIT)

#define ROW_OF(op_, rule_, types_)                                                       \
  {                                                                                      \
    .op = op_, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(apply_t), \
    .init = init_##rule_, .compute = apply_compute                                       \
  }
#define ROW(op, rule) ROW_OF(op, rule, RN_TYPES_FLOATS)
// Includes complex types: only for rules in RN_COMPLEX_RULES.
#define WIDE_ROW(op, rule) ROW_OF(op, rule, RN_TYPES_FLOATS | RN_TYPES_COMPLEX)
#define SPARSE(name, rule) ROW("SparseApply" name, rule), ROW("ResourceSparseApply" name, rule)
#define DENSE(name, rule) ROW("Apply" name, rule), ROW("ResourceApply" name, rule)
#define WIDE_SPARSE(name, rule) \
  WIDE_ROW("SparseApply" name, rule), WIDE_ROW("ResourceSparseApply" name, rule)
#define WIDE(name, rule) WIDE_ROW("Apply" name, rule), WIDE_ROW("ResourceApply" name, rule)

static const rn_kernel_def_t rows[] = {
    WIDE("GradientDescent", gradient_descent),
    WIDE("Momentum", momentum),
    WIDE_SPARSE("Momentum", momentum),
    WIDE_ROW("ResourceApplyKerasMomentum", keras_momentum),
    WIDE_ROW("ResourceSparseApplyKerasMomentum", keras_momentum),
    WIDE("Adam", adam),
    ROW("ResourceApplyAdamWithAmsgrad", adam_amsgrad),
    DENSE("AdaMax", ada_max),
    WIDE("Adagrad", adagrad),
    WIDE_SPARSE("Adagrad", adagrad),
    WIDE("AdagradV2", adagrad_v2),
    WIDE_SPARSE("AdagradV2", adagrad_v2),
    DENSE("AdagradDA", adagrad_da),
    SPARSE("AdagradDA", adagrad_da),
    WIDE("Adadelta", adadelta),
    WIDE_SPARSE("Adadelta", adadelta),
    WIDE("RMSProp", rms_prop),
    WIDE_SPARSE("RMSProp", rms_prop),
    WIDE("CenteredRMSProp", centered_rms_prop),
    WIDE_SPARSE("CenteredRMSProp", centered_rms_prop),
    DENSE("Ftrl", ftrl),
    SPARSE("Ftrl", ftrl),
    DENSE("FtrlV2", ftrl_v2),
    SPARSE("FtrlV2", ftrl_v2),
    DENSE("AddSign", add_sign),
    DENSE("PowerSign", power_sign),
    DENSE("ProximalGradientDescent", proximal_gradient_descent),
    SPARSE("ProximalGradientDescent", proximal_gradient_descent),
    DENSE("ProximalAdagrad", proximal_adagrad),
    SPARSE("ProximalAdagrad", proximal_adagrad),
};
RN_KERNEL_FAMILY(cpu_training, rows);
