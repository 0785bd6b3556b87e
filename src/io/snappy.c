// Snappy's raw format: a varint with the size, then elements that start with a tag.
//
//   tag & 3 = 0  literal of (tag >> 2) + 1 bytes; 60 … 63: the size - 1 follows in 1 … 4 bytes
//             1  copy of 4 + (tag >> 2 & 7) bytes from (tag >> 5) << 8 | next byte back
//             2  copy of (tag >> 2) + 1 bytes from the next two bytes back
//             3  the same with four bytes
#include "io/snappy.h"

#include "wire/scan.h"
#include "wire/writer.h"

bool rn_snappy_size(rn_str_t input, uint64_t* out_size) {
  rn_pb_scan_t scan = rn_pb_scan(input);
  return rn_pb_scan_varint(&scan, out_size) && *out_size <= UINT32_MAX;
}

// A little-endian number of |bytes| bytes.
static bool number(rn_pb_scan_t* scan, size_t bytes, size_t* out) {
  uint64_t value = 0;
  if (!rn_pb_scan_fixed(scan, bytes, &value)) return false;
  *out = (size_t)value;
  return true;
}

static bool literal(rn_pb_scan_t* scan, size_t tag, char* out, size_t room, size_t* out_length) {
  size_t length = tag >> 2;
  if (length >= 60 && !number(scan, length - 59, &length)) return false;
  length += 1;
  if (length > room || length > (size_t)(scan->end - scan->next)) return false;
  memcpy(out, scan->next, length);
  scan->next += length;
  *out_length = length;
  return true;
}

// Source and destination may overlap, so copy byte by byte.
static bool copy(rn_pb_scan_t* scan, size_t tag, char* out, size_t done, size_t room,
                 size_t* out_length) {
  size_t length = (tag >> 2) + 1, back = 0;
  if (!number(scan, (size_t)1 << ((tag & 3) - 1), &back)) return false;
  if ((tag & 3) == 1) {
    length = 4 + (tag >> 2 & 7);
    back |= tag >> 5 << 8;
  }
  if (back == 0 || back > done || length > room) return false;
  const char* from = out - back;
  for (size_t i = 0; i < length; ++i) out[i] = from[i];
  *out_length = length;
  return true;
}

bool rn_snappy_unfold(rn_str_t input, char* out, size_t size) {
  rn_pb_scan_t scan = rn_pb_scan(input);
  uint64_t said = 0;
  if (!rn_pb_scan_varint(&scan, &said) || said != size) return false;
  size_t done = 0, length = 0;
  while (scan.next < scan.end) {
    size_t tag = (uint8_t)*scan.next++;
    bool is_good = (tag & 3) == 0 ? literal(&scan, tag, out + done, size - done, &length)
                                  : copy(&scan, tag, out + done, done, size - done, &length);
    if (!is_good) return false;
    done += length;
  }
  return done == size;
}

// Compression finds copies within pieces of 64 KiB, so that offsets fit into two bytes. A hash
// table holds the last position of each hash of four bytes.
#define PIECE ((size_t)1 << 16)
#define TABLE_BITS 13
#define SHORTEST 4

static uint32_t four_at(const char* from) {
  uint32_t value;
  memcpy(&value, from, sizeof value);
  return value;
}

static void put_literal(rn_str_t bytes, rn_strbuf_t* out) {
  if (!bytes.size) return;
  char* p = rn_pb_room(out, bytes.size + 3);
  if (!p) return;
  size_t length = bytes.size - 1;  // a piece: two bytes at most
  int extra = length < 60 ? 0 : length < 256 ? 1 : 2;
  *p++ = (char)((extra ? 59 + (size_t)extra : length) << 2);
  for (int i = 0; i < extra; ++i) *p++ = (char)(length >> 8 * i);
  memcpy(p, bytes.data, bytes.size);
  rn_pb_written(out, p + bytes.size);
}

static void put_copy(size_t back, size_t length, rn_strbuf_t* out) {
  while (length) {
    char* p = rn_pb_room(out, 3);
    if (!p) return;
    // The remainder must be long enough for a copy of its own.
    size_t part = length <= 64 ? length : length < 64 + SHORTEST ? 60 : 64;
    if (part >= 4 && part <= 11 && back < 2048) {
      *p++ = (char)(1 | (part - 4) << 2 | back >> 8 << 5);
      *p++ = (char)back;
    } else {
      *p++ = (char)(2 | (part - 1) << 2);
      *p++ = (char)back;
      *p++ = (char)(back >> 8);
    }
    rn_pb_written(out, p);
    length -= part;
  }
}

static void fold_piece(rn_str_t piece, uint16_t* table, rn_strbuf_t* out) {
  const char* data = piece.data;
  size_t done = 0, at = 1, misses = 0;
  memset(table, 0, sizeof *table << TABLE_BITS);
  while (at + SHORTEST <= piece.size) {
    uint32_t four = four_at(data + at);
    uint16_t* slot = &table[four * UINT32_C(0x9E3779B1) >> (32 - TABLE_BITS)];
    size_t from = *slot;
    *slot = (uint16_t)at;
    if (four_at(data + from) != four) {
      at += 1 + (misses++ >> 5);  // skip faster and faster through bytes that do not repeat
      continue;
    }
    size_t length = SHORTEST;
    while (at + length < piece.size && data[from + length] == data[at + length]) ++length;
    put_literal(rn_str_n(data + done, at - done), out);
    put_copy(at - from, length, out);
    done = at += length;
    misses = 0;
  }
  put_literal(rn_str_n(data + done, piece.size - done), out);
}

void rn_snappy_fold(rn_str_t input, rn_strbuf_t* out) {
  uint16_t table[1 << TABLE_BITS];
  rn_pb_put_varint(out, input.size);
  while (input.size) {
    size_t size = input.size < PIECE ? input.size : PIECE;
    fold_piece(rn_str_n(input.data, size), table, out);
    input = rn_str_n(input.data + size, input.size - size);
  }
}
