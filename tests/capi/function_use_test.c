// Using functions: gradients, names, import, attributes, hashes, loops, and calls with wrong
// argument counts.
#include "function_util.h"

CT_TEST(function, gradients_of_functions) {
  fn_t fn = begin();
  TF_Function *f = negation(&fn, "MyFunc"), *g = negation(&fn, "MyOther");
  TF_Function *g1 = negation(&fn, "MyGrad1"), *g2 = negation(&fn, "MyGrad2");
  TF_Status* status = fn.host.status;
  TF_GraphCopyFunction(fn.host.graph, NULL, NULL, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT, "'func' argument to TF_GraphCopyFunction cannot be null");
  TF_GraphCopyFunction(fn.host.graph, NULL, g1, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT, "'func' argument to TF_GraphCopyFunction cannot be null");
  TF_GraphCopyFunction(fn.host.graph, f, g1, status);
  CT_OK(status);
  CT_INT(TF_GraphNumFunctions(fn.host.graph), 2);
  TF_GraphCopyFunction(fn.host.graph, f, g2, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT,
           "Cannot assign gradient function 'MyGrad2' to 'MyFunc' because it already has gradient "
           "function 'MyGrad1'");
  TF_GraphCopyFunction(fn.host.graph, f, g1, status);  // the same again is fine
  CT_OK(status);
  TF_GraphCopyFunction(fn.host.graph, g, g1, status);  // one gradient of two functions
  CT_OK(status);
  TF_GraphCopyFunction(fn.host.graph, g2, f, status);  // two that are there: one's gradient
  CT_OK(status);
  CT_INT(TF_GraphNumFunctions(fn.host.graph), 4);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(fn.host.graph, def, status);
  CT_OK(status);
  pb_field_t library, gradient;
  cr_assert(pb_find(def->data, def->length, 2, &library));
  cr_assert(pb_find_named(library.data, library.length, 2, 1, "MyGrad2", &gradient));
  cr_assert(pb_has_string(gradient.data, gradient.length, 2, "MyFunc"));
  TF_DeleteBuffer(def);
  TF_DeleteFunction(f);
  TF_DeleteFunction(g);
  TF_DeleteFunction(g1);
  TF_DeleteFunction(g2);
  end(&fn);
}

CT_TEST(function, names_are_taken_once) {
  fn_t fn = begin();
  TF_Function *first = negation(&fn, "MyFunc"), *op = negation(&fn, "MatMul");
  TF_Output in = ct_out(feed(&fn, "other"), 0);
  TF_Function* second = TF_GraphToFunction(fn.body.graph, "MyFunc", 0, 0, NULL, 1, &in, 1, &in,
                                           NULL, NULL, NULL, fn.body.status);
  CT_OK(fn.body.status);
  TF_Status* status = fn.host.status;
  TF_GraphCopyFunction(fn.host.graph, first, NULL, status);
  CT_OK(status);
  TF_GraphCopyFunction(fn.host.graph, second, NULL, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT,
           "Cannot add function 'MyFunc' because a different function with the same name already "
           "exists.");
  TF_GraphCopyFunction(fn.host.graph, op, NULL, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT,
           "Cannot add function 'MatMul' because an op with the same name already exists.");
  TF_DeleteFunction(first);
  TF_DeleteFunction(second);
  TF_DeleteFunction(op);
  end(&fn);
}

CT_TEST(function, import_function_def) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, NULL);
  TF_Buffer* def = function_def(&fn);
  fn_t copy = begin();
  copy.function = TF_FunctionImportFunctionDef(def->data, def->length, copy.body.status);
  CT_OK(copy.body.status);
  CT_STR(TF_FunctionName(copy.function), "MyFunc");
  TF_GraphCopyFunction(copy.host.graph, copy.function, NULL, copy.host.status);
  CT_OK(copy.host.status);
  check(&copy, 1, (int32_t[]){3}, 1, (int32_t[]){-3});
  TF_Buffer* again = function_def(&copy);
  CT_INT(again->length, def->length);
  TF_DeleteBuffer(again);
  TF_DeleteBuffer(def);
  end(&copy);
  end(&fn);
}

CT_TEST(function, import_of_bad_bytes) {
  ct_t t = ct_open();
  static const char bytes[] = {0x0b, 0x01, 0x02};
  cr_assert_null(TF_FunctionImportFunctionDef(bytes, sizeof bytes, t.status));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
  ct_close(&t);
}

