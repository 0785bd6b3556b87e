// Kernels that gather rows of a tensor or of a variable by index.
#include "kernels/cpu/array/gather.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/state/variable.h"
#include "kernels/kernel_rows.h"

// Bytes worth a hand-off to another thread: gathering from a large table runs at a few bytes per
// nanosecond.
#define PIECE_BYTES (128 * 1024)

const rn_gather_table_t* rn_gather_table(void) { return RN_ISA_PICK(&rn_gather_table_); }

rn_status_t rn_check_indices(const rn_tensor_t* indices, int64_t limit) {
  if (indices->count == 0) return RN_OK;
  int64_t bad = rn_gather_table()->check[rn_gather_type(indices->dtype)](indices->data,
                                                                         indices->count, limit);
  if (bad == indices->count) return RN_OK;
  rn_shape_text_t place = rn_place_text(indices, bad);
  return rn_invalid_argument("indices%s = %lld is not in [0, %lld)",
                             indices->rank ? place.text : "", (long long)rn_int_at(indices, bad),
                             (long long)limit);
}

rn_status_t rn_bad_index_init(const rn_kernel_init_t* init, rn_bad_index_t* out) {
  rn_str_t policy = rn_init_string(init, "bad_indices_policy");
  *out = rn_str_is(policy, "IGNORE") ? RN_BAD_INDEX_IGNORE : RN_BAD_INDEX_ERROR;
  if (policy.size == 0 || *out == RN_BAD_INDEX_IGNORE || rn_str_is(policy, "ERROR") ||
      rn_str_is(policy, "DEFAULT"))
    return RN_OK;
  return rn_invalid_argument("Unknown bad_indices_policy: %.*s", RN_STR_ARGS(policy));
}

void rn_places_init(rn_places_t* places, const rn_tensor_t* indices, rn_shape_t shape) {
  const int depth = (int)rn_tensor_dim(indices, indices->rank - 1);
  places->indices = indices;
  places->shape = shape;
  places->depth = depth;
  places->count = 1;
  for (int d = 0; d < indices->rank - 1; ++d) places->count *= rn_tensor_dim(indices, d);
  uint64_t step = 1;
  for (int d = depth - 1; d >= 0; --d) {
    places->steps[d] = (int64_t)step;
    step *= (uint64_t)shape.dims[d];
  }
  places->row = rn_dims_product(shape.dims, depth, shape.rank);
}

rn_status_t rn_place_error(const rn_kernel_ctx_t* ctx, const rn_places_t* places, int64_t i,
                           const char* what, bool names_node) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  for (int d = 0; d < places->depth; ++d)
    rn_strbuf_printf(&buf, d ? ", %lld" : "%lld",
                     (long long)rn_int_at(places->indices, i * places->depth + d));
  // The position among the index vectors: |indices| without its last dimension.
  rn_tensor_t outer = *places->indices;
  outer.rank--;
  int64_t dims[RN_MAX_RANK], at = i;
  for (int d = outer.rank - 1; d >= 0; --d) {
    int64_t size = rn_tensor_dim(places->indices, d);
    dims[d] = at % size;
    at /= size;
  }
  rn_shape_text_t place = rn_shape_text((rn_shape_t){outer.rank, dims});
  rn_status_t status =
      rn_invalid_argument("indices%s = [%.*s] does not index into %s %s%s%.*s",
                          outer.rank ? place.text : "", RN_STR_ARGS(rn_strbuf_view(&buf)), what,
                          rn_shape_text(places->shape).text, names_node ? ", node name: " : "",
                          names_node ? (int)ctx->kernel->node.size : 0, ctx->kernel->node.data);
  rn_strbuf_clear(&buf);
  return status;
}

typedef struct gather_job_t {
  const rn_gather_t* g;
  rn_gather_rows_fn_t rows;
  size_t row, index_size;  // bytes
} gather_job_t;

static void gather_piece(void* arg, int64_t begin, int64_t end) {
  const gather_job_t* job = arg;
  const rn_gather_t* g = job->g;
  while (begin < end) {
    // A block is one pair of batch and outer.
    int64_t block = begin / g->count, first = begin % g->count;
    int64_t left = end - begin, last = left < g->count - first ? first + left : g->count;
    const char* params = (const char*)g->params.data + (size_t)(block * g->limit) * job->row;
    const char* indices =
        (const char*)g->indices->data + (size_t)(block / g->outer * g->count) * job->index_size;
    job->rows(params, indices, first, last, g->count, job->row,
              (char*)g->out->data + (size_t)(block * g->count) * job->row);
    begin += last - first;
  }
}

