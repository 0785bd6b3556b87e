// Constant folding: nodes that depend on constants only are computed once, ahead of all steps.
//
// A result is kept for good, so it must not be larger than the constants it depends on, unless it
// is small. One that is too large is *put off*: if a result that fits depends on it (a tensor of
// ones times the gradients), it is computed for that alone. If all its elements are one number, and
// it is combined with a tensor of its shape, that number takes its place.
#include "base/denormals.h"
#include "exec/kernel_init.h"
#include "step/make.h"

// A result may always be this large; and this large if it depends on little and its size was
// unknown.
#define ALWAYS_BYTES 4096
#define SURPRISE_BYTES 65536
#define MAX_OUTPUTS 8
#define MAX_ROUNDS 4

typedef struct fold_t {
  rn_ir_t* ir;
  rn_device_t* cpu;
  const rn_env_t* env;
  rn_pool_t* pool;
  int64_t max_bytes;
  bool is_first;         // shapes that can be inferred may not be recorded yet
  size_t count;          // of the original nodes
  int32_t folded;        // how many nodes became constants
  bool* is_put_off;      // by node
  int64_t* made_of;      // by node, if it is put off: bytes of the constants it depends on
  rn_ir_node_t** saved;  // by node: the original, if it was computed after it had been put off
  rn_tensor_t**
      number;  // by node, if it is put off: the number that all its elements equal; or NULL
} fold_t;

static bool is_put_off(const fold_t* fold, int32_t index) {
  return (size_t)index < fold->count && fold->is_put_off[index];
}

static int64_t bytes_of(const rn_ir_node_t* node, int32_t output) {
  int64_t count, bytes;
  if (!rn_shape_is_full(node->shapes[output]) || !rn_shape_count(node->shapes[output], &count))
    return -1;
  return rn_mul_i64_ok(count, (int64_t)rn_dtype_size(node->types[output]), &bytes) ? bytes
                                                                                   : INT64_MAX;
}

static bool fits(const fold_t* fold, int64_t bytes, int64_t made_of) {
  return bytes <= fold->max_bytes && (bytes <= ALWAYS_BYTES || bytes <= made_of);
}

static bool is_candidate(const rn_ir_node_t* node) {
  if (node->is_removed || node->constant || !rn_ir_is_pure(node) || node->output_count < 1 ||
      node->output_count > MAX_OUTPUTS || node->input_count == 0)
    return false;
  for (int32_t o = 0; o < node->output_count; ++o)
    if (!rn_dtype_is_plain(node->types[o])) return false;
  return true;
}

typedef enum verdict_t { LEAVE = 0, FOLD, PUT_OFF } verdict_t;

static verdict_t judge(const fold_t* fold, const rn_ir_node_t* node, int64_t* out_made_of) {
  if (!is_candidate(node)) return LEAVE;
  int64_t made_of = 0;
  bool waits = false;
  for (int32_t i = 0; i < node->input_count; ++i) {
    const rn_ir_edge_t edge = node->inputs[i];
    const rn_ir_node_t* source = rn_ir_node(fold->ir, edge.node);
    if (edge.output != 0 || (!source->constant && !is_put_off(fold, edge.node))) return LEAVE;
    // 8-bit levels are a quarter of what they stand for, and what 8-bit layers multiply.
    if (rn_dtype_stored(source->types[0]) != source->types[0] &&
        rn_dtype_stored(node->types[0]) == node->types[0])
      return LEAVE;
    waits |= !source->constant;
    int64_t bytes =
        source->constant ? (int64_t)rn_tensor_bytes(source->constant) : fold->made_of[edge.node];
    if (!rn_add_i64_ok(made_of, bytes, &made_of)) made_of = INT64_MAX;
  }
  *out_made_of = made_of;
  verdict_t verdict = FOLD;
  for (int32_t o = 0; o < node->output_count; ++o) {
    int64_t bytes = bytes_of(node, o);
    if (bytes < 0) {
      // Small results, like shapes. Of large ones, folding may find the shape; otherwise the size
      // depends on the constants' values, and usually does not exceed theirs.
      bool is_small = made_of <= ALWAYS_BYTES;
      if (waits || (!is_small && (fold->is_first || made_of > fold->max_bytes))) return LEAVE;
    } else if (!fits(fold, bytes, made_of)) {
      if (bytes > fold->max_bytes || node->output_count > 1) return LEAVE;
      verdict = PUT_OFF;
    }
  }
  return verdict;
}

