// Members whose values are in the memory of devices: by way of host memory.
//
// A value is cut into pieces. Each is copied to the host, goes through the collective as members on
// CPUs would, and is copied back, while the pieces after it are on their way. A value is seen as
// rows: the members' slices in an all-to-all or a scattered reduction, else the value itself. A
// piece has some columns of all rows, so it is an instance of the same kind.
#include "base/container.h"
#include "base/pool.h"
#include "collective/compute.h"
#include "collective/internal.h"
#include "device/device.h"

// Of the values of one member in a piece: large enough for the bus, small enough to overlap.
#define PIECE_BYTES ((int64_t)4 << 20)
#define PIECE_ALIGN 256  // columns
#define WINDOW 4         // pieces on their way at a time
// From this many bytes per row on, tasks compare what they have: it costs another small round.
#define COMPARED_BYTES ((int64_t)64 << 10)

typedef struct staging_t staging_t;

typedef struct staging_piece_t {
  rn_job_t job;       // first
  rn_meeting_t face;  // the piece as an instance of its own
  staging_t* staging;
  rn_collective_t* requests;  // by member: its part in host memory
  rn_collective_t** members;
  rn_tensor_t* inputs;
  int64_t dims[2][2];    // of an input and an output
  int64_t first, count;  // columns
  int64_t form[3];       // of the piece that compares the whole values
  bool is_active, is_form;
  _Atomic int32_t pending;  // copies that have not ended, and the one who starts them
  void (*next)(struct staging_piece_t* piece);
} staging_piece_t;

struct staging_t {
  rn_local_meeting_t* meeting;
  rn_allocator_t allocator;
  int64_t rows_in, rows_out, columns, piece_columns;
  int32_t piece_count;  // with the one that compares
  bool is_whole;        // one piece has the whole values, as they are
  bool compares;        // the first piece compares what the tasks have
  bool spans;           // there are members in other tasks
  rn_cancel_entry_t gone;
  bool is_linked;
  staging_piece_t pieces[WINDOW];
  rn_mutex_t mutex;  // guards what follows
  int32_t started;   // pieces
  int32_t holds;     // active pieces, and callers that still look at this
  bool is_starting, may_start, has_told;
  rn_status_t status;
};

static void release(staging_t* staging);
static void start_pieces(staging_t* staging);

// Notes an error, and ends what is on its way. Takes |status|.
static void fail(staging_t* staging, rn_status_t status) {
  rn_mutex_lock(&staging->mutex);
  bool is_first = rn_ok(staging->status);
  if (is_first) staging->status = status;
  staging->holds++;
  rn_mutex_unlock(&staging->mutex);
  if (!is_first) rn_status_free(status);
  for (int i = 0; is_first && i < WINDOW; ++i) rn_cancel(&staging->pieces[i].face.cancel);
  release(staging);
}

static rn_status_t failure_of(staging_t* staging) {
  rn_mutex_lock(&staging->mutex);
  rn_status_t status = rn_status_copy(staging->status);
  rn_mutex_unlock(&staging->mutex);
  return status;
}

// The piece.

// Elements |first| to |first| + |count| of |tensor| as a vector that borrows them.
static rn_tensor_t view_of(const rn_tensor_t* tensor, int64_t first, int64_t count) {
  return (rn_tensor_t){.data = (char*)tensor->data + (size_t)first * rn_dtype_size(tensor->dtype),
                       .count = count,
                       .dtype = tensor->dtype,
                       .rank = 1,
                       .inline_dims = {count}};
}

static void count_off(staging_piece_t* piece) {
  if (--piece->pending == 0) piece->next(piece);
}

// A copy between a device and the host, with the tensors that it needs until it has ended.
typedef struct staging_copy_t {
  staging_piece_t* piece;
  rn_tensor_t far, near;
} staging_copy_t;

static void on_copied(void* arg, rn_status_t status) {
  staging_piece_t* piece = ((staging_copy_t*)arg)->piece;
  RN_FREE(piece->staging->allocator, (staging_copy_t*)arg);
  if (!rn_ok(status)) fail(piece->staging, status);
  count_off(piece);
}

static void copy(staging_piece_t* piece, rn_device_t* device, rn_tensor_t far, rn_tensor_t near,
                 bool to_host) {
  staging_copy_t* copy = NULL;
  if (!far.count) return;
  rn_status_t status = RN_NEW(piece->staging->allocator, &copy);
  if (!rn_ok(status)) {
    fail(piece->staging, status);
    return;
  }
  *copy = (staging_copy_t){piece, far, near};
  piece->pending++;
  if (to_host)
    device->vtable->copy_to_host(device, &copy->far, &copy->near, on_copied, copy);
  else
    device->vtable->copy_from_host(device, &copy->near, &copy->far, on_copied, copy);
}

