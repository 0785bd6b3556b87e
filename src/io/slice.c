// Slices: text, keys, geometry. See slice.h.
#include "io/slice.h"

#include "tensor/tstring.h"

static rn_status_t slice_room(rn_arena_t* arena, int32_t rank, int64_t** out_starts,
                              int64_t** out_lengths, rn_slice_t* out) {
  int64_t* numbers = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)rank * 2, &numbers));
  *out_starts = numbers;
  *out_lengths = numbers + rank;
  *out = (rn_slice_t){rank, numbers, numbers + rank};
  return RN_OK;
}

rn_status_t rn_slice_whole(rn_arena_t* arena, int32_t rank, rn_slice_t* out) {
  int64_t *starts = NULL, *lengths = NULL;
  RN_RETURN_IF_ERROR(slice_room(arena, rank, &starts, &lengths, out));
  for (int32_t i = 0; i < rank; ++i) lengths[i] = RN_SLICE_WHOLE;
  return RN_OK;
}

static size_t count_char(rn_str_t text, char wanted) {
  size_t count = 0;
  for (size_t i = 0; i < text.size; ++i) count += text.data[i] == wanted;
  return count;
}

static rn_status_t parse_extent(rn_str_t part, rn_str_t text, int64_t* start, int64_t* length) {
  *start = 0;
  *length = RN_SLICE_WHOLE;
  if (rn_str_is(part, "-")) return RN_OK;
  rn_str_t rest = part;
  rn_str_t first = rn_str_split(&rest, ',');
  if (!rn_str_to_i64(first, start) || !rn_str_to_i64(rest, length))
    return rn_invalid_argument("Expected a pair of numbers or '-' but got '%.*s': string = %.*s",
                               RN_STR_ARGS(part), RN_STR_ARGS(text));
  if (*start < 0 || *length <= 0)
    return rn_invalid_argument(
        "Expected non-negative start and positive length but got start = %lld, length = %lld: "
        "string = %.*s",
        (long long)*start, (long long)*length, RN_STR_ARGS(text));
  return RN_OK;
}

rn_status_t rn_slice_parse(rn_str_t text, rn_arena_t* arena, rn_slice_t* out) {
  size_t rank = text.size ? count_char(text, ':') + 1 : 0;
  if (rank > RN_MAX_RANK)
    return rn_invalid_argument("A slice has %zu dimensions; the maximum is %d", rank, RN_MAX_RANK);
  int64_t *starts = NULL, *lengths = NULL;
  RN_RETURN_IF_ERROR(slice_room(arena, (int32_t)rank, &starts, &lengths, out));
  rn_str_t rest = text;
  for (size_t i = 0; i < rank; ++i)
    RN_RETURN_IF_ERROR(parse_extent(rn_str_split(&rest, ':'), text, &starts[i], &lengths[i]));
  return RN_OK;
}

rn_status_t rn_shape_and_slice_parse(rn_str_t text, rn_arena_t* arena, rn_shape_t* out_shape,
                                     rn_slice_t* out_slice, rn_shape_t* out_slice_shape) {
  size_t rank = count_char(text, ' ');
  if (rank == 0)
    return rn_invalid_argument("Need least two elements in shape_and_slice specification: %.*s",
                               RN_STR_ARGS(text));
  if (rank > RN_MAX_RANK)
    return rn_invalid_argument("A shape has %zu dimensions; the maximum is %d", rank, RN_MAX_RANK);
  int64_t *dims = NULL, count = 0;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, rank, &dims));
  rn_str_t rest = text;
  for (size_t i = 0; i < rank; ++i) {
    if (!rn_str_to_i64(rn_str_split(&rest, ' '), &dims[i]))
      return rn_invalid_argument("Non numerical dimension in shape_and_slice: %.*s",
                                 RN_STR_ARGS(text));
    if (dims[i] < 0)
      return rn_invalid_argument("Negative dimension in shape_and_slice: %.*s", RN_STR_ARGS(text));
  }
  *out_shape = (rn_shape_t){(int32_t)rank, dims};
  if (!rn_shape_count(*out_shape, &count))
    return rn_invalid_argument("Too many elements in shape_and_slice: %.*s", RN_STR_ARGS(text));
  RN_RETURN_IF_ERROR(rn_slice_parse(rest, arena, out_slice));
  return rn_slice_shape(*out_slice, *out_shape, arena, out_slice_shape);
}

static rn_status_t misfit(const char* what, int dimension, rn_slice_t slice, rn_shape_t shape) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_default());
  rn_strbuf_printf(&text, "%s", what);
  if (dimension >= 0) rn_strbuf_printf(&text, " in dimension %d out of bounds", dimension);
  rn_strbuf_printf(&text, ": shape = ");
  rn_shape_print(&text, shape);
  rn_strbuf_printf(&text, ", slice = ");
  rn_slice_print(&text, slice);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status)) status = rn_internal("%s", text.data);
  rn_strbuf_clear(&text);
  return status;
}

