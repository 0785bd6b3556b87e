// Input pipelines of queues. See runnel/input.h.
#include "runnel/input.h"

#include "tensor/tstring.h"
#include "train/store.h"
#include "train/words.h"

#define NO_EDGES ((rn_edges_t){0})

RN_API rn_edge_t rn_const_strings(rn_scope_t* scope, const char* const* values, int count) {
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  int64_t dim = count;
  rn_shape_t shape = count < 0 ? RN_SHAPE_SCALAR : (rn_shape_t){1, &dim};
  rn_tensor_t tensor = {0};
  rn_status_t status =
      rn_tensor_create(rn_scope_graph(scope)->allocator, RN_STRING, shape, &tensor);
  for (int64_t i = 0; rn_ok(status) && i < tensor.count; ++i) {
    if (!values || !values[i])
      status = rn_invalid_argument("rn_const_strings: string %lld is missing", (long long)i);
    else if (!rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], values[i], strlen(values[i])))
      status = rn_out_of_memory();
  }
  if (!rn_ok(status)) {
    rn_tensor_clear(&tensor);
    rn_scope_fail(scope, status);
    return RN_NO_EDGE;
  }
  rn_op_begin(scope, "Const");
  rn_op_attr_type(scope, "dtype", RN_STRING);
  rn_scope_add_attr(scope, "value", &(rn_attr_value_t){.kind = RN_ATTR_TENSOR, .tensor = &tensor});
  return (rn_edge_t){rn_op_finish(scope), 0};
}

RN_API rn_edge_t rn_limit_epochs(rn_scope_t* scope, rn_edge_t tensor, int64_t epochs) {
  if (!rn_is_edge(scope, tensor, "rn_limit_epochs", "the tensor")) return RN_NO_EDGE;
  if (epochs <= 0) {
    rn_refuse(scope, "rn_limit_epochs: num_epochs must be > 0 not %lld.", (long long)epochs);
    return RN_NO_EDGE;
  }
  const rn_var_t* counter = rn_new_variable(scope, "epochs", rn_const_scalar(scope, RN_INT64, 0),
                                            .kind = RN_VARIABLE_REFERENCE, .not_trainable = true,
                                            .collection = RN_LOCAL_VARIABLES);
  if (!counter) return RN_NO_EDGE;
  rn_edge_t count = rn_CountUpTo(scope, counter->handle, epochs);
  return rn_after(scope, tensor, count.node);
}

// Producers.

static rn_edge_t produce(rn_scope_t* s, rn_edge_t tensor, const rn_producer_options_t* options) {
  rn_shape_t shape = rn_shape_of_edge(tensor);
  if (!rn_scope_ok(s)) return RN_NO_EDGE;
  if (!rn_shape_has_rank(shape) || shape.rank == 0) {
    rn_refuse(s, "rn_input_producer: the tensor must have at least one dimension");
    return RN_NO_EDGE;
  }
  if (!options->in_order)
    tensor =
        rn_RandomShuffle(s, tensor, .seed = rn_graph_seed(options->seed), .seed2 = options->seed);
  if (options->num_epochs) tensor = rn_limit_epochs(s, tensor, options->num_epochs);
  const int type = rn_edge_dtype(tensor);
  const int rank = shape.rank - 1;
  const int64_t* dims = shape.dims + 1;
  bool is_full = true;
  for (int d = 0; d < rank; ++d) is_full = is_full && dims[d] >= 0;
  if (!is_full) {
    rn_refuse(s, "rn_input_producer: the shape of a row must be known");
    return RN_NO_EDGE;
  }
  rn_edge_t queue = rn_FIFOQueueV2(s, &type, 1, .shapes = RN_SHAPE_LIST(&dims, &rank, 1),
                                   .capacity = RN_SET(options->capacity ? options->capacity : 32),
                                   .shared_name = options->shared_name);
  rn_node_t* enqueue = rn_QueueEnqueueManyV2(s, queue, &tensor, 1);
  if (!rn_scope_ok(s) || !rn_add_queue_runner(s, queue, &enqueue, 1)) return RN_NO_EDGE;
  return queue;
}

RN_API rn_edge_t rn_input_producer_(rn_scope_t* scope, rn_edge_t tensor,
                                    rn_producer_options_t options) {
  if (!rn_is_edge(scope, tensor, "rn_input_producer", "the tensor")) return RN_NO_EDGE;
  rn_scope_t* s = rn_part(scope, options.name, "input_producer");
  rn_edge_t queue = s ? produce(s, tensor, &options) : RN_NO_EDGE;
  rn_scope_destroy(s);
  return queue;
}

