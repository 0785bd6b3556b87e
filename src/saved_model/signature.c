// Signatures: the names under which a model's inputs and outputs are known. See saved_model.h.
#include "saved_model/saved_model.h"

rn_status_t rn_meta_graph_signature(const rn_meta_graph_t* meta, rn_str_t name,
                                    const rn_pb_SignatureDef_t** out) {
  *out = NULL;
  const rn_pb_MetaGraphDef_t* def = meta->def;
  for (uint32_t i = 0; i < def->signature_def.count; ++i)
    if (rn_str_eq(def->signature_def.items[i].key, name)) *out = def->signature_def.items[i].value;
  if (*out) return RN_OK;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  for (uint32_t i = 0; i < def->signature_def.count; ++i)
    if (!rn_str_starts_with(def->signature_def.items[i].key, RN_STR("__saved_model_")))
      rn_strbuf_printf(&buf, "%s%.*s", buf.size ? ", " : "",
                       RN_STR_ARGS(def->signature_def.items[i].key));
  rn_status_t status = rn_not_found("The model has no signature '%.*s'; it has: %.*s",
                                    RN_STR_ARGS(name), RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t find_port(rn_graph_t* graph, rn_port_t* port) {
  int32_t encoding = port->info->encoding_case;
  if (encoding != rn_pb_TensorInfo_name_field)
    return rn_unimplemented(
        "'%s' is no single tensor but %s", port->name.data,
        encoding == rn_pb_TensorInfo_coo_sparse_field ? "a sparse one" : "made of several");
  RN_RETURN_IF_ERROR(rn_edge_by_name(graph, port->info->name, &port->edge));
  if (port->edge.index < port->edge.node->output_count) return RN_OK;
  return rn_not_found("'%s' is '%.*s', but that node has %d outputs", port->name.data,
                      RN_STR_ARGS(port->info->name), port->edge.node->output_count);
}

rn_status_t rn_signature_ports(rn_graph_t* graph, const rn_pb_SignatureDef_t* signature,
                               bool is_output, rn_arena_t* arena, rn_port_t** out,
                               int32_t* out_count) {
  const void* const list = is_output ? (const void*)&signature->outputs : &signature->inputs;
  const rn_pb_message_desc_t* desc =
      is_output ? &rn_pb_SignatureDef_OutputsEntry_desc : &rn_pb_SignatureDef_InputsEntry_desc;
  const void** entries = NULL;
  size_t count = 0;
  *out = NULL;
  *out_count = 0;
  RN_RETURN_IF_ERROR(rn_pb_map_sorted(desc, list, arena, &entries, &count));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, out));
  for (size_t i = 0; i < count; ++i) {
    // Both kinds of entries have the same members.
    const rn_pb_SignatureDef_InputsEntry_t* entry = entries[i];
    rn_port_t* port = &(*out)[i];
    RN_RETURN_IF_ERROR(rn_arena_str(arena, entry->key, &port->name));
    port->info = entry->value;
    if (graph) RN_RETURN_IF_ERROR(find_port(graph, port));
  }
  *out_count = (int32_t)count;
  return RN_OK;
}
