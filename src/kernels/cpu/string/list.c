// Joining and splitting strings.
#define _GNU_SOURCE  // for memmem

#include "kernels/cpu/array.h"
#include "kernels/cpu/string/text.h"
#include "kernels/kernel_rows.h"
#include "tensor/tstring.h"

// A copied string attribute.
typedef struct separator_t {
  rn_allocator_t allocator;
  char* text;
  size_t size;
  bool keeps_dims;
} separator_t;

static rn_status_t separator_init(const rn_kernel_init_t* init, void* state) {
  separator_t* separator = state;
  separator->allocator = init->allocator;
  rn_str_t text = rn_init_string(init, "separator");
  separator->size = text.size;
  separator->keeps_dims = rn_init_attr(init, "keep_dims")->b;
  return rn_str_dup(init->allocator, text, &separator->text);
}

static void separator_destroy(void* state) {
  separator_t* separator = state;
  if (separator->text) rn_free(separator->allocator, separator->text, separator->size + 1);
}

static rn_status_t join(rn_kernel_ctx_t* ctx) {
  const separator_t* separator = ctx->state;
  int32_t inputs = ctx->kernel->input_count;
  const rn_tensor_t* shaped = NULL;
  for (int32_t k = 0; k < inputs; ++k) {
    const rn_tensor_t* input = rn_in(ctx, k);
    if (input->rank == 0) continue;
    if (shaped && !rn_tensor_same_shape(shaped, input))
      return rn_invalid_argument("Input shapes do not match: %s vs. %s", rn_text_of(shaped).text,
                                 rn_text_of(input).text);
    if (!shaped) shaped = input;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shaped ? rn_tensor_shape(shaped) : RN_SHAPE_SCALAR, &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i) {
    buf.size = 0;
    for (int32_t k = 0; k < inputs; ++k) {
      if (k) rn_strbuf_append_n(&buf, separator->text, separator->size);
      rn_strbuf_append(&buf, rn_text_at(rn_in(ctx, k), rn_in(ctx, k)->rank ? i : 0));
    }
    status = rn_strbuf_status(&buf);
    if (rn_ok(status)) status = rn_text_set(out, i, rn_strbuf_view(&buf));
  }
  rn_strbuf_clear(&buf);
  return status;
}

// Joins over dimensions: those listed first vary fastest.
typedef struct list_reduce_t {
  int32_t kept, joined;
  int64_t kept_sizes[RN_MAX_RANK], kept_steps[RN_MAX_RANK];
  int64_t joined_sizes[RN_MAX_RANK], joined_steps[RN_MAX_RANK];  // slowest first
} list_reduce_t;

static rn_status_t plan_reduce(const rn_tensor_t* input, const rn_tensor_t* axes, bool keeps_dims,
                               list_reduce_t* plan, int64_t* dims, rn_shape_t* out) {
  bool is_joined[RN_MAX_RANK] = {false};
  int64_t steps[RN_MAX_RANK], step = 1;
  for (int32_t d = input->rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= rn_tensor_dim(input, d);
  }
  *plan = (list_reduce_t){0};
  for (int64_t a = axes->count - 1; a >= 0; --a) {
    int64_t axis = rn_int_at(axes, a);
    if (axis < -input->rank || axis >= input->rank)
      return rn_out_of_range("Invalid reduction dimension %lld for input with %d dimension(s)",
                             (long long)axis, input->rank);
    if (axis < 0) axis += input->rank;
    if (is_joined[axis])
      return rn_invalid_argument("Duplicate reduction dimension %lld", (long long)axis);
    is_joined[axis] = true;
    plan->joined_sizes[plan->joined] = rn_tensor_dim(input, (int)axis);
    plan->joined_steps[plan->joined++] = steps[axis];
  }
  int32_t rank = 0;
  for (int32_t d = 0; d < input->rank; ++d) {
    if (!is_joined[d]) {
      plan->kept_sizes[plan->kept] = rn_tensor_dim(input, d);
      plan->kept_steps[plan->kept++] = steps[d];
    }
    if (!is_joined[d] || keeps_dims) dims[rank++] = is_joined[d] ? 1 : rn_tensor_dim(input, d);
  }
  *out = (rn_shape_t){rank, dims};
  return RN_OK;
}

// Advances to the next position over |sizes|; false at the end.
static bool step_on(int32_t rank, const int64_t* sizes, const int64_t* steps, int64_t* at,
                    int64_t* offset) {
  for (int32_t d = rank - 1; d >= 0; --d) {
    *offset += steps[d];
    if (++at[d] < sizes[d]) return true;
    *offset -= steps[d] * sizes[d];
    at[d] = 0;
  }
  return false;
}

