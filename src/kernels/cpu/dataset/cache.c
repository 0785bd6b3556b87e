// Cache datasets: kept in memory or in a file during the first walk.
//
// A cache in files is a bundle, "<name>.index" and "<name>.data-00000-of-00001", as in TensorFlow:
// component c of element i is the tensor "i_c", with i padded to seven characters and c to the
// width of the last component's number, both with leading spaces. Elements are in key order. The
// bundle is moved into place once complete; meanwhile "<name>_0.lockfile" keeps others from writing
// it.
#include "kernels/cpu/dataset/cache.h"

#include <stdio.h>

#include "io/bundle.h"
#include "tensor/tstring.h"

#define LONGEST_KEY 64

typedef struct cached_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_data_cache_t* cache;  // Retained
  char* path;              // Owned; the bundle's prefix; NULL if in memory
  size_t path_size;
} cached_t;

typedef struct cached_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  bool is_begun, is_reading, is_over;
  int64_t next;         // index of the next element
  rn_data_rows_t rows;  // collected so far
  rn_tensor_t* row;
  rn_bundle_reader_t* reader;
  rn_bundle_writer_t* writer;
  rn_strbuf_t lock;  // lock file held while |writer| writes; empty if none
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
  cached->path_size = text.size + 1;
  return rn_str_dup(cached->base.node->allocator, text, &cached->path);
}

static rn_status_t cached_open(rn_dataset_t* dataset) {
  cached_t* cached = (cached_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &cached->input));
  if (cached->input->component_count != dataset->component_count)
    return rn_invalid_argument("%s has %d input components, but %d output components",
                               dataset->node->op->name, cached->input->component_count,
                               dataset->component_count);
  RN_RETURN_IF_ERROR(open_path(cached));
  const rn_tensor_t* handle = rn_data_input(dataset, "cache", NULL);
  rn_resource_t* resource = NULL;
  if (handle) {
    // An empty handle requests a cache of the dataset's own.
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
  rn_strbuf_init(&own->lock, iterator->dataset->node->allocator);
  return rn_data_row(iterator, iterator->dataset->component_count, &own->row);
}

static const rn_env_t* env_of(const cached_iterator_t* own) { return own->base.dataset->host->env; }

// Discards an incomplete cache; the writer removes its files.
static void give_up_files(cached_iterator_t* own) {
  rn_bundle_writer_destroy(own->writer);
  own->writer = NULL;
  const rn_env_t* env = env_of(own);
  if (own->lock.size) rn_status_free(env->fs->remove(env->fs_self, own->lock.data));
  own->lock.size = 0;
}

static void cached_stop(rn_data_iterator_t* iterator) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  rn_data_source_stop(&own->source);
  rn_data_rows_clear(&own->rows);
  rn_data_row_clear(own->row, iterator->dataset->component_count);
  rn_bundle_reader_close(own->reader);
  if (own->writer || own->lock.size) {
    // Once the host is closed, its files can no longer be reached.
    if (rn_data_host_enter(iterator->dataset->host)) {
      give_up_files(own);
      rn_data_host_leave(iterator->dataset->host);
    }
  }
  rn_strbuf_clear(&own->lock);
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

// In files.
static rn_status_t put_row(cached_iterator_t* own, const rn_tensor_t* row) {
  int32_t count = own->base.dataset->component_count;
  int width = snprintf(NULL, 0, "%d", count - 1);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < count; ++c) {
    char key[LONGEST_KEY];
    int size = snprintf(key, sizeof key, "%7lld_%*d", (long long)own->next, width, c);
    status = rn_bundle_writer_add(own->writer, rn_str_n(key, (size_t)size), &row[c]);
  }
  return status;
}

static rn_status_t take_component(cached_iterator_t* own, size_t number, int32_t c,
                                  rn_tensor_t* out) {
  const rn_dataset_t* dataset = own->base.dataset;
  const rn_bundle_entry_t* entry =
      number < rn_bundle_count(own->reader) ? rn_bundle_entry(own->reader, number) : NULL;
  if (!entry)
    return rn_data_loss("The cache %s ends in the middle of an element",
                        ((const cached_t*)dataset)->path);
  if (entry->dtype != dataset->types[c])
    return rn_invalid_argument("Data type mismatch at component %d: expected %s but got %s.", c,
                               rn_dtype_name(dataset->types[c]), rn_dtype_name(entry->dtype));
  return rn_bundle_read_new(own->reader, entry, NULL, dataset->node->memory, out);
}

static bool read_files(cached_iterator_t* own) {
  int32_t count = own->base.dataset->component_count;
  rn_tensor_t* out = own->base.asked->out;
  size_t first = 0;
  if (!rn_mul_ok((size_t)own->next, (size_t)count, &first) || first >= rn_bundle_count(own->reader))
    return rn_data_end(&own->base);
  rn_status_t status = RN_OK;
  for (int32_t c = 0; rn_ok(status) && c < count; ++c)
    status = take_component(own, first + (size_t)c, c, &out[c]);
  if (rn_ok(status))
    own->next++;
  else
    rn_data_row_clear(out, count);
  return rn_data_finish(&own->base, status);
}

static rn_status_t finish_files(cached_iterator_t* own) {
  rn_status_t status = rn_bundle_writer_finish(own->writer, NULL);
  give_up_files(own);
  return status;
}

