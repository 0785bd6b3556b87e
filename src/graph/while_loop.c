// Builds while loops from two graphs: see while_loop.h.
//
// The loop is written as a GraphDef and imported, so that it is added completely or not at all:
//
//   Enter_i(parent input i) -> Merge_i(Enter_i, NextIteration_i) -> cond/… -> LoopCond
//   Switch_i(Merge_i, LoopCond); :1 -> body/… -> NextIteration_i; :0 -> Exit_i
#include "graph/while_loop.h"

#include <stdio.h>

#include "graph/import.h"
#include "proto/graph.pb.h"
#include "wire/decode.h"
#include "wire/encode.h"

void rn_loop_graphs_destroy(rn_loop_graphs_t* loop) {
  if (!loop) return;
  rn_graph_release(loop->cond);
  rn_graph_release(loop->body);
  rn_graph_release(loop->parent);
  rn_free(loop->allocator, loop, loop->block_size);
}

// Adds a placeholder of the type of |input| for loop variable |i| to |graph|.
static rn_status_t add_placeholder(rn_graph_t* graph, rn_edge_t input, const char* what, int i,
                                   rn_edge_t* out) {
  char name[32];
  int size = snprintf(name, sizeof name, "%s_input%d", what, i);
  rn_attr_t dtype = {
      RN_STR("dtype"),
      {.kind = RN_ATTR_TYPE, .type = rn_dtype_base(input.node->outputs[input.index].dtype)}};
  rn_node_spec_t spec = {.op = RN_STR("Placeholder"),
                         .name = rn_str_n(name, (size_t)size),
                         .attrs = &dtype,
                         .attr_count = 1};
  rn_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_graph_add(graph, &spec, &node));
  *out = (rn_edge_t){node, 0};
  return RN_OK;
}

static rn_status_t loop_fill(rn_loop_graphs_t* loop, rn_graph_t* parent, const rn_edge_t* inputs) {
  rn_graph_retain(parent);
  loop->parent = parent;
  RN_RETURN_IF_ERROR(rn_graph_create(loop->allocator, &loop->cond));
  RN_RETURN_IF_ERROR(rn_graph_create(loop->allocator, &loop->body));
  for (int i = 0; i < loop->count; ++i) {
    rn_edge_t input = inputs[i];
    RN_RETURN_IF_ERROR(
        add_placeholder(loop->cond, input, "cond", i, &rn_loop_cond_inputs(loop)[i]));
    RN_RETURN_IF_ERROR(
        add_placeholder(loop->body, input, "body", i, &rn_loop_body_inputs(loop)[i]));
    rn_loop_parent_inputs(loop)[i] = inputs[i];
    rn_loop_body_outputs(loop)[i] = (rn_edge_t){NULL, -1};
  }
  return RN_OK;
}

rn_status_t rn_loop_graphs_create(rn_graph_t* parent, const rn_edge_t* inputs, int count,
                                  rn_allocator_t allocator, rn_loop_graphs_t** out) {
  *out = NULL;
  size_t size;
  rn_loop_graphs_t* loop = NULL;
  if (!rn_mul_ok((size_t)count, 4 * sizeof(rn_edge_t), &size) ||
      !rn_add_ok(size, sizeof *loop, &size)) {
    return rn_out_of_memory();
  }
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, (void**)&loop));
  loop->allocator = allocator;
  loop->block_size = size;
  loop->count = count;
  rn_status_t status = loop_fill(loop, parent, inputs);
  if (!rn_ok(status)) {
    rn_loop_graphs_destroy(loop);
    return status;
  }
  *out = loop;
  return RN_OK;
}

// The GraphDef of a loop under construction. Everything lies in the arena.
typedef struct while_loop_writer_t {
  rn_loop_graphs_t* loop;
  rn_str_t frame;
  rn_arena_t arena;
  rn_pb_GraphDef_t def;
} while_loop_writer_t;

// "Merge", "Merge_1", …
static rn_status_t numbered(while_loop_writer_t* w, rn_str_t* out, const char* op, int i,
                            const char* port) {
  return i ? rn_arena_printf(&w->arena, out, "%s_%d%s", op, i, port)
           : rn_arena_printf(&w->arena, out, "%s%s", op, port);
}

static rn_status_t add_attr(while_loop_writer_t* w, rn_pb_NodeDef_t* node, const char* name,
                            rn_pb_AttrValue_t value) {
  rn_pb_AttrValue_t* copy = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &copy));
  *copy = value;
  node->attr.items[node->attr.count].key = rn_str(name);
  node->attr.items[node->attr.count++].value = copy;
  return RN_OK;
}

