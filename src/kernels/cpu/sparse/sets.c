// Sets: each row of the last dimension is one. Union, intersection and difference, row by row, of
// dense and sparse tensors; and the size of each set. Results are sorted.
#include <stdlib.h>

#include "base/arena.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef enum set_op_t { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION } set_op_t;

typedef struct sets_t {
  set_op_t op;
  bool checks;
} sets_t;

static rn_status_t sets_init(const rn_kernel_init_t* init, void* state) {
  static const char* const names[] = {"a-b", "b-a", "intersection", "union"};
  sets_t* sets = state;
  sets->checks = rn_init_bool(init, "validate_indices");
  if (!strcmp(init->op->name, "SetSize")) return RN_OK;
  rn_str_t name = rn_init_string(init, "set_operation");
  char lower[16] = "";
  for (size_t i = 0; i < name.size && i + 1 < sizeof lower; ++i)
    lower[i] =
        name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] + 32) : name.data[i];
  for (int op = 0; op < 4; ++op) {
    if (name.size != strlen(names[op]) || strcmp(lower, names[op])) continue;
    sets->op = (set_op_t)op;
    return RN_OK;
  }
  return rn_invalid_argument("Invalid set_operation %.*s.", RN_STR_ARGS(name));
}

// One operand: dense rows, or runs of sparse entries. |shape| is that of the groups, plus a last
// size.
typedef struct sets_operand_t {
  const rn_tensor_t* values;
  int32_t rank;
  const int64_t* shape;
  bool is_sparse;
  rn_sparse_t sparse;
  int64_t at;  // the next entry or row
} sets_operand_t;

static rn_status_t read_dense(rn_kernel_ctx_t* ctx, int i, sets_operand_t* out) {
  const rn_tensor_t* set = rn_in(ctx, i);
  if (set->rank < 2)
    return rn_invalid_argument("Shape %s has rank %d < 2", rn_text_of(set).text, set->rank);
  *out = (sets_operand_t){.values = set, .rank = set->rank, .shape = rn_tensor_dims(set)};
  return RN_OK;
}

// INTERNAL unless every index is within the sizes; the message counts entries within their group.
// If |is_matched| with the groups of a dense tensor, groups may be out of bounds: they match
// nothing.
static rn_status_t check_groups_of(const rn_sparse_t* sparse, bool is_matched) {
  int64_t first = 0;
  for (int64_t i = 0; i < sparse->count; ++i) {
    const int64_t* index = rn_sparse_index(sparse, i);
    if (rn_sparse_compare(rn_sparse_index(sparse, first), index, sparse->rank - 1)) first = i;
    for (int32_t d = is_matched ? sparse->rank - 1 : 0; d < sparse->rank; ++d) {
      if (index[d] < 0)
        return rn_internal("indices[%lld, %d] expected >= 0, got %lld.", (long long)(i - first), d,
                           (long long)index[d]);
      if (index[d] >= sparse->shape[d])
        return rn_internal("indices[%lld, %d] expected < %lld, got %lld.", (long long)(i - first),
                           d, (long long)sparse->shape[d], (long long)index[d]);
    }
  }
  return RN_OK;
}

static rn_status_t read_sparse(rn_kernel_ctx_t* ctx, int first, bool checks, sets_operand_t* out) {
  const rn_tensor_t* shape = rn_in(ctx, first + 2);
  rn_sparse_t sparse;
  if (shape->rank != 1) return rn_invalid_argument("Shape must be a 1D tensor.");
  RN_RETURN_IF_ERROR(rn_sparse_check_sizes(shape));
  if (shape->count < 2) return rn_invalid_argument("Invalid rank %d.", (int)shape->count);
  RN_RETURN_IF_ERROR(rn_sparse_read(ctx, first, &sparse));
  RN_RETURN_IF_ERROR(checks ? rn_sparse_check(&sparse) : check_groups_of(&sparse, first == 1));
  *out = (sets_operand_t){.values = sparse.values,
                          .rank = sparse.rank,
                          .shape = sparse.shape,
                          .is_sparse = true,
                          .sparse = sparse};
  return RN_OK;
}

static rn_status_t check_groups(const sets_operand_t* a, const sets_operand_t* b) {
  bool is_same = a->rank == b->rank;
  for (int32_t d = 0; d < a->rank - 1 && is_same; ++d) is_same = a->shape[d] == b->shape[d];
  if (is_same) return RN_OK;
  return rn_invalid_argument("Mismatched shapes %s vs %s",
                             rn_shape_text((rn_shape_t){(int16_t)(a->rank - 1), a->shape}).text,
                             rn_shape_text((rn_shape_t){(int16_t)(b->rank - 1), b->shape}).text);
}

