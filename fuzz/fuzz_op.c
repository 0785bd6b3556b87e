// Runs one op with random inputs and attributes. The first four bytes select the op, by the hash of
// its name, so that inputs keep their meaning when ops are added; the rest chooses types,
// attributes, shapes and values, whether an input is a constant or fed, and whether gradients are
// added. Kernels must end with a result or a status, free all memory, and compute the same bits
// with and without the planner's passes.
#include <math.h>

#include "fuzz/util.h"
#include "grad/grad.h"
#include "graph/graph.h"
#include "tensor/tstring.h"

#define MAX_INPUTS 12
#define MAX_FETCHES 24
#define MAX_ATTRS 32
#define MAX_ELEMENTS 2048
#define MAX_BYTES ((int64_t)64 << 20)
#define MAX_MS 10

typedef struct build_t {
  fuzz_bytes_t bytes;
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_graph_t* graph;
  rn_scope_t* scope;
  const rn_op_def_t* op;
  rn_attr_value_t attrs[MAX_ATTRS];  // as chosen; unset ones are the defaults
  int rank;                          // of the last shape, because inputs often match
  int64_t dims[8];
  rn_edge_t inputs[MAX_INPUTS];
  int input_count;
  rn_edge_t feeds[MAX_INPUTS];
  rn_tensor_t values[MAX_INPUTS];
  int feed_count;
  rn_node_t* setup[MAX_INPUTS];  // run first, to fill variables and queues
  int setup_count;
  rn_edge_t fetches[MAX_FETCHES];
  int fetch_count;
  rn_node_t* node;
} build_t;

static const rn_op_def_t* pick_op(fuzz_bytes_t* bytes) {
  uint32_t wanted = fuzz_u32(bytes), nearest = UINT32_MAX;
  const rn_op_def_t* found = NULL;
  for (int i = 0; i < rn_builtin_op_count; ++i) {
    uint32_t distance = fuzz_distance(rn_builtin_ops[i]->name, wanted);
    if (distance > nearest) continue;
    nearest = distance;
    found = rn_builtin_ops[i];
  }
  return found;
}

static void* room(build_t* b, size_t size) {
  void* memory = NULL;
  fuzz_must(rn_arena_alloc(&b->arena, size, &memory));
  return memory;
}

static int64_t pick_int(fuzz_bytes_t* bytes) {
  static const int64_t numbers[] = {0,   1,         2,         3,         4,         5,  -1,
                                    -2,  -3,        7,         8,         16,        17, 64,
                                    100, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 256};
  uint8_t byte = fuzz_byte(bytes);
  return byte < 192 ? byte % 6 - (byte % 7 == 0) : numbers[byte % 20];
}

static int64_t pick_dim(fuzz_bytes_t* bytes) {
  static const uint8_t dims[] = {2, 3, 1, 4, 0, 2, 1, 3, 5, 8, 2, 17, 1, 33, 7, 6};
  return dims[fuzz_byte(bytes) % 16];
}

// A shape for a tensor: the last one, a part of it, or another.
static rn_shape_t pick_shape(build_t* b) {
  int choice = fuzz_pick(&b->bytes, 8);
  if (choice < 3) {
    // as it is
  } else if (choice == 3 && b->rank > 0) {
    b->rank--;
  } else if (choice == 4) {
    b->rank = 0;
  } else {
    b->rank = choice == 5 ? 1 : fuzz_pick(&b->bytes, 6);
    for (int i = 0; i < b->rank; ++i) b->dims[i] = pick_dim(&b->bytes);
  }
  int64_t count = 1;
  for (int i = 0; i < b->rank; ++i) {
    if (b->dims[i] && count > MAX_ELEMENTS / b->dims[i]) b->dims[i] = 1;
    count *= b->dims[i];
  }
  return (rn_shape_t){b->rank, b->dims};
}

static double pick_number(fuzz_bytes_t* bytes) {
  static const double numbers[] = {0, 1,        -1,        0.5, -0.0, 2,     1e30, -1e30,
                                   3, INFINITY, -INFINITY, NAN, 1e-3, 65536, 7,    -2};
  uint8_t byte = fuzz_byte(bytes);
  return byte < 160 ? byte % 5 - (byte % 3 == 0) : numbers[byte % 16];
}

