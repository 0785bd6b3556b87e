// Tensors between tasks of one machine: the receiver reads them straight out of the sender's
// memory, as the kernel allows it to processes of one user.
//
// Nobody may read what the kernel does not let it, so nothing is taken on trust: before the first
// tensor the receiver reads a secret of the sender's and compares it with what the sender said. A
// sender keeps what it has lent until the receiver says that it has it, and the receiver believes
// what it has read only if it was kept till then. A process that is killed leaves nothing behind.
#ifndef RUNNEL_DIST_RPC_LOAN_H_
#define RUNNEL_DIST_RPC_LOAN_H_

#include "base/env.h"
#include "tensor/tensor.h"

// Tensors of fewer bytes go through the socket: two calls cost more than to copy them.
#define RN_LOAN_MIN ((size_t)256 << 10)

// Where a process is to be found, and how it is known.
typedef struct rn_reach_t {
  char machine[40];  // a name of the machine since it was started; NUL-terminated
  uint64_t pid, address;
  uint64_t secret[2];  // what lies at |address|
} rn_reach_t;

typedef struct rn_loan_t {
  uint64_t id, address;
} rn_loan_t;

// The sender's side. Any thread.
typedef struct rn_loans_t rn_loans_t;
RN_MUST_USE rn_status_t rn_loans_create(const rn_env_t* env, rn_allocator_t allocator,
                                        rn_loans_t** out);
void rn_loans_destroy(rn_loans_t* loans);  // NULL is fine
const rn_reach_t* rn_loans_reach(const rn_loans_t* loans);
// Keeps |tensor|'s buffer until the loan ends, or a minute has passed.
RN_MUST_USE rn_status_t rn_loans_add(rn_loans_t* loans, const rn_tensor_t* tensor, rn_loan_t* out);
// False if it has ended already, or was never made. Those whose time is over go too.
bool rn_loans_end(rn_loans_t* loans, uint64_t id);

// The name of this machine; "" if it has none.
void rn_reach_machine(char* out, size_t room);
// The receiver's side. Whether the memory of |peer| can be read from here.
bool rn_reach_works(const rn_reach_t* peer);
RN_MUST_USE rn_status_t rn_reach_read(uint64_t pid, uint64_t address, void* to, size_t size,
                                      rn_pool_t* pool);

#endif  // RUNNEL_DIST_RPC_LOAN_H_
