// runnel graph --dot: the graph as a drawing for Graphviz.
#include <stdio.h>

#include "base/vec.h"
#include "cli/graph_view.h"
#include "tensor/print.h"

#define MAX_SCOPES 32      // boxes in boxes; what is deeper stays in the last
#define INLINE_ELEMENTS 4  // constants with more show their type and shape only
#define SHOWN_VALUE_BYTES 40

// Fill colours of devices in order of appearance; nodes without a device are white.
static const char* const colours[] = {"#dbe9f6", "#fde5cd", "#dcefd9", "#f9d9d6",
                                      "#e6dff0", "#eadfda", "#fbe0ef", "#eeeecb"};
enum { COLOUR_COUNT = sizeof colours / sizeof *colours };

typedef struct dot_t {
  const rn_cli_t* cli;
  const rn_view_t* view;
  RN_VEC(rn_str_t) devices;
  int32_t* order;  // nodes by name: those of a scope lie together
} dot_t;

static void put_text(rn_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    char c = text.data[i];
    if (c == '\n')
      fputs("\\n", stdout);
    else if (c == '"' || c == '\\')
      printf("\\%c", c);
    else
      putchar((unsigned char)c < 0x20 ? '?' : c);
  }
}

// A constant is drawn inside the nodes that use it, unless nobody does.
static bool is_hidden(const rn_view_node_t* node) {
  return node->op && node->op->role == RN_ROLE_CONSTANT && node->consumers > 0;
}

static rn_status_t device_number(dot_t* dot, rn_str_t device, int* out) {
  for (size_t i = 0; i < dot->devices.count; ++i) {
    *out = (int)i;
    if (rn_str_eq(dot->devices.items[i], device)) return RN_OK;
  }
  *out = (int)dot->devices.count;
  return rn_vec_push(&dot->devices, dot->cli->allocator, device);
}

static rn_str_t base_name(rn_str_t name) {
  for (size_t i = name.size; i > 0; --i)
    if (name.data[i - 1] == '/') return rn_str_n(name.data + i, name.size - i);
  return name;
}

static const char* shape_of(const rn_view_node_t* node) {
  switch (node->op ? node->op->role : RN_ROLE_PLAIN) {
    case RN_ROLE_PLACEHOLDER:
      return "shape=invhouse";
    case RN_ROLE_VARIABLE:
      return "shape=cylinder";
    case RN_ROLE_SWITCH:
    case RN_ROLE_MERGE:
    case RN_ROLE_ENTER:
    case RN_ROLE_EXIT:
    case RN_ROLE_NEXT_ITERATION:
    case RN_ROLE_LOOP_COND:
      return "shape=diamond";
    case RN_ROLE_CONSTANT:
      return "shape=plain";
    case RN_ROLE_NO_OP:
    case RN_ROLE_CONTROL_TRIGGER:
      return "shape=point, width=0.1";
    default:
      return "shape=box";
  }
}

// "float [] = 2.5", or without the value if it is long.
static void describe_constant(const rn_view_node_t* node, rn_strbuf_t* out) {
  rn_view_describe(node, 0, out);
  const rn_tensor_t* value = rn_view_constant(node);
  if (!out->size) rn_strbuf_append(out, base_name(node->def->name));
  if (!value || value->count > INLINE_ELEMENTS) return;
  size_t start = out->size;
  rn_strbuf_printf(out, " = ");
  rn_print_values(out, value, INLINE_ELEMENTS);
  if (out->size - start > SHOWN_VALUE_BYTES) {
    out->size = start;
    rn_strbuf_printf(out, " = ...");
  }
}

static rn_status_t put_node(dot_t* dot, int32_t n, int indent) {
  const rn_view_node_t* node = &dot->view->nodes[n];
  int device = -1;
  if (node->def->device.size) RN_RETURN_IF_ERROR(device_number(dot, node->def->device, &device));
  printf("%*sn%d [label=\"", indent, "", n);
  put_text(base_name(node->def->name));
  if (!rn_str_eq(base_name(node->def->name), node->def->op)) {
    fputs("\\n", stdout);
    put_text(node->def->op);
  }
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_view_edge_t edge = node->inputs[i];
    if (edge.node < 0 || edge.output < 0 || !is_hidden(&dot->view->nodes[edge.node])) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, dot->cli->allocator);
    describe_constant(&dot->view->nodes[edge.node], &text);
    printf("\\n%d: ", i);
    put_text(rn_strbuf_view(&text));
    rn_strbuf_clear(&text);
  }
  printf("\", tooltip=\"");
  put_text(node->def->name);
  printf("\", %s", shape_of(node));
  if (device >= 0) printf(", fillcolor=\"%s\"", colours[device % COLOUR_COUNT]);
  if (!node->op && !node->is_function) printf(", color=red, style=\"rounded,filled,dashed\"");
  printf("]\n");
  return RN_OK;
}

