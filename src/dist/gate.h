// The gate of a task: which calls it accepts, counts of them, and who made those that matter.
//
// What a caller may do follows from the role of its token and from the name on its certificate. A
// task that requires both grants what both grant; one that requires neither grants everything.
//
//   client    the master and eager services, GetStatus, status pages
//   worker    that, and the worker and coordination services; certificates of tasks
//   operator  what a client may, Reset and /stop; certificates whose names begin with "operator/",
//             and those of all tasks and clients unless the task |has_operators|
//
// Functions may be called from any thread.
#ifndef RUNNEL_DIST_GATE_H_
#define RUNNEL_DIST_GATE_H_

#include "base/log.h"
#include "net/rpc_server.h"

// X(service, method): the methods of a task, most frequent first.
#define RN_GATE_METHODS(X)             \
  X(Worker, RunGraph)                  \
  X(Worker, RecvTensor)                \
  X(Master, RunStep)                   \
  X(Worker, CleanupGraph)              \
  X(Worker, GetStatus)                 \
  X(Master, RunCallable)               \
  X(Worker, MarkRecvFinished)          \
  X(Worker, RegisterGraph)             \
  X(Worker, DeregisterGraph)           \
  X(Worker, CreateWorkerSession)       \
  X(Worker, DeleteWorkerSession)       \
  X(Worker, CleanupAll)                \
  X(Worker, Logging)                   \
  X(Worker, Tracing)                   \
  X(Master, CreateSession)             \
  X(Master, ExtendSession)             \
  X(Master, PartialRunSetup)           \
  X(Master, CloseSession)              \
  X(Master, ListDevices)               \
  X(Master, Reset)                     \
  X(Master, MakeCallable)              \
  X(Master, ReleaseCallable)           \
  X(eager.Eager, Enqueue)              \
  X(eager.Eager, StreamingEnqueue)     \
  X(eager.Eager, RunComponentFunction) \
  X(eager.Eager, CreateContext)        \
  X(eager.Eager, UpdateContext)        \
  X(eager.Eager, CloseContext)         \
  X(eager.Eager, KeepAlive)            \
  X(eager.Eager, WaitQueueDone)        \
  X(Worker, GetStepSequence)           \
  X(Worker, RecvBuf)                   \
  X(Worker, CompleteGroup)             \
  X(Worker, CompleteInstance)

// What callers may do.
typedef enum rn_call_right_t {
  RN_MAY_USE = 1 << 0,
  RN_MAY_WORK = 1 << 1,
  RN_MAY_OPERATE = 1 << 2,
} rn_call_right_t;

// The roles of a task's token file; the task itself sends a worker's.
extern const rn_token_roles_t rn_call_gate_roles;

// A call that opens, closes or clears something, or that was refused.
typedef struct rn_audit_event_t {
  const char* action;  // the call: "Reset"; or "stop"
  rn_str_t name;       // on the caller's certificate; ""
  rn_str_t address;    // of the caller: "host:port"; "" if it is not known
  uint32_t rights;     // of the caller: rn_call_right_t
  rn_code_t outcome;
} rn_audit_event_t;

typedef enum rn_call_gate_method_t {
#define RN_GATE_ENUM(service, method) RN_GATE_##method,
  RN_GATE_METHODS(RN_GATE_ENUM)
#undef RN_GATE_ENUM
      RN_GATE_OTHER,
  RN_GATE_METHOD_COUNT
} rn_call_gate_method_t;

typedef struct rn_call_gate_count_t {
  _Atomic int64_t started, ended, failed, ns;
} rn_call_gate_count_t;

typedef struct rn_call_gate_t {
  const rn_env_t* env;
  rn_str_t task;          // its name
  const rn_str_t* names;  // of all tasks
  size_t name_count;
  bool checks_names;   // rights follow from the names on certificates
  bool checks_tokens;  // rights follow from tokens
  bool has_operators;  // certificates that are not an operator's give no operator's rights
  // Told of events, on any thread; NULL: no one is.
  void (*audit)(void* self, const rn_audit_event_t* event);
  void* audit_self;
  int max_sessions;            // of one connection; 0: any number
  _Atomic int64_t drained_ns;  // since when new work is refused; 0: it is accepted
  _Atomic int64_t refused;     // calls
  rn_log_limit_t log;
  rn_call_gate_count_t counts[RN_GATE_METHOD_COUNT];
} rn_call_gate_t;

const char* rn_call_gate_method_name(rn_call_gate_method_t method);

// Whether |call| is accepted; counts it. Every call that was checked must end with
// rn_call_gate_replied.
RN_MUST_USE rn_status_t rn_call_gate_admit(rn_call_gate_t* gate, rn_rpc_in_t* call);
void rn_call_gate_replied(rn_call_gate_t* gate, rn_rpc_in_t* call, rn_code_t code);

// What a caller may do that has a token with |roles| (of rn_call_gate_roles) and the name |peer| on
// its certificate.
uint32_t rn_call_gate_rights(const rn_call_gate_t* gate, uint32_t roles, rn_str_t peer);

// From now on refuses new sessions and steps; parts of steps that other masters have started are
// accepted for another half second.
void rn_call_gate_drain(rn_call_gate_t* gate);
// The number of running calls that are parts of steps.
int64_t rn_call_gate_busy(const rn_call_gate_t* gate);

#endif  // RUNNEL_DIST_GATE_H_
