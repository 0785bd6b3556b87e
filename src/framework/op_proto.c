// Writes op definitions as messages: fields by ascending number, zero values omitted, like proto3
// writers, so the bytes equal TensorFlow's.
#include "framework/op_proto.h"

#include "wire/writer.h"

// Field numbers of op_def.proto, attr_value.proto and tensor_shape.proto.
enum {
  OP_LIST_OP = 1,

  OP_NAME = 1,
  OP_INPUT = 2,
  OP_OUTPUT = 3,
  OP_ATTR = 4,
  OP_DEPRECATION = 8,
  OP_IS_AGGREGATE = 16,
  OP_IS_STATEFUL = 17,
  OP_IS_COMMUTATIVE = 18,
  OP_ALLOWS_UNINITIALIZED = 19,
  OP_IS_DISTRIBUTED = 21,

  ARG_NAME = 1,
  ARG_TYPE = 3,
  ARG_TYPE_ATTR = 4,
  ARG_NUMBER_ATTR = 5,
  ARG_TYPE_LIST_ATTR = 6,
  ARG_IS_REF = 16,
  ARG_FULL_TYPE = 17,

  ATTR_NAME = 1,
  ATTR_TYPE = 2,
  ATTR_DEFAULT = 3,
  ATTR_HAS_MINIMUM = 5,
  ATTR_MINIMUM = 6,
  ATTR_ALLOWED = 7,

  DEPRECATION_VERSION = 1,
  DEPRECATION_EXPLANATION = 2,

  // A list uses the same field numbers as single values, except for functions.
  VALUE_LIST = 1,
  VALUE_S = 2,
  VALUE_I = 3,
  VALUE_F = 4,
  VALUE_B = 5,
  VALUE_TYPE = 6,
  VALUE_SHAPE = 7,
  VALUE_TENSOR = 8,

  TENSOR_DTYPE = 1,
  TENSOR_SHAPE = 2,
  TENSOR_INT = 7,

  SHAPE_DIM = 2,
  SHAPE_UNKNOWN_RANK = 3,
  DIM_SIZE = 1,
};

static void write_shape(rn_strbuf_t* buf, uint32_t number, rn_shape_t shape) {
  size_t mark = rn_pb_begin(buf, number);
  if (!rn_shape_has_rank(shape)) rn_pb_put_uint(buf, SHAPE_UNKNOWN_RANK, 1);
  for (int i = 0; i < shape.rank; i++) {
    size_t dim = rn_pb_begin(buf, SHAPE_DIM);
    if (shape.dims[i]) rn_pb_put_uint(buf, DIM_SIZE, (uint64_t)shape.dims[i]);
    rn_pb_end(buf, dim);
  }
  rn_pb_end(buf, mark);
}

// The only tensors in definitions are colours: a few bytes, in the field for small integers.
static void write_tensor(rn_strbuf_t* buf, const rn_tensor_t* tensor) {
  size_t mark = rn_pb_begin(buf, VALUE_TENSOR);
  rn_pb_put_uint(buf, TENSOR_DTYPE, tensor->dtype);
  write_shape(buf, TENSOR_SHAPE, rn_tensor_shape(tensor));
  size_t packed = rn_pb_begin(buf, TENSOR_INT);
  for (int64_t i = 0; tensor->dtype == RN_UINT8 && i < tensor->count; i++) {
    rn_pb_put_varint(buf, RN_DATA(tensor, const uint8_t)[i]);
  }
  rn_pb_end(buf, packed);
  rn_pb_end(buf, mark);
}

// Repeated numbers are packed: one field of raw values.
static void write_list(rn_strbuf_t* buf, const rn_attr_value_t* value) {
  size_t mark = rn_pb_begin(buf, VALUE_LIST);
  size_t packed = 0;
  static const uint8_t numbers[] = {[RN_ATTR_INT] = VALUE_I,
                                    [RN_ATTR_FLOAT] = VALUE_F,
                                    [RN_ATTR_BOOL] = VALUE_B,
                                    [RN_ATTR_TYPE] = VALUE_TYPE};
  bool is_packed = value->count && value->kind >= RN_ATTR_INT && value->kind <= RN_ATTR_TYPE;
  if (is_packed) packed = rn_pb_begin(buf, numbers[value->kind]);
  for (int i = 0; i < value->count; i++) {
    switch (value->kind) {
      case RN_ATTR_STRING:
        rn_pb_put_str(buf, VALUE_S, value->list_s[i]);
        break;
      case RN_ATTR_INT:
        rn_pb_put_varint(buf, (uint64_t)value->list_i[i]);
        break;
      case RN_ATTR_FLOAT:
        rn_strbuf_append_n(buf, &value->list_f[i], sizeof(float));
        break;
      case RN_ATTR_BOOL:
        rn_pb_put_varint(buf, value->list_b[i]);
        break;
      case RN_ATTR_TYPE:
        rn_pb_put_varint(buf, (uint64_t)value->list_type[i]);
        break;
      case RN_ATTR_SHAPE:
        write_shape(buf, VALUE_SHAPE, value->list_shape[i]);
        break;
      default:
        break;  // definitions have no defaults of other kinds
    }
  }
  if (is_packed) rn_pb_end(buf, packed);
  rn_pb_end(buf, mark);
}

