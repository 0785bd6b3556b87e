// Stock's broadcast: first between one member of each task, then between the members of each task,
// each time down a binary tree. See stock.h.
#include <stdio.h>

#include "device/device.h"
#include "dist/collective/stock.h"
#include "proto/tensor_shape.pb.h"
#include "wire/writer.h"

// A tree, as one member sees it. Places count the members that take part.
typedef struct tree_t {
  int32_t number;  // in keys: 0 between tasks, 1 + task within one
  int32_t size, place, source;
  int32_t first;  // rank of place 0, within a task
} tree_t;

static int32_t task_end(const rn_group_t* group, int32_t first) {
  int32_t end = first;
  while (end < group->size && rn_str_eq(group->members[end].task, group->members[first].task))
    end++;
  return end;
}

// The trees of member |rank|; |out_between| has place -1 if it takes no part in it.
static void find_trees(const rn_stock_t* stock, int32_t rank, tree_t* out_between,
                       tree_t* out_within) {
  const rn_group_t* group = stock->meeting->group;
  *out_between = (tree_t){.size = group->task_count, .place = -1};
  int32_t task = 0;
  for (int32_t first = 0, end; first < group->size; first = end, ++task) {
    end = task_end(group, first);
    bool has_source = stock->source >= first && stock->source < end;
    if (has_source) out_between->source = task;
    if (rank == (has_source ? stock->source : first)) out_between->place = task;
    if (rank < first || rank >= end) continue;
    *out_within = (tree_t){.number = 1 + task,
                           .size = end - first,
                           .place = rank - first,
                           .source = has_source ? stock->source - first : 0,
                           .first = first};
  }
}

// The rank at |place| between tasks.
static int32_t rank_between(const rn_stock_t* stock, int32_t place) {
  const rn_group_t* group = stock->meeting->group;
  int32_t first = 0, end = task_end(group, 0);
  while (place--) {
    first = end;
    end = task_end(group, first);
  }
  return stock->source >= first && stock->source < end ? stock->source : first;
}

// If the source is not at place 0, it is thought to be before it, too.
static int32_t parent_of(const tree_t* tree) {
  if (!tree->source) return (tree->place - 1) / 2;
  int32_t parent = tree->place / 2 - 1;
  return parent < 0 ? tree->source : parent;
}

static rn_status_t send_to(rn_stock_t* stock, const tree_t* tree, int32_t place,
                           const rn_tensor_t* value) {
  char key[sizeof((rn_stock_pull_t*)0)->key];
  snprintf(key, sizeof key, "%s:%d:%d:%d", stock->key, tree->number, tree->place, place);
  return rn_stock_send(stock, key, value, 0, value->count);
}

static rn_status_t send_down(rn_stock_t* stock, const tree_t* tree, const rn_tensor_t* value) {
  int32_t child = tree->source ? 2 * (tree->place + 1) : 2 * tree->place + 1;
  if (tree->source && tree->place == tree->source) {
    if (tree->size > 1) RN_RETURN_IF_ERROR(send_to(stock, tree, 0, value));
    if (tree->size > 2 && tree->source != 1) RN_RETURN_IF_ERROR(send_to(stock, tree, 1, value));
  }
  for (int i = 0; i < 2; ++i, ++child)
    if (child < tree->size && child != tree->source)
      RN_RETURN_IF_ERROR(send_to(stock, tree, child, value));
  return RN_OK;
}

// Gives |value| to member |m|, and to those below it.
static rn_status_t give(rn_stock_t* stock, int32_t m, const rn_tensor_t* value) {
  rn_collective_t* member = stock->meeting->members[m];
  tree_t between, within;
  find_trees(stock, stock->meeting->ranks[m], &between, &within);
  if (between.place >= 0) RN_RETURN_IF_ERROR(send_down(stock, &between, value));
  RN_RETURN_IF_ERROR(send_down(stock, &within, value));
  return rn_tensor_reshape(value, member->dtype, member->shape, &member->output);
}

static void on_value(rn_stock_pull_t* pull) {
  rn_stock_check(pull->stock, give(pull->stock, pull->member, &pull->value));
}

