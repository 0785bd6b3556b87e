// See shard.h.
#include "kernels/cpu/dataset/shard.h"

#include "io/snapshot.h"
#include "kernels/cpu/dataset/window.h"

typedef struct dataset_shard_t {
  rn_dataset_t base;
  char* path;  // Owned
  rn_compression_t compression;
  int64_t version, first;  // of the files; the first element
} dataset_shard_t;

typedef struct shard_iterator_t {
  rn_data_iterator_t base;
  rn_snapshot_reader_t* reader;
  int64_t next;
} shard_iterator_t;

// SnapshotDatasetReader.
static rn_status_t shard_open(rn_dataset_t* dataset) {
  dataset_shard_t* shard = (dataset_shard_t*)dataset;
  rn_str_t path, compression = rn_data_attr(dataset, "compression")->s;
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "shard_dir", &path));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "start_index", &shard->first));
  RN_RETURN_IF_ERROR(rn_fs_check_name(path));
  if (shard->first < 0) shard->first = 0;
  shard->version = rn_data_attr(dataset, "version")->i;
  if (!rn_record_compression_from_name(compression, &shard->compression))
    return rn_invalid_argument("Unsupported compression: %.*s", RN_STR_ARGS(compression));
  return rn_str_dup(dataset->node->allocator, path, &shard->path);
}

static void shard_close(rn_dataset_t* dataset) {
  dataset_shard_t* shard = (dataset_shard_t*)dataset;
  if (shard->path) rn_free(dataset->node->allocator, shard->path, strlen(shard->path) + 1);
}

static rn_status_t start_at(rn_data_iterator_t* iterator, int64_t element) {
  shard_iterator_t* own = (shard_iterator_t*)iterator;
  const dataset_shard_t* shard = (const dataset_shard_t*)iterator->dataset;
  own->next = element;
  RN_RETURN_IF_ERROR(rn_snapshot_reader_open(shard->base.host->env, shard->path, shard->compression,
                                             shard->version, &own->reader));
  return element ? rn_snapshot_reader_skip(own->reader, shard->base.component_count, element)
                 : RN_OK;
}

static rn_status_t shard_start(rn_data_iterator_t* iterator) {
  return start_at(iterator, ((const dataset_shard_t*)iterator->dataset)->first);
}

static void shard_stop(rn_data_iterator_t* iterator) {
  rn_snapshot_reader_close(((shard_iterator_t*)iterator)->reader);
}

static bool shard_next(rn_data_iterator_t* iterator) {
  shard_iterator_t* own = (shard_iterator_t*)iterator;
  const rn_dataset_t* dataset = iterator->dataset;
  bool is_end = false;
  rn_status_t status =
      rn_snapshot_reader_next(own->reader, dataset->component_count, dataset->types,
                              dataset->node->memory, iterator->asked->out, &is_end);
  if (rn_ok(status) && is_end) return rn_data_end(iterator);
  own->next += rn_ok(status);
  return rn_data_finish(iterator, status);
}

static rn_status_t shard_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((shard_iterator_t*)iterator)->next);
  return RN_OK;
}

static rn_status_t shard_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  shard_iterator_t* own = (shard_iterator_t*)iterator;
  int64_t next = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &next));
  if (next < 0) return rn_data_bad_state();
  rn_snapshot_reader_close(own->reader);
  own->reader = NULL;
  return start_at(iterator, next);
}

const rn_data_kind_t rn_data_kind_snapshot_shard = {.dataset_size = sizeof(dataset_shard_t),
                                                    .iterator_size = sizeof(shard_iterator_t),
                                                    .open = shard_open,
                                                    .close = shard_close,
                                                    .start = shard_start,
                                                    .stop = shard_stop,
                                                    .next = shard_next,
                                                    .save = shard_save,
                                                    .restore = shard_restore};

