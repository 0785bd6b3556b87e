// Shared by the files of this folder: members, and the meetings of those in this process.
//
// Lock order: |mutex| alone. Members end with no lock held.
#ifndef RUNNEL_COLLECTIVE_INTERNAL_H_
#define RUNNEL_COLLECTIVE_INTERNAL_H_

#include <pthread.h>

#include "collective/collectives.h"

typedef struct rn_local_meeting_t {
  rn_meeting_t face;  // first
  int32_t refs;       // the table's or the running one's, and of those who cancel it
  int32_t arrived;
  bool is_running;
  rn_status_t failure;  // Owned: how it ended, if members that will come must be told
  rn_status_t reason;   // Owned: why it was cancelled while it ran
  struct rn_local_meeting_t *next, *previous;  // of the failed, or of the running
  struct rn_local_member_t** records;          // by member
  size_t block_size;
  char key[112];
} rn_local_meeting_t;

// Where a member is.
typedef enum rn_local_member_state_t {
  RN_MEMBER_JOINING,
  RN_MEMBER_WAITING,
  RN_MEMBER_MEETING,
  RN_MEMBER_ENDED
} rn_local_member_state_t;

typedef struct rn_local_member_t {
  rn_group_wait_t wait;  // first
  int32_t refs;          // until it ends, and of those who give it up
  rn_group_ask_t ask;
  rn_cancel_entry_t cancel;  // in the step's
  bool is_linked;
  rn_cancel_t stop;  // of the call that asks for the group
  rn_local_collectives_t* owner;
  rn_collective_t* request;
  rn_local_member_state_t state;
  rn_local_meeting_t* meeting;
  rn_status_t status;                         // Owned: how it ends
  struct rn_local_member_t *next, *previous;  // of all; |next| also of those that end
} rn_local_member_t;

struct rn_local_collectives_t {
  rn_collectives_t face;  // first
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_collective_cluster_t cluster;
  bool prefers_library;
  rn_collectives_t* _Atomic forward;  // where members go instead; NULL: here
  rn_mutex_t mutex;                   // guards what follows
  rn_groups_t groups;
  struct rn_local_comm_t* comms;
  rn_map_t meetings;  // by key: those that wait for members, and failed ones
  rn_local_meeting_t *failed_first, *failed_last;
  int failed_count;
  rn_local_member_t* members;
  rn_status_t aborted;  // Owned
  rn_cond_t changed;    // for the thread that keeps deadlines
  pthread_t thread;
  bool has_thread, is_stopped;
};

// Members that are to end, linked by |next|, with their |status| set.
typedef struct rn_local_ending_t {
  rn_local_member_t* first;
} rn_local_ending_t;

// --- Meetings (meetings.c), under the lock unless they say otherwise

// |member| is to end with |status|, which this takes.
void rn_ending_add(rn_local_ending_t* ending, rn_local_member_t* member, rn_status_t status);
void rn_ending_run(rn_local_ending_t* ending);  // Ends them; without the lock.
void rn_local_member_release(rn_local_member_t* member);
void rn_local_meeting_release(rn_local_meeting_t* meeting);
void rn_local_meeting_drop(rn_local_meeting_t* meeting);  // one that has failed
// Fails a meeting that is not running. Takes |status|.
void rn_local_meeting_fail(rn_local_meeting_t* meeting, rn_status_t status,
                           rn_local_ending_t* ending);
void rn_local_meeting_run(rn_local_meeting_t* meeting);  // Without the lock.
// Runs a meeting whose members' values are in host memory. Without the lock.
void rn_meeting_run_on_host(rn_meeting_t* meeting);
// |member| comes to its meeting; |*out_full| is set if it was the last.
void rn_local_member_meet(rn_local_member_t* member, rn_group_t* group, rn_local_ending_t* ending,
                          rn_local_meeting_t** out_full);

// --- Values on devices (staging.c), without the lock

// Runs a meeting whose members' values are in the memory of devices, and ends it.
void rn_local_meeting_stage(rn_local_meeting_t* meeting);

// --- Joining (joining.c), without the lock unless they say otherwise

void rn_local_member_join(rn_local_member_t* member);
// The group of |member| is complete, or failed with |status|, which this takes.
void rn_local_member_found(rn_local_member_t* member, rn_group_t* group, rn_status_t status);
void rn_local_member_on_group(rn_group_wait_t* wait, rn_group_t* group, rn_status_t status);
// Under the lock: whether |wait| was still waiting for its group.
bool rn_local_member_take_back(rn_group_t* group, rn_group_wait_t* wait);

// --- Giving up (giving_up.c)

// Under the lock, which the second releases meanwhile; it takes |status|.
bool rn_local_member_is_over(const rn_local_member_t* member);
void rn_local_member_give_up(rn_local_collectives_t* collectives, rn_local_member_t* member,
                             rn_status_t status);
void rn_local_member_on_cancel(rn_cancel_entry_t* entry);
// Under the lock: a new member has a deadline.
RN_MUST_USE rn_status_t rn_local_collectives_watch(rn_local_collectives_t* collectives);

#endif  // RUNNEL_COLLECTIVE_INTERNAL_H_
