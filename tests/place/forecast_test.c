// Forecasts (place/auto/forecast.h) against schedules computed by hand, and workloads that must be
// rejected.
#include "workloads.h"

static rn_forecast_t forecast(draft_t* draft, const int32_t* devices) {
  rn_forecaster_t* forecaster = NULL;
  rn_forecast_t out;
  OK(rn_workload_finish(&draft->work, &draft->arena));
  OK(rn_forecaster_create(&draft->work, &draft->fleet, rn_allocator_system(), &forecaster));
  rn_forecast(forecaster, devices, &out);
  rn_forecaster_destroy(forecaster);
  return out;
}

// a -> b, c -> d, on one device and on two.
Test(forecast, diamond) {
  draft_t draft;
  draft_begin(&draft, 2, 5);
  int32_t a = draft_add(&draft, 10, 4, -1, -1);
  int32_t b = draft_add(&draft, 20, 8, a, -1);
  int32_t c = draft_add(&draft, 30, 2, a, -1);
  draft_add(&draft, 1, 0, b, c);
  rn_forecast_t out = forecast(&draft, (int32_t[]){0, 0, 0, 0});
  cr_expect_eq(out.step_ns, 61);
  cr_expect_eq(out.busy_ns[0], 61);
  cr_expect_eq(out.sent_count, 0);
  cr_expect_eq(out.high_bytes[0], 14);  // c begins while a and b are held
  // c on the other device: a arrives there at 10 + 4 + 5 = 19, c ends at 49 and arrives at 56.
  out = forecast(&draft, (int32_t[]){0, 0, 1, 0});
  cr_expect_eq(out.step_ns, 57);
  cr_expect_eq(out.busy_ns[0], 31);
  cr_expect_eq(out.busy_ns[1], 30);
  cr_expect_eq(out.sent_count, 2);
  cr_expect_eq(out.sent_bytes, 6);
  cr_expect_eq(out.high_bytes[1], 6);
  draft_end(&draft);
}

// A value that several nodes of a device read is sent once; values share the link.
Test(forecast, links_carry_one_value_at_a_time) {
  draft_t draft;
  draft_begin(&draft, 2, 100);
  int32_t a = draft_add(&draft, 1, 50, -1, -1);
  int32_t b = draft_add(&draft, 1, 30, -1, -1);
  draft_add(&draft, 10, 0, a, -1);
  draft_add(&draft, 10, 0, a, -1);
  draft_add(&draft, 10, 0, b, -1);
  // a is sent from 1 to 51 and is there at 151; b from 51 to 81, there at 181. The device is busy
  // from 151 to 171, then from 181 to 191.
  rn_forecast_t out = forecast(&draft, (int32_t[]){0, 0, 1, 1, 1});
  cr_expect_eq(out.step_ns, 191);
  cr_expect_eq(out.sent_count, 2);
  draft_end(&draft);
}

// Lanes take nodes in the order of the step; nodes of no cost take no lane.
Test(forecast, lanes) {
  draft_t draft;
  draft_begin(&draft, 1, 0);
  for (int i = 0; i < 4; ++i) draft_add(&draft, 10 * (i + 1), 0, -1, -1);
  int32_t free_node = draft_add(&draft, 0, 0, 0, -1);
  draft_add(&draft, 5, 0, free_node, -1);
  int32_t devices[6] = {0};
  cr_expect_eq(forecast(&draft, devices).step_ns, 105);
  draft.lanes[0] = 2;
  // Lane 0: 10, then 30 until 40, then 5 until 45. Lane 1: 20, then 40 until 60.
  cr_expect_eq(forecast(&draft, devices).step_ns, 60);
  draft.lanes[0] = 6;
  cr_expect_eq(forecast(&draft, devices).step_ns, 40);
  draft.fleet.step_ns = 7;
  cr_expect_eq(forecast(&draft, devices).step_ns, 47);
  draft_end(&draft);
}

// Two devices of one pool have the pool's threads, not more.
Test(forecast, devices_share_a_pool) {
  draft_t draft;
  draft_begin(&draft, 2, 0);
  draft_add(&draft, 10, 0, -1, -1);
  draft_add(&draft, 10, 0, -1, -1);
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 1}).step_ns, 10);
  draft.devices[1].pool = 0;
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 1}).step_ns, 20);
  draft_end(&draft);
}

// Nodes that wait for the same values run in a row, and what waits for one of them waits for all.
Test(forecast, nodes_run_in_tasks) {
  draft_t draft;
  draft_begin(&draft, 2, 5);
  draft.fleet.in_tasks = true;
  int32_t a = draft_add(&draft, 10, 4, -1, -1);  // on 0, sent at 10, there at 19
  int32_t b = draft_add(&draft, 20, 4, a, -1);   // on 0, after a, until 30
  int32_t c = draft_add(&draft, 30, 4, a, -1);   // on 1, from 19 to 49, back at 58
  int32_t d = draft_add(&draft, 40, 4, a, -1);   // on 0, after b, until 70
  int32_t e = draft_add(&draft, 6, 4, b, c);     // on 0: after all of the task of b, until 76
  draft_add(&draft, 1, 0, d, e);
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 1, 0, 0, 0}).step_ns, 77);
  // One by one, e could begin at 58, but there is no free lane before 70.
  draft.fleet.in_tasks = false;
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 1, 0, 0, 0}).step_ns, 77);
  draft.lanes[0] = 2;  // then d runs beside b from 10 to 50, and e from 58 to 64
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 1, 0, 0, 0}).step_ns, 65);
  draft.fleet.in_tasks = true;  // so little is not worth a thread
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 1, 0, 0, 0}).step_ns, 77);
  draft_end(&draft);
}

