// JSON text to values and back, without a tree in between.
//
// A reader is a cursor over a text that stays in place. The caller walks down: it opens a
// container, asks for each member or element, and reads the value that the cursor is at. Numbers of
// a tensor go straight into its buffer. Beyond JSON, the numbers NaN, Infinity and -Infinity are
// read and written, and text behind the document is ignored, as TensorFlow Serving does.
//
//   rn_json_reader_t json = rn_json_reader(text, &arena);
//   rn_str_t key;
//   rn_status_t status = rn_json_open_object(&json);
//   while (rn_ok(status) && rn_json_next_member(&json, &key, &status)) {
//     if (rn_str_is(key, "id")) status = rn_json_string(&json, &id);
//     else if (rn_str_is(key, "data")) status = rn_json_tensor(&json, RN_FLOAT, allocator, &data);
//     else status = rn_json_skip(&json);
//   }
//
// Text that is not JSON gives INVALID_ARGUMENT "JSON Parse error: <what> at offset: <n>", a value
// of another kind than asked for INVALID_ARGUMENT with the value, cut to 256 bytes. After an error
// a reader must not be used, unless it is set back to a copy made before.
#ifndef RUNNEL_SERVE_FRONT_JSON_H_
#define RUNNEL_SERVE_FRONT_JSON_H_

#include "base/pool.h"
#include "tensor/tensor.h"

typedef struct rn_json_reader_t {
  const char *begin, *next, *end;  // Borrowed: the text
  rn_arena_t* arena;               // Borrowed: holds strings with escapes; others are in the text
  bool is_first;                   // no element of the innermost container was read yet
  rn_pool_t* pool;                 // Borrowed: helps with long lists of numbers; NULL: none
} rn_json_reader_t;

typedef enum rn_json_kind_t {
  RN_JSON_BAD,  // the end, or no value
  RN_JSON_NULL,
  RN_JSON_FALSE,
  RN_JSON_TRUE,
  RN_JSON_OBJECT,
  RN_JSON_ARRAY,
  RN_JSON_STRING,
  RN_JSON_NUMBER,
} rn_json_kind_t;

rn_json_reader_t rn_json_reader(rn_str_t text, rn_arena_t* arena);
// The kind of the value at the cursor, judged by its first character. Skips white space.
rn_json_kind_t rn_json_kind(rn_json_reader_t* json);
const char* rn_json_kind_name(rn_json_kind_t kind);  // "Number"; "Invalid" for RN_JSON_BAD

RN_MUST_USE rn_status_t rn_json_open_object(rn_json_reader_t* json);
RN_MUST_USE rn_status_t rn_json_open_array(rn_json_reader_t* json);
// Moves to the value of the next member, or element; false at the end of the container, which is
// then behind the cursor, and on failure, which |*out_status| tells. |*out_key| lives as long as
// the text and the arena.
bool rn_json_next_member(rn_json_reader_t* json, rn_str_t* out_key, rn_status_t* out_status);
bool rn_json_next_element(rn_json_reader_t* json, rn_status_t* out_status);

// Single values. A string is valid UTF-8; an integer has neither a point nor an exponent.
RN_MUST_USE rn_status_t rn_json_string(rn_json_reader_t* json, rn_str_t* out);
RN_MUST_USE rn_status_t rn_json_bool(rn_json_reader_t* json, bool* out);
RN_MUST_USE rn_status_t rn_json_int(rn_json_reader_t* json, int64_t* out);
RN_MUST_USE rn_status_t rn_json_double(rn_json_reader_t* json, double* out);
// The bytes of a string, or of {"b64": "<base64>"}.
RN_MUST_USE rn_status_t rn_json_bytes(rn_json_reader_t* json, rn_str_t* out);
// Whether the value at the cursor is {"b64": "..."} and nothing else. Does not move.
bool rn_json_is_b64(const rn_json_reader_t* json);
// Checks the value at the cursor, of any kind and depth, and moves behind it.
RN_MUST_USE rn_status_t rn_json_skip(rn_json_reader_t* json);
// Moves behind the value without checking more than its brackets and quotes. |*out| is its text.
// Several times faster than rn_json_skip: for values that are read later.
RN_MUST_USE rn_status_t rn_json_span(rn_json_reader_t* json, rn_str_t* out);
// Appends the value at the cursor, cut to 256 bytes, for messages. Does not move.
void rn_json_print(const rn_json_reader_t* json, rn_strbuf_t* out);
// INVALID_ARGUMENT "JSON Value: <the value at the cursor> " and the message.
RN_MUST_USE rn_status_t rn_json_error(const rn_json_reader_t* json, const char* format, ...)
    RN_PRINTF(2, 3);

// Tensors: of float, double, half, bfloat16, int8 to int64, uint8 to uint64, bool and string.
// Others give UNIMPLEMENTED. Integers must be in range. The size of a tensor is bounded by the
// text's.
//
// Reads a value, or a list of any depth whose sublists have equal sizes; these are the shape.
RN_MUST_USE rn_status_t rn_json_tensor(rn_json_reader_t* json, rn_dtype_t dtype,
                                       rn_allocator_t allocator, rn_tensor_t* out);
// Reads a list, flat or nested in any way, with exactly the elements of |shape|, by rows.
RN_MUST_USE rn_status_t rn_json_tensor_of_shape(rn_json_reader_t* json, rn_dtype_t dtype,
                                                rn_shape_t shape, rn_allocator_t allocator,
                                                rn_tensor_t* out);
// Whether the tensor functions take |dtype|.
bool rn_json_has_dtype(rn_dtype_t dtype);

// Writers append to a buffer, which keeps the first failure.
//
// A quoted string. Bytes that are not UTF-8 become U+FFFD.
void rn_json_put_string(rn_strbuf_t* out, rn_str_t text);
// "<base64>", and {"b64": "<base64>"}
void rn_json_put_base64(rn_strbuf_t* out, rn_str_t bytes);
void rn_json_put_b64(rn_strbuf_t* out, rn_str_t bytes);
// The number with 6 digits if that reads back as the same value, else with 9 (17 for a double);
// always with a point or an exponent. NaN, Infinity, -Infinity.
void rn_json_put_float(rn_strbuf_t* out, float value);
void rn_json_put_double(rn_strbuf_t* out, double value);
void rn_json_put_int(rn_strbuf_t* out, int64_t value);
// Nested lists; a scalar is a bare value. |as_b64| is for strings. INVALID_ARGUMENT for a type that
// rn_json_has_dtype does not know.
RN_MUST_USE rn_status_t rn_json_put_tensor(rn_strbuf_t* out, const rn_tensor_t* tensor,
                                           bool as_b64);
// The same of one slice along dimension 0; |tensor| is no scalar and has more than |row| rows.
RN_MUST_USE rn_status_t rn_json_put_row(rn_strbuf_t* out, const rn_tensor_t* tensor, int64_t row,
                                        bool as_b64);
// One flat list.
RN_MUST_USE rn_status_t rn_json_put_flat(rn_strbuf_t* out, const rn_tensor_t* tensor, bool as_b64);

#endif  // RUNNEL_SERVE_FRONT_JSON_H_
