// The table of passes, and what runs it: see passes.h.
#include "session/passes.h"

#include <stdlib.h>

#include "session/pass_dump.h"

// Results larger than this are not computed ahead of the step.
#define MAX_FOLDED_BYTES (10 << 20)

static rn_status_t inline_calls(const rn_planner_t* planner, rn_ir_t* ir) {
  return rn_pass_inline_calls(ir, &planner->calls);
}

static rn_status_t fold_constants(const rn_planner_t* planner, rn_ir_t* ir) {
  rn_pool_t* pool = planner->is_alone ? NULL : planner->env->pool;
  return rn_pass_fold_constants(ir, planner->place.devices[0], planner->env, pool,
                                MAX_FOLDED_BYTES);
}

static rn_status_t place(const rn_planner_t* planner, rn_ir_t* ir) {
  return rn_place(ir, &planner->place);
}

static rn_status_t mixed_precision(const rn_planner_t* planner, rn_ir_t* ir) {
  return rn_pass_mixed_precision(ir, &planner->precision, planner->env);
}

static rn_status_t partition(const rn_planner_t* planner, rn_ir_t* ir) {
  rn_place_options_t options = planner->place;
  options.moves_inside = true;
  return rn_partition(ir, &options);
}

// Passes that need nothing but the graph.
#define PLAIN(pass)                                                   \
  static rn_status_t pass(const rn_planner_t* planner, rn_ir_t* ir) { \
    (void)planner;                                                    \
    return rn_pass_##pass(ir);                                        \
  }
PLAIN(hoist_variable_reads)
PLAIN(drop_control_edges)
PLAIN(simplify)
PLAIN(merge_equal_nodes)
PLAIN(fuse_levels)
PLAIN(sum_matmuls)
PLAIN(sum_loop_matmuls)
PLAIN(slice_matmul_columns)
PLAIN(hoist_rnn_inputs)
PLAIN(hoist_loop_inputs)
PLAIN(pack_matmul_weights)
PLAIN(split_batch_norms)
PLAIN(split_losses)
PLAIN(spread_unique)
PLAIN(keep_weights)
PLAIN(fuse_conv)
PLAIN(turn_filters)
PLAIN(fuse_attention)
PLAIN(view_parts)
PLAIN(scale_matmuls)
PLAIN(fuse_matmul)
PLAIN(fuse_elementwise)
PLAIN(fuse_loops)
PLAIN(group_casts)
PLAIN(group_updates)

static rn_status_t sweep(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  return rn_ir_sweep(ir);
}

