// Adding nodes: attributes inferred from inputs, errors and their messages.
#include <stdio.h>

#include "util.h"

#define NEG_OP                                                                               \
  "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_BFLOAT16, DT_HALF, DT_FLOAT, " \
  "DT_DOUBLE, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_COMPLEX64, DT_COMPLEX128]>"
#define MATMUL_OP                                                                              \
  "Op<name=MatMul; signature=a:T, b:T -> product:T; attr=transpose_a:bool,default=false; "     \
  "attr=transpose_b:bool,default=false; attr=T:type,allowed=[DT_BFLOAT16, DT_HALF, DT_FLOAT, " \
  "DT_DOUBLE, DT_INT32, DT_INT64, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64, DT_COMPLEX64, "   \
  "DT_COMPLEX128]; attr=grad_a:bool,default=false; attr=grad_b:bool,default=false>"
#define ADDN_OP                                                                                    \
  "Op<name=AddN; signature=inputs:N*T -> sum:T; attr=N:int,min=1; attr=T:type,allowed=[DT_FLOAT, " \
  "DT_DOUBLE, DT_INT32, DT_UINT8, DT_INT16, DT_INT8, DT_COMPLEX64, DT_INT64, DT_QINT8, "           \
  "DT_QUINT8, DT_QINT32, DT_BFLOAT16, DT_QINT16, DT_QUINT16, DT_UINT16, DT_COMPLEX128, DT_HALF, "  \
  "DT_UINT32, DT_UINT64, DT_VARIANT]; is_commutative=true; is_aggregate=true>"

typedef struct nodes_t {
  rn_graph_t* graph;
  rn_node_t *x, *y, *i, *v;
} nodes_t;

static nodes_t make_nodes(void) {
  nodes_t n = {.graph = gt_graph()};
  n.x = gt_placeholder(n.graph, "x", RN_FLOAT, GT_SHAPE(2, 3));
  n.y = gt_placeholder(n.graph, "y", RN_FLOAT, GT_SHAPE(4, 5));
  n.i = gt_placeholder(n.graph, "i", RN_INT32, RN_SHAPE_UNKNOWN);
  const rn_attr_t attrs[] = {GT_ATTR_TYPE("dtype", RN_FLOAT),
                             GT_ATTR("shape", .kind = RN_ATTR_SHAPE, .shape = GT_SHAPE(2)),
                             GT_NONE};
  OK(gt_add(n.graph, "VariableV2", "v", NULL, 0, attrs, &n.v));
  return n;
}

GT_TEST(add, infers_types_and_fills_defaults) {
  nodes_t n = make_nodes();
  rn_node_t* m = NULL;
  rn_node_t* z = gt_placeholder(n.graph, "z", RN_FLOAT, GT_SHAPE(2, 7));
  OK(gt_add(n.graph, "MatMul", "m", GT_EDGES(GT_OUT(n.x), GT_OUT(z)),
            GT_ATTRS(GT_ATTR_BOOL("transpose_a", true), GT_ATTR_INT("_extra", 7)), &m));
  cr_assert_eq(m->output_count, 1);
  cr_assert_eq(m->outputs[0].dtype, RN_FLOAT);
  cr_assert_str_eq(gt_shape(GT_OUT(m)), "[3,7]");
  cr_assert_eq(rn_node_attr(m, RN_STR("T"))->type, RN_FLOAT);
  cr_assert(rn_node_attr(m, RN_STR("transpose_a"))->b);
  cr_assert_not(rn_node_attr(m, RN_STR("transpose_b"))->b);
  cr_assert_eq(rn_node_attr(m, RN_STR("_extra"))->i, 7);
  cr_assert_null(rn_node_attr(m, RN_STR("nothing")));
  cr_assert_eq(rn_graph_find(n.graph, RN_STR("m")), m);
  rn_output_t* x = &n.x->outputs[0];
  cr_assert_eq(x->consumers.count, 1);
  cr_assert(x->consumers.items[0].node == m && x->consumers.items[0].input == 0);
  rn_graph_release(n.graph);
}

