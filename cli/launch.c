// Clusters that a launcher has started: Slurm's srun or Open MPI's mpirun. Their environment tells
// the number of tasks and the rank of this one. Ranks are assigned to hosts in blocks and to jobs
// in order.
#include <stdio.h>
#include <stdlib.h>

#include "cli/cluster.h"

#define PORT_BASE 8888
#define MAX_RANKS 65536
#define MAX_FILE (16u << 20)

// A host and how many tasks it has.
typedef struct host_t {
  rn_str_t name;
  int64_t tasks;
} host_t;
typedef RN_VEC(host_t) hosts_t;

// The launcher's placement of |rank| of |size|.
typedef struct launch_place_t {
  int64_t rank, size, local;
} launch_place_t;

static rn_status_t variable(const char* name, const char** out) {
  *out = getenv(name);
  if (*out && **out) return RN_OK;
  return rn_invalid_argument("the environment has no %s: was this started by the launcher?", name);
}

// The environment of the step that srun has started or, in a batch script, of the whole job.
static rn_status_t variable_or(const char* name, const char* other, const char** out) {
  const char* text = getenv(name);
  return variable(text && *text ? name : other, out);
}

static rn_status_t number(const char* name, int64_t least, int64_t* out) {
  const char* text = NULL;
  RN_RETURN_IF_ERROR(variable(name, &text));
  if (rn_str_to_i64(rn_str(text), out) && *out >= least && *out <= MAX_RANKS) return RN_OK;
  return rn_invalid_argument("%s is '%s', not a number from %lld to %d", name, text,
                             (long long)least, MAX_RANKS);
}

// Slurm's lists of nodes: n1,rack[1-2]n[01-03,7].

static rn_status_t add_host(rn_cli_cluster_t* cluster, hosts_t* hosts, rn_str_t name,
                            int64_t tasks) {
  host_t host = {.tasks = tasks};
  if (hosts->count >= MAX_RANKS) return rn_invalid_argument("more than %d hosts", MAX_RANKS);
  RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, name, &host.name));
  return rn_vec_push(hosts, cluster->arena.allocator, host);
}

static rn_status_t bad_list(rn_str_t list) {
  return rn_invalid_argument("'%.*s' is not a list of nodes", RN_STR_ARGS(list));
}

// Adds every name that |head| followed by |rest| expands to.
static rn_status_t expand(rn_cli_cluster_t* cluster, rn_str_t head, rn_str_t rest, hosts_t* out) {
  const char* open = rest.size ? memchr(rest.data, '[', rest.size) : NULL;
  rn_str_t name;
  if (!open) {
    RN_RETURN_IF_ERROR(
        rn_arena_printf(&cluster->arena, &name, "%.*s%.*s", RN_STR_ARGS(head), RN_STR_ARGS(rest)));
    return name.size ? add_host(cluster, out, name, 0) : bad_list(rest);
  }
  rn_str_t before = rn_str_n(rest.data, (size_t)(open - rest.data));
  rn_str_t tail = rn_str_n(open + 1, rest.size - before.size - 1);
  if (!memchr(tail.data, ']', tail.size)) return bad_list(rest);
  rn_str_t ranges = rn_str_split(&tail, ']');
  if (!ranges.size) return bad_list(rest);
  while (ranges.size) {
    rn_str_t to = rn_str_split(&ranges, ','), from = rn_str_split(&to, '-');
    if (!to.size) to = from;
    int64_t first, last;
    if (!rn_str_to_i64(from, &first) || !rn_str_to_i64(to, &last) || first < 0 || last < first ||
        last - first >= MAX_RANKS)
      return bad_list(rest);
    for (; first <= last; ++first) {  // keeps the width of the first number
      RN_RETURN_IF_ERROR(rn_arena_printf(&cluster->arena, &name, "%.*s%.*s%0*lld",
                                         RN_STR_ARGS(head), RN_STR_ARGS(before),
                                         from.size > 18 ? 18 : (int)from.size, (long long)first));
      RN_RETURN_IF_ERROR(expand(cluster, name, tail, out));
    }
  }
  return RN_OK;
}

// The part before the next comma outside of brackets.
static rn_str_t next_item(rn_str_t* rest) {
  size_t i = 0;
  for (int depth = 0; i < rest->size && (depth || rest->data[i] != ','); ++i)
    depth += rest->data[i] == '[' ? 1 : rest->data[i] == ']' ? -1 : 0;
  rn_str_t item = rn_str_n(rest->data, i);
  *rest = i < rest->size ? rn_str_n(rest->data + i + 1, rest->size - i - 1) : (rn_str_t){0};
  return item;
}

