// Maps, folds and scans: a loop over the rows of tensors, which it keeps in TensorArrays or tensor
// lists.
#include "runnel/control_flow.h"
#include "train/control/region.h"

// Rows that the loop reads or writes one by one.
typedef struct map_rows_t {
  int dtype;
  rn_shape_t shape;  // of a row
  rn_edge_t handle;  // of a TensorArray
  rn_edge_t value;   // the initial flow, or the initial list
} map_rows_t;

// A loop under construction. Its loop variables are the row number, the states, and the written
// rows.
typedef struct map_walk_t {
  const char* name;
  rn_body_t body;
  void* arg;
  const rn_map_options_t* options;
  rn_edge_t row_count;  // a scalar int32
  int64_t known_rows;   // -1 if unknown
  map_rows_t *in, *out;
  int in_count, out_count, state_count;
  int result_count;            // of the body
  rn_edge_t *given, *results;  // of the body
  rn_arena_t arena;
} map_walk_t;

static void set_shape(rn_scope_t* s, rn_edge_t edge, rn_shape_t shape) {
  rn_status_t status = edge.node ? rn_graph_set_shape(rn_scope_graph(s), edge, shape) : RN_OK;
  if (!rn_ok(status)) rn_scope_fail(s, status);
}

// A shape in the form that list ops take: -1 for an unknown dimension or an unknown shape.
static rn_edge_t shape_edge(rn_scope_t* s, rn_shape_t shape) {
  return rn_shape_has_rank(shape) ? rn_shape_const(s, shape.dims, shape.rank)
                                  : rn_const_int32(s, -1);
}

static rn_edge_t all_rows(rn_scope_t* s, const map_walk_t* walk) {
  return rn_Range(s, rn_const_int32(s, 0), walk->row_count, rn_const_int32(s, 1));
}

static void open_rows(rn_scope_t* s, const map_walk_t* walk, map_rows_t* rows, rn_edge_t tensor) {
  if (walk->options->lists) {
    rn_edge_t shape = shape_edge(s, rows->shape);
    rows->value = rn_TensorListFromTensor(s, tensor, shape, .name = "TensorArrayUnstack");
    return;
  }
  rn_TensorArrayV3_out_t array = rn_TensorArrayV3(
      s, walk->row_count, rows->dtype, .name = "TensorArray", .identical_element_shapes = true);
  rn_scope_t* part = rn_part(s, "TensorArrayUnstack", NULL);
  rows->handle = array.handle;
  rows->value =
      rn_TensorArrayScatterV3(part, array.handle, all_rows(part, walk), tensor, array.flow);
  rn_scope_destroy(part);
}

static void make_rows(rn_scope_t* s, const map_walk_t* walk, map_rows_t* rows) {
  if (walk->options->lists) {
    rows->value = rn_TensorListReserve(s, rn_const_int32(s, -1), walk->row_count, rows->dtype);
    return;
  }
  rn_TensorArrayV3_out_t array = rn_TensorArrayV3(
      s, walk->row_count, rows->dtype, .name = "TensorArray", .identical_element_shapes = true);
  rows->handle = array.handle;
  rows->value = array.flow;
}

static rn_edge_t read_row(rn_scope_t* s, const map_walk_t* walk, const map_rows_t* rows,
                          rn_edge_t i) {
  rn_edge_t row =
      walk->options->lists
          ? rn_TensorListGetItem(s, rows->value, i, shape_edge(s, rows->shape), rows->dtype)
          : rn_TensorArrayReadV3(s, rows->handle, i, rows->value, rows->dtype);
  set_shape(s, row, rows->shape);
  return row;
}

static rn_edge_t write_row(rn_scope_t* s, const map_walk_t* walk, const map_rows_t* rows,
                           rn_edge_t i, rn_edge_t row, rn_edge_t value) {
  return walk->options->lists ? rn_TensorListSetItem(s, value, i, row)
                              : rn_TensorArrayWriteV3(s, rows->handle, i, row, value);
}

