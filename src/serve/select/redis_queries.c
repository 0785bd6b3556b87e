// See redis_queries.h.
#include "serve/select/redis_queries.h"

#include <stdio.h>

#include "serve/select/redis_link.h"
#include "serve/select/store_saver.h"

enum {
  AT_ONCE = 256,     // queries or claims whose commands are sent together
  MAX_RETRIES = 64,  // the longest pause after failures, in first pauses
  MAX_NAME = 256,
};

typedef enum rn_redis_write_kind_t { PUT, APPEND, CLAIMED } rn_redis_write_kind_t;

// What is to be written.
typedef struct rn_redis_write_t {
  struct rn_redis_write_t* next;
  rn_redis_write_kind_t kind;
  rn_redis_query_name_t name;
  int64_t leaving;
  size_t size;
  char bytes[];
} rn_redis_write_t;

struct rn_redis_queries_t {
  rn_redis_queries_options_t options;
  rn_allocator_t allocator;
  char seconds[24];            // how long queries are kept, as text
  rn_redis_link_t link;        // of the thread, like the rest up to the saver
  rn_redis_command_t command;  // scratch
  rn_redis_command_t removal;  // scratch
  char names[AT_ONCE][MAX_NAME], leaving[AT_ONCE][MAX_NAME];  // scratch
  int64_t retry;  // pause after a failure; 0: the last round did not fail

  rn_store_saver_t saver;  // its lock guards the rest; only the thread takes out
  rn_redis_write_t *first_write, *last_write;
  rn_redis_claim_t *first_claim, *last_claim;
  size_t waiting_bytes;
  bool is_stopped;
  rn_metric_series_t* drop_count;
};

static int64_t now(const rn_redis_queries_t* queries) {
  return queries->options.env->now_ns(queries->options.env->self);
}

static void set_name(const rn_redis_queries_t* queries, rn_redis_query_name_t name,
                     char out[MAX_NAME]) {
  rn_str_t prefix = rn_redis_prefix(queries->options.config);
  snprintf(out, MAX_NAME, "%.*squery/%lld/%llx", RN_STR_ARGS(prefix), (long long)name.id,
           (unsigned long long)name.app);
}

static size_t write_size(const rn_redis_write_t* write) { return sizeof *write + write->size; }

// Callers.

static void add_write_locked(rn_redis_queries_t* queries, rn_redis_write_t* write) {
  *(queries->last_write ? &queries->last_write->next : &queries->first_write) = write;
  queries->last_write = write;
  queries->waiting_bytes += write_size(write);
}

static void drop(rn_redis_queries_t* queries) { rn_series_add(queries->drop_count, 1); }

static void add_write(rn_redis_queries_t* queries, rn_redis_write_kind_t kind,
                      rn_redis_query_name_t name, int64_t leaving, rn_str_t bytes) {
  rn_redis_write_t* write = NULL;
  rn_status_t status =
      rn_alloc_zeroed(queries->allocator, sizeof *write + bytes.size, (void**)&write);
  if (!rn_ok(status)) {
    rn_status_free(status);
    drop(queries);
    return;
  }
  write->kind = kind;
  write->name = name;
  write->leaving = leaving;
  write->size = bytes.size;
  if (bytes.size) memcpy(write->bytes, bytes.data, bytes.size);
  rn_mutex_lock(&queries->saver.mutex);
  bool fits = !queries->is_stopped &&
              queries->waiting_bytes + write_size(write) <= queries->options.max_waiting;
  bool was_empty = !queries->first_write && !queries->first_claim;
  if (fits) add_write_locked(queries, write);
  if (fits && was_empty) rn_cond_signal(&queries->saver.wake);
  rn_mutex_unlock(&queries->saver.mutex);
  if (fits) return;
  rn_free(queries->allocator, write, write_size(write));
  drop(queries);
}

void rn_redis_queries_put(rn_redis_queries_t* queries, rn_redis_query_name_t name, int64_t leaving,
                          rn_str_t bytes) {
  add_write(queries, PUT, name, leaving, bytes);
}

void rn_redis_queries_append(rn_redis_queries_t* queries, rn_redis_query_name_t name,
                             rn_str_t bytes) {
  add_write(queries, APPEND, name, 0, bytes);
}

// Ends a claim of one's own query without Redis, which is told when it is back.
static void claim_alone(rn_redis_queries_t* queries, rn_redis_claim_t* claim) {
  add_write(queries, CLAIMED, claim->name, 0, queries->options.claimed);
  claim->done(claim, RN_STR(""));
}

static void add_claim_locked(rn_redis_queries_t* queries, rn_redis_claim_t* claim) {
  claim->next = NULL;
  *(queries->last_claim ? &queries->last_claim->next : &queries->first_claim) = claim;
  queries->last_claim = claim;
  queries->waiting_bytes += sizeof *claim;
}

