// Savers that were killed: the next save removes their leftovers and keeps the files of running
// savers.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/status.h"
#include "io/bundle.h"

static char folder[64];

static const char* at(const char* name) {
  static char paths[4][128];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

// The temporary files in the folder; all get as old as |age| says, unless that is negative.
static int count_temporaries(int64_t age) {
  rn_names_t names;
  rn_names_init(&names, rn_allocator_system());
  const rn_env_t* env = rn_env_system();
  OK(env->fs->list(env->fs_self, folder, &names));
  int count = 0;
  for (size_t i = 0; i < names.list.count; ++i) {
    if (!strstr(names.list.items[i].data, ".tempstate")) continue;
    ++count;
    struct timespec times[2] = {{.tv_sec = env->wall_us(env->self) / 1000000 - age},
                                {.tv_sec = env->wall_us(env->self) / 1000000 - age}};
    if (age >= 0) cr_assert_eq(utimensat(AT_FDCWD, at(names.list.items[i].data), times, 0), 0);
  }
  rn_names_clear(&names);
  return count;
}

static rn_status_t begin(const char* prefix, rn_bundle_writer_t** out) {
  static float numbers[1 << 16];
  const int64_t size = sizeof numbers / sizeof *numbers;
  RN_RETURN_IF_ERROR(rn_bundle_writer_create(rn_env_system(), prefix, NULL, out));
  rn_tensor_t tensor = {0};
  rn_status_t status =
      rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){1, &size}, &tensor);
  if (rn_ok(status)) memcpy(tensor.data, numbers, sizeof numbers);
  if (rn_ok(status)) status = rn_bundle_writer_add(*out, RN_STR("v"), &tensor);
  rn_tensor_clear(&tensor);
  return status;
}

static rn_status_t save(const char* prefix) {
  rn_bundle_writer_t* writer = NULL;
  rn_status_t status = begin(prefix, &writer);
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  return status;
}

static void open_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/rn_sweep_test_XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
}

static void close_folder(void) {
  int64_t files, folders;
  OK(rn_fs_remove_tree(rn_env_system(), folder, &files, &folders));
}

// A process that has begun to save to |prefix| and waits; it goes on when |*out_go| is closed, and
// ends with 0 if the save is good.
static pid_t start_saver(const char* prefix, int* out_go) {
  int ready[2], go[2];
  char byte = 0;
  cr_assert_eq(pipe(ready) | pipe(go), 0);
  pid_t child = fork();
  if (child == 0) {
    rn_bundle_writer_t* writer = NULL;
    close(go[1]);
    rn_status_t status = begin(prefix, &writer);
    if (!rn_ok(status) || write(ready[1], "r", 1) != 1) _exit(1);
    while (read(go[0], &byte, 1) > 0) continue;
    status = rn_bundle_writer_finish(writer, NULL);
    _exit(rn_ok(status) ? 0 : 1);
  }
  close(ready[1]);
  close(go[0]);
  cr_assert_eq(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  *out_go = go[1];
  return child;
}

Test(sweep, what_the_dead_left_goes_with_the_next_save, .timeout = 60) {
  open_folder();
  int go, how;
  pid_t child = start_saver(at("m-1"), &go);
  kill(child, SIGKILL);
  cr_assert_eq(waitpid(child, &how, 0), child);
  close(go);
  cr_assert_eq(count_temporaries(-1), 1);
  OK(save(at("m-1")));  // it may have been made this moment
  cr_assert_eq(count_temporaries(60), 1);
  OK(save(at("m-10")));  // another checkpoint
  OK(save(at("m")));
  cr_assert_eq(count_temporaries(60), 1);
  OK(save(at("m-1")));
  cr_assert_eq(count_temporaries(-1), 0);
  close_folder();
}

Test(sweep, what_the_living_write_stays, .timeout = 60) {
  open_folder();
  int go, how;
  pid_t child = start_saver(at("m-1"), &go);
  cr_assert_eq(count_temporaries(7200), 1);
  OK(save(at("m-1")));
  OK(save(at("other")));
  cr_assert_eq(count_temporaries(-1), 1);
  close(go);
  cr_assert_eq(waitpid(child, &how, 0), child);
  cr_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  cr_assert_eq(count_temporaries(-1), 0);
  close_folder();
}

Test(sweep, what_is_an_hour_old_goes_with_any_save, .timeout = 60) {
  open_folder();
  int go, how;
  pid_t child = start_saver(at("m-1"), &go);
  kill(child, SIGKILL);
  cr_assert_eq(waitpid(child, &how, 0), child);
  close(go);
  cr_assert_eq(count_temporaries(3700), 1);
  OK(rn_fs_write(rn_env_system(), at("notes.tempstate"), RN_STR("no number behind it")));
  OK(save(at("n-1")));
  cr_assert_eq(count_temporaries(-1), 1);
  cr_assert(rn_fs_exists(rn_env_system(), at("notes.tempstate")));
  close_folder();
}

// Killed at any moment of a save, again and again: nothing piles up, and the checkpoint is good.
Test(sweep, nothing_piles_up, .timeout = 100) {
  open_folder();
  OK(save(at("m-1")));
  int left = 0;
  for (int i = 0; i < 40; ++i) {
    int how;
    pid_t child = fork();
    if (child == 0) {
      for (;;) rn_status_free(save(at("m-1")));
    }
    usleep((useconds_t)(1000 + 731 * i % 9000));
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, &how, 0), child);
    left += count_temporaries(10);
    OK(save(at("m-1")));
    cr_assert_eq(count_temporaries(-1), 0, "after %d kills", i + 1);
    rn_bundle_reader_t* reader = NULL;
    OK(rn_bundle_reader_open(rn_env_system(), at("m-1"), &reader));
    rn_bundle_reader_close(reader);
  }
  cr_expect_gt(left, 0, "no kill met a save");
  close_folder();
}
