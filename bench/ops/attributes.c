// Attributes of a call, from text: the op's definition says what type each has.
#include <stdlib.h>
#include <string.h>

#include "../bench.h"
#include "../graph_util.h"
#include "client.h"

enum { kMostValues = 16, kMostText = 512 };

static const struct {
  const char* name;
  TF_DataType type;
} kTypes[] = {
    {"half", TF_HALF},     {"bfloat16", TF_BFLOAT16},   {"float", TF_FLOAT},
    {"double", TF_DOUBLE}, {"complex64", TF_COMPLEX64}, {"complex128", TF_COMPLEX128},
    {"int8", TF_INT8},     {"int16", TF_INT16},         {"int32", TF_INT32},
    {"int64", TF_INT64},   {"uint8", TF_UINT8},         {"uint16", TF_UINT16},
    {"uint32", TF_UINT32}, {"uint64", TF_UINT64},       {"bool", TF_BOOL},
    {"string", TF_STRING}, {"qint8", TF_QINT8},         {"quint8", TF_QUINT8},
    {"qint32", TF_QINT32},
};

TF_DataType type_of_name(const char* name) {
  for (size_t i = 0; i < sizeof kTypes / sizeof *kTypes; ++i) {
    if (strcmp(name, kTypes[i].name) == 0) return kTypes[i].type;
  }
  bench_fail("no type is named '%s'", name);
}

// Splits at commas, in place; an empty text has no values.
static int split(char* text, char** out) {
  int count = 0;
  char* rest = text;
  for (char* word = strsep(&rest, ","); word && *word; word = strsep(&rest, ",")) {
    if (count == kMostValues) bench_fail("too many values");
    out[count++] = word;
  }
  return count;
}

static void add_list(TFE_Op* op, const char* name, TF_AttrType type, char* value) {
  char* words[kMostValues];
  int64_t ints[kMostValues];
  float floats[kMostValues];
  TF_DataType types[kMostValues];
  int count = split(value, words);
  for (int i = 0; i < count; ++i) {
    if (type == TF_ATTR_TYPE)
      types[i] = type_of_name(words[i]);
    else if (type == TF_ATTR_FLOAT)
      floats[i] = strtof(words[i], NULL);
    else
      ints[i] = strtoll(words[i], NULL, 10);
  }
  if (type == TF_ATTR_TYPE)
    TFE_OpSetAttrTypeList(op, name, types, count);
  else if (type == TF_ATTR_FLOAT)
    TFE_OpSetAttrFloatList(op, name, floats, count);
  else if (type == TF_ATTR_INT)
    TFE_OpSetAttrIntList(op, name, ints, count);
  else
    bench_fail("lists of the type of attribute %s are not supported", name);
}

static void add_shape(TFE_Op* op, const char* name, char* value, TF_Status* status) {
  char* words[kMostValues];
  int64_t dims[kMostValues];
  int rank = split(value, words);
  for (int i = 0; i < rank; ++i) dims[i] = strtoll(words[i], NULL, 10);
  TFE_OpSetAttrShape(op, name, dims, rank, status);
  check_ok(status, name);
}

static void add_attribute(TFE_Op* op, const char* name, char* value, TF_Status* status) {
  unsigned char is_list = 0;
  TF_AttrType type = TFE_OpGetAttrType(op, name, &is_list, status);
  check_ok(status, name);
  if (is_list) {
    add_list(op, name, type, value);
    return;
  }
  switch (type) {
    case TF_ATTR_STRING:
      TFE_OpSetAttrString(op, name, value, strlen(value));
      return;
    case TF_ATTR_INT:
      TFE_OpSetAttrInt(op, name, strtoll(value, NULL, 10));
      return;
    case TF_ATTR_FLOAT:
      TFE_OpSetAttrFloat(op, name, strtof(value, NULL));
      return;
    case TF_ATTR_BOOL:
      TFE_OpSetAttrBool(op, name, strcmp(value, "true") == 0);
      return;
    case TF_ATTR_TYPE:
      TFE_OpSetAttrType(op, name, type_of_name(value));
      return;
    case TF_ATTR_SHAPE:
      add_shape(op, name, value, status);
      return;
    default:
      bench_fail("the type of attribute %s is not supported", name);
  }
}

void attributes_add(TFE_Op* op, const char* text, TF_Status* status) {
  char copy[kMostText];
  if (strlen(text) >= sizeof copy) bench_fail("attributes are too long");
  strcpy(copy, text);
  char* rest = copy;
  for (char* word = strsep(&rest, " "); word; word = strsep(&rest, " ")) {
    if (!*word) continue;
    char* value = strchr(word, '=');
    if (!value) bench_fail("attribute '%s' has no value", word);
    *value++ = 0;
    add_attribute(op, word, value, status);
  }
}