// Stacks all written rows into one tensor.
static rn_edge_t stack_rows(rn_scope_t* s, const map_walk_t* walk, const map_rows_t* rows,
                            rn_edge_t value) {
  rn_scope_t* part = rn_part(s, "TensorArrayStack", NULL);
  rn_edge_t stacked;
  if (walk->options->lists)
    stacked = rn_TensorListStack(part, value, shape_edge(part, rows->shape), rows->dtype,
                                 .num_elements = RN_SET(walk->known_rows));
  else
    stacked = rn_TensorArrayGatherV3(part, rows->handle, all_rows(part, walk), value, rows->dtype,
                                     .element_shape = {true, rows->shape.dims, rows->shape.rank});
  rn_scope_destroy(part);
  if (!rn_shape_has_rank(rows->shape) || rows->shape.rank >= RN_MAX_RANK) return stacked;
  int64_t dims[RN_MAX_RANK] = {walk->known_rows};
  for (int d = 0; d < rows->shape.rank; ++d) dims[d + 1] = rows->shape.dims[d];
  set_shape(s, stacked, (rn_shape_t){rows->shape.rank + 1, dims});
  return stacked;
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const map_walk_t* walk = arg;
  if (walk->options->reverse) return rn_GreaterEqual(s, values[0], rn_const_int32(s, 0));
  return rn_Less(s, values[0], walk->row_count);
}

static bool check_results(rn_scope_t* s, map_walk_t* walk) {
  for (int r = 0; r < walk->result_count && rn_scope_ok(s); ++r) {
    rn_edge_t result = walk->results[r];
    if (!rn_is_edge(s, result, walk->name, "a result")) return false;
    if (walk->out_count == 0) continue;
    map_rows_t* rows = &walk->out[r];
    rows->shape = rn_shape_of_edge(result);
    if (rn_edge_dtype(result) != rows->dtype)
      rn_refuse(s, "%s: result %d ('%s:%d') is %s, expected %s", walk->name, r,
                result.node->name.data, result.index,
                rn_dtype_name((rn_dtype_t)rn_edge_dtype(result)),
                rn_dtype_name((rn_dtype_t)rows->dtype));
  }
  return rn_scope_ok(s);
}

static void turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  map_walk_t* walk = arg;
  int states = walk->state_count;
  memcpy(walk->given, values + 1, (size_t)states * sizeof *values);
  for (int i = 0; i < walk->in_count && rn_scope_ok(s); ++i)
    walk->given[states + i] = read_row(s, walk, &walk->in[i], values[0]);
  if (!rn_scope_ok(s)) return;
  walk->body(s, walk->given, walk->results, walk->arg);
  if (!check_results(s, walk)) return;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, walk->options->reverse ? -1 : 1));
  memcpy(next + 1, walk->results, (size_t)states * sizeof *next);
  for (int o = 0; o < walk->out_count; ++o)
    next[1 + states + o] =
        write_row(s, walk, &walk->out[o], values[0], walk->results[o], values[1 + states + o]);
}

// The first rows, if they are the initial states; the loop starts after them.
static void take_first(rn_scope_t* s, map_walk_t* walk, const rn_edge_t* elements,
                       rn_edge_t* starts) {
  int first = walk->options->reverse ? -1 : 0;
  rn_edge_t i = starts[0];
  starts[0] = rn_AddV2(s, i, rn_const_int32(s, walk->options->reverse ? -1 : 1));
  for (int k = 0; k < walk->state_count; ++k) {
    starts[1 + k] = rn_element(s, elements[k], first);
    if (walk->out_count > 0)
      walk->out[k].value = write_row(s, walk, &walk->out[k], i, starts[1 + k], walk->out[k].value);
  }
}