// Adds a node of the loop itself, "|op|_|i|", for loop variable |i|.
static rn_status_t add_node(while_loop_writer_t* w, const char* op, int i, rn_str_t input,
                            rn_str_t second) {
  rn_pb_NodeDef_t* node = &w->def.node.items[w->def.node.count];
  RN_RETURN_IF_ERROR(numbered(w, &node->name, op, i, ""));
  node->op = rn_str(op);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, 2, &node->input.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, 2, &node->attr.items));
  node->input.items[node->input.count++] = input;
  if (second.data) node->input.items[node->input.count++] = second;
  w->def.node.count++;
  if (strcmp(op, "LoopCond") == 0) return RN_OK;
  rn_edge_t from = rn_loop_parent_inputs(w->loop)[i];
  RN_RETURN_IF_ERROR(
      add_attr(w, node, "T",
               (rn_pb_AttrValue_t){.value_case = rn_pb_AttrValue_type_field,
                                   .type = rn_dtype_base(from.node->outputs[from.index].dtype)}));
  if (strcmp(op, "Enter") == 0) {
    return add_attr(w, node, "frame_name",
                    (rn_pb_AttrValue_t){.value_case = rn_pb_AttrValue_s_field, .s = w->frame});
  }
  if (strcmp(op, "Merge") == 0) {
    return add_attr(w, node, "N",
                    (rn_pb_AttrValue_t){.value_case = rn_pb_AttrValue_i_field, .i = 2});
  }
  return RN_OK;
}

// One of the two graphs while it is copied into the loop.
typedef struct while_loop_part_t {
  rn_graph_t* graph;
  const char* name;         // "cond" or "body"
  const rn_edge_t* inputs;  // its placeholders
  const char* from;         // what replaces them: "Merge" or "Switch"
  const char* port;         // "" or ":1"
} while_loop_part_t;

// The loop variable whose placeholder is called |name|; -1 for an ordinary node.
static int variable_of(const while_loop_writer_t* w, const while_loop_part_t* part, rn_str_t name) {
  for (int i = 0; i < w->loop->count; ++i) {
    if (rn_str_eq(part->inputs[i].node->name, name)) return i;
  }
  return -1;
}

// Translates |input| of a node in |part| to an input in the loop. |*out_is_inner|: it comes from a
// node of the same part.
static rn_status_t map_input(while_loop_writer_t* w, const while_loop_part_t* part, rn_str_t input,
                             rn_str_t* out, bool* out_is_inner) {
  bool is_control = input.size && input.data[0] == '^';
  rn_str_t rest = is_control ? rn_str_n(input.data + 1, input.size - 1) : input;
  int variable = variable_of(w, part, rn_tensor_id_parse(input).name);
  *out_is_inner = variable < 0;
  if (variable < 0) {
    return rn_arena_printf(&w->arena, out, "%s%s/%.*s", is_control ? "^" : "", part->name,
                           RN_STR_ARGS(rest));
  }
  RN_RETURN_IF_ERROR(numbered(w, out, part->from, variable, is_control ? "" : part->port));
  return is_control ? rn_arena_printf(&w->arena, out, "^%.*s", RN_STR_ARGS(*out)) : RN_OK;
}

// Translates the inputs of |node|. A node that waits for no other node of its part waits for the
// iteration to begin.
static rn_status_t map_inputs(while_loop_writer_t* w, const while_loop_part_t* part,
                              rn_pb_NodeDef_t* node) {
  rn_str_t* inputs = NULL;
  uint32_t count = node->input.count;
  bool has_inner = false;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, (size_t)count + 1, &inputs));
  for (uint32_t i = 0; i < count; ++i) {
    bool is_inner = false;
    RN_RETURN_IF_ERROR(map_input(w, part, node->input.items[i], &inputs[i], &is_inner));
    has_inner |= is_inner;
  }
  if (!has_inner)
    RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &inputs[count++], "^%s", part->from));
  node->input.items = inputs;
  node->input.count = count;
  return RN_OK;
}

// Translates "loc:@node" in "_class", which names a node of the same part.
static rn_status_t map_class(while_loop_writer_t* w, const while_loop_part_t* part,
                             rn_pb_NodeDef_t* node) {
  static const rn_str_t loc = {"loc:@", 5};
  for (uint32_t a = 0; a < node->attr.count; ++a) {
    rn_pb_NodeDef_AttrEntry_t* entry = &node->attr.items[a];
    if (!rn_str_is(entry->key, "_class")) continue;
    if (entry->value->value_case != rn_pb_AttrValue_list_field) continue;
    rn_pb_AttrValue_ListValue_t* list = entry->value->list;
    for (uint32_t i = 0; i < list->s.count; ++i) {
      rn_str_t s = list->s.items[i];
      if (!rn_str_starts_with(s, loc)) continue;
      rn_str_t mapped;
      bool is_inner;
      RN_RETURN_IF_ERROR(
          map_input(w, part, rn_str_n(s.data + loc.size, s.size - loc.size), &mapped, &is_inner));
      if (!is_inner && *part->port) mapped.size -= strlen(part->port);
      RN_RETURN_IF_ERROR(
          rn_arena_printf(&w->arena, &list->s.items[i], "loc:@%.*s", RN_STR_ARGS(mapped)));
    }
  }
  return RN_OK;
}

