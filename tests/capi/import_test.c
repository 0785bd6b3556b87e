// Importing graphs: prefixes, mappings, return values, versions, and errors of broken GraphDefs.
#include <stdio.h>
#include <stdlib.h>

#include "util.h"

// feed, scalar = 3, neg = -scalar: the graph most tests import.
static TF_Buffer* sample(void) {
  ct_t t = ct_open();
  ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* scalar = ct_scalar(&t, t.graph, "scalar", 3);
  ct_neg(&t, t.graph, "neg", scalar);
  TF_Buffer* bytes = ct_graph_def(t.graph);
  ct_close(&t);
  return bytes;
}

// p0, p1, less_than = p0 < p1 by name.
static TF_Buffer* two_feeds(void) {
  ct_t t = ct_open();
  TF_Operation* p0 = ct_placeholder(&t, t.graph, "p0", TF_INT32);
  TF_Operation* p1 = ct_placeholder(&t, t.graph, "p1", TF_INT32);
  ct_less(&t, t.graph, "less_than", ct_out(p0, 0), ct_out(p1, 0));
  TF_Buffer* bytes = ct_graph_def(t.graph);
  ct_close(&t);
  return bytes;
}

static void check_text(TF_Graph* graph, const char* expected) {
  char* text = ct_graph_text(graph);
  CT_STR(text, expected);
  free(text);
}

