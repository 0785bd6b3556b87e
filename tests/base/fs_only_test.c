// A file system restricted to some folders: files inside can be reached under any name, and no
// files outside.
#include "base/fs_only.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/memory_fs.h"
#include "../support/status.h"
#include "base/net.h"

static char root[64];
static rn_env_t env;
static rn_fs_only_t* only;

static const char* in(const char* name) {
  static char paths[4][256];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", root, name);
  return path;
}

static void set_up(void) {
  strcpy(root, "/tmp/runnel_only_XXXXXX");
  cr_assert(mkdtemp(root));
  const rn_env_t* system = rn_env_system();
  OK(rn_fs_make_directories(system, in("mine/deep")));
  OK(rn_fs_make_directories(system, in("other")));
  OK(rn_fs_make_directories(system, in("minemore")));
  OK(rn_fs_write(system, in("mine/file"), RN_STR("x")));
  OK(rn_fs_write(system, in("other/file"), RN_STR("y")));
  OK(rn_fs_write(system, in("minemore/file"), RN_STR("z")));
  env = *system;
}

static void tear_down(void) {
  int64_t files, folders;
  rn_fs_only_destroy(only);
  OK(rn_fs_remove_tree(rn_env_system(), root, &files, &folders));
}

TestSuite(fs_only, .init = set_up, .fini = tear_down);

static void limit(const char* folder, const char* allow) {
  OK(rn_fs_only_create(rn_env_system(), rn_str(folder), rn_str(allow), rn_allocator_system(),
                       &only));
  rn_fs_only_apply(only, &env);
}

static rn_code_t can_read(const char* path) {
  rn_strbuf_t content;
  rn_strbuf_init(&content, rn_allocator_system());
  rn_status_t status = rn_fs_read(&env, path, 100, &content);
  rn_code_t code = rn_status_code(status);
  rn_status_free(status);
  rn_strbuf_clear(&content);
  return code;
}

static rn_code_t can_write(const char* path) {
  rn_status_t status = rn_fs_write(&env, path, RN_STR("new"));
  rn_code_t code = rn_status_code(status);
  rn_status_free(status);
  return code;
}

Test(fs_only, a_folder_to_read) {
  limit(in("mine"), "");
  cr_assert_eq(can_read(in("mine/file")), RN_CODE_OK);
  cr_assert_eq(can_read(in("mine//./deep/../file")), RN_CODE_OK);
  cr_assert_eq(can_read(in("other/../mine/file")), RN_CODE_OK);
  cr_assert_eq(can_read(in("mine/none")), RN_CODE_NOT_FOUND);
  cr_assert_eq(can_read(in("other/file")), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_read(in("mine/../other/file")), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_read(in("minemore/file")), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_read("/"), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_write(in("mine/file")), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_write(in("mine/new")), RN_CODE_PERMISSION_DENIED);
  cr_assert(!rn_fs_exists(&env, in("other/file")));
  rn_status_t status = env.fs->rename(env.fs_self, in("mine/file"), in("other/stolen"));
  cr_assert_eq(rn_status_code(status), RN_CODE_PERMISSION_DENIED);
  rn_status_free(status);
}

// The folder "ram:" in an allowed one is not the file system "ram://".
Test(fs_only, schemes) {
  limit(in("mine"), "");
  cr_assert_eq(chdir(in("mine")), 0);
  OK(rn_fs_make_directories(rn_env_system(), in("mine/ram:")));
  cr_assert_eq(can_read("file"), RN_CODE_OK);
  cr_assert_eq(can_read("ram://file"), RN_CODE_PERMISSION_DENIED);
  char path[256];
  snprintf(path, sizeof path, "file://%s", in("mine/file"));
  cr_assert_eq(can_read(path), RN_CODE_OK);
  snprintf(path, sizeof path, "file://%s", in("other/file"));
  cr_assert_eq(can_read(path), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(chdir("/"), 0);
}

Test(fs_only, links_are_followed_first) {
  cr_assert_eq(symlink(in("other"), in("mine/way")), 0);
  cr_assert_eq(symlink(in("other/file"), in("mine/direct")), 0);
  cr_assert_eq(symlink(in("other/new"), in("mine/dangling")), 0);
  cr_assert_eq(symlink(in("mine/deep"), in("other/back")), 0);
  cr_assert_eq(symlink(in("mine/loop"), in("mine/loop")), 0);
  limit("", "");
  rn_fs_only_destroy(only);
  env = *rn_env_system();
  char allow[128];
  snprintf(allow, sizeof allow, "write:%s", in("mine"));
  limit("", allow);
  cr_assert_eq(can_read(in("mine/way/file")), RN_CODE_PERMISSION_DENIED);
  cr_assert_eq(can_read(in("mine/direct")), RN_CODE_PERMISSION_DENIED);
  cr_assert_neq(can_write(in("mine/dangling")), RN_CODE_OK);
  cr_assert_neq(can_write(in("mine/loop")), RN_CODE_OK);
  cr_assert(!rn_fs_exists(rn_env_system(), in("other/new")));
  cr_assert_eq(can_write(in("other/back/file")), RN_CODE_OK);  // it is in the folder, after all
  cr_assert_eq(can_write(in("mine/new")), RN_CODE_OK);
  cr_assert_eq(can_write(in("mine/no/such/../../../other/x")), RN_CODE_NOT_FOUND);
}

Test(fs_only, words) {
  rn_fs_only_t* none = NULL;
  static const char* const wrong[] = {"everything", "read", "read:", "write:;all", "Read:/"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    rn_status_t status = rn_fs_only_create(rn_env_system(), RN_STR(""), rn_str(wrong[i]),
                                           rn_allocator_system(), &none);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", wrong[i]);
    cr_assert_null(none);
    rn_status_free(status);
  }
  limit("", " all ; network;;");
  cr_assert_eq(can_read(in("other/file")), RN_CODE_OK);
}

Test(fs_only, the_network) {
  limit("", "read:/");
  cr_assert_eq(can_read(in("other/file")), RN_CODE_OK);
  rn_socket_t* socket = NULL;
  rn_status_t status = env.net->listen(env.net_self, "127.0.0.1:0", rn_allocator_system(), &socket);
  cr_assert_eq(rn_status_code(status), RN_CODE_PERMISSION_DENIED);
  rn_status_free(status);
  rn_fs_only_destroy(only);
  env = *rn_env_system();
  limit("", "network");
  OK(env.net->listen(env.net_self, "127.0.0.1:0", rn_allocator_system(), &socket));
  socket->vtable->close(socket);
}
