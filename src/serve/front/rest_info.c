// States and signatures of models: the GET requests of TensorFlow Serving's REST.
#include "proto/serving_metadata.pb.h"
#include "proto/serving_status.pb.h"
#include "serve/front/json.h"
#include "serve/front/json_proto.h"
#include "serve/front/rest.h"
#include "wire/decode.h"

// Makes the statuses of |info|'s versions, or of version |only| alone unless that is -1.
static rn_status_t make_states(const rn_model_info_t* info, int64_t only, rn_arena_t* arena,
                               rn_pb_serving_GetModelStatusResponse_t* out) {
  *out = (rn_pb_serving_GetModelStatusResponse_t){0};
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(arena, (size_t)info->version_count, &out->model_version_status.items));
  for (int i = 0; i < info->version_count; ++i) {
    const rn_version_info_t* version = &info->versions[i];
    if (only >= 0 && version->number != only) continue;
    rn_pb_serving_ModelVersionStatus_t* state =
        &out->model_version_status.items[out->model_version_status.count++];
    state->version = version->number;
    state->state = (int32_t)version->state;
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &state->status));
    state->status->error_code = (int32_t)version->code;
    state->status->error_message = rn_str(version->message);
  }
  return RN_OK;
}

static rn_status_t put_states(const rn_model_info_t* info, int64_t only, rn_arena_t* arena,
                              rn_strbuf_t* out) {
  rn_pb_serving_GetModelStatusResponse_t states;
  RN_RETURN_IF_ERROR(make_states(info, only, arena, &states));
  if (only >= 0 && !states.model_version_status.count)
    return rn_not_found("Could not find version %lld of model %.*s", (long long)only,
                        RN_STR_ARGS(info->name));
  if (!states.model_version_status.count)
    return rn_not_found("Could not find any versions of model %.*s", RN_STR_ARGS(info->name));
  return rn_json_put_message(out, &rn_pb_serving_GetModelStatusResponse_desc, &states,
                             RN_JSON_LINES);
}

static rn_status_t write_status(const rn_front_t* front, const rn_model_spec_t* spec,
                                rn_arena_t* arena, rn_strbuf_t* out) {
  rn_model_info_t* infos = NULL;
  int count = 0;
  rn_status_t status = rn_models_info(front->models, spec->name, arena, &infos, &count);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    return rn_not_found("Could not find any versions of model %.*s", RN_STR_ARGS(spec->name));
  }
  RN_RETURN_IF_ERROR(status);
  status = put_states(&infos[0], spec->version, arena, out);
  rn_models_info_clear(infos, count);
  rn_strbuf_append(out, RN_STR("\n"));
  return status;
}

static rn_status_t put_metadata(rn_version_t* version, rn_arena_t* arena, rn_strbuf_t* out) {
  rn_pb_google_protobuf_Int64Value_t number = {rn_version_number(version)};
  rn_pb_serving_ModelSpec_t spec = {
      .name = rn_version_model(version),
      .version_choice_case = rn_pb_serving_ModelSpec_version_field,
      .version = &number,
  };
  rn_pb_serving_SignatureDefMap_t* map = NULL;
  RN_RETURN_IF_ERROR(
      RN_PB_DECODE(serving_SignatureDefMap, rn_version_backend(version)->meta, NULL, arena, &map));
  rn_strbuf_append(out, RN_STR("{\n\"model_spec\":"));
  RN_RETURN_IF_ERROR(rn_json_put_message(out, &rn_pb_serving_ModelSpec_desc, &spec, RN_JSON_LINES));
  rn_strbuf_append(out, RN_STR(",\n\"metadata\": {\"signature_def\": "));
  RN_RETURN_IF_ERROR(
      rn_json_put_message(out, &rn_pb_serving_SignatureDefMap_desc, map, RN_JSON_LINES));
  rn_strbuf_append(out, RN_STR("}\n}\n"));
  return RN_OK;
}

rn_status_t rn_rest_write_info(const rn_front_t* front, const rn_rest_path_t* path,
                               rn_arena_t* arena, rn_strbuf_t* out) {
  if (path->verb == RN_REST_STATUS) return write_status(front, &path->spec, arena, out);
  rn_version_t* version = NULL;
  RN_RETURN_IF_ERROR(rn_models_find(front->models, &path->spec, &version));
  rn_status_t status = put_metadata(version, arena, out);
  rn_version_release(version);
  return status;
}
