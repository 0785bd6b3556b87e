// Builds the tree of objects that Python sees in a written model, and their functions: see
// objects.h.
#include "saved_model/objects.h"

#include "function/function.h"

#define NONE (-1)

static rn_status_t add_object(rn_objects_t* o, rn_object_kind_t kind, int32_t item, int32_t* out) {
  *out = (int32_t)o->objects.count;
  return rn_vec_push(&o->objects, o->allocator, (rn_model_object_t){kind, item, NONE, NONE});
}

static int32_t find_child(const rn_objects_t* o, int32_t parent, rn_str_t name) {
  int32_t c = o->objects.items[parent].first_child;
  while (c >= 0 && !rn_str_eq(o->children.items[c].name, name)) c = o->children.items[c].next;
  return c < 0 ? NONE : o->children.items[c].object;
}

static rn_status_t link_child(rn_objects_t* o, int32_t parent, rn_str_t name, int32_t object) {
  int32_t number = (int32_t)o->children.count;
  RN_RETURN_IF_ERROR(
      rn_vec_push(&o->children, o->allocator, (rn_object_child_t){name, object, NONE}));
  rn_model_object_t* above = &o->objects.items[parent];
  if (above->last_child >= 0)
    o->children.items[above->last_child].next = number;
  else
    above->first_child = number;
  above->last_child = number;
  return RN_OK;
}

static rn_status_t add_child(rn_objects_t* o, int32_t parent, rn_str_t name, rn_object_kind_t kind,
                             int32_t item, int32_t* out) {
  RN_RETURN_IF_ERROR(add_object(o, kind, item, out));
  return link_child(o, parent, name, *out);
}

// Appends a path component, escaped as in checkpoints.
static void append_escaped(rn_strbuf_t* path, rn_str_t part) {
  for (size_t i = 0; i < part.size; ++i) {
    char c = part.data[i];
    rn_strbuf_append(path, c == '.' ? RN_STR("..") : c == '/' ? RN_STR(".S") : rn_str_n(&c, 1));
  }
}

// Whether the path |name| is free: it passes only plain objects and ends at no object.
static bool is_free(const rn_objects_t* o, rn_str_t name) {
  int32_t at = 0;
  for (rn_str_t rest = name; at >= 0;) {
    rn_str_t part = rn_str_split(&rest, '/');
    if (!part.size || (at > 0 && o->objects.items[at].kind != RN_OBJECT_PLAIN)) return false;
    at = find_child(o, at, part);
    if (!rest.size) return at < 0 && name.data[name.size - 1] != '/';
  }
  return true;
}

// Puts a variable at the path of its name or, if another object is or will be in the way, directly
// below the root under its full name.
static rn_status_t place_variable(rn_objects_t* o, size_t index, rn_strbuf_t* path) {
  rn_model_variable_t* variable = &o->variables[index];
  rn_str_t rest = variable->resource, part;
  int32_t at = 0, object = 0;
  bool is_tree = is_free(o, rest);
  path->size = 0;
  while (is_tree) {
    part = rn_str_split(&rest, '/');
    append_escaped(path, part);
    if (!rest.size) break;
    rn_strbuf_append(path, RN_STR("/"));
    int32_t next = find_child(o, at, part);
    if (next < 0) RN_RETURN_IF_ERROR(add_child(o, at, part, RN_OBJECT_PLAIN, 0, &next));
    at = next;
  }
  if (!is_tree) {
    part = rest;
    while (find_child(o, 0, part) >= 0)
      RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, &part, "%.*s_", RN_STR_ARGS(part)));
    append_escaped(path, part);
  }
  RN_RETURN_IF_ERROR(add_child(o, at, part, RN_OBJECT_VARIABLE, (int32_t)index, &object));
  o->variable_objects[index] = object;
  rn_strbuf_append(path, RN_STR("/.ATTRIBUTES/VARIABLE_VALUE"));
  RN_RETURN_IF_ERROR(rn_strbuf_status(path));
  return rn_arena_str(o->arena, rn_strbuf_view(path), &variable->name);
}

