#include "kernels/cpu/summary/db_writer.h"

#include <float.h>
#include <stdio.h>

#include "base/fs.h"
#include "io/summary.h"
#include "kernels/cpu/summary/db_internal.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/decode.h"
#include "wire/scan.h"

#define MOST_TENSOR ((size_t)1 << 30)  // that an event may request

// Field numbers of summary.proto that only databases need.
enum { METADATA_DISPLAY_NAME = 2, METADATA_DESCRIPTION = 3, PLUGIN_CONTENT = 2 };
enum { IMAGE_HEIGHT = 1, IMAGE_WIDTH = 2, IMAGE_BYTES = 4, AUDIO_BYTES = 4 };
enum { HISTOGRAM_LIMITS = 6, HISTOGRAM_COUNTS = 7 };

rn_status_t rn_summary_db_open(const rn_env_t* env, rn_str_t uri, rn_str_t experiment, rn_str_t run,
                               rn_str_t user, rn_summary_db_t** out) {
  const rn_sqlite_api_t* sql = NULL;
  rn_summary_db_t* db = NULL;
  rn_str_t path = RN_STR("");
  int code = RN_SQLITE_OK;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_sqlite_need("CreateSummaryDbWriter", &sql));
  RN_RETURN_IF_ERROR(rn_fs_check_name(uri));
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &db));
  db->env = *env;
  db->sql = sql;
  rn_arena_init(&db->arena, env->allocator);
  rn_map_init(&db->tags, env->allocator);
  rn_status_t status = rn_arena_str(&db->arena, uri, &path);
  if (rn_ok(status)) status = rn_arena_str(&db->arena, experiment, &db->experiment);
  if (rn_ok(status)) status = rn_arena_str(&db->arena, run, &db->run);
  if (rn_ok(status)) status = rn_arena_str(&db->arena, user, &db->user);
  if (rn_ok(status)) status = rn_sqlite_open(env, path.data, true, &db->db, &code);
  if (rn_ok(status) && code != RN_SQLITE_OK)
    status = rn_status_make(rn_sqlite_status_code(code), "Sqlite::Open(%s) failed: %s", path.data,
                            sql->errstr(code));
  if (rn_ok(status)) status = rn_summary_db_make_tables(db);
  if (rn_ok(status))
    *out = db;
  else
    rn_summary_db_close(db);
  return status;
}

void rn_summary_db_close(rn_summary_db_t* db) {
  if (!db) return;
  if (db->run_id)  // errors cannot be reported here
    rn_status_free(RN_SUMMARY_DB_RUN(db, "UPDATE Runs SET finished_time = ? WHERE run_id = ?", "di",
                                     rn_summary_db_now(db), db->run_id));
  if (db->db) db->sql->close_v2(db->db);
  rn_map_clear(&db->tags);
  rn_arena_clear(&db->arena);
  RN_FREE(db->env.allocator, db);
}

// What is kept of a SummaryMetadata.
typedef struct db_metadata_t {
  rn_str_t plugin, content, display_name, description;
} db_metadata_t;

static db_metadata_t metadata_of(rn_str_t bytes, const char* plugin) {
  rn_str_t data = rn_field_bytes(bytes, RN_METADATA_PLUGIN);
  db_metadata_t out = {.plugin = rn_field_bytes(data, RN_PLUGIN_NAME),
                       .content = rn_field_bytes(data, PLUGIN_CONTENT),
                       .display_name = rn_field_bytes(bytes, METADATA_DISPLAY_NAME),
                       .description = rn_field_bytes(bytes, METADATA_DESCRIPTION)};
  if (!out.plugin.size) out.plugin = rn_str(plugin);
  return out;
}

