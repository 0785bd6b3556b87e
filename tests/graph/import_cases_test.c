// Imports of small GraphDefs, compared with the results of stock TensorFlow in
// data/import_cases.txt (recorded by record_imports.py). A failed import must leave the graph
// unchanged.
#include <stdio.h>
#include <unistd.h>

#include "framework/attr_proto.h"
#include "graph/build.h"
#include "util.h"
#include "wire/encode.h"

#define MOST 16

typedef struct case_t {
  char title[128];
  rn_graph_t* graph;
  rn_import_options_t options;
  rn_tensor_id_t map_from[MOST], returns[MOST];
  rn_edge_t map_to[MOST];
  rn_node_t* controls[MOST];
  rn_str_t return_nodes[MOST];
  rn_strbuf_t def;
  rn_import_results_t results;
  rn_strbuf_t before;
  rn_status_t status;
  size_t nodes, missing;
  int attr;  // of the last node
} case_t;

static void start_case(case_t* c, const char* title) {
  *c = (case_t){0};
  snprintf(c->title, sizeof c->title, "%s", title);
  c->graph = gt_graph();
  c->options.validate_colocation = true;
  rn_strbuf_init(&c->def, rn_allocator_default());
}

static void end_case(case_t* c) {
  cr_expect_eq(c->nodes, c->graph->nodes.count, "%s: %zu nodes, not %zu", c->title,
               c->graph->nodes.count, c->nodes);
  cr_expect_eq(c->missing, (size_t)c->results.missing_unused_count, "%s: missing", c->title);
  if (rn_status_code(c->status) != RN_CODE_OK) {
    rn_strbuf_t after = gt_export(c->graph);
    cr_expect(rn_str_eq(rn_strbuf_view(&after), rn_strbuf_view(&c->before)), "%s: changed",
              c->title);
    rn_strbuf_clear(&after);
  }
  rn_strbuf_clear(&c->before);
  rn_strbuf_clear(&c->def);
  rn_status_free(c->status);
  rn_import_results_clear(&c->results);
  rn_graph_release(c->graph);
}

static rn_node_t* find(case_t* c, rn_str_t name) {
  rn_node_t* node = rn_graph_find(c->graph, name);
  cr_assert(node, "%s: no node '%.*s'", c->title, RN_STR_ARGS(name));
  return node;
}

static rn_tensor_id_t parse_id(rn_str_t text) {
  if (text.data[0] == '^') return (rn_tensor_id_t){rn_str_n(text.data + 1, text.size - 1), -1};
  rn_str_t name = rn_str_split(&text, ':');
  int64_t index = 0;
  rn_str_to_i64(text, &index);
  return (rn_tensor_id_t){name, (int32_t)index};
}

static void add_before(case_t* c, rn_str_t item) {
  rn_str_t name = rn_str_split(&item, ':');
  char text[64];
  snprintf(text, sizeof text, "%.*s", RN_STR_ARGS(name));
  gt_placeholder(c->graph, text, item.size ? RN_INT32 : RN_FLOAT, RN_SHAPE_UNKNOWN);
}

static void add_mapping(case_t* c, rn_str_t rest) {
  rn_tensor_id_t from = parse_id(rn_str_split(&rest, ' ')), to = parse_id(rest);
  c->map_from[c->options.map_count] = from;
  c->map_to[c->options.map_count++] = (rn_edge_t){find(c, to.name), to.index};
}

static void decode_hex(rn_strbuf_t* out, rn_str_t hex) {
  for (size_t i = 0; i + 1 < hex.size; i += 2) {
    unsigned byte = 0;
    sscanf(hex.data + i, "%2x", &byte);
    rn_strbuf_append_n(out, &(char){(char)byte}, 1);
  }
}

