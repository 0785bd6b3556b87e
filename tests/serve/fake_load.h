// Load for a batcher on the simulated clock: open-loop Poisson arrivals, or callers that ask again
// as soon as they are answered; and what became of the requests.
#ifndef RUNNEL_TESTS_SERVE_FAKE_LOAD_H_
#define RUNNEL_TESTS_SERVE_FAKE_LOAD_H_

#include <stdlib.h>

#include "base/container.h"
#include "fake_time.h"
#include "serve/model/batcher.h"

typedef struct load_t load_t;
typedef struct load_request_t {
  fake_request_t request;  // first
  load_t* load;
  struct load_request_t* next_free;
  rn_timer_t timer;  // of a caller that thinks
  int64_t begun_ns;
  int priority;
} load_request_t;

typedef struct load_result_t {
  double seconds, offered, answered, good;  // requests per second; good: in time
  double p50_ms, p99_ms, mean_ms;           // of those answered
  double refused, expired;                  // per second
  double batch;                             // mean rows
  double late;                              // share of answers that came too late
  int64_t good_by_priority[2], offered_by_priority[2];
  double slowest_refusal_ms;
} load_result_t;

struct load_t {
  fake_time_t* time;
  rn_batcher_t* batcher;
  double rate;           // of the Poisson process; 0: callers
  double callers_us;     // how long a caller takes until it asks again
  int64_t deadline_ns;   // of each request; 0: none
  int64_t objective_ns;  // what counts as good without a deadline
  double high_share;     // of requests with priority 1
  bool is_counting, has_ended;
  rn_timer_t arrival;
  load_request_t* free;
  int64_t offered, good, refused, expired;
  int64_t good_by[2], offered_by[2];
  int64_t slowest_refusal;
  double* latencies;  // of those answered
  size_t answered, capacity;
};

static inline int load_compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static inline void load_answered(fake_request_t* fake) {
  load_request_t* request = (load_request_t*)fake;
  load_t* load = request->load;
  int64_t took = load->time->now - request->begun_ns;
  if (load->is_counting) {
    int64_t objective = load->deadline_ns ? load->deadline_ns : load->objective_ns;
    if (!fake->code) {
      if (load->answered == load->capacity) {
        load->capacity = load->capacity ? 2 * load->capacity : 1024;
        load->latencies = realloc(load->latencies, load->capacity * sizeof *load->latencies);
      }
      load->latencies[load->answered++] = (double)took / 1e6;
      if (took <= objective) {
        ++load->good;
        ++load->good_by[request->priority];
      }
    } else if (fake->code == RN_CODE_UNAVAILABLE) {
      ++load->refused;
      if (took > load->slowest_refusal) load->slowest_refusal = took;
    } else {
      ++load->expired;
    }
  }
  rn_predict_clear(&fake->predict);
  if (!load->rate && !load->has_ended) {
    OK(fake_timer_set(load->time, &request->timer,
                      load->time->now + fake_gap(load->time, 1e6 / load->callers_us)));
    return;
  }
  request->next_free = load->free;
  load->free = request;
}

static inline void load_ask(load_t* load, load_request_t* request) {
  fake_request_t* fake = &request->request;
  fake_double(fake, 1, 1, 1);
  fake->then = load_answered;
  rn_predict_t* predict = &fake->predict;
  request->begun_ns = load->time->now;
  request->priority = fake_uniform(load->time) < load->high_share;
  predict->priority = request->priority;
  if (load->deadline_ns) predict->deadline_ns = load->time->now + load->deadline_ns;
  predict->signature_index = FAKE_DOUBLE;
  predict->allocator = memory();
  predict->rows = 1;
  OK(RN_NEW_ARRAY(memory(), 1, &predict->outputs));
  predict->output_count = 1;
  predict->outputs[0].name = fake_y[0].name;
  if (load->is_counting) {
    ++load->offered;
    ++load->offered_by[request->priority];
  }
  rn_batcher_add(load->batcher, predict);
}

static inline void load_arrive(rn_timer_t* timer) {
  load_t* load = RN_CONTAINER_OF(timer, load_t, arrival);
  if (load->has_ended) return;
  load_request_t* request = load->free;
  if (request) {
    load->free = request->next_free;
  } else {
    request = calloc(1, sizeof *request);
    request->load = load;
  }
  OK(fake_timer_set(load->time, timer, load->time->now + fake_gap(load->time, load->rate)));
  load_ask(load, request);
}

static inline void load_think(rn_timer_t* timer) {
  load_request_t* request = RN_CONTAINER_OF(timer, load_request_t, timer);
  if (!request->load->has_ended) {
    load_ask(request->load, request);
    return;
  }
  request->next_free = request->load->free;
  request->load->free = request;
}

static inline void load_begin(load_t* load, int callers) {
  load->arrival.fn = load_arrive;
  if (load->rate)
    OK(fake_timer_set(load->time, &load->arrival,
                      load->time->now + fake_gap(load->time, load->rate)));
  for (int i = 0; i < callers; ++i) {
    load_request_t* request = calloc(1, sizeof *request);
    request->load = load;
    request->timer.fn = load_think;
    OK(fake_timer_set(load->time, &request->timer, load->time->now + i * 1000));
  }
}

static inline load_result_t load_measure(load_t* load, double seconds) {
  rn_batcher_stats_t before = rn_batcher_stats(load->batcher);
  load->offered = load->good = load->refused = load->expired = load->slowest_refusal = 0;
  memset(load->good_by, 0, sizeof load->good_by);
  memset(load->offered_by, 0, sizeof load->offered_by);
  load->answered = 0;
  load->is_counting = true;
  fake_time_run(load->time, load->time->now + (int64_t)(seconds * 1e9));
  load->is_counting = false;
  rn_batcher_stats_t after = rn_batcher_stats(load->batcher);
  load_result_t result = {.seconds = seconds,
                          .offered = (double)load->offered / seconds,
                          .answered = (double)load->answered / seconds,
                          .good = (double)load->good / seconds,
                          .refused = (double)load->refused / seconds,
                          .expired = (double)load->expired / seconds,
                          .slowest_refusal_ms = (double)load->slowest_refusal / 1e6};
  for (int i = 0; i < 2; ++i) {
    result.good_by_priority[i] = load->good_by[i];
    result.offered_by_priority[i] = load->offered_by[i];
  }
  if (after.batches > before.batches)
    result.batch = (double)(after.rows - before.rows) / (double)(after.batches - before.batches);
  if (load->answered) {
    qsort(load->latencies, load->answered, sizeof *load->latencies, load_compare);
    result.p50_ms = load->latencies[load->answered / 2];
    result.p99_ms = load->latencies[load->answered * 99 / 100];
    for (size_t i = 0; i < load->answered; ++i) result.mean_ms += load->latencies[i];
    result.mean_ms /= (double)load->answered;
    result.late = 1 - (double)load->good / (double)load->answered;
  }
  return result;
}

static inline void load_end(load_t* load) {
  load->has_ended = true;
  fake_time_run(load->time, load->time->now + 100 * SECOND);
  while (load->free) {
    load_request_t* request = load->free;
    load->free = request->next_free;
    free(request);
  }
  free(load->latencies);
}

#endif  // RUNNEL_TESTS_SERVE_FAKE_LOAD_H_
