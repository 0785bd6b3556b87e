// Gradients of conditionals and loops that stock TensorFlow built, compared with stock's gradients
// (record_control.py).
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "grad/grad.h"
#include "graph/import.h"
#include "session/session.h"

enum { MAX_EDGES = 8 };

typedef struct recorded_t {
  rn_graph_t* graph;
  int feed_count, x_count, y_count, dx_count;
  rn_edge_t feeds[MAX_EDGES], xs[MAX_EDGES], ys[MAX_EDGES];
  rn_tensor_t values[MAX_EDGES], dxs[MAX_EDGES];
} recorded_t;

static void must(rn_status_t status, const char* what) {
  cr_assert(rn_ok(status), "%s: %s", what, rn_status_message(status));
}

static rn_edge_t edge_named(rn_graph_t* graph, char* name) {
  char* colon = strrchr(name, ':');
  *colon = 0;
  rn_edge_t edge = {rn_graph_find(graph, rn_str(name)), atoi(colon + 1)};
  cr_assert_not_null(edge.node, "no node '%s'", name);
  return edge;
}

// "2,3 = 1 2 3 4 5 6"; "-" for a scalar.
static rn_tensor_t tensor_of(char* text, rn_dtype_t dtype) {
  int64_t dims[8];
  int rank = 0;
  char *at = text, *end;
  if (*at != '-')
    for (;; ++at) {
      dims[rank++] = strtol(at, &end, 10);
      at = end;
      if (*at != ',') break;
    }
  at = strchr(text, '=') + 1;
  rn_tensor_t tensor;
  must(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){rank, dims}, &tensor), "tensor");
  for (int64_t i = 0; i < tensor.count; ++i, at = end) {
    double value = strtod(at, &end);
    if (dtype == RN_DOUBLE) RN_DATA(&tensor, double)[i] = value;
    if (dtype == RN_INT32) RN_DATA(&tensor, int32_t)[i] = (int32_t)value;
    if (dtype == RN_BOOL) RN_DATA(&tensor, bool)[i] = value != 0;
  }
  return tensor;
}

static void read_line(recorded_t* r, char* line) {
  char* word = strtok(line, " ");
  char* rest = strtok(NULL, "\n");
  if (strcmp(word, "dx") == 0) {
    if (strcmp(rest, "none") != 0) r->dxs[r->dx_count] = tensor_of(rest, RN_DOUBLE);
    r->dx_count++;
  } else if (strcmp(word, "y") == 0) {
    r->ys[r->y_count++] = edge_named(r->graph, rest);
  } else {
    char* name = strtok(rest, " ");
    rn_dtype_t dtype = RN_DOUBLE;
    if (strcmp(word, "feed") == 0) dtype = strcmp(strtok(NULL, " "), "bool") ? RN_INT32 : RN_BOOL;
    char* values = strtok(NULL, "\n");
    rn_edge_t edge = edge_named(r->graph, name);
    if (strcmp(word, "x") == 0) r->xs[r->x_count++] = edge;
    r->values[r->feed_count] = tensor_of(values, dtype);
    r->feeds[r->feed_count++] = edge;
  }
}

static void read_all(const char* path, rn_strbuf_t* out) {
  char piece[4096];
  size_t size;
  FILE* file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  while ((size = fread(piece, 1, sizeof piece, file)) > 0) rn_strbuf_append_n(out, piece, size);
  fclose(file);
}

static recorded_t open_recorded(const char* name) {
  recorded_t r = {0};
  char path[512], line[4096];
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, rn_allocator_system());
  snprintf(path, sizeof path, "%s/%s.pb", GRAD_DATA, name);
  read_all(path, &bytes);
  must(rn_graph_create(rn_allocator_system(), &r.graph), "graph");
  rn_import_options_t options = {0};
  rn_import_results_t results = {0};
  must(rn_graph_import(r.graph, rn_strbuf_view(&bytes), &options, &results), "import");
  rn_import_results_clear(&results);
  rn_strbuf_clear(&bytes);
  snprintf(path, sizeof path, "%s/%s.txt", GRAD_DATA, name);
  FILE* file = fopen(path, "r");
  cr_assert_not_null(file);
  while (fgets(line, sizeof line, file)) read_line(&r, line);
  fclose(file);
  return r;
}

