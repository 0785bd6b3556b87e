// Stock's ring: reductions in two passes, gathers in one. See stock.h.
//
// A tensor is cut into one chunk per member and subdivision. A subdivision is an order of the
// members in which the chunks go round. In the first pass a chunk begins at the member whose place
// has its number, and each adds its own values; the last one has the result, which goes round in
// the second pass.
#include <stdio.h>
#include <stdlib.h>

#include "collective/compute.h"
#include "device/device.h"
#include "dist/collective/stock.h"

// Stock's numbers: the largest chunk, the alignment of chunks in bytes, and the subdivisions per
// device unless the op says otherwise.
#define MAX_CHUNK ((int64_t)4 << 20)
#define CHUNK_ALIGN 64
#define SUBDIVS 2

static bool is_gather(const rn_stock_t* stock) { return stock->like->kind == RN_COLLECTIVE_GATHER; }

// How a tensor is subdivided.

static int32_t count_subdivs(const rn_stock_t* stock) {
  const rn_collective_t* like = stock->like;
  const rn_group_t* group = stock->meeting->group;
  if (is_gather(stock)) return 1;
  if (like->subdiv_count) return like->subdiv_count;
  if (like->max_subdivs == -1) return 1;
  int64_t most = (int64_t)(like->max_subdivs > 0 ? like->max_subdivs : SUBDIVS) *
                 (group->size / group->task_count);
  int64_t bytes = (int64_t)rn_tensor_bytes(&stock->inputs[0]);
  int64_t count = 1;
  while (count < most && bytes / (group->size * count) > MAX_CHUNK) count++;
  return (int32_t)count;
}

// The offset of subdivision |s|: the members of a task are rotated by it, and reversed if it is
// negative.
static int64_t offset_of(const rn_stock_t* stock, int32_t s) {
  const rn_group_t* group = stock->meeting->group;
  if (!is_gather(stock) && stock->like->subdiv_count) return stock->like->subdivs[s];
  int64_t stride = group->size / group->task_count / stock->subdivs;
  int64_t offset = (stride ? stride : 1) * s;
  return s % 2 ? -offset : offset;
}

static void order_ring(const rn_stock_t* stock, int32_t s) {
  const rn_group_t* group = stock->meeting->group;
  int32_t* ring = &stock->rings[(int64_t)s * group->size];
  int64_t offset = offset_of(stock, s);
  for (int32_t first = 0, end; first < group->size; first = end) {
    for (end = first;
         end < group->size && rn_str_eq(group->members[end].task, group->members[first].task);)
      end++;
    int32_t count = end - first;
    for (int32_t i = 0; i < count; ++i) {
      int32_t at = (int32_t)((i + llabs(offset)) % count);
      ring[first + i] = first + (offset < 0 ? count - 1 - at : at);
    }
  }
}

static int32_t place_of(const rn_stock_t* stock, int32_t s, int32_t rank) {
  const int32_t* ring = &stock->rings[(int64_t)s * stock->meeting->group->size];
  int32_t place = 0;
  while (ring[place] != rank) place++;
  return place;
}

// Stock adds a whole alignment to chunks that are aligned already.
static int64_t chunk_of(const rn_stock_t* stock) {
  int64_t total = stock->total, size = stock->meeting->group->size;
  int64_t width = (int64_t)rn_dtype_size(stock->like->dtype), count = size * stock->subdivs;
  if (is_gather(stock)) return total / size;
  int64_t chunk = (total + count - 1) / count;
  return width < CHUNK_ALIGN ? chunk + (CHUNK_ALIGN - chunk * width % CHUNK_ALIGN) / width : chunk;
}

static int64_t first_of(const rn_stock_t* stock, int64_t part) {
  int64_t first = stock->chunk * part;
  return first < stock->total ? first : stock->total;
}

static int64_t count_of(const rn_stock_t* stock, int64_t part) {
  return first_of(stock, part + 1) - first_of(stock, part);
}

// One part of one member.

typedef struct ring_spot_t {
  int32_t size, chunk, subdiv, place;
} ring_spot_t;

static ring_spot_t spot_of(const rn_stock_pull_t* pull) {
  const rn_stock_t* stock = pull->stock;
  int32_t subdiv = pull->part % stock->subdivs;
  return (ring_spot_t){.size = stock->meeting->group->size,
                       .chunk = pull->part / stock->subdivs,
                       .subdiv = subdiv,
                       .place = place_of(stock, subdiv, stock->meeting->ranks[pull->member])};
}

// Whether |place| is the one that is |back| before the beginning of the chunk.
static bool is_before(const ring_spot_t* spot, int32_t back) {
  return spot->place == (spot->chunk + 2 * spot->size - back) % spot->size;
}

static void put_key(rn_stock_pull_t* pull, int32_t place) {
  snprintf(pull->key, sizeof pull->key, "%s:%d:%d:%d", pull->stock->key, pull->pass, pull->part,
           place);
}

