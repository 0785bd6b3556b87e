// See redis_link.h.
#include "serve/select/redis_link.h"

#include <stdio.h>

#include "base/assert.h"

#define PATIENCE_NS INT64_C(1000000000)  // for one step with the server
#define READ_SIZE ((size_t)16 << 10)

void rn_redis_word(rn_redis_command_t* command, rn_str_t word) {
  RN_ASSERT(command->count < RN_REDIS_MAX_WORDS);
  command->words[command->count] = word.size ? word.data : "";
  command->sizes[command->count++] = word.size;
}

void rn_redis_link_init(rn_redis_link_t* link) { rn_strbuf_init(&link->unsent, link->allocator); }

void rn_redis_link_deinit(rn_redis_link_t* link) {
  rn_redis_close(link);
  rn_strbuf_clear(&link->unsent);
}

void rn_redis_close(rn_redis_link_t* link) {
  if (link->socket) link->socket->vtable->close(link->socket);
  if (link->reader) link->hiredis->redisReaderFree(link->reader);
  link->socket = NULL;
  link->reader = NULL;
  rn_strbuf_clear(&link->unsent);
}

static int64_t patience(const rn_redis_link_t* link) {
  return link->env->now_ns(link->env->self) + PATIENCE_NS;
}

// Closes, and says that a later try may succeed, whatever the network calls the failure.
static rn_status_t broken(rn_redis_link_t* link, rn_status_t status) {
  rn_status_t unavailable = rn_unavailable("Redis: %s", rn_status_message(status));
  rn_status_free(status);
  rn_redis_close(link);
  return unavailable;
}

static rn_status_t full_address(const char* address, char* out, size_t room) {
  const char* colon = strrchr(address, ':');
  int64_t port = 6379;
  bool is_path = strncmp(address, "unix:", 5) == 0;
  int size = snprintf(out, room, "%s%s", address, colon ? "" : ":6379");
  if (size < 0 || (size_t)size >= room || colon == address ||
      (colon && !is_path && (!rn_str_to_i64(rn_str(colon + 1), &port) || port < 1 || port > 65535)))
    return rn_invalid_argument("'%s' is not HOST:PORT of a Redis server", address);
  return RN_OK;
}

static rn_status_t open_socket(rn_redis_link_t* link, const rn_redis_config_t* config,
                               const char* address) {
  const rn_env_t* env = link->env;
  RN_RETURN_IF_ERROR(
      env->net->connect(env->net_self, address, patience(link), link->allocator, &link->socket));
  if (!config->tls) return RN_OK;
  rn_socket_t* plain = link->socket;
  bool wants_write;
  link->socket = NULL;
  RN_RETURN_IF_ERROR(rn_tls_connect(config->tls, plain, address, NULL, &link->socket));
  return rn_tls_handshake(link->socket, patience(link), &wants_write);
}

// Says who this is, and which database is meant.
static rn_status_t introduce(rn_redis_link_t* link, const rn_redis_config_t* config) {
  if (config->password) {
    rn_redis_command_t auth = {0};
    rn_redis_word(&auth, RN_STR("AUTH"));
    if (config->user) rn_redis_word(&auth, rn_str(config->user));
    rn_redis_word(&auth, rn_str(config->password));
    RN_RETURN_IF_ERROR(rn_redis_do(link, &auth));
  }
  if (!config->database) return RN_OK;
  char number[16];
  snprintf(number, sizeof number, "%d", config->database);
  rn_redis_command_t select = {0};
  rn_redis_word(&select, RN_STR("SELECT"));
  rn_redis_word(&select, rn_str(number));
  return rn_redis_do(link, &select);
}

rn_status_t rn_redis_connect(rn_redis_link_t* link, const rn_redis_config_t* config) {
  char address[512];
  if (link->socket) return RN_OK;
  RN_RETURN_IF_ERROR(rn_hiredis(&link->hiredis));
  RN_RETURN_IF_ERROR(full_address(config->address, address, sizeof address));
  rn_status_t status = open_socket(link, config, address);
  if (!rn_ok(status)) return broken(link, status);
  link->reader = link->hiredis->redisReaderCreate();
  status = link->reader ? introduce(link, config) : rn_out_of_memory();
  if (!rn_ok(status)) rn_redis_close(link);
  return status;
}

