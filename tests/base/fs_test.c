// Files and directories, on disk and in memory, with the same tests for both; then disk errors.
#include "base/fs.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/memory_fs.h"
#include "../support/status.h"

static void expect_error(rn_status_t status, rn_code_t code, const char* path, const char* words) {
  char message[300];
  snprintf(message, sizeof message, "%s; %s", path, words);
  cr_assert_str_eq(rn_status_message(status), message);
  FAILS_CODE(status, code, "");
}

typedef struct place_t {
  rn_env_t env;
  rn_memory_fs_t* memory;
  char root[64];
} place_t;

static void place_begin(place_t* place, bool in_memory) {
  *place = (place_t){.env = *rn_env_system()};
  if (in_memory) {
    OK(rn_memory_fs_create(rn_allocator_system(), &place->memory));
    rn_memory_fs_install(place->memory, &place->env);
    snprintf(place->root, sizeof place->root, "/t");
    OK(place->env.fs->make_directory(place->env.fs_self, place->root));
  } else {
    snprintf(place->root, sizeof place->root, "/tmp/rn_fs_test_XXXXXX");
    cr_assert_not_null(mkdtemp(place->root));
  }
}

static void place_end(place_t* place) {
  int64_t files, directories;
  OK(rn_fs_remove_tree(&place->env, place->root, &files, &directories));
  cr_assert_eq(files + directories, 0);
  rn_memory_fs_destroy(place->memory);
}

static const char* at(const place_t* place, const char* name) {
  static char paths[8][200];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", place->root, name);
  return path;
}

static void expect_content(const place_t* place, const char* path, const char* content) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  OK(rn_fs_read(&place->env, path, SIZE_MAX, &out));
  cr_assert_eq(out.size, strlen(content));
  cr_assert_eq(memcmp(out.size ? out.data : "", content, out.size), 0);
  rn_strbuf_clear(&out);
}

static void check_files(place_t* place) {
  const rn_env_t* env = &place->env;
  rn_file_t* file = NULL;
  const char* path = at(place, "file");
  expect_error(rn_fs_open(env, path, RN_OPEN_READ, &file), RN_CODE_NOT_FOUND, path,
               "No such file or directory");
  cr_assert_null(file);
  OK(rn_fs_open(env, path, RN_OPEN_WRITE, &file));
  OK(file->vtable->append(file, RN_STR("hello ")));
  OK(file->vtable->append(file, RN_STR("world")));
  OK(file->vtable->sync(file));
  OK(file->vtable->close(file));
  int64_t size = 0;
  OK(rn_fs_size(env, path, &size));
  cr_assert_eq(size, 11);
  OK(rn_fs_open(env, path, RN_OPEN_APPEND, &file));
  OK(file->vtable->truncate(file, 5));
  OK(file->vtable->append(file, RN_STR("!")));
  rn_file_stat_t stat;
  OK(file->vtable->stat(file, &stat));
  cr_assert_eq(stat.size, 6);
  cr_assert_not(stat.is_directory);
  OK(file->vtable->close(file));
  expect_content(place, path, "hello!");
  OK(rn_fs_open(env, path, RN_OPEN_READ, &file));
  char bytes[16];
  size_t got;
  OK(file->vtable->read_at(file, 4, bytes, sizeof bytes, &got));
  cr_assert_eq(got, 2);
  cr_assert_eq(memcmp(bytes, "o!", 2), 0);
  OK(file->vtable->read_at(file, 100, bytes, sizeof bytes, &got));
  cr_assert_eq(got, 0);
  OK(file->vtable->read(file, bytes, 4, &got));
  OK(file->vtable->read(file, bytes + 4, 4, &got));
  cr_assert_eq(got, 2);
  cr_assert_eq(memcmp(bytes, "hello!", 6), 0);
  OK(file->vtable->close(file));
  OK(rn_fs_write(env, path, RN_STR("x")));
  expect_content(place, path, "x");
  OK(env->fs->remove(env->fs_self, path));
  cr_assert_not(rn_fs_exists(env, path));
  expect_error(env->fs->remove(env->fs_self, path), RN_CODE_NOT_FOUND, path,
               "No such file or directory");
}

