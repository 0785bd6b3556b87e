// See mpi.h.
#include "dist/collective/mpi.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "base/container.h"
#include "base/hash.h"
#include "base/sync.h"
#include "base/vec.h"
#include "dist/collective/mpi_library.h"

#define NAME_SIZE 128
#define CHUNK (1 << 28)  // elements per call of MPI, whose counts are ints
#define ANY_SOURCE (-1)
#define FUNNELED 1
// The tags of messages: to rank 0, and from it.
#define TO_FIRST 7101
#define FROM_FIRST 7102
// The thread looks for messages without a pause so often, then with pauses.
#define LOOKS 2000
#define PAUSE_NS INT64_C(200000)

typedef enum mpi_word_t {
  ARRIVED,    // to rank 0: a rank has come to an instance
  WITHDRAWN,  // and has given it up
  RUN,        // from rank 0: all have come
  FAIL,       // a rank has given up, or they do not agree
  MISMATCH,
} mpi_word_t;

typedef struct mpi_message_t {
  uint64_t key, form;  // digests of the instance's keys, and of what its members must agree on
  int32_t word;
  int32_t rank;  // who has given up
} mpi_message_t;

// An instance that this rank has come to.
typedef struct mpi_pending_t {
  struct mpi_pending_t* next;
  rn_mpi_t* mpi;
  rn_meeting_t* meeting;
  uint64_t key, form;
  rn_cancel_entry_t gone;
  bool is_linked, is_told, is_gone, is_withdrawn;
} mpi_pending_t;

// Rank 0: an instance that some ranks have come to.
typedef struct mpi_instance_t {
  uint64_t key, form;
  int count;        // of ranks that have come, and of those that were told of a failure
  int32_t gave_up;  // rank; -1: none
  bool is_mismatched;
} mpi_instance_t;

struct rn_mpi_t {
  rn_allocator_t allocator;
  rn_mpi_library_t lib;
  int rank, size;
  char (*names)[NAME_SIZE];  // of tasks, by rank
  char name[NAME_SIZE];
  RN_VEC(mpi_instance_t) instances;  // of the thread, on rank 0
  pthread_t thread;
  bool has_thread;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  mpi_pending_t *first, **end;
  bool is_ready, is_stopped;
  rn_status_t status;  // of the start
};

static rn_mpi_handle_t type_of(const rn_mpi_t* mpi, rn_dtype_t dtype) {
  switch (dtype) {
    case RN_FLOAT:
      return mpi->lib.ompi_mpi_float;
    case RN_DOUBLE:
      return mpi->lib.ompi_mpi_double;
    case RN_INT32:
      return mpi->lib.ompi_mpi_int32_t;
    case RN_INT64:
      return mpi->lib.ompi_mpi_int64_t;
    default:
      return NULL;
  }
}

static bool is_reduction(const rn_collective_t* member) {
  return member->kind == RN_COLLECTIVE_REDUCE || member->kind == RN_COLLECTIVE_REDUCE_SCATTER;
}

static bool takes(void* self, const rn_group_t* group, const rn_collective_t* member) {
  const rn_mpi_t* mpi = self;
  if (group->size != mpi->size || group->task_count != mpi->size) return false;
  for (int32_t r = 0; r < group->size; ++r)
    if (!rn_str_is(group->members[r].task, mpi->names[r])) return false;
  if (!rn_dtype_is_plain(member->dtype)) return false;
  return !is_reduction(member) || type_of(mpi, member->dtype);
}

// The operations, when all ranks have come. Elements of |size| bytes are moved as bytes.

static rn_status_t check(int code) {
  return code ? rn_internal("MPI failed with error %d", code) : RN_OK;
}

