// What the parts of the writer of databases share.
#ifndef RUNNEL_KERNELS_CPU_SUMMARY_DB_INTERNAL_H_
#define RUNNEL_KERNELS_CPU_SUMMARY_DB_INTERNAL_H_

#include "base/arena.h"
#include "base/map.h"
#include "io/sqlite.h"
#include "kernels/cpu/summary/db_writer.h"

struct rn_summary_db_t {
  rn_env_t env;  // a copy, because a writer may outlive its opener
  const rn_sqlite_api_t* sql;
  sqlite3* db;
  rn_arena_t arena;  // holds the names and the tags
  rn_str_t experiment, run, user;
  int64_t experiment_id, run_id, user_id;  // 0 if there is none yet
  double experiment_started, run_started;
  int tier;       // of the numbers that are tried for new rows
  rn_map_t tags;  // tag -> int64_t, its number
};

// Runs a statement. |types| has a letter per value: i int64_t, d double, t text and b bytes
// (rn_str_t; bytes without data are NULL), n an int64_t that stands for NULL. Fills |row|, which
// may be NULL, with up to two integers of the first row and says in |*out_found| whether there was
// one.
RN_MUST_USE rn_status_t rn_summary_db_query(rn_summary_db_t* db, int64_t row[2], bool* out_found,
                                            const char* statement, const char* types, ...);
// The same for a statement without rows.
#define RN_SUMMARY_DB_RUN(db, ...) rn_summary_db_query(db, NULL, NULL, __VA_ARGS__)

// Runs |body| in a transaction.
RN_MUST_USE rn_status_t rn_summary_db_transact(rn_summary_db_t* db,
                                               rn_status_t (*body)(rn_summary_db_t* db, void* arg),
                                               void* arg);
RN_MUST_USE rn_status_t rn_summary_db_new_id(rn_summary_db_t* db, int64_t* out);
// Makes the tables that the database lacks.
RN_MUST_USE rn_status_t rn_summary_db_make_tables(rn_summary_db_t* db);
// Makes the rows of the user, the experiment and the run, if they have names.
RN_MUST_USE rn_status_t rn_summary_db_begin_run(rn_summary_db_t* db, double now, double time);
double rn_summary_db_now(const rn_summary_db_t* db);

#endif  // RUNNEL_KERNELS_CPU_SUMMARY_DB_INTERNAL_H_