CT_TEST(CAPI, ImportGraphDef) {
  ct_t t = ct_open();
  TF_Buffer* bytes = sample();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "imported");
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_Operation* scalar = TF_GraphOperationByName(t.graph, "imported/scalar");
  TF_Operation* feed = TF_GraphOperationByName(t.graph, "imported/feed");
  TF_Operation* neg = TF_GraphOperationByName(t.graph, "imported/neg");
  cr_assert(scalar != NULL && feed != NULL && neg != NULL);
  cr_assert_null(TF_GraphOperationByName(t.graph, "neg"));

  // Again: the scalar now comes from the graph, and everything waits for feed.
  TF_DeleteImportGraphDefOptions(options);
  options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "imported2");
  TF_ImportGraphDefOptionsAddInputMapping(options, "scalar", 0, ct_out(scalar, 0));
  TF_ImportGraphDefOptionsAddReturnOutput(options, "feed", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "scalar", 0);
  CT_INT(TF_ImportGraphDefOptionsNumReturnOutputs(options), 2);
  TF_Output returned[2];
  TF_GraphImportGraphDefWithReturnOutputs(t.graph, bytes, options, returned, 2, t.status);
  CT_OK(t.status);
  cr_assert_eq(returned[0].oper, TF_GraphOperationByName(t.graph, "imported2/feed"));
  CT_INT(returned[0].index, 0);
  cr_assert_eq(returned[1].oper, scalar);  // what it was mapped to
  CT_INT(returned[1].index, 0);
  TF_Operation* neg2 = TF_GraphOperationByName(t.graph, "imported2/neg");
  cr_assert_eq(TF_OperationInput((TF_Input){neg2, 0}).oper, scalar);

  TF_DeleteImportGraphDefOptions(options);
  options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(options, "imported3");
  TF_ImportGraphDefOptionsAddControlDependency(options, feed);
  TF_ImportGraphDefOptionsAddControlDependency(options, neg);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_Operation* scalar3 = TF_GraphOperationByName(t.graph, "imported3/scalar");
  TF_Operation* controls[3];
  CT_INT(TF_OperationGetControlInputs(scalar3, controls, 3), 2);
  cr_assert((controls[0] == feed && controls[1] == neg) ||
            (controls[0] == neg && controls[1] == feed));
  // Nodes with data inputs inherit the wait through them.
  CT_INT(TF_OperationNumControlInputs(TF_GraphOperationByName(t.graph, "imported3/neg")), 0);
  TF_DeleteImportGraphDefOptions(options);

  // What was imported runs, and can be built upon.
  CT_INT(ct_take_int32(ct_run0(&t, neg2)), -3);
  TF_Operation* more = ct_neg(&t, t.graph, "more", neg2);
  CT_INT(ct_take_int32(ct_run0(&t, more)), 3);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefTwiceCollides) {
  ct_t t = ct_open();
  TF_Buffer* bytes = sample();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Node name 'feed' already exists in the Graph");
  check_text(t.graph, "feed = Placeholder()\nscalar = Const()\nneg = Neg(scalar)\n");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefUniquify) {
  ct_t t = ct_open();
  TF_Buffer* bytes = sample();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_ImportGraphDefOptionsSetUniquifyNames(options, 0);
  TF_ImportGraphDefOptionsSetPrefix(options, "p");
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  check_text(t.graph,
             "feed = Placeholder()\nscalar = Const()\nneg = Neg(scalar)\n"
             "feed_1 = Placeholder()\nscalar_1 = Const()\nneg_1 = Neg(scalar_1)\n"
             "p/feed = Placeholder()\np/scalar = Const()\np/neg = Neg(p/scalar)\n"
             "p_1/feed = Placeholder()\np_1/scalar = Const()\np_1/neg = Neg(p_1/scalar)\n");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefDefaultDevice) {
  ct_t t = ct_open();
  TF_Buffer* bytes = sample();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetDefaultDevice(options, "/device:CPU:0");
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  CT_STR(TF_OperationDevice(TF_GraphOperationByName(t.graph, "neg")), "/device:CPU:0");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDef_WithReturnOutputs) {
  ct_t t = ct_open();
  TF_Buffer* bytes = two_feeds();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_Operation* mine = ct_scalar(&t, t.graph, "mine", 4);
  TF_ImportGraphDefOptionsAddInputMapping(options, "p1", 0, ct_out(mine, 0));
  TF_ImportGraphDefOptionsAddReturnOutput(options, "p0", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(options, "less_than", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(options, "less_than");
  CT_INT(TF_ImportGraphDefOptionsNumReturnOperations(options), 1);
  TF_ImportGraphDefResults* results =
      TF_GraphImportGraphDefWithResults(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  cr_assert_not_null(results);
  int count = 0;
  TF_Output* outputs = NULL;
  TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
  CT_INT(count, 2);
  cr_assert_eq(outputs[0].oper, TF_GraphOperationByName(t.graph, "p0"));
  cr_assert_eq(outputs[1].oper, TF_GraphOperationByName(t.graph, "less_than"));
  TF_Operation** opers = NULL;
  TF_ImportGraphDefResultsReturnOperations(results, &count, &opers);
  CT_INT(count, 1);
  cr_assert_eq(opers[0], outputs[1].oper);
  cr_assert_eq(TF_OperationInput((TF_Input){opers[0], 1}).oper, mine);
  TF_DeleteImportGraphDefResults(results);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

// Imports with one return output or operation asked for and expects failure; nothing may stay
// behind.
static void import_fails(const char* output, int index, const char* oper, const char* message) {
  ct_t t = ct_open();
  TF_Buffer* bytes = two_feeds();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  if (output != NULL) TF_ImportGraphDefOptionsAddReturnOutput(options, output, index);
  if (oper != NULL) TF_ImportGraphDefOptionsAddReturnOperation(options, oper);
  cr_assert_null(TF_GraphImportGraphDefWithResults(t.graph, bytes, options, t.status));
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, message);
  check_text(t.graph, "");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefWithReturnOutputs_Fail) {
  import_fails("missing", 0, NULL, "Requested return tensor 'missing:0' not found in graph def");
  import_fails("less_than", 100, NULL,
               "Invalid return output 100 of node 'less_than', which has 1 output(s)");
  import_fails(NULL, 0, "absent", "Requested return node 'absent' not found in graph def");

  // The caller's count must match the options.
  ct_t t = ct_open();
  TF_Buffer* bytes = two_feeds();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsAddReturnOutput(options, "p0", 0);
  TF_Output returned[2];
  TF_GraphImportGraphDefWithReturnOutputs(t.graph, bytes, options, returned, 2, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Expected 'num_return_outputs' to be 1, got 2");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

// Imports with |name|:|index| mapped besides a mapping that is used and one that exists unused.
static void mapping_is_missing(const char* name, int index) {
  ct_t t = ct_open();
  TF_Buffer* bytes = sample();
  TF_Operation* mine = ct_scalar(&t, t.graph, "mine", 4);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsAddInputMapping(options, "scalar", 0, ct_out(mine, 0));
  TF_ImportGraphDefOptionsAddInputMapping(options, "feed", 0, ct_out(mine, 0));
  TF_ImportGraphDefOptionsAddInputMapping(options, name, index, ct_out(mine, 0));
  TF_ImportGraphDefResults* results =
      TF_GraphImportGraphDefWithResults(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  int count = 0;
  const char** names = NULL;
  int* indexes = NULL;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indexes);
  CT_INT(count, 1);
  CT_STR(names[0], name);
  CT_INT(indexes[0], index);
  TF_DeleteImportGraphDefResults(results);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDef_MissingUnusedInputMappings) {
  mapping_is_missing("fake", 0);
  mapping_is_missing("scalar", 5);
}

CT_TEST(CAPI, ImportGraphDefOptionsAddInputMappingReallocation) {
  // Many mappings, names in a buffer that is reused: the options keep copies.
  ct_t t = ct_open();
  TF_Operation* mine = ct_scalar(&t, t.graph, "mine", 7);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  ct_t source = ct_open();
  char name[32];
  enum { kCount = 200 };
  for (int i = 0; i < kCount; ++i) {
    snprintf(name, sizeof name, "input%d", i);
    TF_Operation* p = ct_placeholder(&source, source.graph, name, TF_INT32);
    TF_ImportGraphDefOptionsAddInputMapping(options, name, 0, ct_out(mine, 0));
    snprintf(name, sizeof name, "neg%d", i);
    ct_neg(&source, source.graph, name, p);
  }
  memset(name, 'x', sizeof name);
  TF_Buffer* bytes = ct_graph_def(source.graph);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  for (int i = 0; i < kCount; ++i) {
    snprintf(name, sizeof name, "neg%d", i);
    TF_Operation* neg = TF_GraphOperationByName(t.graph, name);
    cr_assert_eq(TF_OperationInput((TF_Input){neg, 0}).oper, mine);
  }
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&source);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefRemapControlDependency) {
  ct_t source = ct_open();
  TF_Operation* a = ct_scalar(&source, source.graph, "a", 1);
  TF_Operation* b = ct_scalar(&source, source.graph, "b", 2);
  ct_add_after(&source, source.graph, "add", a, a, b);
  TF_Buffer* bytes = ct_graph_def(source.graph);
  ct_close(&source);

  ct_t t = ct_open();
  TF_Operation* mine = ct_scalar(&t, t.graph, "mine", 4);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsRemapControlDependency(options, "b", mine);
  TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
  CT_OK(t.status);
  check_text(t.graph, "mine = Const()\na = Const()\nb = Const()\nadd = AddN(a, a, ^mine)\n");
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  ct_close(&t);
}

CT_TEST(CAPI, ImportGraphDefRoundTrip) {
  ct_t t = ct_open();
  TF_Buffer* first = two_feeds();
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(t.graph, first, options, t.status);
  CT_OK(t.status);
  TF_Buffer* second = ct_graph_def(t.graph);
  ct_t again = ct_open();
  TF_GraphImportGraphDef(again.graph, second, options, t.status);
  CT_OK(t.status);
  char* one = ct_graph_text(t.graph);
  char* two = ct_graph_text(again.graph);
  CT_STR(one, "p0 = Placeholder()\np1 = Placeholder()\nless_than = Less(p0, p1)\n");
  CT_STR(two, one);
  free(one);
  free(two);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(first);
  TF_DeleteBuffer(second);
  ct_close(&again);
  ct_close(&t);
}

// One NodeDef by hand; inputs are separated by blanks, the only attribute is a type.
static void node(pb_t* graph, const char* name, const char* op, const char* inputs,
                 const char* type_attr, TF_DataType dtype) {
  pb_t def = {0};
  pb_string(&def, 1, name);
  pb_string(&def, 2, op);
  while (*inputs != '\0') {
    size_t length = strcspn(inputs, " ");
    pb_bytes(&def, 3, inputs, length);
    inputs += length + (inputs[length] == ' ');
  }
  if (type_attr != NULL) {
    pb_t entry = {0}, value = {0};
    pb_string(&entry, 1, type_attr);
    pb_varint(&value, 6, dtype);
    pb_message(&entry, 2, &value);
    pb_message(&def, 5, &entry);
  }
  pb_message(graph, 1, &def);
}

static void producer(pb_t* graph, int version, int min_consumer) {
  pb_t versions = {0};
  pb_varint(&versions, 1, (uint64_t)version);
  if (min_consumer != 0) pb_varint(&versions, 2, (uint64_t)min_consumer);
  pb_message(graph, 4, &versions);
}

// Imports |def| (and frees it) into |t|, leaving the outcome in t->status.
static void import(ct_t* t, pb_t* def) {
  TF_Buffer* bytes = TF_NewBufferFromString(def->data, def->length);
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(t->graph, bytes, options, t->status);
  TF_DeleteImportGraphDefOptions(options);
  TF_DeleteBuffer(bytes);
  pb_free(def);
}

CT_TEST(CAPI, ImportFillsDefaultsAndAcceptsAnyOrder) {
  ct_t t = ct_open();
  pb_t def = {0};
  // A user before its input; Placeholder without "shape".
  node(&def, "neg", "Neg", "feed", "T", TF_INT32);
  node(&def, "feed", "Placeholder", "", "dtype", TF_INT32);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_OK(t.status);
  TF_Operation* feed = TF_GraphOperationByName(t.graph, "feed");
  CT_META(feed, "shape", 0, -1, TF_ATTR_SHAPE, -1);
  TF_Operation* neg = TF_GraphOperationByName(t.graph, "neg");
  CT_INT(ct_take_int32(ct_run1(&t, feed, ct_int32(8), neg)), -8);
  ct_close(&t);
}

CT_TEST(CAPI, ImportKeepsAttributesItDoesNotKnow) {
  ct_t t = ct_open();
  pb_t def = {0};
  node(&def, "feed", "Placeholder", "", "dtype", TF_INT32);
  pb_t neg = {0}, entry = {0}, value = {0};
  pb_string(&neg, 1, "neg");
  pb_string(&neg, 2, "Neg");
  pb_string(&neg, 3, "feed");
  pb_varint(&value, 6, TF_INT32);
  pb_string(&entry, 1, "T");
  pb_message(&entry, 2, &value);
  pb_message(&neg, 5, &entry);
  pb_varint(&value, 3, 11);
  pb_string(&entry, 1, "_mine");
  pb_message(&entry, 2, &value);
  pb_message(&neg, 5, &entry);
  pb_message(&def, 1, &neg);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_OK(t.status);
  int64_t got = 0;
  TF_OperationGetAttrInt(TF_GraphOperationByName(t.graph, "neg"), "_mine", &got, t.status);
  CT_OK(t.status);
  CT_INT(got, 11);
  ct_close(&t);
}

CT_TEST(CAPI, ImportBadGraphDefs) {
  ct_t t = ct_open();
  pb_t def = {0};
  pb_raw(&def, "\xff\xff\xff", 3);
  import(&t, &def);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Invalid GraphDef");

  node(&def, "neg", "Neg", "nowhere", "T", TF_INT32);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "Node 'neg': Unknown input node 'nowhere'");

  node(&def, "feed", "Placeholder", "", "dtype", TF_INT32);
  node(&def, "neg", "Neg", "feed:3", "T", TF_INT32);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT,
           "Node 'neg': Connecting to invalid output 3 of source node feed which has 1 outputs.");

  node(&def, "feed", "Placeholder", "", "dtype", TF_INT32);
  node(&def, "neg", "Neg", "feed", "T", TF_FLOAT);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "neg");

  node(&def, "x", "NoSuchOp", "", NULL, 0);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_NOT_FOUND, "Op type not registered 'NoSuchOp' in binary");

  node(&def, "x", "NoOp", "", NULL, 0);
  node(&def, "x", "NoOp", "", NULL, 0);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "x");

  // A cycle outside a loop.
  node(&def, "a", "Neg", "b", "T", TF_INT32);
  node(&def, "b", "Neg", "a", "T", TF_INT32);
  producer(&def, 2474, 0);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT, "2 nodes in a cycle");

  // Nothing was left behind by any of them.
  check_text(t.graph, "");
  ct_close(&t);
}