static bool run(rn_scope_t* s, map_walk_t* walk, const rn_edge_t* elements,
                const rn_edge_t* initial, rn_edge_t* starts, rn_edge_t* ends, rn_edge_t* out) {
  const rn_map_options_t* options = walk->options;
  for (int i = 0; i < walk->in_count; ++i) open_rows(s, walk, &walk->in[i], elements[i]);
  for (int o = 0; o < walk->out_count; ++o) make_rows(s, walk, &walk->out[o]);
  starts[0] =
      options->reverse ? rn_Sub(s, walk->row_count, rn_const_int32(s, 1)) : rn_const_int32(s, 0);
  int states = walk->state_count, count = 1 + states + walk->out_count;
  if (initial && states > 0)
    memcpy(starts + 1, initial, (size_t)states * sizeof *starts);
  else if (states > 0)
    take_first(s, walk, elements, starts);
  for (int o = 0; o < walk->out_count; ++o) starts[1 + states + o] = walk->out[o].value;
  if (!rn_scope_ok(s) ||
      !rn_while(s, goes_on, turn, walk, starts, ends, count, .functional = options->functional,
                .parallel_iterations = options->parallel_iterations,
                .no_back_prop = options->no_back_prop, .swap_memory = options->swap_memory))
    return false;
  for (int o = 0; o < walk->out_count; ++o)
    out[o] = stack_rows(s, walk, &walk->out[o], ends[1 + states + o]);
  for (int k = 0; walk->out_count == 0 && k < states; ++k) out[k] = ends[1 + k];
  return rn_scope_ok(s);
}

// The shapes of rows, and how many there are.
static bool measure(rn_scope_t* s, map_walk_t* walk, const rn_edge_t* elements) {
  walk->known_rows = -1;
  for (int i = 0; i < walk->in_count; ++i) {
    if (!rn_is_edge(s, elements[i], walk->name, "a tensor of elements")) return false;
    rn_shape_t shape = rn_shape_of_edge(elements[i]);
    map_rows_t* rows = &walk->in[i];
    rows->dtype = rn_edge_dtype(elements[i]);
    rows->shape = RN_SHAPE_UNKNOWN;
    if (!rn_shape_has_rank(shape)) continue;
    if (shape.rank == 0) {
      rn_refuse(s, "%s: '%s:%d' is a scalar, which has no rows", walk->name,
                elements[i].node->name.data, elements[i].index);
      return false;
    }
    rows->shape = (rn_shape_t){shape.rank - 1, shape.dims + 1};
    if (walk->known_rows >= 0 && shape.dims[0] >= 0 && shape.dims[0] != walk->known_rows) {
      rn_refuse(s, "%s: '%s:%d' has %lld rows, but the others have %lld", walk->name,
                elements[i].node->name.data, elements[i].index, (long long)shape.dims[0],
                (long long)walk->known_rows);
      return false;
    }
    if (shape.dims[0] >= 0) walk->known_rows = shape.dims[0];
  }
  return true;
}

static rn_status_t allocate(map_walk_t* walk, rn_edge_t** out_starts, rn_edge_t** out_ends) {
  size_t values = 1 + (size_t)walk->state_count + (size_t)walk->out_count;
  rn_arena_t* arena = &walk->arena;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)walk->in_count, &walk->in));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)walk->out_count, &walk->out));
  RN_RETURN_IF_ERROR(
      RN_ARENA_ARRAY(arena, (size_t)walk->state_count + (size_t)walk->in_count, &walk->given));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)walk->result_count, &walk->results));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, values, out_starts));
  return RN_ARENA_ARRAY(arena, values, out_ends);
}

// The types of the written rows.
static bool choose_types(rn_scope_t* s, map_walk_t* walk, const rn_edge_t* initial) {
  for (int o = 0; o < walk->out_count; ++o) {
    map_rows_t* rows = &walk->out[o];
    if (walk->state_count > 0)
      rows->dtype = initial ? rn_edge_dtype(initial[o]) : walk->in[o].dtype;
    else if (walk->options->types)
      rows->dtype = walk->options->types[o];
    else if (o < walk->in_count)
      rows->dtype = walk->in[o].dtype;
    else
      rn_refuse(s, "%s: the type of result %d is not known", walk->name, o);
  }
  return rn_scope_ok(s);
}

