// Datasets stored in files: snapshots (written by the first walk that reaches the end, read by
// later ones), SaveDataset and LoadDataset. io/snapshot.h defines the files; shard.h reads them.
#include "io/snapshot.h"

#include <inttypes.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/shard.h"
#include "tensor/tstring.h"

typedef struct snapshot_kept_t {
  rn_dataset_t base;
  rn_dataset_t* input;  // NULL if loaded
  rn_data_func_t shard_func, reader_func;
  rn_compression_t compression;
  rn_strbuf_t folder;     // directory of the metadata
  uint64_t hash;          // of a snapshot
  char run[24];           // if loaded: the directory below |folder|
  int64_t element_count;  // if loaded
} snapshot_kept_t;

typedef struct kept_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  rn_data_call_t sharding, reading;
  bool is_begun, is_over;
  bool is_reading;     // reads the files, not the input
  rn_dataset_t* made;  // Retained; what the reader function made of the shards
  rn_tensor_t shards;  // argument of that function
  uint64_t run_id;     // of the run being written
  rn_strbuf_t run;     // its path
  int64_t part;        // number of the next files in it
  int64_t element_count;
  rn_snapshot_writer_t* writer;
} kept_iterator_t;

enum { IDLE = 0, OPENED, ASKED, SHARDED };

static const rn_env_t* env_of(const kept_iterator_t* own) { return own->base.dataset->host->env; }

// Directories.
static rn_status_t read_path(snapshot_kept_t* kept) {
  const rn_tensor_t* path = rn_data_input(&kept->base, "path", NULL);
  if (path->rank != 0) return rn_invalid_argument("path must be a scalar");
  rn_str_t text = rn_tstring_view(RN_DATA(path, const rn_tstring_t));
  if (!text.size) return rn_invalid_argument("path must not be empty");
  while (text.size > 1 && text.data[text.size - 1] == '/') text.size--;
  rn_strbuf_append(&kept->folder, text);
  rn_str_t compression = rn_data_attr(&kept->base, "compression")->s;
  if (rn_str_is(compression, "AUTO")) compression = RN_STR("SNAPPY");
  if (!rn_record_compression_from_name(compression, &kept->compression))
    return rn_invalid_argument("Unsupported compression: %.*s", RN_STR_ARGS(compression));
  return rn_strbuf_status(&kept->folder);
}

static rn_status_t open_reader(snapshot_kept_t* kept) {
  static const rn_dtype_t variant = RN_VARIANT;
  RN_RETURN_IF_ERROR(rn_data_func_open(&kept->base, "reader_func", "reader_func_other_args", 1,
                                       &variant, &kept->reader_func));
  return rn_data_func_gives(&kept->reader_func, 1, &variant);
}

static rn_status_t open_writer(snapshot_kept_t* kept) {
  rn_dataset_t* dataset = &kept->base;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &kept->input));
  dataset->component_count = kept->input->component_count;
  dataset->types = kept->input->types;
  dataset->shapes = kept->input->shapes;
  if (rn_data_attr(dataset, "use_shard_func") && !rn_data_flag(dataset, "use_shard_func"))
    return RN_OK;
  return rn_data_func_open(dataset, "shard_func", "shard_func_other_args",
                           kept->input->component_count, kept->input->types, &kept->shard_func);
}

static rn_status_t save_open(rn_dataset_t* dataset) {
  snapshot_kept_t* kept = (snapshot_kept_t*)dataset;
  rn_strbuf_init(&kept->folder, dataset->node->allocator);
  RN_RETURN_IF_ERROR(read_path(kept));
  return open_writer(kept);
}

static rn_status_t snapshot_open(rn_dataset_t* dataset) {
  snapshot_kept_t* kept = (snapshot_kept_t*)dataset;
  RN_RETURN_IF_ERROR(save_open(dataset));
  RN_RETURN_IF_ERROR(open_reader(kept));
  if (rn_data_flag(dataset, "hash_valid"))
    kept->hash = (uint64_t)rn_data_attr(dataset, "hash")->i;
  else
    RN_RETURN_IF_ERROR(rn_data_digest(kept->input, &kept->hash));
  rn_strbuf_printf(&kept->folder, "/%" PRIu64, kept->hash);
  return rn_strbuf_status(&kept->folder);
}

