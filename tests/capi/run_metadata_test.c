// RunMetadata of a run: traces, partition graphs and labels.
#include "tensorflow/c/c_api_experimental.h"
#include "util.h"

CT_TEST(CAPI, RunMetadata) {
  ct_t t = ct_open();
  TF_Operation* feed = ct_placeholder(&t, t.graph, "feed", TF_INT32);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", feed);
  TF_Buffer* options = TF_NewBufferFromString("\x08\x03", 2);  // trace_level FULL_TRACE
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output feeds[] = {ct_out(feed, 0)}, fetches[] = {ct_out(neg, 0)};
  TF_Tensor* value = ct_int32(2);
  TF_Tensor* result = NULL;
  TF_SessionRun(ct_session(&t, NULL), options, feeds, &value, 1, fetches, &result, 1, NULL, 0,
                metadata, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), -2);
  cr_assert_gt(metadata->length, 0);
  // RunMetadata.step_stats.dev_stats[].node_stats[].node_name names what ran.
  pb_field_t step, device, node;
  cr_assert(pb_find(metadata->data, metadata->length, 1, &step));
  bool seen = false;
  pb_reader_t devices = pb_read(step.data, step.length);
  while (pb_next(&devices, &device)) {
    if (device.number != 1) continue;
    seen |= pb_find_named(device.data, device.length, 2, 1, "neg", &node);
  }
  cr_assert(seen);
  TF_DeleteBuffer(metadata);

  // A used buffer is refused.
  metadata = TF_NewBufferFromString("x", 1);
  TF_SessionRun(t.session, options, feeds, &value, 1, fetches, &result, 1, NULL, 0, metadata,
                t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Passing non-empty run_metadata is invalid.");
  TF_DeleteBuffer(metadata);
  TF_DeleteBuffer(options);
  options = TF_NewBufferFromString("\xff\xff", 2);
  TF_SessionRun(t.session, options, feeds, &value, 1, fetches, &result, 1, NULL, 0, NULL, t.status);
  CT_ERROR(t.status, TF_INVALID_ARGUMENT, "Unparseable RunOptions proto");
  TF_DeleteBuffer(options);
  TF_DeleteTensor(value);
  ct_close(&t);
}

CT_TEST(CAPI, RunMetadataOfAnUntracedRun) {
  ct_t t = ct_open();
  TF_Operation* one = ct_scalar(&t, t.graph, "one", 1);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", one);
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output fetches[] = {ct_out(neg, 0)};
  TF_Tensor* result = NULL;
  TF_SessionRun(ct_session(&t, NULL), NULL, NULL, NULL, 0, fetches, &result, 1, NULL, 0, metadata,
                t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), -1);
  pb_field_t step;
  cr_assert(!pb_find(metadata->data, metadata->length, 1, &step));
  TF_DeleteBuffer(metadata);
  ct_close(&t);
}

// RunOptions.output_partition_graphs gives the step's graphs, a full trace what each node made.
CT_TEST(CAPI, RunMetadataWithParts) {
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_INT32);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", x);
  ct_session(&t, NULL);
  pb_t options = {0};
  pb_varint(&options, 1, 3);  // trace_level: FULL_TRACE
  pb_varint(&options, 5, 1);  // output_partition_graphs
  TF_Buffer* given = TF_NewBufferFromString(options.data, options.length);
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output feed = ct_out(x, 0), fetch = ct_out(neg, 0);
  TF_Tensor *fed = ct_int32(3), *result = NULL;
  TF_SessionRun(t.session, given, &feed, &fed, 1, &fetch, &result, 1, NULL, 0, metadata, t.status);
  CT_OK(t.status);
  CT_INT(ct_take_int32(result), -3);
  pb_field_t stats, device, node, output, tensor, part, shape;
  CT_INT(pb_count(metadata->data, metadata->length, 3), 1);
  cr_assert(pb_find(metadata->data, metadata->length, 3, &part));
  cr_assert(pb_find_named(part.data, part.length, 1, 1, "neg", &node));
  cr_assert(pb_find(metadata->data, metadata->length, 1, &stats));
  cr_assert(pb_find(stats.data, stats.length, 1, &device));
  cr_assert(pb_find_named(device.data, device.length, 2, 1, "neg", &node));
  cr_assert(pb_find(node.data, node.length, 7, &output));
  cr_assert(pb_find(output.data, output.length, 3, &tensor));
  cr_assert(pb_find(tensor.data, tensor.length, 2, &shape));
  pb_field_t dtype, allocation, bytes;
  cr_assert(pb_find(tensor.data, tensor.length, 1, &dtype));
  CT_INT(dtype.value, TF_INT32);
  cr_assert(pb_find(tensor.data, tensor.length, 4, &allocation));
  cr_assert(pb_find(allocation.data, allocation.length, 1, &bytes));
  CT_INT(bytes.value, 4);
  TF_DeleteTensor(fed);
  TF_DeleteBuffer(given);
  TF_DeleteBuffer(metadata);
  pb_free(&options);
  ct_close(&t);
}