RN_API rn_edge_t rn_string_input_producer_(rn_scope_t* scope, const char* const* strings, int count,
                                           rn_producer_options_t options) {
  if (count <= 0) {
    rn_refuse(scope, "string_input_producer requires a non-null input tensor");
    return RN_NO_EDGE;
  }
  return rn_input_producer_(scope, rn_const_strings(scope, strings, count), options);
}

RN_API rn_edge_t rn_range_input_producer_(rn_scope_t* scope, int32_t limit,
                                          rn_producer_options_t options) {
  rn_edge_t range = rn_Range(scope, rn_const_int32(scope, 0), rn_const_int32(scope, limit),
                             rn_const_int32(scope, 1));
  return rn_input_producer_(scope, range, options);
}

// Batches.

typedef struct input_batch_t {
  const rn_edge_t* tensors;  // |lists| * |count| of them
  int lists, count, size;
  bool is_shuffled;
  const rn_batch_options_t* options;
  // Type and shape of an element, one per tensor of a list; in the arena.
  int* types;
  int* ranks;
  const int64_t** dims;
} input_batch_t;

// The element shape of tensor |c| that holds for all lists.
static bool element_shape(rn_scope_t* s, rn_arena_t* arena, input_batch_t* b, int c) {
  int skipped = b->options->enqueue_many ? 1 : 0;
  int64_t* dims = NULL;
  for (int l = 0; l < b->lists; ++l) {
    rn_edge_t edge = b->tensors[l * b->count + c];
    rn_shape_t shape = rn_shape_of_edge(edge);
    if (rn_edge_dtype(edge) != rn_edge_dtype(b->tensors[c])) {
      rn_refuse(s, "Expected types to be consistent: tensor %d of list %d differs", c, l);
      return false;
    }
    if (!rn_shape_has_rank(shape) || shape.rank < skipped) {
      rn_refuse(s, "Cannot infer Tensor's rank: tensor %d of list %d", c, l);
      return false;
    }
    int rank = shape.rank - skipped;
    if (l == 0) {
      rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)rank + 1, &dims);
      if (!rn_ok(status)) {
        rn_scope_fail(s, status);
        return false;
      }
      for (int d = 0; d < rank; ++d) dims[d] = shape.dims[skipped + d];
      b->ranks[c] = rank;
    } else if (rank != b->ranks[c]) {
      rn_refuse(s, "Lists have tensors of different ranks: tensor %d of list %d", c, l);
      return false;
    }
    for (int d = 0; d < rank; ++d)
      if (dims[d] != shape.dims[skipped + d]) dims[d] = -1;
  }
  for (int d = 0; d < b->ranks[c]; ++d)
    if (dims[d] < 0 && !b->options->dynamic_pad) {
      rn_refuse(s, "All shapes must be fully defined: tensor %d", c);
      return false;
    }
  b->types[c] = rn_edge_dtype(b->tensors[c]);
  b->dims[c] = dims;
  return true;
}

static rn_edge_t make_queue(rn_scope_t* s, const input_batch_t* b) {
  const rn_batch_options_t* o = b->options;
  int64_t reserve = b->is_shuffled ? o->min_after_dequeue : 0;
  int64_t capacity = o->capacity ? o->capacity : 32;
  if (!o->capacity && b->is_shuffled) capacity = reserve + 3 * (int64_t)b->size;
  if (!o->capacity && capacity < b->size) capacity = b->size;
  if (b->is_shuffled)
    return rn_RandomShuffleQueueV2(
        s, b->types, b->count, .shapes = RN_SHAPE_LIST(b->dims, b->ranks, b->count),
        .capacity = RN_SET(capacity), .min_after_dequeue = reserve, .seed = rn_graph_seed(o->seed),
        .seed2 = o->seed, .shared_name = o->shared_name);
  if (o->dynamic_pad)
    return rn_PaddingFIFOQueueV2(s, b->types, b->count,
                                 .shapes = RN_SHAPE_LIST(b->dims, b->ranks, b->count),
                                 .capacity = RN_SET(capacity), .shared_name = o->shared_name);
  return rn_FIFOQueueV2(s, b->types, b->count, .shapes = RN_SHAPE_LIST(b->dims, b->ranks, b->count),
                        .capacity = RN_SET(capacity), .shared_name = o->shared_name);
}

