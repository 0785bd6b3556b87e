// Fuzzes the parsing ops: Example and SequenceExample messages, their JSON, CSV lines, text in
// charsets, messages by descriptor, and serialized sparse tensors. The first byte selects the op;
// the rest is split into two messages.
#include "fuzz/util.h"
#include "graph/graph.h"
#include "runnel/input.h"
#include "tensor/tstring.h"

typedef struct parse_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_edge_t text;  // fed: two strings
  rn_edge_t fetches[64];
  int fetch_count;
} parse_t;

static void want(parse_t* p, rn_node_t* node) {
  for (int i = 0; node && i < rn_node_output_count(node); ++i)
    p->fetches[p->fetch_count++] = (rn_edge_t){node, i};
}

static rn_edge_t keys(parse_t* p, const char* const* names, int count) {
  return rn_const_strings(p->s, names, count);
}

static const char* const abc[] = {"a", "b", "c"};
static const int types[] = {RN_FLOAT, RN_INT64, RN_STRING};
static const int64_t one_dim[] = {1}, open_dim[] = {-1};
static const int64_t* const shapes[] = {open_dim, one_dim};
static const int ranks[] = {1, 1};

static void build_example(parse_t* p) {
  static const int splits[] = {RN_INT32, RN_INT64, RN_INT64};
  const char* const dense_keys[] = {"b", "a"};
  const int64_t zero = 0;
  const float half = 0.5f;
  rn_edge_t defaults[] = {rn_const(p->s, RN_INT64, one_dim, 1, &zero),
                          rn_const(p->s, RN_FLOAT, one_dim, 1, &half)};
  want(p, rn_ParseExampleV2(p->s, p->text, keys(p, abc, 0), keys(p, abc, 3), keys(p, dense_keys, 2),
                            keys(p, abc, 3), defaults, 2, 3, types, 3, types, 3, splits, 3, shapes,
                            ranks, 2)
              .dense_values.node);
}

static void build_sequence(parse_t* p) {
  const bool empty[] = {true};
  const int64_t count = 1;
  static const int splits[] = {RN_INT64, RN_INT64, RN_INT64};
  rn_edge_t may_miss = rn_const(p->s, RN_BOOL, &count, 1, empty);
  want(p, rn_ParseSequenceExampleV2(
              p->s, p->text, keys(p, abc, 0), keys(p, abc, 3), keys(p, abc, 0), keys(p, abc, 3),
              keys(p, abc, 3), keys(p, abc, 1), keys(p, abc, 3), may_miss, NULL, 0,
              .Ncontext_sparse = 3, .context_sparse_types = RN_LIST(types, 3),
              .context_ragged_value_types = RN_LIST(types, 3),
              .context_ragged_split_types = RN_LIST(splits, 3), .Nfeature_list_sparse = 3,
              .feature_list_sparse_types = RN_LIST(types, 3), .Nfeature_list_dense = 1,
              .feature_list_dense_types = RN_LIST(types, 1),
              .feature_list_dense_shapes = RN_SHAPE_LIST(&shapes[1], ranks, 1),
              .feature_list_ragged_value_types = RN_LIST(types, 3),
              .feature_list_ragged_split_types = RN_LIST(splits, 3))
              .feature_list_dense_values.node);
}

static void build_csv(parse_t* p) {
  const int64_t zero = 0;
  const float half = 0.5f;
  rn_edge_t defaults[] = {rn_const(p->s, RN_INT64, one_dim, 1, &zero),
                          rn_const(p->s, RN_FLOAT, one_dim, 1, &half), keys(p, abc, 1)};
  want(p, rn_DecodeCSV(p->s, p->text, defaults, 3).node);
}

static void build_other(parse_t* p, int which) {
  rn_edge_t edge =
      which == 0   ? rn_DecodeJSONExample(p->s, p->text)
      : which == 1 ? rn_DecodeCompressed(p->s, p->text, .compression_type = "ZLIB")
      : which == 2
          ? rn_DecodeRaw(p->s, p->text, RN_INT16)
          : rn_ParseTensor(p->s, rn_ReduceJoin(p->s, p->text, rn_const_int32(p->s, 0)), RN_FLOAT);
  want(p, edge.node);
}

