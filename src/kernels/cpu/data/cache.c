// Datasets that are kept in memory, or in a file, as they are walked over for the first time.
//
// A cache in a file is "<name>.records": TFRecords, each the components of an element one behind
// the other, each a length (8 bytes, little-endian) and a TensorProto. It is written beside its
// place and put there when it is whole.
#include "kernels/cpu/data/cache.h"

#include "io/record.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/encode.h"

typedef struct cached_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_cache_t* cache;  // Retained
  char* path;              // Owned; NULL: in memory
  size_t path_size;
} cached_t;

typedef struct cached_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  bool is_begun, is_reading, is_over;
  int64_t next;         // the element that comes next
  rn_data_rows_t rows;  // gathered
  rn_tensor_t* row;
  rn_record_reader_t* reader;
  rn_record_writer_t* writer;
  rn_strbuf_t temporary;  // where the writer writes
} cached_iterator_t;

static void cache_destroy(rn_object_t* object) {
  rn_data_cache_t* cache = (rn_data_cache_t*)object;
  rn_data_rows_clear(&cache->rows);
  rn_mutex_destroy(&cache->mutex);
  RN_FREE(cache->allocator, cache);
}

rn_status_t rn_data_cache_create(rn_allocator_t allocator, rn_data_cache_t** out) {
  *out = NULL;
  rn_data_cache_t* cache = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &cache));
  cache->resource = (rn_resource_t){{.refs = 1, .destroy = cache_destroy}, RN_DATA_CACHE_TYPE};
  cache->allocator = allocator;
  rn_mutex_init(&cache->mutex);
  *out = cache;
  return RN_OK;
}

static rn_status_t open_path(cached_t* cached) {
  const rn_tensor_t* name = rn_data_input(&cached->base, "filename", NULL);
  if (name->rank != 0) return rn_invalid_argument("filename must be a scalar");
  rn_str_t text = rn_tstring_view(RN_DATA(name, const rn_tstring_t));
  if (!text.size) return RN_OK;
  rn_strbuf_t path;
  rn_strbuf_init(&path, cached->base.node->allocator);
  rn_strbuf_append(&path, text);
  rn_strbuf_append(&path, RN_STR(".records"));
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status))
    status = rn_str_dup(cached->base.node->allocator, rn_strbuf_view(&path), &cached->path);
  cached->path_size = path.size + 1;
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t cached_open(rn_dataset_t* dataset) {
  cached_t* cached = (cached_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &cached->input));
  if (cached->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s: %d components in, %d out", dataset->node->op->name,
                               cached->input->component_count, dataset->component_count);
  RN_RETURN_IF_ERROR(open_path(cached));
  const rn_tensor_t* handle = rn_data_input(dataset, "cache", NULL);
  rn_resource_t* resource = NULL;
  if (handle) {
    // A handle to nothing says: one of your own.
    rn_status_t status = rn_handle_resource(handle, NULL, RN_DATA_CACHE_TYPE, &resource);
    rn_status_free(status);
  }
  if (!resource) return rn_data_cache_create(dataset->node->allocator, &cached->cache);
  cached->cache = (rn_data_cache_t*)resource;
  rn_object_retain(&resource->object);
  return RN_OK;
}

static void cached_close(rn_dataset_t* dataset) {
  cached_t* cached = (cached_t*)dataset;
  if (cached->cache) rn_object_release(&cached->cache->resource.object);
  rn_free(dataset->node->allocator, cached->path, cached->path_size);
}

static int64_t cached_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const cached_t*)dataset)->input);
}

static rn_status_t cached_start(rn_data_iterator_t* iterator) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  own->rows = (rn_data_rows_t){.allocator = iterator->dataset->node->allocator,
                               .component_count = iterator->dataset->component_count};
  rn_strbuf_init(&own->temporary, iterator->dataset->node->allocator);
  return rn_data_row(iterator, iterator->dataset->component_count, &own->row);
}

static const rn_env_t* env_of(const cached_iterator_t* own) { return own->base.dataset->host->env; }

// A file that is not whole is nobody's.
static void give_up_file(cached_iterator_t* own) {
  if (!own->writer) return;
  rn_status_free(rn_record_writer_close(own->writer));
  own->writer = NULL;
  const rn_env_t* env = env_of(own);
  rn_status_free(env->fs->remove(env->fs_self, own->temporary.data));
}

static void cached_stop(rn_data_iterator_t* iterator) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_rows_clear(&own->rows);
  rn_data_row_clear(own->row, iterator->dataset->component_count);
  rn_record_reader_close(own->reader);
  if (own->writer && rn_data_host_enter(iterator->dataset->host)) {
    give_up_file(own);
    rn_data_host_leave(iterator->dataset->host);
  } else if (own->writer) {
    rn_status_free(rn_record_writer_close(own->writer));
  }
  rn_strbuf_clear(&own->temporary);
}