static void write_value(rn_strbuf_t* buf, uint32_t number, const rn_attr_value_t* value) {
  size_t mark = rn_pb_begin(buf, number);
  if (value->is_list) {
    write_list(buf, value);
  } else {
    switch (value->kind) {
      case RN_ATTR_STRING:
        rn_pb_put_str(buf, VALUE_S, value->s);
        break;
      case RN_ATTR_INT:
        rn_pb_put_uint(buf, VALUE_I, (uint64_t)value->i);
        break;
      case RN_ATTR_FLOAT:
        rn_pb_put_float(buf, VALUE_F, value->f);
        break;
      case RN_ATTR_BOOL:
        rn_pb_put_uint(buf, VALUE_B, value->b);
        break;
      case RN_ATTR_TYPE:
        rn_pb_put_uint(buf, VALUE_TYPE, (uint64_t)value->type);
        break;
      case RN_ATTR_TENSOR:
        write_tensor(buf, value->tensor);
        break;
      case RN_ATTR_SHAPE:
        write_shape(buf, VALUE_SHAPE, value->shape);
        break;
      default:
        break;
    }
  }
  rn_pb_end(buf, mark);
}

static void write_attr_name(rn_strbuf_t* buf, uint32_t number, const rn_op_def_t* def, int attr) {
  if (attr >= 0) rn_pb_put_str(buf, number, rn_str(def->attrs[attr].name));
}

static void write_arg(rn_strbuf_t* buf, uint32_t number, const rn_op_def_t* def,
                      const rn_arg_def_t* arg) {
  size_t mark = rn_pb_begin(buf, number);
  rn_pb_put_str(buf, ARG_NAME, rn_str(arg->name));
  if (arg->type) rn_pb_put_uint(buf, ARG_TYPE, (uint64_t)arg->type);
  write_attr_name(buf, ARG_TYPE_ATTR, def, arg->type_attr);
  write_attr_name(buf, ARG_NUMBER_ATTR, def, arg->number_attr);
  write_attr_name(buf, ARG_TYPE_LIST_ATTR, def, arg->type_list_attr);
  if (arg->is_ref) rn_pb_put_uint(buf, ARG_IS_REF, 1);
  if (arg->full_type) rn_pb_put_str(buf, ARG_FULL_TYPE, *arg->full_type);
  rn_pb_end(buf, mark);
}

static void write_allowed(rn_strbuf_t* buf, const rn_attr_def_t* attr) {
  size_t mark = rn_pb_begin(buf, ATTR_ALLOWED);
  size_t list = rn_pb_begin(buf, VALUE_LIST);
  if (attr->kind == RN_ATTR_TYPE) {
    size_t packed = rn_pb_begin(buf, VALUE_TYPE);
    for (int i = 0; i < attr->allowed_count; i++) {
      rn_pb_put_varint(buf, (uint64_t)attr->allowed_types[i]);
    }
    rn_pb_end(buf, packed);
  } else {
    for (int i = 0; i < attr->allowed_count; i++) {
      rn_pb_put_str(buf, VALUE_S, rn_str(attr->allowed_strings[i]));
    }
  }
  rn_pb_end(buf, list);
  rn_pb_end(buf, mark);
}

static void write_attr(rn_strbuf_t* buf, const rn_attr_def_t* attr) {
  size_t mark = rn_pb_begin(buf, OP_ATTR);
  rn_pb_put_str(buf, ATTR_NAME, rn_str(attr->name));
  rn_pb_put_str(buf, ATTR_TYPE, rn_str(rn_attr_kind_name(attr->kind, attr->is_list)));
  if (attr->has_default) write_value(buf, ATTR_DEFAULT, &attr->default_value);
  if (attr->has_minimum) rn_pb_put_uint(buf, ATTR_HAS_MINIMUM, 1);
  if (attr->has_minimum && attr->minimum) {
    rn_pb_put_uint(buf, ATTR_MINIMUM, (uint64_t)attr->minimum);
  }
  if (attr->allowed_count) write_allowed(buf, attr);
  rn_pb_end(buf, mark);
}

void rn_op_write_proto(rn_strbuf_t* buf, const rn_op_def_t* def) {
  static const struct {
    uint16_t flag;
    uint16_t number;
  } flags[] = {{RN_OP_AGGREGATE, OP_IS_AGGREGATE},
               {RN_OP_STATEFUL, OP_IS_STATEFUL},
               {RN_OP_COMMUTATIVE, OP_IS_COMMUTATIVE},
               {RN_OP_ALLOWS_UNINITIALIZED, OP_ALLOWS_UNINITIALIZED},
               {RN_OP_DISTRIBUTED, OP_IS_DISTRIBUTED}};
  rn_pb_put_str(buf, OP_NAME, rn_str(def->name));
  for (int i = 0; i < def->input_count; i++) write_arg(buf, OP_INPUT, def, &def->inputs[i]);
  for (int i = 0; i < def->output_count; i++) write_arg(buf, OP_OUTPUT, def, &def->outputs[i]);
  for (int i = 0; i < def->attr_count; i++) write_attr(buf, &def->attrs[i]);
  if (def->deprecated_at) {
    size_t mark = rn_pb_begin(buf, OP_DEPRECATION);
    rn_pb_put_uint(buf, DEPRECATION_VERSION, (uint64_t)def->deprecated_at);
    rn_pb_put_str(buf, DEPRECATION_EXPLANATION, rn_str(def->deprecation));
    rn_pb_end(buf, mark);
  }
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    if (def->flags & flags[i].flag) rn_pb_put_uint(buf, flags[i].number, 1);
  }
}

static rn_status_t write_listed(const rn_op_def_t* def, void* arg) {
  if (def->role == RN_ROLE_FUSED) return RN_OK;
  rn_strbuf_t* buf = arg;
  size_t mark = rn_pb_begin(buf, OP_LIST_OP);
  rn_op_write_proto(buf, def);
  rn_pb_end(buf, mark);
  return RN_OK;
}

rn_status_t rn_op_write_list(rn_strbuf_t* buf) {
  RN_RETURN_IF_ERROR(rn_op_each(write_listed, buf));
  return rn_strbuf_status(buf);
}
