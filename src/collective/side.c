// Small instances beside a meeting: see side.h.
#include "collective/side.h"

#include "base/container.h"
#include "collective/internal.h"

static void on_end(rn_meeting_t* face, rn_status_t status) {
  rn_side_t* side = (rn_side_t*)face;
  if (side->is_linked) rn_cancel_remove(side->parent, &side->link);
  side->is_linked = false;
  side->done(side, status);
}

static void on_parent_cancelled(rn_cancel_entry_t* entry) {
  rn_cancel(&RN_CONTAINER_OF(entry, rn_side_t, link)->face.cancel);
}

static rn_status_t fill(rn_side_t* side, const rn_meeting_t* like, int32_t piece) {
  rn_allocator_t allocator = like->owner->allocator;
  size_t count = (size_t)like->count, width = (size_t)side->width;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &side->requests));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &side->members));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &side->inputs));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &side->ranks));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count * width, &side->rows));
  side->dims[0] = like->group->size;
  side->dims[1] = side->width;
  for (size_t i = 0; i < count; ++i) {
    const rn_collective_t* member = like->members[i];
    side->ranks[i] = like->ranks[i];
    side->members[i] = &side->requests[i];
    side->inputs[i] = (rn_tensor_t){.data = side->rows + i * width,
                                    .count = side->width,
                                    .dtype = RN_INT64,
                                    .rank = 1,
                                    .inline_dims = {side->width}};
    side->requests[i] = (rn_collective_t){.group_key = member->group_key,
                                          .group_size = member->group_size,
                                          .instance_key = member->instance_key,
                                          .kind = RN_COLLECTIVE_GATHER,
                                          .step = member->step,
                                          .frame = member->frame,
                                          .iteration = member->iteration,
                                          .dtype = RN_INT64,
                                          .shape = {2, side->dims},
                                          .input = &side->inputs[i],
                                          .memory = rn_allocator_default()};
  }
  side->face.owner = like->owner;
  side->face.group = like->group;
  side->face.count = like->count;
  side->face.ranks = side->ranks;
  side->face.members = side->members;
  side->face.piece = piece;
  side->face.on_end = on_end;
  return RN_OK;
}

rn_status_t rn_side_create(const rn_meeting_t* like, int32_t piece, int32_t width,
                           rn_side_t** out) {
  rn_side_t* side = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(like->owner->allocator, &side));
  rn_cancel_init(&side->face.cancel);
  side->face.owner = like->owner;
  side->face.count = like->count;
  side->width = width;
  side->link.fn = on_parent_cancelled;
  rn_status_t status = fill(side, like, piece);
  if (rn_ok(status))
    *out = side;
  else
    rn_side_destroy(side);
  return status;
}

void rn_side_destroy(rn_side_t* side) {
  if (!side) return;
  rn_allocator_t allocator = side->face.owner->allocator;
  size_t count = (size_t)side->face.count;
  for (size_t i = 0; side->requests && i < count; ++i) rn_tensor_clear(&side->requests[i].output);
  rn_cancel_destroy(&side->face.cancel);
  if (side->requests) RN_FREE_ARRAY(allocator, side->requests, count);
  if (side->members) RN_FREE_ARRAY(allocator, side->members, count);
  if (side->inputs) RN_FREE_ARRAY(allocator, side->inputs, count);
  if (side->ranks) RN_FREE_ARRAY(allocator, side->ranks, count);
  if (side->rows) RN_FREE_ARRAY(allocator, side->rows, count * (size_t)side->width);
  RN_FREE(allocator, side);
}

static void link_to(rn_side_t* side, rn_cancel_t* parent) {
  side->parent = parent;
  side->is_linked = rn_cancel_add(parent, &side->link);
  if (!side->is_linked) side->face.failure = rn_cancelled("op cancelled");
}

void rn_side_gather(rn_side_t* side, rn_cancel_t* parent) {
  link_to(side, parent);
  rn_meeting_run_on_host(&side->face);
}

void rn_side_watch(rn_side_t* side, rn_cancel_t* parent) {
  const rn_collective_cluster_t* cluster = &side->face.owner->cluster;
  link_to(side, parent);
  cluster->watch(cluster->self, &side->face);
}

void rn_side_tell(rn_side_t* side, rn_status_t status) {
  const rn_collective_cluster_t* cluster = &side->face.owner->cluster;
  cluster->tell(cluster->self, &side->face, status);
}
