// The text format: printing and parsing.
#include "wire/text.h"

#include <locale.h>
#include <math.h>

#include "proto/api_def.pb.h"
#include "proto/config.pb.h"
#include "proto/graph.pb.h"
#include "proto/meta_graph.pb.h"
#include "proto/step_stats.pb.h"
#include "util.h"

static rn_arena_t arena;
static rn_strbuf_t out;

static void set_up(void) {
  rn_arena_init(&arena, rn_allocator_system());
  rn_strbuf_init(&out, rn_allocator_system());
}
static void tear_down(void) {
  rn_arena_clear(&arena);
  rn_strbuf_clear(&out);
}

TestSuite(text, .init = set_up, .fini = tear_down);

#define PARSE(type, text, out) \
  rn_pb_parse(&rn_pb_##type##_desc, rn_str(text), NULL, &arena, (void**)(out))

Test(text, prints_as_people_expect) {
  rn_pb_NodeDef_t* node = NULL;
  OK(PARSE(NodeDef,
           "op: 'Op' name: \"a\\n\\\"\\001\\303\\251\" input: ['b', \"^c\"]"
           "attr { key: 'z' value { list { i: [1, -2] } } }"
           "attr { key: 'T' value { type: DT_FLOAT } }"
           "attr { key: 'u' value { type: 77 } } experimental_type {}",
           &node));
  OK(rn_pb_print(&rn_pb_NodeDef_desc, node, &out));
  ASSERT_STR(rn_strbuf_view(&out), RN_STR("name: \"a\\n\\\"\\001\\303\\251\"\n"
                                          "op: \"Op\"\n"
                                          "input: \"b\"\n"
                                          "input: \"^c\"\n"
                                          "attr {\n"
                                          "  key: \"T\"\n"
                                          "  value {\n"
                                          "    type: DT_FLOAT\n"
                                          "  }\n"
                                          "}\n"
                                          "attr {\n"
                                          "  key: \"u\"\n"
                                          "  value {\n"
                                          "    type: 77\n"
                                          "  }\n"
                                          "}\n"
                                          "attr {\n"
                                          "  key: \"z\"\n"
                                          "  value {\n"
                                          "    list {\n"
                                          "      i: 1\n"
                                          "      i: -2\n"
                                          "    }\n"
                                          "  }\n"
                                          "}\n"
                                          "experimental_type {\n"
                                          "}\n"));
  out.size = 0;
  OK(rn_pb_print_short(&rn_pb_AttrValue_desc, node->attr.items[0].value, &out));
  ASSERT_STR(rn_strbuf_view(&out), RN_STR("list { i: 1 i: -2 }"));
}

Test(text, numbers_in_all_writings) {
  rn_pb_AttrValue_ListValue_t* list = NULL;
  OK(PARSE(AttrValue_ListValue,
           "i: 0x7fffffffffffffff i: -0x8000000000000000 i: 0777 i: - 5 i: 0\n"
           "f: 1.5f f: .5 f: 1e3 f: -inf f: nan f: 3 f: infinity f: 1E-2 f: 0e+5\n"
           "b: true b: false b: t b: 0 b: 1 b: True type: [DT_INT32, 9, -1]",
           &list));
  const int64_t i[] = {INT64_MAX, INT64_MIN, 511, -5, 0};
  cr_assert_arr_eq(list->i.items, i, sizeof i);
  const float f[] = {1.5f, 0.5f, 1000, -INFINITY, NAN, 3, INFINITY, 0.01f, 0};
  cr_assert_eq(list->f.count, 9);
  for (int k = 0; k < 9; ++k) {
    cr_assert(list->f.items[k] == f[k] || (isnan(f[k]) && isnan(list->f.items[k])), "%d", k);
  }
  const bool b[] = {true, false, true, false, true, true};
  cr_assert_arr_eq(list->b.items, b, sizeof b);
  cr_assert_eq(list->type.items[0], rn_pb_DT_INT32);
  cr_assert_eq(list->type.items[2], -1);
}

Test(text, numbers_out_of_range) {
  static const char* const bad[] = {"i: 0x8000000000000000",
                                    "i: 9223372036854775808",
                                    "i: 1.5",
                                    "i: 08",
                                    "i: 0x",
                                    "i: x",
                                    "i:",
                                    "f: 1.2.3",
                                    "f: 0x1",
                                    "f: e5",
                                    "b: 2",
                                    "b: -1",
                                    "b: tru",
                                    "type: DT_NONE",
                                    "type: 2147483648",
                                    "type: -2147483649"};
  rn_pb_AttrValue_ListValue_t* list = NULL;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    rn_status_t status = PARSE(AttrValue_ListValue, bad[i], &list);
    cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", bad[i]);
    cr_assert_not_null(strstr(rn_status_message(status), "Invalid value for field"), "%s", bad[i]);
    rn_status_free(status);
  }
  rn_pb_VersionDef_t* versions = NULL;
  OK(PARSE(VersionDef, "producer: -2147483648 min_consumer: 2147483647", &versions));
  cr_assert_eq(versions->producer, INT32_MIN);
}