// Finds the number of a tag, or makes its rows.
static rn_status_t find_tag(rn_summary_db_t* db, rn_str_t tag, const db_metadata_t* metadata,
                            double time, int64_t* out) {
  double now = rn_summary_db_now(db);
  RN_RETURN_IF_ERROR(rn_summary_db_begin_run(db, now, time));
  int64_t* known = rn_map_get(&db->tags, tag);
  if (!known) {
    rn_str_t kept;
    int64_t id = 0;
    RN_RETURN_IF_ERROR(rn_arena_str(&db->arena, tag, &kept));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&db->arena, 1, &known));
    RN_RETURN_IF_ERROR(rn_map_reserve(&db->tags, db->tags.count + 1));
    RN_RETURN_IF_ERROR(rn_summary_db_new_id(db, &id));
    RN_RETURN_IF_ERROR(
        RN_SUMMARY_DB_RUN(db, "INSERT OR REPLACE INTO Descriptions (id, description) VALUES (?, ?)",
                          "it", id, metadata->description));
    RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
        db,
        "INSERT INTO Tags (run_id, tag_id, tag_name, inserted_time, display_name, plugin_name, "
        "plugin_data) VALUES (?, ?, ?, ?, ?, ?, ?)",
        db->run_id ? "iitdttb" : "nitdttb", db->run_id, id, tag, now, metadata->display_name,
        metadata->plugin, metadata->content));
    *known = id;
    RN_RETURN_IF_ERROR(rn_map_put(&db->tags, kept, known));
  }
  *out = *known;
  return RN_OK;
}

// A tensor that is written.
typedef struct db_row_t {
  int64_t tag, step;
  double time;
  rn_str_t shape;  // its sizes, with commas between
  const rn_tensor_t* tensor;
} db_row_t;

static rn_status_t write_row(rn_summary_db_t* db, void* arg) {
  const db_row_t* row = arg;
  const rn_tensor_t* tensor = row->tensor;
  const rn_tstring_t* texts =
      tensor->dtype == RN_STRING ? RN_DATA(tensor, const rn_tstring_t) : NULL;
  rn_str_t data = {0};
  if (!texts)
    data = rn_str_n(tensor->data ? tensor->data : "", rn_tensor_bytes(tensor));
  else if (texts && tensor->rank == 0)
    data = rn_tstring_view(texts);
  RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
      db,
      "INSERT OR REPLACE INTO Tensors (series, step, computed_time, dtype, shape, data) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      "iiditb", row->tag, row->step, row->time, (int64_t)tensor->dtype, row->shape, data));
  if (!texts || tensor->rank == 0) return RN_OK;
  int64_t place = db->sql->last_insert_rowid(db->db);
  RN_RETURN_IF_ERROR(
      RN_SUMMARY_DB_RUN(db, "DELETE FROM TensorStrings WHERE tensor_rowid = ?", "i", place));
  for (int64_t i = 0; i < tensor->count; ++i)
    RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
        db, "INSERT INTO TensorStrings (tensor_rowid, idx, data) VALUES (?, ?, ?)", "iib", place, i,
        rn_tstring_view(&texts[i])));
  return RN_OK;
}

static rn_status_t write_tensor(rn_summary_db_t* db, int64_t step, double time, rn_str_t tag,
                                const db_metadata_t* metadata, const rn_tensor_t* tensor) {
  static const rn_dtypes_t allowed =
      RN_TYPES1(RN_STRING) | RN_TYPES1(RN_HALF) | RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_DOUBLE) |
      RN_TYPES1(RN_COMPLEX64) | RN_TYPES1(RN_COMPLEX128) | RN_TYPES1(RN_INT8) |
      RN_TYPES1(RN_INT16) | RN_TYPES1(RN_INT32) | RN_TYPES1(RN_INT64) | RN_TYPES1(RN_UINT8) |
      RN_TYPES1(RN_UINT16) | RN_TYPES1(RN_UINT32) | RN_TYPES1(RN_UINT64);
  if (!rn_dtypes_has(allowed, tensor->dtype))
    return rn_unimplemented("%s tensors unsupported on platform", rn_dtype_name(tensor->dtype));
  db_row_t row = {.step = step, .time = time, .tensor = tensor};
  rn_strbuf_t shape;
  rn_strbuf_init(&shape, db->env.allocator);
  for (int d = 0; d < tensor->rank; ++d)
    rn_strbuf_printf(&shape, d ? ",%lld" : "%lld", (long long)rn_tensor_dim(tensor, d));
  rn_status_t status = rn_strbuf_status(&shape);
  if (rn_ok(status)) status = find_tag(db, tag, metadata, time, &row.tag);
  row.shape = rn_strbuf_view(&shape);
  if (rn_ok(status)) status = rn_summary_db_transact(db, write_row, &row);
  rn_strbuf_clear(&shape);
  return status;
}