static void set_number(rn_tensor_t* tensor, int64_t i, double number, uint64_t raw) {
  int64_t whole = number >= -1e18 && number <= 1e18 ? (int64_t)number : INT64_MIN;
  float single = (float)number;
  char* at = (char*)tensor->data + (size_t)i * rn_dtype_size(tensor->dtype);
  switch (tensor->dtype) {
    case RN_FLOAT:
      memcpy(at, &single, 4);
      return;
    case RN_COMPLEX64:
      memcpy(at, &single, 4);
      memcpy(at + 4, &raw, 4);
      return;
    case RN_DOUBLE:
      memcpy(at, &number, 8);
      return;
    case RN_COMPLEX128:
      memcpy(at, &number, 8);
      memcpy(at + 8, &number, 8);
      return;
    case RN_BOOL:
      *at = whole & 1;
      return;
    case RN_HALF:
      raw = number == 0 ? 0 : 0x3c00 ^ (raw & 0x83ff);
      memcpy(at, &raw, 2);
      return;
    case RN_BFLOAT16:
      memcpy(at, (const char*)&single + 2, 2);
      return;
    default:
      memcpy(at, &whole, rn_dtype_size(tensor->dtype));
  }
}

static void fill(build_t* b, rn_tensor_t* tensor) {
  fuzz_bytes_t* bytes = &b->bytes;
  int choice = fuzz_pick(bytes, 4);
  double first = pick_number(bytes);
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint64_t raw = choice == 3 ? fuzz_u32(bytes) : (uint64_t)i;
    if (tensor->dtype == RN_STRING) {
      rn_str_t text = fuzz_take(bytes, (size_t)fuzz_pick(bytes, 32));
      fuzz_check(rn_tstring_assign(&RN_DATA(tensor, rn_tstring_t)[i], text.data, text.size));
    } else if (choice == 3 && tensor->dtype != RN_BOOL) {
      size_t size = rn_dtype_size(tensor->dtype);
      for (size_t k = 0; k < size; k += 4)
        memcpy((char*)tensor->data + (size_t)i * size + k, &raw, size < 4 ? size : 4);
    } else {
      double number = choice == 0 ? first : choice == 1 ? (double)(i % 5) : pick_number(bytes);
      set_number(tensor, i, number, raw);
    }
  }
}

static bool make_tensor(build_t* b, rn_dtype_t dtype, rn_tensor_t* out) {
  rn_shape_t shape = pick_shape(b);
  if (dtype == RN_RESOURCE || dtype == RN_VARIANT || rn_dtype_size(dtype) == 0) return false;
  fuzz_must(rn_tensor_create(rn_allocator_system(), dtype, shape, out));
  fill(b, out);
  return true;
}

static rn_dtype_t pick_type(build_t* b, const rn_attr_def_t* def) {
  static const uint8_t common[] = {RN_FLOAT, RN_INT32, RN_INT64,     RN_DOUBLE, RN_BOOL,
                                   RN_HALF,  RN_UINT8, RN_COMPLEX64, RN_STRING, RN_BFLOAT16};
  uint8_t byte = fuzz_byte(&b->bytes);
  if (def->allowed_count) return def->allowed_types[byte % def->allowed_count];
  return byte < 240 ? common[byte % sizeof common] : byte % (RN_DTYPE_COUNT + 1);
}

static rn_str_t pick_text(build_t* b, const rn_attr_def_t* def) {
  static const char* const texts[] = {"",        "SAME", "VALID", "NHWC",  "NCHW", "f",
                                      "loc@a",   ".*",   "(a+)+", "UTF-8", "\\",   "HALF_TO_EVEN",
                                      "i,j->ij", "%s",   "{}",    "/cpu:0"};
  uint8_t byte = fuzz_byte(&b->bytes);
  if (def->allowed_count) return rn_str(def->allowed_strings[byte % def->allowed_count]);
  return byte < 128 ? rn_str(texts[byte % 16]) : fuzz_take(&b->bytes, byte % 32);
}

static rn_shape_t pick_partial(build_t* b) {
  int rank = fuzz_pick(&b->bytes, 7) - 1;
  if (rank < 0) return RN_SHAPE_UNKNOWN;
  int64_t* dims = room(b, sizeof *dims * 8);
  for (int i = 0; i < rank; ++i) {
    uint8_t byte = fuzz_byte(&b->bytes);
    dims[i] = byte < 32 ? -1 : byte < 250 ? byte % 5 : pick_int(&b->bytes);
    if (dims[i] < -1) dims[i] = INT32_MAX;
  }
  return (rn_shape_t){rank, dims};
}

