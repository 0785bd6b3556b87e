// Attribute values. Printed forms were recorded from TensorFlow 2.21 (SummarizeAttrValue).
#include "framework/attr.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "../support/status.h"

static void expect_text(rn_attr_value_t value, const char* text) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_system());
  rn_attr_value_print(&buf, &value);
  cr_assert_str_eq(rn_strbuf_view(&buf).data, text);
  rn_strbuf_clear(&buf);
}

static rn_attr_value_t string(const char* text) {
  return (rn_attr_value_t){.kind = RN_ATTR_STRING, .s = rn_str(text)};
}
static rn_attr_value_t integer(int64_t i) { return (rn_attr_value_t){.kind = RN_ATTR_INT, .i = i}; }
static rn_attr_value_t real(float f) { return (rn_attr_value_t){.kind = RN_ATTR_FLOAT, .f = f}; }
static rn_attr_value_t type(rn_dtype_t t) {
  return (rn_attr_value_t){.kind = RN_ATTR_TYPE, .type = t};
}

static const int64_t dims[] = {2, -1, 3};
static const rn_tensor_t tensor = {.data = (int32_t[]){0, 1, 2, 3},
                                   .count = 4,
                                   .dtype = RN_INT32,
                                   .rank = 2,
                                   .inline_dims = {2, 2}};
static const rn_attr_t func_attrs[] = {
    {{"T", 1}, {.kind = RN_ATTR_TYPE, .type = RN_FLOAT}},
    {{"_x", 2}, {.kind = RN_ATTR_STRING, .s = {"y", 1}}},
    {{"N", 1}, {.kind = RN_ATTR_INT, .i = 3}},
    {{"v", 1}, {.kind = RN_ATTR_TENSOR, .tensor = &tensor}},
};
static const rn_func_attr_t plain_func = {{"foo", 3}, 0, NULL};
static const rn_func_attr_t func = {{"foo", 3}, 4, func_attrs};

Test(attr, prints_single_values) {
  expect_text(string("SAME"), "\"SAME\"");
  expect_text(string("a\"b\n\xff"), "\"a\\\"b\\n\\377\"");
  char text[101];
  memset(text, 'x', 100);
  text[79] = '\0';
  char expected[200];
  snprintf(expected, sizeof expected, "\"%s\"", text);
  expect_text(string(text), expected);
  text[79] = 'x';
  text[80] = '\0';
  expect_text(string(text), "\"xxxxxxxxxx...xxxxxxxxxx\"");
  memset(text, '\n', 100);
  text[40] = '\0';
  expect_text(string(text), "\"\\n\\n\\n\\n\\n...\\n\\n\\n\\n\\n\"");
  expect_text(integer(-5), "-5");
  expect_text(real(0.1f), "0.1");
  expect_text(real(16777217.f), "16777216");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_BOOL, .b = true}, "true");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_BOOL}, "false");
  expect_text(type(RN_FLOAT), "DT_FLOAT");
  expect_text(type(RN_INT32 + 100), "DT_INT32_REF");
  expect_text(type(77), "");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_SHAPE, .shape = {3, dims}}, "[2,?,3]");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_SHAPE, .shape = {-1, NULL}}, "<unknown>");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_PLACEHOLDER, .s = RN_STR("ph")}, "$ph");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_TENSOR, .tensor = &tensor},
              "Tensor<type: int32 shape: [2,2] values: [0 1][2...]...>");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = &plain_func}, "foo[]");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = &func},
              "foo[N=3, T=DT_FLOAT, _x=\"y\", "
              "v=Tensor<type: int32 shape: [2,2] values: [0 1][2...]...>]");
  expect_text((rn_attr_value_t){.kind = 99}, "<Unknown AttrValue type>");
}

static const rn_str_t list_s[] = {{"a", 1}, {"b\"c", 3}};
static const int64_t list_i[] = {1, 2};
static const float list_f[] = {1, .1f};
static const bool list_b[] = {true, false};
static const rn_dtype_t list_type[] = {RN_INT32, RN_FLOAT};
static const rn_shape_t list_shape[] = {{-1, NULL}, {1, &dims[2]}};
static const rn_tensor_t* const list_tensor[] = {&tensor, &tensor};
static const rn_func_attr_t* const list_func[] = {&plain_func, &func};

