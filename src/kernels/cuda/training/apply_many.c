// Many updates of optimizers as one node (step/group_updates.c): checked one by one, issued
// together.
#include "kernels/cpu/array.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/cuda/training/updates.h"

typedef struct apply_many_t {
  rn_arena_t arena;
  rn_apply_t apply;
  rn_op_def_t op;    // of the updates, as far as the checks read it
  rn_dtype_t dtype;  // of the variables
  int count;
  rn_str_t* names;  // of the nodes
} apply_many_t;

// The definition of the updates' op, from its name and the names of its arguments.
static rn_status_t make_op(const rn_kernel_init_t* init, apply_many_t* many) {
  const rn_attr_value_t* arguments = rn_init_attr(init, "arguments");
  rn_arg_def_t* inputs = NULL;
  rn_str_t name;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&many->arena, (size_t)arguments->count, &inputs));
  for (int i = 0; i < arguments->count; ++i) {
    RN_RETURN_IF_ERROR(rn_arena_str(&many->arena, arguments->list_s[i], &name));
    inputs[i].name = name.data;
  }
  RN_RETURN_IF_ERROR(rn_arena_str(&many->arena, rn_init_string(init, "update"), &name));
  many->op = (rn_op_def_t){.name = name.data,
                           .input_count = (int16_t)arguments->count,
                           .inputs = inputs,
                           .attr_count = init->op->attr_count,
                           .attrs = init->op->attrs};
  return RN_OK;
}

static rn_status_t many_init(const rn_kernel_init_t* init, void* state) {
  apply_many_t* many = state;
  rn_arena_init(&many->arena, init->allocator);
  RN_RETURN_IF_ERROR(make_op(init, many));
  const rn_kernel_def_t* row = rn_cuda_update_row(rn_str(many->op.name));
  if (!row) return rn_internal("No GPU has the update %s", many->op.name);
  rn_kernel_init_t one = *init;
  one.op = &many->op;
  RN_RETURN_IF_ERROR(row->init(&one, &many->apply));
  const rn_apply_t* apply = &many->apply;
  const rn_attr_value_t* names = rn_init_attr(init, "names");
  many->count = names->count;
  many->dtype = rn_init_type(init, "T");
  if (apply->gradient < 0 || apply->indices >= 0 ||
      init->input_count != many->count * (apply->variable_count + 1) + apply->number_count)
    return rn_internal("The arguments of %d updates %s do not fit", many->count, many->op.name);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&many->arena, (size_t)many->count, &many->names));
  for (int m = 0; m < many->count; ++m)
    RN_RETURN_IF_ERROR(rn_arena_str(&many->arena, names->list_s[m], &many->names[m]));
  return RN_OK;
}

static void many_destroy(void* state) { rn_arena_clear(&((apply_many_t*)state)->arena); }

// A call of one of the updates, as its own kernel would see it.
typedef struct update_call_t {
  rn_kernel_ctx_t ctx;
  rn_kernel_t kernel;
  rn_tensor_t gradient;  // for checks: in the type of the variables
  rn_tensor_t* in[RN_APPLY_MAX_VARIABLES + 1 + RN_RULE_MAX_NUMBERS];
} update_call_t;

static void set_call(const rn_kernel_ctx_t* ctx, int m, update_call_t* call) {
  const apply_many_t* many = ctx->state;
  const rn_apply_t* apply = &many->apply;
  const int variables = apply->variable_count, gradients = many->count * variables;
  call->ctx = *ctx;
  call->kernel = *ctx->kernel;
  call->kernel.op = &many->op;
  call->kernel.node = many->names[m];
  call->ctx.kernel = &call->kernel;
  call->ctx.in = call->in;
  if (ctx->out) call->ctx.out = ctx->out + m;
  for (int k = 0; k < variables; ++k) call->in[k] = ctx->in[m * variables + k];
  call->gradient = *ctx->in[gradients + m];
  if (many->dtype == RN_FLOAT) call->gradient.dtype = RN_FLOAT;
  call->in[apply->gradient] = &call->gradient;
  for (int i = 0; i < apply->number_count; ++i)
    call->in[apply->numbers[i]] = ctx->in[gradients + many->count + i];
}

static rn_status_t name_node(const update_call_t* call, rn_status_t status) {
  if (rn_ok(status)) return status;
  return rn_status_annotate(status, "\n\t [[{{node %.*s}}]]", RN_STR_ARGS(call->kernel.node));
}

// With all variables locked. If one of them occurs twice, its updates run one after the other.
static rn_status_t update_locked(rn_kernel_ctx_t* ctx, rn_variable_t* const* variables,
                                 bool all_differ) {
  const apply_many_t* many = ctx->state;
  const rn_apply_t* apply = &many->apply;
  rn_tensor_t* const* gradients = ctx->in + many->count * apply->variable_count;
  update_call_t call;
  rn_cuda_updates_t updates;
  set_call(ctx, 0, &call);
  RN_RETURN_IF_ERROR(name_node(&call, rn_cuda_updates_begin(&call.ctx, apply, &updates)));
  for (int m = 0; m < many->count; ++m) {
    rn_variable_t* const* own = variables + m * apply->variable_count;
    set_call(ctx, m, &call);
    RN_RETURN_IF_ERROR(name_node(&call, rn_apply_check_locked(&call.ctx, apply, own)));
    RN_RETURN_IF_ERROR(rn_cuda_updates_add(ctx, &updates, own, gradients[m]));
    if (!all_differ) RN_RETURN_IF_ERROR(rn_cuda_updates_issue(ctx, &updates));
  }
  return rn_cuda_updates_issue(ctx, &updates);
}

static rn_status_t many_compute(rn_kernel_ctx_t* ctx) {
  const apply_many_t* many = ctx->state;
  const int each = many->apply.variable_count, count = many->count * each;
  rn_variable_t** variables = NULL;  // of each update, then once more to be locked
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, 2 * (size_t)count, &variables));
  rn_status_t status = RN_OK;
  update_call_t call;
  for (int m = 0; rn_ok(status) && m < many->count; ++m) {
    set_call(ctx, m, &call);
    status = name_node(&call, rn_apply_find(&call.ctx, &many->apply, variables + m * each));
  }
  if (rn_ok(status)) {
    rn_variable_t** locked = variables + count;
    memcpy(locked, variables, (size_t)count * sizeof *locked);
    int distinct = rn_apply_lock(locked, count);
    status = update_locked(ctx, variables, distinct == count);
    rn_apply_unlock(locked, distinct);
  }
  RN_FREE_ARRAY(ctx->kernel->allocator, variables, 2 * (size_t)count);
  RN_RETURN_IF_ERROR(status);
  for (int m = 0; m < many->count; ++m) {
    set_call(ctx, m, &call);
    rn_variable_pass_on(&call.ctx);
  }
  return RN_OK;
}

#define ROW(op_)                                                                       \
  {                                                                                    \
    .op = op_, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS | RN_TYPES_COMPLEX}},  \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(apply_many_t), .init = many_init, \
    .destroy = many_destroy, .compute = many_compute                                   \
  }
static const rn_kernel_def_t rows[] = {ROW("_ApplyMany"), ROW("_ResourceApplyMany")};
RN_KERNEL_FAMILY(cuda_apply_many, rows);
