// Encoding from structs and with the writer; decoding returns the same values.
#include "wire/encode.h"

#include "proto/config.pb.h"
#include "proto/graph.pb.h"
#include "proto/graph_debug_info.pb.h"
#include "util.h"
#include "wire/decode.h"
#include "wire/writer.h"

static rn_arena_t arena;
static rn_strbuf_t out;
static char bytes[4096];

static void set_up(void) {
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_init(&out, rn_allocator_system());
}
static void tear_down(void) {
  rn_arena_clear(&arena);
  rn_strbuf_clear(&out);
}

TestSuite(encode, .init = set_up, .fini = tear_down);

#define ASSERT_BYTES(hex)                                                   \
  do {                                                                      \
    rn_str_t expected_ = from_hex(hex, bytes), got_ = rn_strbuf_view(&out); \
    cr_assert_eq(got_.size, expected_.size, "%zu bytes", got_.size);        \
    cr_assert_arr_eq(got_.data, expected_.data, expected_.size);            \
  } while (0)

Test(encode, by_number_and_without_zeros) {
  rn_pb_AttrValue_t value = {.value_case = rn_pb_AttrValue_type_field, .type = rn_pb_DT_FLOAT};
  rn_pb_NodeDef_AttrEntry_t attr = {RN_STR("T"), &value};
  rn_str_t inputs[] = {RN_STR("b"), RN_STR("^c")};
  rn_pb_NodeDef_t node = {.op = RN_STR("Op"), .name = RN_STR("a")};
  node.input.items = inputs;
  node.input.count = 2;
  node.attr.items = &attr;
  node.attr.count = 1;
  OK(RN_PB_ENCODE(NodeDef, &node, NULL, &out));
  ASSERT_BYTES("0a0161 12024f70 1a0162 1a025e63 2a07 0a0154 12023001");
}

Test(encode, presence) {
  rn_pb_AttrValue_t zero = {.value_case = rn_pb_AttrValue_i_field};
  OK(RN_PB_ENCODE(AttrValue, &zero, NULL, &out));
  ASSERT_BYTES("1800");
  out.size = 0;
  rn_pb_AttrValue_t no_message = {.value_case = rn_pb_AttrValue_shape_field};
  OK(RN_PB_ENCODE(AttrValue, &no_message, NULL, &out));
  ASSERT_BYTES("3a00");
  out.size = 0;
  rn_pb_GraphDebugInfo_FileLineCol_t at = {.has_col = true, .line = 4};
  OK(RN_PB_ENCODE(GraphDebugInfo_FileLineCol, &at, NULL, &out));
  ASSERT_BYTES("1800");
  out.size = 0;
  // A map entry has both of its fields.
  rn_pb_ConfigProto_DeviceCountEntry_t entry = {0};
  rn_pb_ConfigProto_t config = {0};
  config.device_count.items = &entry;
  config.device_count.count = 1;
  OK(RN_PB_ENCODE(ConfigProto, &config, NULL, &out));
  ASSERT_BYTES("0a04 0a00 1000");
}

Test(encode, negative_numbers_and_reals) {
  int64_t i[] = {-1, INT64_MIN, 300};
  float f[] = {1.0f, -0.0f};
  rn_pb_AttrValue_ListValue_t list = {0};
  list.i.items = i;
  list.i.count = 3;
  list.f.items = f;
  list.f.count = 2;
  OK(RN_PB_ENCODE(AttrValue_ListValue, &list, NULL, &out));
  ASSERT_BYTES("1a16 ffffffffffffffffff01 80808080808080808001 ac02 2208 0000803f 00000080");
  out.size = 0;
  rn_pb_GPUOptions_t minus_zero = {.per_process_gpu_memory_fraction = -0.0};
  OK(RN_PB_ENCODE(GPUOptions, &minus_zero, NULL, &out));
  ASSERT_BYTES("09 0000000000000080");
  out.size = 0;
  rn_pb_OptimizerOptions_t options = {.opt_level = rn_pb_OptimizerOptions_L0};
  OK(RN_PB_ENCODE(OptimizerOptions, &options, NULL, &out));
  ASSERT_BYTES("18 ffffffffffffffffff01");
}

