// The collectives of a task: see cluster.h.
#include "dist/collective/cluster.h"

#include <stdio.h>

#include "base/container.h"
#include "collective/collectives.h"
#include "device/device.h"
#include "dist/collective/exchange.h"

struct rn_cluster_collectives_t {
  rn_cluster_collectives_options_t options;
  rn_mailbox_t* mailbox;
  rn_exchange_options_t exchange;
  rn_local_collectives_t* local;
};

// Joining groups.

typedef struct cluster_joining_t {
  rn_complete_group_t call;  // first
  rn_cluster_collectives_t* cluster;
  rn_group_ask_t* ask;
} cluster_joining_t;

static bool leads(void* self) {
  const rn_cluster_collectives_t* cluster = self;
  return !cluster->options.leader.size || rn_str_eq(cluster->options.leader, cluster->options.task);
}

static void on_answered(rn_call_t* record, rn_status_t status) {
  cluster_joining_t* joining = (cluster_joining_t*)record;
  rn_allocator_t allocator = joining->cluster->options.allocator;
  const rn_complete_group_t* call = &joining->call;
  rn_group_ask_t* ask = joining->ask;
  rn_group_member_t* members = NULL;
  size_t count = call->device_count;
  if (rn_ok(status) && (count > INT32_MAX || (int32_t)count != ask->collective->group_size))
    status = rn_internal("The leader of group %d answered with %zu devices",
                         ask->collective->group_key, count);
  if (rn_ok(status)) status = rn_alloc_array(allocator, count, sizeof *members, (void**)&members);
  for (size_t i = 0; rn_ok(status) && i < count; ++i)
    members[i] = (rn_group_member_t){.device = call->devices[i].name,
                                     .type = call->devices[i].type,
                                     .incarnation = call->devices[i].incarnation,
                                     .rank = (int32_t)i,
                                     .is_ours = call->is_all_ours};
  rn_collectives_joined(ask, members, (int32_t)count, status);
  if (members) RN_FREE_ARRAY(allocator, members, count);
  rn_arena_clear(&joining->call.arena);
  RN_FREE(allocator, joining);
}

static void join(void* self, rn_group_ask_t* ask) {
  rn_cluster_collectives_t* cluster = self;
  const rn_cluster_collectives_options_t* options = &cluster->options;
  const rn_collective_t* collective = ask->collective;
  rn_worker_t* leader =
      options->peers.find ? options->peers.find(options->peers.self, options->leader) : NULL;
  cluster_joining_t* joining = NULL;
  rn_status_t status =
      leader ? RN_NEW(options->allocator, &joining)
             : rn_invalid_argument("The leader of collectives, %.*s, is not in the cluster",
                                   RN_STR_ARGS(options->leader));
  if (!rn_ok(status)) {
    rn_collectives_joined(ask, NULL, 0, status);
    return;
  }
  const rn_device_t* device = collective->device;
  joining->cluster = cluster;
  joining->ask = ask;
  joining->call = (rn_complete_group_t){
      .call = {.done = on_answered,
               .deadline_ns = collective->deadline_ns ? collective->deadline_ns : INT64_MAX,
               .cancel = ask->cancel,
               .waits_for_ready = true},
      .group_key = collective->group_key,
      .group_size = collective->group_size,
      .kind = (int32_t)collective->kind,
      .rank = collective->rank,
      .is_ours = true,
      .device = {.name = device->name,
                 .type = rn_str(device->type),
                 .memory_limit = device->memory_limit,
                 .incarnation = device->incarnation}};
  rn_arena_init(&joining->call.arena, options->allocator);
  leader->vtable->complete_group(leader, &joining->call);
}

// A member of another task that waits for its group.
typedef struct cluster_member_t {
  rn_group_wait_t wait;  // first
  rn_cluster_collectives_t* cluster;
  rn_complete_group_t* call;
  rn_cancel_entry_t gone;
  bool is_linked;
} cluster_member_t;