static rn_status_t evaluate(const fold_t* fold, const rn_ir_node_t* node, const rn_kernel_t* kernel,
                            rn_tensor_t** inputs, rn_tensor_t* out) {
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  rn_step_t step = {.cancel = &cancel, .env = fold->env, .pool = fold->pool};
  rn_tensor_t results[MAX_OUTPUTS] = {0};
  rn_kernel_ctx_t ctx = {
      .kernel = kernel, .state = kernel->state, .in = inputs, .out = results, .step = &step};
  uint64_t before = rn_denormals_flush();
  rn_status_t status = kernel->def->compute(&ctx);
  rn_denormals_restore(before);
  for (int32_t o = 0; rn_ok(status) && o < node->output_count; ++o)
    status = rn_tensor_keep(&results[o], fold->cpu->allocator, &out[o]);
  for (int32_t o = 0; o < node->output_count; ++o) rn_tensor_clear(&results[o]);
  rn_cancel_destroy(&cancel);
  return status;
}

// Computes |node| from |inputs|, which have the inferred shapes, or are single numbers.
static rn_status_t run_kernel(const fold_t* fold, const rn_ir_node_t* node,
                              const rn_kernel_def_t* def, rn_tensor_t** inputs, rn_tensor_t* out) {
  rn_kernel_t* kernel = NULL;
  rn_kernel_init_t init;
  rn_shape_t* shapes = NULL;
  RN_RETURN_IF_ERROR(rn_exec_kernel_init(fold->ir, node, fold->cpu, fold->cpu, fold->env,
                                         fold->ir->allocator, &init));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&fold->ir->arena, (size_t)node->input_count, &shapes));
  for (int32_t i = 0; i < node->input_count; ++i) shapes[i] = rn_tensor_shape(inputs[i]);
  init.input_shapes = shapes;
  rn_status_t status = rn_kernel_create(def, &init, &kernel);
  if (rn_ok(status)) status = evaluate(fold, node, kernel, inputs, out);
  rn_kernel_destroy(kernel);
  return status;
}

// Makes the node a constant. It keeps its control edges and gets those of its inputs: a constant in
// a branch or a loop is alive or dead with them.
static rn_status_t become_constant(const fold_t* fold, int32_t index, const rn_tensor_t* value) {
  for (int32_t i = 0; i < rn_ir_node(fold->ir, index)->input_count; ++i) {
    const rn_ir_node_t* source = rn_ir_node(fold->ir, rn_ir_node(fold->ir, index)->inputs[i].node);
    for (int32_t k = 0; k < source->control_count; ++k)
      RN_RETURN_IF_ERROR(rn_ir_add_control(fold->ir, index, source->controls[k]));
  }
  return rn_ir_become_constant(fold->ir, value, rn_ir_node(fold->ir, index));
}

// Adds one constant per output but the first, in place of node |index|.
static rn_status_t split_outputs(fold_t* fold, int32_t index, const rn_tensor_t* values) {
  rn_ir_t* ir = fold->ir;
  for (int32_t o = 1; o < rn_ir_node(fold->ir, index)->output_count; ++o) {
    rn_ir_node_t made = *rn_ir_node(fold->ir, index);
    made.types = &rn_ir_node(fold->ir, index)->types[o];
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&ir->arena, &made.name, "%.*s/_folded_%d", RN_STR_ARGS(made.name), o));
    int32_t added;
    RN_RETURN_IF_ERROR(rn_ir_add(ir, &made, &added));
    RN_RETURN_IF_ERROR(become_constant(fold, added, &values[o]));
    rn_ir_replace_edge(ir, (rn_ir_edge_t){index, o}, (rn_ir_edge_t){added, 0});
  }
  return RN_OK;
}

