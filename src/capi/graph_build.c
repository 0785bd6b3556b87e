// Describing an operation and adding it to its graph.
#include "capi/description.h"
#include "graph/build.h"

rn_status_t rn_desc_alloc(TF_OperationDescription* desc, size_t count, size_t size, void** out) {
  size_t bytes;
  if (!rn_mul_ok(count, size, &bytes)) return rn_out_of_memory();
  size_t start = (desc->text_used + 7) & ~(size_t)7;
  if (start <= RN_DESC_TEXT && bytes <= RN_DESC_TEXT - start) {
    desc->text_used = start + bytes;
    *out = desc->text + start;
    return RN_OK;
  }
  return rn_arena_alloc(&desc->arena, bytes, out);
}

rn_status_t rn_desc_copy(TF_OperationDescription* desc, rn_str_t str, rn_str_t* out) {
  if (str.size < RN_DESC_TEXT - desc->text_used) {  // text needs no alignment
    char* copy = desc->text + desc->text_used;
    desc->text_used += str.size + 1;
    if (str.size) memcpy(copy, str.data, str.size);
    copy[str.size] = '\0';
    *out = rn_str_n(copy, str.size);
    return RN_OK;
  }
  return rn_arena_str(&desc->arena, str, out);
}

void rn_desc_fail(TF_OperationDescription* desc, rn_status_t status) {
  if (!rn_ok(status)) desc->error = rn_status_join(desc->error, status);
}

// Grows the array |*items| of |count| elements of |size| bytes by |extra| elements.
static rn_status_t reserve(TF_OperationDescription* desc, void** items, int32_t count,
                           int32_t* room, int32_t extra, size_t size) {
  if (__builtin_expect(extra <= *room - count, 1)) return RN_OK;
  int64_t needed = (int64_t)count + extra;
  if (needed > INT32_MAX / 2) return rn_out_of_memory();
  int32_t grown = (int32_t)needed * 2;
  void* moved = NULL;
  RN_RETURN_IF_ERROR(rn_arena_alloc_array(&desc->arena, (size_t)grown, size, &moved));
  if (count) memcpy(moved, *items, (size_t)count * size);
  *items = moved;
  *room = grown;
  return RN_OK;
}

#define RESERVE(desc, items, count, room, extra)                                 \
  reserve((desc), (void**)&(desc)->items, (desc)->count, &(desc)->room, (extra), \
          sizeof *(desc)->items)

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                               const char* oper_name) {
  if (!graph) return NULL;
  TF_OperationDescription* desc = NULL;
  rn_status_t status = rn_alloc(rn_capi_allocator(), sizeof *desc, (void**)&desc);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return NULL;
  }
  memset(desc, 0, offsetof(TF_OperationDescription, own_inputs));
  desc->graph = rn_capi_graph(graph);
  rn_arena_init(&desc->arena, rn_capi_allocator());
  desc->inputs = desc->own_inputs;
  desc->input_room = RN_DESC_INPUTS;
  desc->arg_lengths = desc->own_args;
  desc->arg_room = RN_DESC_INPUTS;
  desc->controls = desc->own_controls;
  desc->control_room = RN_DESC_CONTROLS;
  desc->attrs = desc->own_attrs;
  desc->attr_room = RN_DESC_ATTRS;
  if (!op_type) rn_desc_fail(desc, rn_capi_null("TF_NewOperation", "op_type"));
  if (!oper_name) rn_desc_fail(desc, rn_capi_null("TF_NewOperation", "oper_name"));
  rn_desc_fail(desc, rn_desc_copy(desc, rn_str(op_type), &desc->op));
  rn_desc_fail(desc, rn_desc_copy(desc, rn_str(oper_name), &desc->name));
  return desc;
}

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                         const char* oper_name) {
  return TF_NewOperationLocked(graph, op_type, oper_name);
}

static void destroy(TF_OperationDescription* desc) {
  for (int32_t i = 0; i < desc->attr_count; ++i) {
    uint8_t kind = desc->attrs[i].value.kind;  // a function has attributes of its own
    if (kind == RN_ATTR_TENSOR || kind == RN_ATTR_FUNC) rn_attr_value_clear(&desc->attrs[i].value);
  }
  rn_arena_clear(&desc->arena);
  rn_status_free(desc->error);
  RN_FREE(rn_capi_allocator(), desc);
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  if (desc) rn_desc_fail(desc, rn_desc_copy(desc, rn_str(device), &desc->device));
}

static rn_status_t add_inputs(TF_OperationDescription* desc, const TF_Output* inputs, int count,
                              int32_t arg_length) {
  RN_RETURN_IF_ERROR(RESERVE(desc, inputs, input_count, input_room, count));
  RN_RETURN_IF_ERROR(RESERVE(desc, arg_lengths, arg_count, arg_room, 1));
  for (int i = 0; i < count; ++i) {
    if (!inputs[i].oper) {
      return rn_invalid_argument("Input %d of node '%s' has no operation", desc->input_count,
                                 desc->name.data);
    }
    desc->inputs[desc->input_count++] = rn_capi_edge(inputs[i]);
  }
  desc->arg_lengths[desc->arg_count++] = arg_length;
  return RN_OK;
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  if (desc) rn_desc_fail(desc, add_inputs(desc, &input, 1, RN_ARG_SINGLE));
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  if (!desc) return;
  if (num_inputs < 0 || (num_inputs > 0 && !inputs)) {
    rn_desc_fail(desc, rn_invalid_argument("TF_AddInputList: bad list of %d inputs for node '%s'",
                                           num_inputs, desc->name.data));
    return;
  }
  rn_desc_fail(desc, add_inputs(desc, inputs, num_inputs, num_inputs));
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  if (!desc) return;
  if (!input) {
    rn_desc_fail(desc, RN_CAPI_NULL("input"));
    return;
  }
  rn_status_t status = RESERVE(desc, controls, control_count, control_room, 1);
  if (rn_ok(status)) desc->controls[desc->control_count++] = rn_capi_node(input);
  rn_desc_fail(desc, status);
}