static rn_status_t reduce(rn_mpi_t* mpi, rn_collective_t* member) {
  static const size_t ops[] = {[RN_MERGE_ADD] = offsetof(rn_mpi_library_t, ompi_mpi_op_sum),
                               [RN_MERGE_MUL] = offsetof(rn_mpi_library_t, ompi_mpi_op_prod),
                               [RN_MERGE_MAX] = offsetof(rn_mpi_library_t, ompi_mpi_op_max),
                               [RN_MERGE_MIN] = offsetof(rn_mpi_library_t, ompi_mpi_op_min)};
  rn_mpi_handle_t op = *(rn_mpi_handle_t*)((char*)&mpi->lib + ops[member->merge_op]);
  rn_mpi_handle_t type = type_of(mpi, member->dtype), world = mpi->lib.ompi_mpi_comm_world;
  const char* in = member->input->data;
  char* out = member->output.data;
  int64_t n = member->output.count;
  rn_status_t status = RN_OK;
  if (member->kind == RN_COLLECTIVE_REDUCE_SCATTER) {
    if (n > INT32_MAX) return rn_unimplemented("Scattering more than 2^31 elements by MPI");
    status = check(mpi->lib.MPI_Reduce_scatter_block(in, out, (int)n, type, op, world));
  }
  for (int64_t at = 0; member->kind == RN_COLLECTIVE_REDUCE && rn_ok(status) && at < n;
       at += CHUNK) {
    size_t offset = (size_t)at * rn_dtype_size(member->dtype);
    int count = (int)(n - at < CHUNK ? n - at : CHUNK);
    status = check(mpi->lib.MPI_Allreduce(in + offset, out + offset, count, type, op, world));
  }
  if (rn_ok(status) && member->divide) member->divide(member->dtype, mpi->size, out, n);
  return status;
}

static rn_status_t broadcast(rn_mpi_t* mpi, rn_collective_t* member) {
  int32_t own[2] = {member->is_source, member->is_source ? mpi->rank : 0}, all[2];
  rn_mpi_handle_t world = mpi->lib.ompi_mpi_comm_world;
  RN_RETURN_IF_ERROR(check(mpi->lib.MPI_Allreduce(own, all, 2, mpi->lib.ompi_mpi_int32_t,
                                                  mpi->lib.ompi_mpi_op_sum, world)));
  if (all[0] != 1)
    return rn_internal("Broadcast instance %d has %d sources", member->instance_key, (int)all[0]);
  size_t size = rn_tensor_bytes(&member->output);
  if (member->is_source && size) memcpy(member->output.data, member->input->data, size);
  rn_status_t status = RN_OK;
  for (size_t at = 0; rn_ok(status) && at < size; at += CHUNK)
    status = check(mpi->lib.MPI_Bcast((char*)member->output.data + at,
                                      (int)(size - at < CHUNK ? size - at : CHUNK),
                                      mpi->lib.ompi_mpi_byte, all[1], world));
  return status;
}

static rn_status_t move(rn_mpi_t* mpi, rn_collective_t* member) {
  bool gathers = member->kind == RN_COLLECTIVE_GATHER;
  size_t size = rn_tensor_bytes(member->input) / (gathers ? 1 : (size_t)mpi->size);
  rn_mpi_handle_t byte = mpi->lib.ompi_mpi_byte, world = mpi->lib.ompi_mpi_comm_world;
  if (size > INT32_MAX) return rn_unimplemented("Moving more than 2 GiB per member by MPI");
  const void* in = member->input->data;
  void* out = member->output.data;
  int n = (int)size;
  return check(gathers ? mpi->lib.MPI_Allgather(in, n, byte, out, n, byte, world)
                       : mpi->lib.MPI_Alltoall(in, n, byte, out, n, byte, world));
}

// Every rank must make the call, even one without memory for the result: MPI would wait for it.
static rn_status_t run(rn_mpi_t* mpi, rn_collective_t* member) {
  switch (member->kind) {
    case RN_COLLECTIVE_REDUCE:
    case RN_COLLECTIVE_REDUCE_SCATTER:
      return reduce(mpi, member);
    case RN_COLLECTIVE_BROADCAST:
      return broadcast(mpi, member);
    case RN_COLLECTIVE_GATHER:
    case RN_COLLECTIVE_ALL_TO_ALL:
      return move(mpi, member);
    case RN_COLLECTIVE_JOIN:
      break;
  }
  return rn_internal("Unknown collective %d", (int)member->kind);
}

// Pending instances.

static void on_gone(rn_cancel_entry_t* entry) {
  mpi_pending_t* pending = RN_CONTAINER_OF(entry, mpi_pending_t, gone);
  rn_mutex_lock(&pending->mpi->mutex);
  pending->is_gone = true;
  rn_cond_signal(&pending->mpi->changed);
  rn_mutex_unlock(&pending->mpi->mutex);
}

