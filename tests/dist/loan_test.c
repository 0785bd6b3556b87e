// Loans: tensors read from another process's memory. Which processes may read, and what happens if
// reading fails.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // setresuid
#endif
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/status.h"
#include "dist/rpc/line.h"

enum { COUNT = 3 << 20 };  // floats: several pieces, the last one short

static rn_tensor_t make_tensor(void) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){1, (int64_t[]){COUNT - 5}},
                      &tensor));
  for (int64_t i = 0; i < COUNT - 5; ++i) RN_DATA(&tensor, float)[i] = (float)i;
  return tensor;
}

// What a lender and a borrower tell each other besides, in memory that both processes have: here it
// stands for the network, which anybody may forge.
typedef struct said_t {
  rn_reach_t reach;
  rn_loan_name_t line;
  uint64_t id;
  _Atomic int step;  // 1: |reach| is there; 2: |line|; 3: it was greeted; 4: lend; 5: |id| is there
  _Atomic int is_lent;
} said_t;

static said_t* said_open(void) {
  said_t* said =
      mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(said, MAP_FAILED);
  return said;
}

static void wait_for(const said_t* said, int step) {
  while (said->step < step) usleep(1000);
}

static pid_t start_lender(said_t* said) {
  pid_t child = fork();
  if (child) return child;
  rn_loans_t* loans = NULL;
  rn_tensor_t tensor = make_tensor();
  OK(rn_loans_create(rn_env_system(), rn_allocator_system(), &loans));
  said->reach = *rn_loans_reach(loans);
  said->step = 1;
  wait_for(said, 2);
  rn_loans_greet(loans, said->line);
  said->step = 3;
  wait_for(said, 4);
  rn_status_t status = rn_loans_add(loans, said->line, &tensor, &said->id);
  said->is_lent = rn_ok(status);
  said->step = 5;
  for (;;) pause();
}

static void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void expect_unavailable(rn_status_t status) {
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE, "%s", rn_status_message(status));
  rn_status_free(status);
}

static rn_status_t open_line(const rn_reach_t* reach, rn_line_t** out) {
  return rn_line_open(reach, 0, rn_env_system(), rn_allocator_system(), out);
}

Test(loan, is_read_by_another_process) {
  said_t* said = said_open();
  pid_t child = start_lender(said);
  rn_line_t* line = NULL;
  wait_for(said, 1);
  OK(open_line(&said->reach, &line));
  cr_assert_eq(rn_line_hear(line), RN_LINE_WAITS);
  said->line = rn_line_name(line);
  said->step = 2;
  wait_for(said, 3);
  if (rn_line_hear(line) != RN_LINE_WORKS) {
    end(child);
    cr_skip_test("this system does not let processes of one user read each other");
  }
  said->step = 4;
  wait_for(said, 5);
  cr_assert(said->is_lent);
  rn_pool_t* pool = NULL;
  rn_loan_t loan, other;
  OK(rn_pool_create(rn_allocator_system(), 3, &pool));
  rn_tensor_t want = make_tensor(), got = make_tensor();
  size_t size = rn_tensor_bytes(&got);
  memset(got.data, 0, size);
  cr_assert_not(rn_line_take(line, said->id ^ 2, &loan), "a number that the lender did not say");
  cr_assert(rn_line_take(line, said->id, &loan));
  cr_assert_not(rn_line_take(line, said->id, &other), "a loan is taken once");
  OK(rn_line_read(line, &loan, got.data, size, pool));
  cr_assert_arr_eq(got.data, want.data, size);

  // The size that was announced over the network must be the one that was lent.
  expect_unavailable(rn_line_read(line, &loan, got.data, size - 4, pool));
  other = loan;
  other.address = 4096;  // nothing lies there
  expect_unavailable(rn_line_read(line, &other, got.data, size, pool));
  end(child);
  expect_unavailable(rn_line_read(line, &loan, got.data, size, pool));
  cr_assert_eq(rn_line_hear(line), RN_LINE_FAILS);
  rn_line_release(line);
  expect_unavailable(open_line(&said->reach, &line));
  rn_tensor_clear(&want);
  rn_tensor_clear(&got);
  rn_pool_destroy(pool);
  munmap(said, sizeof *said);
}

