// Writes the descriptors of files, for gRPC's reflection: each a serialized FileDescriptorProto, as
// in protobuf's descriptor.proto, with the names that it declares.
#include <stdlib.h>
#include <string.h>

#include "protogen.h"

// Field numbers of descriptor.proto.
enum { FILE_NAME = 1, FILE_PACKAGE, FILE_DEPENDENCY, FILE_MESSAGE, FILE_ENUM, FILE_SERVICE };
enum { FILE_SYNTAX = 12 };
enum { MESSAGE_NAME = 1, MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM };
enum { MESSAGE_OPTIONS = 7, MESSAGE_ONEOF = 8, OPTIONS_MAP_ENTRY = 7 };
enum { FIELD_NAME = 1, FIELD_NUMBER = 3, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME };
enum { FIELD_OPTIONS = 8, FIELD_ONEOF = 9, FIELD_OPTIONAL = 17, OPTIONS_PACKED = 2 };
enum { ENUM_NAME = 1, ENUM_VALUE, ENUM_OPTIONS, OPTIONS_ALIAS = 2 };
enum { SERVICE_NAME = 1, SERVICE_METHOD };
enum { METHOD_NAME = 1, METHOD_REQUEST, METHOD_RESPONSE, METHOD_CLIENT = 5, METHOD_SERVER };
enum { LABEL_ONE = 1, LABEL_MANY = 3 };

// Bytes under construction; never freed before the end of the program, like everything here.
typedef struct bytes_t {
  gen_t* g;
  unsigned char* data;
  size_t size, capacity;
} bytes_t;

static void put(bytes_t* out, const void* data, size_t size) {
  if (out->size + size > out->capacity) {
    unsigned char* old = out->data;
    out->capacity = 2 * (out->size + size) + 64;
    out->data = keep(out->g, out->capacity);
    if (out->size) memcpy(out->data, old, out->size);
  }
  memcpy(out->data + out->size, data, size);
  out->size += size;
}

static void put_varint(bytes_t* out, unsigned long long value) {
  do {
    unsigned char byte = (unsigned char)(value & 127) | (value > 127 ? 128 : 0);
    put(out, &byte, 1);
  } while (value >>= 7);
}

static void put_number(bytes_t* out, int field, long value) {
  put_varint(out, (unsigned)field << 3);
  put_varint(out, (unsigned long long)value);
}

static void put_bytes(bytes_t* out, int field, const void* data, size_t size) {
  put_varint(out, (unsigned)field << 3 | 2);
  put_varint(out, size);
  put(out, data, size);
}

static void put_text(bytes_t* out, int field, const char* text) {
  put_bytes(out, field, text, strlen(text));
}

static void put_nested(bytes_t* out, int field, const bytes_t* nested) {
  put_bytes(out, field, nested->data, nested->size);
}

// "a.b.C" gives "C".
static const char* last_name(const char* full_name) {
  const char* dot = strrchr(full_name, '.');
  return dot ? dot + 1 : full_name;
}

static bool is_in(const char* full_name, const char* scope) {
  size_t size = strlen(scope);
  const char* name = last_name(full_name);
  if (!size) return name == full_name;
  return strncmp(full_name, scope, size) == 0 && name == full_name + size + 1;
}

static int type_number(const field_t* f) {
  static const struct {
    const char* kind;
    int number;
  } types[] = {{"DOUBLE", 1},  {"FLOAT", 2},   {"INT64", 3}, {"UINT64", 4},    {"INT32", 5},
               {"FIXED64", 6}, {"FIXED32", 7}, {"BOOL", 8},  {"STRING", 9},    {"MESSAGE", 11},
               {"BYTES", 12},  {"UINT32", 13}, {"ENUM", 14}, {"SFIXED32", 15}, {"SFIXED64", 16},
               {"SINT32", 17}, {"SINT64", 18}};
  for (size_t i = 0; i < COUNT(types); ++i)
    if (strcmp(types[i].kind, f->kind) == 0) return types[i].number;
  return 0;
}

static bool can_be_packed(const field_t* f) {
  return f->repeated && !f->message && strcmp(f->kind, "STRING") && strcmp(f->kind, "BYTES");
}

// The oneofs of a message in the order of their numbers: those declared, then one for each
// `optional` field. Gives the number of |field|'s, or -1.
static int put_oneofs(bytes_t* out, const message_t* m, const field_t* field) {
  const char* last = NULL;
  int count = 0, found = -1;
  for (int optional = 0; optional < 2; ++optional) {
    for (const field_t* f = m->fields; f; f = f->next) {
      bool is_new = optional ? f->optional : f->oneof && f->oneof != last;
      if (!optional) last = f->oneof;
      if (is_new) {
        bytes_t oneof = {.g = out->g};
        put_text(&oneof, 1, optional ? keep_printf(out->g, "_%s", f->name) : f->oneof);
        if (!field) put_nested(out, MESSAGE_ONEOF, &oneof);
        count++;
      }
      if (f == field && (optional ? f->optional : f->oneof != NULL)) found = count - 1;
    }
  }
  return found;
}

