// The loop compiler without a card: builder, keys, choices of loops, the cache on disk, and NVRTC,
// the real one where the toolkit is installed.
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "jit_card.h"
#include "kernels/cuda/divisor.h"
#include "kernels/cuda/jit/shapes.h"

#define ADDRESS 4096  // as good as any: nothing runs

// x, y -> relu(x + y); with |reduces|, its sum instead.
static void make_program(rn_jit_program_t* p, rn_dtype_t dtype, bool reduces) {
  rn_jit_begin(p, 0, 0);
  int x = rn_jit_input(p, dtype, RN_JIT_LINEAR, RN_JIT_FULL);
  int y = rn_jit_input(p, dtype, RN_JIT_ROW, RN_JIT_FULL);
  int z = rn_jit_op1(p, RN_SCALAR_RELU, rn_jit_op2(p, RN_SCALAR_ADD, x, y));
  rn_jit_output(p, reduces ? rn_jit_reduce(p, RN_JIT_SUM, z) : z, dtype);
}

static rn_status_t choose(const rn_jit_program_t* p, int64_t outer, int64_t reduced, int64_t inner,
                          rn_jit_grid_t* grid) {
  const rn_jit_sizes_t sizes = {
      .count = outer * reduced * inner, .outer = outer, .reduced = reduced, .inner = inner};
  rn_jit_operand_t inputs[RN_JIT_MAX_INPUTS] = {{0}};
  for (int i = 0; i < RN_JIT_MAX_INPUTS; ++i)
    inputs[i] = (rn_jit_operand_t){.address = ADDRESS, .period = 64};
  const uint64_t outputs[RN_JIT_MAX_OUTPUTS] = {ADDRESS, ADDRESS};
  return rn_jit_grid(p, &sizes, inputs, outputs, 132, grid);
}

static void expect_error(rn_status_t status, rn_code_t code, const char* part) {
  cr_expect_eq(rn_status_code(status), code);
  cr_expect(strstr(rn_status_message(status), part), "%s", rn_status_message(status));
  rn_status_free(status);
}

Test(jit_program, failures_are_kept) {
  rn_jit_program_t p;
  rn_jit_begin(&p, 0, 0);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "no output");
  int x = rn_jit_input(&p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  int y = rn_jit_input(&p, RN_INT32, RN_JIT_LINEAR, RN_JIT_FULL);
  int bad = rn_jit_op2(&p, RN_SCALAR_ADD, x, y);
  cr_assert_eq(bad, -1);
  rn_jit_output(&p, rn_jit_op1(&p, RN_SCALAR_NEG, bad), RN_FLOAT);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "operands have different types");

  rn_jit_begin(&p, 0, 0);
  x = rn_jit_input(&p, RN_COMPLEX64, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&p, rn_jit_op1(&p, RN_SCALAR_FLOOR, x), RN_COMPLEX64);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "not defined for its type");

  rn_jit_begin(&p, 0, 0);
  cr_assert_eq(rn_jit_input(&p, RN_STRING, RN_JIT_LINEAR, RN_JIT_FULL), -1);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "a type that loops do not have");

  rn_jit_begin(&p, 0, 0);
  for (int i = 0; i <= RN_JIT_MAX_INPUTS; ++i)
    x = rn_jit_input(&p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "too many inputs");
  rn_jit_begin(&p, 0, 0);
  x = rn_jit_input(&p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  for (int i = 0; i <= RN_JIT_MAX_VALUES; ++i) x = rn_jit_op1(&p, RN_SCALAR_NEG, x);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "too many values");
  rn_jit_begin(&p, 9, 0);
  expect_error(rn_jit_check(&p), RN_CODE_INVALID_ARGUMENT, "rank");
}

Test(jit_program, names_of_ops) {
  cr_assert_eq(rn_scalar_find("AddV2"), RN_SCALAR_ADD);
  cr_assert_eq(rn_scalar_find("Zeta"), RN_SCALAR_ZETA);
  cr_assert_eq(rn_scalar_find("Abs"), RN_SCALAR_ABS);
  cr_assert_eq(rn_scalar_find("MatMul"), RN_SCALAR_COUNT);
  cr_assert_eq(rn_scalar_result(RN_SCALAR_LESS, RN_HALF), RN_BOOL);
  cr_assert_eq(rn_scalar_result(RN_SCALAR_COMPLEX_ABS, RN_COMPLEX128), RN_DOUBLE);
  cr_assert_eq(rn_scalar_result(RN_SCALAR_EXP, RN_INT32), RN_INVALID);
}

