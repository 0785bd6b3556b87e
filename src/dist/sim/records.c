// Carries records between simulated processes: see records.h.
#include "dist/sim/records.h"

static size_t count_of(const rn_record_field_t* field, const rn_record_t* record) {
  return *(const size_t*)rn_record_at(record, field->more);
}

static rn_status_t copy_strs(rn_arena_t* arena, const rn_str_t* from, size_t count,
                             const rn_str_t** out) {
  rn_str_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  for (size_t i = 0; i < count; ++i) RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i], &copies[i]));
  *out = copies;
  return RN_OK;
}

static rn_status_t copy_ints(rn_arena_t* arena, const int64_t* from, size_t count,
                             const int64_t** out) {
  int64_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  if (count) memcpy(copies, from, count * sizeof *from);
  *out = copies;
  return RN_OK;
}

static rn_status_t copy_named(rn_arena_t* arena, const rn_named_tensor_t* from, size_t count,
                              const rn_named_tensor_t** out) {
  rn_named_tensor_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  *out = copies;
  for (size_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i].name, &copies[i].name));
    RN_RETURN_IF_ERROR(rn_tensor_copy(&from[i].value, arena->allocator, &copies[i].value));
  }
  return RN_OK;
}

static rn_status_t copy_tensors(rn_arena_t* arena, const rn_tensor_t* from, size_t count,
                                const rn_tensor_t** out) {
  rn_tensor_t* copies = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &copies));
  *out = copies;
  for (size_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_copy(&from[i], arena->allocator, &copies[i]));
  return RN_OK;
}

// Pointers to what is not copied yet: the callee must not free it.
static void forget(const rn_record_field_t* field, void* at) {
  switch ((rn_record_field_kind_t)field->kind) {
    case RN_FIELD_NAMED:
    case RN_FIELD_TENSORS:
    case RN_FIELD_LOCAL:
    case RN_FIELD_VALUES:
    case RN_FIELD_RETURNED:
    case RN_FIELD_DEVICES:
      memset(at, 0, sizeof(void*));
      return;
    case RN_FIELD_VALUE:
      *(rn_tensor_t*)at = (rn_tensor_t){0};
      return;
    default:
      return;
  }
}

static rn_status_t ask_field(const rn_record_field_t* field, const rn_call_t* from, rn_record_t* to,
                             rn_arena_t* arena) {
  const void* source = rn_record_at(from, field->at);
  void* at = rn_record_at(to, field->at);
  switch ((rn_record_field_kind_t)field->kind) {
    case RN_FIELD_STR:
      return rn_arena_str(arena, *(const rn_str_t*)source, at);
    case RN_FIELD_STRS:
      return copy_strs(arena, *(const rn_str_t* const*)source, count_of(field, to), at);
    case RN_FIELD_INTS:
      return copy_ints(arena, *(const int64_t* const*)source, count_of(field, to), at);
    case RN_FIELD_NAMED:
      return copy_named(arena, *(const rn_named_tensor_t* const*)source, count_of(field, to), at);
    case RN_FIELD_TENSORS:
      return copy_tensors(arena, *(const rn_tensor_t* const*)source, count_of(field, to), at);
    case RN_FIELD_VALUES:
      return RN_ARENA_ARRAY(arena, count_of(field, to), (rn_tensor_t**)at);
    default:
      return RN_OK;
  }
}

rn_status_t rn_record_ask(const rn_record_kind_t* kind, const rn_call_t* from, rn_record_t* to,
                          rn_arena_t* arena) {
  memcpy(to, from, kind->size);
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field)
    forget(field, rn_record_at(to, field->at));
  rn_record_open(kind, to, arena->allocator);
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field)
    RN_RETURN_IF_ERROR(ask_field(field, from, to, arena));
  return RN_OK;
}

// The response's tensors: |*out_count| of them, NULL if the field has none.
static rn_tensor_t* answer_tensors(const rn_record_field_t* field, const rn_record_t* record,
                                   size_t* out_count) {
  void* at = rn_record_at(record, field->at);
  bool is_array = field->kind == RN_FIELD_VALUES || field->kind == RN_FIELD_RETURNED;
  *out_count = is_array ? count_of(field, record) : field->kind == RN_FIELD_VALUE;
  return is_array ? *(rn_tensor_t**)at : *out_count ? at : NULL;
}

