// The tables of TensorBoard's databases, and the statements that fill them.
#include <stdarg.h>

#include "kernels/cpu/summary/db_internal.h"

#define UTF8 1
#define STATIC NULL  // SQLite uses the bytes before the statement ends
#define MOST_COLLISIONS 21

static const char* const tables[] = {
    "PRAGMA application_id=4276988910",
    "PRAGMA user_version=0",
    "CREATE TABLE IF NOT EXISTS Ids (id INTEGER PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS Descriptions (id INTEGER PRIMARY KEY, description TEXT)",
    "CREATE TABLE IF NOT EXISTS Tensors (rowid INTEGER PRIMARY KEY, series INTEGER, step INTEGER, "
    "dtype INTEGER, computed_time REAL, shape TEXT, data BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS TensorSeriesStepIndex ON Tensors (series, step) "
    "WHERE series IS NOT NULL AND step IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS TensorStrings (rowid INTEGER PRIMARY KEY, "
    "tensor_rowid INTEGER NOT NULL, idx INTEGER NOT NULL, data BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS TensorStringIndex ON TensorStrings (tensor_rowid, idx)",
    "CREATE TABLE IF NOT EXISTS Tags (rowid INTEGER PRIMARY KEY, run_id INTEGER, "
    "tag_id INTEGER NOT NULL, inserted_time DOUBLE, tag_name TEXT, display_name TEXT, "
    "plugin_name TEXT, plugin_data BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS TagIdIndex ON Tags (tag_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS TagRunNameIndex ON Tags (run_id, tag_name) "
    "WHERE run_id IS NOT NULL AND tag_name IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS Runs (rowid INTEGER PRIMARY KEY, experiment_id INTEGER, "
    "run_id INTEGER NOT NULL, inserted_time REAL, started_time REAL, finished_time REAL, "
    "run_name TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS RunIdIndex ON Runs (run_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS RunNameIndex ON Runs (experiment_id, run_name) "
    "WHERE run_name IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS Experiments (rowid INTEGER PRIMARY KEY, user_id INTEGER, "
    "experiment_id INTEGER NOT NULL, inserted_time REAL, started_time REAL, is_watching INTEGER, "
    "experiment_name TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS ExperimentIdIndex ON Experiments (experiment_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS ExperimentNameIndex ON Experiments (user_id, "
    "experiment_name) WHERE experiment_name IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS Users (rowid INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, "
    "inserted_time REAL, user_name TEXT, email TEXT)",
    "CREATE UNIQUE INDEX IF NOT EXISTS UserIdIndex ON Users (user_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS UserNameIndex ON Users (user_name) "
    "WHERE user_name IS NOT NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS UserEmailIndex ON Users (email) WHERE email IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS Graphs (rowid INTEGER PRIMARY KEY, run_id INTEGER, "
    "graph_id INTEGER NOT NULL, inserted_time REAL, graph_def BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS GraphIdIndex ON Graphs (graph_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS GraphRunIndex ON Graphs (run_id) WHERE run_id IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS Nodes (rowid INTEGER PRIMARY KEY, graph_id INTEGER NOT NULL, "
    "node_id INTEGER NOT NULL, node_name TEXT, op TEXT, device TEXT, node_def BLOB)",
    "CREATE UNIQUE INDEX IF NOT EXISTS NodeIdIndex ON Nodes (graph_id, node_id)",
    "CREATE UNIQUE INDEX IF NOT EXISTS NodeNameIndex ON Nodes (graph_id, node_name) "
    "WHERE node_name IS NOT NULL",
    "CREATE TABLE IF NOT EXISTS NodeInputs (rowid INTEGER PRIMARY KEY, graph_id INTEGER NOT NULL, "
    "node_id INTEGER NOT NULL, idx INTEGER NOT NULL, input_node_id INTEGER NOT NULL, "
    "input_node_idx INTEGER, is_control INTEGER)",
    "CREATE UNIQUE INDEX IF NOT EXISTS NodeInputsIndex ON NodeInputs (graph_id, node_id, idx)",
};

double rn_summary_db_now(const rn_summary_db_t* db) {
  return (double)db->env.wall_us(db->env.self) / 1e6;
}

static rn_status_t failed(const rn_summary_db_t* db, const char* what, int code,
                          const char* statement) {
  return rn_status_make(rn_sqlite_status_code(code), "%s failed: [%d] %s: %s", what, code,
                        db->sql->errmsg(db->db), statement);
}

static int bind(const rn_summary_db_t* db, sqlite3_stmt* statement, const char* types,
                va_list values) {
  int code = RN_SQLITE_OK;
  for (int i = 1; types[i - 1] && code == RN_SQLITE_OK; ++i) {
    rn_str_t text;
    switch (types[i - 1]) {
      case 'i':
        code = db->sql->bind_int64(statement, i, va_arg(values, int64_t));
        break;
      case 'd':
        code = db->sql->bind_double(statement, i, va_arg(values, double));
        break;
      case 't':
        text = va_arg(values, rn_str_t);
        code =
            db->sql->bind_text64(statement, i, text.data ? text.data : "", text.size, STATIC, UTF8);
        break;
      case 'b':
        text = va_arg(values, rn_str_t);
        code = db->sql->bind_blob64(statement, i, text.data, text.size, STATIC);
        break;
      default:  // NULL, as values are without a call
        (void)va_arg(values, int64_t);
    }
  }
  return code;
}

