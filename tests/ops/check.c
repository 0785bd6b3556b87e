// Evaluates a case: static shapes, outputs, errors, variables afterwards, and the kernel after a
// build error.
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char* const code_names[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

static const char* code_name(const TF_Status* status) {
  const size_t code = (size_t)TF_GetCode(status);
  return code < sizeof code_names / sizeof *code_names ? code_names[code] : "?";
}

static const char* text_of(const json_t* object, const char* key) {
  const char* s = json_string_value(json_object_get(object, key));
  return s ? s : "";
}

outcome_t check_fail(check_t* check, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(check->text, sizeof check->text, format, args);
  va_end(args);
  return OUTCOME_FAILED;
}

// ---- sessions

// ConfigProto: intra_op_parallelism_threads (2) = 1, inter_op_parallelism_threads (5) = 1, and
// graph_options (10) with optimizer_options (3) opt_level (3) = -1 and rewrite_options (10)
// disable_meta_optimizer (19) = true.
static const unsigned char plain_config[] = {
    0x10, 1,  0x28, 1,                                                           //
    0x52, 18,                                                                    //
    0x1a, 11, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,  //
    0x52, 3,  0x98, 0x01, 1,
};
enum { THREADS_ONLY = 4 };

TF_Session* check_open(const check_t* check, TF_Graph* graph, TF_Status* status) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, plain_config, check->options.optimize ? THREADS_ONLY : sizeof plain_config,
               status);
  TF_Session* session = TF_GetCode(status) == TF_OK ? TF_NewSession(graph, options, status) : NULL;
  TF_DeleteSessionOptions(options);
  return session;
}

void check_close(TF_Session* session) {
  if (!session) return;
  TF_Status* status = TF_NewStatus();
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteStatus(status);
}

bool check_prepare(const build_t* build, TF_Session* session) {
  if (build->var_count) {
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0,
                  (const TF_Operation* const*)build->init, (int)build->var_count, NULL,
                  build->status);
    if (TF_GetCode(build->status) != TF_OK) return false;
  }
  for (size_t i = 0; i < build->before_count; i++) {
    if (!check_run(build, session, NULL, 0, build->before[i], NULL)) return false;
  }
  return true;
}

bool check_run(const build_t* build, TF_Session* session, const TF_Output* fetches, size_t count,
               TF_Operation* target, TF_Tensor** out) {
  const TF_Operation* targets[] = {target};
  if (count) memset(out, 0, count * sizeof *out);
  TF_SessionRun(session, NULL, build->feeds, build->feed_values, (int)build->feed_count, fetches,
                out, (int)count, targets, target ? 1 : 0, NULL, build->status);
  return TF_GetCode(build->status) == TF_OK;
}

void check_release(TF_Tensor** tensors, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (tensors[i]) TF_DeleteTensor(tensors[i]);
  }
}

// ---- comparing

const tolerance_t* check_tolerance(const check_t* check, tolerance_t* store) {
  const json_t *tol = json_object_get(check->row, "tol"),
               *ulps = json_object_get(check->row, "ulps");
  if (!tol && !ulps) return NULL;
  const double both = json_number_value(tol);
  *store = (tolerance_t){both, both, json_number_value(ulps)};
  return store;
}

// Whether an error is the recorded one.
static outcome_t compare_error(check_t* check, const char* stage, const TF_Status* status,
                               const json_t* want) {
  const char *code = text_of(want, "code"), *message = text_of(want, "message");
  const char* got = TF_Message(status);
  if (strcmp(stage, text_of(want, "stage")) != 0) {
    return check_fail(check, "%s error \"%s\", should be a %s error \"%s\"", stage, got,
                      text_of(want, "stage"), message);
  }
  if (strcmp(code_name(status), code) != 0) {
    return check_fail(check, "%s error %s \"%s\", should be %s \"%s\"", stage, code_name(status),
                      got, code, message);
  }
  if (check->options.codes_only) return OUTCOME_PASSED;
  if (strcmp(text_of(check->row, "message"), "code-only") == 0) return OUTCOME_PASSED;
  const char* start =
      json_string_value(json_object_get(json_object_get(check->row, "message"), "starts"));
  if (start && strncmp(got, start, strlen(start)) == 0) return OUTCOME_PASSED;
  // The rest of such a message names the machine.
  const char* end = strstr(message, "' in binary");
  const size_t n = end ? (size_t)(end - message) : strlen(message) + 1;
  if (strncmp(got, message, n) == 0) return OUTCOME_PASSED;
  return check_fail(check, "%s error says \"%s\", should say \"%s\"", stage, got, message);
}

