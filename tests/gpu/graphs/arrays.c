// Makers of ops that move elements: see maker.h.
#include <math.h>

#include "maker.h"

// |v| with its elements moved.
static value_t moved(const value_t* v, rn_edge_t edge) {
  value_t made = *v;
  made.edge = edge;
  return made;
}

#define ALL (NUMBERS | BOOLS)

// A dimension whose size is the same in every step; -1 if there is none.
static int fixed_axis(maker_t* m, const value_t* v) {
  for (int i = 0; i < 6 && v->rank; ++i) {
    int axis = (int)draw(m, (uint32_t)v->rank);
    if (v->dims[axis] != BATCH) return axis;
  }
  return -1;
}

static bool make_reshape(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v) return false;
  value_t made = *v;
  bool has_batch = false;
  for (int i = 1; i < v->rank; ++i)
    if (v->dims[i] == BATCH) return false;
  has_batch = v->dims[0] == BATCH;
  int64_t rest = elements(v) / (has_batch ? MOST_BATCH : 1), shape[MOST_RANK];
  made.rank = has_batch;
  shape[0] = -1;
  while (rest > 1 && made.rank < MOST_RANK - 1) {
    int64_t factor = 1 + draw(m, (uint32_t)rest);
    while (rest % factor) --factor;
    shape[made.rank] = made.dims[made.rank] = factor;
    ++made.rank;
    rest /= factor;
  }
  if (rest > 1 || made.rank == 0) shape[made.rank] = made.dims[made.rank] = rest, ++made.rank;
  made.edge = node2(m, "Reshape", v->edge, ints(m, shape, made.rank));
  return put(m, made);
}

static bool make_transpose(maker_t* m) {
  const value_t* v = pick(m, ALL, 2, MOST_RANK);
  if (!v) return false;
  int64_t order[MOST_RANK] = {0, 1, 2, 3};
  for (int i = v->rank - 1; i > 0; --i) {
    int with = (int)draw(m, (uint32_t)i + 1);
    int64_t kept = order[i];
    order[i] = order[with];
    order[with] = kept;
  }
  value_t made = moved(v, node2(m, "Transpose", v->edge, ints(m, order, v->rank)));
  for (int i = 0; i < v->rank; ++i) made.dims[i] = v->dims[order[i]];
  return put(m, made);
}

static bool make_concat(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  int axis = v ? fixed_axis(m, v) : -1;
  if (axis < 0) return false;
  rn_edge_t list[3] = {v->edge};
  int count = 1;
  value_t made = *v;
  for (int i = 0; i < m->count && count < 3; ++i) {
    const value_t* other = &m->values[i];
    value_t same = *other;
    if (other->dtype != v->dtype || other->rank != v->rank || other->dims[axis] == BATCH) continue;
    same.dims[axis] = v->dims[axis];
    if (!is_same_shape(&same, v) || chance(m, 50)) continue;
    list[count++] = other->edge;
    made.dims[axis] += other->dims[axis];
    made.most = fmax(made.most, other->most);
    made.error = fmax(made.error, other->error);
    made.is_changed |= other->is_changed;
  }
  if (count == 1) list[count++] = v->edge, made.dims[axis] *= 2;
  rn_edge_t at = rn_const_int32(m->s, axis);
  rn_op_begin(m->s, "ConcatV2");
  rn_op_input_list(m->s, list, count);
  rn_op_input(m->s, at);
  made.edge = end_node(m);
  return put(m, made);
}

static bool make_slice(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v) return false;
  value_t made = *v;
  int64_t begin[MOST_RANK], size[MOST_RANK];
  for (int i = 0; i < v->rank; ++i) {
    begin[i] = v->dims[i] == BATCH ? 0 : (int64_t)draw(m, (uint32_t)v->dims[i]);
    int64_t room = v->dims[i] == BATCH ? 0 : v->dims[i] - begin[i];
    size[i] = room ? 1 + (int64_t)draw(m, (uint32_t)room) : -1;
    if (room) made.dims[i] = size[i];
  }
  NODE(m, "Slice", v->edge, ints(m, begin, v->rank), ints(m, size, v->rank));
  made.edge = end_node(m);
  return put(m, made);
}

