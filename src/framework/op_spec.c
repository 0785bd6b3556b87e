// Parsing op specifications.
//
//   argument:   name ":" ["Ref("] [number "*"] (type | attribute) [")"]
//   attribute:  name ":" kind [">=" integer] ["=" default]
//   kind:       word | "list(" word ")" ; word: string int float bool type shape tensor func
//               numbertype realnumbertype quantizedtype, or "{" types or quoted strings "}"
//   default:    the text form of the value
#include "framework/op_spec.h"

#include <ctype.h>

#include "framework/attr_proto.h"
#include "proto/attr_value.pb.h"
#include "wire/text.h"

#define MAX_ALLOWED 64

typedef struct scanner_t {
  const char* next;
  const char* end;
} scanner_t;

static void skip_space(scanner_t* s) {
  while (s->next < s->end && isspace((unsigned char)*s->next)) s->next++;
}

static bool take(scanner_t* s, const char* text) {
  skip_space(s);
  size_t size = strlen(text);
  if ((size_t)(s->end - s->next) < size || memcmp(s->next, text, size) != 0) return false;
  s->next += size;
  return true;
}

// Takes a word of letters, digits and underscores that starts with a letter.
static rn_str_t take_name(scanner_t* s) {
  skip_space(s);
  const char* start = s->next;
  if (s->next < s->end && isalpha((unsigned char)*s->next)) {
    while (s->next < s->end && (isalnum((unsigned char)*s->next) || *s->next == '_')) s->next++;
  }
  return rn_str_n(start, (size_t)(s->next - start));
}

static bool is_done(scanner_t* s) {
  skip_space(s);
  return s->next == s->end;
}

static rn_status_t trouble(const scanner_t* s, const char* what, rn_str_t spec) {
  return rn_invalid_argument("Trouble parsing \"%s\" at \"%.*s\" of \"%.*s\"", what,
                             (int)(s->end - s->next), s->next, RN_STR_ARGS(spec));
}

bool rn_op_spec_is_op_name(rn_str_t name) {
  for (size_t i = 0; i < name.size; ++i) {
    unsigned char c = (unsigned char)name.data[i];
    if (i == 0 ? !isupper(c) : !isalnum(c) && c != '_' && c != '>') return false;
  }
  return name.size > 0;
}

// Named groups of types.
static const struct {
  const char* name;
  rn_dtypes_t types;
} groups[] = {
    {"numbertype", RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_DOUBLE) | RN_TYPES1(RN_INT32) |
                       RN_TYPES1(RN_UINT8) | RN_TYPES1(RN_INT16) | RN_TYPES1(RN_INT8) |
                       RN_TYPES1(RN_COMPLEX64) | RN_TYPES1(RN_INT64) | RN_TYPES1(RN_QINT8) |
                       RN_TYPES1(RN_QUINT8) | RN_TYPES1(RN_QINT32) | RN_TYPES1(RN_BFLOAT16) |
                       RN_TYPES1(RN_QINT16) | RN_TYPES1(RN_QUINT16) | RN_TYPES1(RN_UINT16) |
                       RN_TYPES1(RN_COMPLEX128) | RN_TYPES1(RN_HALF) | RN_TYPES1(RN_UINT32) |
                       RN_TYPES1(RN_UINT64)},
    {"realnumbertype", RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_DOUBLE) | RN_TYPES1(RN_INT32) |
                           RN_TYPES1(RN_UINT8) | RN_TYPES1(RN_INT16) | RN_TYPES1(RN_INT8) |
                           RN_TYPES1(RN_INT64) | RN_TYPES1(RN_BFLOAT16) | RN_TYPES1(RN_UINT16) |
                           RN_TYPES1(RN_HALF) | RN_TYPES1(RN_UINT32) | RN_TYPES1(RN_UINT64)},
    {"quantizedtype", RN_TYPES1(RN_QINT8) | RN_TYPES1(RN_QUINT8) | RN_TYPES1(RN_QINT32) |
                          RN_TYPES1(RN_QINT16) | RN_TYPES1(RN_QUINT16)},
};