Test(encode, maps_sorted_once_each) {
  rn_pb_ConfigProto_DeviceCountEntry_t entries[] = {
      {RN_STR("GPU"), 2}, {RN_STR("CPU"), 1}, {RN_STR("C"), 4}, {RN_STR("CPU"), 3}};
  rn_pb_ConfigProto_t config = {0};
  config.device_count.items = entries;
  config.device_count.count = 4;
  OK(RN_PB_ENCODE(ConfigProto, &config, &(rn_pb_encode_options_t){.sort_maps = true}, &out));
  ASSERT_BYTES("0a05 0a0143 1004 0a07 0a03435055 1003 0a07 0a03475055 1002");
  out.size = 0;
  OK(RN_PB_ENCODE(ConfigProto, &config, NULL, &out));
  cr_assert_eq(out.data[4], 'G');
}

Test(encode, long_content_makes_room_for_its_length) {
  // Lengths around each size of a varint, nested.
  static const size_t sizes[] = {0, 1, 120, 127, 128, 129, 16380, 16383, 16384, 2097151, 2097152};
  char* data = calloc(1, 2097152);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    out.size = 0;
    size_t outer = rn_pb_begin(&out, 1), inner = rn_pb_begin(&out, 1);
    rn_strbuf_append_n(&out, data, sizes[i]);
    rn_pb_end(&out, inner);
    rn_pb_end(&out, outer);
    OK(rn_strbuf_status(&out));
    rn_pb_GraphDef_t* graph = NULL;
    OK(RN_PB_DECODE(GraphDef, rn_strbuf_view(&out), NULL, &arena, &graph));
    cr_assert_eq(graph->node.items[0].name.size, sizes[i]);
    cr_assert_eq(out.data[out.size], 0);
  }
  free(data);
}

Test(encode, writer_writes_what_the_encoder_does) {
  size_t node = rn_pb_begin(&out, rn_pb_GraphDef_node_field);
  rn_pb_put_str(&out, rn_pb_NodeDef_name_field, RN_STR("a"));
  size_t attr = rn_pb_begin(&out, rn_pb_NodeDef_attr_field);
  rn_pb_put_str(&out, 1, RN_STR("f"));
  size_t value = rn_pb_begin(&out, 2);
  rn_pb_put_float(&out, rn_pb_AttrValue_f_field, 0.5f);
  rn_pb_end(&out, value);
  rn_pb_end(&out, attr);
  rn_pb_end(&out, node);
  size_t versions = rn_pb_begin(&out, rn_pb_GraphDef_versions_field);
  rn_pb_put_uint(&out, rn_pb_VersionDef_producer_field, 1987);
  rn_pb_end(&out, versions);
  rn_pb_GraphDef_t* graph = NULL;
  OK(RN_PB_DECODE(GraphDef, rn_strbuf_view(&out), NULL, &arena, &graph));
  cr_assert_eq(graph->node.items[0].attr.items[0].value->f, 0.5f);
  cr_assert_eq(graph->versions->producer, 1987);
  rn_strbuf_t again;
  rn_strbuf_init(&again, rn_allocator_system());
  OK(RN_PB_ENCODE(GraphDef, graph, NULL, &again));
  ASSERT_STR(rn_strbuf_view(&again), rn_strbuf_view(&out));
  rn_strbuf_clear(&again);
}

Test(encode, failed_allocation_leaves_the_old_content) {
  rn_pb_NodeDef_t node = {.name = RN_STR("a name of some length that fills the buffer up")};
  for (int64_t n = 1; n < 3; ++n) {
    rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = n};
    rn_strbuf_t buf;
    rn_strbuf_init(&buf, rn_allocator_counting(&counting));
    rn_status_t status = RN_OK;
    size_t done = 0;
    for (; rn_ok(status); ++done) status = RN_PB_ENCODE(NodeDef, &node, NULL, &buf);
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    cr_assert_eq(buf.size, (done - 1) * (node.name.size + 2));
    rn_status_free(status);
    rn_strbuf_clear(&buf);
    cr_assert_eq(counting.live_blocks, 0);
  }
}

Test(encode, endless_nesting_is_refused) {
  rn_pb_FullTypeDef_t loop = {0};
  loop.args.items = &loop;
  loop.args.count = 1;
  FAILS_WITH(RN_PB_ENCODE(FullTypeDef, &loop, NULL, &out), INVALID_ARGUMENT, "too deep");
  cr_assert_eq(out.size, 0);
}
