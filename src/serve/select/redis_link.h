// A connection to a Redis server, for one thread, which it may block for a second. hiredis reads
// the replies; the bytes go over the environment's sockets, so that TLS is the one of all ports.
#ifndef RUNNEL_SERVE_SELECT_REDIS_LINK_H_
#define RUNNEL_SERVE_SELECT_REDIS_LINK_H_

#include "base/vec.h"
#include "serve/select/hiredis.h"
#include "serve/select/redis_config.h"

// A command under construction: its words, borrowed until it is sent.
#define RN_REDIS_MAX_WORDS 1100
typedef struct rn_redis_command_t {
  const char* words[RN_REDIS_MAX_WORDS];
  size_t sizes[RN_REDIS_MAX_WORDS];
  int count;
} rn_redis_command_t;
void rn_redis_word(rn_redis_command_t* command, rn_str_t word);

typedef struct rn_redis_link_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  const rn_hiredis_t* hiredis;
  rn_socket_t* socket;  // Owned; NULL: not connected
  redisReader* reader;  // Owned, with |socket|
  rn_strbuf_t unsent;
} rn_redis_link_t;

// In a zeroed struct with |env| and |allocator|.
void rn_redis_link_init(rn_redis_link_t* link);
void rn_redis_link_deinit(rn_redis_link_t* link);  // closes

// Connects to |config|, unless it is connected. UNAVAILABLE if that may succeed later,
// INVALID_ARGUMENT for a bad address and for what Redis refuses: a password or a database.
RN_MUST_USE rn_status_t rn_redis_connect(rn_redis_link_t* link, const rn_redis_config_t* config);
void rn_redis_close(rn_redis_link_t* link);

// Sends a command; |*out| is its reply, which the caller frees with rn_redis_free. A failure closes
// the connection, except for INVALID_ARGUMENT: Redis' own error.
RN_MUST_USE rn_status_t rn_redis_call(rn_redis_link_t* link, const rn_redis_command_t* command,
                                      redisReply** out);
// The same, for commands whose reply is of no interest.
RN_MUST_USE rn_status_t rn_redis_do(rn_redis_link_t* link, const rn_redis_command_t* command);
// The halves of rn_redis_call, for several commands at once: each that is put needs a take.
void rn_redis_put(rn_redis_link_t* link, const rn_redis_command_t* command);
RN_MUST_USE rn_status_t rn_redis_take(rn_redis_link_t* link, redisReply** out);
void rn_redis_free(rn_redis_link_t* link, redisReply* reply);  // NULL is fine
// The bytes of a string; "" for other replies.
rn_str_t rn_redis_text(const redisReply* reply);

#endif  // RUNNEL_SERVE_SELECT_REDIS_LINK_H_
