// Loops over several devices: every device that takes part has a loop of its own.
//
// A value that crosses devices within a loop does so once per iteration, so all parts must iterate
// equally often, and a Recv must know its iteration. A receiving device gets an empty loop,
//
//   token -> Enter -> Merge -> Switch(condition) -> NextIteration -> Merge
//
// and its Merge, the pivot, comes before every Recv. The condition arrives through a Recv itself.
// Nested loops are stacked: an inner one is entered from the pivot of the outer one. So the pivot
// is alive in every iteration, even if the loop itself is in a branch not taken: then everything
// received is dead, including the condition, which ends the loop.
#include "framework/internal_ops.h"
#include "place/cut.h"

static rn_status_t find_loop(rn_cut_t* cut, int32_t parent, const rn_ir_node_t* enter,
                             int32_t* out) {
  const rn_attr_value_t* name = rn_ir_attr(enter, RN_STR("frame_name"));
  const rn_attr_value_t* parallel = rn_ir_attr(enter, RN_STR("parallel_iterations"));
  rn_cut_loop_t loop = {.parent = parent,
                        .name = name ? name->s : RN_STR(""),
                        .parallel = parallel ? parallel->i : 10,
                        .cond = -1};
  // Consecutive Enters usually belong to the same loop.
  for (size_t n = cut->loops.count; n-- > 1;) {
    if (cut->loops.items[n].parent == parent && rn_str_eq(cut->loops.items[n].name, loop.name)) {
      *out = (int32_t)n;
      return RN_OK;
    }
  }
  *out = (int32_t)cut->loops.count;
  return rn_vec_push(&cut->loops, cut->ir->allocator, loop);
}

// The innermost loop of the inputs; compilation checks that they agree.
static int32_t input_loop(const rn_cut_t* cut, const rn_ir_node_t* node) {
  int32_t loop = 0;
  for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
    int32_t source = rn_ir_source(node, k);
    if (cut->nodes.items[source].loop > loop) loop = cut->nodes.items[source].loop;
  }
  return loop;
}

rn_status_t rn_cut_find_loops(rn_cut_t* cut) {
  int32_t* order = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(rn_ir_order(cut->ir, &order, &count));
  size_t total = cut->ir->nodes.count;
  RN_RETURN_IF_ERROR(rn_vec_reserve(&cut->nodes, cut->ir->allocator, total + 1));
  memset(cut->nodes.items, 0, total * sizeof *cut->nodes.items);
  cut->nodes.count = total;
  RN_RETURN_IF_ERROR(rn_vec_push(&cut->loops, cut->ir->allocator, (rn_cut_loop_t){.cond = -1}));
  for (int32_t i = 0; i < count; ++i) {
    const rn_ir_node_t* node = rn_cut_at(cut, order[i]);
    int32_t loop = input_loop(cut, node);
    if (rn_ir_is_role(node, RN_ROLE_LOOP_COND)) cut->loops.items[loop].cond = order[i];
    if (rn_ir_is_role(node, RN_ROLE_EXIT)) loop = cut->loops.items[loop].parent;
    if (rn_ir_is_role(node, RN_ROLE_ENTER)) RN_RETURN_IF_ERROR(find_loop(cut, loop, node, &loop));
    cut->nodes.items[order[i]].loop = loop;
  }
  return RN_OK;
}

