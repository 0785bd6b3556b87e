// See input.h.
#include "serve/select/input.h"

#include "tensor/tstring.h"

static rn_status_t misfit(const rn_tensor_t* row, const rn_serve_port_t* port) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_strbuf_printf(&text, "An input of %lld elements of type %s does not fit '%.*s', %s ",
                   (long long)row->count, rn_dtype_name(row->dtype), RN_STR_ARGS(port->name),
                   rn_dtype_name(port->dtype));
  rn_shape_print(&text, port->shape);
  return rn_status_from_buf(RN_CODE_INVALID_ARGUMENT, &text);
}

// The shape of one row of |count| elements for |port|; false if there is none.
static bool row_shape(const rn_serve_port_t* port, int64_t count, int64_t dims[RN_MAX_RANK],
                      int* out_rank) {
  dims[0] = 1;
  int rank = rn_shape_has_rank(port->shape) ? port->shape.rank : 2;
  *out_rank = rank;
  if (rank == 0) return count == 1;  // a model of single values
  if (port->shape.dims && port->shape.dims[0] != RN_UNKNOWN && port->shape.dims[0] != 1)
    return false;
  if (rank == 1) return count == 1;
  int64_t known = 1;
  int open = -1;
  for (int i = 1; i < rank; ++i) {
    dims[i] = port->shape.dims ? port->shape.dims[i] : RN_UNKNOWN;
    if (dims[i] == RN_UNKNOWN) {
      if (open >= 0) return false;
      open = i;
    } else if (!rn_mul_i64_ok(known, dims[i], &known)) {
      return false;
    }
  }
  if (open < 0) return known == count;
  if (known <= 0 || count % known) return false;
  dims[open] = count / known;
  return true;
}

static rn_status_t fit_text(const rn_tensor_t* row, const rn_serve_port_t* port,
                            rn_allocator_t allocator, rn_tensor_t* out) {
  int64_t dims[RN_MAX_RANK];
  int rank;
  if (port->dtype != RN_STRING || !row_shape(port, 1, dims, &rank)) return misfit(row, port);
  rn_str_t text = row->dtype == RN_STRING ? rn_tstring_view(RN_DATA(row, rn_tstring_t))
                                          : rn_str_n(row->data, (size_t)row->count);
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, RN_STRING, (rn_shape_t){rank, dims}, out));
  if (rn_tstring_assign(RN_DATA(out, rn_tstring_t), text.data, text.size)) return RN_OK;
  rn_tensor_clear(out);
  return rn_out_of_memory();
}

static bool read_whole(const rn_tensor_t* row, int64_t i, int64_t* out) {
  if (row->dtype == RN_INT64)
    *out = RN_DATA(row, int64_t)[i];
  else if (row->dtype == RN_UINT8)
    *out = RN_DATA(row, uint8_t)[i];
  else
    return false;
  return true;
}

static double read_real(const rn_tensor_t* row, int64_t i) {
  int64_t whole = 0;
  if (row->dtype == RN_FLOAT) return RN_DATA(row, float)[i];
  if (row->dtype == RN_DOUBLE) return RN_DATA(row, double)[i];
  read_whole(row, i, &whole);
  return (double)whole;
}

// Converts element |i|; false if it is out of range or the type is not supported.
static bool convert(const rn_tensor_t* row, int64_t i, rn_tensor_t* out) {
  int64_t whole;
  if (out->dtype == RN_FLOAT) {
    RN_DATA(out, float)[i] = (float)read_real(row, i);
    return true;
  }
  if (out->dtype == RN_DOUBLE) {
    RN_DATA(out, double)[i] = read_real(row, i);
    return true;
  }
  if (!read_whole(row, i, &whole)) return false;
  switch (out->dtype) {
#define WHOLE(dtype, type)               \
  case dtype:                            \
    RN_DATA(out, type)[i] = (type)whole; \
    return (int64_t)(type)whole == whole;
    WHOLE(RN_INT8, int8_t)
    WHOLE(RN_INT16, int16_t)
    WHOLE(RN_INT32, int32_t)
    WHOLE(RN_INT64, int64_t)
    WHOLE(RN_UINT8, uint8_t)
    WHOLE(RN_UINT16, uint16_t)
    WHOLE(RN_UINT32, uint32_t)
    WHOLE(RN_BOOL, bool)
#undef WHOLE
    case RN_UINT64:
      RN_DATA(out, uint64_t)[i] = (uint64_t)whole;
      return whole >= 0;
    default:
      return false;
  }
}

rn_status_t rn_app_input_fit(const rn_tensor_t* row, const rn_serve_port_t* port,
                             rn_allocator_t allocator, rn_tensor_t* out) {
  *out = (rn_tensor_t){0};
  if (row->dtype == RN_STRING || port->dtype == RN_STRING) {
    bool is_text = row->dtype == RN_STRING ? row->count == 1 : row->dtype == RN_UINT8;
    return is_text ? fit_text(row, port, allocator, out) : misfit(row, port);
  }
  int64_t dims[RN_MAX_RANK];
  int rank;
  if (!row_shape(port, row->count, dims, &rank)) return misfit(row, port);
  rn_shape_t shape = {rank, dims};
  if (row->dtype == port->dtype) return rn_tensor_reshape(row, row->dtype, shape, out);
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, port->dtype, shape, out));
  for (int64_t i = 0; i < row->count; ++i) {
    if (convert(row, i, out)) continue;
    rn_tensor_clear(out);
    return misfit(row, port);
  }
  return RN_OK;
}
