// Any shape may be fed, whatever the placeholder declares. Results and errors equal those of the
// unoptimized graph with a placeholder of unknown shape; errors come from the op that cannot use
// the shape. Nothing planned for the declared shape is used for another one; run under the address
// sanitizer.
#include "function/function.h"
#include "kernels/cpu/array.h"
#include "runnel/control_flow.h"
#include "runnel/function.h"
#include "util.h"

typedef struct net_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_edge_t x, y, inner;  // |inner|: an edge between them that may be fed; no node: none
  rn_session_t* session;
} net_t;

typedef struct kind_t {
  const char* name;
  int rank;
  int64_t dims[4];  // as declared
  void (*build)(net_t* net);
} kind_t;

static rn_edge_t filled(rn_scope_t* s, int rank, const int64_t* dims, float first) {
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){rank, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i)
    RN_DATA(&value, float)[i] = first + 0.25f * (float)(i % 7) - 0.5f;
  rn_edge_t edge = rn_const(s, RN_FLOAT, dims, rank, value.data);
  rn_tensor_clear(&value);
  return edge;
}

static void chain(net_t* net) {
  rn_scope_t* s = net->s;
  net->inner = rn_Tanh(s, rn_Mul(s, net->x, rn_const_float(s, 0.5f)));
  rn_edge_t y = rn_Add(s, rn_Square(s, net->inner), net->x);
  net->y = rn_Maximum(s, rn_Sub(s, y, rn_Sigmoid(s, net->x)), rn_Neg(s, y));
}

static void with_constant(net_t* net) {
  rn_scope_t* s = net->s;
  net->inner = rn_Add(s, net->x, filled(s, 2, (const int64_t[]){4, 8}, 1));
  net->y = rn_Mul(s, rn_Exp(s, rn_Neg(s, rn_Square(s, net->inner))), net->x);
}

static void dense(net_t* net) {
  rn_scope_t* s = net->s;
  rn_edge_t w = filled(s, 2, (const int64_t[]){8, 16}, 0),
            v = filled(s, 2, (const int64_t[]){16, 8}, 1);
  net->inner =
      rn_Relu(s, rn_BiasAdd(s, rn_MatMul(s, net->x, w), filled(s, 1, (const int64_t[]){16}, 0.1f)));
  rn_edge_t h = rn_MatMul(s, net->inner, v);
  h = rn_MatMul(s, rn_Relu(s, rn_MatMul(s, rn_Tanh(s, h), w)), v);  // both are packed
  net->y = rn_Softmax(s, rn_Add(s, h, rn_MatMul(s, net->inner, v)));
}

static void reshaped(net_t* net) {
  rn_scope_t* s = net->s;
  net->inner =
      rn_Reshape(s, rn_Mul(s, net->x, net->x), rn_const_int32_list(s, (const int32_t[]){-1, 8}, 2));
  rn_edge_t shape = rn_Shape(s, net->inner);
  net->y = rn_Add(s, rn_Neg(s, net->inner),
                  rn_Cast(s, rn_Prod(s, shape, rn_const_int32(s, 0)), RN_FLOAT));
}

static void joined(net_t* net) {
  rn_scope_t* s = net->s;
  rn_edge_t parts[2] = {rn_Tanh(s, net->x), rn_Neg(s, net->x)};
  net->inner = rn_ConcatV2(s, parts, 2, rn_const_int32(s, 1));
  rn_edges_t halves = rn_Split(s, rn_const_int32(s, 1), net->inner, 2);
  net->y = rn_Sub(s, rn_Sigmoid(s, rn_edge_at(halves, 0)), rn_edge_at(halves, 1));
}

static void convolved(net_t* net) {
  rn_scope_t* s = net->s;
  const int64_t strides[] = {1, 1, 1, 1};
  rn_edge_t filter = filled(s, 4, (const int64_t[]){3, 3, 3, 4}, 0);
  rn_edge_t y = rn_Conv2D(s, net->x, filter, strides, 4, "SAME");
  net->inner = rn_Relu(s, rn_BiasAdd(s, y, filled(s, 1, (const int64_t[]){4}, 0.3f)));
  const int64_t window[] = {1, 2, 2, 1};
  y = rn_MaxPool(s, net->inner, window, 4, window, 4, "VALID");
  rn_edge_t second =
      rn_Conv2D(s, y, filled(s, 4, (const int64_t[]){1, 1, 4, 4}, 0), strides, 4, "VALID");
  net->y = rn_Relu(s, rn_Add(s, second, y));
}

// A gradient step written out: rn_gradients would put the declared shape into the graph.
static void descended(net_t* net) {
  rn_scope_t* s = net->s;
  rn_edge_t w = filled(s, 2, (const int64_t[]){8, 3}, 0);
  net->inner = rn_MatMul(s, net->x, w);
  rn_edge_t y = rn_Tanh(s, net->inner);
  rn_edge_t dw = rn_MatMul(s, net->x, rn_TanhGrad(s, y, rn_Mul(s, y, y)), .transpose_a = true);
  net->y = rn_Sub(s, w, rn_Mul(s, dw, rn_const_float(s, 0.1f)));
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_float(s, 3));
}

