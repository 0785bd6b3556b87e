// Unique in its variants, and the difference of two lists.
#include "kernels/cpu/array.h"
#include "kernels/cpu/array/begin.h"
#include "kernels/cpu/move.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

// The items are slices of a tensor along an axis: item i has |outer| runs of |inner| elements.
typedef struct items_t {
  const rn_tensor_t* tensor;
  rn_axis_view_t view;
} items_t;

static const char* run_at(const items_t* items, int64_t item, int64_t outer) {
  int64_t at = (outer * items->view.size + item) * items->view.inner;
  return (const char*)items->tensor->data + (size_t)at * rn_dtype_size(items->tensor->dtype);
}

static bool is_float(rn_dtype_t dtype) {
  return dtype == RN_FLOAT || dtype == RN_DOUBLE || dtype == RN_HALF || dtype == RN_BFLOAT16;
}

// A bit pattern that is equal for equal numbers; false for NaN, which equals nothing.
static bool float_bits(rn_dtype_t dtype, const char* at, uint64_t* out) {
  double value;
  uint16_t half;
  float single;
  switch (dtype) {
    case RN_DOUBLE:
      memcpy(&value, at, sizeof value);
      break;
    case RN_FLOAT:
      memcpy(&single, at, sizeof single);
      value = (double)single;
      break;
    default:
      memcpy(&half, at, sizeof half);
      value = (double)(dtype == RN_HALF ? rn_half_to_float(half) : rn_bfloat16_to_float(half));
  }
  if (value == 0) value = 0;
  memcpy(out, &value, sizeof value);
  return value == value;
}

static inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 32;
}

static uint64_t hash_item(const items_t* items, int64_t item) {
  const rn_dtype_t dtype = items->tensor->dtype;
  if (dtype == RN_INT32 && items->tensor->rank == 1)
    return mix(0, (uint32_t)RN_DATA(items->tensor, const int32_t)[item]);
  const size_t size = rn_dtype_size(dtype);
  uint64_t hash = 0;
  for (int64_t o = 0; o < items->view.outer; ++o) {
    const char* at = run_at(items, item, o);
    for (int64_t j = 0; j < items->view.inner; ++j, at += size) {
      uint64_t bits = 0;
      if (dtype == RN_STRING)
        bits = rn_str_hash(rn_tstring_view((const rn_tstring_t*)at));
      else if (is_float(dtype))
        (void)float_bits(dtype, at, &bits);
      else
        memcpy(&bits, at, size);
      hash = mix(hash, bits);
    }
  }
  return hash;
}

static bool same_item(const items_t* a, int64_t i, const items_t* b, int64_t k) {
  const rn_dtype_t dtype = a->tensor->dtype;
  if (dtype == RN_INT32 && a->tensor->rank == 1)
    return RN_DATA(a->tensor, const int32_t)[i] == RN_DATA(b->tensor, const int32_t)[k];
  const size_t size = rn_dtype_size(dtype);
  for (int64_t o = 0; o < a->view.outer; ++o) {
    const char *x = run_at(a, i, o), *y = run_at(b, k, o);
    for (int64_t j = 0; j < a->view.inner; ++j, x += size, y += size) {
      if (dtype == RN_STRING) {
        if (!rn_str_eq(rn_tstring_view((const rn_tstring_t*)x),
                       rn_tstring_view((const rn_tstring_t*)y)))
          return false;
      } else if (is_float(dtype)) {
        uint64_t p, q;
        if (!float_bits(dtype, x, &p) || !float_bits(dtype, y, &q) || p != q) return false;
      } else if (memcmp(x, y, size) != 0) {
        return false;
      }
    }
  }
  return true;
}

// For vectors of integers such as row ids: the table holds the number of each distinct value,
// |values| the value. Returns how many there are.
#define FIND_INTEGERS(T)                                                                      \
  static int64_t find_##T(const T* in, int64_t n, int32_t* slots, size_t capacity, T* values, \
                          rn_tensor_t* idx) {                                                 \
    int64_t count = 0;                                                                        \
    for (int64_t i = 0; i < n; ++i) {                                                         \
      const T value = in[i];                                                                  \
      size_t at = mix(0, (uint64_t)value) & (capacity - 1);                                   \
      while (slots[at] >= 0 && values[slots[at]] != value) at = (at + 1) & (capacity - 1);    \
      if (slots[at] < 0) {                                                                    \
        slots[at] = (int32_t)count;                                                           \
        values[count++] = value;                                                              \
      }                                                                                       \
      rn_int_set(idx, i, slots[at]);                                                          \
    }                                                                                         \
    return count;                                                                             \
  }