static rn_status_t add_list(rn_objects_t* o, const char* name, bool all) {
  int32_t list = 0, number = 0;
  if (find_child(o, 0, rn_str(name)) >= 0) return RN_OK;  // a variable's
  RN_RETURN_IF_ERROR(add_child(o, 0, rn_str(name), RN_OBJECT_LIST, 0, &list));
  for (size_t i = 0; i < o->variable_count; ++i) {
    rn_str_t index;
    if (!all && !o->variables[i].is_trainable) continue;
    RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, &index, "%d", number++));
    RN_RETURN_IF_ERROR(link_child(o, list, index, o->variable_objects[i]));
  }
  return RN_OK;
}

static rn_status_t add_variables(rn_objects_t* o) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, o->variable_count, &o->variable_objects));
  rn_strbuf_t path;
  rn_strbuf_init(&path, o->allocator);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < o->variable_count; ++i)
    status = place_variable(o, i, &path);
  rn_strbuf_clear(&path);
  if (rn_ok(status)) status = add_list(o, "variables", true);
  return rn_ok(status) ? add_list(o, "trainable_variables", false) : status;
}

// A part of the graph that will become a function.
typedef struct body_t {
  rn_objects_t* objects;
  bool* is_in;  // per node of the graph
  RN_VEC(rn_node_t*) nodes;
  RN_VEC(rn_edge_t) inputs;  // arguments, then captures
  RN_VEC(int32_t) bound;
} body_t;

static bool is_table(const rn_node_t* node) {
  return node->output_count == 1 && node->outputs[0].dtype == RN_RESOURCE &&
         strstr(node->op->name, "HashTable");
}

static rn_status_t add_table(rn_objects_t* o, rn_edge_t table, int32_t* out) {
  for (size_t i = 0; i < o->tables.count; ++i)
    if (o->tables.items[i].node == table.node) {
      *out = o->table_objects.items[i];
      return RN_OK;
    }
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, &name, "table_%zu", o->tables.count));
  while (find_child(o, 0, name) >= 0)
    RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, &name, "%.*s_", RN_STR_ARGS(name)));
  RN_RETURN_IF_ERROR(add_child(o, 0, name, RN_OBJECT_TABLE, 0, out));
  RN_RETURN_IF_ERROR(rn_vec_push(&o->tables, o->allocator, table));
  return rn_vec_push(&o->table_objects, o->allocator, *out);
}

// The object that represents an edge outside of functions; NONE if the edge is computed inside.
static rn_status_t find_object(rn_objects_t* o, rn_edge_t edge, int32_t* out) {
  *out = NONE;
  for (int i = 0; i < o->def->asset_count; ++i) {
    const rn_node_t* asset = (const rn_node_t*)o->def->assets[i].tensor.oper;
    if (asset && rn_str_eq(asset->name, edge.node->name) &&
        edge.index == o->def->assets[i].tensor.index)
      *out = i + 1;  // Assets come first, after the root.
  }
  if (*out >= 0) return RN_OK;
  if (edge.node == o->made_table) return RN_OK;
  if (is_table(edge.node)) return add_table(o, edge, out);
  if (strcmp(edge.node->op->name, "VarHandleOp") != 0) return RN_OK;
  const rn_attr_value_t* shared = rn_node_attr(edge.node, RN_STR("shared_name"));
  rn_str_t name = shared && shared->s.size ? shared->s : edge.node->name;
  for (size_t i = 0; i < o->variable_count; ++i)
    if (rn_str_eq(o->variables[i].resource, name)) *out = o->variable_objects[i];
  return RN_OK;
}

static rn_status_t reach(body_t* body, rn_node_t* node) {
  if (body->is_in[node->id]) return RN_OK;
  body->is_in[node->id] = true;
  return rn_vec_push(&body->nodes, body->objects->allocator, node);
}

