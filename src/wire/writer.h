// Low-level writer: appends fields to a string buffer, for callers that write a message from their
// own structs instead of building one.
//
// Field numbers come from the generated headers: rn_pb_put_str(buf, rn_pb_NodeDef_name_field, s). A
// nested message is written between rn_pb_begin and rn_pb_end. The buffer keeps the first error,
// and the caller checks rn_strbuf_status at the end. These functions do not skip zero values:
// callers must omit them where proto3 does.
#ifndef RUNNEL_WIRE_WRITER_H_
#define RUNNEL_WIRE_WRITER_H_

#include "wire/message.h"

#define RN_PB_MAX_VARINT 10

// Returns where to write at most |size| bytes; NULL if the buffer has failed. Pass the end of what
// was written to rn_pb_written.
static inline char* rn_pb_room(rn_strbuf_t* buf, size_t size) {
  bool fits = size < buf->capacity - buf->size && !buf->failed;
  if (__builtin_expect(!fits, 0) && !rn_strbuf_reserve(buf, size)) return NULL;
  return buf->data + buf->size;
}
static inline void rn_pb_written(rn_strbuf_t* buf, char* end) {
  *end = '\0';
  buf->size = (size_t)(end - buf->data);
}

static inline char* rn_pb_varint_to(char* p, uint64_t value) {
  while (value >= 0x80) {
    *p++ = (char)(value | 0x80);
    value >>= 7;
  }
  *p++ = (char)value;
  return p;
}
static inline char* rn_pb_tag_to(char* p, uint32_t number, uint32_t wire) {
  return rn_pb_varint_to(p, (uint64_t)number << 3 | wire);
}

static inline uint64_t rn_pb_zigzag(int64_t value) {
  return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static inline void rn_pb_put_varint(rn_strbuf_t* buf, uint64_t value) {
  char* p = rn_pb_room(buf, RN_PB_MAX_VARINT);
  if (p) rn_pb_written(buf, rn_pb_varint_to(p, value));
}

// Writes an int32, int64, uint32, uint64, bool or enum field; pass negative values as
// (uint64_t)(int64_t)value.
static inline void rn_pb_put_uint(rn_strbuf_t* buf, uint32_t number, uint64_t value) {
  char* p = rn_pb_room(buf, 2 * RN_PB_MAX_VARINT);
  if (!p) return;
  rn_pb_written(buf, rn_pb_varint_to(rn_pb_tag_to(p, number, RN_PB_WIRE_VARINT), value));
}

static inline void rn_pb_put_fixed32(rn_strbuf_t* buf, uint32_t number, uint32_t value) {
  char* p = rn_pb_room(buf, RN_PB_MAX_VARINT + sizeof value);
  if (!p) return;
  p = rn_pb_tag_to(p, number, RN_PB_WIRE_32);
  memcpy(p, &value, sizeof value);
  rn_pb_written(buf, p + sizeof value);
}

static inline void rn_pb_put_fixed64(rn_strbuf_t* buf, uint32_t number, uint64_t value) {
  char* p = rn_pb_room(buf, RN_PB_MAX_VARINT + sizeof value);
  if (!p) return;
  p = rn_pb_tag_to(p, number, RN_PB_WIRE_64);
  memcpy(p, &value, sizeof value);
  rn_pb_written(buf, p + sizeof value);
}

static inline void rn_pb_put_float(rn_strbuf_t* buf, uint32_t number, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  rn_pb_put_fixed32(buf, number, bits);
}

static inline void rn_pb_put_double(rn_strbuf_t* buf, uint32_t number, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  rn_pb_put_fixed64(buf, number, bits);
}

// Writes a string or bytes field, or a message that is already encoded.
static inline void rn_pb_put_str(rn_strbuf_t* buf, uint32_t number, rn_str_t value) {
  size_t size = 0;
  if (!rn_add_ok(value.size, 2 * RN_PB_MAX_VARINT, &size)) size = SIZE_MAX;
  char* p = rn_pb_room(buf, size);
  if (!p) return;
  p = rn_pb_varint_to(rn_pb_tag_to(p, number, RN_PB_WIRE_LENGTH), value.size);
  if (value.size) memcpy(p, value.data, value.size);
  rn_pb_written(buf, p + value.size);
}

// Writes the head of a length-delimited field whose |length| bytes follow.
static inline void rn_pb_put_length(rn_strbuf_t* buf, uint32_t number, size_t length) {
  char* p = rn_pb_room(buf, 2 * RN_PB_MAX_VARINT);
  if (p) rn_pb_written(buf, rn_pb_varint_to(rn_pb_tag_to(p, number, RN_PB_WIRE_LENGTH), length));
}
// The size of a length-delimited field with a number below 16.
static inline size_t rn_pb_length_size(size_t length) {
  size_t size = 2 + length;
  for (size_t rest = length; rest >= 0x80; rest >>= 7) size++;
  return size;
}

// Begins a length-delimited field; everything appended until rn_pb_end(buf, mark) is its content.
// Fields may nest and are closed in reverse order.
static inline size_t rn_pb_begin(rn_strbuf_t* buf, uint32_t number) {
  char* p = rn_pb_room(buf, RN_PB_MAX_VARINT + 1);
  // Reserves one byte for the length; rn_pb_end makes room for more if the content is long.
  if (p) rn_pb_written(buf, rn_pb_tag_to(p, number, RN_PB_WIRE_LENGTH) + 1);
  return buf->size;
}
void rn_pb_end_long(rn_strbuf_t* buf, size_t mark);
static inline void rn_pb_end(rn_strbuf_t* buf, size_t mark) {
  if (buf->failed) return;
  size_t length = buf->size - mark;
  if (__builtin_expect(length >= 0x80, 0)) {
    rn_pb_end_long(buf, mark);
  } else {
    buf->data[mark - 1] = (char)length;
  }
}

#endif  // RUNNEL_WIRE_WRITER_H_