FIND_INTEGERS(int32_t)
FIND_INTEGERS(int64_t)

static bool are_integers(const items_t* items) {
  rn_dtype_t dtype = items->tensor->dtype;
  return items->tensor->rank == 1 && items->view.size < INT32_MAX / 4 &&
         (dtype == RN_INT32 || dtype == RN_INT64);
}

// The distinct values of |input| go to |out|, their numbers to |idx|.
static rn_status_t unique_integers(rn_kernel_ctx_t* ctx, const rn_tensor_t* input, rn_tensor_t* idx,
                                   rn_tensor_t** out) {
  size_t capacity = 16, size = rn_dtype_size(input->dtype);
  while (capacity < 2 * (size_t)input->count) capacity *= 2;
  rn_tensor_t scratch = {0};
  int64_t bytes = (int64_t)(capacity * sizeof(int32_t) + (size_t)input->count * size);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &scratch));
  int32_t* slots = scratch.data;
  void* values = slots + capacity;
  memset(slots, 0xff, capacity * sizeof *slots);
  int64_t count = size == 4 ? find_int32_t(input->data, input->count, slots, capacity, values, idx)
                            : find_int64_t(input->data, input->count, slots, capacity, values, idx);
  rn_status_t status = rn_output(ctx, 0, (rn_shape_t){1, &count}, out);
  if (rn_ok(status)) memcpy((*out)->data, values, (size_t)count * size);
  rn_tensor_clear(&scratch);
  return status;
}

// A hash table of items by value; a slot holds an item's number, or -1.
typedef struct unique_table_t {
  rn_allocator_t allocator;
  size_t capacity;  // a power of two, at least twice the number of items
  int64_t* slots;   // Owned
} unique_table_t;

static rn_status_t table_create(rn_allocator_t allocator, int64_t items, unique_table_t* out) {
  size_t capacity = 16;
  while (capacity < 2 * (size_t)items) capacity *= 2;
  *out = (unique_table_t){allocator, capacity, NULL};
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, capacity, &out->slots));
  memset(out->slots, 0xff, capacity * sizeof *out->slots);
  return RN_OK;
}

static void table_clear(unique_table_t* table) {
  RN_FREE_ARRAY(table->allocator, table->slots, table->capacity);
}

// The slot of the item in |known| that equals item |i| of |items|, or the free slot for it.
static int64_t* table_find(const unique_table_t* table, const items_t* known, const items_t* items,
                           int64_t i) {
  size_t at = hash_item(items, i) & (table->capacity - 1);
  while (table->slots[at] >= 0 && !same_item(items, i, known, table->slots[at]))
    at = (at + 1) & (table->capacity - 1);
  return &table->slots[at];
}

static rn_status_t write_unique(rn_kernel_ctx_t* ctx, const items_t* items, int axis,
                                const int64_t* firsts, int64_t count) {
  const rn_tensor_t* input = items->tensor;
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, rn_tensor_dims(input), (size_t)input->rank * sizeof *dims);
  dims[axis] = count;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){input->rank, dims}, &out));
  const size_t size = rn_dtype_size(input->dtype);
  for (int64_t o = 0; o < items->view.outer; ++o)
    for (int64_t u = 0; u < count; ++u)
      RN_RETURN_IF_ERROR(
          rn_move_row(input->dtype, run_at(items, firsts[u], o),
                      (char*)out->data + (size_t)((o * count + u) * items->view.inner) * size,
                      items->view.inner));
  return RN_OK;
}

static rn_status_t write_counts(rn_kernel_ctx_t* ctx, const rn_tensor_t* idx, int64_t count) {
  if (ctx->kernel->output_count < 3) return RN_OK;
  rn_tensor_t* counts = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &count}, &counts));
  for (int64_t u = 0; u < count; ++u) rn_int_set(counts, u, 0);
  for (int64_t i = 0; i < idx->count; ++i) {
    int64_t u = rn_int_at(idx, i);
    rn_int_set(counts, u, rn_int_at(counts, u) + 1);
  }
  return RN_OK;
}

static rn_status_t find_unique(rn_kernel_ctx_t* ctx, const items_t* items, int axis,
                               unique_table_t* table, int64_t* firsts, int64_t* numbers,
                               rn_tensor_t* idx) {
  const int64_t n = items->view.size;
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t* slot = table_find(table, items, items, i);
    if (*slot < 0) {
      *slot = i;
      numbers[i] = count;
      firsts[count++] = i;
    }
    rn_int_set(idx, i, numbers[*slot]);
  }
  RN_RETURN_IF_ERROR(write_unique(ctx, items, axis, firsts, count));
  return write_counts(ctx, idx, count);
}

