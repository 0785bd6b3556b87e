// Groups of devices, by key: who their members are, in which order.
//
// A table belongs to one rn_collectives_t, whose lock guards it. In a cluster the table of one
// task, the leader, is asked by all others, which keep the answers in theirs.
#ifndef RUNNEL_COLLECTIVE_GROUPS_H_
#define RUNNEL_COLLECTIVE_GROUPS_H_

#include "base/map.h"
#include "base/vec.h"
#include "tensor/tensor.h"

typedef struct rn_group_member_t {
  rn_str_t device, type, task;  // Owned; NUL-terminated
  uint64_t incarnation;
  int32_t rank;  // that it asked for; -1: none
  bool is_ours;  // its task is Runnel's
} rn_group_member_t;

// A member that has restarted makes a new group of the same key, which the others must join again.
typedef struct rn_group_t {
  int32_t refs;  // the table's own, and of those who use it without the lock
  int32_t key, size;
  rn_group_member_t* members;  // those that are known; in the order of ranks once it is complete
  int32_t count;
  int32_t task_count;
  bool is_complete;
  bool is_ours;        // all its tasks are
  rn_status_t status;  // of a group whose members do not agree
  struct rn_group_wait_t* waiting;
  char text[12];  // the key as a string, for the table
} rn_group_t;

// Someone who waits until a group is complete, embedded in its own struct. Called without locks.
typedef struct rn_group_wait_t {
  void (*fn)(struct rn_group_wait_t* wait, rn_group_t* group, rn_status_t status);
  struct rn_group_wait_t* next;
} rn_group_wait_t;

typedef struct rn_groups_t {
  rn_allocator_t allocator;
  rn_map_t map;
} rn_groups_t;

void rn_groups_init(rn_groups_t* groups, rn_allocator_t allocator);
void rn_groups_clear(rn_groups_t* groups);
// Forgets |group|, if it is complete and in the table: its members must join again.
void rn_groups_forget(rn_groups_t* groups, rn_group_t* group);
void rn_group_release(rn_groups_t* groups, rn_group_t* group);  // NULL is fine
// Forgets all groups without waiting members.
void rn_groups_reset(rn_groups_t* groups);
// The group, or NULL.
rn_group_t* rn_groups_find(const rn_groups_t* groups, int32_t key);

// Adds |member| to a group of |size|, which it makes if it is new; |node| is for messages. A member
// that is there already may come again. |*out| is the group; an error belongs to it from now on, so
// all who wait must be told.
RN_MUST_USE rn_status_t rn_groups_add(rn_groups_t* groups, int32_t key, int32_t size,
                                      const rn_group_member_t* member, rn_str_t node,
                                      rn_group_t** out);
// The rank of |device|, -1 if it is no member.
int32_t rn_group_rank(const rn_group_t* group, rn_str_t device);
// The task of a device: "/job:worker/replica:0/task:0", a part of |device|.
rn_str_t rn_group_task(rn_str_t device);

#endif  // RUNNEL_COLLECTIVE_GROUPS_H_