CT_TEST(CAPI, ImportVersions) {
  ct_t t = ct_open();
  pb_t def = {0};
  node(&def, "n", "NoOp", "", NULL, 0);
  producer(&def, 2474, 99999);
  import(&t, &def);
  CT_ERROR_HAS(t.status, TF_INVALID_ARGUMENT,
               "GraphDef min consumer version 99999 above current version 2474");
  node(&def, "n", "NoOp", "", NULL, 0);
  producer(&def, 6, 0);
  import(&t, &def);
  CT_OK(t.status);
  // The graph keeps the older of the two.
  TF_Buffer* versions = TF_NewBuffer();
  TF_GraphVersions(t.graph, versions, t.status);
  CT_OK(t.status);
  pb_field_t field;
  cr_assert(pb_find(versions->data, versions->length, 1, &field));
  CT_INT(field.value, 6);
  TF_DeleteBuffer(versions);
  ct_close(&t);
}

CT_TEST(CAPI, ImportOfEveryTruncation) {
  // Cut anywhere, a GraphDef is refused or read as a smaller one; never more.
  TF_Buffer* bytes = sample();
  for (size_t length = 0; length < bytes->length; ++length) {
    ct_t t = ct_open();
    pb_t def = {0};
    pb_raw(&def, bytes->data, length);
    import(&t, &def);
    if (TF_GetCode(t.status) != TF_OK) check_text(t.graph, "");
    ct_close(&t);
  }
  TF_DeleteBuffer(bytes);
}

