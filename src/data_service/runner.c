// Tasks at work: see runner.h.
#include "data_service/runner.h"

#include <pthread.h>

#include "base/container.h"
#include "base/sync.h"
#include "data_service/element.h"
#include "net/tensor_codec.h"
#include "tensor/variant.h"
#include "wire/decode.h"
#include "wire/scan.h"
#include "wire/writer.h"

#define SKIP_NS 100000000  // a round is skipped if its elements take longer
#define MAX_WAITING 100000

// An element, as the GetElementResponse that carries it; or why there is none.
typedef struct ds_item_t {
  rn_buffer_t* bytes;
  rn_status_t status;
} ds_item_t;

typedef struct ds_waiting_t {
  rn_rpc_in_t* call;
  int64_t consumer, round;
  bool may_skip, has_skipped;
  size_t trainer;
} ds_waiting_t;

// A trainer of the cross-trainer cache: which element it gets next.
typedef struct ds_trainer_t {
  char* id;  // Owned
  size_t size;
  int64_t next;
} ds_trainer_t;

struct rn_ds_runner_t {
  _Atomic int refs;
  rn_ds_runner_options_t options;
  rn_arena_t arena;
  rn_pb_data_TaskDef_t* task;
  rn_ds_pipeline_t* pipeline;  // of the thread
  pthread_t thread;
  bool has_thread;
  rn_timer_t timer;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t more;
  bool is_stopping, is_loaded, is_at_end, has_told;
  rn_status_t failure;  // why the dataset could not be loaded
  RN_VEC(ds_item_t) ready;
  RN_VEC(ds_waiting_t) waiting;
  int64_t made;  // elements so far
  // Rounds.
  int64_t round, first_round, filling_ns;
  // The cache: |ready| begins with the element |first|.
  RN_VEC(ds_trainer_t) trainers;
  int64_t first;
  size_t cached_bytes;
};

static bool has_rounds(const rn_ds_runner_t* self) {
  return self->task->optional_num_consumers_case != 0;
}
static int64_t consumers_of(const rn_ds_runner_t* self) { return self->task->num_consumers; }

static void reply(rn_ds_runner_t* self, rn_rpc_in_t* call, rn_status_t status, rn_buffer_t* bytes) {
  rn_message_t message;
  rn_message_init(&message, self->options.allocator);
  if (rn_ok(status) && bytes)
    status = rn_message_lend(&message, bytes, rn_str_n(bytes->data, bytes->size));
  rn_rpc_reply(call, status, &message);
}

static void reply_flag(rn_ds_runner_t* self, rn_rpc_in_t* call, uint32_t field) {
  rn_message_t message;
  rn_strbuf_t body;
  rn_message_init(&message, self->options.allocator);
  rn_strbuf_init(&body, self->options.allocator);
  rn_pb_put_uint(&body, field, 1);
  rn_status_t status = rn_message_add(&message, rn_strbuf_view(&body));
  rn_strbuf_clear(&body);
  rn_rpc_reply(call, status, &message);
}

static void take_out(rn_ds_runner_t* self, size_t i) {
  memmove(&self->waiting.items[i], &self->waiting.items[i + 1],
          (--self->waiting.count - i) * sizeof *self->waiting.items);
}

// Removes the first |count| elements.
static void drop_ready(rn_ds_runner_t* self, size_t count) {
  if (!count) return;
  for (size_t i = 0; i < count; ++i) {
    rn_buffer_release(self->ready.items[i].bytes);
    rn_status_free(self->ready.items[i].status);
  }
  self->ready.count -= count;
  memmove(self->ready.items, self->ready.items + count,
          self->ready.count * sizeof *self->ready.items);
  rn_cond_signal(&self->more);
}

static void tell_end(rn_ds_runner_t* self, rn_rpc_in_t* call) {
  reply_flag(self, call, RN_DS_ELEMENT_END);
  if (self->has_told) return;
  self->has_told = true;
  self->options.ended(self->options.self, self->task->task_id);
}

// First come, first served.
static void serve_any(rn_ds_runner_t* self) {
  while (self->waiting.count) {
    ds_waiting_t first = self->waiting.items[0];
    if (rn_is_cancelled(&first.call->cancel)) {
      reply(self, first.call, rn_cancelled("The client has gone"), NULL);
    } else if (self->ready.count) {
      reply(self, first.call, rn_status_copy(self->ready.items[0].status),
            self->ready.items[0].bytes);
      drop_ready(self, 1);
    } else if (self->is_at_end) {
      tell_end(self, first.call);
    } else if (first.may_skip) {
      reply_flag(self, first.call, RN_DS_ELEMENT_SKIP);
    } else {
      return;
    }
    take_out(self, 0);
  }
}

