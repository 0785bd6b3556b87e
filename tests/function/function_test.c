// Functions and their bodies: attributes, list arguments, name resolution; errors name the function
// and the node; libraries keep functions that nodes still use.
#include "function/function.h"

#include "graph/import.h"
#include "proto/function.pb.h"
#include "util.h"
#include "wire/encode.h"
#include "wire/text.h"

// A function from its text.
static rn_function_t* parse(const char* text) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  void* def = NULL;
  OK(rn_pb_parse(&rn_pb_FunctionDef_desc, rn_str(text), NULL, &arena, &def));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(rn_pb_encode(&rn_pb_FunctionDef_desc, def, NULL, &bytes));
  rn_function_t* function = NULL;
  OK(rn_function_parse(rn_allocator_system(), rn_strbuf_view(&bytes), &function));
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  return function;
}

static void add(rn_graph_t* graph, const char* text) {
  rn_function_t* function = parse(text);
  OK(rn_graph_add_function(graph, function, NULL));
  rn_function_release(function);
}

static const char twice[] =
    "signature { name: 'twice' input_arg { name: 'x' type_attr: 'T' }"
    "  output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } }"
    "node_def { name: 'sum' op: 'AddV2' input: 'x' input: 'x'"
    "  attr { key: 'T' value { placeholder: 'T' } } }"
    "ret { key: 'y' value: 'sum:z:0' }";

static rn_status_t body_of(rn_graph_t* graph, const char* name, const rn_attr_t* attrs, int count,
                           const rn_function_body_t** out) {
  rn_func_attr_t call = {rn_str(name), count, attrs};
  return rn_function_body(graph, &call, out);
}

static rn_attr_t type_attr(const char* name, rn_dtype_t type) {
  return (rn_attr_t){rn_str(name), {.kind = RN_ATTR_TYPE, .type = type}};
}

GT_TEST(function, attributes_are_given) {
  rn_graph_t* graph = gt_graph();
  add(graph, twice);
  rn_attr_t types[] = {type_attr("T", RN_FLOAT), type_attr("T", RN_INT32)};
  const rn_function_body_t *bodies[2], *again;
  for (int i = 0; i < 2; i++) {
    OK(body_of(graph, "twice", &types[i], 1, &bodies[i]));
    cr_assert_eq(bodies[i]->arg_count, 1);
    cr_assert_eq(bodies[i]->args[0]->outputs[0].dtype, types[i].value.type);
    cr_assert_eq(bodies[i]->result_count, 1);
    rn_edge_t result = bodies[i]->results[0];
    cr_assert(rn_str_is(result.node->name, "sum"));
    cr_assert_eq(result.node->outputs[0].dtype, types[i].value.type);
    cr_assert_eq(result.node->inputs[1].node, bodies[i]->args[0]);
  }
  cr_assert_neq(bodies[0], bodies[1]);
  OK(body_of(graph, "twice", &types[0], 1, &again));
  cr_assert_eq(bodies[0], again, "one body for equal attributes");
  FAILS_WITH(body_of(graph, "twice", NULL, 0, &again), NOT_FOUND, "Attr T is not found");
  FAILS_WITH(body_of(graph, "thrice", NULL, 0, &again), NOT_FOUND,
             "Function thrice is not defined.");
  rn_graph_release(graph);
}