// 2(x3),1: two tasks on each of three nodes, one on the fourth.
static rn_status_t take_counts(rn_str_t text, hosts_t* hosts) {
  rn_str_t rest = text;
  size_t at = 0;
  while (rest.size) {
    rn_str_t times = rn_str_split(&rest, ','), count = rn_str_split(&times, '(');
    int64_t tasks, repeated = 1;
    if (!rn_str_to_i64(count, &tasks) || tasks < 1 || tasks > MAX_RANKS)
      return rn_invalid_argument("'%.*s' is not a list of tasks per node", RN_STR_ARGS(text));
    if (times.size &&
        (!rn_str_starts_with(times, RN_STR("x")) || !rn_str_ends_with(times, RN_STR(")")) ||
         !rn_str_to_i64(rn_str_n(times.data + 1, times.size - 2), &repeated) || repeated < 1))
      return rn_invalid_argument("'%.*s' is not a list of tasks per node", RN_STR_ARGS(text));
    for (; repeated && at < hosts->count; --repeated) hosts->items[at++].tasks = tasks;
    if (repeated) break;
  }
  if (at == hosts->count && !rest.size) return RN_OK;
  return rn_invalid_argument("'%.*s' does not describe %zu nodes", RN_STR_ARGS(text), hosts->count);
}

// Ranks to jobs and hosts.

typedef struct launch_job_t {
  rn_str_t name;
  int64_t count;  // 0 for the rest
} launch_job_t;

static rn_status_t take_jobs(const char* text, int64_t size, launch_job_t* jobs, size_t room,
                             size_t* out_count) {
  rn_str_t rest = rn_str(text);
  int64_t sum = 0;
  launch_job_t* others = NULL;
  while (rest.size) {
    rn_str_t count = rn_str_split(&rest, ','), name = rn_str_split(&count, '=');
    if (*out_count == room) return rn_invalid_argument("more than %zu jobs", room);
    launch_job_t* job = &jobs[(*out_count)++];
    *job = (launch_job_t){.name = rn_str_trim(name)};
    if (!count.size && !others) {
      others = job;
    } else if (!rn_str_to_i64(rn_str_trim(count), &job->count) || job->count < 1 ||
               job->count > MAX_RANKS) {
      return rn_invalid_argument("--jobs must be like ps=2,worker=4 or ps=2,worker, not '%s'",
                                 text);
    }
    sum += job->count;
  }
  if (others && sum < size) others->count = size - sum;
  if (others ? sum < size : sum == size) return RN_OK;
  return rn_invalid_argument("--jobs %s needs %lld tasks%s, but there are %lld", text,
                             (long long)sum, others ? " and one more" : "", (long long)size);
}

static rn_status_t assign(rn_cli_cluster_t* cluster, const rn_cli_launch_t* launch,
                          const hosts_t* hosts, const launch_place_t* place) {
  launch_job_t jobs[64];
  size_t job_count = 0, job = 0, host = 0;
  int64_t index = 0, local = 0;
  RN_RETURN_IF_ERROR(take_jobs(launch->jobs ? launch->jobs : "worker", place->size, jobs,
                               sizeof jobs / sizeof *jobs, &job_count));
  for (int64_t rank = 0; rank < place->size; ++rank, ++index, ++local) {
    while (host < hosts->count && local >= hosts->items[host].tasks) ++host, local = 0;
    if (index >= jobs[job].count) ++job, index = 0;
    if (host == hosts->count)
      return rn_invalid_argument("the hosts have no slot for rank %lld", (long long)rank);
    int64_t port = (launch->port_base ? launch->port_base : PORT_BASE) + local;
    rn_str_t address;
    RN_RETURN_IF_ERROR(rn_arena_printf(&cluster->arena, &address, "%.*s:%lld",
                                       RN_STR_ARGS(hosts->items[host].name), (long long)port));
    RN_RETURN_IF_ERROR(rn_cli_cluster_add(cluster, jobs[job].name, (int32_t)index, address));
    if (rank != place->rank) continue;
    if (local != place->local)
      return rn_invalid_argument(
          "rank %lld should be number %lld of its host, and is %lld: ranks must go to hosts in "
          "blocks",
          (long long)rank, (long long)local, (long long)place->local);
    RN_RETURN_IF_ERROR(rn_arena_str(&cluster->arena, jobs[job].name, &cluster->job));
    cluster->index = (int32_t)index;
  }
  return RN_OK;
}

