// Wires: tensors by UCX between two workers of this process, over its own transports. Between
// processes, with faults: wire_test.py.
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"
#include "dist/rpc/dial.h"

#define SECOND INT64_C(1000000000)

static int64_t now(void) { return rn_env_system()->now_ns(NULL); }

// A receiver and a sender, with a line between them.
typedef struct pair_t {
  rn_wire_t *receiver, *sender;
  rn_loan_name_t line;
} pair_t;

static rn_wire_t* open_wire(size_t max_value) {
  rn_wire_t* wire = NULL;
#ifdef __SANITIZE_THREAD__
  // UCX replaces functions of the C library to hear of memory, and the sanitizer's do not bear
  // that.
  setenv("UCX_MEM_EVENTS", "no", 1);
#endif
  const rn_wire_options_t options = {.env = rn_env_system(),
                                     .allocator = rn_allocator_system(),
                                     .landing = rn_allocator_system(),
                                     .max_value = max_value,
                                     .is_local = true,
                                     .lease_ns = SECOND};
  rn_status_t status = rn_wire_create(&options, &wire);
  if (rn_status_code(status) == RN_CODE_UNIMPLEMENTED) {
    cr_assert(strstr(rn_status_message(status), "libuc"), "%s", rn_status_message(status));
    cr_skip_test("UCX is not installed (Debian: libucx0)");
  }
  OK(status);
  return wire;
}

static bool wait_for_line(const pair_t* pair) {
  for (int64_t start = now(); now() - start < 10 * SECOND; usleep(1000))
    if (rn_wire_has(pair->sender, pair->line)) return true;
  return false;
}

static pair_t pair_open(const char* transports, size_t max_value) {
  setenv("UCX_TLS", transports, 1);
  pair_t pair = {.sender = open_wire(0)};
  pair.receiver = strcmp(transports, "self") == 0 ? pair.sender : open_wire(max_value);
  OK(rn_wire_dial(pair.receiver, rn_wire_address(pair.sender), &pair.line));
  cr_assert(wait_for_line(&pair), "%s", transports);
  return pair;
}

static void pair_close(pair_t* pair) {
  if (pair->receiver != pair->sender) rn_wire_destroy(pair->receiver);
  rn_wire_destroy(pair->sender);
}

// A put, and what became of it.
typedef struct sent_t {
  rn_wire_put_t put;  // first
  _Atomic int is_over, is_sent;
} sent_t;

static void on_put(rn_wire_put_t* put, bool is_sent) {
  sent_t* sent = (sent_t*)put;
  sent->is_sent = is_sent;
  sent->is_over = 1;
}

static void put(const pair_t* pair, sent_t* sent, uint64_t number, const rn_tensor_t* value) {
  *sent = (sent_t){.put = {.line = pair->line, .number = number, .value = value, .done = on_put}};
  cr_assert(rn_wire_put(pair->sender, &sent->put));
}

static bool wait_for_put(const sent_t* sent) {
  for (int64_t start = now(); !sent->is_over; usleep(100))
    cr_assert(now() - start < 20 * SECOND, "a put does not end");
  return sent->is_sent;
}

// A take, and what became of it.
typedef struct taken_t {
  rn_wire_take_t take;  // first
  rn_status_t status;
  _Atomic int is_over;
} taken_t;

static void on_taken(rn_wire_take_t* take, rn_status_t status) {
  taken_t* taken = (taken_t*)take;
  taken->status = status;
  taken->is_over = 1;
}

static void expect(const pair_t* pair, taken_t* taken) {
  *taken = (taken_t){.take = {.line = pair->line, .done = on_taken}};
  OK(rn_wire_expect(pair->receiver, &taken->take));
}

static rn_status_t settle(const pair_t* pair, taken_t* taken) {
  rn_status_t status = RN_OK;
  if (rn_wire_settle(pair->receiver, &taken->take, true, &status)) return status;
  for (int64_t start = now(); !taken->is_over; usleep(100))
    cr_assert(now() - start < 20 * SECOND, "a take does not end");
  return taken->status;
}

static rn_tensor_t make_value(int64_t rows, int64_t columns) {
  rn_tensor_t value;
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){2, (int64_t[]){rows, columns}},
                      &value));
  for (int64_t i = 0; i < rows * columns; ++i) RN_DATA(&value, int32_t)[i] = (int32_t)(i * 7 + 1);
  return value;
}

