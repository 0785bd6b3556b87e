// Reading of distributed snapshots: ListSnapshotChunksDataset yields the paths of the chunks, as
// they are written, and SnapshotChunkDataset the elements of one.
#include "io/snapshot_chunks.h"

#include "io/snapshot_file.h"
#include "kernels/cpu/dataset/text.h"
#include "kernels/cpu/dataset/waiter.h"

#define LOOK_EVERY_US 100000  // for further chunks

typedef struct chunk_list_t {
  rn_dataset_t base;
  char* path;  // Owned
} chunk_list_t;

typedef struct chunk_list_iterator_t {
  rn_data_iterator_t base;
  rn_names_t given;
  size_t sorted;      // that many of |given| are sorted by bytes
  rn_names_t listed;  // in the order of the chunks; given ones may be among them
  size_t next;        // within |listed|
  bool is_done;       // |listed| has all
} chunk_list_iterator_t;

static rn_status_t list_open(rn_dataset_t* dataset) {
  rn_str_t path;
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "snapshot_path", &path));
  if (!path.size) return rn_invalid_argument("snapshot_path is required to list snapshot chunks.");
  if (dataset->component_count != 1 || dataset->types[0] != RN_STRING)
    return rn_invalid_argument("The paths of chunks are strings");
  RN_RETURN_IF_ERROR(rn_fs_check_name(path));
  return rn_str_dup(dataset->node->allocator, path, &((chunk_list_t*)dataset)->path);
}

static void list_close(rn_dataset_t* dataset) {
  chunk_list_t* own = (chunk_list_t*)dataset;
  if (own->path) rn_free(dataset->node->allocator, own->path, strlen(own->path) + 1);
}

static rn_status_t list_start(rn_data_iterator_t* iterator) {
  chunk_list_iterator_t* own = (chunk_list_iterator_t*)iterator;
  rn_names_init(&own->given, iterator->dataset->node->allocator);
  rn_names_init(&own->listed, iterator->dataset->node->allocator);
  return RN_OK;
}

static void list_stop(rn_data_iterator_t* iterator) {
  chunk_list_iterator_t* own = (chunk_list_iterator_t*)iterator;
  rn_names_clear(&own->given);
  rn_names_clear(&own->listed);
}

// Whether |name| was given before the last listing. What was given since lies before |next|.
static bool was_given(const chunk_list_iterator_t* own, rn_str_t name) {
  size_t low = 0, high = own->sorted;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = strcmp(own->given.list.items[middle].data, name.data);
    if (order == 0) return true;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

static rn_status_t give(chunk_list_iterator_t* own, rn_str_t name) {
  RN_RETURN_IF_ERROR(
      rn_data_text_create(own->base.dataset->node->memory, name, &own->base.asked->out[0]));
  return rn_names_add(&own->given, name);
}

// Lists the chunks again.
static rn_status_t look(chunk_list_iterator_t* own) {
  const chunk_list_t* dataset = (const chunk_list_t*)own->base.dataset;
  rn_names_sort(&own->given);
  own->sorted = own->given.list.count;
  rn_names_clear(&own->listed);
  rn_names_init(&own->listed, dataset->base.node->allocator);
  own->next = 0;
  return rn_snapshot_chunks(dataset->base.host->env, dataset->path, &own->listed, &own->is_done);
}

static bool list_next(rn_data_iterator_t* iterator) {
  chunk_list_iterator_t* own = (chunk_list_iterator_t*)iterator;
  rn_status_t status = RN_OK;
  for (bool has_looked = false; rn_ok(status);) {
    for (; own->next < own->listed.list.count; ++own->next) {
      rn_str_t name = own->listed.list.items[own->next];
      if (was_given(own, name)) continue;
      status = give(own, name);
      own->next += rn_ok(status);
      return rn_data_finish(iterator, status);
    }
    if (own->is_done) return rn_data_end(iterator);
    if (has_looked)
      status = rn_data_pause(iterator->asked, iterator->dataset->host->env, LOOK_EVERY_US);
    if (rn_ok(status)) status = look(own);
    has_looked = true;
  }
  return rn_data_finish(iterator, status);
}

static rn_status_t list_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  const rn_names_t* given = &((chunk_list_iterator_t*)iterator)->given;
  rn_data_put_int(writer, (int64_t)given->list.count);
  for (size_t i = 0; i < given->list.count; ++i) rn_data_put_text(writer, given->list.items[i]);
  return RN_OK;
}

