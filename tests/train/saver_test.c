// Savers: restored values, which checkpoints are kept, damaged files, and killed processes.
#include "runnel/saver.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

static char folder[64];

static void make_folder(void) {
  strcpy(folder, "/tmp/saver_test_XXXXXX");
  cr_assert(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(saver, .init = make_folder, .fini = remove_folder, .timeout = 120);

static const char* in_folder(const char* name) {
  static char paths[4][128];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static bool is_there(const char* name) { return access(in_folder(name), F_OK) == 0; }

static void good(const trial_t* t) {
  cr_assert_eq(TF_GetCode(t->status), TF_OK, "%s", TF_Message(t->status));
}

static void bad(const trial_t* t, TF_Code code, const char* words) {
  cr_assert_eq(TF_GetCode(t->status), code, "%s", TF_Message(t->status));
  cr_assert(strstr(TF_Message(t->status), words), "%s", TF_Message(t->status));
  TF_SetStatus(t->status, TF_OK, "");
}

// A model of two variables, and a node that adds one to all of both.
typedef struct model_t {
  trial_t t;
  const rn_var_t *w, *b;
  rn_node_t* grow;
} model_t;

static const int64_t matrix[] = {2, 3}, row[] = {3};

static rn_node_t* add_one(rn_scope_t* s, const rn_var_t* variable) {
  return rn_var_add(s, variable, rn_OnesLike(s, variable->value));
}

static model_t open_model(rn_variable_kind_t kind) {
  model_t m = {.t = trial_open()};
  rn_scope_t* s = m.t.s;
  m.w = rn_get_variable(s, "w", matrix, 2, .initializer = rn_init_constant(1), .kind = kind);
  m.b = rn_get_variable(s, "b", row, 1, .initializer = rn_init_constant(5), .kind = kind);
  rn_node_t* both[2] = {add_one(s, m.w), add_one(s, m.b)};
  m.grow = rn_group(s, both, 2);
  return m;
}

static void start(model_t* m) {
  trial_built(&m->t);
  trial_init(&m->t);
}

static void close_model(model_t* m) { trial_close(&m->t); }

static void expect(model_t* m, double w, double b) {
  double values[6];
  cr_assert_eq(trial_fetch(&m->t, m->w->value, NULL, NULL, 0, values, 6), 6);
  for (int i = 0; i < 6; ++i) cr_assert_eq(values[i], w, "w is %g, not %g", values[i], w);
  cr_assert_eq(trial_fetch(&m->t, m->b->value, NULL, NULL, 0, values, 6), 3);
  for (int i = 0; i < 3; ++i) cr_assert_eq(values[i], b, "b is %g, not %g", values[i], b);
}

static void grow(model_t* m) { trial_run(&m->t, m->grow, NULL, NULL, 0); }

static void comes_back(rn_variable_kind_t kind, rn_saver_options_t options) {
  model_t m = open_model(kind);
  rn_saver_t* saver = rn_saver_(m.t.s, options);
  start(&m);
  const char* path = rn_saver_save(saver, m.t.session, in_folder("sub/model"), 7, m.t.status);
  good(&m.t);
  cr_assert_str_eq(path, in_folder("sub/model-7"));
  char kept[128];
  snprintf(kept, sizeof kept, "%s", path);
  grow(&m);
  grow(&m);
  expect(&m, 3, 7);
  cr_assert(rn_saver_restore(saver, m.t.session, kept, m.t.status), "%s", TF_Message(m.t.status));
  expect(&m, 1, 5);
  rn_saver_destroy(saver);
  close_model(&m);
}

Test(saver, resources_come_back) {
  comes_back(RN_VARIABLE_RESOURCE, (rn_saver_options_t){0});
  cr_assert(is_there("sub/model-7.index"));
  cr_assert(is_there("sub/model-7.data-00000-of-00001"));
}
Test(saver, references_come_back) { comes_back(RN_VARIABLE_REFERENCE, (rn_saver_options_t){0}); }
Test(saver, shards_come_back) {
  comes_back(RN_VARIABLE_RESOURCE, (rn_saver_options_t){.is_sharded = true});
  cr_assert(is_there("sub/model-7.index"));
}
Test(saver, the_first_format_comes_back) {
  comes_back(RN_VARIABLE_REFERENCE, (rn_saver_options_t){.is_first_format = true});
  cr_assert(is_there("sub/model-7"));
}

Test(saver, has_the_names_of_a_saver_def) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s);
  trial_built(&m.t);
  rn_saver_names_t names = rn_saver_names(saver);
  cr_assert_str_eq(names.filename, "save/Const:0");
  cr_assert_str_eq(names.save, "save/control_dependency:0");
  cr_assert_str_eq(names.restore, "save/restore_all");
  rn_saver_destroy(saver);
  close_model(&m);
}

Test(saver, keeps_the_newest) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 2);
  start(&m);
  for (int step = 1; step <= 4; ++step) {
    cr_assert(rn_saver_save(saver, m.t.session, in_folder("m"), step, m.t.status));
    cr_assert_eq(is_there("m-1.index"), step < 3);
  }
  cr_assert_not(is_there("m-2.data-00000-of-00001"));
  cr_assert(is_there("m-3.index") && is_there("m-4.index"));
  char text[512] = "";
  FILE* file = fopen(in_folder("checkpoint"), "r");
  cr_assert(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  cr_assert(strstr(text,
                   "model_checkpoint_path: \"m-4\"\n"
                   "all_model_checkpoint_paths: \"m-3\"\n"
                   "all_model_checkpoint_paths: \"m-4\"\n"
                   "all_model_checkpoint_timestamps: ") == text,
            "%s", text);
  rn_saver_destroy(saver);
  // A later process goes on with them.
  model_t later = open_model(RN_VARIABLE_DEFAULT);
  saver = rn_saver(later.t.s, .max_to_keep = 2);
  start(&later);
  cr_assert(rn_saver_recover(saver, folder, later.t.status));
  cr_assert(rn_saver_save(saver, later.t.session, in_folder("m"), 5, later.t.status));
  cr_assert(!is_there("m-3.index") && is_there("m-4.index") && is_there("m-5.index"));
  rn_saver_destroy(saver);
  close_model(&later);
  close_model(&m);
}

