// Calls in a simulated cluster: see world.h. A message over a cut link is delayed, not lost, as
// over TCP, until an end gives up.
#include <stdio.h>

#include "base/container.h"
#include "dist/sim/world.h"

#define RETRY_NS INT64_C(100000000)  // between attempts over a cut link
#define OVERHEAD 200                 // bytes of a message without its tensors

static void on_timer(rn_timer_t* timer);

static rn_sim_node_t* from_of(const rn_sim_flight_t* flight) {
  return &flight->link->sim->nodes[flight->link->from];
}
static rn_sim_node_t* to_of(const rn_sim_flight_t* flight) {
  return &flight->link->sim->nodes[flight->link->to];
}

// Whether a message can get from |a| to |b| now.
static bool reaches(rn_sim_t* sim, int a, int b) {
  return a == b || !rn_sim_link(sim, a, b)->is_cut;
}

// If a timer could not be set, the call would never end.
static void set(rn_sim_flight_t* flight, rn_sim_node_t* node, rn_timer_t* timer, int64_t at_ns) {
  rn_status_t status = rn_sim_set(flight->link->sim, node, timer, at_ns);
  if (rn_ok(status)) return;
  rn_status_free(status);
  fputs("The simulation has run out of memory\n", stderr);
  exit(1);
}

// When a message of |bytes| that |a| sends now arrives at |b|.
static int64_t arrival(rn_sim_t* sim, int a, int b, size_t bytes) {
  const rn_sim_net_t* net = &sim->options.net;
  rn_sim_node_t *from = &sim->nodes[a], *to = &sim->nodes[b];
  sim->messages++;
  if (a == b) return sim->now_ns;
  double late = (double)net->latency_ns + (double)net->jitter_ns * rn_sim_exponential(sim);
  late *= from->slowness > to->slowness ? from->slowness : to->slowness;
  bool is_near = !from->task || !to->task;  // clients share the machine of their master
  if (net->bytes_per_ns <= 0 || is_near) return sim->now_ns + (int64_t)late;
  double size = OVERHEAD + (double)bytes * (net->bytes_of_each > 0 ? net->bytes_of_each : 1);
  int64_t takes = (int64_t)(size / net->bytes_per_ns);
  int64_t leaves = from->out_free_ns > sim->now_ns ? from->out_free_ns : sim->now_ns;
  from->out_free_ns = leaves + takes;
  // The first byte may arrive before the last one leaves.
  int64_t begins = leaves + (int64_t)late;
  if (to->in_free_ns > begins) begins = to->in_free_ns;
  to->in_free_ns = begins + takes;
  return begins + takes;
}

// Frees a flight that neither end uses.
static void flight_free(rn_sim_flight_t* flight) {
  rn_sim_t* sim = flight->link->sim;
  rn_sim_clear(sim, &flight->timer);
  rn_sim_clear(sim, &flight->caller_deadline);
  rn_sim_clear(sim, &flight->callee_deadline);
  rn_sim_clear(sim, &flight->given_up);
  rn_sim_clear(sim, &flight->ending);
  if (flight->previous)
    flight->previous->next = flight->next;
  else
    flight->link->flights = flight->next;
  if (flight->next) flight->next->previous = flight->previous;
  rn_caller_release(flight->caller);
  rn_status_free(flight->answer);
  rn_record_clear(flight->kind, &flight->record, sim->allocator);
  rn_cancel_destroy(&flight->cancel);
  rn_arena_clear(&flight->arena);
  RN_FREE(sim->allocator, flight);
}

void rn_sim_disconnect(rn_sim_link_t* link) {
  if (link->caller) link->caller->lost_ns = link->sim->now_ns;
  rn_caller_release(link->caller);
  link->caller = NULL;
}

