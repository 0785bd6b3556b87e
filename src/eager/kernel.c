// Makes a kernel: determines the attributes (set by the client, inferred from inputs, defaults),
// builds the node, and finds what runs it.
#include "device/part.h"
#include "eager/internal.h"
#include "graph/library.h"
#include "session/functions.h"

void rn_eager_kernel_retain(rn_eager_kernel_t* kernel) {
  atomic_fetch_add_explicit(&kernel->refs, 1, memory_order_relaxed);
}

void rn_eager_kernel_release(rn_eager_kernel_t* kernel) {
  if (!kernel || atomic_fetch_sub_explicit(&kernel->refs, 1, memory_order_acq_rel) != 1) return;
  rn_kernel_destroy(kernel->kernel);
  if (kernel->instance) rn_function_forget(kernel->functions, kernel->instance);
  if (kernel->wrapper.size)
    rn_status_free(rn_graph_remove_function(kernel->library, kernel->wrapper));
  rn_graph_release(kernel->graph);
  for (int i = 0; kernel->given && i < kernel->def->attr_count; ++i)
    if (kernel->given[i].kind != RN_EAGER_UNSET) rn_attr_value_clear(&kernel->given[i]);
  for (int32_t i = 0; i < kernel->extra_count; ++i) rn_attr_value_clear(&kernel->extras[i].value);
  rn_arena_clear(&kernel->arena);
  RN_FREE(kernel->allocator, kernel);
}

// Copies the key of the kernel.
static rn_status_t copy_key(const rn_eager_op_t* op, rn_eager_kernel_t* kernel) {
  rn_arena_t* arena = &kernel->arena;
  size_t inputs = (size_t)op->input_count, attrs = (size_t)op->def->attr_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &kernel->input_types));
  for (size_t i = 0; i < inputs; ++i) kernel->input_types[i] = op->inputs[i]->dtype;
  if (op->knows_lengths) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->def->input_count + 1, &kernel->lengths));
    memcpy(kernel->lengths, op->lengths, (size_t)op->arg_count * sizeof *op->lengths);
  }
  if (op->eager->has_far && !rn_eager_has_kernel(op->def)) {
    kernel->is_anywhere = op->device_name.size == 0;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs + 1, &kernel->input_devices));
    for (size_t i = 0; i < inputs; ++i)
      kernel->input_devices[i] = rn_eager_input_device(op, (int32_t)i);
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, attrs, &kernel->given));
  for (size_t i = 0; i < attrs; ++i) kernel->given[i].kind = RN_EAGER_UNSET;
  for (size_t i = 0; i < attrs; ++i)
    if (op->attrs[i].kind != RN_EAGER_UNSET)
      RN_RETURN_IF_ERROR(rn_attr_value_copy(arena, &op->attrs[i], &kernel->given[i]));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, op->extras.count, &kernel->extras));
  for (size_t i = 0; i < op->extras.count; ++i) {
    rn_attr_t* extra = &kernel->extras[i];
    RN_RETURN_IF_ERROR(rn_arena_str(arena, op->extras.items[i].name, &extra->name));
    RN_RETURN_IF_ERROR(rn_attr_value_copy(arena, &op->extras.items[i].value, &extra->value));
    kernel->extra_count++;
  }
  return RN_OK;
}

static void settle(rn_attr_value_t* slot, rn_attr_value_t value) {
  if (slot->kind == RN_EAGER_UNSET) *slot = value;
}

// Infers attributes from the inputs of one argument.
static rn_status_t infer_argument(rn_arena_t* arena, const rn_arg_def_t* arg,
                                  const rn_dtype_t* types, int32_t count, rn_attr_value_t* attrs) {
  if (arg->number_attr >= 0)
    settle(&attrs[arg->number_attr], (rn_attr_value_t){.kind = RN_ATTR_INT, .i = count});
  if (arg->type_attr >= 0 && count > 0)
    settle(&attrs[arg->type_attr], (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = types[0]});
  if (arg->type_list_attr >= 0) {
    rn_dtype_t* list = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &list));
    for (int32_t i = 0; i < count; ++i) list[i] = types[i];
    settle(&attrs[arg->type_list_attr],
           (rn_attr_value_t){
               .kind = RN_ATTR_TYPE, .is_list = true, .count = count, .list_type = list});
  }
  return RN_OK;
}