GT_TEST(add, lists) {
  nodes_t n = make_nodes();
  rn_node_t* node = NULL;
  OK(gt_add_list(n.graph, "AddN", "a", GT_EDGES(GT_OUT(n.x), GT_OUT(n.x), GT_OUT(n.x)), &node));
  cr_assert_eq(rn_node_attr(node, RN_STR("N"))->i, 3);
  OK(gt_add_list(n.graph, "IdentityN", "b", GT_EDGES(GT_OUT(n.x), GT_OUT(n.i)), &node));
  const rn_attr_value_t* types = rn_node_attr(node, RN_STR("T"));
  cr_assert(types->is_list && types->count == 2 && types->list_type[1] == RN_INT32);
  cr_assert_eq(node->output_count, 2);
  cr_assert_eq(node->outputs[1].dtype, RN_INT32);
  FAILS_SAYING(
      gt_add_list(n.graph, "AddN", "c", NULL, 0, NULL), INVALID_ARGUMENT,
      "Value for attr 'N' of 0 must be at least minimum 1\n\t; NodeDef: {{node c}}; " ADDN_OP);
  FAILS_SAYING(
      gt_add_list(n.graph, "AddN", "c", GT_EDGES(GT_OUT(n.x), GT_OUT(n.i)), NULL), INVALID_ARGUMENT,
      "Input 'inputs' passed int32 expected float while building NodeDef 'c' using " ADDN_OP);
  FAILS_SAYING(gt_add(n.graph, "AddN", "c", GT_EDGES(GT_OUT(n.x), GT_OUT(n.x)), NULL, NULL),
               INVALID_ARGUMENT,
               "2 errors while building NodeDef 'c' using " ADDN_OP
               ":\nSingle tensor passed to 'inputs', expected list\n"
               "More Input() calls than the 1 input_args");
  FAILS_SAYING(gt_add_list(n.graph, "Neg", "c", GT_EDGES(GT_OUT(n.x)), NULL), INVALID_ARGUMENT,
               "List provided to input 'x' when single Tensor expected while building NodeDef 'c' "
               "using " NEG_OP);
  rn_graph_release(n.graph);
}

// Without argument lengths, lists are as long as attributes say or inputs are left.
GT_TEST(add, lengths_from_attributes) {
  nodes_t n = make_nodes();
  rn_node_t* axis = gt_const_int32(n.graph, "axis", 0, NULL, &(int32_t){0});
  rn_edge_t inputs[] = {GT_OUT(n.x), GT_OUT(n.x), GT_OUT(axis)};
  rn_node_spec_t spec = {
      .op = RN_STR("ConcatV2"), .name = RN_STR("c"), .inputs = inputs, .input_count = 3};
  rn_node_t* node = NULL;
  OK(rn_graph_add(n.graph, &spec, &node));
  cr_assert_eq(rn_node_attr(node, RN_STR("N"))->i, 2);
  cr_assert_str_eq(gt_shape(GT_OUT(node)), "[4,3]");
  spec.name = RN_STR("d");
  spec.attrs = GT_ATTRS(GT_ATTR_INT("N", 2));
  spec.attr_count = 1;
  OK(rn_graph_add(n.graph, &spec, &node));
  spec = (rn_node_spec_t){
      .op = RN_STR("MatMul"), .name = RN_STR("e"), .inputs = inputs, .input_count = 1};
  FAILS_SAYING(rn_graph_add(n.graph, &spec, &node), INVALID_ARGUMENT,
               "1 inputs specified of 2 inputs in Op while building NodeDef 'e' using " MATMUL_OP);
  rn_graph_release(n.graph);
}

