// The op registry, the definitions' bytes, and the arithmetic of partly known shapes.
#include "framework/op_def.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "../support/status.h"
#include "framework/op_proto.h"
#include "framework/shape_fn.h"

Test(op_find, knows_every_builtin) {
  for (int i = 0; i < rn_builtin_op_count; i++) {
    const rn_op_def_t* def = rn_builtin_ops[i];
    cr_assert_eq(rn_op_find(rn_str(def->name)), def, "%s", def->name);
    if (i) cr_assert_lt(strcmp(rn_builtin_ops[i - 1]->name, def->name), 0);
    cr_assert_not_null(def->shape);
  }
}

Test(op_find, refuses_other_names) {
  const rn_str_t names[] = {RN_STR(""),        RN_STR("Ad"),      RN_STR("Addd"),
                            RN_STR("Add\0\0"), RN_STR("\0"),      RN_STR("add"),
                            {NULL, 0},         RN_STR("MatMul "), RN_STR("MatMul\0")};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) cr_assert_null(rn_op_find(names[i]));
}

Test(op_find, finds_attributes) {
  const rn_op_def_t* def = rn_op_find(RN_STR("MatMul"));
  cr_assert_eq(rn_op_attr_index(def, RN_STR("transpose_a")), 0);
  cr_assert_eq(rn_op_attr_index(def, RN_STR("T")), 2);
  cr_assert_eq(rn_op_attr_index(def, RN_STR("transpose")), -1);
  cr_assert_eq(rn_op_attr_index(def, RN_STR("")), -1);
  cr_assert_eq(rn_op_attr_index(def, RN_STR("T\0T")), -1);
  cr_assert(rn_dtypes_has(def->attrs[2].allowed_set, RN_FLOAT));
  cr_assert_not(rn_dtypes_has(def->attrs[2].allowed_set, RN_STRING));
}

// Registration: enough definitions that the table has to grow, found by readers meanwhile.

enum { ADDED = 2000 };
static char added_names[ADDED][16];
static rn_op_def_t added[ADDED];

static void* look_up(void* arg) {
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < rn_builtin_op_count; i += 7) {
      if (rn_op_find(rn_str(rn_builtin_ops[i]->name)) != rn_builtin_ops[i]) *(bool*)arg = true;
    }
  }
  return NULL;
}

static rn_status_t check_order(const rn_op_def_t* def, void* arg) {
  const rn_op_def_t** last = arg;
  if (*last && strcmp((*last)->name, def->name) >= 0) return rn_internal("%s", def->name);
  *last = def;
  return RN_OK;
}

Test(op_register, adds_while_others_read) {
  pthread_t reader;
  bool lost = false;
  cr_assert_eq(pthread_create(&reader, NULL, look_up, &lost), 0);
  for (int i = 0; i < ADDED; i++) {
    snprintf(added_names[i], sizeof added_names[i], "Own%d", i * 7919 % ADDED);
    added[i] = (rn_op_def_t){.name = added_names[i], .shape = rn_shape_fn_unknown};
    OK(rn_op_register(&added[i]));
  }
  pthread_join(reader, NULL);
  cr_assert_not(lost);
  for (int i = 0; i < ADDED; i++) cr_assert_eq(rn_op_find(rn_str(added_names[i])), &added[i]);
  const rn_op_def_t* last = NULL;
  OK(rn_op_each(check_order, &last));
}

Test(op_register, takes_equal_and_refuses_different) {
  static const rn_arg_def_t in = {
      .name = "x", .type = RN_FLOAT, .type_attr = -1, .number_attr = -1, .type_list_attr = -1};
  static const rn_op_def_t one = {.name = "Twice", .shape = rn_shape_fn_unknown},
                           same = {.name = "Twice", .shape = rn_shape_fn_unknown},
                           other = {.name = "Twice",
                                    .input_count = 1,
                                    .inputs = &in,
                                    .shape = rn_shape_fn_unknown},
                           nameless = {.shape = rn_shape_fn_unknown};
  OK(rn_op_register(&one));
  OK(rn_op_register(&one));
  OK(rn_op_register(&same));
  rn_status_t status = rn_op_register(&other);
  cr_assert_eq(rn_status_code(status), RN_CODE_ALREADY_EXISTS);
  cr_assert_str_eq(rn_status_message(status), "Op with name Twice");
  rn_status_free(status);
  status = rn_op_register(&nameless);
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  rn_status_free(status);
}