static bool walk_rows(rn_scope_t* scope, map_walk_t* walk, const rn_edge_t* elements,
                      const rn_edge_t* initial, rn_edge_t* out) {
  size_t before = rn_node_count(scope);
  rn_edge_t *starts = NULL, *ends = NULL;
  rn_arena_init(&walk->arena, rn_scope_allocator(scope));
  rn_status_t status = allocate(walk, &starts, &ends);
  if (!rn_ok(status)) rn_scope_fail(scope, status);
  rn_scope_t* here = NULL;
  if (starts && ends && rn_scope_ok(scope) && measure(scope, walk, elements) &&
      choose_types(scope, walk, initial))
    here = rn_scope_child(scope, walk->options->name ? walk->options->name : walk->name);
  if (here && starts && ends && rn_scope_ok(here)) {
    bool is_known = walk->known_rows >= 0 && walk->known_rows <= INT32_MAX;
    walk->row_count = is_known ? rn_const_int32(here, (int32_t)walk->known_rows)
                               : rn_element(here, rn_Shape(here, elements[0]), 0);
    run(here, walk, elements, initial, starts, ends, out);
  }
  if (here && !rn_scope_ok(scope)) rn_scope_take_back(here, before);
  for (int i = 0; i < walk->result_count && !rn_scope_ok(scope); ++i) out[i] = RN_NO_EDGE;
  rn_scope_destroy(here);
  rn_arena_clear(&walk->arena);
  return rn_scope_ok(scope);
}

static bool check(rn_scope_t* scope, const char* who, rn_body_t body, const rn_edge_t* elements,
                  int element_count, rn_edge_t* out, int count) {
  for (int i = 0; out && i < count; ++i) out[i] = RN_NO_EDGE;
  if (!rn_scope_ok(scope)) return false;
  if (!body || !elements || element_count <= 0 || !out || count <= 0)
    rn_refuse(scope, "%s: the body, the elements or the results are missing", who);
  return rn_scope_ok(scope);
}

RN_API bool rn_map_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                    int element_count, rn_edge_t* out, int count, rn_map_options_t options) {
  if (!check(scope, "map", body, elements, element_count, out, count)) return false;
  options.reverse = false;
  map_walk_t walk = {.name = "map",
                     .body = body,
                     .arg = arg,
                     .options = &options,
                     .in_count = element_count,
                     .out_count = count,
                     .result_count = count};
  return walk_rows(scope, &walk, elements, NULL, out);
}

static bool with_states(rn_scope_t* scope, map_walk_t* walk, const rn_edge_t* elements,
                        const rn_edge_t* initial, rn_edge_t* out) {
  if (!check(scope, walk->name, walk->body, elements, walk->in_count, out, walk->state_count))
    return false;
  for (int i = 0; initial && i < walk->state_count; ++i)
    if (!rn_is_edge(scope, initial[i], walk->name, "an initial state")) return false;
  if (!initial && walk->state_count != walk->in_count) {
    rn_refuse(scope, "%s: without initial states, %d states do not fit %d tensors", walk->name,
              walk->state_count, walk->in_count);
    return false;
  }
  return walk_rows(scope, walk, elements, initial, out);
}

RN_API bool rn_fold_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                     int element_count, const rn_edge_t* initial, rn_edge_t* out, int count,
                     rn_map_options_t options) {
  map_walk_t walk = {.name = options.reverse ? "foldr" : "foldl",
                     .body = body,
                     .arg = arg,
                     .options = &options,
                     .in_count = element_count,
                     .state_count = count,
                     .result_count = count};
  return with_states(scope, &walk, elements, initial, out);
}

RN_API bool rn_scan_(rn_scope_t* scope, rn_body_t body, void* arg, const rn_edge_t* elements,
                     int element_count, const rn_edge_t* initial, rn_edge_t* out, int count,
                     rn_map_options_t options) {
  map_walk_t walk = {.name = "scan",
                     .body = body,
                     .arg = arg,
                     .options = &options,
                     .in_count = element_count,
                     .state_count = count,
                     .out_count = count,
                     .result_count = count};
  return with_states(scope, &walk, elements, initial, out);
}