#define LIST(KIND, field) \
  ((rn_attr_value_t){.kind = RN_ATTR_##KIND, .is_list = true, .count = 2, .field = field})

Test(attr, prints_lists) {
  expect_text(LIST(STRING, list_s), "[\"a\", \"b\\\"c\"]");
  expect_text(LIST(INT, list_i), "[1, 2]");
  expect_text(LIST(FLOAT, list_f), "[1, 0.1]");
  expect_text(LIST(BOOL, list_b), "[true, false]");
  expect_text(LIST(TYPE, list_type), "[DT_INT32, DT_FLOAT]");
  expect_text(LIST(SHAPE, list_shape), "[<unknown>, [3]]");
  expect_text((rn_attr_value_t){.kind = RN_ATTR_INT, .is_list = true}, "[]");
  int64_t many[60];
  for (int i = 0; i < 60; i++) many[i] = i;
  rn_attr_value_t value = {.kind = RN_ATTR_INT, .is_list = true, .count = 29, .list_i = many};
  expect_text(value,
              "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, "
              "23, 24, 25, 26, 27, 28]");
  value.count = 30;
  expect_text(value, "[0, 1, 2, 3, 4, ..., 25, 26, 27, 28, 29]");
}

static bool eq(rn_attr_value_t a, rn_attr_value_t b) {
  bool result = rn_attr_value_eq(&a, &b);
  cr_assert_eq(result, rn_attr_value_eq(&b, &a));
  return result;
}

Test(attr, equality) {
  cr_assert(eq(string("a"), string("a")) && !eq(string("a"), string("b")));
  cr_assert(eq(integer(3), integer(3)) && !eq(integer(3), integer(4)));
  cr_assert(!eq(integer(3), real(3)) && !eq(type(3), integer(3)));
  cr_assert(eq(real(NAN), real(NAN)) && !eq(real(0), real(-0.f)));
  cr_assert(!eq(type(1), type(101)));
  rn_attr_value_t empty_ints = {.kind = RN_ATTR_INT, .is_list = true};
  rn_attr_value_t empty_strings = {.kind = RN_ATTR_STRING, .is_list = true};
  cr_assert(eq(empty_ints, empty_strings) && !eq(empty_ints, LIST(INT, list_i)));
  cr_assert(!eq(empty_ints, integer(0)));
  cr_assert(eq(LIST(STRING, list_s), LIST(STRING, list_s)));
  cr_assert(eq(LIST(SHAPE, list_shape), LIST(SHAPE, list_shape)));
  static const int64_t list_other[] = {1, 3};
  rn_attr_value_t other = {.kind = RN_ATTR_INT, .is_list = true, .count = 2, .list_i = list_other};
  cr_assert(!eq(LIST(INT, list_i), other));

  rn_tensor_t changed = tensor;
  changed.data = (int32_t[]){0, 1, 2, 3};
  rn_attr_value_t a = {.kind = RN_ATTR_TENSOR, .tensor = &tensor}, b = a;
  b.tensor = &changed;
  cr_assert(eq(a, b));
  changed.data = (int32_t[]){0, 1, 2, 4};
  cr_assert(!eq(a, b));
  changed = tensor;
  changed.inline_dims[0] = 4;
  changed.inline_dims[1] = 1;
  cr_assert(!eq(a, b));

  rn_attr_t turned[] = {func_attrs[2], func_attrs[3], func_attrs[0], func_attrs[1]};
  rn_func_attr_t same = {{"foo", 3}, 4, turned};
  a = (rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = &func};
  b = (rn_attr_value_t){.kind = RN_ATTR_FUNC, .func = &same};
  cr_assert(eq(a, b));
  turned[0].value.i = 4;
  cr_assert(!eq(a, b));
}

// Every kind, alone and in a list, copied while the n-th allocation fails.
Test(attr, copies_are_deep_and_leak_nothing) {
  rn_counting_allocator_t source = {.base = rn_allocator_system()};
  rn_tensor_t owned;
  OK(rn_tensor_copy(&tensor, rn_allocator_counting(&source), &owned));
  const rn_tensor_t* const owned_list[] = {&owned, &tensor};
  rn_attr_t attrs[] = {{{"v", 1}, {.kind = RN_ATTR_TENSOR, .tensor = &owned}},
                       {{"w", 1}, {.kind = RN_ATTR_TENSOR, .tensor = &tensor}}};
  rn_func_attr_t owned_func = {{"foo", 3}, 2, attrs};
  const rn_func_attr_t* const owned_funcs[] = {&owned_func, &func};
  rn_attr_value_t values[] = {
      string("some text"),
      integer(3),
      real(2.5),
      type(RN_HALF),
      {.kind = RN_ATTR_BOOL, .b = true},
      {.kind = RN_ATTR_SHAPE, .shape = {3, dims}},
      {.kind = RN_ATTR_TENSOR, .tensor = &owned},
      {.kind = RN_ATTR_TENSOR, .tensor = &tensor},
      {.kind = RN_ATTR_FUNC, .func = &owned_func},
      {.kind = RN_ATTR_PLACEHOLDER, .s = RN_STR("p")},
      LIST(STRING, list_s),
      LIST(INT, list_i),
      LIST(FLOAT, list_f),
      LIST(BOOL, list_b),
      LIST(TYPE, list_type),
      LIST(SHAPE, list_shape),
      LIST(TENSOR, list_tensor),
      LIST(FUNC, list_func),
      {.kind = RN_ATTR_TENSOR, .is_list = true, .count = 2, .list_tensor = owned_list},
      {.kind = RN_ATTR_FUNC, .is_list = true, .count = 2, .list_func = owned_funcs},
      {.kind = RN_ATTR_INT, .is_list = true},
  };
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    for (int64_t n = 0; n < 8; n++) {
      rn_counting_allocator_t counting = {
          .base = rn_allocator_system(), .fail_at = n, .fail_all_after = true};
      rn_arena_t arena;
      rn_arena_init(&arena, rn_allocator_counting(&counting));
      rn_attr_value_t copy;
      rn_status_t status = rn_attr_value_copy(&arena, &values[i], &copy);
      if (n == 0) OK(status);
      if (rn_ok(status)) {
        cr_assert(eq(values[i], copy), "row %zu", i);
        if (values[i].is_list) cr_assert(!copy.count || copy.list_i != values[i].list_i);
        rn_attr_value_clear(&copy);
      } else {
        cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
      }
      rn_status_free(status);
      rn_attr_value_clear(&copy);
      rn_arena_clear(&arena);
      cr_assert_eq(counting.live_blocks, 0, "row %zu allocation %d", i, (int)n);
      cr_assert_eq(owned.buffer->refs, 1, "row %zu allocation %d", i, (int)n);
    }
  }
  rn_tensor_clear(&owned);
  cr_assert_eq(source.live_blocks, 0);
}

Test(attr, copies_of_borrowed_bytes_are_their_own) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_attr_value_t value = {.kind = RN_ATTR_TENSOR, .tensor = &tensor}, copy;
  OK(rn_attr_value_copy(&arena, &value, &copy));
  cr_assert_neq(copy.tensor->data, tensor.data);
  rn_attr_value_clear(&copy);
  rn_arena_clear(&arena);
}

Test(attr, kind_names) {
  cr_assert_str_eq(rn_attr_kind_name(RN_ATTR_INT, false), "int");
  cr_assert_str_eq(rn_attr_kind_name(RN_ATTR_TYPE, true), "list(type)");
  cr_assert_str_eq(rn_attr_kind_name(RN_ATTR_FUNC, false), "func");
  cr_assert_str_eq(rn_attr_kind_name((rn_attr_kind_t)99, false), "unknown");
}
