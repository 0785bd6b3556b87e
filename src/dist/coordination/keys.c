// Keys and values of the coordination service: see service.h.
#include <stdio.h>
#include <stdlib.h>

#include "dist/coordination/internal.h"
#include "proto/coordination_service.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

static void put_entry(rn_strbuf_t* out, uint32_t field, rn_str_t key, rn_str_t value) {
  size_t mark = rn_pb_begin(out, field);
  rn_pb_put_str(out, rn_pb_KeyValueEntry_key_field, key);
  rn_pb_put_str(out, rn_pb_KeyValueEntry_value_field, value);
  rn_pb_end(out, mark);
}

// Tells |key| to those who wait for it.
static rn_status_t tell_value(rn_coordination_t* self, rn_str_t key, rn_str_t value,
                              rn_coordination_wait_t** ready) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, self->options.allocator);
  put_entry(&bytes, rn_pb_GetKeyValueResponse_kv_field, key, value);
  rn_status_t status = rn_strbuf_status(&bytes);
  for (rn_coordination_wait_t** at = &self->waits; rn_ok(status) && *at;) {
    rn_coordination_wait_t* wait = *at;
    bool is_for_it = !wait->barrier && !wait->awaits_error &&
                     rn_str_eq(rn_str_n(wait->key, wait->key_size), key);
    if (is_for_it)
      rn_coordination_pick(at, rn_message_add(&wait->answer, rn_strbuf_view(&bytes)), ready);
    else
      at = &wait->next;
  }
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t insert_value(rn_coordination_call_t* call, rn_str_t key) {
  rn_str_t entry = rn_field_bytes(call->request, rn_pb_InsertKeyValueRequest_kv_field);
  rn_str_t value = rn_field_bytes(entry, rn_pb_KeyValueEntry_value_field);
  bool may = rn_field_value(call->request, rn_pb_InsertKeyValueRequest_allow_overwrite_field);
  RN_RETURN_IF_ERROR(rn_values_put(&call->self->values, key, value, may));
  return tell_value(call->self, key, value, &call->ready);
}

static rn_status_t get_value(rn_coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  rn_coordination_wait_t* wait = NULL;
  if (rn_values_get(&call->self->values, key, &value)) {
    put_entry(&call->answer, rn_pb_GetKeyValueResponse_kv_field, key, value);
    return RN_OK;
  }
  call->waits = true;
  return rn_coordination_wait(call->self, call->in, key, &wait);
}

static rn_status_t try_get_value(rn_coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  if (!rn_values_get(&call->self->values, key, &value))
    return rn_not_found("Config key %.*s not found.", RN_STR_ARGS(key));
  put_entry(&call->answer, rn_pb_TryGetKeyValueResponse_kv_field, key, value);
  return RN_OK;
}

static rn_status_t increment_value(rn_coordination_call_t* call, rn_str_t key) {
  rn_str_t value;
  char text[32] = "0";
  int64_t by =
      (int64_t)rn_field_value(call->request, rn_pb_IncrementKeyValueRequest_increment_field);
  if (rn_values_get(&call->self->values, key, &value)) {
    if (value.size >= sizeof text)
      return rn_invalid_argument("The value of %.*s is no number", RN_STR_ARGS(key));
    memcpy(text, value.data, value.size);
    text[value.size] = '\0';
  }
  char* end = NULL;
  long long number = strtoll(text, &end, 10);
  if (end == text || *end)
    return rn_invalid_argument("The value of %.*s is no number", RN_STR_ARGS(key));
  snprintf(text, sizeof text, "%lld", (long long)((uint64_t)number + (uint64_t)by));
  RN_RETURN_IF_ERROR(rn_values_put(&call->self->values, key, rn_str(text), true));
  put_entry(&call->answer, rn_pb_IncrementKeyValueResponse_kv_field, key, rn_str(text));
  return tell_value(call->self, key, rn_str(text), &call->ready);
}

static void list_value(void* self, rn_str_t key, rn_str_t value) {
  put_entry(self, rn_pb_GetKeyValueDirResponse_kv_field, key, value);
}

static rn_status_t list_values(rn_coordination_call_t* call, rn_str_t key) {
  rn_pb_put_str(&call->answer, rn_pb_GetKeyValueDirResponse_directory_key_field, key);
  rn_values_list(&call->self->values, key, list_value, &call->answer);
  return RN_OK;
}

static rn_status_t delete_value(rn_coordination_call_t* call, rn_str_t key) {
  rn_values_remove(&call->self->values, key,
                   rn_field_value(call->request, rn_pb_DeleteKeyValueRequest_is_directory_field));
  return RN_OK;
}

// The call |run| for the key in |given|.
static rn_status_t with_key(rn_coordination_call_t* call, rn_str_t given,
                            rn_status_t (*run)(rn_coordination_call_t* call, rn_str_t key)) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, call->self->options.allocator);
  rn_status_t status = rn_values_key(given, &key);
  if (rn_ok(status)) status = run(call, rn_strbuf_view(&key));
  rn_strbuf_clear(&key);
  return status;
}

#define KEY_OF(call, Message) rn_field_bytes((call)->request, rn_pb_##Message##_key_field)
rn_status_t rn_coordination_insert(rn_coordination_call_t* call) {
  rn_str_t entry = rn_field_bytes(call->request, rn_pb_InsertKeyValueRequest_kv_field);
  return with_key(call, rn_field_bytes(entry, rn_pb_KeyValueEntry_key_field), insert_value);
}
rn_status_t rn_coordination_get(rn_coordination_call_t* call) {
  return with_key(call, KEY_OF(call, GetKeyValueRequest), get_value);
}
rn_status_t rn_coordination_try_get(rn_coordination_call_t* call) {
  return with_key(call, KEY_OF(call, TryGetKeyValueRequest), try_get_value);
}
rn_status_t rn_coordination_increment(rn_coordination_call_t* call) {
  return with_key(call, KEY_OF(call, IncrementKeyValueRequest), increment_value);
}
rn_status_t rn_coordination_list(rn_coordination_call_t* call) {
  return with_key(call,
                  rn_field_bytes(call->request, rn_pb_GetKeyValueDirRequest_directory_key_field),
                  list_values);
}
rn_status_t rn_coordination_delete(rn_coordination_call_t* call) {
  return with_key(call, KEY_OF(call, DeleteKeyValueRequest), delete_value);
}
