// Members of a process meet: results, disagreement, cancelling, deadlines, aborts.
#include "collective/collectives.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "../support/status.h"
#include "device/device.h"

#define MEMBERS 4
#define COUNT 20011  // elements: several blocks, and a part of one

typedef struct part_t {
  rn_collective_t collective;  // first
  rn_tensor_t input;
  int64_t dims[2];
  rn_cancel_t cancel;
  rn_status_t status;
  atomic_int done;
} part_t;

static rn_local_collectives_t* collectives;
static rn_device_t* devices[MEMBERS];

static void set_up(void) {
  OK(rn_local_collectives_create(rn_env_system(), rn_allocator_system(), NULL, &collectives));
  for (int i = 0; i < MEMBERS; ++i)
    OK(rn_cpu_device_create(rn_allocator_system(), RN_STR("/job:localhost/replica:0/task:0"), i,
                            rn_env_system(), &devices[i]));
}

static void tear_down(void) {
  rn_local_collectives_destroy(collectives);
  for (int i = 0; i < MEMBERS; ++i) rn_device_destroy(devices[i]);
}

TestSuite(collectives, .init = set_up, .fini = tear_down);

static void on_done(rn_collective_t* collective, rn_status_t status) {
  part_t* part = (part_t*)collective;
  part->status = status;
  atomic_fetch_add(&part->done, 1);
}

static void add(rn_dtype_t dtype, const void* a, const void* b, void* out, int64_t n) {
  (void)dtype;
  for (int64_t i = 0; i < n; ++i) ((float*)out)[i] = ((const float*)a)[i] + ((const float*)b)[i];
}

static void divide(rn_dtype_t dtype, int32_t by, void* values, int64_t n) {
  (void)dtype;
  for (int64_t i = 0; i < n; ++i) ((float*)values)[i] /= (float)by;
}

static float value_of(int rank, int64_t i) { return 0.1f * (float)(rank + 1) + (float)(i % 97); }

static part_t* make_part(rn_collective_kind_t kind, int rank, int64_t rows, int64_t columns) {
  part_t* part = calloc(1, sizeof *part);
  part->dims[0] = rows;
  part->dims[1] = columns;
  rn_shape_t shape = {2, part->dims};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, shape, &part->input));
  for (int64_t i = 0; i < part->input.count; ++i)
    RN_DATA(&part->input, float)[i] = value_of(rank, i);
  rn_cancel_init(&part->cancel);
  if (kind == RN_COLLECTIVE_GATHER) part->dims[0] *= MEMBERS;
  if (kind == RN_COLLECTIVE_REDUCE_SCATTER) part->dims[0] /= MEMBERS;
  part->collective = (rn_collective_t){.group_key = 1,
                                       .group_size = MEMBERS,
                                       .rank = -1,
                                       .device = devices[rank],
                                       .kind = kind,
                                       .instance_key = 7,
                                       .merge = add,
                                       .node = RN_STR("node"),
                                       .dtype = RN_FLOAT,
                                       .shape = shape,
                                       .input = &part->input,
                                       .memory = rn_allocator_system(),
                                       .cancel = &part->cancel,
                                       .done = on_done};
  return part;
}

static void start(part_t* part) {
  rn_collectives_run(rn_local_collectives_face(collectives), &part->collective);
}

static rn_status_t wait_for(part_t* part) {
  while (!atomic_load(&part->done)) sched_yield();
  cr_assert_eq(atomic_load(&part->done), 1);
  rn_status_t status = part->status;
  part->status = RN_OK;
  return status;
}

static void free_part(part_t* part) {
  rn_tensor_clear(&part->collective.output);
  rn_tensor_clear(&part->input);
  rn_cancel_destroy(&part->cancel);
  free(part);
}

static void* run_thread(void* arg) {
  usleep((useconds_t)(random() % 2000));
  start(arg);
  return NULL;
}

// Runs a collective of all members, each on its own thread.
static void run_all(part_t** parts) {
  pthread_t threads[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i) pthread_create(&threads[i], NULL, run_thread, parts[i]);
  for (int i = 0; i < MEMBERS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < MEMBERS; ++i) OK(wait_for(parts[i]));
}

static float sum_of(int64_t i) {
  float sum = value_of(0, i);
  for (int r = 1; r < MEMBERS; ++r) sum += value_of(r, i);
  return sum;
}

Test(collectives, reduces_in_the_order_of_ranks) {
  for (int turn = 0; turn < 20; ++turn) {
    part_t* parts[MEMBERS];
    for (int i = 0; i < MEMBERS; ++i) {
      parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, COUNT);
      parts[i]->collective.divide = turn % 2 ? divide : NULL;
    }
    run_all(parts);
    for (int i = 0; i < MEMBERS; ++i) {
      const float* out = parts[i]->collective.output.data;
      for (int64_t k = 0; k < COUNT; ++k)
        cr_assert_eq(out[k], turn % 2 ? sum_of(k) / (float)MEMBERS : sum_of(k));
    }
    for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  }
}

