// Reads and writes protocol-buffer bytes for tests, without a schema: just enough for the messages
// that the C API takes and returns. It does not use the library's decoder, because the tests must
// not depend on the code that they test.
#ifndef TESTS_CAPI_PROTO_H_
#define TESTS_CAPI_PROTO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A growing byte string. Zero-initialise, pb_free at the end.
typedef struct pb_t {
  unsigned char* data;
  size_t length;
  size_t capacity;
} pb_t;

void pb_free(pb_t* pb);
void pb_raw(pb_t* pb, const void* data, size_t length);
void pb_varint(pb_t* pb, int field, uint64_t value);
void pb_fixed32(pb_t* pb, int field, uint32_t value);
void pb_float(pb_t* pb, int field, float value);
void pb_bytes(pb_t* pb, int field, const void* data, size_t length);
void pb_string(pb_t* pb, int field, const char* text);
// Writes |child| as a sub-message and frees it.
void pb_message(pb_t* pb, int field, pb_t* child);
// A TensorShapeProto of known rank.
void pb_shape(pb_t* pb, int field, int num_dims, const int64_t* dims);

// A cursor over one message. pb_next returns false at the end or on malformed bytes; |malformed|
// tells which.
typedef struct pb_reader_t {
  const unsigned char* at;
  const unsigned char* end;
  bool malformed;
} pb_reader_t;

typedef struct pb_field_t {
  int number;
  int wire_type;
  uint64_t value;             // varint and fixed
  const unsigned char* data;  // length-delimited
  size_t length;
} pb_field_t;

pb_reader_t pb_read(const void* data, size_t length);
bool pb_next(pb_reader_t* reader, pb_field_t* out_field);

// First occurrence of |number|; false when absent.
bool pb_find(const void* data, size_t length, int number, pb_field_t* out_field);
// How often |number| occurs; -1 when the bytes are not a message.
int pb_count(const void* data, size_t length, int number);
bool pb_field_is(const pb_field_t* field, const char* text);
// The |number|-keyed string field of a message equals |text|.
bool pb_has_string(const void* data, size_t length, int number, const char* text);
// Finds, among repeated messages |list_number|, the one whose string |name_number| is |name|.
bool pb_find_named(const void* data, size_t length, int list_number, int name_number,
                   const char* name, pb_field_t* out_field);

#endif  // TESTS_CAPI_PROTO_H_
