// Workloads and fleets: see workload.h.
#include "place/auto/workload.h"

// A year: more than any node takes. Sums of all nodes are less than the other number.
#define MOST_NS (INT64_C(31536000) * 1000000000)

#define MOST_TOTAL_NS (INT64_C(1) << 60)

// Most bytes of all nodes together, so that the copies on all devices can be counted.
#define MOST_BYTES (INT64_C(1) << 56)

int64_t rn_fleet_transfer_ns(const rn_fleet_t* fleet, int32_t from, int32_t to, int64_t bytes) {
  const rn_fleet_link_t* link = rn_fleet_link(fleet, from, to);
  double ns = (double)link->latency_ns + (double)bytes * link->ns_per_byte;
  return ns < (double)MOST_NS ? (int64_t)ns : MOST_NS;
}

rn_status_t rn_fleet_check(const rn_fleet_t* fleet) {
  if (fleet->device_count < 1 || fleet->device_count > RN_FLEET_MOST_DEVICES)
    return rn_invalid_argument("A placement needs between 1 and %d devices, got %d",
                               RN_FLEET_MOST_DEVICES, fleet->device_count);
  for (int32_t p = 0; p < fleet->pool_count; ++p)
    if (fleet->lanes[p] < 1)
      return rn_invalid_argument("A pool of devices has %d threads", fleet->lanes[p]);
  for (int32_t d = 0; d < fleet->device_count; ++d) {
    const rn_fleet_device_t* device = &fleet->devices[d];
    if (device->pool < 0 || device->pool >= fleet->pool_count)
      return rn_invalid_argument("Device %.*s has no pool", RN_STR_ARGS(device->name));
    if (!(device->speed > 0) || device->speed > 1e9)
      return rn_invalid_argument("Device %.*s has the speed %g", RN_STR_ARGS(device->name),
                                 device->speed);
    if (device->memory < 0)
      return rn_invalid_argument("Device %.*s has %lld bytes of memory", RN_STR_ARGS(device->name),
                                 (long long)device->memory);
    for (int32_t e = 0; e < fleet->device_count; ++e) {
      const rn_fleet_link_t* link = rn_fleet_link(fleet, d, e);
      if (link->open_ns < 0 || link->open_ns > MOST_NS || device->start_ns < 0 ||
          device->start_ns > MOST_NS || device->end_ns < 0 || device->end_ns > MOST_NS ||
          link->latency_ns < 0 || link->latency_ns > MOST_NS || !(link->ns_per_byte >= 0))
        return rn_invalid_argument("The link from %.*s to %.*s takes negative time",
                                   RN_STR_ARGS(device->name), RN_STR_ARGS(fleet->devices[e].name));
    }
  }
  return RN_OK;
}

static rn_status_t check_node(const rn_workload_t* w, int32_t n) {
  if (w->group[n] < 0 || w->group[n] >= w->group_count)
    return rn_invalid_argument("Node %d of a workload has group %d of %d", n, w->group[n],
                               w->group_count);
  if (w->first_output[n] > w->first_output[n + 1] || w->first_input[n] > w->first_input[n + 1])
    return rn_invalid_argument("Node %d of a workload has a negative number of edges", n);
  for (int32_t i = w->first_input[n]; i < w->first_input[n + 1]; ++i)
    if (w->inputs[i] < 0 || w->inputs[i] >= w->first_output[n])
      return rn_invalid_argument("Node %d of a workload reads output %d, which comes later", n,
                                 w->inputs[i]);
  for (int32_t d = 0; d < w->device_count; ++d) {
    int64_t cost = w->cost_ns[(size_t)n * (size_t)w->device_count + (size_t)d];
    if (cost < 0 || cost > MOST_NS || w->kept[n] < 0)
      return rn_invalid_argument("Node %d of a workload has a cost out of range", n);
  }
  return RN_OK;
}