Test(jit_schedule, sizes_that_contradict) {
  rn_jit_program_t p;
  rn_jit_grid_t grid;
  make_program(&p, RN_FLOAT, true);
  const rn_jit_operand_t inputs[2] = {{.address = ADDRESS}, {.address = ADDRESS, .period = 1}};
  const uint64_t outputs[1] = {ADDRESS};
  rn_jit_sizes_t sizes = {.count = 10, .outer = 3, .reduced = 3, .inner = 1};
  expect_error(rn_jit_grid(&p, &sizes, inputs, outputs, 132, &grid), RN_CODE_INVALID_ARGUMENT,
               "do not multiply");
  sizes = (rn_jit_sizes_t){.count = 0, .outer = INT64_MAX, .reduced = INT64_MAX, .inner = 0};
  expect_error(rn_jit_grid(&p, &sizes, inputs, outputs, 132, &grid), RN_CODE_INVALID_ARGUMENT,
               "do not multiply");
  // Softmax over an axis that is not the last.
  rn_jit_begin(&p, 0, 0);
  int x = rn_jit_input(&p, RN_FLOAT, RN_JIT_LINEAR, RN_JIT_FULL);
  rn_jit_output(&p, rn_jit_op2(&p, RN_SCALAR_SUB, x, rn_jit_reduce(&p, RN_JIT_MAX, x)), RN_FLOAT);
  expect_error(choose(&p, 2, 3, 4, &grid), RN_CODE_UNIMPLEMENTED, "last axis");
}