void rn_redis_put(rn_redis_link_t* link, const rn_redis_command_t* command) {
  rn_strbuf_printf(&link->unsent, "*%d\r\n", command->count);
  for (int i = 0; i < command->count; ++i) {
    rn_strbuf_printf(&link->unsent, "$%zu\r\n", command->sizes[i]);
    rn_strbuf_append_n(&link->unsent, command->words[i], command->sizes[i]);
    rn_strbuf_append(&link->unsent, RN_STR("\r\n"));
  }
}

static rn_status_t send_all(rn_redis_link_t* link) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(&link->unsent));
  rn_status_t status =
      link->unsent.size
          ? rn_net_write_all(link->socket, rn_strbuf_view(&link->unsent), patience(link))
          : RN_OK;
  link->unsent.size = 0;
  return status;
}

static rn_status_t read_some(rn_redis_link_t* link, int64_t deadline_ns) {
  char bytes[READ_SIZE];
  size_t got = 0;
  RN_RETURN_IF_ERROR(
      link->socket->vtable->read(link->socket, bytes, sizeof bytes, deadline_ns, &got));
  if (!got) return rn_unavailable("the server has closed the connection");
  if (link->hiredis->redisReaderFeed(link->reader, bytes, got) != REDIS_OK)
    return rn_out_of_memory();
  return RN_OK;
}

static rn_status_t receive(rn_redis_link_t* link, redisReply** out) {
  RN_RETURN_IF_ERROR(send_all(link));
  int64_t deadline_ns = patience(link);
  for (;;) {
    void* reply = NULL;
    if (link->hiredis->redisReaderGetReply(link->reader, &reply) != REDIS_OK)
      return rn_unavailable("%s", link->reader->errstr);
    if ((*out = reply)) return RN_OK;
    RN_RETURN_IF_ERROR(read_some(link, deadline_ns));
  }
}

// Whether Redis says with this error that it cannot answer now: it reads its files, waits for its
// master, or changes roles.
static bool is_passing(rn_str_t error) {
  const char* const words[] = {"LOADING ",  "BUSY ",     "MASTERDOWN ",
                               "READONLY ", "TRYAGAIN ", "CLUSTERDOWN "};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
    if (rn_str_starts_with(error, rn_str(words[i]))) return true;
  return false;
}

rn_status_t rn_redis_take(rn_redis_link_t* link, redisReply** out) {
  *out = NULL;
  if (!link->socket) return rn_unavailable("Redis: not connected");
  redisReply* reply = NULL;
  rn_status_t status = receive(link, &reply);
  if (!rn_ok(status)) return broken(link, status);
  if (reply->type == REDIS_REPLY_ERROR) {
    rn_str_t error = rn_str_n(reply->str, reply->len);
    status = is_passing(error) ? rn_unavailable("Redis: %s", reply->str)
                               : rn_invalid_argument("Redis: %s", reply->str);
    rn_redis_free(link, reply);
    return status;
  }
  *out = reply;
  return RN_OK;
}

rn_status_t rn_redis_call(rn_redis_link_t* link, const rn_redis_command_t* command,
                          redisReply** out) {
  rn_redis_put(link, command);
  return rn_redis_take(link, out);
}

rn_status_t rn_redis_do(rn_redis_link_t* link, const rn_redis_command_t* command) {
  redisReply* reply = NULL;
  RN_RETURN_IF_ERROR(rn_redis_call(link, command, &reply));
  rn_redis_free(link, reply);
  return RN_OK;
}

void rn_redis_free(rn_redis_link_t* link, redisReply* reply) {
  if (reply) link->hiredis->freeReplyObject(reply);
}

rn_str_t rn_redis_text(const redisReply* reply) {
  return reply && reply->type == REDIS_REPLY_STRING ? rn_str_n(reply->str, reply->len) : RN_STR("");
}