static rn_status_t copy_group(const rn_group_t* group, rn_complete_group_t* call) {
  size_t count = (size_t)group->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&call->arena, count, &call->devices));
  call->device_count = count;
  call->task_count = group->task_count;
  call->is_all_ours = group->is_ours;
  for (size_t i = 0; i < count; ++i) {
    const rn_group_member_t* member = &group->members[i];
    call->devices[i].incarnation = member->incarnation;
    RN_RETURN_IF_ERROR(rn_arena_str(&call->arena, member->device, &call->devices[i].name));
    RN_RETURN_IF_ERROR(rn_arena_str(&call->arena, member->type, &call->devices[i].type));
  }
  return RN_OK;
}

static void on_group(rn_group_wait_t* wait, rn_group_t* group, rn_status_t status) {
  cluster_member_t* member = (cluster_member_t*)wait;
  rn_complete_group_t* call = member->call;
  if (member->is_linked) rn_cancel_remove(call->call.cancel, &member->gone);
  if (rn_ok(status)) status = copy_group(group, call);
  RN_FREE(member->cluster->options.allocator, member);
  rn_call_done(&call->call, status);
}

static void on_member_gone(rn_cancel_entry_t* entry) {
  cluster_member_t* member = RN_CONTAINER_OF(entry, cluster_member_t, gone);
  if (rn_local_collectives_dismiss(member->cluster->local, member->call->group_key, &member->wait))
    on_group(&member->wait, NULL, rn_cancelled("CompleteGroup was cancelled"));
}

void rn_cluster_collectives_join(rn_cluster_collectives_t* cluster, rn_complete_group_t* call) {
  cluster_member_t* member = NULL;
  rn_status_t status = RN_NEW(cluster->options.allocator, &member);
  if (rn_ok(status) && !leads(cluster))
    status = rn_failed_precondition("%.*s does not lead collectives; %.*s does",
                                    RN_STR_ARGS(cluster->options.task),
                                    RN_STR_ARGS(cluster->options.leader));
  if (rn_ok(status) && !rn_group_task(call->device.name).size)
    status = rn_invalid_argument("CompleteGroup without a device");
  if (!rn_ok(status)) {
    if (member) RN_FREE(cluster->options.allocator, member);
    rn_call_done(&call->call, status);
    return;
  }
  member->wait.fn = on_group;
  member->cluster = cluster;
  member->call = call;
  member->gone.fn = on_member_gone;
  rn_group_member_t device = {.device = call->device.name,
                              .type = call->device.type,
                              .incarnation = call->device.incarnation,
                              .rank = call->rank,
                              .is_ours = call->is_ours};
  member->is_linked = call->call.cancel && rn_cancel_add(call->call.cancel, &member->gone);
  if (call->call.cancel && !member->is_linked)
    on_group(&member->wait, NULL, rn_cancelled("CompleteGroup was cancelled"));
  else
    rn_local_collectives_admit(cluster->local, call->group_key, call->group_size, &device,
                               &member->wait);
}

// Values that other tasks fetch.

typedef struct cluster_fetch_t {
  rn_mail_wait_t wait;  // first
  rn_cluster_collectives_t* cluster;
  rn_recv_tensor_t* call;
  rn_cancel_entry_t gone;
  bool is_linked;
} cluster_fetch_t;

static void on_value(rn_mail_wait_t* wait, rn_status_t status, rn_tensor_t* value, bool is_none) {
  cluster_fetch_t* fetch = (cluster_fetch_t*)wait;
  rn_recv_tensor_t* call = fetch->call;
  if (fetch->is_linked) rn_cancel_remove(call->call.cancel, &fetch->gone);
  call->value = *value;
  call->is_dead = is_none;
  *value = (rn_tensor_t){0};
  RN_FREE(fetch->cluster->options.allocator, fetch);
  rn_call_done(&call->call, status);
}

static void on_fetcher_gone(rn_cancel_entry_t* entry) {
  cluster_fetch_t* fetch = RN_CONTAINER_OF(entry, cluster_fetch_t, gone);
  rn_tensor_t none = {0};
  if (rn_mailbox_take_back(fetch->cluster->mailbox, fetch->call->step, fetch->call->key,
                           &fetch->wait))
    on_value(&fetch->wait, rn_cancelled("RecvTensor was cancelled"), &none, false);
}

