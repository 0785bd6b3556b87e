// SnapshotDataset: snapshots of the first version. The first walk writes its elements to files
// below PATH/HASH/RUN and passes them on; walks after a complete one read them; walks beside an
// incomplete one pass their input on. io/snapshot_run.h has the files.
//
// Threads and buffers are hints. As many files are written at a time as there are writer threads.
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "io/snapshot.h"
#include "io/snapshot_run.h"
#include "kernels/cpu/dataset/data.h"
#include "kernels/cpu/dataset/to_graph.h"
#include "kernels/cpu/random/philox.h"
#include "tensor/tstring.h"

#define DEFAULT_SHARD_SIZE ((int64_t)10 << 30)
#define DEFAULT_EXPIRY 86400

typedef struct snapshot_v1_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  rn_compression_t compression;
  rn_strbuf_t folder;  // of the metadata
  char hash[24];       // hexadecimal
  bool is_named;       // by the user, and not by what it holds
  int64_t shard_size, expiry_seconds, writers;
} snapshot_v1_t;

typedef enum snapshot_v1_mode_t { UNDECIDED = 0, READING, WRITING, PASSING } snapshot_v1_mode_t;

typedef struct snapshot_v1_iterator_t {
  rn_data_iterator_t base;
  rn_data_source_t source;
  snapshot_v1_mode_t mode;
  rn_strbuf_t run_id, run;  // the name and the path of its folder
  bool is_over;
  rn_snapshot_run_reader_t* reader;  // if reading
  rn_snapshot_run_writer_t* writer;  // if writing
  rn_tensor_t* ahead;  // the next element, which is written already; one is always read ahead, so
                       // that the snapshot is complete when its last element is passed on
  bool has_ahead;
} snapshot_v1_iterator_t;

enum { IDLE = 0, FIRST, AHEAD };

static const rn_env_t* env_of(const snapshot_v1_iterator_t* own) {
  return own->base.dataset->host->env;
}

static rn_str_t text_of(const rn_dataset_t* dataset, const char* attr) {
  return rn_data_attr(dataset, attr)->s;
}

static int64_t number_of(const rn_dataset_t* dataset, const char* attr, int64_t if_auto) {
  int64_t value = rn_data_attr(dataset, attr)->i;
  return value == -1 ? if_auto : value;
}

// Attributes.
static rn_status_t read_mode(const rn_dataset_t* dataset, snapshot_v1_mode_t* out) {
  rn_str_t mode = text_of(dataset, "mode");
  *out = UNDECIDED;
  if (rn_str_is(mode, "read"))
    *out = READING;
  else if (rn_str_is(mode, "write"))
    *out = WRITING;
  else if (rn_str_is(mode, "passthrough"))
    *out = PASSING;
  else if (!rn_str_is(mode, "auto"))
    return rn_invalid_argument("mode must be either 'auto', 'read', 'write', or 'passthrough'.");
  return RN_OK;
}

static rn_status_t read_attrs(snapshot_v1_t* own) {
  const rn_dataset_t* dataset = &own->base;
  rn_str_t compression = text_of(dataset, "compression");
  own->shard_size = number_of(dataset, "shard_size_bytes", DEFAULT_SHARD_SIZE);
  own->expiry_seconds = number_of(dataset, "pending_snapshot_expiry_seconds", DEFAULT_EXPIRY);
  own->writers = number_of(dataset, "num_writer_threads", 1);
  if (!rn_record_compression_from_name(compression, &own->compression) ||
      own->compression == RN_COMPRESSION_ZLIB)
    return rn_invalid_argument("compression must be either '', 'GZIP' or 'SNAPPY'.");
  if (own->expiry_seconds < 1)
    return rn_invalid_argument("pending_snapshot_expiry_seconds must be at least 1 second.");
  if (own->writers < 1 || own->writers > RN_SNAPSHOT_MAX_FILES)
    return rn_invalid_argument("num_writer_threads must be from 1 to %d, got %lld",
                               RN_SNAPSHOT_MAX_FILES, (long long)own->writers);
  snapshot_v1_mode_t unused;
  return read_mode(dataset, &unused);
}