// A variant that holds a shard: the files below |path|.
static rn_status_t shard_create(const rn_dataset_t* like, int32_t count, const rn_dtype_t* types,
                                const rn_shape_t* shapes, rn_str_t path,
                                rn_compression_t compression, int64_t version, int64_t first,
                                rn_tensor_t* out) {
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(
      rn_data_inner_node(like->node, &rn_data_kind_snapshot_shard, count, types, shapes, &node));
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create_inner(node, like->host, &dataset);
  rn_object_release(&node->object);
  RN_RETURN_IF_ERROR(status);
  dataset_shard_t* shard = (dataset_shard_t*)dataset;
  shard->compression = compression;
  shard->version = version;
  shard->first = first;
  status = rn_str_dup(like->node->allocator, path, &shard->path);
  if (rn_ok(status)) status = rn_dataset_tensor(dataset, out);
  rn_dataset_release(dataset);
  return status;
}

// A dataset of |count| scalars, each holding a dataset.
static rn_status_t dataset_of(const rn_dataset_t* like, rn_tensor_t* const* rows, int64_t count,
                              rn_dataset_t** out) {
  static const rn_dtype_t type = RN_VARIANT;
  static const rn_shape_t shape = {0};
  rn_dataset_t elements = {
      .node = like->node, .host = like->host, .types = &type, .shapes = &shape};
  return rn_data_rows_dataset(&elements, 0, 1, rows, count, out);
}

static rn_status_t fill(const rn_dataset_t* like, const char* run, rn_compression_t compression,
                        rn_names_t* names, rn_data_rows_t* rows, rn_dataset_t** out) {
  RN_RETURN_IF_ERROR(rn_snapshot_shards(like->host->env, run, names));
  for (size_t i = 0; i < names->list.count; ++i) {
    rn_tensor_t shard = {0};
    RN_RETURN_IF_ERROR(shard_create(like, like->component_count, like->types, like->shapes,
                                    names->list.items[i], compression, 2, 0, &shard));
    rn_status_t status = rn_data_rows_push(rows, &shard);
    if (!rn_ok(status)) rn_tensor_clear(&shard);
    RN_RETURN_IF_ERROR(status);
  }
  return dataset_of(like, rows->list.items, (int64_t)rows->list.count, out);
}

rn_status_t rn_data_shards_dataset(const rn_dataset_t* like, const char* run,
                                   rn_compression_t compression, rn_dataset_t** out) {
  *out = NULL;
  rn_names_t names;
  rn_names_init(&names, like->node->allocator);
  rn_data_rows_t rows = {.allocator = like->node->allocator, .component_count = 1};
  rn_status_t status = fill(like, run, compression, &names, &rows, out);
  rn_data_rows_clear(&rows);
  rn_names_clear(&names);
  return status;
}

const rn_dataset_t* rn_data_shard_of(const rn_tensor_t* tensor) {
  if (tensor->dtype != RN_VARIANT || tensor->rank != 0) return NULL;
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_of(tensor, &dataset);
  rn_status_free(status);
  return dataset && dataset->kind == &rn_data_kind_snapshot_shard ? dataset : NULL;
}

void rn_data_shard_put(rn_data_writer_t* writer, const rn_dataset_t* dataset) {
  const dataset_shard_t* shard = (const dataset_shard_t*)dataset;
  rn_data_elements_put(writer, dataset);
  rn_data_put_text(writer, rn_str(shard->path));
  rn_data_put_int(writer, shard->compression);
  rn_data_put_int(writer, shard->version);
  rn_data_put_int(writer, shard->first);
}

static rn_status_t take(rn_data_reader_t* reader, rn_data_elements_t* elements, rn_tensor_t* out) {
  rn_str_t path;
  int64_t compression = 0, version = 0, first = 0;
  RN_RETURN_IF_ERROR(rn_data_elements_take(reader, elements));
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &path));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &compression));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &version));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &first));
  if (compression < 0 || compression > RN_COMPRESSION_SNAPPY || first < 0)
    return rn_data_bad_state();
  return shard_create(reader->dataset, elements->count, elements->types, elements->shapes, path,
                      (rn_compression_t)compression, version, first, out);
}

rn_status_t rn_data_shard_take(rn_data_reader_t* reader, rn_tensor_t* out) {
  rn_data_elements_t elements = {0};
  rn_arena_init(&elements.arena, reader->dataset->node->allocator);
  rn_status_t status = take(reader, &elements, out);
  rn_arena_clear(&elements.arena);
  return status;
}