// A receiver that has a task takes what the lender shows to that task, from another process.
Test(loan, comes_with_a_board_for_tasks) {
  said_t* said = said_open();
  const uint64_t task = rn_reach_task(RN_STR("/job:worker/replica:0/task:1"));
  const rn_shown_key_t key = {{3, 4}};
  pid_t child = fork();
  if (child == 0) {
    rn_loans_t* loans = NULL;
    OK(rn_loans_create(rn_env_system(), rn_allocator_system(), &loans));
    said->reach = *rn_loans_reach(loans);
    said->step = 1;
    wait_for(said, 2);
    rn_loans_greet(loans, said->line);
    cr_assert_eq(rn_loans_show(loans, task + 2, key, "1234", 4), 0, "no such task");
    uint64_t number = rn_loans_show(loans, task, key, "1234", 4);
    said->is_lent = number && !rn_loans_is_taken(loans, number);
    said->step = 3;
    wait_for(said, 4);
    said->is_lent = rn_loans_is_taken(loans, number);
    said->step = 5;
    for (;;) pause();
  }
  rn_line_t* line = NULL;
  char got[4] = "";
  wait_for(said, 1);
  OK(rn_line_open(&said->reach, task, rn_env_system(), rn_allocator_system(), &line));
  cr_assert_not(rn_line_look(line, key, got, sizeof got), "before the lender has greeted");
  said->line = rn_line_name(line);
  said->step = 2;
  wait_for(said, 3);
  if (rn_line_hear(line) != RN_LINE_WORKS) {
    end(child);
    cr_skip_test("this system does not let processes of one user read each other");
  }
  cr_assert(said->is_lent);
  cr_assert(rn_line_has_board(line));
  cr_assert(rn_line_look(line, key, got, sizeof got));
  cr_assert_arr_eq(got, "1234", 4);
  cr_assert_not(rn_line_look(line, key, got, sizeof got), "it is taken once");
  said->step = 4;
  wait_for(said, 5);
  cr_assert(said->is_lent);
  end(child);
  rn_line_release(line);
  munmap(said, sizeof *said);
}

Test(loan, has_no_line_to_this_process_or_another_machine) {
  rn_loans_t* loans = NULL;
  rn_line_t* line = NULL;
  OK(rn_loans_create(rn_env_system(), rn_allocator_system(), &loans));
  rn_reach_t reach = *rn_loans_reach(loans);
  expect_unavailable(open_line(&reach, &line));  // our own memory
  cr_assert_null(line);
  reach.machine[0] ^= 1;
  expect_unavailable(open_line(&reach, &line));
  reach = *rn_loans_reach(loans);
  reach.name.bits[1] ^= 2;  // no such process
  expect_unavailable(open_line(&reach, &line));
  rn_loans_destroy(loans);
}

// A socket where a lender's would be.
static int listen_as(rn_loan_name_t name) {
  struct sockaddr_un address;
  unsigned size = rn_reach_address(name, &address);
  int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  cr_assert_eq(bind(listener, (struct sockaddr*)&address, size), 0);
  cr_assert_eq(listen(listener, 8), 0);
  return listener;
}