bool rn_redis_queries_claim(rn_redis_queries_t* queries, rn_redis_claim_t* claim) {
  rn_mutex_lock(&queries->saver.mutex);
  bool is_alone = queries->is_stopped || !rn_ok(queries->saver.failure);
  bool fits = !queries->is_stopped &&
              queries->waiting_bytes + sizeof *claim <= queries->options.max_waiting;
  bool waits = fits && !(claim->is_own && is_alone);
  bool was_empty = !queries->first_write && !queries->first_claim;
  claim->until_ns = 0;
  if (waits) add_claim_locked(queries, claim);
  if (waits && was_empty) rn_cond_signal(&queries->saver.wake);
  rn_mutex_unlock(&queries->saver.mutex);
  if (!waits && claim->is_own) {
    claim_alone(queries, claim);
    return true;
  }
  return waits;
}

// The thread.

static rn_redis_command_t* begin(rn_redis_queries_t* queries, const char* verb, const char* name) {
  queries->command.count = 0;
  rn_redis_word(&queries->command, rn_str(verb));
  if (name) rn_redis_word(&queries->command, rn_str(name));
  return &queries->command;
}

static int put_expiry(rn_redis_queries_t* queries, const char* name) {
  rn_redis_command_t* command = begin(queries, "EXPIRE", name);
  rn_redis_word(command, rn_str(queries->seconds));
  rn_redis_put(&queries->link, command);
  return 1;
}

// Puts the commands for |write|, and returns how many they are. Only a query that is new is set:
// another front end may have claimed it already.
static int put_write(rn_redis_queries_t* queries, const rn_redis_write_t* write, const char* name) {
  rn_str_t bytes = rn_str_n(write->bytes, write->size);
  bool is_append = write->kind == APPEND;
  rn_redis_command_t* command = begin(queries, is_append ? "APPEND" : "SET", name);
  rn_redis_word(command, bytes);
  if (!is_append) {
    rn_redis_word(command, RN_STR("EX"));
    rn_redis_word(command, rn_str(queries->seconds));
  }
  if (write->kind == PUT) rn_redis_word(command, RN_STR("NX"));
  rn_redis_put(&queries->link, command);
  return 1 + (is_append ? put_expiry(queries, name) : 0);
}

static rn_status_t take_replies(rn_redis_queries_t* queries, int count) {
  for (int i = 0; i < count; ++i) {
    redisReply* reply = NULL;
    RN_RETURN_IF_ERROR(rn_redis_take(&queries->link, &reply));
    rn_redis_free(&queries->link, reply);
  }
  return RN_OK;
}

static void free_writes(rn_redis_queries_t* queries, int count) {
  rn_mutex_lock(&queries->saver.mutex);
  for (int i = 0; i < count; ++i) {
    rn_redis_write_t* write = queries->first_write;
    if (!(queries->first_write = write->next)) queries->last_write = NULL;
    queries->waiting_bytes -= write_size(write);
    rn_free(queries->allocator, write, write_size(write));
  }
  rn_mutex_unlock(&queries->saver.mutex);
}

// Writes the first of what waits. After a failure it is written again: that changes nothing.
static rn_status_t carry_some(rn_redis_queries_t* queries, int* out_count) {
  int count = 0, replies = 0;
  rn_mutex_lock(&queries->saver.mutex);
  rn_redis_write_t *write = queries->first_write, *last = queries->last_write;
  rn_mutex_unlock(&queries->saver.mutex);
  queries->removal.count = 0;
  rn_redis_word(&queries->removal, RN_STR("DEL"));
  for (bool is_last = !write; !is_last && count < AT_ONCE; ++count) {
    set_name(queries, write->name, queries->names[count]);
    replies += put_write(queries, write, queries->names[count]);
    if (write->leaving > 0) {
      rn_redis_query_name_t leaving = {write->leaving, write->name.app};
      set_name(queries, leaving, queries->leaving[count]);
      rn_redis_word(&queries->removal, rn_str(queries->leaving[count]));
    }
    is_last = write == last;  // others may be setting its |next|
    if (!is_last) write = write->next;
  }
  if (queries->removal.count > 1) {
    rn_redis_put(&queries->link, &queries->removal);
    ++replies;
  }
  RN_RETURN_IF_ERROR(take_replies(queries, replies));
  free_writes(queries, count);
  *out_count = count;
  return RN_OK;
}