static rn_status_t gather_owned(const rn_gather_t* g, int64_t rows) {
  const size_t size = rn_dtype_size(g->out->dtype);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t block = i / g->count;
    int64_t index = rn_int_at(g->indices, block / g->outer * g->count + i % g->count);
    RN_RETURN_IF_ERROR(rn_move_row(
        g->out->dtype,
        (const char*)g->params.data + (size_t)((block * g->limit + index) * g->inner) * size,
        (char*)g->out->data + (size_t)(i * g->inner) * size, g->inner));
  }
  return RN_OK;
}

static rn_status_t check_batch(const rn_tensor_t* params, const rn_tensor_t* indices, int64_t axis,
                               int64_t* inout_batch_dims) {
  int64_t batch_dims = *inout_batch_dims;
  if (batch_dims < -indices->rank || batch_dims > indices->rank)
    return rn_invalid_argument("Expected batch_dims in the range [%d, %d], but got %lld",
                               -indices->rank, indices->rank, (long long)batch_dims);
  if (batch_dims < 0) batch_dims += indices->rank;
  if (batch_dims >= params->rank)
    return rn_invalid_argument("batch_dims (%lld) must be less than rank(params) (%d).",
                               (long long)batch_dims, params->rank);
  if (axis < batch_dims)
    return rn_invalid_argument("batch_dims (%lld) must be less than or equal to axis (%lld).",
                               (long long)batch_dims, (long long)axis);
  for (int64_t d = 0; d < batch_dims; ++d)
    if (rn_tensor_dim(params, (int)d) != rn_tensor_dim(indices, (int)d))
      return rn_invalid_argument(
          "params.shape[%lld]: %lld should be equal to indices.shape[%lld]: %lld", (long long)d,
          (long long)rn_tensor_dim(params, (int)d), (long long)d,
          (long long)rn_tensor_dim(indices, (int)d));
  *inout_batch_dims = batch_dims;
  return RN_OK;
}

static rn_status_t check_axis(const rn_tensor_t* params, int64_t axis) {
  if (params->rank < 1) return rn_invalid_argument("params must be at least 1 dimensional");
  if (axis >= -params->rank && axis < params->rank) return RN_OK;
  uint64_t needed = axis < 0 ? (uint64_t)0 - (uint64_t)axis : (uint64_t)axis + 1;
  return rn_invalid_argument("Shape must be at least rank %llu but is rank %d",
                             (unsigned long long)needed, params->rank);
}

static rn_status_t gather_along(rn_kernel_ctx_t* ctx, int64_t axis, int64_t batch_dims,
                                rn_gather_t* g) {
  const rn_tensor_t *params = &g->params, *indices = g->indices;
  RN_RETURN_IF_ERROR(check_axis(params, axis));
  if (axis < 0) axis += params->rank;
  if (batch_dims != 0) RN_RETURN_IF_ERROR(check_batch(params, indices, axis, &batch_dims));
  const int64_t* dims = rn_tensor_dims(params);
  int64_t out_dims[2 * RN_MAX_RANK];
  int32_t rank = 0;
  for (int d = 0; d < axis; ++d) out_dims[rank++] = dims[d];
  for (int d = (int)batch_dims; d < indices->rank; ++d)
    out_dims[rank++] = rn_tensor_dim(indices, d);
  for (int d = (int)axis + 1; d < params->rank; ++d) out_dims[rank++] = dims[d];
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, out_dims}, &g->out));
  g->limit = dims[axis];
  if (g->out->count == 0) return RN_OK;
  g->outer = rn_dims_product(dims, (int)batch_dims, (int)axis);
  g->inner = rn_dims_product(dims, (int)axis + 1, params->rank);
  g->count = indices->count / rn_dims_product(dims, 0, (int)batch_dims);
  return RN_OK;
}

// Whether input 0 names a variable to gather from; a tensor of handles gives handles.
static bool reads_variable(const rn_dtype_t* input_types, const rn_dtype_t* output_types) {
  return input_types[0] == RN_RESOURCE && output_types[0] != RN_RESOURCE;
}