// The hash of the input and of what else decides about the files.
static rn_status_t find_hash(snapshot_v1_t* own, rn_str_t path) {
  static const char* const texts[] = {"compression", "reader_path_prefix", "writer_path_prefix"};
  uint64_t hash = 0;
  RN_RETURN_IF_ERROR(rn_data_digest(own->input, &hash));
  rn_strbuf_t all;
  rn_strbuf_init(&all, own->base.node->allocator);
  rn_strbuf_printf(&all, "%016" PRIx64 " %" PRId64, hash, own->shard_size);
  rn_strbuf_append(&all, path);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    rn_strbuf_append_n(&all, "", 1);
    rn_strbuf_append(&all, text_of(&own->base, texts[i]));
  }
  hash = rn_farm_fingerprint64(rn_strbuf_view(&all));
  snprintf(own->hash, sizeof own->hash, "%016" PRIx64, hash);
  rn_status_t status = rn_strbuf_status(&all);
  rn_strbuf_clear(&all);
  return status;
}

// Writes the graph of the input beside the snapshot, as stock does, for a person who wonders what
// it holds.
static rn_status_t print_graph(const snapshot_v1_t* own, const char* path) {
  rn_strbuf_t graph, name;
  rn_strbuf_init(&graph, own->base.node->allocator);
  rn_strbuf_init(&name, own->base.node->allocator);
  rn_strbuf_printf(&name, "%s/%s-graph.pbtxt", path, own->hash);
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_fs_make_directories(own->base.host->env, path);
  if (rn_ok(status)) status = rn_data_to_graph(own->input, RN_DATA_STATE_IGNORE, &graph);
  if (rn_ok(status))
    status = rn_snapshot_graph_write(own->base.host->env, name.data, rn_strbuf_view(&graph));
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&graph);
  return status;
}

static rn_status_t v1_open(rn_dataset_t* dataset) {
  snapshot_v1_t* own = (snapshot_v1_t*)dataset;
  rn_str_t path, name = text_of(dataset, "snapshot_name");
  rn_strbuf_init(&own->folder, dataset->node->allocator);
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &own->input));
  dataset->component_count = own->input->component_count;
  dataset->types = own->input->types;
  dataset->shapes = own->input->shapes;
  RN_RETURN_IF_ERROR(read_attrs(own));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "path", &path));
  RN_RETURN_IF_ERROR(rn_fs_check_name(path));
  RN_RETURN_IF_ERROR(rn_fs_check_name(name));
  RN_RETURN_IF_ERROR(find_hash(own, path));
  own->is_named = name.size > 0;
  rn_strbuf_append(&own->folder, path);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&own->folder));
  rn_status_t status = print_graph(own, own->folder.data);
  if (!rn_ok(status))
    rn_log(dataset->host->env, RN_LOG_WARNING, "The graph of a snapshot is not written: %s",
           rn_status_message(status));
  rn_status_free(status);
  if (own->is_named)
    rn_strbuf_printf(&own->folder, "/custom-%.*s", RN_STR_ARGS(name));
  else
    rn_strbuf_printf(&own->folder, "/%s", own->hash);
  return rn_strbuf_status(&own->folder);
}

static void v1_close(rn_dataset_t* dataset) { rn_strbuf_clear(&((snapshot_v1_t*)dataset)->folder); }

static int64_t v1_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const snapshot_v1_t*)dataset)->input);
}

static rn_status_t v1_start(rn_data_iterator_t* iterator) {
  snapshot_v1_iterator_t* own = (snapshot_v1_iterator_t*)iterator;
  const snapshot_v1_t* kept = (const snapshot_v1_t*)iterator->dataset;
  rn_strbuf_init(&own->run_id, kept->base.node->allocator);
  rn_strbuf_init(&own->run, kept->base.node->allocator);
  return rn_data_row(iterator, kept->base.component_count, &own->ahead);
}