static rn_status_t use_meta(snapshot_kept_t* kept, const rn_snapshot_meta_t* meta) {
  if (meta->version != 2)
    return rn_unimplemented("Snapshot reader version: %lld is not supported; %s",
                            (long long)meta->version, kept->folder.data);
  if (!meta->is_final)
    return rn_failed_precondition("The saved dataset is not complete: %s", kept->folder.data);
  if (meta->run.size >= sizeof kept->run)
    return rn_data_loss("not the metadata of a snapshot: %s", kept->folder.data);
  memcpy(kept->run, meta->run.data, meta->run.size);
  kept->element_count = meta->element_count;
  return RN_OK;
}

static rn_status_t load_open(rn_dataset_t* dataset) {
  snapshot_kept_t* kept = (snapshot_kept_t*)dataset;
  rn_strbuf_init(&kept->folder, dataset->node->allocator);
  RN_RETURN_IF_ERROR(read_path(kept));
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, dataset->node->allocator);
  rn_status_t status = rn_snapshot_meta_read(dataset->host->env, kept->folder.data, &meta);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = rn_not_found("Could not find metadata file [%s]", kept->folder.data);
  }
  if (rn_ok(status)) status = use_meta(kept, &meta);
  rn_strbuf_clear(&meta.text);
  return rn_ok(status) ? open_reader(kept) : status;
}

static void kept_close(rn_dataset_t* dataset) {
  snapshot_kept_t* kept = (snapshot_kept_t*)dataset;
  rn_data_func_close(&kept->shard_func);
  rn_data_func_close(&kept->reader_func);
  rn_strbuf_clear(&kept->folder);
}

static int64_t kept_cardinality(const rn_dataset_t* dataset) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)dataset;
  return kept->input ? rn_dataset_cardinality(kept->input) : kept->element_count;
}

static rn_status_t kept_start(rn_data_iterator_t* iterator) {
  kept_iterator_t* own = (kept_iterator_t*)iterator;
  const snapshot_kept_t* kept = (const snapshot_kept_t*)iterator->dataset;
  rn_strbuf_init(&own->run, kept->base.node->allocator);
  if (kept->shard_func.instance)
    RN_RETURN_IF_ERROR(rn_data_call_init(&own->sharding, iterator, &kept->shard_func));
  if (kept->reader_func.instance)
    RN_RETURN_IF_ERROR(rn_data_call_init(&own->reading, iterator, &kept->reader_func));
  return RN_OK;
}

static void kept_stop(rn_data_iterator_t* iterator) {
  kept_iterator_t* own = (kept_iterator_t*)iterator;
  const snapshot_kept_t* kept = (const snapshot_kept_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  rn_data_call_clear(&own->sharding, &kept->shard_func);
  rn_data_call_clear(&own->reading, &kept->reader_func);
  rn_dataset_release(own->made);
  rn_tensor_clear(&own->shards);
  rn_snapshot_writer_drop(own->writer);
  rn_strbuf_clear(&own->run);
}

// Writing.
static rn_status_t write_meta(kept_iterator_t* own, bool is_final) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  char hash[24] = "", run[24];
  bool is_snapshot = kept->base.kind == &rn_data_kind_snapshot;
  if (is_snapshot) snprintf(hash, sizeof hash, "%" PRIu64, kept->hash);
  snprintf(run, sizeof run, "%" PRIu64, own->run_id);
  rn_snapshot_meta_t meta = {.graph_hash = rn_str(hash),
                             .run = rn_str(run),
                             .created_us = env->wall_us(env->self),
                             .version = 2,
                             .element_count = is_final && !is_snapshot ? own->element_count : 0,
                             .is_final = is_final};
  return rn_snapshot_meta_write(env, kept->folder.data, &meta, kept->base.component_count,
                                kept->base.types);
}