rn_status_t rn_unique_axis(const rn_kernel_ctx_t* ctx, int* out) {
  const rn_tensor_t* input = rn_in(ctx, 0);
  *out = 0;
  if (ctx->kernel->input_count > 1) {
    const rn_tensor_t* axis = rn_in(ctx, 1);
    if (axis->rank != 1) return rn_invalid_argument("axis expects a 1D vector.");
    if (axis->count > 1)
      return rn_invalid_argument("axis does not support input tensors larger than 1 elements");
    if (axis->count == 1) {
      int64_t at = rn_int_at(axis, 0);
      if (at < 0) at += input->rank;
      if (at < 0 || at >= input->rank)
        return rn_invalid_argument("axis has to be between [0, %d)", input->rank);
      *out = (int)at;
      return RN_OK;
    }
  }
  return input->rank == 1 ? RN_OK : rn_invalid_argument("unique expects a 1D vector.");
}

static rn_status_t unique(rn_kernel_ctx_t* ctx) {
  int axis;
  RN_RETURN_IF_ERROR(rn_unique_axis(ctx, &axis));
  items_t items = {rn_in(ctx, 0), rn_axis_view(rn_in(ctx, 0), axis)};
  const int64_t n = items.view.size;
  rn_tensor_t* idx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &n}, &idx));
  if (are_integers(&items)) {
    rn_tensor_t* out = NULL;
    RN_RETURN_IF_ERROR(unique_integers(ctx, items.tensor, idx, &out));
    return write_counts(ctx, idx, out->count);
  }
  rn_allocator_t allocator = ctx->kernel->allocator;
  int64_t* places = NULL;  // first occurrence of each value, and the number of each value
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, 2 * (size_t)n, &places));
  unique_table_t table = {0};
  rn_status_t status = table_create(allocator, n, &table);
  if (rn_ok(status)) status = find_unique(ctx, &items, axis, &table, places, places + n, idx);
  if (table.slots) table_clear(&table);
  RN_FREE_ARRAY(allocator, places, 2 * n);
  return status;
}

static rn_status_t write_difference(rn_kernel_ctx_t* ctx, const items_t* x, const items_t* y,
                                    const unique_table_t* table) {
  int64_t count = 0;
  for (int64_t i = 0; i < x->view.size; ++i) count += *table_find(table, y, x, i) < 0;
  rn_tensor_t *out = NULL, *idx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &count}, &out));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &count}, &idx));
  const size_t size = rn_dtype_size(out->dtype);
  for (int64_t i = 0, at = 0; i < x->view.size; ++i) {
    if (*table_find(table, y, x, i) >= 0) continue;
    RN_RETURN_IF_ERROR(
        rn_move_row(out->dtype, run_at(x, i, 0), (char*)out->data + (size_t)at * size, 1));
    rn_int_set(idx, at++, i);
  }
  return RN_OK;
}

static rn_status_t list_diff(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *y = rn_in(ctx, 1);
  if (x->rank != 1) return rn_invalid_argument("x should be a 1D vector.");
  if (y->rank != 1) return rn_invalid_argument("y should be a 1D vector.");
  items_t in_x = {x, {1, x->count, 1}}, in_y = {y, {1, y->count, 1}};
  unique_table_t table;
  RN_RETURN_IF_ERROR(table_create(ctx->kernel->allocator, y->count, &table));
  for (int64_t i = 0; i < y->count; ++i) {
    int64_t* slot = table_find(&table, &in_y, &in_y, i);
    if (*slot < 0) *slot = i;
  }
  rn_status_t status = write_difference(ctx, &in_x, &in_y, &table);
  table_clear(&table);
  return status;
}

#define TYPES (RN_TYPES_REAL | RN_T(BOOL) | RN_T(STRING))
#define ROW(name, function) \
  { .op = name, .device = "CPU", .types = {{"T", TYPES}}, .compute = function }

static const rn_kernel_def_t rows[] = {
    ROW("Unique", unique),           ROW("UniqueV2", unique),
    ROW("UniqueWithCounts", unique), ROW("UniqueWithCountsV2", unique),
    ROW("ListDiff", list_diff),
};
RN_KERNEL_FAMILY(cpu_unique, rows);
