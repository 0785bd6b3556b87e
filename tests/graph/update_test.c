// Replacing edges and setting shapes after a node was added.
#include "util.h"

typedef struct nodes_t {
  rn_graph_t* graph;
  rn_node_t *x, *y, *m, *k, *k2;
} nodes_t;

static nodes_t make_nodes(void) {
  nodes_t n = {.graph = gt_graph()};
  n.x = gt_placeholder(n.graph, "x", RN_FLOAT, RN_SHAPE_UNKNOWN);
  n.y = gt_placeholder(n.graph, "y", RN_FLOAT, GT_SHAPE(-1, 4));
  OK(gt_add(n.graph, "MatMul", "m", GT_EDGES(GT_OUT(n.x), GT_OUT(n.y)), NULL, &n.m));
  OK(gt_add(n.graph, "Neg", "k", GT_EDGES(GT_OUT(n.m)), NULL, &n.k));
  OK(gt_add(n.graph, "Neg", "k2", GT_EDGES(GT_OUT(n.k)), NULL, &n.k2));
  return n;
}

GT_TEST(update, replaces_and_infers_again) {
  nodes_t n = make_nodes();
  cr_assert_str_eq(gt_shape(GT_OUT(n.k2)), "[?,4]");
  rn_node_t* f = gt_placeholder(n.graph, "f", RN_FLOAT, GT_SHAPE(2, 3));
  OK(rn_graph_update_edge(n.graph, GT_OUT(f), n.m, 0));
  cr_assert_eq(n.m->inputs[0].node, f);
  cr_assert_eq(n.x->outputs[0].consumers.count, 0);
  cr_assert_eq(f->outputs[0].consumers.count, 1);
  cr_assert_str_eq(gt_shape(GT_OUT(n.k2)), "[2,4]");
  // Back to something less known: what was inferred from the old input is forgotten.
  OK(rn_graph_update_edge(n.graph, GT_OUT(n.x), n.m, 0));
  cr_assert_str_eq(gt_shape(GT_OUT(n.k2)), "[?,4]");
  rn_graph_release(n.graph);
}

GT_TEST(update, refuses) {
  nodes_t n = make_nodes();
  rn_graph_t* g = n.graph;
  rn_node_t* f = gt_placeholder(g, "f", RN_FLOAT, GT_SHAPE(2, 3));
  rn_node_t* i = gt_placeholder(g, "i", RN_INT32, RN_SHAPE_UNKNOWN);
  rn_node_t* vector = gt_placeholder(g, "vector", RN_FLOAT, GT_SHAPE(3));
  FAILS_SAYING(
      rn_graph_update_edge(g, (rn_edge_t){f, 1}, n.m, 0), OUT_OF_RANGE,
      "Cannot update edge. Output index [1] is greater than the number of total outputs [1].");
  FAILS_SAYING(
      rn_graph_update_edge(g, GT_OUT(f), n.m, 2), OUT_OF_RANGE,
      "Cannot update edge. Input index [2] is greater than the number of total inputs [2].");
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(f), n.m, -1), OUT_OF_RANGE, "Input index [-1]");
  FAILS_WITH(rn_graph_update_edge(g, RN_NO_EDGE, n.m, 0), INVALID_ARGUMENT, "null");
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(f), NULL, 0), INVALID_ARGUMENT, "null");
  FAILS_SAYING(rn_graph_update_edge(g, GT_OUT(i), n.m, 0), INVALID_ARGUMENT,
               "Input 0 of node m was passed int32 from i:0 incompatible with expected float.");
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(n.k2), n.m, 0), INVALID_ARGUMENT, "cycle");
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(n.m), n.m, 0), INVALID_ARGUMENT, "cycle");
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(vector), n.m, 0), INVALID_ARGUMENT,
             "Shape must be rank 2 but is rank 1");
  OK(rn_graph_update_edge(g, GT_OUT(f), n.m, 0));
  FAILS_SAYING(rn_graph_update_edge(g, GT_OUT(vector), n.m, 0), INVALID_ARGUMENT,
               "Cannot update edge, incompatible shapes: [3] and [2,3].");
  cr_assert_eq(n.m->inputs[0].node, f);
  cr_assert_eq(vector->outputs[0].consumers.count, 0);
  cr_assert_eq(f->outputs[0].consumers.count, 1);
  rn_graph_release(g);
}

