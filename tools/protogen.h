// protogen's in-memory form of .proto files, between reading and writing.
#ifndef RUNNEL_TOOLS_PROTOGEN_H_
#define RUNNEL_TOOLS_PROTOGEN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct file_t file_t;
typedef struct message_t message_t;

typedef struct enum_value_t {
  struct enum_value_t* next;
  char* name;
  long number;
} enum_value_t;

typedef struct enum_t {
  struct enum_t* next;
  char* full_name;
  char* c_name;
  char* c_prefix;  // of its values, from the enclosing scope
  enum_value_t* values;
} enum_t;

typedef struct field_t {
  struct field_t* next;
  char* name;
  char* type_name;  // as written
  long number;
  int line;
  bool repeated, optional, is_map, packed;
  char* oneof;       // NULL if in none
  const char* kind;  // STRING, MESSAGE ... once resolved
  const message_t* message;
  const enum_t* enumeration;
} field_t;

struct message_t {
  message_t* next;
  file_t* file;
  char* full_name;
  char* c_name;
  bool is_map_entry;
  field_t* fields;  // as declared
};

typedef struct method_t {
  struct method_t* next;
  char* name;
  char *request, *response;  // full names once resolved
  bool client_streams, server_streams;
  int line;
} method_t;

typedef struct service_t {
  struct service_t* next;
  char* full_name;
  method_t* methods;
} service_t;

struct file_t {
  file_t* next;
  char* path;
  char* base;  // without folder and ".proto"
  char* package;
  bool is_import;  // was generated before
  struct import_t {
    struct import_t* next;
    char* base;
  } * imports;
  message_t* messages;  // nested ones too, outer before inner
  enum_t* enums;
  service_t* services;
};

// All memory is kept until the end; |blocks| lists what to free then.
typedef struct gen_t {
  struct block_t {
    struct block_t* next;
    max_align_t data[];
  } * blocks;
  file_t* files;
  bool reads_imports;  // the files that come now
  // the file being read
  const char* path;
  const char* at;
  int line;
  char token[256];
  bool is_string;
} gen_t;

// Ends the program with a message.
void die(const char* where, int line, const char* format, ...);
// Memory that is freed at the end; zeroed.
void* keep(gen_t* g, size_t size);
char* keep_printf(gen_t* g, const char* format, ...);
// Opens "DIR/BASE SUFFIX" for writing, and closes it.
FILE* create(gen_t* g, const char* dir, const char* base, const char* suffix);
void finish(FILE* out, const char* base);

// Writes services.pb.h and services.pb.c (protogen_files.c).
void write_files(gen_t* g, const char* dir);

#endif  // RUNNEL_TOOLS_PROTOGEN_H_
