// The gate of a task: which calls it accepts, and counts of them.
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
  X(Worker, GetStepSequence)

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
  bool checks_names;           // only tasks, by their certificates, may call the worker
  bool checks_token;           // callers must send the token
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

// From now on refuses new sessions and steps; parts of steps that other masters have started are
// accepted for another half second.
void rn_call_gate_drain(rn_call_gate_t* gate);
// The number of running calls that are parts of steps.
int64_t rn_call_gate_busy(const rn_call_gate_t* gate);

#endif  // RUNNEL_DIST_GATE_H_
