// SQLite, whose library is opened when first used.
#ifndef RUNNEL_IO_SQLITE_H_
#define RUNNEL_IO_SQLITE_H_

#include "base/env.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

// SQLite's numbers.
enum { RN_SQLITE_OK = 0, RN_SQLITE_CONSTRAINT = 19, RN_SQLITE_ROW = 100, RN_SQLITE_DONE = 101 };

// The functions of the library: |step| is sqlite3_step.
#define RN_SQLITE_FUNCTIONS(X)                                                                    \
  X(int, open_v2, (const char* name, sqlite3** db, int flags, const char* vfs))                   \
  X(int, close_v2, (sqlite3 * db))                                                                \
  X(int, limit, (sqlite3 * db, int what, int value))                                              \
  X(int, busy_timeout, (sqlite3 * db, int milliseconds))                                          \
  X(int, prepare_v2, (sqlite3 * db, const char* sql, int size, sqlite3_stmt** out, const char**)) \
  X(int, step, (sqlite3_stmt * statement))                                                        \
  X(int, finalize, (sqlite3_stmt * statement))                                                    \
  X(int, column_count, (sqlite3_stmt * statement))                                                \
  X(int, column_int, (sqlite3_stmt * statement, int i))                                           \
  X(int64_t, column_int64, (sqlite3_stmt * statement, int i))                                     \
  X(double, column_double, (sqlite3_stmt * statement, int i))                                     \
  X(const void*, column_blob, (sqlite3_stmt * statement, int i))                                  \
  X(int, column_bytes, (sqlite3_stmt * statement, int i))                                         \
  X(int, bind_int64, (sqlite3_stmt * statement, int i, int64_t value))                            \
  X(int, bind_double, (sqlite3_stmt * statement, int i, double value))                            \
  X(int, bind_text64,                                                                             \
    (sqlite3_stmt * statement, int i, const char* text, uint64_t size, void (*destroy)(void*),    \
     unsigned char encoding))                                                                     \
  X(int, bind_blob64,                                                                             \
    (sqlite3_stmt * statement, int i, const void* data, uint64_t size, void (*destroy)(void*)))   \
  X(int64_t, last_insert_rowid, (sqlite3 * db))                                                   \
  X(const char*, errmsg, (sqlite3 * db))                                                          \
  X(const char*, errstr, (int code))                                                              \
  X(int, errcode, (sqlite3 * db))

typedef struct rn_sqlite_api_t {
#define RN_SQLITE_FIELD(type, name, arguments) type(*name) arguments;
  RN_SQLITE_FUNCTIONS(RN_SQLITE_FIELD)
#undef RN_SQLITE_FIELD
} rn_sqlite_api_t;

// The functions; UNIMPLEMENTED if the library, which |op| needs, cannot be opened.
RN_MUST_USE rn_status_t rn_sqlite_need(const char* op, const rn_sqlite_api_t** out);
// Opens the database |path|; |writes| creates it if it does not exist. |*out_code| is SQLite's, and
// the caller closes |*out| whatever it is. If |env| shows some folders only, the path must lie in
// them, and statements cannot open other files: PERMISSION_DENIED.
RN_MUST_USE rn_status_t rn_sqlite_open(const rn_env_t* env, const char* path, bool writes,
                                       sqlite3** out, int* out_code);
rn_code_t rn_sqlite_status_code(int code);  // the code that TensorFlow gives to SQLite's

#endif  // RUNNEL_IO_SQLITE_H_