static void check_directories(place_t* place) {
  const rn_env_t* env = &place->env;
  const rn_fs_t* fs = env->fs;
  const char *a = at(place, "a"), *deep = at(place, "a/b/c"), *file = at(place, "a/b/f");
  expect_error(fs->make_directory(env->fs_self, deep), RN_CODE_NOT_FOUND, deep,
               "No such file or directory");
  OK(rn_fs_make_directories(env, deep));
  OK(rn_fs_make_directories(env, deep));
  expect_error(fs->make_directory(env->fs_self, a), RN_CODE_ALREADY_EXISTS, a, "File exists");
  OK(rn_fs_write(env, file, RN_STR("1")));
  expect_error(rn_fs_make_directories(env, file), RN_CODE_ALREADY_EXISTS, file, "File exists");
  expect_error(fs->remove_directory(env->fs_self, a), RN_CODE_FAILED_PRECONDITION, a,
               "Directory not empty");
  expect_error(fs->remove(env->fs_self, a), RN_CODE_FAILED_PRECONDITION, a, "Is a directory");
  expect_error(fs->remove_directory(env->fs_self, file), RN_CODE_FAILED_PRECONDITION, file,
               "Not a directory");
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  OK(fs->list(env->fs_self, at(place, "a/b"), &names));
  rn_names_sort(&names);
  cr_assert_eq(names.list.count, 2);
  cr_assert_str_eq(names.list.items[0].data, "c");
  cr_assert_str_eq(names.list.items[1].data, "f");
  rn_names_clear(&names);
  rn_names_init(&names, rn_allocator_system());
  expect_error(fs->list(env->fs_self, file, &names), RN_CODE_FAILED_PRECONDITION, file,
               "Not a directory");
  rn_names_clear(&names);
  rn_file_stat_t stat;
  OK(fs->stat(env->fs_self, a, &stat));
  cr_assert(stat.is_directory);
  // Renaming replaces.
  const char* other = at(place, "other");
  OK(rn_fs_write(env, other, RN_STR("22")));
  OK(fs->rename(env->fs_self, file, other));
  expect_content(place, other, "1");
  cr_assert_not(rn_fs_exists(env, file));
  expect_error(fs->rename(env->fs_self, file, other), RN_CODE_NOT_FOUND, file,
               "No such file or directory");
  OK(fs->sync_directory(env->fs_self, place->root));
  int64_t files, directories;
  const char* none = at(place, "none");
  expect_error(rn_fs_remove_tree(env, none, &files, &directories), RN_CODE_NOT_FOUND, none,
               "No such file or directory");
  cr_assert_eq(directories, 1);
  OK(rn_fs_remove_tree(env, a, &files, &directories));
  cr_assert_not(rn_fs_exists(env, a));
}

static void expect_glob(const place_t* place, const char* pattern, int count,
                        const char* const* wanted) {
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  OK(rn_fs_glob(&place->env, at(place, pattern), &names));
  cr_assert_eq((int)names.list.count, count, "%s: %zu", pattern, names.list.count);
  for (int i = 0; i < count; ++i) cr_assert_str_eq(names.list.items[i].data, at(place, wanted[i]));
  rn_names_clear(&names);
}

static void check_patterns(place_t* place) {
  static const char* const files[] = {"m-1", "m-2", "m-10", "n", "d/m-1", "d/x", "e/m-1", ".h"};
  OK(rn_fs_make_directories(&place->env, at(place, "d")));
  OK(rn_fs_make_directories(&place->env, at(place, "e")));
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
    OK(rn_fs_write(&place->env, at(place, files[i]), RN_STR("")));
  expect_glob(place, "m-?", 2, (const char*[]){"m-1", "m-2"});
  expect_glob(place, "m-*", 3, (const char*[]){"m-1", "m-10", "m-2"});
  expect_glob(place, "*/m-1", 2, (const char*[]){"d/m-1", "e/m-1"});
  expect_glob(place, "[d]/*", 2, (const char*[]){"d/m-1", "d/x"});
  expect_glob(place, "n", 1, (const char*[]){"n"});
  expect_glob(place, "none*", 0, NULL);
  expect_glob(place, "n/*", 0, NULL);
  expect_glob(place, "*h", 1, (const char*[]){".h"});
}

static void check_replace(place_t* place) {
  const char* path = at(place, "r");
  OK(rn_fs_replace(&place->env, path, RN_STR("one")));
  OK(rn_fs_replace(&place->env, path, RN_STR("two")));
  expect_content(place, path, "two");
  rn_strbuf_t name;
  rn_strbuf_init(&name, rn_allocator_system());
  OK(rn_fs_temporary(&place->env, path, &name));
  cr_assert(rn_str_starts_with(rn_strbuf_view(&name), rn_str(path)));
  cr_assert_not(rn_fs_exists(&place->env, name.data));
  rn_strbuf_clear(&name);
  expect_glob(place, "r*", 1, (const char*[]){"r"});  // nothing is left behind
}

static void check(void (*what)(place_t* place)) {
  for (int in_memory = 0; in_memory < 2; ++in_memory) {
    place_t place;
    place_begin(&place, in_memory);
    what(&place);
    place_end(&place);
  }
}
Test(fs, files) { check(check_files); }
Test(fs, directories) { check(check_directories); }
Test(fs, patterns) { check(check_patterns); }
Test(fs, replace) { check(check_replace); }