rn_status_t rn_summary_db_put_tensor(rn_summary_db_t* db, int64_t step, rn_str_t tag,
                                     rn_str_t metadata, const rn_tensor_t* tensor) {
  rn_pb_scan_t scan = rn_pb_scan(metadata);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) continue;
  if (scan.is_bad) return rn_invalid_argument("Bad serialized_metadata");
  db_metadata_t kept = metadata_of(metadata, "");
  return write_tensor(db, step, rn_summary_db_now(db), tag, &kept, tensor);
}

static rn_status_t put_scalar(rn_summary_db_t* db, int64_t step, double time, rn_str_t tag,
                              rn_str_t metadata, rn_dtype_t dtype, void* value) {
  db_metadata_t kept = metadata_of(metadata, "scalars");
  rn_tensor_t scalar = {0};
  RN_RETURN_IF_ERROR(rn_tensor_init(&scalar, dtype, RN_SHAPE_SCALAR));
  scalar.data = value;  // borrowed
  rn_status_t status = write_tensor(db, step, time, tag, &kept, &scalar);
  rn_tensor_clear(&scalar);
  return status;
}

rn_status_t rn_summary_db_put_scalar(rn_summary_db_t* db, int64_t step, rn_str_t tag,
                                     const rn_tensor_t* tensor) {
  return put_scalar(db, step, rn_summary_db_now(db), tag, RN_STR(""), tensor->dtype, tensor->data);
}

// Values of a Summary, as tensors.

typedef struct db_value_t {
  rn_summary_db_t* db;
  int64_t step;
  double time;
  rn_str_t tag, metadata;
} db_value_t;

static rn_status_t put_texts(const db_value_t* v, const char* plugin, rn_shape_t shape,
                             const rn_str_t* texts) {
  db_metadata_t metadata = metadata_of(v->metadata, plugin);
  rn_tensor_t tensor = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(v->db->env.allocator, RN_STRING, shape, &tensor));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < tensor.count; ++i)
    if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], texts[i].data ? texts[i].data : "",
                           texts[i].size))
      status = rn_out_of_memory();
  if (rn_ok(status)) status = write_tensor(v->db, v->step, v->time, v->tag, &metadata, &tensor);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t put_image(const db_value_t* v, rn_str_t image) {
  char sizes[2][24];
  snprintf(sizes[0], sizeof sizes[0], "%d", (int32_t)rn_field_value(image, IMAGE_WIDTH));
  snprintf(sizes[1], sizeof sizes[1], "%d", (int32_t)rn_field_value(image, IMAGE_HEIGHT));
  const rn_str_t texts[] = {rn_str(sizes[0]), rn_str(sizes[1]), rn_field_bytes(image, IMAGE_BYTES)};
  return put_texts(v, "images", (rn_shape_t){1, (int64_t[]){3}}, texts);
}

static rn_status_t put_audio(const db_value_t* v, rn_str_t audio) {
  const rn_str_t texts[] = {rn_field_bytes(audio, AUDIO_BYTES), RN_STR("")};
  return put_texts(v, "audio", (rn_shape_t){2, (int64_t[]){1, 2}}, texts);
}

// Appends the doubles of a repeated field, packed or not.
static void take_doubles(rn_str_t bytes, uint32_t number, rn_strbuf_t* out) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    if (field.number != number) continue;
    if (field.wire == RN_PB_WIRE_64) rn_strbuf_append_n(out, &field.value, sizeof(double));
    if (field.wire == RN_PB_WIRE_LENGTH) rn_strbuf_append(out, field.bytes);
  }
}

