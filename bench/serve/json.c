// How fast JSON becomes tensors, and tensors JSON: megabytes of text per second of one core.
//
//   serve_json [ELEMENTS [ROUNDS]]
//
// Prints one line per case with the best round: name, MB/s, nanoseconds per element.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "serve/front/json.h"
#include "serve/front/rest_body.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(rn_status_t status) {
  if (rn_ok(status)) return;
  fprintf(stderr, "%s\n", rn_status_message(status));
  exit(1);
}

// Numbers in [0, 1), the same in every run.
static double next_number(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 11) * 0x1p-53;
}

// How a case writes its numbers.
typedef enum text_kind_t {
  TEXT_FLOAT,   // 9 digits: what we write
  TEXT_PYTHON,  // 16 or 17 digits: what Python writes for a list made from an array of floats
  TEXT_INT,
} text_kind_t;

typedef struct json_case_t {
  const char* name;
  rn_dtype_t dtype;
  text_kind_t kind;
  int columns;  // of a matrix
} json_case_t;

static void make_text(const json_case_t* test, int64_t count, rn_strbuf_t* out) {
  uint64_t state = 1;
  rn_strbuf_append(out, RN_STR("{\"instances\": ["));
  for (int64_t i = 0; i < count; ++i) {
    double value = next_number(&state);
    if (i % test->columns == 0) rn_strbuf_append(out, i ? RN_STR("], [") : RN_STR("["));
    if (i % test->columns) rn_strbuf_append(out, RN_STR(", "));
    if (test->kind == TEXT_INT)
      rn_json_put_int(out, (int64_t)(value * 100000));
    else if (test->kind == TEXT_PYTHON)
      rn_json_put_double(out, test->dtype == RN_FLOAT ? (double)(float)value : value);
    else
      rn_json_put_float(out, (float)value);
  }
  rn_strbuf_append(out, RN_STR("]]}"));
}

static void report(const char* verb, const json_case_t* test, size_t size, int64_t count,
                   double best) {
  printf("%-6s %-28s %6.0f MB/s %7.1f ns\n", verb, test->name, (double)size / best / 1e6,
         best / (double)count * 1e9);
}

static void run_case(const json_case_t* test, int64_t count, int rounds) {
  rn_allocator_t allocator = rn_allocator_system();
  count -= count % test->columns;
  rn_strbuf_t text, out;
  rn_strbuf_init(&text, allocator);
  rn_strbuf_init(&out, allocator);
  make_text(test, count, &text);
  check(rn_strbuf_status(&text));
  rn_serve_port_t port = {.name = RN_STR("x"), .dtype = test->dtype, .shape = RN_SHAPE_UNKNOWN};
  rn_serve_signature_t signature = {.inputs = &port, .input_count = 1};
  double best_read = 1e9, best_write = 1e9;
  for (int i = 0; i < rounds; ++i) {
    rn_arena_t arena;
    rn_arena_init(&arena, allocator);
    rn_rest_body_t body;
    rn_predict_value_t* values = NULL;
    int value_count = 0;
    bool is_row;
    double begin = seconds();
    check(rn_rest_body_scan(rn_strbuf_view(&text), &arena, &body));
    check(rn_rest_read_inputs(&body, &signature, allocator, &values, &value_count, &is_row));
    double middle = seconds();
    out.size = 0;
    check(rn_rest_write_outputs(values, value_count, is_row, &out));
    double end = seconds();
    if (middle - begin < best_read) best_read = middle - begin;
    if (end - middle < best_write) best_write = end - middle;
    rn_tensor_clear(&values[0].value);
    rn_arena_clear(&arena);
  }
  report("read", test, text.size, count, best_read);
  report("write", test, out.size, count, best_write);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&out);
}

int main(int argc, char** argv) {
  int64_t count = argc > 1 ? atoll(argv[1]) : 1000000;
  int rounds = argc > 2 ? atoi(argv[2]) : 10;
  static const json_case_t cases[] = {
      {"float, 9 digits", RN_FLOAT, TEXT_FLOAT, 784},
      {"float, from Python", RN_FLOAT, TEXT_PYTHON, 784},
      {"float, from Python, rows of 4", RN_FLOAT, TEXT_PYTHON, 4},
      {"double", RN_DOUBLE, TEXT_PYTHON, 784},
      {"int32", RN_INT32, TEXT_INT, 784},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) run_case(&cases[i], count, rounds);
  return 0;
}
