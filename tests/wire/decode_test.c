// Decoding: every kind of field, and errors.
#include "wire/decode.h"

#include <stdio.h>

#include "proto/attr_value.pb.h"
#include "proto/function.pb.h"
#include "proto/graph.pb.h"
#include "proto/graph_debug_info.pb.h"
#include "proto/messages.pb.h"
#include "proto/rewriter_config.pb.h"
#include "util.h"

static rn_arena_t arena;
static char bytes[4096];

static void set_up(void) { rn_arena_init(&arena, rn_allocator_system()); }
static void tear_down(void) { rn_arena_clear(&arena); }

TestSuite(decode, .init = set_up, .fini = tear_down);

#define DECODE(type, hex, out) RN_PB_DECODE(type, from_hex(hex, bytes), NULL, &arena, out)

Test(decode, node) {
  rn_pb_NodeDef_t* node = NULL;
  OK(DECODE(NodeDef, "0a0161 1202 4f70 1a0162 1a025e63 2a09 0a0154 1204 3001 0800", &node));
  ASSERT_STR(node->name, RN_STR("a"));
  ASSERT_STR(node->op, RN_STR("Op"));
  cr_assert_eq(node->input.count, 2);
  ASSERT_STR(node->input.items[1], RN_STR("^c"));
  cr_assert_eq(node->attr.count, 1);
  ASSERT_STR(node->attr.items[0].key, RN_STR("T"));
  cr_assert_eq(node->attr.items[0].value->value_case, rn_pb_AttrValue_type_field);
  cr_assert_eq(node->attr.items[0].value->type, rn_pb_DT_FLOAT);
  cr_assert_eq(node->device.size, 0);
  cr_assert_null(node->experimental_debug_info);
  cr_assert_eq(node->name.data, bytes + 2, "strings are views");
}

Test(decode, copy_outlives_the_input) {
  rn_pb_NodeDef_t* node = NULL;
  rn_pb_limits_t limits = {.copy_bytes = true};
  OK(RN_PB_DECODE(NodeDef, from_hex("0a0161", bytes), &limits, &arena, &node));
  memset(bytes, 0, sizeof bytes);
  ASSERT_STR(node->name, RN_STR("a"));
}

Test(decode, empty_input_is_the_empty_message) {
  rn_pb_GraphDef_t* graph = NULL;
  OK(RN_PB_DECODE(GraphDef, ((rn_str_t){0}), NULL, &arena, &graph));
  cr_assert_eq(graph->node.count, 0);
  FAILS_WITH(RN_PB_DECODE(GraphDef, ((rn_str_t){NULL, 3}), NULL, &arena, &graph), INVALID_ARGUMENT,
             "no bytes");
}

Test(decode, last_scalar_wins_and_messages_merge) {
  rn_pb_GraphDef_t* graph = NULL;
  // versions { producer: 1 } versions { producer: 2 } versions { bad_consumers: [7] x 2 }
  OK(DECODE(GraphDef, "2202 0801 2202 0802 2203 1a0107 2202 1807", &graph));
  cr_assert_eq(graph->versions->producer, 2);
  cr_assert_eq(graph->versions->bad_consumers.count, 2);
  cr_assert_eq(graph->versions->bad_consumers.items[1], 7);
}

Test(decode, oneof_last_wins_and_starts_afresh) {
  rn_pb_AttrValue_t* value = NULL;
  OK(DECODE(AttrValue, "1805 120161", &value));
  cr_assert_eq(value->value_case, rn_pb_AttrValue_s_field);
  ASSERT_STR(value->s, RN_STR("a"));
  // A string's bytes must not be taken for the message that replaces it.
  OK(DECODE(AttrValue, "120161 3a02 1801", &value));
  cr_assert_eq(value->value_case, rn_pb_AttrValue_shape_field);
  cr_assert(value->shape->unknown_rank);
  // The same message member twice merges.
  OK(DECODE(AttrValue, "3a02 1200 3a02 1200", &value));
  cr_assert_eq(value->shape->dim.count, 2);
  // Zero in a oneof is there.
  OK(DECODE(AttrValue, "1800", &value));
  cr_assert_eq(value->value_case, rn_pb_AttrValue_i_field);
}