static rn_status_t start_member(rn_stock_t* stock, int32_t m) {
  rn_stock_pull_t* pull = &stock->pulls[m];
  tree_t between, within;
  if (stock->meeting->ranks[m] == stock->source) return give(stock, m, &stock->inputs[m]);
  find_trees(stock, stock->meeting->ranks[m], &between, &within);
  const tree_t* tree = between.place >= 0 ? &between : &within;
  int32_t parent = parent_of(tree);
  snprintf(pull->key, sizeof pull->key, "%s:%d:%d:%d", stock->key, tree->number, parent,
           tree->place);
  pull->member = m;
  pull->count = stock->total;
  pull->next = on_value;
  rn_stock_pull(pull, tree->number ? tree->first + parent : rank_between(stock, parent));
  return RN_OK;
}

// Finding the source. All members ask the leader, who answers when it has heard from all. As in
// stock, an instance has the same source in all steps.

static rn_status_t start_tree(rn_stock_t* stock) {
  const rn_meeting_t* meeting = stock->meeting;
  if (stock->source < 0 || stock->source >= meeting->group->size)
    return rn_internal("Instance %d of group %d has no source", stock->like->instance_key,
                       stock->like->group_key);
  for (int32_t m = 0; m < meeting->count; ++m) {
    bool is_it = meeting->ranks[m] == stock->source;
    if (is_it != meeting->members[m]->is_source)
      return rn_internal("The source of instance %d of group %d is %d, not %d",
                         stock->like->instance_key, stock->like->group_key, stock->source,
                         meeting->ranks[m]);
    RN_RETURN_IF_ERROR(start_member(stock, m));
  }
  return RN_OK;
}

static void on_source(rn_call_t* call, rn_status_t status) {
  rn_complete_instance_t* ask = (rn_complete_instance_t*)call;
  rn_stock_t* stock = call->owner;
  bool is_last = false;
  rn_mutex_lock(&stock->mutex);
  if (rn_ok(status)) stock->source = ask->source_rank;
  is_last = --stock->asking == 0 && rn_ok(stock->status) && rn_ok(status);
  rn_mutex_unlock(&stock->mutex);
  rn_stock_check(stock, status);
  if (is_last) rn_stock_check(stock, start_tree(stock));
  rn_stock_release(stock);
}

static rn_status_t put_shape(rn_stock_t* stock) {
  rn_shape_t shape = stock->like->shape;
  for (int i = 0; i < shape.rank; ++i) {
    size_t dim = rn_pb_begin(&stock->shape, rn_pb_TensorShapeProto_dim_field);
    if (shape.dims[i])
      rn_pb_put_uint(&stock->shape, rn_pb_TensorShapeProto_Dim_size_field, (uint64_t)shape.dims[i]);
    rn_pb_end(&stock->shape, dim);
  }
  return rn_strbuf_status(&stock->shape);
}

rn_status_t rn_stock_tree_start(rn_stock_t* stock) {
  const rn_meeting_t* meeting = stock->meeting;
  size_t count = (size_t)meeting->count;
  stock->source = -1;
  RN_RETURN_IF_ERROR(put_shape(stock));
  RN_RETURN_IF_ERROR(rn_stock_make_pulls(stock, count));
  RN_RETURN_IF_ERROR(
      rn_alloc_array(stock->options->allocator, count, sizeof *stock->asks, (void**)&stock->asks));
  stock->asking = meeting->count;
  for (size_t m = 0; m < count; ++m) {
    const rn_collective_t* member = meeting->members[m];
    stock->asks[m] = (rn_complete_instance_t){.call = {.done = on_source,
                                                       .owner = stock,
                                                       .deadline_ns = INT64_MAX,
                                                       .cancel = &stock->meeting->cancel,
                                                       .waits_for_ready = true},
                                              .group_key = member->group_key,
                                              .group_size = member->group_size,
                                              .instance_key = member->instance_key,
                                              .kind = (int32_t)member->kind,
                                              .node = member->node,
                                              .device = member->device->name,
                                              .device_type = rn_str(member->device->type),
                                              .dtype = member->dtype,
                                              .shape = rn_strbuf_view(&stock->shape),
                                              .is_source = member->is_source};
    rn_stock_hold(stock);
    stock->options->ask(stock->options->self, &stock->asks[m]);
  }
  return RN_OK;
}