static rn_status_t reach_edge(body_t* body, rn_edge_t edge) {
  rn_objects_t* o = body->objects;
  for (size_t i = 0; i < body->inputs.count; ++i)
    if (body->inputs.items[i].node == edge.node && body->inputs.items[i].index == edge.index)
      return RN_OK;
  int32_t object;
  RN_RETURN_IF_ERROR(find_object(o, edge, &object));
  if (object < 0) return reach(body, edge.node);
  RN_RETURN_IF_ERROR(rn_vec_push(&body->inputs, o->allocator, edge));
  return rn_vec_push(&body->bound, o->allocator, object);
}

// Collects everything that the nodes of |body| read, up to its inputs and to edges that objects
// represent.
static rn_status_t close_body(body_t* body) {
  for (size_t n = 0; n < body->nodes.count; ++n) {
    rn_node_t* node = body->nodes.items[n];
    for (int32_t i = 0; i < node->input_count; ++i)
      RN_RETURN_IF_ERROR(reach_edge(body, node->inputs[i]));
    for (size_t i = 0; i < node->controls.count; ++i)
      if (strcmp(node->controls.items[i]->op->name, "Placeholder") != 0)
        RN_RETURN_IF_ERROR(reach(body, node->controls.items[i]));
  }
  return RN_OK;
}

static void body_clear(body_t* body) {
  rn_allocator_t allocator = body->objects->allocator;
  rn_vec_free(&body->nodes, allocator);
  rn_vec_free(&body->inputs, allocator);
  rn_vec_free(&body->bound, allocator);
}

static rn_status_t add_function(body_t* body, rn_function_spec_t* spec,
                                rn_object_function_t* function) {
  rn_objects_t* o = body->objects;
  for (int32_t i = 0; i < spec->output_count; ++i)
    RN_RETURN_IF_ERROR(reach_edge(body, spec->outputs[i]));
  for (int32_t i = 0; i < spec->control_count; ++i)
    RN_RETURN_IF_ERROR(reach(body, spec->controls[i]));
  RN_RETURN_IF_ERROR(close_body(body));
  spec->graph = o->graph;
  spec->name = function->name;
  spec->nodes = body->nodes.items;
  spec->node_count = (int32_t)body->nodes.count;
  spec->inputs = body->inputs.items;
  spec->input_count = (int32_t)body->inputs.count;
  rn_function_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_function_create(spec, &made));
  rn_status_t status = rn_graph_add_function(o->graph, made, NULL);
  rn_function_release(made);
  for (size_t i = 0; rn_ok(status) && i < body->bound.count; ++i)
    status = rn_vec_push(&function->bound, o->allocator, body->bound.items[i]);
  return status;
}

static rn_status_t name_function(rn_objects_t* o, const char* stem, rn_str_t* out) {
  rn_function_t* taken = NULL;
  size_t number = rn_graph_function_count(o->graph);
  do {
    rn_function_release(taken);
    RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, out, "__inference_%s_%zu", stem, number++));
    taken = rn_graph_get_function(o->graph, *out);
  } while (taken);
  return RN_OK;
}

// Adds the function that computes |spec|'s outputs and runs its controls; returns its number.
static rn_status_t make_function(rn_objects_t* o, const char* stem, rn_function_spec_t* spec,
                                 const rn_edge_t* arguments, size_t argument_count,
                                 const rn_pb_SignatureDef_t* signature, int32_t* out) {
  rn_object_function_t function = {.signature = signature};
  if (!signature) function.result_dtype = rn_dtype_base(spec->outputs[0].node->outputs[0].dtype);
  RN_RETURN_IF_ERROR(name_function(o, stem, &function.name));
  body_t body = {.objects = o};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, o->graph->nodes.count, &body.is_in));
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < argument_count; ++i)
    status = rn_vec_push(&body.inputs, o->allocator, arguments[i]);
  if (rn_ok(status)) status = add_function(&body, spec, &function);
  body_clear(&body);
  *out = (int32_t)o->functions.count;
  if (rn_ok(status)) status = rn_vec_push(&o->functions, o->allocator, function);
  if (!rn_ok(status)) rn_vec_free(&function.bound, o->allocator);
  return status;
}