Test(fs, names_of_directories) {
  cr_assert(rn_str_is(rn_path_directory(RN_STR("a/b/c")), "a/b"));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("/a")), "/"));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("a")), "."));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("a//b")), "a"));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("ram://disk/a/b")), "ram://disk/a"));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("ram://disk/a")), "ram://disk/"));
  cr_assert(rn_str_is(rn_path_directory(RN_STR("ram://disk")), "ram://disk"));
  rn_str_t path = RN_STR("ram://disk/a");
  cr_assert(rn_path_to_parent(&path) && !rn_path_to_parent(&path));
}

Test(fs, schemes) {
  cr_assert(rn_str_is(rn_path_scheme(RN_STR("ram://disk/a")), "ram"));
  cr_assert(rn_str_is(rn_path_scheme(RN_STR("h2.x://")), "h2.x"));
  const char* const plain[] = {"", "ram", "ram:/a", "/ram://a", "2ram://a", "://a", "r_m://a"};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
    cr_assert(!rn_path_scheme(rn_str(plain[i])).size, "%s", plain[i]);
  cr_assert_eq(rn_path_root(RN_STR("ram://disk/a")), 10);
  cr_assert_eq(rn_path_root(RN_STR("ram://")), 6);
  cr_assert_eq(rn_path_root(RN_STR("/a")), 0);
}

static void expect_status(rn_status_t status, rn_code_t code, const char* message) {
  cr_assert_eq(rn_status_code(status), code);
  cr_assert_str_eq(rn_status_message(status), message);
  rn_status_free(status);
}

// A path with a scheme goes to the file system of that scheme, whole.
Test(fs, registered) {
  place_t place;
  place_begin(&place, true);
  const rn_env_t* env = rn_env_system();
  OK(rn_fs_register("ram", place.env.fs, place.env.fs_self));
  expect_status(rn_fs_register("ram", place.env.fs, place.env.fs_self), RN_CODE_ALREADY_EXISTS,
                "File system for ram already registered");
  expect_status(rn_fs_register("file", place.env.fs, place.env.fs_self), RN_CODE_ALREADY_EXISTS,
                "File system for file already registered");
  rn_file_stat_t found;
  expect_status(env->fs->stat(env->fs_self, "rom://a", &found), RN_CODE_UNIMPLEMENTED,
                "File system scheme 'rom' not implemented (file: 'rom://a')");
  expect_status(env->fs->rename(env->fs_self, "ram://a", "/tmp/a"), RN_CODE_UNIMPLEMENTED,
                "Renaming ram://a to /tmp/a not implemented");
  rn_status_t status = env->fs->stat(env->fs_self, "ram://disk/none", &found);
  cr_assert_eq(rn_status_code(status), RN_CODE_NOT_FOUND);
  cr_assert(strstr(rn_status_message(status), "ram://disk/none"));
  rn_status_free(status);
  OK(env->fs->stat(env->fs_self, "file:///tmp", &found));
  cr_assert(found.is_directory);
  place_end(&place);
}

// The system takes less than it is given, then nothing.
Test(fs, short_writes) {
  place_t place;
  place_begin(&place, false);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit = {5, RLIM_INFINITY};
  cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const char* path = at(&place, "f");
  expect_error(rn_fs_write(&place.env, path, RN_STR("123456789")), RN_CODE_OUT_OF_RANGE, path,
               "File too large");
  expect_content(&place, path, "12345");
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  place_end(&place);
}

// A link in a tree is removed; what it leads to is not.
Test(fs, links_stay_outside) {
  place_t place;
  place_begin(&place, false);
  OK(rn_fs_make_directories(&place.env, at(&place, "kept")));
  OK(rn_fs_make_directories(&place.env, at(&place, "gone")));
  OK(rn_fs_write(&place.env, at(&place, "kept/f"), RN_STR("1")));
  cr_assert_eq(symlink(at(&place, "kept"), at(&place, "gone/link")), 0);
  cr_assert_eq(symlink("nowhere", at(&place, "gone/broken")), 0);
  int64_t files, directories;
  OK(rn_fs_remove_tree(&place.env, at(&place, "gone"), &files, &directories));
  cr_assert_not(rn_fs_exists(&place.env, at(&place, "gone")));
  expect_content(&place, at(&place, "kept/f"), "1");
  place_end(&place);
}

