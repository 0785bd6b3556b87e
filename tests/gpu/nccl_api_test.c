// NCCL itself, by a communicator of one rank: on a card with the real library, else with the
// emulated one.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "api.h"
#include "kernels/cuda/libs/nccl.h"

#define COUNT 1000
#define CASE(name) Test(nccl_api, name, .timeout = 120)

static const rn_comm_library_t* const nccl = &rn_nccl_library;
static const atomic_bool goes_on;

static void open_library(gpu_t* gpu) {
  rn_comm_identity_t identity;
  gpu_open(gpu);
  rn_status_t status = nccl->identify(gpu->device, &identity);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) {
    fprintf(stderr, "skipped: %s\n", rn_status_message(status));
    rn_status_free(status);
    cr_skip_test("NCCL is not installed");
  }
  OK(status);
  fprintf(stderr, "NCCL %d\n", (int)identity.version);
  cr_assert_gt(identity.version, 20000);
}

static rn_comm_t* connect_alone(gpu_t* gpu) {
  rn_comm_t* comm = NULL;
  char id[RN_COMM_ID_SIZE];
  OK(nccl->make_id(gpu->device, id));
  OK(nccl->create(&(rn_comm_members_t){&gpu->device, &(int32_t){0}, 1, 1}, &comm));
  OK(nccl->connect(comm, id, &goes_on));
  return comm;
}

// Every operation leaves one rank's values as they are.
CASE(one_rank) {
  static const rn_collective_kind_t kinds[] = {RN_COLLECTIVE_REDUCE, RN_COLLECTIVE_REDUCE_SCATTER,
                                               RN_COLLECTIVE_GATHER, RN_COLLECTIVE_BROADCAST,
                                               RN_COLLECTIVE_ALL_TO_ALL};
  static const rn_dtype_t types[] = {RN_FLOAT, RN_INT32, RN_INT64};
  gpu_t gpu;
  open_library(&gpu);
  rn_comm_t* comm = connect_alone(&gpu);
  for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
    pair_t in = pair_make(&gpu, types[t], COUNT);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
      for (int turn = 0; turn < 3; ++turn) {
        int64_t count = COUNT;
        rn_tensor_t out;
        rn_collective_t member = {
            .kind = kinds[k], .device = gpu.device, .dtype = types[t], .input = &in.card};
        rn_collective_t* members[] = {&member};
        cr_assert(nccl->takes(&member));
        OK(rn_tensor_create(gpu.device->allocator, types[t], (rn_shape_t){1, &count},
                            &member.output));
        OK(rn_tensor_create(rn_allocator_system(), types[t], (rn_shape_t){1, &count}, &out));
        OK(nccl->run(comm, members, 0, &goes_on));
        gpu.device->vtable->copy_to_host(gpu.device, &member.output, &out, NULL, NULL);
        OK(gpu.device->vtable->wait(gpu.device));
        cr_assert_eq(memcmp(out.data, in.host.data, rn_tensor_bytes(&out)), 0, "kind %d of type %d",
                     (int)kinds[k], (int)types[t]);
        rn_tensor_clear(&member.output);
        rn_tensor_clear(&out);
      }
    }
    pair_clear(&in);
  }
  nccl->destroy(comm);
  gpu_close(&gpu);
}

// The other rank never comes: connecting ends when it is told to, and so does destroying.
static void* stop_soon(void* arg) {
  nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
  atomic_store((atomic_bool*)arg, true);
  return NULL;
}

CASE(connecting_can_be_stopped) {
  gpu_t gpu;
  rn_comm_t* comm = NULL;
  char id[RN_COMM_ID_SIZE];
  atomic_bool is_stopped = false;
  pthread_t thread;
  open_library(&gpu);
  OK(nccl->make_id(gpu.device, id));
  OK(nccl->create(&(rn_comm_members_t){&gpu.device, &(int32_t){0}, 1, 2}, &comm));
  cr_assert_eq(pthread_create(&thread, NULL, stop_soon, &is_stopped), 0);
  FAILS(nccl->connect(comm, id, &is_stopped), CANCELLED);
  pthread_join(thread, NULL);
  nccl->destroy(comm);
  comm = connect_alone(&gpu);
  nccl->destroy(comm);
  gpu_close(&gpu);
}