static rn_dtypes_t group_of(rn_str_t name) {
  for (size_t i = 0; i < sizeof groups / sizeof *groups; ++i) {
    if (rn_str_is(name, groups[i].name)) return groups[i].types;
  }
  return 0;
}

static rn_status_t allow_types(rn_arena_t* arena, rn_dtypes_t types, rn_attr_def_t* out) {
  rn_dtype_t* list = NULL;
  int count = out->allowed_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, MAX_ALLOWED, &list));
  for (int i = 0; i < count; ++i) list[i] = out->allowed_types[i];
  for (rn_dtype_t dtype = 1; dtype < RN_DTYPE_COUNT; ++dtype) {
    if (rn_dtypes_has(types & ~out->allowed_set, dtype)) list[count++] = dtype;
  }
  out->kind = RN_ATTR_TYPE;
  out->allowed_types = list;
  out->allowed_count = count;
  out->allowed_set |= types;
  return RN_OK;
}

// Takes a quoted string; C escapes are not decoded, because names need none.
static bool take_quoted(scanner_t* s, rn_str_t* out) {
  skip_space(s);
  if (s->next == s->end || (*s->next != '\'' && *s->next != '"')) return false;
  const char* end = memchr(s->next + 1, *s->next, (size_t)(s->end - s->next - 1));
  if (!end) return false;
  *out = rn_str_n(s->next + 1, (size_t)(end - s->next - 1));
  s->next = end + 1;
  return true;
}

// Parses the list between braces: types, groups of types, or strings.
static rn_status_t parse_allowed(rn_arena_t* arena, scanner_t* s, rn_str_t spec,
                                 rn_attr_def_t* out) {
  const char** strings = NULL;
  rn_str_t text;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, MAX_ALLOWED, &strings));
  bool more = true;
  while (more) {
    if (take_quoted(s, &text)) {
      if (out->allowed_count == MAX_ALLOWED || out->allowed_set) return trouble(s, "{", spec);
      RN_RETURN_IF_ERROR(rn_arena_str(arena, text, &text));
      strings[out->allowed_count++] = text.data;
      out->kind = RN_ATTR_STRING;
      out->allowed_strings = strings;
    } else {
      text = take_name(s);
      rn_dtype_t dtype = rn_dtype_parse(text);
      rn_dtypes_t types = dtype != RN_INVALID ? RN_TYPES1(dtype) : group_of(text);
      bool has_strings = out->allowed_count && !out->allowed_set;
      if (!types || has_strings || rn_dtype_is_ref(dtype)) return trouble(s, "{", spec);
      RN_RETURN_IF_ERROR(allow_types(arena, types, out));
    }
    more = take(s, ",");
  }
  return take(s, "}") ? RN_OK : trouble(s, "}", spec);
}

static rn_status_t parse_kind(rn_arena_t* arena, scanner_t* s, rn_str_t spec, rn_attr_def_t* out) {
  scanner_t before = *s;
  out->is_list = take(s, "list") && take(s, "(");
  if (!out->is_list) *s = before;
  if (take(s, "{")) {
    RN_RETURN_IF_ERROR(parse_allowed(arena, s, spec, out));
  } else {
    rn_str_t word = take_name(s);
    rn_dtypes_t group = group_of(word);
    bool found = group != 0;
    if (group) RN_RETURN_IF_ERROR(allow_types(arena, group, out));
#define RN_KIND(enumerator, text, number)                                 \
  if (!found && number != RN_ATTR_PLACEHOLDER && rn_str_is(word, text)) { \
    out->kind = number;                                                   \
    found = true;                                                         \
  }
    RN_ATTR_KINDS(RN_KIND)
#undef RN_KIND
    if (!found) return trouble(&before, "<type>", spec);
  }
  if (out->is_list && !take(s, ")")) return trouble(s, ")", spec);
  return RN_OK;
}

