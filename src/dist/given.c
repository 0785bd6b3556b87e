// See given.h.
#include "dist/given.h"

#include "proto/cluster.pb.h"
#include "wire/decode.h"

typedef struct given_task_t {
  rn_str_t name, address;  // in the arena
} given_task_t;

struct rn_given_cluster_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_address_book_t reach;
  given_task_t* tasks;
  int32_t count;
};

void rn_given_cluster_destroy(rn_given_cluster_t* cluster) {
  if (!cluster) return;
  rn_arena_clear(&cluster->arena);
  RN_FREE(cluster->allocator, cluster);
}

static const given_task_t* find_task(const rn_given_cluster_t* cluster, rn_str_t name) {
  for (int32_t i = 0; i < cluster->count; ++i)
    if (rn_str_eq(cluster->tasks[i].name, name)) return &cluster->tasks[i];
  return NULL;
}

static rn_status_t add_job(rn_given_cluster_t* cluster, const rn_pb_JobDef_t* job) {
  for (uint32_t t = 0; t < job->tasks.count; ++t) {
    given_task_t* task = &cluster->tasks[cluster->count];
    RN_RETURN_IF_ERROR(rn_arena_printf(&cluster->arena, &task->name, "/job:%.*s/replica:0/task:%d",
                                       RN_STR_ARGS(job->name), job->tasks.items[t].key));
    if (find_task(cluster, task->name))
      return rn_invalid_argument("The cluster_def has %.*s twice", RN_STR_ARGS(task->name));
    RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, job->tasks.items[t].value, &task->address));
    cluster->count++;
  }
  return RN_OK;
}

static rn_status_t read_cluster(rn_given_cluster_t* cluster, rn_str_t cluster_def) {
  rn_pb_ClusterDef_t* def = NULL;
  size_t count = 0;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(ClusterDef, cluster_def, NULL, &cluster->arena, &def));
  for (uint32_t j = 0; j < def->job.count; ++j) count += def->job.items[j].tasks.count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&cluster->arena, count, &cluster->tasks));
  for (uint32_t j = 0; j < def->job.count; ++j)
    RN_RETURN_IF_ERROR(add_job(cluster, &def->job.items[j]));
  return RN_OK;
}

rn_status_t rn_given_cluster_create(rn_str_t cluster_def, rn_address_book_t reach,
                                    rn_allocator_t allocator, rn_given_cluster_t** out) {
  *out = NULL;
  if (!reach.find)
    return rn_unimplemented("This server cannot take part in a cluster that a client gives");
  rn_given_cluster_t* cluster = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &cluster));
  cluster->allocator = allocator;
  cluster->reach = reach;
  rn_arena_init(&cluster->arena, allocator);
  rn_status_t status = read_cluster(cluster, cluster_def);
  if (!rn_ok(status)) {
    rn_given_cluster_destroy(cluster);
    return status;
  }
  *out = cluster;
  return RN_OK;
}

static void put_first(rn_given_cluster_t* cluster, int32_t i) {
  given_task_t own = cluster->tasks[i];
  memmove(cluster->tasks + 1, cluster->tasks, (size_t)i * sizeof *cluster->tasks);
  cluster->tasks[0] = own;
}

rn_status_t rn_given_cluster_set_own(rn_given_cluster_t* cluster, rn_str_t task) {
  const given_task_t* found = find_task(cluster, task);
  if (!found) return rn_not_found("The cluster_def does not have %.*s", RN_STR_ARGS(task));
  put_first(cluster, (int32_t)(found - cluster->tasks));
  return RN_OK;
}

rn_status_t rn_given_cluster_find_own(rn_given_cluster_t* cluster, rn_str_t target) {
  static const char* const schemes[] = {"grpc://", "grpcs://"};
  rn_str_t address = target;
  int32_t found = -1;
  for (size_t s = 0; s < sizeof schemes / sizeof *schemes; ++s)
    if (rn_str_starts_with(target, rn_str(schemes[s])))
      address = rn_str_n(target.data + strlen(schemes[s]), target.size - strlen(schemes[s]));
  for (int32_t i = 0; i < cluster->count; ++i) {
    if (!rn_str_eq(cluster->tasks[i].address, address)) continue;
    if (found >= 0)
      return rn_invalid_argument(
          "Found multiple matching tasks that correspond to to the master. Master target: '%.*s'. "
          "ClusterDef: %.*s, %.*s",
          RN_STR_ARGS(target), RN_STR_ARGS(cluster->tasks[found].name),
          RN_STR_ARGS(cluster->tasks[i].name));
    found = i;
  }
  if (found < 0)
    return rn_invalid_argument(
        "The master (current machine) is not included in the provided cluster_def. None of its %d "
        "tasks has the address '%.*s'",
        cluster->count, RN_STR_ARGS(address));
  put_first(cluster, found);
  return RN_OK;
}

int32_t rn_given_cluster_count(const rn_given_cluster_t* cluster) { return cluster->count; }
rn_str_t rn_given_cluster_task(const rn_given_cluster_t* cluster, int32_t i) {
  return cluster->tasks[i].name;
}

static rn_worker_t* find(void* self, rn_str_t name) {
  const rn_given_cluster_t* cluster = self;
  const given_task_t* task = find_task(cluster, name);
  return task ? cluster->reach.find(cluster->reach.self, task->address, task->name) : NULL;
}

static rn_status_t missing(void* self, rn_str_t name) {
  const rn_given_cluster_t* cluster = self;
  const given_task_t* task = find_task(cluster, name);
  if (!task) return rn_not_found("No task %.*s in the cluster", RN_STR_ARGS(name));
  return cluster->reach.missing(cluster->reach.self, task->address, task->name);
}

rn_peers_t rn_given_cluster_peers(rn_given_cluster_t* cluster) {
  return (rn_peers_t){
      .self = cluster, .find = find, .missing = missing, .own = rn_given_cluster_task(cluster, 0)};
}