Test(jit_schedule, choices) {
  rn_jit_program_t p;
  rn_jit_grid_t grid;
  make_program(&p, RN_HALF, false);
  card_must(choose(&p, 1000, 64, 1, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_POINTWISE && grid.variant.vector == 8 &&
            grid.variant.whole && !grid.variant.wide && grid.kernel_count == 1);
  card_must(choose(&p, 1 << 20, 4096, 1, &grid));
  cr_expect(grid.variant.wide);
  card_must(choose(&p, 0, 64, 1, &grid));
  cr_expect(grid.kernel_count == 0);
  make_program(&p, RN_FLOAT, true);
  card_must(choose(&p, 10000, 100, 1, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_ROWS_BY_LANES && grid.variant.lanes == 32);
  card_must(choose(&p, 10000, 5000, 1, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_ROWS_BY_BLOCKS && !grid.variant.split);
  card_must(choose(&p, 1, 1 << 24, 1, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_ROWS_BY_BLOCKS && grid.variant.split &&
            grid.kernel_count == 2 && grid.workspace > 0);
  card_must(choose(&p, 1, 1 << 14, 1024, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_COLUMNS && grid.variant.split);
  card_must(choose(&p, 1, 16, 1 << 20, &grid));
  cr_expect(grid.variant.schedule == RN_JIT_COLUMNS && !grid.variant.split);
  card_must(choose(&p, 5, 0, 3, &grid));
  cr_expect(grid.kernel_count == 1);
}

Test(jit_schedule, divisors) {
  uint32_t state = 7;
  for (int i = 0; i < 200000; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t divisor = i < 2000 ? (uint32_t)i + 1 : (state >> 1 >> i % 30) + 1;
    state = state * 1664525 + 1013904223;
    const uint32_t values[] = {state >> 1, INT32_MAX, divisor, divisor - 1, 0};
    const rn_div32 by = rn_divisor(divisor & INT32_MAX ? divisor & INT32_MAX : 1);
    for (int k = 0; k < 5; ++k) {
      const uint32_t value = values[k] & INT32_MAX;
      const uint32_t high = (uint32_t)(((uint64_t)value * by.factor) >> 32);
      cr_assert_eq((high + value) >> by.shift, value / by.divisor, "%u / %u", value, by.divisor);
    }
  }
}

// Where the access reads element i of the space.
static int64_t place_of(const rn_jit_view_t* view, int access, const rn_jit_operand_t* operand,
                        int64_t i) {
  if (access == RN_JIT_LINEAR) return i;
  if (access == RN_JIT_SCALAR) return 0;
  if (access == RN_JIT_ROW) return i % operand->period;
  if (access == RN_JIT_COLUMN) return i / operand->period;
  int64_t at = 0;
  for (int d = view->rank - 1; d >= 0; --d) {
    at += i % view->sizes.dims[d] * operand->strides[d];
    i /= view->sizes.dims[d];
  }
  return at;
}

static uint32_t random_state = 1;
static int pick(int n) {
  random_state = random_state * 1664525 + 1013904223;
  return (int)((random_state >> 16) % (uint32_t)n);
}

Test(jit_shapes, broadcasts) {
  bool seen[6] = {false};
  for (int round = 0; round < 2000; ++round) {
    const int rank = pick(6), skipped = rank ? pick(rank) : 0;
    int64_t dims[6], parts[6];
    for (int d = 0; d < rank; ++d) {
      dims[d] = 1 + pick(4);
      parts[d] = pick(2) ? dims[d] : 1;
    }
    const rn_shape_t shapes[] = {{rank - skipped, parts + skipped}, {rank, dims}};
    rn_jit_view_t view;
    rn_jit_operand_t operands[2] = {{0}};
    card_must(rn_jit_broadcast(shapes[1], shapes, 2, &view, operands));
    cr_assert_eq(view.access[1], RN_JIT_LINEAR);
    seen[view.access[0]] = true;
    for (int64_t i = 0; i < view.sizes.count; ++i) {
      int64_t expected = 0, stride = 1, rest = i;
      for (int d = rank - 1; d >= skipped; --d) {
        if (parts[d] > 1) expected += rest % dims[d] * stride;
        rest /= dims[d];
        stride *= parts[d];
      }
      cr_assert_eq(place_of(&view, view.access[0], &operands[0], i), expected);
    }
  }
  cr_expect(seen[RN_JIT_LINEAR] && seen[RN_JIT_SCALAR] && seen[RN_JIT_ROW] && seen[RN_JIT_COLUMN] &&
            seen[RN_JIT_STRIDED]);
  rn_jit_view_t view;
  rn_jit_operand_t operand = {0};
  const int64_t dims[] = {2, 3}, other[] = {2};
  expect_error(rn_jit_broadcast((rn_shape_t){2, dims}, &(rn_shape_t){1, other}, 1, &view, &operand),
               RN_CODE_INVALID_ARGUMENT, "operand 0");
}

Test(jit_shapes, reductions) {
  bool has_strided = false, has_columns = false;
  for (int round = 0; round < 2000; ++round) {
    const int rank = pick(6);
    int64_t dims[6];
    bool goes[6];
    for (int d = 0; d < rank; ++d) {
      dims[d] = 1 + pick(4);
      goes[d] = pick(2);
    }
    rn_jit_view_t view;
    rn_jit_operand_t operand = {0};
    card_must(rn_jit_reduction((rn_shape_t){rank, dims}, goes, &view, &operand));
    has_strided |= view.access[0] == RN_JIT_STRIDED;
    has_columns |= view.access[0] == RN_JIT_LINEAR && view.sizes.inner > 1;
    // Every element is read once, for the column that its kept coordinates number.
    const rn_jit_sizes_t* sizes = &view.sizes;
    cr_assert_eq(sizes->count, sizes->outer * sizes->reduced * sizes->inner);
    bool read[4096] = {false};
    for (int64_t i = 0; i < sizes->count; ++i) {
      const int64_t column = i / sizes->inner / sizes->reduced * sizes->inner + i % sizes->inner;
      int64_t at = place_of(&view, view.access[0], &operand, i), expected = 0, stride = 1;
      cr_assert(at >= 0 && at < sizes->count && !read[at]);
      read[at] = true;
      for (int d = rank - 1; d >= 0; --d) {
        if (!goes[d]) expected += at % dims[d] * stride;
        if (!goes[d]) stride *= dims[d];
        at /= dims[d];
      }
      cr_assert_eq(column, expected);
    }
  }
  cr_expect(has_strided && has_columns);
}

static rn_jit_key_t key_of(const rn_jit_program_t* p, int64_t n, const rn_jit_target_t* target) {
  rn_jit_grid_t grid;
  card_must(choose(p, n, 64, 1, &grid));
  return rn_jit_key(p, &grid.variant, target, rn_jit_headers_hash());
}

Test(jit_compile, keys) {
  const rn_jit_target_t hopper = {90, ""}, ampere = {80, ""}, other = {90, "other"};
  rn_jit_program_t p, q;
  memset(&p, 0x55, sizeof p);  // what is not used must not count
  make_program(&p, RN_FLOAT, false);
  make_program(&q, RN_FLOAT, false);
  const rn_jit_key_t key = key_of(&p, 100, &hopper);
  rn_jit_key_t keys[6] = {key_of(&q, 3000, &hopper), key_of(&p, 100, &ampere),
                          key_of(&p, 100, &other), key_of(&p, INT64_C(1) << 26, &hopper)};
  make_program(&q, RN_HALF, false);
  keys[4] = key_of(&q, 100, &hopper);
  make_program(&q, RN_FLOAT, true);
  keys[5] = key_of(&q, 100, &hopper);
  cr_expect(memcmp(&keys[0], &key, sizeof key) == 0, "other sizes, same key");
  for (int i = 1; i < 6; ++i)
    for (int k = 0; k < i; ++k)
      cr_expect(memcmp(&keys[i], &keys[k], sizeof key) != 0, "%d and %d", i, k);
}

// A folder for one test.
static void make_folder(char* path) {
  snprintf(path, 64, "/tmp/runnel_jit_XXXXXX");
  cr_assert(mkdtemp(path));
}
static void remove_folder(const char* path) {
  int64_t files, folders;
  card_must(rn_fs_remove_tree(rn_env_system(), path, &files, &folders));
}

static int log_lines;
static void count_line(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level, (void)message;
  ++log_lines;
}

Test(jit_compile, cache_on_disk) {
  rn_env_t env = *rn_env_system();
  env.log = count_line;
  char top[64], folder[128], path[256];
  make_folder(top);
  snprintf(folder, sizeof folder, "%s/a/b", top);
  const rn_jit_key_t key = {{0x123456789abcdef0, 42}}, none = {{1, 2}};
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  cr_expect(!rn_jit_cache_find(&env, folder, key, 90, &out));
  rn_jit_cache_store(&env, folder, key, 90, RN_STR("the code"));
  cr_assert(rn_jit_cache_find(&env, folder, key, 90, &out));
  cr_expect(rn_str_is(rn_strbuf_view(&out), "the code"));
  cr_expect(!rn_jit_cache_find(&env, folder, none, 90, &out));
  cr_expect_eq(log_lines, 0);
  cr_expect(!rn_jit_cache_find(&env, folder, key, 80, &out), "another architecture");
  cr_expect_eq(log_lines, 1);
  // Every byte counts, and so does the length.
  snprintf(path, sizeof path, "%s/123456789abcdef0000000000000002a.kernel", folder);
  rn_strbuf_t file;
  rn_strbuf_init(&file, rn_allocator_system());
  card_must(rn_fs_read(&env, path, 1000, &file));
  cr_assert_eq(file.size, 48 + 8);
  for (size_t i = 0; i <= file.size; ++i) {
    if (i < file.size) file.data[i] ^= 1;
    card_must(rn_fs_write(&env, path, rn_str_n(file.data, i < file.size ? file.size : i - 1)));
    cr_expect(!rn_jit_cache_find(&env, folder, key, 90, &out), "byte %zu", i);
    if (i < file.size) file.data[i] ^= 1;
  }
  rn_jit_cache_store(&env, folder, key, 90, RN_STR("new code"));
  out.size = 0;
  cr_expect(rn_jit_cache_find(&env, folder, key, 90, &out), "a bad file is replaced");
  cr_expect(rn_str_is(rn_strbuf_view(&out), "new code"));
  // No folder, or a file in its place: no cache, and nobody is told.
  log_lines = 0;
  rn_jit_cache_store(&env, "", key, 90, RN_STR("x"));
  rn_jit_cache_store(&env, path, key, 90, RN_STR("x"));
  cr_expect(!rn_jit_cache_find(&env, path, key, 90, &out));
  cr_expect_eq(log_lines, 0);
  rn_strbuf_clear(&file);
  rn_strbuf_clear(&out);
  remove_folder(top);
}

Test(jit_compile, folder_of_the_cache) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  setenv("RUNNEL_CACHE_DIR", "/c", 1);
  setenv("XDG_CACHE_HOME", "/x", 1);
  setenv("HOME", "/h", 1);
  const char* const expected[] = {"/c", "/x/runnel/kernels", "/h/.cache/runnel/kernels", ""};
  const char* const names[] = {"RUNNEL_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  for (int i = 0; i < 4; ++i) {
    out.size = 0;
    rn_jit_cache_folder(&out);
    cr_expect(rn_str_is(rn_strbuf_view(&out), expected[i]));
    if (i < 3) unsetenv(names[i]);
  }
  rn_strbuf_clear(&out);
}

static rn_nvrtc_t nvrtc;
static int opened;
static rn_status_t open_nvrtc(void* self, const rn_nvrtc_t** out) {
  (void)self;
  ++opened;
  *out = &nvrtc;
  return nvrtc.library ? RN_OK : rn_nvrtc_open(&nvrtc);
}

Test(jit_compile, code_is_compiled_once, .timeout = 120) {
  char folder[64];
  make_folder(folder);
  const rn_jit_compiler_t compiler = {
      .env = rn_env_system(), .folder = folder, .target = {90, ""}, .open = open_nvrtc};
  rn_jit_program_t p;
  rn_jit_grid_t grid;
  make_program(&p, RN_FLOAT, false);
  card_must(choose(&p, 100, 64, 1, &grid));
  const rn_jit_key_t key = rn_jit_key(&p, &grid.variant, &compiler.target, rn_jit_headers_hash());
  rn_strbuf_t first, second;
  rn_strbuf_init(&first, rn_allocator_system());
  rn_strbuf_init(&second, rn_allocator_system());
  card_must(rn_jit_code(&compiler, &p, &grid.variant, key, &first));
  card_must(rn_jit_code(&compiler, &p, &grid.variant, key, &second));
  cr_expect_eq(opened, 1);
  cr_expect(first.size > 0 && rn_str_eq(rn_strbuf_view(&first), rn_strbuf_view(&second)));
  rn_strbuf_clear(&first);
  rn_strbuf_clear(&second);
  remove_folder(folder);
}

Test(jit_compile, errors_carry_the_log, .timeout = 120) {
  const rn_nvrtc_t* functions;
  card_must(open_nvrtc(NULL, &functions));
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  expect_error(rn_jit_compile(functions, "int f() { return nowhere; }", 90, 0, &out),
               RN_CODE_INTERNAL, "nowhere");
  cr_expect_eq(out.size, 0);
}

// The toolkit's own NVRTC takes what is emitted: one source with a program per schedule, and all
// headers.
static void append_all(rn_strbuf_t* source) {
  static const int64_t shapes[][3] = {{100, 64, 1},    {10000, 100, 1},  {10000, 5000, 1},
                                      {1, 1 << 24, 1}, {1, 1 << 14, 64}, {1, 16, 1 << 16}};
  for (int i = 0; i < 12; ++i) {
    rn_jit_program_t p;
    rn_jit_grid_t grid;
    char name[16];
    make_program(&p, i % 2 ? RN_BFLOAT16 : RN_FLOAT, i > 1);
    card_must(choose(&p, shapes[i / 2][0], shapes[i / 2][1], shapes[i / 2][2], &grid));
    grid.variant.wide = i % 5 == 4;
    snprintf(name, sizeof name, "loop%d", i);
    card_must(rn_jit_emit(&p, &grid.variant, name, source));
  }
  for (int code = 0; code < RN_SCALAR_COUNT; ++code) {
    const rn_scalar_op_t* op = rn_scalar_op(code);
    const rn_dtype_t dtype = rn_dtypes_has(op->dtypes, RN_COMPLEX64) ? RN_COMPLEX64
                             : rn_dtypes_has(op->dtypes, RN_FLOAT)   ? RN_FLOAT
                             : rn_dtypes_has(op->dtypes, RN_INT32)   ? RN_INT32
                                                                     : RN_BOOL;
    rn_jit_program_t p;
    int operands[4] = {-1, -1, -1, -1};
    rn_jit_begin(&p, 0, 0);
    for (int k = 0; k < op->operands; ++k)
      operands[k] = rn_jit_input(&p, code == RN_SCALAR_SELECT && k == 0 ? RN_BOOL : dtype,
                                 RN_JIT_LINEAR, RN_JIT_FULL);
    rn_jit_output(&p, rn_jit_op(&p, code, operands), rn_scalar_result(code, dtype));
    char name[48];
    snprintf(name, sizeof name, "op_%s", op->function);
    card_must(rn_jit_emit(&p, &(rn_jit_variant_t){.vector = 1}, name, source));
  }
}

Test(jit_compile, real_compiler, .timeout = 300) {
  static const char folder[] = "/usr/local/cuda/lib64";
  char path[64];
  snprintf(path, sizeof path, "%s/libnvrtc.so.13", folder);
  if (access(path, R_OK) != 0) cr_skip_test("the CUDA toolkit is not installed");
  setenv("RUNNEL_CUDA_PATH", folder, 1);
  const rn_nvrtc_t* functions;
  card_must(open_nvrtc(NULL, &functions));
  rn_strbuf_t source, code;
  rn_strbuf_init(&source, rn_allocator_system());
  rn_strbuf_init(&code, rn_allocator_system());
  append_all(&source);
  card_must(rn_jit_compile(functions, source.data, 90, 0, &code));
  // CUBINs are ELF files of machine 190.
  cr_assert(code.size > 20 && memcmp(code.data, "\177ELF", 4) == 0);
  cr_expect_eq((uint8_t)code.data[18], 190);
  rn_strbuf_clear(&code);
  rn_strbuf_clear(&source);
}
