// The system environment: clocks, files and the silent log.
#include "base/fs.h"
#include "base/log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/status.h"

Test(env, clocks_and_bits) {
  const rn_env_t* env = rn_env_system();
  int64_t a = env->now_ns(env->self), b = env->now_ns(env->self);
  cr_assert_geq(b, a);
  cr_assert_gt(env->wall_us(env->self), INT64_C(1700000000) * 1000000);
  cr_assert_neq(env->random(env->self), env->random(env->self));
  cr_assert_null(env->pool);
  void* p = NULL;
  OK(rn_alloc(env->allocator, 10, &p));
  rn_free(env->allocator, p, 10);
}

Test(env, files) {
  const rn_env_t* env = rn_env_system();
  char dir[] = "/tmp/rn_env_test_XXXXXX";
  cr_assert_not_null(mkdtemp(dir));
  char path[100];
  snprintf(path, sizeof path, "%s/file", dir);
  static char data[100000];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 31);
  OK(rn_fs_write(env, path, rn_str_n(data, sizeof data)));
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_strbuf_append(&out, RN_STR("x"));
  OK(rn_fs_read(env, path, sizeof data, &out));
  cr_assert_eq(out.size, sizeof data + 1);
  cr_assert_eq(memcmp(out.data + 1, data, sizeof data), 0);
  rn_strbuf_clear(&out);
  rn_status_t status = rn_fs_read(env, path, sizeof data - 1, &out);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_strbuf_clear(&out);

  OK(rn_fs_write(env, path, RN_STR("ab")));
  OK(rn_fs_read(env, path, SIZE_MAX, &out));
  cr_assert_str_eq(out.data, "ab");
  rn_strbuf_clear(&out);
  OK(rn_fs_write(env, path, (rn_str_t){0}));
  OK(rn_fs_read(env, path, 0, &out));
  cr_assert_eq(out.size, 0);

  FAILS_SAYING(rn_fs_read(env, "/nonexistent/x", 10, &out), NOT_FOUND,
               "/nonexistent/x; No such file or directory");
  FAILS_SAYING(rn_fs_write(env, "/nonexistent/x", RN_STR("a")), NOT_FOUND,
               "/nonexistent/x; No such file or directory");
  char message[200];
  snprintf(message, sizeof message, "%s; Is a directory", dir);
  FAILS_SAYING(rn_fs_read(env, dir, 10, &out), FAILED_PRECONDITION, message);
  FAILS_SAYING(rn_fs_write(env, "/dev/full", RN_STR("a")), RESOURCE_EXHAUSTED,
               "/dev/full; No space left on device");
  rn_strbuf_clear(&out);
  OK(rn_fs_read(env, "/proc/self/stat", 10000, &out));
  cr_assert_gt(out.size, 0);
  rn_strbuf_clear(&out);
  unlink(path);
  rmdir(dir);
}

static void keep_message(void* self, rn_log_level_t level, const char* message) {
  snprintf(self, 100, "%d %s", (int)level, message);
}

Test(env, log_goes_where_the_environment_says) {
  char line[100] = "";
  rn_env_t env = *rn_env_system();
  rn_log(&env, RN_LOG_ERROR, "%s", "silence");
  env.self = line;
  env.log = keep_message;
  rn_log(&env, RN_LOG_WARNING, "%d apples", 3);
  cr_assert_str_eq(line, "1 3 apples");
}

Test(env, a_message_is_one_line_whatever_is_in_it) {
  static const struct {
    const char *text, *line;
  } cases[] = {
      {"plain, 'quoted' \\n", "plain, 'quoted' \\n"},
      {"a\nb\r\tc", "a\\nb\\r\\tc"},
      {"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"},
      {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xc2\x85 \xc2\x9b", "\\xc2\\x85 \\xc2\\x9b"},  // controls of Unicode
      {"\xff\xc3 \xe2\x82", "\\xff\\xc3 \\xe2\\x82"},  // no UTF-8
      {"\xe2\x80\xa8\xe2\x80\xae", "\\xe2\\x80\\xa8\\xe2\\x80\\xae"},
  };
  char line[100] = "", again[100];
  rn_env_t env = *rn_env_system();
  env.self = line;
  env.log = keep_message;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rn_log(&env, RN_LOG_INFO, "%s", cases[i].text);
    cr_assert_str_eq(line + 2, cases[i].line, "%zu: %s", i, line);
    rn_log_escape(cases[i].line, again, sizeof again);
    cr_assert_str_eq(again, cases[i].line);
  }
  for (size_t room = 4; room < 30; ++room) {
    rn_log_escape("0123456\n\x01\n89", again, room);
    cr_assert(strlen(again) < room);
    cr_assert(room >= 18 || strstr(again, "..."), "%zu: %s", room, again);
  }
}
