// A message of a call: pieces of bytes.
//
// A message to send references the buffers of its tensors; a received one is a single piece.
#ifndef RUNNEL_NET_MESSAGE_H_
#define RUNNEL_NET_MESSAGE_H_

#include "base/str.h"
#include "base/vec.h"
#include "tensor/tensor.h"

typedef struct rn_piece_t {
  rn_str_t bytes;
  rn_buffer_t* buffer;  // Retained: holds the bytes
} rn_piece_t;

typedef struct rn_message_t {
  rn_allocator_t allocator;
  RN_VEC(rn_piece_t) pieces;
  size_t size;  // of all pieces
} rn_message_t;

void rn_message_init(rn_message_t* message, rn_allocator_t allocator);
void rn_message_clear(rn_message_t* message);
// Appends a copy of |bytes|.
RN_MUST_USE rn_status_t rn_message_add(rn_message_t* message, rn_str_t bytes);
// Appends |bytes| of |buffer| without a copy.
RN_MUST_USE rn_status_t rn_message_lend(rn_message_t* message, rn_buffer_t* buffer, rn_str_t bytes);
// The bytes of a message with at most one piece.
rn_str_t rn_message_view(const rn_message_t* message);

// Appends the bytes of all pieces to |out|, then clears |message|.
void rn_message_flatten(rn_message_t* message, rn_strbuf_t* out);

#endif  // RUNNEL_NET_MESSAGE_H_