// The field of AttrValue (or of its list) that holds a value of this kind.
static const char* field_of(uint8_t kind) {
  switch (kind) {
    case RN_ATTR_STRING:
      return "s";
    case RN_ATTR_INT:
      return "i";
    case RN_ATTR_FLOAT:
      return "f";
    case RN_ATTR_BOOL:
      return "b";
    default:
      return rn_attr_kind_name(kind, false);
  }
}

// Types may be written "float" or DT_FLOAT; the text format accepts only the latter.
static void print_types(rn_strbuf_t* buf, scanner_t s) {
  while (s.next < s.end) {
    const char* start = s.next;
    rn_str_t name = take_name(&s);
    rn_strbuf_append_n(buf, start, (size_t)(name.data - start));  // blanks
    rn_dtype_t dtype = rn_dtype_parse(name);
    if (dtype != RN_INVALID) {
      rn_strbuf_append(buf, rn_str(rn_dtype_proto_name(dtype)));
    } else if (name.size) {
      rn_strbuf_append(buf, name);
    } else if (s.next < s.end) {
      rn_strbuf_append_n(buf, s.next++, 1);
    }
  }
}

static rn_status_t check_default(const rn_attr_def_t* def, rn_str_t spec) {
  const rn_attr_value_t* value = &def->default_value;
  int64_t size = value->is_list ? value->count : value->i;
  if (def->has_minimum && size < def->minimum) {
    return rn_invalid_argument("The default of \"%.*s\" is below its minimum", RN_STR_ARGS(spec));
  }
  int count = value->is_list ? value->count : 1;
  for (int i = 0; def->allowed_count && i < count; ++i) {
    bool ok = false;
    if (def->kind == RN_ATTR_TYPE) {
      ok = rn_dtypes_has(def->allowed_set, value->is_list ? value->list_type[i] : value->type);
    } else {
      rn_str_t s = value->is_list ? value->list_s[i] : value->s;
      for (int a = 0; a < def->allowed_count; ++a) ok |= rn_str_is(s, def->allowed_strings[a]);
    }
    if (!ok) {
      return rn_invalid_argument("The default of \"%.*s\" is not one of its allowed values",
                                 RN_STR_ARGS(spec));
    }
  }
  return RN_OK;
}

static rn_status_t parse_default(rn_arena_t* arena, scanner_t* s, rn_str_t spec,
                                 rn_attr_def_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_str_t rest = rn_str_trim(rn_str_n(s->next, (size_t)(s->end - s->next)));
  bool is_message = out->kind >= RN_ATTR_SHAPE;
  bool is_empty = out->is_list && rest.size >= 2 && rest.data[0] == '[' &&
                  rn_str_trim(rn_str_n(rest.data + 1, rest.size - 1)).data[0] == ']';
  if (out->is_list) rn_strbuf_printf(&text, "list { ");
  if (!is_empty) {
    rn_strbuf_printf(&text, is_message ? "%s " : "%s: ", field_of(out->kind));
    if (out->kind == RN_ATTR_TYPE) {
      print_types(&text, (scanner_t){rest.data, rest.data + rest.size});
    } else {
      rn_strbuf_append(&text, rest);
    }
  }
  if (out->is_list) rn_strbuf_printf(&text, " }");
  rn_pb_AttrValue_t* proto = NULL;
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) {
    status = rn_pb_parse(&rn_pb_AttrValue_desc, rn_strbuf_view(&text), NULL, arena, (void**)&proto);
  }
  rn_strbuf_clear(&text);
  if (rn_ok(status)) {
    status = rn_attr_value_from_proto(proto, (size_t)INT32_MAX, arena, &out->default_value);
  }
  if (!rn_ok(status)) {
    return rn_status_annotate(status, " in the default of \"%.*s\"", RN_STR_ARGS(spec));
  }
  if (is_empty) out->default_value.kind = out->kind;  // an empty list has no kind of its own
  s->next = s->end;
  out->has_default = true;
  return check_default(out, spec);
}

