// A connection to a Redis server, for one thread, which it may block for a second.
#ifndef RUNNEL_SERVE_SELECT_REDIS_LINK_H_
#define RUNNEL_SERVE_SELECT_REDIS_LINK_H_

#include "base/str.h"
#include "base/vec.h"
#include "serve/select/hiredis.h"

// A command under construction: its words, borrowed until it is sent.
#define RN_REDIS_MAX_WORDS 1100
typedef struct rn_redis_command_t {
  const char* words[RN_REDIS_MAX_WORDS];
  size_t sizes[RN_REDIS_MAX_WORDS];
  int count;
} rn_redis_command_t;
void rn_redis_word(rn_redis_command_t* command, rn_str_t word);

typedef struct rn_redis_link_t {
  const rn_hiredis_t* hiredis;
  redisContext* context;  // Owned; NULL: not connected
} rn_redis_link_t;

// Connects to |address|, "host:port" or "unix:path", unless it is connected. UNAVAILABLE if that
// fails.
RN_MUST_USE rn_status_t rn_redis_connect(rn_redis_link_t* link, const char* address);
void rn_redis_close(rn_redis_link_t* link);

// Sends a command; |*out| is its reply, which the caller frees with rn_redis_free. A failure closes
// the connection, except for INVALID_ARGUMENT: Redis' own error.
RN_MUST_USE rn_status_t rn_redis_call(rn_redis_link_t* link, const rn_redis_command_t* command,
                                      redisReply** out);
// The same, for commands whose reply is of no interest.
RN_MUST_USE rn_status_t rn_redis_do(rn_redis_link_t* link, const rn_redis_command_t* command);
void rn_redis_free(rn_redis_link_t* link, redisReply* reply);  // NULL is fine
// The bytes of a string; "" for other replies.
rn_str_t rn_redis_text(const redisReply* reply);

#endif  // RUNNEL_SERVE_SELECT_REDIS_LINK_H_
