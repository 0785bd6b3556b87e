// Copies of boxes, fills and sums on the emulated GPU against the CPU: random boxes, with
// strides of any sign and in any order, of all sizes of elements. RUNNEL_TEST_SEED chooses them.
#include "kernels/cpu/move.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "../support/status.h"
#include "device/part.h"

static const rn_dtype_t types[] = {RN_UINT8, RN_INT16, RN_FLOAT, RN_DOUBLE, RN_COMPLEX128};
static uint64_t state;

static int pick(int n) {  // [0, n)
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (int)((state >> 33) % (uint64_t)n);
}

typedef struct gpu_t {
  rn_device_t** devices;
  int count;
  rn_device_t* device;
} gpu_t;

static void gpu_open(gpu_t* gpu) {
  const char* seed = getenv("RUNNEL_TEST_SEED");
  state = seed ? strtoull(seed, NULL, 10) : 1;
  const rn_gpu_options_t options = {.max_count = 1};
  const rn_devices_init_t init = {.allocator = rn_allocator_system(),
                                  .env = rn_env_system(),
                                  .name_prefix = RN_STR("/job:test/replica:0/task:0"),
                                  .cpus = 1,
                                  .gpu = &options};
  OK(rn_devices_create(&init, &gpu->devices, &gpu->count));
  cr_assert_eq(gpu->count, 2);
  gpu->device = gpu->devices[1];
}

static void gpu_close(gpu_t* gpu) {
  rn_devices_destroy(rn_allocator_system(), gpu->devices, gpu->count);
}

// A tensor on the host and its copy on the card.
typedef struct pair_t {
  rn_tensor_t host, card;
} pair_t;

static pair_t pair_make(gpu_t* gpu, rn_dtype_t dtype, int64_t count, bool is_blank) {
  pair_t pair;
  OK(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){1, &count}, &pair.host));
  OK(rn_tensor_create(gpu->device->allocator, dtype, (rn_shape_t){1, &count}, &pair.card));
  unsigned char* bytes = pair.host.data;
  for (size_t i = 0; i < rn_tensor_bytes(&pair.host); ++i)
    bytes[i] = is_blank ? 0xee : (unsigned char)pick(256);
  gpu->device->vtable->copy_from_host(gpu->device, &pair.host, &pair.card, NULL, NULL);
  return pair;
}

static void pair_clear(pair_t* pair) {
  rn_tensor_clear(&pair->host);
  rn_tensor_clear(&pair->card);
}

// Whether the card's bytes are the host's.
static bool pair_agrees(gpu_t* gpu, pair_t* pair) {
  rn_tensor_t got;
  OK(rn_tensor_create(rn_allocator_system(), pair->host.dtype, rn_tensor_shape(&pair->host), &got));
  gpu->device->vtable->copy_to_host(gpu->device, &pair->card, &got, NULL, NULL);
  OK(rn_device_wait(gpu->device));
  bool agrees = memcmp(got.data, pair->host.data, rn_tensor_bytes(&got)) == 0;
  rn_tensor_clear(&got);
  return agrees;
}

// One side of a box: strides for dimensions in a random order, some with gaps or reversed.
typedef struct side_t {
  int64_t strides[RN_MOVE_MAX_RANK];
  int64_t first, count;  // the first element's place, and the elements that the box spans
} side_t;

static void make_side(const int64_t* sizes, int rank, bool may_repeat, side_t* side) {
  int order[RN_MOVE_MAX_RANK];
  for (int d = 0; d < rank; ++d) order[d] = d;
  if (pick(3))
    for (int d = 0; d < rank; ++d) {
      int other = pick(rank), held = order[d];
      order[d] = order[other];
      order[other] = held;
    }
  side->first = pick(5);
  side->count = 1;
  for (int k = rank - 1; k >= 0; --k) {
    const int d = order[k];
    int64_t step = pick(8) ? 1 : 2;
    side->strides[d] = side->count * step;
    if (may_repeat && pick(6) == 0) {
      side->strides[d] = 0;
      continue;
    }
    side->count = side->count * step * sizes[d] + (pick(4) ? 0 : side->count * pick(4));
    if (pick(6)) continue;
    side->first += side->strides[d] * (sizes[d] - 1);
    side->strides[d] = -side->strides[d];
  }
  side->count += side->first + pick(3);
}