// A device of another task begins late, gets values only after it has asked for them, and says when
// it has ended.
Test(forecast, tasks) {
  draft_t draft;
  draft_begin(&draft, 2, 5);
  draft.devices[1].start_ns = 30;
  draft.devices[1].end_ns = 7;
  draft.links[1].open_ns = 35;
  int32_t a = draft_add(&draft, 10, 4, -1, -1);
  draft_add(&draft, 2, 0, a, -1);
  draft_add(&draft, 3, 0, -1, -1);
  // The last node runs from 30 to 33; a is sent from 35 to 39, is there at 44 and read until 46.
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 1, 1}).step_ns, 53);
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 1}).step_ns, 40);
  // Without a part there, the step does not wait for the other task.
  cr_expect_eq(forecast(&draft, (int32_t[]){0, 0, 0}).step_ns, 15);
  draft_end(&draft);
}

Test(forecast, memory) {
  draft_t draft;
  draft_begin(&draft, 2, 1);
  int32_t variable = draft_add(&draft, 0, 0, -1, -1);
  draft.work.kept[variable] = 1000;
  int32_t a = draft_add(&draft, 5, 100, variable, -1);
  int32_t view = draft_add(&draft, 0, 100, a, -1);
  draft.work.is_alias[view] = true;
  int32_t b = draft_add(&draft, 5, 40, view, -1);
  draft_add(&draft, 5, 7, b, -1);
  draft.devices[0].memory = 1100;
  rn_forecast_t out = forecast(&draft, (int32_t[5]){0});
  // The view's own source may be freed as soon as the view is made, so b needs 40 beyond 1000.
  cr_expect_eq(out.high_bytes[0], 1100);
  cr_expect_eq(out.over_bytes, 0);
  draft.devices[0].memory = 1050;
  out = forecast(&draft, (int32_t[5]){0});
  cr_expect_eq(out.over_bytes, 50);
  draft_end(&draft);
}

// Spans say when everything ran, and do not overlap on a lane.
Test(forecast, spans) {
  draft_t draft;
  draft_begin(&draft, 3, 10);
  uint32_t state = 7;
  draft_random(&draft, 300, &state);
  OK(rn_workload_finish(&draft.work, &draft.arena));
  int32_t devices[300];
  for (int i = 0; i < 300; ++i) devices[i] = (int32_t)draw(&state, 3);
  rn_forecaster_t* forecaster = NULL;
  OK(rn_forecaster_create(&draft.work, &draft.fleet, rn_allocator_system(), &forecaster));
  rn_forecast_t plain, out;
  const rn_forecast_span_t* spans;
  size_t count;
  rn_forecast(forecaster, devices, &plain);
  rn_forecast_spans(forecaster, devices, &out, &spans, &count);
  cr_expect(memcmp(&plain, &out, sizeof out) == 0);
  int64_t ends[3] = {0}, links[9] = {0}, node_end[300] = {0};
  for (size_t i = 0; i < count; ++i) {
    const rn_forecast_span_t* span = &spans[i];
    int64_t* lane =
        span->output < 0 ? &ends[span->device] : &links[span->device * 3 + span->lane_or_device];
    cr_assert_geq(span->start_ns, *lane);
    *lane = span->output < 0 ? span->end_ns : span->end_ns - 10;
    cr_assert_leq(span->end_ns, out.step_ns);
    if (span->output < 0) node_end[span->node] = span->end_ns;
    const rn_workload_t* w = &draft.work;
    for (int32_t k = w->first_input[span->node];
         span->output < 0 && k < w->first_input[span->node + 1]; ++k)
      cr_assert_geq(span->start_ns, node_end[w->producer[w->inputs[k]]]);
  }
  rn_forecaster_destroy(forecaster);
  draft_end(&draft);
}

static void reject(draft_t* draft, const char* text) {
  FAILS_WITH(rn_workload_finish(&draft->work, &draft->arena), INVALID_ARGUMENT, text);
}

Test(forecast, bad_workloads) {
  draft_t draft;
  draft_begin(&draft, 2, 0);
  draft_add(&draft, 1, 1, -1, -1);
  draft_add(&draft, 1, 1, 0, -1);
  draft.work.inputs[0] = 1;
  reject(&draft, "comes later");
  draft.work.inputs[0] = 0;
  draft.work.group[0] = 2;
  reject(&draft, "group 2 of 2");
  draft.work.group[0] = 0;
  draft.work.allowed[1] = 0;
  reject(&draft, "no device");
  draft.work.allowed[1] = 3;
  draft.work.bytes[1] = -1;
  reject(&draft, "no size");
  draft.work.bytes[1] = INT64_MAX;
  reject(&draft, "bytes");
  draft.work.bytes[1] = 0;
  draft.work.cost_ns[0] = INT64_MAX;
  reject(&draft, "cost");
  draft.work.cost_ns[0] = 0;
  OK(rn_workload_finish(&draft.work, &draft.arena));
  draft.lanes[0] = 0;
  FAILS_WITH(rn_fleet_check(&draft.fleet), INVALID_ARGUMENT, "0 threads");
  draft.lanes[0] = 1;
  draft.devices[0].speed = 0;
  FAILS_WITH(rn_fleet_check(&draft.fleet), INVALID_ARGUMENT, "speed 0");
  draft.devices[0].speed = 1;
  draft.links[1].latency_ns = -1;
  FAILS_WITH(rn_fleet_check(&draft.fleet), INVALID_ARGUMENT, "negative time");
  draft_end(&draft);
}