static void put_field(bytes_t* out, const message_t* m, const field_t* f) {
  bytes_t field = {.g = out->g};
  put_text(&field, FIELD_NAME, f->name);
  put_number(&field, FIELD_NUMBER, f->number);
  put_number(&field, FIELD_LABEL, f->repeated ? LABEL_MANY : LABEL_ONE);
  put_number(&field, FIELD_TYPE, type_number(f));
  const char* type = f->message       ? f->message->full_name
                     : f->enumeration ? f->enumeration->full_name
                                      : NULL;
  if (type) put_text(&field, FIELD_TYPE_NAME, keep_printf(out->g, ".%s", type));
  if (can_be_packed(f) && !f->packed) {
    bytes_t options = {.g = out->g};
    put_number(&options, OPTIONS_PACKED, 0);
    put_nested(&field, FIELD_OPTIONS, &options);
  }
  int oneof = put_oneofs(&field, m, f);
  if (oneof >= 0) put_number(&field, FIELD_ONEOF, oneof);
  if (f->optional) put_number(&field, FIELD_OPTIONAL, 1);
  put_nested(out, MESSAGE_FIELD, &field);
}

static bool has_alias(const enum_t* e) {
  for (const enum_value_t* a = e->values; a; a = a->next)
    for (const enum_value_t* b = a->next; b; b = b->next)
      if (a->number == b->number) return true;
  return false;
}

static void put_enums(bytes_t* out, int number, const file_t* file, const char* scope) {
  for (const enum_t* e = file->enums; e; e = e->next) {
    if (!is_in(e->full_name, scope)) continue;
    bytes_t body = {.g = out->g};
    put_text(&body, ENUM_NAME, last_name(e->full_name));
    for (const enum_value_t* v = e->values; v; v = v->next) {
      bytes_t value = {.g = out->g};
      put_text(&value, 1, v->name);
      put_number(&value, 2, v->number);
      put_nested(&body, ENUM_VALUE, &value);
    }
    if (has_alias(e)) {
      bytes_t options = {.g = out->g};
      put_number(&options, OPTIONS_ALIAS, 1);
      put_nested(&body, ENUM_OPTIONS, &options);
    }
    put_nested(out, number, &body);
  }
}

static void put_messages(bytes_t* out, int number, const file_t* file, const char* scope) {
  for (const message_t* m = file->messages; m; m = m->next) {
    if (!is_in(m->full_name, scope)) continue;
    bytes_t body = {.g = out->g};
    put_text(&body, MESSAGE_NAME, last_name(m->full_name));
    for (const field_t* f = m->fields; f; f = f->next) put_field(&body, m, f);
    put_messages(&body, MESSAGE_NESTED, file, m->full_name);
    put_enums(&body, MESSAGE_ENUM, file, m->full_name);
    if (m->is_map_entry) {
      bytes_t options = {.g = out->g};
      put_number(&options, OPTIONS_MAP_ENTRY, 1);
      put_nested(&body, MESSAGE_OPTIONS, &options);
    }
    put_oneofs(&body, m, NULL);
    put_nested(out, number, &body);
  }
}

static void put_services(bytes_t* out, const file_t* file) {
  for (const service_t* s = file->services; s; s = s->next) {
    bytes_t body = {.g = out->g};
    put_text(&body, SERVICE_NAME, last_name(s->full_name));
    for (const method_t* m = s->methods; m; m = m->next) {
      bytes_t method = {.g = out->g};
      put_text(&method, METHOD_NAME, m->name);
      put_text(&method, METHOD_REQUEST, keep_printf(out->g, ".%s", m->request));
      put_text(&method, METHOD_RESPONSE, keep_printf(out->g, ".%s", m->response));
      if (m->client_streams) put_number(&method, METHOD_CLIENT, 1);
      if (m->server_streams) put_number(&method, METHOD_SERVER, 1);
      put_nested(&body, SERVICE_METHOD, &method);
    }
    put_nested(out, FILE_SERVICE, &body);
  }
}