rn_status_t rn_slice_dup(rn_arena_t* arena, rn_slice_t slice, rn_slice_t* out) {
  int64_t* numbers = NULL;
  size_t rank = (size_t)slice.rank;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, rank * 2, &numbers));
  if (rank) {
    memcpy(numbers, slice.starts, rank * sizeof *numbers);
    memcpy(numbers + rank, slice.lengths, rank * sizeof *numbers);
  }
  *out = (rn_slice_t){slice.rank, numbers, numbers + rank};
  return RN_OK;
}

rn_status_t rn_slice_shape(rn_slice_t slice, rn_shape_t shape, rn_arena_t* arena, rn_shape_t* out) {
  if (slice.rank != shape.rank) return misfit("Mismatching ranks", -1, slice, shape);
  int64_t* dims = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)shape.rank, &dims));
  for (int32_t i = 0; i < shape.rank; ++i) {
    int64_t length = slice.lengths[i];
    bool fits = length == RN_SLICE_WHOLE ||
                (length >= 0 && slice.starts[i] >= 0 && length <= shape.dims[i] &&
                 slice.starts[i] <= shape.dims[i] - length);
    if (!fits) return misfit("Extent", i, slice, shape);
    dims[i] = length == RN_SLICE_WHOLE ? shape.dims[i] : length;
  }
  *out = (rn_shape_t){shape.rank, dims};
  return RN_OK;
}

bool rn_slice_is_whole(rn_slice_t slice, rn_shape_t shape) {
  for (int32_t i = 0; i < slice.rank; ++i)
    if (slice.lengths[i] != RN_SLICE_WHOLE && slice.lengths[i] != shape.dims[i]) return false;
  return true;
}

void rn_slice_print(rn_strbuf_t* buf, rn_slice_t slice) {
  for (int32_t i = 0; i < slice.rank; ++i) {
    if (i) rn_strbuf_append(buf, RN_STR(":"));
    if (slice.lengths[i] == RN_SLICE_WHOLE)
      rn_strbuf_append(buf, RN_STR("-"));
    else
      rn_strbuf_printf(buf, "%lld,%lld", (long long)slice.starts[i], (long long)slice.lengths[i]);
  }
}

rn_status_t rn_slice_from_proto(const rn_pb_TensorSliceProto_t* proto, rn_arena_t* arena,
                                rn_slice_t* out) {
  if (proto->extent.count > RN_MAX_RANK)
    return rn_invalid_argument("A slice has %u dimensions; the maximum is %d", proto->extent.count,
                               RN_MAX_RANK);
  int64_t *starts = NULL, *lengths = NULL;
  RN_RETURN_IF_ERROR(slice_room(arena, (int32_t)proto->extent.count, &starts, &lengths, out));
  for (uint32_t i = 0; i < proto->extent.count; ++i) {
    const rn_pb_TensorSliceProto_Extent_t* extent = &proto->extent.items[i];
    bool has_length = extent->has_length_hack_case != 0;
    starts[i] = has_length ? extent->start : 0;
    lengths[i] = has_length ? extent->length : RN_SLICE_WHOLE;
    if (starts[i] < 0 || (has_length && lengths[i] < 0))
      return rn_invalid_argument("A slice has a negative start or length");
  }
  return RN_OK;
}

rn_status_t rn_slice_to_proto(rn_slice_t slice, rn_arena_t* arena, rn_pb_TensorSliceProto_t* out) {
  *out = (rn_pb_TensorSliceProto_t){0};
  if (slice.rank == 0) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)slice.rank, &out->extent.items));
  out->extent.count = (uint32_t)slice.rank;
  for (int32_t i = 0; i < slice.rank; ++i) {
    if (slice.lengths[i] == RN_SLICE_WHOLE) continue;
    rn_pb_TensorSliceProto_Extent_t* extent = &out->extent.items[i];
    extent->start = slice.starts[i];
    extent->has_length_hack_case = rn_pb_TensorSliceProto_Extent_length_field;
    extent->length = slice.lengths[i];
  }
  return RN_OK;
}

// Appends a non-negative number: its length in bytes, then its bytes, big-endian.
static void put_number(rn_strbuf_t* buf, uint64_t value) {
  char bytes[9];
  int size = 0;
  for (uint64_t rest = value; rest; rest >>= 8) ++size;
  bytes[0] = (char)size;
  for (int i = 0; i < size; ++i) bytes[1 + i] = (char)(value >> 8 * (size - 1 - i));
  rn_strbuf_append_n(buf, bytes, (size_t)size + 1);
}

// Appends a signed number: as many leading one bits as it takes bytes, a zero bit, then the number,
// 7 bits per byte including the sign; all bits inverted if negative.
static void put_signed(rn_strbuf_t* buf, int64_t value) {
  uint64_t positive = value < 0 ? ~(uint64_t)value : (uint64_t)value;
  int bits = positive ? 64 - __builtin_clzll(positive) : 0;
  int size = bits / 7 + 1;
  uint8_t bytes[10];
  uint8_t fill = value < 0 ? 0xff : 0;
  for (int i = 0; i < size; ++i) {
    int shift = 8 * (size - 1 - i);
    bytes[i] = shift < 64 ? (uint8_t)((uint64_t)value >> shift) : fill;
  }
  for (int i = 0; i < size; ++i) bytes[i / 8] ^= (uint8_t)(0x80 >> i % 8);
  rn_strbuf_append_n(buf, bytes, (size_t)size);
}

