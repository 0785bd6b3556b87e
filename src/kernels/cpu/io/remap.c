// LoadAndRemapMatrix: a matrix of a checkpoint with its rows and columns in another order. New row
// i is old row row_remapping[i]; -1 stands for a row, or column, that takes its cells from
// initializing_values.
#include <inttypes.h>

#include "io/bundle.h"
#include "kernels/cpu/array.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

typedef struct remap_t {
  int64_t rows, columns;
  int64_t most_rows;  // read at a time; <= 0 for all
} remap_t;

static rn_status_t remap_init(const rn_kernel_init_t* init, void* state) {
  *(remap_t*)state = (remap_t){.rows = rn_init_int(init, "num_rows"),
                               .columns = rn_init_int(init, "num_cols"),
                               .most_rows = rn_init_int(init, "max_rows_in_memory")};
  return RN_OK;
}

// An old number and the new one.
typedef struct moved_t {
  int64_t from, to;
} moved_t;

static int compare(const void* a, const void* b) {
  const moved_t *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

// The entries of |remapping| that are not negative, by their old numbers.
static rn_status_t invert(const rn_tensor_t* remapping, rn_arena_t* arena, moved_t** out,
                          int64_t* out_count) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)remapping->count, out));
  *out_count = 0;
  for (int64_t i = 0; i < remapping->count; ++i) {
    int64_t from = RN_DATA(remapping, const int64_t)[i];
    if (from >= 0) (*out)[(*out_count)++] = (moved_t){from, i};
  }
  qsort(*out, (size_t)*out_count, sizeof **out, compare);
  for (int64_t i = 1; i < *out_count; ++i)
    if ((*out)[i].from == (*out)[i - 1].from)
      return rn_unimplemented("Old ID %" PRId64 " is mapped to both new ID %" PRId64 " and %" PRId64
                              ", which is not supported.",
                              (*out)[i].from, (*out)[i - 1].to, (*out)[i].to);
  return RN_OK;
}

typedef struct matrix_t {
  const remap_t* remap;
  rn_bundle_reader_t* reader;
  const rn_bundle_entry_t* entry;
  moved_t *rows, *columns;
  int64_t row_count, column_count;
  bool moves_columns;
} matrix_t;

static rn_status_t find_matrix(rn_kernel_ctx_t* ctx, matrix_t* m) {
  const remap_t* remap = m->remap;
  rn_str_t name = rn_tstring_view(RN_DATA(rn_in(ctx, 1), const rn_tstring_t));
  m->entry = rn_bundle_find(m->reader, name);
  if (!m->entry) return rn_not_found("Key %.*s not found in checkpoint", RN_STR_ARGS(name));
  rn_shape_t shape = m->entry->shape;
  if (m->entry->dtype != RN_FLOAT)
    return rn_invalid_argument("Tensor %.*s has invalid type %s instead of expected type float",
                               RN_STR_ARGS(name), rn_dtype_name(m->entry->dtype));
  if (shape.rank != 2)
    return rn_invalid_argument(
        "Tensor %.*s has shape %s of invalid rank %d instead of expected shape of rank 2.",
        RN_STR_ARGS(name), rn_shape_text(shape).text, shape.rank);
  if (!m->moves_columns && shape.dims[1] != remap->columns)
    return rn_invalid_argument(
        "Tensor %.*s has shape %s, where the size of its 2nd dimension is "
        "%" PRId64 " instead of being equal to num_cols=%" PRId64,
        RN_STR_ARGS(name), rn_shape_text(shape).text, shape.dims[1], remap->columns);
  for (int64_t i = 0; m->moves_columns && i < m->column_count; ++i)
    if (m->columns[i].from >= shape.dims[1]) m->column_count = i;  // beyond the end: left as it is
  return RN_OK;
}

// Copies old rows [begin, begin + count), in |part|, to their places.
static void place_rows(const matrix_t* m, const rn_tensor_t* part, int64_t begin, int64_t* next,
                       rn_tensor_t* out) {
  int64_t width = rn_tensor_dim(part, 1), end = begin + rn_tensor_dim(part, 0);
  for (; *next < m->row_count && m->rows[*next].from < end; ++*next) {
    const float* from = RN_DATA(part, const float) + (m->rows[*next].from - begin) * width;
    float* to = RN_DATA(out, float) + m->rows[*next].to * m->remap->columns;
    if (!m->moves_columns) memcpy(to, from, (size_t)width * sizeof *to);
    for (int64_t c = 0; m->moves_columns && c < m->column_count; ++c)
      to[m->columns[c].to] = from[m->columns[c].from];
  }
}