Test(op_proto, add_is_stocks_bytes) {
  static const unsigned char expected[] = {
      0x0a, 0x03, 0x41, 0x64, 0x64, 0x12, 0x06, 0x0a, 0x01, 0x78, 0x22, 0x01, 0x54, 0x12, 0x06,
      0x0a, 0x01, 0x79, 0x22, 0x01, 0x54, 0x1a, 0x06, 0x0a, 0x01, 0x7a, 0x22, 0x01, 0x54, 0x22,
      0x1b, 0x0a, 0x01, 0x54, 0x12, 0x04, 0x74, 0x79, 0x70, 0x65, 0x3a, 0x10, 0x0a, 0x0e, 0x32,
      0x0c, 0x0e, 0x13, 0x01, 0x02, 0x04, 0x06, 0x05, 0x03, 0x09, 0x08, 0x12, 0x07};
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_op_write_proto(&buf, rn_op_find(RN_STR("Add")));
  cr_assert_eq(buf.size, sizeof expected);
  cr_assert_arr_eq(buf.data, expected, sizeof expected);
  rn_strbuf_clear(&buf);
}

// Values that shapes are computed from.

typedef struct rn_fixture_t {
  rn_arena_t arena;
  rn_shape_ctx_t ctx;
  rn_shape_t inputs[4], outputs[2];
  rn_dtype_t types[4];
  const rn_tensor_t* values[4];
  rn_partial_t partials[4];
  rn_handle_data_t handles[4], output_handles[2];
  rn_attr_value_t attrs[16];
} rn_fixture_t;

static void setup(rn_fixture_t* f, const char* op, int inputs) {
  memset(f, 0, sizeof *f);
  rn_arena_init(&f->arena, rn_allocator_default());
  f->ctx = (rn_shape_ctx_t){.op = rn_op_find(rn_str(op)), .arena = &f->arena};
  for (int i = 0; i < f->ctx.op->attr_count; i++) f->attrs[i] = f->ctx.op->attrs[i].default_value;
  for (int i = 0; i < 4; i++) {
    f->types[i] = RN_INT32;
    f->inputs[i] = RN_SHAPE_SCALAR;
  }
  f->outputs[0] = f->outputs[1] = RN_SHAPE_UNKNOWN;
  f->ctx.attrs = f->attrs;
  f->ctx.input_count = inputs;
  f->ctx.inputs = f->inputs;
  f->ctx.input_types = f->types;
  f->ctx.input_values = f->values;
  f->ctx.input_partials = f->partials;
  f->ctx.input_handles = f->handles;
  f->ctx.output_count = f->ctx.op->output_count;
  f->ctx.outputs = f->outputs;
  f->ctx.output_handles = f->output_handles;
}

static void give_scalar(rn_fixture_t* f, int i, const int64_t* value) {
  f->partials[i] = (rn_partial_t){true, true, 1, value};
}

static void give_vector(rn_fixture_t* f, int i, int count, const int64_t* values) {
  static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  f->partials[i] = (rn_partial_t){true, false, count, values};
  f->inputs[i] = (rn_shape_t){1, &sizes[count]};
}

static void expect_values(rn_fixture_t* f, bool is_scalar, int count, const int64_t* values) {
  rn_status_t status = rn_shape_infer(&f->ctx);
  cr_assert(rn_ok(status), "%s", rn_status_message(status));
  const rn_partial_t* out = &f->ctx.output_partial;
  cr_assert(out->is_known);
  cr_assert_eq(out->is_scalar, is_scalar);
  cr_assert_eq(out->count, count);
  if (count) cr_assert_arr_eq(out->values, values, (size_t)count * sizeof *values);
  rn_arena_clear(&f->arena);
}

#define UNKNOWN RN_UNKNOWN_VALUE

Test(shape_values, shape_gives_what_is_known) {
  rn_fixture_t f;
  static const int64_t dims[] = {2, RN_UNKNOWN, 3};
  setup(&f, "Shape", 1);
  f.inputs[0] = (rn_shape_t){3, dims};
  expect_values(&f, false, 3, (const int64_t[]){2, UNKNOWN, 3});
}

Test(shape_values, pack_joins_scalars) {
  rn_fixture_t f;
  static const int64_t two = 2, five = 5;
  setup(&f, "Pack", 3);
  give_scalar(&f, 0, &two);
  give_scalar(&f, 2, &five);
  expect_values(&f, false, 3, (const int64_t[]){2, UNKNOWN, 5});
}