static void carry(const pair_t* pair, int64_t rows, int64_t columns) {
  rn_tensor_t value = make_value(rows, columns);
  taken_t taken;
  sent_t sent;
  expect(pair, &taken);
  put(pair, &sent, taken.take.number, &value);
  OK(settle(pair, &taken));
  cr_assert(wait_for_put(&sent));
  const rn_tensor_t* got = &taken.take.value;
  cr_assert_eq(got->dtype, RN_INT32);
  cr_assert_eq(got->rank, 2);
  cr_assert_eq(rn_tensor_dim(got, 0), rows);
  cr_assert_eq(rn_tensor_dim(got, 1), columns);
  cr_assert_arr_eq(got->data, value.data, rn_tensor_bytes(&value));
  rn_tensor_clear(&taken.take.value);
  rn_tensor_clear(&value);
}

static void carry_all(const char* transports) {
  static const int64_t rows[] = {0, 1, 1000, 70000, 1, 2000003};
  pair_t pair = pair_open(transports, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) carry(&pair, rows[i], 3);
  pair_close(&pair);
}

Test(wire, carries_values_by_tcp) { carry_all("tcp"); }
Test(wire, carries_values_by_shared_memory) { carry_all("shm"); }
Test(wire, carries_values_without_reading_other_processes) { carry_all("posix"); }
Test(wire, carries_values_to_itself) { carry_all("self"); }
Test(wire, carries_values_by_whatever_there_is) { carry_all("all"); }

// A number that nobody expects, or no longer, and one that is used twice.
Test(wire, drops_what_nobody_expects) {
  pair_t pair = pair_open("tcp", 0);
  rn_tensor_t value = make_value(300, 1000);
  taken_t taken;
  sent_t sent;
  put(&pair, &sent, 12345, &value);
  cr_assert(wait_for_put(&sent), "it is dropped unread");
  expect(&pair, &taken);
  uint64_t number = taken.take.number;
  rn_status_t status = RN_OK;
  cr_assert(rn_wire_settle(pair.receiver, &taken.take, false, &status));
  OK(status);
  put(&pair, &sent, number, &value);
  cr_assert(wait_for_put(&sent));
  cr_assert_not(rn_tensor_is_set(&taken.take.value));
  expect(&pair, &taken);
  put(&pair, &sent, taken.take.number, &value);
  cr_assert(wait_for_put(&sent));
  put(&pair, &sent, taken.take.number, &value);
  cr_assert(wait_for_put(&sent));
  OK(settle(&pair, &taken));
  cr_assert_arr_eq(taken.take.value.data, value.data, rn_tensor_bytes(&value));
  rn_tensor_clear(&taken.take.value);
  carry(&pair, 5, 5);
  cr_assert(rn_tensor_is_exclusive(&value), "the wire keeps nothing");
  rn_tensor_clear(&value);
  pair_close(&pair);
}

// Many values at a time, small and large, in both directions, of which a third is given up before
// it comes.
static void carry_many(const char* transports) {
  enum { COUNT = 150 };
  pair_t there = pair_open(transports, 0);
  pair_t back = {.receiver = there.sender, .sender = there.receiver};
  OK(rn_wire_dial(back.receiver, rn_wire_address(back.sender), &back.line));
  cr_assert(wait_for_line(&back));
  static taken_t taken[COUNT];
  static sent_t sent[COUNT];
  rn_tensor_t values[3] = {make_value(1, 5), make_value(30000, 3), make_value(500000, 2)};
  for (int i = 0; i < COUNT; ++i) expect(i % 2 ? &back : &there, &taken[i]);
  for (int i = 0; i < COUNT; ++i) {
    const pair_t* pair = i % 2 ? &back : &there;
    put(pair, &sent[i], taken[i].take.number, &values[i / 2 % 3]);
    rn_status_t status = RN_OK;
    if (i % 3 == 0) cr_assert(rn_wire_settle(pair->receiver, &taken[i].take, false, &status));
  }
  for (int i = COUNT - 1; i >= 0; --i) {
    const rn_tensor_t* value = &values[i / 2 % 3];
    cr_assert(wait_for_put(&sent[i]), "%d", i);
    if (i % 3 == 0) continue;
    OK(settle(i % 2 ? &back : &there, &taken[i]));
    cr_assert_eq(rn_tensor_bytes(&taken[i].take.value), rn_tensor_bytes(value));
    cr_assert_arr_eq(taken[i].take.value.data, value->data, rn_tensor_bytes(value));
    rn_tensor_clear(&taken[i].take.value);
  }
  pair_close(&there);
  for (int i = 0; i < 3; ++i) {
    cr_assert(rn_tensor_is_exclusive(&values[i]));
    rn_tensor_clear(&values[i]);
  }
}

Test(wire, carries_many_values_by_tcp) { carry_many("tcp"); }
Test(wire, carries_many_values_by_shared_memory) { carry_many("shm"); }