static rn_status_t read_rows(rn_kernel_ctx_t* ctx, const matrix_t* m, rn_arena_t* arena,
                             rn_tensor_t* out) {
  if (m->row_count == 0) return RN_OK;
  int64_t begin = m->rows[0].from, last = m->rows[m->row_count - 1].from, next = 0;
  while (begin <= last) {
    int64_t count = last - begin + 1;
    if (m->remap->most_rows > 0 && m->remap->most_rows < count) count = m->remap->most_rows;
    int64_t starts[2] = {begin, 0}, lengths[2] = {count, RN_SLICE_WHOLE};
    rn_slice_t slice = {2, starts, lengths};
    rn_shape_t shape;
    rn_tensor_t part = {0};
    RN_RETURN_IF_ERROR(rn_slice_shape(slice, m->entry->shape, arena, &shape));
    RN_RETURN_IF_ERROR(rn_bundle_check(m->reader, m->entry, &slice));
    RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->host_memory, RN_FLOAT, shape, &part));
    rn_status_t status = rn_bundle_read(m->reader, m->entry, &slice, rn_ctx_pool(ctx), &part);
    if (rn_ok(status)) place_rows(m, &part, begin, &next, out);
    rn_tensor_clear(&part);
    RN_RETURN_IF_ERROR(status);
    begin += count;
  }
  return RN_OK;
}

// Fills the cells of new rows and columns, row by row.
static rn_status_t fill_cells(rn_kernel_ctx_t* ctx, const matrix_t* m, rn_tensor_t* out) {
  const rn_tensor_t *rows = rn_in(ctx, 2), *columns = rn_in(ctx, 3), *values = rn_in(ctx, 4);
  int64_t used = 0;
  for (int64_t r = 0; r < m->remap->rows; ++r) {
    bool has_row = RN_DATA(rows, const int64_t)[r] >= 0;
    for (int64_t c = 0; c < m->remap->columns; ++c) {
      if (has_row && (!m->moves_columns || RN_DATA(columns, const int64_t)[c] >= 0)) continue;
      if (used == values->count)
        return rn_invalid_argument("initializing_values contained %" PRId64
                                   " elements, but more missing values remain.",
                                   values->count);
      RN_DATA(out, float)[r * m->remap->columns + c] = RN_DATA(values, const float)[used++];
    }
  }
  if (used == values->count) return RN_OK;
  return rn_invalid_argument("initializing_values contained %" PRId64 " elements, but only %" PRId64
                             " elements were used to fill in missing values.",
                             values->count, used);
}

static rn_status_t read_remappings(rn_kernel_ctx_t* ctx, rn_arena_t* arena, matrix_t* m) {
  const rn_tensor_t *rows = rn_in(ctx, 2), *columns = rn_in(ctx, 3);
  if (rows->rank != 1)
    return rn_invalid_argument("The `row_remapping` tensor must be 1-D, got a tensor of shape %s",
                               rn_text_of(rows).text);
  if (rows->count != m->remap->rows)
    return rn_invalid_argument("Size of row_remapping is %" PRId64
                               " instead of being equal to num_rows=%" PRId64,
                               rows->count, m->remap->rows);
  RN_RETURN_IF_ERROR(invert(rows, arena, &m->rows, &m->row_count));
  if (columns->rank != 1)
    return rn_invalid_argument("The `col_remapping` tensor must be 1-D, got a tensor of shape %s",
                               rn_text_of(columns).text);
  m->moves_columns = columns->count > 0;
  if (!m->moves_columns) return RN_OK;
  if (columns->count != m->remap->columns)
    return rn_invalid_argument("Provided col_remapping, but its size is %" PRId64
                               " instead of being equal to num_cols=%" PRId64,
                               columns->count, m->remap->columns);
  return invert(columns, arena, &m->columns, &m->column_count);
}

static rn_status_t remap_in(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  matrix_t m = {.remap = ctx->state};
  const rn_tensor_t* path = rn_in(ctx, 0);
  rn_str_t prefix;
  RN_RETURN_IF_ERROR(read_remappings(ctx, arena, &m));
  if (path->count != 1)
    return rn_invalid_argument(
        "The `ckpt_path` tensor must have exactly one element, got tensor of shape %s",
        rn_text_of(path).text);
  if (rn_in(ctx, 1)->count != 1)
    return rn_invalid_argument("The `old_tensor_name` tensor must have exactly one element");
  RN_RETURN_IF_ERROR(
      rn_arena_str(arena, rn_tstring_view(RN_DATA(path, const rn_tstring_t)), &prefix));
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(ctx->step->env, prefix.data, &m.reader));
  int64_t dims[2] = {m.remap->rows, m.remap->columns};
  rn_tensor_t* out = NULL;
  rn_status_t status = find_matrix(ctx, &m);
  if (rn_ok(status)) status = rn_output(ctx, 0, (rn_shape_t){2, dims}, &out);
  if (rn_ok(status)) memset(out->data, 0, rn_tensor_bytes(out));
  if (rn_ok(status)) status = read_rows(ctx, &m, arena, out);
  if (rn_ok(status)) status = fill_cells(ctx, &m, out);
  rn_bundle_reader_close(m.reader);
  return status;
}

static rn_status_t load_and_remap(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, remap_in); }

static const rn_kernel_def_t rows[] = {
    {.op = "LoadAndRemapMatrix",
     .device = "CPU",
     .flags = RN_KERNEL_EXPENSIVE,
     .state_size = sizeof(remap_t),
     .init = remap_init,
     .compute = load_and_remap},
};
RN_KERNEL_FAMILY(cpu_remap, rows);