rn_status_t rn_gather_init(const rn_kernel_init_t* init, void* state) {
  int64_t* batch_dims = state;
  if (rn_op_attr_index(init->op, RN_STR("batch_dims")) < 0) return RN_OK;  // Gather
  *batch_dims = rn_init_int(init, "batch_dims");
  if (*batch_dims >= 0 || !reads_variable(init->input_types, init->output_types)) return RN_OK;
  return rn_invalid_argument("batch_dims is negative (%lld)", (long long)*batch_dims);
}

// The value of the variable in input 0, shared, so that no lock is held while reading it.
static rn_status_t share_variable(rn_kernel_ctx_t* ctx, rn_tensor_t* out) {
  rn_variable_t* variable = NULL;
  RN_RETURN_IF_ERROR(rn_variable_of(ctx, 0, &variable));
  rn_mutex_lock(&variable->mutex);
  rn_status_t status =
      rn_tensor_is_set(&variable->value)
          ? rn_tensor_share(&variable->value, out)
          : rn_not_found(
                "Container localhost does not exist. (Could not find resource: localhost/%.*s)",
                RN_STR_ARGS(variable->name));
  rn_mutex_unlock(&variable->mutex);
  RN_RETURN_IF_ERROR(status);
  rn_dtype_t wanted = rn_dtype_base(ctx->kernel->output_types[0]);
  if (out->dtype == wanted) return RN_OK;
  status = rn_invalid_argument("DType of the variable is %s, not %s", rn_dtype_name(out->dtype),
                               rn_dtype_name(wanted));
  rn_tensor_clear(out);
  return status;
}

// Input 0, or the value of the variable that it names.
static rn_status_t share_params(rn_kernel_ctx_t* ctx, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  return reads_variable(ctx->kernel->input_types, ctx->kernel->output_types)
             ? share_variable(ctx, out)
             : rn_tensor_share(rn_in(ctx, 0), out);
}

rn_status_t rn_gather_begin(rn_kernel_ctx_t* ctx, rn_gather_t* out) {
  const int64_t batch_dims = *(const int64_t*)ctx->state;
  const rn_kernel_t* kernel = ctx->kernel;
  int64_t axis = reads_variable(kernel->input_types, kernel->output_types) ? batch_dims : 0;
  *out = (rn_gather_t){.indices = rn_in(ctx, 1)};
  if (kernel->input_count > 2) {
    if (rn_in(ctx, 0)->rank < 1)
      return rn_invalid_argument("params must be at least 1 dimensional");
    if (rn_in(ctx, 2)->rank != 0) return rn_invalid_argument("axis must be scalar");
    axis = rn_int_at(rn_in(ctx, 2), 0);
  }
  RN_RETURN_IF_ERROR(share_params(ctx, &out->params));
  rn_status_t status = gather_along(ctx, axis, batch_dims, out);
  if (!rn_ok(status)) rn_tensor_clear(&out->params);
  return status;
}

static rn_status_t gather_rows(rn_kernel_ctx_t* ctx, const rn_gather_t* g) {
  RN_RETURN_IF_ERROR(rn_check_indices(g->indices, g->limit));
  if (g->out->count == 0) return RN_OK;
  const int64_t rows = g->out->count / g->inner;
  if (!rn_dtype_is_plain(g->out->dtype)) return gather_owned(g, rows);
  gather_job_t job = {.g = g,
                      .rows = rn_gather_table()->rows[rn_gather_type(g->indices->dtype)],
                      .row = (size_t)g->inner * rn_dtype_size(g->out->dtype),
                      .index_size = rn_dtype_size(g->indices->dtype)};
  int64_t grain = PIECE_BYTES / (int64_t)(job.row < 16 ? 16 : job.row);
  rn_pool_for(rn_ctx_pool(ctx), rows, grain < 1 ? 1 : grain, gather_piece, &job);
  return RN_OK;
}

static rn_status_t gather(rn_kernel_ctx_t* ctx) {
  rn_gather_t g;
  RN_RETURN_IF_ERROR(rn_gather_begin(ctx, &g));
  rn_status_t status = gather_rows(ctx, &g);
  rn_tensor_clear(&g.params);
  return status;
}

typedef struct gather_nd_t {
  const rn_places_t* places;
  const rn_tensor_t* params;
  rn_tensor_t* out;
  size_t row;
  _Atomic int64_t bad;
} gather_nd_t;