#define ALWAYS(pass, stage_, text) \
  { .name = #pass, .summary = text, .run = pass, .stage = stage_ }
#define OPTIMIZE_AS(kind_, pass, stage_, text)                                             \
  {                                                                                        \
    .name = #pass, .summary = text, .run = pass, .stage = stage_, .is_optimization = true, \
    .kind = kind_                                                                          \
  }
// Most of them make one node of several.
#define OPTIMIZE(pass, stage_, text) OPTIMIZE_AS(RN_PASS_REMAPPING, pass, stage_, text)
const rn_pass_t rn_passes[] = {
    {.name = "inline_calls",
     .summary =
         "replaces calls, functional control flow and composite ops by the nodes that they stand "
         "for",
     .run = inline_calls,
     .stage = RN_IR_PRUNED,
     .adds_clients = true},
    OPTIMIZE_AS(RN_PASS_LOOPS, hoist_variable_reads, RN_IR_PRUNED,
                "moves reads of variables that a loop does not change out of the loop"),
    OPTIMIZE_AS(RN_PASS_DEPENDENCIES, drop_control_edges, RN_IR_PRUNED,
                "drops control edges into pure nodes that order no side effect"),
    OPTIMIZE_AS(RN_PASS_ARITHMETIC, simplify, RN_IR_PRUNED,
                "removes identities and arithmetic that changes nothing"),
    OPTIMIZE_AS(RN_PASS_COMMON_SUBGRAPHS, merge_equal_nodes, RN_IR_PRUNED,
                "computes common subexpressions once"),
    OPTIMIZE_AS(RN_PASS_CONSTANTS, fold_constants, RN_IR_PRUNED,
                "computes what depends only on constants"),
    OPTIMIZE_AS(RN_PASS_ARITHMETIC, simplify, RN_IR_PRUNED,
                "again, with the shapes that are known now"),
    OPTIMIZE_AS(0, sweep, RN_IR_PRUNED, "removes nodes that are no longer needed"),
    ALWAYS(place, RN_IR_PLACED, "assigns a device and a kernel to every node"),
    OPTIMIZE(fuse_levels, RN_IR_PLACED,
             "computes quantized convolutions and matmuls with 8-bit integers"),
    {.name = "mixed_precision",
     .summary = "computes in 16-bit floats what the session's mixed precision allows",
     .run = mixed_precision,
     .stage = RN_IR_PLACED,
     .kind = RN_PASS_PRECISION},
    OPTIMIZE(keep_weights, RN_IR_PLACED,
             "casts weights to bfloat16 once, if the step changes no variable"),
    OPTIMIZE(sum_matmuls, RN_IR_PLACED,
             "computes sums of matmuls, and gradient descent with them, in one node"),
    OPTIMIZE_AS(RN_PASS_LOOPS, sum_loop_matmuls, RN_IR_PLACED,
                "adds several of the matmuls that a loop accumulates at a time"),
    OPTIMIZE(slice_matmul_columns, RN_IR_PLACED,
             "computes only the columns of a matmul that are read"),
    OPTIMIZE(hoist_rnn_inputs, RN_IR_PLACED,
             "computes the input part of an unrolled RNN's matmuls for all time steps at once"),
    OPTIMIZE_AS(RN_PASS_LOOPS, hoist_loop_inputs, RN_IR_PLACED,
                "computes the input part of a dynamic RNN's matmuls for all time steps at once"),
    OPTIMIZE(pack_matmul_weights, RN_IR_PLACED,
             "packs a matrix once if it is the right operand of several matmuls, or of one in a "
             "loop"),
    OPTIMIZE(split_batch_norms, RN_IR_PLACED,
             "splits batch norms into statistics and elementwise nodes where those can be fused"),
    OPTIMIZE(split_losses, RN_IR_PLACED,
             "splits cross entropies of a GPU into sums per row and elementwise nodes"),
    OPTIMIZE(spread_unique, RN_IR_PLACED,
             "updates rows of variables on a GPU without counting distinct ones"),
    OPTIMIZE(fuse_conv, RN_IR_PLACED,
             "fuses a convolution with its bias, activation, batch norm or shortcut"),
    OPTIMIZE(turn_filters, RN_IR_PLACED,
             "brings the filters of a GPU's convolutions into its order by one node"),
    OPTIMIZE(fuse_attention, RN_IR_PLACED,
             "computes attention, and on a GPU its gradients, without storing the scores"),
    OPTIMIZE(view_parts, RN_IR_PLACED, "reads the parts of a GPU's tensor where they are"),
    OPTIMIZE(scale_matmuls, RN_IR_PLACED,
             "multiplies matmuls of a GPU by numbers where they are computed"),
    OPTIMIZE(fuse_matmul, RN_IR_PLACED, "fuses a matmul of a GPU with its bias, shortcut and ReLU"),
    OPTIMIZE(fuse_elementwise, RN_IR_PLACED, "fuses chains of elementwise nodes"),
    OPTIMIZE(fuse_loops, RN_IR_PLACED,
             "fuses elementwise nodes and reductions of a GPU into one loop"),
    OPTIMIZE(group_casts, RN_IR_PLACED, "casts many variables of a GPU by one node"),
    OPTIMIZE(group_updates, RN_IR_PLACED,
             "updates many variables of a GPU by one node for each optimizer"),
    ALWAYS(partition, RN_IR_PARTITIONED, "adds a Send and a Recv to edges between devices"),
};
const int rn_pass_count = sizeof rn_passes / sizeof *rn_passes;

rn_plan_debug_t rn_plan_debug_from_env(void) {
  const char* verify = getenv("RUNNEL_VERIFY");
#ifdef RN_ASSERTS
  bool verifies = true;
#else
  bool verifies = false;
#endif
  if (verify && *verify) verifies = strcmp(verify, "0") != 0;
  const char* dump = getenv("RUNNEL_DUMP");
  return (rn_plan_debug_t){.verifies = verifies,
                           .dump = dump && *dump ? dump : NULL,
                           .dump_folder = getenv("RUNNEL_DUMP_DIR")};
}

// A copy of the graph's nodes and edges, to see what a pass changed.
typedef struct snapshot_t {
  size_t count;
  rn_ir_node_t* nodes;
} snapshot_t;

static rn_status_t take_snapshot(rn_ir_t* ir, snapshot_t* out) {
  out->count = ir->nodes.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, out->count + 1, &out->nodes));
  for (size_t n = 0; n < out->count; ++n) {
    rn_ir_node_t* copy = &out->nodes[n];
    *copy = ir->nodes.items[n];
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)copy->input_count, &copy->inputs));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&ir->arena, (size_t)copy->control_count, &copy->controls));
    for (int32_t i = 0; i < copy->input_count; ++i) copy->inputs[i] = ir->nodes.items[n].inputs[i];
    for (int32_t i = 0; i < copy->control_count; ++i)
      copy->controls[i] = ir->nodes.items[n].controls[i];
  }
  return RN_OK;
}