// Appends the nodes of |part|'s own GraphDef, which lies decoded in |source|.
static rn_status_t add_part(while_loop_writer_t* w, const while_loop_part_t* part,
                            const rn_pb_GraphDef_t* source) {
  for (uint32_t i = 0; i < source->node.count; ++i) {
    rn_pb_NodeDef_t node = source->node.items[i];
    if (variable_of(w, part, node.name) >= 0) continue;
    RN_RETURN_IF_ERROR(map_inputs(w, part, &node));
    RN_RETURN_IF_ERROR(map_class(w, part, &node));
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&w->arena, &node.name, "%s/%.*s", part->name, RN_STR_ARGS(node.name)));
    w->def.node.items[w->def.node.count++] = node;
  }
  return RN_OK;
}

static rn_status_t decode_part(while_loop_writer_t* w, const while_loop_part_t* part,
                               rn_pb_GraphDef_t** out) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, w->loop->allocator);
  rn_status_t status = rn_graph_export(part->graph, &bytes);
  if (rn_ok(status)) {
    rn_pb_limits_t limits = {.copy_bytes = true};
    status = RN_PB_DECODE(GraphDef, rn_strbuf_view(&bytes), &limits, &w->arena, out);
  }
  rn_strbuf_clear(&bytes);
  return status;
}

// Translates |output| of |part| to an input in the loop.
static rn_status_t map_output(while_loop_writer_t* w, const while_loop_part_t* part, rn_edge_t edge,
                              rn_str_t* out) {
  rn_str_t name;
  bool is_inner;
  RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &name, edge.index ? "%s:%d" : "%s",
                                     edge.node->name.data, edge.index));
  return map_input(w, part, name, out, &is_inner);
}

static rn_status_t check_output(rn_graph_t* graph, rn_edge_t edge) {
  if (edge.node->graph != graph) {
    return rn_invalid_argument("Requested return tensor '%s:%d' not found in graph def",
                               edge.node->name.data, edge.index);
  }
  if (edge.index < 0 || edge.index >= edge.node->output_count) {
    return rn_invalid_argument("Invalid return output %d of node '%s', which has %d output(s)",
                               edge.index, edge.node->name.data, edge.node->output_count);
  }
  return RN_OK;
}

static rn_status_t check_outputs(rn_loop_graphs_t* loop, rn_edge_t cond) {
  RN_RETURN_IF_ERROR(check_output(loop->cond, cond));
  rn_dtype_t dtype = cond.node->outputs[cond.index].dtype;
  if (rn_dtype_base(dtype) != RN_BOOL) {
    return rn_invalid_argument(
        "BuildWhileLoop: 'cond' argument must return a boolean output, got %s",
        rn_dtype_name(dtype));
  }
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(check_output(loop->body, rn_loop_body_outputs(loop)[i]));
  }
  return RN_OK;
}

// Two loops with the same frame name would share frames.
static rn_status_t check_frame(rn_graph_t* graph, rn_str_t frame) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&graph->mutex);
  for (size_t i = 0; rn_ok(status) && i < graph->nodes.count; ++i) {
    const rn_node_t* node = graph->nodes.items[i];
    if (node->op->role != RN_ROLE_ENTER) continue;
    const rn_attr_value_t* name = rn_node_attr(node, RN_STR("frame_name"));
    if (name && rn_str_eq(name->s, frame)) {
      status = rn_invalid_argument("WhileContext with frame name '%s' already exists", frame.data);
    }
  }
  rn_mutex_unlock(&graph->mutex);
  return status;
}

// Adds the functions that the nodes of both parts may call.
static rn_status_t add_library(while_loop_writer_t* w, const rn_pb_GraphDef_t* cond,
                               const rn_pb_GraphDef_t* body) {
  const rn_pb_GraphDef_t* parts[] = {cond, body};
  rn_pb_FunctionDefLibrary_t* all = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &all));
  for (int i = 0; i < 2; ++i) {
    const rn_pb_FunctionDefLibrary_t* own = parts[i]->library;
    if (!own || own->function.count == 0) continue;
    rn_pb_FunctionDef_t* functions = NULL;
    size_t count = (size_t)all->function.count + own->function.count;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count, &functions));
    if (all->function.count) {
      memcpy(functions, all->function.items, all->function.count * sizeof *functions);
    }
    memcpy(functions + all->function.count, own->function.items,
           own->function.count * sizeof *functions);
    all->function.items = functions;
    all->function.count = (uint32_t)count;
    w->def.library = all;
  }
  return RN_OK;
}

