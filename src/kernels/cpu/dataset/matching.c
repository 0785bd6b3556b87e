// MatchingFilesDataset: the names of the files that match patterns, sorted by name for each
// pattern.
#include "base/fs.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/text.h"
#include "tensor/tstring.h"

typedef struct matching_t {
  rn_dataset_t base;
  const rn_tensor_t* patterns;
} matching_t;

typedef struct matching_iterator_t {
  rn_data_iterator_t base;
  rn_names_t names;
  bool is_listed;
  int64_t next;
} matching_iterator_t;

static rn_status_t matching_open(rn_dataset_t* dataset) {
  matching_t* matching = (matching_t*)dataset;
  matching->patterns = rn_data_input(dataset, "patterns", NULL);
  return RN_OK;
}

static rn_status_t matching_start(rn_data_iterator_t* iterator) {
  rn_names_init(&((matching_iterator_t*)iterator)->names, iterator->dataset->node->allocator);
  return RN_OK;
}

static void matching_stop(rn_data_iterator_t* iterator) {
  rn_names_clear(&((matching_iterator_t*)iterator)->names);
}

static rn_status_t list_pattern(matching_iterator_t* own, rn_str_t text) {
  const rn_dataset_t* dataset = own->base.dataset;
  char* pattern = NULL;
  RN_RETURN_IF_ERROR(rn_fs_check_name(text));
  RN_RETURN_IF_ERROR(rn_str_dup(dataset->node->allocator, text, &pattern));
  rn_status_t status = rn_fs_glob(dataset->host->env, pattern, &own->names);
  rn_free(dataset->node->allocator, pattern, text.size + 1);
  return status;
}

static rn_status_t list_files(matching_iterator_t* own) {
  const rn_tensor_t* patterns = ((const matching_t*)own->base.dataset)->patterns;
  for (int64_t i = 0; i < patterns->count; ++i)
    RN_RETURN_IF_ERROR(
        list_pattern(own, rn_tstring_view(&RN_DATA(patterns, const rn_tstring_t)[i])));
  own->is_listed = true;
  return RN_OK;
}

static bool matching_next(rn_data_iterator_t* iterator) {
  matching_iterator_t* own = (matching_iterator_t*)iterator;
  rn_status_t status = own->is_listed ? RN_OK : list_files(own);
  if (!rn_ok(status)) return rn_data_finish(iterator, status);
  if (own->next >= (int64_t)own->names.list.count) return rn_data_end(iterator);
  status = rn_data_text_create(iterator->dataset->node->memory, own->names.list.items[own->next++],
                               iterator->asked->out);
  return rn_data_finish(iterator, status);
}

static rn_status_t matching_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  const matching_iterator_t* own = (const matching_iterator_t*)iterator;
  rn_data_put_int(writer, own->is_listed ? (int64_t)own->names.list.count : -1);
  for (size_t i = 0; i < own->names.list.count; ++i)
    rn_data_put_text(writer, own->names.list.items[i]);
  rn_data_put_int(writer, own->next);
  return RN_OK;
}

static rn_status_t matching_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  matching_iterator_t* own = (matching_iterator_t*)iterator;
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  own->is_listed = count >= 0;
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_data_take_text(reader, &name));
    RN_RETURN_IF_ERROR(rn_names_add(&own->names, name));
  }
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  return own->next < 0 ? rn_data_bad_state() : RN_OK;
}

const rn_data_kind_t rn_data_kind_matching = {.dataset_size = sizeof(matching_t),
                                              .iterator_size = sizeof(matching_iterator_t),
                                              .open = matching_open,
                                              .start = matching_start,
                                              .stop = matching_stop,
                                              .next = matching_next,
                                              .save = matching_save,
                                              .restore = matching_restore,
                                              .fixed_count = 1,
                                              .fixed_types = {RN_STRING}};
