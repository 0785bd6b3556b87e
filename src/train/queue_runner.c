// Queue runners: one thread per enqueue op runs it until the input ends or a stop is requested. The
// last thread to end closes the queue. One more thread cancels pending enqueues on a stop.
#include "train/queue_runner.h"

#include <stdatomic.h>

#include "train/store.h"
#include "train/words.h"

// One queue runner, shared by its threads and freed by the last.
typedef struct crew_t {
  rn_allocator_t allocator;
  rn_session_t* session;  // Borrowed
  rn_node_t *close, *cancel;
  _Atomic int refs;       // one per thread, and one of the thread that starts them
  _Atomic int enqueuers;  // threads that still enqueue
} crew_t;

typedef struct hand_t {
  crew_t* crew;
  rn_node_t* enqueue;
} hand_t;

static void release(crew_t* crew) {
  if (atomic_fetch_sub_explicit(&crew->refs, 1, memory_order_acq_rel) == 1)
    RN_FREE(crew->allocator, crew);
}

RN_API bool rn_add_queue_runner(rn_scope_t* scope, rn_edge_t queue, rn_node_t* const* enqueues,
                                int count) {
  rn_store_t* store = rn_store_of(scope);
  if (!store || !rn_is_edge(scope, queue, "rn_add_queue_runner", "the queue")) return false;
  bool is_whole = count > 0 && enqueues;
  for (int i = 0; is_whole && i < count; ++i) is_whole = enqueues[i] != NULL;
  if (!is_whole) {
    rn_refuse(scope, "rn_add_queue_runner: an enqueue is missing");
    return false;
  }
  rn_runner_t runner = {.count = count};
  rn_status_t status = RN_ARENA_ARRAY(&store->arena, (size_t)count, &runner.enqueues);
  if (rn_ok(status)) {
    memcpy(runner.enqueues, enqueues, (size_t)count * sizeof *enqueues);
    runner.close = rn_QueueCloseV2(scope, queue);
    runner.cancel = rn_QueueCloseV2(scope, queue, .cancel_pending_enqueues = true);
    status = rn_vec_push(&store->runners, store->allocator, runner);
  }
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  return rn_scope_ok(scope);
}

static rn_status_t run_node(rn_session_t* session, rn_node_t* node) {
  rn_signature_t signature = {.targets = &node, .target_count = 1};
  return rn_session_run(session, &signature, NULL, NULL, NULL);
}

static void enqueue_all(rn_coordinator_t* coordinator, void* arg) {
  hand_t* hand = arg;
  crew_t* crew = hand->crew;
  rn_status_t status = RN_OK;
  while (rn_ok(status) && !rn_coordinator_should_stop(coordinator))
    status = run_node(crew->session, hand->enqueue);
  rn_code_t code = rn_status_code(status);
  bool is_end = code == RN_CODE_OUT_OF_RANGE || code == RN_CODE_CANCELLED;
  if (!rn_ok(status) && !is_end)
    rn_coordinator_report(coordinator, (int)code, rn_status_message(status));
  rn_status_free(status);
  // The input has ended for all threads: dequeues return what is left, then OUT_OF_RANGE.
  if (atomic_fetch_sub(&crew->enqueuers, 1) == 1)
    rn_status_free(run_node(crew->session, crew->close));
  RN_FREE(crew->allocator, hand);
  release(crew);
}

static void cancel_at_stop(rn_coordinator_t* coordinator, void* arg) {
  crew_t* crew = arg;
  // No thread wakes this one when all enqueuers are done, so it polls.
  while (atomic_load(&crew->enqueuers) > 0)
    if (rn_coordinator_wait_for_stop(coordinator, 0.05)) break;
  if (atomic_load(&crew->enqueuers) > 0) rn_status_free(run_node(crew->session, crew->cancel));
  release(crew);
}

static rn_status_t start_hand(rn_coordinator_t* coordinator, crew_t* crew, rn_node_t* enqueue) {
  hand_t* hand = NULL;
  rn_status_t status = RN_NEW(crew->allocator, &hand);
  if (rn_ok(status)) {
    *hand = (hand_t){crew, enqueue};
    atomic_fetch_add(&crew->refs, 1);
    if (rn_coordinator_start(coordinator, enqueue->name.data, enqueue_all, hand)) return RN_OK;
    RN_FREE(crew->allocator, hand);
    release(crew);
    status = rn_resource_exhausted("Cannot start a thread for '%s'", enqueue->name.data);
  }
  atomic_fetch_sub(&crew->enqueuers, 1);
  return status;
}

static rn_status_t start_crew(rn_session_t* session, rn_coordinator_t* coordinator,
                              const rn_runner_t* runner) {
  crew_t* crew = NULL;
  rn_allocator_t allocator = rn_session_graph(session)->allocator;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &crew));
  crew->allocator = allocator;
  crew->session = session;
  crew->close = runner->close;
  crew->cancel = runner->cancel;
  atomic_init(&crew->refs, 2);
  atomic_init(&crew->enqueuers, runner->count);
  rn_status_t status = RN_OK;
  if (!rn_coordinator_start(coordinator, "cancel", cancel_at_stop, crew)) {
    release(crew);
    status = rn_resource_exhausted("Cannot start a thread to close a queue");
  }
  for (int i = 0; i < runner->count; ++i) {
    if (rn_ok(status))
      status = start_hand(coordinator, crew, runner->enqueues[i]);
    else
      atomic_fetch_sub(&crew->enqueuers, 1);
  }
  release(crew);
  return status;
}

rn_status_t rn_queue_runners_start(rn_session_t* session, rn_graph_t* graph,
                                   rn_coordinator_t* coordinator, int* out_count) {
  rn_store_t* store = graph->attachment;
  *out_count = 0;
  if (rn_session_graph(session) != graph)
    return rn_invalid_argument("rn_start_queue_runners: the session has another graph");
  for (size_t i = 0; store && i < store->runners.count; ++i) {
    RN_RETURN_IF_ERROR(start_crew(session, coordinator, &store->runners.items[i]));
    *out_count += store->runners.items[i].count;
  }
  return RN_OK;
}