static int missing_of(const rn_arg_def_t* args, int count, const rn_attr_value_t* attrs) {
  for (int i = 0; i < count; ++i) {
    const int16_t named[] = {args[i].number_attr, args[i].type_attr, args[i].type_list_attr};
    for (int k = 0; k < 3; ++k)
      if (named[k] >= 0 && attrs[named[k]].kind == RN_EAGER_UNSET) return named[k];
  }
  return -1;
}

// The missing attribute that stock reports: types and lengths come first. -1 if none is missing.
static int first_missing(const rn_op_def_t* def, const rn_attr_value_t* attrs) {
  int missing = missing_of(def->inputs, def->input_count, attrs);
  if (missing < 0) missing = missing_of(def->outputs, def->output_count, attrs);
  for (int i = 0; missing < 0 && i < def->attr_count; ++i)
    if (attrs[i].kind == RN_EAGER_UNSET) missing = i;
  return missing;
}

// Attributes set by the client take precedence over inferred ones, and those over defaults. As in
// stock, nothing is inferred once a list was given as single tensors.
static rn_status_t settle_attrs(const rn_eager_op_t* op, rn_arena_t* arena,
                                rn_attr_value_t* attrs) {
  const rn_op_def_t* def = op->def;
  for (int i = 0; i < def->attr_count; ++i) attrs[i] = op->attrs[i];
  int32_t next = 0;
  rn_dtype_t* types = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->input_count, &types));
  for (int32_t i = 0; i < op->input_count; ++i) types[i] = op->inputs[i]->dtype;
  for (int32_t i = 0; op->knows_lengths && i < op->arg_count; ++i) {
    int32_t count = op->lengths[i] == RN_ARG_SINGLE ? 1 : op->lengths[i];
    RN_RETURN_IF_ERROR(infer_argument(arena, &def->inputs[i], types + next, count, attrs));
    next += count;
  }
  for (int i = 0; i < def->attr_count; ++i)
    if (attrs[i].kind == RN_EAGER_UNSET && def->attrs[i].has_default)
      attrs[i] = def->attrs[i].default_value;
  int missing = first_missing(def, attrs);
  if (missing >= 0)
    return rn_not_found("No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]",
                        def->attrs[missing].name, def->name);
  return RN_OK;
}

// The number of tensors of an argument; -1 if its attribute is invalid, which building the node
// reports.
static int64_t wanted_length(const rn_arg_def_t* arg, const rn_attr_value_t* attrs) {
  int attr = arg->type_list_attr >= 0 ? arg->type_list_attr : arg->number_attr;
  if (attr < 0) return 1;
  const rn_attr_value_t* value = &attrs[attr];
  if (arg->type_list_attr >= 0)
    return value->is_list && (value->kind == RN_ATTR_TYPE || !value->count) ? value->count : -1;
  return value->kind == RN_ATTR_INT && !value->is_list ? value->i : -1;
}

static rn_status_t check_inputs(const rn_eager_op_t* op, const rn_attr_value_t* attrs) {
  const rn_op_def_t* def = op->def;
  int64_t total = 0;
  for (int a = 0; a < def->input_count; ++a) {
    int64_t length = wanted_length(&def->inputs[a], attrs);
    if (length < 0) return RN_OK;
    total += length;
  }
  if (total != op->input_count)
    return rn_invalid_argument("expected %lld inputs, got %d", (long long)total, op->input_count);
  int32_t flat = 0;
  for (int a = 0; a < def->input_count; ++a) {
    int64_t length = wanted_length(&def->inputs[a], attrs);
    for (int32_t i = 0; i < length; ++i, ++flat) {
      rn_dtype_t wanted = rn_arg_type(&def->inputs[a], attrs, i);
      rn_dtype_t found = op->inputs[flat]->dtype;
      // A handle holds a value, never a reference.
      bool is_ref = def->inputs[a].is_ref;
      if ((is_ref || wanted != RN_INVALID) && (is_ref || rn_dtype_base(wanted) != found))
        return rn_invalid_argument(
            "cannot compute %s as input #%d(zero-based) was expected to be a %s%s tensor but is a "
            "%s tensor",
            def->name, flat, rn_dtype_name(rn_dtype_base(wanted)), is_ref ? "_ref" : "",
            rn_dtype_name(found));
    }
  }
  return RN_OK;
}

