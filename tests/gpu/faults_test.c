// What goes wrong with a GPU: no driver, an old one, no memory, calls that fail, a lost card, files
// that are not what they should be. Each is a clear status or one line in the log, and the CPU and
// the session go on.
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "emulated_driver.h"
#include "util.h"

#define RAN_OUT_OF_MEMORY 2
#define NEEDS_TOO_MUCH 701
#define LOST 700
#define FOLDER "/tmp/runnel_faults_XXXXXX"

// A log that keeps the last line and counts them.
static struct {
  int lines;
  char last[4096];
} said;
static void log_line(void* self, rn_log_level_t level, const char* message) {
  (void)self, (void)level;
  said.lines++;
  snprintf(said.last, sizeof said.last, "%s", message);
}

// (x + 1) * x - x = x * x, on the GPU if there is one.
typedef struct faults_t {
  rt_t rt;
  rn_env_t env;
  rn_edge_t x, y, big;
} faults_t;

static void faults_begin(faults_t* f) {
  *f = (faults_t){.rt = rt_begin(1), .env = *rn_env_system()};
  f->env.log = log_line;
  f->rt.options.optimize = false;   // or the nodes would be one, which is not recorded
  f->rt.options.gpu.max_count = 1;  // asked for, so that the log says why there is none
  rn_scope_t* s = f->rt.s;
  f->x = rt_placeholder(&f->rt, "x");
  rn_scope_name_next(s, "plus");
  rn_edge_t plus = rn_AddV2(s, f->x, rn_const_float(s, 1));
  rn_scope_name_next(s, "times");
  rn_edge_t times = rn_Mul(s, plus, f->x);
  rn_scope_name_next(s, "minus");
  f->y = rn_Sub(s, times, f->x);
  rn_edge_t size = rn_ExpandDims(s, rn_const_int32(s, 200 << 20), rn_const_int32(s, 0));
  rn_scope_name_next(s, "big");
  f->big = rn_Fill(s, size, f->x);
}

static rn_session_t* faults_session(faults_t* f) {
  cr_assert(rn_scope_ok(f->rt.s), "%s", rn_scope_message(f->rt.s));
  if (!f->rt.session)
    OK(rn_session_create(f->rt.graph, &f->rt.options, &f->env, f->rt.allocator, &f->rt.session));
  return f->rt.session;
}

static rn_status_t try(faults_t* f, rn_edge_t fetch, float x, float* out) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(x);
  rt_feed(&step, f->x, &fed);
  rt_fetch(&step, fetch);
  rn_status_t status = rt_run_in(faults_session(f), &step);
  if (rn_ok(status) && out) *out = rt_value(&step.out[0]);
  if (rn_ok(status)) rt_clear(&step);
  rn_tensor_clear(&fed);
  return status;
}

// Steps enough to compute, record and replay.
static void works(faults_t* f) {
  for (int i = 0; i < 4; ++i) {
    float y, x = (float)(i + 2);
    OK(try(f, f->y, x, &y));
    cr_assert_eq(y, x * x, "%g is not the square of %g", (double)y, (double)x);
  }
}

static int devices(faults_t* f) { return rn_session_device_count(faults_session(f)); }

// Two sessions that have no GPU, work, and say |text| once.
static void serves_without(const char* text) {
  for (int turn = 0; turn < 2; ++turn) {
    faults_t f;
    faults_begin(&f);
    cr_assert_eq(devices(&f), 1);
    works(&f);
    rt_end(&f.rt);
  }
  cr_assert_eq(said.lines, 1, "%d lines, the last: %s", said.lines, said.last);
  cr_assert(strstr(said.last, text), "'%s' lacks '%s'", said.last, text);
}

static char* make_folder(char* folder) {
  cr_assert_not_null(mkdtemp(folder));
  return folder;
}

static void remove_folder(const char* folder) {
  DIR* list = opendir(folder);
  for (struct dirent* entry; (entry = readdir(list));) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    unlink(path);
  }
  closedir(list);
  rmdir(folder);
}

RT_TEST(faults, no_driver) {
  void* real = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (real) cr_skip_test("this machine has a driver");
  setenv("RUNNEL_CUDA_PATH", "/nowhere", 1);
  serves_without("GPUs are not used: The library libcuda.so.1 could not be loaded");
}

RT_TEST(faults, driver_is_too_old) {
  setenv("RN_EMULATED_VERSION", "11040", 1);
  serves_without("is for CUDA 11.4; CUDA 12.0 is needed");
}