static rn_status_t locked(const rn_env_t* env, const char* lock) {
  rn_strbuf_t said;
  rn_strbuf_init(&said, rn_allocator_system());
  rn_status_free(rn_fs_read(env, lock, 1024, &said));
  rn_status_t status = rn_already_exists(
      "There appears to be a concurrent caching iterator running - cache lockfile already exists "
      "('%s'). If you are sure no other running TF computations are using this cache prefix, "
      "delete the lockfile and re-initialize the iterator. Lockfile contents: %.*s",
      lock, (int)said.size, said.data ? said.data : "");
  rn_strbuf_clear(&said);
  return status;
}

static rn_status_t begin_files(cached_iterator_t* own) {
  const cached_t* cached = (const cached_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  bool is_locked = false;
  RN_RETURN_IF_ERROR(rn_bundle_find_index(env, cached->path, &own->is_reading));
  if (own->is_reading) return rn_bundle_reader_open(env, cached->path, &own->reader);
  own->lock.size = 0;
  rn_strbuf_printf(&own->lock, "%s_0.lockfile", cached->path);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&own->lock));
  rn_status_t status = rn_fs_find(env, own->lock.data, &is_locked);
  if (is_locked) status = locked(env, own->lock.data);
  if (!rn_ok(status)) {
    own->lock.size = 0;
    return status;
  }
  char text[48];
  int size = snprintf(text, sizeof text, "Created at: %lld",
                      (long long)(env->wall_us(env->self) / 1000000));
  status = rn_fs_write(env, own->lock.data, rn_str_n(text, (size_t)size));
  if (rn_ok(status)) status = rn_bundle_writer_create(env, cached->path, NULL, &own->writer);
  if (!rn_ok(status)) give_up_files(own);
  return status;
}

// Reads the cache if it exists, and the input otherwise.
static rn_status_t begin(cached_iterator_t* own) {
  const cached_t* cached = (const cached_t*)own->base.dataset;
  own->is_begun = true;
  if (!cached->path) {
    rn_mutex_lock(&cached->cache->mutex);
    own->is_reading = cached->cache->is_complete;
    rn_mutex_unlock(&cached->cache->mutex);
    if (own->is_reading && cached->cache->rows.component_count != own->rows.component_count)
      return rn_invalid_argument("A cache is shared by datasets with different element types");
  } else {
    RN_RETURN_IF_ERROR(begin_files(own));
  }
  return own->is_reading ? RN_OK : rn_data_source_start(&own->source, &own->base, cached->input);
}

// Makes what was collected the cache, unless another walk was first.
static void publish(cached_iterator_t* own) {
  rn_data_cache_t* cache = ((const cached_t*)own->base.dataset)->cache;
  rn_mutex_lock(&cache->mutex);
  if (!cache->is_complete) {
    cache->rows = own->rows;
    cache->is_complete = true;
    own->rows = (rn_data_rows_t){0};
  }
  rn_mutex_unlock(&cache->mutex);
}

// The walk reached the end.
static rn_status_t complete(cached_iterator_t* own) {
  own->is_over = true;
  if (own->writer) return finish_files(own);
  publish(own);
  return RN_OK;
}

// Keeps a copy of an element that is given out.
static rn_status_t remember(cached_iterator_t* own, const rn_tensor_t* out) {
  const char* path = ((const cached_t*)own->base.dataset)->path;
  rn_status_t status = RN_OK;
  if (path && !own->writer)
    return rn_failed_precondition("The cache %s could not be written", path);
  if (path) {
    status = put_row(own, out);
    if (!rn_ok(status)) give_up_files(own);
    return status;
  }
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
    give_up_files(own);
    own->is_begun = false;
    return rn_data_finish(iterator, status);
  }
  if (own->is_over) return rn_data_end(iterator);
  if (own->is_reading) return own->reader ? read_files(own) : read_memory(own);
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

// The state cannot be saved while files are being written; for a memory cache it can.
static rn_status_t cached_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  cached_iterator_t* own = (cached_iterator_t*)iterator;
  rn_data_cache_t* cache = ((const cached_t*)iterator->dataset)->cache;
  if (own->writer)
    return rn_unimplemented("A cache cannot be saved while its files are being written");
  rn_data_put_int(writer, own->is_begun);
  rn_data_put_int(writer, own->is_reading);
  rn_data_put_int(writer, own->is_over);
  rn_data_put_int(writer, own->next);
  bool is_kept = (own->is_reading || own->is_over) && !own->reader;
  rn_data_rows_save(is_kept ? &cache->rows : &own->rows, writer);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t restore_rows(cached_iterator_t* own, rn_data_reader_t* reader) {
  own->rows = (rn_data_rows_t){.allocator = own->base.dataset->node->allocator,
                               .component_count = own->base.dataset->component_count};
  RN_RETURN_IF_ERROR(rn_data_rows_restore(&own->rows, reader, own->base.dataset->types, own->row));
  if (!own->is_reading && !own->is_over) return RN_OK;
  if (((const cached_t*)own->base.dataset)->path) {
    if (!own->is_reading) return RN_OK;
    rn_bundle_reader_close(own->reader);
    own->reader = NULL;
    return rn_bundle_reader_open(env_of(own), ((const cached_t*)own->base.dataset)->path,
                                 &own->reader);
  }
  publish(own);
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

// Without an iteration nothing is cached.
static rn_status_t cached_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                              rn_tensor_t* out) {
  return rn_dataset_get(((const cached_t*)dataset)->input, index, step, out);
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
                                           .restore = cached_restore,
                                           .get = cached_get};