// The number of an entry's group in group order; -1 if it is in none.
static int64_t group_of(const sets_operand_t* operand, int64_t entry) {
  const int64_t* index = rn_sparse_index(&operand->sparse, entry);
  int64_t number = 0;
  for (int32_t d = 0; d < operand->rank - 1; ++d) {
    if (index[d] < 0 || index[d] >= operand->shape[d]) return -1;
    number = number * operand->shape[d] + index[d];
  }
  return number;
}

// The next group that has entries: its number and its run of values; false if there is none.
static bool next_group(sets_operand_t* operand, int64_t* out_group, int64_t* out_begin,
                       int64_t* out_end) {
  if (!operand->is_sparse) {
    int64_t width = operand->shape[operand->rank - 1];
    if (!width || operand->at * width >= operand->values->count) return false;
    *out_group = operand->at;
    *out_begin = operand->at++ * width;
    *out_end = *out_begin + width;
    return true;
  }
  if (operand->at >= operand->sparse.count) return false;
  const int64_t* first = rn_sparse_index(&operand->sparse, operand->at);
  *out_group = group_of(operand, operand->at);
  *out_begin = operand->at;
  do {
    *out_end = ++operand->at;
  } while (
      operand->at < operand->sparse.count &&
      !rn_sparse_compare(first, rn_sparse_index(&operand->sparse, operand->at), operand->rank - 1));
  return true;
}

// A member, as the index of a value; members are sorted.
typedef struct member_t {
  const rn_tensor_t* values;
  int64_t place;
} member_t;

static int compare_members(const void* a, const void* b) {
  const member_t *x = a, *y = b;
  if (x->values->dtype == RN_STRING)
    return rn_str_compare(rn_tstring_view(&RN_DATA(x->values, const rn_tstring_t)[x->place]),
                          rn_tstring_view(&RN_DATA(y->values, const rn_tstring_t)[y->place]));
  int64_t p = rn_int_at(x->values, x->place), q = rn_int_at(y->values, y->place);
  return (p > q) - (p < q);
}

// Sorts the run and removes duplicates; returns how many are left.
static int64_t make_set(const rn_tensor_t* values, int64_t begin, int64_t end, member_t* out) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i) out[i - begin] = (member_t){values, i};
  if (end > begin) qsort(out, (size_t)(end - begin), sizeof *out, compare_members);
  for (int64_t i = 0; i < end - begin; ++i)
    if (!count || compare_members(&out[count - 1], &out[i])) out[count++] = out[i];
  return count;
}

static int64_t combine_sets(set_op_t op, const member_t* a, int64_t a_count, const member_t* b,
                            int64_t b_count, member_t* out) {
  int64_t i = 0, j = 0, n = 0;
  while (i < a_count || j < b_count) {
    int order = i == a_count ? 1 : j == b_count ? -1 : compare_members(&a[i], &b[j]);
    bool is_taken = op == UNION || (op == INTERSECTION && order == 0) ||
                    (op == A_MINUS_B && order < 0) || (op == B_MINUS_A && order > 0);
    if (is_taken) out[n++] = order <= 0 ? a[i] : b[j];
    i += order <= 0;
    j += order >= 0;
  }
  return n;
}

// All results, one group after the other.
typedef struct results_t {
  member_t* members;
  int64_t* groups;  // of each member
  int64_t count, widest;
} results_t;

static rn_status_t take_group(sets_operand_t* from, int64_t group, int64_t* next, int64_t* begin,
                              int64_t* end, bool* has, member_t* out, int64_t* out_count) {
  *out_count = 0;
  if (!*has || *next != group) return RN_OK;
  *out_count = make_set(from->values, *begin, *end, out);
  *has = next_group(from, next, begin, end);
  return RN_OK;
}

static rn_status_t combine_all(set_op_t op, sets_operand_t* a, sets_operand_t* b, rn_arena_t* arena,
                               results_t* out) {
  int64_t a_next = 0, a_begin = 0, a_end = 0, b_next = 0, b_begin = 0, b_end = 0;
  size_t room = (size_t)a->values->count + (size_t)b->values->count + 1;
  member_t *left = NULL, *right = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)a->values->count + 1, &left));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)b->values->count + 1, &right));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &out->members));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, room, &out->groups));
  bool has_a = next_group(a, &a_next, &a_begin, &a_end);
  bool has_b = next_group(b, &b_next, &b_begin, &b_end);
  while (has_a || has_b) {
    int64_t group = !has_a ? b_next : !has_b ? a_next : a_next < b_next ? a_next : b_next;
    int64_t a_count = 0, b_count = 0;
    RN_RETURN_IF_ERROR(take_group(a, group, &a_next, &a_begin, &a_end, &has_a, left, &a_count));
    RN_RETURN_IF_ERROR(take_group(b, group, &b_next, &b_begin, &b_end, &has_b, right, &b_count));
    if (group < 0) continue;
    int64_t made = combine_sets(op, left, a_count, right, b_count, out->members + out->count);
    for (int64_t i = 0; i < made; ++i) out->groups[out->count + i] = group;
    out->count += made;
    if (made > out->widest) out->widest = made;
  }
  return RN_OK;
}