static const rn_func_attr_t* pick_function(build_t* b) {
  rn_func_attr_t* function = room(b, sizeof *function);
  *function = (rn_func_attr_t){.name = RN_STR("f")};
  return function;
}

// The most likely type for a tensor attribute: the last type chosen.
static rn_dtype_t last_type(const build_t* b, int before) {
  for (int i = before - 1; i >= 0; --i)
    if (b->op->attrs[i].kind == RN_ATTR_TYPE && !b->op->attrs[i].is_list) return b->attrs[i].type;
  return RN_FLOAT;
}

static void pick_one(build_t* b, int number, rn_attr_value_t* out) {
  const rn_attr_def_t* def = &b->op->attrs[number];
  *out = (rn_attr_value_t){.kind = def->kind};
  rn_tensor_t* tensor;
  switch (def->kind) {
    case RN_ATTR_STRING:
      out->s = pick_text(b, def);
      break;
    case RN_ATTR_INT:
      out->i = pick_int(&b->bytes);
      if (def->has_minimum && out->i < def->minimum && out->i > -3) out->i += def->minimum + 3;
      break;
    case RN_ATTR_FLOAT:
      out->f = (float)pick_number(&b->bytes);
      break;
    case RN_ATTR_BOOL:
      out->b = fuzz_byte(&b->bytes) & 1;
      break;
    case RN_ATTR_TYPE:
      out->type = pick_type(b, def);
      break;
    case RN_ATTR_SHAPE:
      out->shape = pick_partial(b);
      break;
    case RN_ATTR_TENSOR:
      tensor = room(b, sizeof *tensor);
      *tensor = (rn_tensor_t){0};
      if (!make_tensor(b, last_type(b, number), tensor))
        fuzz_must(rn_tensor_create(rn_allocator_system(), RN_FLOAT, RN_SHAPE_SCALAR, tensor));
      out->tensor = tensor;
      break;
    default:
      out->func = pick_function(b);
  }
}

#define LIST(member, type)                                       \
  do {                                                           \
    type* items = room(b, sizeof(type) * 8);                     \
    for (int i = 0; i < count; ++i) items[i] = values[i].member; \
    out->list_##member = items;                                  \
  } while (0)

static void pick_list(build_t* b, int number, rn_attr_value_t* out) {
  const rn_attr_def_t* def = &b->op->attrs[number];
  rn_attr_value_t values[8];
  int count = fuzz_pick(&b->bytes, 6);
  if (def->has_minimum && count < def->minimum && def->minimum < 6) count = (int)def->minimum;
  for (int i = 0; i < count; ++i) pick_one(b, number, &values[i]);
  *out = (rn_attr_value_t){.kind = def->kind, .is_list = true, .count = count};
  switch (def->kind) {
    case RN_ATTR_STRING:
      LIST(s, rn_str_t);
      break;
    case RN_ATTR_INT:
      LIST(i, int64_t);
      break;
    case RN_ATTR_FLOAT:
      LIST(f, float);
      break;
    case RN_ATTR_BOOL:
      LIST(b, bool);
      break;
    case RN_ATTR_TYPE:
      LIST(type, rn_dtype_t);
      break;
    case RN_ATTR_SHAPE:
      LIST(shape, rn_shape_t);
      break;
    case RN_ATTR_TENSOR:
      LIST(tensor, const rn_tensor_t*);
      break;
    default:
      LIST(func, const rn_func_attr_t*);
  }
}

static void clear_attrs(build_t* b) {
  for (int i = 0; i < b->op->attr_count; ++i) {
    rn_attr_value_t* value = &b->attrs[i];
    bool is_default = b->op->attrs[i].has_default &&
                      memcmp(value, &b->op->attrs[i].default_value, sizeof *value) == 0;
    if (!is_default) rn_attr_value_clear(value);
  }
}

static void pick_attrs(build_t* b) {
  for (int i = 0; i < b->op->attr_count; ++i) {
    const rn_attr_def_t* def = &b->op->attrs[i];
    if (def->has_default && fuzz_pick(&b->bytes, 3) == 0)
      b->attrs[i] = def->default_value;
    else if (def->is_list)
      pick_list(b, i, &b->attrs[i]);
    else
      pick_one(b, i, &b->attrs[i]);
  }
}

