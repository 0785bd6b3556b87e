// Reads and writes the list of checkpoints, and finds the newest intact one. See
// checkpoint_state.h.
#include "io/checkpoint_state.h"

#include "io/checkpoint.h"
#include "proto/checkpoint_state.pb.h"
#include "wire/text.h"

#define MAX_STATE_BYTES ((size_t)64 << 20)

void rn_checkpoint_state_init(rn_checkpoint_state_t* state, rn_allocator_t allocator) {
  *state = (rn_checkpoint_state_t){.latest = RN_STR("")};
  rn_arena_init(&state->arena, allocator);
}

void rn_checkpoint_state_clear(rn_checkpoint_state_t* state) {
  rn_vec_free(&state->all, state->arena.allocator);
  rn_arena_clear(&state->arena);
}

rn_status_t rn_checkpoint_state_add(rn_checkpoint_state_t* state, rn_str_t path, double time) {
  rn_kept_checkpoint_t kept = {.time = time};
  RN_RETURN_IF_ERROR(rn_arena_str(&state->arena, path, &kept.path));
  return rn_vec_push(&state->all, state->arena.allocator, kept);
}

static rn_status_t state_path(const char* directory, const char* file, rn_strbuf_t* out) {
  bool ends = directory[0] && directory[strlen(directory) - 1] == '/';
  rn_strbuf_printf(out, "%s%s%s", directory, directory[0] && !ends ? "/" : "", file);
  return rn_strbuf_status(out);
}

// Turns a path from the file into one that can be opened.
static rn_status_t resolve(rn_arena_t* arena, const char* directory, rn_str_t path, rn_str_t* out) {
  bool is_whole = path.size == 0 || path.data[0] == '/' || directory[0] == 0;
  if (is_whole) return rn_arena_str(arena, path, out);
  bool ends = directory[strlen(directory) - 1] == '/';
  return rn_arena_printf(arena, out, "%s%s%.*s", directory, ends ? "" : "/", RN_STR_ARGS(path));
}

static rn_status_t take(const rn_pb_CheckpointState_t* proto, const char* directory,
                        rn_checkpoint_state_t* state) {
  RN_RETURN_IF_ERROR(
      resolve(&state->arena, directory, proto->model_checkpoint_path, &state->latest));
  state->last_preserved = proto->last_preserved_timestamp;
  for (uint32_t i = 0; i < proto->all_model_checkpoint_paths.count; ++i) {
    rn_str_t path;
    double time = i < proto->all_model_checkpoint_timestamps.count
                      ? proto->all_model_checkpoint_timestamps.items[i]
                      : 0;
    RN_RETURN_IF_ERROR(
        resolve(&state->arena, directory, proto->all_model_checkpoint_paths.items[i], &path));
    RN_RETURN_IF_ERROR(rn_checkpoint_state_add(state, path, time));
  }
  bool is_listed = false;
  for (size_t i = 0; i < state->all.count; ++i)
    is_listed |= rn_str_eq(state->all.items[i].path, state->latest);
  return is_listed || !state->latest.size ? RN_OK
                                          : rn_checkpoint_state_add(state, state->latest, 0);
}

rn_status_t rn_checkpoint_state_read(const rn_env_t* env, const char* directory, const char* file,
                                     rn_checkpoint_state_t* state) {
  rn_strbuf_t path, text;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_init(&text, env->allocator);
  rn_arena_t scratch;
  rn_arena_init(&scratch, env->allocator);
  rn_pb_CheckpointState_t* proto = NULL;
  rn_status_t status = state_path(directory, file, &path);
  if (rn_ok(status)) status = rn_fs_read(env, path.data, MAX_STATE_BYTES, &text);
  if (rn_ok(status)) {
    status = rn_pb_parse(&rn_pb_CheckpointState_desc, rn_strbuf_view(&text), NULL, &scratch,
                         (void**)&proto);
    if (!rn_ok(status)) status = rn_status_annotate(status, "; in %s", path.data);
  }
  if (rn_ok(status)) status = take(proto, directory, state);
  rn_arena_clear(&scratch);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&path);
  return status;
}