// A row per bucket: where it begins, where it ends, how many values are in it.
static rn_status_t put_buckets(const db_value_t* v, rn_str_t limits, rn_str_t counts) {
  if (limits.size != counts.size || limits.size % sizeof(double))
    return rn_invalid_argument("size mismatch");
  db_metadata_t metadata = metadata_of(v->metadata, "histograms");
  rn_tensor_t tensor = {0};
  int64_t buckets = (int64_t)(limits.size / sizeof(double));
  RN_RETURN_IF_ERROR(rn_tensor_create(v->db->env.allocator, RN_DOUBLE,
                                      (rn_shape_t){2, (int64_t[]){buckets, 3}}, &tensor));
  double* to = RN_DATA(&tensor, double);
  for (int64_t i = 0; i < buckets; ++i) {
    // The first one begins at the smallest positive number, as in TensorFlow.
    to[3 * i] = i ? to[3 * i - 2] : DBL_MIN;
    memcpy(&to[3 * i + 1], limits.data + i * 8, sizeof(double));
    memcpy(&to[3 * i + 2], counts.data + i * 8, sizeof(double));
  }
  rn_status_t status = write_tensor(v->db, v->step, v->time, v->tag, &metadata, &tensor);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t put_histogram(const db_value_t* v, rn_str_t histogram) {
  rn_strbuf_t limits, counts;
  rn_strbuf_init(&limits, v->db->env.allocator);
  rn_strbuf_init(&counts, v->db->env.allocator);
  take_doubles(histogram, HISTOGRAM_LIMITS, &limits);
  take_doubles(histogram, HISTOGRAM_COUNTS, &counts);
  rn_status_t status = rn_strbuf_status(&limits);
  if (rn_ok(status)) status = rn_strbuf_status(&counts);
  if (rn_ok(status)) status = put_buckets(v, rn_strbuf_view(&limits), rn_strbuf_view(&counts));
  rn_strbuf_clear(&limits);
  rn_strbuf_clear(&counts);
  return status;
}

static rn_status_t put_proto(const db_value_t* v, rn_str_t bytes) {
  db_metadata_t metadata = metadata_of(v->metadata, "");
  rn_pb_TensorProto_t* proto = NULL;
  rn_tensor_t tensor = {0};
  rn_arena_t arena;
  rn_arena_init(&arena, v->db->env.allocator);
  rn_status_t status = RN_PB_DECODE(TensorProto, bytes, NULL, &arena, &proto);
  if (rn_ok(status))
    status = rn_tensor_from_proto(proto, MOST_TENSOR, v->db->env.allocator, &tensor);
  if (!rn_ok(status) && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
    rn_status_free(status);
    status = rn_invalid_argument("bad proto");
  }
  if (rn_ok(status)) status = write_tensor(v->db, v->step, v->time, v->tag, &metadata, &tensor);
  rn_tensor_clear(&tensor);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t put_value(db_value_t* v, rn_str_t bytes) {
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field, value = {0};
  v->tag = rn_field_bytes(bytes, RN_VALUE_TAG);
  v->metadata = rn_field_bytes(bytes, RN_VALUE_METADATA);
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == RN_VALUE_SIMPLE
            ? field.wire == RN_PB_WIRE_32
            : field.wire == RN_PB_WIRE_LENGTH &&
                  (field.number == RN_VALUE_IMAGE || field.number == RN_VALUE_HISTOGRAM ||
                   field.number == RN_VALUE_AUDIO || field.number == RN_VALUE_TENSOR))
      value = field;
  if (scan.is_bad) return rn_data_loss("Bad tf.Summary binary proto");
  uint32_t bits = (uint32_t)value.value;
  switch (value.number) {
    case RN_VALUE_SIMPLE:
      return put_scalar(v->db, v->step, v->time, v->tag, v->metadata, RN_FLOAT, &bits);
    case RN_VALUE_IMAGE:
      return put_image(v, value.bytes);
    case RN_VALUE_HISTOGRAM:
      return put_histogram(v, value.bytes);
    case RN_VALUE_AUDIO:
      return put_audio(v, value.bytes);
    case RN_VALUE_TENSOR:
      return put_proto(v, value.bytes);
    default:
      return RN_OK;
  }
}

rn_status_t rn_summary_db_put_summary(rn_summary_db_t* db, int64_t step, double time,
                                      rn_str_t summary) {
  db_value_t value = {.db = db, .step = step, .time = time ? time : rn_summary_db_now(db)};
  rn_pb_scan_t scan = rn_pb_scan(summary);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field))
    if (field.number == RN_SUMMARY_VALUE && field.wire == RN_PB_WIRE_LENGTH)
      RN_RETURN_IF_ERROR(put_value(&value, field.bytes));
  return scan.is_bad ? rn_data_loss("Bad tf.Summary binary proto") : RN_OK;
}