static rn_edges_t build_batch(rn_scope_t* s, rn_arena_t* arena, input_batch_t* b) {
  const rn_batch_options_t* o = b->options;
  int threads = b->lists > 1 ? b->lists : o->threads > 0 ? o->threads : 1;
  rn_node_t** enqueues = NULL;
  rn_status_t status = RN_ARENA_ARRAY(arena, (size_t)b->count, &b->types);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)b->count, &b->ranks);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)b->count, &b->dims);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(arena, (size_t)threads, &enqueues);
  if (!rn_ok(status)) {
    rn_scope_fail(s, status);
    return NO_EDGES;
  }
  for (int c = 0; c < b->count; ++c)
    if (!element_shape(s, arena, b, c)) return NO_EDGES;
  rn_edge_t queue = make_queue(s, b);
  for (int t = 0; t < threads && rn_scope_ok(s); ++t) {
    const rn_edge_t* list = b->tensors + (b->lists > 1 ? t : 0) * b->count;
    enqueues[t] = o->enqueue_many ? rn_QueueEnqueueManyV2(s, queue, list, b->count)
                                  : rn_QueueEnqueueV2(s, queue, list, b->count);
  }
  if (!rn_scope_ok(s) || !rn_add_queue_runner(s, queue, enqueues, threads)) return NO_EDGES;
  rn_edge_t size = rn_const_int32(s, b->size);
  rn_edges_t out = o->allow_smaller_final_batch
                       ? rn_QueueDequeueUpToV2(s, queue, size, b->types, b->count)
                       : rn_QueueDequeueManyV2(s, queue, size, b->types, b->count);
  return rn_scope_ok(s) ? out : NO_EDGES;
}

static rn_edges_t batch_in(rn_scope_t* scope, const char* fallback, input_batch_t b) {
  if (!rn_scope_ok(scope)) return NO_EDGES;
  if (!b.tensors || b.lists < 1 || b.count < 1 || b.size < 1) {
    rn_refuse(scope, "rn_%s: there must be tensors, and a batch size above 0", fallback);
    return NO_EDGES;
  }
  for (int i = 0; i < b.lists * b.count; ++i)
    if (!rn_is_edge(scope, b.tensors[i], fallback, "a tensor")) return NO_EDGES;
  rn_scope_t* s = rn_part(scope, b.options->name, fallback);
  if (!s) return NO_EDGES;
  rn_arena_t arena;
  rn_arena_init(&arena, rn_scope_graph(scope)->allocator);
  rn_edges_t out = build_batch(s, &arena, &b);
  rn_arena_clear(&arena);
  rn_scope_destroy(s);
  return out;
}

RN_API rn_edges_t rn_batch_(rn_scope_t* scope, const rn_edge_t* tensors, int count, int batch_size,
                            rn_batch_options_t options) {
  return batch_in(
      scope, "batch",
      (input_batch_t){
          .tensors = tensors, .lists = 1, .count = count, .size = batch_size, .options = &options});
}

RN_API rn_edges_t rn_shuffle_batch_(rn_scope_t* scope, const rn_edge_t* tensors, int count,
                                    int batch_size, rn_batch_options_t options) {
  return batch_in(scope, "shuffle_batch",
                  (input_batch_t){.tensors = tensors,
                                  .lists = 1,
                                  .count = count,
                                  .size = batch_size,
                                  .is_shuffled = true,
                                  .options = &options});
}

RN_API rn_edges_t rn_batch_join_(rn_scope_t* scope, const rn_edge_t* tensors, int lists, int count,
                                 int batch_size, rn_batch_options_t options) {
  return batch_in(scope, "batch_join",
                  (input_batch_t){.tensors = tensors,
                                  .lists = lists,
                                  .count = count,
                                  .size = batch_size,
                                  .options = &options});
}

RN_API rn_edges_t rn_shuffle_batch_join_(rn_scope_t* scope, const rn_edge_t* tensors, int lists,
                                         int count, int batch_size, rn_batch_options_t options) {
  return batch_in(scope, "shuffle_batch_join",
                  (input_batch_t){.tensors = tensors,
                                  .lists = lists,
                                  .count = count,
                                  .size = batch_size,
                                  .is_shuffled = true,
                                  .options = &options});
}