static void run(case_t* c, rn_str_t hex) {
  decode_hex(&c->def, hex);
  c->options.map_from = c->map_from;
  c->options.map_to = c->map_to;
  c->options.controls = c->controls;
  c->options.return_outputs = c->returns;
  c->options.return_nodes = c->return_nodes;
  c->before = gt_export(c->graph);
  c->status = rn_graph_import(c->graph, rn_strbuf_view(&c->def), &c->options, &c->results);
}

// The recorded message, with the name of this host and without escapes.
static void check_message(case_t* c, rn_str_t wanted) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  for (size_t i = 0; i < wanted.size; i++) {
    if (rn_str_starts_with(rn_str_n(wanted.data + i, wanted.size - i), RN_STR("<host>"))) {
      char host[256] = "";
      gethostname(host, sizeof host - 1);
      rn_strbuf_append(&text, rn_str(host));
      i += sizeof "<host>" - 2;
    } else if (wanted.data[i] == '\\' && i + 1 < wanted.size) {
      char escaped = wanted.data[++i];
      rn_strbuf_append_n(&text, escaped == 'n' ? "\n" : escaped == 't' ? "\t" : "\\", 1);
    } else {
      rn_strbuf_append_n(&text, wanted.data + i, 1);
    }
  }
  cr_expect_str_eq(rn_status_message(c->status), rn_strbuf_view(&text).data, "%s: '%s', not '%s'",
                   c->title, rn_status_message(c->status), rn_strbuf_view(&text).data);
  rn_strbuf_clear(&text);
}

static void check_inputs(case_t* c, const rn_node_t* node, rn_str_t rest) {
  int data = 0;
  size_t controls = 0;
  while (rest.size) {
    rn_tensor_id_t id = parse_id(rn_str_split(&rest, ' '));
    if (id.index < 0) {
      bool found = false;
      for (size_t i = 0; i < node->controls.count; i++) {
        found |= rn_str_eq(node->controls.items[i]->name, id.name);
      }
      cr_expect(found, "%s: %s lacks ^%.*s", c->title, node->name.data, RN_STR_ARGS(id.name));
      controls++;
    } else {
      cr_assert_lt(data, node->input_count);
      rn_edge_t edge = node->inputs[data++];
      cr_expect(rn_str_eq(edge.node->name, id.name) && edge.index == id.index,
                "%s: input %d of %s is %s:%d", c->title, data - 1, node->name.data,
                edge.node->name.data, edge.index);
    }
  }
  cr_expect(data == node->input_count && controls == node->controls.count, "%s: inputs of %s",
            c->title, node->name.data);
}

static void check_node(case_t* c, rn_str_t rest) {
  cr_assert_lt(c->nodes, c->graph->nodes.count, "%s: a node is missing", c->title);
  const rn_node_t* node = c->graph->nodes.items[c->nodes++];
  rn_str_t name = rn_str_split(&rest, ' '), op = rn_str_split(&rest, ' ');
  rn_str_t device = rn_str_split(&rest, ' ');
  cr_expect(rn_str_eq(node->name, name), "%s: '%s', not '%.*s'", c->title, node->name.data,
            RN_STR_ARGS(name));
  cr_expect(rn_str_is(op, node->op->name), "%s: op of %s", c->title, node->name.data);
  cr_expect(rn_str_eq(node->device, rn_str_is(device, "-") ? RN_STR("") : device),
            "%s: device of %s", c->title, node->name.data);
  check_inputs(c, node, rest);
}

static void check_attr(case_t* c, rn_str_t rest) {
  const rn_node_t* node = c->graph->nodes.items[c->nodes - 1];
  rn_str_t name = rn_str_split(&rest, ' ');
  const rn_attr_value_t* value = rn_node_attr(node, name);
  cr_assert(value, "%s: %s has no %.*s", c->title, node->name.data, RN_STR_ARGS(name));
  rn_strbuf_t wanted, found;
  rn_strbuf_init(&wanted, rn_allocator_default());
  rn_strbuf_init(&found, rn_allocator_default());
  decode_hex(&wanted, rest);
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_default());
  rn_pb_AttrValue_t proto;
  OK(rn_attr_value_to_proto(value, &arena, &proto));
  OK(RN_PB_ENCODE(AttrValue, &proto, NULL, &found));
  cr_expect(rn_str_eq(rn_strbuf_view(&wanted), rn_strbuf_view(&found)), "%s: %s of %s", c->title,
            name.data, node->name.data);
  rn_arena_clear(&arena);
  rn_strbuf_clear(&wanted);
  rn_strbuf_clear(&found);
}