static rn_status_t reduce_join(rn_kernel_ctx_t* ctx) {
  const separator_t* separator = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  if (rn_in(ctx, 1)->count > input->rank)
    return rn_invalid_argument("There are %lld reduction dimensions, but the input has %d",
                               (long long)rn_in(ctx, 1)->count, input->rank);
  list_reduce_t plan;
  int64_t dims[RN_MAX_RANK];
  rn_shape_t shape;
  RN_RETURN_IF_ERROR(plan_reduce(input, rn_in(ctx, 1), separator->keeps_dims, &plan, dims, &shape));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &out));
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, ctx->kernel->allocator);
  rn_status_t status = RN_OK;
  int64_t kept_at[RN_MAX_RANK] = {0}, first = 0;
  for (int64_t i = 0; rn_ok(status) && i < out->count; ++i) {
    buf.size = 0;
    int64_t at[RN_MAX_RANK] = {0}, offset = first;
    bool goes_on = input->count > 0;
    for (bool is_first = true; goes_on; is_first = false) {
      if (!is_first) rn_strbuf_append_n(&buf, separator->text, separator->size);
      rn_strbuf_append(&buf, rn_text_at(input, offset));
      goes_on = step_on(plan.joined, plan.joined_sizes, plan.joined_steps, at, &offset);
    }
    step_on(plan.kept, plan.kept_sizes, plan.kept_steps, kept_at, &first);
    status = rn_strbuf_status(&buf);
    if (rn_ok(status)) status = rn_text_set(out, i, rn_strbuf_view(&buf));
  }
  rn_strbuf_clear(&buf);
  return status;
}

// Splitting. Parts are views of the input, with their row.
typedef struct list_part_t {
  rn_str_t text;
  int64_t row, column;
} list_part_t;

typedef struct list_parts_t {
  rn_allocator_t allocator;
  list_part_t* items;  // Owned
  size_t count, capacity;
  int64_t columns;  // maximum per row
  bool failed;
} list_parts_t;

static void add_part(list_parts_t* parts, int64_t row, int64_t* column, const char* begin,
                     const char* end) {
  if (parts->count == parts->capacity) {
    size_t larger = parts->capacity ? parts->capacity * 2 : 32;
    list_part_t* items = NULL;
    rn_status_t status = RN_NEW_ARRAY(parts->allocator, larger, &items);
    if (!rn_ok(status)) {
      rn_status_free(status);
      parts->failed = true;
      return;
    }
    if (parts->count) memcpy(items, parts->items, parts->count * sizeof *items);
    RN_FREE_ARRAY(parts->allocator, parts->items, parts->capacity);
    parts->items = items;
    parts->capacity = larger;
  }
  parts->items[parts->count++] =
      (list_part_t){rn_str_n(begin, (size_t)(end - begin)), row, (*column)++};
  if (*column > parts->columns) parts->columns = *column;
}

static rn_status_t output_parts(rn_kernel_ctx_t* ctx, list_parts_t* parts, int64_t rows) {
  rn_status_t status = parts->failed ? rn_out_of_memory() : RN_OK;
  rn_tensor_t *indices = NULL, *values = NULL, *shape = NULL;
  int64_t count = (int64_t)parts->count, dims[2] = {count, 2}, two = 2;
  if (rn_ok(status)) status = rn_output(ctx, 0, (rn_shape_t){2, dims}, &indices);
  if (rn_ok(status)) status = rn_output(ctx, 1, (rn_shape_t){1, &count}, &values);
  if (rn_ok(status)) status = rn_output(ctx, 2, (rn_shape_t){1, &two}, &shape);
  for (int64_t i = 0; rn_ok(status) && i < count; ++i) {
    RN_DATA(indices, int64_t)[2 * i] = parts->items[i].row;
    RN_DATA(indices, int64_t)[2 * i + 1] = parts->items[i].column;
    status = rn_text_set(values, i, parts->items[i].text);
  }
  if (rn_ok(status)) {
    RN_DATA(shape, int64_t)[0] = rows;
    RN_DATA(shape, int64_t)[1] = parts->columns;
  }
  RN_FREE_ARRAY(parts->allocator, parts->items, parts->capacity);
  return status;
}

static rn_status_t split_init(const rn_kernel_init_t* init, void* state) {
  *(bool*)state = rn_init_bool(init, "skip_empty");
  return RN_OK;
}

