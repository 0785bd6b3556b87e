// See example.h.
#include "kernels/cpu/parsing/example.h"

#include "tensor/tstring.h"

// The dtype of a Feature's list, by field number.
static const rn_dtype_t kinds[] = {RN_INVALID, RN_STRING, RN_FLOAT, RN_INT64};

// Fast path for the common case: a message that is one length-delimited field with tag |tag| and at
// most 2^28 bytes. |*out| is its content.
static inline bool is_sole(rn_str_t bytes, uint8_t tag, rn_str_t* out) {
  const uint8_t* p = (const uint8_t*)bytes.data;
  size_t length = 0, used = 1;
  if (bytes.size < 2 || p[0] != tag) return false;
  for (unsigned shift = 0; shift < 28 && used < bytes.size; shift += 7) {
    uint8_t byte = p[used++];
    length |= (size_t)(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    *out = rn_str_n(bytes.data + used, length);
    return length == bytes.size - used;
  }
  return false;
}

#define TAG_1 0x0a  // field 1, length-delimited
#define TAG_2 0x12
#define TAG_3 0x1a

bool rn_feature_read(rn_str_t bytes, rn_feature_t* out) {
  uint8_t tag = bytes.size ? (uint8_t)bytes.data[0] : 0;
  rn_str_t list;
  if ((tag == TAG_1 || tag == TAG_2 || tag == TAG_3) && is_sole(bytes, tag, &list)) {
    out->dtype = kinds[tag >> 3];
    out->list = list;
    return true;
  }
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.wire != RN_PB_WIRE_LENGTH || field.number > 3) continue;
    out->dtype = kinds[field.number];
    out->list = field.bytes;
  }
  return !scan.is_bad;
}

const char* rn_feature_kind(rn_dtype_t dtype, bool is_short) {
  switch (dtype) {
    case RN_FLOAT:
      return is_short ? "float" : "float_list";
    case RN_INT64:
      return is_short ? "int64" : "int64_list";
    default:
      return is_short ? "bytes" : "bytes_list";
  }
}

static int64_t count_varints(rn_str_t bytes) {
  int64_t count = 0;
  for (size_t i = 0; i < bytes.size; ++i) count += (uint8_t)bytes.data[i] < 0x80;
  return count;
}

// Whether the varints end with the bytes and none is longer than ten bytes.
static bool are_varints(rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  uint64_t value;
  while (scan.next != scan.end)
    if (!rn_pb_scan_varint(&scan, &value)) return false;
  return true;
}

// The count of a list that is one value or one packed chunk; -1 otherwise.
static inline int64_t count_sole(const rn_feature_t* feature) {
  rn_str_t chunk;
  if (!is_sole(feature->list, TAG_1, &chunk)) return -1;
  if (feature->dtype == RN_STRING) return 1;
  if (feature->dtype == RN_FLOAT) return chunk.size % 4 ? -1 : (int64_t)(chunk.size / 4);
  return chunk.size == 1 && (uint8_t)chunk.data[0] < 0x80 ? 1 : -1;
}

bool rn_feature_count(rn_feature_t* feature) {
  feature->count = count_sole(feature);
  if (feature->count >= 0) return true;
  rn_pb_scan_t scan = rn_pb_scan(feature->list);
  rn_pb_field_t field;
  int64_t count = 0;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != 1) continue;
    if (field.wire != RN_PB_WIRE_LENGTH) {
      if (field.wire != (feature->dtype == RN_FLOAT ? RN_PB_WIRE_32 : RN_PB_WIRE_VARINT) ||
          feature->dtype == RN_STRING)
        return false;
      ++count;
    } else if (feature->dtype == RN_STRING) {
      ++count;
    } else if (feature->dtype == RN_FLOAT) {
      if (field.bytes.size % 4) return false;
      count += (int64_t)(field.bytes.size / 4);
    } else {
      if (!are_varints(field.bytes)) return false;
      count += count_varints(field.bytes);
    }
  }
  feature->count = count;
  return !scan.is_bad;
}

static void read_floats(rn_pb_scan_t* scan, float* out) {
  rn_pb_field_t field;
  while (rn_pb_scan_next(scan, &field)) {
    if (field.number != 1) continue;
    if (field.wire == RN_PB_WIRE_LENGTH) {
      memcpy(out, field.bytes.data, field.bytes.size);
      out += field.bytes.size / 4;
    } else {
      uint32_t bits = (uint32_t)field.value;
      memcpy(out++, &bits, sizeof bits);
    }
  }
}

