// A board: small values that a task shows to one other task of its machine, without a call.
//
// It is memory that the writer writes and the reader reads (shared.h), together with the reader's
// *notes*, memory the other way round, in which the reader notes what it has taken. The writer
// never overwrites a value that the reader may still want. Neither side can change the other's
// memory, and both check what they find there.
#ifndef RUNNEL_DIST_RPC_BOARD_H_
#define RUNNEL_DIST_RPC_BOARD_H_

#include "base/alloc.h"
#include "dist/iface.h"

// The writer's end. Locked by its owner.
typedef struct rn_board_t rn_board_t;
// Makes a board for the reader whose notes are |notes|, a descriptor; |*out_fd| is the board's,
// which the caller closes. NULL if that is not possible.
rn_board_t* rn_board_create(rn_allocator_t allocator, int notes, int* out_fd);
void rn_board_destroy(rn_board_t* board);  // NULL is fine
// Shows |size| bytes under |key|. Returns the value's number; 0 if the board is full, or the value
// too large.
uint64_t rn_board_show(rn_board_t* board, rn_shown_key_t key, const void* data, size_t size);
// Takes the value |number| off.
void rn_board_hide(rn_board_t* board, uint64_t number);
// Whether the reader has taken |number|, or it was hidden.
bool rn_board_is_taken(const rn_board_t* board, uint64_t number);

// The reader's end. Locked by its owner.
typedef struct rn_board_view_t rn_board_view_t;
// Makes notes; |*out_fd| is their descriptor, which the caller closes. NULL if that is not
// possible.
rn_board_view_t* rn_board_view_create(rn_allocator_t allocator, int* out_fd);
void rn_board_view_destroy(rn_board_view_t* view);  // NULL is fine
// The writer's board is |fd|; false if it is none.
bool rn_board_view_open(rn_board_view_t* view, int fd);
// Takes the oldest value under |key|; false if it is not there or has another size.
bool rn_board_view_take(rn_board_view_t* view, rn_shown_key_t key, void* to, size_t size);

#endif  // RUNNEL_DIST_RPC_BOARD_H_