// The cross-trainer cache.
static void serve_trainers(rn_ds_runner_t* self) {
  for (size_t i = 0; i < self->waiting.count;) {
    ds_waiting_t each = self->waiting.items[i];
    ds_trainer_t* trainer = &self->trainers.items[each.trainer];
    if (trainer->next < self->first) trainer->next = self->first;  // it fell behind the window
    size_t at = (size_t)(trainer->next - self->first);
    if (at < self->ready.count) {
      reply(self, each.call, rn_status_copy(self->ready.items[at].status),
            self->ready.items[at].bytes);
      trainer->next++;
    } else if (self->is_at_end) {
      reply(self, each.call,
            rn_invalid_argument("Cross-trainer caching requires the input dataset to be infinite. "
                                "However, it reached the end of sequence."),
            NULL);
    } else {
      ++i;
      continue;
    }
    take_out(self, i);
  }
}

static size_t count_round(const rn_ds_runner_t* self, int64_t round) {
  size_t count = 0;
  for (size_t i = 0; i < self->waiting.count; ++i) count += self->waiting.items[i].round == round;
  return count;
}

// Answers all consumers of |round|: each with its element, or that the round is skipped.
static void end_round(rn_ds_runner_t* self, int64_t round, bool is_skipped) {
  for (size_t i = 0; i < self->waiting.count;) {
    ds_waiting_t each = self->waiting.items[i];
    if (each.round != round) {
      ++i;
      continue;
    }
    if (is_skipped)
      reply_flag(self, each.call, RN_DS_ELEMENT_SKIP);
    else
      reply(self, each.call, rn_status_copy(self->ready.items[each.consumer].status),
            self->ready.items[each.consumer].bytes);
    take_out(self, i);
  }
  self->round = round;
  self->filling_ns = 0;
  if (!is_skipped) drop_ready(self, (size_t)consumers_of(self));
}

// When consumers have just joined, some wait in the first round and all others in the next one.
static bool is_partial(const rn_ds_runner_t* self, bool* out_is_skipped) {
  if (self->round >= 0 || !self->waiting.count) return false;
  size_t now = count_round(self, self->first_round),
         next = count_round(self, self->first_round + 1);
  *out_is_skipped = false;
  for (size_t i = 0; i < self->waiting.count; ++i)
    *out_is_skipped |=
        self->waiting.items[i].round == self->first_round + 1 && self->waiting.items[i].has_skipped;
  return now && next && (int64_t)(now + next) == consumers_of(self);
}

static void serve_rounds(rn_ds_runner_t* self) {
  size_t n = (size_t)consumers_of(self);
  bool is_skipped = false, is_ready = self->ready.count >= n;
  if (self->is_at_end && !is_ready) {
    while (self->waiting.count) {
      tell_end(self, self->waiting.items[0].call);
      take_out(self, 0);
    }
    return;
  }
  if (is_partial(self, &is_skipped)) {
    if (is_ready || is_skipped) end_round(self, self->first_round, is_skipped);
    return;
  }
  for (size_t i = 0; i < self->waiting.count; ++i) {
    int64_t round = self->waiting.items[i].round;
    if (count_round(self, round) < n) continue;
    int64_t now_ns = rn_loop_now(self->options.loop);
    bool may_skip = true;
    for (size_t k = 0; k < self->waiting.count; ++k)
      if (self->waiting.items[k].round == round) may_skip &= self->waiting.items[k].may_skip;
    if (!self->filling_ns) {
      self->filling_ns = now_ns;
      if (!is_ready && may_skip)
        rn_status_free(rn_loop_set_timer(self->options.loop, &self->timer, now_ns + SKIP_NS));
    }
    is_skipped = !is_ready && may_skip && now_ns - self->filling_ns >= SKIP_NS;
    if (is_ready || is_skipped) end_round(self, round, is_skipped);
    return;
  }
}

static void serve(rn_ds_runner_t* self) {
  if (!rn_ok(self->failure) || self->is_stopping) {
    for (size_t i = 0; i < self->waiting.count; ++i)
      reply(self, self->waiting.items[i].call,
            self->is_stopping ? rn_cancelled("Worker is shutting down")
                              : rn_status_copy(self->failure),
            NULL);
    self->waiting.count = 0;
  } else if (!self->is_loaded) {
    return;
  } else if (has_rounds(self)) {
    serve_rounds(self);
  } else if (self->task->use_cross_trainer_cache) {
    serve_trainers(self);
  } else {
    serve_any(self);
  }
}