// Lists of arguments and of outputs, whole and by number; functions within functions.
GT_TEST(function, lists) {
  rn_graph_t* graph = gt_graph();
  add(graph, twice);
  add(graph,
      "signature { name: 'lists' input_arg { name: 'xs' type: DT_FLOAT number_attr: 'N' }"
      "  input_arg { name: 'rest' type_list_attr: 'Ts' }"
      "  output_arg { name: 'sum' type: DT_FLOAT } output_arg { name: 'part' type: DT_FLOAT }"
      "  attr { name: 'N' type: 'int' } attr { name: 'Ts' type: 'list(type)' }"
      "  control_output: 'done' }"
      "node_def { name: 'total' op: 'AddN' input: 'xs'"
      "  attr { key: 'N' value { placeholder: 'N' } } attr { key: 'T' value { type: DT_FLOAT } } }"
      "node_def { name: 'axis' op: 'Const' input: '^total'"
      "  attr { key: 'dtype' value { type: DT_INT32 } }"
      "  attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }"
      "node_def { name: 'cut' op: 'Split' input: 'axis:output:0' input: 'rest:1'"
      "  attr { key: 'num_split' value { i: 3 } } attr { key: 'T' value { type: DT_FLOAT } } }"
      "node_def { name: 'call' op: 'PartitionedCall' input: 'cut:output:2'"
      "  attr { key: 'Tin' value { list { type: DT_FLOAT } } }"
      "  attr { key: 'Tout' value { list { type: DT_FLOAT } } }"
      "  attr { key: 'f' value { func { name: 'twice'"
      "    attr { key: 'T' value { type: DT_FLOAT } } } } } }"
      "ret { key: 'sum' value: 'total:sum' } ret { key: 'part' value: 'call:output:0' }"
      "control_ret { key: 'done' value: 'axis' }");
  rn_dtype_t types[] = {RN_INT32, RN_FLOAT};
  rn_attr_t attrs[] = {
      {RN_STR("N"), {.kind = RN_ATTR_INT, .i = 3}},
      {RN_STR("Ts"), {.kind = RN_ATTR_TYPE, .is_list = true, .count = 2, .list_type = types}}};
  const rn_function_body_t* body;
  OK(body_of(graph, "lists", attrs, 2, &body));
  cr_assert_eq(body->arg_count, 5);
  cr_assert(rn_str_is(body->args[0]->name, "xs_0"));
  cr_assert(rn_str_is(body->args[4]->name, "rest_1"));
  cr_assert_eq(body->args[3]->outputs[0].dtype, RN_INT32);
  cr_assert_eq(body->results[0].node->input_count, 3);
  cr_assert_eq(body->results[0].node->inputs[2].node, body->args[2]);
  const rn_node_t* call = body->results[1].node;
  cr_assert_eq(call->inputs[0].index, 2);
  cr_assert_eq(call->inputs[0].node->inputs[1].node, body->args[4]);
  cr_assert_eq(body->control_count, 1);
  cr_assert(rn_str_is(body->controls[0]->name, "axis"));
  cr_assert_eq(body->controls[0]->controls.count, 1);
  rn_graph_release(graph);
}