GT_TEST(add, wrong_inputs) {
  nodes_t n = make_nodes();
  rn_graph_t* g = n.graph;
  FAILS_SAYING(gt_add(g, "MatMul", "m", GT_EDGES(GT_OUT(n.x), GT_OUT(n.i)), NULL, NULL),
               INVALID_ARGUMENT,
               "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32 while building NodeDef 'm' "
               "using " MATMUL_OP);
  FAILS_SAYING(gt_add(g, "MatMul", "m", GT_EDGES(GT_OUT(n.x)), NULL, NULL), INVALID_ARGUMENT,
               "1 inputs specified of 2 inputs in Op while building NodeDef 'm' using " MATMUL_OP);
  FAILS_SAYING(
      gt_add(g, "MatMul", "m", GT_EDGES(GT_OUT(n.x), GT_OUT(n.x), GT_OUT(n.x)), NULL, NULL),
      INVALID_ARGUMENT,
      "More Input() calls than the 2 input_args while building NodeDef 'm' using " MATMUL_OP);
  FAILS_SAYING(gt_add(g, "MatMul", "m", GT_EDGES({n.x, 1}, {n.x, -1}), NULL, NULL),
               INVALID_ARGUMENT,
               "Attempt to add output 1 of x not in range [0, 1) to node with type MatMul. Node: "
               "{{node x}}\nAttempt to add output -1 of x not in range [0, 1) to node with type "
               "MatMul. Node: {{node x}}");
  FAILS_SAYING(gt_add(g, "Neg", "m", GT_EDGES(RN_NO_EDGE), NULL, NULL), INVALID_ARGUMENT,
               "Attempt to add nullptr Node to node with type Neg");
  FAILS_SAYING(gt_add(g, "Assign", "m", GT_EDGES(GT_OUT(n.x), GT_OUT(n.i)), NULL, NULL),
               INVALID_ARGUMENT,
               "2 errors while building NodeDef 'm' using Op<name=Assign; signature=ref:Ref(T), "
               "value:T -> output_ref:Ref(T); attr=T:type; attr=validate_shape:bool,default=true; "
               "attr=use_locking:bool,default=true; allows_uninitialized_input=true>:\n"
               "Input 'ref' passed float expected ref type\n"
               "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32");
  OK(gt_add(g, "Neg", "reads_a_reference", GT_EDGES(GT_OUT(n.v)), NULL, NULL));
  rn_graph_t* other = gt_graph();
  rn_node_t* z = gt_placeholder(other, "z", RN_FLOAT, RN_SHAPE_UNKNOWN);
  FAILS_WITH(gt_add(g, "Neg", "m", GT_EDGES(GT_OUT(z)), NULL, NULL), INVALID_ARGUMENT,
             "of another graph");
  rn_node_spec_t spec = {.op = RN_STR("NoOp"), .name = RN_STR("m"), .controls = &z};
  spec.control_count = 1;
  rn_node_t* node = NULL;
  FAILS_WITH(rn_graph_add(g, &spec, &node), INVALID_ARGUMENT, "of another graph");
  cr_assert_null(rn_graph_find(g, RN_STR("m")));
  rn_graph_release(other);
  rn_graph_release(g);
}

GT_TEST(add, wrong_attributes) {
  nodes_t n = make_nodes();
  rn_graph_t* g = n.graph;
  rn_edge_t xx[] = {GT_OUT(n.x), GT_OUT(n.x)};
  FAILS_SAYING(gt_add(g, "MatMul", "m", xx, 2, GT_ATTRS(GT_ATTR_INT("transpose_b", 1)), NULL),
               INVALID_ARGUMENT,
               "AttrValue had value with type 'int' when 'bool' expected\n\t for attr 'transpose_b'"
               "\n\t; NodeDef: {{node m}}; " MATMUL_OP);
  FAILS_SAYING(gt_add(g, "MatMul", "m", xx, 2, GT_ATTRS(GT_ATTR_TYPE("T", RN_INT32)), NULL),
               INVALID_ARGUMENT,
               "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32 while building NodeDef 'm' "
               "using " MATMUL_OP);
  FAILS_SAYING(gt_add(g, "Placeholder", "m", NULL, 0, NULL, NULL), INVALID_ARGUMENT,
               "NodeDef missing attr 'dtype' from Op<name=Placeholder; signature= -> output:dtype; "
               "attr=dtype:type; attr=shape:shape,default=<unknown>>; NodeDef: {{node m}}");
  FAILS_WITH(gt_add(g, "Placeholder", "m", NULL, 0, GT_ATTRS(GT_ATTR_TYPE("dtype", 77)), NULL),
             INVALID_ARGUMENT, "AttrValue has invalid DataType enum: 77\n\t for attr 'dtype'");
  FAILS_WITH(gt_add(g, "Placeholder", "m", NULL, 0, GT_ATTRS(GT_ATTR_TYPE("dtype", 0)), NULL),
             INVALID_ARGUMENT, "AttrValue has invalid DataType\n\t for attr 'dtype'");
  FAILS_WITH(gt_add(g, "Placeholder", "m", NULL, 0, GT_ATTRS(GT_ATTR_TYPE("dtype", 101)), NULL),
             INVALID_ARGUMENT, "AttrValue must not have reference type value of float_ref");
  rn_node_t* s = gt_placeholder(g, "s", RN_STRING, RN_SHAPE_UNKNOWN);
  FAILS_SAYING(
      gt_add(g, "Neg", "m", GT_EDGES(GT_OUT(s)), NULL, NULL), INVALID_ARGUMENT,
      "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half, "
      "float, double, int8, int16, int32, int64, complex64, complex128\n\t; NodeDef: {{node "
      "m}}; " NEG_OP);
  FAILS_WITH(gt_add(g, "Unpack", "m", GT_EDGES(GT_OUT(n.x)),
                    GT_ATTRS(GT_ATTR_INT("num", INT64_C(4000000000))), NULL),
             INVALID_ARGUMENT, "Number of outputs is too big: 4000000000");
  FAILS_WITH(gt_add(g, "TopK", "m", GT_EDGES(GT_OUT(n.x)), GT_ATTRS(GT_ATTR_INT("k", 1)), NULL),
             UNIMPLEMENTED,
             "Op TopK is not available in GraphDef version 2474. It has been removed in version "
             "7. Use TopKV2 instead.");
  rn_graph_release(g);
}