static rn_edge_t add(build_t* b, const char* op, const rn_edge_t* inputs, int input_count,
                     const rn_attr_t* attrs, int attr_count) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, rn_allocator_system());
  rn_strbuf_printf(&name, "n%zu", b->graph->nodes.count);
  rn_node_spec_t spec = {.op = rn_str(op),
                         .name = rn_strbuf_view(&name),
                         .inputs = inputs,
                         .input_count = input_count,
                         .attrs = attrs,
                         .attr_count = attr_count};
  rn_node_t* node = NULL;
  rn_status_free(rn_graph_add(b->graph, &spec, &node));
  rn_strbuf_clear(&name);
  return (rn_edge_t){node, 0};
}

static rn_attr_t type_attr(const char* name, rn_dtype_t dtype) {
  return (rn_attr_t){rn_str(name), {.kind = RN_ATTR_TYPE, .type = dtype}};
}
static rn_attr_t shape_attr(const char* name, rn_shape_t shape) {
  return (rn_attr_t){rn_str(name), {.kind = RN_ATTR_SHAPE, .shape = shape}};
}

static rn_edge_t constant(build_t* b, const rn_tensor_t* value) {
  rn_attr_t attrs[] = {type_attr("dtype", value->dtype),
                       {RN_STR("value"), {.kind = RN_ATTR_TENSOR, .tensor = value}}};
  return add(b, "Const", NULL, 0, attrs, 2);
}

// Keeps |value| for feeding. The placeholder's shape may be known fully, partly or not at all.
static rn_edge_t fed(build_t* b, rn_tensor_t* value) {
  rn_shape_t shape = rn_tensor_shape(value);
  int64_t dims[8];
  int choice = fuzz_pick(&b->bytes, 3);
  for (int i = 0; i < shape.rank; ++i) dims[i] = i % 2 && choice == 1 ? -1 : shape.dims[i];
  rn_attr_t attrs[] = {
      type_attr("dtype", value->dtype),
      shape_attr("shape", choice == 2 ? RN_SHAPE_UNKNOWN : (rn_shape_t){shape.rank, dims})};
  rn_edge_t edge = add(b, "Placeholder", NULL, 0, attrs, 2);
  if (!edge.node) {
    rn_tensor_clear(value);
    return edge;
  }
  b->feeds[b->feed_count] = edge;
  b->values[b->feed_count++] = *value;
  return edge;
}

static rn_edge_t value_input(build_t* b, rn_dtype_t dtype) {
  rn_tensor_t value = {0};
  if (!make_tensor(b, dtype, &value)) return RN_NO_EDGE;
  if (fuzz_pick(&b->bytes, 3)) return fed(b, &value);
  rn_edge_t edge = constant(b, &value);
  rn_tensor_clear(&value);
  return edge;
}

static void set_up(build_t* b, rn_edge_t edge) {
  if (edge.node) b->setup[b->setup_count++] = edge.node;
}

// A reference variable, usually with a value.
static rn_edge_t ref_input(build_t* b, rn_dtype_t dtype) {
  rn_tensor_t value = {0};
  if (!make_tensor(b, dtype, &value)) return RN_NO_EDGE;
  rn_attr_t attrs[] = {
      shape_attr("shape", fuzz_pick(&b->bytes, 4) ? rn_tensor_shape(&value) : RN_SHAPE_UNKNOWN),
      type_attr("dtype", dtype)};
  rn_edge_t variable = add(b, "VariableV2", NULL, 0, attrs, 2);
  rn_edge_t content = constant(b, &value);
  rn_tensor_clear(&value);
  if (variable.node && content.node && fuzz_pick(&b->bytes, 8))
    set_up(b, add(b, "Assign", (rn_edge_t[]){variable, content}, 2, NULL, 0));
  return variable;
}