static void read_ints(rn_pb_scan_t* scan, int64_t* out) {
  rn_pb_field_t field;
  while (rn_pb_scan_next(scan, &field)) {
    if (field.number != 1) continue;
    if (field.wire == RN_PB_WIRE_LENGTH) {
      rn_pb_scan_t packed = rn_pb_scan(field.bytes);
      uint64_t value = 0;
      while (packed.next != packed.end && rn_pb_scan_varint(&packed, &value))
        *out++ = (int64_t)value;
    } else {
      *out++ = (int64_t)field.value;
    }
  }
}

static bool read_texts(rn_pb_scan_t* scan, rn_tstring_t* out) {
  rn_pb_field_t field;
  while (rn_pb_scan_next(scan, &field)) {
    if (field.number != 1) continue;
    if (!rn_tstring_assign(out++, field.bytes.data, field.bytes.size)) return false;
  }
  return true;
}

bool rn_feature_values(const rn_feature_t* feature, void* out) {
  rn_str_t chunk;
  if (is_sole(feature->list, TAG_1, &chunk)) {
    if (feature->dtype == RN_STRING) return rn_tstring_assign(out, chunk.data, chunk.size);
    if (feature->dtype == RN_FLOAT) {
      memcpy(out, chunk.data, chunk.size);
      return true;
    }
    if (chunk.size == 1) {
      *(int64_t*)out = (uint8_t)chunk.data[0];
      return true;
    }
  }
  rn_pb_scan_t scan = rn_pb_scan(feature->list);
  if (feature->dtype == RN_STRING) return read_texts(&scan, out);
  if (feature->dtype == RN_FLOAT)
    read_floats(&scan, out);
  else
    read_ints(&scan, out);
  return true;
}

// A key of less than 128 bytes, then the value, then nothing.
static inline bool is_usual_entry(rn_str_t entry, rn_str_t* out_key, rn_str_t* out_value) {
  size_t length = entry.size > 1 ? (uint8_t)entry.data[1] : 0x80;
  if (length >= 0x80 || (uint8_t)entry.data[0] != TAG_1 || length + 2 > entry.size) return false;
  *out_key = rn_str_n(entry.data + 2, length);
  return is_sole(rn_str_n(entry.data + 2 + length, entry.size - 2 - length), TAG_2, out_value);
}

bool rn_entry_next(rn_entry_scan_t* scan, rn_str_t* out_key, rn_str_t* out_value) {
  rn_pb_field_t field;
  while (!scan->is_bad) {
    if (rn_pb_scan_next(&scan->map, &field)) {
      if (field.number != 1 || field.wire != RN_PB_WIRE_LENGTH) continue;
      if (is_usual_entry(field.bytes, out_key, out_value)) return true;
      rn_pb_scan_t entry = rn_pb_scan(field.bytes);
      rn_pb_field_t part;
      *out_key = *out_value = RN_STR("");
      while (rn_pb_scan_next(&entry, &part)) {
        if (part.wire != RN_PB_WIRE_LENGTH) continue;
        if (part.number == 1) *out_key = part.bytes;
        if (part.number == 2) *out_value = part.bytes;
      }
      scan->is_bad = entry.is_bad;
      return !entry.is_bad;
    }
    scan->is_bad = scan->map.is_bad;
    if (scan->is_bad) break;
    if (!rn_pb_scan_next(&scan->message, &field)) {
      scan->is_bad = scan->message.is_bad;
      return false;
    }
    if (field.number == scan->field && field.wire == RN_PB_WIRE_LENGTH)
      scan->map = rn_pb_scan(field.bytes);
  }
  return false;
}

rn_status_t rn_key_set_init(rn_key_set_t* set, rn_arena_t* arena, const rn_str_t* keys,
                            int32_t count) {
  size_t places = 4;
  while (places < 2 * (size_t)count) places *= 2;
  *set = (rn_key_set_t){.count = count, .keys = keys, .mask = places - 1};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, places, &set->table));
  for (int32_t i = 0; i < count; ++i) {
    size_t place = rn_str_hash(keys[i]) & set->mask;
    while (set->table[place] && !rn_str_eq(keys[set->table[place] - 1], keys[i]))
      place = (place + 1) & set->mask;
    if (!set->table[place]) set->table[place] = i + 1;
  }
  return RN_OK;
}

int32_t rn_key_set_search(const rn_key_set_t* set, rn_str_t key) {
  if (set->count == 0) return -1;
  for (size_t place = rn_str_hash(key) & set->mask; set->table[place];
       place = (place + 1) & set->mask)
    if (rn_str_eq(set->keys[set->table[place] - 1], key)) return set->table[place] - 1;
  return -1;
}
