// Numbers of steps: see sequences.h.
#include "dist/collective/sequences.h"

#include <stdio.h>

#include "base/container.h"
#include "base/map.h"
#include "base/sync.h"
#include "proto/worker.pb.h"
#include "wire/scan.h"
#include "wire/writer.h"

// Stock leaves the highest bits of numbers free.
#define STEP_MASK ((INT64_C(1) << 57) - 1)
// Graphs that are remembered; a client that makes graphs without end starts over.
#define MAX_GRAPHS 65536

typedef struct sequence_t {
  int64_t next;     // number of the next step
  int64_t running;  // steps that have not ended; the first of them is |next| - |running|
  char key[20];
} sequence_t;

struct rn_sequences_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards what follows
  rn_map_t graphs;
};

rn_status_t rn_sequences_create(const rn_env_t* env, rn_allocator_t allocator,
                                rn_sequences_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  (*out)->env = env;
  (*out)->allocator = allocator;
  rn_mutex_init(&(*out)->mutex);
  rn_map_init(&(*out)->graphs, allocator);
  return RN_OK;
}

static void clear_locked(rn_sequences_t* sequences) {
  size_t at = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&sequences->graphs, &at));)
    RN_FREE(sequences->allocator, (sequence_t*)entry->value);
  rn_map_clear(&sequences->graphs);
  rn_map_init(&sequences->graphs, sequences->allocator);
}

void rn_sequences_destroy(rn_sequences_t* sequences) {
  if (!sequences) return;
  clear_locked(sequences);
  rn_map_clear(&sequences->graphs);
  rn_mutex_destroy(&sequences->mutex);
  RN_FREE(sequences->allocator, sequences);
}

void rn_sequences_forget(rn_sequences_t* sequences) {
  rn_mutex_lock(&sequences->mutex);
  clear_locked(sequences);
  rn_mutex_unlock(&sequences->mutex);
}

static sequence_t* find_locked(rn_sequences_t* sequences, int64_t graph) {
  char key[sizeof((sequence_t*)0)->key];
  snprintf(key, sizeof key, "%016llx", (unsigned long long)graph);
  return rn_map_get(&sequences->graphs, rn_str(key));
}

// The sequence of |graph|, which begins with |first| if it is new.
static rn_status_t get_locked(rn_sequences_t* sequences, int64_t graph, int64_t first,
                              sequence_t** out) {
  *out = find_locked(sequences, graph);
  if (*out) return RN_OK;
  if (sequences->graphs.count >= MAX_GRAPHS) clear_locked(sequences);
  sequence_t* sequence = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(sequences->allocator, &sequence));
  snprintf(sequence->key, sizeof sequence->key, "%016llx", (unsigned long long)graph);
  sequence->next = first & STEP_MASK;
  rn_status_t status = rn_map_put(&sequences->graphs, rn_str(sequence->key), sequence);
  if (rn_ok(status))
    *out = sequence;
  else
    RN_FREE(sequences->allocator, sequence);
  return status;
}

static int64_t take_locked(sequence_t* sequence) {
  int64_t step = sequence->next;
  sequence->next = (step + 1) & STEP_MASK;
  sequence->running++;
  return step;
}

static int64_t random_step(const rn_sequences_t* sequences) {
  return (int64_t)(sequences->env->random(sequences->env->self) & (uint64_t)STEP_MASK);
}

// Takes a number of a sequence that begins with |first| if it is new.
static void take(rn_sequence_wait_t* wait, int64_t first) {
  rn_sequences_t* sequences = wait->sequences;
  sequence_t* sequence = NULL;
  rn_mutex_lock(&sequences->mutex);
  rn_status_t status = get_locked(sequences, wait->graph, first, &sequence);
  int64_t step = rn_ok(status) ? take_locked(sequence) : 0;
  rn_mutex_unlock(&sequences->mutex);
  wait->fn(wait, step, status);
}

static void on_answer(rn_call_t* call, rn_status_t status) {
  rn_sequence_wait_t* wait = RN_CONTAINER_OF(call, rn_sequence_wait_t, call.call);
  rn_str_t answer = rn_field_bytes(rn_strbuf_view(&wait->call.sequences),
                                   rn_pb_GetStepSequenceResponse_step_sequence_field);
  int64_t first = (int64_t)rn_field_value(answer, rn_pb_StepSequence_next_step_id_field);
  if (rn_ok(status) && !answer.size)
    status = rn_internal("The leader of collectives gave no number for a step");
  rn_strbuf_clear(&wait->call.sequences);
  if (rn_ok(status))
    take(wait, first);
  else
    wait->fn(wait, 0, status);
}

void rn_sequences_next(rn_sequences_t* sequences, rn_worker_t* leader, int64_t graph,
                       rn_cancel_t* cancel, rn_sequence_wait_t* wait) {
  wait->sequences = sequences;
  wait->graph = graph;
  rn_mutex_lock(&sequences->mutex);
  bool is_known = find_locked(sequences, graph);
  rn_mutex_unlock(&sequences->mutex);
  if (is_known || !leader) {
    take(wait, random_step(sequences));
    return;
  }
  wait->call = (rn_get_step_sequence_t){.call = {.done = on_answer,
                                                 .deadline_ns = INT64_MAX,
                                                 .cancel = cancel,
                                                 .waits_for_ready = true},
                                        .graphs = &wait->graph,
                                        .graph_count = 1};
  rn_strbuf_init(&wait->call.sequences, sequences->allocator);
  leader->vtable->get_step_sequence(leader, &wait->call);
}

void rn_sequences_retire(rn_sequences_t* sequences, int64_t graph, int64_t step) {
  rn_mutex_lock(&sequences->mutex);
  sequence_t* sequence = find_locked(sequences, graph);
  // It may have been forgotten meanwhile, and begun anew.
  bool is_of_it = sequence && ((sequence->next - 1 - step) & STEP_MASK) < sequence->running;
  if (is_of_it) sequence->running--;
  rn_mutex_unlock(&sequences->mutex);
}

// A task that begins must join the steps that wait for it.
void rn_sequences_serve(rn_sequences_t* sequences, rn_get_step_sequence_t* call) {
  rn_status_t status = RN_OK;
  rn_mutex_lock(&sequences->mutex);
  for (size_t i = 0; rn_ok(status) && i < call->graph_count; ++i) {
    sequence_t* sequence = NULL;
    status = get_locked(sequences, call->graphs[i], random_step(sequences), &sequence);
    if (!rn_ok(status)) break;
    size_t mark = rn_pb_begin(&call->sequences, rn_pb_GetStepSequenceResponse_step_sequence_field);
    if (call->graphs[i])
      rn_pb_put_uint(&call->sequences, rn_pb_StepSequence_graph_key_field,
                     (uint64_t)call->graphs[i]);
    rn_pb_put_uint(&call->sequences, rn_pb_StepSequence_next_step_id_field,
                   (uint64_t)((sequence->next - sequence->running) & STEP_MASK));
    rn_pb_end(&call->sequences, mark);
  }
  rn_mutex_unlock(&sequences->mutex);
  if (rn_ok(status)) status = rn_strbuf_status(&call->sequences);
  rn_call_done(&call->call, status);
}