static void on_timer(rn_timer_t* timer) {
  rn_ds_runner_t* self = RN_CONTAINER_OF(timer, rn_ds_runner_t, timer);
  rn_mutex_lock(&self->mutex);
  serve(self);
  rn_mutex_unlock(&self->mutex);
}

// The thread.
static rn_status_t load(rn_ds_runner_t* self) {
  rn_strbuf_t def;
  rn_strbuf_init(&def, self->options.allocator);
  rn_str_t bytes = rn_field_bytes(self->options.task, rn_pb_data_TaskDef_dataset_def_field);
  rn_status_t status = RN_OK;
  if (self->task->dataset_case != rn_pb_data_TaskDef_dataset_def_field) {
    status = self->options.read(self->options.self, self->task, &def);
    bytes = rn_strbuf_view(&def);
  }
  rn_ds_pipeline_t* pipeline = NULL;
  if (rn_ok(status))
    status = rn_ds_pipeline_create(self->options.env, self->options.allocator,
                                   rn_field_bytes(bytes, rn_pb_data_DatasetDef_graph_field),
                                   self->task, self->options.dispatcher, &pipeline);
  rn_strbuf_clear(&def);
  rn_mutex_lock(&self->mutex);
  self->pipeline = pipeline;  // from now on, rn_ds_runner_stop cancels it
  if (rn_ok(status) && self->is_stopping) status = rn_cancelled("Worker is shutting down");
  rn_mutex_unlock(&self->mutex);
  int64_t cardinality = -1;
  if (rn_ok(status)) status = rn_ds_pipeline_start(pipeline);
  if (rn_ok(status) && has_rounds(self))
    status = rn_ds_pipeline_cardinality(pipeline, &cardinality);
  if (rn_ok(status) && cardinality >= 0)
    status = rn_failed_precondition(
        "Round robin reads require that the input dataset has infinite cardinality, but the "
        "dataset has cardinality %lld. Consider adding a `.repeat()` transformation to the "
        "dataset.",
        (long long)cardinality);
  return status;
}

// Writes the CompressedElement that |tensor| holds.
static rn_status_t put_compressed(const rn_tensor_t* tensor, rn_strbuf_t* out) {
  const rn_object_t* object = *RN_DATA(tensor, rn_object_t*);
  rn_pb_VariantTensorDataProto_t variant = {0};
  const char* found = "nothing";
  for (const rn_variant_kind_t* const* kind = rn_variant_kinds; object && *kind; ++kind) {
    if (!(*kind)->holds(object)) continue;
    found = (*kind)->type_name;
    if (strcmp(found, "tensorflow.data.CompressedElement") != 0) break;
    rn_arena_t arena;
    rn_arena_init(&arena, out->allocator);
    rn_status_t status = (*kind)->to_proto(object, &arena, &variant);
    if (rn_ok(status)) rn_pb_put_str(out, RN_DS_ELEMENT_COMPRESSED, variant.metadata);
    rn_arena_clear(&arena);
    return rn_ok(status) ? rn_strbuf_status(out) : status;
  }
  return rn_failed_precondition(
      "Expected dataset to produce a CompressedElement variant tensor, but it produced %s", found);
}

static rn_status_t encode(rn_ds_runner_t* self, const rn_tensor_t* element, int count,
                          rn_buffer_t** out) {
  rn_strbuf_t head;
  rn_message_t message;
  rn_strbuf_init(&head, self->options.allocator);
  rn_message_init(&message, self->options.allocator);
  rn_status_t status = RN_OK;
  if (count == 1 && element[0].dtype == RN_VARIANT && element[0].rank == 0) {
    status = put_compressed(&element[0], &head);
  } else {
    rn_encoder_t encoder;
    rn_encoder_open(&encoder, &message);
    for (int i = 0; i < count; ++i)
      rn_encode_tensor(&encoder, rn_pb_data_UncompressedElement_components_field, &element[i]);
    status = rn_encoder_close(&encoder);
    if (rn_ok(status)) rn_pb_put_length(&head, RN_DS_ELEMENT_UNCOMPRESSED, message.size);
    if (rn_ok(status)) rn_message_flatten(&message, &head);
  }
  rn_pb_put_uint(&head, RN_DS_ELEMENT_INDEX, (uint64_t)self->made);
  if (rn_ok(status)) status = rn_strbuf_status(&head);
  if (rn_ok(status)) status = rn_buffer_create(self->options.allocator, RN_UINT8, head.size, out);
  if (rn_ok(status)) memcpy((*out)->data, head.data, head.size);
  rn_message_clear(&message);
  rn_strbuf_clear(&head);
  return status;
}