Test(collectives, moves_rows) {
  part_t* parts[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_GATHER, i, 2, 3);
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) {
    const float* out = parts[i]->collective.output.data;
    cr_assert_eq(parts[i]->collective.output.count, 2 * 3 * MEMBERS);
    for (int64_t k = 0; k < 6 * MEMBERS; ++k) cr_assert_eq(out[k], value_of((int)(k / 6), k % 6));
    free_part(parts[i]);
  }
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE_SCATTER, i, 8, 3);
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) {
    const float* out = parts[i]->collective.output.data;
    for (int64_t k = 0; k < 6; ++k) cr_assert_eq(out[k], sum_of(6 * i + k));
    free_part(parts[i]);
  }
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_ALL_TO_ALL, i, MEMBERS, 5);
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) {
    const float* out = parts[i]->collective.output.data;
    for (int64_t k = 0; k < 5 * MEMBERS; ++k)
      cr_assert_eq(out[k], value_of((int)(k / 5), 5 * i + k % 5));
    free_part(parts[i]);
  }
  for (int i = 0; i < MEMBERS; ++i) {
    parts[i] = make_part(RN_COLLECTIVE_BROADCAST, i, 2, 2);
    parts[i]->collective.is_source = i == 2;
    if (i != 2) parts[i]->collective.input = NULL;
  }
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) {
    cr_assert_eq(RN_DATA(&parts[i]->collective.output, float)[1], value_of(2, 1));
    free_part(parts[i]);
  }
}

Test(collectives, ranks_may_be_given) {
  part_t* parts[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i) {
    parts[i] = make_part(RN_COLLECTIVE_GATHER, i, 1, 1);
    parts[i]->collective.rank = MEMBERS - 1 - i;
  }
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) {
    for (int k = 0; k < MEMBERS; ++k)
      cr_assert_eq(RN_DATA(&parts[i]->collective.output, float)[k], value_of(MEMBERS - 1 - k, 0));
    free_part(parts[i]);
  }
}

Test(collectives, members_must_agree) {
  part_t* parts[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i)
    parts[i] = make_part(i == 3 ? RN_COLLECTIVE_GATHER : RN_COLLECTIVE_REDUCE, i, 2, 3);
  for (int i = 0; i < MEMBERS; ++i) start(parts[i]);
  for (int i = 0; i < MEMBERS; ++i)
    FAILS_WITH(wait_for(parts[i]), INTERNAL, "instance 7 expected type");
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 2, i ? 3 : 4);
  for (int i = 0; i < MEMBERS; ++i) start(parts[i]);
  for (int i = 0; i < MEMBERS; ++i)
    FAILS_WITH(wait_for(parts[i]), INVALID_ARGUMENT, "Shape mismatch");
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  // A group that does not agree stays unusable, as in stock.
  part_t* other = make_part(RN_COLLECTIVE_REDUCE, 0, 2, 3);
  other->collective.group_size = 3;
  start(other);
  FAILS_WITH(wait_for(other), INTERNAL, "but that group has size 4");
  free_part(other);
  rn_local_collectives_reset(collectives);
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 2, 3);
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
}

// A cancelled member ends the instance for those that have come and those that will. Then all may
// try again.
Test(collectives, cancelling_ends_all) {
  part_t* parts[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
  run_all(parts);  // the group is known from now on
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
    for (int i = 0; i < 3; ++i) start(parts[i]);
    rn_cancel(&parts[1]->cancel);
    for (int i = 0; i < 3; ++i) FAILS(wait_for(parts[i]), CANCELLED);
    if (turn == 0) {
      start(parts[3]);
      FAILS(wait_for(parts[3]), CANCELLED);
    }
    for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  }
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
  for (int i = 0; i < MEMBERS; ++i) start(parts[i]);
  for (int i = 0; i < MEMBERS; ++i) OK(wait_for(parts[i]));
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
}

Test(collectives, waiting_for_a_group_can_be_cancelled) {
  part_t* part = make_part(RN_COLLECTIVE_REDUCE, 0, 1, 5);
  start(part);
  rn_cancel(&part->cancel);
  FAILS(wait_for(part), CANCELLED);
  free_part(part);
}

Test(collectives, deadlines) {
  part_t* parts[MEMBERS];
  const rn_env_t* env = rn_env_system();
  for (int i = 0; i < 2; ++i) {
    parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
    parts[i]->collective.deadline_ns = env->now_ns(env->self) + 50000000;
    start(parts[i]);
  }
  for (int i = 0; i < 2; ++i) FAILS_WITH(wait_for(parts[i]), DEADLINE_EXCEEDED, "timed out");
  for (int i = 0; i < 2; ++i) free_part(parts[i]);
}

Test(collectives, aborts_last_until_reset) {
  part_t* parts[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
  for (int i = 0; i < 3; ++i) start(parts[i]);
  rn_collectives_abort(rn_local_collectives_face(collectives), rn_unavailable("peer down"));
  for (int i = 0; i < 3; ++i) FAILS_WITH(wait_for(parts[i]), UNAVAILABLE, "peer down");
  start(parts[3]);
  FAILS_WITH(wait_for(parts[3]), UNAVAILABLE, "peer down");
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  rn_local_collectives_reset(collectives);
  for (int i = 0; i < MEMBERS; ++i) parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 5);
  run_all(parts);
  for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
}

