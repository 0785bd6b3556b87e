// Values as strided views of others, for nodes that read or write any layout: what moves elements
// before or after them (Transpose, Unpack, Pack) then need not run.
#ifndef RUNNEL_STEP_VIEWS_H_
#define RUNNEL_STEP_VIEWS_H_

#include "step/ir.h"

#define RN_VIEW_RANK 8

// Element (i, j, ...) of the value is element |offset| + i * steps[0] + j * steps[1] + ... of
// |tensor|.
typedef struct rn_ir_view_t {
  rn_ir_edge_t tensor;
  int rank;
  int64_t offset;
  int64_t steps[RN_VIEW_RANK];
} rn_ir_view_t;

// Follows |edge| back to what it is a view of, perhaps itself. False if its shape is not known or
// has too many dimensions.
bool rn_ir_view_of(const rn_ir_t* ir, rn_ir_edge_t edge, rn_ir_view_t* out);

// Follows output 0 of |node| to the tensor that it ends in, perhaps itself, as long as nothing else
// reads what lies between. |uses| are those of rn_ir_count_uses. With |packs|, that may be a tensor
// that a Pack makes of it and of others.
bool rn_ir_view_into(const rn_ir_t* ir, const rn_ir_uses_t* uses, int32_t node, bool packs,
                     rn_ir_view_t* out);

#endif  // RUNNEL_STEP_VIEWS_H_
