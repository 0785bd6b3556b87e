// Prints messages in the text format. See text.h.
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "wire/text.h"
#include "wire/writer.h"

typedef struct rn_pb_printer_t {
  rn_strbuf_t* out;
  bool one_line;
  int indent;
} rn_pb_printer_t;

static rn_status_t print_fields(rn_pb_printer_t* p, const rn_pb_message_desc_t* desc,
                                const void* message);

static void put(rn_pb_printer_t* p, const char* text) { rn_strbuf_append(p->out, rn_str(text)); }

static void start_line(rn_pb_printer_t* p) {
  for (int i = 0; i < p->indent && !p->one_line; ++i) put(p, "  ");
}

static void end_line(rn_pb_printer_t* p) { put(p, p->one_line ? " " : "\n"); }

// Prints the fewest digits, at least |least|, that parse to |value|, with a point in every locale.
static void put_real(rn_pb_printer_t* p, double value, int least, int most, bool is_float) {
  if (isnan(value)) {
    put(p, "nan");
    return;
  }
  if (isinf(value)) {
    put(p, value < 0 ? "-inf" : "inf");
    return;
  }
  char text[64];
  for (int digits = least; digits <= most; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    double back = strtod(text, NULL);
    if (is_float ? (float)back == (float)value : back == value) break;
  }
  char* end = text;
  bool point = false;
  for (const char* c = text; *c; ++c) {
    bool plain = strchr("0123456789+-e", *c) != NULL;
    if (plain) *end++ = *c;
    if (!plain && !point) *end++ = '.';
    point = point || !plain;
  }
  rn_strbuf_append(p->out, rn_str_n(text, (size_t)(end - text)));
}

static void put_escaped(rn_strbuf_t* out, rn_str_t str) {
  static const char escapes[][2] = {{'\n', 'n'}, {'\r', 'r'},  {'\t', 't'},
                                    {'"', '"'},  {'\'', '\''}, {'\\', '\\'}};
  char* to = rn_pb_room(out, str.size > SIZE_MAX / 4 - 1 ? SIZE_MAX : 4 * str.size + 2);
  if (!to) return;
  *to++ = '"';
  for (size_t i = 0; i < str.size; ++i) {
    unsigned char c = (unsigned char)str.data[i];
    char letter = 0;
    for (size_t k = 0; k < sizeof escapes / sizeof *escapes; ++k) {
      if (c == (unsigned char)escapes[k][0]) letter = escapes[k][1];
    }
    if (letter) {
      *to++ = '\\';
      *to++ = letter;
    } else if (c >= 0x20 && c < 0x7f) {
      *to++ = (char)c;
    } else {
      *to++ = '\\';
      *to++ = (char)('0' + (c >> 6));
      *to++ = (char)('0' + (c >> 3 & 7));
      *to++ = (char)('0' + (c & 7));
    }
  }
  *to++ = '"';
  rn_pb_written(out, to);
}

static void print_scalar(rn_pb_printer_t* p, const rn_pb_field_desc_t* field, const char* slot) {
  switch (field->type) {
    case RN_PB_DOUBLE:
      put_real(p, *(const double*)slot, DBL_DIG, DBL_DIG + 2, false);
      return;
    case RN_PB_FLOAT:
      put_real(p, (double)*(const float*)slot, FLT_DIG, FLT_DIG + 3, true);
      return;
    case RN_PB_STRING:
    case RN_PB_BYTES:
      put_escaped(p->out, *(const rn_str_t*)slot);
      return;
    case RN_PB_BOOL:
      put(p, *(const bool*)slot ? "true" : "false");
      return;
    case RN_PB_INT64:
    case RN_PB_SINT64:
    case RN_PB_SFIXED64:
      rn_strbuf_printf(p->out, "%lld", (long long)*(const int64_t*)slot);
      return;
    case RN_PB_UINT64:
    case RN_PB_FIXED64:
      rn_strbuf_printf(p->out, "%llu", (unsigned long long)*(const uint64_t*)slot);
      return;
    case RN_PB_UINT32:
    case RN_PB_FIXED32:
      rn_strbuf_printf(p->out, "%u", (unsigned)*(const uint32_t*)slot);
      return;
    default:
      break;
  }
  int32_t number = *(const int32_t*)slot;
  const char* name = field->type == RN_PB_ENUM ? rn_pb_enum_name(field->sub, number) : NULL;
  if (name) {
    put(p, name);
  } else {
    rn_strbuf_printf(p->out, "%d", (int)number);
  }
}