static void v1_stop(rn_data_iterator_t* iterator) {
  snapshot_v1_iterator_t* own = (snapshot_v1_iterator_t*)iterator;
  const snapshot_v1_t* kept = (const snapshot_v1_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  rn_data_row_clear(own->ahead, kept->base.component_count);
  rn_snapshot_run_writer_drop(own->writer);
  rn_snapshot_run_reader_close(own->reader);
  rn_strbuf_clear(&own->run);
  rn_strbuf_clear(&own->run_id);
}

// Sets the folder of the files, which a writer's prefix precedes.
static rn_status_t set_run(snapshot_v1_iterator_t* own, rn_str_t prefix) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  own->run.size = 0;
  if (prefix.size) rn_strbuf_printf(&own->run, "%.*s/", RN_STR_ARGS(prefix));
  rn_strbuf_printf(&own->run, "%s/%s", kept->folder.data, own->run_id.data);
  return rn_strbuf_status(&own->run);
}

// Reading.
static void shuffle(snapshot_v1_iterator_t* own) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_names_t* names = rn_snapshot_run_reader_names(own->reader);
  rn_philox_single_t words = rn_philox_single(rn_philox_seeded(
      env_of(own), rn_data_attr(dataset, "seed")->i, rn_data_attr(dataset, "seed2")->i));
  for (size_t i = names->list.count; i > 1; --i) {
    size_t at = rn_philox_below(&words, (uint32_t)i);
    rn_str_t other = names->list.items[at];
    names->list.items[at] = names->list.items[i - 1];
    names->list.items[i - 1] = other;
  }
}

static rn_status_t begin_reading(snapshot_v1_iterator_t* own, const rn_snapshot_meta_t* meta) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(
      rn_snapshot_meta_check_types(meta, kept->base.component_count, kept->base.types));
  RN_RETURN_IF_ERROR(set_run(own, RN_STR("")));
  RN_RETURN_IF_ERROR(rn_snapshot_run_reader_open(env_of(own), own->run.data,
                                                 text_of(&kept->base, "reader_path_prefix"),
                                                 kept->compression, meta->version, &own->reader));
  if (rn_data_flag(&kept->base, "shuffle_on_read")) shuffle(own);
  return RN_OK;
}

static bool read_next(snapshot_v1_iterator_t* own) {
  const rn_dataset_t* dataset = own->base.dataset;
  bool is_end = false;
  rn_status_t status =
      rn_snapshot_run_reader_next(own->reader, dataset->component_count, dataset->types,
                                  dataset->node->memory, own->base.asked->out, &is_end);
  return is_end ? rn_data_end(&own->base) : rn_data_finish(&own->base, status);
}

// Writing.
static rn_status_t write_meta(snapshot_v1_iterator_t* own, int64_t created_us, bool is_final) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  rn_snapshot_meta_t meta = {.graph_hash = rn_str(kept->hash),
                             .run = rn_strbuf_view(&own->run_id),
                             .created_us = created_us,
                             .version = 1,
                             .is_final = is_final};
  return rn_snapshot_meta_write(env_of(own), kept->folder.data, &meta, kept->base.component_count,
                                kept->base.types);
}

// Ends the snapshot, unless another run has replaced it meanwhile.
static rn_status_t finish_meta(snapshot_v1_iterator_t* own) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, kept->base.node->allocator);
  rn_status_t status = rn_snapshot_meta_read(env_of(own), kept->folder.data, &meta);
  if (rn_ok(status) && rn_str_eq(meta.run, rn_strbuf_view(&own->run_id)))
    status = write_meta(own, meta.created_us, true);
  rn_strbuf_clear(&meta.text);
  return status;
}

static rn_status_t complete(snapshot_v1_iterator_t* own) {
  own->is_over = true;
  RN_RETURN_IF_ERROR(rn_snapshot_run_writer_finish(own->writer));
  return finish_meta(own);
}

static rn_status_t open_writer(snapshot_v1_iterator_t* own, int64_t next_number) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  RN_RETURN_IF_ERROR(set_run(own, text_of(&kept->base, "writer_path_prefix")));
  rn_snapshot_run_options_t options = {.compression = kept->compression,
                                       .files = kept->writers,
                                       .file_size = kept->shard_size,
                                       .next_number = next_number};
  return rn_snapshot_run_writer_open(env_of(own), own->run.data, &options, &own->writer);
}

