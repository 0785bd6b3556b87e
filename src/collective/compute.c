// The results of a collective within a process: see compute.h.
#include "collective/compute.h"

#include "base/pool.h"

// Elements that are merged at a time, so that sums stay in the cache while inputs pass.
#define BLOCK 8192

typedef struct compute_merging_t {
  const rn_collective_t* like;
  const void* const* inputs;
  int32_t count;
  char* sum;
  int64_t n;
} compute_merging_t;

static void merge_blocks(void* arg, int64_t begin, int64_t end) {
  const compute_merging_t* merging = arg;
  const rn_collective_t* like = merging->like;
  size_t size = rn_dtype_size(like->dtype);
  for (int64_t block = begin; block < end; ++block) {
    int64_t first = block * BLOCK;
    int64_t n = merging->n - first < BLOCK ? merging->n - first : BLOCK;
    size_t at = (size_t)first * size;
    char* sum = merging->sum + at;
    const char* first_input = (const char*)merging->inputs[0] + at;
    if (merging->count == 1 && sum != first_input) memcpy(sum, first_input, (size_t)n * size);
    for (int32_t i = 1; i < merging->count; ++i)
      like->merge(like->dtype, i == 1 ? first_input : sum, (const char*)merging->inputs[i] + at,
                  sum, n);
    if (like->divide) like->divide(like->dtype, like->group_size, sum, n);
  }
}

void rn_collective_merge(const rn_collective_t* like, const void* const* inputs, int32_t count,
                         void* sum, int64_t n) {
  compute_merging_t merging = {like, inputs, count, sum, n};
  rn_pool_for(like->pool, (n + BLOCK - 1) / BLOCK, 1, merge_blocks, &merging);
}

static rn_status_t agree_on_shapes(rn_shape_t a, rn_shape_t b) {
  if (rn_shape_eq(a, b)) return RN_OK;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_append(&text, RN_STR("Shape mismatch in a collective: "));
  rn_shape_print(&text, a);
  rn_strbuf_append(&text, RN_STR(" and "));
  rn_shape_print(&text, b);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

rn_status_t rn_collective_agree(const rn_collective_t* a, const rn_collective_t* b) {
  if (a->kind != b->kind || a->dtype != b->dtype)
    return rn_internal(
        "Collective instance %d expected type %d and data_type %d but got type %d "
        "and data_type %d",
        a->instance_key, (int)a->kind, (int)a->dtype, (int)b->kind, (int)b->dtype);
  if (a->merge_op != b->merge_op || !a->divide != !b->divide)
    return rn_internal("Collective instance %d has members with different merge_op or final_op",
                       a->instance_key);
  if (a->input && b->input)
    return agree_on_shapes(rn_tensor_shape(a->input), rn_tensor_shape(b->input));
  return agree_on_shapes(a->shape, b->shape);
}

static rn_status_t make_output(rn_collective_t* member) {
  return rn_tensor_create(member->memory, member->dtype, member->shape, &member->output);
}

// The first member's output is the result of all.
static rn_status_t share_first(rn_collective_t* const* members, int32_t count) {
  for (int32_t i = 1; i < count; ++i)
    RN_RETURN_IF_ERROR(rn_tensor_share(&members[0]->output, &members[i]->output));
  return RN_OK;
}

// Reduces |n| elements from element |first| on into |sum|.
static rn_status_t reduce_part(rn_collective_t* const* members, int32_t count, int64_t first,
                               int64_t n, void* sum) {
  const void** inputs = NULL;
  rn_allocator_t allocator = rn_allocator_default();
  RN_RETURN_IF_ERROR(rn_alloc_array(allocator, (size_t)count, sizeof *inputs, (void**)&inputs));
  size_t at = (size_t)first * rn_dtype_size(members[0]->dtype);
  for (int32_t i = 0; i < count; ++i) inputs[i] = (const char*)members[i]->input->data + at;
  rn_collective_merge(members[0], inputs, count, sum, n);
  RN_FREE_ARRAY(allocator, inputs, (size_t)count);
  return RN_OK;
}

static rn_status_t reduce(rn_collective_t* const* members, int32_t count) {
  if (count == 1 && !members[0]->divide)
    return rn_tensor_keep(members[0]->input, members[0]->memory, &members[0]->output);
  RN_RETURN_IF_ERROR(make_output(members[0]));
  rn_tensor_t* sum = &members[0]->output;
  RN_RETURN_IF_ERROR(reduce_part(members, count, 0, sum->count, sum->data));
  return share_first(members, count);
}

static rn_status_t reduce_scatter(rn_collective_t* const* members, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(make_output(members[i]));
    rn_tensor_t* part = &members[i]->output;
    RN_RETURN_IF_ERROR(reduce_part(members, count, i * part->count, part->count, part->data));
  }
  return RN_OK;
}

static rn_status_t gather(rn_collective_t* const* members, int32_t count) {
  RN_RETURN_IF_ERROR(make_output(members[0]));
  char* to = members[0]->output.data;
  for (int32_t i = 0; i < count; ++i) {
    size_t size = rn_tensor_bytes(members[i]->input);
    if (size) memcpy(to, members[i]->input->data, size);
    to += size;
  }
  return share_first(members, count);
}

static rn_status_t broadcast(rn_collective_t* const* members, int32_t count) {
  const rn_collective_t* source = NULL;
  for (int32_t i = 0; i < count; ++i) {
    if (!members[i]->is_source) continue;
    if (source)
      return rn_internal("Broadcast instance %d has more than one source", source->instance_key);
    source = members[i];
  }
  if (!source) return rn_internal("Broadcast instance %d has no source", members[0]->instance_key);
  RN_RETURN_IF_ERROR(rn_tensor_keep(source->input, source->memory, &members[0]->output));
  return share_first(members, count);
}

static rn_status_t all_to_all(rn_collective_t* const* members, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    RN_RETURN_IF_ERROR(make_output(members[i]));
    size_t slice = rn_tensor_bytes(&members[i]->output) / (size_t)count;
    for (int32_t from = 0; slice && from < count; ++from)
      memcpy((char*)members[i]->output.data + (size_t)from * slice,
             (const char*)members[from]->input->data + (size_t)i * slice, slice);
  }
  return RN_OK;
}

rn_status_t rn_collective_compute(rn_collective_t* const* members, int32_t count) {
  switch (members[0]->kind) {
    case RN_COLLECTIVE_REDUCE:
      return reduce(members, count);
    case RN_COLLECTIVE_REDUCE_SCATTER:
      return reduce_scatter(members, count);
    case RN_COLLECTIVE_GATHER:
      return gather(members, count);
    case RN_COLLECTIVE_BROADCAST:
      return broadcast(members, count);
    case RN_COLLECTIVE_ALL_TO_ALL:
      return all_to_all(members, count);
    case RN_COLLECTIVE_JOIN:
      return RN_OK;
  }
  return rn_internal("Unknown collective %d", (int)members[0]->kind);
}
