// Reads a GraphDef. Scans the bytes for the nodes' names, ops and inputs without decoding them into
// messages, which would take more memory than the graph. Decodes everything else (library,
// versions) as a GraphDef of its own.
#include "framework/attr_proto.h"
#include "graph/import_state.h"
#include "wire/decode.h"
#include "wire/scan.h"

static rn_status_t invalid(void) {
  return rn_invalid_argument("Invalid GraphDef");  // clients compare the whole message
}

// Counts nodes and their inputs, and gathers everything else.
static rn_status_t measure(rn_import_t* import, rn_str_t bytes, rn_strbuf_t* rest) {
  uint64_t nodes = 0, inputs = 0;
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field = {0};
  for (const char* start = scan.next; rn_pb_scan_next(&scan, &field); start = scan.next) {
    if (field.number != rn_pb_GraphDef_node_field || field.wire != RN_PB_WIRE_LENGTH) {
      rn_strbuf_append_n(rest, start, (size_t)(scan.next - start));
      continue;
    }
    nodes++;
    rn_pb_scan_t node = rn_pb_scan(field.bytes);
    while (rn_pb_scan_next(&node, &field)) inputs += field.number == rn_pb_NodeDef_input_field;
    if (node.is_bad) return invalid();
  }
  if (scan.is_bad) return invalid();
  if (nodes >= INT32_MAX || inputs >= INT32_MAX) {
    return rn_resource_exhausted("Too many nodes or inputs in the GraphDef");
  }
  import->node_count = (int32_t)nodes;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, nodes, &import->defs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, nodes + 1, &import->first_ref));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&import->scratch, inputs, &import->inputs));
  return rn_strbuf_status(rest);
}

static uint32_t read_node(rn_import_t* import, rn_str_t bytes, rn_import_def_t* def,
                          uint32_t inputs) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field = {0};
  const char* attrs = NULL;
  for (const char* start = scan.next; rn_pb_scan_next(&scan, &field); start = scan.next) {
    if (field.wire != RN_PB_WIRE_LENGTH) continue;
    switch (field.number) {
      case rn_pb_NodeDef_name_field:
        def->name = field.bytes;
        break;
      case rn_pb_NodeDef_op_field:
        def->op = field.bytes;
        break;
      case rn_pb_NodeDef_input_field:
        import->inputs[inputs++] = field.bytes;
        break;
      case rn_pb_NodeDef_device_field:
        def->device = field.bytes;
        break;
      case rn_pb_NodeDef_attr_field:
        if (!attrs) attrs = start;
        break;
      case rn_pb_NodeDef_experimental_type_field:
        def->full_type = field.bytes;
        break;
      default:
        break;
    }
  }
  if (attrs) def->attrs = rn_str_n(attrs, (size_t)(scan.end - attrs));
  return inputs;
}

static void read_nodes(rn_import_t* import, rn_str_t bytes) {
  uint32_t inputs = 0;
  int32_t nodes = 0;
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field = {0};
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != rn_pb_GraphDef_node_field || field.wire != RN_PB_WIRE_LENGTH) continue;
    import->first_ref[nodes] = inputs;
    inputs = read_node(import, field.bytes, &import->defs[nodes++], inputs);
  }
  import->first_ref[nodes] = inputs;
}

rn_status_t rn_import_read(rn_import_t* import, rn_str_t bytes) {
  if (bytes.size > INT32_MAX) return invalid();  // the format's own limit
  rn_strbuf_t rest;
  rn_strbuf_init(&rest, import->graph->allocator);
  rn_status_t status = measure(import, bytes, &rest);
  if (rn_ok(status)) {
    read_nodes(import, bytes);
    rn_pb_limits_t limits = {.copy_bytes = true};
    status = RN_PB_DECODE(GraphDef, rn_strbuf_view(&rest), &limits, &import->scratch, &import->def);
    if (!rn_ok(status) && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
      rn_status_free(status);
      status = invalid();
    }
  }
  rn_strbuf_clear(&rest);
  if (rn_ok(status)) import->producer = import->def->versions ? import->def->versions->producer : 0;
  return status;
}