Test(saver, keeps_one_in_so_many_hours) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 1, .keep_every_hours = 1e-9);
  start(&m);
  for (int step = 1; step <= 3; ++step)
    cr_assert(rn_saver_save(saver, m.t.session, in_folder("m"), step, m.t.status));
  cr_assert(is_there("m-1.index") && is_there("m-2.index") && is_there("m-3.index"));
  rn_saver_destroy(saver);
  close_model(&m);
}

Test(saver, keeps_the_best) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 2, .best = RN_BEST_LOWEST);
  start(&m);
  const double losses[] = {3, 1, NAN, 4, 2, 0.5};
  const bool saved[] = {true, true, false, false, true, true};
  for (int step = 0; step < 6; ++step) {
    const char* path =
        rn_saver_save_best(saver, m.t.session, in_folder("m"), step, losses[step], m.t.status);
    good(&m.t);
    cr_assert_eq(path != NULL, saved[step], "step %d", step);
  }
  cr_assert(!is_there("m-0.index") && is_there("m-1.index") && !is_there("m-4.index"));
  char* best = rn_latest_checkpoint(folder, NULL, NULL, m.t.status);
  cr_assert_str_eq(best, in_folder("m-5"));
  free(best);
  rn_saver_destroy(saver);
  saver = rn_saver(m.t.s, .max_to_keep = 2, .best = RN_BEST_LOWEST);
  cr_assert(rn_saver_recover(saver, folder, m.t.status));
  cr_assert_null(rn_saver_save_best(saver, m.t.session, in_folder("m"), 9, 1.5, m.t.status));
  good(&m.t);
  cr_assert_null(rn_saver_save(saver, m.t.session, in_folder("m"), 9, m.t.status));
  bad(&m.t, TF_FAILED_PRECONDITION, "save with a metric");
  rn_saver_destroy(saver);
  saver = rn_saver(m.t.s);
  cr_assert_null(rn_saver_save_best(saver, m.t.session, in_folder("m"), 9, 1.5, m.t.status));
  bad(&m.t, TF_FAILED_PRECONDITION, "save without a metric");
  rn_saver_destroy(saver);
  close_model(&m);
}