static rn_status_t begin_writing(snapshot_v1_iterator_t* own) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  RN_RETURN_IF_ERROR(open_writer(own, 0));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(env, kept->folder.data));
  RN_RETURN_IF_ERROR(write_meta(own, env->wall_us(env->self), false));
  return rn_data_source_start(&own->source, &own->base, kept->input);
}

// True if it has to wait.
static bool ask(snapshot_v1_iterator_t* own, int phase) {
  own->base.phase = phase;
  return !rn_data_ask(&own->source, own->ahead);
}

// Takes what arrived: writes it, or ends the snapshot.
static rn_status_t take_ahead(snapshot_v1_iterator_t* own) {
  RN_RETURN_IF_ERROR(own->source.request.status);
  if (own->source.request.is_end) return complete(own);
  own->has_ahead = true;
  return rn_snapshot_run_writer_put(own->writer, own->ahead, own->base.dataset->component_count);
}

static bool write_next(snapshot_v1_iterator_t* own) {
  rn_data_iterator_t* iterator = &own->base;
  rn_tensor_t* out = iterator->asked->out;
  int32_t count = iterator->dataset->component_count;
  if (iterator->phase == IDLE && !own->has_ahead && !own->is_over && ask(own, FIRST)) return false;
  if (iterator->phase == FIRST) {
    rn_status_t status = take_ahead(own);
    if (!rn_ok(status)) return rn_data_finish(iterator, status);
  }
  if (iterator->phase != AHEAD) {
    if (!own->has_ahead) return rn_data_end(iterator);
    own->has_ahead = false;
    rn_data_row_move(own->ahead, out, count);
    if (own->is_over) return rn_data_finish(iterator, RN_OK);
    if (ask(own, AHEAD)) return false;
  }
  rn_status_t status = take_ahead(own);
  if (!rn_ok(status)) rn_data_row_clear(out, count);
  return rn_data_finish(iterator, status);
}

// Decides between reading, writing and passing on.
static rn_status_t decide(snapshot_v1_iterator_t* own, const rn_snapshot_meta_t* meta,
                          bool is_there) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  RN_RETURN_IF_ERROR(read_mode(&kept->base, &own->mode));
  if (own->mode == READING && !is_there) return rn_not_found("Metadata file does not exist.");
  if (own->mode == UNDECIDED && !is_there) own->mode = WRITING;
  if (own->mode == UNDECIDED && meta->is_final) own->mode = READING;
  if (own->mode == UNDECIDED) {
    // The age is a difference of times that anyone may have written to the file.
    int64_t age = 0, oldest = 0;
    bool is_young =
        !__builtin_sub_overflow(env->wall_us(env->self), meta->created_us, &age) &&
        (__builtin_mul_overflow(kept->expiry_seconds, 1000000, &oldest) || age <= oldest);
    own->mode = is_young ? PASSING : WRITING;
  }
  return RN_OK;
}

static rn_status_t begin(snapshot_v1_iterator_t* own, const rn_snapshot_meta_t* meta,
                         bool is_there) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  const rn_env_t* env = env_of(own);
  RN_RETURN_IF_ERROR(decide(own, meta, is_there));
  own->run_id.size = 0;
  if (kept->is_named)
    rn_strbuf_append(&own->run_id, RN_STR("custom"));
  else if (own->mode == READING)
    rn_strbuf_append(&own->run_id, meta->run);
  else
    rn_strbuf_printf(&own->run_id, "%04" PRIx64, env->random(env->self));
  RN_RETURN_IF_ERROR(rn_strbuf_status(&own->run_id));
  if (own->mode == READING) return begin_reading(own, meta);
  if (own->mode == WRITING) return begin_writing(own);
  return rn_data_source_start(&own->source, &own->base, kept->input);
}