static outcome_t compare_values(check_t* check, const char* what, TF_Tensor* const* got, size_t n,
                                const json_t* want) {
  tolerance_t store;
  char why[512];
  if (n != json_array_size(want)) {
    return check_fail(check, "%zu %ss, should be %zu", n, what, json_array_size(want));
  }
  for (size_t i = 0; i < n; i++) {
    if (!value_matches(got[i], json_array_get(want, i), check_tolerance(check, &store), why,
                       sizeof why)) {
      return check_fail(check, "%s %zu %s", what, i, why);
    }
  }
  return OUTCOME_PASSED;
}

// Whether stock infers a wrong shape for output |i|.
static bool is_wrong_static(const check_t* check, size_t i) {
  const json_t* wrong = json_object_get(check->row, "wrong_static");
  for (size_t k = 0; k < json_array_size(wrong); k++) {
    if ((size_t)json_integer_value(json_array_get(wrong, k)) == i) return true;
  }
  return false;
}

static outcome_t compare_static(check_t* check, const build_t* build) {
  const json_t* want = json_object_get(check->golden, "static");
  for (size_t i = 0; i < json_array_size(want); i++) {
    const json_t* shape = json_array_get(want, i);
    if (is_wrong_static(check, i) && !check->options.is_stock) {
      // What came out is right; without an answer nothing is known.
      const json_t* outputs = json_object_get(check->golden, "outputs");
      if (!outputs) continue;
      shape = json_object_get(json_array_get(outputs, i), "shape");
    }
    const TF_Output out = {build->node, (int)i};
    const int rank = TF_GraphGetTensorNumDims(build->graph, out, build->status);
    const int want_rank = json_is_null(shape) ? -1 : (int)json_array_size(shape);
    if (rank != want_rank) {
      return check_fail(check, "static rank of output %zu is %d, should be %d", i, rank, want_rank);
    }
    int64_t dims[MAX_RANK];
    if (rank > 0) TF_GraphGetTensorShape(build->graph, out, dims, rank, build->status);
    for (int d = 0; d < rank; d++) {
      const json_int_t n = json_integer_value(json_array_get(shape, (size_t)d));
      if (dims[d] != n) {
        return check_fail(check, "static size %d of output %zu is %lld, should be %lld", d, i,
                          (long long)dims[d], (long long)n);
      }
    }
  }
  return OUTCOME_PASSED;
}

// ---- the steps of a case

bool check_lacks_gpu_kernel(check_t* check, const TF_Status* status) {
  const char* message = TF_Message(status);
  if (!check->options.on_gpu ||
      !strstr(message, "no supported kernel for GPU devices is available"))
    return false;
  check->lacks_gpu_kernel = true;
  snprintf(check->text, sizeof check->text, "%.900s", message);
  return true;
}

static outcome_t check_answer(check_t* check, const build_t* build, TF_Session* session,
                              TF_Operation* op, const json_t* want) {
  TF_Output fetches[MAX_OUTPUTS];
  TF_Tensor* out[MAX_OUTPUTS];
  const size_t n = build_fetchable(op, fetches);
  const json_t* error = json_object_get(want, "error");
  if (!check_run(build, session, fetches, n, n ? NULL : op, out)) {
    if (check_lacks_gpu_kernel(check, build->status)) return OUTCOME_SKIPPED;
    if (error) return compare_error(check, "run", build->status, error);
    return check_fail(check, "run error %s \"%s\"", code_name(build->status),
                      TF_Message(build->status));
  }
  outcome_t outcome = OUTCOME_PASSED;
  if (error && json_is_true(json_object_get(check->row, "beyond"))) {
    // Stock refuses what the library does; other rows say whether it does it right.
  } else if (error) {
    outcome = check_fail(check, "ran, should be error %s \"%s\"", text_of(error, "code"),
                         text_of(error, "message"));
  } else {
    outcome = compare_values(check, "output", out, n, json_object_get(want, "outputs"));
  }
  check_release(out, n);
  return outcome;
}

