// Conversion of tensors and shapes to and from messages. Expected values were recorded from stock
// TensorFlow.
#include "tensor/tensor_proto.h"

#include <stdio.h>

#include "tensor/handle.h"
#include "tensor/tstring.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/text.h"

static rn_arena_t arena;
static rn_counting_allocator_t counting;

static void set_up(void) {
  counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  rn_arena_init(&arena, rn_allocator_system());
}
static void tear_down(void) {
  rn_arena_clear(&arena);
  cr_assert_eq(counting.live_blocks, 0);
}

TestSuite(tensor_proto, .init = set_up, .fini = tear_down);

#define MAX_BYTES (1 << 20)

static rn_pb_TensorProto_t* parse(const char* text) {
  void* proto = NULL;
  OK(rn_pb_parse(&rn_pb_TensorProto_desc, rn_str(text), NULL, &arena, &proto));
  return proto;
}

static rn_status_t read(const char* text, rn_tensor_t* out) {
  return rn_tensor_from_proto(parse(text), MAX_BYTES, rn_allocator_counting(&counting), out);
}

Test(tensor_proto, every_type_from_its_list) {
  static const struct {
    const char* text;
    const char* hex;  // of the elements
  } rows[] = {
      {"dtype: DT_FLOAT float_val: [1, 2]", "0000803f 00000040 00000040"},
      {"dtype: DT_DOUBLE double_val: 1", "000000000000f03f 000000000000f03f 000000000000f03f"},
      {"dtype: DT_INT32 int_val: [-1, 2, 3]", "ffffffff 02000000 03000000"},
      {"dtype: DT_QINT32 int_val: [-1, 2, 3, 4]", "ffffffff 02000000 03000000"},
      {"dtype: DT_UINT8 int_val: [255, 256]", "ff 00 00"},
      {"dtype: DT_INT8 int_val: [300, -129]", "2c 7f 7f"},
      {"dtype: DT_INT16 int_val: [-2]", "feff feff feff"},
      {"dtype: DT_UINT16 int_val: [65535, 1]", "ffff 0100 0100"},
      {"dtype: DT_QINT8 int_val: [-1]", "ff ff ff"},
      {"dtype: DT_QUINT8 int_val: [1]", "01 01 01"},
      {"dtype: DT_QINT16 int_val: [1]", "0100 0100 0100"},
      {"dtype: DT_QUINT16 int_val: [1]", "0100 0100 0100"},
      {"dtype: DT_INT64 int64_val: [-1, 5]", "ffffffffffffffff 0500000000000000 0500000000000000"},
      {"dtype: DT_UINT32 uint32_val: 4294967295", "ffffffff ffffffff ffffffff"},
      {"dtype: DT_UINT64 uint64_val: 7", "0700000000000000 0700000000000000 0700000000000000"},
      {"dtype: DT_BOOL bool_val: [true, false]", "01 00 00"},
      {"dtype: DT_HALF half_val: [15360, 0]", "003c 0000 0000"},
      {"dtype: DT_BFLOAT16 half_val: 16256", "803f 803f 803f"},
      {"dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3]",
       "0000803f00000040 0000803f00000040 0000803f00000040"},
      {"dtype: DT_COMPLEX128 dcomplex_val: [1, 0]",
       "000000000000f03f0000000000000000 000000000000f03f0000000000000000 "
       "000000000000f03f0000000000000000"},
      {"dtype: DT_FLOAT8_E5M2 float8_val: '\\x3c\\x40'", "3c 40 40"},
      {"dtype: DT_FLOAT8_E4M3FN float8_val: ''", "00 00 00"},
      {"dtype: DT_INT4 int_val: [7, -8, 9]", "07 f8 f9"},
      {"dtype: DT_UINT4 int_val: [17]", "01 01 01"},
      {"dtype: DT_INT2 int_val: [3, 1]", "ff 01 01"},
      {"dtype: DT_UINT2 int_val: [6]", "02 02 02"},
      {"dtype: DT_FLOAT", "00000000 00000000 00000000"},
      {"dtype: DT_INT8 tensor_content: '\\x01\\x02\\x03' int_val: 9", "01 02 03"},
      {"dtype: DT_BOOL tensor_content: '\\x00\\x01\\xff'", "00 01 01"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char text[256], bytes[64];
    snprintf(text, sizeof text, "%s tensor_shape { dim { size: 3 } }", rows[i].text);
    rn_tensor_t tensor;
    OK(read(text, &tensor));
    rn_str_t expected = from_hex(rows[i].hex, bytes);
    cr_assert_eq(rn_tensor_bytes(&tensor), expected.size, "%s", text);
    cr_assert_arr_eq(tensor.data, expected.data, expected.size, "%s", text);
    cr_assert_eq((uintptr_t)tensor.data % RN_ALIGN, 0);

    // And back, in both forms: the tensor read again is the same.
    for (rn_tensor_form_t form = RN_TENSOR_AUTO; form <= RN_TENSOR_TYPED; ++form) {
      rn_pb_TensorProto_t proto;
      rn_tensor_t again;
      OK(rn_tensor_to_proto(&tensor, form, &arena, &proto));
      cr_assert_eq(proto.tensor_content.size != 0, form != RN_TENSOR_TYPED, "%s", text);
      OK(rn_tensor_from_proto(&proto, MAX_BYTES, rn_allocator_counting(&counting), &again));
      cr_assert_eq(again.dtype, tensor.dtype);
      cr_assert(rn_tensor_same_shape(&again, &tensor));
      cr_assert_arr_eq(again.data, tensor.data, expected.size, "%s", text);
      rn_tensor_clear(&again);
    }
    rn_tensor_clear(&tensor);
  }
}

Test(tensor_proto, strings) {
  static const char* const texts[] = {
      "dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: ['a', 'bb']",
      "dtype: DT_STRING tensor_shape { dim { size: 3 } } tensor_content: '\\001\\002\\002abbbb'",
  };
  for (int i = 0; i < 2; ++i) {
    rn_tensor_t tensor, again;
    OK(read(texts[i], &tensor));
    for (rn_tensor_form_t form = RN_TENSOR_AUTO; form <= RN_TENSOR_TYPED; ++form) {
      rn_pb_TensorProto_t proto;
      OK(rn_tensor_to_proto(&tensor, form, &arena, &proto));
      OK(rn_tensor_from_proto(&proto, MAX_BYTES, rn_allocator_counting(&counting), &again));
      ASSERT_STR(rn_tstring_view(&RN_DATA(&again, rn_tstring_t)[0]), RN_STR("a"));
      ASSERT_STR(rn_tstring_view(&RN_DATA(&again, rn_tstring_t)[2]), RN_STR("bb"));
      rn_tensor_clear(&again);
    }
    rn_tensor_clear(&tensor);
  }
  static const char* const bad[] = {"\\001\\002abbb", "\\001\\002ab", "\\001", "\\377\\377",
                                    "\\377\\377\\377\\377\\377\\377a"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    char text[200];
    snprintf(text, sizeof text,
             "dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: '%s'", bad[i]);
    rn_tensor_t tensor;
    FAILS_WITH(read(text, &tensor), INVALID_ARGUMENT, "Cannot parse tensor from proto:");
  }
}

Test(tensor_proto, handles) {
  static const char text[] =
      "dtype: DT_RESOURCE tensor_shape { dim { size: 3 } } "
      "resource_handle_val { device: '/cpu:0' container: 'c' name: 'v' maybe_type_name: 'Var' "
      "  dtypes_and_shapes { dtype: DT_FLOAT shape { dim { size: 2 } dim { size: -1 } } } } "
      "resource_handle_val { name: 'w' }";
  rn_tensor_t tensor, again;
  OK(read(text, &tensor));
  for (rn_tensor_form_t form = RN_TENSOR_AUTO; form <= RN_TENSOR_TYPED; ++form) {
    rn_pb_TensorProto_t proto;
    OK(rn_tensor_to_proto(&tensor, form, &arena, &proto));
    cr_assert_eq(proto.tensor_content.size != 0, form != RN_TENSOR_TYPED);
    cr_assert_eq(proto.resource_handle_val.count, form == RN_TENSOR_TYPED ? 3 : 0);
    OK(rn_tensor_from_proto(&proto, MAX_BYTES, rn_allocator_counting(&counting), &again));
    const rn_handle_t** handles = again.data;
    ASSERT_STR(handles[0]->device, RN_STR("/cpu:0"));
    ASSERT_STR(handles[0]->container, RN_STR("c"));
    ASSERT_STR(handles[0]->name, RN_STR("v"));
    ASSERT_STR(handles[0]->type_name, RN_STR("Var"));
    cr_assert_eq(handles[0]->dtype, RN_FLOAT);
    cr_assert_eq(handles[0]->shape.rank, 2);
    cr_assert_eq(handles[0]->shape.dims[1], -1);
    cr_assert_null(handles[0]->resource);
    ASSERT_STR(handles[1]->name, RN_STR("w"));
    cr_assert_eq(handles[1]->dtype, RN_INVALID);
    ASSERT_STR(handles[2]->name, RN_STR("w"));
    rn_tensor_clear(&again);
  }
  rn_tensor_clear(&tensor);
}

// Elements that point nowhere.
Test(tensor_proto, objects_of_nothing) {
  static const char* const texts[] = {"dtype: DT_RESOURCE tensor_shape { dim { size: 2 } }",
                                      "dtype: DT_VARIANT tensor_shape { dim { size: 2 } }",
                                      ("dtype: DT_VARIANT tensor_shape { dim { size: 2 } } "
                                       "variant_val { }")};
  for (int i = 0; i < 3; ++i) {
    rn_tensor_t tensor, again;
    OK(read(texts[i], &tensor));
    cr_assert_null(RN_DATA(&tensor, void*)[1]);
    rn_pb_TensorProto_t proto;
    OK(rn_tensor_to_proto(&tensor, RN_TENSOR_TYPED, &arena, &proto));
    cr_assert_eq(i ? proto.variant_val.count : proto.resource_handle_val.count, 2);
    OK(rn_tensor_from_proto(&proto, MAX_BYTES, rn_allocator_counting(&counting), &again));
    cr_assert_eq(again.count, 2);
    rn_tensor_clear(&tensor);
    rn_tensor_clear(&again);
  }
}

// Lists of tensors as stock's SerializeTensor writes them, and as we write them again.
Test(tensor_proto, tensor_lists) {
  static const char* const messages[] = {
      // [[1, 2], [3, 4]] of shape [2]
      "081512002253520a1674656e736f72666c6f773a3a54656e736f724c69737412100001ffffffffffffffffff0112"
      "0208021a1208011204120208022a080000803f000000401a1208011204120208022a080000404000008040",
      // Three of shape [?, 3], of which only the second is set
      "08151200224d4c0a1674656e736f72666c6f773a3a54656e736f724c697374121f02000203ffffffffffffffffff"
      "01120b08ffffffffffffffffff01120208031a110803120812020801120208033a03070809",
      // None, of at most five strings of any shape
      "0815120022201f0a1674656e736f72666c6f773a3a54656e736f724c69737412050007051801",
      "081512002233320a1674656e736f72666c6f773a3a54656e736f724c697374120e0007ffffffffffffffffff0118"
      "011a080807120042026162",
  };
  for (size_t i = 0; i < sizeof messages / sizeof *messages; ++i) {
    char bytes[200];
    rn_str_t message = from_hex(messages[i], bytes);
    rn_pb_TensorProto_t *proto = NULL, again;
    OK(RN_PB_DECODE(TensorProto, message, NULL, &arena, &proto));
    rn_tensor_t tensor;
    OK(rn_tensor_from_proto(proto, MAX_BYTES, rn_allocator_counting(&counting), &tensor));
    OK(rn_tensor_to_proto(&tensor, RN_TENSOR_CONTENT, &arena, &again));
    rn_strbuf_t out;
    rn_strbuf_init(&out, rn_allocator_system());
    OK(RN_PB_ENCODE(TensorProto, &again, NULL, &out));
    ASSERT_STR(rn_strbuf_view(&out), message);
    rn_strbuf_clear(&out);
    rn_tensor_clear(&tensor);
    // Cut anywhere, or with any byte changed, it is still a list or an error.
    for (size_t at = 32; at < message.size; ++at) {
      for (int flip = 0; flip < 4; ++flip) {
        char broken[200];
        memcpy(broken, message.data, message.size);
        broken[at] ^= (char)(flip == 3 ? 0x80 : 1 << flip);
        rn_status_t status =
            RN_PB_DECODE(TensorProto, rn_str_n(broken, message.size), NULL, &arena, &proto);
        if (rn_ok(status))
          status =
              rn_tensor_from_proto(proto, MAX_BYTES, rn_allocator_counting(&counting), &tensor);
        if (rn_ok(status)) rn_tensor_clear(&tensor);
        rn_status_free(status);
      }
    }
  }
}

static void nothing(rn_object_t* object) { (void)object; }

Test(tensor_proto, variants_that_hold_something) {
  int64_t one = 1;
  rn_tensor_t tensor;
  rn_object_t object = {.refs = 1, .destroy = nothing};
  OK(rn_tensor_create(rn_allocator_counting(&counting), RN_VARIANT, (rn_shape_t){1, &one},
                      &tensor));
  RN_DATA(&tensor, rn_object_t*)[0] = &object;
  rn_pb_TensorProto_t proto;
  FAILS_WITH(rn_tensor_to_proto(&tensor, RN_TENSOR_AUTO, &arena, &proto), UNIMPLEMENTED,
             "What element 0 of a variant tensor holds has no message");
  rn_tensor_clear(&tensor);
}

Test(tensor_proto, scalars_and_empty_ones) {
  rn_tensor_t tensor;
  OK(read("dtype: DT_FLOAT float_val: 2.5", &tensor));
  cr_assert_eq(tensor.rank, 0);
  cr_assert_eq(*RN_DATA(&tensor, float), 2.5f);
  rn_pb_TensorProto_t proto;
  OK(rn_tensor_to_proto(&tensor, RN_TENSOR_AUTO, &arena, &proto));
  cr_assert_eq(proto.float_val.count, 1, "one element goes into the list");
  rn_tensor_clear(&tensor);
  OK(read("dtype: DT_FLOAT tensor_shape { unknown_rank: true }", &tensor));
  cr_assert_eq(tensor.count, 1, "as stock reads it");
  rn_tensor_clear(&tensor);
  static const char* const empty[] = {"DT_FLOAT", "DT_STRING", "DT_RESOURCE", "DT_VARIANT"};
  for (int i = 0; i < 4; ++i) {
    char text[100];
    snprintf(text, sizeof text, "dtype: %s tensor_shape { dim { size: 0 } dim { size: 3 } }",
             empty[i]);
    OK(read(text, &tensor));
    cr_assert_eq(tensor.count, 0);
    OK(rn_tensor_to_proto(&tensor, RN_TENSOR_AUTO, &arena, &proto));
    cr_assert_eq(proto.tensor_shape->dim.count, 2);
    rn_tensor_clear(&tensor);
  }
}

Test(tensor_proto, refused) {
  static const struct {
    const char* text;
    rn_code_t code;
    const char* message;
  } rows[] = {
      {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abcd'",
       RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto: dtype: DT_FLOAT\n"},
      {"dtype: DT_INVALID", RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto"},
      {"dtype: 99", RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto"},
      {"dtype: -5", RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto"},
      {"dtype: DT_FLOAT_REF", RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: -2 } }", RN_CODE_INVALID_ARGUMENT,
       "Shape [-2] is not fully defined"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 3 } dim { size: -1 } }",
       RN_CODE_INVALID_ARGUMENT, "Shape [3,?] is not fully defined"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } dim { size: 1099511627776 } }",
       RN_CODE_INVALID_ARGUMENT,
       "Shape [1099511627776,1099511627776] is too large (more than 2**63 - 1 entries)"},
      {"dtype: DT_DOUBLE tensor_shape { dim { size: 4611686018427387904 } }",
       RN_CODE_RESOURCE_EXHAUSTED,
       "Out of memory for a tensor of 4611686018427387904 elements of type double"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } float_val: 1",
       RN_CODE_RESOURCE_EXHAUSTED, "1099511627776 elements of type float"},
      {"dtype: DT_STRING tensor_shape { dim { size: 40000 } } string_val: 'aaaaaaaaaaaaaaaaaaaa'",
       RN_CODE_RESOURCE_EXHAUSTED, "40000 elements of type string"},
      {"dtype: DT_VARIANT tensor_shape {} variant_val { type_name: 'tensorflow::Thing' }",
       RN_CODE_UNIMPLEMENTED, "A variant of kind 'tensorflow::Thing' cannot be read"},
      {"dtype: DT_VARIANT tensor_shape {} variant_val { type_name: 'tensorflow::TensorList' }",
       RN_CODE_INVALID_ARGUMENT, "malformed metadata"},
      {"dtype: DT_VARIANT tensor_shape {} tensor_content: '\\x05ab'", RN_CODE_INVALID_ARGUMENT,
       "Cannot parse tensor from proto:"},
      {"dtype: DT_RESOURCE tensor_shape {} resource_handle_val { dtypes_and_shapes { dtype: 99 } }",
       RN_CODE_INVALID_ARGUMENT, "data type 99"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_tensor_t tensor;
    FAILS_CODE(read(rows[i].text, &tensor), rows[i].code, rows[i].message);
    cr_assert(!rn_tensor_is_set(&tensor));
  }
}