static rn_status_t set_run(kept_iterator_t* own, const char* run) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  own->run.size = 0;
  rn_strbuf_printf(&own->run, "%s/%s", kept->folder.data, run);
  return rn_strbuf_status(&own->run);
}

// Whether a complete snapshot exists. It continues to be read until the one being written is
// complete.
static bool has_final(kept_iterator_t* own) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, kept->base.node->allocator);
  rn_status_t status = rn_snapshot_meta_read(env_of(own), kept->folder.data, &meta);
  bool is_final = rn_ok(status) && meta.is_final;
  rn_status_free(status);
  rn_strbuf_clear(&meta.text);
  return is_final;
}

static rn_status_t begin_writing(kept_iterator_t* own) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  char run[24];
  own->run_id = env->random(env->self);
  own->part = 0;
  snprintf(run, sizeof run, "%" PRIu64, own->run_id);
  RN_RETURN_IF_ERROR(set_run(own, run));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(env, own->run.data));
  if (!has_final(own)) RN_RETURN_IF_ERROR(write_meta(own, false));
  return rn_data_source_start(&own->source, &own->base, kept->input);
}

static rn_status_t write_row(kept_iterator_t* own, const rn_tensor_t* row) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  int64_t shard = 0;
  if (kept->shard_func.instance) {
    const rn_tensor_t* result = &own->sharding.results[0];
    if (!rn_ok(own->sharding.status)) return own->sharding.status;
    bool is_wide = result->dtype == RN_INT64;
    bool fits = kept->shard_func.instance->result_count == 1 && result->count == 1 &&
                (is_wide || result->dtype == RN_INT32);
    if (fits) shard = is_wide ? *RN_DATA(result, const int64_t) : *RN_DATA(result, const int32_t);
    rn_data_call_clear(&own->sharding, &kept->shard_func);
    if (!fits) return rn_invalid_argument("`shard_func` must return a scalar int64.");
  }
  if (!own->writer)
    RN_RETURN_IF_ERROR(rn_snapshot_writer_open(env_of(own), own->run.data, own->part,
                                               kept->compression, &own->writer));
  RN_RETURN_IF_ERROR(rn_snapshot_writer_put(own->writer, shard, row, kept->base.component_count));
  own->element_count++;
  return RN_OK;
}

static rn_status_t close_files(kept_iterator_t* own) {
  rn_snapshot_writer_t* writer = own->writer;
  own->writer = NULL;
  own->part += writer != NULL;
  return rn_snapshot_writer_close(writer);
}

static rn_status_t complete(kept_iterator_t* own) {
  own->is_over = true;
  RN_RETURN_IF_ERROR(close_files(own));
  return write_meta(own, true);
}

// Reading.
static rn_status_t begin_reading(kept_iterator_t* own, const char* run) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(set_run(own, run));
  own->is_reading = true;
  rn_dataset_t* shards = NULL;
  RN_RETURN_IF_ERROR(
      rn_data_shards_dataset(&kept->base, own->run.data, kept->compression, &shards));
  rn_tensor_clear(&own->shards);
  rn_status_t status = rn_dataset_tensor(shards, &own->shards);
  rn_dataset_release(shards);
  return status;
}

// Walks over the dataset that the reader function made of the shards.
static rn_status_t use_made(kept_iterator_t* own) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  rn_dataset_t* made = NULL;
  RN_RETURN_IF_ERROR(rn_dataset_of(&own->reading.results[0], &made));
  bool fits = made->component_count == kept->base.component_count;
  for (int32_t c = 0; fits && c < made->component_count; ++c)
    fits = made->types[c] == kept->base.types[c];
  if (!fits)
    return rn_invalid_argument(
        "The function returned a dataset whose types differ from those of the %s",
        kept->base.node->op->name);
  rn_object_retain(&made->object);
  rn_dataset_release(own->made);
  own->made = made;
  return rn_data_source_start(&own->source, &own->base, made);
}