// In memory.
static bool read_memory(cached_iterator_t* own) {
  const rn_data_cache_t* cache = ((const cached_t*)own->base.dataset)->cache;
  rn_tensor_t* out = own->base.asked->out;
  int32_t count = own->base.dataset->component_count;
  if ((size_t)own->next >= cache->rows.list.count) return rn_data_end(&own->base);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < count; ++c)
    status = rn_tensor_share(&cache->rows.list.items[own->next][c], &out[c]);
  if (rn_ok(status))
    own->next++;
  else
    rn_data_row_clear(out, count);
  return rn_data_finish(&own->base, status);
}

// In a file.
static rn_status_t put_record(cached_iterator_t* own, const rn_tensor_t* row) {
  rn_allocator_t allocator = own->base.dataset->node->allocator;
  rn_strbuf_t record, part;
  rn_arena_t arena;
  rn_strbuf_init(&record, allocator);
  rn_strbuf_init(&part, allocator);
  rn_arena_init(&arena, allocator);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < own->base.dataset->component_count; ++c) {
    rn_pb_TensorProto_t proto;
    status = rn_tensor_to_proto(&row[c], RN_TENSOR_CONTENT, &arena, &proto);
    part.size = 0;
    if (rn_ok(status)) status = RN_PB_ENCODE(TensorProto, &proto, NULL, &part);
    uint64_t size = part.size;
    uint8_t bytes[8];
    for (int b = 0; b < 8; ++b) bytes[b] = (uint8_t)(size >> (8 * b));
    rn_strbuf_append_n(&record, bytes, sizeof bytes);
    rn_strbuf_append(&record, rn_strbuf_view(&part));
    if (rn_ok(status)) status = rn_strbuf_status(&record);
  }
  if (rn_ok(status)) status = rn_record_writer_write(own->writer, rn_strbuf_view(&record));
  rn_arena_clear(&arena);
  rn_strbuf_clear(&part);
  rn_strbuf_clear(&record);
  return status;
}

static rn_status_t take_component(cached_iterator_t* own, rn_str_t* record, rn_tensor_t* out) {
  uint64_t size = 0;
  if (record->size < 8) return rn_data_loss("A record of a cache is too short");
  for (int b = 0; b < 8; ++b) size |= (uint64_t)(uint8_t)record->data[b] << (8 * b);
  *record = rn_str_n(record->data + 8, record->size - 8);
  if (size > record->size) return rn_data_loss("A record of a cache is too short");
  rn_arena_t arena;
  rn_arena_init(&arena, own->base.dataset->node->allocator);
  rn_pb_TensorProto_t* proto = NULL;
  rn_status_t status =
      RN_PB_DECODE(TensorProto, rn_str_n(record->data, (size_t)size), NULL, &arena, &proto);
  if (rn_ok(status))
    status = rn_tensor_from_proto(proto, (size_t)1 << 31, own->base.dataset->node->memory, out);
  rn_arena_clear(&arena);
  *record = rn_str_n(record->data + size, record->size - (size_t)size);
  return status;
}

static bool read_file(cached_iterator_t* own) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_tensor_t* out = own->base.asked->out;
  rn_str_t record;
  bool is_end = false;
  rn_status_t status = rn_record_reader_next(own->reader, &record, &is_end);
  if (rn_ok(status) && is_end) return rn_data_end(&own->base);
  for (int32_t c = 0; rn_ok(status) && c < dataset->component_count; ++c) {
    status = take_component(own, &record, &out[c]);
    if (rn_ok(status) && out[c].dtype != dataset->types[c])
      status = rn_data_loss("A cache holds elements of other types: %s",
                            ((const cached_t*)dataset)->path);
  }
  if (rn_ok(status))
    own->next++;
  else
    rn_data_row_clear(out, dataset->component_count);
  return rn_data_finish(&own->base, status);
}

static rn_status_t finish_file(cached_iterator_t* own) {
  const rn_env_t* env = env_of(own);
  rn_status_t status = rn_record_writer_close(own->writer);
  own->writer = NULL;
  if (!rn_ok(status)) return status;
  return env->fs->rename(env->fs_self, own->temporary.data,
                         ((const cached_t*)own->base.dataset)->path);
}

// What is there already is read; otherwise the input is.
static rn_status_t begin(cached_iterator_t* own) {
  const cached_t* cached = (const cached_t*)own->base.dataset;
  own->is_begun = true;
  if (!cached->path) {
    rn_mutex_lock(&cached->cache->mutex);
    own->is_reading = cached->cache->is_complete;
    rn_mutex_unlock(&cached->cache->mutex);
    if (own->is_reading && cached->cache->rows.component_count != own->rows.component_count)
      return rn_invalid_argument("A cache is shared by datasets of other elements");
  } else if (rn_fs_exists(env_of(own), cached->path)) {
    own->is_reading = true;
    return rn_record_reader_open(env_of(own), cached->path, RN_COMPRESSION_NONE, 0, &own->reader);
  } else {
    RN_RETURN_IF_ERROR(rn_fs_temporary(env_of(own), cached->path, &own->temporary));
    RN_RETURN_IF_ERROR(rn_record_writer_open(env_of(own), own->temporary.data, NULL, &own->writer));
  }
  return own->is_reading ? RN_OK : rn_data_source_start(&own->source, &own->base, cached->input);
}

