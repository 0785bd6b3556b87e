// The wire format: a message is a row of fields; a field is a tag (number << 3 | wire type) as a
// varint, then by wire type
//   0 varint             7 bits a byte, low ones first, top bit: more to come; at most 10 bytes
//   1 / 5                8 / 4 bytes, little-endian
//   2 length-delimited   a varint length and that many bytes: string, bytes, message, packed list
//   3 .. 4 group         fields up to the end-group tag of the same number; skipped
// Memory is taken in blocks that the arena has zeroed and handed out from there, so that an object
// costs an addition.
#include "wire/decode.h"

#define RN_PB_LIKELY(x) __builtin_expect(!!(x), 1)
#define RN_PB_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RN_PB_BLOCK 16384  // half of an L1 cache
#define RN_PB_MAX_NUMBER ((1u << 29) - 1)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fixed-size values are read as they lie");

typedef struct rn_pb_decoder_t {
  rn_arena_t* arena;
  char* next;  // free bytes of the current block
  size_t left;
  size_t block;    // size of the next block
  size_t budget;   // arena bytes left
  uint32_t depth;  // nesting levels left
  const char* start;
  const char* name;  // name of the outermost message
  rn_status_t status;
} rn_pb_decoder_t;

// Every reader returns the position after what it read, or NULL on failure.
typedef const char* decode_cursor_t;

static __attribute__((noinline, cold)) decode_cursor_t fail(rn_pb_decoder_t* d, decode_cursor_t at,
                                                            const char* what) {
  if (rn_ok(d->status)) {
    d->status = rn_invalid_argument("%s: %s at byte %zu", d->name, what, (size_t)(at - d->start));
  }
  return NULL;
}

static __attribute__((noinline)) void* take_slow(rn_pb_decoder_t* d, size_t size) {
  bool alone = size > d->block || size > RN_PB_BLOCK / 4 || d->block > d->budget;
  size_t ask = alone ? size : d->block;
  void* block = NULL;
  if (ask > d->budget) {
    d->status = rn_status_join(
        d->status, rn_resource_exhausted("%s: decoding takes more memory than allowed", d->name));
    return NULL;
  }
  rn_status_t status = rn_arena_alloc(d->arena, ask, &block);
  if (!rn_ok(status)) {
    d->status = rn_status_join(d->status, status);
    return NULL;
  }
  d->budget -= ask;
  if (alone) return block;
  d->block = d->block < RN_PB_BLOCK / 2 ? d->block * 2 : RN_PB_BLOCK;
  d->next = (char*)block + size;
  d->left = ask - size;
  return block;
}

// |size| zeroed bytes, aligned to 8.
static inline void* take(rn_pb_decoder_t* d, size_t size) {
  size = (size + 7) & ~(size_t)7;
  if (RN_PB_UNLIKELY(size > d->left)) return take_slow(d, size);
  void* piece = d->next;
  d->next += size;
  d->left -= size;
  return piece;
}

static __attribute__((noinline)) decode_cursor_t read_varint_slow(rn_pb_decoder_t* d,
                                                                  decode_cursor_t p,
                                                                  decode_cursor_t end,
                                                                  uint64_t* out) {
  uint64_t value = 0;
  decode_cursor_t start = p;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == end) return fail(d, start, "truncated varint");
    uint8_t byte = (uint8_t)*p++;
    // Bits beyond 64 in the tenth byte are dropped.
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = value;
      return p;
    }
  }
  return fail(d, start, "varint of more than 10 bytes");
}

static inline decode_cursor_t read_varint(rn_pb_decoder_t* d, decode_cursor_t p,
                                          decode_cursor_t end, uint64_t* out) {
  if (RN_PB_LIKELY(p != end && (uint8_t)*p < 0x80)) {
    *out = (uint8_t)*p;
    return p + 1;
  }
  return read_varint_slow(d, p, end, out);
}

static inline decode_cursor_t read_length(rn_pb_decoder_t* d, decode_cursor_t p,
                                          decode_cursor_t end, size_t* out) {
  uint64_t length = 0;
  decode_cursor_t q = read_varint(d, p, end, &length);
  if (RN_PB_UNLIKELY(!q)) return NULL;
  if (RN_PB_UNLIKELY(length > (uint64_t)(end - q))) return fail(d, p, "length beyond the end");
  *out = (size_t)length;
  return q;
}

