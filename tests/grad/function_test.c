// Gradients of functions: those with their own gradient, and calls that cannot be inlined.
#include "function/function.h"

#include <criterion/criterion.h>

#include "base/env.h"
#include "grad/grad.h"
#include "graph/edit.h"
#include "proto/function.pb.h"
#include "runnel/ops.h"
#include "session/session.h"
#include "wire/encode.h"
#include "wire/text.h"

typedef struct t_t {
  rn_graph_t* graph;
  rn_scope_t* s;
} t_t;

static void must(rn_status_t status) { cr_assert(rn_ok(status), "%s", rn_status_message(status)); }

static t_t begin(void) {
  t_t t = {0};
  must(rn_graph_create(rn_allocator_system(), &t.graph));
  t.s = rn_scope_create(t.graph);
  return t;
}

static void end(t_t* t) {
  rn_scope_destroy(t->s);
  rn_graph_release(t->graph);
}

static rn_function_t* parse(const char* text) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  void* def = NULL;
  must(rn_pb_parse(&rn_pb_FunctionDef_desc, rn_str(text), NULL, &arena, &def));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  must(rn_pb_encode(&rn_pb_FunctionDef_desc, def, NULL, &bytes));
  rn_function_t* function = NULL;
  must(rn_function_parse(rn_allocator_system(), rn_strbuf_view(&bytes), &function));
  rn_strbuf_clear(&bytes);
  rn_arena_clear(&arena);
  return function;
}

static void add(rn_graph_t* graph, const char* text, const char* gradient) {
  rn_function_t* function = parse(text);
  rn_function_t* own = gradient ? parse(gradient) : NULL;
  if (own) must(rn_graph_add_function(graph, own, NULL));
  must(rn_graph_add_function(graph, function, own));
  rn_function_release(function);
  rn_function_release(own);
}

#define DOUBLE_ATTR "attr { key: 'T' value { type: DT_DOUBLE } }"
static const char square[] =
    "signature { name: 'square' input_arg { name: 'x' type: DT_DOUBLE }"
    "  output_arg { name: 'y' type: DT_DOUBLE } }"
    "node_def { name: 'p' op: 'Mul' input: 'x' input: 'x' " DOUBLE_ATTR
    " }"
    "ret { key: 'y' value: 'p:z:0' }";
// Not the derivative: 7 dy, so that it can be told from it.
static const char seven[] =
    "signature { name: 'seven' input_arg { name: 'x' type: DT_DOUBLE }"
    "  input_arg { name: 'dy' type: DT_DOUBLE } output_arg { name: 'dx' type: DT_DOUBLE } }"
    "node_def { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_DOUBLE } }"
    "  attr { key: 'value' value { tensor { dtype: DT_DOUBLE tensor_shape {} double_val: 7 } } } }"
    "node_def { name: 'p' op: 'Mul' input: 'c:output:0' input: 'dy' " DOUBLE_ATTR
    " }"
    "ret { key: 'dx' value: 'p:z:0' }";
static const char short_one[] =
    "signature { name: 'short_one' input_arg { name: 'dy' type: DT_DOUBLE }"
    "  output_arg { name: 'dx' type: DT_DOUBLE } }"
    "node_def { name: 'p' op: 'Neg' input: 'dy' " DOUBLE_ATTR
    " }"
    "ret { key: 'dx' value: 'p:y:0' }";
static const char endless[] =
    "signature { name: 'endless' input_arg { name: 'x' type: DT_DOUBLE }"
    "  output_arg { name: 'y' type: DT_DOUBLE } }"
    "node_def { name: 'again' op: 'PartitionedCall' input: 'x'"
    "  attr { key: 'Tin' value { list { type: DT_DOUBLE } } }"
    "  attr { key: 'Tout' value { list { type: DT_DOUBLE } } }"
    "  attr { key: 'f' value { func { name: 'endless' } } } }"
    "ret { key: 'y' value: 'again:output:0' }";

static rn_edge_t call(t_t* t, const char* name, rn_edge_t x) {
  int type = RN_DOUBLE;
  rn_op_begin(t->s, "PartitionedCall");
  rn_op_input_list(t->s, &x, 1);
  rn_op_attr_type_list(t->s, "Tout", &type, 1);
  rn_op_attr_func(t->s, "f", name);
  return (rn_edge_t){rn_op_finish(t->s), 0};
}