// Copies the columns of a piece between |whole|, on |device|, and |part|, on the host, where they
// lie side by side.
static void copy_rows(staging_piece_t* piece, rn_device_t* device, const rn_tensor_t* whole,
                      const rn_tensor_t* part, int64_t rows, bool to_host) {
  const staging_t* staging = piece->staging;
  int64_t count = staging->is_whole ? whole->count : piece->count;
  for (int64_t row = 0; row < (staging->is_whole ? 1 : rows); ++row)
    copy(piece, device, view_of(whole, row * staging->columns + piece->first, count),
         view_of(part, row * count, count), to_host);
}

static void end_piece(staging_piece_t* piece) {
  staging_t* staging = piece->staging;
  for (int32_t i = 0; i < staging->meeting->face.count; ++i) {
    rn_tensor_clear(&piece->inputs[i]);
    rn_tensor_clear(&piece->requests[i].output);
  }
  rn_mutex_lock(&staging->mutex);
  piece->is_active = false;
  rn_mutex_unlock(&staging->mutex);
  start_pieces(staging);
  release(staging);
}

static rn_status_t check_form(const staging_piece_t* piece) {
  const rn_tensor_t* all = &piece->requests[0].output;
  for (int64_t i = 0; i < all->count; ++i)
    if (RN_DATA(all, const int64_t)[i] != piece->form[i % 3])
      return rn_invalid_argument(
          "Shape mismatch in a collective: the members of instance %d have values of another type "
          "or number",
          piece->requests[0].instance_key);
  return RN_OK;
}

// The results are there: copies them to the devices.
static void give_back(rn_meeting_t* face, rn_status_t status) {
  staging_piece_t* piece = RN_CONTAINER_OF(face, staging_piece_t, face);
  staging_t* staging = piece->staging;
  const rn_meeting_t* whole = &staging->meeting->face;
  if (rn_ok(status) && piece->is_form) status = check_form(piece);
  bool copies = rn_ok(status) && !piece->is_form;
  if (!rn_ok(status)) fail(staging, status);
  piece->pending = 1;
  piece->next = end_piece;
  for (int32_t i = 0; copies && i < whole->count; ++i) {
    rn_collective_t* member = whole->members[i];
    if (!member->is_source || member->kind != RN_COLLECTIVE_BROADCAST)
      copy_rows(piece, member->device, &member->output, &piece->requests[i].output,
                staging->rows_out, false);
  }
  count_off(piece);
}

static void exchange(rn_job_t* job) {
  staging_piece_t* piece = (staging_piece_t*)job;
  rn_meeting_run_on_host(&piece->face);
}

// The values are on the host: exchanges them. After an error, the other tasks are told of it.
static void on_here(staging_piece_t* piece) {
  staging_t* staging = piece->staging;
  rn_pool_t* pool = piece->requests[0].pool;
  rn_status_t status = failure_of(staging);
  if (!rn_ok(status) && !staging->spans) {
    rn_status_free(status);
    end_piece(piece);
    return;
  }
  piece->face.failure = status;
  piece->job.run = exchange;
  if (pool)
    rn_pool_submit(pool, &piece->job);
  else
    exchange(&piece->job);
}

// A part's shape: the rows of the piece, or that of the whole value.
static rn_shape_t shape_of(const staging_piece_t* piece, const int64_t* dims, rn_shape_t whole) {
  if (piece->staging->is_whole && !piece->is_form) return whole;
  return dims[0] > 1 ? (rn_shape_t){2, dims} : (rn_shape_t){1, dims + 1};
}

// Describes member |i|'s part of the piece to the collective.
static void set_request(staging_piece_t* piece, int32_t i) {
  const rn_collective_t* member = piece->staging->meeting->face.members[i];
  rn_collective_t* request = &piece->requests[i];
  *request = *member;
  piece->members[i] = request;
  request->memory = rn_allocator_default();
  request->output = (rn_tensor_t){0};
  request->input = member->input || piece->is_form ? &piece->inputs[i] : NULL;
  request->shape = shape_of(piece, piece->dims[1], member->shape);
  if (!piece->is_form) return;
  request->kind = RN_COLLECTIVE_GATHER;
  request->dtype = RN_INT64;
}

// Copies the values of member |i| to the host.
static rn_status_t fetch_input(staging_piece_t* piece, int32_t i) {
  const rn_collective_t* member = piece->staging->meeting->face.members[i];
  rn_tensor_t* input = &piece->inputs[i];
  if (piece->is_form) {
    *input = (rn_tensor_t){.data = piece->form, .dtype = RN_INT64};
    *input = view_of(input, 0, 3);
    return RN_OK;
  }
  if (!member->input) return RN_OK;
  rn_shape_t shape = shape_of(piece, piece->dims[0], rn_tensor_shape(member->input));
  RN_RETURN_IF_ERROR(
      rn_device_host_tensor(member->device, rn_allocator_default(), member->dtype, shape, input));
  copy_rows(piece, member->device, member->input, input, piece->staging->rows_in, true);
  return RN_OK;
}

