// ApiDef maps: a TF_ApiDefMap is an rn_api_def_map_t.
#include "framework/api_def.h"

#include "capi/internal.h"

static rn_api_def_map_t* map_of(TF_ApiDefMap* map) { return (rn_api_def_map_t*)map; }

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  rn_api_def_map_t* map = NULL;
  rn_status_t outcome;
  if (op_list_buffer && (op_list_buffer->data || !op_list_buffer->length))
    outcome = rn_api_def_map_create(rn_str_n(op_list_buffer->data, op_list_buffer->length),
                                    rn_capi_allocator(), &map);
  else
    outcome = RN_CAPI_NULL("op_list_buffer");
  rn_capi_set(status, outcome);
  return (TF_ApiDefMap*)map;
}

void TF_DeleteApiDefMap(TF_ApiDefMap* apimap) { rn_api_def_map_destroy(map_of(apimap)); }

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                     TF_Status* status) {
  rn_capi_set(status, api_def_map && (text || !text_len)
                          ? rn_api_def_map_put(map_of(api_def_map), rn_str_n(text, text_len))
                          : RN_CAPI_NULL(api_def_map ? "text" : "api_def_map"));
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len,
                           TF_Status* status) {
  if (!api_def_map || !name) {
    rn_capi_set(status, RN_CAPI_NULL(api_def_map ? "name" : "api_def_map"));
    return NULL;
  }
  rn_strbuf_t buf;
  TF_Buffer* buffer = NULL;
  bool has_op = false;
  rn_strbuf_init(&buf, rn_capi_allocator());
  rn_status_t outcome =
      rn_api_def_map_get(map_of(api_def_map), rn_str_n(name, name_len), &buf, &has_op);
  // Stock returns NULL and OK for an op that is not in the map.
  if (has_op && rn_ok(outcome)) outcome = rn_capi_buffer_make(&buf, &buffer);
  rn_strbuf_clear(&buf);
  rn_capi_set(status, outcome);
  return buffer;
}
