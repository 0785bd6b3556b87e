// runnel graph --dot: the graph as a drawing for Graphviz.
#include <stdio.h>

#include "base/vec.h"
#include "cli/graph_fold.h"
#include "tensor/print.h"

#define MAX_SCOPES 32      // nested boxes; deeper scopes stay in the last
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
  rn_arena_t* arena;
  int32_t* order;  // nodes by name: those of a scope lie together
  rn_fold_t fold;
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

// A constant is drawn inside the nodes that use it, unless no node does.
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
  rn_str_t label = rn_fold_rest(node->def->name, dot->fold.depth);
  printf("%*sn%d [label=\"", indent, "", n);
  put_text(label);
  if (!rn_str_eq(label, node->def->op)) {
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

// A scope that is folded: its name and what is in it.
static rn_status_t put_group(dot_t* dot, int32_t g, int indent) {
  const rn_fold_group_t* group = &dot->fold.groups[g];
  int device = -1;
  if (group->device.size) RN_RETURN_IF_ERROR(device_number(dot, group->device, &device));
  rn_strbuf_t text;
  rn_strbuf_init(&text, dot->cli->allocator);
  rn_status_t status = rn_fold_describe(dot->view, &dot->fold, g, dot->arena, &text);
  printf("%*sn%d [label=\"", indent, "", dot->view->count + g);
  put_text(rn_fold_rest(group->path, dot->fold.depth));
  printf("/\\n");
  put_text(rn_strbuf_view(&text));
  printf("\", tooltip=\"");
  put_text(group->path);
  printf("\", shape=box3d, style=filled");
  if (device >= 0) printf(", fillcolor=\"%s\"", colours[device % COLOUR_COUNT]);
  printf("]\n");
  rn_strbuf_clear(&text);
  return status;
}

static void put_edge(const dot_t* dot, const rn_fold_edge_t* edge) {
  printf("  n%d -> n%d [", edge->from, edge->to);
  if (edge->is_control) {
    printf("style=dashed, color=gray50]\n");
    return;
  }
  rn_strbuf_t text;
  rn_strbuf_init(&text, dot->cli->allocator);
  if (edge->count > 1)
    rn_strbuf_printf(&text, "%d edges", edge->count);
  else
    rn_view_describe(&dot->view->nodes[edge->source.node], edge->source.output, &text);
  printf("label=\"");
  put_text(rn_strbuf_view(&text));
  printf(edge->count > 1 ? "\", penwidth=2]\n" : "\"]\n");
  rn_strbuf_clear(&text);
}

// The number of leading scopes that |name| and |other| share.
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
  int32_t last_thing = -1;
  for (int32_t i = 0; i < dot->view->count; ++i) {
    int32_t n = dot->order[i], thing = dot->fold.thing[n];
    rn_str_t name = dot->view->nodes[n].def->name;
    if (thing < 0 || thing == last_thing) continue;
    int same = common_scopes(name, last), wanted = scope_count(name);
    if (wanted > dot->fold.depth) wanted = dot->fold.depth;
    while (open > same) printf("%*s}\n", 2 * open--, "");
    for (; open < wanted; ++open) open_scope(name, open);
    RN_RETURN_IF_ERROR(thing < dot->view->count
                           ? put_node(dot, n, 2 + 2 * open)
                           : put_group(dot, thing - dot->view->count, 2 + 2 * open));
    last = name;
    last_thing = thing;
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

rn_status_t rn_view_dot(const rn_cli_t* cli, const rn_view_t* view, int depth) {
  rn_arena_t arena;
  rn_arena_init(&arena, cli->allocator);
  dot_t dot = {.cli = cli, .view = view, .arena = &arena};
  rn_status_t status = sort_nodes(&dot, &arena);
  if (rn_ok(status)) status = rn_fold_create(view, dot.order, is_hidden, depth, &arena, &dot.fold);
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
    for (int32_t e = 0; e < dot.fold.edge_count; ++e) put_edge(&dot, &dot.fold.edges[e]);
    put_legend(&dot);
    printf("}\n");
  }
  rn_vec_free(&dot.devices, cli->allocator);
  rn_arena_clear(&arena);
  return status;
}