static void start_piece(staging_piece_t* piece, int32_t number) {
  staging_t* staging = piece->staging;
  const rn_meeting_t* whole = &staging->meeting->face;
  piece->is_form = staging->compares && number == 0;
  piece->first = (number - staging->compares) * staging->piece_columns;
  int64_t left = staging->columns - piece->first;
  piece->count = left < staging->piece_columns ? left : staging->piece_columns;
  piece->dims[0][0] = staging->rows_in;
  piece->dims[1][0] = staging->rows_out;
  piece->dims[0][1] = piece->dims[1][1] = piece->count;
  if (piece->is_form) piece->dims[1][0] = whole->group->size;
  if (piece->is_form) piece->dims[1][1] = 3;
  piece->face.piece = number;
  piece->pending = 1;
  piece->next = on_here;
  for (int32_t i = 0; i < whole->count; ++i) set_request(piece, i);
  rn_status_t status = failure_of(staging);
  for (int32_t i = 0; rn_ok(status) && i < whole->count; ++i) status = fetch_input(piece, i);
  if (!rn_ok(status)) fail(staging, status);
  count_off(piece);
}

// Takes the next piece that is to start, or NULL. After an error one more starts if others wait for
// it: it tells them.
static staging_piece_t* take_next_locked(staging_t* staging, int32_t* out_number) {
  bool has_failed = !rn_ok(staging->status);
  if (staging->started == staging->piece_count) return NULL;
  if (has_failed && (staging->has_told || !staging->spans)) return NULL;
  staging_piece_t* piece = staging->pieces;
  while (piece < staging->pieces + WINDOW && piece->is_active) piece++;
  if (piece == staging->pieces + WINDOW) return NULL;
  if (!has_failed) rn_cancel_reset(&piece->face.cancel);
  staging->has_told = has_failed;
  piece->is_active = true;
  *out_number = staging->started++;
  staging->holds++;
  return piece;
}

// One thread at a time starts pieces, also those that become free meanwhile.
static void start_pieces(staging_t* staging) {
  rn_mutex_lock(&staging->mutex);
  staging->may_start = true;
  bool is_other = staging->is_starting;
  staging->is_starting = true;
  while (!is_other && staging->may_start) {
    int32_t number = 0;
    staging->may_start = false;
    staging_piece_t* piece = take_next_locked(staging, &number);
    if (!piece) break;
    staging->may_start = true;
    rn_mutex_unlock(&staging->mutex);
    start_piece(piece, number);
    rn_mutex_lock(&staging->mutex);
  }
  if (!is_other) staging->is_starting = false;
  rn_mutex_unlock(&staging->mutex);
}

// The whole.

static void staging_free(staging_t* staging) {
  size_t count = (size_t)staging->meeting->face.count;
  for (int i = 0; i < WINDOW; ++i) {
    staging_piece_t* piece = &staging->pieces[i];
    rn_cancel_destroy(&piece->face.cancel);
    if (piece->requests) RN_FREE_ARRAY(staging->allocator, piece->requests, count);
    if (piece->members) RN_FREE_ARRAY(staging->allocator, piece->members, count);
    if (piece->inputs) RN_FREE_ARRAY(staging->allocator, piece->inputs, count);
  }
  rn_mutex_destroy(&staging->mutex);
  RN_FREE(staging->allocator, staging);
}

static void release(staging_t* staging) {
  rn_mutex_lock(&staging->mutex);
  bool is_last = --staging->holds == 0;
  rn_mutex_unlock(&staging->mutex);
  if (!is_last) return;
  rn_local_meeting_t* meeting = staging->meeting;
  rn_status_t status = staging->status;
  if (staging->is_linked) rn_cancel_remove(&meeting->face.cancel, &staging->gone);
  staging_free(staging);
  rn_meeting_end(&meeting->face, status);
}

static void on_gone(rn_cancel_entry_t* entry) {
  fail(RN_CONTAINER_OF(entry, staging_t, gone), rn_cancelled("op cancelled"));
}

