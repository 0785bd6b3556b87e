// Tensors read out of another process's memory: who may, and what happens when it cannot be.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/rpc/loan.h"

#define OK(expression)                                               \
  do {                                                               \
    rn_status_t ok_status = (expression);                            \
    cr_assert(rn_ok(ok_status), "%s", rn_status_message(ok_status)); \
  } while (0)

enum { COUNT = 3 << 20 };  // floats: several pieces, the last one short

static rn_tensor_t make_tensor(void) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){1, (int64_t[]){COUNT - 5}},
                      &tensor));
  for (int64_t i = 0; i < COUNT - 5; ++i) RN_DATA(&tensor, float)[i] = (float)i;
  return tensor;
}

// What a lender says of itself and of a tensor, in memory that both processes have.
typedef struct said_t {
  rn_reach_t reach;
  rn_loan_t loan;
  _Atomic int is_ready;
} said_t;

static pid_t start_lender(said_t* said) {
  pid_t child = fork();
  if (child) return child;
  rn_loans_t* loans = NULL;
  rn_tensor_t tensor = make_tensor();
  rn_status_t status = rn_loans_create(rn_env_system(), rn_allocator_system(), &loans);
  if (rn_ok(status)) status = rn_loans_add(loans, &tensor, &said->loan);
  said->reach = *rn_loans_reach(loans);
  said->is_ready = rn_ok(status) ? 1 : -1;
  for (;;) pause();
}

Test(loan, is_read_by_another_process) {
  said_t* said =
      mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(said, MAP_FAILED);
  pid_t child = start_lender(said);
  while (!said->is_ready) usleep(1000);
  cr_assert_eq(said->is_ready, 1);
  if (!rn_reach_works(&said->reach)) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_skip_test("this system does not let processes of one user read each other");
  }
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), 3, &pool));
  rn_tensor_t want = make_tensor(), got = make_tensor();
  memset(got.data, 0, rn_tensor_bytes(&got));
  OK(rn_reach_read(said->reach.pid, said->loan.address, got.data, rn_tensor_bytes(&got), pool));
  cr_assert_arr_eq(got.data, want.data, rn_tensor_bytes(&want));

  // A secret that is another's, another machine, memory that is not there, a process that is not.
  rn_reach_t other = said->reach;
  other.secret[1] ^= 2;
  cr_assert_not(rn_reach_works(&other));
  other = said->reach;
  other.machine[0] ^= 1;
  cr_assert_not(rn_reach_works(&other));
  rn_status_t status = rn_reach_read(said->reach.pid, 4096, got.data, 64, pool);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE);
  rn_status_free(status);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  status = rn_reach_read(said->reach.pid, said->loan.address, got.data, 64, pool);
  cr_assert_eq(rn_status_code(status), RN_CODE_UNAVAILABLE);
  rn_status_free(status);
  cr_assert_not(rn_reach_works(&said->reach));
  rn_tensor_clear(&want);
  rn_tensor_clear(&got);
  rn_pool_destroy(pool);
  munmap(said, sizeof *said);
}

// A clock that the test sets.
static int64_t set_now(void* self) { return *(int64_t*)self; }
static uint64_t count_up(void* self) { return (uint64_t)++ * (int64_t*)self * 2; }

Test(loan, is_kept_until_it_ends_or_is_too_old) {
  int64_t now = 1;
  rn_env_t env = *rn_env_system();
  env.self = &now;
  env.now_ns = set_now;
  env.random = count_up;  // moves the clock on by a little, which does not matter
  rn_loans_t* loans = NULL;
  OK(rn_loans_create(&env, rn_allocator_system(), &loans));
  rn_tensor_t tensor = make_tensor();
  rn_loan_t first, second;
  OK(rn_loans_add(loans, &tensor, &first));
  OK(rn_loans_add(loans, &tensor, &second));
  cr_assert_neq(first.id, second.id);
  cr_assert_not(rn_tensor_is_exclusive(&tensor));
  cr_assert(rn_loans_end(loans, first.id));
  cr_assert_not(rn_loans_end(loans, first.id));
  cr_assert_not(rn_loans_end(loans, 0));
  cr_assert_not(rn_tensor_is_exclusive(&tensor));
  now += INT64_C(61000000000);
  cr_assert_not(rn_loans_end(loans, 0));
  cr_assert(rn_tensor_is_exclusive(&tensor), "what nobody gave back is let go after a minute");
  cr_assert_not(rn_loans_end(loans, second.id));
  OK(rn_loans_add(loans, &tensor, &first));
  rn_loans_destroy(loans);
  cr_assert(rn_tensor_is_exclusive(&tensor));
  rn_tensor_clear(&tensor);
}