static rn_status_t check_split(const rn_kernel_ctx_t* ctx, bool is_v2, rn_str_t* out) {
  const rn_tensor_t *input = rn_in(ctx, 0), *delimiter = rn_in(ctx, 1);
  if (input->rank != 1)
    return rn_invalid_argument("input must be a vector, got shape: %s", rn_text_of(input).text);
  if (delimiter->rank != 0)
    return rn_invalid_argument("%s must be a scalar, got shape: %s", is_v2 ? "sep" : "delimiter",
                               rn_text_of(delimiter).text);
  *out = rn_text_at(delimiter, 0);
  return RN_OK;
}

// V1: every byte of the delimiter is one; an empty delimiter splits between all bytes.
static rn_status_t split(rn_kernel_ctx_t* ctx) {
  bool skips_empty = *(const bool*)ctx->state;
  rn_str_t delimiter;
  RN_RETURN_IF_ERROR(check_split(ctx, false, &delimiter));
  const rn_tensor_t* input = rn_in(ctx, 0);
  list_parts_t parts = {.allocator = ctx->kernel->allocator};
  for (int64_t row = 0; row < input->count; ++row) {
    rn_str_t text = rn_text_at(input, row);
    int64_t column = 0;
    const char *begin = text.data, *end = text.data + text.size;
    if (delimiter.size == 0) {
      for (; begin < end; ++begin) add_part(&parts, row, &column, begin, begin + 1);
      continue;
    }
    if (text.size == 0) continue;  // as in stock, an empty string has no parts
    for (const char* at = begin;; ++at) {
      if (at < end && !memchr(delimiter.data, *at, delimiter.size)) continue;
      if (at > begin || !skips_empty) add_part(&parts, row, &column, begin, at);
      if (at == end) break;
      begin = at + 1;
    }
  }
  return output_parts(ctx, &parts, input->count);
}

static rn_status_t split_v2_init(const rn_kernel_init_t* init, void* state) {
  *(int64_t*)state = rn_init_int(init, "maxsplit");
  return RN_OK;
}

static void split_at_blanks(rn_str_t text, int64_t most, int64_t row, list_parts_t* parts) {
  const char *at = text.data, *end = text.data + text.size;
  int64_t column = 0;
  if (most == 0) {  // no splitting, not even at blanks
    add_part(parts, row, &column, at, end);
    return;
  }
  while (at < end && rn_is_space(*at)) ++at;
  while (at < end) {
    if (most >= 0 && column == most) {
      add_part(parts, row, &column, at, end);
      return;
    }
    const char* begin = at;
    while (at < end && !rn_is_space(*at)) ++at;
    add_part(parts, row, &column, begin, at);
    bool had_blank = at < end;
    while (at < end && rn_is_space(*at)) ++at;
    if (at == end && had_blank && most >= 0 && column == most)
      add_part(parts, row, &column, at, end);
  }
}

static void split_at_word(rn_str_t text, rn_str_t word, int64_t most, int64_t row,
                          list_parts_t* parts) {
  const char *begin = text.data, *end = text.data + text.size;
  int64_t column = 0;
  while (most < 0 || column < most) {
    const char* found = memmem(begin, (size_t)(end - begin), word.data, word.size);
    if (!found) break;
    add_part(parts, row, &column, begin, found);
    begin = found + word.size;
  }
  add_part(parts, row, &column, begin, end);
}

static rn_status_t split_v2(rn_kernel_ctx_t* ctx) {
  int64_t most = *(const int64_t*)ctx->state;
  rn_str_t delimiter;
  RN_RETURN_IF_ERROR(check_split(ctx, true, &delimiter));
  const rn_tensor_t* input = rn_in(ctx, 0);
  list_parts_t parts = {.allocator = ctx->kernel->allocator};
  for (int64_t row = 0; row < input->count; ++row) {
    if (delimiter.size)
      split_at_word(rn_text_at(input, row), delimiter, most, row, &parts);
    else
      split_at_blanks(rn_text_at(input, row), most, row, &parts);
  }
  return output_parts(ctx, &parts, input->count);
}

#define JOIN(name, function)                                                                \
  {                                                                                         \
    .op = name, .device = "CPU", .state_size = sizeof(separator_t), .init = separator_init, \
    .destroy = separator_destroy, .compute = function                                       \
  }

static const rn_kernel_def_t rows[] = {
    JOIN("StringJoin", join),
    JOIN("ReduceJoin", reduce_join),
    {.op = "StringSplit",
     .device = "CPU",
     .state_size = sizeof(bool),
     .init = split_init,
     .compute = split},
    {.op = "StringSplitV2",
     .device = "CPU",
     .state_size = sizeof(int64_t),
     .init = split_v2_init,
     .compute = split_v2},
};
RN_KERNEL_FAMILY(cpu_string_list, rows);