static rn_status_t give_results(rn_kernel_ctx_t* ctx, const sets_operand_t* a,
                                const results_t* results) {
  int32_t rank = a->rank;
  int64_t shape[RN_MAX_RANK], *indices = NULL;
  rn_tensor_t* values = NULL;
  memcpy(shape, a->shape, (size_t)rank * sizeof *shape);
  shape[rank - 1] = results->widest;
  RN_RETURN_IF_ERROR(rn_sparse_output(ctx, 0, results->count, rank, shape, &indices, &values));
  int64_t place = 0;
  for (int64_t i = 0; i < results->count; ++i) {
    int64_t group = results->groups[i];
    place = i && results->groups[i - 1] == group ? place + 1 : 0;
    indices[i * rank + rank - 1] = place;
    for (int32_t d = rank - 2; d >= 0; --d) {
      indices[i * rank + d] = group % shape[d];
      group /= shape[d];
    }
    const member_t* member = &results->members[i];
    RN_RETURN_IF_ERROR(rn_move_row(values->dtype, rn_element(member->values, member->place),
                                   rn_element(values, i), 1));
  }
  return RN_OK;
}

static rn_status_t operate(rn_kernel_ctx_t* ctx, bool a_is_sparse, bool b_is_sparse) {
  const sets_t* sets = ctx->state;
  int second = a_is_sparse ? 3 : 1;
  results_t results = {0};
  sets_operand_t a, b;
  rn_arena_t arena;
  RN_RETURN_IF_ERROR(a_is_sparse ? read_sparse(ctx, 0, sets->checks, &a) : read_dense(ctx, 0, &a));
  RN_RETURN_IF_ERROR(b_is_sparse ? read_sparse(ctx, second, sets->checks, &b)
                                 : read_dense(ctx, second, &b));
  RN_RETURN_IF_ERROR(check_groups(&a, &b));
  rn_arena_init(&arena, ctx->kernel->allocator);
  rn_status_t status = combine_all(sets->op, &a, &b, &arena, &results);
  if (rn_ok(status)) status = give_results(ctx, &a, &results);
  rn_arena_clear(&arena);
  return status;
}
static rn_status_t dense_dense(rn_kernel_ctx_t* ctx) { return operate(ctx, false, false); }
static rn_status_t dense_sparse(rn_kernel_ctx_t* ctx) { return operate(ctx, false, true); }
static rn_status_t sparse_sparse(rn_kernel_ctx_t* ctx) { return operate(ctx, true, true); }

static rn_status_t set_size(rn_kernel_ctx_t* ctx) {
  int64_t group = 0, begin = 0, end = 0;
  rn_tensor_t* out = NULL;
  member_t* members = NULL;
  sets_operand_t set;
  RN_RETURN_IF_ERROR(read_sparse(ctx, 0, ((const sets_t*)ctx->state)->checks, &set));
  rn_shape_t shape = {(int16_t)(set.rank - 1), set.shape};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  if (out->count) memset(out->data, 0, rn_tensor_bytes(out));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(ctx->kernel->allocator, (size_t)set.values->count + 1, &members));
  while (next_group(&set, &group, &begin, &end))
    if (group >= 0)
      RN_DATA(out, int32_t)[group] = (int32_t)make_set(set.values, begin, end, members);
  RN_FREE_ARRAY(ctx->kernel->allocator, members, (size_t)set.values->count + 1);
  return RN_OK;
}

#define ROW(name, function)                                                      \
  {                                                                              \
    .op = name, .device = "CPU",                                                 \
    .types = {{"T", RN_TYPES_INTS | RN_T(UINT8) | RN_T(UINT16) | RN_T(STRING)}}, \
    .state_size = sizeof(sets_t), .init = sets_init, .compute = function         \
  }

static const rn_kernel_def_t rows[] = {
    ROW("DenseToDenseSetOperation", dense_dense),
    ROW("DenseToSparseSetOperation", dense_sparse),
    ROW("SparseToSparseSetOperation", sparse_sparse),
    ROW("SetSize", set_size),
};
RN_KERNEL_FAMILY(cpu_sparse_sets, rows);
