// Imports that no recorded case covers: long chains, cycles, export and import of fixtures, lack of
// memory, hostile bytes.
#include <stdio.h>

#include "function/function.h"
#include "proto/graph.pb.h"
#include "util.h"
#include "wire/writer.h"

typedef struct text_t {
  rn_strbuf_t bytes;
} text_t;

static text_t new_text(void) {
  text_t text;
  rn_strbuf_init(&text.bytes, rn_allocator_default());
  return text;
}

// Appends a node whose only attribute is T = |type| (0: none). |inputs| are separated by blanks.
static void put_node(text_t* text, const char* name, const char* op, const char* inputs, int type) {
  rn_strbuf_t* out = &text->bytes;
  size_t node = rn_pb_begin(out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(out, rn_pb_NodeDef_name_field, rn_str(name));
  rn_pb_put_str(out, rn_pb_NodeDef_op_field, rn_str(op));
  for (rn_str_t rest = rn_str(inputs); rest.size;) {
    rn_pb_put_str(out, rn_pb_NodeDef_input_field, rn_str_split(&rest, ' '));
  }
  if (type) {
    size_t attr = rn_pb_begin(out, rn_pb_NodeDef_attr_field);
    rn_pb_put_str(out, rn_pb_NodeDef_AttrEntry_key_field,
                  strcmp(op, "Placeholder") ? RN_STR("T") : RN_STR("dtype"));
    size_t value = rn_pb_begin(out, rn_pb_NodeDef_AttrEntry_value_field);
    rn_pb_put_uint(out, rn_pb_AttrValue_type_field, (uint64_t)type);
    rn_pb_end(out, value);
    rn_pb_end(out, attr);
  }
  rn_pb_end(out, node);
}

static rn_status_t import(rn_graph_t* graph, const text_t* text) {
  return rn_graph_import(graph, rn_strbuf_view(&text->bytes), NULL, NULL);
}

// How inputs name nodes. A colon that no number follows is part of the name.
GT_TEST(import, tensor_names) {
  static const struct {
    const char *text, *name;
    int32_t index;
  } rows[] = {
      {"node", "node", 0},
      {"node:3", "node", 3},
      {"^node", "node", -1},
      {"a/b:0", "a/b", 0},
      {"node:", "node:", 0},
      {"node:x", "node:x", 0},
      {"node:-1", "node:-1", 0},
      {"a:1:2", "a:1", 2},
      {":5", ":5", 0},
      {"", "", 0},
      {"n:99999999999", "n", INT32_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rn_tensor_id_t id = rn_tensor_id_parse(rn_str(rows[i].text));
    cr_assert(rn_str_is(id.name, rows[i].name), "%s", rows[i].text);
    cr_assert_eq(id.index, rows[i].index, "%s", rows[i].text);
  }
}

// 10^6 nodes in one chain, the last one first: nothing may recurse.
GT_TEST(import, long_chain_backwards) {
  enum { LENGTH = 1000000 };
  text_t text = new_text();
  char name[16], input[16];
  for (int i = LENGTH; i > 0; i--) {
    snprintf(name, sizeof name, "n%d", i);
    snprintf(input, sizeof input, "n%d", i - 1);
    put_node(&text, name, "Neg", input, RN_FLOAT);
  }
  put_node(&text, "n0", "Placeholder", "", RN_FLOAT);
  rn_graph_t* graph = gt_graph();
  OK(import(graph, &text));
  cr_assert_eq(graph->nodes.count, LENGTH + 1);
  cr_assert(rn_str_is(graph->nodes.items[0]->name, "n0"));
  cr_assert(rn_str_is(graph->nodes.items[LENGTH]->name, "n1000000"));
  rn_graph_release(graph);
  rn_strbuf_clear(&text.bytes);
}

GT_TEST(import, cycles_are_named) {
  text_t text = new_text();
  put_node(&text, "a", "Neg", "c", RN_FLOAT);
  put_node(&text, "b", "Neg", "a", RN_FLOAT);
  put_node(&text, "c", "Neg", "b", RN_FLOAT);
  put_node(&text, "d", "Neg", "c", RN_FLOAT);
  rn_graph_t* graph = gt_graph();
  FAILS_SAYING(import(graph, &text), INVALID_ARGUMENT, "4 nodes in a cycle: 'a' <- 'c' <- 'b'");
  cr_assert_eq(graph->nodes.count, 0);
  text.bytes.size = 0;
  put_node(&text, "a", "NoOp", "^a", 0);
  FAILS_SAYING(import(graph, &text), INVALID_ARGUMENT, "1 nodes in a cycle: 'a'");
  rn_graph_release(graph);
  rn_strbuf_clear(&text.bytes);
}

GT_TEST(import, unknown_ops_all_at_once) {
  text_t text = new_text();
  put_node(&text, "a", "NoSuchA", "", 0);
  put_node(&text, "b", "NoOp", "", 0);
  put_node(&text, "c", "NoSuchB", "", 0);
  put_node(&text, "d", "NoSuchA", "", 0);
  put_node(&text, "e", "NoSuchC", "", 0);
  rn_graph_t* graph = gt_graph();
  FAILS_WITH(import(graph, &text), NOT_FOUND, "Op type not registered 'NoSuchA' in binary");
  FAILS_WITH(import(graph, &text), NOT_FOUND, " Nor are these registered: 'NoSuchB', 'NoSuchC'");
  rn_graph_release(graph);
  rn_strbuf_clear(&text.bytes);
}

// Stock imports a second node of the same name; here names stay unique.
GT_TEST(import, names_stay_unique_below_a_prefix) {
  text_t text = new_text();
  put_node(&text, "x", "NoOp", "", 0);
  rn_graph_t* graph = gt_graph();
  rn_import_options_t options = {.prefix = RN_STR("p")};
  OK(rn_graph_import(graph, rn_strbuf_view(&text.bytes), &options, NULL));
  FAILS_SAYING(rn_graph_import(graph, rn_strbuf_view(&text.bytes), &options, NULL),
               INVALID_ARGUMENT, "Node name 'p/x' already exists in the Graph");
  rn_graph_release(graph);
  rn_strbuf_clear(&text.bytes);
}

GT_TEST(import, returns_edges_and_nodes) {
  text_t text = new_text();
  put_node(&text, "x", "Placeholder", "", RN_FLOAT);
  put_node(&text, "n", "Neg", "x", RN_FLOAT);
  rn_graph_t* graph = gt_graph();
  rn_node_t* in = gt_placeholder(graph, "in", RN_FLOAT, GT_SHAPE(2));
  const rn_tensor_id_t outputs[] = {{RN_STR("n"), 0}, {RN_STR("x"), 0}};
  const rn_tensor_id_t from[] = {{RN_STR("x"), 0}};
  const rn_edge_t to[] = {{in, 0}};
  const rn_str_t nodes[] = {RN_STR("x")};
  rn_import_options_t options = {.prefix = RN_STR("p"),
                                 .map_from = from,
                                 .map_to = to,
                                 .map_count = 1,
                                 .return_outputs = outputs,
                                 .return_output_count = 2,
                                 .return_nodes = nodes,
                                 .return_node_count = 1};
  rn_import_results_t results;
  OK(rn_graph_import(graph, rn_strbuf_view(&text.bytes), &options, &results));
  cr_assert(rn_str_is(results.return_outputs[0].node->name, "p/n"));
  cr_assert_eq(results.return_outputs[1].node, in);
  cr_assert(rn_str_is(results.return_nodes[0]->name, "p/x"));
  cr_assert_str_eq(gt_shape(results.return_outputs[0]), "[2]");
  cr_assert_eq(in->outputs[0].consumers.count, 1);
  rn_import_results_clear(&results);
  rn_graph_release(graph);
  rn_strbuf_clear(&text.bytes);
}

// Graphs written by stock come back byte for byte once they have been through ours, and with the
// same nodes the first time.
static void round_trip(const char* file, size_t least_nodes) {
  rn_strbuf_t bytes = gt_read_file(file);
  rn_graph_t *first = gt_graph(), *second = gt_graph();
  OK(rn_graph_import(first, rn_strbuf_view(&bytes), NULL, NULL));
  cr_assert_gt(first->nodes.count, least_nodes);
  rn_strbuf_t once = gt_export(first);
  OK(rn_graph_import(second, rn_strbuf_view(&once), NULL, NULL));
  rn_strbuf_t twice = gt_export(second);
  cr_assert(rn_str_eq(rn_strbuf_view(&once), rn_strbuf_view(&twice)), "%s", file);
  cr_assert_eq(first->nodes.count, second->nodes.count);
  cr_assert_eq(rn_graph_function_count(first), rn_graph_function_count(second));
  // Into a graph that has it already, under another prefix.
  rn_import_options_t options = {.prefix = RN_STR("again"), .validate_colocation = true};
  OK(rn_graph_import(first, rn_strbuf_view(&once), &options, NULL));
  cr_assert_eq(first->nodes.count, 2 * second->nodes.count);
  rn_strbuf_clear(&bytes);
  rn_strbuf_clear(&once);
  rn_strbuf_clear(&twice);
  rn_graph_release(first);
  rn_graph_release(second);
}

GT_TEST(import, network_there_and_back) { round_trip("network.pb", 50); }
GT_TEST(import, loops_there_and_back) { round_trip("loops.pb", 30); }
GT_TEST(import, functions_there_and_back) { round_trip("functions.pb", 1); }

// A truncated or damaged GraphDef is refused, or is a graph; never anything in between.
GT_TEST(import, damaged_bytes) {
  rn_strbuf_t bytes = gt_read_file("loops.pb");
  rn_graph_t* graph = gt_graph();
  gt_placeholder(graph, "before", RN_FLOAT, RN_SHAPE_UNKNOWN);
  rn_import_options_t options = {.prefix = RN_STR("p"), .uniquify_prefix = true};
  for (size_t i = 0; i < bytes.size; i++) {
    size_t nodes = graph->nodes.count;
    rn_status_t status = rn_graph_import(graph, rn_str_n(bytes.data, i), &options, NULL);
    if (!rn_ok(status)) cr_assert_eq(graph->nodes.count, nodes);
    rn_status_free(status);
    char old = bytes.data[i];
    bytes.data[i] = (char)(old ^ 0x41);
    nodes = graph->nodes.count;
    status = rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL);
    if (!rn_ok(status)) cr_assert_eq(graph->nodes.count, nodes);
    rn_status_free(status);
    bytes.data[i] = old;
  }
  for (size_t i = 0; i < graph->nodes.count; i++) {
    cr_assert_eq(rn_graph_find(graph, graph->nodes.items[i]->name), graph->nodes.items[i]);
  }
  rn_strbuf_clear(&bytes);
  rn_graph_release(graph);
}

// Every allocation of an import fails once: the graph is as before, and the import then works.
static void sweep(const char* file) {
  rn_strbuf_t bytes = gt_read_file(file);
  for (int64_t fail_at = 1;; fail_at++) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system()};
    rn_graph_t* graph = NULL;
    OK(rn_graph_create(rn_allocator_counting(&counting), &graph));
    rn_node_t* in = gt_placeholder(graph, "in", RN_FLOAT, GT_SHAPE(2, 3));
    rn_import_options_t options = {
        .prefix = RN_STR("p"), .controls = &in, .control_count = 1, .validate_colocation = true};
    rn_strbuf_t before = gt_export(graph);
    counting.allocations = 0;
    counting.fail_at = fail_at;
    rn_status_t status = rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL);
    bool done = rn_ok(status);
    counting.fail_at = 0;
    if (!done) {
      cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s",
                   rn_status_message(status));
      rn_strbuf_t after = gt_export(graph);
      cr_assert(rn_str_eq(rn_strbuf_view(&before), rn_strbuf_view(&after)));
      cr_assert_eq(in->control_consumers.count, 0);
      rn_strbuf_clear(&after);
      OK(rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL));
    }
    rn_status_free(status);
    rn_strbuf_clear(&before);
    rn_graph_release(graph);
    cr_assert_eq(counting.live_blocks, 0, "allocation %d", (int)fail_at);
    if (done) break;
  }
  rn_strbuf_clear(&bytes);
}

GT_TEST(import, survives_lack_of_memory) {
  sweep("network.pb");
  sweep("loops.pb");
  sweep("functions.pb");
}

// A few bytes must not cost gigabytes.
GT_TEST(import, tensors_are_bounded) {
  // Const with a shape of 2^40 elements and one value.
  static const char bytes[] =
      "\x0a\x30\x0a\x01"
      "c\x12\x05"
      "Const*\x0b\x0a\x05"
      "dtype\x12\x02"
      "0\x01*\x17\x0a\x05"
      "value\x12\x0e"
      "B\x0c\x08\x01\x12\x08\x12\x06\x08\x80\x80\x80\x80\x20";
  rn_graph_t* graph = gt_graph();
  rn_status_t status = rn_graph_import(graph, rn_str_n(bytes, sizeof bytes - 1), NULL, NULL);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s", rn_status_message(status));
  rn_status_free(status);
  rn_graph_release(graph);
}