static rn_status_t with_meta(snapshot_v1_iterator_t* own,
                             rn_status_t (*use)(snapshot_v1_iterator_t* own,
                                                const rn_snapshot_meta_t* meta, bool is_there)) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  rn_snapshot_meta_t meta = {0};
  rn_strbuf_init(&meta.text, kept->base.node->allocator);
  rn_status_t status = rn_snapshot_meta_read(env_of(own), kept->folder.data, &meta);
  bool is_there = rn_status_code(status) != RN_CODE_NOT_FOUND;
  if (!is_there) {
    rn_status_free(status);
    status = RN_OK;
  }
  if (rn_ok(status)) status = use(own, &meta, is_there);
  rn_strbuf_clear(&meta.text);
  return status;
}

static bool v1_next(rn_data_iterator_t* iterator) {
  snapshot_v1_iterator_t* own = (snapshot_v1_iterator_t*)iterator;
  if (own->mode == UNDECIDED) {
    rn_status_t status = with_meta(own, begin);
    if (!rn_ok(status)) {
      own->mode = UNDECIDED;
      return rn_data_finish(iterator, status);
    }
  }
  if (own->mode == READING) return read_next(own);
  if (own->mode == WRITING) return write_next(own);
  if (iterator->phase == IDLE) {
    iterator->phase = FIRST;
    if (!rn_data_ask(&own->source, iterator->asked->out)) return false;
  }
  if (rn_ok(own->source.request.status) && own->source.request.is_end) return rn_data_end(iterator);
  return rn_data_finish(iterator, own->source.request.status);
}

// The state. Saving closes the current files; the walk then continues in new ones.
static rn_str_t last_part(rn_str_t path) {
  size_t at = path.size;
  while (at > 0 && path.data[at - 1] != '/') at--;
  return rn_str_n(path.data + at, path.size - at);
}

static void save_reading(const snapshot_v1_iterator_t* own, rn_data_writer_t* writer) {
  const rn_names_t* names = rn_snapshot_run_reader_names(own->reader);
  rn_data_put_int(writer, (int64_t)names->list.count);
  for (size_t i = 0; i < names->list.count; ++i)
    rn_data_put_text(writer, last_part(names->list.items[i]));
  rn_data_put_int(writer, rn_snapshot_run_reader_position(own->reader));
}

static rn_status_t v1_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  snapshot_v1_iterator_t* own = (snapshot_v1_iterator_t*)iterator;
  const snapshot_v1_t* kept = (const snapshot_v1_t*)iterator->dataset;
  rn_data_put_int(writer, own->mode);
  if (own->mode == UNDECIDED) return RN_OK;
  rn_data_put_text(writer, rn_strbuf_view(&kept->folder));
  rn_data_put_text(writer, rn_strbuf_view(&own->run_id));
  if (own->mode == READING) {
    save_reading(own, writer);
    return RN_OK;
  }
  if (own->mode == WRITING) {
    RN_RETURN_IF_ERROR(rn_snapshot_run_writer_pause(own->writer));
    rn_data_put_int(writer, own->is_over);
    rn_data_put_int(writer, rn_snapshot_run_writer_number(own->writer));
    rn_data_put_int(writer, own->has_ahead);
    if (own->has_ahead) rn_data_put_row(writer, own->ahead, kept->base.component_count);
  }
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t take_flag(rn_data_reader_t* reader, bool* out) {
  int64_t value = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &value));
  *out = value != 0;
  return value == 0 || value == 1 ? RN_OK : rn_data_bad_state();
}

