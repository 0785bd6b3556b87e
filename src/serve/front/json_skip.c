// Values of any kind and depth: skipped, printed for messages, measured. Nothing here recurses.
#include <stdio.h>

#include "serve/front/json_internal.h"

// Checks the number at the cursor and moves behind it.
static rn_status_t skip_number(rn_json_reader_t* json) {
  double value;
  return rn_json_double(json, &value);
}

static rn_status_t skip_scalar(rn_json_reader_t* json, rn_json_kind_t kind) {
  switch (kind) {
    case RN_JSON_NULL:
      return rn_json_word(json, "null");
    case RN_JSON_TRUE:
      return rn_json_word(json, "true");
    case RN_JSON_FALSE:
      return rn_json_word(json, "false");
    case RN_JSON_STRING:
      return rn_json_skip_string(json);
    case RN_JSON_NUMBER:
      return skip_number(json);
    default:
      return rn_json_bad_value(json);
  }
}

#define MAX_PRINTED 256

static void put_line(rn_strbuf_t* out, size_t depth) {
  rn_strbuf_append(out, RN_STR("\n"));
  for (size_t i = 0; i < depth; ++i) rn_strbuf_append(out, RN_STR("    "));
}

// Closes containers that end here and moves to the next value; false if there is none.
static bool next_value(rn_json_reader_t* json, rn_strbuf_t* stack, rn_strbuf_t* out,
                       rn_status_t* out_status) {
  while (stack->size) {
    bool is_list = stack->data[stack->size - 1] == '[', was_first = json->is_first;
    const char* at = json->next;
    bool has = is_list ? rn_json_next_element(json, out_status)
                       : rn_json_next_any_member(json, out_status);
    if (!rn_ok(*out_status)) return false;
    if (out && has) {
      if (!was_first) rn_strbuf_append(out, is_list ? RN_STR(", ") : RN_STR(","));
      if (!is_list) {
        put_line(out, stack->size);
        at = rn_json_blank(at, json->end);
        if (!was_first) at = rn_json_blank(at + 1, json->end);
        rn_strbuf_append_n(out, at, (size_t)(json->next - 1 - at));
        rn_strbuf_append(out, RN_STR(": "));
      }
    }
    if (has) return true;
    --stack->size;
    if (out && !is_list && !was_first) put_line(out, stack->size);
    if (out) rn_strbuf_append(out, is_list ? RN_STR("]") : RN_STR("}"));
  }
  return false;
}

// Moves behind the value at the cursor, and appends it to |out|, if that is not NULL, until there
// is enough of it.
static rn_status_t walk(rn_json_reader_t* json, rn_strbuf_t* out) {
  rn_strbuf_t stack;  // the brackets that are open
  rn_strbuf_init(&stack, json->arena->allocator);
  rn_status_t status = RN_OK;
  do {
    rn_json_kind_t kind = rn_json_kind(json);
    const char* at = json->next;
    if (kind == RN_JSON_ARRAY || kind == RN_JSON_OBJECT) {
      rn_strbuf_append_n(&stack, json->next++, 1);
      status = rn_strbuf_status(&stack);
      json->is_first = true;
    } else {
      status = skip_scalar(json, kind);
    }
    if (rn_ok(status) && out) rn_strbuf_append_n(out, at, (size_t)(json->next - at));
  } while (rn_ok(status) && (!out || out->size < MAX_PRINTED) &&
           next_value(json, &stack, out, &status));
  rn_strbuf_clear(&stack);
  return status;
}

rn_status_t rn_json_skip(rn_json_reader_t* json) { return walk(json, NULL); }

void rn_json_print(const rn_json_reader_t* json, rn_strbuf_t* out) {
  rn_json_reader_t copy = *json;
  rn_strbuf_t text;
  rn_strbuf_init(&text, json->arena->allocator);
  rn_status_free(walk(&copy, &text));  // what was printed before an error is fine
  size_t size = text.size;
  if (size > MAX_PRINTED)
    for (size = MAX_PRINTED; size && (text.data[size] & 0xC0) == 0x80;) --size;
  rn_strbuf_append_n(out, text.data, size);
  rn_strbuf_clear(&text);
}

rn_status_t rn_json_error(const rn_json_reader_t* json, const char* format, ...) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, json->arena->allocator);
  rn_strbuf_append(&text, RN_STR("JSON Value: "));
  rn_json_print(json, &text);
  char message[256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  rn_strbuf_printf(&text, " %s", message);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// Bytes of |word| that equal |c|: the top bit of each is set.
static inline uint64_t equal_bytes(uint64_t word, unsigned char c) {
  const uint64_t low = 0x7f7f7f7f7f7f7f7f;
  uint64_t x = word ^ (0x0101010101010101 * c);
  return ~(((x & low) + low) | x | low);
}

// How many bytes |equal_bytes| found; processors without an instruction for it are supported.
static inline size_t sum(uint64_t mask) { return (size_t)((mask >> 7) * 0x0101010101010101 >> 56); }

// Moves over bytes without strings that cannot close the outermost of |*inout_depth| brackets,
// eight at a time, and counts brackets and commas.
static inline const char* quiet_run(const char* p, const char* end, size_t* inout_depth,
                                    size_t* inout_commas) {
  for (uint64_t word; end - p >= 8; p += 8) {
    memcpy(&word, p, sizeof word);
    // This bit is the difference of brackets and braces.
    uint64_t braces = word | 0x2020202020202020;
    size_t closed = sum(equal_bytes(braces, '}'));
    if (equal_bytes(word, '"') || closed >= *inout_depth) break;
    *inout_depth += sum(equal_bytes(braces, '{')) - closed;
    *inout_commas += sum(equal_bytes(word, ','));
  }
  return p;
}

rn_status_t rn_json_span_commas(rn_json_reader_t* json, rn_str_t* out, size_t* out_commas) {
  rn_json_kind_t kind = rn_json_kind(json);
  const char *first = json->next, *end = json->end, *p = first;
  size_t depth = 0, commas = 0;
  if (kind != RN_JSON_ARRAY && kind != RN_JSON_OBJECT) {
    RN_RETURN_IF_ERROR(rn_json_skip(json));
  } else {
    do {
      const char* stop = (p = quiet_run(p, end, &depth, &commas)) + 8;
      for (; p != end && p < stop; ++p) {
        char c = *p;
        if (c == ',') ++commas;
        if (c == '[' || c == '{') ++depth;
        if ((c == ']' || c == '}') && --depth == 0) break;
        if (c != '"') continue;
        for (++p; p != end && *p != '"'; ++p)
          if (*p == '\\' && end - p > 1) ++p;
        if (p == end) break;
      }
    } while (p != end && depth);
    if (p == end)
      return rn_json_bad(json, p,
                         *first == '[' ? "Missing a comma or ] after an array element."
                                       : "Missing a comma or } after an object member.");
    json->next = p + 1;
  }
  *out = rn_str_n(first, (size_t)(json->next - first));
  *out_commas = commas;
  return RN_OK;
}

rn_status_t rn_json_span(rn_json_reader_t* json, rn_str_t* out) {
  size_t commas;
  return rn_json_span_commas(json, out, &commas);
}
