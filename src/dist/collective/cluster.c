// The collectives of a task: see cluster.h.
#include "dist/collective/cluster.h"

#include <stdio.h>

#include "base/container.h"
#include "collective/collectives.h"
#include "device/device.h"
#include "dist/collective/exchange.h"
#include "dist/collective/instances.h"
#include "dist/collective/stock.h"

struct rn_cluster_collectives_t {
  rn_cluster_collectives_options_t options;
  rn_mailbox_t* mailbox;
  rn_instances_t* instances;
  rn_sequences_t* sequences;
  rn_exchange_options_t exchange;
  _Atomic uint32_t vain_looks;
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

// The worker of the leader, if it is another task.
static rn_status_t find_leader(const rn_cluster_collectives_t* cluster, rn_worker_t** out) {
  const rn_cluster_collectives_options_t* options = &cluster->options;
  *out = options->peers.find ? options->peers.find(options->peers.self, options->leader) : NULL;
  return *out ? RN_OK
              : rn_invalid_argument("The leader of collectives, %.*s, is not in the cluster",
                                    RN_STR_ARGS(options->leader));
}

static void join(void* self, rn_group_ask_t* ask) {
  rn_cluster_collectives_t* cluster = self;
  const rn_cluster_collectives_options_t* options = &cluster->options;
  const rn_collective_t* collective = ask->collective;
  rn_worker_t* leader = NULL;
  cluster_joining_t* joining = NULL;
  rn_status_t status = find_leader(cluster, &leader);
  if (rn_ok(status)) status = RN_NEW(options->allocator, &joining);
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

static rn_status_t check_leads(rn_cluster_collectives_t* cluster) {
  if (leads(cluster)) return RN_OK;
  return rn_failed_precondition("%.*s does not lead collectives; %.*s does",
                                RN_STR_ARGS(cluster->options.task),
                                RN_STR_ARGS(cluster->options.leader));
}

void rn_cluster_collectives_join(rn_cluster_collectives_t* cluster, rn_complete_group_t* call) {
  cluster_member_t* member = NULL;
  rn_status_t status = RN_NEW(cluster->options.allocator, &member);
  if (rn_ok(status)) status = check_leads(cluster);
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

// Sources of broadcasts, and numbers of steps.

void rn_cluster_collectives_instance(rn_cluster_collectives_t* cluster,
                                     rn_complete_instance_t* call) {
  int32_t rank = -1;
  rn_status_t status = check_leads(cluster);
  if (rn_ok(status))
    rank =
        rn_local_collectives_rank(cluster->local, call->group_key, call->group_size, call->device);
  if (rn_ok(status) && rank < 0)
    status = rn_failed_precondition(
        "group %d not found. This normally means the server has restarted", call->group_key);
  if (rn_ok(status))
    rn_instances_ask(cluster->instances, rank, call);
  else
    rn_call_done(&call->call, status);
}

static void ask_source(void* self, rn_complete_instance_t* call) {
  rn_cluster_collectives_t* cluster = self;
  rn_worker_t* leader = NULL;
  rn_status_t status = RN_OK;
  if (!leads(cluster)) status = find_leader(cluster, &leader);
  if (!rn_ok(status))
    rn_call_done(&call->call, status);
  else if (leader)
    leader->vtable->complete_instance(leader, call);
  else
    rn_cluster_collectives_instance(cluster, call);
}

// The leader keeps its numbers: tasks that have not noticed the restart count on from them.
static void forget(void* self, rn_meeting_t* meeting) {
  rn_cluster_collectives_t* cluster = self;
  rn_meeting_forget_group(meeting);
  if (!leads(cluster)) rn_sequences_forget(cluster->sequences);
}

void rn_cluster_collectives_sequence(rn_cluster_collectives_t* cluster,
                                     rn_get_step_sequence_t* call) {
  rn_status_t status = check_leads(cluster);
  if (rn_ok(status))
    rn_sequences_serve(cluster->sequences, call);
  else
    rn_call_done(&call->call, status);
}

void rn_cluster_collectives_next_step(rn_cluster_collectives_t* cluster, int64_t graph,
                                      rn_cancel_t* cancel, rn_sequence_wait_t* wait) {
  rn_worker_t* leader = NULL;
  rn_status_t status = RN_OK;
  if (!leads(cluster)) status = find_leader(cluster, &leader);
  if (rn_ok(status))
    rn_sequences_next(cluster->sequences, leader, graph, cancel, wait);
  else
    wait->fn(wait, 0, status);
}

void rn_cluster_collectives_end_step(rn_cluster_collectives_t* cluster, int64_t graph,
                                     int64_t step) {
  rn_sequences_retire(cluster->sequences, graph, step);
}

// Values that other tasks fetch.

// A call of RecvTensor or RecvBuf.
typedef struct cluster_fetch_t {
  rn_mail_wait_t wait;  // first
  rn_cluster_collectives_t* cluster;
  rn_call_t* call;
  rn_tensor_t* value;  // of the call, like the next
  bool* is_none;       // NULL: there must be a value
  int64_t step;
  rn_cancel_entry_t gone;
  bool is_linked;
  size_t key_size;
  char key[];
} cluster_fetch_t;

static void on_value(rn_mail_wait_t* wait, rn_status_t status, rn_tensor_t* value, bool is_none) {
  cluster_fetch_t* fetch = (cluster_fetch_t*)wait;
  rn_call_t* call = fetch->call;
  if (fetch->is_linked) rn_cancel_remove(call->cancel, &fetch->gone);
  *fetch->value = *value;
  if (fetch->is_none) *fetch->is_none = is_none;
  if (rn_ok(status) && is_none && !fetch->is_none)
    status = rn_internal("There is no value under this key");
  *value = (rn_tensor_t){0};
  rn_free(fetch->cluster->options.allocator, fetch, sizeof *fetch + fetch->key_size + 1);
  rn_call_done(call, status);
}

static void on_fetcher_gone(rn_cancel_entry_t* entry) {
  cluster_fetch_t* fetch = RN_CONTAINER_OF(entry, cluster_fetch_t, gone);
  rn_tensor_t none = {0};
  if (rn_mailbox_take_back(fetch->cluster->mailbox, fetch->step,
                           rn_str_n(fetch->key, fetch->key_size), &fetch->wait))
    on_value(&fetch->wait, rn_cancelled("The call was cancelled"), &none, false);
}

// Takes what is under |prefix| and |key| into |value|. Takes |status|; if it is an error, the call
// ends with it.
static void take(rn_cluster_collectives_t* cluster, cluster_fetch_t like, rn_str_t prefix,
                 rn_str_t key, rn_status_t status) {
  cluster_fetch_t* fetch = NULL;
  size_t size = prefix.size + key.size;
  if (rn_ok(status))
    status = rn_alloc_zeroed(cluster->options.allocator, sizeof *fetch + size + 1, (void**)&fetch);
  if (!rn_ok(status)) {
    rn_call_done(like.call, status);
    return;
  }
  *fetch = like;
  fetch->wait.fn = on_value;
  fetch->cluster = cluster;
  fetch->gone.fn = on_fetcher_gone;
  fetch->key_size = size;
  if (prefix.size) memcpy(fetch->key, prefix.data, prefix.size);
  if (key.size) memcpy(fetch->key + prefix.size, key.data, key.size);
  rn_cancel_t* cancel = like.call->cancel;
  fetch->is_linked = cancel && rn_cancel_add(cancel, &fetch->gone);
  rn_tensor_t none = {0};
  if (cancel && !fetch->is_linked)
    on_value(&fetch->wait, rn_cancelled("The call was cancelled"), &none, false);
  else
    rn_mailbox_take(cluster->mailbox, like.step, rn_str_n(fetch->key, size), &fetch->wait);
}

bool rn_cluster_collectives_has(rn_str_t key) {
  return rn_str_starts_with(key, RN_STR(RN_COLLECTIVE_PREFIX));
}

static rn_status_t has_restarted(const rn_cluster_collectives_t* cluster) {
  return rn_failed_precondition("%.*s has restarted since its group of collectives was formed",
                                RN_STR_ARGS(cluster->options.task));
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
  return has_restarted(cluster);
}

void rn_cluster_collectives_recv(rn_cluster_collectives_t* cluster, rn_recv_tensor_t* call) {
  call->value = (rn_tensor_t){0};
  take(cluster,
       (cluster_fetch_t){.call = &call->call,
                         .value = &call->value,
                         .is_none = &call->is_dead,
                         .step = call->step},
       RN_STR(""), call->key, check_incarnation(cluster, call->key));
}

static rn_status_t check_source(const rn_cluster_collectives_t* cluster,
                                const rn_recv_buf_t* call) {
  for (int i = 0; i < cluster->options.device_count; ++i) {
    const rn_device_t* device = cluster->options.devices[i];
    if (!rn_str_eq(device->name, call->source)) continue;
    return device->incarnation == call->incarnation ? RN_OK : has_restarted(cluster);
  }
  return rn_invalid_argument("%.*s has no device %.*s", RN_STR_ARGS(cluster->options.task),
                             RN_STR_ARGS(call->source));
}

void rn_cluster_collectives_recv_buf(rn_cluster_collectives_t* cluster, rn_recv_buf_t* call) {
  call->value = (rn_tensor_t){0};
  take(cluster, (cluster_fetch_t){.call = &call->call, .value = &call->value, .step = call->step},
       RN_STR(RN_STOCK_PREFIX), call->key, check_source(cluster, call));
}

bool rn_cluster_collectives_has_mail(rn_cluster_collectives_t* cluster) {
  return rn_mailbox_has_mail(cluster->mailbox);
}

// The object.

static void exchange(void* self, rn_meeting_t* meeting) {
  rn_cluster_collectives_t* cluster = self;
  const rn_exchanger_t* other = &cluster->options.exchanger;
  if (other->self && other->takes(other->self, meeting->group, meeting->members[0]))
    other->start(other->self, meeting);
  else if (meeting->group->is_ours)
    rn_exchange_start(&cluster->exchange, meeting);
  else
    rn_stock_start(&cluster->exchange, meeting);
}

static void watch(void* self, rn_meeting_t* meeting) {
  rn_exchange_watch(&((rn_cluster_collectives_t*)self)->exchange, meeting);
}

static void tell(void* self, rn_meeting_t* meeting, rn_status_t status) {
  (void)self;
  rn_exchange_tell(meeting, status);
}

rn_status_t rn_cluster_collectives_create(const rn_cluster_collectives_options_t* options,
                                          rn_cluster_collectives_t** out) {
  *out = NULL;
  rn_cluster_collectives_t* cluster = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &cluster));
  cluster->options = *options;
  rn_collective_cluster_t hooks = {.self = cluster,
                                   .task = options->task,
                                   .leads = leads,
                                   .join = join,
                                   .exchange = exchange,
                                   .watch = watch,
                                   .tell = tell};
  rn_status_t status = rn_mailbox_create(options->env, options->allocator, &cluster->mailbox);
  if (rn_ok(status)) status = rn_instances_create(options->allocator, &cluster->instances);
  if (rn_ok(status))
    status = rn_sequences_create(options->env, options->allocator, &cluster->sequences);
  if (rn_ok(status))
    status = rn_local_collectives_create(options->env, options->allocator, &hooks, &cluster->local);
  if (rn_ok(status) && options->prefers_library)
    rn_local_collectives_prefer_library(cluster->local);
  if (!rn_ok(status)) {
    rn_cluster_collectives_destroy(cluster);
    return status;
  }
  cluster->exchange = (rn_exchange_options_t){.env = options->env,
                                              .allocator = options->allocator,
                                              .mailbox = cluster->mailbox,
                                              .task = options->task,
                                              .peers = options->peers,
                                              .vain_looks = &cluster->vain_looks,
                                              .self = cluster,
                                              .ask = ask_source,
                                              .forget = forget};
  *out = cluster;
  return RN_OK;
}

void rn_cluster_collectives_stop(rn_cluster_collectives_t* cluster) {
  if (!cluster) return;
  rn_collectives_abort(rn_cluster_collectives_face(cluster), rn_unavailable("The task is closing"));
  rn_mailbox_close(cluster->mailbox, rn_unavailable("The task is closing"));
  rn_instances_close(cluster->instances, rn_unavailable("The task is closing"));
}

void rn_cluster_collectives_destroy(rn_cluster_collectives_t* cluster) {
  if (!cluster) return;
  rn_local_collectives_destroy(cluster->local);
  rn_mailbox_destroy(cluster->mailbox);
  rn_instances_destroy(cluster->instances);
  rn_sequences_destroy(cluster->sequences);
  RN_FREE(cluster->options.allocator, cluster);
}

rn_collectives_t* rn_cluster_collectives_face(rn_cluster_collectives_t* cluster) {
  return rn_local_collectives_face(cluster->local);
}
