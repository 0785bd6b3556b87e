// Groups of devices: see groups.h.
#include "collective/groups.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"

// Larger groups are refused: each member is a device with a name.
#define MAX_GROUP (1 << 20)

void rn_groups_init(rn_groups_t* groups, rn_allocator_t allocator) {
  groups->allocator = allocator;
  rn_map_init(&groups->map, allocator);
}

static void free_str(rn_allocator_t allocator, rn_str_t str) {
  if (str.data) rn_free(allocator, (char*)str.data, str.size + 1);
}

static void member_clear(rn_allocator_t allocator, rn_group_member_t* member) {
  free_str(allocator, member->device);
  free_str(allocator, member->type);
  free_str(allocator, member->task);
}

void rn_group_release(rn_groups_t* groups, rn_group_t* group) {
  if (!group || --group->refs) return;
  rn_allocator_t allocator = groups->allocator;
  for (int32_t i = 0; i < group->count; ++i) member_clear(allocator, &group->members[i]);
  RN_FREE_ARRAY(allocator, group->members, (size_t)group->size);
  rn_status_free(group->status);
  RN_FREE(allocator, group);
}

void rn_groups_clear(rn_groups_t* groups) {
  size_t at = 0;
  for (const rn_map_entry_t* entry; (entry = rn_map_next(&groups->map, &at));)
    rn_group_release(groups, entry->value);
  rn_map_clear(&groups->map);
}

rn_group_t* rn_groups_find(const rn_groups_t* groups, int32_t key) {
  char text[12];
  snprintf(text, sizeof text, "%d", key);
  return rn_map_get(&groups->map, rn_str(text));
}

void rn_groups_forget(rn_groups_t* groups, rn_group_t* group) {
  if (!group->is_complete || rn_groups_find(groups, group->key) != group) return;
  rn_map_remove(&groups->map, rn_str(group->text));
  rn_group_release(groups, group);
}

void rn_groups_reset(rn_groups_t* groups) {
  size_t at = 0;
  const rn_map_entry_t* entry;
  while ((entry = rn_map_next(&groups->map, &at))) {
    rn_group_t* group = entry->value;
    if (group->waiting) continue;
    rn_map_remove(&groups->map, rn_str(group->text));
    rn_group_release(groups, group);
    at = 0;  // the entries may have moved
  }
}

static rn_status_t make_group(rn_groups_t* groups, int32_t key, int32_t size, rn_group_t** out) {
  if (size <= 0) return rn_invalid_argument("group_size must be positive integer but got %d", size);
  if (size > MAX_GROUP) return rn_invalid_argument("group_size %d is too large", size);
  rn_group_t* group = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(groups->allocator, &group));
  group->refs = 1;
  group->key = key;
  group->size = size;
  snprintf(group->text, sizeof group->text, "%d", key);
  rn_status_t status = rn_alloc_array(groups->allocator, (size_t)size, sizeof *group->members,
                                      (void**)&group->members);
  if (rn_ok(status)) status = rn_map_put(&groups->map, rn_str(group->text), group);
  if (!rn_ok(status)) {
    if (group->members) RN_FREE_ARRAY(groups->allocator, group->members, (size_t)size);
    RN_FREE(groups->allocator, group);
    return status;
  }
  *out = group;
  return RN_OK;
}

int32_t rn_group_rank(const rn_group_t* group, rn_str_t device) {
  for (int32_t i = 0; i < group->count; ++i)
    if (rn_str_eq(group->members[i].device, device)) return i;
  return -1;
}

rn_str_t rn_group_task(rn_str_t device) {
  rn_str_t rest = device;
  for (int parts = 0; rest.size; ++parts) {
    if (parts == 4) return rn_str_n(device.data, (size_t)(rest.data - device.data) - 1);
    rn_str_split(&rest, '/');
  }
  return RN_STR("");
}

static rn_status_t copy_str(rn_allocator_t allocator, rn_str_t from, rn_str_t* out) {
  char* copy = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(allocator, from, &copy));
  *out = rn_str_n(copy, from.size);
  return RN_OK;
}