static void check_missing(case_t* c, rn_str_t rest) {
  rn_str_t name = rn_str_split(&rest, ' ');
  int64_t index = 0;
  rn_str_to_i64(rest, &index);
  bool found = false;
  for (int i = 0; i < c->results.missing_unused_count; i++) {
    found |= rn_str_eq(c->results.missing_unused[i].name, name) &&
             c->results.missing_unused[i].index == index;
  }
  cr_expect(found, "%s: %.*s:%d is not told missing", c->title, RN_STR_ARGS(name), (int)index);
  c->missing++;
}

static void check_versions(case_t* c, rn_str_t rest) {
  int64_t producer = 0, min_consumer = 0;
  rn_str_to_i64(rn_str_split(&rest, ' '), &producer);
  rn_str_to_i64(rest, &min_consumer);
  cr_expect_eq(c->graph->producer, (int32_t)producer, "%s: producer", c->title);
  cr_expect_eq(c->graph->min_consumer, (int32_t)min_consumer, "%s: min consumer", c->title);
}

static void read_option(case_t* c, rn_str_t key, rn_str_t rest) {
  rn_import_options_t* options = &c->options;
  if (rn_str_is(key, "pre")) add_before(c, rest);
  if (rn_str_is(key, "prefix")) options->prefix = rest;
  if (rn_str_is(key, "uniquify_names")) options->uniquify_names = true;
  if (rn_str_is(key, "uniquify_prefix")) options->uniquify_prefix = true;
  if (rn_str_is(key, "device")) options->default_device = rest;
  if (rn_str_is(key, "map")) add_mapping(c, rest);
  if (rn_str_is(key, "control")) c->controls[options->control_count++] = find(c, rest);
  if (rn_str_is(key, "return")) c->returns[options->return_output_count++] = parse_id(rest);
  if (rn_str_is(key, "return_node")) c->return_nodes[options->return_node_count++] = rest;
}

static void read_answer(case_t* c, rn_str_t key, rn_str_t rest) {
  int64_t code = 0;
  if (rn_str_is(key, "code") && rn_str_to_i64(rest, &code)) {
    cr_expect_eq((int64_t)rn_status_code(c->status), code, "%s: %s", c->title,
                 rn_status_message(c->status));
  }
  if (rn_str_is(key, "message")) check_message(c, rest);
  if (rn_str_is(key, "node")) check_node(c, rest);
  if (rn_str_is(key, "attr")) check_attr(c, rest);
  if (rn_str_is(key, "missing")) check_missing(c, rest);
  if (rn_str_is(key, "versions")) check_versions(c, rest);
}

GT_TEST(import_cases, as_recorded) {
  rn_strbuf_t file = gt_read_file("import_cases.txt");
  rn_str_t rest = rn_strbuf_view(&file);
  case_t c = {0};
  int cases = 0;
  while (rest.size) {
    rn_str_t line = rn_str_split(&rest, '\n');
    rn_str_t key = rn_str_split(&line, ' ');
    if (rn_str_is(key, "case")) {
      char title[128];
      snprintf(title, sizeof title, "%.*s", RN_STR_ARGS(line));
      start_case(&c, title);
    } else if (rn_str_is(key, "def")) {
      run(&c, line);
    } else if (rn_str_is(key, "end")) {
      end_case(&c);
      cases++;
    } else if (key.size) {
      read_option(&c, key, line);
      read_answer(&c, key, line);
    }
  }
  cr_expect_gt(cases, 90);
  rn_strbuf_clear(&file);
}