// Replaces the names of the files by those of the state, whose order may be random.
static rn_status_t restore_names(const snapshot_v1_iterator_t* own, rn_data_reader_t* reader,
                                 rn_names_t* names) {
  int64_t count = 0;
  rn_strbuf_t path;
  rn_names_clear(names);
  rn_names_init(names, own->base.dataset->node->allocator);
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t name;
    RN_RETURN_IF_ERROR(rn_data_take_text(reader, &name));
    RN_RETURN_IF_ERROR(rn_fs_check_name(name));
    if (memchr(name.data, '/', name.size)) return rn_data_bad_state();
    rn_strbuf_init(&path, own->base.dataset->node->allocator);
    rn_strbuf_printf(&path, "%s/%.*s", own->run.data, RN_STR_ARGS(name));
    rn_status_t status = rn_strbuf_status(&path);
    if (rn_ok(status)) status = rn_names_add(names, rn_strbuf_view(&path));
    rn_strbuf_clear(&path);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static rn_status_t begin_again(snapshot_v1_iterator_t* own, const rn_snapshot_meta_t* meta,
                               bool is_there) {
  return is_there ? begin_reading(own, meta) : rn_not_found("Metadata file does not exist.");
}

static rn_status_t restore_reading(snapshot_v1_iterator_t* own, rn_data_reader_t* reader) {
  int64_t position = 0;
  RN_RETURN_IF_ERROR(with_meta(own, begin_again));
  RN_RETURN_IF_ERROR(restore_names(own, reader, rn_snapshot_run_reader_names(own->reader)));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &position));
  if (position < 0) return rn_data_bad_state();
  return rn_snapshot_run_reader_skip(own->reader, own->base.dataset->component_count, position);
}

static rn_status_t restore_writing(snapshot_v1_iterator_t* own, rn_data_reader_t* reader) {
  const snapshot_v1_t* kept = (const snapshot_v1_t*)own->base.dataset;
  int64_t number = 0;
  RN_RETURN_IF_ERROR(take_flag(reader, &own->is_over));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &number));
  RN_RETURN_IF_ERROR(take_flag(reader, &own->has_ahead));
  if (number < 0) return rn_data_bad_state();
  if (own->has_ahead)
    RN_RETURN_IF_ERROR(
        rn_data_take_row(reader, kept->base.types, kept->base.component_count, own->ahead));
  RN_RETURN_IF_ERROR(open_writer(own, number));
  if (own->is_over) return RN_OK;
  rn_strbuf_t pattern;
  rn_strbuf_init(&pattern, kept->base.node->allocator);
  rn_strbuf_printf(&pattern, "%s/*.snapshot", own->run.data);
  rn_status_t status = rn_strbuf_status(&pattern);
  if (rn_ok(status)) status = rn_snapshot_cut_files(env_of(own), pattern.data, number);
  rn_strbuf_clear(&pattern);
  return status;
}

static rn_status_t v1_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  snapshot_v1_iterator_t* own = (snapshot_v1_iterator_t*)iterator;
  const snapshot_v1_t* kept = (const snapshot_v1_t*)iterator->dataset;
  int64_t mode = 0;
  rn_str_t folder, run_id;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &mode));
  if (mode < UNDECIDED || mode > PASSING) return rn_data_bad_state();
  own->mode = (snapshot_v1_mode_t)mode;
  if (own->mode == UNDECIDED) return RN_OK;
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &folder));
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &run_id));
  if (!rn_str_eq(folder, rn_strbuf_view(&kept->folder)))
    return rn_data_loss(
        "Dataset has changed while restoring from the checkpoint. Old hash directory: %.*s; new "
        "hash directory: %s",
        RN_STR_ARGS(folder), kept->folder.data);
  RN_RETURN_IF_ERROR(rn_fs_check_name(run_id));
  if (!run_id.size || memchr(run_id.data, '/', run_id.size)) return rn_data_bad_state();
  own->run_id.size = 0;
  rn_strbuf_append(&own->run_id, run_id);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&own->run_id));
  if (own->mode == READING) return restore_reading(own, reader);
  if (own->mode == WRITING) RN_RETURN_IF_ERROR(restore_writing(own, reader));
  return rn_data_restore_source(reader, &own->source, iterator, kept->input);
}

const rn_data_kind_t rn_data_kind_snapshot_v1 = {.dataset_size = sizeof(snapshot_v1_t),
                                                 .iterator_size = sizeof(snapshot_v1_iterator_t),
                                                 .open = v1_open,
                                                 .close = v1_close,
                                                 .cardinality = v1_cardinality,
                                                 .start = v1_start,
                                                 .stop = v1_stop,
                                                 .next = v1_next,
                                                 .save = v1_save,
                                                 .restore = v1_restore};