rn_status_t rn_op_spec_attr(rn_arena_t* arena, rn_str_t spec, rn_attr_def_t* out) {
  scanner_t s = {spec.data, spec.data + spec.size};
  *out = (rn_attr_def_t){0};
  rn_str_t name = take_name(&s);
  if (!name.size || !take(&s, ":")) return trouble(&s, "<name>:", spec);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &name));
  out->name = name.data;
  RN_RETURN_IF_ERROR(parse_kind(arena, &s, spec, out));
  if (take(&s, ">=")) {
    skip_space(&s);
    const char* start = s.next;
    while (s.next < s.end && (isdigit((unsigned char)*s.next) || *s.next == '-')) s.next++;
    bool takes_minimum = out->is_list || out->kind == RN_ATTR_INT;
    if (!takes_minimum ||
        !rn_str_to_i64(rn_str_n(start, (size_t)(s.next - start)), &out->minimum)) {
      return trouble(&s, ">=", spec);
    }
    out->has_minimum = true;
  }
  if (take(&s, "=")) RN_RETURN_IF_ERROR(parse_default(arena, &s, spec, out));
  return is_done(&s) ? RN_OK : trouble(&s, "<end>", spec);
}

static int find_attr(const rn_attr_def_t* attrs, int count, rn_str_t name) {
  for (int i = 0; i < count; ++i) {
    if (rn_str_is(name, attrs[i].name)) return i;
  }
  return -1;
}

static void need_one(rn_attr_def_t* attr) {
  if (attr->has_minimum) return;
  attr->has_minimum = true;
  attr->minimum = 1;
}

rn_status_t rn_op_spec_arg(rn_arena_t* arena, rn_str_t spec, rn_attr_def_t* attrs, int attr_count,
                           rn_arg_def_t* out) {
  scanner_t s = {spec.data, spec.data + spec.size};
  *out = (rn_arg_def_t){.type_attr = -1, .number_attr = -1, .type_list_attr = -1};
  rn_str_t name = take_name(&s);
  if (!name.size || !take(&s, ":")) return trouble(&s, "<name>:", spec);
  RN_RETURN_IF_ERROR(rn_arena_str(arena, name, &name));
  out->name = name.data;
  out->is_ref = take(&s, "Ref(");
  rn_str_t type = take_name(&s);
  if (take(&s, "*")) {
    int number = find_attr(attrs, attr_count, type);
    if (number < 0 || attrs[number].kind != RN_ATTR_INT || attrs[number].is_list) {
      return rn_invalid_argument("Reference to unknown attr '%.*s' from \"%.*s\"",
                                 RN_STR_ARGS(type), RN_STR_ARGS(spec));
    }
    out->number_attr = (int16_t)number;
    need_one(&attrs[number]);
    type = take_name(&s);
  }
  out->type = rn_dtype_parse(type);
  if (out->type == RN_INVALID || !islower((unsigned char)*type.data)) {
    int attr = find_attr(attrs, attr_count, type);
    if (attr < 0 || attrs[attr].kind != RN_ATTR_TYPE) {
      return rn_invalid_argument("Reference to unknown attr '%.*s' from \"%.*s\"",
                                 RN_STR_ARGS(type), RN_STR_ARGS(spec));
    }
    out->type = RN_INVALID;
    if (attrs[attr].is_list) {
      out->type_list_attr = (int16_t)attr;
      need_one(&attrs[attr]);
    } else {
      out->type_attr = (int16_t)attr;
    }
  }
  if (out->is_ref && !take(&s, ")")) return trouble(&s, ")", spec);
  if (out->number_attr >= 0 && out->type_list_attr >= 0) return trouble(&s, "*", spec);
  return is_done(&s) ? RN_OK : trouble(&s, "<end>", spec);
}
