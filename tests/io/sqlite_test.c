// SQLite databases, also where only some folders are shown.
#include "io/sqlite.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/status.h"
#include "base/fs.h"
#include "base/fs_only.h"

static char root[64];
static rn_env_t env;
static rn_fs_only_t* only;
static const rn_sqlite_api_t* sql;

static const char* in(const char* name) {
  static char paths[4][256];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", root, name);
  return path;
}

// Runs a statement on a database; SQLite's code, or -1 if the database may not be opened.
static int run(const char* path, bool writes, const char* statement) {
  sqlite3* db = NULL;
  sqlite3_stmt* made = NULL;
  int code = RN_SQLITE_OK;
  rn_status_t status = rn_sqlite_open(&env, path, writes, &db, &code);
  if (!rn_ok(status)) {
    cr_expect(rn_status_code(status) == RN_CODE_PERMISSION_DENIED, "%s", rn_status_message(status));
    rn_status_free(status);
    cr_expect(!db);
    return -1;
  }
  if (code == RN_SQLITE_OK) code = sql->prepare_v2(db, statement, -1, &made, NULL);
  if (code == RN_SQLITE_OK) code = sql->step(made);
  sql->finalize(made);
  sql->close_v2(db);
  return code;
}

static void set_up(void) {
  strcpy(root, "/tmp/runnel_sqlite_XXXXXX");
  cr_assert(mkdtemp(root));
  env = *rn_env_system();
  OK(rn_fs_make_directories(&env, in("mine")));
  OK(rn_fs_make_directories(&env, in("other")));
  rn_status_t status = rn_sqlite_need("This test", &sql);
  if (!rn_ok(status)) {
    rn_status_free(status);
    cr_skip_test("SQLite is missing");
  }
  cr_assert(run(in("mine/a"), true, "CREATE TABLE t (x)") == RN_SQLITE_DONE);
  cr_assert(run(in("other/a"), true, "CREATE TABLE t (x)") == RN_SQLITE_DONE);
}

static void tear_down(void) {
  int64_t files, folders;
  rn_fs_only_destroy(only);
  OK(rn_fs_remove_tree(rn_env_system(), root, &files, &folders));
}

TestSuite(sqlite, .init = set_up, .fini = tear_down);

static void limit(const char* allow) {
  OK(rn_fs_only_create(rn_env_system(), rn_str(in("mine")), rn_str(allow), rn_allocator_system(),
                       &only));
  rn_fs_only_apply(only, &env);
}

Test(sqlite, shows_the_folders_of_a_view_only) {
  char attach[300], vacuum[300];
  snprintf(attach, sizeof attach, "ATTACH DATABASE '%s' AS b", in("other/a"));
  snprintf(vacuum, sizeof vacuum, "VACUUM INTO '%s'", in("other/new"));
  cr_expect(run(in("mine/a"), false, attach) == RN_SQLITE_DONE);
  limit("");
  cr_expect(run(in("mine/a"), false, "SELECT * FROM t") == RN_SQLITE_DONE);
  cr_expect(run(in("other/a"), false, "SELECT * FROM t") == -1);
  cr_expect(run(in("mine/../other/a"), false, "SELECT * FROM t") == -1);
  cr_expect(run(in("mine/a"), true, "SELECT * FROM t") == -1, "a folder to read is written");
  cr_expect(run(in("mine/a"), false, attach) != RN_SQLITE_DONE);
  cr_expect(run(in("mine/a"), false, vacuum) != RN_SQLITE_DONE);
  cr_expect(!rn_fs_exists(rn_env_system(), in("other/new")));
}

Test(sqlite, writes_where_a_view_allows_it) {
  char allow[100], uri[300];
  snprintf(allow, sizeof allow, "write:%s", in("mine"));
  snprintf(uri, sizeof uri, "file:%s", in("other/a"));
  cr_expect(run(uri, true, "INSERT INTO t VALUES (1)") == RN_SQLITE_DONE);
  limit(allow);
  cr_expect(run(in("mine/a"), true, "INSERT INTO t VALUES (1)") == RN_SQLITE_DONE);
  cr_expect(run(in("mine/b"), true, "CREATE TABLE t (x)") == RN_SQLITE_DONE);
  cr_expect(run(in("other/a"), true, "INSERT INTO t VALUES (1)") == -1);
  cr_expect(run(uri, true, "INSERT INTO t VALUES (1)") != RN_SQLITE_DONE);
}

Test(sqlite, gives_the_codes_of_TensorFlow) {
  cr_expect(rn_sqlite_status_code(14) == RN_CODE_INVALID_ARGUMENT);    // SQLITE_CANTOPEN
  cr_expect(rn_sqlite_status_code(5) == RN_CODE_UNAVAILABLE);          // SQLITE_BUSY
  cr_expect(rn_sqlite_status_code(2067) == RN_CODE_INVALID_ARGUMENT);  // of SQLITE_CONSTRAINT
  cr_expect(rn_sqlite_status_code(1) == RN_CODE_UNKNOWN);
  cr_expect(rn_sqlite_status_code(200) == RN_CODE_UNKNOWN);
}