// The edge of the copied graph for the entry |name| of the client's list.
static rn_status_t find_edge(rn_objects_t* o, rn_str_t name, const char* const* names,
                             const TF_Output* edges, int count, rn_edge_t* out) {
  for (int i = 0; i < count; ++i) {
    if (!rn_str_is(name, names[i])) continue;
    *out = (rn_edge_t){rn_graph_find(o->graph, ((const rn_node_t*)edges[i].oper)->name),
                       edges[i].index};
    if (out->node) return RN_OK;
  }
  return rn_invalid_argument("A signature names a tensor that is none: '%.*s'", RN_STR_ARGS(name));
}

static rn_status_t add_signature(rn_objects_t* o, const rn_signature_def_t* def,
                                 const rn_pb_SignatureDef_t* signature, int32_t map) {
  rn_edge_t *inputs = NULL, *outputs = NULL;
  uint32_t input_count = signature->inputs.count, output_count = signature->outputs.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, (size_t)input_count, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, (size_t)output_count, &outputs));
  for (uint32_t i = 0; i < input_count; ++i)
    RN_RETURN_IF_ERROR(find_edge(o, signature->inputs.items[i].key, def->input_names, def->inputs,
                                 def->input_count, &inputs[i]));
  for (uint32_t i = 0; i < output_count; ++i)
    RN_RETURN_IF_ERROR(find_edge(o, signature->outputs.items[i].key, def->output_names,
                                 def->outputs, def->output_count, &outputs[i]));
  rn_function_spec_t spec = {.outputs = outputs, .output_count = (int32_t)output_count};
  int32_t function = 0, object = 0;
  RN_RETURN_IF_ERROR(
      make_function(o, "signature_wrapper", &spec, inputs, input_count, signature, &function));
  return add_child(o, map, rn_str(def->name), RN_OBJECT_SIGNATURE, function, &object);
}

static rn_status_t add_method(rn_objects_t* o, int32_t table, const char* name, const char* stem,
                              rn_function_spec_t* spec) {
  int32_t function = 0, object = 0;
  RN_RETURN_IF_ERROR(make_function(o, stem, spec, NULL, 0, NULL, &function));
  return add_child(o, table, rn_str(name), RN_OBJECT_FUNCTION, function, &object);
}

// Marks, by number, the nodes that the model's initialization runs.
static rn_status_t mark_init(rn_objects_t* o, bool** out) {
  body_t body = {.objects = o};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, o->graph->nodes.count, &body.is_in));
  *out = body.is_in;
  const rn_node_t* asked = (const rn_node_t*)o->def->init;
  rn_node_t* init = asked ? rn_graph_find(o->graph, asked->name) : NULL;
  rn_status_t status = init ? reach(&body, init) : RN_OK;
  for (size_t n = 0; rn_ok(status) && n < body.nodes.count; ++n) {
    rn_node_t* node = body.nodes.items[n];
    for (int32_t i = 0; rn_ok(status) && i < node->input_count; ++i)
      status = reach(&body, node->inputs[i].node);
    for (size_t i = 0; rn_ok(status) && i < node->controls.count; ++i)
      status = reach(&body, node->controls.items[i]);
  }
  body_clear(&body);
  return status;
}