static void turn(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_Add(s, values[0], rn_const_float(s, 1));
  next[1] = rn_Tanh(s, rn_Add(s, rn_Mul(s, values[1], values[1]), values[1]));
}

static void looped(net_t* net) {
  rn_scope_t* s = net->s;
  rt_loop_t loop = {.frame = "loop",
                    .count = 2,
                    .start = {rn_const_float(s, 0), rn_Neg(s, net->x)},
                    .cond = goes_on,
                    .body = turn};
  rt_loop(s, &loop);
  net->inner = loop.start[1];
  net->y = rn_Square(s, loop.exits[1]);
}

// A function that declares the shape of its argument, called twice: as a call and as a conditional.
static void called(net_t* net) {
  rn_scope_t* s = net->s;
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* inside = rn_scope_create(graph);
  rn_edge_t arg = rn_Placeholder(inside, RN_FLOAT, .shape = {true, (const int64_t[]){4, 8}, 2});
  rn_edge_t result = rn_Square(inside, rn_Tanh(inside, rn_Add(inside, arg, arg)));
  rn_function_t* function = NULL;
  rn_function_spec_t spec = {.graph = graph,
                             .name = RN_STR("f"),
                             .node_count = -1,
                             .inputs = &arg,
                             .input_count = 1,
                             .outputs = &result,
                             .output_count = 1};
  OK(rn_function_create(&spec, &function));
  OK(rn_graph_add_function(net->graph, function, NULL));
  rn_function_release(function);
  rn_scope_destroy(inside);
  rn_graph_release(graph);
  static const int floats[] = {RN_FLOAT};
  net->inner = rn_edge_at(rn_PartitionedCall(s, &net->x, 1, floats, 1, "f"), 0);
  rn_edge_t is_true = rn_Less(s, rn_const_float(s, 0), rn_const_float(s, 1));
  net->y = rn_Neg(s, rn_edge_at(rn_If(s, is_true, &net->inner, 1, floats, 1, "f", "f"), 0));
}

static const kind_t kinds[] = {
    {"chain", 2, {4, 8}, chain},
    {"with_constant", 2, {4, 8}, with_constant},
    {"dense", 2, {4, 8}, dense},
    {"reshaped", 2, {4, 8}, reshaped},
    {"joined", 2, {4, 8}, joined},
    {"descended", 2, {4, 8}, descended},
    {"looped", 2, {4, 8}, looped},
    {"called", 2, {4, 8}, called},
    {"convolved", 4, {2, 6, 6, 3}, convolved},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static net_t net_begin(const kind_t* kind, bool is_declared) {
  net_t net = {0};
  rt_register();
  OK(rn_graph_create(rn_allocator_system(), &net.graph));
  net.s = rn_scope_create(net.graph);
  net.x = is_declared ? rn_Placeholder(net.s, RN_FLOAT, .shape = {true, kind->dims, kind->rank})
                      : rn_Placeholder(net.s, RN_FLOAT);
  kind->build(&net);
  cr_assert(rn_scope_ok(net.s), "%s: %s", kind->name, rn_scope_message(net.s));
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.optimize = is_declared;
  OK(rn_session_create(net.graph, &options, rn_env_system(), rn_allocator_system(), &net.session));
  return net;
}

static void net_end(net_t* net) {
  rn_session_destroy(net->session);
  rn_scope_destroy(net->s);
  rn_graph_release(net->graph);
}

static rn_tensor_t value_of(int rank, const int64_t* dims) {
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){rank, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i) RN_DATA(&value, float)[i] = 0.1f * (float)(i % 23) - 1;
  return value;
}

static rn_status_t run(net_t* net, bool is_inner, const rn_tensor_t* fed, rn_tensor_t* out) {
  rn_edge_t feed = is_inner ? net->inner : net->x;
  rn_edge_t feeds[2] = {feed, net->x};
  const rn_tensor_t* values[2] = {fed, fed};
  rn_signature_t signature = {
      .feeds = feeds, .feed_count = is_inner ? 2 : 1, .fetches = &net->y, .fetch_count = 1};
  return rn_session_run(net->session, &signature, values, out, NULL);
}

