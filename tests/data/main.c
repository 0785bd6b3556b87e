// Replays input pipelines that record.py recorded from stock TensorFlow, through the public C API
// of the libtensorflow that it is linked with.
//
//   data_test [--threads N] [--filter TEXT] CASES FILES_DIR
//
// Prints one line per failing case, then a summary. An alarm ends a case that hangs.
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ops/value.h"
#include "tensorflow/c/c_api.h"

enum { MAX_TENSORS = 32, CASE_SECONDS = 60 };

typedef struct {
  const char* name;
  const char* files;
  char folder[32];  // of the case alone; empty when it begins
  TF_Graph* graph;
  TF_Session* session;
  TF_Status* status;
  char why[1024];
} replay_t;

static const char* current = "";

static void on_alarm(int signal_number) {
  (void)signal_number;
  char text[256];
  int size = snprintf(text, sizeof text, "%s: takes too long\n", current);
  if (write(1, text, (size_t)size) < 0) _exit(3);
  _exit(2);
}

static unsigned char* decode(const char* text, size_t* out_size) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned char* out = malloc(strlen(text) + 1);
  size_t size = 0;
  unsigned bits = 0, held = 0;
  for (; *text && *text != '='; ++text) {
    bits = bits << 6 | (unsigned)(strchr(alphabet, *text) - alphabet);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out[size++] = (unsigned char)(bits >> held);
  }
  *out_size = size;
  return out;
}

static int remove_one(const char* path, const struct stat* found, int kind, struct FTW* where) {
  (void)found, (void)kind, (void)where;
  return remove(path);
}

static bool fail(replay_t* replay, const char* what) {
  snprintf(replay->why, sizeof replay->why, "%s: %s", what, TF_Message(replay->status));
  return false;
}

static bool import(replay_t* replay, const json_t* row) {
  TF_Buffer buffer = {0};
  unsigned char* bytes = decode(json_string_value(json_object_get(row, "graph")), &buffer.length);
  buffer.data = bytes;
  TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(replay->graph, &buffer, options, replay->status);
  TF_DeleteImportGraphDefOptions(options);
  free(bytes);
  return TF_GetCode(replay->status) == TF_OK ? true : fail(replay, "import");
}

static bool open_session(replay_t* replay, int threads) {
  // ConfigProto: intra_op_parallelism_threads = 2, inter_op_parallelism_threads = 5.
  char config[] = {2 << 3, (char)threads, 5 << 3, (char)threads};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, config, sizeof config, replay->status);
  replay->session = TF_NewSession(replay->graph, options, replay->status);
  TF_DeleteSessionOptions(options);
  return replay->session ? true : fail(replay, "session");
}

static bool find(replay_t* replay, const char* name, TF_Output* out) {
  char node[512];
  snprintf(node, sizeof node, "%s", name);
  char* colon = strrchr(node, ':');
  out->index = colon ? atoi(colon + 1) : 0;
  if (colon) *colon = '\0';
  out->oper = TF_GraphOperationByName(replay->graph, node);
  if (out->oper) return true;
  snprintf(replay->why, sizeof replay->why, "no node %s", node);
  return false;
}

// |text| with $DIR, the folder of the files, or $TMP, that of the case, in the place of the folder.
static bool find_folder(const replay_t* replay, const char* text, char* out, size_t size) {
  const char* dir = strstr(text, "$DIR");
  const char* at = dir ? dir : strstr(text, "$TMP");
  if (at)
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, dir ? replay->files : replay->folder,
             at + 4);
  return at != NULL;
}

// The same in the strings of |spec|.
static json_t* with_folder(const replay_t* replay, const json_t* spec) {
  json_t* copy = json_deep_copy(spec);
  json_t *values = json_object_get(copy, "values"), *value;
  size_t i;
  json_array_foreach(values, i, value) {
    const char* text = json_string_value(value);
    char path[4096];
    if (!text || !find_folder(replay, text, path, sizeof path)) continue;
    json_array_set_new(values, i, json_string(path));
  }
  return copy;
}

// A step's nodes and tensors, looked up once.
typedef struct {
  int feed_count, fetch_count, target_count;
  TF_Output feeds[MAX_TENSORS], fetches[MAX_TENSORS];
  TF_Tensor* fed[MAX_TENSORS];
  const TF_Operation* targets[MAX_TENSORS];
} step_t;

static bool prepare(replay_t* replay, const json_t* row, step_t* step) {
  const char* name;
  json_t* value;
  size_t i;
  json_object_foreach(json_object_get(row, "feed"), name, value) {
    json_t* spec = with_folder(replay, value);
    step->fed[step->feed_count] = value_create(spec, replay->why, sizeof replay->why);
    json_decref(spec);
    if (!step->fed[step->feed_count]) return false;
    if (!find(replay, name, &step->feeds[step->feed_count++])) return false;
  }
  json_array_foreach(json_object_get(row, "fetch"), i,
                     value) if (!find(replay, json_string_value(value),
                                      &step->fetches[step->fetch_count++])) return false;
  json_array_foreach(json_object_get(row, "target"), i, value) {
    TF_Output output;
    if (!find(replay, json_string_value(value), &output)) return false;
    step->targets[step->target_count++] = output.oper;
  }
  return true;
}

