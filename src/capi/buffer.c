// TF_Buffer: bytes with their deallocator. Clients read and write the fields.
#include "capi/internal.h"

// Bytes that a client may own are allocated with malloc.
static void free_bytes(void* data, size_t length) {
  (void)length;
  free(data);
}

TF_Buffer* TF_NewBuffer(void) {
  TF_Buffer* buffer = NULL;
  rn_status_t status = RN_NEW(rn_capi_allocator(), &buffer);
  if (!rn_ok(status)) rn_status_free(status);
  return buffer;
}

TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len) {
  if (!proto && proto_len) return NULL;
  TF_Buffer* buffer = TF_NewBuffer();
  if (!buffer) return NULL;
  size_t size = proto_len;
  void* copy = malloc(size ? size : 1);
  if (!copy) {
    TF_DeleteBuffer(buffer);
    return NULL;
  }
  if (size) memcpy(copy, proto, size);
  *buffer = (TF_Buffer){copy, size, free_bytes};
  return buffer;
}

void TF_DeleteBuffer(TF_Buffer* buffer) {
  if (!buffer) return;
  if (buffer->data_deallocator) {
    buffer->data_deallocator((void*)(uintptr_t)buffer->data, buffer->length);
  }
  RN_FREE(rn_capi_allocator(), buffer);
}

TF_Buffer TF_GetBuffer(TF_Buffer* buffer) { return buffer ? *buffer : (TF_Buffer){0}; }

rn_status_t rn_capi_buffer_check(const TF_Buffer* out) {
  if (!out) return rn_invalid_argument("The TF_Buffer to write to must not be NULL");
  if (out->data) return rn_invalid_argument("Passing non-empty TF_Buffer is invalid.");
  return RN_OK;
}

static rn_status_t move_bytes(rn_strbuf_t* buf, TF_Buffer* out) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(buf));
  rn_str_t text = rn_strbuf_view(buf);
  if (buf->data && buf->allocator.fn == rn_allocator_system().fn) {
    // The bytes come from malloc already: moves them.
    *out = (TF_Buffer){buf->data, text.size, free_bytes};
    *buf = (rn_strbuf_t){.allocator = buf->allocator};
    return RN_OK;
  }
  void* copy = malloc(text.size ? text.size : 1);
  if (!copy) return rn_out_of_memory();
  if (text.size) memcpy(copy, text.data, text.size);
  *out = (TF_Buffer){copy, text.size, free_bytes};
  return RN_OK;
}

rn_status_t rn_capi_buffer_take(rn_strbuf_t* buf, TF_Buffer* out) {
  rn_status_t status = rn_capi_buffer_check(out);
  if (rn_ok(status)) status = move_bytes(buf, out);
  rn_strbuf_clear(buf);
  return status;
}

rn_status_t rn_capi_buffer_make(rn_strbuf_t* buf, TF_Buffer** out) {
  *out = TF_NewBuffer();
  rn_status_t status = *out ? move_bytes(buf, *out) : rn_out_of_memory();
  rn_strbuf_clear(buf);
  if (!rn_ok(status)) {
    TF_DeleteBuffer(*out);
    *out = NULL;
  }
  return status;
}

rn_status_t rn_capi_encode(const rn_pb_message_desc_t* desc, const void* message,
                           rn_strbuf_t* out) {
  static const rn_pb_encode_options_t options = {.sort_maps = true};
  return rn_pb_encode(desc, message, &options, out);
}
