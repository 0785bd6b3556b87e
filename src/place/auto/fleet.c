// Fleets: see fleet.h.
#include "place/auto/fleet.h"

// Guesses, for links of which nothing was measured. Within a task, a value changes threads; to and
// from an accelerator, it goes over a bus; to another task, over a loopback connection.
static const rn_fleet_link_t near_link = {20000, 0.0, 0}, bus_link = {15000, 0.1, 0},
                             far_link = {150000, 0.7, 0};

rn_str_t rn_fleet_task(rn_str_t device) {
  rn_str_t mark = RN_STR("/device:");
  for (size_t i = 0; i + mark.size <= device.size; ++i)
    if (memcmp(device.data + i, mark.data, mark.size) == 0) return rn_str_n(device.data, i);
  return device;
}

static rn_fleet_link_t link_of(const rn_device_t* from, const rn_device_t* to,
                               const rn_costs_t* costs, const rn_fleet_options_t* options) {
  rn_str_t a = rn_fleet_task(from->name), b = rn_fleet_task(to->name), same = RN_STR("");
  bool is_near = rn_str_eq(a, b), is_bus = is_near && !(from->is_host && to->is_host);
  rn_fleet_link_t link = is_bus ? bus_link : is_near ? near_link : far_link;
  if (is_bus) return link;
  if (!is_near && options->between_tasks) return *options->between_tasks;
  if (rn_costs_link(costs, is_near ? same : a, is_near ? same : b, &link.latency_ns,
                    &link.ns_per_byte))
    return link;
  // An entry for "*" is for any two tasks.
  if (!is_near) rn_costs_link(costs, RN_STR("*"), RN_STR("*"), &link.latency_ns, &link.ns_per_byte);
  return link;
}

// The pool of device |d|: that of an earlier CPU of its task, or a new one.
static int32_t pool_of(rn_device_t* const* devices, int d, rn_fleet_t* fleet,
                       const rn_fleet_options_t* options) {
  int32_t lanes = options->lanes;
  for (int e = 0; devices[d]->is_host && !options->is_apart && e < d; ++e)
    if (devices[e]->is_host &&
        rn_str_eq(rn_fleet_task(devices[d]->name), rn_fleet_task(devices[e]->name)))
      return fleet->devices[e].pool;
  fleet->lanes[fleet->pool_count] = devices[d]->is_host && lanes > 0 ? lanes : 1;
  return fleet->pool_count++;
}

// The task of the first device leads the step: it tells the others to begin, and they tell it when
// they have ended. A task asks another for values when it begins.
static void open_links(rn_fleet_t* fleet) {
  rn_str_t first = rn_fleet_task(fleet->devices[0].name);
  for (int32_t d = 0; d < fleet->device_count; ++d) {
    rn_fleet_device_t* device = &fleet->devices[d];
    if (rn_str_eq(rn_fleet_task(device->name), first)) continue;
    device->start_ns = rn_fleet_link(fleet, 0, d)->latency_ns;
    device->end_ns = rn_fleet_link(fleet, d, 0)->latency_ns;
  }
  for (int32_t d = 0; d < fleet->device_count; ++d)
    for (int32_t e = 0; e < fleet->device_count; ++e)
      if (!rn_str_eq(rn_fleet_task(fleet->devices[d].name), rn_fleet_task(fleet->devices[e].name)))
        fleet->links[d * fleet->device_count + e].open_ns =
            fleet->devices[e].start_ns + rn_fleet_link(fleet, e, d)->latency_ns;
}

rn_status_t rn_fleet_create(rn_device_t* const* devices, int count, const rn_costs_t* costs,
                            const rn_fleet_options_t* options, rn_arena_t* arena, rn_fleet_t* out) {
  *out = (rn_fleet_t){.device_count = count, .step_ns = rn_costs_step(costs), .in_tasks = true};
  if (count < 1 || count > RN_FLEET_MOST_DEVICES) return rn_fleet_check(out);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &out->devices));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count, &out->lanes));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)count * (size_t)count, &out->links));
  for (int d = 0; d < count; ++d) {
    out->devices[d] = (rn_fleet_device_t){.name = devices[d]->name,
                                          .pool = pool_of(devices, d, out, options),
                                          .speed = options->speeds ? options->speeds[d] : 1,
                                          .memory = options->memory ? options->memory[d] : 0};
    for (int e = 0; e < count; ++e)
      out->links[d * count + e] = link_of(devices[d], devices[e], costs, options);
  }
  open_links(out);
  return rn_fleet_check(out);
}
