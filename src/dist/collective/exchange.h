// One instance of a group whose members are on several tasks of ours.
//
// The members of a task act as one. Small tensors are sent whole from each task to each other, in
// one round. Larger ones are reduced in two: task i gets part i of all others, reduces it and sends
// the result to all. Both take the parts in the order of tasks, so results do not depend on timing.
#ifndef RUNNEL_DIST_COLLECTIVE_EXCHANGE_H_
#define RUNNEL_DIST_COLLECTIVE_EXCHANGE_H_

#include "collective/collectives.h"
#include "dist/collective/mailbox.h"
#include "dist/worker/steps.h"

// Begins the keys of values that tasks exchange.
#define RN_COLLECTIVE_PREFIX "collective;"

typedef struct rn_exchange_options_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_mailbox_t* mailbox;
  rn_str_t task;  // this one
  rn_peers_t peers;
  _Atomic uint32_t* vain_looks;  // rounds in a row whose values were not shown in time
  void* self;
  // Asks the leader of collectives for the source of a broadcast.
  void (*ask)(void* self, rn_complete_instance_t* call);
  // A member of |meeting| has restarted: its group must be found again, and steps numbered anew.
  void (*forget)(void* self, rn_meeting_t* meeting);
} rn_exchange_options_t;

// Runs |meeting| and ends it. |options| lives until then.
void rn_exchange_start(const rn_exchange_options_t* options, rn_meeting_t* meeting);

// |watch| and |tell| of rn_collective_cluster_t.
void rn_exchange_watch(const rn_exchange_options_t* options, rn_meeting_t* meeting);
void rn_exchange_tell(rn_meeting_t* meeting, rn_status_t status);

#endif  // RUNNEL_DIST_COLLECTIVE_EXCHANGE_H_