static outcome_t check_after(check_t* check, const build_t* build, TF_Session* session) {
  const json_t* want = json_object_get(check->golden, "after");
  TF_Tensor* out[MAX_NODES];
  if (!want) return OUTCOME_PASSED;
  if (!check_run(build, session, build->vars, build->var_count, NULL, out)) {
    return check_fail(check, "reading the variables: %s", TF_Message(build->status));
  }
  const outcome_t outcome = compare_values(check, "variable", out, build->var_count, want);
  check_release(out, build->var_count);
  return outcome;
}

static outcome_t check_then(check_t* check, const build_t* build, TF_Session* session) {
  const json_t* want = json_object_get(check->golden, "then");
  outcome_t outcome = OUTCOME_PASSED;
  for (size_t i = 0; outcome == OUTCOME_PASSED && i < build->then_count; i++) {
    outcome = check_answer(check, build, session, build->then[i], json_array_get(want, i));
    if (outcome == OUTCOME_FAILED) {
      char text[sizeof check->text];
      memcpy(text, check->text, sizeof text);
      snprintf(check->text, sizeof check->text, "then[%zu]: %.900s", i, text);
    }
  }
  return outcome;
}

// |want| is the golden row, or what it holds under "kernel".
static outcome_t check_steps(check_t* check, const build_t* build, const json_t* want) {
  TF_Session* session = check_open(check, build->graph, build->status);
  if (!session) return check_fail(check, "no session: %s", TF_Message(build->status));
  outcome_t outcome = OUTCOME_PASSED;
  if (!check_prepare(build, session)) {
    outcome = check_fail(check, "before: %s", TF_Message(build->status));
  }
  if (outcome == OUTCOME_PASSED) outcome = check_answer(check, build, session, build->node, want);
  if (outcome == OUTCOME_PASSED && want == check->golden) {
    outcome = check_after(check, build, session);
    if (outcome == OUTCOME_PASSED) outcome = check_then(check, build, session);
  }
  check_close(session);
  return outcome;
}

static outcome_t check_attempt(check_t* check, bool has_static_shapes, const json_t* want) {
  build_t build;
  const bool can_run = !check_lacks_kernel(check);
  const json_t* error = json_object_get(want, "error");
  outcome_t outcome;
  // Building needs no device, and its messages name the one that was asked for.
  if (check->options.on_gpu && strcmp(text_of(error, "stage"), "build") == 0)
    return OUTCOME_SKIPPED;
  if (!build_case(&build, check->row, has_static_shapes, check_device(check))) {
    if (build.why[0]) {
      outcome = check_fail(check, "bad row: %s", build.why);
    } else if (error) {
      outcome = compare_error(check, "build", build.status, error);
    } else {
      outcome = check_fail(check, "build error %s \"%s\"", code_name(build.status),
                           TF_Message(build.status));
    }
  } else if (strcmp(text_of(error, "stage"), "build") == 0) {
    outcome = check_fail(check, "built, should be error %s \"%s\"", text_of(error, "code"),
                         text_of(error, "message"));
  } else {
    outcome = has_static_shapes ? compare_static(check, &build) : OUTCOME_PASSED;
    if (outcome == OUTCOME_PASSED && !can_run) outcome = OUTCOME_SKIPPED;
    if (outcome == OUTCOME_PASSED) outcome = check_steps(check, &build, want);
  }
  build_destroy(&build);
  return outcome;
}

// ---- modes

typedef bool (*op_question_t)(TF_Graph* graph, const char* op, TF_Status* status);

static bool is_unknown(TF_Graph* graph, const char* op, TF_Status* status) {
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphGetOpDef(graph, op, def, status);
  TF_DeleteBuffer(def);
  return TF_GetCode(status) == TF_NOT_FOUND;
}

static bool is_without_kernel(TF_Graph* graph, const char* op, TF_Status* status) {
  (void)graph;
  TF_Buffer* kernels = TF_GetRegisteredKernelsForOp(op, status);
  const bool none = !kernels || kernels->length == 0;
  TF_DeleteBuffer(kernels);
  return none;
}

