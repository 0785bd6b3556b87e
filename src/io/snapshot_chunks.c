// See snapshot_chunks.h.
//
//   PATH/chunks/chunk_<stream>_<number>_<elements>   records; see snapshot_file.h, version 2
//   PATH/DONE                                        everything is written
//   PATH/ERROR                                       a StatusProto as text: nothing more comes
#include "io/snapshot_chunks.h"

#include <stdlib.h>

#include "io/snapshot.h"
#include "proto/status.pb.h"
#include "wire/text.h"

#define ERROR_LIMIT ((size_t)1 << 20)

static rn_status_t in_folder(const rn_env_t* env, const char* path, const char* name,
                             rn_strbuf_t* out) {
  rn_strbuf_init(out, env->allocator);
  rn_strbuf_printf(out, "%s/%s", path, name);
  return rn_strbuf_status(out);
}

static rn_status_t is_there(const rn_env_t* env, const char* path, const char* name, bool* out) {
  rn_strbuf_t file;
  rn_status_t status = in_folder(env, path, name, &file);
  if (rn_ok(status)) status = rn_fs_find(env, file.data, out);
  rn_strbuf_clear(&file);
  return status;
}

static rn_status_t status_in(rn_str_t text, const char* path, rn_allocator_t allocator) {
  rn_arena_t arena;
  void* message = NULL;
  rn_arena_init(&arena, allocator);
  rn_status_t status = rn_pb_parse(&rn_pb_StatusProto_desc, text, NULL, &arena, &message);
  if (rn_ok(status)) {
    const rn_pb_StatusProto_t* proto = message;
    if (proto->code <= 0 || proto->code > RN_CODE_UNAUTHENTICATED)
      status = rn_internal("Unexpected snapshot ERROR file contains an OK status at %s.", path);
    else if (proto->code == RN_CODE_OUT_OF_RANGE)  // which would pass for the end of the chunks
      status = rn_internal("%.*s; %s", RN_STR_ARGS(proto->message), path);
    else
      status = rn_status_make((rn_code_t)proto->code, "%.*s", RN_STR_ARGS(proto->message));
  }
  rn_arena_clear(&arena);
  return status;
}

// What the file ERROR says.
static rn_status_t read_error(const rn_env_t* env, const char* path) {
  rn_strbuf_t file, text;
  rn_strbuf_init(&text, env->allocator);
  rn_status_t status = in_folder(env, path, "ERROR", &file);
  if (rn_ok(status)) status = rn_fs_read(env, file.data, ERROR_LIMIT, &text);
  if (rn_ok(status)) status = status_in(rn_strbuf_view(&text), file.data, env->allocator);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&file);
  return status;
}

// The numbers in a chunk's name; false if it is none.
static bool numbers_of(const char* path, long long* out_stream, long long* out_chunk) {
  const char* slash = strrchr(path, '/');
  const char* at = slash ? slash + 1 : path;
  char* end = NULL;
  if (strncmp(at, "chunk_", 6) != 0) return false;
  *out_stream = strtoll(at + 6, &end, 10);
  if (end == at + 6 || *end != '_' || *out_stream < 0) return false;
  at = end + 1;
  *out_chunk = strtoll(at, &end, 10);
  return end != at && *end == '_' && *out_chunk >= 0;
}

static int by_number(const void* a, const void* b) {
  const char *one = ((const rn_str_t*)a)->data, *two = ((const rn_str_t*)b)->data;
  long long streams[2] = {0}, chunks[2] = {0};
  bool is_one = numbers_of(one, &streams[0], &chunks[0]);
  bool is_two = numbers_of(two, &streams[1], &chunks[1]);
  if (is_one != is_two) return is_one ? -1 : 1;
  if (chunks[0] != chunks[1]) return chunks[0] < chunks[1] ? -1 : 1;
  if (streams[0] != streams[1]) return streams[0] < streams[1] ? -1 : 1;
  return strcmp(one, two);
}

rn_status_t rn_snapshot_chunks(const rn_env_t* env, const char* path, rn_names_t* names,
                               bool* out_done) {
  bool has_failed = false;
  RN_RETURN_IF_ERROR(is_there(env, path, "ERROR", &has_failed));
  if (has_failed) return read_error(env, path);
  // DONE is written after all chunks, so what is listed after it is there is everything.
  RN_RETURN_IF_ERROR(is_there(env, path, "DONE", out_done));
  RN_RETURN_IF_ERROR(rn_snapshot_list(env, path, "chunks/*", names));
  if (names->list.count)
    qsort(names->list.items, names->list.count, sizeof *names->list.items, by_number);
  return RN_OK;
}