// Every second element, backwards, or one row.
static bool make_strided_slice(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v) return false;
  value_t made = *v;
  int64_t begin[MOST_RANK] = {0}, end[MOST_RANK] = {0}, step[MOST_RANK], shrinks = 0;
  made.rank = 0;
  for (int i = 0; i < v->rank; ++i) {
    uint32_t how = v->dims[i] == BATCH ? 0 : draw(m, 4);
    step[i] = how == 1 ? -1 : how == 2 ? 2 : 1;
    if (how == 3) {
      begin[i] = draw(m, (uint32_t)v->dims[i]);
      end[i] = begin[i] + 1;
      shrinks |= 1 << i;
    } else {
      made.dims[made.rank++] = how == 2 ? (v->dims[i] + 1) / 2 : v->dims[i];
    }
  }
  int64_t all = (1 << v->rank) - 1;
  NODE(m, "StridedSlice", v->edge, ints(m, begin, v->rank), ints(m, end, v->rank),
       ints(m, step, v->rank));
  rn_op_attr_int(m->s, "begin_mask", all & ~shrinks);
  rn_op_attr_int(m->s, "end_mask", all & ~shrinks);
  rn_op_attr_int(m->s, "shrink_axis_mask", shrinks);
  made.edge = end_node(m);
  return put(m, made);
}

static bool make_pad(maker_t* m) {
  const value_t* v = pick(m, NUMBERS, 1, MOST_RANK);
  if (!v) return false;
  bool is_mirror = chance(m, 30);
  value_t made = *v;
  int32_t pads[2 * MOST_RANK];
  for (int i = 0; i < v->rank; ++i) {
    uint32_t most = v->dims[i] == BATCH ? 1 : is_mirror && v->dims[i] < 2 ? 1 : 2;
    pads[2 * i] = (int32_t)draw(m, most);
    pads[2 * i + 1] = (int32_t)draw(m, most);
    if (v->dims[i] != BATCH) made.dims[i] += pads[2 * i] + pads[2 * i + 1];
  }
  rn_edge_t list = rn_const(m->s, RN_INT32, (int64_t[]){v->rank, 2}, 2, pads);
  NODE(m, is_mirror ? "MirrorPad" : "Pad", v->edge, list);
  if (is_mirror) rn_op_attr_string(m->s, "mode", chance(m, 50) ? "REFLECT" : "SYMMETRIC");
  made.edge = end_node(m);
  return put(m, made);
}

static bool make_tile(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v) return false;
  value_t made = *v;
  int64_t times[MOST_RANK];
  for (int i = 0; i < v->rank; ++i) {
    times[i] = v->dims[i] == BATCH ? 1 : 1 + (int64_t)draw(m, 2);
    if (v->dims[i] != BATCH) made.dims[i] *= times[i];
  }
  made.edge = node2(m, "Tile", v->edge, ints(m, times, v->rank));
  return put(m, made);
}

static bool make_expand(maker_t* m) {
  const value_t* v = pick(m, ALL, 0, MOST_RANK - 1);
  if (!v) return false;
  int axis = (int)draw(m, (uint32_t)v->rank + 1);
  value_t made = moved(v, node2(m, "ExpandDims", v->edge, rn_const_int32(m->s, axis)));
  for (int i = v->rank; i > axis; --i) made.dims[i] = made.dims[i - 1];
  made.dims[axis] = 1;
  ++made.rank;
  return put(m, made);
}

static bool make_pack(maker_t* m) {
  const value_t* v = pick(m, ALL, 0, MOST_RANK - 1);
  if (!v) return false;
  value_t other = keep_shape(m, *v);
  rn_edge_t list[2] = {v->edge, other.edge};
  rn_op_begin(m->s, "Pack");
  rn_op_input_list(m->s, list, 2);
  value_t made = moved(v, end_node(m));
  for (int i = v->rank; i > 0; --i) made.dims[i] = made.dims[i - 1];
  made.dims[0] = 2;
  ++made.rank;
  made.most = fmax(v->most, other.most);
  made.error = fmax(v->error, other.error);
  return put(m, made);
}

static bool make_unpack(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v || v->dims[0] == BATCH || v->dims[0] > 4) return false;
  value_t made = *v;
  NODE(m, "Unpack", v->edge);
  rn_op_attr_int(m->s, "num", v->dims[0]);
  made.edge = (rn_edge_t){rn_op_finish(m->s), (int)draw(m, (uint32_t)v->dims[0])};
  --made.rank;
  for (int i = 0; i < made.rank; ++i) made.dims[i] = v->dims[i + 1];
  return put(m, made);
}

static bool make_split(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  int axis = v ? fixed_axis(m, v) : -1;
  if (axis < 0) return false;
  int64_t parts = v->dims[axis] % 3 == 0 ? 3 : v->dims[axis] % 2 == 0 ? 2 : 1;
  value_t made = *v;
  NODE(m, "Split", rn_const_int32(m->s, axis), v->edge);
  rn_op_attr_int(m->s, "num_split", parts);
  rn_node_t* node = rn_op_finish(m->s);
  made.dims[axis] /= parts;
  made.edge = (rn_edge_t){node, 0};
  if (!put(m, made)) return false;
  made.edge = (rn_edge_t){node, (int)parts - 1};
  return put(m, made);
}

