// The update ops of optimizers: dense and sparse, on references and on resources, from one table of
// rules. apply.h has the roles of the arguments and the checks; isa/training.c has the rules.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/row_batches.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cpu/training/apply.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// The op's numbers in the types in which the rules compute.
typedef struct training_numbers_t {
  float f32[RN_RULE_MAX_NUMBERS];
  double f64[RN_RULE_MAX_NUMBERS];
  float _Complex c64[RN_RULE_MAX_NUMBERS];
  double _Complex c128[RN_RULE_MAX_NUMBERS];
} training_numbers_t;

static rn_status_t read_numbers(const rn_kernel_ctx_t* ctx, const rn_apply_t* apply,
                                training_numbers_t* numbers) {
  float* f32 = numbers->f32;
  double* f64 = numbers->f64;
  for (int i = 0; i < apply->number_count; ++i) {
    const rn_tensor_t* number = rn_in(ctx, apply->numbers[i]);
    RN_RETURN_IF_ERROR(rn_apply_check_number(ctx, apply, apply->numbers[i]));
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
    RN_RETURN_IF_ERROR(rn_apply_check_range(ctx, apply, apply->numbers[i], f64[i]));
  }
  return RN_OK;
}

typedef struct training_job_t {
  const rn_apply_t* apply;
  rn_dtype_t dtype;
  size_t item;
  char* variables[RN_APPLY_MAX_VARIABLES];
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
  float wide[RN_APPLY_MAX_VARIABLES][256], gradient[256];
  void* v[RN_APPLY_MAX_VARIABLES];
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
  void* v[RN_APPLY_MAX_VARIABLES];
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

// A row may occur twice; then it is updated twice, in order.
static rn_status_t apply_sparse(rn_kernel_ctx_t* ctx, const rn_tensor_t* var, training_job_t* job) {
  const rn_tensor_t* indices = rn_in(ctx, job->apply->indices);
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
  const rn_apply_t* apply = ctx->state;
  training_job_t job = {.apply = apply};
  RN_RETURN_IF_ERROR(read_numbers(ctx, apply, &job.numbers));
  rn_apply_held_t held = {0};
  rn_status_t status = rn_apply_hold(ctx, apply, &held);
  if (rn_ok(status)) {
    const rn_tensor_t* var = &held.variables[0]->value;
    job.dtype = var->dtype;
    job.item = rn_dtype_size(var->dtype);
    job.gradient = rn_in(ctx, apply->gradient)->data;
    for (int i = 0; i < apply->variable_count; ++i)
      job.variables[i] = held.variables[i]->value.data;
    status = apply->indices < 0 ? apply_dense(ctx, var, &job) : apply_sparse(ctx, var, &job);
  }
  rn_apply_release(&held);
  RN_RETURN_IF_ERROR(status);
  rn_variable_pass_on(ctx);
  return RN_OK;
}

#define ROW_OF(op_, rule_, types_)                                                          \
  {                                                                                         \
    .op = op_, .device = "CPU", .types = {{"T", types_}}, .state_size = sizeof(rn_apply_t), \
    .init = rn_apply_init_##rule_, .compute = apply_compute                                 \
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