static ds_item_t make(rn_ds_runner_t* self, bool* out_is_end) {
  ds_item_t item = {0};
  rn_tensor_t* element = NULL;
  int count = 0;
  item.status = rn_ds_pipeline_next(self->pipeline, &element, &count, out_is_end);
  if (!rn_ok(item.status) || *out_is_end) return item;
  item.status = encode(self, element, count, &item.bytes);
  for (int i = 0; i < count; ++i) rn_tensor_clear(&element[i]);
  return item;
}

static bool wants_more(const rn_ds_runner_t* self) {
  if (self->is_at_end) return false;
  if (has_rounds(self)) return (int64_t)self->ready.count < consumers_of(self);
  if (!self->task->use_cross_trainer_cache) return self->ready.count < 1;
  return self->waiting.count > 0;  // those that are left want the next one
}

static void keep(rn_ds_runner_t* self, ds_item_t item) {
  rn_status_t status = rn_vec_push(&self->ready, self->options.allocator, item);
  if (!rn_ok(status)) {
    rn_buffer_release(item.bytes);
    rn_status_free(item.status);
    rn_status_free(self->failure);
    self->failure = status;
    return;
  }
  self->made++;
  if (!self->task->use_cross_trainer_cache) return;
  self->cached_bytes += item.bytes ? item.bytes->size : 0;
  while (self->cached_bytes > self->options.cache_bytes && self->ready.count > 1) {
    self->cached_bytes -= self->ready.items[0].bytes ? self->ready.items[0].bytes->size : 0;
    drop_ready(self, 1);
    self->first++;
  }
}

static void* run(void* arg) {
  rn_ds_runner_t* self = arg;
  rn_status_t failure = load(self);
  rn_mutex_lock(&self->mutex);
  self->failure = failure;
  self->is_loaded = true;
  serve(self);
  while (!self->is_stopping && rn_ok(self->failure)) {
    if (!wants_more(self)) {
      rn_cond_wait(&self->more, &self->mutex);
      continue;
    }
    rn_mutex_unlock(&self->mutex);
    bool is_end = false;
    ds_item_t item = make(self, &is_end);
    rn_mutex_lock(&self->mutex);
    if (is_end)
      self->is_at_end = true;
    else
      keep(self, item);
    serve(self);
  }
  rn_mutex_unlock(&self->mutex);
  return NULL;
}

// Calls.
static rn_status_t find_trainer(rn_ds_runner_t* self, rn_str_t id, size_t* out) {
  for (*out = 0; *out < self->trainers.count; ++*out)
    if (rn_str_eq(id, rn_str_n(self->trainers.items[*out].id, self->trainers.items[*out].size)))
      return RN_OK;
  ds_trainer_t trainer = {.size = id.size, .next = self->first};
  if (*out >= MAX_WAITING)
    return rn_resource_exhausted("A task has %d trainers at most", MAX_WAITING);
  RN_RETURN_IF_ERROR(rn_str_dup(self->options.allocator, id, &trainer.id));
  rn_status_t status = rn_vec_push(&self->trainers, self->options.allocator, trainer);
  if (!rn_ok(status)) rn_free(self->options.allocator, trainer.id, trainer.size + 1);
  return status;
}

static rn_status_t check_round(rn_ds_runner_t* self, const ds_waiting_t* wanted,
                               const rn_pb_data_GetElementRequest_t* request) {
  if (!request->optional_consumer_index_case || !request->optional_round_index_case ||
      wanted->consumer < 0 || wanted->round < 0 || wanted->round == INT64_MAX)
    return rn_failed_precondition(
        "RoundRobinTaskRunner needs to know the consumer index and element index of each request.");
  if (wanted->consumer >= consumers_of(self))
    return rn_failed_precondition(
        "Requesting data for consumer index %lld, but the task is configured for only %lld "
        "consumers",
        (long long)wanted->consumer, (long long)consumers_of(self));
  if (self->round >= wanted->round)
    return rn_failed_precondition(
        "Consumer %lld requested data for round %lld, but the current round has already reached "
        "%lld. This may indicate that the consumer was restarted with the same iteration name.`",
        (long long)wanted->consumer, (long long)wanted->round, (long long)self->round);
  // A call that the client has made again takes the place of its first one.
  for (size_t i = 0; i < self->waiting.count; ++i) {
    const ds_waiting_t* each = &self->waiting.items[i];
    if (each->consumer != wanted->consumer || each->round != wanted->round) continue;
    reply(self, each->call, rn_cancelled("The consumer has asked again"), NULL);
    take_out(self, i);
    break;
  }
  if (wanted->round < self->first_round) self->first_round = wanted->round;
  return RN_OK;
}

