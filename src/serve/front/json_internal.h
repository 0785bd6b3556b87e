// What the files of json.h share, and what requests of a known protocol need on top of it.
#ifndef RUNNEL_SERVE_FRONT_JSON_INTERNAL_H_
#define RUNNEL_SERVE_FRONT_JSON_INTERNAL_H_

#include "serve/front/decimal.h"
#include "serve/front/json.h"

// Moves over white space.
static inline const char* rn_json_blank(const char* p, const char* end) {
  while (p != end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// The value of a hexadecimal digit; -1 for any other character.
static inline int rn_json_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// INVALID_ARGUMENT "JSON Parse error: |what| at offset: ..."
RN_MUST_USE rn_status_t rn_json_bad(const rn_json_reader_t* json, const char* at, const char* what);
// For a value that begins with an unexpected character, or is missing.
RN_MUST_USE rn_status_t rn_json_bad_value(const rn_json_reader_t* json);
RN_MUST_USE rn_status_t rn_json_bad_decimal(const rn_json_reader_t* json, rn_decimal_error_t error,
                                            const rn_decimal_t* decimal);
// For a number beyond double's range.
RN_MUST_USE rn_status_t rn_json_too_big(const rn_json_reader_t* json, const rn_decimal_t* decimal);
// INVALID_ARGUMENT because the value at the cursor is not of type |expected|.
RN_MUST_USE rn_status_t rn_json_wrong_kind(rn_json_reader_t* json, const char* expected);

// Moves behind |word|, which the cursor must be at.
RN_MUST_USE rn_status_t rn_json_word(rn_json_reader_t* json, const char* word);
// NaN, Infinity, Inf, with or without a sign.
RN_MUST_USE rn_status_t rn_json_special(rn_json_reader_t* json, double* out);
RN_MUST_USE rn_status_t rn_json_skip_string(rn_json_reader_t* json);
// Like rn_json_next_member, without the key.
bool rn_json_next_any_member(rn_json_reader_t* json, rn_status_t* out_status);

// rn_json_span that also counts the commas outside of strings: a list has at most one more element.
RN_MUST_USE rn_status_t rn_json_span_commas(rn_json_reader_t* json, rn_str_t* out,
                                            size_t* out_commas);

// A tensor that grows while it is read.
typedef struct rn_json_sink_t {
  rn_allocator_t allocator;
  rn_dtype_t dtype;
  size_t size;                // of an element
  rn_buffer_t* buffer;        // Owned; NULL: nothing was read
  int64_t count, capacity;    // elements
  bool counts_only;           // drop the values
  bool is_free;               // lists may be nested in any way: the shape is not kept
  int rank;                   // -1: not known yet
  int64_t dims[RN_MAX_RANK];  // of the lists that were read; -1: not known yet
} rn_json_sink_t;

void rn_json_sink_init(rn_json_sink_t* sink, rn_dtype_t dtype, rn_allocator_t allocator);
void rn_json_sink_clear(rn_json_sink_t* sink);
// Reads one value into |sink|, whose shape must fit what is known of it, and completes that. On
// failure |sink| is as far as it came.
RN_MUST_USE rn_status_t rn_json_sink_read(rn_json_reader_t* json, rn_json_sink_t* sink);
// Reads |count| elements, which must be all of the text. Any thread.
typedef bool (*rn_json_elements_fn_t)(rn_json_reader_t* json, void* out, int64_t count);
// Reads a long list of numbers, whose beginning was read, by several threads, to its end. False if
// it is short, or if something is wrong: then nothing was read.
bool rn_json_read_pieces(rn_json_reader_t* json, rn_json_sink_t* sink, rn_json_elements_fn_t read,
                         int64_t* out_count);
// Makes room for |count| elements in all.
RN_MUST_USE rn_status_t rn_json_sink_reserve(rn_json_sink_t* sink, int64_t count);
// Makes room for a list with |commas|. Commas are cheap to send and strings are cleared at once, so
// room for many strings is made only as they come.
RN_MUST_USE rn_status_t rn_json_sink_expect(rn_json_sink_t* sink, size_t commas);
// Moves what was read into a tensor of |shape|, which has that many elements.
RN_MUST_USE rn_status_t rn_json_sink_finish(rn_json_sink_t* sink, rn_shape_t shape,
                                            rn_tensor_t* out);

#endif  // RUNNEL_SERVE_FRONT_JSON_INTERNAL_H_