// Objects that a resource, or a reference to a string, may mean.
static rn_edge_t handle_input(build_t* b, bool is_resource) {
  rn_tensor_t value = {0};
  rn_dtype_t dtype = fuzz_pick(&b->bytes, 3) ? RN_FLOAT : RN_INT32;
  if (!make_tensor(b, dtype, &value)) return RN_NO_EDGE;
  rn_edge_t content = constant(b, &value);
  rn_edge_t handle = RN_NO_EDGE;
  int choice = fuzz_pick(&b->bytes, 4);
  if (choice < 2 && is_resource) {
    rn_attr_t attrs[] = {type_attr("dtype", dtype),
                         shape_attr("shape", choice ? rn_tensor_shape(&value) : RN_SHAPE_UNKNOWN)};
    handle = add(b, "VarHandleOp", NULL, 0, attrs, 2);
    if (handle.node && content.node)
      set_up(b, add(b, "AssignVariableOp", (rn_edge_t[]){handle, content}, 2, NULL, 0));
  } else if (choice < 3) {
    rn_attr_t attrs[] = {
        {RN_STR("component_types"),
         {.kind = RN_ATTR_TYPE, .is_list = true, .count = 1, .list_type = &dtype}}};
    handle = add(b, is_resource ? "FIFOQueueV2" : "FIFOQueue", NULL, 0, attrs, 1);
    if (handle.node && content.node)
      set_up(b, add(b, is_resource ? "QueueEnqueueV2" : "QueueEnqueue",
                    (rn_edge_t[]){handle, content}, 2, NULL, 0));
  } else {
    rn_attr_t attrs[] = {type_attr("elem_type", dtype)};
    handle = add(b, is_resource ? "StackV2" : "Stack", is_resource ? &content : NULL,
                 is_resource && content.node ? 1 : 0, attrs, 1);
  }
  rn_tensor_clear(&value);
  return handle;
}

static bool make_input(build_t* b, rn_dtype_t dtype, bool is_ref) {
  if (b->input_count == MAX_INPUTS) return false;
  rn_edge_t edge;
  // Sometimes uses the same edge twice.
  if (b->input_count && fuzz_pick(&b->bytes, 16) == 0)
    edge = b->inputs[b->input_count - 1];
  else if (dtype == RN_RESOURCE || (is_ref && dtype == RN_STRING))
    edge = handle_input(b, dtype == RN_RESOURCE);
  else
    edge = is_ref ? ref_input(b, dtype) : value_input(b, dtype);
  b->inputs[b->input_count++] = edge;
  return edge.node != NULL;
}

static bool make_inputs(build_t* b) {
  for (int a = 0; a < b->op->input_count; ++a) {
    const rn_arg_def_t* arg = &b->op->inputs[a];
    int32_t length = rn_arg_length(arg, b->attrs);
    for (int32_t i = 0; i < length; ++i) {
      rn_dtype_t dtype = arg->type_list_attr >= 0 ? b->attrs[arg->type_list_attr].list_type[i]
                         : arg->type_attr >= 0    ? b->attrs[arg->type_attr].type
                                                  : arg->type;
      if (!make_input(b, rn_dtype_base(dtype), arg->is_ref)) return false;
    }
  }
  return true;
}

static void fetch(build_t* b, rn_edge_t edge) {
  rn_dtype_t dtype = edge.node->outputs[edge.index].dtype;
  if (b->fetch_count == MAX_FETCHES || rn_dtype_base(dtype) == RN_RESOURCE ||
      rn_dtype_base(dtype) == RN_VARIANT)
    return;
  b->fetches[b->fetch_count++] = edge;
}

static void add_gradients(build_t* b) {
  rn_edge_t ys[MAX_FETCHES], dxs[MAX_INPUTS];
  int y_count = 0;
  for (int i = 0; i < b->fetch_count; ++i)
    if (rn_dtype_is_floating(rn_dtype_base(b->fetches[i].node->outputs[b->fetches[i].index].dtype)))
      ys[y_count++] = b->fetches[i];
  if (!y_count || !b->feed_count) return;
  rn_status_t status =
      rn_add_gradients(b->graph, RN_STR(""), ys, y_count, b->feeds, b->feed_count, NULL, dxs);
  for (int i = 0; rn_ok(status) && i < b->feed_count; ++i)
    if (dxs[i].node) fetch(b, dxs[i]);
  rn_status_free(status);
}

// Adds the nodes; false if the op refuses them.
static bool build(build_t* b) {
  pick_attrs(b);
  for (int i = 0; i < b->op->attr_count; ++i)  // lengths of lists
    if (b->op->attrs[i].kind == RN_ATTR_INT && !b->op->attrs[i].is_list &&
        (b->attrs[i].i > INT32_MAX || b->attrs[i].i < INT32_MIN))
      for (int a = 0; a < b->op->input_count; ++a)
        if (b->op->inputs[a].number_attr == i) b->attrs[i].i = 2;
  if (!make_inputs(b)) return false;
  rn_attr_t attrs[MAX_ATTRS];
  for (int i = 0; i < b->op->attr_count; ++i)
    attrs[i] = (rn_attr_t){rn_str(b->op->attrs[i].name), b->attrs[i]};
  b->node = add(b, b->op->name, b->inputs, b->input_count, attrs, b->op->attr_count).node;
  if (!b->node) return false;
  for (int i = 0; i < b->node->output_count && i < 8; ++i) fetch(b, (rn_edge_t){b->node, i});
  if (fuzz_pick(&b->bytes, 3) == 0) add_gradients(b);
  return true;
}