// How the values are cut. Groups with members on stock's tasks exchange them whole. Tasks that do
// not agree on the number of pieces would wait for each other, so large values are compared first.
static rn_status_t cut(staging_t* staging) {
  const rn_meeting_t* whole = &staging->meeting->face;
  const rn_collective_t* like = whole->members[0];
  int64_t size = whole->group->size, bytes = (int64_t)rn_dtype_size(like->dtype), count = 0;
  bool has_slices =
      like->kind == RN_COLLECTIVE_REDUCE_SCATTER || like->kind == RN_COLLECTIVE_ALL_TO_ALL;
  bool gathers = like->kind == RN_COLLECTIVE_GATHER || like->kind == RN_COLLECTIVE_ALL_TO_ALL;
  bool has_handles = false;
  for (int32_t i = 0; i < whole->count; ++i) has_handles |= whole->members[i]->device->has_handles;
  if (!rn_shape_count(like->shape, &count))
    return rn_internal("The shape of instance %d is not known", like->instance_key);
  staging->rows_in = has_slices ? size : 1;
  staging->rows_out = gathers ? size : 1;
  staging->columns = count / staging->rows_out;
  staging->spans = whole->count < size;
  int64_t fit = PIECE_BYTES / bytes / (has_slices || gathers ? size : 1);
  fit = fit < PIECE_ALIGN ? PIECE_ALIGN : fit / PIECE_ALIGN * PIECE_ALIGN;
  staging->is_whole = has_handles || !whole->group->is_ours || staging->columns <= fit;
  staging->compares =
      staging->spans && whole->group->is_ours && staging->columns >= COMPARED_BYTES / bytes;
  staging->piece_columns = staging->is_whole ? staging->columns : fit;
  int64_t pieces = staging->is_whole ? 1 : (staging->columns + fit - 1) / fit;
  if (pieces >= INT32_MAX) return rn_resource_exhausted("A collective of too many pieces");
  staging->piece_count = (int32_t)pieces + staging->compares;
  return RN_OK;
}

// The result of the source of a broadcast is its value.
static rn_status_t make_outputs(const rn_meeting_t* whole) {
  for (int32_t i = 0; i < whole->count; ++i) {
    rn_collective_t* member = whole->members[i];
    bool has_it = member->kind == RN_COLLECTIVE_BROADCAST && member->is_source;
    if (!has_it)
      RN_RETURN_IF_ERROR(
          rn_tensor_create(member->memory, member->dtype, member->shape, &member->output));
    else if (member->input->buffer)
      RN_RETURN_IF_ERROR(rn_tensor_share(member->input, &member->output));
    else
      RN_RETURN_IF_ERROR(rn_device_duplicate(member->device, member->input, &member->output));
  }
  return RN_OK;
}

static rn_status_t make_pieces(staging_t* staging) {
  const rn_meeting_t* whole = &staging->meeting->face;
  const rn_collective_t* like = whole->members[0];
  size_t count = (size_t)whole->count;
  for (int i = 0; i < WINDOW && i < staging->piece_count; ++i) {
    staging_piece_t* piece = &staging->pieces[i];
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(staging->allocator, count, &piece->requests));
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(staging->allocator, count, &piece->members));
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(staging->allocator, count, &piece->inputs));
    piece->staging = staging;
    piece->face.owner = whole->owner;
    piece->face.group = whole->group;
    piece->face.count = whole->count;
    piece->face.ranks = whole->ranks;
    piece->face.members = piece->members;
    piece->face.on_end = give_back;
    piece->form[0] = staging->columns;
    piece->form[1] = (int64_t)like->kind << 32 | (int64_t)like->dtype;
    piece->form[2] = (int64_t)like->merge_op << 1 | (like->divide != NULL);
  }
  return RN_OK;
}

void rn_local_meeting_stage(rn_local_meeting_t* meeting) {
  staging_t* staging = NULL;
  rn_allocator_t allocator = meeting->face.owner->allocator;
  rn_status_t status = RN_NEW(allocator, &staging);
  if (!rn_ok(status)) {
    meeting->face.failure = status;
    rn_meeting_run_on_host(&meeting->face);
    return;
  }
  staging->meeting = meeting;
  staging->allocator = allocator;
  staging->holds = 1;
  staging->gone.fn = on_gone;
  rn_mutex_init(&staging->mutex);
  for (int i = 0; i < WINDOW; ++i) rn_cancel_init(&staging->pieces[i].face.cancel);
  status = cut(staging);
  if (rn_ok(status)) status = make_pieces(staging);
  if (!rn_ok(status)) {
    staging_free(staging);
    meeting->face.failure = status;
    rn_meeting_run_on_host(&meeting->face);
    return;
  }
  status = make_outputs(&meeting->face);
  staging->is_linked = rn_cancel_add(&meeting->face.cancel, &staging->gone);
  if (rn_ok(status) && !staging->is_linked) status = rn_cancelled("op cancelled");
  if (!rn_ok(status)) fail(staging, status);
  start_pieces(staging);
  release(staging);
}