// What a sender says of a value must fit what it sends: small values, which come at once, and large
// ones, which are fetched.
Test(wire, refuses_heads_that_lie) {
  pair_t pair = pair_open("tcp", 0);
  for (int64_t rows = 10; rows <= 100000; rows *= 10000) {
    rn_tensor_t value = make_value(rows, 4);
    const struct {
      uint8_t dtype;
      int64_t rows, columns;
    } lies[] = {{RN_INT32, rows + 1, 4}, {RN_INT32, 1, 4},         {RN_INT32, -1, 4},
                {RN_INT32, rows, -4},    {RN_INT32, INT64_MAX, 4}, {RN_INT32, INT64_MAX, INT64_MAX},
                {RN_INT8, rows, 4},      {RN_RESOURCE, rows, 4},   {RN_STRING, rows, 4}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; ++i) {
      // The bytes that are sent are counted by the type: those of the true value.
      rn_tensor_t lie = value;
      lie.count = (int64_t)(rn_tensor_bytes(&value) / rn_dtype_size(lies[i].dtype));
      lie.dtype = lies[i].dtype;
      lie.inline_dims[0] = lies[i].rows;
      lie.inline_dims[1] = lies[i].columns;
      taken_t taken;
      sent_t sent;
      expect(&pair, &taken);
      put(&pair, &sent, taken.take.number, &lie);
      rn_status_t status = settle(&pair, &taken);
      cr_assert_not(rn_ok(status), "%lld rows: %zu", (long long)rows, i);
      rn_status_free(status);
      cr_assert_not(rn_tensor_is_set(&taken.take.value));
      wait_for_put(&sent);
    }
    rn_tensor_clear(&value);
  }
  carry(&pair, 70000, 3);
  pair_close(&pair);
}

Test(wire, refuses_values_beyond_its_limit) {
  pair_t pair = pair_open("tcp", 1000);
  rn_tensor_t value = make_value(251, 1);
  taken_t taken;
  sent_t sent;
  expect(&pair, &taken);
  put(&pair, &sent, taken.take.number, &value);
  FAILS_WITH(settle(&pair, &taken), RESOURCE_EXHAUSTED, "1004 bytes is larger than the limit");
  wait_for_put(&sent);
  carry(&pair, 250, 1);
  rn_tensor_clear(&value);
  pair_close(&pair);
}

// A sender that says it has sent, and has not; then one whose line ends.
Test(wire, waits_no_longer_than_the_lease) {
  pair_t pair = pair_open("tcp", 0);
  taken_t taken;
  expect(&pair, &taken);
  int64_t start = now();
  FAILS_WITH(settle(&pair, &taken), UNAVAILABLE, "did not come");
  cr_assert(now() - start > SECOND / 2 && now() - start < 10 * SECOND);
  rn_status_t status = RN_OK;
  expect(&pair, &taken);
  cr_assert_not(rn_wire_settle(pair.receiver, &taken.take, true, &status));
  rn_wire_hang_up(pair.receiver, pair.line);
  for (start = now(); !taken.is_over; usleep(1000)) cr_assert(now() - start < 10 * SECOND);
  FAILS_WITH(taken.status, UNAVAILABLE, "has ended");
  cr_assert_not(rn_wire_has(pair.receiver, pair.line));
  expect(&pair, &taken);
  FAILS_WITH(settle(&pair, &taken), UNAVAILABLE, "has failed");
  pair_close(&pair);
}

// The sender learns that a receiver has closed; what it puts ends, and then the line is not known.
static void lose_receiver(const char* transports) {
  pair_t pair = pair_open(transports, 0);
  rn_tensor_t value = make_value(3000, 1000);
  carry(&pair, 10, 10);
  rn_wire_destroy(pair.receiver);
  sent_t sent = {.put = {.line = pair.line, .number = 3, .value = &value, .done = on_put}};
  int64_t start = now();
  if (rn_wire_put(pair.sender, &sent.put)) {
    rn_wire_give_up(pair.sender, &sent.put);
    cr_assert_not(wait_for_put(&sent));
  }
  cr_assert(now() - start < 10 * SECOND);
  while (rn_wire_has(pair.sender, pair.line)) usleep(1000);
  cr_assert_not(rn_wire_put(pair.sender, &sent.put));
  rn_wire_destroy(pair.sender);
  cr_assert(rn_tensor_is_exclusive(&value));
  rn_tensor_clear(&value);
}

Test(wire, ends_puts_of_a_lost_receiver_by_tcp) { lose_receiver("tcp"); }
Test(wire, ends_puts_of_a_lost_receiver_by_shared_memory) { lose_receiver("shm"); }

