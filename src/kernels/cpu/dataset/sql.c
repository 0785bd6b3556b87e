// SqlDataset: the rows of an SQLite query. The library is opened when first used.
#include <stdlib.h>

#include "io/sqlite.h"
#include "kernels/cpu/dataset/data.h"
#include "tensor/tstring.h"

typedef struct sql_dataset_t {
  rn_dataset_t base;
  rn_str_t source, query;
  const rn_sqlite_api_t* sql;
} sql_dataset_t;

typedef struct sql_iterator_t {
  rn_data_iterator_t base;
  const rn_sqlite_api_t* sql;
  sqlite3* db;
  sqlite3_stmt* statement;
  int64_t done;  // rows returned
  bool is_over;
} sql_iterator_t;

static rn_status_t sql_open(rn_dataset_t* dataset) {
  sql_dataset_t* own = (sql_dataset_t*)dataset;
  rn_str_t driver;
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "driver_name", &driver));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "data_source_name", &own->source));
  RN_RETURN_IF_ERROR(rn_data_text(dataset, "query", &own->query));
  if (!rn_str_is(driver, "sqlite"))
    return rn_invalid_argument(
        "The database type, %.*s, is not supported by SqlDataset. The set of supported "
        "databases is: {'sqlite'}.",
        RN_STR_ARGS(driver));
  for (int32_t i = 0; i < dataset->component_count; ++i) {
    static const rn_dtypes_t allowed =
        RN_TYPES1(RN_STRING) | RN_TYPES1(RN_INT8) | RN_TYPES1(RN_INT16) | RN_TYPES1(RN_INT32) |
        RN_TYPES1(RN_INT64) | RN_TYPES1(RN_UINT8) | RN_TYPES1(RN_UINT16) | RN_TYPES1(RN_BOOL) |
        RN_TYPES1(RN_DOUBLE);
    if (!rn_dtypes_has(allowed, dataset->types[i]))
      return rn_invalid_argument(
          "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, DT_INT16, DT_INT32, "
          "DT_INT64, DT_UINT8, DT_UINT16, DT_BOOL, DT_DOUBLE ");
    rn_shape_t shape = dataset->shapes[i];
    if (shape.rank > 0)
      return rn_invalid_argument("Each element of `output_shapes_` must be a scalar.");
  }
  return rn_sqlite_need("SqlDataset", &own->sql);
}

static void sql_stop(rn_data_iterator_t* iterator) {
  sql_iterator_t* own = (sql_iterator_t*)iterator;
  if (own->statement) own->sql->finalize(own->statement);
  if (own->db) own->sql->close_v2(own->db);
  own->statement = NULL;
  own->db = NULL;
}

static rn_status_t connect(sql_iterator_t* own) {
  const sql_dataset_t* dataset = (const sql_dataset_t*)own->base.dataset;
  rn_allocator_t allocator = dataset->base.node->allocator;
  const rn_sqlite_api_t* sql = own->sql = dataset->sql;
  char *path = NULL, *query = NULL;
  int code = RN_SQLITE_OK;
  RN_RETURN_IF_ERROR(rn_str_dup(allocator, dataset->source, &path));
  rn_status_t status = rn_str_dup(allocator, dataset->query, &query);
  if (rn_ok(status)) status = rn_sqlite_open(dataset->base.host->env, path, false, &own->db, &code);
  if (rn_ok(status) && code != RN_SQLITE_OK)
    status = rn_invalid_argument("Failed to connect to database: %s: %s",
                                 own->db ? sql->errmsg(own->db) : "out of memory", path);
  if (rn_ok(status) && sql->prepare_v2(own->db, query, -1, &own->statement, NULL) != RN_SQLITE_OK)
    status = rn_status_make(RN_CODE_UNKNOWN, "Prepare() failed: [%d] %s: %s", sql->errcode(own->db),
                            sql->errmsg(own->db), query);
  if (rn_ok(status) && !own->statement) status = rn_invalid_argument("The query is empty");
  rn_free(allocator, path, dataset->source.size + 1);
  if (query) rn_free(allocator, query, dataset->query.size + 1);
  if (!rn_ok(status)) {
    sql_stop(&own->base);
    return status;
  }
  int columns = own->sql->column_count(own->statement);
  if (columns == dataset->base.component_count) return RN_OK;
  sql_stop(&own->base);
  return rn_invalid_argument(
      "The number of columns in query (%d) must match the number of elements in output_types (%d).",
      columns, dataset->base.component_count);
}

