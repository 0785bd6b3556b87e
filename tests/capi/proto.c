// Writer and cursor for protocol-buffer bytes; see proto.h.
#include "proto.h"

#include <stdlib.h>
#include <string.h>

void pb_free(pb_t* pb) {
  free(pb->data);
  *pb = (pb_t){0};
}

void pb_raw(pb_t* pb, const void* data, size_t length) {
  if (pb->length + length > pb->capacity) {
    size_t capacity = (pb->length + length) * 2 + 64;
    unsigned char* grown = realloc(pb->data, capacity);
    if (grown == NULL) abort();
    pb->data = grown;
    pb->capacity = capacity;
  }
  if (length > 0) memcpy(pb->data + pb->length, data, length);
  pb->length += length;
}

static void raw_varint(pb_t* pb, uint64_t value) {
  unsigned char bytes[10];
  size_t n = 0;
  do {
    bytes[n] = (unsigned char)(value & 0x7f);
    value >>= 7;
    if (value != 0) bytes[n] |= 0x80;
    ++n;
  } while (value != 0);
  pb_raw(pb, bytes, n);
}

static void tag(pb_t* pb, int field, int wire_type) {
  raw_varint(pb, ((uint64_t)field << 3) | (unsigned)wire_type);
}

void pb_varint(pb_t* pb, int field, uint64_t value) {
  tag(pb, field, 0);
  raw_varint(pb, value);
}

void pb_fixed32(pb_t* pb, int field, uint32_t value) {
  tag(pb, field, 5);
  pb_raw(pb, &value, sizeof value);
}

void pb_float(pb_t* pb, int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  pb_fixed32(pb, field, bits);
}

void pb_bytes(pb_t* pb, int field, const void* data, size_t length) {
  tag(pb, field, 2);
  raw_varint(pb, length);
  pb_raw(pb, data, length);
}

void pb_string(pb_t* pb, int field, const char* text) { pb_bytes(pb, field, text, strlen(text)); }

void pb_message(pb_t* pb, int field, pb_t* child) {
  pb_bytes(pb, field, child->data, child->length);
  pb_free(child);
}

pb_reader_t pb_read(const void* data, size_t length) {
  const unsigned char* bytes = data;
  return (pb_reader_t){.at = bytes, .end = bytes + length};
}

static bool read_varint(pb_reader_t* reader, uint64_t* out_value) {
  *out_value = 0;
  for (int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
    unsigned char byte = *reader->at++;
    *out_value |= (uint64_t)(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  reader->malformed = true;
  return false;
}

static bool read_fixed(pb_reader_t* reader, size_t width, uint64_t* out_value) {
  *out_value = 0;
  if ((size_t)(reader->end - reader->at) < width) {
    reader->malformed = true;
    return false;
  }
  memcpy(out_value, reader->at, width);
  reader->at += width;
  return true;
}

bool pb_next(pb_reader_t* reader, pb_field_t* out_field) {
  *out_field = (pb_field_t){0};
  uint64_t key = 0;
  if (reader->malformed || reader->at == reader->end || !read_varint(reader, &key)) return false;
  out_field->number = (int)(key >> 3);
  out_field->wire_type = (int)(key & 7);
  switch (out_field->wire_type) {
    case 0:
      return read_varint(reader, &out_field->value);
    case 1:
      return read_fixed(reader, 8, &out_field->value);
    case 5:
      return read_fixed(reader, 4, &out_field->value);
    case 2: {
      uint64_t length = 0;
      if (!read_varint(reader, &length)) return false;
      if (length > (uint64_t)(reader->end - reader->at)) break;
      out_field->data = reader->at;
      out_field->length = (size_t)length;
      reader->at += length;
      return true;
    }
    default:
      break;
  }
  reader->malformed = true;
  return false;
}

bool pb_find(const void* data, size_t length, int number, pb_field_t* out_field) {
  pb_reader_t reader = pb_read(data, length);
  while (pb_next(&reader, out_field)) {
    if (out_field->number == number) return true;
  }
  *out_field = (pb_field_t){0};
  return false;
}

int pb_count(const void* data, size_t length, int number) {
  pb_reader_t reader = pb_read(data, length);
  pb_field_t field;
  int count = 0;
  while (pb_next(&reader, &field)) count += field.number == number;
  return reader.malformed ? -1 : count;
}

bool pb_field_is(const pb_field_t* field, const char* text) {
  return field->wire_type == 2 && field->length == strlen(text) &&
         memcmp(field->data, text, field->length) == 0;
}

bool pb_has_string(const void* data, size_t length, int number, const char* text) {
  pb_field_t field;
  return pb_find(data, length, number, &field) && pb_field_is(&field, text);
}

bool pb_find_named(const void* data, size_t length, int list_number, int name_number,
                   const char* name, pb_field_t* out_field) {
  pb_reader_t reader = pb_read(data, length);
  while (pb_next(&reader, out_field)) {
    if (out_field->number == list_number && out_field->wire_type == 2 &&
        pb_has_string(out_field->data, out_field->length, name_number, name)) {
      return true;
    }
  }
  *out_field = (pb_field_t){0};
  return false;
}

void pb_shape(pb_t* pb, int field, int num_dims, const int64_t* dims) {
  pb_t shape = {0};
  for (int i = 0; i < num_dims; ++i) {
    pb_t dim = {0};
    pb_varint(&dim, 1, (uint64_t)dims[i]);
    pb_message(&shape, 2, &dim);
  }
  pb_message(pb, field, &shape);
}