static void build_charset(parse_t* p, int which) {
  static const char* const names[] = {"UTF-8", "UTF-16", "UTF-32LE", "EUC-JP", "GB18030"};
  const char* name = names[which];
  want(p, rn_UnicodeDecodeWithOffsets(p->s, p->text, name).char_values.node);
  want(p, rn_UnicodeTranscode(p->s, p->text, name, "UTF-8", .errors = "ignore").node);
}

// The first message is the descriptor; the second is of type p.M, which the descriptor may define.
static void build_message(parse_t* p, rn_str_t descriptor) {
  static const char* const names[] = {"i", "s"};
  static const int kinds[] = {RN_INT32, RN_STRING};
  char source[4096];
  size_t size = descriptor.size < 4000 ? descriptor.size : 4000;
  memcpy(source, "bytes://", 8);
  memcpy(source + 8, descriptor.data, size);
  source[8 + size] = '\0';
  want(p, rn_DecodeProtoV2(p->s, p->text, "p.M", names, 2, kinds, 2, .descriptor_source = source)
              .sizes.node);
}

static void build_sparse(parse_t* p) {
  static const int32_t three[] = {0, 1, 1};
  const int64_t count = 3;
  rn_edge_t parts = rn_Gather(p->s, p->text, rn_const(p->s, RN_INT32, &count, 1, three));
  want(p, rn_DeserializeSparse(p->s, parts, RN_FLOAT).sparse_indices.node);
}

static void build(parse_t* p, int choice, rn_str_t first) {
  p->text = rn_Placeholder(p->s, RN_STRING);
  if (choice == 0)
    build_example(p);
  else if (choice == 1)
    build_sequence(p);
  else if (choice == 2)
    build_csv(p);
  else if (choice < 7)
    build_other(p, choice - 3);
  else if (choice < 12)
    build_charset(p, choice - 7);
  else if (choice == 12)
    build_message(p, first);
  else
    build_sparse(p);
  fuzz_check(rn_scope_ok(p->s));
}

static void run(parse_t* p, rn_str_t a, rn_str_t b) {
  int64_t two = 2;
  rn_tensor_t text, out[64] = {0};
  fuzz_must(rn_tensor_create(rn_allocator_system(), RN_STRING, (rn_shape_t){1, &two}, &text));
  fuzz_check(rn_tstring_assign(&RN_DATA(&text, rn_tstring_t)[0], a.data, a.size));
  fuzz_check(rn_tstring_assign(&RN_DATA(&text, rn_tstring_t)[1], b.data, b.size));
  rn_session_options_t options;
  rn_env_t env = fuzz_env();
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_session_t* session = NULL;
  fuzz_must(rn_session_create(p->graph, &options, &env, rn_allocator_system(), &session));
  rn_signature_t signature = {
      .feeds = &p->text, .feed_count = 1, .fetches = p->fetches, .fetch_count = p->fetch_count};
  const rn_tensor_t* feeds[] = {&text};
  rn_status_free(rn_session_run(session, &signature, feeds, out, NULL));
  for (int i = 0; i < p->fetch_count; ++i) rn_tensor_clear(&out[i]);
  rn_session_destroy(session);
  rn_tensor_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t bytes = {data, size};
  parse_t p = {0};
  int choice = fuzz_pick(&bytes, 14);
  size_t cut = fuzz_byte(&bytes);
  rn_str_t a = fuzz_take(&bytes, cut * bytes.left / 255), b = fuzz_take(&bytes, size);
  fuzz_must(rn_graph_create(rn_allocator_system(), &p.graph));
  p.s = rn_scope_create(p.graph);
  fuzz_check(p.s != NULL);
  build(&p, choice, a);
  run(&p, a, b);
  rn_scope_destroy(p.s);
  rn_graph_release(p.graph);
  return 0;
}
