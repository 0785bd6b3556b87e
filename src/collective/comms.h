// Communicators of groups: members on cards of their own exchange values by the cards' library.
//
// The first instance that asks for the library resolves the group: all members tell each other what
// they have (side.h). If all have the same version and a card of their own, they connect; otherwise
// the group's values go through host memory for good. A thread per group makes the library's calls.
//
// The library wants the same order everywhere. So the tasks first tell each other that they have
// come to an instance, then the task of rank 0 numbers it. While it runs, they watch each other: a
// member that is lost or fails breaks the communicators of all. The next instance goes through host
// memory, and the group is resolved anew.
#ifndef RUNNEL_COLLECTIVE_COMMS_H_
#define RUNNEL_COLLECTIVE_COMMS_H_

#include "collective/internal.h"
#include "collective/side.h"
#include "device/comm.h"

typedef enum rn_comm_state_t {
  RN_COMM_RESOLVING,
  RN_COMM_READY,
  RN_COMM_BROKEN,   // to be resolved anew
  RN_COMM_ON_HOST,  // without the library
} rn_comm_state_t;

typedef enum rn_comm_phase_t {
  RN_COMM_WAITING,  // until the group is resolved
  RN_COMM_AGREEING,
  RN_COMM_QUEUED,
  RN_COMM_RUNNING,
} rn_comm_phase_t;

// An instance.
typedef struct rn_comm_item_t {
  struct rn_local_comm_t* comm;
  rn_local_meeting_t* meeting;
  struct rn_comm_item_t* next;
  rn_comm_phase_t phase;    // guarded by the mutex of |comm|, like the next
  bool is_gone;             // cancelled
  int64_t number, attempt;  // of the queue; to resolve the group, in which it was numbered
  int32_t source;
  rn_side_t *arrive, *order, *watch;  // of groups with members in other tasks
  rn_cancel_entry_t gone, lost;       // of the meeting, and of the watch
  bool is_linked;
} rn_comm_item_t;

// The communicator of a group.
typedef struct rn_local_comm_t {
  struct rn_local_comm_t* next;  // of the collectives
  rn_local_collectives_t* owner;
  rn_group_t* group;  // Retained
  const rn_comm_library_t* library;
  bool spans;  // has members in other tasks
  bool has_rank_0;
  rn_cancel_t cancel;      // of its sides
  rn_cancel_entry_t lost;  // while it connects
  atomic_bool is_over;     // ends what runs
  rn_comm_t* made;         // of the thread
  rn_mutex_t mutex;        // guards what follows
  rn_cond_t changed;
  rn_comm_state_t state;
  int64_t attempt;  // counts resolutions
  int64_t next_number, next_run;
  rn_comm_item_t *waiting, *queue;
  rn_side_t *resolve, *watch;
  rn_status_t missing;  // Owned: why a member of this process has no library
  rn_comm_t* fresh;     // to connect by |id|
  char id[RN_COMM_ID_SIZE];
  int32_t busy;  // items and sides that have not ended
  bool wants_connect, is_stopped, has_thread;
  pthread_t thread;
} rn_local_comm_t;

// Takes |meeting|, whose members have all come, if it is one for a library: false if not.
bool rn_comms_take(rn_local_meeting_t* meeting);
// Ends all instances, and refuses further ones.
void rn_comms_cancel(rn_local_collectives_t* collectives);
// Waits for what has not ended.
void rn_comms_destroy(rn_local_collectives_t* collectives);

// --- Instances (comm_items.c), without locks

// Runs |item| by the library, now that its group is resolved, or through host memory.
void rn_comm_item_begin(rn_comm_item_t* item);
// The thread: runs |item| to its end, and breaks the communicator if it fails.
void rn_comm_item_run(rn_comm_item_t* item);
void rn_comm_item_end(rn_comm_item_t* item, rn_status_t status);  // Takes |status|.
void rn_comm_item_on_gone(rn_cancel_entry_t* entry);

// --- For the instances (comms.c)

// Begins to resolve the group, if this is not attempt |attempt| or a later one. With the lock.
void rn_comm_resolve_locked(rn_local_comm_t* comm, const rn_meeting_t* like, int64_t attempt);
void rn_comm_leave(rn_local_comm_t* comm);  // One less is busy.

#endif  // RUNNEL_COLLECTIVE_COMMS_H_