// A lender that says, as its first word, where the secret of another process lies: that is looked
// for in its own memory, where it is not.
Test(loan, is_never_of_a_third_process) {
  said_t* said = said_open();
  static _Alignas(8) rn_loan_name_t victim = {{0x1234567812345678, 0x8765432187654321}};
  said->reach.name = (rn_loan_name_t){{(uint64_t)getpid() | 1, 77}};
  rn_reach_machine(said->reach.machine, sizeof said->reach.machine);
  pid_t child = fork();
  if (child == 0) {
    int listener = listen_as(said->reach.name);
    victim = (rn_loan_name_t){{0, 0}};  // its own copy
    said->step = 1;
    int fd = accept(listener, NULL, NULL);
    rn_loan_t forged = {.address = (uint64_t)(uintptr_t)&victim,
                        .size = sizeof victim,
                        .secret = {{0x1234567812345678, 0x8765432187654321}}};
    cr_assert_eq(send(fd, &forged, sizeof forged, 0), sizeof forged);
    said->step = 2;
    for (;;) pause();
  }
  wait_for(said, 1);
  rn_line_t* line = NULL;
  OK(open_line(&said->reach, &line));
  wait_for(said, 2);
  cr_assert_eq(rn_line_hear(line), RN_LINE_FAILS);
  rn_line_release(line);
  end(child);
  munmap(said, sizeof *said);
}

// A lender that does not begin as it should, or says half of what it should.
Test(loan, needs_a_line_that_begins_well) {
  static const struct {
    size_t size;
    uint64_t id;
  } cases[] = {{sizeof(rn_loan_t), 5}, {sizeof(rn_loan_t) - 1, 0}, {0, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    said_t* said = said_open();
    said->reach.name = (rn_loan_name_t){{(uint64_t)getpid() | 1, 100 + i}};
    rn_reach_machine(said->reach.machine, sizeof said->reach.machine);
    pid_t child = fork();
    if (child == 0) {
      int listener = listen_as(said->reach.name);
      said->step = 1;
      int fd = accept(listener, NULL, NULL);
      rn_loan_t loan = {.id = cases[i].id};
      loan.address = (uint64_t)(uintptr_t)&loan.secret;
      loan.size = sizeof loan.secret;
      if (cases[i].size) cr_assert_neq(send(fd, &loan, cases[i].size, 0), -1);
      if (!cases[i].size) close(fd);
      said->step = 2;
      for (;;) pause();
    }
    wait_for(said, 1);
    rn_line_t* line = NULL;
    OK(open_line(&said->reach, &line));
    wait_for(said, 2);
    cr_assert_eq(rn_line_hear(line), RN_LINE_FAILS, "%zu", i);
    rn_line_release(line);
    end(child);
    munmap(said, sizeof *said);
  }
}

// Another user may connect to the socket and know all names, and gets no line. Needs root.
Test(loan, is_not_for_other_users) {
  if (geteuid() != 0) cr_skip_test("only root can be another user");
  said_t* said = said_open();
  pid_t child = start_lender(said);
  wait_for(said, 1);
  pid_t stranger = fork();
  if (stranger == 0) {
    rn_line_t* line = NULL;
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    rn_status_t status = open_line(&said->reach, &line);
    _exit(rn_status_code(status) == RN_CODE_UNAVAILABLE ? 0 : 1);
  }
  int result = -1;
  waitpid(stranger, &result, 0);
  cr_assert_eq(result, 0);
  stranger = fork();  // one that does not care who the lender is
  if (stranger == 0) {
    struct sockaddr_un address;
    unsigned size = rn_reach_address(said->reach.name, &address);
    char bytes[64];
    if (setresuid(65534, 65534, 65534) != 0) _exit(2);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(fd, (struct sockaddr*)&address, size) != 0) _exit(3);
    const rn_hello_t hello = {.name = {{5, 7}}};
    said->line = hello.name;
    if (send(fd, &hello, sizeof hello, 0) < 0) _exit(4);
    said->step = 2;
    wait_for(said, 3);
    said->step = 4;
    _exit(recv(fd, bytes, sizeof bytes, 0) > 0 ? 1 : 0);
  }
  waitpid(stranger, &result, 0);
  cr_assert_eq(result, 0);
  wait_for(said, 5);
  cr_assert_not(said->is_lent);
  end(child);
  munmap(said, sizeof *said);
}