GT_TEST(add, names_and_ops) {
  nodes_t n = make_nodes();
  FAILS_SAYING(gt_add(n.graph, "Neg", "x", GT_EDGES(GT_OUT(n.x)), NULL, NULL), INVALID_ARGUMENT,
               "Duplicate node name in graph: 'x'");
  FAILS_WITH(gt_add(n.graph, "Bogus", "b", NULL, 0, NULL, NULL), INVALID_ARGUMENT,
             "Op type not registered 'Bogus' in binary running on ");
  FAILS_WITH(gt_add(n.graph, "Bogus", "b", NULL, 0, NULL, NULL), INVALID_ARGUMENT,
             " lazily registered when the module is first accessed. while building NodeDef 'b'");
  rn_str_t name;
  rn_mutex_lock(&n.graph->mutex);
  OK(rn_graph_unique_name_locked(n.graph, RN_STR("free"), &name));
  cr_assert(rn_str_is(name, "free"));
  for (int i = 1; i < 12; i++) {
    char wanted[16];
    snprintf(wanted, sizeof wanted, "x_%d", i);
    OK(rn_graph_unique_name_locked(n.graph, RN_STR("x"), &name));
    cr_assert(rn_str_is(name, wanted), "%.*s", RN_STR_ARGS(name));
  }
  rn_mutex_unlock(&n.graph->mutex);
  rn_graph_release(n.graph);
}

GT_TEST(add, controls_count_once) {
  nodes_t n = make_nodes();
  rn_node_t* controls[] = {n.y, n.i, n.y, n.x, n.y};
  rn_node_spec_t spec = {.op = RN_STR("NoOp"),
                         .name = RN_STR("c"),
                         .device = RN_STR("any text"),
                         .controls = controls,
                         .control_count = 5};
  rn_node_t* node = NULL;
  OK(rn_graph_add(n.graph, &spec, &node));
  cr_assert_eq(node->controls.count, 3);
  cr_assert_eq(n.y->control_consumers.count, 1);
  cr_assert(rn_str_is(node->device, "any text"));
  rn_graph_release(n.graph);
}

// An attribute that is left open is kept, and nothing is inferred from it.
GT_TEST(add, placeholder_attributes) {
  nodes_t n = make_nodes();
  const rn_attr_t attrs[] = {GT_ATTR("shape", .kind = RN_ATTR_PLACEHOLDER, .s = {"v", 1}),
                             GT_ATTR_TYPE("dtype", RN_FLOAT), GT_NONE};
  rn_node_t* node = NULL;
  OK(gt_add(n.graph, "Placeholder", "open", NULL, 0, attrs, &node));
  cr_assert_str_eq(gt_shape(GT_OUT(node)), "<unknown>");
  rn_graph_release(n.graph);
}

// Failing the n-th allocation leaves the graph as it was, and leaks nothing.
GT_TEST(add, survives_lack_of_memory) {
  for (int64_t fail_at = 1;; fail_at++) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = fail_at};
    rn_graph_t* graph = NULL;
    rn_status_t status = rn_graph_create(rn_allocator_counting(&counting), &graph);
    rn_node_t* node = NULL;
    if (rn_ok(status)) {
      status = gt_add(graph, "Placeholder", "x", NULL, 0, GT_ATTRS(GT_ATTR_TYPE("dtype", RN_FLOAT)),
                      &node);
    }
    for (int i = 0; rn_ok(status) && i < 300; i++) {
      char name[16];
      snprintf(name, sizeof name, "n%d", i);
      rn_node_t* source = node;
      size_t before = graph->nodes.count;
      size_t consumers = source->outputs[0].consumers.count;
      status = gt_add(graph, "Mul", name, GT_EDGES(GT_OUT(source), GT_OUT(source)), NULL, &node);
      if (rn_ok(status)) continue;
      cr_assert_eq(graph->nodes.count, before);
      cr_assert_eq(source->outputs[0].consumers.count, consumers);
      cr_assert_null(rn_graph_find(graph, rn_str(name)));
      OK(gt_add(graph, "Mul", name, GT_EDGES(GT_OUT(source), GT_OUT(source)), NULL, &node));
    }
    bool done = rn_ok(status) && counting.allocations < fail_at;
    if (!rn_ok(status)) cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_graph_release(graph);
    cr_assert_eq(counting.live_blocks, 0);
    if (done) return;
  }
}