// Sees which of others' queries are there. One's own need not be.
static rn_status_t look(rn_redis_queries_t* queries, rn_redis_claim_t** claims, int count) {
  rn_redis_command_t* command = begin(queries, "MGET", NULL);
  for (int i = 0; i < count; ++i) {
    set_name(queries, claims[i]->name, queries->names[i]);
    rn_redis_word(command, rn_str(queries->names[i]));
  }
  redisReply* reply = NULL;
  RN_RETURN_IF_ERROR(rn_redis_call(&queries->link, command, &reply));
  bool is_whole = reply->elements == (size_t)count;
  for (int i = 0; i < count && is_whole; ++i)
    claims[i]->is_there = claims[i]->is_own || rn_redis_text(reply->element[i]).size > 0;
  rn_redis_free(&queries->link, reply);
  return is_whole ? RN_OK : rn_unavailable("Redis: MGET gave another number of values");
}

static void end_claim(rn_redis_queries_t* queries, rn_redis_claim_t* claim, rn_str_t found) {
  rn_mutex_lock(&queries->saver.mutex);
  queries->waiting_bytes -= sizeof *claim;
  rn_mutex_unlock(&queries->saver.mutex);
  claim->done(claim, found);
}

// Claims those of |claims| that are there; each that has ended becomes NULL.
static rn_status_t take_claims(rn_redis_queries_t* queries, rn_redis_claim_t** claims, int count) {
  for (int i = 0; i < count; ++i) {
    if (!claims[i]->is_there) continue;
    rn_redis_command_t* command = begin(queries, "GETSET", queries->names[i]);
    rn_redis_word(command, queries->options.claimed);
    rn_redis_put(&queries->link, command);
    put_expiry(queries, queries->names[i]);
  }
  for (int i = 0; i < count; ++i) {
    redisReply* reply = NULL;
    if (!claims[i]->is_there) continue;
    RN_RETURN_IF_ERROR(rn_redis_take(&queries->link, &reply));
    end_claim(queries, claims[i], rn_redis_text(reply));
    claims[i] = NULL;
    rn_redis_free(&queries->link, reply);
    RN_RETURN_IF_ERROR(take_replies(queries, 1));
  }
  return RN_OK;
}

// A claim whose query is not there waits for it: the front end that answered gathers queries, too.
static void wait_or_end(rn_redis_queries_t* queries, rn_redis_claim_t* claim) {
  if (!claim->until_ns) claim->until_ns = now(queries) + queries->options.patience_ns;
  if (now(queries) >= claim->until_ns) {
    end_claim(queries, claim, RN_STR(""));
    return;
  }
  rn_mutex_lock(&queries->saver.mutex);
  queries->waiting_bytes -= sizeof *claim;
  add_claim_locked(queries, claim);
  rn_mutex_unlock(&queries->saver.mutex);
}

// After a failure: what Redis has done with the claims is unknown, and for one's own it matters
// less than learning from them.
static void put_back(rn_redis_queries_t* queries, rn_redis_claim_t* claim) {
  rn_mutex_lock(&queries->saver.mutex);
  queries->waiting_bytes -= sizeof *claim;
  if (!claim->is_own) add_claim_locked(queries, claim);
  rn_mutex_unlock(&queries->saver.mutex);
  if (claim->is_own) claim_alone(queries, claim);
}

static int pop_claims(rn_redis_queries_t* queries, rn_redis_claim_t** out, size_t most) {
  int count = 0;
  rn_mutex_lock(&queries->saver.mutex);
  for (; queries->first_claim && count < AT_ONCE && (size_t)count < most; ++count) {
    out[count] = queries->first_claim;
    if (!(queries->first_claim = out[count]->next)) queries->last_claim = NULL;
  }
  rn_mutex_unlock(&queries->saver.mutex);
  return count;
}

static size_t count_claims(rn_redis_queries_t* queries) {
  size_t count = 0;
  rn_mutex_lock(&queries->saver.mutex);
  for (rn_redis_claim_t* claim = queries->first_claim; claim; claim = claim->next) ++count;
  rn_mutex_unlock(&queries->saver.mutex);
  return count;
}

// Every claim that waits now, once. With |is_failed|, without Redis.
static rn_status_t settle_claims(rn_redis_queries_t* queries, bool is_failed) {
  rn_redis_claim_t* claims[AT_ONCE];
  rn_status_t status = RN_OK;
  for (size_t left = count_claims(queries); left > 0;) {
    int count = pop_claims(queries, claims, left);
    bool works = !is_failed && rn_ok(status);
    left -= (size_t)count;
    if (works) status = look(queries, claims, count);
    if (works && rn_ok(status)) status = take_claims(queries, claims, count);
    works = works && rn_ok(status);
    for (int i = 0; i < count; ++i)
      if (claims[i]) (works ? wait_or_end : put_back)(queries, claims[i]);
  }
  return status;
}

static rn_status_t carry(rn_redis_queries_t* queries) {
  RN_RETURN_IF_ERROR(rn_redis_connect(&queries->link, queries->options.config));
  for (int count = 1; count > 0;) RN_RETURN_IF_ERROR(carry_some(queries, &count));
  return settle_claims(queries, false);
}

