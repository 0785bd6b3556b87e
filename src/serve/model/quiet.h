// Work that must not be felt by requests: loading and unloading models.
#ifndef RUNNEL_SERVE_MODEL_QUIET_H_
#define RUNNEL_SERVE_MODEL_QUIET_H_

// Lowers the priority of the calling thread for good: the system lets only privileged processes
// raise it again. Threads and processes that it starts inherit it.
void rn_quiet_thread(void);

// Calls |fn| on a thread that runs when a processor has nothing else to do, and waits for it. If
// the processors of this machine are never idle, the thread has the priority of rn_quiet_thread.
// Where no thread can be started, the caller runs |fn|.
void rn_quiet_call(void (*fn)(void* arg), void* arg);

#endif  // RUNNEL_SERVE_MODEL_QUIET_H_