static rn_status_t run(build_t* b, rn_session_t* session, rn_tensor_t* out) {
  rn_step_options_t options = {.timeout_ms = MAX_MS};
  const rn_tensor_t* values[MAX_INPUTS];
  for (int i = 0; i < b->feed_count; ++i) values[i] = &b->values[i];
  for (int i = 0; i < b->setup_count; ++i) {
    rn_signature_t setup = {.targets = &b->setup[i], .target_count = 1};
    rn_status_free(rn_session_run(session, &setup, NULL, NULL, &options));
  }
  rn_signature_t signature = {.feeds = b->feeds,
                              .feed_count = b->feed_count,
                              .fetches = b->fetches,
                              .fetch_count = b->fetch_count,
                              .targets = &b->node,
                              .target_count = 1};
  return rn_session_run(session, &signature, values, out, &options);
}

static rn_status_t run_once(build_t* b, bool optimize, rn_tensor_t* out) {
  rn_session_options_t options;
  rn_env_t env = fuzz_env();
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.optimize = optimize;
  rn_session_t* session = NULL;
  rn_status_t status = rn_session_create(b->graph, &options, &env, b->allocator, &session);
  if (rn_ok(status)) status = run(b, session, out);
  rn_session_destroy(session);
  return status;
}

static bool same_tensor(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (a->dtype != b->dtype || !rn_tensor_same_shape(a, b)) return false;
  if (rn_dtype_is_plain(a->dtype))
    return a->count == 0 || memcmp(a->data, b->data, rn_tensor_bytes(a)) == 0;
  for (int64_t i = 0; a->dtype == RN_STRING && i < a->count; ++i)
    if (!rn_str_eq(rn_tstring_view(&RN_DATA(a, rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, rn_tstring_t)[i])))
      return false;
  return true;
}

static bool is_repeatable(rn_code_t code) {
  return code != RN_CODE_RESOURCE_EXHAUSTED && code != RN_CODE_DEADLINE_EXCEEDED;
}

static void run_both(build_t* b) {
  rn_tensor_t plain[MAX_FETCHES] = {0}, planned[MAX_FETCHES] = {0};
  rn_status_t first = run_once(b, false, plain), second = run_once(b, true, planned);
  rn_code_t codes[] = {rn_status_code(first), rn_status_code(second)};
  bool has_state = strcmp(b->op->name, "Batch") == 0;  // the numbers of batches are random
  for (size_t i = 0; i < b->graph->nodes.count; ++i)
    has_state |= (b->graph->nodes.items[i]->op->flags & RN_OP_STATEFUL) != 0;
  if (!has_state && is_repeatable(codes[0]) && is_repeatable(codes[1])) {
    fuzz_check(rn_ok(first) == rn_ok(second));
    for (int i = 0; rn_ok(first) && i < b->fetch_count; ++i)
      fuzz_check(same_tensor(&plain[i], &planned[i]));
  }
  rn_status_free(first);
  rn_status_free(second);
  for (int i = 0; i < b->fetch_count; ++i) rn_tensor_clear(&plain[i]), rn_tensor_clear(&planned[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_memory_t memory;
  build_t b = {.bytes = {data, size}, .rank = 2, .dims = {2, 3}};
  b.allocator = fuzz_memory_init(&memory, MAX_BYTES);
  b.op = pick_op(&b.bytes);
  if (b.op->attr_count > MAX_ATTRS) return 0;
  rn_arena_init(&b.arena, rn_allocator_system());
  fuzz_must(rn_graph_create(rn_allocator_system(), &b.graph));
  if (build(&b)) run_both(&b);
  for (int i = 0; i < b.feed_count; ++i) rn_tensor_clear(&b.values[i]);
  clear_attrs(&b);
  rn_graph_release(b.graph);
  rn_arena_clear(&b.arena);
  fuzz_check(memory.counting.live_blocks == 0);
  return 0;
}