Test(saver, restores_by_other_names_and_in_part) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s);
  start(&m);
  const char* path = in_folder("m");
  cr_assert(rn_saver_save(saver, m.t.session, path, -1, m.t.status));
  model_t n = open_model(RN_VARIABLE_DEFAULT);
  const rn_var_t* more =
      rn_get_variable(n.t.s, "more", row, 1, .initializer = rn_init_constant(-1));
  const rn_var_t* others[2] = {n.b, more};
  rn_saver_t* mapped = rn_saver(n.t.s, .variables = &more, .variable_count = 1,
                                .names = (const char*[]){"b"}, .name = "mapped");
  rn_saver_t* some = rn_saver(n.t.s, .variables = others, .variable_count = 2, .name = "some");
  const rn_var_t* wrong = n.w;
  rn_saver_t* refused = rn_saver(n.t.s, .variables = &wrong, .variable_count = 1,
                                 .names = (const char*[]){"b"}, .name = "refused");
  start(&n);
  grow(&n);
  cr_assert(rn_saver_restore(mapped, n.t.session, path, n.t.status));
  cr_assert_eq(trial_scalar(&n.t, rn_Max(n.t.s, more->value, rn_const_int32(n.t.s, 0))), 5);
  expect(&n, 2, 6);
  cr_assert_not(rn_saver_restore(some, n.t.session, path, n.t.status));
  bad(&n.t, TF_NOT_FOUND, "Key more not found in checkpoint");
  cr_assert_eq(rn_saver_restore_some(some, n.t.session, path, n.t.status), 1);
  expect(&n, 2, 5);
  cr_assert_not(rn_saver_restore(refused, n.t.session, path, n.t.status));
  char words[256];
  snprintf(words, sizeof words,
           "The variable w (float [2,3]) cannot be restored from %s, where b is float [3]", path);
  bad(&n.t, TF_INVALID_ARGUMENT, words);
  rn_saver_destroy(mapped);
  rn_saver_destroy(some);
  rn_saver_destroy(refused);
  rn_saver_destroy(saver);
  close_model(&n);
  close_model(&m);
}

// Rows 0 … 5 of a table, in |count| variables; saved in one partition, restored in another.
static rn_saver_t* open_parts(trial_t* t, const int* rows, int count, const rn_var_t** parts) {
  static char specs[4][32];
  const char* slices[4];
  const char* names[4];
  for (int i = 0, first = 0; i < count; first += rows[i++]) {
    float values[12];
    for (int k = 0; k < rows[i] * 2; ++k) values[k] = (float)(first * 2 + k);
    char name[16];
    snprintf(name, sizeof name, "part_%d", i);
    int64_t dims[2] = {rows[i], 2};
    parts[i] = rn_get_variable(t->s, name, dims, 2, .initializer = rn_init_values(values));
    snprintf(specs[i], sizeof specs[i], "6 2 %d,%d:-", first, rows[i]);
    slices[i] = specs[i];
    names[i] = "table";
  }
  return rn_saver(t->s, .variables = parts, .variable_count = count, .names = names,
                  .slices = slices);
}

Test(saver, parts_are_cut_anew) {
  trial_t t = trial_open(), u = trial_open();
  const rn_var_t *a[2], *b[3];
  rn_saver_t* two = open_parts(&t, (const int[]){2, 4}, 2, a);
  rn_saver_t* three = open_parts(&u, (const int[]){1, 2, 3}, 3, b);
  trial_built(&t);
  trial_built(&u);
  trial_init(&t);
  cr_assert(rn_saver_save(two, t.session, in_folder("m"), -1, t.status), "%s",
            TF_Message(t.status));
  trial_init(&u);
  rn_node_t* zero[3];
  for (int i = 0; i < 3; ++i) zero[i] = rn_var_assign(u.s, b[i], rn_ZerosLike(u.s, b[i]->value));
  trial_run(&u, rn_group(u.s, zero, 3), NULL, NULL, 0);
  cr_assert(rn_saver_restore(three, u.session, in_folder("m"), u.status), "%s",
            TF_Message(u.status));
  double values[6];
  int at = 0;
  for (int i = 0; i < 3; ++i) {
    int count = trial_fetch(&u, b[i]->value, NULL, NULL, 0, values, 6);
    cr_assert_eq(count, (i + 1) * 2);
    for (int k = 0; k < count; ++k) cr_assert_eq(values[k], at++);
  }
  rn_saver_destroy(two);
  rn_saver_destroy(three);
  trial_close(&t);
  trial_close(&u);
}

