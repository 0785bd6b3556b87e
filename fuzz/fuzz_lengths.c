// Fuzzes one op with list and count attributes that contradict each other or the node's inputs.
// Calls its shape function with memory blocks of the exact sizes, so that sanitizers see an
// overrun. Then imports it as a node of a GraphDef and, if that is accepted, makes and runs its
// kernel. The first four bytes choose the op, by the hash of its name; each further byte selects a
// length or a number. An input of at most four bytes sweeps every op that has such attributes: each
// list and each number, alone and in pairs, takes other values while the rest agree.
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/util.h"
#include "graph/graph.h"
#include "graph/import.h"
#include "proto/attr_value.pb.h"
#include "proto/graph.pb.h"
#include "proto/node_def.pb.h"
#include "wire/writer.h"

#define MAX_ATTRS 32
#define MAX_INPUTS 24
#define MAX_LENGTH 8   // of a list
#define MAX_EDGES 100  // per argument, when only shapes are inferred
#define MAX_BYTES ((int64_t)64 << 20)
#define MAX_MS 10

// A node to try: the value of each number, the length of each list.
typedef struct trial_t {
  const rn_op_def_t* op;
  int64_t numbers[MAX_ATTRS];
  int more_inputs;  // inputs in excess of those that the attributes require
  int rank;         // of the inputs; -1 if unknown
} trial_t;

static const int64_t lengths[] = {0, 1, 2, 3, 7};
static const int64_t numbers[] = {0, 1, 2, 3, 7, 40, -1, 1 << 20, INT32_MAX, INT64_C(1) << 32 | 1};
#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array)[0]))

// Whether the sweep varies the attribute: a list or an integer.
static bool is_knob(const rn_attr_def_t* def) { return def->is_list || def->kind == RN_ATTR_INT; }

static bool is_tried(const rn_op_def_t* op) {
  bool has_list = false, has_number = false;
  for (int i = 0; i < op->attr_count; ++i) {
    has_list |= op->attrs[i].is_list;
    has_number |= op->attrs[i].kind == RN_ATTR_INT;
  }
  return op->attr_count <= MAX_ATTRS && (has_list || has_number);
}

static rn_dtype_t type_of(const rn_attr_def_t* def) {
  if (def->has_default && !def->is_list) return def->default_value.type;
  return def->allowed_count ? def->allowed_types[0] : RN_FLOAT;
}

static void put_shape(rn_strbuf_t* out, uint32_t field, int rank) {
  size_t shape = rn_pb_begin(out, field);
  if (rank < 0) rn_pb_put_uint(out, rn_pb_TensorShapeProto_unknown_rank_field, 1);
  for (int i = 0; i < rank; ++i) {
    size_t dim = rn_pb_begin(out, rn_pb_TensorShapeProto_dim_field);
    rn_pb_put_uint(out, rn_pb_TensorShapeProto_Dim_size_field, 2);
    rn_pb_end(out, dim);
  }
  rn_pb_end(out, shape);
}

static void put_scalar(rn_strbuf_t* out, uint32_t field) {
  size_t tensor = rn_pb_begin(out, field);
  rn_pb_put_uint(out, rn_pb_TensorProto_dtype_field, RN_FLOAT);
  rn_pb_end(out, tensor);
}

static void put_function(rn_strbuf_t* out, uint32_t field) {
  size_t function = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_NameAttrList_name_field, RN_STR("f"));
  rn_pb_end(out, function);
}

static rn_str_t text_of(const rn_attr_def_t* def) {
  return def->allowed_count ? rn_str(def->allowed_strings[0]) : RN_STR("a");
}

static void put_element(rn_strbuf_t* out, const rn_attr_def_t* def) {
  switch (def->kind) {
    case RN_ATTR_STRING:
      rn_pb_put_str(out, rn_pb_AttrValue_ListValue_s_field, text_of(def));
      break;
    case RN_ATTR_INT:
      rn_pb_put_uint(out, rn_pb_AttrValue_ListValue_i_field, 1);
      break;
    case RN_ATTR_FLOAT:
      rn_pb_put_float(out, rn_pb_AttrValue_ListValue_f_field, 1);
      break;
    case RN_ATTR_BOOL:
      rn_pb_put_uint(out, rn_pb_AttrValue_ListValue_b_field, 1);
      break;
    case RN_ATTR_TYPE:
      rn_pb_put_uint(out, rn_pb_AttrValue_ListValue_type_field, type_of(def));
      break;
    case RN_ATTR_SHAPE:
      put_shape(out, rn_pb_AttrValue_ListValue_shape_field, 1);
      break;
    case RN_ATTR_TENSOR:
      put_scalar(out, rn_pb_AttrValue_ListValue_tensor_field);
      break;
    default:
      put_function(out, rn_pb_AttrValue_ListValue_func_field);
  }
}

