// A line to a lender: the receiver's side of loans. See loan.h.
//
// Counted, so that a tensor can be read while the line is replaced. The caller
// guards rn_line_state, rn_line_hear and rn_line_take by a lock; the rest is for any thread.
#ifndef RUNNEL_DIST_RPC_LINE_H_
#define RUNNEL_DIST_RPC_LINE_H_

#include "dist/rpc/loan.h"

typedef struct rn_line_t rn_line_t;

// A line to the lender at |reach|. UNAVAILABLE if it is on another machine, of another user, this
// process, or not there. It can be used once rn_line_hear says that it works.
RN_MUST_USE rn_status_t rn_line_open(const rn_reach_t* reach, const rn_env_t* env,
                                     rn_allocator_t allocator, rn_line_t** out);
void rn_line_retain(rn_line_t* line);
void rn_line_release(rn_line_t* line);  // NULL is fine

rn_loan_name_t rn_line_name(const rn_line_t* line);

// What is known of the line: whether the lender's memory can be read.
typedef enum rn_line_state_t { RN_LINE_WAITS, RN_LINE_WORKS, RN_LINE_FAILS } rn_line_state_t;
rn_line_state_t rn_line_state(const rn_line_t* line);
// Takes in what the lender has said. RN_LINE_FAILS is for good.
rn_line_state_t rn_line_hear(rn_line_t* line);
// What the lender said of loan |id|; false if it said nothing. Once for each loan.
bool rn_line_take(rn_line_t* line, uint64_t id, rn_loan_t* out);
// Reads |loan|, which has |size| bytes. UNAVAILABLE if it is of another size, or the lender has
// died.
RN_MUST_USE rn_status_t rn_line_read(const rn_line_t* line, const rn_loan_t* loan, void* to,
                                     size_t size, rn_pool_t* pool);

#endif  // RUNNEL_DIST_RPC_LINE_H_