Test(decode, optional_has_presence) {
  rn_pb_GraphDebugInfo_FileLineCol_t* at = NULL;
  OK(DECODE(GraphDebugInfo_FileLineCol, "1000", &at));
  cr_assert(at->has_line && !at->has_col);
}

Test(decode, packed_and_unpacked) {
  rn_pb_AttrValue_ListValue_t* list = NULL;
  OK(DECODE(AttrValue_ListValue, "1a04 01ac0202 1803 18ffffffffffffffffff01", &list));
  cr_assert_eq(list->i.count, 5);
  const int64_t expected[] = {1, 300, 2, 3, -1};
  for (int i = 0; i < 5; ++i) cr_assert_eq(list->i.items[i], expected[i]);
  OK(DECODE(AttrValue_ListValue, "2208 0000803f 00000040 25 00004040 2a03 000102", &list));
  cr_assert_eq(list->f.count, 3);
  cr_assert_eq(list->f.items[2], 3.0f);
  cr_assert(list->b.items[2] && !list->b.items[0]);
}

Test(decode, map_value_left_out_is_empty) {
  rn_pb_NodeDef_t* node = NULL;
  OK(DECODE(NodeDef, "2a03 0a0154 2a00", &node));
  cr_assert_eq(node->attr.count, 2);
  cr_assert_eq(node->attr.items[1].value->value_case, 0);
  cr_assert_eq(node->attr.items[1].key.size, 0);
}

Test(decode, map_unique_keeps_the_later) {
  for (int count = 3; count <= 60; count += 57) {
    char text[4096] = "";
    for (int i = 0; i < count; ++i) {
      // key "a" + i % (count / 3), value { i: i }
      sprintf(text + strlen(text), "2a07 0a01%02x 120218%02x", 'A' + i % (count / 3), i);
    }
    rn_pb_NodeDef_t* node = NULL;
    OK(DECODE(NodeDef, text, &node));
    cr_assert_eq((int)node->attr.count, count);
    OK(rn_pb_map_unique(&rn_pb_NodeDef_AttrEntry_desc, (rn_pb_list_t*)&node->attr, &arena));
    cr_assert_eq((int)node->attr.count, count / 3);
    for (int i = 0; i < count / 3; ++i) {
      cr_assert_eq(node->attr.items[i].value->i, count - count / 3 + i);
    }
  }
}

Test(decode, large_field_numbers_and_unknown_fields) {
  rn_pb_RewriterConfig_t* config = NULL;
  // 100: "a"; 200: {}; 301: {}; then unknown: 99 varint, 4000 bytes, 7000 fixed64, 9000 fixed32
  OK(DECODE(RewriterConfig,
            "a20601 61 c20c00 ea1200 98067f 82fa0102 aabb c1b503 0102030405060708 "
            "c5b204 01020304 0801",
            &config));
  cr_assert_eq(config->optimizers.count, 1);
  cr_assert_eq(config->custom_optimizers.count, 1);
  cr_assert_not_null(config->post_optimization_verifier_config);
  cr_assert_eq(config->layout_optimizer, 1);
}

Test(decode, other_wire_type_is_skipped) {
  rn_pb_NodeDef_t* node = NULL;
  // name as varint, input as fixed32, attr as varint
  OK(DECODE(NodeDef, "0805 1d01020304 2801 120161", &node));
  cr_assert_eq(node->name.size, 0);
  cr_assert_eq(node->input.count, 0);
  ASSERT_STR(node->op, RN_STR("a"));
}

Test(decode, groups_are_skipped) {
  rn_pb_NodeDef_t* node = NULL;
  OK(DECODE(NodeDef, "a306 0801 a306 120161 a406 a406 120162", &node));
  ASSERT_STR(node->op, RN_STR("b"));
  FAILS_WITH(DECODE(NodeDef, "a306 0801", &node), INVALID_ARGUMENT, "group without");
  FAILS_WITH(DECODE(NodeDef, "a306 0801 ac06", &node), INVALID_ARGUMENT, "wire type");
  FAILS_WITH(DECODE(NodeDef, "a406", &node), INVALID_ARGUMENT, "wire type");
}