// As rn_place_at, for |n| places from |begin| on.
#define PLACES(T)                                                                                  \
  static inline void places_of_##T(const rn_places_t* places, int depth, int64_t begin, int64_t n, \
                                   int64_t* out) {                                                 \
    const T* at = RN_DATA(places->indices, const T) + begin * depth;                               \
    for (int64_t i = 0; i < n; ++i, at += depth) {                                                 \
      uint64_t row = 0;                                                                            \
      bool is_bad = false;                                                                         \
      for (int d = 0; d < depth; ++d) {                                                            \
        is_bad |= (uint64_t)at[d] >= (uint64_t)places->shape.dims[d];                              \
        row += (uint64_t)at[d] * (uint64_t)places->steps[d];                                       \
      }                                                                                            \
      out[i] = is_bad ? -1 : (int64_t)row;                                                         \
    }                                                                                              \
  }                                                                                                \
  static void find_##T(const rn_places_t* places, int64_t begin, int64_t n, int64_t* out) {        \
    if (places->depth == 1)                                                                        \
      places_of_##T(places, 1, begin, n, out);                                                     \
    else if (places->depth == 2)                                                                   \
      places_of_##T(places, 2, begin, n, out);                                                     \
    else                                                                                           \
      places_of_##T(places, places->depth, begin, n, out);                                         \
  }
PLACES(int32_t)
PLACES(int64_t)

static void find_places(const rn_places_t* places, int64_t begin, int64_t n, int64_t* out) {
  if (places->indices->dtype == RN_INT32)
    find_int32_t(places, begin, n, out);
  else if (places->indices->dtype == RN_INT64)
    find_int64_t(places, begin, n, out);
  else
    for (int64_t i = 0; i < n; ++i) out[i] = rn_place_at(places, begin + i);
}

// Elements of four bytes, all of whose places are good.
static void copy_elements(const uint32_t* from, const int64_t* places, int64_t n, uint32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[places[i]];
}

static void gather_nd_piece(void* arg, int64_t begin, int64_t end) {
  gather_nd_t* g = arg;
  int64_t rows[64];
  while (begin < end) {
    int64_t count = end - begin < 64 ? end - begin : 64, all = 0;
    find_places(g->places, begin, count, rows);
    for (int64_t i = 0; i < count; ++i) all |= rows[i];
    if (all >= 0 && g->row == sizeof(uint32_t)) {
      copy_elements(g->params->data, rows, count, RN_DATA(g->out, uint32_t) + begin);
      begin += count;
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (rows[i] >= 0) {
        __builtin_prefetch((const char*)g->params->data + (size_t)rows[i] * g->row);
        continue;
      }
      // Report the first bad index, regardless of which thread finds one first.
      int64_t seen = g->bad;
      while (begin + i < seen &&
             !__atomic_compare_exchange_n((int64_t*)&g->bad, &seen, begin + i, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
    }
    char* out = (char*)g->out->data + (size_t)begin * g->row;
    for (int64_t i = 0; i < count; ++i, out += g->row) {
      if (rows[i] < 0)
        memset(out, 0, g->row);
      else
        rn_move_bytes(out, (const char*)g->params->data + (size_t)rows[i] * g->row, g->row);
    }
    begin += count;
  }
}

static rn_status_t gather_nd_owned(gather_nd_t* g) {
  const size_t size = rn_dtype_size(g->out->dtype);
  for (int64_t i = 0; i < g->places->count; ++i) {
    int64_t row = rn_place_at(g->places, i);
    if (row < 0) {
      if (g->bad > i) g->bad = i;
      continue;
    }
    RN_RETURN_IF_ERROR(rn_move_row(
        g->out->dtype, (const char*)g->params->data + (size_t)(row * g->places->row) * size,
        (char*)g->out->data + (size_t)(i * g->places->row) * size, g->places->row));
  }
  return RN_OK;
}

static rn_status_t begin_places(rn_kernel_ctx_t* ctx, rn_gather_nd_t* g) {
  const rn_tensor_t *params = &g->params, *indices = rn_in(ctx, 1);
  if (params->rank < 1) return rn_invalid_argument("params must be at least a vector");
  if (indices->rank < 1) return rn_invalid_argument("indices must be at least a vector");
  int64_t depth = rn_tensor_dim(indices, indices->rank - 1);
  if (depth > params->rank)
    return rn_invalid_argument(
        "index innermost dimension length must be <= params rank; saw: %lld vs. %d",
        (long long)depth, params->rank);
  int64_t dims[2 * RN_MAX_RANK], places_count = 1;
  int32_t rank = 0;
  for (int d = 0; d < indices->rank - 1; ++d) {
    dims[rank++] = rn_tensor_dim(indices, d);
    if (!rn_mul_i64_ok(places_count, rn_tensor_dim(indices, d), &places_count))
      return rn_invalid_argument("indices has too many elements for int64 indexing");
  }
  for (int d = (int)depth; d < params->rank; ++d) dims[rank++] = rn_tensor_dim(params, d);
  if (places_count > 0 && params->count == 0)
    return rn_invalid_argument(
        "Requested more than 0 entries, but params is empty.  Params shape: %s",
        rn_text_of(params).text);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &g->out));
  if (g->out->count > 0) rn_places_init(&g->places, indices, rn_tensor_shape(params));
  return RN_OK;
}

