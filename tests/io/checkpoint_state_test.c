// The file that lists checkpoints: writing, reading, and crashes.
#include "io/checkpoint_state.h"

#include <errno.h>
#include <stdio.h>

#include "../support/memory_place.h"
#include "io/bundle.h"
#include "train/saver.h"

Test(state, comes_back) {
  place_t place;
  open_place(&place);
  OK(rn_fs_make_directories(&place.env, "/run/a"));
  rn_checkpoint_state_t state, back;
  rn_checkpoint_state_init(&state, place.env.allocator);
  OK(rn_checkpoint_state_add(&state, RN_STR("/run/a/m-1"), 1.5));
  OK(rn_checkpoint_state_add(&state, RN_STR("/elsewhere/m-2"), 2));
  state.latest = RN_STR("/run/a/m-1");
  state.last_preserved = 0.5;
  OK(rn_checkpoint_state_write(&place.env, "/run/a", "checkpoint", &state));
  rn_strbuf_t text;
  rn_strbuf_init(&text, place.env.allocator);
  OK(rn_fs_read(&place.env, "/run/a/checkpoint", SIZE_MAX, &text));
  cr_assert_str_eq(text.data,
                   "model_checkpoint_path: \"m-1\"\n"
                   "all_model_checkpoint_paths: \"m-1\"\n"
                   "all_model_checkpoint_paths: \"/elsewhere/m-2\"\n"
                   "all_model_checkpoint_timestamps: 1.5\n"
                   "all_model_checkpoint_timestamps: 2\n"
                   "last_preserved_timestamp: 0.5\n");
  rn_checkpoint_state_init(&back, place.env.allocator);
  OK(rn_checkpoint_state_read(&place.env, "/run/a/", "checkpoint", &back));
  cr_assert(rn_str_is(back.latest, "/run/a/m-1"));
  cr_assert_eq(back.all.count, 2);
  cr_assert(rn_str_is(back.all.items[1].path, "/elsewhere/m-2"));
  cr_assert_eq(back.all.items[1].time, 2);
  cr_assert_eq(back.last_preserved, 0.5);
  OK(rn_fs_write(&place.env, "/run/a/checkpoint", RN_STR("model_checkpoint_path: ")));
  rn_checkpoint_state_t bad;
  rn_checkpoint_state_init(&bad, place.env.allocator);
  rn_status_t status = rn_checkpoint_state_read(&place.env, "/run/a", "checkpoint", &bad);
  cr_assert(strstr(rn_status_message(status), "/run/a/checkpoint"));
  rn_status_free(status);
  rn_checkpoint_state_clear(&bad);
  rn_checkpoint_state_clear(&back);
  rn_checkpoint_state_clear(&state);
  rn_strbuf_clear(&text);
  rn_memory_fs_destroy(place.fs);
}

// What a saver does for one step, below its graph: the checkpoint, the list, the old one removed.
static rn_status_t save_step(const rn_env_t* env, rn_saver_t* saver, int step) {
  char prefix[32];
  snprintf(prefix, sizeof prefix, "run/m-%d", step);
  rn_bundle_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_writer_create(env, prefix, NULL, &writer));
  rn_tensor_t tensor;
  rn_status_t status = rn_tensor_create(rn_allocator_system(), RN_INT32, RN_SHAPE_SCALAR, &tensor);
  if (rn_ok(status)) {
    RN_DATA(&tensor, int32_t)[0] = step;
    status = rn_bundle_writer_add(writer, RN_STR("step"), &tensor);
    rn_tensor_clear(&tensor);
  }
  if (rn_ok(status)) status = rn_bundle_writer_finish(writer, NULL);
  rn_bundle_writer_destroy(writer);
  return rn_ok(status) ? rn_saver_keep(saver, env, prefix, 0) : status;
}

static void expect_latest(const rn_env_t* env, int low, int high, bool may_pass_over) {
  rn_strbuf_t path, note;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_init(&note, env->allocator);
  OK(rn_checkpoint_latest(env, "run", "checkpoint", NULL, &path, &note));
  int step = atoi(strrchr(path.data, '-') + 1);
  cr_assert(step >= low && step <= high, "%s", path.data);
  cr_assert(may_pass_over || note.size == 0, "%s", note.data);
  rn_strbuf_clear(&note);
  rn_strbuf_clear(&path);
}

// The power goes at every call of the third save, with one kept: the second or the third is listed,
// and is there, whole.
Test(state, crash_at_every_call, .timeout = 60) {
  for (int64_t n = 1, calls = 1; n <= calls + 1; ++n) {
    place_t place;
    open_place(&place);
    rn_saver_t saver = {.allocator = rn_allocator_system(), .options = {.max_to_keep = 1}};
    OK(save_step(&place.env, &saver, 1));
    OK(save_step(&place.env, &saver, 2));
    int64_t before = rn_memory_fs_calls(place.fs);
    rn_memory_fs_fail(place.fs, n, INT64_MAX / 2, EIO);
    rn_status_t status = save_step(&place.env, &saver, 3);
    calls = rn_memory_fs_calls(place.fs) - before;
    bool is_saved = rn_ok(status);
    rn_status_free(status);
    rn_memory_fs_crash(place.fs, n % 2 ? 0 : 20);
    expect_latest(&place.env, is_saved ? 3 : 2, 3, false);
    rn_saver_kept_clear(&saver);
    // The next process goes on.
    OK(rn_saver_take_up(&saver, &place.env, "run"));
    OK(save_step(&place.env, &saver, 4));
    expect_latest(&place.env, 4, 4, false);
    rn_saver_kept_clear(&saver);
    rn_memory_fs_destroy(place.fs);
  }
}

// Any one call fails and the process lives: an error, and the one before is still listed.
Test(state, failure_of_every_call, .timeout = 60) {
  for (int64_t n = 1, calls = 1; n <= calls + 1; ++n) {
    place_t place;
    open_place(&place);
    rn_saver_t saver = {.allocator = rn_allocator_system(), .options = {.max_to_keep = 1}};
    OK(save_step(&place.env, &saver, 1));
    int64_t before = rn_memory_fs_calls(place.fs);
    rn_memory_fs_fail(place.fs, n, 1, ENOSPC);
    rn_status_t status = save_step(&place.env, &saver, 2);
    calls = rn_memory_fs_calls(place.fs) - before;
    bool is_saved = rn_ok(status);
    rn_status_free(status);
    rn_memory_fs_fail(place.fs, 0, 0, 0);
    expect_latest(&place.env, is_saved ? 2 : 1, 2, false);
    OK(save_step(&place.env, &saver, 3));
    expect_latest(&place.env, 3, 3, false);
    rn_saver_kept_clear(&saver);
    rn_memory_fs_destroy(place.fs);
  }
}
