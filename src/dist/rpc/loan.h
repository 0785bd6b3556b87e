// Loans: tensors between tasks of one machine. The receiver reads them straight from the sender's
// memory, which the kernel allows between processes of one user.
//
// Nothing received over the network decides whose memory is read, or where. A lender listens on a
// Unix socket, and a receiver opens a *line* to it (line.h). The kernel tells each end who the
// other is; both must be of one user, and not the same process. A tensor's address is sent on the
// line alone, and read from the process that the kernel reports at its other end. The network
// carries only the lender's name, the line's name and the numbers of loans: forging one of them
// achieves no more than a failed loan.
//
// A lender keeps a tensor until the receiver has confirmed it, and the receiver uses what it read
// only if the tensor was kept till then. A killed process leaves nothing behind.
#ifndef RUNNEL_DIST_RPC_LOAN_H_
#define RUNNEL_DIST_RPC_LOAN_H_

#include "base/env.h"
#include "dist/iface.h"
#include "tensor/tensor.h"

// Smaller tensors go through the socket: two calls cost more than copying them.
#define RN_LOAN_MIN ((size_t)256 << 10)

// An unguessable name.
typedef struct rn_loan_name_t {
  uint64_t bits[2];
} rn_loan_name_t;
static inline bool rn_loan_name_eq(rn_loan_name_t a, rn_loan_name_t b) {
  return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

// The address of a lender.
typedef struct rn_reach_t {
  char machine[40];     // a name of the machine, new at each boot; NUL-terminated
  rn_loan_name_t name;  // of its socket
} rn_reach_t;

// What a receiver sends on a line, once, with the descriptor of its notes if it has a task
// (board.h).
typedef struct rn_hello_t {
  rn_loan_name_t name;  // of the line
  uint64_t task;        // rn_reach_task of the receiver's task; 0: it looks at no board
} rn_hello_t;

// What a lender sends on a line, one packet per loan. |id| is 0 in the first packet, which has the
// address of |secret|, so that the receiver can check whether it may read there; the descriptor of
// the receiver's board comes with it.
typedef struct rn_loan_t {
  uint64_t id, address, size;
  rn_loan_name_t secret;
} rn_loan_t;

// The lender's side. Any thread.
typedef struct rn_loans_t rn_loans_t;
// Fails without abstract Unix sockets.
RN_MUST_USE rn_status_t rn_loans_create(const rn_env_t* env, rn_allocator_t allocator,
                                        rn_loans_t** out);
void rn_loans_destroy(rn_loans_t* loans);  // NULL is fine
const rn_reach_t* rn_loans_reach(const rn_loans_t* loans);
// Accepts the line |name|, if its receiver has opened it, and sends the address of the secret on
// it.
void rn_loans_greet(rn_loans_t* loans, rn_loan_name_t name);
// Lends |tensor|, which has a buffer, on line |name|; it is kept until the loan ends or a minute
// has passed. UNAVAILABLE if there is no such line, or it is full, or if other processes cannot
// read the tensor: a driver's page-locked memory is such.
RN_MUST_USE rn_status_t rn_loans_add(rn_loans_t* loans, rn_loan_name_t name,
                                     const rn_tensor_t* tensor, uint64_t* out_id);
// Ends loan |id|; false if it has already ended, or never existed. Also ends expired loans.
bool rn_loans_end(rn_loans_t* loans, uint64_t id);

// The boards of receivers that have a task: see rn_showing_t.
uint64_t rn_loans_show(rn_loans_t* loans, uint64_t task, rn_shown_key_t key, const void* data,
                       size_t size);
void rn_loans_hide(rn_loans_t* loans, uint64_t number);
bool rn_loans_is_taken(rn_loans_t* loans, uint64_t number);

// A number for the name of a task, never 0 unless |task| is empty.
uint64_t rn_reach_task(rn_str_t task);

// The name of this machine; "" if it has none.
void rn_reach_machine(char* out, size_t room);
// The address of the lender's socket; returns its size.
struct sockaddr_un;
unsigned rn_reach_address(rn_loan_name_t name, struct sockaddr_un* out);
// The process at the other end of a Unix socket, as the kernel reports it: 0 if it is of another
// user, of an invisible process-id namespace, or this process.
int rn_reach_peer(int fd);

#endif  // RUNNEL_DIST_RPC_LOAN_H_
