// A line to a lender: the receiver's side of loans. See loan.h.
//
// Reference-counted, so that a tensor can be read while the line is replaced. The caller must hold
// a lock around rn_line_state, rn_line_hear, rn_line_take and the boards; any thread may call the
// rest.
#ifndef RUNNEL_DIST_RPC_LINE_H_
#define RUNNEL_DIST_RPC_LINE_H_

#include "dist/rpc/loan.h"

typedef struct rn_line_t rn_line_t;

// Opens a line to the lender at |reach|. |task| is this one, if it wants to be shown values
// (rn_reach_task), or 0. UNAVAILABLE if the lender is on another machine, of another user, this
// process, or gone. The line can be used once rn_line_hear returns RN_LINE_WORKS.
RN_MUST_USE rn_status_t rn_line_open(const rn_reach_t* reach, uint64_t task, const rn_env_t* env,
                                     rn_allocator_t allocator, rn_line_t** out);
void rn_line_retain(rn_line_t* line);
void rn_line_release(rn_line_t* line);  // NULL is fine

rn_loan_name_t rn_line_name(const rn_line_t* line);

// Whether the lender's memory can be read, as far as known.
typedef enum rn_line_state_t { RN_LINE_WAITS, RN_LINE_WORKS, RN_LINE_FAILS } rn_line_state_t;
rn_line_state_t rn_line_state(const rn_line_t* line);
// Receives the lender's packets. RN_LINE_FAILS is final.
rn_line_state_t rn_line_hear(rn_line_t* line);
// The lender's announcement of loan |id|; false if there was none. Once per loan.
bool rn_line_take(rn_line_t* line, uint64_t id, rn_loan_t* out);
// Reads |loan|, which must have |size| bytes. UNAVAILABLE if it has another size, or the lender has
// died.
RN_MUST_USE rn_status_t rn_line_read(const rn_line_t* line, const rn_loan_t* loan, void* to,
                                     size_t size, rn_pool_t* pool);
// Whether the lender can show values (board.h).
bool rn_line_has_board(const rn_line_t* line);
// Takes what the lender shows under |key|. False if it is not there.
bool rn_line_look(rn_line_t* line, rn_shown_key_t key, void* to, size_t size);

#endif  // RUNNEL_DIST_RPC_LINE_H_