static rn_status_t add_waiting(rn_ds_runner_t* self, ds_waiting_t wanted,
                               const rn_pb_data_GetElementRequest_t* request) {
  if (self->waiting.count >= MAX_WAITING)
    return rn_resource_exhausted("%d calls wait for elements of the task", MAX_WAITING);
  if (has_rounds(self)) RN_RETURN_IF_ERROR(check_round(self, &wanted, request));
  if (self->task->use_cross_trainer_cache)
    RN_RETURN_IF_ERROR(find_trainer(self, request->trainer_id, &wanted.trainer));
  return rn_vec_push(&self->waiting, self->options.allocator, wanted);
}

void rn_ds_runner_get(rn_ds_runner_t* self, rn_rpc_in_t* call,
                      const rn_pb_data_GetElementRequest_t* request) {
  ds_waiting_t wanted = {.call = call,
                         .consumer = request->consumer_index,
                         .round = request->round_index,
                         .may_skip = request->allow_skip,
                         .has_skipped = request->skipped_previous_round};
  rn_mutex_lock(&self->mutex);
  rn_status_t status = add_waiting(self, wanted, request);
  if (rn_ok(status)) {
    serve(self);
    rn_cond_signal(&self->more);
  }
  rn_mutex_unlock(&self->mutex);
  if (!rn_ok(status)) reply(self, call, status, NULL);
}

rn_status_t rn_ds_runner_create(const rn_ds_runner_options_t* options, rn_ds_runner_t** out) {
  *out = NULL;
  rn_ds_runner_t* self = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &self));
  self->refs = 1;
  self->options = *options;
  self->round = -1;
  self->first_round = INT64_MAX;
  self->timer.fn = on_timer;
  rn_arena_init(&self->arena, options->allocator);
  rn_mutex_init(&self->mutex);
  rn_cond_init(&self->more);
  rn_status_t status = rn_arena_str(&self->arena, options->task, &self->options.task);
  if (rn_ok(status))
    status = rn_arena_str(&self->arena, options->dispatcher, &self->options.dispatcher);
  if (rn_ok(status))
    status = RN_PB_DECODE(data_TaskDef, self->options.task, NULL, &self->arena, &self->task);
  // A round has an element for each of them, and all of them wait for it at once.
  if (rn_ok(status) && has_rounds(self) &&
      (consumers_of(self) < 1 || consumers_of(self) > MAX_WAITING))
    status = rn_invalid_argument("A task has 1 to %d consumers, got %lld", MAX_WAITING,
                                 (long long)consumers_of(self));
  if (rn_ok(status)) {
    self->has_thread = pthread_create(&self->thread, NULL, run, self) == 0;
    if (!self->has_thread) status = rn_resource_exhausted("A task's thread cannot be started");
  }
  if (!rn_ok(status)) {
    rn_ds_runner_stop(self);
    return status;
  }
  *out = self;
  return RN_OK;
}

void rn_ds_runner_stop(rn_ds_runner_t* self) {
  if (!self) return;
  rn_mutex_lock(&self->mutex);
  self->is_stopping = true;
  rn_cond_signal(&self->more);
  rn_ds_pipeline_t* pipeline = self->pipeline;
  serve(self);
  rn_mutex_unlock(&self->mutex);
  rn_ds_pipeline_cancel(pipeline);
  if (self->has_thread) pthread_join(self->thread, NULL);
  rn_loop_clear_timer(self->options.loop, &self->timer);
  rn_ds_runner_release(self);
}

void rn_ds_runner_retain(rn_ds_runner_t* self) { self->refs++; }

void rn_ds_runner_release(rn_ds_runner_t* self) {
  if (--self->refs > 0) return;
  drop_ready(self, self->ready.count);
  rn_ds_pipeline_destroy(self->pipeline);
  for (size_t i = 0; i < self->trainers.count; ++i)
    rn_free(self->options.allocator, self->trainers.items[i].id, self->trainers.items[i].size + 1);
  rn_vec_free(&self->trainers, self->options.allocator);
  rn_vec_free(&self->ready, self->options.allocator);
  rn_vec_free(&self->waiting, self->options.allocator);
  rn_status_free(self->failure);
  rn_cond_destroy(&self->more);
  rn_mutex_destroy(&self->mutex);
  rn_arena_clear(&self->arena);
  RN_FREE(self->options.allocator, self);
}