static rn_status_t begin_snapshot(kept_iterator_t* own) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, kept->base.node->allocator);
  rn_status_t status = rn_snapshot_meta_read(env_of(own), kept->folder.data, &meta);
  bool is_there = rn_ok(status) && meta.is_final;
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    rn_status_free(status);
    status = RN_OK;
  }
  if (rn_ok(status) && is_there && meta.version != 2)
    status = rn_unimplemented("Snapshot reader version: %lld is not supported; %s",
                              (long long)meta.version, kept->folder.data);
  char run[24] = "";
  if (rn_ok(status) && is_there && meta.run.size >= sizeof run)
    status = rn_data_loss("not the metadata of a snapshot: %s", kept->folder.data);
  if (rn_ok(status) && is_there) {
    memcpy(run, meta.run.data, meta.run.size);
    status = begin_reading(own, run);
  } else if (rn_ok(status)) {
    status = begin_writing(own);
  }
  rn_strbuf_clear(&meta.text);
  return status;
}

static rn_status_t begin(kept_iterator_t* own) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  if (!kept->input) return begin_reading(own, kept->run);
  if (kept->base.kind == &rn_data_kind_snapshot) return begin_snapshot(own);
  return begin_writing(own);
}

// Completes the request with an element or the end.
static bool answer(kept_iterator_t* own, rn_status_t status) {
  if (!rn_ok(status)) rn_data_row_clear(own->base.asked->out, own->base.dataset->component_count);
  return rn_data_finish(&own->base, status);
}

// Opens the source; true if it has to wait or |*out_status| has an error.
static bool open_source(kept_iterator_t* own, rn_status_t* out_status) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  rn_data_iterator_t* iterator = &own->base;
  if (iterator->phase == IDLE) {
    *out_status = begin(own);
    if (!rn_ok(*out_status)) return true;
    if (own->is_reading) {
      iterator->phase = OPENED;
      if (!rn_data_call(&own->reading, &kept->reader_func, &own->shards, 1, iterator->asked->step))
        return true;
    }
  }
  if (iterator->phase == OPENED) {
    *out_status = own->reading.status;
    if (rn_ok(*out_status)) *out_status = use_made(own);
    rn_data_call_clear(&own->reading, &kept->reader_func);
    iterator->phase = IDLE;
  }
  own->is_begun = rn_ok(*out_status);
  return !own->is_begun;
}

static bool kept_next(rn_data_iterator_t* iterator) {
  kept_iterator_t* own = (kept_iterator_t*)iterator;
  const snapshot_kept_t* kept = (const snapshot_kept_t*)iterator->dataset;
  rn_tensor_t* out = iterator->asked->out;
  rn_status_t status = RN_OK;
  if (own->is_over) return rn_data_end(iterator);
  if (!own->is_begun && open_source(own, &status))
    return rn_ok(status) ? false : rn_data_finish(iterator, status);
  if (iterator->phase == IDLE) {
    iterator->phase = ASKED;
    if (!rn_data_ask(&own->source, out)) return false;
  }
  if (iterator->phase == ASKED) {
    status = own->source.request.status;
    if (own->source.request.is_end) {
      status = own->is_reading ? RN_OK : complete(own);
      return rn_ok(status) ? rn_data_end(iterator) : rn_data_finish(iterator, status);
    }
    if (!rn_ok(status) || own->is_reading) return rn_data_finish(iterator, status);
    iterator->phase = SHARDED;
    if (kept->shard_func.instance &&
        !rn_data_call(&own->sharding, &kept->shard_func, out, kept->base.component_count,
                      iterator->asked->step))
      return false;
  }
  return answer(own, write_row(own, out));
}

