// A reader for the few fields of OpDef that building a node needs (op_def.proto).
#include "opdef.h"

#include <stdint.h>
#include <string.h>

typedef struct {
  const uint8_t* p;
  const uint8_t* end;
} bytes_t;

typedef struct {
  unsigned number;
  bytes_t body;  // of a length-delimited field, empty otherwise
} field_t;

static bool read_varint(bytes_t* in, uint64_t* out) {
  *out = 0;
  for (int shift = 0; shift < 64 && in->p < in->end; shift += 7) {
    const uint8_t b = *in->p++;
    *out |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) return true;
  }
  return false;
}

// The next field. False at the end and on bad bytes; then |in| is not empty.
static bool read_field(bytes_t* in, field_t* out) {
  uint64_t key = 0, n = 0;
  if (in->p == in->end || !read_varint(in, &key)) return false;
  out->number = (unsigned)(key >> 3);
  out->body = (bytes_t){in->p, in->p};
  switch (key & 7) {
    case 0:
      return read_varint(in, &n);
    case 1:
      n = 8;
      break;
    case 5:
      n = 4;
      break;
    case 2:
      if (!read_varint(in, &n)) return false;
      break;
    default:
      return false;
  }
  if (n > (uint64_t)(in->end - in->p)) return false;
  if ((key & 7) == 2) out->body = (bytes_t){in->p, in->p + n};
  in->p += n;
  return true;
}

static void copy_name(char* out, bytes_t body) {
  size_t n = (size_t)(body.end - body.p);
  if (n >= MAX_NAME) n = MAX_NAME - 1;
  memcpy(out, body.p, n);
  out[n] = '\0';
}

static bool parse_arg(bytes_t in, opdef_arg_t* out) {
  field_t f;
  memset(out, 0, sizeof *out);
  while (read_field(&in, &f)) {
    if (f.number == 4) copy_name(out->type_attr, f.body);
    if (f.number == 5) copy_name(out->number_attr, f.body);
    if (f.number == 6) copy_name(out->type_list_attr, f.body);
  }
  return in.p == in.end;
}

static bool parse_attr(bytes_t in, opdef_attr_t* out) {
  field_t f;
  memset(out, 0, sizeof *out);
  while (read_field(&in, &f)) {
    if (f.number == 1) copy_name(out->name, f.body);
    if (f.number == 2) copy_name(out->type, f.body);
  }
  return in.p == in.end;
}

bool opdef_parse(const void* data, size_t size, opdef_t* out) {
  bytes_t in = {data, (const uint8_t*)data + size};
  field_t f;
  bool ok = true;
  out->name[0] = '\0';
  out->input_count = out->attr_count = 0;
  while (ok && read_field(&in, &f)) {
    if (f.number == 1) copy_name(out->name, f.body);
    if (f.number == 2) {
      ok = out->input_count < MAX_ARGS && parse_arg(f.body, &out->inputs[out->input_count++]);
    }
    if (f.number == 4) {
      ok = out->attr_count < MAX_ATTRS && parse_attr(f.body, &out->attrs[out->attr_count++]);
    }
  }
  return ok && in.p == in.end;
}

const char* opdef_attr_type(const opdef_t* def, const char* name) {
  for (size_t i = 0; i < def->attr_count; i++) {
    if (strcmp(def->attrs[i].name, name) == 0) return def->attrs[i].type;
  }
  return NULL;
}

bool oplist_each(const void* data, size_t size, void (*each)(void* arg, const opdef_t* def),
                 void* arg) {
  bytes_t in = {data, (const uint8_t*)data + size};
  field_t f;
  opdef_t def;
  while (read_field(&in, &f)) {
    if (f.number != 1) continue;
    if (!opdef_parse(f.body.p, (size_t)(f.body.end - f.body.p), &def)) return false;
    each(arg, &def);
  }
  return in.p == in.end;
}