static rn_status_t add_member(rn_groups_t* groups, rn_group_t* group,
                              const rn_group_member_t* member) {
  rn_group_member_t* to = &group->members[group->count];
  *to = (rn_group_member_t){
      .incarnation = member->incarnation, .rank = member->rank, .is_ours = member->is_ours};
  rn_status_t status = copy_str(groups->allocator, member->device, &to->device);
  if (rn_ok(status)) status = copy_str(groups->allocator, member->type, &to->type);
  if (rn_ok(status)) status = copy_str(groups->allocator, rn_group_task(member->device), &to->task);
  if (!rn_ok(status)) {
    member_clear(groups->allocator, to);
    return status;
  }
  group->count++;
  return RN_OK;
}

static int compare_str(rn_str_t a, rn_str_t b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common ? memcmp(a.data, b.data, common) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

// Members with ranks come in their order, others in that of their names.
static int compare_members(const void* left, const void* right) {
  const rn_group_member_t *a = left, *b = right;
  rn_device_spec_t x, y;
  if (a->rank != b->rank) return COMPARE(a->rank, b->rank);
  if (!rn_device_spec_parse(a->device, &x) || !rn_device_spec_parse(b->device, &y))
    return compare_str(a->device, b->device);
  int order = compare_str(x.job, y.job);
  if (!order) order = COMPARE(x.replica, y.replica);
  if (!order) order = COMPARE(x.task, y.task);
  if (!order) order = compare_str(x.type, y.type);
  return order ? order : COMPARE(x.index, y.index);
}

// The group has all its members.
static rn_status_t complete(rn_group_t* group) {
  qsort(group->members, (size_t)group->count, sizeof *group->members, compare_members);
  group->is_ours = true;
  group->task_count = 0;
  for (int32_t i = 0; i < group->count; ++i) {
    const rn_group_member_t* member = &group->members[i];
    bool has_rank = group->members[0].rank >= 0;
    if (has_rank ? member->rank != i : member->rank >= 0)
      return rn_invalid_argument(
          "The members of group %d must have all ranks from 0 to %d, once each, or none",
          group->key, group->size - 1);
    group->is_ours &= member->is_ours;
    int32_t first = 0;
    while (!rn_str_eq(group->members[first].task, member->task)) first++;
    group->task_count += first == i;
  }
  group->is_complete = true;
  return RN_OK;
}

static rn_status_t check(const rn_group_t* group, int32_t size, const rn_group_member_t* member,
                         rn_str_t node) {
  if (size != group->size)
    return rn_internal(
        "Collective Op %.*s has group_size %d and group_key %d but that group has "
        "size %d",
        RN_STR_ARGS(node), size, group->key, group->size);
  if (group->count && !rn_str_eq(group->members[0].type, member->type))
    return rn_internal(
        "Collective Op %.*s is assigned to device %.*s with type %.*s and "
        "group_key %d but that group has type %.*s",
        RN_STR_ARGS(node), RN_STR_ARGS(member->device), RN_STR_ARGS(member->type), group->key,
        RN_STR_ARGS(group->members[0].type));
  int32_t rank = rn_group_rank(group, member->device);
  if (rank < 0 && group->count == group->size)
    return rn_internal(
        "Collective Op %.*s is assigned to device %.*s and group_key %d but that "
        "group doesn't contain that device.",
        RN_STR_ARGS(node), RN_STR_ARGS(member->device), group->key);
  return RN_OK;
}

// A member with another incarnation has restarted. A complete group is formed anew; in one that
// is not, the member takes its old place.
static void renew(rn_groups_t* groups, rn_group_t** group, const rn_group_member_t* member) {
  int32_t rank = rn_group_rank(*group, member->device);
  if (rank < 0 || (*group)->members[rank].incarnation == member->incarnation) return;
  if ((*group)->is_complete) {
    rn_groups_forget(groups, *group);
    *group = NULL;
  } else {
    (*group)->members[rank].incarnation = member->incarnation;
  }
}

rn_status_t rn_groups_add(rn_groups_t* groups, int32_t key, int32_t size,
                          const rn_group_member_t* member, rn_str_t node, rn_group_t** out) {
  rn_group_t* group = rn_groups_find(groups, key);
  if (group) renew(groups, &group, member);
  *out = group;
  if (!group) RN_RETURN_IF_ERROR(make_group(groups, key, size, out));
  group = *out;
  if (rn_ok(group->status)) {
    group->status = check(group, size, member, node);
    if (rn_ok(group->status) && rn_group_rank(group, member->device) < 0) {
      RN_RETURN_IF_ERROR(add_member(groups, group, member));
      if (group->count == group->size) group->status = complete(group);
    }
  }
  return rn_status_copy(group->status);
}
