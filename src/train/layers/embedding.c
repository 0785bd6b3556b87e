// Embedding tables, whole or partitioned.
#include <stdio.h>

#include "train/layers/layer.h"

RN_API rn_edge_t rn_embedding_(rn_scope_t* scope, rn_edge_t ids, int64_t count, int64_t size,
                               rn_layer_options_t options) {
  rn_scope_t* s = rn_layer_begin(scope, options.name, "embedding", ids);
  if (!s) return RN_NO_EDGE;
  if (count <= 0 || size <= 0)
    rn_refuse(s, "Layer 'embedding': bad size [%lld,%lld]", (long long)count, (long long)size);
  rn_initializer_t start = options.kernel_initializer.make ? options.kernel_initializer
                                                           : rn_init_uniform(-0.05, 0.05, 0);
  int64_t dims[2] = {count, size};
  const rn_var_t* table = rn_get_variable(s, "embeddings", dims, 2, .initializer = start,
                                          .regularizer = options.kernel_regularizer);
  rn_edge_t rows = rn_var_gather(s, table, ids);
  if (options.activation && rn_scope_ok(s)) rows = options.activation(s, rows);
  rn_scope_destroy(s);
  return rows;
}

RN_API bool rn_partitioned_variable(rn_scope_t* scope, const char* name, int64_t rows,
                                    int64_t columns, rn_initializer_t initializer, int part_count,
                                    const rn_var_t** out_parts) {
  if (!rn_scope_ok(scope)) return false;
  if (!name || part_count <= 0 || !out_parts || rows < part_count) {
    rn_refuse(scope, "Variable %s: cannot split %lld rows into %d parts", name ? name : "",
              (long long)rows, part_count);
    return false;
  }
  rn_scope_t* s = rn_variable_scope(scope, name);
  for (int i = 0; i < part_count; ++i) {
    char part[32];
    snprintf(part, sizeof part, "part_%d", i);
    int64_t dims[2] = {rows / part_count + (i < rows % part_count), columns};
    out_parts[i] = rn_get_variable(s, part, dims, 2, .initializer = initializer);
  }
  rn_scope_destroy(s);
  return rn_scope_ok(scope);
}

// The part that holds each id, and the row in that part.
typedef struct embedding_place_t {
  rn_edge_t part, row;
} embedding_place_t;

static embedding_place_t place_by_remainder(rn_scope_t* s, rn_edge_t ids, int parts) {
  rn_edge_t n = rn_like(s, ids, parts);
  return (embedding_place_t){rn_FloorMod(s, ids, n), rn_FloorDiv(s, ids, n)};
}

// The first (rows % parts) parts have one extra row.
static embedding_place_t place_by_division(rn_scope_t* s, rn_edge_t ids, int parts, int64_t rows) {
  int64_t each = rows / parts, extras = rows % parts;
  rn_edge_t larger = rn_like(s, ids, (double)(each + 1));
  rn_edge_t smaller = rn_like(s, ids, (double)(each > 0 ? each : 1));
  rn_edge_t extra = rn_like(s, ids, (double)extras);
  rn_edge_t behind = rn_Sub(s, ids, extra);
  rn_edge_t part = rn_Maximum(s, rn_FloorDiv(s, ids, larger), rn_FloorDiv(s, behind, smaller));
  rn_edge_t row = rn_SelectV2(s, rn_Less(s, part, extra), rn_FloorMod(s, ids, larger),
                              rn_FloorMod(s, behind, smaller));
  return (embedding_place_t){part, row};
}

static rn_edge_t look_up_parts(rn_scope_t* s, const rn_var_t* const* parts, int count,
                               rn_edge_t ids, bool by_division, rn_edge_t* found,
                               rn_edge_t* places) {
  int64_t rows = 0;
  for (int i = 0; i < count; ++i) rows += parts[i]->rank > 0 ? parts[i]->dims[0] : 0;
  rn_edge_t flat = rn_reshape(s, ids, (const int64_t[]){-1}, 1);
  embedding_place_t place =
      by_division ? place_by_division(s, flat, count, rows) : place_by_remainder(s, flat, count);
  rn_edge_t part = rn_as(s, place.part, RN_INT32);
  rn_edge_t order = rn_Range(s, rn_const_int32(s, 0), rn_Size(s, flat), rn_const_int32(s, 1));
  rn_edges_t asked = rn_DynamicPartition(s, place.row, part, count);
  rn_edges_t from = rn_DynamicPartition(s, order, part, count);
  for (int i = 0; i < count; ++i) {
    found[i] = rn_var_gather(s, parts[i], rn_edge_at(asked, i));
    places[i] = rn_edge_at(from, i);
  }
  rn_edge_t stitched = rn_DynamicStitch(s, places, count, found, count);
  // [ids…, row…].
  rn_shape_t shape = rn_shape_of_edge(ids);
  if (shape.rank == 1) return stitched;
  rn_edge_t ends[2] = {rn_run_shape(s, ids),
                       rn_shape_const(s, parts[0]->dims + 1, parts[0]->rank - 1)};
  return rn_Reshape(s, stitched, rn_ConcatV2(s, ends, 2, rn_const_int32(s, 0)));
}

RN_API rn_edge_t rn_embedding_lookup(rn_scope_t* scope, const rn_var_t* const* parts,
                                     int part_count, rn_edge_t ids, bool by_division) {
  if (!rn_is_edge(scope, ids, "embedding_lookup", "the list of ids")) return RN_NO_EDGE;
  bool is_whole = part_count > 0 && parts;
  for (int i = 0; is_whole && i < part_count; ++i) is_whole = parts[i] && parts[i]->rank > 0;
  if (!is_whole) {
    rn_refuse(scope, "embedding_lookup: a part of the table is missing");
    return RN_NO_EDGE;
  }
  rn_scope_t* s = rn_scope_child(scope, "embedding_lookup");
  if (!s) return RN_NO_EDGE;
  rn_edge_t rows = RN_NO_EDGE, *found = NULL;
  size_t room = 2 * (size_t)part_count;
  if (part_count == 1) {
    rows = rn_var_gather(s, parts[0], ids);
  } else {
    rn_status_t status = RN_NEW_ARRAY(rn_scope_allocator(s), room, &found);
    if (rn_ok(status))
      rows = look_up_parts(s, parts, part_count, ids, by_division, found, found + part_count);
    else
      rn_scope_fail(s, status);
    RN_FREE_ARRAY(rn_scope_allocator(s), found, room);
  }
  rn_scope_destroy(s);
  return rows;
}
