// See redis_link.h.
#include "serve/select/redis_link.h"

#include "base/assert.h"

void rn_redis_word(rn_redis_command_t* command, rn_str_t word) {
  RN_ASSERT(command->count < RN_REDIS_MAX_WORDS);
  command->words[command->count] = word.size ? word.data : "";
  command->sizes[command->count++] = word.size;
}

void rn_redis_close(rn_redis_link_t* link) {
  if (link->context) link->hiredis->redisFree(link->context);
  link->context = NULL;
}

static rn_status_t broken(rn_redis_link_t* link, const char* what) {
  rn_status_t status = rn_unavailable("Redis: %s", what);
  rn_redis_close(link);
  return status;
}

rn_status_t rn_redis_connect(rn_redis_link_t* link, const char* address) {
  const struct timeval second = {.tv_sec = 1};
  if (link->context) return RN_OK;
  RN_RETURN_IF_ERROR(rn_hiredis(&link->hiredis));
  rn_str_t host = rn_str(address), rest = host;
  if (rn_str_starts_with(host, RN_STR("unix:"))) {
    link->context = link->hiredis->redisConnectUnixWithTimeout(address + 5, second);
  } else {
    char name[256];
    int64_t port = 6379;
    const char* colon = strrchr(address, ':');
    if (colon) {
      host.size = (size_t)(colon - address);
      rest = rn_str(colon + 1);
    }
    if (host.size >= sizeof name || (colon && !rn_str_to_i64(rest, &port)) || port < 1 ||
        port > 65535)
      return rn_invalid_argument("'%s' is not HOST:PORT of a Redis server", address);
    memcpy(name, host.data, host.size);
    name[host.size] = '\0';
    link->context = link->hiredis->redisConnectWithTimeout(name, (int)port, second);
  }
  if (!link->context) return rn_out_of_memory();
  if (link->context->err) return broken(link, link->context->errstr);
  link->hiredis->redisSetTimeout(link->context, second);
  return RN_OK;
}

rn_status_t rn_redis_call(rn_redis_link_t* link, const rn_redis_command_t* command,
                          redisReply** out) {
  *out = NULL;
  void* reply = NULL;
  if (!link->context) return rn_unavailable("Redis: not connected");
  if (link->hiredis->redisAppendCommandArgv(link->context, command->count,
                                            (const char**)command->words,
                                            command->sizes) != REDIS_OK ||
      link->hiredis->redisGetReply(link->context, &reply) != REDIS_OK || !reply)
    return broken(link, link->context->err ? link->context->errstr : "no reply");
  redisReply* got = reply;
  if (got->type == REDIS_REPLY_ERROR) {
    rn_status_t status = rn_invalid_argument("Redis: %s", got->str);
    rn_redis_free(link, got);
    return status;
  }
  *out = got;
  return RN_OK;
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