rn_status_t rn_summary_db_query(rn_summary_db_t* db, int64_t row[2], bool* out_found,
                                const char* statement, const char* types, ...) {
  sqlite3_stmt* made = NULL;
  int code = db->sql->prepare_v2(db->db, statement, -1, &made, NULL);
  if (code != RN_SQLITE_OK) return failed(db, "Prepare()", code, statement);
  va_list values;
  va_start(values, types);
  code = bind(db, made, types, values);
  va_end(values);
  rn_status_t status = RN_OK;
  if (code != RN_SQLITE_OK) {
    status = failed(db, "Bind()", code, statement);
  } else {
    code = db->sql->step(made);
    if (code != RN_SQLITE_ROW && code != RN_SQLITE_DONE)
      status = failed(db, "Step()", code, statement);
  }
  if (out_found) *out_found = rn_ok(status) && code == RN_SQLITE_ROW;
  if (rn_ok(status) && code == RN_SQLITE_ROW && row)
    for (int i = 0; i < 2 && i < db->sql->column_count(made); ++i)
      row[i] = db->sql->column_int64(made, i);
  db->sql->finalize(made);
  return status;
}

rn_status_t rn_summary_db_transact(rn_summary_db_t* db,
                                   rn_status_t (*body)(rn_summary_db_t* db, void* arg), void* arg) {
  RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(db, "BEGIN", ""));
  rn_status_t status = body(db, arg);
  if (rn_ok(status)) status = RN_SUMMARY_DB_RUN(db, "COMMIT", "");
  if (!rn_ok(status)) rn_status_free(RN_SUMMARY_DB_RUN(db, "ROLLBACK", ""));
  return status;
}

static rn_status_t make_tables(rn_summary_db_t* db, void* arg) {
  (void)arg;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
    RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(db, tables[i], ""));
  return RN_OK;
}

rn_status_t rn_summary_db_make_tables(rn_summary_db_t* db) {
  return rn_summary_db_transact(db, make_tables, NULL);
}

// Draws a number of few digits; each time that it is taken, of more.
rn_status_t rn_summary_db_new_id(rn_summary_db_t* db, int64_t* out) {
  static const uint64_t masks[] = {0x7fffff, 0x7fffffff, UINT64_C(0x7fffffffffff)};
  rn_status_t status = RN_OK;
  for (int i = 0; i < MOST_COLLISIONS; ++i) {
    int64_t id = (int64_t)(db->env.random(db->env.self) & masks[db->tier]);
    *out = id ? id : 1;
    rn_status_free(status);
    status = RN_SUMMARY_DB_RUN(db, "INSERT INTO Ids (id) VALUES (?)", "i", *out);
    if (rn_ok(status) || rn_status_code(status) != RN_CODE_INVALID_ARGUMENT) return status;
    if (db->tier < 2) db->tier++;
  }
  return status;
}

static rn_status_t begin_user(rn_summary_db_t* db, double now) {
  bool found = false;
  int64_t row[2] = {0, 0};
  if (db->user_id || !db->user.size) return RN_OK;
  RN_RETURN_IF_ERROR(rn_summary_db_query(
      db, row, &found, "SELECT user_id FROM Users WHERE user_name = ?", "t", db->user));
  if (found) {
    db->user_id = row[0];
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_summary_db_new_id(db, &row[0]));
  RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
      db, "INSERT INTO Users (user_id, user_name, inserted_time) VALUES (?, ?, ?)", "itd", row[0],
      db->user, now));
  db->user_id = row[0];
  return RN_OK;
}

static rn_status_t begin_experiment(rn_summary_db_t* db, double now, double time) {
  bool found = false;
  int64_t row[2] = {0, 0};
  if (!db->experiment.size) return RN_OK;
  if (!db->experiment_id) {
    RN_RETURN_IF_ERROR(begin_user(db, now));
    RN_RETURN_IF_ERROR(rn_summary_db_query(
        db, row, &found,
        "SELECT experiment_id, started_time FROM Experiments WHERE user_id IS ? AND "
        "experiment_name = ?",
        db->user_id ? "it" : "nt", db->user_id, db->experiment));
    if (!found) {
      RN_RETURN_IF_ERROR(rn_summary_db_new_id(db, &row[0]));
      RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
          db,
          "INSERT INTO Experiments (user_id, experiment_id, experiment_name, inserted_time, "
          "started_time, is_watching) VALUES (?, ?, ?, ?, ?, 0)",
          db->user_id ? "iitdd" : "nitdd", db->user_id, row[0], db->experiment, now, time));
    }
    db->experiment_id = row[0];
    db->experiment_started = found ? (double)row[1] : time;
  }
  if (!(time < db->experiment_started)) return RN_OK;
  db->experiment_started = time;
  return RN_SUMMARY_DB_RUN(db, "UPDATE Experiments SET started_time = ? WHERE experiment_id = ?",
                           "di", time, db->experiment_id);
}

rn_status_t rn_summary_db_begin_run(rn_summary_db_t* db, double now, double time) {
  int64_t id = 0;
  if (!db->run.size) return RN_OK;
  RN_RETURN_IF_ERROR(begin_experiment(db, now, time));
  if (!db->run_id) {
    RN_RETURN_IF_ERROR(rn_summary_db_new_id(db, &id));
    RN_RETURN_IF_ERROR(RN_SUMMARY_DB_RUN(
        db,
        "INSERT OR REPLACE INTO Runs (experiment_id, run_id, run_name, inserted_time, "
        "started_time) VALUES (?, ?, ?, ?, ?)",
        db->experiment_id ? "iitdd" : "nitdd", db->experiment_id, id, db->run, now, time));
    db->run_id = id;
    db->run_started = time;
  }
  if (!(time < db->run_started)) return RN_OK;
  db->run_started = time;
  return RN_SUMMARY_DB_RUN(db, "UPDATE Runs SET started_time = ? WHERE run_id = ?", "di", time,
                           db->run_id);
}