// Computes a node whose inputs are constants. One that fails is left for the step, which reports
// the error; so is one that turns out too large.
static rn_status_t fold_node(fold_t* fold, int32_t index, int64_t made_of) {
  rn_ir_t* ir = fold->ir;
  const rn_ir_node_t node = *rn_ir_node(fold->ir, index);
  const rn_kernel_def_t* def = rn_kernel_find(node.op, node.attrs, NULL, fold->cpu->type);
  size_t outputs = (size_t)node.output_count;
  if (!def || !def->compute) return RN_OK;
  rn_tensor_t* values = NULL;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&ir->owned, ir->allocator, ir->owned.count + outputs));
  rn_tensor_t** inputs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, outputs, &values));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)node.input_count, &inputs));
  for (int32_t i = 0; i < node.input_count; ++i)
    inputs[i] = (rn_tensor_t*)rn_ir_node(fold->ir, node.inputs[i].node)->constant;
  rn_status_t status = run_kernel(fold, &node, def, inputs, values);
  bool is_fine = rn_ok(status);
  rn_status_free(status);
  // The IR gives the buffers back; |values| are views of them.
  if (made_of < SURPRISE_BYTES) made_of = SURPRISE_BYTES;
  for (size_t o = 0; o < outputs; ++o) {
    is_fine &=
        rn_tensor_is_set(&values[o]) && fits(fold, (int64_t)rn_tensor_bytes(&values[o]), made_of);
    ir->owned.items[ir->owned.count++] = values[o];
  }
  if (!is_fine) return RN_OK;
  fold->folded++;
  RN_RETURN_IF_ERROR(split_outputs(fold, index, values));
  return become_constant(fold, index, &values[0]);
}

// Computes the inputs of |index| that were put off, in order. False if that fails.
static rn_status_t catch_up(fold_t* fold, int32_t index, int32_t* stack, bool* out_is_done) {
  size_t depth = 0;
  stack[depth++] = index;
  *out_is_done = true;
  while (depth > 0) {
    int32_t at = stack[depth - 1], next = -1;
    const rn_ir_node_t* node = rn_ir_node(fold->ir, at);
    for (int32_t i = 0; i < node->input_count && next < 0; ++i)
      if (!rn_ir_node(fold->ir, node->inputs[i].node)->constant) next = node->inputs[i].node;
    if (next >= 0) {
      stack[depth++] = next;
      continue;
    }
    if (at == index) return RN_OK;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&fold->ir->arena, &fold->saved[at]));
    *fold->saved[at] = *node;
    int32_t folded = fold->folded;
    RN_RETURN_IF_ERROR(fold_node(fold, at, fold->max_bytes));
    fold->folded = folded;
    fold->is_put_off[at] = *out_is_done = rn_ir_node(fold->ir, at)->constant != NULL;
    if (!*out_is_done) return RN_OK;
    depth--;
  }
  return RN_OK;
}

// The number that all elements of |edge| equal; NULL if there is none, or |edge| belongs to a loop
// or a branch. |space| is for a view of it.
static rn_tensor_t* number_of(const fold_t* fold, rn_ir_edge_t edge, rn_tensor_t* space) {
  const rn_ir_node_t* node = rn_ir_node(fold->ir, edge.node);
  if (edge.output != 0 || node->control_count > 0) return NULL;
  if (!node->constant) return is_put_off(fold, edge.node) ? fold->number[edge.node] : NULL;
  if (node->constant->count != 1) return NULL;
  *space = (rn_tensor_t){.dtype = node->constant->dtype, .count = 1, .data = node->constant->data};
  return space;
}

// Finds the number that all elements of |index|, which is put off, equal.
static rn_status_t find_number(fold_t* fold, int32_t index) {
  const rn_ir_node_t node = *rn_ir_node(fold->ir, index);
  rn_tensor_t *numbers[2], *value = NULL, space[2] = {0};
  int repeated = rn_ir_repeated_input(&node);
  const rn_kernel_def_t* def = rn_kernel_find(node.op, node.attrs, NULL, fold->cpu->type);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&fold->ir->arena, &value));
  if (repeated >= 0) {
    const rn_tensor_t* number = number_of(fold, node.inputs[repeated], space);
    if (number && node.control_count == 0) {
      *value = *number;
      fold->number[index] = value;
    }
    return RN_OK;
  }
  if (!def || !def->compute || !def->vector_op || node.input_count > 2 || node.control_count > 0)
    return RN_OK;
  for (int32_t i = 0; i < node.input_count; ++i)
    if (!(numbers[i] = number_of(fold, node.inputs[i], &space[i]))) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_vec_reserve(&fold->ir->owned, fold->ir->allocator, fold->ir->owned.count + 1));
  rn_status_t status = run_kernel(fold, &node, def, numbers, value);
  if (rn_ok(status)) fold->number[index] = value;
  rn_status_free(status);
  fold->ir->owned.items[fold->ir->owned.count++] = *value;
  return RN_OK;
}

