// Imports the input as a GraphDef and runs it: feeds placeholders and fetches every value, first
// all in one step, then one by one; repeats that without the planner's passes, and with a computed
// value fed. Every step must end with values or a status, and the session must free all memory.
#include "fuzz/util.h"
#include "graph/graph.h"
#include "graph/import.h"

#define MAX_BYTES ((int64_t)8 << 20)
#define MAX_FEEDS 16
#define MAX_FETCHES 32
#define MAX_MS 50

typedef struct program_t {
  rn_edge_t feeds[MAX_FEEDS];
  rn_tensor_t values[MAX_FEEDS];
  int feed_count;
  rn_edge_t fetches[MAX_FETCHES];
  int fetch_count;
  rn_node_t* targets[MAX_FETCHES];  // nodes without values
  int target_count;
} program_t;

// A value for an edge; unknown dimensions become 1.
static void feed(program_t* program, rn_edge_t edge) {
  const rn_output_t* output = &edge.node->outputs[edge.index];
  int64_t dims[RN_MAX_RANK], count;
  rn_shape_t shape = {output->shape.rank < 0 ? 0 : output->shape.rank, dims};
  for (int i = 0; i < shape.rank; ++i)
    dims[i] = output->shape.dims[i] < 0 ? 1 : output->shape.dims[i];
  if (program->feed_count == MAX_FEEDS || rn_dtype_size(output->dtype) == 0 ||
      output->dtype == RN_RESOURCE || output->dtype == RN_VARIANT ||
      !rn_shape_count(shape, &count) || count > 4096)
    return;
  rn_tensor_t* value = &program->values[program->feed_count];
  fuzz_must(rn_tensor_create(rn_allocator_system(), output->dtype, shape, value));
  size_t size = rn_dtype_is_plain(output->dtype) ? rn_dtype_size(output->dtype) : 0;
  if (size && count) memset(value->data, 0, rn_tensor_bytes(value));
  for (int64_t i = 0; size && i < count; ++i) ((char*)value->data)[(size_t)i * size] = 1;
  program->feeds[program->feed_count++] = edge;
}

static void add_node(program_t* program, rn_node_t* node) {
  if (node->op->role == RN_ROLE_PLACEHOLDER) {
    feed(program, (rn_edge_t){node, 0});
  } else if (node->output_count == 0) {
    if (program->target_count < MAX_FETCHES) program->targets[program->target_count++] = node;
  } else {
    for (int i = 0; i < node->output_count && program->fetch_count < MAX_FETCHES; ++i)
      program->fetches[program->fetch_count++] = (rn_edge_t){node, i};
  }
}

static void run_step(rn_session_t* session, const program_t* program, rn_signature_t signature) {
  const rn_tensor_t* values[MAX_FEEDS];
  rn_tensor_t out[MAX_FETCHES] = {0};
  rn_step_options_t options = {.timeout_ms = MAX_MS};
  signature.feeds = program->feeds;
  signature.feed_count = program->feed_count;
  for (int i = 0; i < program->feed_count; ++i) values[i] = &program->values[i];
  rn_status_free(rn_session_run(session, &signature, values, out, &options));
  for (int i = 0; i < signature.fetch_count; ++i) rn_tensor_clear(&out[i]);
}

static void run(rn_graph_t* graph, const program_t* program, bool optimize,
                rn_allocator_t allocator) {
  rn_session_options_t options;
  rn_env_t env = fuzz_env();
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.optimize = optimize;
  options.allow_soft_placement = true;
  rn_session_t* session = NULL;
  rn_status_t status = rn_session_create(graph, &options, &env, allocator, &session);
  if (rn_ok(status)) {
    run_step(session, program,
             (rn_signature_t){.fetches = program->fetches,
                              .fetch_count = program->fetch_count,
                              .targets = program->targets,
                              .target_count = program->target_count});
    for (int i = 0; i < program->target_count; ++i)  // some of them set variables
      run_step(session, program,
               (rn_signature_t){.targets = &program->targets[i], .target_count = 1});
    for (int i = 0; i < program->fetch_count; ++i)
      run_step(session, program,
               (rn_signature_t){.fetches = &program->fetches[i], .fetch_count = 1});
  }
  rn_status_free(status);
  rn_session_destroy(session);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_BYTES);
  rn_graph_t* graph = NULL;
  fuzz_must(rn_graph_create(allocator, &graph));
  rn_import_options_t options = {0};
  rn_status_t status = rn_graph_import(graph, rn_str_n((const char*)data, size), &options, NULL);
  if (rn_ok(status)) {
    program_t program = {0};
    for (size_t i = 0; i < graph->nodes.count; ++i) add_node(&program, graph->nodes.items[i]);
    run(graph, &program, true, allocator);
    run(graph, &program, false, allocator);
    if (program.fetch_count) {
      feed(&program, program.fetches[size % (size_t)program.fetch_count]);
      run(graph, &program, true, allocator);
    }
    for (int i = 0; i < program.feed_count; ++i) rn_tensor_clear(&program.values[i]);
  }
  rn_status_free(status);
  rn_graph_release(graph);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