static void put_string(rn_strbuf_t* buf, rn_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    rn_strbuf_append_n(buf, text.data + i, 1);
    if (text.data[i] == 0) rn_strbuf_append_n(buf, "\xff", 1);
    if ((uint8_t)text.data[i] == 0xff) rn_strbuf_append_n(buf, "\0", 1);
  }
  rn_strbuf_append_n(buf, "\0\1", 2);
}

void rn_slice_key(rn_strbuf_t* buf, rn_str_t name, rn_slice_t slice) {
  put_number(buf, 0);
  put_string(buf, name);
  put_number(buf, (uint64_t)slice.rank);
  for (int32_t i = 0; i < slice.rank; ++i) {
    put_signed(buf, slice.starts[i]);
    put_signed(buf, slice.lengths[i]);
  }
}

// Geometry.

typedef struct slice_range_t {
  int64_t start, end;
} slice_range_t;

static slice_range_t range_of(rn_slice_t slice, rn_shape_t shape, int32_t i) {
  if (slice.lengths[i] == RN_SLICE_WHOLE) return (slice_range_t){0, shape.dims[i]};
  return (slice_range_t){slice.starts[i], slice.starts[i] + slice.lengths[i]};
}

static slice_range_t shared_range(rn_slice_t a, rn_slice_t b, rn_shape_t shape, int32_t i) {
  slice_range_t x = range_of(a, shape, i), y = range_of(b, shape, i);
  slice_range_t both = {x.start > y.start ? x.start : y.start, x.end < y.end ? x.end : y.end};
  if (both.end < both.start) both.end = both.start;
  return both;
}

int64_t rn_slice_overlap(rn_slice_t a, rn_slice_t b, rn_shape_t shape) {
  int64_t count = 1;
  for (int32_t i = 0; i < shape.rank; ++i) {
    slice_range_t both = shared_range(a, b, shape, i);
    count *= both.end - both.start;
  }
  return count;
}

int64_t rn_slice_place(rn_slice_t part, rn_slice_t whole, rn_shape_t shape) {
  int64_t place = 0;
  bool is_split = false;  // an outer dimension has more than one index
  for (int32_t i = 0; i < shape.rank; ++i) {
    slice_range_t inner = range_of(part, shape, i), outer = range_of(whole, shape, i);
    if (inner.start < outer.start || inner.end > outer.end) return -1;
    bool is_all = inner.start == outer.start && inner.end == outer.end;
    if (is_split && !is_all) return -1;
    is_split |= inner.end - inner.start > 1;
    place = place * (outer.end - outer.start) + inner.start - outer.start;
  }
  return place;
}

typedef struct slice_copy_t {
  rn_shape_t shape;
  rn_slice_t a, b;
  rn_dtype_t dtype;
  size_t element;
} slice_copy_t;

static bool copy_run(const slice_copy_t* copy, const char* from, char* to, int64_t count) {
  if (copy->dtype != RN_STRING) {
    memcpy(to, from, (size_t)count * copy->element);
    return true;
  }
  for (int64_t i = 0; i < count; ++i) {
    rn_str_t text = rn_tstring_view((const rn_tstring_t*)from + i);
    if (!rn_tstring_assign((rn_tstring_t*)to + i, text.data, text.size)) return false;
  }
  return true;
}

// Copies dimension |i| and the inner ones; |from| and |to| are the start of the common part so far.
static bool copy_dimension(const slice_copy_t* copy, int32_t i, const char* from, int64_t from_step,
                           char* to, int64_t to_step) {
  slice_range_t a = range_of(copy->a, copy->shape, i), b = range_of(copy->b, copy->shape, i);
  slice_range_t both = shared_range(copy->a, copy->b, copy->shape, i);
  from_step /= a.end - a.start;
  to_step /= b.end - b.start;
  from += (both.start - a.start) * from_step * (int64_t)copy->element;
  to += (both.start - b.start) * to_step * (int64_t)copy->element;
  if (i + 1 == copy->shape.rank) return copy_run(copy, from, to, both.end - both.start);
  for (int64_t at = both.start; at < both.end; ++at) {
    if (!copy_dimension(copy, i + 1, from, from_step, to, to_step)) return false;
    from += from_step * (int64_t)copy->element;
    to += to_step * (int64_t)copy->element;
  }
  return true;
}

bool rn_slice_copy(rn_shape_t shape, rn_slice_t a, const rn_tensor_t* from, rn_slice_t b,
                   rn_tensor_t* to) {
  if (rn_slice_overlap(a, b, shape) == 0) return true;
  slice_copy_t copy = {shape, a, b, from->dtype, rn_dtype_size(from->dtype)};
  if (shape.rank == 0) return copy_run(&copy, from->data, to->data, 1);
  return copy_dimension(&copy, 0, from->data, from->count, to->data, to->count);
}