static rn_status_t write_loop(while_loop_writer_t* w, rn_edge_t cond_output) {
  rn_loop_graphs_t* loop = w->loop;
  while_loop_part_t cond = {loop->cond, "cond", rn_loop_cond_inputs(loop), "Merge", ""};
  while_loop_part_t body = {loop->body, "body", rn_loop_body_inputs(loop), "Switch", ":1"};
  rn_pb_GraphDef_t *cond_def = NULL, *body_def = NULL;
  RN_RETURN_IF_ERROR(decode_part(w, &cond, &cond_def));
  RN_RETURN_IF_ERROR(decode_part(w, &body, &body_def));
  RN_RETURN_IF_ERROR(add_library(w, cond_def, body_def));
  size_t nodes = (size_t)cond_def->node.count + body_def->node.count + 5 * (size_t)loop->count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, nodes, &w->def.node.items));
  rn_str_t none = {0}, a, b;
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(rn_arena_printf(&w->arena, &a, "parent:%d", i));
    RN_RETURN_IF_ERROR(add_node(w, "Enter", i, a, none));
  }
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(numbered(w, &a, "Enter", i, ""));
    RN_RETURN_IF_ERROR(numbered(w, &b, "NextIteration", i, ""));
    RN_RETURN_IF_ERROR(add_node(w, "Merge", i, a, b));
  }
  RN_RETURN_IF_ERROR(add_part(w, &cond, cond_def));
  RN_RETURN_IF_ERROR(map_output(w, &cond, cond_output, &a));
  RN_RETURN_IF_ERROR(add_node(w, "LoopCond", 0, a, none));
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(numbered(w, &a, "Merge", i, ""));
    RN_RETURN_IF_ERROR(add_node(w, "Switch", i, a, RN_STR("LoopCond")));
  }
  RN_RETURN_IF_ERROR(add_part(w, &body, body_def));
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(map_output(w, &body, rn_loop_body_outputs(loop)[i], &a));
    RN_RETURN_IF_ERROR(add_node(w, "NextIteration", i, a, none));
  }
  for (int i = 0; i < loop->count; ++i) {
    RN_RETURN_IF_ERROR(numbered(w, &a, "Switch", i, ""));
    RN_RETURN_IF_ERROR(add_node(w, "Exit", i, a, none));
  }
  rn_pb_VersionDef_t* versions = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&w->arena, &versions));
  versions->producer = RN_GRAPH_PRODUCER;
  w->def.versions = versions;
  return RN_OK;
}

static rn_status_t import_loop(while_loop_writer_t* w, rn_edge_t* outputs) {
  rn_loop_graphs_t* loop = w->loop;
  rn_tensor_id_t *from = NULL, *exits = NULL;
  size_t count = (size_t)loop->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count, &from));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&w->arena, count, &exits));
  for (int i = 0; i < loop->count; ++i) {
    from[i] = (rn_tensor_id_t){RN_STR("parent"), i};
    RN_RETURN_IF_ERROR(numbered(w, &exits[i].name, "Exit", i, ""));
  }
  rn_import_options_t options = {
      .prefix = w->frame,
      .uniquify_prefix = true,
      .map_from = from,
      .map_to = rn_loop_parent_inputs(loop),
      .map_count = loop->count,
      .return_outputs = exits,
      .return_output_count = loop->count,
  };
  const rn_pb_encode_options_t encode_options = {.sort_maps = true};
  rn_strbuf_t bytes;
  rn_import_results_t results = {0};
  rn_strbuf_init(&bytes, loop->allocator);
  rn_status_t status = RN_PB_ENCODE(GraphDef, &w->def, &encode_options, &bytes);
  if (rn_ok(status)) {
    status = rn_graph_import(loop->parent, rn_strbuf_view(&bytes), &options, &results);
  }
  for (int i = 0; rn_ok(status) && i < loop->count; ++i) {
    outputs[i] = results.return_outputs[i];
  }
  rn_import_results_clear(&results);
  rn_strbuf_clear(&bytes);
  return status;
}

rn_status_t rn_loop_graphs_finish(rn_loop_graphs_t* loop, rn_str_t name, rn_edge_t cond_output,
                                  rn_edge_t* outputs) {
  RN_RETURN_IF_ERROR(check_outputs(loop, cond_output));
  RN_RETURN_IF_ERROR(check_frame(loop->parent, name));
  while_loop_writer_t w = {.loop = loop, .frame = name};
  rn_arena_init(&w.arena, loop->allocator);
  rn_status_t status = write_loop(&w, cond_output);
  if (rn_ok(status)) status = import_loop(&w, outputs);
  rn_arena_clear(&w.arena);
  return status;
}
