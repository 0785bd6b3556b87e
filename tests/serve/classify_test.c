// Classification and regression: examples to strings, outputs to results, in TensorFlow Serving's
// words.
#include "serve/front/classify.h"

#include <criterion/criterion.h>

#include "../support/status.h"
#include "tensor/tstring.h"
#include "wire/encode.h"

static rn_arena_t arena;
static void init(void) { rn_arena_init(&arena, rn_allocator_system()); }
static void fini(void) { rn_arena_clear(&arena); }
TestSuite(classify, .init = init, .fini = fini, .timeout = 60);

// An Example with the feature |name|.
static rn_pb_Example_t example_of(const char* name) {
  rn_pb_Features_FeatureEntry_t* entry = NULL;
  rn_pb_Example_t example = {0};
  OK(RN_ARENA_NEW(&arena, &entry));
  OK(RN_ARENA_NEW(&arena, &entry->value));
  OK(RN_ARENA_NEW(&arena, &example.features));
  entry->key = rn_str(name);
  example.features->feature.items = entry;
  example.features->feature.count = 1;
  return example;
}

static rn_str_t encode(const rn_pb_message_desc_t* desc, const void* message) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  OK(rn_pb_encode(desc, message, NULL, &bytes));
  rn_str_t copy;
  OK(rn_arena_str(&arena, rn_strbuf_view(&bytes), &copy));
  rn_strbuf_clear(&bytes);
  return copy;
}

Test(classify, examples_stay_as_they_were_sent) {
  rn_pb_Example_t examples[] = {example_of("a"), example_of("bb")}, context = example_of("context");
  rn_pb_serving_ExampleList_t list = {{examples, 2, 0}};
  rn_pb_serving_Input_t input = {.kind_case = rn_pb_serving_Input_example_list_field,
                                 .example_list = &list};
  rn_tensor_t tensor;
  OK(rn_infer_examples(encode(&rn_pb_serving_Input_desc, &input), rn_allocator_system(), &tensor));
  cr_assert_eq(tensor.count, 2);
  cr_assert_eq(tensor.rank, 1);
  for (int i = 0; i < 2; ++i)
    cr_assert(rn_str_eq(rn_tstring_view(&RN_DATA(&tensor, rn_tstring_t)[i]),
                        encode(&rn_pb_Example_desc, &examples[i])));
  rn_tensor_clear(&tensor);
  // With a context, each is the context and the example.
  rn_pb_serving_ExampleListWithContext_t both = {{examples, 2, 0}, &context};
  input = (rn_pb_serving_Input_t){.kind_case = rn_pb_serving_Input_example_list_with_context_field,
                                  .example_list_with_context = &both};
  OK(rn_infer_examples(encode(&rn_pb_serving_Input_desc, &input), rn_allocator_system(), &tensor));
  rn_str_t first = encode(&rn_pb_Example_desc, &context);
  for (int i = 0; i < 2; ++i) {
    rn_str_t found = rn_tstring_view(&RN_DATA(&tensor, rn_tstring_t)[i]);
    cr_assert(rn_str_starts_with(found, first));
    cr_assert(rn_str_ends_with(found, encode(&rn_pb_Example_desc, &examples[i])));
  }
  rn_tensor_clear(&tensor);
  FAILS_SAYING(rn_infer_examples(RN_STR(""), rn_allocator_system(), &tensor), INVALID_ARGUMENT,
               "Input is empty.");
  FAILS(rn_infer_examples(RN_STR("\x0a\x7f"), rn_allocator_system(), &tensor), INTERNAL);
}

// A tensor of |dtype| with the numbers 1, 2, ... or the strings "a", "b", ...
static rn_tensor_t tensor_of(rn_dtype_t dtype, int rank, int64_t rows, int64_t columns) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, (int64_t[]){rows, columns}},
                      &tensor));
  for (int64_t i = 0; i < tensor.count; ++i) {
    char letter = (char)('a' + i);
    if (dtype == RN_FLOAT) RN_DATA(&tensor, float)[i] = (float)(i + 1);
    if (dtype == RN_STRING)
      cr_assert(rn_tstring_assign(&RN_DATA(&tensor, rn_tstring_t)[i], &letter, 1));
  }
  return tensor;
}

typedef struct output_row_t {
  struct {
    const char* name;
    rn_dtype_t dtype;
    int rank;
    int64_t rows, columns;
  } outputs[2];
  const char* want;  // NULL: it fits 2 examples
} output_row_t;

static void make_outputs(const output_row_t* row, rn_predict_value_t values[2], int* out_count) {
  *out_count = 0;
  for (int i = 0; i < 2 && row->outputs[i].name; ++i) {
    values[i].name = rn_str(row->outputs[i].name);
    values[i].value = tensor_of(row->outputs[i].dtype, row->outputs[i].rank, row->outputs[i].rows,
                                row->outputs[i].columns);
    ++*out_count;
  }
}

