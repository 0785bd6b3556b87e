// Fuzzes JSON and the bodies of TensorFlow Serving's REST. The first byte picks what the text is: a
// tensor of some type, a predict body, or examples. What is read must be JSON to the checker, too,
// and a tensor that is written must read as the same one.
#include "fuzz/util.h"
#include "serve/front/classify.h"
#include "serve/front/rest_body.h"
#include "tensor/tstring.h"

static const rn_dtype_t dtypes[] = {RN_FLOAT,  RN_DOUBLE, RN_HALF,  RN_BFLOAT16, RN_INT8,
                                    RN_INT16,  RN_INT32,  RN_INT64, RN_UINT8,    RN_UINT16,
                                    RN_UINT32, RN_UINT64, RN_BOOL,  RN_STRING,   RN_COMPLEX64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool is_same(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (!rn_tensor_same_shape(a, b)) return false;
  if (a->dtype != RN_STRING) return !a->count || !memcmp(a->data, b->data, rn_tensor_bytes(a));
  for (int64_t i = 0; i < a->count; ++i)
    if (!rn_str_eq(rn_tstring_view(&RN_DATA(a, rn_tstring_t)[i]),
                   rn_tstring_view(&RN_DATA(b, rn_tstring_t)[i])))
      return false;
  return true;
}

static bool is_json(rn_str_t text, rn_arena_t* arena) {
  rn_json_reader_t json = rn_json_reader(text, arena);
  rn_status_t status = rn_json_skip(&json);
  bool is_ok = rn_ok(status);
  rn_status_free(status);
  return is_ok;
}

// Writes |tensor| and reads it again. Strings are written as base64: they may be any bytes.
static void write_again(const rn_tensor_t* tensor, rn_arena_t* arena) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, arena->allocator);
  fuzz_must(rn_json_put_tensor(&text, tensor, true));
  rn_json_reader_t json = rn_json_reader(rn_strbuf_view(&text), arena);
  rn_tensor_t back;
  fuzz_must(rn_json_tensor(&json, tensor->dtype, arena->allocator, &back));
  fuzz_check(json.next == json.end);
  fuzz_check(is_same(tensor, &back));
  rn_tensor_clear(&back);
  // Written as text, it is JSON at least.
  text.size = 0;
  fuzz_must(rn_json_put_tensor(&text, tensor, false));
  fuzz_check(is_json(rn_strbuf_view(&text), arena));
  rn_strbuf_clear(&text);
}

static void read_tensor(rn_str_t text, rn_dtype_t dtype, rn_arena_t* arena) {
  rn_json_reader_t json = rn_json_reader(text, arena);
  rn_tensor_t tensor;
  rn_status_t status = rn_json_tensor(&json, dtype, arena->allocator, &tensor);
  if (rn_ok(status)) {
    fuzz_check(is_json(text, arena));
    write_again(&tensor, arena);
    int64_t count = tensor.count;
    rn_tensor_clear(&tensor);
    json = rn_json_reader(text, arena);
    fuzz_must(
        rn_json_tensor_of_shape(&json, dtype, (rn_shape_t){1, &count}, arena->allocator, &tensor));
    rn_tensor_clear(&tensor);
  }
  rn_status_free(status);
  rn_str_t span;
  json = rn_json_reader(text, arena);
  status = rn_json_span(&json, &span);
  // What the checker takes, the fast way takes, and it ends at the same place.
  rn_json_reader_t checked = rn_json_reader(text, arena);
  rn_status_t check = rn_json_skip(&checked);
  if (rn_ok(check)) fuzz_check(rn_ok(status) && json.next == checked.next);
  rn_status_free(check);
  rn_status_free(status);
}

static void read_inputs(const rn_rest_body_t* body, int inputs, rn_dtype_t dtype,
                        rn_arena_t* arena) {
  rn_serve_port_t ports[] = {{.name = RN_STR("a"), .dtype = dtype, .shape = RN_SHAPE_UNKNOWN},
                             {.name = RN_STR("b"), .dtype = RN_STRING, .shape = RN_SHAPE_UNKNOWN}};
  rn_serve_signature_t signature = {.inputs = ports, .input_count = inputs};
  rn_predict_value_t* values = NULL;
  int count = 0;
  bool is_row = false;
  rn_status_t status =
      rn_rest_read_inputs(body, &signature, arena->allocator, &values, &count, &is_row);
  if (rn_ok(status)) {
    rn_strbuf_t out;
    rn_strbuf_init(&out, arena->allocator);
    status = rn_rest_write_outputs(values, count, is_row, &out);
    if (rn_ok(status)) fuzz_check(is_json(rn_strbuf_view(&out), arena));
    rn_strbuf_clear(&out);
  }
  rn_status_free(status);
  for (int i = 0; i < count; ++i) rn_tensor_clear(&values[i].value);
}

static void read_examples(const rn_rest_body_t* body, rn_arena_t* arena) {
  rn_strbuf_t input;
  rn_strbuf_init(&input, arena->allocator);
  rn_status_t status = rn_rest_read_examples(body, &input);
  if (rn_ok(status)) {
    rn_tensor_t examples;
    fuzz_must(rn_infer_examples(rn_strbuf_view(&input), arena->allocator, &examples));
    rn_tensor_clear(&examples);
  }
  rn_status_free(status);
  rn_strbuf_clear(&input);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_bytes_t in = {data, size};
  int pick = fuzz_pick(&in, 3 * DTYPES);
  rn_dtype_t dtype = dtypes[pick % DTYPES];
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_counting(&counting));
  rn_str_t text = rn_str_n((const char*)in.at, in.left);
  if (pick < DTYPES) {
    read_tensor(text, dtype, &arena);
  } else {
    rn_rest_body_t body;
    rn_status_t status = rn_rest_body_scan(text, &arena, &body);
    if (rn_ok(status)) {
      if (pick < 2 * DTYPES)
        read_inputs(&body, 1 + size % 2, dtype, &arena);
      else
        read_examples(&body, &arena);
    }
    rn_status_free(status);
  }
  rn_arena_clear(&arena);
  fuzz_check(counting.live_bytes == 0);
  return 0;
}
