// Fuzzes SavedModels: binary, or text if the first byte is odd. If the model opens, imports it,
// looks up its signatures, and runs its initialization in a session that may not access files.
#include "fuzz/util.h"
#include "graph/graph.h"
#include "saved_model/freeze.h"
#include "saved_model/saved_model.h"

#define MAX_BYTES ((int64_t)64 << 20)

static void look_up(const rn_meta_graph_t* meta, rn_graph_t* graph, rn_session_t* session) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  for (uint32_t i = 0; i < meta->def->signature_def.count && i < 8; ++i) {
    const rn_pb_SignatureDef_t* signature;
    rn_port_t *inputs, *outputs;
    int32_t input_count, output_count;
    fuzz_must(rn_meta_graph_signature(meta, meta->def->signature_def.items[i].key, &signature));
    rn_status_t status = rn_signature_ports(graph, signature, false, &arena, &inputs, &input_count);
    if (rn_ok(status))
      status = rn_signature_ports(graph, signature, true, &arena, &outputs, &output_count);
    if (rn_ok(status) && input_count == 1 && output_count == 1) {
      rn_strbuf_t bytes;
      rn_strbuf_init(&bytes, rn_allocator_system());
      rn_freeze_options_t options = {.inputs = &inputs[0].edge,
                                     .input_names = &inputs[0].name,
                                     .input_count = 1,
                                     .outputs = &outputs[0].edge,
                                     .output_names = &outputs[0].name,
                                     .output_count = 1,
                                     .keeps_constants = true};
      rn_str_t fill;
      status = rn_freeze(session, &options, &bytes, &fill);
      rn_strbuf_clear(&bytes);
    }
    rn_status_free(status);
  }
  rn_arena_clear(&arena);
}

static rn_status_t load(rn_saved_model_t* model, const rn_meta_graph_t* meta, const rn_env_t* env,
                        rn_allocator_t allocator) {
  rn_graph_t* graph = NULL;
  rn_session_t* session = NULL;
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.timeout_ms = 200;
  options.is_limited = true;
  options.folder = model->folder;
  rn_status_t status = rn_graph_create(allocator, &graph);
  if (rn_ok(status)) status = rn_meta_graph_import(meta, graph);
  if (rn_ok(status)) status = rn_session_create(graph, &options, env, allocator, &session);
  if (rn_ok(status)) {
    status = rn_meta_graph_restore(model, meta, session, NULL);
    look_up(meta, graph, session);
  }
  rn_session_destroy(session);
  rn_graph_release(graph);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_BYTES);
  rn_env_t env = fuzz_env();
  rn_saved_model_t* model = NULL;
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_status_t status =
      rn_saved_model_parse(&env, RN_STR("/model"), bytes, data[0] & 1, allocator, &model);
  for (int32_t i = 0; rn_ok(status) && i < model->graph_count && i < 4; ++i) {
    const rn_meta_graph_t* found;
    const rn_pb_MetaGraphDef_MetaInfoDef_t* info = model->graphs[i].def->meta_info_def;
    fuzz_must(rn_saved_model_find(model, info ? info->tags.items : NULL,
                                  info ? (int32_t)info->tags.count : 0, &found));
    rn_status_free(load(model, &model->graphs[i], &env, allocator));
  }
  rn_status_free(status);
  rn_saved_model_destroy(model);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