static inline decode_cursor_t read_tag(rn_pb_decoder_t* d, decode_cursor_t p, decode_cursor_t end,
                                       uint32_t* out) {
  uint64_t tag = 0;
  decode_cursor_t q = read_varint(d, p, end, &tag);
  if (RN_PB_UNLIKELY(!q)) return NULL;
  if (RN_PB_UNLIKELY(tag < 8 || tag >> 3 > RN_PB_MAX_NUMBER)) return fail(d, p, "bad field number");
  *out = (uint32_t)tag;
  return q;
}

static decode_cursor_t skip_group(rn_pb_decoder_t* d, decode_cursor_t p, decode_cursor_t end,
                                  uint32_t number);

static decode_cursor_t skip_field(rn_pb_decoder_t* d, decode_cursor_t p, decode_cursor_t end,
                                  uint32_t tag) {
  uint64_t value = 0;
  size_t size = 0;
  switch (tag & 7) {
    case RN_PB_WIRE_VARINT:
      return read_varint(d, p, end, &value);
    case RN_PB_WIRE_64:
      return end - p >= 8 ? p + 8 : fail(d, p, "truncated 64-bit value");
    case RN_PB_WIRE_32:
      return end - p >= 4 ? p + 4 : fail(d, p, "truncated 32-bit value");
    case RN_PB_WIRE_LENGTH:
      p = read_length(d, p, end, &size);
      return p ? p + size : NULL;
    case RN_PB_WIRE_GROUP:
      return skip_group(d, p, end, tag >> 3);
    default:
      return fail(d, p, "bad wire type");
  }
}

static decode_cursor_t skip_group(rn_pb_decoder_t* d, decode_cursor_t p, decode_cursor_t end,
                                  uint32_t number) {
  if (d->depth == 0) return fail(d, p, "nested too deep");
  --d->depth;
  while (p != end) {
    uint32_t tag = 0;
    p = read_tag(d, p, end, &tag);
    if (p && tag == (number << 3 | RN_PB_WIRE_END_GROUP)) {
      ++d->depth;
      return p;
    }
    if (p) p = skip_field(d, p, end, tag);
    if (!p) return NULL;
  }
  return fail(d, p, "group without an end");
}

// Counts consecutive fields with the one-byte tag |tag|, starting with the length of the first at
// |p|. Only an estimate for reserving memory: stops at anything unusual.
static size_t count_run(decode_cursor_t p, decode_cursor_t end, uint8_t tag) {
  size_t run = 0;
  while (p != end) {
    size_t length = 0;
    unsigned shift = 0;
    uint8_t byte = 0x80;
    for (; byte >= 0x80 && shift < 35 && p != end; shift += 7) {
      byte = (uint8_t)*p++;
      length |= (size_t)(byte & 0x7f) << shift;
    }
    if (byte >= 0x80 || length > (size_t)(end - p)) break;
    p += length;
    ++run;
    if (p == end || (uint8_t)*p != tag) break;
    ++p;
  }
  return run ? run : 1;
}

// Makes room for |more| elements of |size| bytes at the end of |list|.
static __attribute__((noinline)) bool grow(rn_pb_decoder_t* d, rn_pb_list_t* list, size_t size,
                                           size_t more) {
  size_t wanted = list->count + more;
  if (wanted < 2 * (size_t)list->count) wanted = 2 * (size_t)list->count;
  size_t bytes = 0;
  if (wanted > UINT32_MAX || !rn_mul_ok(wanted, size, &bytes)) {
    d->status = rn_status_join(d->status,
                               rn_resource_exhausted("%s: a repeated field is too long", d->name));
    return false;
  }
  void* items = take(d, bytes);
  if (!items) return false;
  if (list->count) memcpy(items, list->items, list->count * size);
  list->items = items;
  list->capacity = (uint32_t)wanted;
  return true;
}

// Appends an element, whose tag ends at |p|, and returns its place.
static inline char* push(rn_pb_decoder_t* d, rn_pb_list_t* list, size_t size, decode_cursor_t p,
                         decode_cursor_t end, uint32_t tag) {
  if (RN_PB_UNLIKELY(list->count >= list->capacity)) {
    bool can_look = (tag & 7) == RN_PB_WIRE_LENGTH && tag < 0x80;
    size_t more = can_look ? count_run(p, end, (uint8_t)tag) : 4;
    if (!grow(d, list, size, more)) return NULL;
  }
  return (char*)list->items + (size_t)list->count * size;
}

