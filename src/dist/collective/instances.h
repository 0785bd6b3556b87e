// Which member of a group is the source of a broadcast: the table of the leader of collectives, for
// groups with members on stock's tasks. Groups of our own tasks need none. Any thread.
#ifndef RUNNEL_DIST_COLLECTIVE_INSTANCES_H_
#define RUNNEL_DIST_COLLECTIVE_INSTANCES_H_

#include "base/env.h"
#include "dist/iface.h"

typedef struct rn_instances_t rn_instances_t;

RN_MUST_USE rn_status_t rn_instances_create(rn_allocator_t allocator, rn_instances_t** out);
// No call may wait. NULL is fine.
void rn_instances_destroy(rn_instances_t* instances);

// Answers |call| of the member |rank| of a group whose size the call has: once all members of the
// group have asked, if it is a broadcast, else at once.
void rn_instances_ask(rn_instances_t* instances, int32_t rank, rn_complete_instance_t* call);
// Ends all calls that wait, now and from now on. Takes |status|.
void rn_instances_close(rn_instances_t* instances, rn_status_t status);

#endif  // RUNNEL_DIST_COLLECTIVE_INSTANCES_H_