// Adds the functions that create the table, fill it (the part of the model's initialization that
// changes it), and destroy it (an empty function).
static rn_status_t add_methods(rn_objects_t* o, size_t index, rn_edge_t one, const bool* is_init) {
  rn_edge_t handle = o->tables.items[index];
  int32_t table = o->table_objects.items[index];
  rn_node_t** fills = NULL;
  int32_t count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(o->arena, handle.node->outputs[0].consumers.count, &fills));
  for (size_t i = 0; i < handle.node->outputs[0].consumers.count; ++i) {
    rn_node_t* node = handle.node->outputs[0].consumers.items[i].node;
    if (is_init[node->id]) fills[count++] = node;
  }
  rn_function_spec_t fill = {
      .outputs = &one, .output_count = 1, .controls = fills, .control_count = count};
  rn_function_spec_t nothing = {.outputs = &one, .output_count = 1};
  RN_RETURN_IF_ERROR(add_method(o, table, "_initialize", "_initializer", &fill));
  RN_RETURN_IF_ERROR(add_method(o, table, "_destroy_resource", "_destroyer", &nothing));
  // Only the creator function contains the table's node.
  rn_function_spec_t make = {.outputs = &handle, .output_count = 1};
  o->made_table = handle.node;
  rn_status_t status = add_method(o, table, "_create_resource", "_creator", &make);
  o->made_table = NULL;
  return status;
}

static rn_status_t add_tables(rn_objects_t* o) {
  if (!o->tables.count) return RN_OK;
  int32_t number = 1;
  rn_tensor_t value = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(o->allocator, RN_INT32, RN_SHAPE_SCALAR, &value));
  memcpy(value.data, &number, sizeof number);
  rn_attr_t attrs[2] = {{RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_INT32}},
                        {RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = &value}}};
  rn_node_spec_t spec = {
      .op = RN_STR("Const"), .name = RN_STR("table_methods/done"), .attrs = attrs, .attr_count = 2};
  rn_edge_t one = {0};
  rn_status_t status = rn_graph_add_unique(o->graph, &spec, &one.node);
  rn_tensor_clear(&value);
  bool* is_init = NULL;
  if (rn_ok(status)) status = mark_init(o, &is_init);
  for (size_t i = 0; rn_ok(status) && i < o->tables.count; ++i)
    status = add_methods(o, i, one, is_init);
  return status;
}

rn_status_t rn_objects_build(rn_objects_t* o, bool* out_fits) {
  int32_t root = 0, map = 0;
  *out_fits = true;
  for (size_t i = 0; i < o->variable_count; ++i)
    if (o->variables[i].node->outputs[0].dtype != RN_RESOURCE) *out_fits = false;
  if (!*out_fits) return RN_OK;
  RN_RETURN_IF_ERROR(add_object(o, RN_OBJECT_PLAIN, 0, &root));
  for (int i = 0; i < o->def->asset_count; ++i) {
    rn_str_t name;
    int32_t asset = 0;
    RN_RETURN_IF_ERROR(rn_arena_printf(o->arena, &name, "_asset_%d", i));
    RN_RETURN_IF_ERROR(add_child(o, root, name, RN_OBJECT_ASSET, i, &asset));
  }
  RN_RETURN_IF_ERROR(add_child(o, root, RN_STR("signatures"), RN_OBJECT_SIGNATURES, 0, &map));
  RN_RETURN_IF_ERROR(add_variables(o));
  for (int i = 0; i < o->def->signature_count; ++i)
    RN_RETURN_IF_ERROR(
        add_signature(o, &o->def->signatures[i], o->meta->signature_def.items[i].value, map));
  return add_tables(o);
}

void rn_objects_clear(rn_objects_t* o) {
  for (size_t i = 0; i < o->functions.count; ++i)
    rn_vec_free(&o->functions.items[i].bound, o->allocator);
  rn_vec_free(&o->functions, o->allocator);
  rn_vec_free(&o->objects, o->allocator);
  rn_vec_free(&o->children, o->allocator);
  rn_vec_free(&o->tables, o->allocator);
  rn_vec_free(&o->table_objects, o->allocator);
}
