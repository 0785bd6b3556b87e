// Call records between simulated processes: all fields must arrive, and no pointer may refer to the
// memory of the other process.
#include <criterion/criterion.h>

#include "../support/status.h"
#include "dist/sim/records.h"

static rn_allocator_t memory(void) { return rn_allocator_system(); }

static rn_tensor_t number(float value) {
  rn_tensor_t tensor = {0};
  OK(rn_tensor_create(memory(), RN_FLOAT, RN_SHAPE_SCALAR, &tensor));
  *RN_DATA(&tensor, float) = value;
  return tensor;
}

// The callee of a travelling call: its own record, and the arena of the flight.
typedef struct flight_t {
  rn_record_t record;
  rn_arena_t arena;
} flight_t;

static void leave(flight_t* flight, const rn_record_kind_t* kind, const rn_call_t* call) {
  *flight = (flight_t){.record.call.owner = NULL};
  rn_arena_init(&flight->arena, memory());
  OK(rn_record_ask(kind, call, &flight->record, &flight->arena));
}

static void come_back(flight_t* flight, const rn_record_kind_t* kind, rn_call_t* call) {
  OK(rn_record_settle(kind, &flight->record, &flight->arena));
  OK(rn_record_answer(kind, &flight->record, call));
  rn_record_clear(kind, &flight->record, memory());
  rn_arena_clear(&flight->arena);
}

Test(records, a_callable_takes_tensors_and_returns_some) {
  char session[] = "s1";
  rn_tensor_t feeds[] = {number(3), number(4)};
  rn_run_callable_t call = {.session = rn_str(session), .feeds = feeds, .feed_count = 2};
  flight_t flight;
  rn_strbuf_init(&call.metadata, memory());
  leave(&flight, &rn_record_run_callable, &call.call);
  rn_run_callable_t* there = &flight.record.run_callable;
  session[0] = 'x';
  cr_assert(rn_str_is(there->session, "s1"));
  cr_assert_eq(rn_record_bytes(&rn_record_run_callable, &flight.record, false), 2 * sizeof(float));
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&feeds[i]);
  cr_assert_eq(*RN_DATA(&there->feeds[1], float), 4);
  OK(rn_alloc_array(memory(), 1, sizeof *there->fetches, (void**)&there->fetches));
  there->fetches[0] = number(7);
  there->fetch_count = 1;
  rn_strbuf_append(&there->metadata, RN_STR("m"));
  cr_assert_eq(rn_record_bytes(&rn_record_run_callable, &flight.record, true), sizeof(float));
  come_back(&flight, &rn_record_run_callable, &call.call);
  cr_assert_eq(call.fetch_count, 1);
  cr_assert_eq(*RN_DATA(&call.fetches[0], float), 7);
  cr_assert(rn_str_is(rn_strbuf_view(&call.metadata), "m"));
  rn_tensor_clear(&call.fetches[0]);
  RN_FREE_ARRAY(memory(), call.fetches, call.fetch_count);
  rn_strbuf_clear(&call.metadata);
}

Test(records, devices_come_back_in_the_callers_arena) {
  rn_list_devices_t call = {.session = RN_STR("s")};
  flight_t flight;
  rn_arena_init(&call.arena, memory());
  leave(&flight, &rn_record_list_devices, &call.call);
  rn_list_devices_t* there = &flight.record.list_devices;
  OK(RN_ARENA_ARRAY(&there->arena, 1, &there->devices));
  there->devices[0] = (rn_device_info_t){.name = RN_STR("/cpu:0"), .memory_limit = 5};
  there->device_count = 1;
  come_back(&flight, &rn_record_list_devices, &call.call);
  cr_assert_eq(call.device_count, 1);
  cr_assert(rn_str_is(call.devices[0].name, "/cpu:0"));
  cr_assert_eq(call.devices[0].memory_limit, 5);
  rn_arena_clear(&call.arena);
}

Test(records, arrays_of_numbers_and_names_travel) {
  int64_t steps[] = {5, 6};
  rn_str_t names[] = {RN_STR("a"), RN_STR("b")};
  rn_logging_t logging = {.clears = true, .steps = steps, .step_count = 2};
  rn_reset_t reset = {.filters = names, .filter_count = 2};
  flight_t flight;
  rn_strbuf_init(&logging.notes, memory());
  leave(&flight, &rn_record_logging, &logging.call);
  steps[1] = 0;
  cr_assert(flight.record.logging.clears);
  cr_assert_eq(flight.record.logging.steps[1], 6);
  come_back(&flight, &rn_record_logging, &logging.call);
  rn_strbuf_clear(&logging.notes);
  leave(&flight, &rn_record_reset, &reset.call);
  names[1] = RN_STR("c");
  cr_assert(rn_str_is(flight.record.reset.filters[1], "b"));
  come_back(&flight, &rn_record_reset, &reset.call);
}
