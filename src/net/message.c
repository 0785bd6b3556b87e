// Messages in pieces: see message.h.
#include "net/message.h"

void rn_message_init(rn_message_t* message, rn_allocator_t allocator) {
  *message = (rn_message_t){.allocator = allocator};
}

void rn_message_clear(rn_message_t* message) {
  for (size_t i = 0; i < message->pieces.count; ++i)
    rn_buffer_release(message->pieces.items[i].buffer);
  if (message->pieces.items) rn_vec_free(&message->pieces, message->allocator);
  message->size = 0;
}

rn_status_t rn_message_lend(rn_message_t* message, rn_buffer_t* buffer, rn_str_t bytes) {
  if (!bytes.size) return RN_OK;
  RN_RETURN_IF_ERROR(rn_vec_push(&message->pieces, message->allocator,
                                 (rn_piece_t){.bytes = bytes, .buffer = buffer}));
  rn_buffer_retain(buffer);
  message->size += bytes.size;
  return RN_OK;
}

rn_status_t rn_message_add(rn_message_t* message, rn_str_t bytes) {
  if (!bytes.size) return RN_OK;
  rn_buffer_t* buffer = NULL;
  RN_RETURN_IF_ERROR(rn_buffer_create(message->allocator, RN_UINT8, bytes.size, &buffer));
  memcpy(buffer->data, bytes.data, bytes.size);
  rn_status_t status = rn_message_lend(message, buffer, rn_str_n(buffer->data, bytes.size));
  rn_buffer_release(buffer);
  return status;
}

rn_str_t rn_message_view(const rn_message_t* message) {
  return message->pieces.count ? message->pieces.items[0].bytes : RN_STR("");
}

void rn_message_flatten(rn_message_t* message, rn_strbuf_t* out) {
  for (size_t i = 0; i < message->pieces.count; ++i)
    rn_strbuf_append(out, message->pieces.items[i].bytes);
  rn_message_clear(message);
}