static rn_status_t list_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  chunk_list_iterator_t* own = (chunk_list_iterator_t*)iterator;
  int64_t count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_data_take_text(reader, &name));
    RN_RETURN_IF_ERROR(rn_names_add(&own->given, name));
  }
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_chunk_list = {.dataset_size = sizeof(chunk_list_t),
                                                .iterator_size = sizeof(chunk_list_iterator_t),
                                                .open = list_open,
                                                .close = list_close,
                                                .start = list_start,
                                                .stop = list_stop,
                                                .next = list_next,
                                                .save = list_save,
                                                .restore = list_restore};

// SnapshotChunkDataset.
typedef struct chunk_t {
  rn_dataset_t base;
  char* path;  // Owned
  rn_compression_t compression;
} chunk_t;

typedef struct chunk_iterator_t {
  rn_data_iterator_t base;
  rn_snapshot_file_t* file;
  int64_t next;
} chunk_iterator_t;

static rn_status_t chunk_open(rn_dataset_t* dataset) {
  chunk_t* own = (chunk_t*)dataset;
  rn_str_t path, compression = rn_data_attr(dataset, "compression")->s;
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "chunk_file", &path));
  if (!rn_record_compression_from_name(compression, &own->compression))
    return rn_invalid_argument("Unsupported compression: %.*s", RN_STR_ARGS(compression));
  RN_RETURN_IF_ERROR(rn_fs_check_name(path));
  return rn_str_dup(dataset->node->allocator, path, &own->path);
}

static void chunk_close(rn_dataset_t* dataset) {
  chunk_t* own = (chunk_t*)dataset;
  if (own->path) rn_free(dataset->node->allocator, own->path, strlen(own->path) + 1);
}

static rn_status_t chunk_start(rn_data_iterator_t* iterator) {
  const chunk_t* chunk = (const chunk_t*)iterator->dataset;
  return rn_snapshot_file_open(chunk->base.host->env, chunk->path, chunk->compression, 2,
                               &((chunk_iterator_t*)iterator)->file);
}

static void chunk_stop(rn_data_iterator_t* iterator) {
  rn_snapshot_file_close(((chunk_iterator_t*)iterator)->file);
}

static bool chunk_next(rn_data_iterator_t* iterator) {
  chunk_iterator_t* own = (chunk_iterator_t*)iterator;
  const rn_dataset_t* dataset = iterator->dataset;
  bool is_end = false;
  rn_status_t status = rn_snapshot_file_next(own->file, dataset->component_count, dataset->types,
                                             dataset->node->memory, iterator->asked->out, &is_end);
  if (is_end) return rn_data_end(iterator);
  own->next += rn_ok(status);
  return rn_data_finish(iterator, status);
}

static rn_status_t chunk_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((chunk_iterator_t*)iterator)->next);
  return RN_OK;
}

static rn_status_t chunk_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  chunk_iterator_t* own = (chunk_iterator_t*)iterator;
  bool is_end = false;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  if (own->next < 0) return rn_data_bad_state();
  for (int64_t i = 0; i < own->next && !is_end; ++i)
    RN_RETURN_IF_ERROR(
        rn_snapshot_file_skip(own->file, iterator->dataset->component_count, &is_end));
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_chunk = {.dataset_size = sizeof(chunk_t),
                                           .iterator_size = sizeof(chunk_iterator_t),
                                           .open = chunk_open,
                                           .close = chunk_close,
                                           .start = chunk_start,
                                           .stop = chunk_stop,
                                           .next = chunk_next,
                                           .save = chunk_save,
                                           .restore = chunk_restore};