Test(tensor_proto, shapes) {
  static const struct {
    const char* text;
    const char* printed;  // or the error
    bool ok;
  } rows[] = {
      {"", "[]", true},
      {"unknown_rank: true", "<unknown>", true},
      {"dim { size: 2 } dim { size: -1 } dim {}", "[2,?,0]", true},
      {"unknown_rank: true dim {}", "An unknown shape must not have any dimensions set.", false},
      {"dim { size: -2 }",
       "Shape [-2] has dimensions with values below -1 (where -1 means unknown)", false},
      {"dim { size: 9223372036854775807 } dim { size: 2 }",
       "Shape [9223372036854775807,2] is too large (more than 2**63 - 1 entries)", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    void* proto = NULL;
    OK(rn_pb_parse(&rn_pb_TensorShapeProto_desc, rn_str(rows[i].text), NULL, &arena, &proto));
    rn_shape_t shape;
    rn_status_t status = rn_shape_from_proto(proto, &arena, &shape);
    cr_assert_eq(rn_ok(status), rows[i].ok);
    if (!rows[i].ok) {
      cr_assert_str_eq(rn_status_message(status), rows[i].printed);
      rn_status_free(status);
      continue;
    }
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_system());
    rn_shape_print(&text, shape);
    ASSERT_STR(rn_strbuf_view(&text), rn_str(rows[i].printed));
    rn_strbuf_clear(&text);
    rn_pb_TensorShapeProto_t back;
    rn_shape_t again;
    OK(rn_shape_to_proto(shape, &arena, &back));
    OK(rn_shape_from_proto(&back, &arena, &again));
    cr_assert(rn_shape_eq(shape, again));
  }
}