// Takes the first pending instance of |key| off; NULL if there is none.
static mpi_pending_t* take_pending(rn_mpi_t* mpi, uint64_t key) {
  rn_mutex_lock(&mpi->mutex);
  mpi_pending_t** at = &mpi->first;
  while (*at && ((*at)->key != key || !(*at)->is_told)) at = &(*at)->next;
  mpi_pending_t* found = *at;
  if (found) *at = found->next;
  if (!*at) mpi->end = at;
  rn_mutex_unlock(&mpi->mutex);
  return found;
}

static void end_pending(mpi_pending_t* pending, rn_status_t status) {
  rn_meeting_t* meeting = pending->meeting;
  if (pending->is_linked) rn_cancel_remove(&meeting->cancel, &pending->gone);
  RN_FREE(pending->mpi->allocator, pending);
  rn_meeting_end(meeting, status);
}

static uint64_t digest(const void* data, size_t size) {
  return rn_murmur_hash64(rn_str_n(data, size), 1);
}

static void start(void* self, rn_meeting_t* meeting) {
  rn_mpi_t* mpi = self;
  mpi_pending_t* pending = NULL;
  rn_collective_t* member = meeting->members[0];
  // Made here, so that an instance fails before others wait for this rank in it.
  rn_status_t status = rn_meeting_take_failure(meeting);
  if (rn_ok(status)) status = RN_NEW(mpi->allocator, &pending);
  if (rn_ok(status))
    status = rn_tensor_create(member->memory, member->dtype, member->shape, &member->output);
  if (!rn_ok(status)) {
    if (pending) RN_FREE(mpi->allocator, pending);
    rn_meeting_end(meeting, status);
    return;
  }
  const int64_t key[] = {member->step,           member->group_key, member->instance_key,
                         (int64_t)member->frame, member->iteration, meeting->piece};
  const int64_t form[] = {(int64_t)member->kind, (int64_t)member->dtype,
                          is_reduction(member) ? (int64_t)member->merge_op : 0,
                          member->divide != NULL, member->output.count};
  *pending = (mpi_pending_t){.mpi = mpi,
                             .meeting = meeting,
                             .key = digest(key, sizeof key),
                             .form = digest(form, sizeof form),
                             .gone.fn = on_gone};
  pending->is_linked = rn_cancel_add(&meeting->cancel, &pending->gone);
  rn_mutex_lock(&mpi->mutex);
  bool is_stopped = mpi->is_stopped || !pending->is_linked;
  if (!is_stopped) {
    *mpi->end = pending;
    mpi->end = &pending->next;
    rn_cond_signal(&mpi->changed);
  }
  rn_mutex_unlock(&mpi->mutex);
  if (is_stopped) end_pending(pending, rn_cancelled("The collective was cancelled"));
}

// The thread.

static void handle(rn_mpi_t* mpi, const mpi_message_t* message, int from);

static void say(rn_mpi_t* mpi, int to, const mpi_message_t* message) {
  if (to == mpi->rank)
    handle(mpi, message, mpi->rank);
  else
    mpi->lib.MPI_Send(message, (int)sizeof *message, mpi->lib.ompi_mpi_byte, to,
                      to ? FROM_FIRST : TO_FIRST, mpi->lib.ompi_mpi_comm_world);
}