static bool is_same(const rn_ir_node_t* a, const rn_ir_node_t* b) {
  if (a->op != b->op || a->input_count != b->input_count || a->control_count != b->control_count)
    return false;
  for (int32_t i = 0; i < a->input_count; ++i)
    if (a->inputs[i].node != b->inputs[i].node || a->inputs[i].output != b->inputs[i].output)
      return false;
  for (int32_t i = 0; i < a->control_count; ++i)
    if (a->controls[i] != b->controls[i]) return false;
  return true;
}

static void compare(const snapshot_t* before, const rn_ir_t* ir, rn_pass_report_t* report) {
  for (size_t n = 0; n < ir->nodes.count; ++n) {
    const rn_ir_node_t* now = &ir->nodes.items[n];
    bool was_there = n < before->count && !before->nodes[n].is_removed;
    report->nodes += !now->is_removed;
    report->added += !now->is_removed && !was_there;
    report->removed += now->is_removed && was_there;
    report->changed += !now->is_removed && was_there && !is_same(&before->nodes[n], now);
  }
}

static rn_status_t run_pass(const rn_planner_t* planner, const rn_pass_t* pass, rn_ir_t* ir,
                            rn_ir_excuses_t* excuses) {
  const rn_plan_debug_t* debug = &planner->debug;
  snapshot_t before = {0};
  if (planner->watch) RN_RETURN_IF_ERROR(take_snapshot(ir, &before));
  if (debug->dump) rn_pass_dump(debug, pass->name, "before", ir);
  int64_t start = planner->watch ? planner->env->now_ns(planner->env->self) : 0;
  RN_RETURN_IF_ERROR(pass->run(planner, ir));
  if (planner->watch) {
    rn_pass_report_t report = {.pass = pass,
                               .nanoseconds = planner->env->now_ns(planner->env->self) - start};
    compare(&before, ir, &report);
    planner->watch->report(planner->watch->self, &report);
  }
  if (debug->dump) rn_pass_dump(debug, pass->name, "after", ir);
  if (!debug->verifies) return RN_OK;
  return rn_status_annotate(rn_ir_verify(ir, pass->stage, pass->adds_clients, excuses),
                            " [found by the verifier after the pass %s]", pass->name);
}

rn_status_t rn_passes_run(const rn_planner_t* planner, const rn_pass_t* passes, int count,
                          rn_ir_t* ir) {
  rn_ir_excuses_t excuses = {0};
  if (planner->debug.verifies) RN_RETURN_IF_ERROR(rn_ir_verify(ir, RN_IR_PRUNED, true, &excuses));
  for (int i = 0; i < count; ++i)
    if ((planner->optimize || !passes[i].is_optimization) && !(passes[i].kind & planner->off))
      RN_RETURN_IF_ERROR(run_pass(planner, &passes[i], ir, &excuses));
  return RN_OK;
}
