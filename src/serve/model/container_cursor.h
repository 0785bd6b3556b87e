// Reads numbers and strings from the payload of a frame. For container_wire.c and
// container_tensors.c only.
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_CURSOR_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_CURSOR_H_

#include "base/str.h"

// Reading past the end gives zeros and sets |is_bad|, so that a chain needs one check.
typedef struct rn_container_cursor_t {
  const char *next, *end;
  bool is_bad;
} rn_container_cursor_t;

static inline rn_container_cursor_t rn_container_cursor(rn_str_t payload) {
  const char* data = payload.size ? payload.data : "";
  return (rn_container_cursor_t){data, data + payload.size, false};
}

static inline size_t rn_container_left(const rn_container_cursor_t* cursor) {
  return cursor->is_bad ? 0 : (size_t)(cursor->end - cursor->next);
}

static inline void rn_container_take(rn_container_cursor_t* cursor, void* out, size_t size) {
  if (rn_container_left(cursor) < size) {
    cursor->is_bad = true;
    memset(out, 0, size);
    return;
  }
  memcpy(out, cursor->next, size);
  cursor->next += size;
}

static inline uint32_t rn_container_take_u32(rn_container_cursor_t* cursor) {
  uint32_t value;
  rn_container_take(cursor, &value, sizeof value);
  return value;
}
static inline uint64_t rn_container_take_u64(rn_container_cursor_t* cursor) {
  uint64_t value;
  rn_container_take(cursor, &value, sizeof value);
  return value;
}

// Borrowed from the payload.
static inline rn_str_t rn_container_take_str(rn_container_cursor_t* cursor) {
  uint32_t size = rn_container_take_u32(cursor);
  if (rn_container_left(cursor) < size) {
    cursor->is_bad = true;
    return (rn_str_t){"", 0};
  }
  rn_str_t str = {cursor->next, size};
  cursor->next += size;
  return str;
}

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_CURSOR_H_
