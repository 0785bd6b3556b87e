// AssertNextDataset and AssertPrevDataset: elements pass if the transformations around them are the
// expected ones.
#include <ctype.h>
#include <stdio.h>

#include "framework/attr_proto.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "tensor/tstring.h"
#include "wire/text.h"

typedef struct asserts_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  const rn_tensor_t* names;
} asserts_t;

typedef struct asserts_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
} asserts_iterator_t;

#define MAX_NAME 128

static rn_str_t name_at(const asserts_t* asserts, int64_t i) {
  return rn_tstring_view(&RN_DATA(asserts->names, const rn_tstring_t)[i]);
}

// Whether |found| is |expected| or a version of it: Batch, BatchV2.
static bool matches(rn_str_t expected, rn_str_t found) {
  if (found.size < expected.size || memcmp(found.data, expected.data, expected.size) != 0)
    return false;
  rn_str_t rest = rn_str_n(found.data + expected.size, found.size - expected.size);
  if (!rest.size) return true;
  if (rest.size < 2 || rest.data[0] != 'V') return false;
  for (size_t i = 1; i < rest.size; ++i)
    if (!isdigit((unsigned char)rest.data[i])) return false;
  return true;
}

static rn_status_t asserts_open(rn_dataset_t* dataset) {
  asserts_t* asserts = (asserts_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &asserts->input));
  asserts->names = rn_data_input(dataset, "transformations", NULL);
  if (asserts->names->rank != 1) return rn_invalid_argument("transformations must be a vector.");
  return RN_OK;
}

static int64_t asserts_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const asserts_t*)dataset)->input);
}

static void asserts_stop(rn_data_iterator_t* iterator) {
  rn_data_source_stop(&((asserts_iterator_t*)iterator)->source);
}

static bool asserts_next(rn_data_iterator_t* iterator) {
  asserts_iterator_t* own = (asserts_iterator_t*)iterator;
  if (iterator->phase++ == 0 && !rn_data_ask(&own->source, iterator->asked->out)) return false;
  if (own->source.request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, own->source.request.status);
}

static rn_status_t asserts_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  return rn_data_put_iterator(writer, ((asserts_iterator_t*)iterator)->source.iterator);
}

static rn_status_t asserts_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  return rn_data_restore_source(reader, &((asserts_iterator_t*)iterator)->source, iterator,
                                ((const asserts_t*)iterator->dataset)->input);
}

#define ASSERTS                                                                   \
  .dataset_size = sizeof(asserts_t), .iterator_size = sizeof(asserts_iterator_t), \
  .open = asserts_open, .cardinality = asserts_cardinality, .stop = asserts_stop, \
  .next = asserts_next, .save = asserts_save, .restore = asserts_restore

// Next. The names are those of stock's iterators.

// Datasets that only carry options have no iterators in stock.
static bool has_iterator(const rn_dataset_t* dataset) {
  static const char* const none[] = {"OptionsDataset",    "ModelDataset",   "OptimizeDataset",
                                     "OptimizeDatasetV2", "RewriteDataset", "FinalizeDataset"};
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i)
    if (strcmp(dataset->node->op->name, none[i]) == 0) return false;
  return true;
}

static void iterator_name(const rn_dataset_t* dataset, char out[MAX_NAME]) {
  const char* op = dataset->node->op->name;
  const char* part = strstr(op, "Dataset");
  size_t length = part ? (size_t)(part - op) : strlen(op);
  const char* version = part ? part + strlen("Dataset") : "";
  const char* prefix = "";
  bool counts = strcmp(op, "TakeDataset") == 0 || strcmp(op, "SkipDataset") == 0 ||
                strcmp(op, "RepeatDataset") == 0;
  int64_t count = 0;
  if (counts) {
    rn_status_free(rn_data_scalar(dataset, "count", &count));
    prefix = count > 0 ? "Finite" : count == 0 ? "Empty" : *op == 'R' ? "Forever" : "";
  }
  if (strcmp(op, "CacheDataset") == 0 || strcmp(op, "CacheDatasetV2") == 0) {
    rn_str_t file = RN_STR("");
    rn_status_free(rn_data_text(dataset, "filename", &file));
    snprintf(out, MAX_NAME, "%sCacheImpl", file.size ? "File" : "Memory");
    return;
  }
  // The input of a repetition has its number.
  bool is_numbered = strcmp(op, "RepeatDataset") == 0 && count != 0;
  snprintf(out, MAX_NAME, "%s%.*s%s%s", prefix, (int)length, op, version, is_numbered ? "[0]" : "");
}

