// Work that must not be felt by requests: loading and unloading models.
#ifndef RUNNEL_SERVE_MODEL_QUIET_H_
#define RUNNEL_SERVE_MODEL_QUIET_H_

// Lowers the priority of the calling thread for good: the system lets only privileged processes
// raise it again. Threads and processes that it starts inherit it.
void rn_quiet_thread(void);

// Calls |fn| on a thread of low priority and waits for it. Where no thread can be started, the
// caller runs it.
void rn_quiet_call(void (*fn)(void* arg), void* arg);

#endif  // RUNNEL_SERVE_MODEL_QUIET_H_