static rn_status_t check_bytes(const rn_workload_t* w) {
  int64_t total = 0;
  for (int32_t o = 0; o < w->output_count; ++o) {
    if (w->bytes[o] < 0) return rn_invalid_argument("Output %d of a workload has no size", o);
    if (!rn_add_i64_ok(total, w->bytes[o], &total)) total = INT64_MAX;
  }
  for (int32_t n = 0; n < w->node_count; ++n)
    if (!rn_add_i64_ok(total, w->kept[n], &total)) total = INT64_MAX;
  if (total <= MOST_BYTES) return RN_OK;
  return rn_invalid_argument("The values of a workload have more than %lld bytes",
                             (long long)MOST_BYTES);
}

static rn_status_t check_total(const rn_workload_t* w) {
  int64_t total = 0;
  for (int32_t n = 0; n < w->node_count; ++n) {
    int64_t most = 0;
    for (int32_t d = 0; d < w->device_count; ++d) {
      int64_t cost = w->cost_ns[(size_t)n * (size_t)w->device_count + (size_t)d];
      if (cost > most) most = cost;
    }
    total += most;
    if (total > MOST_TOTAL_NS)
      return rn_invalid_argument("The nodes of a workload take more than %lld ns",
                                 (long long)MOST_TOTAL_NS);
  }
  return RN_OK;
}

static rn_status_t check(const rn_workload_t* w) {
  if (w->device_count < 1 || w->device_count > RN_FLEET_MOST_DEVICES)
    return rn_invalid_argument("A workload is for %d devices", w->device_count);
  if (w->first_output[0] != 0 || w->first_input[0] != 0 ||
      w->first_output[w->node_count] != w->output_count)
    return rn_invalid_argument("The outputs of a workload do not add up");
  for (int32_t n = 0; n < w->node_count; ++n) RN_RETURN_IF_ERROR(check_node(w, n));
  RN_RETURN_IF_ERROR(check_bytes(w));
  RN_RETURN_IF_ERROR(check_total(w));
  uint64_t all = ~(uint64_t)0 >> (RN_FLEET_MOST_DEVICES - w->device_count);
  for (int32_t g = 0; g < w->group_count; ++g)
    if (!(w->allowed[g] & all) || w->allowed[g] & ~all)
      return rn_invalid_argument("Group %d of a workload may be on no device", g);
  return RN_OK;
}

static void find_readers(rn_workload_t* w) {
  int32_t inputs = w->first_input[w->node_count];
  for (int32_t i = 0; i < inputs; ++i) w->first_reader[w->inputs[i] + 1]++;
  for (int32_t o = 0; o < w->output_count; ++o) w->first_reader[o + 1] += w->first_reader[o];
  for (int32_t n = 0; n < w->node_count; ++n)
    for (int32_t i = w->first_input[n]; i < w->first_input[n + 1]; ++i)
      w->readers[w->first_reader[w->inputs[i]]++] = n;
  for (int32_t o = w->output_count; o > 0; --o) w->first_reader[o] = w->first_reader[o - 1];
  w->first_reader[0] = 0;
}

static void find_loads(rn_workload_t* w) {
  for (int32_t n = 0; n < w->node_count; ++n) {
    for (int32_t o = w->first_output[n]; o < w->first_output[n + 1]; ++o) w->producer[o] = n;
    int64_t least = MOST_NS, *load = &w->load_ns[w->group[n]];
    const int64_t* costs = &w->cost_ns[(size_t)n * (size_t)w->device_count];
    for (int32_t d = 0; d < w->device_count; ++d)
      if (w->allowed[w->group[n]] >> d & 1 && costs[d] < least) least = costs[d];
    *load = *load < MOST_NS - least ? *load + least : MOST_NS;
  }
}

rn_status_t rn_workload_finish(rn_workload_t* workload, rn_arena_t* arena) {
  RN_RETURN_IF_ERROR(check(workload));
  size_t outputs = (size_t)workload->output_count;
  size_t inputs = (size_t)workload->first_input[workload->node_count];
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs + 1, &workload->producer));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, outputs + 2, &workload->first_reader));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, inputs + 1, &workload->readers));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)workload->group_count + 1, &workload->load_ns));
  find_readers(workload);
  find_loads(workload);
  return RN_OK;
}