// The walk has come to its end: what was gathered is the cache, unless another was faster.
static rn_status_t complete(cached_iterator_t* own) {
  rn_data_cache_t* cache = ((const cached_t*)own->base.dataset)->cache;
  own->is_over = true;
  if (own->writer) return finish_file(own);
  rn_mutex_lock(&cache->mutex);
  if (!cache->is_complete) {
    cache->rows = own->rows;
    cache->is_complete = true;
    own->rows = (rn_data_rows_t){0};
  }
  rn_mutex_unlock(&cache->mutex);
  return RN_OK;
}

// A copy of what goes out is kept.
static rn_status_t remember(cached_iterator_t* own, const rn_tensor_t* out) {
  if (own->writer) return put_record(own, out);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < own->rows.component_count; ++c)
    status = rn_tensor_keep(&out[c], own->base.dataset->node->memory, &own->row[c]);
  if (rn_ok(status)) status = rn_data_rows_push(&own->rows, own->row);
  if (!rn_ok(status)) rn_data_row_clear(own->row, own->rows.component_count);
  return status;
}

static bool cached_next(rn_data_iterator_t* iterator) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  rn_status_t status = own->is_begun ? RN_OK : begin(own);
  if (!rn_ok(status)) {
    own->is_begun = false;
    return rn_data_finish(iterator, status);
  }
  if (own->is_over) return rn_data_end(iterator);
  if (own->is_reading) return own->reader ? read_file(own) : read_memory(own);
  if (iterator->phase == 0) {
    iterator->phase = 1;
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  status = own->source.request.status;
  if (own->source.request.is_end) {
    status = complete(own);
    return rn_ok(status) ? rn_data_end(iterator) : rn_data_finish(iterator, status);
  }
  if (rn_ok(status)) {
    status = remember(own, iterator->asked->out);
    if (rn_ok(status))
      own->next++;
    else
      rn_data_row_clear(iterator->asked->out, iterator->dataset->component_count);
  }
  return rn_data_finish(iterator, status);
}

// A file that is being written cannot be saved in the middle; memory can.
static rn_status_t cached_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  rn_data_cache_t* cache = ((const cached_t*)iterator->dataset)->cache;
  if (own->writer) return rn_unimplemented("A cache cannot be saved while its file is written");
  rn_data_put_int(writer, own->is_begun);
  rn_data_put_int(writer, own->is_reading);
  rn_data_put_int(writer, own->is_over);
  rn_data_put_int(writer, own->next);
  bool is_kept = (own->is_reading || own->is_over) && !own->reader;
  rn_data_rows_save(is_kept ? &cache->rows : &own->rows, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t restore_rows(cached_iterator_t* own, rn_data_reader_t* reader) {
  rn_data_cache_t* cache = ((const cached_t*)own->base.dataset)->cache;
  own->rows = (rn_data_rows_t){.allocator = own->base.dataset->node->allocator,
                               .component_count = own->base.dataset->component_count};
  RN_RETURN_IF_ERROR(rn_data_rows_restore(&own->rows, reader, own->base.dataset->types, own->row));
  if (!own->is_reading && !own->is_over) return RN_OK;
  if (((const cached_t*)own->base.dataset)->path) {
    if (!own->is_reading) return RN_OK;
    RN_RETURN_IF_ERROR(rn_record_reader_open(env_of(own),
                                             ((const cached_t*)own->base.dataset)->path,
                                             RN_COMPRESSION_NONE, 0, &own->reader));
    int64_t skipped = 0;
    return rn_record_reader_skip(own->reader, own->next, &skipped);
  }
  rn_mutex_lock(&cache->mutex);
  if (!cache->is_complete) {
    cache->rows = own->rows;
    cache->is_complete = true;
    own->rows = (rn_data_rows_t){0};
  }
  rn_mutex_unlock(&cache->mutex);
  return RN_OK;
}

static rn_status_t cached_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  int64_t is_begun = 0, is_reading = 0, is_over = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_begun));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_reading));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->next));
  if (own->next < 0) return rn_data_bad_state();
  own->is_begun = is_begun != 0;
  own->is_reading = is_reading != 0;
  own->is_over = is_over != 0;
  RN_RETURN_IF_ERROR(restore_rows(own, reader));
  return rn_data_restore_source(reader, &own->source, iterator,
                                ((const cached_t*)iterator->dataset)->input);
}

const rn_data_kind_t rn_data_kind_cache = {.dataset_size = sizeof(cached_t),
                                           .iterator_size = sizeof(cached_iterator_t),
                                           .open = cached_open,
                                           .close = cached_close,
                                           .cardinality = cached_cardinality,
                                           .start = cached_start,
                                           .stop = cached_stop,
                                           .next = cached_next,
                                           .save = cached_save,
                                           .restore = cached_restore};