// Adds the node. A few shape functions refuse inputs of unknown shape (SpaceToBatchND needs the
// number of block sizes); those get the current shapes. The kernel serves other shapes too, so the
// inferred output shapes are dropped.
static rn_status_t add_node(const rn_eager_op_t* op, const rn_node_spec_t* spec,
                            rn_eager_kernel_t* kernel) {
  rn_status_t refusal = rn_graph_add(kernel->graph, spec, &kernel->node);
  if (rn_ok(refusal) || rn_status_code(refusal) != RN_CODE_INVALID_ARGUMENT) return refusal;
  bool is_told = false;
  for (int32_t i = 0; i < op->input_count; ++i) {
    const rn_tensor_t* value = NULL;
    rn_status_t status = rn_eager_handle_tensor(op->inputs[i], &value);
    if (rn_ok(status) && value)
      status = rn_graph_set_shape(kernel->graph, spec->inputs[i], rn_tensor_shape(value));
    is_told |= rn_ok(status) && value;
    rn_status_free(status);
  }
  if (!is_told) return refusal;
  rn_status_free(refusal);
  RN_RETURN_IF_ERROR(rn_graph_add(kernel->graph, spec, &kernel->node));
  for (int32_t i = 0; i < kernel->node->output_count; ++i)
    kernel->node->outputs[i].shape = RN_SHAPE_UNKNOWN;
  return RN_OK;
}

// Builds one placeholder per input, and the node that reads them.
static rn_status_t build_node(const rn_eager_op_t* op, const rn_attr_value_t* attrs,
                              rn_eager_kernel_t* kernel) {
  const rn_op_def_t* def = op->def;
  rn_arena_t* arena = &kernel->arena;
  rn_edge_t* inputs = NULL;
  rn_attr_t* named = NULL;
  size_t attr_count = (size_t)def->attr_count + op->extras.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)op->input_count, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, attr_count, &named));
  for (int i = 0; i < def->attr_count; ++i)
    named[i] = (rn_attr_t){rn_str(def->attrs[i].name), attrs[i]};
  for (size_t i = 0; i < op->extras.count; ++i)
    named[(size_t)def->attr_count + i] = kernel->extras[i];
  for (int32_t i = 0; i < op->input_count; ++i) {
    rn_attr_t type = {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = op->inputs[i]->dtype}};
    rn_node_spec_t spec = {.op = RN_STR("Placeholder"), .attrs = &type, .attr_count = 1};
    RN_RETURN_IF_ERROR(rn_arena_printf(arena, &spec.name, "input_%d", i));
    RN_RETURN_IF_ERROR(rn_graph_add(kernel->graph, &spec, &inputs[i].node));
  }
  rn_node_spec_t spec = {.op = rn_str(def->name),
                         .name = rn_str(def->name),
                         .inputs = inputs,
                         .input_count = op->input_count,
                         .attrs = named,
                         .attr_count = (int32_t)attr_count,
                         .arg_lengths = kernel->lengths,
                         .arg_count = op->arg_count};
  return add_node(op, &spec, kernel);
}

static rn_status_t describe_outputs(rn_eager_kernel_t* kernel) {
  rn_dtype_t* types = NULL;
  kernel->output_count = kernel->node->output_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, (size_t)kernel->output_count, &types));
  for (int32_t i = 0; i < kernel->output_count; ++i)
    types[i] = rn_dtype_base(kernel->node->outputs[i].dtype);
  kernel->output_types = types;
  return RN_OK;
}

bool rn_eager_has_kernel(const rn_op_def_t* def) {
  switch (def->role) {
    case RN_ROLE_PLAIN:
    case RN_ROLE_PLACEHOLDER:
    case RN_ROLE_IDENTITY:
    case RN_ROLE_VARIABLE:
    case RN_ROLE_SEND:
    case RN_ROLE_RECV:
      return true;
    default:
      return false;
  }
}

static rn_status_t make_kernel(rn_eager_t* eager, const rn_kernel_def_t* def,
                               rn_eager_kernel_t* kernel) {
  rn_arena_t* arena = &kernel->arena;
  rn_node_t* node = kernel->node;
  size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
  rn_shape_t* shapes = NULL;
  rn_dtype_t* types = NULL;  // including reference types, which handles do not have
  rn_kernel_source_t* sources = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs + outputs, &shapes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs, &types));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs, &sources));
  for (size_t i = 0; i < inputs; ++i) {
    shapes[i] = RN_SHAPE_UNKNOWN;
    sources[i] = (rn_kernel_source_t){node->inputs[i].node->name, 0};
  }
  for (size_t i = 0; i < outputs; ++i) {
    shapes[inputs + i] = node->outputs[i].shape;
    types[i] = node->outputs[i].dtype;
  }
  rn_device_t* device = kernel->device;
  rn_kernel_init_t init = {.op = node->op,
                           .node = node->name,
                           .attrs = node->attrs,
                           .extra_count = node->extra_count,
                           .extras = node->extras,
                           .input_count = node->input_count,
                           .input_types = kernel->input_types,
                           .output_count = node->output_count,
                           .output_types = types,
                           .input_shapes = shapes,
                           .output_shapes = shapes + inputs,
                           .sources = sources,
                           .producer = RN_GRAPH_PRODUCER,
                           .device = device,
                           .resources = device->resources,
                           .device_name = device->name,
                           .allocator = eager->allocator,
                           .device_memory = device->kernel_memory,
                           .host_memory = rn_device_host_memory(kernel->device, eager->cpu),
                           .is_host = device->is_host,
                           .env = eager->step.env,
                           .functions = kernel->functions};
  return rn_kernel_create(def, &init, &kernel->kernel);
}