// |path| as written to the file: without |directory| if it is in there.
static rn_str_t shortened(const char* directory, rn_str_t path) {
  size_t size = strlen(directory);
  while (size > 1 && directory[size - 1] == '/') --size;
  bool is_within = size && path.size > size + 1 && memcmp(path.data, directory, size) == 0 &&
                   path.data[size] == '/';
  return is_within ? rn_str_n(path.data + size + 1, path.size - size - 1) : path;
}

static rn_status_t fill(const rn_checkpoint_state_t* state, const char* directory,
                        rn_arena_t* arena, rn_pb_CheckpointState_t* proto) {
  size_t count = state->all.count;
  proto->model_checkpoint_path = shortened(directory, state->latest);
  proto->last_preserved_timestamp = state->last_preserved;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &proto->all_model_checkpoint_paths.items));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &proto->all_model_checkpoint_timestamps.items));
  for (size_t i = 0; i < count; ++i) {
    proto->all_model_checkpoint_paths.items[i] = shortened(directory, state->all.items[i].path);
    proto->all_model_checkpoint_timestamps.items[i] = state->all.items[i].time;
  }
  proto->all_model_checkpoint_paths.count = (uint32_t)count;
  proto->all_model_checkpoint_timestamps.count = (uint32_t)count;
  return RN_OK;
}

rn_status_t rn_checkpoint_state_write(const rn_env_t* env, const char* directory, const char* file,
                                      const rn_checkpoint_state_t* state) {
  rn_strbuf_t path, text;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_init(&text, env->allocator);
  rn_arena_t arena;
  rn_arena_init(&arena, env->allocator);
  rn_pb_CheckpointState_t proto = {0};
  rn_status_t status = state_path(directory, file, &path);
  if (rn_ok(status)) status = fill(state, directory, &arena, &proto);
  if (rn_ok(status)) status = rn_pb_print(&rn_pb_CheckpointState_desc, &proto, &text);
  if (rn_ok(status)) status = rn_fs_replace(env, path.data, rn_strbuf_view(&text));
  rn_arena_clear(&arena);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&path);
  return status;
}

static rn_status_t verify(const rn_env_t* env, const char* path, rn_pool_t* pool) {
  rn_checkpoint_t* checkpoint = NULL;
  RN_RETURN_IF_ERROR(rn_checkpoint_open(env, path, &checkpoint));
  int64_t bytes = 0;
  rn_status_t status = rn_checkpoint_verify(checkpoint, pool, &bytes);
  rn_checkpoint_close(checkpoint);
  return status;
}

// Whether the checkpoint |path| is intact; appends a note if not.
static bool is_good(const rn_env_t* env, rn_str_t path, rn_pool_t* pool, rn_strbuf_t* note) {
  rn_status_t status = verify(env, path.data, pool);
  if (rn_ok(status)) return true;
  rn_strbuf_printf(note, "%scheckpoint %s cannot be used: %s", note->size ? "\n" : "", path.data,
                   rn_status_message(status));
  rn_status_free(status);
  return false;
}

static bool choose(const rn_env_t* env, const rn_checkpoint_state_t* state, rn_pool_t* pool,
                   rn_str_t* out, rn_strbuf_t* note) {
  *out = state->latest;
  if (state->latest.size && is_good(env, state->latest, pool, note)) return true;
  for (size_t i = state->all.count; i-- > 0;) {
    *out = state->all.items[i].path;
    if (!rn_str_eq(*out, state->latest) && is_good(env, *out, pool, note)) return true;
  }
  return false;
}

rn_status_t rn_checkpoint_latest(const rn_env_t* env, const char* directory, const char* file,
                                 rn_pool_t* pool, rn_strbuf_t* path, rn_strbuf_t* note) {
  rn_checkpoint_state_t state;
  rn_checkpoint_state_init(&state, env->allocator);
  rn_status_t status = rn_checkpoint_state_read(env, directory, file, &state);
  rn_str_t found;
  if (rn_ok(status)) {
    if (choose(env, &state, pool, &found, note)) {
      rn_strbuf_append(path, found);
      status = rn_strbuf_status(path);
      if (note->size) rn_strbuf_printf(note, "\nusing checkpoint %s instead", found.data);
    } else {
      status =
          rn_data_loss("No checkpoint of %s can be used\n%s", directory, rn_strbuf_view(note).data);
    }
  }
  if (rn_ok(status)) status = rn_strbuf_status(note);
  rn_checkpoint_state_clear(&state);
  return status;
}