static rn_status_t copy_devices(const rn_device_info_t* from, size_t count, rn_device_info_t* to,
                                rn_arena_t* arena) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i].name, &to[i].name));
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i].type, &to[i].type));
    RN_RETURN_IF_ERROR(rn_arena_str(arena, from[i].description, &to[i].description));
  }
  return RN_OK;
}

rn_status_t rn_record_settle(const rn_record_kind_t* kind, rn_record_t* record, rn_arena_t* arena) {
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field) {
    size_t count;
    rn_tensor_t* values = answer_tensors(field, record, &count);
    for (size_t i = 0; i < count; ++i) {
      rn_tensor_t copy = {0};
      if (!rn_tensor_is_set(&values[i])) continue;
      RN_RETURN_IF_ERROR(rn_tensor_copy(&values[i], arena->allocator, &copy));
      rn_tensor_clear(&values[i]);
      values[i] = copy;
    }
    if (field->kind != RN_FIELD_DEVICES) continue;
    rn_device_info_t* devices = *(rn_device_info_t**)rn_record_at(record, field->at);
    RN_RETURN_IF_ERROR(copy_devices(devices, count_of(field, record), devices, arena));
  }
  return RN_OK;
}

static rn_status_t answer_devices(const rn_record_field_t* field, rn_record_t* from,
                                  rn_call_t* to) {
  rn_device_info_t** out = rn_record_at(to, field->at);
  size_t count = count_of(field, from);
  rn_arena_t* arena = rn_record_at(to, field[1].at);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, out));
  *(size_t*)rn_record_at(to, field->more) = count;
  return copy_devices(*(rn_device_info_t**)rn_record_at(from, field->at), count, *out, arena);
}

static rn_status_t answer_field(const rn_record_field_t* field, rn_record_t* from, rn_call_t* to) {
  void *source = rn_record_at(from, field->at), *at = rn_record_at(to, field->at);
  size_t count;
  rn_tensor_t* values = answer_tensors(field, from, &count);
  switch ((rn_record_field_kind_t)field->kind) {
    case RN_FIELD_PLAIN:
      memcpy(at, source, field->more);
      return RN_OK;
    case RN_FIELD_BUFFER: {
      rn_str_t bytes = rn_strbuf_view(source);
      if (bytes.size) rn_strbuf_append(at, bytes);
      return RN_OK;
    }
    case RN_FIELD_DEVICES:
      return answer_devices(field, from, to);
    case RN_FIELD_RETURNED:
      *(rn_tensor_t**)at = values;
      *(size_t*)rn_record_at(to, field->more) = count;
      memset(source, 0, sizeof values);
      return RN_OK;
    case RN_FIELD_VALUE:
    case RN_FIELD_VALUES:
      for (size_t i = 0; i < count; ++i) {
        (field->kind == RN_FIELD_VALUE ? (rn_tensor_t*)at : *(rn_tensor_t**)at)[i] = values[i];
        values[i] = (rn_tensor_t){0};
      }
      return RN_OK;
    default:
      return RN_OK;
  }
}

rn_status_t rn_record_answer(const rn_record_kind_t* kind, rn_record_t* from, rn_call_t* to) {
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field)
    RN_RETURN_IF_ERROR(answer_field(field, from, to));
  return RN_OK;
}

static size_t bytes_of(const rn_tensor_t* values, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i)
    if (rn_tensor_is_set(&values[i]) && values[i].dtype == RN_FLOAT)
      bytes += rn_tensor_bytes(&values[i]);
  return bytes;
}

static size_t bytes_asked(const rn_record_field_t* field, const rn_record_t* record) {
  const void* at = rn_record_at(record, field->at);
  size_t bytes = 0;
  if (field->kind == RN_FIELD_TENSORS)
    bytes = bytes_of(*(const rn_tensor_t* const*)at, count_of(field, record));
  if (field->kind == RN_FIELD_NAMED)
    for (size_t i = 0; i < count_of(field, record); ++i)
      bytes += bytes_of(&(*(const rn_named_tensor_t* const*)at)[i].value, 1);
  return bytes;
}

size_t rn_record_bytes(const rn_record_kind_t* kind, const rn_record_t* record, bool is_answer) {
  size_t bytes = 0, count;
  for (const rn_record_field_t* field = kind->fields; field->kind != RN_FIELD_END; ++field) {
    const rn_tensor_t* values = answer_tensors(field, record, &count);
    bytes += is_answer ? bytes_of(values, count) : bytes_asked(field, record);
  }
  return bytes;
}