// Ends the call for the caller with |status|, which it takes. A callee that still runs is told
// later.
static void finish(rn_sim_flight_t* flight, rn_status_t status) {
  rn_sim_t* sim = flight->link->sim;
  rn_call_t* call = flight->call;
  flight->call = NULL;
  rn_sim_clear(sim, &flight->caller_deadline);
  rn_sim_clear(sim, &flight->ending);
  if (flight->is_linked) rn_cancel_remove(call->cancel, &flight->entry);
  flight->is_linked = false;
  rn_sim_note(sim, (uint64_t)rn_status_code(status) * 31 + (uint64_t)flight->link->from);
  if (flight->state == RN_FLIGHT_RUNNING && !flight->is_orphan) {
    const rn_sim_node_t* from = from_of(flight);
    if (!from->is_up || rn_status_code(status) == RN_CODE_UNAVAILABLE)
      rn_sim_disconnect(flight->link);
    int64_t lease = sim->options.lease_ns ? sim->options.lease_ns : RN_LEASE_NS;
    bool is_told = from->is_up && reaches(sim, flight->link->from, flight->link->to);
    int64_t at = is_told ? arrival(sim, flight->link->from, flight->link->to, 0)
                         : sim->now_ns + lease;  // when the callee drops the connection
    set(flight, to_of(flight), &flight->given_up, at);
  } else if (flight->state != RN_FLIGHT_RUNNING) {
    flight_free(flight);
  }
  rn_call_done(call, status);
}

// The connection breaks, and the caller is told.
static void lose(rn_sim_flight_t* flight) {
  flight->call->is_broken = true;
  finish(flight, rn_unavailable("Socket closed"));
}

static void on_ending(rn_timer_t* timer) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(timer, rn_sim_flight_t, ending);
  if (flight->call) finish(flight, rn_cancelled("CANCELLED"));
}

static void on_caller_cancel(rn_cancel_entry_t* entry) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(entry, rn_sim_flight_t, entry);
  set(flight, from_of(flight), &flight->ending, flight->link->sim->now_ns);
}

static void on_caller_deadline(rn_timer_t* timer) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(timer, rn_sim_flight_t, caller_deadline);
  if (flight->call) finish(flight, rn_deadline_exceeded("Deadline Exceeded"));
}

static void on_callee_deadline(rn_timer_t* timer) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(timer, rn_sim_flight_t, callee_deadline);
  rn_cancel(&flight->cancel);
}

static void on_given_up(rn_timer_t* timer) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(timer, rn_sim_flight_t, given_up);
  rn_cancel(&flight->cancel);
}

// The callee has ended the call.
static void on_done(rn_call_t* call, rn_status_t status) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(call, rn_sim_flight_t, record.call);
  rn_sim_t* sim = flight->link->sim;
  rn_sim_clear(sim, &flight->callee_deadline);
  rn_sim_clear(sim, &flight->given_up);
  if (flight->is_orphan || !flight->call) {
    rn_status_free(status);
    flight->state = RN_FLIGHT_DEAD;
    // Freed later: the callee may still be inside the call's cancellation.
    if (!flight->call) set(flight, NULL, &flight->timer, sim->now_ns);
    return;
  }
  flight->state = RN_FLIGHT_RETURNING;
  if (rn_ok(status)) status = rn_record_settle(flight->kind, &flight->record, &flight->arena);
  flight->answer = status;
  size_t bytes = rn_record_bytes(flight->kind, &flight->record, true);
  set(flight, from_of(flight), &flight->timer,
      arrival(sim, flight->link->to, flight->link->from, bytes));
}

static void run(rn_sim_flight_t* flight) {
  rn_sim_node_t* to = to_of(flight);
  rn_sim_t* sim = flight->link->sim;
  if (!flight->link->caller)
    rn_status_free(rn_caller_create(sim->allocator, &flight->link->caller));
  flight->caller = rn_caller_retain(flight->link->caller);
  flight->state = RN_FLIGHT_RUNNING;
  flight->is_parked = false;
  flight->to_epoch = to->epoch;
  flight->record.call = (rn_call_t){.done = on_done,
                                    .deadline_ns = flight->deadline_ns,
                                    .cancel = &flight->cancel,
                                    .caller = flight->caller};
  rn_sim_note(sim, rn_str_hash(rn_str(flight->kind->name)) ^ (uint64_t)flight->link->to);
  if (flight->deadline_ns != INT64_MAX)
    set(flight, to, &flight->callee_deadline, flight->deadline_ns);
  rn_callees_t callees = {.worker = rn_worker_fence_face(to->fence),
                          .master = rn_local_master_face(to->master)};
  flight->kind->call(&callees, &flight->record);
}