static bool make_reverse(maker_t* m) {
  const value_t* v = pick(m, ALL, 1, MOST_RANK);
  if (!v) return false;
  int64_t axis = draw(m, (uint32_t)v->rank);
  if (chance(m, 50)) return put(m, moved(v, node2(m, "ReverseV2", v->edge, ints(m, &axis, 1))));
  int32_t shift = (int32_t)draw(m, 5) - 2;
  NODE(m, "Roll", v->edge, rn_const_int32(m->s, shift), rn_const_int32(m->s, (int32_t)axis));
  return put(m, moved(v, end_node(m)));
}

static bool make_gather(maker_t* m) {
  const value_t *v = pick(m, ALL, 1, MOST_RANK), *at = pick(m, INTS, 0, 2);
  int axis = v && at ? fixed_axis(m, v) : -1;
  if (axis < 0 || v->rank + at->rank - 1 > MOST_RANK) return false;
  rn_edge_t indices = in_range(m, at, v->dims[axis]);
  NODE(m, "GatherV2", v->edge, indices, rn_const_int32(m->s, axis));
  value_t made = moved(v, end_node(m));
  made.rank = v->rank + at->rank - 1;
  for (int i = 0; i < at->rank; ++i) made.dims[axis + i] = at->dims[i];
  for (int i = axis + 1; i < v->rank; ++i) made.dims[i + at->rank - 1] = v->dims[i];
  made.is_changed |= at->is_changed;
  return put(m, made);
}

static bool make_one_hot(maker_t* m) {
  const value_t* v = pick(m, INTS, 0, 2);
  if (!v) return false;
  const int64_t depth = 2 + draw(m, 5);
  const rn_dtype_t dtype = chance(m, 50) ? RN_FLOAT : RN_INT64;
  NODE(m, "OneHot", v->edge, rn_const_int32(m->s, (int32_t)depth), number(m, dtype, 2),
       number(m, dtype, -1));
  value_t made = *v;
  made.dtype = dtype;
  made.dims[made.rank++] = depth;
  return put(m, result(&made, end_node(m), 2, 0));
}

static bool make_like(maker_t* m) {
  const value_t* v = pick(m, NUMBERS, 0, MOST_RANK);
  if (!v) return false;
  if (chance(m, 40))
    return put(m, result(v, node1(m, chance(m, 50) ? "ZerosLike" : "OnesLike", v->edge), 1, 0));
  rn_edge_t shape = node1(m, "Shape", v->edge);
  return put(m, result(v, node2(m, "Fill", shape, number(m, v->dtype, 1)), 1, 0));
}

static bool make_shape(maker_t* m) {
  const value_t* v = pick(m, ALL, 0, MOST_RANK);
  if (!v) return false;
  value_t made = {.dtype = RN_INT32, .most = MOST_ELEMENTS, .is_changed = v->is_changed};
  made.edge = node1(m, chance(m, 50) ? "Size" : "Rank", v->edge);
  return put(m, made);
}

static bool make_segment_sum(maker_t* m) {
  const value_t* v = pick(m, REALS, 1, 3);
  if (!v) return false;
  const value_t* ids = NULL;
  for (int i = 0; i < m->count; ++i) {
    const value_t* other = &m->values[i];
    if (is_of(other->dtype, INTS) && other->rank == 1 && other->dims[0] == v->dims[0]) ids = other;
  }
  if (!ids) return false;
  const int64_t segments = 1 + draw(m, 5);
  rn_edge_t at = in_range(m, ids, segments);
  NODE(m, "UnsortedSegmentSum", v->edge, at, rn_const_int32(m->s, (int32_t)segments));
  value_t made = *v;
  made.is_changed |= ids->is_changed;
  made.dims[0] = segments;
  double rows = (double)size_at(v, 0);
  return put(m, result(&made, end_node(m), rows * v->most, rows * v->error));
}

const choice_t array_choices[] = {
    {10, make_reshape},      {10, make_transpose}, {10, make_concat}, {8, make_slice},
    {8, make_strided_slice}, {6, make_pad},        {5, make_tile},    {6, make_expand},
    {6, make_pack},          {4, make_unpack},     {5, make_split},   {6, make_reverse},
    {10, make_gather},       {5, make_one_hot},    {4, make_like},    {3, make_shape},
    {6, make_segment_sum},
};
const int array_choice_count = sizeof array_choices / sizeof *array_choices;