// A convolution with what follows it may add up in another order than alone: results are near.
static void compare(const kind_t* kind, net_t* declared, net_t* open, bool is_inner, int rank,
                    const int64_t* dims) {
  rn_tensor_t fed = value_of(rank, dims), out = {0}, wanted = {0};
  rn_status_t got = run(declared, is_inner, &fed, &out);
  rn_status_t want = run(open, is_inner, &fed, &wanted);
  rn_shape_text_t shape = rn_shape_text((rn_shape_t){rank, dims});
  const char* text = shape.text;
  cr_assert_eq(rn_status_code(got), rn_status_code(want), "%s, %s fed: '%s', not '%s'", kind->name,
               text, rn_status_message(got), rn_status_message(want));
  if (rn_ok(got)) {
    cr_assert(rn_shape_eq(rn_tensor_shape(&out), rn_tensor_shape(&wanted)), "%s, %s fed",
              kind->name, text);
    for (int64_t i = 0; i < out.count; ++i) {
      float a = RN_DATA(&out, float)[i], b = RN_DATA(&wanted, float)[i];
      bool is_near =
          a - b <= 1e-4f * (1 + (b < 0 ? -b : b)) && b - a <= 1e-4f * (1 + (b < 0 ? -b : b));
      cr_assert(is_near || (a != a && b != b), "%s, %s fed: %g, not %g", kind->name, text,
                (double)a, (double)b);
    }
  }
  rn_status_free(got);
  rn_status_free(want);
  rn_tensor_clear(&fed);
  rn_tensor_clear(&out);
  rn_tensor_clear(&wanted);
}

// Larger, smaller and empty ones, of other ranks, as declared in between, and more of them than
// get programs of their own.
static void feed_all(const kind_t* kind, bool is_inner) {
  net_t declared = net_begin(kind, true), open = net_begin(kind, false);
  const int64_t batches[] = {4, 1, 64, 0, 4, 3, 5, 6, 7, 9, 10, 11, 12, 300, 4};
  for (size_t i = 0; i < sizeof batches / sizeof *batches; ++i) {
    int64_t dims[4];
    for (int d = 0; d < kind->rank; ++d) dims[d] = kind->dims[d];
    compare(kind, &declared, &open, is_inner, kind->rank, dims);
    dims[0] = batches[i];
    compare(kind, &declared, &open, is_inner, kind->rank, dims);
    dims[kind->rank - 1] += 1 + batches[i] % 3;  // which a constant does not fit
    compare(kind, &declared, &open, is_inner, kind->rank, dims);
    compare(kind, &declared, &open, is_inner, kind->rank - 1, dims);
    compare(kind, &declared, &open, is_inner, 0, NULL);
  }
  net_end(&declared);
  net_end(&open);
}

#define X(index)                                                              \
  RT_TEST(feeds, of_other_shapes_##index) { feed_all(&kinds[index], false); } \
  RT_TEST(feeds, of_inner_edges_##index) { feed_all(&kinds[index], true); }
X(0)
X(1)
X(2)
X(3)
X(4)
X(5)
X(6)
X(7)
X(8)
#undef X

_Static_assert(KINDS == 9, "each kind has its tests");

// The op that cannot use what was fed is named, not the placeholder.
RT_TEST(feeds, errors_come_from_the_op) {
  net_t net = net_begin(&kinds[2], true);
  rn_tensor_t fed = value_of(2, (const int64_t[]){4, 7}), out = {0};
  FAILS_WITH(run(&net, false, &fed, &out), INVALID_ARGUMENT, "MatMul");
  rn_tensor_clear(&fed);
  net_end(&net);
}

// A step in two calls, the second of which is fed what the first computed.
RT_TEST(feeds, of_partial_runs) {
  net_t net = net_begin(&kinds[0], true), open = net_begin(&kinds[0], false);
  const int64_t rows[] = {4, 7};
  for (int i = 0; i < 2; ++i) {
    rn_tensor_t fed = value_of(2, (const int64_t[]){rows[i], 8}), first = {0}, out = {0},
                want = {0};
    const rn_tensor_t* values[] = {&fed};
    rn_edge_t fetches[] = {net.inner, net.y};
    rn_signature_t all = {.feeds = &net.x, .feed_count = 1, .fetches = fetches, .fetch_count = 2};
    rn_signature_t one = {.feeds = &net.x, .feed_count = 1, .fetches = fetches, .fetch_count = 1};
    rn_signature_t two = {.fetches = fetches + 1, .fetch_count = 1};
    rn_partial_run_t* partial = NULL;
    OK(rn_session_partial_setup(net.session, &all, &partial));
    OK(rn_session_partial_run(net.session, partial, &one, values, &first));
    OK(rn_session_partial_run(net.session, partial, &two, NULL, &out));
    OK(run(&open, false, &fed, &want));
    cr_assert(rn_shape_eq(rn_tensor_shape(&out), rn_tensor_shape(&want)));
    cr_assert_eq(memcmp(out.data, want.data, rn_tensor_bytes(&out)), 0);
    rn_partial_run_destroy(partial);
    rn_tensor_clear(&fed);
    rn_tensor_clear(&first);
    rn_tensor_clear(&out);
    rn_tensor_clear(&want);
  }
  net_end(&net);
  net_end(&open);
}