static bytes_t describe(gen_t* g, const file_t* file) {
  bytes_t out = {.g = g};
  put_text(&out, FILE_NAME, keep_printf(g, "%s.proto", file->base));
  if (*file->package) put_text(&out, FILE_PACKAGE, file->package);
  for (const struct import_t* i = file->imports; i; i = i->next)
    put_text(&out, FILE_DEPENDENCY, keep_printf(g, "%s.proto", i->base));
  put_messages(&out, FILE_MESSAGE, file, file->package);
  put_enums(&out, FILE_ENUM, file, file->package);
  put_services(&out, file);
  put_text(&out, FILE_SYNTAX, "proto3");
  return out;
}

// Files in an order in which imports come before those that need them.
typedef struct order_t {
  const file_t** files;
  int count;
} order_t;

static int place_of(const order_t* order, const char* base) {
  for (int i = 0; i < order->count; ++i)
    if (strcmp(order->files[i]->base, base) == 0) return i;
  return -1;
}

static void add_file(const gen_t* g, order_t* order, const file_t* file) {
  if (place_of(order, file->base) >= 0) return;
  for (const struct import_t* i = file->imports; i; i = i->next)
    for (const file_t* other = g->files; other; other = other->next)
      if (strcmp(other->base, i->base) == 0) add_file(g, order, other);
  order->files[order->count++] = file;
}

static void write_names(FILE* out, const file_t* file, int index) {
  fprintf(out, "static const char* const names_%d[] = {\n", index);
  for (const message_t* m = file->messages; m; m = m->next)
    if (!m->is_map_entry) fprintf(out, "    \"%s\",\n", m->full_name);
  for (const enum_t* e = file->enums; e; e = e->next) fprintf(out, "    \"%s\",\n", e->full_name);
  for (const service_t* s = file->services; s; s = s->next) {
    fprintf(out, "    \"%s\",\n", s->full_name);
    for (const method_t* m = s->methods; m; m = m->next)
      fprintf(out, "    \"%s.%s\",\n", s->full_name, m->name);
  }
  fprintf(out, "    NULL};\n");
}

static void write_file(gen_t* g, FILE* out, const order_t* order, int index) {
  const file_t* file = order->files[index];
  bytes_t bytes = describe(g, file);
  fprintf(out, "\nstatic const uint8_t bytes_%d[] = {", index);
  for (size_t i = 0; i < bytes.size; ++i)
    fprintf(out, "%s%d,", i % 24 ? "" : "\n    ", bytes.data[i]);
  fprintf(out, "};\nstatic const int16_t imports_%d[] = {", index);
  for (const struct import_t* i = file->imports; i; i = i->next)
    fprintf(out, "%d, ", place_of(order, i->base));
  fprintf(out, "-1};\n");
  write_names(out, file, index);
}

static void write_declarations(gen_t* g, const char* dir) {
  FILE* out = create(g, dir, "services", ".pb.h");
  fprintf(out,
          "// Generated by tools/protogen: the services, and the files that describe them.\n"
          "#ifndef RUNNEL_PROTO_services_PB_H_\n#define RUNNEL_PROTO_services_PB_H_\n\n"
          "#include \"wire/message.h\"\n\n"
          "extern const rn_pb_file_desc_t rn_pb_files[];  // imports come first\n"
          "extern const size_t rn_pb_file_count;\n"
          "extern const char* const rn_pb_services[];  // full names\n"
          "extern const size_t rn_pb_service_count;\n\n#endif\n");
  finish(out, "services");
}

void write_files(gen_t* g, const char* dir) {
  order_t order = {0};
  int count = 0, services = 0;
  for (const file_t* file = g->files; file; file = file->next) ++count;
  order.files = keep(g, (size_t)count * sizeof *order.files);
  for (const file_t* file = g->files; file; file = file->next)
    if (!file->is_import) add_file(g, &order, file);
  write_declarations(g, dir);
  FILE* out = create(g, dir, "services", ".pb.c");
  fprintf(out,
          "// Generated by tools/protogen: the services, and the files that describe them.\n"
          "#include \"proto/services.pb.h\"\n");
  for (int i = 0; i < order.count; ++i) write_file(g, out, &order, i);
  fprintf(out, "\nconst rn_pb_file_desc_t rn_pb_files[] = {\n");
  for (int i = 0; i < order.count; ++i)
    fprintf(out, "    {\"%s.proto\", bytes_%d, sizeof bytes_%d, imports_%d, names_%d},\n",
            order.files[i]->base, i, i, i, i);
  fprintf(out, "};\nconst size_t rn_pb_file_count = %d;\n\n", order.count);
  fprintf(out, "const char* const rn_pb_services[] = {\n");
  for (int i = 0; i < order.count; ++i) {
    for (const service_t* s = order.files[i]->services; s; s = s->next, ++services)
      fprintf(out, "    \"%s\",\n", s->full_name);
  }
  fprintf(out, "    NULL};\nconst size_t rn_pb_service_count = %d;\n", services);
  finish(out, "services");
}
