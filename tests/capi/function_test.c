// Functions made from graphs: inputs, outputs, names, control edges, and invalid descriptions.
#include "function_util.h"

CT_TEST(function, no_inputs_one_output) {
  fn_t fn = begin();
  TF_Output out = ct_out(ct_scalar(&fn.body, fn.body.graph, "scalar10", 10), 0);
  define(&fn, -1, NULL, 0, NULL, 1, &out, NULL);
  check_arg(&fn, OP_OUTPUT, 0, "scalar10");
  check(&fn, 0, NULL, 1, (int32_t[]){10});
  end(&fn);
}

CT_TEST(function, one_input_one_output) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, NULL);
  check_arg(&fn, OP_INPUT, 0, "feed");
  check_arg(&fn, OP_OUTPUT, 0, "neg");
  check_node(&fn, "neg_0", 0, "feed");
  check_pair(&fn, FN_RET, "neg", "neg_0:y:0");
  check(&fn, 1, (int32_t[]){3}, 1, (int32_t[]){-3});
  end(&fn);
}

CT_TEST(function, output_names) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, (const char*[]){"negated_num"});
  check_arg(&fn, OP_OUTPUT, 0, "negated_num");
  check_pair(&fn, FN_RET, "negated_num", "neg:y:0");
  check(&fn, 1, (int32_t[]){3}, 1, (int32_t[]){-3});
  end(&fn);
}

CT_TEST(function, output_named_as_an_input) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, (const char*[]){"feed"});
  check_arg(&fn, OP_INPUT, 0, "feed_0");
  check_arg(&fn, OP_OUTPUT, 0, "feed");
  check(&fn, 1, (int32_t[]){3}, 1, (int32_t[]){-3});
  end(&fn);
}

CT_TEST(function, identity) {
  fn_t fn = begin();
  TF_Output in = ct_out(feed(&fn, "feed"), 0);
  define(&fn, -1, NULL, 1, &in, 1, &in, NULL);
  check_arg(&fn, OP_INPUT, 0, "feed_0");
  check_arg(&fn, OP_OUTPUT, 0, "feed");
  check(&fn, 1, (int32_t[]){3}, 1, (int32_t[]){3});
  end(&fn);
}

CT_TEST(function, permutation) {
  for (int named = 0; named < 2; ++named) {
    fn_t fn = begin();
    TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
    TF_Output out[] = {in[1], in[0]};
    const char* const names[] = {"first", "second"};
    define(&fn, -1, NULL, 2, in, 2, out, named ? names : NULL);
    check_arg(&fn, OP_OUTPUT, 0, named ? "first" : "feed2");
    check_arg(&fn, OP_INPUT, 0, named ? "feed1" : "feed1_0");
    check(&fn, 2, (int32_t[]){2, 3}, 2, (int32_t[]){3, 2});
    end(&fn);
  }
}

CT_TEST(function, two_inputs) {
  fn_t fn = begin();
  TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
  TF_Output out = ct_out(ct_add(&fn.body, fn.body.graph, "add", in[0], in[1]), 0);
  define(&fn, -1, NULL, 2, in, 1, &out, NULL);
  check_node(&fn, "add_0", 1, "feed2");
  check(&fn, 2, (int32_t[]){2, 3}, 1, (int32_t[]){5});
  end(&fn);
}

CT_TEST(function, no_outputs) {
  fn_t fn = begin();
  TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
  ct_add(&fn.body, fn.body.graph, "add", in[0], in[1]);
  define(&fn, -1, NULL, 2, in, 0, NULL, NULL);
  TF_Output constants[] = {ct_out(ct_scalar(&fn.host, fn.host.graph, "a", 1), 0),
                           ct_out(ct_scalar(&fn.host, fn.host.graph, "b", 2), 0)};
  TF_Operation* oper = use(&fn, "MyFunc", 2, constants);
  CT_INT(TF_OperationNumOutputs(oper), 0);
  TF_SessionRun(ct_session(&fn.host, NULL), NULL, NULL, NULL, 0, NULL, NULL, 0,
                (const TF_Operation* const*)&oper, 1, NULL, fn.host.status);
  CT_OK(fn.host.status);
  end(&fn);
}