RT_TEST(faults, driver_lacks_a_function) {
  char folder[] = FOLDER, from[4096], to[4096];
  make_folder(folder);
  snprintf(from, sizeof from, "%s/libnvrtc.so.13", getenv("RUNNEL_CUDA_PATH"));
  snprintf(to, sizeof to, "%s/libcuda.so.1", folder);
  cr_assert_eq(symlink(from, to), 0);
  setenv("RUNNEL_CUDA_PATH", folder, 1);
  serves_without("libcuda.so.1 is too old: it has no function cuInit");
  remove_folder(folder);
}

RT_TEST(faults, no_gpu) {
  setenv("RN_EMULATED_GPUS", "0", 1);
  serves_without("The driver has no GPU");
}

RT_TEST(faults, no_part) {
  setenv("RUNNEL_CUDA_PART", "/nowhere/librunnel_cuda.so.2", 1);
  serves_without("/nowhere/librunnel_cuda.so.2");
}

RT_TEST(faults, part_is_another_library) {
  char path[4096];
  snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("RUNNEL_CUDA_PATH"));
  setenv("RUNNEL_CUDA_PART", path, 1);
  serves_without("is not a part of this library");
}

RT_TEST(faults, part_is_of_another_version) {
  setenv("RUNNEL_CUDA_PART", OLD_PART, 1);
  serves_without("is of version 0.0.0");
}

RT_TEST(faults, memory_is_exhausted) {
  setenv("RN_EMULATED_MEMORY", "209715200", 1);
  faults_t f;
  faults_begin(&f);
  cr_assert_eq(devices(&f), 2);
  works(&f);
  for (int turn = 0; turn < 3; ++turn) {
    rn_status_t status = try(&f, f.big, 1, NULL);
    const char* message = rn_status_message(status);
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s", message);
    cr_assert(strstr(message, "holder"), "'%s' does not say who holds memory", message);
    cr_assert(strstr(message, "device:GPU:0"), "'%s' names no device", message);
    rn_status_free(status);
    works(&f);
  }
  rt_end(&f.rt);
}

// Each call of the driver fails at its first, second ... use in a session. The step then fails with
// the node's name, or does without; the next steps are right. (cuStreamEndCapture is not among
// them: it ends a capture even if it fails, which the emulator's faults do not.)
static void survives(const char* call, int result) {
  for (int nth = 1; nth <= 6; ++nth) {
    faults_t f;
    faults_begin(&f);
    cr_assert_eq(devices(&f), 2);
    for (int k = 0; k < (result == RAN_OUT_OF_MEMORY ? 12 : 1); ++k)
      cr_assert(rn_emulated_fail(call, nth + k, result), "%s", call);
    for (int i = 0; i < 4; ++i) {
      float y, x = (float)i;
      rn_status_t status = try(&f, f.y, x, &y);
      if (rn_ok(status)) {
        cr_assert_eq(y, x * x, "%s, the %d-th: %g is not the square of %g", call, nth, (double)y,
                     (double)x);
        continue;
      }
      const char* message = rn_status_message(status);
      rn_code_t code = result == RAN_OUT_OF_MEMORY ? RN_CODE_RESOURCE_EXHAUSTED : RN_CODE_INTERNAL;
      cr_expect_eq(rn_status_code(status), code, "%s, the %d-th: %s", call, nth, message);
      // Copies and events are checked when the step ends, by which time no node is known.
      bool is_late = strncmp(call, "cuMemcpy", 8) == 0 || strncmp(call, "cuEvent", 7) == 0;
      const char* named = result == RAN_OUT_OF_MEMORY ? "" : is_late ? " on GPU 0" : "{{node ";
      cr_expect(strstr(message, named), "%s, the %d-th: no '%s' in '%s'", call, nth, named,
                message);
      rn_status_free(status);
    }
    rn_emulated_heal();
    works(&f);
    rt_end(&f.rt);
  }
}

RT_TEST(faults, memory_fails_at_every_allocation) {
  find_emulator();
  survives("cuMemAlloc_v2", RAN_OUT_OF_MEMORY);
}

RT_TEST(faults, calls_fail_once) {
  static const char* const calls[] = {
      "cuLaunchKernel",       "cuModuleLoadData",        "cuModuleGetFunction",
      "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",    "cuEventRecord",
      "cuEventCreate",        "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags",
      "cuGraphLaunch"};
  find_emulator();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) survives(calls[i], NEEDS_TOO_MUCH);
}

RT_TEST(faults, a_launch_that_fails_names_its_node) {
  find_emulator();
  faults_t f;
  faults_begin(&f);
  faults_session(&f);
  rn_emulated_fail("cuLaunchKernel", 1, NEEDS_TOO_MUCH);
  rn_status_t status = try(&f, f.y, 1, NULL);
  cr_assert(strstr(rn_status_message(status), "cuLaunchKernel"), "%s", rn_status_message(status));
  cr_assert(strstr(rn_status_message(status), "{{node "), "%s", rn_status_message(status));
  rn_status_free(status);
  works(&f);
  rt_end(&f.rt);
}