rn_status_t rn_gather_nd_begin(rn_kernel_ctx_t* ctx, rn_gather_nd_t* out) {
  RN_RETURN_IF_ERROR(share_params(ctx, &out->params));
  rn_status_t status = begin_places(ctx, out);
  if (!rn_ok(status)) rn_tensor_clear(&out->params);
  return status;
}

rn_status_t rn_gather_nd_init(const rn_kernel_init_t* init, void* state) {
  // ResourceGatherNd has no policy: it is zero, RN_BAD_INDEX_ERROR.
  if (reads_variable(init->input_types, init->output_types)) return RN_OK;
  return rn_bad_index_init(init, state);
}

static rn_status_t gather_places(rn_kernel_ctx_t* ctx, const rn_gather_nd_t* nd) {
  if (nd->out->count == 0) return RN_OK;
  const rn_places_t* places = &nd->places;
  gather_nd_t g = {.places = places,
                   .params = &nd->params,
                   .out = nd->out,
                   .row = (size_t)places->row * rn_dtype_size(nd->params.dtype),
                   .bad = places->count};
  if (rn_dtype_is_plain(nd->params.dtype)) {
    int64_t grain = PIECE_BYTES / (int64_t)(g.row < 32 ? 32 : g.row);
    rn_pool_for(rn_ctx_pool(ctx), places->count, grain < 1 ? 1 : grain, gather_nd_piece, &g);
  } else {
    RN_RETURN_IF_ERROR(gather_nd_owned(&g));
  }
  if (g.bad < places->count && *(const rn_bad_index_t*)ctx->state == RN_BAD_INDEX_ERROR)
    return rn_place_error(ctx, places, g.bad, "param shape", true);
  return RN_OK;
}

static rn_status_t gather_nd(rn_kernel_ctx_t* ctx) {
  rn_gather_nd_t g;
  RN_RETURN_IF_ERROR(rn_gather_nd_begin(ctx, &g));
  rn_status_t status = gather_places(ctx, &g);
  rn_tensor_clear(&g.params);
  return status;
}

#define TYPES                                                                              \
  (RN_TYPES_NUMBERS | RN_TYPES_QUANTISED | RN_T(BOOL) | RN_T(STRING) | RN_T(FLOAT8_E5M2) | \
   RN_T(FLOAT8_E4M3FN) | RN_T(RESOURCE) | RN_T(VARIANT))
#define INDEX_TYPES (RN_TYPES_INDEX | RN_T(INT16))

#define GATHER(name, attr, indices)                                               \
  {                                                                               \
    .op = name, .device = "CPU", .types = {{attr, TYPES}, {"Tindices", indices}}, \
    .state_size = sizeof(int64_t), .init = rn_gather_init, .compute = gather      \
  }
#define GATHER_ND(name, attr, indices)                                                    \
  {                                                                                       \
    .op = name, .device = "CPU", .types = {{attr, TYPES}, {"Tindices", indices}},         \
    .state_size = sizeof(rn_bad_index_t), .init = rn_gather_nd_init, .compute = gather_nd \
  }

static const rn_kernel_def_t rows[] = {
    GATHER("Gather", "Tparams", RN_TYPES_INDEX),
    GATHER("GatherV2", "Tparams", INDEX_TYPES),
    GATHER("ResourceGather", "dtype", RN_TYPES_INDEX),
    GATHER_ND("GatherNd", "Tparams", INDEX_TYPES),
    GATHER_ND("ResourceGatherNd", "dtype", RN_TYPES_INDEX),
};
RN_KERNEL_FAMILY(cpu_gather, rows);