GT_TEST(function, bad_bodies) {
  static const struct {
    const char *text, *message;
    rn_code_t code;
  } cases[] = {
      {"signature { name: 'b' output_arg { name: 'y' type: DT_FLOAT } }",
       "Return y missing in function 'b'", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' output_arg { name: 'y' type: DT_FLOAT } } ret { key: 'y' value: 'n' "
       "}",
       "input n is not found in function 'b'", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' } node_def { name: 'n' op: 'Nonsense' }",
       "Op type not registered 'Nonsense'", RN_CODE_NOT_FOUND},
      {"signature { name: 'b' } node_def { name: 'n' op: 'NoOp' } node_def { name: 'n' op: 'NoOp' "
       "}",
       "Duplicated name 'n' in function 'b'", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' input_arg { name: 'x' type: DT_FLOAT } }"
       "node_def { name: 'n' op: 'Neg' input: 'x:3' attr { key: 'T' value { type: DT_FLOAT } } }",
       "input x:3 is not found in function 'b'", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' input_arg { name: 'x' type: DT_FLOAT } }"
       "node_def { name: 'n' op: 'Neg' input: 'x' attr { key: 'T' value { placeholder: 'U' } } }",
       "no attr 'U'", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' input_arg { name: 'x' type: DT_FLOAT } }"
       "node_def { name: 'n' op: 'Neg' input: 'x' attr { key: 'T' value { type: DT_INT32 } } }",
       "Input 0 of node n was passed float from x:0 incompatible with expected int32.",
       RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' } control_ret { key: 'c' value: 'nobody' }",
       "Control return nobody of function 'b' is no node of it", RN_CODE_INVALID_ARGUMENT},
      {"signature { name: 'b' } node_def { name: 'n' op: 'Identity' input: 'm:output:0'"
       "  attr { key: 'T' value { type: DT_FLOAT } } }"
       "node_def { name: 'm' op: 'Identity' input: 'n:output:0'"
       "  attr { key: 'T' value { type: DT_FLOAT } } }",
       "", RN_CODE_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rn_graph_t* graph = gt_graph();
    add(graph, cases[i].text);
    const rn_function_body_t* body;
    rn_status_t status = body_of(graph, "b", NULL, 0, &body);
    cr_assert_eq(rn_status_code(status), cases[i].code, "%zu: %s", i, rn_status_message(status));
    cr_assert(strstr(rn_status_message(status), cases[i].message), "%zu: '%s' lacks '%s'", i,
              rn_status_message(status), cases[i].message);
    cr_assert(strstr(rn_status_message(status), "when instantiating b"));
    cr_assert_null(body);
    rn_status_free(status);
    rn_graph_release(graph);
  }
}

// A function of a body is the function again, but for its name.
GT_TEST(function, there_and_back) {
  rn_graph_t* graph = gt_graph();
  add(graph, twice);
  rn_attr_t type = type_attr("T", RN_FLOAT);
  rn_func_attr_t call = {RN_STR("twice"), 1, &type};
  rn_function_body_t* body = NULL;
  OK(rn_function_instantiate(graph, &call, &body));
  rn_edge_t input = {body->args[0], 0};
  rn_str_t output_name = RN_STR("y");
  rn_function_spec_t spec = {.graph = body->graph,
                             .name = RN_STR("back"),
                             .node_count = -1,
                             .inputs = &input,
                             .input_count = 1,
                             .outputs = body->results,
                             .output_count = 1,
                             .output_names = &output_name};
  rn_function_t* function = NULL;
  OK(rn_function_create(&spec, &function));
  // What is added to the body's library is the graph's.
  OK(rn_graph_add_function(body->graph, function, NULL));
  rn_function_body_destroy(body);
  rn_function_release(function);
  cr_assert_eq(rn_graph_function_count(graph), 2);
  const rn_function_body_t *first, *second;
  OK(body_of(graph, "twice", &type, 1, &first));
  OK(body_of(graph, "back", NULL, 0, &second));
  rn_strbuf_t a = gt_export(first->graph), b = gt_export(second->graph);
  cr_assert(rn_str_eq(rn_strbuf_view(&a), rn_strbuf_view(&b)));
  rn_strbuf_clear(&a);
  rn_strbuf_clear(&b);
  rn_graph_release(graph);
}

GT_TEST(function, library) {
  rn_graph_t* graph = gt_graph();
  add(graph, twice);
  add(graph, twice);  // the same again is fine
  cr_assert_eq(rn_graph_function_count(graph), 1);
  rn_function_t* other = parse("signature { name: 'twice' }");
  rn_function_t* mine = parse("signature { name: 'mine' }");
  FAILS_SAYING(
      rn_graph_add_function(graph, other, NULL), INVALID_ARGUMENT,
      "Cannot add function 'twice' because a different function with the same name already "
      "exists.");
  // All or nothing: |mine| is not kept when its gradient is refused.
  FAILS_WITH(rn_graph_add_function(graph, mine, other), INVALID_ARGUMENT, "'twice'");
  cr_assert_eq(rn_graph_function_count(graph), 1);
  rn_function_t* known = rn_graph_get_function(graph, RN_STR("twice"));
  OK(rn_graph_add_function(graph, mine, known));
  cr_assert(rn_str_is(rn_graph_function_gradient(graph, RN_STR("mine")), "twice"));
  cr_assert_eq(rn_graph_function_gradient(graph, RN_STR("twice")).size, 0);
  rn_function_release(known);
  // A node of a function that is removed stays what it was.
  const rn_edge_t x = {gt_placeholder(graph, "x", RN_FLOAT, RN_SHAPE_UNKNOWN), 0};
  rn_attr_t attrs[] = {type_attr("T", RN_FLOAT), {.name = {0}}};
  rn_node_t* node = NULL;
  OK(gt_add(graph, "twice", "node", &x, 1, attrs, &node));
  const rn_function_body_t* body;
  OK(body_of(graph, "twice", attrs, 1, &body));
  OK(rn_graph_remove_function(graph, RN_STR("twice")));
  FAILS_SAYING(rn_graph_remove_function(graph, RN_STR("twice")), INVALID_ARGUMENT,
               "Tried to remove non-existent function 'twice'.");
  cr_assert_eq(rn_graph_function_count(graph), 1);
  cr_assert(rn_str_is(rn_str(node->op->name), "twice"));
  FAILS_WITH(body_of(graph, "twice", attrs, 1, &body), NOT_FOUND, "twice");
  OK(rn_graph_add_function(graph, other, NULL));  // the name is free again
  OK(body_of(graph, "twice", NULL, 0, &body));
  cr_assert_eq(body->arg_count, 0);
  rn_function_release(other);
  rn_function_release(mine);
  rn_graph_release(graph);
}

// A failed import takes its functions back.
GT_TEST(function, failed_import) {
  rn_graph_t* source = gt_graph();
  add(source, twice);
  rn_strbuf_t bytes = gt_export(source);
  rn_graph_t* graph = gt_graph();
  rn_import_options_t options = {.return_nodes = &RN_STR("nobody"), .return_node_count = 1};
  FAILS_WITH(rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL), INVALID_ARGUMENT,
             "nobody");
  cr_assert_eq(rn_graph_function_count(graph), 0);
  OK(rn_graph_import(graph, rn_strbuf_view(&bytes), NULL, NULL));
  cr_assert_eq(rn_graph_function_count(graph), 1);
  rn_strbuf_t again = gt_export(graph);
  cr_assert(rn_str_eq(rn_strbuf_view(&bytes), rn_strbuf_view(&again)));
  rn_strbuf_clear(&again);
  rn_strbuf_clear(&bytes);
  rn_graph_release(source);
  rn_graph_release(graph);
}