static bool breaks(rn_sim_t* sim) {
  return sim->options.net.break_rate > 0 && rn_sim_uniform(sim) < sim->options.net.break_rate;
}

static void again(rn_sim_flight_t* flight, rn_sim_node_t* node) {
  set(flight, node, &flight->timer, flight->link->sim->now_ns + RETRY_NS);
}

static void on_going(rn_sim_flight_t* flight) {
  rn_sim_t* sim = flight->link->sim;
  rn_sim_node_t* to = to_of(flight);
  bool waits = flight->call->waits_for_ready;
  if (!reaches(sim, flight->link->from, flight->link->to)) {
    again(flight, to);
  } else if (!to->is_up || (!waits && flight->to_epoch != to->epoch)) {
    flight->is_parked = waits;
    if (waits)
      again(flight, NULL);
    else if (reaches(sim, flight->link->to, flight->link->from) && (to->is_up || !to->is_silent))
      finish(flight, rn_unavailable("failed to connect to all addresses; last error: UNKNOWN: %s",
                                    "Connection refused"));
    else
      again(flight, NULL);
  } else if (breaks(sim)) {
    // The connection breaks before the request arrives, or after that.
    if (rn_sim_random(sim) & 1) run(flight);
    if (flight->call) lose(flight);
  } else {
    run(flight);
  }
}

static void on_returning(rn_sim_flight_t* flight) {
  rn_sim_t* sim = flight->link->sim;
  if (!reaches(sim, flight->link->to, flight->link->from)) {
    again(flight, from_of(flight));
    return;
  }
  flight->link->heard_ns = sim->now_ns;
  if (breaks(sim)) {
    rn_sim_disconnect(flight->link);
    lose(flight);
    return;
  }
  rn_status_t status = flight->answer;
  flight->answer = RN_OK;
  if (rn_ok(status)) status = rn_record_answer(flight->kind, &flight->record, flight->call);
  finish(flight, status);
}

static void on_timer(rn_timer_t* timer) {
  rn_sim_flight_t* flight = RN_CONTAINER_OF(timer, rn_sim_flight_t, timer);
  if (!flight->call) {
    flight_free(flight);
  } else if (flight->state == RN_FLIGHT_GOING) {
    on_going(flight);
  } else if (flight->state == RN_FLIGHT_RETURNING) {
    on_returning(flight);
  } else if (!reaches(flight->link->sim, flight->link->to, flight->link->from)) {
    again(flight, from_of(flight));
  } else {
    lose(flight);
  }
}

static void start(rn_sim_link_t* link, const rn_record_kind_t* kind, rn_call_t* call) {
  rn_sim_t* sim = link->sim;
  rn_sim_flight_t* flight = NULL;
  rn_status_t status = sim->nodes[link->from].is_up ? RN_OK : rn_cancelled("The process is ending");
  if (rn_ok(status)) status = RN_NEW(sim->allocator, &flight);
  if (!rn_ok(status)) {
    rn_call_done(call, status);
    return;
  }
  flight->link = link;
  flight->kind = kind;
  flight->number = sim->next_number++;
  flight->call = call;
  flight->deadline_ns = call->deadline_ns;
  flight->to_epoch = sim->nodes[link->to].epoch;
  flight->timer.fn = on_timer;
  flight->caller_deadline.fn = on_caller_deadline;
  flight->callee_deadline.fn = on_callee_deadline;
  flight->given_up.fn = on_given_up;
  flight->ending.fn = on_ending;
  flight->entry.fn = on_caller_cancel;
  rn_cancel_init(&flight->cancel);
  rn_arena_init(&flight->arena, sim->allocator);
  flight->next = link->flights;
  if (flight->next) flight->next->previous = flight;
  link->flights = flight;
  status = rn_record_ask(kind, call, &flight->record, &flight->arena);
  if (rn_ok(status) && call->cancel) {
    flight->is_linked = rn_cancel_add(call->cancel, &flight->entry);
    if (!flight->is_linked) status = rn_cancelled("The call was cancelled before it was made");
  }
  if (!rn_ok(status)) {
    finish(flight, status);
    return;
  }
  if (call->deadline_ns != INT64_MAX)
    set(flight, from_of(flight), &flight->caller_deadline, call->deadline_ns);
  size_t bytes = rn_record_bytes(kind, &flight->record, false);
  set(flight, to_of(flight), &flight->timer, arrival(sim, link->from, link->to, bytes));
}