// Values in the memory of devices, which the host cannot read: in pieces, with a rest.

static void on_copied(void* arg, rn_status_t status) {
  OK(status);
  atomic_store((atomic_int*)arg, 1);
}

static rn_tensor_t moved(rn_device_t* device, const rn_tensor_t* from, bool to_device) {
  rn_tensor_t to;
  atomic_int is_done = 0;
  OK(rn_tensor_create(to_device ? device->allocator : rn_allocator_system(), RN_FLOAT,
                      rn_tensor_shape(from), &to));
  if (to_device)
    device->vtable->copy_from_host(device, from, &to, on_copied, &is_done);
  else
    device->vtable->copy_to_host(device, from, &to, on_copied, &is_done);
  while (!atomic_load(&is_done)) sched_yield();
  return to;
}

static part_t* make_far_part(rn_device_t* device, rn_collective_kind_t kind, int rank, int64_t rows,
                             int64_t columns) {
  part_t* part = make_part(kind, rank, rows, columns);
  rn_tensor_t far = moved(device, &part->input, true);
  rn_tensor_clear(&part->input);
  part->input = far;
  part->collective.device = device;
  part->collective.memory = device->allocator;
  return part;
}

static float far_value(rn_collective_kind_t kind, int rank, int64_t columns, int64_t i) {
  if (kind == RN_COLLECTIVE_REDUCE) return sum_of(i);
  if (kind == RN_COLLECTIVE_REDUCE_SCATTER) return sum_of(rank * columns + i);
  if (kind == RN_COLLECTIVE_GATHER) return value_of((int)(i / columns), i % columns);
  return value_of((int)(i / columns), rank * columns + i % columns);
}

Test(collectives, values_on_devices) {
  static const rn_collective_kind_t kinds[] = {RN_COLLECTIVE_REDUCE, RN_COLLECTIVE_REDUCE_SCATTER,
                                               RN_COLLECTIVE_GATHER, RN_COLLECTIVE_ALL_TO_ALL};
  rn_device_t* far[MEMBERS];
  for (int i = 0; i < MEMBERS; ++i)
    OK(rn_null_device_create(rn_allocator_system(), RN_STR("/job:localhost/replica:0/task:0"), i,
                             rn_env_system(), &far[i]));
  for (int turn = 0; turn < 8; ++turn) {
    rn_collective_kind_t kind = kinds[turn / 2];
    bool has_slices = kind == RN_COLLECTIVE_REDUCE_SCATTER || kind == RN_COLLECTIVE_ALL_TO_ALL;
    int64_t columns = turn % 2 ? (kind == RN_COLLECTIVE_REDUCE ? 2500001 : 600001) : 5;
    part_t* parts[MEMBERS];
    for (int i = 0; i < MEMBERS; ++i)
      parts[i] = make_far_part(far[i], kind, i, has_slices ? MEMBERS : 1, columns);
    run_all(parts);
    for (int i = 0; i < MEMBERS; ++i) {
      rn_tensor_t out = moved(far[i], &parts[i]->collective.output, false);
      for (int64_t k = 0; k < out.count; ++k)
        cr_assert_eq(RN_DATA(&out, float)[k], far_value(kind, i, columns, k));
      rn_tensor_clear(&out);
      free_part(parts[i]);
    }
  }
  for (int i = 0; i < MEMBERS; ++i) rn_device_destroy(far[i]);
}

// Members come, are cancelled and come again, at any time; each ends once.
Test(collectives, stress) {
  for (int turn = 0; turn < 300; ++turn) {
    part_t* parts[MEMBERS];
    pthread_t threads[MEMBERS];
    for (int i = 0; i < MEMBERS; ++i) {
      parts[i] = make_part(RN_COLLECTIVE_REDUCE, i, 1, 50);
      parts[i]->collective.step = turn;
    }
    for (int i = 0; i < MEMBERS; ++i) pthread_create(&threads[i], NULL, run_thread, parts[i]);
    usleep((useconds_t)(random() % 2000));
    rn_cancel(&parts[turn % MEMBERS]->cancel);
    for (int i = 0; i < MEMBERS; ++i) pthread_join(threads[i], NULL);
    int ended = 0, failed = 0;
    for (int i = 0; i < MEMBERS; ++i) {
      if (!atomic_load(&parts[i]->done)) rn_cancel(&parts[i]->cancel);  // its group never came
      rn_status_t status = wait_for(parts[i]);
      ended++;
      failed += !rn_ok(status);
      rn_status_free(status);
    }
    cr_assert_eq(ended, MEMBERS);
    cr_assert(failed == 0 || failed == MEMBERS, "%d failed in turn %d", failed, turn);
    for (int i = 0; i < MEMBERS; ++i) free_part(parts[i]);
  }
}
