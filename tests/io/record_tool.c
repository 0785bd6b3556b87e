// Records and Examples for the test against stock TensorFlow (record_stock_test.py):
//
//   record_tool write PATH COMPRESSION    writes the records on stdin, one per line, in hexadecimal
//   record_tool read PATH COMPRESSION     prints the records in the same form
//   record_tool make PATH                 writes the Examples on stdin, one per line, in JSON
//   record_tool parse PATH                prints label (int64, dense), image (bytes, dense) and v
//                                         (float, sparse) of the Examples in a file
#include <stdio.h>
#include <stdlib.h>

#include "io/record.h"
#include "runnel/input.h"
#include "session/session.h"
#include "tensor/tstring.h"

static void must(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  exit(1);
}

static rn_record_writer_t* open_writer(const char* path, const char* compression) {
  rn_sink_options_t options = {0};
  rn_record_writer_t* writer = NULL;
  if (!rn_record_compression_from_name(rn_str(compression), &options.compression)) exit(2);
  must(rn_record_writer_open(rn_env_system(), path, &options, &writer));
  return writer;
}

static void write_records(const char* path, const char* compression) {
  rn_record_writer_t* writer = open_writer(path, compression);
  char* line = NULL;
  size_t room = 0;
  ssize_t size;
  while ((size = getline(&line, &room, stdin)) > 0) {
    size_t count = (size_t)size / 2;
    for (size_t i = 0; i < count; ++i) {
      unsigned byte = 0;
      if (sscanf(line + 2 * i, "%2x", &byte) != 1) exit(2);
      line[i] = (char)byte;
    }
    must(rn_record_writer_write(writer, rn_str_n(line, count)));
  }
  free(line);
  must(rn_record_writer_close(writer));
}

static void print_hex(rn_str_t bytes) {
  for (size_t i = 0; i < bytes.size; ++i) printf("%02x", (uint8_t)bytes.data[i]);
  putchar('\n');
}

static rn_record_reader_t* open_reader(const char* path, const char* compression) {
  rn_compression_t kind;
  rn_record_reader_t* reader = NULL;
  if (!rn_record_compression_from_name(rn_str(compression), &kind)) exit(2);
  must(rn_record_reader_open(rn_env_system(), path, kind, 0, &reader));
  return reader;
}

static void read_records(const char* path, const char* compression) {
  rn_record_reader_t* reader = open_reader(path, compression);
  rn_str_t record;
  for (bool is_end = false;;) {
    must(rn_record_reader_next(reader, &record, &is_end));
    if (is_end) break;
    print_hex(record);
  }
  rn_record_reader_close(reader);
}

// A step with one string fed.
static void run(rn_scope_t* s, rn_edge_t feed, rn_str_t text, const rn_edge_t* fetches, int count,
                rn_tensor_t* out) {
  rn_session_options_t options;
  rn_session_t* session = NULL;
  rn_tensor_t value;
  if (!rn_scope_ok(s)) {
    fprintf(stderr, "%s\n", rn_scope_message(s));
    exit(1);
  }
  rn_session_options_init(&options);
  must(rn_session_create(rn_scope_graph(s), &options, rn_env_system(), rn_allocator_system(),
                         &session));
  must(rn_tensor_create(rn_allocator_system(), RN_STRING, RN_SHAPE_SCALAR, &value));
  if (!rn_tstring_assign(RN_DATA(&value, rn_tstring_t), text.data, text.size)) exit(1);
  const rn_tensor_t* feeds[] = {&value};
  rn_signature_t signature = {
      .feeds = &feed, .feed_count = 1, .fetches = fetches, .fetch_count = count};
  must(rn_session_run(session, &signature, feeds, out, NULL));
  rn_tensor_clear(&value);
  rn_session_destroy(session);
}

static void make_examples(rn_scope_t* s, const char* path) {
  rn_record_writer_t* writer = open_writer(path, "");
  rn_edge_t text = rn_Placeholder(s, RN_STRING), example = rn_DecodeJSONExample(s, text);
  char* line = NULL;
  size_t room = 0;
  ssize_t size;
  while ((size = getline(&line, &room, stdin)) > 0) {
    rn_tensor_t out = {0};
    run(s, text, rn_str_n(line, (size_t)size - 1), &example, 1, &out);
    must(rn_record_writer_write(writer, rn_tstring_view(RN_DATA(&out, rn_tstring_t))));
    rn_tensor_clear(&out);
  }
  free(line);
  must(rn_record_writer_close(writer));
}

static void parse_examples(rn_scope_t* s, const char* path) {
  static const char* const names[] = {"label", "image", "v"};
  static const int64_t none = 0;
  const int64_t* shapes[] = {NULL, NULL};
  const int ranks[] = {0, 0}, type = RN_FLOAT;
  rn_edge_t text = rn_Placeholder(s, RN_STRING), empty = rn_const_strings(s, names, 0);
  rn_edge_t defaults[] = {rn_const(s, RN_INT64, &none, 1, NULL), empty};
  rn_ParseExampleV2_out_t parsed = rn_ParseExampleV2(
      s, text, empty, rn_const_strings(s, names + 2, 1), rn_const_strings(s, names, 2), empty,
      defaults, 2, 1, &type, 1, NULL, 0, NULL, 0, shapes, ranks, 2);
  rn_edge_t fetches[] = {rn_edge_at(parsed.dense_values, 0), rn_edge_at(parsed.dense_values, 1),
                         rn_edge_at(parsed.sparse_values, 0)};
  rn_record_reader_t* reader = open_reader(path, "");
  rn_str_t record;
  for (bool is_end = false;;) {
    rn_tensor_t out[3] = {0};
    must(rn_record_reader_next(reader, &record, &is_end));
    if (is_end) break;
    run(s, text, record, fetches, 3, out);
    printf("%lld", (long long)*RN_DATA(&out[0], int64_t));
    for (int64_t i = 0; i < out[2].count; ++i) printf(" %.9g", RN_DATA(&out[2], float)[i]);
    putchar(' ');
    print_hex(rn_tstring_view(RN_DATA(&out[1], rn_tstring_t)));
    for (int i = 0; i < 3; ++i) rn_tensor_clear(&out[i]);
  }
  rn_record_reader_close(reader);
}

int main(int argc, char** argv) {
  const char* verb = argc > 2 ? argv[1] : "";
  rn_graph_t* graph = NULL;
  if (argc == 4 && !strcmp(verb, "write")) return write_records(argv[2], argv[3]), 0;
  if (argc == 4 && !strcmp(verb, "read")) return read_records(argv[2], argv[3]), 0;
  must(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* s = rn_scope_create(graph);
  int code = 0;
  if (argc == 3 && !strcmp(verb, "make"))
    make_examples(s, argv[2]);
  else if (argc == 3 && !strcmp(verb, "parse"))
    parse_examples(s, argv[2]);
  else
    code = 2;
  rn_scope_destroy(s);
  rn_graph_release(graph);
  return code;
}