static rn_status_t save(void* self) {
  rn_redis_queries_t* queries = self;
  rn_status_t status = carry(queries);
  int64_t first = queries->options.retry_ns, next = queries->retry ? queries->retry * 2 : first;
  queries->retry = rn_ok(status) ? 0 : next > MAX_RETRIES * first ? MAX_RETRIES * first : next;
  if (rn_ok(status)) return RN_OK;
  rn_redis_close(&queries->link);  // replies may still come
  rn_status_free(settle_claims(queries, true));
  return status;
}

static void wait_locked(void* self) {
  rn_redis_queries_t* queries = self;
  rn_store_saver_t* saver = &queries->saver;
  const rn_env_t* clock = rn_env_system();
  int64_t until = clock->now_ns(NULL) + (queries->retry ? queries->retry : INT64_C(3600000000000));
  bool gathers = queries->retry > 0;
  while (!rn_store_saver_is_due_locked(saver)) {
    if (!gathers && (queries->first_write || queries->first_claim)) {
      gathers = true;
      until = clock->now_ns(NULL) + queries->options.commit_ns;
    }
    if (!rn_cond_wait_until(&saver->wake, &saver->mutex, until)) break;
  }
}

// Making and ending.

static bool is_idle(rn_redis_queries_t* queries) {
  rn_mutex_lock(&queries->saver.mutex);
  bool is_idle = !queries->first_write && !queries->first_claim;
  rn_mutex_unlock(&queries->saver.mutex);
  return is_idle;
}

rn_status_t rn_redis_queries_flush(rn_redis_queries_t* queries) {
  do {
    RN_RETURN_IF_ERROR(rn_store_saver_flush(&queries->saver));
  } while (!is_idle(queries));
  return RN_OK;
}

void rn_redis_queries_stop(rn_redis_queries_t* queries) {
  if (queries->is_stopped) return;
  rn_store_saver_stop(&queries->saver);
  rn_mutex_lock(&queries->saver.mutex);
  queries->is_stopped = true;
  rn_mutex_unlock(&queries->saver.mutex);
  rn_redis_claim_t* claims[AT_ONCE];
  for (int count; (count = pop_claims(queries, claims, AT_ONCE)) > 0;)
    for (int i = 0; i < count; ++i) end_claim(queries, claims[i], RN_STR(""));
}

void rn_redis_queries_destroy(rn_redis_queries_t* queries) {
  if (!queries) return;
  rn_redis_queries_stop(queries);
  while (queries->first_write) free_writes(queries, 1);
  rn_redis_link_deinit(&queries->link);
  rn_store_saver_deinit(&queries->saver);
  RN_FREE(queries->allocator, queries);
}

static void set_defaults(rn_redis_queries_t* queries) {
  rn_redis_queries_options_t* options = &queries->options;
  int64_t seconds = options->config->feedback_seconds;
  if (!options->commit_ns) options->commit_ns = INT64_C(20) * 1000000;
  if (!options->patience_ns) options->patience_ns = INT64_C(1000) * 1000000;
  if (!options->retry_ns) options->retry_ns = INT64_C(100) * 1000000;
  if (!options->max_waiting) options->max_waiting = (size_t)16 << 20;
  snprintf(queries->seconds, sizeof queries->seconds, "%lld",
           (long long)(seconds ? seconds : 3600));
}

rn_status_t rn_redis_queries_open(const rn_redis_queries_options_t* options,
                                  rn_redis_queries_t** out) {
  *out = NULL;
  rn_redis_queries_t* queries = NULL;
  if (rn_redis_prefix(options->config).size > MAX_NAME / 2)
    return rn_invalid_argument("Redis: the prefix of keys is longer than %d", MAX_NAME / 2);
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &queries));
  queries->options = *options;
  queries->allocator = options->allocator;
  set_defaults(queries);
  if (options->metrics)
    queries->drop_count = rn_metrics_series(options->metrics, RN_METRIC_STORE_DROPPED,
                                            RN_STR("redis_queries"), RN_STR(""), RN_STR(""));
  queries->link = (rn_redis_link_t){.env = options->env, .allocator = options->allocator};
  rn_redis_link_init(&queries->link);
  queries->saver =
      (rn_store_saver_t){.env = options->env,
                         .what = "Queries that wait for feedback cannot be shared",
                         .failure_count = rn_store_failure_count(options->metrics, "redis_queries"),
                         .wait = wait_locked,
                         .save = save,
                         .self = queries};
  rn_store_saver_init(&queries->saver);
  rn_status_t status = rn_store_saver_start(&queries->saver);
  if (!rn_ok(status)) {
    rn_redis_queries_destroy(queries);
    return status;
  }
  *out = queries;
  return RN_OK;
}