static double fetch(t_t* t, rn_edge_t edge) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_session_t* session = NULL;
  must(rn_session_create(t->graph, &options, rn_env_system(), rn_allocator_system(), &session));
  rn_signature_t signature = {.fetches = &edge, .fetch_count = 1};
  rn_tensor_t value = {0};
  must(rn_session_run(session, &signature, NULL, &value, NULL));
  double result = RN_DATA(&value, double)[0];
  rn_tensor_clear(&value);
  rn_session_destroy(session);
  return result;
}

#define FUNCTION_TEST(name) Test(grad_function, name, .timeout = 60)

FUNCTION_TEST(Opened) {
  t_t t = begin();
  add(t.graph, square, NULL);
  rn_edge_t x = rn_const_scalar(t.s, RN_DOUBLE, 3), y = call(&t, "square", x), z = rn_Neg(t.s, y);
  rn_gradient_t d;
  cr_assert(rn_gradients_of(t.s, &z, 1, &x, 1, NULL, &d), "%s", rn_scope_message(t.s));
  cr_expect_eq(fetch(&t, d.dense), -6);
  cr_expect_eq(fetch(&t, z), -9);
  cr_expect_eq(fetch(&t, y), 9);  // the call itself is still there
  end(&t);
}

// The call passes on what its copy computes, so what holds the call or waits for it sees one call.
FUNCTION_TEST(OpenedCallPassesOn) {
  t_t t = begin();
  add(t.graph, square, NULL);
  rn_edge_t first = rn_const_scalar(t.s, RN_DOUBLE, 1);
  rn_edge_t x = rn_const_scalar(t.s, RN_DOUBLE, 3), y = call(&t, "square", x);
  must(rn_node_add_control(y.node, first.node));
  rn_edge_t late = rn_const_scalar(t.s, RN_DOUBLE, 5);
  must(rn_node_add_control(late.node, y.node));
  rn_gradient_t d, again;
  cr_assert(rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d), "%s", rn_scope_message(t.s));
  cr_expect_str_eq(y.node->op->name, "IdentityN");
  cr_expect_eq(y.node->controls.count, 0);
  cr_expect_eq(late.node->controls.items[0], y.node);
  const rn_node_t* copy = y.node->inputs[0].node;
  cr_assert_str_eq(copy->op->name, "Mul");
  cr_assert_eq(copy->controls.count, 1);
  cr_expect_eq(copy->controls.items[0], first.node);
  cr_expect(rn_str_is(rn_node_attr(copy, RN_STR("_runnel_opened_from"))->s, "PartitionedCall"));
  cr_assert(rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &again), "%s", rn_scope_message(t.s));
  cr_expect_eq(fetch(&t, d.dense), 6);
  cr_expect_eq(fetch(&t, again.dense), 6);
  cr_expect_eq(fetch(&t, y), 9);
  cr_expect_eq(fetch(&t, late), 5);
  end(&t);
}

FUNCTION_TEST(OwnGradient) {
  t_t t = begin();
  add(t.graph, square, seven);
  rn_edge_t x = rn_const_scalar(t.s, RN_DOUBLE, 3), y = rn_Neg(t.s, call(&t, "square", x));
  rn_gradient_t d;
  cr_assert(rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d), "%s", rn_scope_message(t.s));
  cr_expect_eq(fetch(&t, d.dense), -7);
  end(&t);
}

FUNCTION_TEST(WrongArity) {
  t_t t = begin();
  add(t.graph, square, short_one);
  rn_edge_t x = rn_const_scalar(t.s, RN_DOUBLE, 3), y = call(&t, "square", x);
  rn_gradient_t d;
  cr_assert(!rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d));
  cr_expect(
      strstr(rn_scope_message(t.s), "'short_one', the gradient function of node 'PartitionedCall'"),
      "%s", rn_scope_message(t.s));
  end(&t);
}

FUNCTION_TEST(Endless) {
  t_t t = begin();
  add(t.graph, endless, NULL);
  rn_edge_t x = rn_const_scalar(t.s, RN_DOUBLE, 3), y = call(&t, "endless", x);
  rn_gradient_t d;
  cr_assert(!rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d));
  cr_expect(strstr(rn_scope_message(t.s), "Functions call each other recursively"), "%s",
            rn_scope_message(t.s));
  end(&t);
}
