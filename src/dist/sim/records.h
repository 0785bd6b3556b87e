// What is carried of each kind of call: the question copied when it leaves, the answer when it
// comes. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_RECORDS_H_
#define RUNNEL_DIST_SIM_RECORDS_H_

#include "dist/records.h"

typedef struct rn_record_kind_t {
  const char* name;
  // Copies the question of |from| into |to|, strings and arrays into |arena|.
  rn_status_t (*ask)(const rn_call_t* from, rn_record_t* to, rn_arena_t* arena);
  // The answer as it leaves: nothing of it is in the callee's memory any more. May be NULL.
  rn_status_t (*settle)(rn_record_t* record, rn_arena_t* arena);
  // Moves the answer of |from| into the caller's record.
  rn_status_t (*answer)(rn_record_t* from, rn_call_t* to);
  // Frees what is not in the arena.
  void (*clear)(rn_record_t* record);
  // Makes the call: one of the two is there.
  void (*call_worker)(rn_worker_t* worker, rn_record_t* record);
  void (*call_master)(rn_master_t* master, rn_record_t* record);
} rn_record_kind_t;

extern const rn_record_kind_t rn_record_get_status, rn_record_create_worker_session,
    rn_record_delete_worker_session, rn_record_register_graph, rn_record_deregister_graph,
    rn_record_run_graph, rn_record_cleanup_graph, rn_record_recv_tensor, rn_record_cleanup_all,
    rn_record_create_session, rn_record_extend_session, rn_record_run_step, rn_record_close_session;

// The bytes of tensors in the question, or in the answer.
size_t rn_record_bytes(const rn_record_kind_t* kind, const rn_record_t* record, bool is_answer);

#endif  // RUNNEL_DIST_SIM_RECORDS_H_