rn_status_t rn_desc_add_colocation(TF_OperationDescription* desc, rn_str_t value) {
  RN_RETURN_IF_ERROR(RESERVE(desc, colocations, colocation_count, colocation_room, 1));
  RN_RETURN_IF_ERROR(rn_desc_copy(desc, value, &desc->colocations[desc->colocation_count]));
  desc->colocation_count++;
  return RN_OK;
}

rn_status_t rn_desc_set_colocations(TF_OperationDescription* desc, int count,
                                    const rn_str_t* values) {
  desc->colocation_count = 0;
  for (int i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_desc_add_colocation(desc, values[i]));
  return RN_OK;
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  if (!desc) return;
  if (!op) {
    rn_desc_fail(desc, RN_CAPI_NULL("op"));
    return;
  }
  rn_str_t value;
  rn_status_t status =
      rn_arena_printf(&desc->arena, &value, RN_COLOCATION_PREFIX "%s", rn_capi_node(op)->name.data);
  if (rn_ok(status)) status = rn_desc_add_colocation(desc, value);
  rn_desc_fail(desc, status);
}

static rn_status_t inconsistent(TF_OperationDescription* desc, rn_str_t name,
                                const rn_attr_value_t* first, const rn_attr_value_t* second) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_capi_allocator());
  rn_strbuf_printf(&text, "Inconsistent values for attr '%.*s' ", RN_STR_ARGS(name));
  rn_attr_value_print(&text, first);
  rn_strbuf_printf(&text, " vs. ");
  rn_attr_value_print(&text, second);
  rn_strbuf_printf(&text, " while building NodeDef '%s'", desc->name.data);
  const rn_op_def_t* op = rn_op_find(desc->op);
  if (op) {
    rn_strbuf_printf(&text, " using ");
    rn_op_summary(&text, op);
  }
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_desc_add_attr(TF_OperationDescription* desc, const char* name,
                             const rn_attr_value_t* value) {
  rn_str_t text = rn_str(name);
  for (int32_t i = 0; i < desc->attr_count; ++i) {
    rn_attr_t* other = &desc->attrs[i];
    if (!rn_str_eq(other->name, text)) continue;
    if (rn_attr_value_eq(&other->value, value)) return RN_OK;
    return inconsistent(desc, text, &other->value, value);
  }
  RN_RETURN_IF_ERROR(RESERVE(desc, attrs, attr_count, attr_room, 1));
  rn_attr_t* attr = &desc->attrs[desc->attr_count];
  RN_RETURN_IF_ERROR(rn_desc_copy(desc, text, &attr->name));
  attr->value = *value;
  desc->attr_count++;
  return RN_OK;
}

static int compare_strings(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

// "_class": sorted, without duplicates.
static rn_status_t add_class(TF_OperationDescription* desc) {
  qsort(desc->colocations, (size_t)desc->colocation_count, sizeof *desc->colocations,
        compare_strings);
  int32_t count = 1;
  for (int32_t i = 1; i < desc->colocation_count; ++i) {
    if (!rn_str_eq(desc->colocations[i], desc->colocations[count - 1])) {
      desc->colocations[count++] = desc->colocations[i];
    }
  }
  rn_attr_value_t value = {
      .kind = RN_ATTR_STRING, .is_list = true, .count = count, .list_s = desc->colocations};
  return rn_desc_add_attr(desc, RN_COLOCATION_ATTR, &value);
}

static TF_Operation* finish(TF_OperationDescription* desc, TF_Status* status) {
  if (!desc) {
    rn_capi_set(status, rn_capi_null("TF_FinishOperation", "desc"));
    return NULL;
  }
  if (desc->colocation_count) rn_desc_fail(desc, add_class(desc));
  rn_status_t outcome = desc->error;
  desc->error = RN_OK;
  rn_node_t* node = NULL;
  if (rn_ok(outcome)) {
    rn_node_spec_t spec = {
        .op = desc->op,
        .name = desc->name,
        .device = desc->device,
        .inputs = desc->inputs,
        .input_count = desc->input_count,
        .controls = desc->controls,
        .control_count = desc->control_count,
        .attrs = desc->attrs,
        .attr_count = desc->attr_count,
        .arg_lengths = desc->arg_lengths,
        .arg_count = desc->arg_count,
    };
    outcome = rn_graph_add(desc->graph, &spec, &node);
  }
  destroy(desc);
  return rn_capi_ok(status, outcome) ? rn_capi_oper(node) : NULL;
}

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status) {
  return finish(desc, status);
}

// Clients cannot take the graph's lock, so the "Locked" functions take it like all others.
TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc, TF_Status* status) {
  return finish(desc, status);
}
