// See redis_config.h.
#include "serve/select/redis_config.h"

#include "base/fs.h"
#include "proto/redis.pb.h"
#include "wire/text.h"

#define MAX_FILE ((size_t)1 << 20)
#define MAX_SECONDS (30 * 86400)

typedef rn_pb_runnel_RedisConfig_t redis_file_t;

static rn_status_t take_text(rn_arena_t* arena, rn_str_t text, const char** out) {
  rn_str_t copy;
  *out = NULL;
  if (!text.size) return RN_OK;
  if (memchr(text.data, '\0', text.size)) return rn_invalid_argument("a text has a NUL");
  RN_RETURN_IF_ERROR(rn_arena_str(arena, text, &copy));  // NUL-terminated
  *out = copy.data;
  return RN_OK;
}

static rn_status_t read_password(const rn_env_t* env, const char* path, rn_arena_t* arena,
                                 const char** out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  rn_status_t status = rn_fs_read(env, path, MAX_FILE, &text);
  rn_str_t rest = rn_strbuf_view(&text), line = rn_str_split(&rest, '\n');
  if (rn_ok(status) && !line.size) status = rn_invalid_argument("%s: no password", path);
  if (rn_ok(status)) status = take_text(arena, line, out);
  rn_strbuf_clear(&text);
  return status;
}

static rn_status_t take_password(const rn_env_t* env, const redis_file_t* file,
                                 rn_redis_config_t* out) {
  const char* path = NULL;
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->user, &out->user));
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->password, &out->password));
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->password_file, &path));
  if (path && out->password)
    return rn_invalid_argument("password and password_file exclude each other");
  if (path) RN_RETURN_IF_ERROR(read_password(env, path, &out->arena, &out->password));
  return out->user && !out->password ? rn_invalid_argument("user needs a password") : RN_OK;
}

static rn_status_t take_tls(const rn_pb_runnel_RedisTls_t* file, rn_redis_config_t* out) {
  const char *ca, *cert, *key;
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->ca_file, &ca));
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->cert_file, &cert));
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->key_file, &key));
  rn_tls_options_t options = {
      .allocator = out->arena.allocator, .cert = cert, .key = key, .ca = ca, .is_guest = true};
  return rn_tls_create(&options, &out->tls);
}

static rn_status_t take(const rn_env_t* env, const redis_file_t* file, rn_redis_config_t* out) {
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->address, &out->address));
  RN_RETURN_IF_ERROR(take_text(&out->arena, file->key_prefix, &out->prefix));
  if (!out->address) return rn_invalid_argument("address is missing");
  if (file->database < 0) return rn_invalid_argument("database must not be negative");
  if (file->feedback_seconds < 0 || file->feedback_seconds > MAX_SECONDS)
    return rn_invalid_argument("feedback_seconds must be 0 to %d", MAX_SECONDS);
  out->database = file->database;
  out->feedback_seconds = file->feedback_seconds;
  RN_RETURN_IF_ERROR(take_password(env, file, out));
  return file->tls ? take_tls(file->tls, out) : RN_OK;
}

rn_status_t rn_redis_config_read(const rn_env_t* env, const char* path, rn_allocator_t allocator,
                                 rn_redis_config_t* out) {
  *out = (rn_redis_config_t){0};
  rn_arena_init(&out->arena, allocator);
  rn_strbuf_t text;
  rn_strbuf_init(&text, allocator);
  redis_file_t* file = NULL;
  rn_status_t status = rn_fs_read(env, path, MAX_FILE, &text);
  if (rn_ok(status))
    status = rn_pb_parse(&rn_pb_runnel_RedisConfig_desc, rn_strbuf_view(&text), NULL, &out->arena,
                         (void**)&file);
  if (rn_ok(status)) status = take(env, file, out);
  rn_strbuf_clear(&text);
  return rn_status_annotate(status, "; %s", path);
}

void rn_redis_config_clear(rn_redis_config_t* config) {
  rn_tls_release(config->tls);
  rn_arena_clear(&config->arena);
}
