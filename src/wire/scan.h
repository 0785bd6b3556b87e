// Scans the fields of a message one by one, directly in its bytes, without building anything.
//
//   rn_pb_scan_t scan = rn_pb_scan(bytes);
//   rn_pb_field_t field;
//   while (rn_pb_scan_next(&scan, &field)) … field.number, field.wire, field.value or field.bytes …
//   if (scan.is_bad) the bytes are no message
//
// For readers that need only a few fields. Scan nested messages in turn. Groups, which proto3 does
// not have, are malformed.
#ifndef RUNNEL_WIRE_SCAN_H_
#define RUNNEL_WIRE_SCAN_H_

#include "wire/message.h"

typedef struct rn_pb_scan_t {
  const char* next;
  const char* end;
  bool is_bad;
} rn_pb_scan_t;

typedef struct rn_pb_field_t {
  uint32_t number;
  uint32_t wire;
  uint64_t value;  // bits of a varint or fixed-size value
  rn_str_t bytes;  // of a length-delimited field; borrowed from the message
} rn_pb_field_t;

static inline rn_pb_scan_t rn_pb_scan(rn_str_t bytes) {
  const char* data = bytes.size ? bytes.data : "";
  return (rn_pb_scan_t){data, data + bytes.size, false};
}

static inline bool rn_pb_scan_varint(rn_pb_scan_t* scan, uint64_t* out) {
  const char* p = scan->next;
  if (__builtin_expect(p != scan->end && (uint8_t)*p < 0x80, 1)) {
    *out = (uint8_t)*p;
    scan->next = p + 1;
    return true;
  }
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70 && p != scan->end; shift += 7) {
    uint8_t byte = (uint8_t)*p++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    *out = value;
    scan->next = p;
    return true;
  }
  scan->is_bad = true;
  return false;
}

static inline bool rn_pb_scan_fixed(rn_pb_scan_t* scan, size_t size, uint64_t* out) {
  if ((size_t)(scan->end - scan->next) < size) {
    scan->is_bad = true;
    return false;
  }
  *out = 0;
  memcpy(out, scan->next, size);
  scan->next += size;
  return true;
}

// Reads the next field; false at the end and for malformed bytes.
static inline bool rn_pb_scan_next(rn_pb_scan_t* scan, rn_pb_field_t* out) {
  if (scan->next == scan->end || scan->is_bad) return false;
  uint64_t tag = 0, length = 0;
  if (!rn_pb_scan_varint(scan, &tag)) return false;
  scan->is_bad = tag < 8 || tag > UINT32_MAX;
  out->number = (uint32_t)(tag >> 3);
  out->wire = (uint32_t)tag & 7;
  switch (out->wire) {
    case RN_PB_WIRE_LENGTH:
      if (!rn_pb_scan_varint(scan, &length)) return false;
      if (length > (uint64_t)(scan->end - scan->next)) {
        scan->is_bad = true;
        return false;
      }
      out->bytes = rn_str_n(scan->next, (size_t)length);
      scan->next += length;
      break;
    case RN_PB_WIRE_VARINT:
      return rn_pb_scan_varint(scan, &out->value) && !scan->is_bad;
    case RN_PB_WIRE_64:
      return rn_pb_scan_fixed(scan, 8, &out->value) && !scan->is_bad;
    case RN_PB_WIRE_32:
      return rn_pb_scan_fixed(scan, 4, &out->value) && !scan->is_bad;
    default:
      scan->is_bad = true;
  }
  return !scan->is_bad;
}

// The last field |number| of a message, as bytes or as a number; empty or 0 if there is none.
rn_str_t rn_field_bytes(rn_str_t message, uint32_t number);
uint64_t rn_field_value(rn_str_t message, uint32_t number);

#endif  // RUNNEL_WIRE_SCAN_H_