CT_TEST(function, one_output_twice) {
  for (int named = 0; named < 2; ++named) {
    fn_t fn = begin();
    TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
    TF_Output add = ct_out(ct_add(&fn.body, fn.body.graph, "add", in[0], in[1]), 0);
    TF_Output out[] = {add, add};
    const char* const names[] = {"out1", "out2"};
    define(&fn, -1, NULL, 2, in, 2, out, named ? names : NULL);
    check_arg(&fn, OP_OUTPUT, 1, named ? "out2" : "add_0");
    check_pair(&fn, FN_RET, named ? "out2" : "add_0", named ? "add:sum:0" : "add_1:sum:0");
    check(&fn, 2, (int32_t[]){2, 3}, 2, (int32_t[]){5, 5});
    end(&fn);
  }
}

CT_TEST(function, three_inputs_two_outputs) {
  fn_t fn = begin();
  TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0),
                    ct_out(feed(&fn, "feed3"), 0)};
  TF_Output a = ct_out(ct_add(&fn.body, fn.body.graph, "add1", in[0], in[1]), 0);
  TF_Output b = ct_out(ct_add(&fn.body, fn.body.graph, "add2", a, in[2]), 0);
  TF_Output out[] = {b, a};
  define(&fn, -1, NULL, 3, in, 2, out, NULL);
  check_node(&fn, "add2_0", 0, "add1_0:sum:0");
  check(&fn, 3, (int32_t[]){2, 3, 4}, 2, (int32_t[]){9, 5});
  end(&fn);
}

CT_TEST(function, some_operations_only) {
  fn_t fn = begin();
  TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
  TF_Operation* add = ct_add(&fn.body, fn.body.graph, "add", in[0], in[1]);
  ct_neg(&fn.body, fn.body.graph, "unused", add);
  TF_Output out = ct_out(add, 0);
  define(&fn, 1, (const TF_Operation*[]){add}, 2, in, 1, &out, NULL);
  TF_Buffer* def = function_def(&fn);
  CT_INT(pb_count(def->data, def->length, FN_NODE), 1);
  TF_DeleteBuffer(def);
  check(&fn, 2, (int32_t[]){2, 3}, 1, (int32_t[]){5});
  end(&fn);
}

CT_TEST(function, outputs_of_a_node_with_several) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Operation* split = ct_split3(&fn.body, fn.body.graph, "split3", x);
  TF_Output in = ct_out(x, 0);
  TF_Output add =
      ct_out(ct_add(&fn.body, fn.body.graph, "add", ct_out(split, 0), ct_out(split, 2)), 0);
  TF_Output out[] = {add, ct_out(split, 1)};
  define(&fn, -1, NULL, 1, &in, 2, out, NULL);
  check_node(&fn, "add_0", 0, "split3_0:output:0");
  check_node(&fn, "add_0", 1, "split3_0:output:2");
  check_pair(&fn, FN_RET, "split3", "split3_0:output:1");
  end(&fn);
}