static rn_status_t pass_on(rn_stock_pull_t* pull, const ring_spot_t* spot,
                           const rn_tensor_t* tensor, int64_t first) {
  put_key(pull, spot->place);
  return rn_stock_send(pull->stock, pull->key, tensor, first, pull->count);
}

static void pull_part(rn_stock_pull_t* pull, const ring_spot_t* spot) {
  int32_t before = (spot->place + spot->size - 1) % spot->size;
  put_key(pull, before);
  rn_stock_pull(pull, pull->stock->rings[(int64_t)spot->subdiv * spot->size + before]);
}

static void put_result(const rn_stock_pull_t* pull, const rn_tensor_t* value, int64_t first) {
  const rn_stock_t* stock = pull->stock;
  size_t width = rn_dtype_size(stock->like->dtype);
  char* output = stock->meeting->members[pull->member]->output.data;
  memcpy(output + (size_t)first_of(stock, pull->part) * width,
         (const char*)value->data + (size_t)first * width, (size_t)pull->count * width);
}

// The result has come, in the second pass, or a row, in the only pass of a gather.
static void on_result(rn_stock_pull_t* pull) {
  ring_spot_t spot = spot_of(pull);
  put_result(pull, &pull->value, 0);
  if (!is_before(&spot, is_gather(pull->stock) ? 1 : 2))
    rn_stock_check(pull->stock, pass_on(pull, &spot, &pull->value, 0));
}

// Adds this member's own values to those that have come.
static rn_status_t add_own(rn_stock_pull_t* pull, bool is_last) {
  rn_stock_t* stock = pull->stock;
  rn_collective_t* member = stock->meeting->members[pull->member];
  rn_collective_t like = *member;
  const char* own = (const char*)stock->inputs[pull->member].data +
                    (size_t)first_of(stock, pull->part) * rn_dtype_size(like.dtype);
  rn_tensor_t sum = {0};
  if (!is_last) like.divide = NULL;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(like.memory, like.dtype, (rn_shape_t){1, &pull->count}, &sum));
  rn_collective_merge(&like, (const void*[]){own, pull->value.data}, 2, sum.data, pull->count);
  rn_tensor_clear(&pull->value);
  pull->value = sum;
  return RN_OK;
}

static void on_sum(rn_stock_pull_t* pull) {
  ring_spot_t spot = spot_of(pull);
  bool is_last = is_before(&spot, 1);
  rn_status_t status = add_own(pull, is_last);
  if (rn_ok(status) && is_last) {
    put_result(pull, &pull->value, 0);
    pull->pass = 1;
    if (!is_before(&spot, 2)) status = pass_on(pull, &spot, &pull->value, 0);
  } else if (rn_ok(status)) {
    status = pass_on(pull, &spot, &pull->value, 0);
    pull->pass = 1;
    pull->next = on_result;
    if (rn_ok(status)) pull_part(pull, &spot);
  }
  rn_stock_check(pull->stock, status);
}

static rn_status_t start_part(rn_stock_pull_t* pull) {
  rn_stock_t* stock = pull->stock;
  ring_spot_t spot = spot_of(pull);
  if (!pull->count) return RN_OK;
  pull->next = is_gather(stock) ? on_result : on_sum;
  if (!is_before(&spot, 0)) {
    pull_part(pull, &spot);
    return RN_OK;
  }
  int64_t first = is_gather(stock) ? 0 : first_of(stock, pull->part);
  RN_RETURN_IF_ERROR(pass_on(pull, &spot, &stock->inputs[pull->member], first));
  if (is_gather(stock)) {
    put_result(pull, &stock->inputs[pull->member], 0);
    return RN_OK;
  }
  pull->pass = 1;
  pull->next = on_result;
  pull_part(pull, &spot);
  return RN_OK;
}

rn_status_t rn_stock_ring_start(rn_stock_t* stock) {
  const rn_meeting_t* meeting = stock->meeting;
  int32_t size = meeting->group->size;
  if (!stock->total && !is_gather(stock))
    return rn_internal("shape in CollectiveParams should be non-empty");
  stock->subdivs = count_subdivs(stock);
  stock->chunk = chunk_of(stock);
  RN_RETURN_IF_ERROR(rn_alloc_array(stock->options->allocator,
                                    (size_t)stock->subdivs * (size_t)size, sizeof *stock->rings,
                                    (void**)&stock->rings));
  for (int32_t s = 0; s < stock->subdivs; ++s) order_ring(stock, s);
  int32_t parts = size * stock->subdivs;
  RN_RETURN_IF_ERROR(rn_stock_make_pulls(stock, (size_t)meeting->count * (size_t)parts));
  for (int32_t m = 0; m < meeting->count; ++m) {
    for (int32_t p = 0; p < parts; ++p) {
      rn_stock_pull_t* pull = &stock->pulls[(size_t)m * (size_t)parts + (size_t)p];
      pull->member = m;
      pull->part = p;
      pull->count = count_of(stock, p);
      RN_RETURN_IF_ERROR(start_part(pull));
    }
  }
  return RN_OK;
}
