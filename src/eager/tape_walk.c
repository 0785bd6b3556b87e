// The reverse walk: takes the recorded ops between targets and sources in segments, last first.
// Each segment is one call of a gradient function; custom steps between segments call their
// callbacks.
#include "eager/tape_internal.h"
#include "graph/build.h"

typedef struct tape_walk_t {
  rn_tape_records_t records;  // borrowed from the tape
  rn_eager_t* eager;
  rn_allocator_t allocator;
  rn_tape_map_t reached;               // what depends on a source
  const rn_tape_map_t* tracked;        // the tape's
  rn_tape_map_t wanted;                // what a target depends on
  rn_tape_map_t places;                // key -> place in |arrived|
  RN_VEC(rn_tape_gradient_t) arrived;  // Owned: the sum of the gradients of a value
} tape_walk_t;

void rn_tape_gradient_clear(rn_tape_gradient_t* gradient) {
  rn_eager_handle_release(gradient->dense);
  rn_eager_handle_release(gradient->values);
  rn_eager_handle_release(gradient->indices);
  rn_eager_handle_release(gradient->shape);
  *gradient = (rn_tape_gradient_t){0};
}

static void walk_clear(tape_walk_t* walk) {
  for (size_t i = 0; i < walk->arrived.count; ++i) rn_tape_gradient_clear(&walk->arrived.items[i]);
  rn_vec_free(&walk->arrived, walk->allocator);
  rn_tape_map_clear(&walk->reached);
  rn_tape_map_clear(&walk->wanted);
  rn_tape_map_clear(&walk->places);
}

// Runs one op with one result in the context, so that outer tapes record it.
static rn_status_t run_op(rn_eager_t* eager, const char* name, rn_eager_handle_t* const* inputs,
                          int32_t count, rn_eager_handle_t** out) {
  rn_eager_op_t* op = NULL;
  int32_t room = 1;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_eager_op_create(eager, rn_str(name), &op));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < count; ++i)
    status = rn_eager_op_add_input(op, inputs[i]);
  if (rn_ok(status)) status = rn_eager_execute(op, out, &room);
  rn_eager_op_destroy(op);
  return status;
}

// The first element of a shape, as a scalar of the same type.
static rn_status_t first_of(rn_eager_handle_t* shape, rn_eager_handle_t** out) {
  const rn_tensor_t* dims = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_value(shape, &dims));
  if (dims->count < 1) return rn_internal("Slices of a scalar");
  rn_tensor_t first = {.data = dims->data, .count = 1, .dtype = dims->dtype};
  return rn_eager_handle_create(&first, out);
}

// Adds up slices.
static rn_status_t make_dense(rn_eager_t* eager, rn_tape_gradient_t* gradient) {
  if (!gradient->values) return RN_OK;
  rn_eager_handle_t *rows = NULL, *dense = NULL;
  RN_RETURN_IF_ERROR(first_of(gradient->shape, &rows));
  rn_status_t status =
      run_op(eager, "UnsortedSegmentSum",
             (rn_eager_handle_t*[]){gradient->values, gradient->indices, rows}, 3, &dense);
  rn_eager_handle_release(rows);
  RN_RETURN_IF_ERROR(status);
  rn_tape_gradient_clear(gradient);
  gradient->dense = dense;
  return RN_OK;
}

// Adds |other| to |*inout|; both dense.
static rn_status_t add_to(rn_eager_t* eager, rn_tape_gradient_t* inout, rn_tape_gradient_t* other) {
  rn_eager_handle_t* sum = NULL;
  RN_RETURN_IF_ERROR(make_dense(eager, inout));
  RN_RETURN_IF_ERROR(make_dense(eager, other));
  RN_RETURN_IF_ERROR(
      run_op(eager, "AddV2", (rn_eager_handle_t*[]){inout->dense, other->dense}, 2, &sum));
  rn_eager_handle_release(inout->dense);
  inout->dense = sum;
  return RN_OK;
}

// Adds |gradient|, which it takes, to the gradient of |key|.
static rn_status_t arrive(tape_walk_t* walk, rn_tape_key_t key, rn_tape_gradient_t gradient,
                          bool replaces) {
  int32_t place = rn_tape_map_get(&walk->places, key);
  rn_status_t status = RN_OK;
  if (place < 0) {
    place = (int32_t)walk->arrived.count;
    status = rn_tape_map_put(&walk->places, key, place);
    if (rn_ok(status))
      status = rn_vec_push(&walk->arrived, walk->allocator, (rn_tape_gradient_t){0});
    if (!rn_ok(status)) {
      rn_tape_gradient_clear(&gradient);
      return status;
    }
  }
  rn_tape_gradient_t* slot = &walk->arrived.items[place];
  bool is_empty = !slot->dense && !slot->values;
  if (!is_empty && !replaces) {
    status = add_to(walk->eager, slot, &gradient);
    rn_tape_gradient_clear(&gradient);
    return status;
  }
  rn_tape_gradient_clear(slot);
  *slot = gradient;
  return RN_OK;
}