static TF_Operation* add_to_variant(ct_t* t, const char* op, TF_Operation* input, int count) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, op, op);
  TF_Output inputs[2] = {ct_out(input, 0), ct_out(input, 0)};
  if (count > 1)
    TF_AddInputList(desc, inputs, count);
  else
    TF_AddInput(desc, inputs[0]);
  TF_Operation* oper = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return oper;
}

// What AsString makes of the variant |oper| gives.
static void check_variant(ct_t* t, TF_Operation* oper, const char* kind, const char* value) {
  char name[32], expected[64];
  snprintf(name, sizeof name, "%.10s_text", TF_OperationName(oper));
  snprintf(expected, sizeof expected, "Variant<type: %s value: %s>", kind, value);
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "AsString", name);
  TF_AddInput(desc, ct_out(oper, 0));
  TF_Operation* text = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  TF_Output fetch = ct_out(text, 0);
  TF_Tensor* found = NULL;
  TF_SessionRun(ct_session(t, NULL), NULL, NULL, NULL, 0, &fetch, &found, 1, NULL, 0, NULL,
                t->status);
  CT_OK(t->status);
  const TF_TString* string = TF_TensorData(found);
  cr_assert_eq(TF_StringGetSize(string), strlen(expected));
  cr_assert(memcmp(TF_StringGetDataPointer(string), expected, strlen(expected)) == 0,
            "%.*s, not %s", (int)TF_StringGetSize(string), TF_StringGetDataPointer(string),
            expected);
  TF_DeleteTensor(found);
}

