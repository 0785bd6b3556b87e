// Networks of matrices, for tests of matmul passes: run with all passes and without any, which must
// give the same bits, and with one pass, to see which nodes it leaves.
#ifndef RUNNEL_TESTS_STEP_NETS_H_
#define RUNNEL_TESTS_STEP_NETS_H_

#include "graph_of_step.h"
#include "matrices.h"

enum { kMostFed = 3, kMostFetched = 3 };

typedef struct net_t {
  rn_edge_t fed[kMostFed];
  int64_t dims[kMostFed][2];
  int fed_count;
  rn_edge_t fetched[kMostFetched];
  int fetched_count;
} net_t;
typedef net_t (*build_t)(rn_scope_t* s, int64_t rows);
typedef struct results_t {
  rn_tensor_t values[kMostFetched];
  int count;
} results_t;

// Adds a matrix that is fed with numbers.
static RT_UNUSED rn_edge_t net_feed(rn_scope_t* s, net_t* net, int64_t rows, int64_t columns) {
  int i = net->fed_count++;
  net->dims[i][0] = rows;
  net->dims[i][1] = columns;
  return net->fed[i] = rn_Placeholder(s, RN_FLOAT, .shape = {true, net->dims[i], 2});
}

static RT_UNUSED void net_fetch(net_t* net, rn_edge_t edge) {
  net->fetched[net->fetched_count++] = edge;
}

// Runs the network twice: the second step finds what the first has left.
static RT_UNUSED results_t run_net(build_t build, int64_t rows, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  net_t net = build(rt.s, rows);
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_tensor_t fed[kMostFed];
  for (int i = 0; i < net.fed_count; ++i)
    fed[i] = numbers(net.dims[i][0], net.dims[i][1], (uint64_t)i + 1);
  results_t results = {.count = net.fetched_count};
  for (int again = 0; again < 2; ++again) {
    rt_step_t step = {0};
    for (int i = 0; i < net.fed_count; ++i) rt_feed(&step, net.fed[i], &fed[i]);
    for (int i = 0; i < net.fetched_count; ++i) rt_fetch(&step, net.fetched[i]);
    OK(rt_run(&rt, &step));
    for (int i = 0; i < net.fetched_count; ++i) {
      if (again) same_bits(&results.values[i], &step.out[i], rows, threads);
      results.values[i] = step.out[i];
    }
  }
  for (int i = 0; i < net.fed_count; ++i) rn_tensor_clear(&fed[i]);
  rt_end(&rt);
  return results;
}

// The passes keep the bits, whatever the number of rows and threads.
static RT_UNUSED void keeps_bits(build_t build, const int64_t* rows, int count, int most_threads) {
  for (int r = 0; r < count; ++r) {
    results_t wanted = run_net(build, rows[r], false, 1);
    for (int threads = 1; threads <= most_threads; threads *= 2) {
      results_t got = run_net(build, rows[r], true, threads);
      for (int i = 0; i < wanted.count; ++i)
        same_bits(&got.values[i], &wanted.values[i], rows[r], threads);
    }
    for (int i = 0; i < wanted.count; ++i) rn_tensor_clear(&wanted.values[i]);
  }
}

// How many nodes of |op| |pass| leaves.
static RT_UNUSED int count_after(rn_status_t (*pass)(rn_ir_t* ir), build_t build, int64_t rows,
                                 const char* op) {
  rt_t rt = rt_begin(1);
  net_t net = build(rt.s, rows);
  rt_step_t step = {0};
  for (int i = 0; i < net.fed_count; ++i) rt_feed(&step, net.fed[i], NULL);
  rt_fetch(&step, net.fetched[0]);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  OK(pass(ir));
  int count = count_nodes(ir, op);
  rn_ir_destroy(ir);
  rt_end(&rt);
  return count;
}

#endif  // RUNNEL_TESTS_STEP_NETS_H_