CT_TEST(function, attributes) {
  fn_t fn = begin();
  fn.function = negation(&fn, "MyFunc");
  TF_Status* status = fn.body.status;
  TF_Buffer* value = TF_NewBuffer();
  TF_FunctionGetAttrValueProto(fn.function, "foo_attr", value, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT, "Function 'MyFunc' has no attr named 'foo_attr'.");
  for (char text = 'a'; text <= 'b'; ++text) {  // the second takes the first one's place
    char bytes[] = {0x12, 0x01, text};
    TF_FunctionSetAttrValueProto(fn.function, "foo_attr", bytes, sizeof bytes, status);
    CT_OK(status);
  }
  TF_FunctionGetAttrValueProto(fn.function, "foo_attr", value, status);
  CT_OK(status);
  CT_INT(value->length, 3);
  cr_assert(memcmp(value->data,
                   "\x12\x01"
                   "b",
                   3) == 0);
  TF_FunctionSetAttrValueProto(fn.function, "bad", "\xff\xff", 2, status);
  CT_ERROR(status, TF_INVALID_ARGUMENT,
           "Unparseable AttrValue proto passed to TF_FunctionSetAttrValueProto");
  TF_DeleteBuffer(value);
  end(&fn);
}

CT_TEST(function, description) {
  fn_t fn = begin();
  TF_Output in = ct_out(feed(&fn, "feed"), 0);
  fn.function = TF_GraphToFunction(fn.body.graph, "MyFunc", 0, -1, NULL, 1, &in, 1, &in, NULL, NULL,
                                   "Return something", fn.body.status);
  CT_OK(fn.body.status);
  TF_Buffer* def = function_def(&fn);
  pb_field_t signature;
  cr_assert(pb_find(def->data, def->length, FN_SIGNATURE, &signature));
  cr_assert(pb_has_string(signature.data, signature.length, OP_DESCRIPTION, "Return something"));
  TF_DeleteBuffer(def);
  end(&fn);
}

// Equal bodies have equal names, others have others.
CT_TEST(function, names_with_a_hash) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  TF_Function* made[3];
  for (int i = 0; i < 3; ++i) {
    made[i] = TF_GraphToFunction(fn.body.graph, "base", 1, i < 2 ? -1 : 0, NULL, 1, &in, 1,
                                 i < 2 ? &out : &in, NULL, NULL, NULL, fn.body.status);
    CT_OK(fn.body.status);
    cr_assert_eq(strncmp(TF_FunctionName(made[i]), "base_", 5), 0);
    CT_INT(strlen(TF_FunctionName(made[i])), 16);
  }
  CT_STR(TF_FunctionName(made[0]), "base_GYzII64O8Yw");
  CT_STR(TF_FunctionName(made[1]), "base_GYzII64O8Yw");
  cr_assert_str_neq(TF_FunctionName(made[0]), TF_FunctionName(made[2]));
  for (int i = 0; i < 3; ++i) TF_DeleteFunction(made[i]);
  end(&fn);
}

// What the hash sees: values of all kinds, devices, control edges and outputs, the description, and
// a function as an attribute; but no private attribute.
static TF_Function* hashed(fn_t* fn, const char* private_value) {
  ct_t* t = &fn->body;
  TF_Operation* x = feed(fn, "x");
  TF_Operation* many =
      ct_const(t, t->graph, "many", ct_tensor(TF_FLOAT, (int64_t[]){3}, 1, (float[]){1, 2, 3}, 12));
  TF_TString text;
  TF_TString_Init(&text);
  TF_TString_Copy(&text, "text", 4);
  TF_Tensor* string = ct_tensor(TF_STRING, NULL, 0, &text, sizeof text);
  TF_Operation* words = ct_const(t, t->graph, "words", string);
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "Neg", "neg");
  TF_AddInput(desc, ct_out(x, 0));
  TF_AddControlInput(desc, words);
  TF_AddControlInput(desc, many);
  TF_SetDevice(desc, "/cpu:0");
  TF_SetAttrString(desc, "_private", private_value, strlen(private_value));
  TF_Operation* neg = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  desc = TF_NewOperation(t->graph, "PartitionedCall", "call");
  TF_Output args[] = {ct_out(neg, 0), ct_out(many, 0)};
  TF_AddInputList(desc, args, 2);
  TF_SetAttrTypeList(desc, "Tin", (TF_DataType[]){TF_INT32, TF_FLOAT}, 2);
  TF_SetAttrTypeList(desc, "Tout", (TF_DataType[]){TF_INT32}, 1);
  TF_SetAttrFuncName(desc, "f", "another", 7);
  TF_Operation* call = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  TF_Output in = ct_out(x, 0), outs[] = {ct_out(neg, 0), ct_out(call, 0)};
  const char* names[] = {"second", "first"};
  const TF_Operation* controls[] = {words, many};
  const char* control_names[] = {"b", "a"};
  TF_Function* function = TF_GraphToFunctionWithControlOutputs(
      t->graph, "base", 1, -1, NULL, 1, &in, 2, outs, names, 2, controls, control_names, NULL,
      "What it does", t->status);
  CT_OK(t->status);
  return function;
}