static void put_edges(const dot_t* dot, int32_t n) {
  const rn_view_node_t* node = &dot->view->nodes[n];
  for (int32_t i = 0; i < node->input_count; ++i) {
    rn_view_edge_t edge = node->inputs[i];
    if (edge.node < 0) continue;
    const rn_view_node_t* source = &dot->view->nodes[edge.node];
    if (edge.output < 0) {
      // A control edge from a constant orders nothing.
      if (!is_hidden(source)) printf("  n%d -> n%d [style=dashed, color=gray50]\n", edge.node, n);
      continue;
    }
    if (is_hidden(source)) continue;
    rn_strbuf_t text;
    rn_strbuf_init(&text, dot->cli->allocator);
    rn_view_describe(source, edge.output, &text);
    printf("  n%d -> n%d [label=\"", edge.node, n);
    put_text(rn_strbuf_view(&text));
    printf("\"]\n");
    rn_strbuf_clear(&text);
  }
}

// How many of the scopes in front of |name| and |other| are the same.
static int common_scopes(rn_str_t name, rn_str_t other) {
  int count = 0;
  for (size_t i = 0; i < name.size && i < other.size && name.data[i] == other.data[i]; ++i)
    count += name.data[i] == '/';
  return count > MAX_SCOPES ? MAX_SCOPES : count;
}

static int scope_count(rn_str_t name) {
  int count = 0;
  for (size_t i = 0; i < name.size; ++i) count += name.data[i] == '/';
  return count > MAX_SCOPES ? MAX_SCOPES : count;
}

// The text of scope number |number|, and everything up to it.
static rn_str_t scope_name(rn_str_t name, int number, rn_str_t* out_path) {
  size_t start = 0;
  for (size_t i = 0; i < name.size; ++i) {
    if (name.data[i] != '/') continue;
    if (number-- == 0) {
      *out_path = rn_str_n(name.data, i);
      return rn_str_n(name.data + start, i - start);
    }
    start = i + 1;
  }
  *out_path = name;
  return name;
}

static void open_scope(rn_str_t name, int number) {
  rn_str_t path, label = scope_name(name, number, &path);
  printf("%*ssubgraph \"cluster_", 2 + 2 * number, "");
  put_text(path);
  printf("\" { label=\"");
  put_text(label);
  printf("\"\n");
}

static rn_status_t put_nodes(dot_t* dot) {
  rn_str_t last = {0};
  int open = 0;
  for (int32_t i = 0; i < dot->view->count; ++i) {
    int32_t n = dot->order[i];
    rn_str_t name = dot->view->nodes[n].def->name;
    if (is_hidden(&dot->view->nodes[n])) continue;
    int same = common_scopes(name, last), wanted = scope_count(name);
    while (open > same) printf("%*s}\n", 2 * open--, "");
    for (; open < wanted; ++open) open_scope(name, open);
    RN_RETURN_IF_ERROR(put_node(dot, n, 2 + 2 * open));
    last = name;
  }
  while (open > 0) printf("%*s}\n", 2 * open--, "");
  return RN_OK;
}

static void put_legend(const dot_t* dot) {
  if (dot->devices.count == 0) return;
  printf("  subgraph \"cluster \" { label=\"devices\"; style=dotted\n");
  for (size_t i = 0; i < dot->devices.count; ++i) {
    printf("    d%zu [label=\"", i);
    put_text(dot->devices.items[i]);
    printf("\", shape=box, fillcolor=\"%s\"]\n", colours[i % COLOUR_COUNT]);
  }
  printf("  }\n");
}

static int by_name(const void* a, const void* b, void* arg) {
  const rn_view_t* view = arg;
  int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
  int order = rn_str_compare(view->nodes[x].def->name, view->nodes[y].def->name);
  return order ? order : x < y ? -1 : 1;
}

static rn_status_t sort_nodes(dot_t* dot, rn_arena_t* arena) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)dot->view->count, &dot->order));
  for (int32_t n = 0; n < dot->view->count; ++n) dot->order[n] = n;
  qsort_r(dot->order, (size_t)dot->view->count, sizeof *dot->order, by_name, (void*)dot->view);
  return RN_OK;
}

rn_status_t rn_view_dot(const rn_cli_t* cli, const rn_view_t* view) {
  dot_t dot = {.cli = cli, .view = view};
  rn_arena_t arena;
  rn_arena_init(&arena, cli->allocator);
  rn_status_t status = sort_nodes(&dot, &arena);
  if (rn_ok(status)) {
    printf(
        "digraph \"graph\" {\n"
        "  rankdir=BT; fontname=Helvetica; style=rounded; color=gray70\n"
        "  node [fontname=Helvetica, fontsize=10, style=\"rounded,filled\", fillcolor=white]\n"
        "  edge [fontname=Helvetica, fontsize=8]\n");
    if (!view->graph) {
      printf("  // Types and shapes are not known: ");
      put_text(rn_str(rn_status_message(view->why)));
      printf("\n");
    }
    status = put_nodes(&dot);
    for (int32_t n = 0; n < view->count; ++n)
      if (!is_hidden(&view->nodes[n])) put_edges(&dot, n);
    put_legend(&dot);
    printf("}\n");
  }
  rn_vec_free(&dot.devices, cli->allocator);
  rn_arena_clear(&arena);
  return status;
}