// The gradient that arrived at |key|; NULL if none did.
static rn_tape_gradient_t* arrived_at(const tape_walk_t* walk, rn_tape_key_t key) {
  int32_t place = rn_tape_map_get(&walk->places, key);
  rn_tape_gradient_t* slot = place < 0 ? NULL : &walk->arrived.items[place];
  return slot && (slot->dense || slot->values) ? slot : NULL;
}

// The same as one tensor, borrowed.
static rn_status_t dense_at(const tape_walk_t* walk, rn_tape_key_t key, rn_eager_handle_t** out) {
  rn_tape_gradient_t* slot = arrived_at(walk, key);
  *out = NULL;
  if (!slot) return RN_OK;
  RN_RETURN_IF_ERROR(make_dense(walk->eager, slot));
  *out = slot->dense;
  return RN_OK;
}

static rn_status_t start_targets(tape_walk_t* walk, const rn_eager_gradient_t* request) {
  for (int32_t i = 0; i < request->target_count; ++i) {
    rn_eager_handle_t* target = request->targets[i];
    rn_eager_handle_t* given = request->target_gradients ? request->target_gradients[i] : NULL;
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(target, &key));
    RN_RETURN_IF_ERROR(rn_tape_map_put(&walk->wanted, key, 0));
    if (given)
      rn_eager_handle_retain(given);
    else
      RN_RETURN_IF_ERROR(run_op(walk->eager, "OnesLike", &target, 1, &given));
    RN_RETURN_IF_ERROR(arrive(walk, key, (rn_tape_gradient_t){.dense = given}, false));
  }
  return RN_OK;
}

static rn_status_t any_in(const rn_tape_map_t* map, rn_eager_handle_t* const* handles,
                          int32_t count, bool* out) {
  *out = false;
  for (int32_t i = 0; !*out && i < count; ++i) {
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(handles[i], &key));
    *out = rn_tape_map_get(map, key) >= 0;
  }
  return RN_OK;
}

static rn_status_t add_all(rn_tape_map_t* map, rn_eager_handle_t* const* handles, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(handles[i], &key));
    RN_RETURN_IF_ERROR(rn_tape_map_put(map, key, 0));
  }
  return RN_OK;
}

static rn_eager_handle_t* const* outputs_of(const rn_tape_record_t* record) {
  return record->handles + record->input_count;
}

// Which records lie between the sources and the targets.
static rn_status_t find_path(tape_walk_t* walk, const rn_eager_gradient_t* request, bool* on_path) {
  const rn_tape_records_t* records = &walk->records;
  for (int32_t i = 0; i < request->source_count; ++i) {
    // A source that the tape does not watch is a constant, even if a record reads it.
    bool is_tracked = false;
    RN_RETURN_IF_ERROR(any_in(walk->tracked, &request->sources[i], 1, &is_tracked));
    if (is_tracked) RN_RETURN_IF_ERROR(add_all(&walk->reached, &request->sources[i], 1));
  }
  for (size_t i = 0; i < records->count; ++i) {
    const rn_tape_record_t* record = &records->items[i];
    RN_RETURN_IF_ERROR(any_in(&walk->reached, record->handles, record->input_count, &on_path[i]));
    if (on_path[i])
      RN_RETURN_IF_ERROR(add_all(&walk->reached, outputs_of(record), record->output_count));
  }
  for (size_t i = records->count; i-- > 0;) {
    const rn_tape_record_t* record = &records->items[i];
    bool is_wanted = false;
    RN_RETURN_IF_ERROR(any_in(&walk->wanted, outputs_of(record), record->output_count, &is_wanted));
    on_path[i] = on_path[i] && is_wanted;
    if (on_path[i])
      RN_RETURN_IF_ERROR(add_all(&walk->wanted, record->handles, record->input_count));
  }
  return RN_OK;
}

// --- Segments