static rn_status_t check_next(const rn_data_iterator_t* iterator) {
  const asserts_t* asserts = (const asserts_t*)iterator->dataset;
  int64_t wanted = asserts->names->count, found = 0;
  for (const rn_data_iterator_t* user = iterator->user; user; user = user->user)
    found += has_iterator(user->dataset);
  found++;  // the root
  if (wanted > found)
    return rn_invalid_argument("Asserted next %lld transformations but encountered only %lld.",
                               (long long)wanted, (long long)found);
  const rn_data_iterator_t* user = iterator->user;
  for (int64_t i = 0; i < wanted; ++i) {
    char name[MAX_NAME] = "Root";
    while (user && !has_iterator(user->dataset)) user = user->user;
    if (user) iterator_name(user->dataset, name);
    if (!matches(name_at(asserts, i), rn_str(name)))
      return rn_invalid_argument(
          "Asserted transformation matching %.*s at offset %lld but encountered %s transformation "
          "instead.",
          RN_STR_ARGS(name_at(asserts, i)), (long long)i, name);
    if (user) user = user->user;
  }
  return RN_OK;
}

static rn_status_t next_start(rn_data_iterator_t* iterator) {
  RN_RETURN_IF_ERROR(check_next(iterator));
  return rn_data_source_start(&((asserts_iterator_t*)iterator)->source, iterator,
                              ((const asserts_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_assert_next = {ASSERTS, .start = next_start};

// Previous. Each name is the text of a NameAttrList: an op, and attributes that it must have.
static rn_dataset_t* input_of(const rn_dataset_t* dataset) {
  for (int32_t i = 0; dataset->inputs && i < dataset->node->input_count; ++i) {
    rn_dataset_t* input = NULL;
    if (dataset->inputs[i].dtype != RN_VARIANT) continue;
    rn_status_t status = rn_dataset_of(&dataset->inputs[i], &input);
    rn_status_free(status);
    if (input) return input;
  }
  return NULL;
}

static bool has_value(const rn_attr_value_t* value, const rn_pb_AttrValue_t* wanted) {
  if (value->is_list) return false;
  switch (value->kind) {
    case RN_ATTR_STRING:
      return wanted->value_case == rn_pb_AttrValue_s_field && rn_str_eq(value->s, wanted->s);
    case RN_ATTR_INT:
      return wanted->value_case == rn_pb_AttrValue_i_field && value->i == wanted->i;
    case RN_ATTR_BOOL:
      return wanted->value_case == rn_pb_AttrValue_b_field && value->b == wanted->b;
    default:
      return false;
  }
}

static rn_status_t check_attrs(const rn_dataset_t* dataset, const rn_pb_NameAttrList_t* wanted,
                               int64_t offset) {
  for (size_t i = 0; i < wanted->attr.count; ++i) {
    rn_str_t key = wanted->attr.items[i].key;
    int at = rn_op_attr_index(dataset->node->op, key);
    if (at < 0 || !dataset->node->attrs)
      return rn_invalid_argument(
          "Failure checking transformations at offset %lld: Asserted attribute '%.*s', but found "
          "no such attribute defined.",
          (long long)offset, RN_STR_ARGS(key));
    if (!wanted->attr.items[i].value ||
        !has_value(&dataset->node->attrs[at], wanted->attr.items[i].value))
      return rn_invalid_argument(
          "Failure checking transformations at offset %lld: Asserted attribute '%.*s', but found "
          "another value.",
          (long long)offset, RN_STR_ARGS(key));
  }
  return RN_OK;
}

static rn_status_t check_one(const rn_dataset_t* dataset, rn_str_t text, int64_t offset,
                             rn_arena_t* arena) {
  rn_pb_NameAttrList_t* wanted = NULL;
  rn_status_t status = rn_pb_parse(&rn_pb_NameAttrList_desc, text, NULL, arena, (void**)&wanted);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return rn_invalid_argument(
        "Failure checking transformations at offset %lld: Couldn't parse transformation '%.*s'.",
        (long long)offset, RN_STR_ARGS(text));
  }
  const char* name = dataset->node->op->name;
  if (!matches(wanted->name, rn_str(name)))
    return rn_invalid_argument(
        "Failure checking transformations at offset %lld: Asserted transformation matching "
        "'%.*s', but found '%s'.",
        (long long)offset, RN_STR_ARGS(wanted->name), name);
  return check_attrs(dataset, wanted, offset);
}

static rn_status_t check_previous(const asserts_t* asserts) {
  int64_t wanted = asserts->names->count;
  rn_arena_t arena;
  rn_arena_init(&arena, asserts->base.node->allocator);
  rn_status_t status = RN_OK;
  const rn_dataset_t* at = asserts->input;
  for (int64_t i = 0; rn_ok(status) && i < wanted; ++i, at = input_of(at)) {
    if (at)
      status = check_one(at, name_at(asserts, i), i, &arena);
    else
      status =
          rn_invalid_argument("Asserted previous %lld transformations but encountered only %lld.",
                              (long long)wanted, (long long)i);
    if (!at) break;
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t prev_start(rn_data_iterator_t* iterator) {
  const asserts_t* asserts = (const asserts_t*)iterator->dataset;
  RN_RETURN_IF_ERROR(check_previous(asserts));
  return rn_data_source_start(&((asserts_iterator_t*)iterator)->source, iterator, asserts->input);
}

const rn_data_kind_t rn_data_kind_assert_prev = {ASSERTS, .start = prev_start};
