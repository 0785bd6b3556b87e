// How a task receives from one peer over its wire (wire.h): learns the peer's address, dials it,
// names the line in requests, and stops trying if UCX does not reach the peer.
//
// Any thread, except that rn_dial_stop must be the last.
#ifndef RUNNEL_DIST_RPC_DIAL_H_
#define RUNNEL_DIST_RPC_DIAL_H_

#include "base/sync.h"
#include "dist/rpc/codec.h"
#include "dist/rpc/wire.h"

typedef struct rn_dial_t {
  rn_wire_t* wire;  // Borrowed; NULL: none
  const rn_env_t* env;
  rn_str_t peer;     // its name, for the log; borrowed
  rn_mutex_t mutex;  // guards what follows
  rn_loan_name_t line;
  bool has_line, has_worked;  // a value has come on it
  bool is_off;                // the peer has no wire, or cannot be reached
  int tries, waits;           // lines that failed; responses that did not know the line yet
} rn_dial_t;

void rn_dial_init(rn_dial_t* dial, rn_wire_t* wire, const rn_env_t* env, rn_str_t peer);
// Hangs up.
void rn_dial_stop(rn_dial_t* dial);
void rn_dial_clear(rn_dial_t* dial);

// What a request says. True if it names |take|, which is expected now.
bool rn_dial_ask(rn_dial_t* dial, rn_wire_take_t* take, rn_wire_ask_t* out);
// Learns from the response to it; |status| is that of the call, and borrowed.
void rn_dial_learn(rn_dial_t* dial, const rn_wire_ask_t* ask, rn_status_t status,
                   const rn_wire_answer_t* answer);

#endif  // RUNNEL_DIST_RPC_DIAL_H_