Test(decode, malformed) {
  static const struct {
    const char* hex;
    const char* message;
  } rows[] = {
      {"0a", "truncated varint at byte 1"},
      {"0a05 61", "length beyond the end"},
      {"0aff", "truncated varint"},
      {"0affffffffffffffffff7f", "length beyond the end"},
      {"0affffffffffffffffffff01", "more than 10 bytes"},
      {"00", "bad field number"},
      {"0700", "bad field number"},
      {"ffffffffff7f00", "bad field number"},
      {"0e", "bad wire type"},
      {"0f", "bad wire type"},
      {"2a03 0a0561", "length beyond the end"},
      {"2a08 1206 0a04 2203 000000", "length beyond"},
      {"2a09 1207 0a05 2203 000000", "packed list of a broken length"},
      {"2a06 1204 0a02 1a01 ff", "length beyond"},
      {"2a07 1205 0a03 1a01 ff", "truncated varint"},
      {"2a06 1204 2500 0000", "truncated 32-bit"},
      {"f9060102", "truncated 64-bit"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_pb_NodeDef_t* node = (void*)1;
    FAILS_WITH(DECODE(NodeDef, rows[i].hex, &node), INVALID_ARGUMENT, rows[i].message);
    cr_assert_null(node);
  }
}

// func { attr { value { func { attr { value ... } } } } }: three levels a turn.
static rn_str_t nested(size_t turns, rn_strbuf_t* buf) {
  char* data = malloc(turns * 15 + 1);
  size_t at = turns * 15, end = at;
  for (size_t i = 0; i < turns; ++i) {
    static const unsigned char tags[] = {0x12, 0x12, 0x52};
    for (size_t k = 0; k < sizeof tags; ++k) {
      char length[5];
      size_t size = end - at, n = 0;
      for (; size >= 0x80; size >>= 7) length[n++] = (char)(size | 0x80);
      length[n++] = (char)size;
      at -= n;
      memcpy(data + at, length, n);
      data[--at] = (char)tags[k];
    }
  }
  rn_strbuf_append_n(buf, data + at, end - at);
  free(data);
  return rn_strbuf_view(buf);
}

Test(decode, depth_is_limited) {
  rn_pb_AttrValue_t* value = NULL;
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_system());
  OK(RN_PB_DECODE(AttrValue, nested(33, &buf), NULL, &arena, &value));
  buf.size = 0;
  FAILS_WITH(RN_PB_DECODE(AttrValue, nested(34, &buf), NULL, &arena, &value), INVALID_ARGUMENT,
             "nested too deep");
  rn_pb_limits_t limits = {.max_depth = 5};
  buf.size = 0;
  FAILS_WITH(RN_PB_DECODE(AttrValue, nested(2, &buf), &limits, &arena, &value), INVALID_ARGUMENT,
             "nested too deep");
  // However deep, and whatever the caller allows: no stack overflow.
  limits.max_depth = UINT32_MAX;
  buf.size = 0;
  FAILS_WITH(RN_PB_DECODE(AttrValue, nested(300000, &buf), &limits, &arena, &value),
             INVALID_ARGUMENT, "nested too deep");
  rn_strbuf_clear(&buf);
}

Test(decode, groups_nest_within_the_limit) {
  rn_pb_NodeDef_t* node = NULL;
  enum { N = 1000000 };
  char* data = malloc(N);
  for (size_t i = 0; i < N; i += 2) memcpy(data + i, "\xa3\x06", 2);
  FAILS_WITH(RN_PB_DECODE(NodeDef, rn_str_n(data, N), NULL, &arena, &node), INVALID_ARGUMENT,
             "nested too deep");
  free(data);
}

Test(decode, size_is_limited) {
  rn_pb_GraphDef_t* graph = NULL;
  rn_pb_limits_t limits = {.max_bytes = 3};
  FAILS_WITH(RN_PB_DECODE(GraphDef, from_hex("0a000a00", bytes), &limits, &arena, &graph),
             RESOURCE_EXHAUSTED, "4 bytes, at most 3");
}