static void writes_behind(rn_variable_kind_t kind) {
  model_t m = open_model(kind);
  rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 3);
  start(&m);
  for (int step = 0; step < 6; ++step) {
    cr_assert(rn_saver_save_async(saver, m.t.session, in_folder("a"), step, m.t.status), "%s",
              TF_Message(m.t.status));
    grow(&m);  // not in the checkpoint
  }
  cr_assert(rn_saver_wait(saver, m.t.status), "%s", TF_Message(m.t.status));
  cr_assert_not(is_there("a-2.index"));
  for (int step = 3; step < 6; ++step) {
    char name[16];
    snprintf(name, sizeof name, "a-%d", step);
    cr_assert(rn_saver_restore(saver, m.t.session, in_folder(name), m.t.status));
    expect(&m, 1 + step, 5 + step);
  }
  // Where it cannot be written, the next call says so.
  cr_assert(rn_saver_save_async(saver, m.t.session, "/proc/none/a", 0, m.t.status));
  cr_assert_not(rn_saver_wait(saver, m.t.status));
  cr_assert(strstr(TF_Message(m.t.status), "/proc/none/a"), "%s", TF_Message(m.t.status));
  rn_saver_destroy(saver);
  close_model(&m);
}
Test(saver, writes_resources_behind) { writes_behind(RN_VARIABLE_RESOURCE); }
Test(saver, writes_references_behind) { writes_behind(RN_VARIABLE_REFERENCE); }

// Four checkpoints written behind; the last two stay and can be restored.
static void writes_all_behind(model_t* m, rn_saver_t* saver, const char* index) {
  start(m);
  for (int step = 0; step < 4; ++step) {
    cr_assert(rn_saver_save_async(saver, m->t.session, in_folder("b"), step, m->t.status), "%s",
              TF_Message(m->t.status));
    grow(m);
  }
  cr_assert(rn_saver_wait(saver, m->t.status), "%s", TF_Message(m->t.status));
  for (int step = 0; step < 4; ++step) {
    char name[16], file[32];
    snprintf(name, sizeof name, "b-%d", step);
    snprintf(file, sizeof file, "%s%s", name, index);
    cr_expect_eq(is_there(file), step >= 2, "%s", file);
    if (step < 2) continue;
    cr_assert(rn_saver_restore(saver, m->t.session, in_folder(name), m->t.status), "%s",
              TF_Message(m->t.status));
    expect(m, 1 + step, 5 + step);
  }
  rn_saver_destroy(saver);
  close_model(m);
}

Test(saver, writes_shards_behind) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  writes_all_behind(&m, rn_saver(m.t.s, .max_to_keep = 2, .is_sharded = true), ".index");
}

Test(saver, writes_the_first_format_behind) {
  model_t m = open_model(RN_VARIABLE_REFERENCE);
  writes_all_behind(&m, rn_saver(m.t.s, .max_to_keep = 2, .is_first_format = true), "");
}

Test(saver, writes_the_best_behind) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 2, .best = RN_BEST_LOWEST);
  static const double metrics[] = {3, 1, 2, 5};
  start(&m);
  for (int step = 0; step < 4; ++step)
    cr_assert(rn_saver_save_best_async(saver, m.t.session, in_folder("c"), step, metrics[step],
                                       m.t.status),
              "%s", TF_Message(m.t.status));
  cr_assert(rn_saver_wait(saver, m.t.status), "%s", TF_Message(m.t.status));
  cr_expect_not(is_there("c-0.index"));
  cr_expect(is_there("c-1.index"));
  cr_expect(is_there("c-2.index"));
  cr_expect_not(is_there("c-3.index"));
  cr_assert_not(rn_saver_save_async(saver, m.t.session, in_folder("c"), 9, m.t.status));
  bad(&m.t, TF_FAILED_PRECONDITION, "keeps the best checkpoints; save with a metric");
  rn_saver_destroy(saver);
  close_model(&m);
}

// An empty file, last written to |age| seconds ago.
static void leave_behind(const char* name, int age) {
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = time(NULL) - age}};
  FILE* file = fopen(in_folder(name), "w");
  cr_assert_not_null(file);
  fclose(file);
  cr_assert_eq(utimensat(AT_FDCWD, in_folder(name), times, 0), 0);
}

