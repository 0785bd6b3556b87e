// Scenarios for input pipelines: functions, batches, files, datasets of datasets.
#include <sys/mman.h>

#include "sweep.h"

static const int number_type[] = {TF_INT64}, text_type[] = {TF_STRING};
static const int64_t* const no_dims[] = {NULL};
static const int64_t open_dim[] = {-1};
static const int64_t* const open_dims[] = {open_dim};
static const int scalar_rank[] = {0}, vector_rank[] = {1};
// Lets the lists below stand for several arguments of a builder.
#define MAKE(builder, ...) builder(__VA_ARGS__)
#define NUMBERS number_type, 1, no_dims, scalar_rank, 1
#define VECTORS number_type, 1, open_dims, vector_rank, 1
#define TEXTS text_type, 1, open_dims, vector_rank, 1

// Two records, "10" and "7".
static const char records[] =
    "\x02\x00\x00\x00\x00\x00\x00\x00\x78\x27\x0b\x34\x31\x30\xb5\x0f\xb2\x0b\x01\x00\x00\x00\x00"
    "\x00\x00\x00\x01\x75\xde\x41\x37\x80\x57\x9a\x9e";

// A file of them that needs no memory of the process, and goes with it.
static const char* record_file(ft_t* t) {
  static char path[32];
  if (path[0]) return path;
  int file = memfd_create("records", 0);
  FT_CHECK(t, file >= 0 && write(file, records, sizeof records - 1) == sizeof records - 1);
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return path;
}

static rn_edge_t number(rn_scope_t* s, int64_t value) {
  return rn_const(s, TF_INT64, NULL, 0, &value);
}

// An empty scalar string.
static rn_edge_t no_text(rn_scope_t* s) {
  const char* empty = "";
  return rn_Reshape(s, rn_const_strings(s, &empty, 1),
                    rn_const(s, TF_INT32, (int64_t[]){0}, 1, NULL));
}

static rn_edge_t numbers_below(rn_scope_t* s, rn_edge_t end) {
  return MAKE(rn_RangeDataset, s, number(s, 0), end, number(s, 1), NUMBERS);
}

typedef enum gives_t { SQUARE, DATASET, JUDGEMENT } gives_t;

// |name|: x to x * x, to a dataset of the numbers below x, or to whether it is odd.
static bool add_function(ft_t* t, const char* name, gives_t gives) {
  TF_Graph* body = TF_NewGraph();
  rn_scope_t* s = body ? rn_scope_create(rn_graph_of(body)) : NULL;
  TF_Function* function = NULL;
  if (s) {
    rn_edge_t x = rn_Placeholder(s, TF_INT64, .shape = RN_SET_SHAPE(NULL, 0));
    rn_edge_t rest = gives == JUDGEMENT ? rn_FloorMod(s, x, number(s, 2)) : x;
    rn_edge_t y = gives == DATASET     ? numbers_below(s, x)
                  : gives == JUDGEMENT ? rn_Equal(s, rest, number(s, 1))
                                       : rn_Mul(s, x, x);
    TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
    if (ft_ok(t)) {
      TF_Output in = rn_output_of(x), out = rn_output_of(y);
      function =
          TF_GraphToFunction(body, name, 0, -1, NULL, 1, &in, 1, &out, NULL, NULL, NULL, t->status);
    }
    if (function) TF_GraphCopyFunction(t->graph, function, NULL, t->status);
  } else {
    TF_SetStatus(t->status, TF_RESOURCE_EXHAUSTED, "no graph");
  }
  TF_DeleteFunction(function);
  rn_scope_destroy(s);
  TF_DeleteGraph(body);
  return ft_ok(t);
}

typedef struct walk_t {
  TF_Operation *make, *next;
} walk_t;

enum { MAPPED, READ, NESTED, FILTERED, WALKS };