// Instantiates a function for the devices of its resources and the memory of its arguments. Without
// a device of its own, its nodes are placed as in a session.
static rn_status_t prepare(rn_eager_kernel_t* kernel, const rn_func_attr_t* call) {
  rn_str_t* resources = NULL;
  rn_device_t** memory = NULL;
  size_t count = (size_t)kernel->input_count;
  if (!kernel->input_devices)
    return rn_function_prepare(kernel->functions, call, kernel->device->name, &kernel->instance);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, count + 1, &resources));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, count + 1, &memory));
  for (size_t i = 0; i < count; ++i) {
    if (kernel->input_types[i] != RN_RESOURCE)
      memory[i] = kernel->input_devices[i];
    else if (kernel->input_devices[i])
      resources[i] = kernel->input_devices[i]->name;
  }
  rn_args_place_t args = {resources, memory};
  rn_str_t device = kernel->is_anywhere ? RN_STR("") : kernel->device->name;
  return rn_functions_prepare(kernel->functions, call, device, &args, &kernel->instance,
                              &kernel->output_places);
}

// Wraps the one node in a function, which the session plans like any other.
static rn_status_t make_wrapper(rn_eager_t* eager, rn_eager_kernel_t* kernel) {
  rn_arena_t* arena = &kernel->arena;
  rn_edge_t* outputs = NULL;
  rn_str_t name;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)kernel->output_count, &outputs));
  for (int32_t i = 0; i < kernel->output_count; ++i) outputs[i] = (rn_edge_t){kernel->node, i};
  RN_RETURN_IF_ERROR(
      rn_arena_printf(arena, &name, "__wrapped__%s_%p", kernel->def->name, (void*)kernel));
  rn_function_spec_t spec = {.graph = kernel->graph,
                             .name = name,
                             .nodes = &kernel->node,
                             .node_count = 1,
                             .inputs = kernel->node->inputs,
                             .input_count = kernel->input_count,
                             .outputs = outputs,
                             .output_count = kernel->output_count};
  // A node without results must still run.
  if (kernel->output_count == 0) {
    spec.controls = &kernel->node;
    spec.control_count = 1;
  }
  rn_function_t* function = NULL;
  RN_RETURN_IF_ERROR(rn_function_create(&spec, &function));
  rn_status_t status = rn_graph_add_function(eager->library, function, NULL);
  rn_function_release(function);
  RN_RETURN_IF_ERROR(status);
  kernel->wrapper = name;
  rn_func_attr_t call = {.name = name};
  return prepare(kernel, &call);
}

static rn_status_t make_instance(rn_eager_kernel_t* kernel) {
  rn_arena_t* arena = &kernel->arena;
  const rn_node_t* node = kernel->node;
  rn_attr_t* attrs = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)node->op->attr_count, &attrs));
  for (int i = 0; i < node->op->attr_count; ++i)
    attrs[i] = (rn_attr_t){rn_str(node->op->attrs[i].name), node->attrs[i]};
  rn_func_attr_t call = {
      .name = rn_str(node->op->name), .attr_count = node->op->attr_count, .attrs = attrs};
  return prepare(kernel, &call);
}

static rn_status_t no_kernel(const rn_eager_kernel_t* kernel) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, kernel->allocator);
  rn_strbuf_printf(&text, "Could not find device for node: ");
  rn_strbuf_printf(&text, "{{node %s}} = %s[", kernel->def->name, kernel->def->name);
  for (int i = 0; i < kernel->def->attr_count; ++i) {
    rn_strbuf_printf(&text, "%s%s=", i ? ", " : "", kernel->def->attrs[i].name);
    rn_attr_value_print(&text, &kernel->node->attrs[i]);
  }
  rn_strbuf_printf(&text, "]\nNo kernel is registered for device %s", kernel->device->type);
  return rn_status_from_buf(RN_CODE_NOT_FOUND, &text);
}

