// The gate: see gate.h.
#include "dist/gate.h"

#include <stdatomic.h>

#define GRACE_NS INT64_C(500000000)

static const char* const names[] = {
#define NAME(service, method) #method,
    RN_GATE_METHODS(NAME)
#undef NAME
        "other"};
static const rn_str_t paths[] = {
#define PATH(service, method)                  \
  {"/tensorflow." #service "Service/" #method, \
   sizeof("/tensorflow." #service "Service/" #method) - 1},
    RN_GATE_METHODS(PATH)
#undef PATH
};
// In the order of rn_call_right_t.
const rn_token_roles_t rn_call_gate_roles = {.names = {"client", "worker", "operator"}, .own = 1};

// The right that a method needs, also one that is not counted. GetStatus is a liveness probe, also
// for clients.
static rn_call_right_t right_for(rn_call_gate_method_t method, rn_str_t path) {
  if (method == RN_GATE_Reset) return RN_MAY_OPERATE;
  bool is_of_tasks = rn_str_starts_with(path, RN_STR("/tensorflow.WorkerService/")) ||
                     rn_str_starts_with(path, RN_STR("/tensorflow.CoordinationService/"));
  return is_of_tasks && method != RN_GATE_GetStatus ? RN_MAY_WORK : RN_MAY_USE;
}

// Whether calls of the method are audited, even if they were not refused.
static bool is_audited(rn_call_gate_method_t method) {
  switch (method) {
    case RN_GATE_CreateSession:
    case RN_GATE_CloseSession:
    case RN_GATE_Reset:
    case RN_GATE_CreateContext:
    case RN_GATE_CloseContext:
    case RN_GATE_CreateWorkerSession:
    case RN_GATE_DeleteWorkerSession:
    case RN_GATE_CleanupAll:
      return true;
    default:
      return false;
  }
}

const char* rn_call_gate_method_name(rn_call_gate_method_t method) { return names[method]; }

static int64_t now_of(const rn_call_gate_t* gate) { return gate->env->now_ns(gate->env->self); }

static rn_call_gate_method_t method_of(rn_str_t path) {
  int i = 0;
  while (i < RN_GATE_OTHER && !rn_str_eq(paths[i], path)) ++i;
  return (rn_call_gate_method_t)i;
}

static bool is_task(const rn_call_gate_t* gate, rn_str_t name) {
  for (size_t i = 0; i < gate->name_count; ++i)
    if (rn_str_eq(gate->names[i], name)) return true;
  return false;
}

// Whether a draining task refuses the method.
static bool is_new(const rn_call_gate_t* gate, rn_call_gate_method_t method) {
  switch (method) {
    case RN_GATE_CreateSession:
    case RN_GATE_CreateContext:
    case RN_GATE_CreateWorkerSession:
    case RN_GATE_RunStep:
    case RN_GATE_RunCallable:
    case RN_GATE_PartialRunSetup:
    case RN_GATE_MakeCallable:
      return true;
    case RN_GATE_RunGraph:
    case RN_GATE_RegisterGraph:
      return now_of(gate) - gate->drained_ns > GRACE_NS;
    default:
      return false;
  }
}

static uint32_t rights_by_name(const rn_call_gate_t* gate, rn_str_t peer) {
  uint32_t rights = RN_MAY_USE;
  if (is_task(gate, peer)) rights |= RN_MAY_WORK;
  if (!gate->has_operators || rn_str_starts_with(peer, RN_STR("operator/")))
    rights |= RN_MAY_OPERATE;
  return rights;
}

uint32_t rn_call_gate_rights(const rn_call_gate_t* gate, uint32_t roles, rn_str_t peer) {
  uint32_t rights = RN_MAY_USE | RN_MAY_WORK | RN_MAY_OPERATE;
  if (gate->checks_tokens) rights &= roles ? roles | RN_MAY_USE : 0;
  if (gate->checks_names) rights &= rights_by_name(gate, peer);
  return rights;
}

static uint32_t rights_of(const rn_call_gate_t* gate, const rn_rpc_in_t* call) {
  return rn_call_gate_rights(gate, call->stream.roles, rn_http2_peer(call->http2));
}

static rn_status_t check(const rn_call_gate_t* gate, rn_rpc_in_t* call,
                         rn_call_gate_method_t method) {
  rn_str_t peer = rn_http2_peer(call->http2);
  uint32_t rights = rights_of(gate, call);
  rn_call_right_t needed = right_for(method, rn_rpc_path(call));
  if (!rights)
    return rn_status_make(RN_CODE_UNAUTHENTICATED,
                          "%.*s requires a token, and this call has none or a wrong one "
                          "(clients: name its file in RUNNEL_TOKEN)",
                          RN_STR_ARGS(gate->task));
  if (!(rights & needed) && needed == RN_MAY_WORK && gate->checks_names && !is_task(gate, peer))
    return rn_status_make(
        RN_CODE_PERMISSION_DENIED,
        "the certificate names \"%.*s\", which is not a task of the cluster of %.*s",
        RN_STR_ARGS(peer), RN_STR_ARGS(gate->task));
  if (!(rights & needed))
    return rn_status_make(RN_CODE_PERMISSION_DENIED,
                          "%s is for callers with the role of %s, which the token or certificate "
                          "of this one does not give",
                          names[method], needed == RN_MAY_WORK ? "a worker" : "an operator");
  if (gate->drained_ns && is_new(gate, method))
    return rn_unavailable("%.*s is shutting down", RN_STR_ARGS(gate->task));
  return RN_OK;
}

// Logs at most one refusal per ten seconds.
static void warn(rn_call_gate_t* gate, rn_call_gate_method_t method, rn_status_t status) {
  int64_t left_out;
  if (!rn_log_limit_says(&gate->log, gate->env, &left_out)) return;
  rn_log(gate->env, RN_LOG_WARNING, "%s was refused: %s (%lld calls so far)", names[method],
         rn_status_message(status), (long long)gate->refused);
}

rn_status_t rn_call_gate_admit(rn_call_gate_t* gate, rn_rpc_in_t* call) {
  rn_call_gate_method_t method = method_of(rn_rpc_path(call));
  call->tag = (int)method;
  call->begun_ns = now_of(gate);
  gate->counts[method].started++;
  rn_status_t status = check(gate, call, method);
  // A session counts from its request on.
  if (rn_ok(status) && method == RN_GATE_CreateSession &&
      ++*rn_http2_tally(call->http2) > gate->max_sessions && gate->max_sessions) {
    --*rn_http2_tally(call->http2);
    status = rn_resource_exhausted("This client has %d sessions open, the maximum per client",
                                   gate->max_sessions);
  }
  if (!rn_ok(status)) {
    gate->refused++;
    call->tag = -1 - call->tag;
    if (rn_status_code(status) != RN_CODE_UNAVAILABLE) warn(gate, method, status);
  }
  return status;
}

void rn_call_gate_replied(rn_call_gate_t* gate, rn_rpc_in_t* call, rn_code_t code) {
  bool was_refused = call->tag < 0;
  rn_call_gate_method_t method = (rn_call_gate_method_t)(was_refused ? -1 - call->tag : call->tag);
  rn_call_gate_count_t* count = &gate->counts[method];
  if (code != RN_CODE_OK) count->failed++;
  count->ns += now_of(gate) - call->begun_ns;
  count->ended++;
  if (gate->audit && (was_refused || is_audited(method)))
    gate->audit(gate->audit_self, &(rn_audit_event_t){.action = names[method],
                                                      .name = rn_http2_peer(call->http2),
                                                      .address = rn_http2_peer_address(call->http2),
                                                      .rights = rights_of(gate, call),
                                                      .outcome = code});
  if (was_refused) return;
  _Atomic int* sessions = rn_http2_tally(call->http2);
  bool is_closed = method == RN_GATE_CloseSession && code == RN_CODE_OK;
  bool is_lost = method == RN_GATE_CreateSession && code != RN_CODE_OK;
  if ((is_closed || is_lost) && --*sessions < 0)
    ++*sessions;  // it was opened on another connection
  // A client that runs steps has a session, even if it was opened on a connection that is lost.
  bool is_step = method == RN_GATE_RunStep || method == RN_GATE_RunCallable;
  int none = 0;
  if (is_step && code == RN_CODE_OK) atomic_compare_exchange_strong(sessions, &none, 1);
}

void rn_call_gate_drain(rn_call_gate_t* gate) {
  int64_t none = 0;
  __atomic_compare_exchange_n((int64_t*)&gate->drained_ns, &none, now_of(gate) | 1, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int64_t rn_call_gate_busy(const rn_call_gate_t* gate) {
  static const rn_call_gate_method_t parts[] = {RN_GATE_RunStep, RN_GATE_RunCallable,
                                                RN_GATE_RunGraph, RN_GATE_RecvTensor};
  int64_t busy = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
    busy += gate->counts[parts[i]].started - gate->counts[parts[i]].ended;
  return busy;
}