// The copy of |source| on |device|; one serves all readers.
static rn_status_t copy_to(rn_cut_t* cut, int32_t source, rn_device_t* device, int32_t* out) {
  for (int32_t p = cut->nodes.items[source].first_pair; p; p = cut->pairs.items[p - 1].next) {
    *out = cut->pairs.items[p - 1].recv;
    if (cut->pairs.items[p - 1].device == device) return RN_OK;
  }
  rn_ir_node_t copy = *rn_cut_at(cut, source);
  copy.kernel = NULL;  // the executor runs control flow itself
  rn_arena_t* arena = &cut->ir->arena;
  RN_RETURN_IF_ERROR(rn_cut_name(cut, copy.name, &copy.name));
  copy.inputs = NULL;
  copy.controls = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &copy.inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)copy.control_count, &copy.controls));
  copy.inputs[0] = rn_cut_at(cut, source)->inputs[0];
  for (int32_t i = 0; i < copy.control_count; ++i)
    copy.controls[i] = rn_cut_at(cut, source)->controls[i];
  RN_RETURN_IF_ERROR(rn_cut_add(cut, &copy, device, cut->nodes.items[source].loop, out));
  rn_cut_pair_t pair = {
      .device = device, .recv = *out, .next = cut->nodes.items[source].first_pair};
  RN_RETURN_IF_ERROR(rn_vec_push(&cut->pairs, cut->ir->allocator, pair));
  cut->nodes.items[source].first_pair = (int32_t)cut->pairs.count;
  return RN_OK;
}

// A reference stays where its variable is.
static bool is_movable(const rn_ir_node_t* node) {
  return (rn_ir_is_role(node, RN_ROLE_ENTER) || rn_ir_is_role(node, RN_ROLE_NEXT_ITERATION)) &&
         !rn_dtype_is_ref(node->types[0]);
}

rn_status_t rn_cut_align_loops(rn_cut_t* cut) {
  // The loop also visits copies: an inner Enter may directly follow an outer one.
  for (int32_t n = 0; n < (int32_t)cut->ir->nodes.count; ++n) {
    if (rn_cut_at(cut, n)->is_removed) continue;
    int32_t inputs = rn_cut_at(cut, n)->input_count;
    for (int32_t k = 0; k < inputs + rn_cut_at(cut, n)->control_count; ++k) {
      rn_ir_node_t* node = rn_cut_at(cut, n);
      int32_t source = k < inputs ? node->inputs[k].node : node->controls[k - inputs];
      const rn_ir_node_t* from = rn_cut_at(cut, source);
      if (from->device == node->device || !is_movable(from)) continue;
      RN_RETURN_IF_ERROR(copy_to(cut, source, node->device, &source));
      if (k < inputs)
        rn_cut_at(cut, n)->inputs[k].node = source;
      else
        rn_cut_at(cut, n)->controls[k - inputs] = source;
    }
  }
  if (cut->pairs.count > 0) RN_RETURN_IF_ERROR(rn_ir_sweep(cut->ir));
  for (size_t p = 0; p < cut->nodes.count; ++p) cut->nodes.items[p].first_pair = 0;
  cut->pairs.count = 0;
  for (size_t n = 0; n < cut->ir->nodes.count; ++n) {
    const rn_ir_node_t* node = &cut->ir->nodes.items[n];
    if (node->is_removed || !rn_ir_is_role(node, RN_ROLE_NEXT_ITERATION)) continue;
    rn_cut_driver_t driver = {cut->nodes.items[n].loop, node->device, -1};
    RN_RETURN_IF_ERROR(rn_vec_push(&cut->drivers, cut->ir->allocator, driver));
  }
  return RN_OK;
}

// A node of the empty loop for |loop|.
static rn_status_t add_part(rn_cut_t* cut, const rn_op_def_t* op, int32_t loop, rn_device_t* device,
                            int32_t input_count, const rn_ir_edge_t* inputs, int32_t* out) {
  rn_arena_t* arena = &cut->ir->arena;
  const rn_cut_loop_t* frame = &cut->loops.items[loop];
  const rn_attr_t given[] = {
      {RN_STR("T"), {.type = RN_FLOAT}},
      {RN_STR("frame_name"), {.s = frame->name}},
      {RN_STR("parallel_iterations"), {.i = frame->parallel}},
      {RN_STR("N"), {.i = input_count}},
      RN_ATTRS_END,
  };
  rn_ir_node_t node = {.op = op, .feed = -1};
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &node.name, "_loop_%.*s/%s_%d",
                                     RN_STR_ARGS(frame->name), op->name, cut->next_name++));
  RN_RETURN_IF_ERROR(
      rn_ir_make_edges(cut->ir, input_count, op->output_count, RN_FLOAT, RN_SHAPE_SCALAR, &node));
  memcpy(node.inputs, inputs, (size_t)input_count * sizeof *inputs);
  if (op->role == RN_ROLE_MERGE) node.types[1] = RN_INT32;
  RN_RETURN_IF_ERROR(rn_ir_make_attrs(cut->ir, op, NULL, given, &node.attrs));
  return rn_cut_add(cut, &node, device, loop, out);
}

