// Carries a call's record from one simulated process to another: the request is copied when it
// leaves, the response when it arrives. Tensors are copied too, because the memory of a process
// dies with it. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_RECORDS_H_
#define RUNNEL_DIST_SIM_RECORDS_H_

#include "dist/records.h"

// Copies the request of |from| into the zeroed |to|, strings and arrays into |arena|.
RN_MUST_USE rn_status_t rn_record_ask(const rn_record_kind_t* kind, const rn_call_t* from,
                                      rn_record_t* to, rn_arena_t* arena);
// Replaces what a response still has in the callee's memory by copies.
RN_MUST_USE rn_status_t rn_record_settle(const rn_record_kind_t* kind, rn_record_t* record,
                                         rn_arena_t* arena);
// Moves the response of |from| into the caller's record.
RN_MUST_USE rn_status_t rn_record_answer(const rn_record_kind_t* kind, rn_record_t* from,
                                         rn_call_t* to);
// The bytes of float tensors in the request, or in the response: the model's. Stamps, tokens and
// flags count as part of a message's overhead.
size_t rn_record_bytes(const rn_record_kind_t* kind, const rn_record_t* record, bool is_answer);

#endif  // RUNNEL_DIST_SIM_RECORDS_H_