// The way a while loop is built: Merge reads its Enter twice until the NextIteration is there.
GT_TEST(update, closes_a_loop) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, GT_SHAPE(1, 3));
  rn_node_t *enter = NULL, *merge = NULL, *grown = NULL, *next = NULL;
  OK(gt_add(g, "Enter", "enter", GT_EDGES(GT_OUT(x)), GT_ATTRS(GT_ATTR_STR("frame_name", "f")),
            &enter));
  OK(gt_add_list(g, "Merge", "merge", GT_EDGES(GT_OUT(enter), GT_OUT(enter)), &merge));
  OK(gt_add(g, "Neg", "neg", GT_EDGES(GT_OUT(merge)), NULL, &grown));
  OK(gt_add(g, "NextIteration", "next", GT_EDGES(GT_OUT(grown)), NULL, &next));
  OK(rn_graph_update_edge(g, GT_OUT(next), merge, 1));
  cr_assert_eq(merge->inputs[1].node, next);
  FAILS_WITH(rn_graph_update_edge(g, GT_OUT(next), grown, 0), INVALID_ARGUMENT, "cycle");
  rn_graph_release(g);
}

GT_TEST(update, passes_on) {
  nodes_t n = make_nodes();
  rn_node_t* i = gt_placeholder(n.graph, "i", RN_INT32, RN_SHAPE_UNKNOWN);
  rn_edge_t wrong = GT_OUT(i), value = GT_OUT(n.y);
  FAILS_WITH(rn_graph_pass_on(n.graph, n.m, &wrong), INVALID_ARGUMENT, "cannot become int32");
  FAILS_WITH(rn_graph_pass_on(n.graph, n.m, &RN_NO_EDGE), INVALID_ARGUMENT, "null");
  cr_assert_str_eq(n.m->op->name, "MatMul");
  OK(rn_graph_pass_on(n.graph, n.m, &value));
  cr_assert_str_eq(n.m->op->name, "IdentityN");
  cr_assert_eq(n.m->input_count, 1);
  cr_assert_eq(n.x->outputs[0].consumers.count, 0);
  cr_assert_eq(n.y->outputs[0].consumers.count, 1);
  cr_assert_eq(n.k->inputs[0].node, n.m);
  rn_graph_release(n.graph);
}

GT_TEST(update, set_shape) {
  rn_graph_t* g = gt_graph();
  rn_node_t* x = gt_placeholder(g, "x", RN_FLOAT, RN_SHAPE_UNKNOWN);
  OK(rn_graph_set_shape(g, GT_OUT(x), GT_SHAPE(2, -1)));
  cr_assert_str_eq(gt_shape(GT_OUT(x)), "[2,?]");
  OK(rn_graph_set_shape(g, GT_OUT(x), GT_SHAPE(-1, 3)));
  cr_assert_str_eq(gt_shape(GT_OUT(x)), "[2,3]");
  OK(rn_graph_set_shape(g, GT_OUT(x), RN_SHAPE_UNKNOWN));
  cr_assert_str_eq(gt_shape(GT_OUT(x)), "[2,3]");
  FAILS_SAYING(rn_graph_set_shape(g, GT_OUT(x), GT_SHAPE(4, 3)), INVALID_ARGUMENT,
               "Dimension 0 in both shapes must be equal, but are 2 and 4. Shapes are [2,3] and "
               "[4,3].");
  FAILS_SAYING(rn_graph_set_shape(g, GT_OUT(x), GT_SHAPE(2)), INVALID_ARGUMENT,
               "Shapes must be equal rank, but are 2 and 1");
  FAILS_SAYING(rn_graph_set_shape(g, (rn_edge_t){x, 1}, GT_SHAPE(2)), INVALID_ARGUMENT,
               "output_port '1' is out of range, node 'x' has 1 outputs");
  FAILS_WITH(rn_graph_set_shape(g, GT_OUT(x), GT_SHAPE(-2)), INVALID_ARGUMENT, "-2");
  FAILS_WITH(rn_graph_set_shape(g, RN_NO_EDGE, GT_SHAPE(2)), INVALID_ARGUMENT, "null");
  rn_graph_release(g);
}