CT_TEST(function, what_the_hash_sees) {
  const char* values[] = {"one", "two"};
  for (int i = 0; i < 2; ++i) {
    fn_t fn = begin();
    TF_Function* function = hashed(&fn, values[i]);
    CT_STR(TF_FunctionName(function), "base_AwQuBp5X7x0");
    pb_field_t signature, control;
    TF_Buffer* def = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, def, fn.body.status);
    cr_assert(pb_find(def->data, def->length, FN_SIGNATURE, &signature));
    CT_INT(pb_count(signature.data, signature.length, OP_CONTROL_OUTPUT), 2);
    cr_assert(pb_find(signature.data, signature.length, OP_CONTROL_OUTPUT, &control));
    cr_assert(pb_field_is(&control, "a"));  // by name
    TF_DeleteBuffer(def);
    TF_DeleteFunction(function);
    end(&fn);
  }
}

CT_TEST(function, op_def) {
  fn_t fn = begin();
  TF_Operation* shape = feed(&fn, "shape");
  TF_Operation* random = ct_random_uniform(&fn.body, fn.body.graph, "random", shape, TF_FLOAT);
  TF_Output in = ct_out(shape, 0), out = ct_out(random, 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, NULL);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(fn.host.graph, "MyFunc", def, fn.host.status);
  CT_OK(fn.host.status);
  cr_assert(pb_has_string(def->data, def->length, OP_NAME, "MyFunc"));
  CT_INT(pb_count(def->data, def->length, OP_INPUT), 1);
  CT_INT(pb_count(def->data, def->length, OP_OUTPUT), 1);
  pb_field_t stateful;
  cr_assert(pb_find(def->data, def->length, OP_STATEFUL, &stateful));
  CT_INT(stateful.value, 1);
  TF_DeleteBuffer(def);
  end(&fn);
}

// An attribute that is left open becomes the function's.
CT_TEST(function, open_attributes) {
  fn_t fn = begin();
  TF_Operation* shape = feed(&fn, "shape");
  TF_OperationDescription* desc = TF_NewOperation(fn.body.graph, "RandomUniform", "random");
  TF_AddInput(desc, ct_out(shape, 0));
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_SetAttrPlaceholder(desc, "seed", "the_seed");
  TF_Operation* random = TF_FinishOperation(desc, fn.body.status);
  CT_OK(fn.body.status);
  TF_Output in = ct_out(shape, 0), out = ct_out(random, 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, NULL);
  TF_Buffer* def = function_def(&fn);
  pb_field_t signature, attr;
  cr_assert(pb_find(def->data, def->length, FN_SIGNATURE, &signature));
  cr_assert(pb_find_named(signature.data, signature.length, OP_ATTR, 1, "the_seed", &attr));
  cr_assert(pb_has_string(attr.data, attr.length, 2, "int"));
  TF_DeleteBuffer(def);
  end(&fn);
}

CT_TEST(function, functions_of_a_graph) {
  fn_t fn = begin();
  TF_Function* made[] = {negation(&fn, "FooFunc"), negation(&fn, "BarFunc")};
  TF_Function* listed[4];
  CT_INT(TF_GraphNumFunctions(fn.host.graph), 0);
  CT_INT(TF_GraphGetFunctions(fn.host.graph, NULL, 0, fn.host.status), 0);
  CT_OK(fn.host.status);
  for (int i = 0; i < 2; ++i) {
    TF_GraphCopyFunction(fn.host.graph, made[i], NULL, fn.host.status);
    CT_OK(fn.host.status);
  }
  CT_INT(TF_GraphNumFunctions(fn.host.graph), 2);
  CT_INT(TF_GraphGetFunctions(fn.host.graph, listed, 1, fn.host.status), 1);
  CT_OK(fn.host.status);
  TF_DeleteFunction(listed[0]);
  CT_INT(TF_GraphGetFunctions(fn.host.graph, listed, 4, fn.host.status), 2);
  CT_OK(fn.host.status);
  bool swapped = strcmp(TF_FunctionName(listed[0]), "FooFunc") != 0;
  CT_STR(TF_FunctionName(listed[swapped]), "FooFunc");
  CT_STR(TF_FunctionName(listed[!swapped]), "BarFunc");
  for (int i = 0; i < 2; ++i) {
    TF_DeleteFunction(listed[i]);
    TF_DeleteFunction(made[i]);
  }
  end(&fn);
}