#define STARTS(side, name, ...)                                                        \
  static void name(rn_##side##_t* side, rn_##name##_t* call) {                         \
    start(RN_CONTAINER_OF(side, rn_sim_link_t, side), &rn_record_##name, &call->call); \
  }
RN_WORKER_CALLS(STARTS)
RN_MASTER_CALLS(STARTS)

static const rn_worker_vtable_t worker_table = {RN_WORKER_CALLS(RN_CALL_ENTRY)};
static const rn_master_vtable_t master_table = {RN_MASTER_CALLS(RN_CALL_ENTRY)};

void rn_sim_link_init(rn_sim_link_t* link, rn_sim_t* sim, int from, int to) {
  *link = (rn_sim_link_t){.worker.vtable = &worker_table,
                          .master.vtable = &master_table,
                          .sim = sim,
                          .from = from,
                          .to = to};
}

// For leases.

static bool link_is_busy(void* self) {
  const rn_sim_link_t* link = self;
  for (const rn_sim_flight_t* flight = link->flights; flight; flight = flight->next)
    if (flight->call && !flight->is_parked) return true;
  return false;
}

static int64_t link_heard_ns(void* self) { return ((rn_sim_link_t*)self)->heard_ns; }

// The first call of |link| that has not ended and started before |number|; parked ones only if
// |takes_parked|.
static rn_sim_flight_t* first_open(const rn_sim_link_t* link, uint64_t number, bool takes_parked) {
  rn_sim_flight_t* flight = link->flights;
  while (flight &&
         (!flight->call || flight->number >= number || (flight->is_parked && !takes_parked)))
    flight = flight->next;
  return flight;
}

static void link_drop(void* self, rn_status_t status) {
  rn_sim_link_t* link = self;
  rn_sim_disconnect(link);
  // Calls that are started by the ends of others do not belong to the old connection.
  uint64_t now = link->sim->next_number++;
  rn_sim_flight_t* flight;
  while ((flight = first_open(link, now, false))) finish(flight, rn_status_copy(status));
  rn_status_free(status);
}

rn_link_t rn_sim_link_lease(rn_sim_link_t* link) {
  return (rn_link_t){.self = link,
                     .worker = &link->worker,
                     .is_busy = link_is_busy,
                     .heard_ns = link_heard_ns,
                     .drop = link_drop};
}

// The ends of processes.

void rn_sim_end_calls_from(rn_sim_t* sim, int node) {
  for (int to = 0; to < sim->node_count; ++to) {
    rn_sim_flight_t* flight;
    while ((flight = first_open(rn_sim_link(sim, node, to), UINT64_MAX, true)))
      finish(flight, rn_cancelled("The process is ending"));
  }
}

void rn_sim_orphan_calls_to(rn_sim_t* sim, int node) {
  for (int from = 0; from < sim->node_count; ++from)
    for (rn_sim_flight_t* flight = rn_sim_link(sim, from, node)->flights; flight;
         flight = flight->next)
      if (flight->state == RN_FLIGHT_RUNNING) {
        flight->is_orphan = true;
        rn_sim_clear(sim, &flight->callee_deadline);
        rn_sim_clear(sim, &flight->given_up);
        rn_cancel(&flight->cancel);
      }
}

void rn_sim_tell_callers_of(rn_sim_t* sim, int node) {
  for (int from = 0; from < sim->node_count; ++from)
    for (rn_sim_flight_t* flight = rn_sim_link(sim, from, node)->flights; flight;
         flight = flight->next)
      if (flight->call && !flight->call->waits_for_ready &&
          (flight->state == RN_FLIGHT_DEAD || flight->state == RN_FLIGHT_GOING))
        set(flight, from_of(flight), &flight->timer, arrival(sim, node, from, 0));
}