static void put_value(rn_strbuf_t* out, const rn_attr_def_t* def, int64_t number) {
  if (def->is_list) {
    size_t list = rn_pb_begin(out, rn_pb_AttrValue_list_field);
    for (int64_t i = 0; i < number; ++i) put_element(out, def);
    rn_pb_end(out, list);
    return;
  }
  switch (def->kind) {
    case RN_ATTR_STRING:
      rn_pb_put_str(out, rn_pb_AttrValue_s_field, text_of(def));
      break;
    case RN_ATTR_INT:
      rn_pb_put_uint(out, rn_pb_AttrValue_i_field, (uint64_t)number);
      break;
    case RN_ATTR_FLOAT:
      rn_pb_put_float(out, rn_pb_AttrValue_f_field, 1);
      break;
    case RN_ATTR_BOOL:
      rn_pb_put_uint(out, rn_pb_AttrValue_b_field, 0);
      break;
    case RN_ATTR_TYPE:
      rn_pb_put_uint(out, rn_pb_AttrValue_type_field, type_of(def));
      break;
    case RN_ATTR_SHAPE:
      put_shape(out, rn_pb_AttrValue_shape_field, -1);
      break;
    case RN_ATTR_TENSOR:
      put_scalar(out, rn_pb_AttrValue_tensor_field);
      break;
    default:
      put_function(out, rn_pb_AttrValue_func_field);
  }
}