Test(decode, memory_is_in_proportion_to_the_input) {
  // Empty messages are the dearest bytes: 2 make a whole struct.
  enum { N = 4000000 };
  char* data = malloc(N);
  for (size_t i = 0; i < N; i += 2) memcpy(data + i, "\x42\x00", 2);  // ListValue.tensor
  rn_pb_AttrValue_ListValue_t* list = NULL;
  rn_status_t status = RN_PB_DECODE(AttrValue_ListValue, rn_str_n(data, N), NULL, &arena, &list);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  cr_assert_leq(arena.used, 64 * (size_t)N + (16u << 20) + 16);
  rn_pb_limits_t limits = {.max_arena_bytes = 4096};
  rn_arena_clear(&arena);
  FAILS_WITH(RN_PB_DECODE(AttrValue_ListValue, rn_str_n(data, N), &limits, &arena, &list),
             RESOURCE_EXHAUSTED, "more memory than allowed");
  cr_assert_leq(arena.used, 4096 + 64);
  limits.max_arena_bytes = SIZE_MAX;
  arena.limit = 1 << 20;
  status = RN_PB_DECODE(AttrValue_ListValue, rn_str_n(data, N), &limits, &arena, &list);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  arena.limit = SIZE_MAX;
  OK(RN_PB_DECODE(AttrValue_ListValue, rn_str_n(data, N / 10), &limits, &arena, &list));
  cr_assert_eq(list->tensor.count, N / 20);
  free(data);
}

Test(decode, interleaved_lists_stay_linear) {
  // Two lists that grow in turns: no run to reserve for.
  enum { N = 200000 };
  char* data = malloc(N * 4);
  for (size_t i = 0; i < N; ++i) memcpy(data + 4 * i, i % 2 ? "\x12\x02xy" : "\x3a\x02\x18\x01", 4);
  rn_pb_AttrValue_ListValue_t* list = NULL;
  OK(RN_PB_DECODE(AttrValue_ListValue, rn_str_n(data, N * 4), NULL, &arena, &list));
  cr_assert_eq(list->s.count, N / 2);
  cr_assert_eq(list->shape.count, N / 2);
  for (size_t i = 0; i < N / 2; ++i) {
    ASSERT_STR(list->s.items[i], RN_STR("xy"));
    cr_assert(list->shape.items[i].unknown_rank);
  }
  free(data);
}

Test(decode, every_allocation_may_fail) {
  char* data = malloc(40000);
  for (size_t i = 0; i < 40000; i += 4) memcpy(data + i, "\x0a\x02\x0a\x00", 4);
  bool done = false;
  for (int64_t n = 1; !done; ++n) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = n};
    rn_arena_t failing;
    rn_arena_init(&failing, rn_allocator_counting(&counting));
    rn_pb_GraphDef_t* graph = NULL;
    rn_status_t status = RN_PB_DECODE(GraphDef, rn_str_n(data, 40000), NULL, &failing, &graph);
    done = rn_ok(status);
    cr_assert_eq(graph != NULL, done);
    if (!done) cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_arena_clear(&failing);
    cr_assert_eq(counting.live_blocks, 0);
  }
  free(data);
}

Test(tables, are_sorted_and_indexed) {
  cr_assert_gt(rn_pb_message_count, 80);
  for (size_t i = 0; i < rn_pb_message_count; ++i) {
    const rn_pb_message_desc_t* desc = rn_pb_messages[i];
    for (size_t k = 0; k < desc->field_count; ++k) {
      const rn_pb_field_desc_t* field = &desc->fields[k];
      cr_assert(k == 0 || field[-1].number < field->number);
      cr_assert_eq(rn_pb_find_field(desc, field->number), field);
      cr_assert_eq(rn_pb_find_field_by_name(desc, rn_str(field->name)), field);
      cr_assert_lt(field->offset, desc->size);
    }
    cr_assert_null(rn_pb_find_field(desc, 0));
    cr_assert_null(rn_pb_find_field(desc, 63));
    cr_assert_null(rn_pb_find_field(desc, 1000));
  }
}
