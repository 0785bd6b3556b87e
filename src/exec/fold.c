// Constant folding: what depends on constants only is computed once, ahead of all steps.
#include "exec/kernel_init.h"
#include "framework/internal_ops.h"

// A result may be this large whatever it is made of; beyond, only if it is no larger than its
// inputs.
#define ALWAYS_BYTES 4096

typedef struct fold_t {
  rn_ir_t* ir;
  rn_device_t* cpu;
  const rn_env_t* env;
  int64_t max_bytes;
} fold_t;

static int64_t result_bytes(const rn_ir_node_t* node) {
  int64_t count;
  if (!rn_shape_is_full(node->shapes[0]) || !rn_shape_count(node->shapes[0], &count)) return -1;
  int64_t bytes;
  return rn_mul_i64_ok(count, (int64_t)rn_dtype_size(node->types[0]), &bytes) ? bytes : INT64_MAX;
}

static bool can_fold(const fold_t* fold, const rn_ir_node_t* node) {
  if (node->is_removed || node->constant || !rn_ir_is_pure(node) || node->output_count != 1 ||
      node->input_count == 0 || !rn_dtype_is_plain(node->types[0]))
    return false;
  int64_t input_bytes = 0;
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = &fold->ir->nodes.items[node->inputs[i].node];
    if (!source->constant || node->inputs[i].output != 0) return false;
    input_bytes += (int64_t)rn_tensor_bytes(source->constant);
  }
  int64_t bytes = result_bytes(node);
  if (bytes < 0) return input_bytes <= ALWAYS_BYTES;  // shapes of shapes and the like
  return bytes <= fold->max_bytes && (bytes <= ALWAYS_BYTES || bytes <= input_bytes);
}

static rn_status_t evaluate(const fold_t* fold, const rn_ir_node_t* node, const rn_kernel_t* kernel,
                            rn_tensor_t* out) {
  rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&fold->ir->arena, (size_t)node->input_count, &inputs));
  for (int32_t i = 0; i < node->input_count; ++i)
    inputs[i] = (rn_tensor_t*)fold->ir->nodes.items[node->inputs[i].node].constant;
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  rn_step_t step = {.cancel = &cancel, .env = fold->env, .pool = fold->env->pool};
  rn_tensor_t result = {0};
  rn_kernel_ctx_t ctx = {
      .kernel = kernel, .state = kernel->state, .in = inputs, .out = &result, .step = &step};
  rn_status_t status = kernel->def->compute(&ctx);
  if (rn_ok(status)) status = rn_tensor_keep(&result, fold->cpu->allocator, out);
  rn_tensor_clear(&result);
  rn_cancel_destroy(&cancel);
  return status;
}

// The node is a constant from now on. Control edges stay, those of its inputs' too: a constant in a
// branch or a loop lives and dies with them.
static rn_status_t become_constant(const fold_t* fold, int32_t index, const rn_tensor_t* value) {
  rn_ir_node_t* node = &fold->ir->nodes.items[index];
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_node_t* source = &fold->ir->nodes.items[node->inputs[i].node];
    for (int32_t k = 0; k < source->control_count; ++k)
      RN_RETURN_IF_ERROR(rn_ir_add_control(fold->ir, index, source->controls[k]));
  }
  const rn_op_def_t* op = rn_op_constant();
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&fold->ir->arena, (size_t)op->attr_count, &attrs));
  for (int a = 0; a < op->attr_count; ++a) {
    attrs[a].kind = op->attrs[a].kind;
    if (attrs[a].kind == RN_ATTR_TYPE) attrs[a].type = value->dtype;
    if (attrs[a].kind == RN_ATTR_TENSOR) attrs[a].tensor = value;
  }
  node->op = op;
  node->attrs = attrs;
  node->constant = value;
  node->shapes[0] = rn_tensor_shape(value);
  node->input_count = 0;
  return RN_OK;
}

// A node that cannot be computed now is left for the step, where its error belongs.
static rn_status_t fold_node(const fold_t* fold, int32_t index) {
  rn_ir_t* ir = fold->ir;
  rn_ir_node_t* node = &ir->nodes.items[index];
  const rn_kernel_def_t* def = rn_kernel_find(node->op, node->attrs, NULL, fold->cpu->type);
  if (!def || !def->compute) return RN_OK;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&ir->owned, ir->allocator, ir->owned.count + 1));
  rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&ir->arena, &value));
  rn_kernel_t* kernel = NULL;
  rn_kernel_init_t init;
  RN_RETURN_IF_ERROR(
      rn_exec_kernel_init(ir, node, fold->cpu, fold->cpu, fold->env, ir->allocator, &init));
  rn_status_t status = rn_kernel_create(def, &init, &kernel);
  if (rn_ok(status)) status = evaluate(fold, node, kernel, value);
  rn_kernel_destroy(kernel);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return RN_OK;
  }
  ir->owned.items[ir->owned.count++] =
      *value;  // the IR gives the buffer back; |value| is a view of it
  return become_constant(fold, index, value);
}

rn_status_t rn_pass_fold(rn_ir_t* ir, rn_device_t* cpu, const rn_env_t* env, int64_t max_bytes) {
  fold_t fold = {.ir = ir, .cpu = cpu, .env = env, .max_bytes = max_bytes};
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  for (int32_t i = 0; i < count; ++i)
    if (can_fold(&fold, &ir->nodes.items[order[i]])) RN_RETURN_IF_ERROR(fold_node(&fold, order[i]));
  return RN_OK;
}