// Rank 0: |from| has come to an instance, or has given it up. Ranks that come to a failed instance
// are told of it; it is forgotten when all have been.
static void note(rn_mpi_t* mpi, const mpi_message_t* message, int from) {
  size_t i = 0;
  while (i < mpi->instances.count && mpi->instances.items[i].key != message->key) i++;
  if (i == mpi->instances.count) {
    if (message->word == WITHDRAWN) return;  // it has run, or failed
    const mpi_instance_t fresh = {.key = message->key, .form = message->form, .gave_up = -1};
    rn_status_t status = rn_vec_push(&mpi->instances, mpi->allocator, fresh);
    bool ok = rn_ok(status);
    rn_status_free(status);
    if (!ok) {
      fputs("runnel: no memory for a collective\n", stderr);
      exit(1);
    }
  }
  mpi_instance_t* instance = &mpi->instances.items[i];
  bool had_failed = instance->gave_up >= 0 || instance->is_mismatched;
  if (message->word == WITHDRAWN && !had_failed) instance->gave_up = from;
  if (message->word == ARRIVED) instance->count++;
  if (message->word == ARRIVED && message->form != instance->form && !had_failed)
    instance->is_mismatched = true;
  bool has_failed = instance->gave_up >= 0 || instance->is_mismatched;
  mpi_message_t answer = {.key = message->key,
                          .word = instance->is_mismatched ? MISMATCH
                                  : has_failed            ? FAIL
                                                          : RUN,
                          .rank = instance->gave_up};
  bool is_full = instance->count == mpi->size;
  if (is_full) *instance = mpi->instances.items[--mpi->instances.count];
  if (has_failed && had_failed && message->word == ARRIVED) say(mpi, from, &answer);
  // Those that have not come yet ignore the failure, and get it again when they come.
  if ((has_failed && !had_failed) || (is_full && !has_failed))
    for (int r = mpi->size - 1; r >= 0; --r) say(mpi, r, &answer);
}

static void handle(rn_mpi_t* mpi, const mpi_message_t* message, int from) {
  if (message->word == ARRIVED || message->word == WITHDRAWN) {
    note(mpi, message, from);
    return;
  }
  mpi_pending_t* pending = take_pending(mpi, message->key);
  if (!pending) return;
  rn_collective_t* member = pending->meeting->members[0];
  if (message->word == RUN)
    end_pending(pending, run(mpi, member));
  else if (message->word == MISMATCH)
    end_pending(pending, rn_invalid_argument(
                             "Shape mismatch in a collective: the members of instance %d differ",
                             member->instance_key));
  else
    end_pending(pending, rn_aborted("%s gave up a collective",
                                    message->rank >= 0 && message->rank < mpi->size
                                        ? mpi->names[message->rank]
                                        : "A task"));
}

// Tells rank 0 of what is new; returns whether something is pending.
static bool tell(rn_mpi_t* mpi) {
  for (;;) {
    mpi_message_t message = {0};
    bool any = false;
    rn_mutex_lock(&mpi->mutex);
    bool is_pending = mpi->first;
    for (mpi_pending_t* pending = mpi->first; pending && !any; pending = pending->next) {
      any = !pending->is_told || (pending->is_gone && !pending->is_withdrawn);
      if (!any) continue;
      message = (mpi_message_t){.key = pending->key,
                                .form = pending->form,
                                .word = pending->is_told ? WITHDRAWN : ARRIVED};
      pending->is_withdrawn |= pending->is_told;
      pending->is_told = true;
    }
    rn_mutex_unlock(&mpi->mutex);
    if (!any) return is_pending;
    say(mpi, 0, &message);
  }
}

// Handles a message that has come; false if there is none.
static bool hear(rn_mpi_t* mpi) {
  int is_there = 0, tag = mpi->rank ? FROM_FIRST : TO_FIRST;
  struct {
    int source, tag, error, cancelled;
    size_t count;
    char more[32];
  } status;
  mpi_message_t message;
  rn_mpi_handle_t world = mpi->lib.ompi_mpi_comm_world;
  mpi->lib.MPI_Iprobe(ANY_SOURCE, tag, world, &is_there, &status);
  if (!is_there) return false;
  mpi->lib.MPI_Recv(&message, (int)sizeof message, mpi->lib.ompi_mpi_byte, status.source, tag,
                    world, &status);
  handle(mpi, &message, status.source);
  return true;
}