Test(tensor_proto, rank_is_limited) {
  rn_pb_TensorShapeProto_Dim_t dims[300] = {0};
  rn_pb_TensorShapeProto_t proto = {0};
  rn_shape_t shape;
  for (int i = 0; i < 300; ++i) dims[i].size = 1;
  proto.dim.items = dims;
  proto.dim.count = 255;
  FAILS_WITH(rn_shape_from_proto(&proto, &arena, &shape), INVALID_ARGUMENT,
             "has too many dimensions");
  proto.dim.count = 254;
  OK(rn_shape_from_proto(&proto, &arena, &shape));
  rn_pb_TensorProto_t tensor_proto = {.dtype = RN_FLOAT, .tensor_shape = &proto};
  rn_tensor_t tensor;
  OK(rn_tensor_from_proto(&tensor_proto, MAX_BYTES, rn_allocator_counting(&counting), &tensor));
  cr_assert_eq(tensor.rank, 254);
  rn_tensor_clear(&tensor);
}

Test(tensor_proto, every_allocation_may_fail) {
  const char* text =
      "dtype: DT_STRING tensor_shape { dim { size: 2 } } "
      "tensor_content: '\\036\\036012345678901234567890123456789012345678901234567890123456789'";
  rn_pb_TensorProto_t* proto = parse(text);
  bool done = false;
  for (int64_t n = 1; !done; ++n) {
    counting = (rn_counting_allocator_t){.base = rn_allocator_system(), .fail_at = n};
    rn_tensor_t tensor;
    rn_status_t status =
        rn_tensor_from_proto(proto, MAX_BYTES, rn_allocator_counting(&counting), &tensor);
    done = rn_ok(status);
    if (!done) cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_tensor_clear(&tensor);
    cr_assert_eq(counting.live_blocks, 0);
  }
}