Test(saver, sweeps_what_was_left_behind) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  rn_saver_t* saver = rn_saver(m.t.s);
  start(&m);
  cr_assert(rn_saver_save(saver, m.t.session, in_folder("m"), 1, m.t.status));
  leave_behind("m-2.index.tempstate123", 7200);
  leave_behind("m-2.data-00000-of-00001.tempstate99", 7200);
  leave_behind("m-3.index.tempstate7", 60);  // another process may be writing it
  leave_behind("notes.tempstate", 7200);
  leave_behind("m.tempstate1.txt", 7200);
  cr_assert(rn_saver_recover(saver, folder, m.t.status), "%s", TF_Message(m.t.status));
  cr_expect_not(is_there("m-2.index.tempstate123"));
  cr_expect_not(is_there("m-2.data-00000-of-00001.tempstate99"));
  cr_expect(is_there("m-3.index.tempstate7"));
  cr_expect(is_there("notes.tempstate"));
  cr_expect(is_there("m.tempstate1.txt"));
  cr_expect(is_there("m-1.index"));
  rn_saver_destroy(saver);
  close_model(&m);
}

Test(saver, latest_passes_over_what_is_damaged) {
  model_t m = open_model(RN_VARIABLE_DEFAULT);
  cr_assert_null(rn_latest_checkpoint(folder, NULL, NULL, m.t.status));
  cr_assert_eq(TF_GetCode(m.t.status), TF_NOT_FOUND);
  rn_saver_t* saver = rn_saver(m.t.s);
  start(&m);
  for (int step = 1; step <= 3; ++step) {
    cr_assert(rn_saver_save(saver, m.t.session, in_folder("m"), step, m.t.status));
    grow(&m);
  }
  char* note = NULL;
  char* path = rn_latest_checkpoint(folder, NULL, &note, m.t.status);
  cr_assert_str_eq(path, in_folder("m-3"));
  cr_assert_null(note);
  free(path);
  FILE* file = fopen(in_folder("m-3.data-00000-of-00001"), "r+");
  fputc('x', file);
  fclose(file);
  path = rn_latest_checkpoint(folder, NULL, &note, m.t.status);
  cr_assert_str_eq(path, in_folder("m-2"));
  cr_assert(strstr(note, "m-3") && strstr(note, "Checksum does not match"), "%s", note);
  cr_assert(rn_saver_restore(saver, m.t.session, path, m.t.status));
  expect(&m, 2, 6);
  free(path);
  free(note);
  cr_assert_eq(unlink(in_folder("m-2.index")), 0);
  cr_assert_eq(truncate(in_folder("m-1.index"), 20), 0);
  cr_assert_null(rn_latest_checkpoint(folder, NULL, NULL, m.t.status));
  bad(&m.t, TF_DATA_LOSS, "No checkpoint of");
  rn_saver_destroy(saver);
  close_model(&m);
}

// Returns once the folder has a checkpoint; a busy machine may take a while to write the first.
static void wait_for_checkpoint(void) {
  TF_Status* status = TF_NewStatus();
  char* path = NULL;
  for (int turns = 0; !path && turns < 6000; ++turns) {
    usleep(10000);
    path = rn_latest_checkpoint(folder, NULL, NULL, status);
  }
  cr_assert(path, "%s", TF_Message(status));
  free(path);
  TF_DeleteStatus(status);
}

// A process that saves and saves over, killed at any moment: what is left can always be restored.
Test(saver, survives_sigkill) {
  for (int round = 0; round < 25; ++round) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      model_t m = open_model(RN_VARIABLE_DEFAULT);
      rn_saver_t* saver = rn_saver(m.t.s, .max_to_keep = 2);
      trial_init(&m.t);
      rn_saver_recover(saver, folder, m.t.status);
      for (int step = 0;; ++step) {
        rn_saver_save(saver, m.t.session, in_folder(step % 3 ? "m" : "n"), step % 3 ? step : -1,
                      m.t.status);
        trial_run(&m.t, m.grow, NULL, NULL, 0);
      }
    }
    cr_assert_gt(child, 0);
    usleep(60000 + (useconds_t)(round * 7919 % 97) * 1000);
    if (round == 1) wait_for_checkpoint();  // from then on there is always one
    cr_assert_eq(kill(child, SIGKILL), 0);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    TF_Status* status = TF_NewStatus();
    char* note = NULL;
    char* path = rn_latest_checkpoint(folder, NULL, &note, status);
    bool is_first = round == 0 && TF_GetCode(status) == TF_NOT_FOUND;
    cr_assert(path || is_first, "%s", TF_Message(status));
    cr_assert_null(note, "%s", note);
    free(path);
    TF_DeleteStatus(status);
  }
}