// Waits a little; rank 0 must hear of withdrawals even if it has come to nothing itself.
static void rest(rn_mpi_t* mpi, bool is_pending, int looks) {
  if (is_pending && looks < LOOKS) {
    sched_yield();
    return;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  rn_mutex_lock(&mpi->mutex);
  if (mpi->is_stopped || (!is_pending && mpi->first)) {
    rn_mutex_unlock(&mpi->mutex);
    return;
  }
  if (is_pending || mpi->rank == 0)
    rn_cond_wait_until(&mpi->changed, &mpi->mutex, now_ns + PAUSE_NS);
  else
    rn_cond_wait(&mpi->changed, &mpi->mutex);
  rn_mutex_unlock(&mpi->mutex);
}

static rn_status_t begin(rn_mpi_t* mpi) {
  int got = 0;
  RN_RETURN_IF_ERROR(rn_mpi_library_open(&mpi->lib));
  RN_RETURN_IF_ERROR(check(mpi->lib.MPI_Init_thread(NULL, NULL, FUNNELED, &got)));
  rn_mpi_handle_t world = mpi->lib.ompi_mpi_comm_world, byte = mpi->lib.ompi_mpi_byte;
  mpi->lib.MPI_Comm_rank(world, &mpi->rank);
  mpi->lib.MPI_Comm_size(world, &mpi->size);
  RN_RETURN_IF_ERROR(
      rn_alloc_array(mpi->allocator, (size_t)mpi->size, NAME_SIZE, (void**)&mpi->names));
  RN_RETURN_IF_ERROR(check(
      mpi->lib.MPI_Allgather(mpi->name, NAME_SIZE, byte, mpi->names, NAME_SIZE, byte, world)));
  for (int r = 0; r < mpi->size; ++r) mpi->names[r][NAME_SIZE - 1] = '\0';
  return RN_OK;
}

static void* serve(void* arg) {
  rn_mpi_t* mpi = arg;
  rn_status_t status = begin(mpi);
  bool ok = rn_ok(status);
  rn_mutex_lock(&mpi->mutex);
  mpi->status = status;
  mpi->is_ready = true;
  rn_cond_broadcast(&mpi->changed);
  rn_mutex_unlock(&mpi->mutex);
  int looks = 0;
  while (ok) {
    bool is_pending = tell(mpi);
    looks = hear(mpi) ? 0 : looks + 1;
    rn_mutex_lock(&mpi->mutex);
    bool is_over = mpi->is_stopped;
    rn_mutex_unlock(&mpi->mutex);
    if (is_over) break;
    if (looks) rest(mpi, is_pending, looks);
    if (!is_pending) looks = 0;
  }
  while (mpi->first) {
    mpi_pending_t* pending = mpi->first;
    mpi->first = pending->next;
    end_pending(pending, rn_cancelled("The task is closing"));
  }
  if (ok) mpi->lib.MPI_Finalize();
  return NULL;
}

rn_status_t rn_mpi_create(rn_str_t task, rn_allocator_t allocator, rn_mpi_t** out) {
  *out = NULL;
  rn_mpi_t* mpi = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &mpi));
  mpi->allocator = allocator;
  mpi->end = &mpi->first;
  rn_mutex_init(&mpi->mutex);
  rn_cond_init(&mpi->changed);
  snprintf(mpi->name, sizeof mpi->name, "%.*s", RN_STR_ARGS(task));
  mpi->has_thread = pthread_create(&mpi->thread, NULL, serve, mpi) == 0;
  rn_mutex_lock(&mpi->mutex);
  while (mpi->has_thread && !mpi->is_ready) rn_cond_wait(&mpi->changed, &mpi->mutex);
  rn_mutex_unlock(&mpi->mutex);
  rn_status_t status =
      mpi->has_thread ? rn_status_copy(mpi->status) : rn_resource_exhausted("No thread for MPI");
  if (!rn_ok(status)) {
    rn_mpi_destroy(mpi);
    return status;
  }
  *out = mpi;
  return RN_OK;
}

void rn_mpi_destroy(rn_mpi_t* mpi) {
  if (!mpi) return;
  rn_mutex_lock(&mpi->mutex);
  mpi->is_stopped = true;
  rn_cond_broadcast(&mpi->changed);
  rn_mutex_unlock(&mpi->mutex);
  if (mpi->has_thread) pthread_join(mpi->thread, NULL);
  rn_vec_free(&mpi->instances, mpi->allocator);
  if (mpi->names) rn_free(mpi->allocator, mpi->names, (size_t)mpi->size * NAME_SIZE);
  rn_status_free(mpi->status);
  rn_cond_destroy(&mpi->changed);
  rn_mutex_destroy(&mpi->mutex);
  RN_FREE(mpi->allocator, mpi);
}

rn_exchanger_t rn_mpi_exchanger(rn_mpi_t* mpi) {
  return (rn_exchanger_t){.self = mpi, .takes = takes, .start = start};
}