RT_TEST(faults, a_lost_card) {
  find_emulator();
  faults_t f;
  faults_begin(&f);
  rn_scope_set_device(f.rt.s, "/cpu:0");
  rn_edge_t on_cpu = rn_AddV2(f.rt.s, f.x, f.x);
  works(&f);
  rn_emulated_fail("kernel", 1, LOST);
  for (int turn = 0; turn < 3; ++turn) {
    float y = 0;
    rn_status_t status = try(&f, f.y, 1, NULL);
    cr_assert_eq(rn_status_code(status), RN_CODE_INTERNAL, "step %d: %s", turn,
                 rn_status_message(status));
    cr_assert(strstr(rn_status_message(status), "CUDA_ERROR_ILLEGAL_ADDRESS"), "%s",
              rn_status_message(status));
    rn_status_free(status);
    OK(try(&f, on_cpu, 4, &y));
    cr_assert_eq(y, 8);
  }
  rt_end(&f.rt);
  serves_without("lost by an earlier error");
}

RT_TEST(faults, sessions_leave_nothing) {
  find_emulator();
  static const char* const things[] = {"device", "allocations", "graphs", "streams",
                                       "events", "pinned",      "modules"};
  uint64_t before[7] = {0};
  for (int turn = 0; turn < 200; ++turn) {
    faults_t f;
    faults_begin(&f);
    works(&f);
    rt_end(&f.rt);
    for (int i = 0; turn == 4 && i < 7; ++i) before[i] = rn_emulated_in_use(things[i]);
  }
  for (int i = 0; i < 7; ++i)
    cr_expect_eq(rn_emulated_in_use(things[i]), before[i], "%s: %d, then %d", things[i],
                 (int)before[i], (int)rn_emulated_in_use(things[i]));
  cr_expect_eq(before[0], 0, "%d bytes of a card without sessions", (int)before[0]);
}

// Overwrites some bytes in the middle of every file, and cuts every second one short.
static int spoil(const char* folder) {
  int count = 0;
  DIR* list = opendir(folder);
  for (struct dirent* entry; (entry = readdir(list));) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    struct stat stat_of;
    if (stat(path, &stat_of) || !S_ISREG(stat_of.st_mode)) continue;
    FILE* file = fopen(path, "r+");
    fseek(file, stat_of.st_size / 2, SEEK_SET);
    fputs("spoiled", file);
    fclose(file);
    if (count++ % 2) cr_assert_eq(truncate(path, 20), 0);
  }
  closedir(list);
  return count;
}

RT_TEST(faults, spoiled_kernels_are_made_again) {
  char folder[] = FOLDER;
  setenv("RUNNEL_CACHE_DIR", make_folder(folder), 1);
  pid_t child = fork();
  cr_assert_geq(child, 0);
  if (child == 0) {
    faults_t f;
    faults_begin(&f);
    bool ok = true;  // no assertions here: the runner does not know this process
    for (int i = 0; i < 4; ++i) ok &= rn_ok(try(&f, f.y, 2, NULL));
    _exit(!ok);
  }
  int result;
  cr_assert_eq(waitpid(child, &result, 0), child);
  cr_assert_eq(result, 0);
  int files = spoil(folder);
  cr_assert_gt(files, 0);
  faults_t f;
  faults_begin(&f);
  works(&f);
  rt_end(&f.rt);
  cr_assert_eq(said.lines, files, "%d lines for %d files, the last: %s", said.lines, files,
               said.last);
  cr_assert(strstr(said.last, "it is made again"), "%s", said.last);
  remove_folder(folder);
}

RT_TEST(faults, a_gpu_that_there_is_not) {
  faults_t f;
  faults_begin(&f);
  rn_scope_set_device(f.rt.s, "/gpu:7");
  rn_scope_name_next(f.rt.s, "far");
  rn_edge_t far = rn_AddV2(f.rt.s, f.x, f.x);
  FAILS_WITH(try(&f, far, 1, NULL), INVALID_ARGUMENT, "/gpu:7");
  works(&f);
  rn_session_destroy(f.rt.session);
  f.rt.session = NULL;
  f.rt.options.allow_soft_placement = true;
  float y;
  OK(try(&f, far, 4, &y));
  cr_assert_eq(y, 8);
  rt_end(&f.rt);
}

