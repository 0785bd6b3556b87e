// Tests of warm-up files: every kind of request, files that are not, and records that fail.
#include "serve/front/warmup.h"

#include "io/record.h"
#include "proto/prediction_log.pb.h"
#include "tensor/tensor_proto.h"
#include "util.h"
#include "wire/encode.h"
#include "wire/text.h"

static rn_arena_t arena;
static char folder[64];
static rn_backend_t* backend;

static void set_up(void) {
  rn_arena_init(&arena, rn_allocator_default());
  serve_folder(folder);
  serve_write(folder, "assets.extra/other", RN_STR(""));
  OK(serve_load(SERVE_TWO "/00000123", rn_env_system(), &backend));
}

static void tear_down(void) {
  backend->vtable->destroy(backend);
  serve_remove(folder);
  rn_arena_clear(&arena);
}

TestSuite(warmup, .init = set_up, .fini = tear_down);

// Writes |times| times the log that |text| describes.
static void write_logs(const char* text, int times) {
  void* log = NULL;
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  OK(rn_pb_parse(&rn_pb_serving_PredictionLog_desc, rn_str(text), NULL, &arena, &log));
  OK(rn_pb_encode(&rn_pb_serving_PredictionLog_desc, log, NULL, &bytes));
  char path[200];
  snprintf(path, sizeof path, "%s/" RN_WARMUP_FILE, folder);
  rn_record_writer_t* writer = NULL;
  OK(rn_record_writer_open(rn_env_system(), path, NULL, &writer));
  for (int i = 0; i < times; ++i) OK(rn_record_writer_write(writer, rn_strbuf_view(&bytes)));
  OK(rn_record_writer_close(writer));
  rn_strbuf_clear(&bytes);
}

static rn_status_t warm_up(int iterations, int* out_count) {
  rn_warmup_options_t options = {
      .iterations = iterations, .env = rn_env_system(), .allocator = rn_allocator_default()};
  return rn_warmup_run(&options, backend, folder, out_count);
}

#define TENSOR "{ dtype: DT_FLOAT tensor_shape { dim { size: 1 } dim { size: 1 } } float_val: 1 }"
#define INPUT                                                                            \
  "input { example_list { examples { features { feature { key: 'x' value { float_list {" \
  " value: 2 } } } } } } }"
#define PREDICT "predict_log { request { inputs { key: 'x' value " TENSOR "} } }"

Test(warmup, runs_every_kind) {
  static const char* const logs[] = {
      PREDICT,
      "classify_log { request { model_spec { signature_name: 'classify_x_to_y' } " INPUT " } }",
      "regress_log { request { model_spec { signature_name: 'regress_x_to_y' } " INPUT " } }",
      "multi_inference_log { request { tasks { model_spec { signature_name: 'classify_x_to_y' } "
      "method_name: 'tensorflow/serving/classify' } tasks { model_spec { signature_name: "
      "'regress_x_to_y' } method_name: 'tensorflow/serving/regress' } " INPUT " } }",
      "session_run_log { request { feed { name: 'x:0' tensor " TENSOR " } fetch: 'y:0' } }",
      "session_run_log { request { feed { name: 'x' tensor " TENSOR
      " } fetch: 'y' tensor_name_is_alias: true } }",
      "log_metadata { }",
  };
  int count = -1;
  OK(warm_up(1, &count));
  cr_assert_eq(count, 0);  // there is no file
  for (size_t i = 0; i < sizeof logs / sizeof *logs; ++i) {
    write_logs(logs[i], 2);
    OK(warm_up(3, &count));
    cr_assert_eq(count, 2);
  }
}

Test(warmup, records_that_fail) {
  static const struct {
    const char* log;
    rn_code_t code;
    const char* message;
  } cases[] = {
      {"predict_log { request { inputs { key: 'z' value " TENSOR "} } }", RN_CODE_INVALID_ARGUMENT,
       "while running warmup record 1 of "},
      {"predict_log { request { model_spec { signature_name: 'none' } } }",
       RN_CODE_FAILED_PRECONDITION, "none"},
      {"classify_log { request { model_spec { signature_name: 'classify_x_to_y' } } }",
       RN_CODE_INVALID_ARGUMENT, "Input is empty."},
      {"multi_inference_log { request { tasks { method_name: 'predict' } } }",
       RN_CODE_UNIMPLEMENTED, "Unsupported signature method_name: predict"},
      {"session_run_log { request { fetch: 'none:0' } }", RN_CODE_NOT_FOUND, "none"},
      {"session_run_log { request { feed { name: 'x' } } }", RN_CODE_INVALID_ARGUMENT, "tensor"},
      {"session_run_log { request { target: 'a/Assign' } }", RN_CODE_FAILED_PRECONDITION,
       "change the state"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    write_logs(cases[i].log, 1);
    FAILS_CODE(warm_up(1, NULL), cases[i].code, cases[i].message);
  }
}

Test(warmup, at_most_a_thousand_records) {
  int count = 0;
  write_logs(PREDICT, 1000);
  OK(warm_up(1, &count));
  cr_assert_eq(count, 1000);
  write_logs(PREDICT, 1001);
  FAILS_WITH(warm_up(1, NULL), INVALID_ARGUMENT,
             "Number of warmup records exceeds the maximum (1000) at ");
}

// Files that were cut off, anywhere but between two records, and files of other kinds.
Test(warmup, files_that_are_none) {
  char path[200];
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_default());
  write_logs(PREDICT, 2);
  snprintf(path, sizeof path, "%s/" RN_WARMUP_FILE, folder);
  OK(rn_fs_read(rn_env_system(), path, SIZE_MAX, &bytes));
  for (size_t size = 1; size < bytes.size; ++size) {
    if (size == bytes.size / 2) continue;
    serve_write(folder, RN_WARMUP_FILE, rn_str_n(bytes.data, size));
    FAILS_WITH(warm_up(1, NULL), DATA_LOSS,
               "Please verify your warmup data is in TFRecord format.");
  }
  rn_strbuf_clear(&bytes);
}
