// Conversion of attribute values to and from messages.
#include "framework/attr_proto.h"

#include "util.h"
#include "wire/text.h"

static rn_arena_t arena;

static void set_up(void) { rn_arena_init(&arena, rn_allocator_system()); }
static void tear_down(void) { rn_arena_clear(&arena); }

TestSuite(attr_proto, .init = set_up, .fini = tear_down);

#define MAX_BYTES (1 << 20)

static rn_pb_AttrValue_t* parse(const char* text) {
  void* proto = NULL;
  OK(rn_pb_parse(&rn_pb_AttrValue_desc, rn_str(text), NULL, &arena, &proto));
  return proto;
}

Test(attr_proto, values_come_back) {
  static const struct {
    const char* text;  // as it is printed
    rn_attr_kind_t kind;
    int count;  // -1: no list
  } rows[] = {
      {"s: \"SAME\"", RN_ATTR_STRING, -1},
      {"s: \"\"", RN_ATTR_STRING, -1},
      {"i: -7", RN_ATTR_INT, -1},
      {"f: 0.5", RN_ATTR_FLOAT, -1},
      {"b: false", RN_ATTR_BOOL, -1},
      {"type: DT_FLOAT", RN_ATTR_TYPE, -1},
      {"shape { dim { size: 2 } dim { size: -1 } }", RN_ATTR_SHAPE, -1},
      {"shape { unknown_rank: true }", RN_ATTR_SHAPE, -1},
      {"tensor { dtype: DT_INT32 tensor_shape { } int_val: 5 }", RN_ATTR_TENSOR, -1},
      {"tensor { dtype: DT_INT8 tensor_shape { dim { size: 2 } } tensor_content: \"ab\" }",
       RN_ATTR_TENSOR, -1},
      {"placeholder: \"T\"", RN_ATTR_PLACEHOLDER, -1},
      {"func { name: \"f\" attr { key: \"T\" value { type: DT_INT32 } } attr { key: \"t\" value { "
       "tensor { dtype: DT_INT32 tensor_shape { } int_val: 5 } } } }",
       RN_ATTR_FUNC, -1},
      {"list { }", RN_ATTR_INT, 0},
      {"list { s: \"a\" s: \"b\" }", RN_ATTR_STRING, 2},
      {"list { i: 1 i: 2 i: 3 }", RN_ATTR_INT, 3},
      {"list { f: 1 f: 2.5 }", RN_ATTR_FLOAT, 2},
      {"list { b: true b: false }", RN_ATTR_BOOL, 2},
      {"list { type: DT_FLOAT type: DT_INT32 }", RN_ATTR_TYPE, 2},
      {"list { shape { dim { size: 1 } } shape { unknown_rank: true } }", RN_ATTR_SHAPE, 2},
      {"list { tensor { dtype: DT_INT32 tensor_shape { } int_val: 5 } tensor { dtype: DT_STRING "
       "tensor_shape { } string_val: \"x\" } }",
       RN_ATTR_TENSOR, 2},
      {"list { func { name: \"f\" } func { name: \"g\" attr { key: \"n\" value { i: 1 } } } }",
       RN_ATTR_FUNC, 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_attr_value_t value;
    OK(rn_attr_value_from_proto(parse(rows[i].text), MAX_BYTES, &arena, &value));
    cr_assert_eq(value.kind, rows[i].kind, "%s", rows[i].text);
    cr_assert_eq(value.is_list, rows[i].count >= 0);
    cr_assert_eq(value.is_list ? value.count : -1, rows[i].count);
    rn_pb_AttrValue_t back;
    OK(rn_attr_value_to_proto(&value, &arena, &back));
    rn_strbuf_t text;
    rn_strbuf_init(&text, rn_allocator_system());
    OK(rn_pb_print_short(&rn_pb_AttrValue_desc, &back, &text));
    ASSERT_STR(rn_strbuf_view(&text), rn_str(rows[i].text));
    rn_strbuf_clear(&text);
    rn_attr_value_clear(&value);
  }
}

Test(attr_proto, later_function_attribute_wins) {
  rn_attr_value_t value;
  OK(rn_attr_value_from_proto(parse("func { attr { key: 'a' value { i: 1 } } attr { key: "
                                    "'a' value { i: 2 } } }"),
                              MAX_BYTES, &arena, &value));
  cr_assert_eq(value.func->attr_count, 1);
  cr_assert_eq(value.func->attrs[0].value.i, 2);
  rn_attr_value_clear(&value);
}

Test(attr_proto, refused) {
  static const struct {
    const char* text;
    rn_code_t code;
    const char* message;
  } rows[] = {
      {"", RN_CODE_INVALID_ARGUMENT, "AttrValue missing value"},
      {"func { attr { key: 'a' } }", RN_CODE_INVALID_ARGUMENT, "AttrValue missing value"},
      {"list { i: 1 s: 'a' }", RN_CODE_INVALID_ARGUMENT,
       "AttrValue had values of type 'list(string)' and of type 'list(int)' in one list"},
      {"shape { dim { size: -3 } }", RN_CODE_INVALID_ARGUMENT, "below -1"},
      {"list { shape { } shape { dim { size: -3 } } }", RN_CODE_INVALID_ARGUMENT, "below -1"},
      {"tensor { }", RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor from proto"},
      // What was built before the bad element is given back.
      {"list { tensor { dtype: DT_STRING string_val: 'a string of more than 22 bytes' } tensor { } "
       "}",
       RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor"},
      {"func { attr { key: 'a' value { tensor { dtype: DT_INT32 } } } attr { key: 'b' value { } } "
       "}",
       RN_CODE_INVALID_ARGUMENT, "AttrValue missing value"},
      {"list { func { attr { key: 'a' value { tensor { dtype: DT_INT32 } } } } func { attr { key: "
       "'a' value { tensor { dtype: DT_INT32 } } } attr { key: 'b' value { tensor { } } } } }",
       RN_CODE_INVALID_ARGUMENT, "Cannot parse tensor"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } }",
       RN_CODE_RESOURCE_EXHAUSTED, "more than the"},
  };
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_arena_t counted;
    rn_arena_init(&counted, rn_allocator_counting(&counting));
    rn_attr_value_t value;
    memset(&value, 1, sizeof value);
    FAILS_CODE(rn_attr_value_from_proto(parse(rows[i].text), MAX_BYTES, &counted, &value),
               rows[i].code, rows[i].message);
    cr_assert_eq(value.count, 0);
    rn_arena_clear(&counted);
    cr_assert_eq(counting.live_blocks, 0, "%s", rows[i].text);
  }
}

Test(attr_proto, every_allocation_may_fail) {
  rn_pb_AttrValue_t* proto = parse(
      "list { func { name: 'f' attr { key: 'a' value { tensor { dtype: DT_STRING tensor_shape { "
      "dim { size: 2 } } string_val: 'a string of more than 22 bytes' } } } attr { key: 'b' value "
      "{ list { tensor { dtype: DT_FLOAT } tensor { dtype: DT_FLOAT tensor_shape { dim { size: 900 "
      "} } } } } } } func { name: 'g' } }");
  bool done = false;
  for (int64_t n = 1; !done; ++n) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = n};
    rn_arena_t failing;
    rn_arena_init(&failing, rn_allocator_counting(&counting));
    rn_attr_value_t value;
    rn_status_t status = rn_attr_value_from_proto(proto, MAX_BYTES, &failing, &value);
    done = rn_ok(status);
    if (done) rn_attr_value_clear(&value);
    rn_status_free(status);
    rn_arena_clear(&failing);
    cr_assert_eq(counting.live_blocks, 0);
  }
}