static size_t begin_attr(rn_strbuf_t* out, const char* name) {
  size_t entry = rn_pb_begin(out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(out, 1, rn_str(name));
  return entry;
}

static void put_attrs(rn_strbuf_t* out, const trial_t* trial) {
  for (int i = 0; i < trial->op->attr_count; ++i) {
    const rn_attr_def_t* def = &trial->op->attrs[i];
    if (!is_knob(def) && def->has_default) continue;
    size_t entry = begin_attr(out, def->name), value = rn_pb_begin(out, 2);
    put_value(out, def, trial->numbers[i]);
    rn_pb_end(out, value);
    rn_pb_end(out, entry);
  }
}

static rn_dtype_t input_type(const trial_t* trial, const rn_arg_def_t* arg) {
  if (arg->type_list_attr >= 0) return type_of(&trial->op->attrs[arg->type_list_attr]);
  return arg->type_attr >= 0 ? type_of(&trial->op->attrs[arg->type_attr]) : arg->type;
}

// A node that provides an input: a placeholder, or a variable if the input is a reference.
static void put_source(rn_strbuf_t* out, const trial_t* trial, const rn_arg_def_t* arg, int i) {
  size_t node = rn_pb_begin(out, rn_pb_GraphDef_node_field);
  char name[16];
  snprintf(name, sizeof name, "i%d", i);
  rn_pb_put_str(out, rn_pb_NodeDef_name_field, rn_str(name));
  rn_pb_put_str(out, rn_pb_NodeDef_op_field, rn_str(arg->is_ref ? "VariableV2" : "Placeholder"));
  size_t entry = begin_attr(out, "dtype"), value = rn_pb_begin(out, 2);
  rn_pb_put_uint(out, rn_pb_AttrValue_type_field, rn_dtype_base(input_type(trial, arg)));
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
  entry = begin_attr(out, "shape"), value = rn_pb_begin(out, 2);
  put_shape(out, rn_pb_AttrValue_shape_field, trial->rank);
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
  rn_pb_end(out, node);
}

static int64_t arg_length(const trial_t* trial, const rn_arg_def_t* arg) {
  if (arg->type_list_attr >= 0) return trial->numbers[arg->type_list_attr];
  return arg->number_attr >= 0 ? trial->numbers[arg->number_attr] : 1;
}

// Writes the nodes that provide the inputs; returns their number.
static int put_sources(rn_strbuf_t* out, const trial_t* trial) {
  int count = 0;
  for (int a = 0; a < trial->op->input_count; ++a) {
    const rn_arg_def_t* arg = &trial->op->inputs[a];
    bool is_last = a + 1 == trial->op->input_count;
    int64_t length = arg_length(trial, arg) + (is_last ? trial->more_inputs : 0);
    for (int64_t i = 0; i < length && count < MAX_INPUTS; ++i) put_source(out, trial, arg, count++);
  }
  return count;
}

static void put_graph(rn_strbuf_t* out, const trial_t* trial) {
  int inputs = put_sources(out, trial);
  size_t node = rn_pb_begin(out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(out, rn_pb_NodeDef_name_field, RN_STR("n"));
  rn_pb_put_str(out, rn_pb_NodeDef_op_field, rn_str(trial->op->name));
  for (int i = 0; i < inputs; ++i) {
    char name[16];
    snprintf(name, sizeof name, "i%d", i);
    rn_pb_put_str(out, rn_pb_NodeDef_input_field, rn_str(name));
  }
  put_attrs(out, trial);
  rn_pb_end(out, node);
}

// Feeds the placeholders. If one cannot be fed the step fails, which is fine.
typedef struct feeds_t {
  rn_edge_t edges[MAX_INPUTS];
  rn_tensor_t values[MAX_INPUTS];
  int count;
} feeds_t;

static void add_feed(feeds_t* feeds, rn_node_t* node, int rank) {
  static const int64_t dims[] = {2, 2};  // ranks go up to 2
  if (node->op->role != RN_ROLE_PLACEHOLDER || node->output_count != 1) return;
  rn_dtype_t dtype = node->outputs[0].dtype;
  if (rn_dtype_size(dtype) == 0 || dtype == RN_RESOURCE || dtype == RN_VARIANT ||
      feeds->count == MAX_INPUTS)
    return;
  rn_tensor_t* value = &feeds->values[feeds->count];
  fuzz_must(rn_tensor_create(rn_allocator_system(), dtype,
                             (rn_shape_t){rank < 0 ? 0 : rank, rank > 0 ? dims : NULL}, value));
  if (rn_dtype_is_plain(dtype)) memset(value->data, 0, rn_tensor_bytes(value));
  feeds->edges[feeds->count++] = (rn_edge_t){node, 0};
}

static void run(rn_graph_t* graph, const trial_t* trial, rn_allocator_t allocator) {
  feeds_t feeds = {.count = 0};
  const rn_tensor_t* values[MAX_INPUTS];
  rn_node_t* target = rn_graph_find(graph, RN_STR("n"));
  fuzz_check(target != NULL);
  for (size_t i = 0; i < graph->nodes.count; ++i)
    add_feed(&feeds, graph->nodes.items[i], trial->rank);
  for (int i = 0; i < feeds.count; ++i) values[i] = &feeds.values[i];
  rn_session_options_t options;
  rn_env_t env = fuzz_env();
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_session_t* session = NULL;
  rn_status_t status = rn_session_create(graph, &options, &env, allocator, &session);
  if (rn_ok(status)) {
    rn_step_options_t step = {.timeout_ms = MAX_MS};
    rn_signature_t signature = {
        .feeds = feeds.edges, .feed_count = feeds.count, .targets = &target, .target_count = 1};
    status = rn_session_run(session, &signature, values, NULL, &step);
  }
  rn_status_free(status);
  rn_session_destroy(session);
  for (int i = 0; i < feeds.count; ++i) rn_tensor_clear(&feeds.values[i]);
}

static void infer_alone(const trial_t* trial);

static void try_node(const trial_t* trial, bool runs) {
  infer_alone(trial);
  fuzz_memory_t memory;
  rn_allocator_t allocator = fuzz_memory_init(&memory, MAX_BYTES);
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  put_graph(&bytes, trial);
  rn_graph_t* graph = NULL;
  fuzz_must(rn_graph_create(allocator, &graph));
  rn_import_options_t options = {0};
  rn_status_t status = rn_graph_import(graph, rn_strbuf_view(&bytes), &options, NULL);
  if (rn_ok(status) && runs) run(graph, trial, allocator);
  rn_status_free(status);
  rn_graph_release(graph);
  rn_strbuf_clear(&bytes);
  fuzz_check(memory.counting.live_blocks == 0);
}

// The shape function alone.

static void set_list(const rn_attr_def_t* def, rn_attr_value_t* out) {
  static const rn_shape_t shapes[MAX_LENGTH] = {{0, NULL}};
  static const float floats[MAX_LENGTH] = {1};
  static const bool bools[MAX_LENGTH] = {true};
  static const int64_t ints[MAX_LENGTH] = {1, 1, 1, 1};
  static rn_str_t texts[MAX_LENGTH];
  static rn_dtype_t types[MAX_LENGTH];
  for (int i = 0; i < MAX_LENGTH; ++i) {
    if (def->kind == RN_ATTR_TYPE) types[i] = type_of(def);
    if (def->kind == RN_ATTR_STRING) texts[i] = text_of(def);
  }
  if (def->kind == RN_ATTR_SHAPE) out->list_shape = shapes;
  if (def->kind == RN_ATTR_FLOAT) out->list_f = floats;
  if (def->kind == RN_ATTR_BOOL) out->list_b = bools;
  if (def->kind == RN_ATTR_INT) out->list_i = ints;
  if (def->kind == RN_ATTR_STRING) out->list_s = texts;
  if (def->kind == RN_ATTR_TYPE) out->list_type = types;
  // Copies each list into a block of exactly its length.
  size_t item = def->kind == RN_ATTR_SHAPE    ? sizeof(rn_shape_t)
                : def->kind == RN_ATTR_FLOAT  ? sizeof(float)
                : def->kind == RN_ATTR_BOOL   ? sizeof(bool)
                : def->kind == RN_ATTR_INT    ? sizeof(int64_t)
                : def->kind == RN_ATTR_STRING ? sizeof(rn_str_t)
                                              : sizeof(rn_dtype_t);
  void* copy = malloc((size_t)out->count * item);
  fuzz_check(copy || !out->count);
  if (out->count) memcpy(copy, out->list_i, (size_t)out->count * item);
  out->list_i = copy;
}

// Sets the attributes; false if the op has kinds of attributes that this cannot set without a
// graph.
static bool set_attrs(const trial_t* trial, rn_attr_value_t* out) {
  static const rn_tensor_t none = {0};
  for (int i = 0; i < trial->op->attr_count; ++i) {
    const rn_attr_def_t* def = &trial->op->attrs[i];
    out[i] = (rn_attr_value_t){.kind = def->kind, .is_list = def->is_list};
    if (def->kind == RN_ATTR_FUNC || (def->kind == RN_ATTR_TENSOR && def->is_list)) return false;
    if (def->kind == RN_ATTR_TENSOR) out[i].tensor = &none;
    if (def->kind == RN_ATTR_INT) out[i].i = trial->numbers[i];
    if (def->kind == RN_ATTR_TYPE) out[i].type = type_of(def);
    if (def->kind == RN_ATTR_STRING) out[i].s = text_of(def);
    if (def->kind == RN_ATTR_SHAPE) out[i].shape = RN_SHAPE_UNKNOWN;
    if (def->is_list) {
      out[i].count = (int32_t)trial->numbers[i];
      set_list(def, &out[i]);
    }
  }
  return true;
}

static int64_t total_length(const trial_t* trial, const rn_arg_def_t* args, int count) {
  int64_t total = 0;
  for (int i = 0; i < count; ++i) {
    int64_t length = arg_length(trial, &args[i]);
    if (length < 0 || length > MAX_EDGES) return -1;
    total += length;
  }
  return total;
}

static void call_shape_function(const trial_t* trial, const rn_attr_value_t* attrs, size_t inputs,
                                size_t outputs) {
  static const int64_t dims[] = {2, 2};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_shape_t *shapes = malloc(inputs * sizeof *shapes), *out = malloc(outputs * sizeof *out);
  rn_dtype_t* types = calloc(inputs, sizeof *types);
  const rn_tensor_t** values = calloc(inputs, sizeof *values);
  rn_partial_t* partials = calloc(inputs, sizeof *partials);
  rn_handle_data_t *handles = calloc(inputs, sizeof *handles),
                   *out_handles = calloc(outputs, sizeof *out_handles);
  for (size_t i = 0; i < inputs; ++i)
    shapes[i] = trial->rank < 0 ? RN_SHAPE_UNKNOWN : (rn_shape_t){trial->rank, dims};
  for (size_t i = 0; i < outputs; ++i) out[i] = RN_SHAPE_UNKNOWN;
  rn_shape_ctx_t ctx = {.op = trial->op,
                        .attrs = attrs,
                        .arena = &arena,
                        .graph_version = 2474,
                        .input_count = (int32_t)inputs,
                        .inputs = shapes,
                        .input_types = types,
                        .input_values = values,
                        .input_partials = partials,
                        .input_handles = handles,
                        .output_count = (int32_t)outputs,
                        .outputs = out,
                        .output_handles = out_handles};
  rn_status_free(rn_shape_infer(&ctx));
  free(shapes), free(out), free(types), free(values);
  free(partials), free(handles), free(out_handles);
  rn_arena_clear(&arena);
}

static void infer_alone(const trial_t* trial) {
  int64_t inputs = total_length(trial, trial->op->inputs, trial->op->input_count);
  int64_t outputs = total_length(trial, trial->op->outputs, trial->op->output_count);
  rn_attr_value_t attrs[MAX_ATTRS] = {0};
  if (inputs < 0 || outputs < 0) return;  // cannot become a node
  for (int i = 0; i < trial->op->attr_count; ++i) {
    const rn_attr_def_t* def = &trial->op->attrs[i];
    if (def->has_minimum && trial->numbers[i] < def->minimum) return;
  }
  if (set_attrs(trial, attrs)) call_shape_function(trial, attrs, (size_t)inputs, (size_t)outputs);
  for (int i = 0; i < trial->op->attr_count; ++i)
    if (attrs[i].is_list) free((void*)attrs[i].list_i);
}

// Gives all lists the same length and all numbers that value: as consistent a node as that allows.
static trial_t even_trial(const rn_op_def_t* op, int64_t length, int rank) {
  trial_t trial = {.op = op, .rank = rank};
  for (int i = 0; i < op->attr_count; ++i) {
    const rn_attr_def_t* def = &op->attrs[i];
    trial.numbers[i] = def->has_minimum && length < def->minimum ? def->minimum : length;
  }
  return trial;
}

static void sweep_pairs(trial_t even, int first, bool runs) {
  for (int second = first + 1; second < even.op->attr_count; ++second) {
    if (!is_knob(&even.op->attrs[second])) continue;
    for (int v = 0; v < 16; ++v) {
      trial_t trial = even;
      trial.numbers[first] = v % 4;
      trial.numbers[second] = v / 4;
      try_node(&trial, runs);
    }
  }
}

static void sweep(const rn_op_def_t* op) {
  for (int round = 0; round < 6; ++round) {
    trial_t even = even_trial(op, round % 3, round < 3 ? -1 : 1);
    for (int more = -1; more <= 1; ++more) {
      even.more_inputs = more;
      try_node(&even, more == 0);
    }
    even.more_inputs = 0;
    for (int i = 0; i < op->attr_count; ++i) {
      if (!is_knob(&op->attrs[i])) continue;
      bool is_list = op->attrs[i].is_list;
      for (int v = 0; v < (is_list ? COUNT_OF(lengths) : COUNT_OF(numbers)); ++v) {
        trial_t trial = even;
        trial.numbers[i] = is_list ? lengths[v] : numbers[v];
        try_node(&trial, round % 3 == 1);
      }
      if (round < 3) sweep_pairs(even, i, false);
    }
  }
}

static const rn_op_def_t* pick_op(fuzz_bytes_t* bytes) {
  uint32_t wanted = fuzz_u32(bytes), nearest = UINT32_MAX;
  const rn_op_def_t* found = NULL;
  for (int i = 0; i < rn_builtin_op_count; ++i) {
    uint32_t distance = fuzz_distance(rn_builtin_ops[i]->name, wanted);
    if (distance > nearest || !is_tried(rn_builtin_ops[i])) continue;
    nearest = distance;
    found = rn_builtin_ops[i];
  }
  return found;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 4) {
    for (int i = 0; i < rn_builtin_op_count; ++i)
      if (is_tried(rn_builtin_ops[i])) sweep(rn_builtin_ops[i]);
    return 0;
  }
  fuzz_bytes_t bytes = {data, size};
  trial_t trial = {.op = pick_op(&bytes)};
  trial.rank = fuzz_pick(&bytes, 4) - 1;
  trial.more_inputs = fuzz_pick(&bytes, 8) == 1 ? fuzz_pick(&bytes, 3) - 1 : 0;
  for (int i = 0; i < trial.op->attr_count; ++i) {
    int choice = fuzz_pick(&bytes, 16);
    trial.numbers[i] = trial.op->attrs[i].is_list ? lengths[choice % COUNT_OF(lengths)]
                                                  : numbers[choice % COUNT_OF(numbers)];
  }
  try_node(&trial, true);
  return 0;
}