static rn_edge_t pipeline(ft_t* t, rn_scope_t* s, int which) {
  static const bool off = false;
  rn_edge_t two = number(s, 2), no = rn_const(s, TF_BOOL, NULL, 0, &off);
  rn_edge_t six = numbers_below(s, number(s, 6));
  if (which == MAPPED) {
    rn_edge_t mapped = MAKE(rn_ParallelMapDatasetV2, s, six, NULL, 0, two, "square", NUMBERS);
    rn_edge_t mixed = MAKE(rn_ShuffleDataset, s, mapped, number(s, 3), number(s, 1), two, NUMBERS);
    return MAKE(rn_PrefetchDataset, s, MAKE(rn_BatchDatasetV2, s, mixed, two, no, VECTORS), two,
                VECTORS);
  }
  if (which == READ) {
    const char* path = record_file(t);
    rn_edge_t file = rn_const_strings(s, &path, 1);
    rn_edge_t read = rn_TFRecordDataset(s, file, no_text(s), number(s, 0));
    return MAKE(rn_BatchDatasetV2, s,
                MAKE(rn_RepeatDataset, s, read, two, text_type, 1, no_dims, scalar_rank, 1),
                number(s, 3), no, TEXTS);
  }
  if (which == FILTERED)
    return MAKE(rn_ParallelFilterDataset, s, six, NULL, 0, two, "odd", NUMBERS);
  rn_edge_t nested = MAKE(rn_ParallelInterleaveDatasetV4, s, six, NULL, 0, number(s, 3), two,
                          number(s, -1), number(s, -1), two, "below", NUMBERS);
  return MAKE(rn_CacheDataset, s, nested, no_text(s), NUMBERS);
}

static bool build(ft_t* t, walk_t* walks) {
  static const char* const names[] = {"mapped", "read", "nested", "filtered"};
  rn_scope_destroy(t->scope);
  t->scope = rn_scope_create(rn_graph_of(t->graph));
  if (!t->scope) return false;
  rn_scope_t* s = t->scope;
  for (int i = 0; i < WALKS; ++i) {
    const int* type = i == READ ? text_type : number_type;
    const int64_t* const* dims = i >= NESTED ? no_dims : open_dims;
    const int* rank = i >= NESTED ? scalar_rank : vector_rank;
    rn_edge_t dataset = pipeline(t, s, i);
    rn_edge_t it = rn_IteratorV2(s, names[i], "", type, 1, dims, rank, 1);
    rn_node_t* make = rn_MakeIterator(s, dataset, it);
    rn_edge_t next = rn_edge_at(rn_IteratorGetNext(s, it, type, 1, dims, rank, 1), 0);
    if (!rn_scope_ok(s)) break;
    walks[i] = (walk_t){.make = rn_operation_of(make), .next = rn_operation_of(next.node)};
  }
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
  return rn_scope_ok(s);
}

// The next element, or the end, which is as good. What failed in the background while another step
// went well is told once, later: |*inout_may_be_late| until then.
static bool get(ft_t* t, const walk_t* walk, bool* out_end, bool* inout_may_be_late) {
  ft_run(t, NULL, NULL, walk->next, &t->tensors[0]);
  int code = TF_GetCode(t->status);
  bool is_late = code == TF_RESOURCE_EXHAUSTED && t->had_fault && *inout_may_be_late;
  if (is_late) *inout_may_be_late = false;
  *out_end = code == TF_OUT_OF_RANGE;
  if (*out_end || is_late) TF_SetStatus(t->status, TF_OK, "");
  return ft_ok(t);
}

// Elements whose making failed are gone, but the rest comes, and then the end.
static void walk_over(ft_t* t, const walk_t* walk, int most, bool* inout_may_be_late) {
  bool is_end = false;
  FT(ft_target(t, walk->make));
  for (int i = 0; i <= most + 1 && !is_end; ++i) FT(get(t, walk, &is_end, inout_may_be_late));
  FT_CHECK(t, is_end);
}

static void walk_all(ft_t* t, int threads) {
  static const int most[WALKS] = {3, 2, 15, 3};
  walk_t walks[WALKS] = {0};
  bool may_be_late = threads > 1 && !t->for_good;
  FT(ft_start(t));
  FT(add_function(t, "square", SQUARE));
  FT(add_function(t, "below", DATASET));
  FT(add_function(t, "odd", JUDGEMENT));
  FT(build(t, walks));
  FT(ft_session(t, threads));
  for (int i = 0; i < WALKS && !t->is_over; ++i) walk_over(t, &walks[i], most[i], &may_be_late);
}

void scenario_data(ft_t* t) { walk_all(t, 1); }
void scenario_data_threads(ft_t* t) { walk_all(t, 3); }