// What the log says about one of NVIDIA's libraries, in two sessions that use it.
static void says_once(rn_edge_t (*build)(rn_scope_t* s, rn_edge_t x), float wanted,
                      const char* text) {
  for (int turn = 0; turn < 2; ++turn) {
    faults_t f;
    float y;
    faults_begin(&f);
    rn_edge_t out = build(f.rt.s, f.x);
    OK(try(&f, out, 3, &y));
    cr_assert_eq(y, wanted, "%g", (double)y);
    rt_end(&f.rt);
  }
  cr_assert_eq(said.lines, 1, "%d lines, the last: %s", said.lines, said.last);
  cr_assert(strstr(said.last, text), "'%s' lacks '%s'", said.last, text);
}

static rn_edge_t grown(rn_scope_t* s, rn_edge_t x, const int32_t* dims, int rank) {
  return rn_Fill(s, rn_const_int32_list(s, dims, rank), x);
}

static rn_edge_t product(rn_scope_t* s, rn_edge_t x) {
  rn_edge_t y = grown(s, x, (int32_t[]){2, 2}, 2);
  int32_t axes[] = {0, 1};
  return rn_Sum(s, rn_MatMul(s, y, y), rn_const_int32_list(s, axes, 2));
}

RT_TEST(faults, no_library_for_products) {
  says_once(product, 72, "Matrix products run without cuBLASLt: libcublasLt.so");
}

static rn_edge_t convolution(rn_scope_t* s, rn_edge_t x) {
  int32_t axes[] = {0, 1, 2, 3};
  rn_edge_t image = grown(s, x, (int32_t[]){1, 2, 2, 1}, 4);
  rn_edge_t filter = grown(s, x, (int32_t[]){2, 2, 1, 1}, 4);
  rn_op_begin(s, "Conv2D");
  rn_op_input(s, image);
  rn_op_input(s, filter);
  rn_op_attr_int_list(s, "strides", (int64_t[]){1, 1, 1, 1}, 4);
  rn_op_attr_string(s, "padding", "VALID");
  rn_edge_t made = {rn_op_finish(s), 0};
  return rn_Sum(s, made, rn_const_int32_list(s, axes, 4));
}

RT_TEST(faults, library_of_another_version) {
  char path[8192];
  const char* folder = getenv("RUNNEL_CUDA_PATH");
  snprintf(path, sizeof path, "%s/../cudnn:%s", folder, folder);
  setenv("RUNNEL_CUDA_PATH", path, 1);
  setenv("RN_EMULATED_CUDNN_VERSION", "100200", 1);
  says_once(convolution, 36, "libcudnn.so.9 has the version 100200; version 9 is needed");
}

static rn_edge_t norm(rn_scope_t* s, rn_edge_t x) {
  int32_t axes[] = {0, 1};
  rn_edge_t many = grown(s, x, (int32_t[]){3, 4000}, 2);
  return rn_Sum(s, rn_Softmax(s, many), rn_const_int32_list(s, axes, 2));
}

RT_TEST(faults, too_little_shared_memory) {
  setenv("RN_EMULATED_SHARED", "8", 1);
  faults_t f;
  float y;
  faults_begin(&f);
  rn_scope_set_device(f.rt.s, "/cpu:0");
  rn_edge_t on_cpu = rn_AddV2(f.rt.s, f.x, f.x);
  rn_scope_set_device(f.rt.s, NULL);
  rn_edge_t out = norm(f.rt.s, f.x);
  for (int turn = 0; turn < 3; ++turn) {
    rn_status_t status = try(&f, out, 3, &y);
    const char* message = rn_status_message(status);
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "%s", message);
    cr_assert(strstr(message, "bytes of shared memory per block, but GPU 0"), "%s", message);
    cr_assert(strstr(message, "{{node "), "%s", message);
    rn_status_free(status);
    OK(try(&f, on_cpu, 4, &y));
    cr_assert_eq(y, 8);
  }
  rt_end(&f.rt);
}

// A plan that finds no memory gets what other plans keep for their next steps.
RT_TEST(faults, idle_plans_give_their_memory) {
  setenv("RN_EMULATED_MEMORY", "300000000", 1);
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t sums[2];
  for (int i = 0; i < 2; ++i) {  // each keeps about 160 MB
    int64_t many = 40000000 + i;
    rn_edge_t size =
        rn_ExpandDims(rt.s, rn_const_int32(rt.s, (int32_t)many), rn_const_int32(rt.s, 0));
    rn_edge_t large = rn_Neg(rt.s, rn_Fill(rt.s, size, x));
    sums[i] = rn_Max(rt.s, large, rn_const_int32(rt.s, 0));
  }
  for (int turn = 0; turn < 6; ++turn)
    cr_assert_eq(rt_get(&rt, sums[turn % 2], x, (float)turn), -(float)turn, "step %d", turn);
  rt_end(&rt);
}