static void segment_clear(rn_tape_segment_t* segment) {
  rn_tape_map_clear(&segment->numbers);
  rn_vec_free(&segment->values, segment->allocator);
  rn_vec_free(&segment->records, segment->allocator);
  rn_vec_free(&segment->edges, segment->allocator);
  rn_vec_free(&segment->ys, segment->allocator);
  rn_vec_free(&segment->dys, segment->allocator);
  rn_vec_free(&segment->xs, segment->allocator);
}

// Whether the gradient is built for the value of input |i| of a recorded op, so that it holds for
// this value only.
static bool is_setting(const rn_tape_record_t* record, int32_t i) {
  static const char* const names[] = {"axis", "element_shape", "ksize", "strides"};
  const rn_node_t* node = record->kernel->node;
  rn_dtype_t dtype = record->handles[i]->dtype;
  if (dtype != RN_INT32 && dtype != RN_INT64) return false;
  int64_t end = 0;
  for (int a = 0; a < node->op->input_count; ++a) {
    end += rn_node_arg_length(node, &node->op->inputs[a]);
    if (i >= end) continue;
    for (size_t n = 0; n < sizeof names / sizeof *names; ++n)
      if (!strcmp(node->op->inputs[a].name, names[n])) return true;
    return false;
  }
  return false;
}

static rn_status_t number_value(rn_tape_segment_t* segment, rn_eager_handle_t* handle, bool is_leaf,
                                bool sets) {
  rn_tape_key_t key;
  RN_RETURN_IF_ERROR(rn_tape_key(handle, &key));
  int32_t number = rn_tape_map_get(&segment->numbers, key);
  if (number < 0) {
    number = (int32_t)segment->values.count;
    RN_RETURN_IF_ERROR(rn_tape_map_put(&segment->numbers, key, number));
    rn_tape_value_t value = {.key = key, .handle = handle, .is_leaf = is_leaf};
    RN_RETURN_IF_ERROR(rn_vec_push(&segment->values, segment->allocator, value));
  }
  rn_tape_value_t* value = &segment->values.items[number];
  value->is_setting |= sets && value->is_leaf;
  return rn_vec_push(&segment->edges, segment->allocator, number);
}

static rn_status_t add_record(rn_tape_segment_t* segment, const rn_tape_record_t* record) {
  RN_RETURN_IF_ERROR(rn_vec_push(&segment->records, segment->allocator, record));
  int32_t count = record->input_count + record->output_count;
  for (int32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(number_value(segment, record->handles[i], i < record->input_count,
                                    i < record->input_count && is_setting(record, i)));
  return RN_OK;
}

// Sets the inputs of the segment, gradients that have arrived, and its outputs, gradients that the
// rest of the walk and the sources need.
static rn_status_t choose_ends(const tape_walk_t* walk, const rn_eager_gradient_t* request,
                               rn_tape_segment_t* segment) {
  rn_allocator_t allocator = segment->allocator;
  for (size_t i = 0; i < segment->values.count; ++i) {
    const rn_tape_value_t* value = &segment->values.items[i];
    rn_eager_handle_t* gradient = NULL;
    if (!value->is_leaf) RN_RETURN_IF_ERROR(dense_at(walk, value->key, &gradient));
    if (value->is_leaf) {
      if (rn_tape_map_get(&walk->reached, value->key) >= 0)
        RN_RETURN_IF_ERROR(rn_vec_push(&segment->xs, allocator, (int32_t)i));
    } else if (gradient) {
      RN_RETURN_IF_ERROR(rn_vec_push(&segment->ys, allocator, (int32_t)i));
      RN_RETURN_IF_ERROR(rn_vec_push(&segment->dys, allocator, gradient));
    }
  }
  for (int32_t i = 0; i < request->source_count; ++i) {
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(request->sources[i], &key));
    int32_t number = rn_tape_map_get(&segment->numbers, key);
    if (number >= 0 && !segment->values.items[number].is_leaf)
      RN_RETURN_IF_ERROR(rn_vec_push(&segment->xs, allocator, number));
  }
  return RN_OK;
}

// The gradient of a value that the segment made already includes what had arrived before.
static rn_status_t take_results(tape_walk_t* walk, const rn_tape_segment_t* segment,
                                rn_tape_gradient_t* results) {
  rn_status_t status = RN_OK;
  for (size_t i = 0; i < segment->xs.count; ++i) {
    const rn_tape_value_t* value = &segment->values.items[segment->xs.items[i]];
    if (!results[i].dense && !results[i].values) continue;
    if (rn_ok(status))
      status = arrive(walk, value->key, results[i], !value->is_leaf);
    else
      rn_tape_gradient_clear(&results[i]);
  }
  return status;
}