Test(wire, that_stops_ends_everything) {
  pair_t pair = pair_open("shm", 0);
  taken_t taken;
  rn_status_t status = RN_OK;
  rn_loan_name_t line;
  expect(&pair, &taken);
  cr_assert_not(rn_wire_settle(pair.receiver, &taken.take, true, &status));
  rn_wire_stop(pair.receiver);
  cr_assert(taken.is_over);
  FAILS_WITH(taken.status, UNAVAILABLE, "closing");
  FAILS(rn_wire_expect(pair.receiver, &taken.take), UNAVAILABLE);
  FAILS(rn_wire_dial(pair.receiver, rn_wire_address(pair.sender), &line), UNAVAILABLE);
  rn_wire_stop(pair.receiver);
  pair_close(&pair);
}

// UCX would end the process over most of these.
Test(wire, refuses_addresses_that_are_not_whole) {
  pair_t pair = pair_open("tcp", 0);
  rn_str_t whole = rn_wire_address(pair.sender);
  static char bytes[RN_WIRE_MAX_ADDRESS + 1000];
  rn_loan_name_t line;
  for (size_t size = 0; size < whole.size; ++size)
    FAILS(rn_wire_dial(pair.receiver, rn_str_n(whole.data, size), &line), INVALID_ARGUMENT);
  for (size_t at = 0; at < whole.size; ++at) {
    memcpy(bytes, whole.data, whole.size);
    bytes[at] ^= 1 << at % 8;
    FAILS(rn_wire_dial(pair.receiver, rn_str_n(bytes, whole.size), &line), INVALID_ARGUMENT);
  }
  FAILS(rn_wire_dial(pair.receiver, rn_str_n(bytes, sizeof bytes), &line), INVALID_ARGUMENT);
  OK(rn_wire_dial(pair.receiver, whole, &line));
  pair_close(&pair);
}

// Values that the response carries better, or that have no bytes to send.
Test(wire, is_for_plain_values) {
  rn_tensor_t value = make_value(2, 2), other = {0};
  cr_assert(rn_wire_may_put(&value));
  cr_assert_not(rn_wire_may_put(&other));
  OK(rn_tensor_create(rn_allocator_system(), RN_STRING, (rn_shape_t){1, (int64_t[]){2}}, &other));
  cr_assert_not(rn_wire_may_put(&other));
  rn_tensor_clear(&other);
  int64_t ones[RN_WIRE_MAX_RANK + 1];
  for (int i = 0; i <= RN_WIRE_MAX_RANK; ++i) ones[i] = 1;
  for (int rank = RN_WIRE_MAX_RANK; rank <= RN_WIRE_MAX_RANK + 1; ++rank) {
    OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){rank, ones}, &other));
    cr_assert_eq(rn_wire_may_put(&other), rank == RN_WIRE_MAX_RANK);
    rn_tensor_clear(&other);
  }
  rn_tensor_clear(&value);
}

// What requests and responses say of a wire.

static rn_str_t message_of(rn_message_t* message, rn_encoder_t* encoder) {
  OK(rn_encoder_close(encoder));
  return rn_message_view(message);
}

Test(wire, is_said_in_messages) {
  rn_message_t message;
  rn_encoder_t encoder;
  const rn_recv_tensor_t call = {.step = 7, .key = RN_STR("key")};
  const rn_wire_ask_t asks[] = {
      {.is_there = false},
      {.is_there = true},
      {.is_there = true, .has_line = true, .line = {{5, 6}}, .number = 9}};
  for (size_t i = 0; i < sizeof asks / sizeof *asks; ++i) {
    rn_wire_ask_t got;
    rn_message_init(&message, rn_allocator_system());
    rn_encoder_open(&encoder, &message);
    rn_encode_recv_tensor(&encoder, &call, &(rn_loan_ask_t){.has_line = false}, &asks[i]);
    rn_decode_wire_ask(message_of(&message, &encoder), &got);
    cr_assert_eq(got.is_there, asks[i].is_there);
    cr_assert_eq(got.has_line, asks[i].has_line);
    cr_assert(rn_loan_name_eq(got.line, asks[i].line));
    cr_assert_eq(got.number, asks[i].number);
    rn_message_clear(&message);
  }
  const rn_wire_answer_t answers[] = {{.is_sent = true}, {.address = RN_STR("somewhere")}};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; ++i) {
    rn_wire_answer_t got;
    rn_message_init(&message, rn_allocator_system());
    rn_encoder_open(&encoder, &message);
    rn_encode_wire_answer(&encoder, &answers[i]);
    rn_decode_wire_answer(message_of(&message, &encoder), &got);
    cr_assert_eq(got.is_sent, answers[i].is_sent);
    cr_assert(rn_str_eq(got.address, answers[i].address));
    rn_message_clear(&message);
  }
}