static inline uint64_t unzigzag(uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

// Stores a varint as a value of |type|.
static inline void store_varint(uint8_t type, uint64_t value, char* slot) {
  switch (type) {
    case RN_PB_BOOL:
      *(bool*)slot = value != 0;
      break;
    case RN_PB_SINT64:
      *(int64_t*)slot = (int64_t)unzigzag(value);
      break;
    case RN_PB_SINT32:
      *(int32_t*)slot = (int32_t)unzigzag((uint32_t)value);
      break;
    case RN_PB_INT64:
      *(int64_t*)slot = (int64_t)value;
      break;
    case RN_PB_UINT64:
      *(uint64_t*)slot = value;
      break;
    case RN_PB_UINT32:
      *(uint32_t*)slot = (uint32_t)value;
      break;
    default:
      *(int32_t*)slot = (int32_t)(uint32_t)value;
  }
}

static decode_cursor_t read_packed(rn_pb_decoder_t* d, const rn_pb_field_desc_t* field,
                                   decode_cursor_t p, decode_cursor_t end, rn_pb_list_t* list) {
  size_t length = 0, count = 0, size = field->size;
  p = read_length(d, p, end, &length);
  if (!p || length == 0) return p;
  end = p + length;
  if (field->wire == RN_PB_WIRE_VARINT) {
    for (size_t i = 0; i < length; ++i) count += (uint8_t)p[i] < 0x80;
    if (count == 0) return fail(d, p, "truncated varint");
  } else {
    if (length % size) return fail(d, p, "packed list of a broken length");
    count = length / size;
  }
  if (count > (size_t)list->capacity - list->count && !grow(d, list, size, count)) return NULL;
  char* slot = (char*)list->items + (size_t)list->count * size;
  if (field->wire != RN_PB_WIRE_VARINT) {
    memcpy(slot, p, length);
    list->count += (uint32_t)count;
    return end;
  }
  // An element ends at each byte below 0x80, so there are never more than |count|.
  while (p != end) {
    uint64_t value = 0;
    p = read_varint(d, p, end, &value);
    if (!p) return NULL;
    store_varint(field->type, value, slot);
    slot += size;
  }
  list->count += (uint32_t)count;
  return p;
}

static decode_cursor_t read_message(rn_pb_decoder_t* d, const rn_pb_message_desc_t* desc,
                                    decode_cursor_t p, decode_cursor_t end, char* message);

static decode_cursor_t read_sub(rn_pb_decoder_t* d, const rn_pb_message_desc_t* sub,
                                decode_cursor_t p, decode_cursor_t end, char* message) {
  size_t length = 0;
  p = read_length(d, p, end, &length);
  if (RN_PB_UNLIKELY(!p)) return NULL;
  if (RN_PB_UNLIKELY(d->depth == 0)) return fail(d, p, "nested too deep");
  --d->depth;
  p = read_message(d, sub, p, p + length, message);
  ++d->depth;
  if (RN_PB_UNLIKELY(p && sub->is_map_entry)) {
    // An omitted value is the empty message.
    const rn_pb_field_desc_t* value = &sub->fields[1];
    rn_pb_message_t* slot = (rn_pb_message_t*)(message + value->offset);
    if (value->type == RN_PB_MESSAGE && !*slot) {
      *slot = take(d, ((const rn_pb_message_desc_t*)value->sub)->size);
      if (!*slot) return NULL;
    }
  }
  return p;
}

// Reads the value of |field| into |slot|, an element of a list or a member of the struct.
static inline decode_cursor_t read_value(rn_pb_decoder_t* d, const rn_pb_field_desc_t* field,
                                         decode_cursor_t p, decode_cursor_t end, char* slot) {
  switch (field->wire) {
    case RN_PB_WIRE_VARINT: {
      uint64_t value = 0;
      p = read_varint(d, p, end, &value);
      store_varint(field->type, value, slot);
      return p;
    }
    case RN_PB_WIRE_64:
      if (end - p < 8) return fail(d, p, "truncated 64-bit value");
      memcpy(slot, p, 8);
      return p + 8;
    case RN_PB_WIRE_32:
      if (end - p < 4) return fail(d, p, "truncated 32-bit value");
      memcpy(slot, p, 4);
      return p + 4;
    default: {
      if (field->type == RN_PB_MESSAGE) {
        if (!(field->flags & RN_PB_REPEATED)) {
          rn_pb_message_t* place = (rn_pb_message_t*)slot;
          const rn_pb_message_desc_t* sub = field->sub;
          if (!*place) *place = take(d, sub->size);
          slot = *place;
          if (!slot) return NULL;
        }
        return read_sub(d, field->sub, p, end, slot);
      }
      size_t length = 0;
      p = read_length(d, p, end, &length);
      if (RN_PB_UNLIKELY(!p)) return NULL;
      *(rn_str_t*)slot = rn_str_n(p, length);
      return p + length;
    }
  }
}

// Marks |field| as set and returns its place. Zeroes the member of a oneof that becomes the active
// one.
static inline char* place_of(const rn_pb_field_desc_t* field, char* message) {
  char* slot = message + field->offset;
  if (field->flags & RN_PB_ONEOF) {
    int32_t* which = (int32_t*)(message + field->presence);
    if (*which != (int32_t)field->number) {
      *which = (int32_t)field->number;
      memset(slot, 0, field->size ? field->size : sizeof(void*));
    }
  } else if (field->flags & RN_PB_OPTIONAL) {
    *(bool*)(message + field->presence) = true;
  }
  return slot;
}

static decode_cursor_t read_message(rn_pb_decoder_t* d, const rn_pb_message_desc_t* desc,
                                    decode_cursor_t p, decode_cursor_t end, char* message) {
  while (p != end) {
    uint32_t tag = 0;
    p = read_tag(d, p, end, &tag);
    if (RN_PB_UNLIKELY(!p)) return NULL;
    uint32_t number = tag >> 3;
    const rn_pb_field_desc_t* field = NULL;
    if (RN_PB_LIKELY(number < desc->index_size)) {
      uint8_t slot = desc->index[number];
      field = slot ? &desc->fields[slot - 1] : NULL;
    } else {
      field = rn_pb_find_field(desc, number);
    }
    if (RN_PB_UNLIKELY(!field)) {
      p = skip_field(d, p, end, tag);
    } else if (RN_PB_UNLIKELY((tag & 7) != field->wire)) {
      bool packed = (tag & 7) == RN_PB_WIRE_LENGTH && field->flags & RN_PB_REPEATED;
      p = packed ? read_packed(d, field, p, end, (rn_pb_list_t*)(message + field->offset))
                 : skip_field(d, p, end, tag);
    } else if (field->flags & RN_PB_REPEATED) {
      rn_pb_list_t* list = (rn_pb_list_t*)(message + field->offset);
      char* slot = push(d, list, rn_pb_element_size(field), p, end, tag);
      if (RN_PB_UNLIKELY(!slot)) return NULL;
      ++list->count;
      p = read_value(d, field, p, end, slot);
    } else {
      p = read_value(d, field, p, end, place_of(field, message));
    }
    if (RN_PB_UNLIKELY(!p)) return NULL;
  }
  return p;
}

rn_pb_limits_t rn_pb_limits_fill(const rn_pb_limits_t* limits, size_t size) {
  rn_pb_limits_t limit = limits ? *limits : (rn_pb_limits_t){0};
  if (limit.max_depth == 0) limit.max_depth = RN_PB_DEFAULT_DEPTH;
  if (limit.max_depth > RN_PB_MAX_DEPTH) limit.max_depth = RN_PB_MAX_DEPTH;
  if (limit.max_bytes == 0) limit.max_bytes = INT32_MAX;
  size_t* most = &limit.max_arena_bytes;
  if (*most == 0 && !(rn_mul_ok(size, 64, most) && rn_add_ok(*most, (size_t)16 << 20, most))) {
    *most = SIZE_MAX;
  }
  return limit;
}

rn_status_t rn_pb_decode(const rn_pb_message_desc_t* desc, rn_str_t bytes,
                         const rn_pb_limits_t* limits, rn_arena_t* arena, void** out_message) {
  *out_message = NULL;
  rn_pb_limits_t limit = rn_pb_limits_fill(limits, bytes.size);
  if (bytes.size > limit.max_bytes) {
    return rn_resource_exhausted("%s: %zu bytes, at most %zu are allowed", desc->name, bytes.size,
                                 limit.max_bytes);
  }
  if (bytes.size == 0) bytes.data = "";
  if (!bytes.data) return rn_invalid_argument("%s: no bytes", desc->name);
  if (limit.copy_bytes) RN_RETURN_IF_ERROR(rn_arena_str(arena, bytes, &bytes));
  // A small message gets a small first block, in proportion to its likely need.
  size_t block = ((size_t)desc->size + 7) / 8 * 8 + bytes.size * 2;
  rn_pb_decoder_t decoder = {
      .arena = arena,
      .block = block < RN_PB_BLOCK ? (block + 15) & ~(size_t)15 : RN_PB_BLOCK,
      .budget = limit.max_arena_bytes,
      .depth = limit.max_depth,
      .start = bytes.data,
      .name = desc->name,
  };
  void* message = take(&decoder, desc->size);
  if (message && read_message(&decoder, desc, bytes.data, bytes.data + bytes.size, message)) {
    *out_message = message;
    return RN_OK;
  }
  return decoder.status;
}