// Replaces an input of |index| whose elements all equal one number by that number, if the other
// input has the shape of the result.
static rn_status_t use_numbers(fold_t* fold, int32_t index) {
  const rn_ir_node_t node = *rn_ir_node(fold->ir, index);
  if (!rn_ir_takes_numbers(&node)) return RN_OK;
  for (int32_t i = 0; i < 2; ++i) {
    const rn_ir_edge_t edge = node.inputs[i], other = node.inputs[1 - i];
    rn_shape_t shape = rn_ir_node(fold->ir, other.node)->shapes[other.output];
    const rn_tensor_t* number = NULL;
    if (is_put_off(fold, edge.node)) number = number_of(fold, edge, NULL);
    if (!number || !rn_shape_is_full(shape) || !rn_shape_eq(shape, node.shapes[0])) continue;
    rn_ir_node_t made = *rn_ir_node(fold->ir, edge.node);
    RN_RETURN_IF_ERROR(rn_arena_printf(&fold->ir->arena, &made.name, "%.*s/_number_%d",
                                       RN_STR_ARGS(node.name), i));
    made.input_count = 0;
    RN_RETURN_IF_ERROR(rn_ir_add(fold->ir, &made, &node.inputs[i].node));
    return become_constant(fold, node.inputs[i].node, number);
  }
  return RN_OK;
}

// Restores a node that was put off and computed, but still has other readers.
static rn_status_t restore(fold_t* fold, const int32_t* order, int32_t count) {
  rn_ir_t* ir = fold->ir;
  bool* is_read = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, ir->nodes.count + 1, &is_read));
  for (int32_t i = 0; i < ir->fetch_count; ++i)
    if (ir->fetches[i].node >= 0) is_read[ir->fetches[i].node] = true;
  for (int32_t i = count - 1; i >= 0; --i) {
    rn_ir_node_t* node = rn_ir_node(fold->ir, order[i]);
    if (fold->saved[order[i]] && node->constant && is_read[order[i]])
      *node = *fold->saved[order[i]];
    for (int32_t k = 0; k < node->input_count; ++k) is_read[node->inputs[k].node] = true;
  }
  return RN_OK;
}

static rn_status_t fold_all(rn_ir_t* ir, rn_device_t* cpu, const rn_env_t* env, rn_pool_t* pool,
                            int64_t max_bytes, bool is_first, bool* out_changed) {
  fold_t fold = {.ir = ir,
                 .cpu = cpu,
                 .env = env,
                 .pool = pool,
                 .max_bytes = max_bytes,
                 .is_first = is_first,
                 .count = ir->nodes.count};
  int32_t *order = NULL, *stack = NULL, count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(ir, &order, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, fold.count + 1, &fold.is_put_off));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, fold.count + 1, &fold.made_of));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, fold.count + 1, &fold.saved));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, fold.count + 1, &fold.number));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, fold.count + 1, &stack));
  for (int32_t i = 0; i < count; ++i) {
    int64_t made_of = 0;
    verdict_t verdict = judge(&fold, rn_ir_node(ir, order[i]), &made_of);
    bool is_ready = verdict == FOLD;
    if (is_ready) RN_RETURN_IF_ERROR(catch_up(&fold, order[i], stack, &is_ready));
    if (is_ready) RN_RETURN_IF_ERROR(fold_node(&fold, order[i], made_of));
    fold.is_put_off[order[i]] = verdict == PUT_OFF;
    fold.made_of[order[i]] = made_of;
    if (verdict == PUT_OFF) RN_RETURN_IF_ERROR(find_number(&fold, order[i]));
    if (verdict == LEAVE) RN_RETURN_IF_ERROR(use_numbers(&fold, order[i]));
  }
  *out_changed = fold.folded > 0;
  return restore(&fold, order, count);
}

// Folded values are usually sizes, with which more can be folded.
rn_status_t rn_pass_fold_constants(rn_ir_t* ir, rn_device_t* cpu, const rn_env_t* env,
                                   rn_pool_t* pool, int64_t max_bytes) {
  bool is_changed = true;
  for (int round = 0; is_changed && round < MAX_ROUNDS; ++round) {
    RN_RETURN_IF_ERROR(fold_all(ir, cpu, env, pool, max_bytes, round == 0, &is_changed));
    if (round > 0 && !is_changed) break;
    RN_RETURN_IF_ERROR(rn_ir_sweep(ir));
    RN_RETURN_IF_ERROR(rn_pass_infer_shapes(ir));
    is_changed |= round == 0;
  }
  return RN_OK;
}