static rn_status_t check_place(const launch_place_t* place) {
  if (place->rank < place->size) return RN_OK;
  return rn_invalid_argument("rank %lld of %lld tasks", (long long)place->rank,
                             (long long)place->size);
}

rn_status_t rn_cli_cluster_of_slurm(rn_cli_cluster_t* cluster, const rn_cli_launch_t* launch) {
  const char *nodes = NULL, *counts = NULL;
  launch_place_t place;
  hosts_t hosts = {0};
  bool is_step = getenv("SLURM_STEP_NUM_TASKS") != NULL;
  RN_RETURN_IF_ERROR(variable_or("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", &nodes));
  RN_RETURN_IF_ERROR(variable_or("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", &counts));
  RN_RETURN_IF_ERROR(number(is_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1, &place.size));
  RN_RETURN_IF_ERROR(number("SLURM_PROCID", 0, &place.rank));
  RN_RETURN_IF_ERROR(number("SLURM_LOCALID", 0, &place.local));
  RN_RETURN_IF_ERROR(check_place(&place));
  rn_str_t rest = rn_str(nodes);
  rn_status_t status = RN_OK;
  while (rest.size && rn_ok(status))
    status = expand(cluster, (rn_str_t){0}, next_item(&rest), &hosts);
  if (rn_ok(status)) status = take_counts(rn_str(counts), &hosts);
  if (rn_ok(status)) status = assign(cluster, launch, &hosts, &place);
  rn_vec_free(&hosts, cluster->arena.allocator);
  return status;
}

// Lines "host", "host slots=4" and "host:4"; "#" begins a comment.
static rn_status_t read_hosts(rn_cli_cluster_t* cluster, rn_str_t text, hosts_t* hosts) {
  for (int line = 1; text.size; ++line) {
    rn_str_t rest = rn_str_split(&text, '\n');
    rest = rn_str_trim(rn_str_split(&rest, '#'));
    rn_str_t words = rest, name = rn_str_split(&words, ' '), slots = name;
    int64_t tasks = 1;
    name = rn_str_split(&slots, ':');
    bool ok = !slots.size || rn_str_to_i64(slots, &tasks);
    while (words.size && ok) {
      rn_str_t value = rn_str_split(&words, ' '), key = rn_str_split(&value, '=');
      if (rn_str_is(key, "slots")) ok = rn_str_to_i64(value, &tasks);
    }
    if (!ok || tasks < 1 || tasks > MAX_RANKS)
      return rn_invalid_argument("line %d is not a host with its slots: '%.*s'", line,
                                 RN_STR_ARGS(rest));
    if (name.size) RN_RETURN_IF_ERROR(add_host(cluster, hosts, name, tasks));
  }
  return RN_OK;
}

static rn_status_t find_hosts(rn_cli_cluster_t* cluster, const rn_env_t* env, const char* path,
                              const launch_place_t* place, hosts_t* hosts) {
  if (!path) {
    int64_t here;
    RN_RETURN_IF_ERROR(number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, &here));
    if (here == place->size) return add_host(cluster, hosts, RN_STR("localhost"), place->size);
    return rn_invalid_argument("the tasks are on several machines: --hosts must name the file");
  }
  rn_strbuf_t content;
  rn_strbuf_init(&content, cluster->arena.allocator);
  rn_status_t status = rn_fs_read(env, path, MAX_FILE, &content);
  if (rn_ok(status)) status = rn_cli_at(read_hosts(cluster, rn_strbuf_view(&content), hosts), path);
  rn_strbuf_clear(&content);
  return status;
}

rn_status_t rn_cli_cluster_of_mpi(rn_cli_cluster_t* cluster, const rn_env_t* env,
                                  const rn_cli_launch_t* launch) {
  launch_place_t place;
  hosts_t hosts = {0};
  RN_RETURN_IF_ERROR(number("OMPI_COMM_WORLD_SIZE", 1, &place.size));
  RN_RETURN_IF_ERROR(number("OMPI_COMM_WORLD_RANK", 0, &place.rank));
  RN_RETURN_IF_ERROR(number("OMPI_COMM_WORLD_LOCAL_RANK", 0, &place.local));
  RN_RETURN_IF_ERROR(check_place(&place));
  rn_status_t status = find_hosts(cluster, env, launch->hosts, &place, &hosts);
  if (rn_ok(status)) status = assign(cluster, launch, &hosts, &place);
  rn_vec_free(&hosts, cluster->arena.allocator);
  return status;
}