bool rn_import_next_attr(rn_pb_scan_t* scan, rn_import_attr_t* out) {
  rn_pb_field_t field = {0};
  while (rn_pb_scan_next(scan, &field)) {
    if (field.number != rn_pb_NodeDef_attr_field || field.wire != RN_PB_WIRE_LENGTH) continue;
    *out = (rn_import_attr_t){0};
    rn_pb_scan_t entry = rn_pb_scan(field.bytes);
    while (rn_pb_scan_next(&entry, &field)) {
      if (field.wire != RN_PB_WIRE_LENGTH) continue;
      if (field.number == rn_pb_NodeDef_AttrEntry_key_field) out->key = field.bytes;
      if (field.number == rn_pb_NodeDef_AttrEntry_value_field) out->value = field.bytes;
    }
    if (entry.is_bad) scan->is_bad = true;
    return !entry.is_bad;
  }
  return false;
}

// Reads a value that is a single field of a plain kind, as nearly all are; false for any other.
static bool read_plain(rn_str_t bytes, rn_attr_value_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field = {0};
  if (!rn_pb_scan_next(&scan, &field) || scan.next != scan.end) return false;
  *out = (rn_attr_value_t){0};
  switch (field.number << 3 | field.wire) {
    case rn_pb_AttrValue_type_field << 3 | RN_PB_WIRE_VARINT:
      out->kind = RN_ATTR_TYPE;
      out->type = (int32_t)(uint32_t)field.value;
      return true;
    case rn_pb_AttrValue_i_field << 3 | RN_PB_WIRE_VARINT:
      out->kind = RN_ATTR_INT;
      out->i = (int64_t)field.value;
      return true;
    case rn_pb_AttrValue_b_field << 3 | RN_PB_WIRE_VARINT:
      out->kind = RN_ATTR_BOOL;
      out->b = field.value != 0;
      return true;
    case rn_pb_AttrValue_f_field << 3 | RN_PB_WIRE_32:
      out->kind = RN_ATTR_FLOAT;
      memcpy(&out->f, &field.value, sizeof out->f);
      return true;
    default:
      return false;
  }
}

// The most bytes that one tensor of |value| may take.
static size_t tensor_limit(const rn_import_t* import, const rn_pb_AttrValue_t* value) {
  const rn_pb_AttrValue_ListValue_t* list =
      value->value_case == rn_pb_AttrValue_list_field ? value->list : NULL;
  size_t tensors = list && list->tensor.count ? list->tensor.count : 1;
  // Functions nest attributes, so each tensor in them gets a fixed share.
  bool nests = value->value_case == rn_pb_AttrValue_func_field || (list && list->func.count);
  return import->tensor_budget / (nests ? 1024 : tensors);
}

static void spend(rn_import_t* import, const rn_attr_value_t* value) {
  if (value->kind != RN_ATTR_TENSOR) return;
  int32_t count = value->is_list ? value->count : 1;
  for (int32_t i = 0; i < count; i++) {
    size_t bytes = rn_tensor_bytes(value->is_list ? value->list_tensor[i] : value->tensor);
    import->tensor_budget -= bytes < import->tensor_budget ? bytes : import->tensor_budget;
  }
}

rn_status_t rn_import_read_value(rn_import_t* import, rn_str_t bytes, rn_attr_value_t* out) {
  if (read_plain(bytes, out)) return RN_OK;
  rn_pb_AttrValue_t* message = NULL;
  rn_arena_mark_t mark = rn_arena_mark(&import->scratch);
  rn_status_t status = RN_PB_DECODE(AttrValue, bytes, NULL, &import->scratch, &message);
  if (rn_ok(status)) {
    status = rn_attr_value_from_proto(message, tensor_limit(import, message), &import->graph->arena,
                                      out);
  }
  rn_arena_rewind(&import->scratch, mark);
  if (rn_ok(status)) spend(import, out);
  return status;
}
