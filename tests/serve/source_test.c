// Tests of versions on disk: which folders are versions, and when they have changed.
#include "serve/model/source.h"

#include "util.h"

static char folder[64];
static rn_arena_t arena;

static void set_up(void) {
  serve_folder(folder);
  rn_arena_init(&arena, rn_allocator_default());
}

static void tear_down(void) {
  rn_arena_clear(&arena);
  serve_remove(folder);
}

TestSuite(source, .init = set_up, .fini = tear_down);

// The versions, as "3 2 1".
static const char* list(rn_pb_serving_ModelConfig_t* model) {
  static char text[200];
  rn_source_version_t* versions = NULL;
  int count = 0;
  text[0] = '\0';
  model->name = RN_STR("m");
  model->base_path = rn_str(folder);
  OK(rn_source_list(rn_env_system(), model, &arena, &versions, &count));
  for (int i = 0; i < count; ++i) {
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%ld", i ? " " : "",
             (long)versions[i].number);
    cr_assert(rn_str_starts_with(versions[i].folder, rn_str(folder)));
  }
  return text;
}

Test(source, numbers_are_versions) {
  rn_pb_serving_ModelConfig_t model = {0};
  cr_assert_str_eq(list(&model), "");
  static const char* const names[] = {
      "1", "00000123", "2.tmp", "x", "-4", "+5", "", "99999999999999999999", "7"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    char path[100];
    snprintf(path, sizeof path, "%s/file", names[i]);
    if (names[i][0]) serve_write(folder, path, RN_STR(""));
  }
  serve_write(folder, "500", RN_STR("a file"));
  cr_assert_str_eq(list(&model), "123");
  rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_All_t all = {0};
  rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_t policy = {
      .policy_choice_case = 101, .all = &all};
  model.model_version_policy = &policy;
  cr_assert_str_eq(list(&model), "123 7 1");
}

Test(source, the_last_name_of_a_number_counts) {
  rn_pb_serving_ModelConfig_t model = {.name = RN_STR("m"), .base_path = rn_str(folder)};
  serve_write(folder, "1/file", RN_STR(""));
  serve_write(folder, "01/file", RN_STR(""));
  rn_source_version_t* versions = NULL;
  int count = 0;
  OK(rn_source_list(rn_env_system(), &model, &arena, &versions, &count));
  cr_assert_eq(count, 1);
  cr_assert(rn_str_ends_with(versions[0].folder, RN_STR("/1")));
}

Test(source, a_missing_base_path) {
  rn_pb_serving_ModelConfig_t model = {.name = RN_STR("m"), .base_path = RN_STR("/nowhere/m")};
  rn_source_version_t* versions = NULL;
  int count = 0;
  FAILS_WITH(rn_source_list(rn_env_system(), &model, &arena, &versions, &count), INVALID_ARGUMENT,
             "Could not find base path /nowhere/m for servable m with error NOT_FOUND: ");
}

static uint64_t fingerprint(void) {
  return rn_source_fingerprint(rn_env_system(), folder, rn_allocator_default());
}

Test(source, fingerprints) {
  uint64_t seen[6];
  seen[0] = fingerprint();
  cr_assert_eq(fingerprint(), seen[0]);
  serve_write(folder, "a", RN_STR("1"));
  seen[1] = fingerprint();
  serve_write(folder, "deep/er/b", RN_STR("1"));
  seen[2] = fingerprint();
  serve_write(folder, "deep/er/b", RN_STR("12"));
  seen[3] = fingerprint();
  usleep(20000);  // file times may be as coarse as a clock tick
  serve_write(folder, "deep/er/b", RN_STR("21"));
  seen[4] = fingerprint();
  serve_write(folder, "deep/er/c", RN_STR(""));
  seen[5] = fingerprint();
  cr_assert_eq(fingerprint(), seen[5]);
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < i; ++j) cr_assert_neq(seen[i], seen[j], "%d %d", i, j);
}