static bool check_error(replay_t* replay, const json_t* error) {
  int code = (int)json_integer_value(json_object_get(error, "code"));
  char want[2048];
  const char* text = json_string_value(json_object_get(error, "message"));
  if (!find_folder(replay, text, want, sizeof want)) snprintf(want, sizeof want, "%s", text);
  if ((int)TF_GetCode(replay->status) == code &&
      strncmp(TF_Message(replay->status), want, strlen(want)) == 0)
    return true;
  snprintf(replay->why, sizeof replay->why, "error %d \"%.300s\", expected %d \"%.300s\"",
           (int)TF_GetCode(replay->status), TF_Message(replay->status), code, want);
  return false;
}

static bool matches(replay_t* replay, TF_Tensor** got, int count, const json_t* expect) {
  if (json_array_size(expect) != (size_t)count) return false;
  for (int i = 0; i < count; ++i) {
    tolerance_t tolerance = tolerance_of(TF_TensorType(got[i]));
    if (!value_matches(got[i], json_array_get(expect, (size_t)i), &tolerance, replay->why,
                       sizeof replay->why))
      return false;
  }
  return true;
}

// An answer in any order is taken off the list of those that are left.
static bool matches_one(replay_t* replay, TF_Tensor** got, int count, json_t* left) {
  json_t* answer;
  size_t i;
  json_array_foreach(left, i, answer) {
    const json_t* expect = json_object_get(answer, "expect");
    if (!expect || !matches(replay, got, count, expect)) continue;
    json_array_remove(left, i);
    return true;
  }
  return false;
}

static bool run_once(replay_t* replay, const step_t* step, const json_t* answer, json_t* left,
                     bool is_beyond) {
  TF_Tensor* got[MAX_TENSORS] = {0};
  TF_SessionRun(replay->session, NULL, step->feeds, step->fed, step->feed_count, step->fetches, got,
                step->fetch_count, step->targets, step->target_count, NULL, replay->status);
  const json_t* error = json_object_get(answer, "error");
  bool is_right;
  if (error && is_beyond && TF_GetCode(replay->status) == TF_OK) {
    is_right = true;
  } else if (error) {
    is_right = check_error(replay, error);
  } else if (TF_GetCode(replay->status) != TF_OK) {
    is_right = fail(replay, "run");
  } else if (left) {
    is_right = matches_one(replay, got, step->fetch_count, left);
  } else {
    is_right = matches(replay, got, step->fetch_count, json_object_get(answer, "expect"));
  }
  for (int i = 0; i < step->fetch_count; ++i)
    if (got[i]) TF_DeleteTensor(got[i]);
  return is_right;
}

static bool run_step(replay_t* replay, const json_t* row, size_t number) {
  step_t step = {0};
  json_t *answers = json_object_get(row, "again"), *answer;
  bool in_any_order = json_is_true(json_object_get(row, "any_order"));
  json_t* left = in_any_order ? json_deep_copy(answers) : NULL;
  bool is_right = prepare(replay, row, &step);
  size_t i;
  char where[64] = "";
  json_array_foreach(answers, i, answer) {
    if (!is_right) break;
    snprintf(where, sizeof where, "step %zu, run %zu: ", number, i);
    is_right = run_once(replay, &step, answer, left, json_is_true(json_object_get(row, "beyond")));
  }
  for (int f = 0; f < step.feed_count; ++f) TF_DeleteTensor(step.fed[f]);
  json_decref(left);
  if (!is_right) {
    char text[sizeof replay->why];
    snprintf(text, sizeof text, "%s%.900s", where, replay->why);
    memcpy(replay->why, text, sizeof text);
  }
  return is_right;
}

static bool run_case(const json_t* row, const char* files, int threads) {
  replay_t replay = {.name = json_string_value(json_object_get(row, "name")), .files = files};
  strcpy(replay.folder, "/tmp/runnel_data_XXXXXX");
  if (!mkdtemp(replay.folder)) return false;
  replay.graph = TF_NewGraph();
  replay.status = TF_NewStatus();
  current = replay.name;
  alarm(CASE_SECONDS);
  bool is_right = import(&replay, row) && open_session(&replay, threads);
  const json_t* step;
  size_t i;
  json_array_foreach(json_object_get(row, "steps"), i, step) {
    if (!is_right) break;
    is_right = run_step(&replay, step, i);
  }
  if (!is_right) printf("%s: %s\n", replay.name, replay.why);
  if (replay.session) {
    TF_CloseSession(replay.session, replay.status);
    TF_DeleteSession(replay.session, replay.status);
  }
  TF_DeleteGraph(replay.graph);
  TF_DeleteStatus(replay.status);
  nftw(replay.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  alarm(0);
  return is_right;
}

int main(int argc, char** argv) {
  int threads = 2, at = 1;
  const char* filter = "";
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (strcmp(argv[at], "--threads") == 0) threads = atoi(argv[at + 1]);
    if (strcmp(argv[at], "--filter") == 0) filter = argv[at + 1];
  }
  if (argc - at != 2) {
    fprintf(stderr, "usage: data_test [--threads N] [--filter TEXT] CASES FILES\n");
    return 2;
  }
  FILE* file = fopen(argv[at], "r");
  if (!file) {
    perror(argv[at]);
    return 2;
  }
  signal(SIGALRM, on_alarm);
  setvbuf(stdout, NULL, _IOLBF, 0);
  int passed = 0, failed = 0;
  char* line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, file) > 0) {
    json_t* row = json_loads(line, 0, NULL);
    if (row && strstr(json_string_value(json_object_get(row, "name")), filter)) {
      bool is_right = run_case(row, argv[at + 1], threads);
      passed += is_right;
      failed += !is_right;
    }
    json_decref(row);
  }
  free(line);
  fclose(file);
  printf("%d passed, %d failed\n", passed, failed);
  return failed || !passed ? 1 : 0;
}