Test(shape_values, strided_slice_takes_elements) {
  rn_fixture_t f;
  static const int64_t in[] = {7, 8, UNKNOWN, 10}, begin[] = {-1}, end[] = {0}, stride[] = {-2};
  setup(&f, "StridedSlice", 4);
  give_vector(&f, 0, 4, in);
  give_vector(&f, 1, 1, begin);
  give_vector(&f, 2, 1, end);
  give_vector(&f, 3, 1, stride);
  expect_values(&f, false, 2, (const int64_t[]){10, 8});
}

Test(shape_values, strided_slice_takes_one) {
  rn_fixture_t f;
  static const int64_t in[] = {7, 8, 9}, begin[] = {-2}, end[] = {-1}, stride[] = {1};
  setup(&f, "StridedSlice", 4);
  f.attrs[rn_op_attr_index(f.ctx.op, RN_STR("shrink_axis_mask"))].i = 1;
  give_vector(&f, 0, 3, in);
  give_vector(&f, 1, 1, begin);
  give_vector(&f, 2, 1, end);
  give_vector(&f, 3, 1, stride);
  expect_values(&f, true, 1, (const int64_t[]){8});
}

Test(shape_values, arithmetic_follows_values) {
  static const struct {
    const char* op;
    int64_t a, b, result;
  } rows[] = {
      {"Add", 7, -2, 5},
      {"AddV2", 1, 1, 2},
      {"Sub", 7, 9, -2},
      {"Mul", 7, 3, 21},
      {"FloorDiv", -7, 2, -4},
      {"Div", -7, 2, -3},
      {"FloorMod", -7, 3, 2},
      {"Maximum", 3, 4, 4},
      {"Minimum", 3, 4, 3},
      {"FloorDiv", 7, 0, UNKNOWN},
      {"Mul", INT32_MAX, 2, UNKNOWN},
      {"Add", UNKNOWN, 1, UNKNOWN},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rn_fixture_t f;
    setup(&f, rows[i].op, 2);
    give_scalar(&f, 0, &rows[i].a);
    give_scalar(&f, 1, &rows[i].b);
    expect_values(&f, true, 1, &rows[i].result);
  }
}

Test(shape_values, prod_of_a_shape) {
  rn_fixture_t f;
  static const int64_t in[] = {2, 3, 4}, axis[] = {0};
  setup(&f, "Prod", 2);
  give_vector(&f, 0, 3, in);
  give_vector(&f, 1, 1, axis);
  expect_values(&f, true, 1, (const int64_t[]){24});
}

Test(shape_values, range_counts) {
  rn_fixture_t f;
  static const int64_t start = 5, limit = -2, delta = -3;
  setup(&f, "Range", 3);
  give_scalar(&f, 0, &start);
  give_scalar(&f, 1, &limit);
  give_scalar(&f, 2, &delta);
  expect_values(&f, false, 3, (const int64_t[]){5, 2, -1});
}

Test(shape_values, gather_picks_sizes) {
  rn_fixture_t f;
  static const int64_t in[] = {7, UNKNOWN, 9}, at[] = {2, 1, 5}, axis = 0;
  setup(&f, "GatherV2", 3);
  give_vector(&f, 0, 3, in);
  give_vector(&f, 1, 3, at);
  give_scalar(&f, 2, &axis);
  expect_values(&f, false, 3, (const int64_t[]){9, UNKNOWN, UNKNOWN});
}

// A shape function meets failed allocations with a status.
Test(shape_values, survives_no_memory) {
  for (int64_t n = 1; n < 20; n++) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = n};
    static const int64_t in[] = {7, 8, 9}, begin[] = {0}, end[] = {2}, stride[] = {1};
    rn_fixture_t f;
    setup(&f, "StridedSlice", 4);
    rn_arena_init(&f.arena, rn_allocator_counting(&counting));
    give_vector(&f, 0, 3, in);
    give_vector(&f, 1, 1, begin);
    give_vector(&f, 2, 1, end);
    give_vector(&f, 3, 1, stride);
    rn_status_t status = rn_shape_infer(&f.ctx);
    cr_assert(rn_ok(status) || rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_arena_clear(&f.arena);
    cr_assert_eq(counting.live_blocks, 0);
  }
}
