// Signatures of a loaded model: see model.h.
#include "saved_model/model.h"

rn_status_t rn_saved_model_choose(const rn_saved_model_t* file, const rn_str_t* tags, int tag_count,
                                  const rn_meta_graph_t** out) {
  if (tags) return rn_saved_model_find(file, tags, tag_count, out);
  rn_str_t serve = RN_STR("serve");
  rn_status_t status = rn_saved_model_find(file, &serve, 1, out);
  if (rn_ok(status) || file->graph_count != 1) return status;
  rn_status_free(status);
  *out = &file->graphs[0];
  return RN_OK;
}

static rn_status_t describe_port(rn_arena_t* arena, const rn_port_t* port, rn_model_port_t* out) {
  rn_str_t tensor;
  RN_RETURN_IF_ERROR(rn_arena_str(arena, port->info->name, &tensor));
  *out = (rn_model_port_t){.name = port->name.data,
                           .tensor = tensor.data,
                           .dtype = (TF_DataType)port->info->dtype,
                           .rank = -1};
  const rn_pb_TensorShapeProto_t* shape = port->info->tensor_shape;
  if (!shape || shape->unknown_rank) return RN_OK;
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape->dim.count, &dims));
  for (uint32_t i = 0; i < shape->dim.count; ++i) dims[i] = shape->dim.items[i].size;
  out->rank = (int)shape->dim.count;
  out->dims = dims;
  return RN_OK;
}

static rn_status_t describe(rn_graph_t* graph, const rn_pb_SignatureDef_t* def, rn_arena_t* arena,
                            rn_model_signature_t* out) {
  for (int side = 0; side < 2; ++side) {
    RN_RETURN_IF_ERROR(
        rn_signature_ports(graph, def, side == 1, arena, &out->ports[side], &out->counts[side]));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)out->counts[side], &out->faces[side]));
    for (int i = 0; i < out->counts[side]; ++i)
      RN_RETURN_IF_ERROR(describe_port(arena, &out->ports[side][i], &out->faces[side][i]));
  }
  return RN_OK;
}

rn_status_t rn_model_signatures(const rn_meta_graph_t* meta, rn_graph_t* graph, rn_arena_t* arena,
                                rn_model_signature_t** out, int* out_count) {
  const rn_pb_MetaGraphDef_t* def = meta->def;
  *out_count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)def->signature_def.count, out));
  for (uint32_t i = 0; i < def->signature_def.count; ++i) {
    rn_str_t key = def->signature_def.items[i].key, name;
    if (rn_str_starts_with(key, RN_STR("__saved_model_"))) continue;
    RN_RETURN_IF_ERROR(rn_arena_str(arena, key, &name));
    rn_model_signature_t* signature = &(*out)[*out_count];
    *signature = (rn_model_signature_t){.name = name.data};
    rn_status_t status = describe(graph, def->signature_def.items[i].value, arena, signature);
    if (rn_ok(status)) {
      ++*out_count;
    } else if (rn_status_code(status) == RN_CODE_UNIMPLEMENTED) {
      rn_status_free(status);
    } else {
      return rn_status_annotate(status, "\n\twhile looking at the signature '%s'", name.data);
    }
  }
  return RN_OK;
}

static rn_status_t find_edges(const rn_model_signature_t* signature, int side,
                              const char* const* names, int count, rn_edge_t* out) {
  for (int i = 0; i < count; ++i) {
    int p = 0;
    while (p < signature->counts[side] && names[i] &&
           strcmp(signature->ports[side][p].name.data, names[i]) != 0)
      ++p;
    if (!names[i] || p == signature->counts[side])
      return rn_invalid_argument("The signature '%s' has no %s '%s'", signature->name,
                                 side ? "output" : "input", names[i] ? names[i] : "NULL");
    out[i] = signature->ports[side][p].edge;
  }
  return RN_OK;
}

static rn_status_t check_complete(const rn_model_signature_t* signature, const char* const* names,
                                  int count) {
  for (int p = 0; p < signature->counts[0]; ++p) {
    int i = 0;
    while (i < count && strcmp(signature->ports[0][p].name.data, names[i]) != 0) ++i;
    if (i == count)
      return rn_invalid_argument("The signature '%s' wants the input '%s' too", signature->name,
                                 signature->ports[0][p].name.data);
  }
  return RN_OK;
}

rn_status_t rn_model_signature_edges(const rn_model_signature_t* signature,
                                     const char* const* input_names, int input_count,
                                     const char* const* output_names, int output_count,
                                     rn_edge_t* out_inputs, rn_edge_t* out_outputs) {
  RN_RETURN_IF_ERROR(find_edges(signature, 0, input_names, input_count, out_inputs));
  RN_RETURN_IF_ERROR(check_complete(signature, input_names, input_count));
  return find_edges(signature, 1, output_names, output_count, out_outputs);
}