CT_TEST(function, outputs_as_inputs) {
  fn_t fn = begin();
  TF_Operation* split = ct_split3(&fn.body, fn.body.graph, "split3", feed(&fn, "feed"));
  TF_Output in[] = {ct_out(split, 0), ct_out(split, 2)};
  TF_Operation* add = ct_add(&fn.body, fn.body.graph, "add", in[0], in[1]);
  TF_Output out = ct_out(add, 0);
  cr_assert_null(define_try(&fn, -1, NULL, 2, in, 1, &out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. "
           "Node split3 has 3 outputs. Encountered while creating function 'MyFunc'");
  define(&fn, 1, (const TF_Operation*[]){add}, 2, in, 1, &out, NULL);
  check_arg(&fn, OP_INPUT, 0, "split3");
  check_arg(&fn, OP_INPUT, 1, "split3_0");
  check(&fn, 2, (int32_t[]){2, 3}, 1, (int32_t[]){5});
  end(&fn);
}

CT_TEST(function, control_edges) {
  fn_t fn = begin();
  TF_Operation *a = feed(&fn, "feed1"), *b = feed(&fn, "feed2");
  TF_Operation* scalar = ct_scalar(&fn.body, fn.body.graph, "scalar", 5);
  TF_Operation* add = ct_add_after(&fn.body, fn.body.graph, "add", a, b, scalar);
  TF_Output in[] = {ct_out(a, 0), ct_out(b, 0)}, out = ct_out(add, 0);
  cr_assert_null(define_try(&fn, 1, (const TF_Operation*[]){add}, 2, in, 1, &out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "The source of control edge [id=3 scalar:-1 -> add:-1] is not in the body. Encountered "
           "while creating function 'MyFunc'");
  define(&fn, -1, NULL, 2, in, 1, &out, NULL);
  check_node(&fn, "add_0", 2, "^scalar");
  check(&fn, 2, (int32_t[]){2, 3}, 1, (int32_t[]){5});
  end(&fn);
}

CT_TEST(function, refuses) {
  fn_t fn = begin();
  TF_Operation *a = feed(&fn, "feed1"), *b = feed(&fn, "feed2");
  TF_Operation* scalar = ct_scalar(&fn.body, fn.body.graph, "scalar", 2);
  TF_Operation* add = ct_add(&fn.body, fn.body.graph, "add", ct_out(a, 0), ct_out(b, 0));
  TF_Output in[] = {ct_out(a, 0), ct_out(b, 0)}, out[] = {ct_out(add, 0), ct_out(add, 0)};
  TF_Output twice[] = {ct_out(a, 0), ct_out(a, 0)}, high[] = {ct_out(a, 0), ct_out(b, 2)};
  TF_Output null[] = {ct_out(a, 0), ct_out(NULL, 0)}, high_out = ct_out(add, 1);
  TF_Output null_out = ct_out(NULL, 0), other = ct_out(scalar, 0);
  const TF_Operation* body[] = {add};
  cr_assert_null(define_try(&fn, -1, NULL, 2, twice, 1, out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "TF_Output feed1:0 appears more than once in the input list");
  cr_assert_null(define_try(&fn, -1, NULL, 2, in, 2, out, (const char*[]){"my_out", "my_out"}));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "Cannot have duplicate output names. Name 'my_out' appears more than once in "
           "'output_names' array.");
  cr_assert_null(define_try(&fn, -1, NULL, 2, high, 1, out, NULL));
  CT_ERROR(fn.body.status, TF_OUT_OF_RANGE,
           "Node 'feed2' (type: 'Placeholder', num of outputs: 1) does not have output 2\n"
           "\tEncountered while processing input 1 into function 'MyFunc'");
  cr_assert_null(define_try(&fn, -1, NULL, 2, null, 1, out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "Node is null\n\tEncountered while processing input 1 into function 'MyFunc'");
  cr_assert_null(define_try(&fn, -1, NULL, 2, in, 1, &high_out, NULL));
  CT_ERROR(fn.body.status, TF_OUT_OF_RANGE,
           "Node 'add' (type: 'AddN', num of outputs: 1) does not have output 1\n"
           "\tEncountered while processing output 0 from function 'MyFunc'");
  cr_assert_null(define_try(&fn, -1, NULL, 2, in, 1, &null_out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "Node is null\n\tEncountered while processing output 0 from function 'MyFunc'");
  cr_assert_null(define_try(&fn, 1, body, 1, in, 1, out, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "Input 1, 'feed2:0', of node 'add' in function 'MyFunc' is not available. You might "
           "need to include it in inputs or include its source node in the body");
  cr_assert_null(define_try(&fn, 1, body, 2, in, 1, &other, NULL));
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT,
           "TF_Output scalar:0 is neither in the function body nor among function inputs. "
           "Encountered while creating function 'MyFunc'");
  end(&fn);
}

CT_TEST(function, control_outputs) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Operation* neg = ct_neg(&fn.body, fn.body.graph, "neg", x);
  TF_Output in = ct_out(x, 0);
  const TF_Operation* controls[] = {neg, neg};
  fn.function = TF_GraphToFunctionWithControlOutputs(
      fn.body.graph, "MyFunc", 0, -1, NULL, 1, &in, 0, NULL, NULL, 1, controls,
      (const char*[]){"done"}, NULL, NULL, fn.body.status);
  CT_OK(fn.body.status);
  check_pair(&fn, FN_CONTROL_RET, "done", "neg");
  TF_Function* refused = TF_GraphToFunctionWithControlOutputs(
      fn.body.graph, "MyFunc", 0, -1, NULL, 1, &in, 0, NULL, NULL, 2, controls,
      (const char*[]){"done", "done"}, NULL, NULL, fn.body.status);
  cr_assert_null(refused);
  CT_ERROR(fn.body.status, TF_INVALID_ARGUMENT, "Repeated control output name: done");
  end(&fn);
}