// The entry of the node |name| in a trace.
static pb_field_t entry_of(const TF_Buffer* metadata, const char* name) {
  pb_field_t step, device, node = {0};
  cr_assert(pb_find(metadata->data, metadata->length, 1, &step));
  pb_reader_t devices = pb_read(step.data, step.length);
  while (pb_next(&devices, &device))
    if (device.number == 1 && pb_find_named(device.data, device.length, 2, 1, name, &node)) break;
  cr_assert_not_null(node.data, "no entry of %s", name);
  return node;
}

// The label ends with |text|: before it may be how much the node allocated, and from whom.
static void check_label(const TF_Buffer* metadata, const char* name, const char* text) {
  pb_field_t node = entry_of(metadata, name), label;
  cr_assert(pb_find(node.data, node.length, 8, &label));
  size_t length = strlen(text);
  cr_assert(label.length >= length && memcmp(label.data + label.length - length, text, length) == 0,
            "%.*s", (int)label.length, (const char*)label.data);
  cr_assert(*text == ' ' || label.length == length, "%.*s", (int)label.length,
            (const char*)label.data);
}

static TF_Operation* normal_after(ct_t* t, const char* name, TF_Operation* shape,
                                  TF_Operation* control) {
  TF_OperationDescription* desc = TF_NewOperation(t->graph, "RandomStandardNormal", name);
  TF_AddInput(desc, ct_out(shape, 0));
  TF_SetAttrType(desc, "dtype", TF_FLOAT);
  TF_AddControlInput(desc, control);
  TF_Operation* normal = TF_FinishOperation(desc, t->status);
  CT_OK(t->status);
  return normal;
}

// A label names the node, its op and its inputs; feeds by their place in the order of their names.
// A node that makes many bytes says how many. The times and the memory are there too.
CT_TEST(CAPI, RunMetadataLabels) {
  ct_t t = ct_open();
  TF_Operation* z = ct_placeholder(&t, t.graph, "z", TF_FLOAT);
  TF_Operation* shape = ct_placeholder(&t, t.graph, "dir/shape", TF_INT32);
  TF_Operation* split = ct_split3(&t, t.graph, "split", z);
  TF_Operation* most =
      ct_binary(&t, t.graph, "Maximum", "most", ct_out(split, 0), ct_out(split, 2));
  TF_Operation* first = normal_after(&t, "first", shape, split);
  TF_Operation* second = normal_after(&t, "second", shape, first);
  TF_Buffer* options = TF_NewBufferFromString("\x08\x03", 2);  // trace_level FULL_TRACE
  TF_Buffer* metadata = TF_NewBuffer();
  TF_Output feeds[] = {ct_out(z, 0), ct_out(shape, 0)};
  TF_Output fetches[] = {ct_out(most, 0), ct_out(second, 0)};
  static const float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  TF_Tensor* values[] = {ct_float_matrix(3, 3, ones),
                         ct_int32_vector(2, (const int32_t[]){1000, 1000})};
  TF_Tensor* results[2] = {NULL};
  TF_SessionRun(ct_session(&t, NULL), options, feeds, values, 2, fetches, results, 2, NULL, 0,
                metadata, t.status);
  CT_OK(t.status);
  check_label(metadata, "split", "split = Split(split_axis, _arg_z_0_1)");
  check_label(metadata, "most", "most = Maximum(split, split:2)");
  check_label(metadata, "first",
              " 3.8MB 3.8MB] first = RandomStandardNormal(_arg_dir/shape_0_0, ^split)");
  check_label(metadata, "second",
              " 3.8MB 3.8MB] second = RandomStandardNormal(_arg_dir/shape_0_0, ^first)");
  // all_start, op_end_rel and all_end_rel_micros, memory, output, scheduled_micros, memory_stats,
  // all_start, op_end_rel, all_end_rel and scheduled_nanos
  static const int numbers[] = {2, 4, 5, 6, 7, 9, 12, 13, 15, 16, 17};
  pb_field_t node = entry_of(metadata, "first"), field;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    cr_assert(pb_find(node.data, node.length, numbers[i], &field), "field %d", numbers[i]);
  for (int i = 0; i < 2; ++i) TF_DeleteTensor(values[i]);
  for (int i = 0; i < 2; ++i) TF_DeleteTensor(results[i]);
  TF_DeleteBuffer(metadata);
  TF_DeleteBuffer(options);
  ct_close(&t);
}