// A function outlives the graphs it was made from and copied to, and they outlive it.
CT_TEST(function, lives_on) {
  fn_t fn = begin();
  TF_Operation* x = feed(&fn, "feed");
  TF_Output in = ct_out(x, 0), out = ct_out(ct_neg(&fn.body, fn.body.graph, "neg", x), 0);
  define(&fn, -1, NULL, 1, &in, 1, &out, NULL);
  TF_DeleteFunction(fn.function);
  fn.function = NULL;
  TF_DeleteGraph(fn.body.graph);
  fn.body.graph = NULL;
  check(&fn, 1, (int32_t[]){7}, 1, (int32_t[]){-7});
  TF_DeleteStatus(fn.body.status);
  ct_close(&fn.host);
}

// A loop in a function.
CT_TEST(function, while_loop) {
  fn_t fn = begin();
  TF_Output in[] = {ct_out(feed(&fn, "feed1"), 0), ct_out(feed(&fn, "feed2"), 0)};
  TF_WhileParams made = TF_NewWhile(fn.body.graph, in, 2, fn.body.status);
  CT_OK(fn.body.status);
  TF_WhileParams* params = malloc(sizeof *params);
  memcpy(params, &made, sizeof made);
  params->name = "loop";
  params->cond_output = ct_out(
      ct_less(&fn.body, params->cond_graph, "less", params->cond_inputs[0], params->cond_inputs[1]),
      0);
  TF_Operation* one = ct_scalar(&fn.body, params->body_graph, "one", 1);
  params->body_outputs[0] = ct_out(
      ct_add(&fn.body, params->body_graph, "add", params->body_inputs[0], ct_out(one, 0)), 0);
  params->body_outputs[1] = params->body_inputs[1];
  TF_Output out[2];
  TF_FinishWhile(params, fn.body.status, out);
  CT_OK(fn.body.status);
  free(params);
  define(&fn, -1, NULL, 2, in, 1, out, NULL);
  check(&fn, 2, (int32_t[]){2, 9}, 1, (int32_t[]){9});
  end(&fn);
}

// A function of the host graph that takes |args| numbers and gives |results| times the last.
static void copy_repeat(fn_t* fn, const char* name, int args, int results) {
  ct_t body = ct_open();
  TF_Output in[3], out[3];
  char names[3][16];
  for (int i = 0; i < args; ++i) {
    snprintf(names[i], sizeof names[i], "x%d", i);
    in[i] = ct_out(ct_placeholder(&body, body.graph, names[i], TF_INT32), 0);
  }
  TF_Output last = ct_out(ct_unary(&body, body.graph, "Identity", "last", in[args - 1]), 0);
  for (int i = 0; i < results; ++i) out[i] = last;
  TF_Function* function = TF_GraphToFunction(body.graph, name, 0, -1, NULL, args, in, results, out,
                                             NULL, NULL, NULL, body.status);
  CT_OK(body.status);
  TF_GraphCopyFunction(fn->host.graph, function, NULL, fn->host.status);
  CT_OK(fn->host.status);
  TF_DeleteFunction(function);
  ct_close(&body);
}

