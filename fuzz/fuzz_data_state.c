// Fuzzes saved states of iterators. The first byte selects a pipeline, which restores the rest or
// refuses it and then produces a few elements.
#include "fuzz/util.h"
#include "kernels/cpu/dataset/walk.h"
#include "runnel/graph.h"

#define MAX_BYTES ((int64_t)64 << 20)
#define PIPELINES 9

static void elements(rn_scope_t* scope, int type, int rank) {
  static const int64_t open[1] = {-1};
  const int64_t* dims = open;
  rn_op_attr_type_list(scope, "output_types", &type, 1);
  rn_op_attr_shape_list(scope, "output_shapes", &dims, &rank, 1);
}

// A dataset op over |input| (may be NULL) and numbers; |last_is_bool|: the last of them is a bool.
static rn_edge_t dataset(rn_scope_t* scope, const char* op, const rn_edge_t* input, int count,
                         const int64_t* numbers, bool last_is_bool, int type, int rank) {
  rn_edge_t inputs[4];
  for (int i = 0; i < count; ++i) {
    bool is_bool = last_is_bool && i + 1 == count, truth = numbers[i] != 0;
    inputs[i] = is_bool ? rn_const(scope, RN_BOOL, NULL, 0, &truth)
                        : rn_const(scope, RN_INT64, NULL, 0, &numbers[i]);
  }
  rn_op_begin(scope, op);
  if (input) rn_op_input(scope, *input);
  for (int i = 0; i < count; ++i) rn_op_input(scope, inputs[i]);
  elements(scope, type, rank);
  return (rn_edge_t){rn_op_finish(scope), 0};
}

#define NUMBERS(...) \
  sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) { __VA_ARGS__ }

static rn_edge_t pipeline(rn_scope_t* s, int which, int* out_type, int* out_rank) {
  rn_edge_t range = dataset(s, "RangeDataset", NULL, NUMBERS(0, 9, 1), false, RN_INT64, 0);
  *out_type = which == 5 ? RN_VARIANT : RN_INT64;
  *out_rank = which == 2;
  rn_edge_t batch = dataset(s, "BatchDatasetV2", &range, NUMBERS(2, 0), true, RN_INT64, 1);
  switch (which) {
    case 1:
      return dataset(s, "ShuffleDataset", &range, NUMBERS(3, 1, 1), false, RN_INT64, 0);
    case 2:
      return dataset(s, "RepeatDataset", &batch, NUMBERS(3), false, RN_INT64, 1);
    case 3:
      return dataset(s, "PrefetchDataset", &range, NUMBERS(2), false, RN_INT64, 0);
    case 4:
      return dataset(s, "ShardDataset", &range, NUMBERS(2, 1), false, RN_INT64, 0);
    case 5:
      return dataset(s, "WindowDataset", &range, NUMBERS(2, 1, 1, 0), true, RN_VARIANT, 0);
    case 6:
      return dataset(s, "UnbatchDataset", &batch, 0, NULL, false, RN_INT64, 0);
    case 7:
      return dataset(s, "RandomDataset", NULL, NUMBERS(1, 2), false, RN_INT64, 0);
    case 8:
      return dataset(s, "UniqueDataset", &range, 0, NULL, false, RN_INT64, 0);
    default:
      return range;
  }
}

static void run(rn_session_t* session, rn_node_t* target, const rn_edge_t* fetch,
                const rn_edge_t* feed, const rn_tensor_t* fed) {
  rn_signature_t signature = {.feeds = feed,
                              .feed_count = feed != NULL,
                              .fetches = fetch,
                              .fetch_count = fetch != NULL,
                              .targets = &target,
                              .target_count = target != NULL};
  rn_tensor_t out = {0};
  rn_step_options_t options = {.timeout_ms = 1000};
  rn_status_free(rn_session_run(session, &signature, &fed, &out, &options));
  rn_tensor_clear(&out);
}

static void restore(rn_graph_t* graph, rn_scope_t* s, int which, rn_str_t bytes,
                    rn_allocator_t allocator) {
  int type = 0, rank = 0;
  rn_edge_t data = pipeline(s, which, &type, &rank);
  rn_op_begin(s, "IteratorV2");
  rn_op_attr_string(s, "shared_name", "");
  rn_op_attr_string(s, "container", "");
  elements(s, type, rank);
  rn_edge_t iterator = {rn_op_finish(s), 0};
  rn_op_begin(s, "MakeIterator");
  rn_op_input(s, data);
  rn_op_input(s, iterator);
  rn_node_t* make = rn_op_finish(s);
  rn_op_begin(s, "IteratorGetNext");
  rn_op_input(s, iterator);
  elements(s, type, rank);
  rn_edge_t next = {rn_op_finish(s), 0};
  rn_op_begin(s, "Placeholder");
  rn_op_attr_type(s, "dtype", RN_VARIANT);
  rn_edge_t state = {rn_op_finish(s), 0};
  rn_op_begin(s, "DeserializeIterator");
  rn_op_input(s, iterator);
  rn_op_input(s, state);
  rn_node_t* go_on = rn_op_finish(s);
  fuzz_check(go_on != NULL && next.node != NULL && make != NULL);

  rn_session_options_t options;
  rn_env_t env = fuzz_env();
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_session_t* session = NULL;
  rn_tensor_t fed = {0};
  rn_status_t status = rn_session_create(graph, &options, &env, allocator, &session);
  if (rn_ok(status)) status = rn_data_state_create(rn_allocator_system(), bytes, &fed);
  if (rn_ok(status)) {
    run(session, make, NULL, NULL, NULL);
    run(session, go_on, NULL, &state, &fed);
    for (int i = 0; i < 3; ++i) run(session, NULL, &next, NULL, NULL);
  }
  rn_tensor_clear(&fed);
  rn_session_destroy(session);
  rn_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_BYTES);
  rn_graph_t* graph = NULL;
  fuzz_must(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* scope = rn_scope_create(graph);
  fuzz_check(scope != NULL);
  restore(graph, scope, data[0] % PIPELINES, rn_str_n((const char*)data + 1, size - 1), allocator);
  rn_scope_destroy(scope);
  rn_graph_release(graph);
  fuzz_check(memory.counting.live_bytes == 0);
  return 0;
}