static rn_status_t walk_segment(tape_walk_t* walk, const rn_eager_gradient_t* request,
                                rn_tape_segment_t* segment) {
  RN_RETURN_IF_ERROR(choose_ends(walk, request, segment));
  if (segment->ys.count == 0 || segment->xs.count == 0) return RN_OK;
  segment->keeps_slices = request->slices != NULL;
  rn_tape_gradient_t* results = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(walk->allocator, segment->xs.count, &results));
  rn_status_t status = rn_tape_run_segment(walk->eager, segment, results);
  if (rn_ok(status)) status = take_results(walk, segment, results);
  RN_FREE_ARRAY(walk->allocator, results, segment->xs.count);
  return status;
}

static rn_status_t call_custom(tape_walk_t* walk, const rn_tape_record_t* record,
                               rn_eager_handle_t** gradients) {
  bool has_any = false;
  for (int32_t i = 0; i < record->output_count; ++i) {
    rn_tape_key_t key;
    RN_RETURN_IF_ERROR(rn_tape_key(outputs_of(record)[i], &key));
    RN_RETURN_IF_ERROR(dense_at(walk, key, &gradients[record->input_count + i]));
    has_any |= gradients[record->input_count + i] != NULL;
  }
  if (!has_any) return RN_OK;
  const rn_eager_custom_t* custom = &record->custom->custom;
  RN_RETURN_IF_ERROR(custom->gradient(custom->arg, gradients + record->input_count,
                                      record->output_count, gradients, record->input_count));
  for (int32_t i = 0; i < record->input_count; ++i) {
    rn_tape_key_t key;
    rn_eager_handle_t* gradient = gradients[i];
    gradients[i] = NULL;
    if (!gradient) continue;
    rn_status_t status = rn_tape_key(record->handles[i], &key);
    if (rn_ok(status))
      status = arrive(walk, key, (rn_tape_gradient_t){.dense = gradient}, false);
    else
      rn_eager_handle_release(gradient);
    RN_RETURN_IF_ERROR(status);
  }
  return RN_OK;
}

static rn_status_t walk_custom(tape_walk_t* walk, const rn_tape_record_t* record) {
  size_t count = (size_t)record->input_count + (size_t)record->output_count;
  rn_eager_handle_t** gradients = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(walk->allocator, count, &gradients));
  rn_status_t status = call_custom(walk, record, gradients);
  for (int32_t i = 0; i < record->input_count; ++i) rn_eager_handle_release(gradients[i]);
  RN_FREE_ARRAY(walk->allocator, gradients, count);
  return status;
}

// The segment that ends before |end|. It begins after the nearest custom record before it;
// |*out_begin| is that index.
static rn_status_t walk_stretch(tape_walk_t* walk, const rn_eager_gradient_t* request,
                                const bool* on_path, size_t end, size_t* out_begin) {
  const rn_tape_records_t* records = &walk->records;
  size_t begin = end;
  while (begin > 0 && (!on_path[begin - 1] || records->items[begin - 1].kernel)) --begin;
  rn_tape_segment_t segment = {.allocator = walk->allocator};
  segment.numbers.allocator = walk->allocator;
  rn_status_t status = RN_OK;
  for (size_t i = begin; rn_ok(status) && i < end; ++i)
    if (on_path[i]) status = add_record(&segment, &records->items[i]);
  if (rn_ok(status)) status = walk_segment(walk, request, &segment);
  segment_clear(&segment);
  *out_begin = begin;
  return status;
}

static rn_status_t walk_back(tape_walk_t* walk, const rn_eager_gradient_t* request,
                             const bool* on_path) {
  size_t end = walk->records.count;
  while (end > 0) {
    RN_RETURN_IF_ERROR(walk_stretch(walk, request, on_path, end, &end));
    if (end > 0) RN_RETURN_IF_ERROR(walk_custom(walk, &walk->records.items[--end]));
  }
  return RN_OK;
}