static rn_status_t read_column(sql_iterator_t* own, int i, rn_tensor_t* out) {
  const rn_dataset_t* dataset = own->base.dataset;
  rn_dtype_t dtype = dataset->types[i];
  if (dtype != RN_STRING && dtype != RN_DOUBLE)
    return rn_data_make_scalar(dataset->node->memory, dtype,
                               dtype == RN_INT64 ? own->sql->column_int64(own->statement, i)
                                                 : own->sql->column_int(own->statement, i),
                               out);
  RN_RETURN_IF_ERROR(rn_tensor_create(dataset->node->memory, dtype, RN_SHAPE_SCALAR, out));
  if (dtype == RN_DOUBLE) {
    *RN_DATA(out, double) = own->sql->column_double(own->statement, i);
    return RN_OK;
  }
  // The bytes are valid until the next call about this column, so the pointer comes first.
  const char* bytes = own->sql->column_blob(own->statement, i);
  int size = own->sql->column_bytes(own->statement, i);
  return rn_tstring_assign(RN_DATA(out, rn_tstring_t), bytes ? bytes : "",
                           bytes && size > 0 ? (size_t)size : 0)
             ? RN_OK
             : rn_out_of_memory();
}

// Steps to the next row.
static rn_status_t step(sql_iterator_t* own) {
  const rn_sqlite_api_t* sql = own->sql;
  int code = sql->step(own->statement);
  if (code == RN_SQLITE_ROW) {
    own->done++;
    return RN_OK;
  }
  own->is_over = true;
  rn_status_t status = code == RN_SQLITE_DONE
                           ? RN_OK
                           : rn_status_make(RN_CODE_UNKNOWN, "Step() failed: [%d] %s",
                                            sql->errcode(own->db), sql->errmsg(own->db));
  sql_stop(&own->base);
  return status;
}

static bool sql_next(rn_data_iterator_t* iterator) {
  sql_iterator_t* own = (sql_iterator_t*)iterator;
  if (own->is_over) return rn_data_end(iterator);
  rn_status_t status = own->db ? RN_OK : connect(own);
  if (rn_ok(status)) status = step(own);
  if (rn_ok(status) && own->is_over) return rn_data_end(iterator);
  int32_t count = iterator->dataset->component_count;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    status = read_column(own, i, &iterator->asked->out[i]);
  if (!rn_ok(status)) rn_data_row_clear(iterator->asked->out, count);
  return rn_data_finish(iterator, status);
}

static rn_status_t sql_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  rn_data_put_int(writer, ((sql_iterator_t*)iterator)->done);
  rn_data_put_int(writer, ((sql_iterator_t*)iterator)->is_over);
  return RN_OK;
}

// Runs the query again and skips the rows that were returned.
static rn_status_t sql_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  sql_iterator_t* own = (sql_iterator_t*)iterator;
  int64_t done = 0, is_over = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &done));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  if (done < 0) return rn_data_bad_state();
  own->is_over = is_over != 0;
  if (own->is_over || done == 0) return RN_OK;
  RN_RETURN_IF_ERROR(connect(own));
  while (own->done < done && !own->is_over) RN_RETURN_IF_ERROR(step(own));
  return RN_OK;
}

const rn_data_kind_t rn_data_kind_sql = {.dataset_size = sizeof(sql_dataset_t),
                                         .iterator_size = sizeof(sql_iterator_t),
                                         .open = sql_open,
                                         .stop = sql_stop,
                                         .next = sql_next,
                                         .save = sql_save,
                                         .restore = sql_restore};