Test(text, reals_round_trip_in_any_locale) {
  static const double values[] = {0.1, 1.0 / 3, 1e300, 5e-324, 123456789.125, -2.5, 1e21, 3};
  rn_pb_GPUOptions_t options = {0};
  for (int with_comma = 0; with_comma < 2; ++with_comma) {
    if (with_comma && !setlocale(LC_ALL, "de_DE.UTF-8")) break;
    for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
      options.per_process_gpu_memory_fraction = values[i];
      out.size = 0;
      OK(rn_pb_print(&rn_pb_GPUOptions_desc, &options, &out));
      cr_assert_null(strchr(out.data, ','));
      rn_pb_GPUOptions_t* back = NULL;
      OK(PARSE(GPUOptions, out.data, &back));
      cr_assert_eq(back->per_process_gpu_memory_fraction, values[i], "%s", out.data);
    }
  }
  setlocale(LC_ALL, "C");
  rn_pb_AttrValue_t value = {.value_case = rn_pb_AttrValue_f_field, .f = 0.1f};
  out.size = 0;
  OK(rn_pb_print(&rn_pb_AttrValue_desc, &value, &out));
  ASSERT_STR(rn_strbuf_view(&out), RN_STR("f: 0.1\n"));
}

Test(text, strings) {
  rn_pb_NodeDef_t* node = NULL;
  OK(PARSE(NodeDef,
           "name: 'a' \"b\" # a comment 'x'\n  'c'\n"
           "op: '\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\'\\\"\\x41\\x4g\\101\\7\\u00e9\\U0001F600'",
           &node));
  ASSERT_STR(node->name, RN_STR("abc"));
  ASSERT_STR(node->op, RN_STR("\a\b\f\n\r\t\v\\?'\"A\x04gA\a\xc3\xa9\xf0\x9f\x98\x80"));
}

Test(text, all_kinds_of_brackets_and_separators) {
  rn_pb_GraphDef_t* graph = NULL;
  OK(PARSE(GraphDef,
           "node < name: 'a'; op: 'b', > node: { name: 'c' }, node: [{name: 'd'}, <>]\n"
           "versions { bad_consumers: [] bad_consumers: [1,2] bad_consumers: 3 }",
           &graph));
  cr_assert_eq(graph->node.count, 4);
  ASSERT_STR(graph->node.items[2].name, RN_STR("d"));
  cr_assert_eq(graph->versions->bad_consumers.count, 3);
}

Test(text, map_value_left_out_is_empty) {
  rn_pb_NodeDef_t* node = NULL;
  OK(PARSE(NodeDef, "attr { key: 'a' }", &node));
  cr_assert_not_null(node->attr.items[0].value);
}