// Whether the answer is yes for an op of |spec|, or of what hangs on it; then its name.
static const char* find_in_row(const json_t* spec, op_question_t question, TF_Graph* graph,
                               TF_Status* status) {
  const char* op = text_of(spec, "op");
  if (op[0] && question(graph, op, status)) return op;
  static const char* const keys[] = {"inputs", "control", "before", "then"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const json_t* list = json_object_get(spec, keys[k]);
    for (size_t i = 0; i < json_array_size(list); i++) {
      const json_t* one = json_array_get(list, i);
      const char* found = json_is_object(one) ? find_in_row(one, question, graph, status) : NULL;
      for (size_t j = 0; !found && j < json_array_size(one); j++) {
        found = find_in_row(json_array_get(one, j), question, graph, status);
      }
      if (found) return found;
    }
  }
  return NULL;
}

static bool ask(check_t* check, op_question_t question, const char* what) {
  TF_Graph* graph = TF_NewGraph();
  TF_Status* status = TF_NewStatus();
  const char* op = find_in_row(check->row, question, graph, status);
  if (op) snprintf(check->text, sizeof check->text, "%s %s", op, what);
  TF_DeleteStatus(status);
  TF_DeleteGraph(graph);
  return op != NULL;
}

bool check_lacks_op(check_t* check) {
  const json_t* error = json_object_get(check->golden, "error");
  if (strncmp(text_of(error, "message"), "Op type not registered", 22) == 0) return false;
  return ask(check, is_unknown, "is not registered");
}

// Stock TensorFlow rewrites a few ops that have no kernel, so it is asked to run everything.
bool check_lacks_kernel(check_t* check) {
  return !check->options.is_stock && ask(check, is_without_kernel, "has no kernel");
}

outcome_t check_eval(check_t* check) {
  const json_t* error = json_object_get(check->golden, "error");
  const json_t* kernel = json_object_get(check->golden, "kernel");
  const char* code = text_of(error, "code");
  if (strcmp(code, "DIED") == 0) {
    if (check->options.is_stock) return OUTCOME_SKIPPED;
    const outcome_t outcome = check_attempt(check, true, check->golden);
    return outcome == OUTCOME_SKIPPED ? outcome : OUTCOME_PASSED;  // any answer but death will do
  }
  outcome_t outcome = OUTCOME_PASSED;
  if (strcmp(code, "PYTHON") != 0) outcome = check_attempt(check, true, check->golden);
  const json_t* kernel_error = json_object_get(kernel, "error");
  if (outcome != OUTCOME_PASSED || !kernel) return outcome;
  if (strcmp(text_of(kernel_error, "code"), "PYTHON") == 0) return OUTCOME_PASSED;
  return check_attempt(check, false, kernel);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

outcome_t check_perf(check_t* check) {
  enum { BATCH = 32 };
  const double budget_ns = 2e7;
  build_t build;
  TF_Session* session = NULL;
  if (json_object_get(check->golden, "error") || json_object_get(check->row, "then")) {
    return OUTCOME_SKIPPED;
  }
  bool ok = build_case(&build, check->row, true, check_device(check)) &&
            (session = check_open(check, build.graph, build.status)) != NULL &&
            check_prepare(&build, session);
  TF_Output fetches[MAX_OUTPUTS];
  TF_Tensor* out[MAX_OUTPUTS];
  const size_t n = ok ? build_fetchable(build.node, fetches) : 0;
  double best = INFINITY;
  for (double start = now_ns(); ok && now_ns() - start < budget_ns;) {
    const double from = now_ns();
    for (int i = 0; ok && i < BATCH; i++) {
      ok = check_run(&build, session, fetches, n, n ? NULL : build.node, out);
      if (ok) check_release(out, n);
    }
    best = fmin(best, (now_ns() - from) / BATCH);
  }
  if (ok) {
    snprintf(check->text, sizeof check->text, "%.0f ns", best);
  } else {
    check_fail(check, "%s%s", build.why, TF_Message(build.status));
  }
  check_close(session);
  build_destroy(&build);
  return ok ? OUTCOME_PASSED : OUTCOME_FAILED;
}