// Whatever call fails, whatever the crash loses: the old content or the new one, whole.
Test(fs, replace_survives_every_fault) {
  for (int torn = 0; torn < 3; ++torn) {
    for (int64_t n = 1;; ++n) {
      place_t place;
      place_begin(&place, true);
      const char* path = at(&place, "f");
      OK(rn_fs_replace(&place.env, path, RN_STR("old content")));
      OK(place.env.fs->sync_directory(place.env.fs_self, "/"));
      rn_memory_fs_fail(place.memory, n, INT64_MAX, EIO);
      rn_status_t status = rn_fs_replace(&place.env, path, RN_STR("new"));
      bool is_done = rn_ok(status);
      if (!is_done) cr_assert_eq(rn_status_code(status), RN_CODE_UNKNOWN);
      rn_status_free(status);
      rn_memory_fs_crash(place.memory, torn);
      rn_strbuf_t out;
      rn_strbuf_init(&out, rn_allocator_system());
      OK(rn_fs_read(&place.env, path, SIZE_MAX, &out));
      bool is_old = strcmp(out.data, "old content") == 0, is_new = strcmp(out.data, "new") == 0;
      cr_assert(is_done ? is_new : is_old, "call %lld: '%s'", (long long)n, out.data);
      rn_strbuf_clear(&out);
      rn_memory_fs_destroy(place.memory);
      if (is_done) break;
      cr_assert_lt(n, 50);
    }
  }
}

Test(fs, full_disk) {
  place_t place;
  place_begin(&place, true);
  const char* path = at(&place, "f");
  rn_memory_fs_limit(place.memory, 4);
  expect_error(rn_fs_write(&place.env, path, RN_STR("123456")), RN_CODE_RESOURCE_EXHAUSTED, path,
               "No space left on device");
  expect_content(&place, path, "1234");
  rn_status_t status = rn_fs_replace(&place.env, path, RN_STR("abcdef"));
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  expect_content(&place, path, "1234");
  expect_glob(&place, "*", 1, (const char*[]){"f"});
  rn_memory_fs_limit(place.memory, INT64_MAX);
  place_end(&place);
}

// What a crash does: bytes without a sync go, but for a torn part; names without one go whole.
Test(fs, crash) {
  place_t place;
  place_begin(&place, true);
  const rn_env_t* env = &place.env;
  OK(env->fs->sync_directory(env->fs_self, "/"));
  const char *kept = at(&place, "kept"), *lost = at(&place, "lost");
  rn_file_t* file = NULL;
  OK(rn_fs_open(env, kept, RN_OPEN_WRITE, &file));
  OK(file->vtable->append(file, RN_STR("12")));
  OK(file->vtable->sync(file));
  OK(env->fs->sync_directory(env->fs_self, place.root));
  OK(file->vtable->append(file, RN_STR("345")));
  OK(rn_fs_write(env, lost, RN_STR("x")));
  rn_memory_fs_crash(place.memory, 1);
  expect_content(&place, kept, "123");
  cr_assert_not(rn_fs_exists(env, lost));
  expect_error(file->vtable->append(file, RN_STR("6")), RN_CODE_UNKNOWN, kept,
               "Input/output error");
  OK(file->vtable->close(file));
  expect_content(&place, kept, "123");
  place_end(&place);
}

Test(fs, walks_to_the_top_and_ends, .timeout = 10) {
  static const struct {
    const char *path, *ways;
  } rows[] = {{"/a/b/c", "/a/b /a / "}, {"a/b", "a "}, {"a", ""}, {"/", ""}, {"//", "/ "}, {"", ""},
              {"/a/", "/a / "}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char ways[64] = "";
    rn_str_t path = rn_str(rows[i].path);
    for (int steps = 0; steps < 9 && rn_path_to_parent(&path); ++steps) {
      size_t used = strlen(ways);
      snprintf(ways + used, sizeof ways - used, "%.*s ", RN_STR_ARGS(path));
    }
    cr_expect_str_eq(ways, rows[i].ways, "%s", rows[i].path);
  }
}

static uint64_t same_number(void* self) {
  (void)self;
  return 7;
}

// A name that is always taken is an error, not a loop.
Test(fs, finds_no_temporary_name_where_all_are_taken, .timeout = 10) {
  place_t place;
  place_begin(&place, true);
  place.env.random = same_number;
  rn_strbuf_t name;
  rn_strbuf_init(&name, rn_allocator_system());
  OK(rn_fs_temporary(&place.env, at(&place, "f"), &name));
  OK(rn_fs_write(&place.env, name.data, RN_STR("taken")));
  rn_strbuf_clear(&name);
  rn_status_t status = rn_fs_temporary(&place.env, at(&place, "f"), &name);
  cr_expect_eq(rn_status_code(status), RN_CODE_ALREADY_EXISTS);
  rn_status_free(status);
  rn_strbuf_clear(&name);
  place_end(&place);
}