// Saving closes the current files; the walk then continues in new ones.
static rn_status_t kept_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  kept_iterator_t* own = (kept_iterator_t*)iterator;
  RN_RETURN_IF_ERROR(close_files(own));
  rn_data_put_int(writer, own->is_begun);
  rn_data_put_int(writer, own->is_over);
  rn_data_put_int(writer, own->is_reading);
  rn_data_put_int(writer, (int64_t)own->run_id);
  rn_data_put_int(writer, own->part);
  rn_data_put_int(writer, own->element_count);
  rn_data_put_text(writer, rn_strbuf_view(&own->run));
  return own->is_begun ? rn_data_put_iterator(writer, own->source.iterator) : RN_OK;
}

static rn_status_t restore_reading(kept_iterator_t* own, rn_data_reader_t* reader, rn_str_t run) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  rn_str_t folder = rn_strbuf_view(&kept->folder);
  if (run.size <= folder.size + 1 || memcmp(run.data, folder.data, folder.size) != 0)
    return rn_data_loss(
        "Dataset has changed while restoring from the checkpoint. Old hash directory: %.*s; new "
        "hash directory: %s",
        RN_STR_ARGS(run), folder.data);
  char name[24] = "";
  run = rn_str_n(run.data + folder.size + 1, run.size - folder.size - 1);
  if (run.size >= sizeof name || memchr(run.data, '/', run.size)) return rn_data_bad_state();
  memcpy(name, run.data, run.size);
  RN_RETURN_IF_ERROR(begin_reading(own, name));
  own->reading.args[0] = &own->shards;
  rn_function_call_t call = {
      .step = &own->base.run->step, .args = own->reading.args, .results = own->reading.results};
  RN_RETURN_IF_ERROR(
      rn_function_run_and_wait(kept->reader_func.functions, kept->reader_func.instance, &call));
  rn_status_t status = use_made(own);
  rn_data_call_clear(&own->reading, &kept->reader_func);
  if (rn_ok(status)) status = rn_data_restore_source(reader, &own->source, &own->base, own->made);
  return status;
}

static rn_status_t restore_writing(kept_iterator_t* own, rn_data_reader_t* reader) {
  const snapshot_kept_t* kept = (const snapshot_kept_t*)own->base.dataset;
  char run[24];
  snprintf(run, sizeof run, "%" PRIu64, own->run_id);
  RN_RETURN_IF_ERROR(set_run(own, run));
  if (!own->is_over) RN_RETURN_IF_ERROR(rn_snapshot_cut(env_of(own), own->run.data, own->part));
  return rn_data_restore_source(reader, &own->source, &own->base, kept->input);
}

static rn_status_t kept_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  kept_iterator_t* own = (kept_iterator_t*)iterator;
  const snapshot_kept_t* kept = (const snapshot_kept_t*)iterator->dataset;
  int64_t is_begun = 0, is_over = 0, is_reading = 0, run_id = 0;
  rn_str_t run;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_begun));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_reading));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &run_id));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->part));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &own->element_count));
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &run));
  if (own->part < 0 || own->element_count < 0) return rn_data_bad_state();
  if (is_begun && (is_reading ? !kept->reader_func.instance : !kept->input))
    return rn_data_bad_state();
  own->is_begun = is_begun != 0;
  own->is_over = is_over != 0;
  own->is_reading = is_reading != 0;
  own->run_id = (uint64_t)run_id;
  if (!own->is_begun) return RN_OK;
  return own->is_reading ? restore_reading(own, reader, run) : restore_writing(own, reader);
}

#define KEPT(open_)                                                                             \
  {                                                                                             \
    .dataset_size = sizeof(snapshot_kept_t), .iterator_size = sizeof(kept_iterator_t),          \
    .open = (open_), .close = kept_close, .cardinality = kept_cardinality, .start = kept_start, \
    .stop = kept_stop, .next = kept_next, .save = kept_save, .restore = kept_restore            \
  }
const rn_data_kind_t rn_data_kind_snapshot = KEPT(snapshot_open);
const rn_data_kind_t rn_data_kind_save = KEPT(save_open);
const rn_data_kind_t rn_data_kind_load = KEPT(load_open);
