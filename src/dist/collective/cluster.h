// The collectives of a task: groups and instances whose members are on several tasks.
#ifndef RUNNEL_DIST_COLLECTIVE_CLUSTER_H_
#define RUNNEL_DIST_COLLECTIVE_CLUSTER_H_

#include "collective/collectives.h"
#include "dist/collective/sequences.h"
#include "dist/iface.h"
#include "dist/worker/steps.h"
#include "framework/collective.h"

typedef struct rn_cluster_collectives_t rn_cluster_collectives_t;

// A back end of another library for instances over several tasks. Calls between tasks serve those
// that it does not take.
typedef struct rn_exchanger_t {
  void* self;  // NULL: there is none
  // Whether it runs the instances of |group| with this |member|: the same on all tasks.
  bool (*takes)(void* self, const rn_group_t* group, const rn_collective_t* member);
  // Runs |meeting| and ends it with rn_meeting_end.
  void (*start)(void* self, rn_meeting_t* meeting);
} rn_exchanger_t;

typedef struct rn_cluster_collectives_options_t {
  const rn_env_t* env;  // with a pool; outlives the object
  rn_allocator_t allocator;
  rn_str_t task;    // this one; outlives the object, like the next
  rn_str_t leader;  // the task that knows all groups; "": this one
  rn_peers_t peers;
  rn_exchanger_t exchanger;
  bool prefers_library;         // see rn_local_collectives_prefer_library
  rn_device_t* const* devices;  // of this task
  int device_count;
} rn_cluster_collectives_options_t;

RN_MUST_USE rn_status_t rn_cluster_collectives_create(
    const rn_cluster_collectives_options_t* options, rn_cluster_collectives_t** out);
// Ends all instances, and refuses further ones. NULL is fine.
void rn_cluster_collectives_stop(rn_cluster_collectives_t* cluster);
void rn_cluster_collectives_destroy(rn_cluster_collectives_t* cluster);  // NULL is fine
rn_collectives_t* rn_cluster_collectives_face(rn_cluster_collectives_t* cluster);

// Calls of other tasks.
void rn_cluster_collectives_join(rn_cluster_collectives_t* cluster, rn_complete_group_t* call);
void rn_cluster_collectives_instance(rn_cluster_collectives_t* cluster,
                                     rn_complete_instance_t* call);
void rn_cluster_collectives_sequence(rn_cluster_collectives_t* cluster,
                                     rn_get_step_sequence_t* call);
void rn_cluster_collectives_recv_buf(rn_cluster_collectives_t* cluster, rn_recv_buf_t* call);
// Whether the key of a RecvTensor is one of a collective's values.
bool rn_cluster_collectives_has(rn_str_t key);
void rn_cluster_collectives_recv(rn_cluster_collectives_t* cluster, rn_recv_tensor_t* call);
// Whether values wait for other tasks to fetch them.
bool rn_cluster_collectives_has_mail(rn_cluster_collectives_t* cluster);

// For the masters of this task: numbers of steps of the collective |graph| (sequences.h).
void rn_cluster_collectives_next_step(rn_cluster_collectives_t* cluster, int64_t graph,
                                      rn_cancel_t* cancel, rn_sequence_wait_t* wait);
void rn_cluster_collectives_end_step(rn_cluster_collectives_t* cluster, int64_t graph,
                                     int64_t step);

#endif  // RUNNEL_DIST_COLLECTIVE_CLUSTER_H_