Test(text, errors_say_where) {
  static const struct {
    const char* text;
    const char* message;
  } rows[] = {
      {"node {\n  nam: 'x'\n}",
       "tensorflow.GraphDef: 2:3: Message type has no field named \"nam\""},
      {"node {\n  name 'x'\n}", "2:8: Expected \":\"."},
      {"node {\n  name: x\n}", "2:9: Expected string."},
      {"node {", "1:7: The text ends inside a message."},
      {"node { >", "Expected identifier."},
      {"node < }", "Expected identifier."},
      {"}", "1:1: Expected identifier."},
      {"node 5", "Expected \"{\"."},
      {"[ext.name] {}", "Expected identifier."},
      {"node { name: 'a\n' }", "String literals cannot cross line boundaries."},
      {"node { name: 'a", "Unexpected end of string."},
      {"node { name: 'a\\", "Invalid escape"},
      {"node { name: '\\q' }", "Invalid escape"},
      {"node { name: '\\777' }", "Invalid escape"},
      {"node { name: '\\ud800' }", "Invalid escape"},
      {"node { name: '\\u12' }", "Invalid escape"},
      {"node { input: ['a' 'b' }", "Expected \"]\"."},
      {"node { name: 'a' name: 'b' }",
       "1:18: Non-repeated field is specified multiple times: "
       "\"name\""},
      {"versions {} versions {}", "specified multiple times"},
      {"node { attr { key: 'a' value { i: 0 b: true } } }",
       "1:37: Another member of the same oneof was specified already: \"i\""},
      {"node { attr { key: 'a' value { i: 0 i: 1 } } }", "specified multiple times"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_pb_GraphDef_t* graph = (void*)1;
    FAILS_WITH(PARSE(GraphDef, rows[i].text, &graph), INVALID_ARGUMENT, rows[i].message);
    cr_assert_null(graph);
  }
}

Test(text, depth_and_memory_are_limited) {
  enum { N = 1000000 };
  char* text = malloc(N + 1);
  for (size_t i = 0; i < N; i += 5) memcpy(text + i, "args{", 5);
  text[N] = 0;
  rn_pb_FullTypeDef_t* type = NULL;
  FAILS_WITH(PARSE(FullTypeDef, text, &type), INVALID_ARGUMENT, "too deep");
  for (size_t i = 0; i < N; i += 8) memcpy(text + i, "node {} ", 8);
  rn_pb_limits_t limits = {.max_arena_bytes = 10000};
  void* message = NULL;
  FAILS_WITH(rn_pb_parse(&rn_pb_GraphDef_desc, rn_str(text), &limits, &arena, &message),
             RESOURCE_EXHAUSTED, "more memory than allowed");
  cr_assert_leq(arena.used, 60000);
  limits = (rn_pb_limits_t){.max_bytes = 10};
  FAILS_WITH(rn_pb_parse(&rn_pb_GraphDef_desc, rn_str(text), &limits, &arena, &message),
             RESOURCE_EXHAUSTED, "at most 10");
  free(text);
}

Test(text, api_def_multiline) {
  const char* text =
      "op {\n"
      "  graph_op_name: \"Add\"\n"
      "  summary: \"x + y: <<z\"\n"
      "  description: <<END\n"
      "*NOTE*: `Add` \"quotes\" and\n"
      "\n"
      "  backslash \\.\n"
      "END\n"
      "  in_arg { name: 'x' description: <<EOT\n"
      "one line\n"
      "EOT }\n"
      "  visibility: HIDDEN\n"
      "}\n";
  OK(rn_pb_text_from_multiline(rn_str(text), &out));
  rn_pb_ApiDefs_t* defs = NULL;
  OK(PARSE(ApiDefs, out.data, &defs));
  const rn_pb_ApiDef_t* def = &defs->op.items[0];
  ASSERT_STR(def->summary, RN_STR("x + y: <<z"));
  ASSERT_STR(def->description, RN_STR("*NOTE*: `Add` \"quotes\" and\n\n  backslash \\."));
  cr_assert_eq(def->visibility, rn_pb_ApiDef_HIDDEN);
  size_t lines = 0, lines_before = 0;
  for (const char* c = out.data; *c; ++c) lines += *c == '\n';
  for (const char* c = text; *c; ++c) lines_before += *c == '\n';
  cr_assert_eq(lines, lines_before);
  out.size = 0;
  FAILS_WITH(rn_pb_text_from_multiline(RN_STR("a: <<END\nx\n"), &out), INVALID_ARGUMENT,
             "No line 'END'");
}

Test(text, multiline_leaves_plain_text_alone) {
  static const char* const rows[] = {"", "a: 1", "a: 1\n", "\n\na", "# x: <<END\n", "a: '<<END'\n"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    out.size = 0;
    OK(rn_pb_text_from_multiline(rn_str(rows[i]), &out));
    ASSERT_STR(rn_strbuf_view(&out), rn_str(rows[i]));
  }
}

// What an Any holds is shown, and read back into its bytes.
Test(text, any_shows_what_it_holds) {
  const char* text =
      "node_list {\n"
      "}\n";
  const char* any =
      "any_list {\n"
      "  value {\n"
      "    [type.googleapis.com/tensorflow.AssetFileDef] {\n"
      "      tensor_info {\n"
      "        name: \"a:0\"\n"
      "      }\n"
      "      filename: \"words\"\n"
      "    }\n"
      "  }\n"
      "  value {\n"
      "    type_url: \"type.googleapis.com/nobody.Knows\"\n"
      "    value: \"\\001\"\n"
      "  }\n"
      "}\n";
  rn_pb_CollectionDef_t* list = NULL;
  OK(PARSE(CollectionDef, text, &list));
  OK(PARSE(CollectionDef, any, &list));
  cr_assert_eq(list->any_list->value.count, 2);
  ASSERT_STR(list->any_list->value.items[0].type_url,
             RN_STR("type.googleapis.com/tensorflow.AssetFileDef"));
  ASSERT_STR(list->any_list->value.items[0].value, RN_STR("\x0a\x05\x0a\x03"
                                                          "a:0\x12\x05words"));
  out.size = 0;
  OK(rn_pb_print(&rn_pb_CollectionDef_desc, list, &out));
  ASSERT_STR(rn_strbuf_view(&out), rn_str(any));
  FAILS_WITH(PARSE(CollectionDef, "any_list { value { [x/tensorflow.Nothing] { } } }", &list),
             INVALID_ARGUMENT, "1:21: Could not find type \"x/tensorflow.Nothing\"");
  FAILS_WITH(PARSE(CollectionDef, "any_list { value { [x/tensorflow.GraphDef { } } }", &list),
             INVALID_ARGUMENT, "Expected \"]\"");
  FAILS_WITH(PARSE(CollectionDef, "node_list { [x/tensorflow.GraphDef] { } }", &list),
             INVALID_ARGUMENT, "Expected identifier");
}
