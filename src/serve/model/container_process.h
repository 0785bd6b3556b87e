// A process that the server starts for a container: its start, its output, its end.
//
// Everything here runs on the loop's thread. The kernel kills the process when the thread that
// started it ends, so the loop must live as long as the server and have no visitors (net/loop.h).
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_PROCESS_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_PROCESS_H_

#include "net/loop.h"

// The descriptor at which the process finds its end of the connection.
#define RN_CONTAINER_FD 3

typedef struct rn_container_process_t rn_container_process_t;

typedef struct rn_container_process_options_t {
  rn_loop_t* loop;          // Borrowed
  const char* name;         // for the log; Borrowed, as all pointers here until the end
  const char* const* argv;  // ends with NULL; the program is looked up in PATH
  const char* const* envp;  // ends with NULL; all of the environment
  const char* folder;       // where it runs
  int64_t memory_bytes;     // of data that it may allocate; 0: no limit
  // Called once, when the process is gone and reaped; may free it.
  void (*ended)(void* self, rn_container_process_t* process);
  void* self;
} rn_container_process_options_t;

// Starts the process, with |fd| as its RN_CONTAINER_FD. Takes |fd|, also on failure. The error
// names the program.
RN_MUST_USE rn_status_t rn_container_process_start(const rn_container_process_options_t* options,
                                                   int fd, rn_allocator_t allocator,
                                                   rn_container_process_t** out);
// Frees the record after |ended|. NULL is fine.
void rn_container_process_free(rn_container_process_t* process);

void rn_container_process_signal(rn_container_process_t* process, int signal);
int rn_container_process_pid(const rn_container_process_t* process);
// How it ended: "exited with status 1", "was killed by signal 9". Valid after |ended|.
const char* rn_container_process_end(const rn_container_process_t* process);
// The last line that it wrote; "" if it wrote none.
const char* rn_container_process_last_line(const rn_container_process_t* process);

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_PROCESS_H_