static void check_box(gpu_t* gpu, const int64_t* sizes, int rank) {
  const rn_dtype_t dtype = types[pick(5)];
  const int64_t size = (int64_t)rn_dtype_size(dtype);
  side_t from, to;
  make_side(sizes, rank, true, &from);
  make_side(sizes, rank, false, &to);
  pair_t source = pair_make(gpu, dtype, from.count, false);
  pair_t target = pair_make(gpu, dtype, to.count, true);
  rn_move_t move;
  rn_move_begin(&move);
  for (int d = 0; d < rank; ++d) rn_move_add(&move, sizes[d], from.strides[d], to.strides[d]);
  OK(rn_move_run(&move, NULL, dtype, (char*)source.host.data + from.first * size,
                 (char*)target.host.data + to.first * size));
  const rn_box_t box = {(char*)source.card.data + from.first * size,
                        (char*)target.card.data + to.first * size, move.rank, move.dims};
  OK(gpu->device->vtable->move(gpu->device, &box, 1, (size_t)size));
  cr_assert(pair_agrees(gpu, &target), "a box of %d dimensions with elements of %d bytes", rank,
            (int)size);
  pair_clear(&source);
  pair_clear(&target);
}

Test(move, boxes_of_many_dimensions) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int i = 0; i < 300; ++i) {
    int64_t sizes[12];
    const int rank = pick(12);
    for (int d = 0; d < rank; ++d) sizes[d] = rank > 7 ? 1 + pick(3) : 1 + pick(4);
    check_box(&gpu, sizes, rank);
  }
  gpu_close(&gpu);
}

// Several tiles of a transposition, also in part, and long runs.
Test(move, large_boxes) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int i = 0; i < 60; ++i) {
    const int64_t sizes[3] = {1 + pick(3), 1 + pick(150), 1 + pick(150)};
    check_box(&gpu, sizes, 3);
  }
  gpu_close(&gpu);
}

// More boxes than one launch takes, of different units.
Test(move, many_boxes) {
  enum { BOXES = 60, EACH = 40 };
  gpu_t gpu;
  gpu_open(&gpu);
  for (int i = 0; i < 20; ++i) {
    const rn_dtype_t dtype = types[pick(5)];
    const size_t size = rn_dtype_size(dtype);
    pair_t source = pair_make(&gpu, dtype, (int64_t)BOXES * EACH, false);
    pair_t target = pair_make(&gpu, dtype, (int64_t)BOXES * EACH, true);
    rn_box_t boxes[BOXES];
    rn_move_t moves[BOXES];
    for (int b = 0; b < BOXES; ++b) {
      const int shift = pick(4), rows = 1 + pick(6), columns = 1 + pick(6);
      size_t from = (size_t)(b * EACH + shift) * size, to = (size_t)(b * EACH + pick(4)) * size;
      rn_move_begin(&moves[b]);
      rn_move_add(&moves[b], rows, 6, columns);
      rn_move_add(&moves[b], columns, 1, 1);
      OK(rn_move_run(&moves[b], NULL, dtype, (char*)source.host.data + from,
                     (char*)target.host.data + to));
      boxes[b] = (rn_box_t){(char*)source.card.data + from, (char*)target.card.data + to,
                            moves[b].rank, moves[b].dims};
    }
    OK(gpu.device->vtable->move(gpu.device, boxes, BOXES, size));
    cr_assert(pair_agrees(&gpu, &target), "boxes with elements of %d bytes", (int)size);
    pair_clear(&source);
    pair_clear(&target);
  }
  gpu_close(&gpu);
}

// Values on the host and on the card, at any place, of any length.
Test(move, fills) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int i = 0; i < 100; ++i) {
    const rn_dtype_t dtype = types[pick(5)];
    const size_t size = rn_dtype_size(dtype);
    pair_t value = pair_make(&gpu, dtype, 1, false), target = pair_make(&gpu, dtype, 5000, true);
    const int first = pick(40), count = pick(2) ? pick(30) : pick(4900);
    const bool is_host = pick(2);
    OK(rn_move_fill(NULL, dtype, value.host.data, (char*)target.host.data + (size_t)first * size,
                    count));
    OK(gpu.device->vtable->fill(gpu.device, is_host ? value.host.data : value.card.data, is_host,
                                size, (char*)target.card.data + (size_t)first * size, count));
    cr_assert(pair_agrees(&gpu, &target), "%d elements of %d bytes", count, (int)size);
    pair_clear(&value);
    pair_clear(&target);
  }
  gpu_close(&gpu);
}

// Integers wrap, whatever their sign.
Test(move, sums) {
  gpu_t gpu;
  gpu_open(&gpu);
  for (int i = 0; i < 20; ++i) {
    pair_t value = pair_make(&gpu, RN_INT16, 1 + pick(3000), false);
    pair_t sum = pair_make(&gpu, RN_INT16, value.host.count, false);
    for (int64_t k = 0; k < sum.host.count; ++k)
      RN_DATA(&sum.host, uint16_t)[k] += RN_DATA(&value.host, uint16_t)[k];
    OK(gpu.device->vtable->add(gpu.device, RN_INT16, value.card.data, sum.card.data,
                               sum.host.count));
    cr_assert(pair_agrees(&gpu, &sum), "%d numbers", (int)sum.host.count);
    pair_clear(&value);
    pair_clear(&sum);
  }
  gpu_close(&gpu);
}