// A clock that the test sets.
static int64_t set_now(void* self) { return *(int64_t*)self; }
static uint64_t count_up(void* self) { return (uint64_t)++ * (int64_t*)self * 2; }

// A borrower in a child, who opens a line and stays.
static pid_t start_borrower(said_t* said) {
  pid_t child = fork();
  if (child) return child;
  rn_line_t* line = NULL;
  OK(open_line(&said->reach, &line));
  said->line = rn_line_name(line);
  said->step = 2;
  for (;;) pause();
}

Test(loan, is_kept_until_it_ends_or_is_too_old) {
  int64_t now = 1;
  rn_env_t env = *rn_env_system();
  env.self = &now;
  env.now_ns = set_now;
  env.random = count_up;  // moves the clock on by a little, which does not matter
  rn_loans_t* loans = NULL;
  now = (int64_t)getpid() << 20;  // names that no other process of this test has
  OK(rn_loans_create(&env, rn_allocator_system(), &loans));
  said_t* said = said_open();
  said->reach = *rn_loans_reach(loans);
  rn_tensor_t tensor = make_tensor();
  uint64_t first = 0, second = 0;
  expect_unavailable(rn_loans_add(loans, (rn_loan_name_t){{1, 3}}, &tensor, &first));
  cr_assert(rn_tensor_is_exclusive(&tensor), "without a line nothing is lent");
  pid_t child = start_borrower(said);
  wait_for(said, 2);
  rn_loans_greet(loans, said->line);
  OK(rn_loans_add(loans, said->line, &tensor, &first));
  OK(rn_loans_add(loans, said->line, &tensor, &second));
  cr_assert_neq(first, second);
  cr_assert_not(rn_tensor_is_exclusive(&tensor));
  cr_assert(rn_loans_end(loans, first));
  cr_assert_not(rn_loans_end(loans, first));
  cr_assert_not(rn_loans_end(loans, 0));
  cr_assert_not(rn_tensor_is_exclusive(&tensor));
  now += INT64_C(61000000000);
  cr_assert_not(rn_loans_end(loans, 0));
  cr_assert(rn_tensor_is_exclusive(&tensor), "what nobody gave back is let go after a minute");
  cr_assert_not(rn_loans_end(loans, second));
  OK(rn_loans_add(loans, said->line, &tensor, &first));
  end(child);
  expect_unavailable(rn_loans_add(loans, said->line, &tensor, &second));
  rn_loans_destroy(loans);
  cr_assert(rn_tensor_is_exclusive(&tensor));
  rn_tensor_clear(&tensor);
  munmap(said, sizeof *said);
}

// Memory of a device is such: a task that cannot lend a value sends it.
Test(loan, of_memory_that_nobody_else_can_read) {
  enum { PAGE = 4096 };
  char* pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(pages, MAP_FAILED);
  rn_loans_t* loans = NULL;
  rn_tensor_t tensor;
  uint64_t id = 0;
  OK(rn_loans_create(rn_env_system(), rn_allocator_system(), &loans));
  OK(rn_tensor_init(&tensor, RN_UINT8, (rn_shape_t){1, (int64_t[]){3 * PAGE}}));
  tensor.data = pages;
  for (int closed = 0; closed < 3; closed += 2) {
    cr_assert_eq(mprotect(pages + closed * PAGE, PAGE, PROT_NONE), 0);
    FAILS_WITH(rn_loans_add(loans, (rn_loan_name_t){{1, 2}}, &tensor, &id), UNAVAILABLE,
               "cannot read the tensor");
    cr_assert_eq(mprotect(pages + closed * PAGE, PAGE, PROT_READ), 0);
  }
  FAILS_WITH(rn_loans_add(loans, (rn_loan_name_t){{1, 2}}, &tensor, &id), UNAVAILABLE,
             "No connection");
  rn_loans_destroy(loans);
  munmap(pages, 3 * PAGE);
}
