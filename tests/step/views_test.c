// Strided views: each element of a value is where its view says.
#include "step/views.h"
#include "graph_of_step.h"

static rn_edge_t turned(rn_scope_t* s, rn_edge_t x, const int32_t* perm, int rank) {
  return rn_Transpose(s, x, rn_const_int32_list(s, perm, rank));
}

// The graph's constants are nodes with values; Placeholders are fed.
static rn_ir_t* graph_of(rt_t* rt, rn_edge_t fed, rn_edge_t fetch, rt_step_t* step) {
  rt_feed(step, fed, NULL);
  rt_fetch(step, fetch);
  return graph_of_step(rt, step);
}

static int32_t node_of(const rn_ir_t* ir, const char* name) {
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (rn_str_is(ir->nodes.items[n].name, name)) return (int32_t)n;
  cr_assert_fail("there is no node %s", name);
  return -1;
}

static void check_steps(const rn_ir_view_t* view, int64_t offset, int rank, const int64_t* steps) {
  cr_assert_eq(view->offset, offset, "offset %d", (int)view->offset);
  cr_assert_eq(view->rank, rank);
  for (int d = 0; d < rank; ++d)
    cr_assert_eq(view->steps[d], steps[d], "step %d: %d", d, (int)view->steps[d]);
}

// Heads of a transformer: [batch, time, 3, heads, depth] becomes three of [batch, heads, time,
// depth].
RT_TEST(views, of_transposed_parts) {
  rt_t rt = rt_begin(1);
  const int64_t dims[5] = {2, 7, 3, 5, 4};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 5}, .name = "x");
  rn_edge_t all = turned(rt.s, x, (int32_t[]){2, 0, 3, 1, -1}, 5);
  rn_edges_t parts = rn_Unpack(rt.s, all, 3, .name = "parts");
  rt_step_t step = {0};
  rn_ir_t* ir = graph_of(&rt, x, rn_edge_at(parts, 1), &step);
  rn_ir_view_t view;
  cr_assert(rn_ir_view_of(ir, (rn_ir_edge_t){node_of(ir, "parts"), 1}, &view));
  cr_assert_geq(ir->nodes.items[view.tensor.node].feed, 0, "it is a view of what is fed");
  check_steps(&view, 20, 4, (int64_t[]){7 * 60, 4, 60, 1});
  rn_ir_destroy(ir);
  rt_end(&rt);
}

// Backwards, gradients are packed and transposed.
RT_TEST(views, into_packed_tensors) {
  rt_t rt = rt_begin(1);
  const int64_t dims[3] = {2, 3, 4};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 3});
  rn_edge_t a = rn_Sin(rt.s, x, .name = "a"), b = rn_Cos(rt.s, x, .name = "b");
  rn_edge_t turned_b = turned(rt.s, b, (int32_t[]){0, 1, 2}, 3);
  rn_edge_t packed = rn_Pack(rt.s, ((rn_edge_t[]){a, turned_b}), 2, .axis = 1);
  rn_edge_t y = turned(rt.s, packed, (int32_t[]){2, 0, 1, 3}, 4);  // [3, 2, 2, 4]
  rt_step_t step = {0};
  rn_ir_t* ir = graph_of(&rt, x, y, &step);
  rn_ir_uses_t* uses = NULL;
  OK(rn_ir_count_uses(ir, &uses));
  rn_ir_view_t view;
  cr_assert(rn_ir_view_into(ir, uses, node_of(ir, "a"), true, &view));
  check_steps(&view, 0, 3, (int64_t[]){8, 16, 1});
  cr_assert(rn_ir_view_into(ir, uses, node_of(ir, "b"), true, &view));
  check_steps(&view, 4, 3, (int64_t[]){8, 16, 1});
  cr_assert_eq(view.tensor.node, ir->fetches[0].node);
  cr_assert(rn_ir_view_into(ir, uses, node_of(ir, "a"), false, &view));
  cr_assert_eq(view.tensor.node, node_of(ir, "a"), "a Pack was not asked for");
  rn_ir_destroy(ir);
  rt_end(&rt);
}

// What something else reads, or what is not known, stays.
RT_TEST(views, end_where_others_read) {
  rt_t rt = rt_begin(1);
  const int64_t dims[2] = {2, 3};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 2});
  rn_edge_t a = rn_Sin(rt.s, x, .name = "a");
  rn_edge_t y =
      rn_AddV2(rt.s, rn_Transpose(rt.s, a, rn_const_int32_list(rt.s, (int32_t[]){1, 0}, 2)),
               rn_Transpose(rt.s, a, rn_const_int32_list(rt.s, (int32_t[]){1, 0}, 2)));
  rt_step_t step = {0};
  rn_ir_t* ir = graph_of(&rt, x, y, &step);
  rn_ir_uses_t* uses = NULL;
  OK(rn_ir_count_uses(ir, &uses));
  rn_ir_view_t view;
  cr_assert(rn_ir_view_into(ir, uses, node_of(ir, "a"), true, &view));
  cr_assert_eq(view.tensor.node, node_of(ir, "a"));
  check_steps(&view, 0, 2, (int64_t[]){3, 1});
  rn_ir_destroy(ir);
  rt_end(&rt);
}