Test(classify, classes_have_labels_and_scores) {
  static const output_row_t rows[] = {
      {{{"classes", RN_STRING, 2, 2, 3}, {"scores", RN_FLOAT, 2, 2, 3}}, NULL},
      {{{"scores", RN_FLOAT, 2, 2, 3}}, NULL},
      {{{"classes", RN_STRING, 2, 2, 3}}, NULL},
      {{{"scores", RN_FLOAT, 1, 2, 0}},
       "Expected Tensor shape: [batch_size num_classes] but got [2]"},
      {{{"scores", RN_INT32, 2, 2, 3}}, "Expected scores Tensor of DT_FLOAT. Got: DT_INT32"},
      {{{"classes", RN_FLOAT, 2, 2, 3}}, "Expected classes Tensor of DT_STRING. Got: DT_FLOAT"},
      {{{"scores", RN_FLOAT, 2, 3, 3}}, "Expected scores output batch size of 2. Got: 3"},
      {{{"classes", RN_STRING, 2, 1, 3}}, "Expected classes output batch size of 2. Got: 1"},
      {{{"classes", RN_STRING, 2, 2, 3}, {"scores", RN_FLOAT, 2, 2, 2}},
       "Tensors class and score should match in dim_size(1). Got 3 vs. 2"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_predict_value_t values[2];
    int count;
    make_outputs(&rows[i], values, &count);
    rn_pb_serving_ClassificationResult_t result;
    rn_status_t status = rn_infer_classes(values, count, 2, &arena, &result);
    if (rows[i].want) {
      FAILS_SAYING(status, INVALID_ARGUMENT, rows[i].want);
    } else {
      OK(status);
      cr_assert_eq(result.classifications.count, 2);
      cr_assert_eq(result.classifications.items[1].classes.count, 3);
      const rn_pb_serving_Class_t* last = &result.classifications.items[1].classes.items[2];
      bool has_scores = rn_str_is(values[count - 1].name, "scores");
      cr_assert_eq(last->score, has_scores ? 6 : 0);
      cr_assert(rn_str_is(last->label, rn_str_is(values[0].name, "classes") ? "f" : ""));
    }
    for (int j = 0; j < count; ++j) rn_tensor_clear(&values[j].value);
  }
}

Test(classify, values_are_one_per_example) {
  static const output_row_t rows[] = {
      {{{"outputs", RN_FLOAT, 1, 2, 0}}, NULL},
      {{{"outputs", RN_FLOAT, 2, 2, 1}}, NULL},
      {{{"outputs", RN_FLOAT, 2, 2, 2}},
       "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got [2,2]"},
      {{{"outputs", RN_FLOAT, 0, 0, 0}},
       "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got []"},
      {{{"outputs", RN_FLOAT, 1, 3, 0}},
       "Input batch size did not match output batch size: 2 vs. 3"},
      {{{"outputs", RN_DOUBLE, 1, 2, 0}}, "Expected output Tensor of DT_FLOAT.  Got: DT_DOUBLE"},
      {{{"other", RN_FLOAT, 1, 2, 0}}, "Could not find output tensor 'outputs'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_predict_value_t values[2];
    int count;
    make_outputs(&rows[i], values, &count);
    rn_pb_serving_RegressionResult_t result;
    rn_status_t status = rn_infer_values(values, count, 2, &arena, &result);
    if (rows[i].want) {
      FAILS_SAYING(status, INVALID_ARGUMENT, rows[i].want);
    } else {
      OK(status);
      cr_assert_eq(result.regressions.count, 2);
      cr_assert_eq(result.regressions.items[1].value, 2);
    }
    rn_tensor_clear(&values[0].value);
  }
}

Test(classify, signatures_are_checked) {
  static const rn_serve_port_t inputs[] = {{.name = {"inputs", 6}}, {.name = {"more", 4}}};
  static const rn_serve_port_t x[] = {{.name = {"x", 1}}};
  static const rn_serve_port_t classes[] = {{.name = {"classes", 7}}, {.name = {"scores", 6}}};
  static const rn_serve_port_t outputs[] = {
      {.name = {"outputs", 7}}, {.name = {"p", 1}}, {.name = {"q", 1}}};
  rn_serve_signature_t signature = {.name = RN_STR("s"), .method = RN_STR("m")};
  rn_backend_t backend = {.signatures = &signature, .signature_count = 1, .meta = RN_STR("")};
  const struct {
    const rn_serve_port_t *inputs, *outputs;
    int input_count, output_count;
    const char *classify, *regress;  // what each says; NULL: it fits
  } rows[] = {
      {inputs, classes, 1, 2, NULL, "Expected one output Tensor."},
      {inputs, classes, 1, 1, NULL, "No regression outputs found in SignatureDef: "},
      {inputs, outputs, 1, 1,
       "Expected classification signature outputs to contain at least one of \"classes\" or "
       "\"scores\". Signature was: ",
       NULL},
      {inputs, classes, 2, 2, "Expected one input Tensor.", "Expected one input Tensor."},
      {inputs, outputs, 1, 3, "Expected one or two output Tensors, found 3",
       "Expected one output Tensor."},
      {x, classes, 1, 1, "No classification inputs found in SignatureDef: ",
       "No regression inputs found in SignatureDef: "},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    signature.inputs = rows[i].inputs;
    signature.outputs = rows[i].outputs;
    signature.input_count = rows[i].input_count;
    signature.output_count = rows[i].output_count;
    for (int regresses = 0; regresses < 2; ++regresses) {
      const char* want = regresses ? rows[i].regress : rows[i].classify;
      rn_infer_method_t method = regresses ? RN_INFER_REGRESS : RN_INFER_CLASSIFY;
      rn_status_t status = rn_infer_check(&backend, RN_STR("s"), method, false);
      if (want)
        FAILS_SAYING(status, INVALID_ARGUMENT, want);
      else
        OK(status);
    }
  }
  FAILS_SAYING(rn_infer_check(&backend, RN_STR(""), RN_INFER_CLASSIFY, false), INVALID_ARGUMENT,
               "No signature was found with the name: serving_default");
  FAILS_SAYING(
      rn_infer_check(&backend, RN_STR("s"), RN_INFER_REGRESS, true), INVALID_ARGUMENT,
      "Expected regression signature method_name to be tensorflow/serving/regress. Was: m");
}
