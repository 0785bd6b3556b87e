// The members of this process meet: an implementation of framework/collective.h.
//
// Any thread may call. Deadlines are kept by a thread that starts with the first of them.
#ifndef RUNNEL_COLLECTIVE_COLLECTIVES_H_
#define RUNNEL_COLLECTIVE_COLLECTIVES_H_

#include "collective/groups.h"
#include "framework/collective.h"

typedef struct rn_local_collectives_t rn_local_collectives_t;

// The members of one instance that are in this process. Once all have come, nothing changes but
// their outputs.
typedef struct rn_meeting_t {
  rn_local_collectives_t* owner;
  rn_group_t* group;          // Retained
  int32_t count;              // members in this process
  const int32_t* ranks;       // by member, ascending
  rn_collective_t** members;  // by member
  int32_t piece;              // of a value that is exchanged in several; else 0
  rn_cancel_t cancel;         // of the exchange with other tasks
  void* data;                 // of the cluster
  rn_status_t failure;        // Owned: why the members of this process cannot give their values
  // Instead of ending the members; takes the status. NULL: they end.
  void (*on_end)(struct rn_meeting_t* meeting, rn_status_t status);
} rn_meeting_t;

// A call to find a group, embedded in the member that makes it.
typedef struct rn_group_ask_t {
  const rn_collective_t* collective;
  rn_cancel_t* cancel;
} rn_group_ask_t;

// |meeting->failure|, for the caller. The other tasks must be told of it.
RN_MUST_USE static inline rn_status_t rn_meeting_take_failure(rn_meeting_t* meeting) {
  rn_status_t status = meeting->failure;
  meeting->failure = RN_OK;
  return status;
}

// What a cluster adds. |leads|: the table of this task is the one that all tasks ask.
typedef struct rn_collective_cluster_t {
  void* self;  // NULL: there is no cluster
  rn_str_t task;
  bool (*leads)(void* self);
  // Asks the leader for the group of |ask|, then calls rn_collectives_joined with it.
  void (*join)(void* self, rn_group_ask_t* ask);
  // Runs an instance of a group with several tasks, then calls rn_meeting_end.
  void (*exchange)(void* self, rn_meeting_t* meeting);
  // Cancels |meeting->cancel| when another task of the group is lost or tells of an error. Calls
  // rn_meeting_end when all tasks have told, this one, too.
  void (*watch)(void* self, rn_meeting_t* meeting);
  // Tells the other tasks that this one has ended with |status|, which this takes. Once per watch.
  void (*tell)(void* self, rn_meeting_t* meeting, rn_status_t status);
} rn_collective_cluster_t;

RN_MUST_USE rn_status_t rn_local_collectives_create(const rn_env_t* env, rn_allocator_t allocator,
                                                    const rn_collective_cluster_t* cluster,
                                                    rn_local_collectives_t** out);
// No member may be left. NULL is fine.
void rn_local_collectives_destroy(rn_local_collectives_t* collectives);
// Runs all instances by the library of their devices that can, whatever their hints say: the same
// for all tasks. Before the first member comes.
void rn_local_collectives_prefer_library(rn_local_collectives_t* collectives);
rn_collectives_t* rn_local_collectives_face(rn_local_collectives_t* collectives);
// Allows instances again after an abort, and forgets all groups without waiting members.
void rn_local_collectives_reset(rn_local_collectives_t* collectives);

// From now on members that come to |face|, which is that of local collectives, go to |to|, which
// outlives them; NULL: they meet here again. No member may be there.
void rn_collectives_forward(rn_collectives_t* face, rn_collectives_t* to);

// For the cluster.

// Ends the exchange of |meeting|, which is freed: every member gets a copy of |status|, which it
// takes.
void rn_meeting_end(rn_meeting_t* meeting, rn_status_t status);
// A member of the group of |meeting|, whose exchange has not ended, has restarted: the next
// instance asks the leader for the group again.
void rn_meeting_forget_group(rn_meeting_t* meeting);
// Ends |ask|: |members| are those of the group, in order. Takes |status|; borrows the rest.
void rn_collectives_joined(rn_group_ask_t* ask, const rn_group_member_t* members, int32_t count,
                           rn_status_t status);
// A member of another task joins a group of this, the leader's, table. |wait| is called once, also
// with errors; the group is valid during the call.
void rn_local_collectives_admit(rn_local_collectives_t* collectives, int32_t key, int32_t size,
                                const rn_group_member_t* member, rn_group_wait_t* wait);
// The rank of |device| in the complete group |key|; -1 if there is none of this |size|, or it is no
// member.
int32_t rn_local_collectives_rank(rn_local_collectives_t* collectives, int32_t key, int32_t size,
                                  rn_str_t device);
// Gives up waiting; false if |wait| was or will be called.
bool rn_local_collectives_dismiss(rn_local_collectives_t* collectives, int32_t key,
                                  rn_group_wait_t* wait);

#endif  // RUNNEL_COLLECTIVE_COLLECTIVES_H_
