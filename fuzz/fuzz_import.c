// Fuzzes the import of GraphDefs; the first byte selects options. A refused import must leave the
// graph unchanged. An accepted one must export, and its export must import into an equal graph.
#include "fuzz/util.h"
#include "graph/graph.h"
#include "graph/import.h"

// A few bytes can describe a constant as large as the importer's limit, which is too slow to fuzz.
// Refuses inputs that need much memory.
#define MAX_BYTES ((int64_t)1 << 28)

static rn_graph_t* new_graph(rn_counting_allocator_t* counting) {
  rn_graph_t* graph = NULL;
  fuzz_must(rn_graph_create(rn_allocator_counting(counting), &graph));
  return graph;
}

static rn_strbuf_t export_graph(rn_graph_t* graph) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  fuzz_must(rn_graph_export(graph, &bytes));
  return bytes;
}

static void check_equal(const rn_strbuf_t* a, const rn_strbuf_t* b) {
  fuzz_check(rn_str_eq(rn_strbuf_view(a), rn_strbuf_view(b)));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_graph_t *graph = new_graph(&counting), *second = new_graph(&counting);
  rn_node_t* control = NULL;
  rn_node_spec_t spec = {.op = RN_STR("NoOp"), .name = RN_STR("before")};
  fuzz_must(rn_graph_add(graph, &spec, &control));
  uint8_t choice = data[0];
  rn_import_options_t options = {
      .prefix = choice & 1 ? RN_STR("p") : RN_STR(""),
      .uniquify_names = choice & 2,
      .uniquify_prefix = choice & 4,
      .validate_colocation = choice & 8,
      .controls = &control,
      .control_count = choice & 16 ? 1 : 0,
  };
  rn_strbuf_t before = export_graph(graph);
  rn_str_t bytes = rn_str_n((const char*)data + 1, size - 1);
  rn_status_t status = rn_graph_import(graph, bytes, &options, NULL);
  if (!rn_ok(status)) {
    rn_strbuf_t after = export_graph(graph);
    check_equal(&before, &after);
    rn_strbuf_clear(&after);
  } else if (counting.peak_bytes < MAX_BYTES) {
    rn_strbuf_t once = export_graph(graph);
    rn_import_options_t plain = {.validate_colocation = options.validate_colocation};
    fuzz_must(rn_graph_import(second, rn_strbuf_view(&once), &plain, NULL));
    rn_strbuf_t twice = export_graph(second);
    check_equal(&once, &twice);
    rn_strbuf_clear(&once);
    rn_strbuf_clear(&twice);
  }
  rn_status_free(status);
  rn_strbuf_clear(&before);
  rn_graph_release(graph);
  rn_graph_release(second);
  fuzz_check(counting.live_blocks == 0);
  return 0;
}