// Where inputs and outputs are on a device with its own memory. A constant goes where a kernel's
// result would be.
static rn_status_t find_memory(rn_eager_kernel_t* kernel) {
  bool* inputs = NULL;
  rn_result_place_t* outputs = NULL;
  const rn_kernel_t* own = kernel->kernel;
  if (kernel->device->is_host || kernel->instance) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, (size_t)kernel->input_count, &inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, (size_t)kernel->output_count, &outputs));
  for (int32_t i = 0; i < kernel->input_count; ++i) inputs[i] = own && !own->input_is_host[i];
  for (int32_t i = 0; i < kernel->output_count; ++i) {
    rn_dtype_t type = kernel->output_types[i];
    bool is_far = own ? !own->output_is_host[i] : rn_dtype_is_plain(type) && type != RN_INT32;
    outputs[i] = (rn_result_place_t){kernel->device, is_far ? kernel->device : NULL};
  }
  kernel->inputs_far = inputs;
  kernel->output_places = outputs;
  return RN_OK;
}

// Whether a device other than a CPU can run the op itself. A constant needs no kernel.
static bool is_for_device(const rn_eager_kernel_t* kernel) {
  if (kernel->constant) return rn_dtype_is_plain(kernel->constant->dtype);
  if (!rn_eager_has_kernel(kernel->def)) return true;
  const rn_kernel_def_t* row =
      rn_kernel_find(kernel->def, kernel->node->attrs, NULL, kernel->asked->type);
  return row && row->priority > RN_PRIORITY_ON_REQUEST;
}

static rn_status_t find_runner(rn_eager_t* eager, rn_eager_kernel_t* kernel) {
  const rn_op_def_t* def = kernel->def;
  kernel->functions = rn_session_functions(eager->session);
  kernel->library = eager->library;
  if (def->role == RN_ROLE_NO_OP && kernel->output_count == 0) return RN_OK;
  if (def->role != RN_ROLE_FUNCTION) kernel->constant = rn_node_constant(kernel->node);
  if (!kernel->asked->is_host && !is_for_device(kernel)) kernel->device = eager->cpu;
  if (kernel->constant) return RN_OK;
  const rn_kernel_def_t* row = NULL;
  if (rn_eager_has_kernel(def)) {
    row = rn_kernel_find(def, kernel->node->attrs, NULL, kernel->device->type);
    return row ? make_kernel(eager, row, kernel) : no_kernel(kernel);
  }
  return def->role == RN_ROLE_FUNCTION ? make_instance(kernel) : make_wrapper(eager, kernel);
}

static rn_status_t fill(const rn_eager_op_t* op, rn_eager_kernel_t* kernel) {
  rn_eager_t* eager = op->eager;
  rn_attr_value_t* attrs = NULL;
  RN_RETURN_IF_ERROR(copy_key(op, kernel));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&kernel->arena, (size_t)op->def->attr_count, &attrs));
  RN_RETURN_IF_ERROR(settle_attrs(op, &kernel->arena, attrs));
  RN_RETURN_IF_ERROR(check_inputs(op, attrs));
  RN_RETURN_IF_ERROR(
      rn_graph_create_body(eager->allocator, eager->library->library, &kernel->graph));
  kernel->graph->allows_shapeless = true;
  RN_RETURN_IF_ERROR(build_node(op, attrs, kernel));
  RN_RETURN_IF_ERROR(describe_outputs(kernel));
  RN_RETURN_IF_ERROR(find_runner(eager, kernel));
  return find_memory(kernel);
}

rn_status_t rn_eager_kernel_create(const rn_eager_op_t* op, rn_device_t* device, uint64_t hash,
                                   rn_eager_kernel_t** out) {
  *out = NULL;
  rn_eager_kernel_t* kernel = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(op->eager->allocator, &kernel));
  kernel->refs = 1;
  kernel->allocator = op->eager->allocator;
  kernel->hash = hash;
  kernel->def = op->def;
  kernel->asked = kernel->device = device;
  kernel->input_count = op->input_count;
  rn_arena_init(&kernel->arena, kernel->allocator);
  rn_status_t status = fill(op, kernel);
  if (!rn_ok(status)) {
    rn_eager_kernel_release(kernel);
    return status;
  }
  *out = kernel;
  return RN_OK;
}