// Prints one element; for a message, |slot| is the message itself.
static rn_status_t print_element(rn_pb_printer_t* p, const rn_pb_field_desc_t* field,
                                 const char* slot) {
  start_line(p);
  put(p, field->name);
  if (field->type == RN_PB_MESSAGE) {
    put(p, " {");
    end_line(p);
    ++p->indent;
    if (slot) RN_RETURN_IF_ERROR(print_fields(p, field->sub, slot));
    --p->indent;
    start_line(p);
    put(p, "}");
  } else {
    put(p, ": ");
    print_scalar(p, field, slot);
  }
  end_line(p);
  return RN_OK;
}

static rn_status_t print_list(rn_pb_printer_t* p, const rn_pb_field_desc_t* field,
                              const rn_pb_list_t* list) {
  rn_arena_t scratch;
  rn_arena_init(&scratch, p->out->allocator);
  const void** entries = NULL;
  size_t count = list->count, size = rn_pb_element_size(field);
  rn_status_t status = RN_OK;
  if (field->flags & RN_PB_MAP) {
    status = rn_pb_map_sorted(field->sub, list, &scratch, &entries, &count);
  }
  for (size_t i = 0; i < count && rn_ok(status); ++i) {
    const char* slot = entries ? entries[i] : (const char*)list->items + i * size;
    status = print_element(p, field, slot);
  }
  rn_arena_clear(&scratch);
  return status;
}

// Whether the text format can hold |url| between brackets.
static bool is_plain_url(rn_str_t url) {
  for (size_t i = 0; i < url.size; ++i) {
    char c = url.data[i];
    bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_word && c != '.' && c != '/' && c != '_' && c != '-') return false;
  }
  return true;
}

