// Strings: a borrowed view, and a buffer to build one in.
#ifndef RUNNEL_BASE_STR_H_
#define RUNNEL_BASE_STR_H_

#include "base/alloc.h"

// |size| bytes at |data|, borrowed. Not NUL-terminated unless documented; may hold any bytes.
typedef struct rn_str_t {
  const char* data;
  size_t size;
} rn_str_t;

#define RN_STR(literal) ((rn_str_t){(literal), sizeof(literal) - 1})
// For printf: "%.*s", RN_STR_ARGS(s)
#define RN_STR_ARGS(str) (int)(str).size, ((str).data ? (str).data : "")

static inline rn_str_t rn_str(const char* text) {
  return (rn_str_t){text, text ? strlen(text) : 0};
}
static inline rn_str_t rn_str_n(const char* data, size_t size) { return (rn_str_t){data, size}; }
static inline bool rn_str_eq(rn_str_t a, rn_str_t b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool rn_str_is(rn_str_t a, const char* text) { return rn_str_eq(a, rn_str(text)); }
bool rn_str_starts_with(rn_str_t str, rn_str_t prefix);
bool rn_str_ends_with(rn_str_t str, rn_str_t suffix);
// Bytewise order; <0, 0, >0.
int rn_str_compare(rn_str_t a, rn_str_t b);
// The part before the first |separator| (all of it if there is none); |*inout_rest| moves behind
// the separator.
rn_str_t rn_str_split(rn_str_t* inout_rest, char separator);
rn_str_t rn_str_trim(rn_str_t str);
// Whole-string decimal numbers; false if |str| is anything else or out of range.
bool rn_str_to_i64(rn_str_t str, int64_t* out);
bool rn_str_to_f64(rn_str_t str, double* out);
uint64_t rn_str_hash(rn_str_t str);

// Text under construction. Zero-initialise with the allocator set. The first failed append is kept;
// the ones after it do nothing, so that a chain needs one check at its end. Always NUL-terminated
// once something was appended.
typedef struct rn_strbuf_t {
  rn_allocator_t allocator;
  char* data;  // Owned
  size_t size;
  size_t capacity;
  bool failed;
} rn_strbuf_t;

void rn_strbuf_init(rn_strbuf_t* buf, rn_allocator_t allocator);
void rn_strbuf_clear(rn_strbuf_t* buf);
// Makes room for |extra| more bytes and a NUL; false (and failed) without memory.
bool rn_strbuf_reserve(rn_strbuf_t* buf, size_t extra);
void rn_strbuf_append(rn_strbuf_t* buf, rn_str_t str);
void rn_strbuf_append_n(rn_strbuf_t* buf, const void* data, size_t size);
void rn_strbuf_printf(rn_strbuf_t* buf, const char* format, ...) RN_PRINTF(2, 3);
// RESOURCE_EXHAUSTED if an append failed.
RN_MUST_USE rn_status_t rn_strbuf_status(const rn_strbuf_t* buf);
// Makes an error of |code| from the text of |buf|, which is cleared.
RN_MUST_USE rn_status_t rn_status_from_buf(rn_code_t code, rn_strbuf_t* buf);
static inline rn_str_t rn_strbuf_view(const rn_strbuf_t* buf) {
  return (rn_str_t){buf->data ? buf->data : "", buf->size};
}

// An owned, NUL-terminated copy; free with rn_free(allocator, copy, str.size + 1).
RN_MUST_USE rn_status_t rn_str_dup(rn_allocator_t allocator, rn_str_t str, char** out);

#endif  // RUNNEL_BASE_STR_H_