static rn_status_t zeros_like(rn_eager_t* eager, rn_eager_handle_t* source,
                              rn_eager_handle_t** out) {
  if (source->dtype != RN_RESOURCE) return run_op(eager, "ZerosLike", &source, 1, out);
  rn_eager_op_t* op = NULL;
  rn_eager_handle_t* value = NULL;
  int32_t room = 1;
  const rn_tensor_t* address = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_value(source, &address));
  rn_resource_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_handle_resource(address, NULL, RN_VARIABLE_TYPE, &variable));
  RN_RETURN_IF_ERROR(rn_eager_op_create(eager, RN_STR("ReadVariableOp"), &op));
  rn_attr_value_t dtype = {.kind = RN_ATTR_TYPE, .type = ((rn_variable_t*)variable)->dtype};
  rn_eager_op_set_attr(op, RN_STR("dtype"), &dtype);
  rn_status_t status = rn_eager_op_add_input(op, source);
  if (rn_ok(status)) status = rn_eager_execute(op, &value, &room);
  rn_eager_op_destroy(op);
  if (rn_ok(status)) status = run_op(eager, "ZerosLike", &value, 1, out);
  rn_eager_handle_release(value);
  return status;
}

static rn_status_t collect_one(tape_walk_t* walk, const rn_eager_gradient_t* request, int32_t i,
                               rn_eager_handle_t** out) {
  rn_tape_key_t key;
  RN_RETURN_IF_ERROR(rn_tape_key(request->sources[i], &key));
  const rn_tape_gradient_t* slot = arrived_at(walk, key);
  if (!slot)
    return request->wants_zeros ? zeros_like(walk->eager, request->sources[i], out) : RN_OK;
  if (slot->values && request->slices) {
    rn_eager_slices_t slices = {slot->values, slot->indices, slot->shape};
    rn_eager_handle_retain(slices.values);
    rn_eager_handle_retain(slices.indices);
    rn_eager_handle_retain(slices.shape);
    request->slices[i] = slices;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(dense_at(walk, key, out));
  rn_eager_handle_retain(*out);
  return RN_OK;
}

static rn_status_t collect(tape_walk_t* walk, const rn_eager_gradient_t* request,
                           rn_eager_handle_t** out) {
  for (int32_t i = 0; i < request->source_count; ++i)
    RN_RETURN_IF_ERROR(collect_one(walk, request, i, &out[i]));
  return RN_OK;
}

static rn_status_t run_walk(tape_walk_t* walk, const rn_eager_gradient_t* request,
                            rn_eager_handle_t** out) {
  size_t count = walk->records.count;
  bool* on_path = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(walk->allocator, count + 1, &on_path));
  rn_status_t status = start_targets(walk, request);
  if (rn_ok(status)) status = find_path(walk, request, on_path);
  if (rn_ok(status)) status = walk_back(walk, request, on_path);
  if (rn_ok(status)) status = collect(walk, request, out);
  RN_FREE_ARRAY(walk->allocator, on_path, count + 1);
  return status;
}

rn_status_t rn_eager_tape_gradient(rn_eager_tape_t* tape, const rn_eager_gradient_t* request,
                                   rn_eager_handle_t** out) {
  for (int32_t i = 0; i < request->source_count; ++i) {
    out[i] = NULL;
    if (request->slices) request->slices[i] = (rn_eager_slices_t){0};
  }
  if (tape->thread != rn_eager_thread_id())
    return rn_failed_precondition("A tape gives gradients on the thread that it records");
  if (!tape->is_persistent && tape->is_used)
    return rn_failed_precondition(
        "A non-persistent GradientTape can only be used to compute one set of gradients (or "
        "jacobians)");
  // The ops of the walk are recorded after the others, so that gradients of gradients work.
  bool goes_on = tape->is_persistent && tape->is_recording;
  if (!goes_on) rn_eager_tape_set_recording(tape, false);
  rn_allocator_t allocator = tape->eager->allocator;
  tape_walk_t walk = {.records = tape->records,
                      .tracked = &tape->tracked,
                      .eager = tape->eager,
                      .allocator = allocator};
  if (goes_on) tape->records = (rn_tape_records_t){0};
  walk.reached.allocator = walk.wanted.allocator = walk.places.allocator = allocator;
  rn_status_t status = run_walk(&walk, request, out);
  walk_clear(&walk);
  if (goes_on) {
    rn_status_t joined = rn_tape_join_records(tape, &walk.records);
    if (rn_ok(status)) {
      status = joined;
    } else {
      rn_status_free(joined);
    }
  }
  for (int32_t i = 0; !rn_ok(status) && i < request->source_count; ++i) {
    rn_eager_handle_release(out[i]);
    out[i] = NULL;
    if (!request->slices) continue;
    rn_eager_handle_release(request->slices[i].values);
    rn_eager_handle_release(request->slices[i].indices);
    rn_eager_handle_release(request->slices[i].shape);
    request->slices[i] = (rn_eager_slices_t){0};
  }
  if (!tape->is_persistent) {
    tape->is_used = true;
    rn_tape_clear_records(tape);
  }
  return status;
}