static void compare(const rn_tensor_t* found, const rn_tensor_t* wanted, int x, const char* name) {
  cr_assert(rn_tensor_same_shape(found, wanted), "%s: dx%d has another shape", name, x);
  double scale = 1;
  for (int64_t k = 0; k < wanted->count; ++k) scale = fmax(scale, fabs(RN_DATA(wanted, double)[k]));
  for (int64_t k = 0; k < wanted->count; ++k) {
    double a = RN_DATA(found, double)[k], b = RN_DATA(wanted, double)[k];
    cr_expect(fabs(a - b) <= 1e-12 * scale, "%s: dx%d[%d] is %.17g, stock says %.17g", name, x,
              (int)k, a, b);
  }
}

static void check_recorded(const char* name) {
  recorded_t r = open_recorded(name);
  rn_edge_t dxs[MAX_EDGES], fetches[MAX_EDGES];
  rn_gradient_options_t options = {.dense = true};
  rn_grad_request_t request = {.graph = r.graph,
                               .ys = r.ys,
                               .y_count = r.y_count,
                               .xs = r.xs,
                               .x_count = r.x_count,
                               .options = &options};
  rn_gradient_t gradients[MAX_EDGES];
  must(rn_grad_run(&request, gradients), name);
  for (int i = 0; i < r.x_count; ++i) dxs[i] = gradients[i].dense;
  int count = 0;
  for (int i = 0; i < r.x_count; ++i) {
    cr_assert_eq(dxs[i].node != NULL, rn_tensor_is_set(&r.dxs[i]), "%s: dx%d", name, i);
    if (dxs[i].node) fetches[count++] = dxs[i];
  }
  rn_session_options_t session_options;
  rn_session_options_init(&session_options);
  session_options.intra_threads = session_options.inter_threads = 1;
  rn_session_t* session = NULL;
  must(rn_session_create(r.graph, &session_options, rn_env_system(), rn_allocator_system(),
                         &session),
       "session");
  const rn_tensor_t* fed[MAX_EDGES];
  for (int i = 0; i < r.feed_count; ++i) fed[i] = &r.values[i];
  rn_signature_t signature = {
      .feeds = r.feeds, .feed_count = r.feed_count, .fetches = fetches, .fetch_count = count};
  for (int round = 0; round < 2; ++round) {
    rn_tensor_t found[MAX_EDGES] = {0};
    must(rn_session_run(session, &signature, fed, found, NULL), name);
    for (int i = 0, k = 0; i < r.x_count; ++i)
      if (dxs[i].node) compare(&found[k++], &r.dxs[i], i, name);
    for (int i = 0; i < count; ++i) rn_tensor_clear(&found[i]);
  }
  rn_session_destroy(session);
  for (int i = 0; i < r.feed_count; ++i) rn_tensor_clear(&r.values[i]);
  for (int i = 0; i < r.dx_count; ++i) rn_tensor_clear(&r.dxs[i]);
  rn_graph_release(r.graph);
}

// The sum of |fetches| at the fed values.
static double total(rn_session_t* session, const recorded_t* r, const rn_edge_t* fetches,
                    int count) {
  const rn_tensor_t* fed[MAX_EDGES];
  rn_tensor_t found[MAX_EDGES] = {0};
  for (int i = 0; i < r->feed_count; ++i) fed[i] = &r->values[i];
  rn_signature_t signature = {
      .feeds = r->feeds, .feed_count = r->feed_count, .fetches = fetches, .fetch_count = count};
  must(rn_session_run(session, &signature, fed, found, NULL), "run");
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    for (int64_t k = 0; k < found[i].count; ++k) sum += RN_DATA(&found[i], double)[k];
    rn_tensor_clear(&found[i]);
  }
  return sum;
}

static rn_tensor_t* value_of(recorded_t* r, rn_edge_t x) {
  for (int i = 0; i < r->feed_count; ++i)
    if (r->feeds[i].node == x.node && r->feeds[i].index == x.index) return &r->values[i];
  return NULL;
}