static int freed_options;
static void free_options(void* data, size_t length) {
  CT_INT(length, 2);
  freed_options++;
  free(data);
}

// What Rust's binding does in a run: the options are the client's memory, lists that are empty are
// addresses of nothing, and the metadata is read before the status. A slice of no address aborts.
CT_TEST(CAPI, RunMetadataOfAFailedRun) {
  ct_t t = ct_open();
  TF_Operation* x = ct_placeholder(&t, t.graph, "x", TF_INT32);
  TF_Operation* neg = ct_neg(&t, t.graph, "neg", x);
  TF_Buffer* options = TF_NewBuffer();
  options->data = memcpy(malloc(2), "\x08\x03", 2);  // trace_level FULL_TRACE
  options->length = 2;
  options->data_deallocator = free_options;
  TF_Output feed = ct_out(x, 0), fetch = ct_out(neg, 0);
  TF_Output* no_feeds = (TF_Output*)sizeof(void*);
  TF_Tensor* const* no_values = (TF_Tensor* const*)sizeof(void*);
  const TF_Operation* const* no_targets = (const TF_Operation* const*)sizeof(void*);
  TF_Tensor *result = NULL, *value = ct_int32(5);
  ct_session(&t, NULL);
  for (int way = 0; way < 3; ++way) {  // nothing is fed; again; something is
    TF_Buffer* metadata = TF_NewBuffer();
    TF_SessionRun(t.session, options, way < 2 ? no_feeds : &feed, way < 2 ? no_values : &value,
                  way == 2, &fetch, &result, 1, no_targets, 0, metadata, t.status);
    CT_CODE(t.status, way < 2 ? TF_INVALID_ARGUMENT : TF_OK);
    cr_assert_eq(result == NULL, way < 2);
    cr_assert_not_null(metadata->data);
    cr_assert_geq(pb_count(metadata->data, metadata->length, 1), way == 2);
    TF_DeleteBuffer(metadata);
  }
  CT_INT(ct_take_int32(result), -5);
  TF_DeleteTensor(value);
  TF_DeleteBuffer(options);
  CT_INT(freed_options, 1);
  // A model that is not there leaves the buffer of its MetaGraphDef as it was.
  TF_SessionOptions* session_options = TF_NewSessionOptions();
  TF_Buffer* meta = TF_NewBuffer();
  const char* tag = "serve";
  TF_Graph* graph = TF_NewGraph();
  cr_assert_null(TF_LoadSessionFromSavedModel(session_options, NULL, "/no/such/model", &tag, 1,
                                              graph, meta, t.status));
  CT_CODE(t.status, TF_NOT_FOUND);
  cr_assert_null(meta->data);
  CT_INT(meta->length, 0);
  TF_DeleteBuffer(meta);
  TF_DeleteGraph(graph);
  TF_DeleteSessionOptions(session_options);
  ct_close(&t);
}
