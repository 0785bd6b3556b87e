// Tensors between tasks of one machine: the receiver reads them straight out of the sender's
// memory, as the kernel allows it to processes of one user.
//
// Nothing that came over the network says whose memory is read, or where. A lender listens on a
// Unix socket, and a receiver opens a *line* to it (line.h). The kernel tells each end who the
// other is; both must be of one user, and not the same process. Where a tensor lies is said on the
// line alone, and read from the process that the kernel found at its other end. The network carries
// only the lender's name, the line's name and the numbers of loans: whoever forges one of them gets
// no more than a loan that fails.
//
// A lender keeps what it has lent until the receiver says that it has it, and the receiver believes
// what it has read only if it was kept till then. A process that is killed leaves nothing behind.
#ifndef RUNNEL_DIST_RPC_LOAN_H_
#define RUNNEL_DIST_RPC_LOAN_H_

#include "base/env.h"
#include "tensor/tensor.h"

// Tensors of fewer bytes go through the socket: two calls cost more than to copy them.
#define RN_LOAN_MIN ((size_t)256 << 10)

// A name that nobody can guess.
typedef struct rn_loan_name_t {
  uint64_t bits[2];
} rn_loan_name_t;

// Where a lender is to be found.
typedef struct rn_reach_t {
  char machine[40];     // a name of the machine since it was started; NUL-terminated
  rn_loan_name_t name;  // of its socket
} rn_reach_t;

// What a lender says on a line, one packet per loan. |id| is 0 in the first packet, which says
// where |secret| lies, so that the receiver can find out whether it may read there.
typedef struct rn_loan_t {
  uint64_t id, address, size;
  rn_loan_name_t secret;
} rn_loan_t;

// The lender's side. Any thread.
typedef struct rn_loans_t rn_loans_t;
// Fails where there are no abstract Unix sockets.
RN_MUST_USE rn_status_t rn_loans_create(const rn_env_t* env, rn_allocator_t allocator,
                                        rn_loans_t** out);
void rn_loans_destroy(rn_loans_t* loans);  // NULL is fine
const rn_reach_t* rn_loans_reach(const rn_loans_t* loans);
// Takes the line |name| in, if its receiver has opened it, and says on it where the secret lies.
void rn_loans_greet(rn_loans_t* loans, rn_loan_name_t name);
// Lends |tensor|, which has a buffer, on line |name|; it is kept until the loan ends or a minute
// has passed. UNAVAILABLE if there is no such line, or it takes no more.
RN_MUST_USE rn_status_t rn_loans_add(rn_loans_t* loans, rn_loan_name_t name,
                                     const rn_tensor_t* tensor, uint64_t* out_id);
// False if it has ended already, or was never made. Those whose time is over go too.
bool rn_loans_end(rn_loans_t* loans, uint64_t id);

// The name of this machine; "" if it has none.
void rn_reach_machine(char* out, size_t room);
// The address of the lender's socket; returns its size.
struct sockaddr_un;
unsigned rn_reach_address(rn_loan_name_t name, struct sockaddr_un* out);
// The process at the other end of a Unix socket, as the kernel knows it: 0 if it is of another
// user, of a process-id namespace that cannot be seen from here, or this process.
int rn_reach_peer(int fd);

#endif  // RUNNEL_DIST_RPC_LOAN_H_