// The gradients of |ys| by all x against differences of their sum.
static int check_order(rn_session_t* session, recorded_t* r, const char* name, int order,
                       rn_edge_t* ys, int y_count) {
  rn_gradient_options_t options = {.dense = true, .unconnected = RN_UNCONNECTED_ZERO};
  rn_grad_request_t request = {.graph = r->graph,
                               .ys = ys,
                               .y_count = y_count,
                               .xs = r->xs,
                               .x_count = r->x_count,
                               .options = &options};
  rn_gradient_t gradients[MAX_EDGES];
  must(rn_grad_run(&request, gradients), name);
  for (int i = 0; i < r->x_count; ++i) {
    rn_tensor_t* x = value_of(r, r->xs[i]);
    const rn_tensor_t* fed[MAX_EDGES];
    for (int k = 0; k < r->feed_count; ++k) fed[k] = &r->values[k];
    rn_tensor_t dx = {0};
    rn_signature_t signature = {.feeds = r->feeds,
                                .feed_count = r->feed_count,
                                .fetches = &gradients[i].dense,
                                .fetch_count = 1};
    must(rn_session_run(session, &signature, fed, &dx, NULL), name);
    double scale = 1, step = 4e-6;
    for (int64_t k = 0; k < dx.count; ++k) scale = fmax(scale, fabs(RN_DATA(&dx, double)[k]));
    for (int64_t k = 0; k < dx.count; ++k) {
      double old = RN_DATA(x, double)[k], found = RN_DATA(&dx, double)[k];
      RN_DATA(x, double)[k] = old + step;
      double above = total(session, r, ys, y_count);
      RN_DATA(x, double)[k] = old - step;
      double wanted = (above - total(session, r, ys, y_count)) / (2 * step);
      RN_DATA(x, double)[k] = old;
      cr_expect(fabs(found - wanted) <= 1e-7 * scale,
                "%s: order %d, d/dx%d[%d] is %.10g, differences give %.10g", name, order, i, (int)k,
                found, wanted);
    }
    rn_tensor_clear(&dx);
  }
  for (int i = 0; i < r->x_count; ++i) ys[i] = gradients[i].dense;
  return r->x_count;
}

// Gradients of gradients of gradients, by differences.
static void check_higher(const char* name) {
  recorded_t r = open_recorded(name);
  rn_session_options_t session_options;
  rn_session_options_init(&session_options);
  session_options.intra_threads = session_options.inter_threads = 1;
  rn_session_t* session = NULL;
  must(rn_session_create(r.graph, &session_options, rn_env_system(), rn_allocator_system(),
                         &session),
       "session");
  rn_edge_t ys[MAX_EDGES];
  int count = r.y_count;
  memcpy(ys, r.ys, sizeof ys);
  for (int order = 1; order <= 3; ++order) count = check_order(session, &r, name, order, ys, count);
  rn_session_destroy(session);
  for (int i = 0; i < r.feed_count; ++i) rn_tensor_clear(&r.values[i]);
  for (int i = 0; i < r.dx_count; ++i) rn_tensor_clear(&r.dxs[i]);
  rn_graph_release(r.graph);
}

#define RECORDED(name)                                               \
  Test(grad_control, name, .timeout = 60) { check_recorded(#name); } \
  Test(grad_higher, name, .timeout = 60) { check_higher(#name); }
RECORDED(cond_both)
RECORDED(cond_other)
RECORDED(cond_constant_branch)
RECORDED(cond_nested)
RECORDED(cond_two_outputs)
RECORDED(case_three)
RECORDED(while_power)
RECORDED(while_unknown)
RECORDED(while_no_turn)
RECORDED(while_condition_on_value)
RECORDED(while_nested)
RECORDED(while_nested_invariant)
RECORDED(cond_in_while)
RECORDED(cond_in_while_unknown)
RECORDED(nested_cond_in_while)
RECORDED(while_in_cond)
RECORDED(while_in_cond_not_taken)
RECORDED(while_in_cond_in_while)
RECORDED(while_array)
RECORDED(while_gather)
RECORDED(array_concat)
RECORDED(list_ops)
RECORDED(while_two_exits)
RECORDED(while_not_asked)

// The same made of functions.
RECORDED(fn_cond_both)
RECORDED(fn_cond_other)
RECORDED(fn_cond_constant_branch)
RECORDED(fn_cond_nested)
RECORDED(fn_cond_two_outputs)
RECORDED(fn_while_power)
RECORDED(fn_while_unknown)
RECORDED(fn_while_no_turn)
RECORDED(fn_while_nested)
RECORDED(fn_while_nested_invariant)
RECORDED(fn_cond_in_while)
RECORDED(fn_nested_cond_in_while)
RECORDED(fn_while_in_cond)
RECORDED(fn_while_in_cond_not_taken)
RECORDED(fn_while_in_cond_in_while)
RECORDED(fn_while_array)
RECORDED(fn_while_gather)
RECORDED(fn_while_two_exits)
RECORDED(fn_switch)
RECORDED(fn_call)