// Prints the content of an Any, if its type is known and the result is not nested too deeply to
// parse again.
static rn_status_t print_any(rn_pb_printer_t* p, const rn_pb_message_desc_t* desc,
                             const void* message, bool* out_done) {
  rn_str_t url = *(const rn_str_t*)((const char*)message + desc->fields[0].offset);
  rn_str_t bytes = *(const rn_str_t*)((const char*)message + desc->fields[1].offset);
  const rn_pb_message_desc_t* inner = is_plain_url(url) ? rn_pb_find_by_url(url) : NULL;
  if (!inner || p->indent + 2 >= RN_PB_DEFAULT_DEPTH) return RN_OK;
  rn_pb_limits_t limits = {.max_depth = (uint32_t)(RN_PB_DEFAULT_DEPTH - 2 - p->indent)};
  rn_arena_t scratch;
  rn_arena_init(&scratch, p->out->allocator);
  void* held = NULL;
  rn_status_t status = rn_pb_decode(inner, bytes, &limits, &scratch, &held);
  if (rn_ok(status)) {
    *out_done = true;
    start_line(p);
    rn_strbuf_printf(p->out, "[%.*s] {", RN_STR_ARGS(url));
    end_line(p);
    ++p->indent;
    status = print_fields(p, inner, held);
    --p->indent;
    start_line(p);
    put(p, "}");
    end_line(p);
  } else if (rn_status_code(status) == RN_CODE_INVALID_ARGUMENT) {
    rn_status_free(status);
    status = RN_OK;
  }
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t print_fields(rn_pb_printer_t* p, const rn_pb_message_desc_t* desc,
                                const void* message) {
  if (p->indent > RN_PB_MAX_DEPTH) return rn_invalid_argument("%s: nested too deep", desc->name);
  bool is_done = false;
  if (strcmp(desc->name, RN_PB_ANY) == 0) RN_RETURN_IF_ERROR(print_any(p, desc, message, &is_done));
  if (is_done) return RN_OK;
  for (size_t i = 0; i < desc->field_count; ++i) {
    const rn_pb_field_desc_t* field = &desc->fields[i];
    if (!desc->is_map_entry && !rn_pb_is_set(field, message)) continue;
    const char* slot = (const char*)message + field->offset;
    if (field->flags & RN_PB_REPEATED) {
      RN_RETURN_IF_ERROR(print_list(p, field, (const rn_pb_list_t*)slot));
    } else {
      if (field->type == RN_PB_MESSAGE) slot = *(const rn_pb_message_t*)slot;
      RN_RETURN_IF_ERROR(print_element(p, field, slot));
    }
  }
  return RN_OK;
}

static rn_status_t print_message(const rn_pb_message_desc_t* desc, const void* message,
                                 bool one_line, rn_strbuf_t* out) {
  size_t before = out->size;
  rn_pb_printer_t printer = {.out = out, .one_line = one_line};
  rn_status_t status = print_fields(&printer, desc, message);
  if (rn_ok(status)) status = rn_strbuf_status(out);
  if (rn_ok(status) && one_line && out->size > before) {
    rn_pb_written(out, out->data + out->size - 1);  // the last blank
  }
  if (!rn_ok(status) && out->data) rn_pb_written(out, out->data + before);
  return status;
}

rn_status_t rn_pb_print(const rn_pb_message_desc_t* desc, const void* message, rn_strbuf_t* out) {
  return print_message(desc, message, false, out);
}

rn_status_t rn_pb_print_short(const rn_pb_message_desc_t* desc, const void* message,
                              rn_strbuf_t* out) {
  return print_message(desc, message, true, out);
}

// Whether |line| ends in `: <<END`, outside of strings and comments; returns the length before the
// "<<" and the END.
static bool find_multiline(rn_str_t line, size_t* out_before, rn_str_t* out_end) {
  char quote = 0, last = 0;  // the open quote, and the last non-blank character
  for (size_t i = 0; i + 2 < line.size; ++i) {
    char c = line.data[i];
    if (quote) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return false;
    } else if (c == '<' && line.data[i + 1] == '<' && last == ':') {
      *out_before = i;
      *out_end = rn_str_trim(rn_str_n(line.data + i + 2, line.size - i - 2));
      return out_end->size != 0;
    }
    if (c != ' ' && c != '\t') last = c;
  }
  return false;
}

rn_status_t rn_pb_text_from_multiline(rn_str_t text, rn_strbuf_t* out) {
  while (text.size) {
    rn_str_t line = rn_str_split(&text, '\n'), end = {0};
    size_t before = 0;
    if (!find_multiline(line, &before, &end)) {
      rn_strbuf_append(out, line);
      if (text.size || line.data + line.size != text.data) rn_strbuf_append(out, RN_STR("\n"));
      continue;
    }
    rn_strbuf_append(out, rn_str_n(line.data, before));
    rn_strbuf_append(out, RN_STR("\"\"\n"));
    bool first = true, closed = false;
    while (text.size && !closed) {
      line = rn_str_split(&text, '\n');
      closed = rn_str_starts_with(line, end);
      if (closed) {
        rn_strbuf_append_n(out, line.data + end.size, line.size - end.size);
      } else {
        if (!first) rn_strbuf_append(out, RN_STR("\"\\n\""));
        put_escaped(out, line);
      }
      rn_strbuf_append(out, RN_STR("\n"));
      first = false;
    }
    if (!closed)
      return rn_invalid_argument("No line '%.*s' ends a multi-line string", RN_STR_ARGS(end));
  }
  return rn_strbuf_status(out);
}