bool rn_cluster_collectives_has(rn_str_t key) {
  return rn_str_starts_with(key, RN_STR(RN_COLLECTIVE_PREFIX));
}

// FAILED_PRECONDITION if |key| is of another incarnation of this task.
static rn_status_t check_incarnation(const rn_cluster_collectives_t* cluster, rn_str_t key) {
  rn_str_split(&key, ';');
  rn_str_t incarnation = rn_str_split(&key, ';');
  for (int i = 0; i < cluster->options.device_count; ++i) {
    char own[20];
    snprintf(own, sizeof own, "%016llx",
             (unsigned long long)cluster->options.devices[i]->incarnation);
    if (rn_str_is(incarnation, own)) return RN_OK;
  }
  return rn_failed_precondition("%.*s has restarted since its group of collectives was formed",
                                RN_STR_ARGS(cluster->options.task));
}

void rn_cluster_collectives_recv(rn_cluster_collectives_t* cluster, rn_recv_tensor_t* call) {
  cluster_fetch_t* fetch = NULL;
  call->value = (rn_tensor_t){0};
  rn_status_t status = check_incarnation(cluster, call->key);
  if (rn_ok(status)) status = RN_NEW(cluster->options.allocator, &fetch);
  if (!rn_ok(status)) {
    rn_call_done(&call->call, status);
    return;
  }
  fetch->wait.fn = on_value;
  fetch->cluster = cluster;
  fetch->call = call;
  fetch->gone.fn = on_fetcher_gone;
  fetch->is_linked = call->call.cancel && rn_cancel_add(call->call.cancel, &fetch->gone);
  rn_tensor_t none = {0};
  if (call->call.cancel && !fetch->is_linked)
    on_value(&fetch->wait, rn_cancelled("RecvTensor was cancelled"), &none, false);
  else
    rn_mailbox_take(cluster->mailbox, call->step, call->key, &fetch->wait);
}

bool rn_cluster_collectives_has_mail(rn_cluster_collectives_t* cluster) {
  return rn_mailbox_has_mail(cluster->mailbox);
}

// The object.

static void exchange(void* self, rn_meeting_t* meeting) {
  rn_cluster_collectives_t* cluster = self;
  if (meeting->group->is_ours)
    rn_exchange_start(&cluster->exchange, meeting);
  else
    rn_meeting_end(meeting, rn_unimplemented("Collectives with members on stock's tasks"));
}

rn_status_t rn_cluster_collectives_create(const rn_cluster_collectives_options_t* options,
                                          rn_cluster_collectives_t** out) {
  *out = NULL;
  rn_cluster_collectives_t* cluster = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &cluster));
  cluster->options = *options;
  rn_collective_cluster_t hooks = {
      .self = cluster, .task = options->task, .leads = leads, .join = join, .exchange = exchange};
  rn_status_t status = rn_mailbox_create(options->env, options->allocator, &cluster->mailbox);
  if (rn_ok(status))
    status = rn_local_collectives_create(options->env, options->allocator, &hooks, &cluster->local);
  if (!rn_ok(status)) {
    rn_cluster_collectives_destroy(cluster);
    return status;
  }
  cluster->exchange = (rn_exchange_options_t){.env = options->env,
                                              .allocator = options->allocator,
                                              .mailbox = cluster->mailbox,
                                              .task = options->task,
                                              .peers = options->peers};
  *out = cluster;
  return RN_OK;
}

void rn_cluster_collectives_stop(rn_cluster_collectives_t* cluster) {
  if (!cluster) return;
  rn_collectives_abort(rn_cluster_collectives_face(cluster), rn_unavailable("The task is closing"));
  rn_mailbox_close(cluster->mailbox, rn_unavailable("The task is closing"));
}

void rn_cluster_collectives_destroy(rn_cluster_collectives_t* cluster) {
  if (!cluster) return;
  rn_local_collectives_destroy(cluster->local);
  rn_mailbox_destroy(cluster->mailbox);
  RN_FREE(cluster->options.allocator, cluster);
}

rn_collectives_t* rn_cluster_collectives_face(rn_cluster_collectives_t* cluster) {
  return rn_local_collectives_face(cluster->local);
}
