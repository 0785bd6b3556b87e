// A small instance beside a meeting: the members of a group tell each other a few numbers.
#ifndef RUNNEL_COLLECTIVE_SIDE_H_
#define RUNNEL_COLLECTIVE_SIDE_H_

#include "collective/collectives.h"

// The pieces under which sides exchange, next to those of values.
enum {
  RN_SIDE_ARRIVE = -1,
  RN_SIDE_ORDER = -2,
  RN_SIDE_WATCH = -3,
};
// The frame of sides of a group rather than of an instance; the iteration numbers them.
#define RN_SIDE_OF_GROUP UINT64_MAX

typedef struct rn_side_t {
  rn_meeting_t face;  // first
  // Called when it has ended; takes the status. The caller sets it and what follows.
  void (*done)(struct rn_side_t* side, rn_status_t status);
  void* arg;
  int32_t width;              // numbers per member
  rn_collective_t* requests;  // by member of this process
  rn_collective_t** members;
  rn_tensor_t* inputs;
  int32_t* ranks;
  int64_t* rows;    // what the members of this process say
  int64_t dims[2];  // of the table
  rn_cancel_t* parent;
  rn_cancel_entry_t link;
  bool is_linked;
} rn_side_t;

// A side of |like|'s group with its members. Keeps nothing of |like| but its group.
RN_MUST_USE rn_status_t rn_side_create(const rn_meeting_t* like, int32_t piece, int32_t width,
                                       rn_side_t** out);
void rn_side_destroy(rn_side_t* side);  // one that has ended, or never started; NULL is fine

// All members get |rows| of all others: |done| finds them in the table. |parent| ends it.
void rn_side_gather(rn_side_t* side, rn_cancel_t* parent);
// By rank, when |done| has no error.
static inline const int64_t* rn_side_table(const rn_side_t* side) {
  return side->requests[0].output.data;
}

// Watches the members in other tasks: |parent| and |side->face.cancel| are cancelled as soon as one
// is lost or fails. |done| follows when all tasks have called rn_side_tell, this one, too.
void rn_side_watch(rn_side_t* side, rn_cancel_t* parent);
// This task has ended with |status|, which this takes.
void rn_side_tell(rn_side_t* side, rn_status_t status);

#endif  // RUNNEL_COLLECTIVE_SIDE_H_