// Runs |op| over one number, with functions by name and |numbers| before its variable.
static void run_wrong(fn_t* fn, const char* op, int numbers, const char* first, const char* a,
                      const char* second, const char* b, TF_Code code, const char* text) {
  static int made;
  char name[32];
  snprintf(name, sizeof name, "wrong%d", made++);
  TF_Operation* one = TF_GraphOperationByName(fn->host.graph, "one");
  TF_Output var = ct_out(one ? one : ct_scalar(&fn->host, fn->host.graph, "one", 1), 0);
  TF_Operation* many = TF_GraphOperationByName(fn->host.graph, "many");
  if (!many) many = ct_scalar(&fn->host, fn->host.graph, "many", 5);
  TF_OperationDescription* desc = TF_NewOperation(fn->host.graph, op, name);
  for (int i = 0; i < numbers; ++i) TF_AddInput(desc, i == 1 ? ct_out(many, 0) : var);
  TF_AddInputList(desc, &var, 1);
  TF_SetAttrFuncName(desc, first, a, strlen(a));
  if (second) TF_SetAttrFuncName(desc, second, b, strlen(b));
  if (!strcmp(op, "If")) TF_SetAttrTypeList(desc, "Tout", (TF_DataType[]){TF_INT32}, 1);
  TF_Operation* oper = TF_FinishOperation(desc, fn->host.status);
  CT_OK(fn->host.status);
  cr_assert_null(ct_try_run(&fn->host, 0, NULL, NULL, ct_out(oper, 0)));
  CT_ERROR_HAS(fn->host.status, code, text);
}

// Functions that take or give another number of values than the op that calls them.
CT_TEST(function, wrong_counts) {
  fn_t fn = begin();
  copy_repeat(&fn, "OneToOne", 1, 1);
  copy_repeat(&fn, "OneToTwo", 1, 2);
  copy_repeat(&fn, "TwoToOne", 2, 1);
  copy_repeat(&fn, "TwoToTwo", 2, 2);
  run_wrong(&fn, "While", 0, "cond", "OneToTwo", "body", "OneToOne", TF_INVALID_ARGUMENT,
            "Expected a single scalar return value from WhileOp cond, got 2 tensors.");
  run_wrong(&fn, "While", 0, "cond", "TwoToOne", "body", "OneToOne", TF_INVALID_ARGUMENT,
            "Expects 2 arguments, but 1 is provided");
  run_wrong(&fn, "While", 0, "cond", "OneToOne", "body", "OneToTwo", TF_INVALID_ARGUMENT,
            "While loop body returned 2 arguments. Expected: 1");
  run_wrong(&fn, "For", 3, "body", "TwoToTwo", NULL, NULL, TF_INVALID_ARGUMENT,
            "For loop body returned 2 arguments. Expected: 1");
  run_wrong(&fn, "For", 3, "body", "OneToOne", NULL, NULL, TF_INVALID_ARGUMENT,
            "Expects 1 arguments, but 2 is provided");
  run_wrong(&fn, "If", 1, "then_branch", "OneToTwo", "else_branch", "OneToOne", TF_INTERNAL,
            "Expect to produce 1 tensors, but only get 2");
  run_wrong(&fn, "If", 1, "then_branch", "TwoToOne", "else_branch", "OneToOne", TF_INVALID_ARGUMENT,
            "Expects 2 arguments, but 1 is provided");
  end(&fn);
}

// A gradient may ask for outputs that a branch had not when it was made: the message tells how to
// have them.
CT_TEST(function, missing_output_of_a_branch) {
  fn_t fn = begin();
  copy_repeat(&fn, "OneToOne", 1, 1);
  TF_Output one = ct_out(ct_scalar(&fn.host, fn.host.graph, "one", 1), 0);
  TF_OperationDescription* desc = TF_NewOperation(fn.host.graph, "If", "branch");
  TF_AddInput(desc, one);
  TF_AddInputList(desc, &one, 1);
  TF_SetAttrFuncName(desc, "then_branch", "OneToOne", 8);
  TF_SetAttrFuncName(desc, "else_branch", "OneToOne", 8);
  TF_SetAttrTypeList(desc, "Tout", (TF_DataType[]){TF_INT32}, 1);
  TF_FinishOperation(desc, fn.host.status);
  CT_OK(fn.host.status);
  TF_Operation* other = ct_placeholder(&fn.host, fn.host.graph, "branch_1", TF_INT32);
  ct_unary(&fn.host, fn.host.graph, "Identity", "reads", ct_out(other, 0));
  TF_Buffer* bytes = ct_graph_def(fn.host.graph);
  for (char* at = (char*)bytes->data; at < (char*)bytes->data + bytes->length - 10; ++at)
    if (!memcmp(at,
                "\x1a\x08"
                "branch_1",
                10))
      at[8] = ':';
  ct_t target = ct_open();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(target.graph, bytes, options, target.status);
  CT_ERROR(target.status, TF_INVALID_ARGUMENT,
           "Node 'reads': Connecting to invalid output 1 of source node branch which has 1 "
           "outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True).");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&target);
  end(&fn);
}