// The driver of |loop| on |device|, with a pivot if |has_pivot|; NULL if there is none yet.
static const rn_cut_driver_t* find_driver(const rn_cut_t* cut, int32_t loop,
                                          const rn_device_t* device, bool has_pivot) {
  for (size_t i = 0; i < cut->drivers.count; ++i) {
    const rn_cut_driver_t* driver = &cut->drivers.items[i];
    if (driver->loop == loop && driver->device == device && (!has_pivot || driver->pivot >= 0))
      return driver;
  }
  return NULL;
}

// Creates the empty loop for |loop|; those of its outer loops exist.
static rn_status_t add_loop(rn_cut_t* cut, int32_t loop, rn_device_t* device) {
  int32_t parent = cut->loops.items[loop].parent, cond = cut->loops.items[loop].cond;
  if (cond < 0)
    return rn_invalid_argument("A cross-device loop must have a pivot predicate: %.*s",
                               RN_STR_ARGS(cut->loops.items[loop].name));
  int32_t start, enter, merge, way, next;
  if (parent == 0) {
    RN_RETURN_IF_ERROR(rn_cut_token(cut, device, -1, &start));
  } else {
    const rn_cut_driver_t* outer = find_driver(cut, parent, device, true);
    RN_ASSERT(outer);
    start = outer->pivot;
  }
  rn_ir_edge_t value = {start, 0};
  RN_RETURN_IF_ERROR(add_part(cut, rn_op_enter(), loop, device, 1, &value, &enter));
  rn_ir_edge_t both[2] = {{enter, 0}, {enter, 0}};
  RN_RETURN_IF_ERROR(add_part(cut, rn_op_merge(), loop, device, 2, both, &merge));
  // The loop must be findable from here on: its condition arrives through a Recv within it.
  rn_cut_driver_t driver = {loop, device, merge};
  RN_RETURN_IF_ERROR(rn_vec_push(&cut->drivers, cut->ir->allocator, driver));
  rn_ir_edge_t chosen[2] = {{merge, 0}, {cond, 0}};
  RN_RETURN_IF_ERROR(add_part(cut, rn_op_switch(), loop, device, 2, chosen, &way));
  RN_RETURN_IF_ERROR(rn_cut_input(cut, way, 1));
  rn_ir_edge_t again = {way, 1};
  RN_RETURN_IF_ERROR(add_part(cut, rn_op_next_iteration(), loop, device, 1, &again, &next));
  rn_cut_at(cut, merge)->inputs[1].node = next;
  return RN_OK;
}

rn_status_t rn_cut_pivot(rn_cut_t* cut, int32_t loop, rn_device_t* device, int32_t* out) {
  // Outer loops first, without recursion: nesting may be arbitrarily deep.
  int32_t depth = 0;
  for (int32_t l = loop; l && !find_driver(cut, l, device, true); l = cut->loops.items[l].parent)
    ++depth;
  int32_t* missing = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cut->ir->arena, (size_t)depth, &missing));
  int32_t at = loop;
  for (int32_t i = 0; i < depth; ++i, at = cut->loops.items[at].parent) missing[i] = at;
  while (depth-- > 0) RN_RETURN_IF_ERROR(add_loop(cut, missing[depth], device));
  *out = find_driver(cut, loop, device, true)->pivot;
  return RN_OK;
}

rn_status_t rn_cut_drive(rn_cut_t* cut, int32_t loop, rn_device_t* device) {
  int32_t ignored;
  for (; loop; loop = cut->loops.items[loop].parent)
    if (!find_driver(cut, loop, device, false))
      RN_RETURN_IF_ERROR(rn_cut_pivot(cut, loop, device, &ignored));
  return RN_OK;
}