// A constant may hold a variant, such as a number, and numbers have zeros, sums and a text.
CT_TEST(CAPI, ConstOfAVariant) {
  static const struct {
    const char* kind;
    const char* bytes;
    size_t size;
    const char *text, *twice;
  } numbers[] = {{"int", "\5\0\0\0", 4, "5", "10"},
                 {"float", "\0\0\x80?", 4, "1", "2"},
                 {"double", "\0\0\0\0\0\0\xf0?", 8, "1", "2"},
                 {"bool", "\1", 1, "1", "1"}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    ct_t t = ct_open();
    pb_t variant = {0}, tensor = {0}, value = {0}, attr = {0}, node = {0}, graph = {0};
    pb_string(&variant, 1, numbers[i].kind);
    pb_bytes(&variant, 2, numbers[i].bytes, numbers[i].size);
    pb_varint(&tensor, 1, TF_VARIANT);
    pb_shape(&tensor, 2, 0, NULL);
    pb_message(&tensor, 15, &variant);
    pb_message(&value, 8, &tensor);
    pb_string(&attr, 1, "value");
    pb_message(&attr, 2, &value);
    pb_string(&node, 1, "const");
    pb_string(&node, 2, "Const");
    pb_message(&node, 5, &attr);
    pb_varint(&value, 6, TF_VARIANT);
    pb_string(&attr, 1, "dtype");
    pb_message(&attr, 2, &value);
    pb_message(&node, 5, &attr);
    pb_message(&graph, 1, &node);
    TF_Buffer* bytes = TF_NewBufferFromString(graph.data, graph.length);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(t.graph, bytes, options, t.status);
    CT_OK(t.status);
    TF_Operation* made = TF_GraphOperationByName(t.graph, "const");
    cr_assert_not_null(made);
    check_variant(&t, made, numbers[i].kind, numbers[i].text);
    check_variant(&t, add_to_variant(&t, "ZerosLike", made, 1), numbers[i].kind, "0");
    check_variant(&t, add_to_variant(&t, "AddN", made, 2), numbers[i].kind, numbers[i].twice);
    // It goes out as it came in.
    TF_Buffer* again = ct_graph_def(t.graph);
    cr_assert_not_null(
        memmem(again->data, again->length, numbers[i].kind, strlen(numbers[i].kind)));
    TF_DeleteBuffer(again);
    TF_DeleteBuffer(bytes);
    TF_DeleteImportGraphDefOptions(options);
    pb_free(&graph);
    ct_close(&t);
  }
}
