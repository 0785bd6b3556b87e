// Dataflow execution with frames, iterations and dead values. See frames.h.
#include "exec/frames.h"

#include <stdatomic.h>

#include "exec/execution.h"

typedef struct iteration_t iteration_t;
typedef struct frame_t frame_t;

// One turn of a loop. Its arrays are copied from the frame's definition when it starts.
struct iteration_t {
  frame_t* frame;
  int64_t index;
  iteration_t* next;    // in the frame's list of live iterations, oldest first; or in the free list
  frame_t* children;    // loops that were entered from this iteration
  int32_t outstanding;  // instructions that are ready or under way, and children
  rn_tensor_t* slots;   // by local slot
  int32_t* readers;     // by local slot: who has still to read it
  int32_t* pending;     // by local instruction
  uint8_t* marks;       // by local instruction: MARK_*
  int32_t* dead_inputs;  // by local instruction, of a Merge
  char* memory;          // small values
};

enum {
  MARK_DEAD = 1,  // some input is dead
  MARK_LIVE = 2,  // a Merge has a live input
  MARK_DONE = 4,  // a Merge was started
};

// A loop invariant, for every iteration.
typedef struct held_t {
  int32_t instr;
  rn_tensor_t value;
} held_t;

// One run of a loop.
struct frame_t {
  const rn_frame_def_t* def;
  int32_t number;  // of |def|
  uint64_t id;
  iteration_t* parent;  // NULL: frame 0
  frame_t* next;        // sibling, or in the free list
  iteration_t* first;   // live iterations, oldest first
  iteration_t* last;
  int32_t live_count;
  int32_t pending_enters;
  RN_VEC(held_t) invariants;
  // While parallel_iterations of them are at work: the next one, not yet among the live, with the
  // values that wait for it already in place; and which NextIterations brought them.
  iteration_t* ahead;
  RN_VEC(int32_t) waiting;
  RN_VEC(int32_t) dead_exits;  // of the newest iteration
};

typedef struct ready_t {
  iteration_t* iteration;
  int32_t instr;
  bool is_dead;
} ready_t;

// An asynchronous kernel under way, with its input pointers behind it.
typedef struct flight_t {
  rn_kernel_ctx_t ctx;  // first: rn_done gives it back
  rn_state_t* state;
  iteration_t* iteration;
  int32_t instr;
  rn_status_t status;
  int64_t start_ns;  // 0: nobody asks
  struct flight_t* next;
  rn_tensor_t* dereffed;  // by input, as far as the instruction has any
  rn_tensor_t* in[];
} flight_t;

struct rn_frames_t {
  rn_state_t* state;
  rn_allocator_t allocator;
  frame_t* root;
  bool is_driven;  // guarded by the execution's mutex, as is |landed|
  // Completed, not yet seen by the driver. Changes under the mutex; the driver peeks at it without.
  flight_t* _Atomic landed;
  RN_VEC(ready_t) ready;
  iteration_t** free_iterations;  // by frame definition
  frame_t* free_frames;
  uint64_t next_id;
  rn_status_t status;  // why the driver itself failed
};

static size_t iteration_size(const rn_frame_def_t* def) {
  return sizeof(iteration_t) + (size_t)def->slot_count * (sizeof(rn_tensor_t) + sizeof(int32_t)) +
         (size_t)def->instr_count * (2 * sizeof(int32_t) + 1) + def->memory + 64;
}

static rn_status_t make_iteration(rn_frames_t* frames, frame_t* frame, iteration_t** out) {
  const rn_frame_def_t* def = frame->def;
  iteration_t* it = frames->free_iterations[frame->number];
  if (it) {
    frames->free_iterations[frame->number] = it->next;
  } else {
    RN_RETURN_IF_ERROR(rn_alloc_zeroed(frames->allocator, iteration_size(def), (void**)&it));
    it->slots = (rn_tensor_t*)(it + 1);
    it->readers = (int32_t*)(it->slots + def->slot_count);
    it->pending = it->readers + def->slot_count;
    it->dead_inputs = it->pending + def->instr_count;
    it->marks = (uint8_t*)(it->dead_inputs + def->instr_count);
    it->memory = (char*)(((uintptr_t)(it->marks + def->instr_count) + 15) & ~(uintptr_t)15);
    for (int32_t s = 0; s < def->slot_count; ++s) {
      it->slots[s] = def->templates[s];
      if (def->offsets[s] != SIZE_MAX) it->slots[s].data = it->memory + def->offsets[s];
      it->slots[s].dtype = RN_INVALID;  // a place, but nothing in it yet
    }
  }
  memcpy(it->readers, def->readers, (size_t)def->slot_count * sizeof *it->readers);
  memcpy(it->pending, def->pending, (size_t)def->instr_count * sizeof *it->pending);
  memset(it->dead_inputs, 0, (size_t)def->instr_count * (sizeof *it->dead_inputs + 1));
  it->frame = frame;
  it->next = NULL;
  it->children = NULL;
  it->outstanding = 0;
  *out = it;
  return RN_OK;
}

static void link_iteration(frame_t* frame, iteration_t* it) {
  it->index = frame->last ? frame->last->index + 1 : 0;
  if (frame->last)
    frame->last->next = it;
  else
    frame->first = it;
  frame->last = it;
  frame->live_count++;
}

// Empties a slot; one with memory of its own keeps the memory.
static void clear_slot(iteration_t* it, int32_t local) {
  rn_tensor_t* slot = &it->slots[local];
  size_t offset = it->frame->def->offsets[local];
  if (offset == SIZE_MAX) {
    if (slot->dtype != RN_INVALID) rn_tensor_clear(slot);
    return;
  }
  char* memory = it->memory + offset;
  if (slot->buffer || slot->data != memory || slot->rank > RN_INLINE_DIMS) {
    rn_tensor_clear(slot);
    *slot = it->frame->def->templates[local];
    slot->data = memory;
  }
  slot->dtype = RN_INVALID;
}

static void free_iteration(rn_frames_t* frames, iteration_t* it) {
  for (int32_t s = 0; s < it->frame->def->slot_count; ++s)
    if (it->slots[s].dtype != RN_INVALID) clear_slot(it, s);
  it->next = frames->free_iterations[it->frame->number];
  frames->free_iterations[it->frame->number] = it;
}

static rn_status_t new_frame(rn_frames_t* frames, int32_t number, iteration_t* parent,
                             frame_t** out) {
  frame_t* frame = frames->free_frames;
  if (frame)
    frames->free_frames = frame->next;
  else
    RN_RETURN_IF_ERROR(RN_NEW(frames->allocator, &frame));
  frame->def = &frames->state->plan->frames[number];
  frame->number = number;
  frame->id = frames->next_id++;
  frame->parent = parent;
  frame->next = NULL;
  frame->first = frame->last = frame->ahead = NULL;
  frame->live_count = 0;
  frame->pending_enters = frame->def->enter_count;
  if (parent) {
    frame->next = parent->children;
    parent->children = frame;
    parent->outstanding++;
  }
  *out = frame;
  iteration_t* first;
  RN_RETURN_IF_ERROR(make_iteration(frames, frame, &first));
  link_iteration(frame, first);
  return RN_OK;
}

static void clear_held(held_t* items, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_tensor_clear(&items[i].value);
}

static void free_frame(rn_frames_t* frames, frame_t* frame) {
  while (frame->first) {
    iteration_t* it = frame->first;
    frame->first = it->next;
    while (it->children) {
      frame_t* child = it->children;
      it->children = child->next;
      free_frame(frames, child);
    }
    free_iteration(frames, it);
  }
  frame->last = NULL;
  if (frame->ahead) free_iteration(frames, frame->ahead);
  frame->ahead = NULL;
  clear_held(frame->invariants.items, frame->invariants.count);
  frame->invariants.count = frame->waiting.count = frame->dead_exits.count = 0;
  frame->next = frames->free_frames;
  frames->free_frames = frame;
}

static rn_status_t push_ready(rn_frames_t* frames, iteration_t* it, int32_t instr, bool is_dead) {
  it->outstanding++;
  return rn_vec_push(&frames->ready, frames->allocator, (ready_t){it, instr, is_dead});
}

// A Merge starts with the first live input, or when all are dead; a dead Enter alone makes a loop's
// Merge dead, for the value that would come round will not.
static rn_status_t activate_merge(rn_frames_t* frames, iteration_t* it, const rn_edge_out_t* edge,
                                  bool is_dead, bool from_enter) {
  int32_t local = edge->local;
  int32_t inputs = frames->state->plan->instrs[edge->instr].input_count;
  if (edge->slot < 0)
    it->pending[local]--;
  else if (!is_dead)
    it->marks[local] |= MARK_LIVE;
  else
    it->dead_inputs[local] += from_enter ? inputs : 1;
  bool is_live = it->marks[local] & MARK_LIVE;
  bool all_dead = it->dead_inputs[local] >= inputs;
  if (it->marks[local] & MARK_DONE || it->pending[local] > 0 || (!is_live && !all_dead))
    return RN_OK;
  it->marks[local] |= MARK_DONE;
  return push_ready(frames, it, edge->instr, !is_live);
}

// Puts |value| (moved) where |instr|'s output |o| belongs in |it|. Bytes that live in another
// iteration's memory are copied.
static rn_status_t deliver(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr, int32_t o,
                           rn_tensor_t* value, bool crosses) {
  int32_t local = instr->local_output + o;
  rn_tensor_t* slot = &it->slots[local];
  if (!crosses || value->buffer || value->is_ref) {
    rn_tensor_t moved = *value;
    *value = (rn_tensor_t){0};
    if (slot->dtype != RN_INVALID) clear_slot(it, local);
    *slot = moved;
    return RN_OK;
  }
  const rn_tensor_t* place = &it->frame->def->templates[local];
  if (it->frame->def->offsets[local] != SIZE_MAX && place->dtype == value->dtype &&
      place->count == value->count && rn_tensor_same_shape(place, value)) {
    *slot = *place;
    slot->data = it->memory + it->frame->def->offsets[local];
    memcpy(slot->data, value->data, rn_tensor_bytes(value));
    rn_tensor_clear(value);
    return RN_OK;
  }
  rn_tensor_t kept = {0};
  rn_status_t status = rn_tensor_keep(value, frames->state->plan->device->allocator, &kept);
  rn_tensor_clear(value);
  if (rn_ok(status)) *slot = kept;
  return status;
}

// All of |instr|'s consumers in |it| learn that it is done.
static rn_status_t notify(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                          bool is_dead) {
  const rn_edge_out_t* edge = &frames->state->plan->edges[instr->first_edge];
  for (const rn_edge_out_t* end = edge + instr->edge_count; edge < end; ++edge) {
    bool is_dead_edge = is_dead || (edge->slot >= 0 && it->slots[edge->slot].dtype == RN_INVALID);
    if (__builtin_expect(edge->role == RN_ROLE_MERGE, 0)) {
      RN_RETURN_IF_ERROR(
          activate_merge(frames, it, edge, is_dead_edge, instr->role == RN_ROLE_ENTER));
      continue;
    }
    if (is_dead_edge) it->marks[edge->local] |= MARK_DEAD;
    if (--it->pending[edge->local] > 0) continue;
    bool runs_dead = it->marks[edge->local] & MARK_DEAD && edge->role != RN_ROLE_CONTROL_TRIGGER;
    RN_RETURN_IF_ERROR(push_ready(frames, it, edge->instr, runs_dead));
  }
  for (int32_t o = 0; instr->has_unread && o < instr->output_count; ++o) {
    int32_t local = instr->local_output + o;
    if (it->readers[local] == 0) clear_slot(it, local);
  }
  return RN_OK;
}

static rn_status_t finish_iterations(rn_frames_t* frames, frame_t* frame);

static rn_status_t start_iteration(rn_frames_t* frames, frame_t* frame, iteration_t* it) {
  link_iteration(frame, it);
  frame->dead_exits.count = 0;
  for (size_t i = 0; i < frame->invariants.count; ++i) {
    const rn_instr_t* enter = &frames->state->plan->instrs[frame->invariants.items[i].instr];
    rn_tensor_t copy = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&frame->invariants.items[i].value, &copy));
    RN_RETURN_IF_ERROR(deliver(frames, it, enter, 0, &copy, false));
    RN_RETURN_IF_ERROR(notify(frames, it, enter, false));
  }
  return RN_OK;
}

static rn_status_t enter_frame(rn_frames_t* frames, iteration_t* it, int32_t number,
                               rn_tensor_t* value, bool is_dead) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  frame_t* child = it->children;
  while (child && child->number != instr->out_frame) child = child->next;
  if (!child) RN_RETURN_IF_ERROR(new_frame(frames, instr->out_frame, it, &child));
  child->pending_enters--;
  if (instr->is_constant_enter && !is_dead) {
    held_t held = {number, {0}};
    RN_RETURN_IF_ERROR(rn_tensor_keep(value, frames->state->plan->device->allocator, &held.value));
    rn_status_t status = rn_vec_push(&child->invariants, frames->allocator, held);
    if (!rn_ok(status)) {
      rn_tensor_clear(&held.value);
      return status;
    }
    for (iteration_t* to = child->first; to; to = to->next) {
      rn_tensor_t copy = {0};
      RN_RETURN_IF_ERROR(rn_tensor_share(&held.value, &copy));
      RN_RETURN_IF_ERROR(deliver(frames, to, instr, 0, &copy, false));
      RN_RETURN_IF_ERROR(notify(frames, to, instr, false));
    }
  } else {
    if (!is_dead) RN_RETURN_IF_ERROR(deliver(frames, child->first, instr, 0, value, true));
    RN_RETURN_IF_ERROR(notify(frames, child->first, instr, is_dead));
  }
  return finish_iterations(frames, child);
}

static rn_status_t next_iteration(rn_frames_t* frames, iteration_t* it, int32_t number,
                                  rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  frame_t* frame = it->frame;
  iteration_t* to = it->next;
  if (!to && frame->live_count >= frame->def->parallel_iterations) {
    if (!frame->ahead) RN_RETURN_IF_ERROR(make_iteration(frames, frame, &frame->ahead));
    RN_RETURN_IF_ERROR(deliver(frames, frame->ahead, instr, 0, value, true));
    return rn_vec_push(&frame->waiting, frames->allocator, number);
  }
  if (!to) {
    RN_RETURN_IF_ERROR(make_iteration(frames, frame, &to));
    RN_RETURN_IF_ERROR(start_iteration(frames, frame, to));
  }
  RN_RETURN_IF_ERROR(deliver(frames, to, instr, 0, value, true));
  return notify(frames, to, instr, false);
}

// An iteration is over when nothing of it is outstanding and nothing can come: all Enters have, and
// older iterations are gone.
static rn_status_t finish_frame(rn_frames_t* frames, frame_t* frame) {
  const rn_plan_t* plan = frames->state->plan;
  iteration_t* parent = frame->parent;
  for (size_t i = 0; i < frame->dead_exits.count; ++i)
    RN_RETURN_IF_ERROR(notify(frames, parent, &plan->instrs[frame->dead_exits.items[i]], true));
  frame_t** link = &parent->children;
  while (*link != frame) link = &(*link)->next;
  *link = frame->next;
  free_frame(frames, frame);
  parent->outstanding--;
  return finish_iterations(frames, parent->frame);
}

// The oldest iteration makes room for the next.
static rn_status_t start_waiting(rn_frames_t* frames, frame_t* frame) {
  iteration_t* to = frame->ahead;
  frame->ahead = NULL;
  RN_RETURN_IF_ERROR(start_iteration(frames, frame, to));
  for (size_t i = 0; i < frame->waiting.count; ++i) {
    const rn_instr_t* instr = &frames->state->plan->instrs[frame->waiting.items[i]];
    RN_RETURN_IF_ERROR(notify(frames, to, instr, false));
  }
  frame->waiting.count = 0;
  return RN_OK;
}

static rn_status_t finish_iterations(rn_frames_t* frames, frame_t* frame) {
  if (!frame->parent) return RN_OK;  // frame 0 stays for the fetches
  while (frame->first && frame->pending_enters == 0 && frame->first->outstanding == 0) {
    iteration_t* it = frame->first;
    if (frame->waiting.count > 0) RN_RETURN_IF_ERROR(start_waiting(frames, frame));
    frame->first = it->next;
    if (!frame->first) frame->last = NULL;
    frame->live_count--;
    free_iteration(frames, it);
    if (!frame->first) return finish_frame(frames, frame);
  }
  return RN_OK;
}

// Moves the values of what |it| computed to those who wait, wherever they are.
static rn_status_t propagate(rn_frames_t* frames, iteration_t* it, int32_t number, bool is_dead,
                             rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  switch (instr->role) {
    case RN_ROLE_ENTER:
      return enter_frame(frames, it, number, value, is_dead);
    case RN_ROLE_EXIT:
      // Of older iterations every Exit is dead but the loop's last; theirs may come late.
      if (is_dead && it != it->frame->last) return RN_OK;
      if (is_dead) return rn_vec_push(&it->frame->dead_exits, frames->allocator, number);
      RN_RETURN_IF_ERROR(deliver(frames, it->frame->parent, instr, 0, value, true));
      return notify(frames, it->frame->parent, instr, false);
    case RN_ROLE_NEXT_ITERATION:
      return is_dead ? RN_OK : next_iteration(frames, it, number, value);
    default:
      return notify(frames, it, instr, is_dead);
  }
}

static void release_inputs(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr) {
  const int32_t* release = &frames->state->plan->releases[instr->first_release];
  for (const int32_t* end = release + instr->release_count; release < end; ++release)
    if (--it->readers[*release] == 0) clear_slot(it, *release);
}

static rn_tensor_t* input_slot(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                               int32_t i) {
  return &it->slots[frames->state->plan->input_locals[instr->first_input + i]];
}

// Shares input |i|, or the value of the variable that it refers to where a value is wanted.
static rn_status_t share_input(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                               int32_t i, rn_tensor_t* out) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_tensor_t* input = input_slot(frames, it, instr, i);
  for (int32_t d = 0; d < instr->deref_count; ++d) {
    const rn_deref_t* deref = &plan->derefs[instr->first_deref + d];
    if (deref->input == instr->first_input + i)
      return rn_variable_read(input, deref->allows_uninitialized, out);
  }
  return rn_tensor_share(input, out);
}

static rn_status_t wrong_predicate(const rn_tensor_t* predicate) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_default());
  rn_shape_print(&buf, rn_tensor_shape(predicate));
  rn_status_t status =
      rn_invalid_argument("The second input must be a scalar, but it has shape %.*s",
                          RN_STR_ARGS(rn_strbuf_view(&buf)));
  rn_strbuf_clear(&buf);
  return status;
}

// The first live input, and its number if anybody wants to know it.
static rn_status_t merge_values(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                                rn_tensor_t* outputs) {
  const rn_plan_t* plan = frames->state->plan;
  int32_t live = 0;
  while (live < instr->input_count && !rn_tensor_is_set(input_slot(frames, it, instr, live)))
    ++live;
  if (live == instr->input_count) return rn_internal("Merge has no live input");
  RN_RETURN_IF_ERROR(share_input(frames, it, instr, live, &outputs[0]));
  if (instr->output_count < 2 || it->readers[instr->local_output + 1] == 0) return RN_OK;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(plan->host->allocator, RN_INT32, RN_SHAPE_SCALAR, &outputs[1]));
  *RN_DATA(&outputs[1], int32_t) = live;
  return RN_OK;
}

// A small constant is lent, for the plan outlives the step: counting would cost more than a copy,
// should somebody keep it.
static rn_status_t share_constant(const rn_tensor_t* constant, rn_tensor_t* out) {
  if (constant->rank > RN_INLINE_DIMS || rn_tensor_bytes(constant) > 256 ||
      !rn_dtype_is_plain(constant->dtype))
    return rn_tensor_share(constant, out);
  *out = *constant;
  out->buffer = NULL;
  return RN_OK;
}

// The control-flow instructions have no kernel: they move values. |*out_value| is what Enter, Exit
// and NextIteration carry elsewhere.
static rn_status_t move_values(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                               rn_tensor_t* out_value) {
  const rn_plan_t* plan = frames->state->plan;
  rn_tensor_t* outputs = NULL;
  if (instr->out_frame == instr->frame && instr->output_count > 0)
    outputs = &it->slots[instr->local_output];  // one after the other
  switch (instr->role) {
    case RN_ROLE_SWITCH: {
      rn_tensor_t predicate = {0};
      RN_RETURN_IF_ERROR(share_input(frames, it, instr, 1, &predicate));
      bool is_scalar = predicate.dtype == RN_BOOL && predicate.rank == 0;
      bool is_true = is_scalar && *RN_DATA(&predicate, bool);
      rn_status_t status = is_scalar ? RN_OK : wrong_predicate(&predicate);
      rn_tensor_clear(&predicate);
      return rn_ok(status) ? share_input(frames, it, instr, 0, &outputs[is_true]) : status;
    }
    case RN_ROLE_MERGE:
      return merge_values(frames, it, instr, outputs);
    case RN_ROLE_ENTER:
    case RN_ROLE_EXIT:
    case RN_ROLE_NEXT_ITERATION:
      return share_input(frames, it, instr, 0, out_value);
    case RN_ROLE_LOOP_COND:
      return share_input(frames, it, instr, 0, &outputs[0]);
    default:  // a constant that lives or dies with a control edge, or nothing at all
      if (!outputs || plan->slots[instr->first_output].kind != RN_SLOT_CONSTANT) return RN_OK;
      return share_constant(&plan->templates[instr->first_output], &outputs[0]);
  }
}

// Says which inputs die with this instruction, and finds them.
static uint64_t gather_inputs(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                              rn_tensor_t** in) {
  const int32_t* locals = &frames->state->plan->input_locals[instr->first_input];
  uint64_t dying = 0;
  for (int32_t i = 0; i < instr->input_count; ++i) {
    in[i] = &it->slots[locals[i]];
    if (i < 64) dying |= (uint64_t)(it->readers[locals[i]] == 1) << i;
  }
  return dying & instr->dying;
}

static rn_status_t deref_inputs(rn_frames_t* frames, const rn_instr_t* instr, rn_tensor_t** in,
                                rn_tensor_t* dereffed, uint64_t* inout_dying) {
  const rn_plan_t* plan = frames->state->plan;
  for (int32_t d = 0; d < instr->deref_count; ++d) {
    const rn_deref_t* deref = &plan->derefs[instr->first_deref + d];
    int32_t i = deref->input - instr->first_input;
    RN_RETURN_IF_ERROR(rn_variable_read(in[i], deref->allows_uninitialized, &dereffed[d]));
    in[i] = &dereffed[d];
    if (i < 64) *inout_dying &= ~(UINT64_C(1) << i);
  }
  return RN_OK;
}

static void init_context(rn_frames_t* frames, iteration_t* it, int32_t number, bool is_dead,
                         rn_kernel_ctx_t* ctx) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[number];
  *ctx = (rn_kernel_ctx_t){.kernel = instr->kernel,
                           .state = instr->kernel->state,
                           .out = &it->slots[instr->local_output],
                           .step = frames->state->execution->run->step,
                           .planned = instr->planned,
                           .is_dead = is_dead,
                           .frame = it->frame->id << 32 | (uint64_t)it->index};
  // Outputs with memory of their own get back the type that marks them as set.
  uint64_t planned = instr->planned;
  while (planned) {
    int o = __builtin_ctzll(planned);
    planned &= planned - 1;
    ctx->out[o].dtype = it->frame->def->templates[instr->local_output + o].dtype;
  }
}

// An instruction with many inputs, or with some that are variables to read.
static rn_status_t compute_carefully(rn_frames_t* frames, iteration_t* it, const rn_instr_t* instr,
                                     rn_kernel_ctx_t* ctx) {
  rn_arena_t scratch;
  rn_arena_init(&scratch, frames->allocator);
  rn_tensor_t** in = NULL;
  rn_tensor_t* dereffed = NULL;
  rn_status_t status = RN_ARENA_ARRAY(&scratch, (size_t)instr->input_count, &in);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&scratch, (size_t)instr->deref_count, &dereffed);
  if (rn_ok(status)) {
    ctx->in = in;
    ctx->dying = gather_inputs(frames, it, instr, in);
    status = deref_inputs(frames, instr, in, dereffed, &ctx->dying);
    if (rn_ok(status)) status = instr->compute(ctx);
    for (int32_t d = 0; d < instr->deref_count; ++d) rn_tensor_clear(&dereffed[d]);
  }
  rn_arena_clear(&scratch);
  return status;
}

#define FEW_INPUTS 8

static rn_status_t compute(rn_frames_t* frames, iteration_t* it, int32_t number, bool is_dead) {
  rn_execution_t* execution = frames->state->execution;
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_kernel_ctx_t ctx;
  init_context(frames, it, number, is_dead, &ctx);
  bool is_traced = execution->run->stats != NULL;
  int64_t start = is_traced ? rn_execution_start_ns(execution) : 0;
  rn_status_t status;
  if (__builtin_expect(instr->deref_count == 0 && instr->input_count <= FEW_INPUTS, 1)) {
    rn_tensor_t* in[FEW_INPUTS];
    ctx.in = in;
    ctx.dying = gather_inputs(frames, it, instr, in);
    status = instr->compute(&ctx);
  } else {
    status = compute_carefully(frames, it, instr, &ctx);
  }
  if (is_traced) rn_execution_record(execution, frames->state->plan, number, ctx.out, start);
  return status;
}

static size_t flight_size(const rn_instr_t* instr) {
  return sizeof(flight_t) + (size_t)instr->input_count * sizeof(rn_tensor_t*) +
         (size_t)instr->deref_count * sizeof(rn_tensor_t) + 16;
}

static void flight_done(rn_kernel_ctx_t* ctx, rn_status_t status) {
  flight_t* flight = (flight_t*)ctx;
  rn_state_t* state = flight->state;
  flight->status = status;
  rn_mutex_lock(&state->execution->mutex);
  flight->next = state->frames->landed;
  state->frames->landed = flight;
  state->execution->active--;
  rn_cond_signal(&state->execution->changed);
  rn_mutex_unlock(&state->execution->mutex);
}

static rn_status_t take_off(rn_frames_t* frames, iteration_t* it, int32_t number, bool is_dead) {
  rn_execution_t* execution = frames->state->execution;
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  flight_t* flight = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(frames->allocator, flight_size(instr), (void**)&flight));
  flight->state = frames->state;
  flight->iteration = it;
  flight->instr = number;
  flight->start_ns = rn_execution_start_ns(execution);
  flight->dereffed =
      (rn_tensor_t*)(((uintptr_t)(flight->in + instr->input_count) + 15) & ~(uintptr_t)15);
  init_context(frames, it, number, is_dead, &flight->ctx);
  flight->ctx.done = flight_done;
  flight->ctx.in = flight->in;
  flight->ctx.dying = gather_inputs(frames, it, instr, flight->in);
  rn_status_t status =
      deref_inputs(frames, instr, flight->in, flight->dereffed, &flight->ctx.dying);
  rn_mutex_lock(&execution->mutex);
  execution->active++;
  rn_mutex_unlock(&execution->mutex);
  if (rn_ok(status))
    instr->kernel->def->compute_async(&flight->ctx);
  else
    flight_done(&flight->ctx, status);
  return RN_OK;
}

// After an instruction: its outputs go out, its inputs are given back, its iteration may be over.
static rn_status_t finish(rn_frames_t* frames, iteration_t* it, int32_t number, bool is_dead,
                          rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  frame_t* frame = it->frame;
  rn_status_t status = propagate(frames, it, number, is_dead, value);
  release_inputs(frames, it, instr);
  it->outstanding--;
  if (!rn_ok(status)) return status;
  return it->outstanding == 0 ? finish_iterations(frames, frame) : RN_OK;
}

static rn_status_t run_one(rn_frames_t* frames, const ready_t* item) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[item->instr];
  bool runs = !item->is_dead || instr->role == RN_ROLE_SEND;
  rn_tensor_t value = {0};
  rn_status_t status = RN_OK;
  if (runs && instr->async >= 0) {
    status = take_off(frames, item->iteration, item->instr, item->is_dead);
    return rn_ok(status) ? status : rn_execution_node_error(plan, item->instr, status);
  }
  if (runs && instr->compute)
    status = compute(frames, item->iteration, item->instr, item->is_dead);
  else if (runs)
    status = move_values(frames, item->iteration, instr, &value);
  if (rn_ok(status))
    status = finish(frames, item->iteration, item->instr, item->is_dead, &value);
  else
    status = rn_execution_node_error(plan, item->instr, status);
  rn_tensor_clear(&value);
  return status;
}

static rn_status_t land(rn_frames_t* frames, flight_t* flight) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_instr_t* instr = &plan->instrs[flight->instr];
  for (int32_t d = 0; d < instr->deref_count; ++d) rn_tensor_clear(&flight->dereffed[d]);
  rn_status_t status = flight->status;
  int32_t number = flight->instr;
  iteration_t* it = flight->iteration;
  rn_execution_record(frames->state->execution, plan, number, flight->ctx.out, flight->start_ns);
  // What came from a dead Send is dead, for those who wait by a control edge as well.
  bool is_dead = flight->ctx.is_dead ||
                 (instr->role == RN_ROLE_RECV && !rn_tensor_is_set(&flight->ctx.out[0]));
  rn_free(frames->allocator, flight, flight_size(instr));
  if (!rn_ok(status)) return rn_execution_node_error(plan, number, status);
  rn_tensor_t none = {0};
  return finish(frames, it, number, is_dead, &none);
}

static void land_all(rn_frames_t* frames) {
  rn_execution_t* execution = frames->state->execution;
  rn_mutex_lock(&execution->mutex);
  flight_t* landed = frames->landed;
  frames->landed = NULL;
  rn_mutex_unlock(&execution->mutex);
  while (landed) {
    flight_t* next = landed->next;
    rn_execution_fail(execution, land(frames, landed));
    landed = next;
  }
}

// The driver: lands what has completed, runs what is ready.
static void drive(rn_frames_t* frames) {
  rn_execution_t* execution = frames->state->execution;
  land_all(frames);
  bool is_watched = execution->run->deadline_ns != 0;
  const rn_cancel_t* cancel = execution->run->step->cancel;
  while (frames->ready.count > 0) {
    if (__builtin_expect(execution->is_failed || is_watched || rn_is_cancelled(cancel), 0) &&
        rn_execution_should_stop(execution)) {
      frames->ready.count = 0;
      return;
    }
    if (__builtin_expect(atomic_load_explicit(&frames->landed, memory_order_relaxed) != NULL, 0))
      land_all(frames);
    ready_t item = frames->ready.items[--frames->ready.count];
    rn_status_t status = run_one(frames, &item);
    if (!rn_ok(status)) rn_execution_fail(execution, status);
  }
}

bool rn_frames_drain_locked(rn_state_t* state) {
  rn_frames_t* frames = state->frames;
  rn_execution_t* execution = state->execution;
  if (frames->is_driven || (frames->ready.count == 0 && !frames->landed)) return false;
  frames->is_driven = true;
  execution->active++;
  rn_mutex_unlock(&execution->mutex);
  drive(frames);
  rn_mutex_lock(&execution->mutex);
  execution->active--;
  frames->is_driven = false;
  return true;
}

rn_tensor_t* rn_frames_value(rn_state_t* state, int32_t slot) {
  return &state->frames->root->first->slots[state->plan->slot_local[slot]];
}

static rn_status_t frames_create(rn_state_t* state) {
  rn_plan_t* plan = state->plan;
  rn_frames_t* frames = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(plan->allocator, &frames));
  frames->allocator = plan->allocator;
  frames->state = state;
  state->frames = frames;
  return rn_alloc_array(plan->allocator, (size_t)plan->frame_count, sizeof *frames->free_iterations,
                        (void**)&frames->free_iterations);
}

rn_status_t rn_frames_start(rn_state_t* state) {
  rn_plan_t* plan = state->plan;
  if (!state->frames) RN_RETURN_IF_ERROR(frames_create(state));
  rn_frames_t* frames = state->frames;
  frames->next_id = 0;  // frame 0 has the same key in all parts of a step
  RN_RETURN_IF_ERROR(new_frame(frames, 0, NULL, &frames->root));
  iteration_t* it = frames->root->first;
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    if (plan->slots[s].producer >= 0 ||
        (plan->slots[s].kind != RN_SLOT_CONSTANT && plan->slots[s].kind != RN_SLOT_FEED))
      continue;
    RN_RETURN_IF_ERROR(rn_tensor_share(&state->slots[s], &it->slots[plan->slot_local[s]]));
  }
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    const rn_instr_t* instr = &plan->instrs[n];
    if (instr->frame != 0 || it->pending[instr->local] != 0) continue;
    if (instr->role != RN_ROLE_MERGE) {
      RN_RETURN_IF_ERROR(push_ready(frames, it, n, false));
      continue;
    }
    // A Merge of constants or feeds has live inputs from the start.
    for (int32_t i = 0; i < instr->input_count; ++i) {
      if (!rn_tensor_is_set(input_slot(frames, it, instr, i)) ||
          it->marks[instr->local] & MARK_DONE)
        continue;
      it->marks[instr->local] |= MARK_LIVE | MARK_DONE;
      RN_RETURN_IF_ERROR(push_ready(frames, it, n, false));
    }
  }
  return RN_OK;
}

void rn_frames_stop(rn_state_t* state) {
  rn_frames_t* frames = state->frames;
  if (!frames) return;
  frames->ready.count = 0;
  while (frames->landed) {  // completed after a failure
    flight_t* flight = frames->landed;
    frames->landed = flight->next;
    rn_status_free(land(frames, flight));
  }
  frames->ready.count = 0;
  if (frames->root) free_frame(frames, frames->root);
  frames->root = NULL;
}

void rn_frames_destroy(rn_frames_t* frames) {
  if (!frames) return;
  const rn_plan_t* plan = frames->state->plan;
  for (int32_t d = 0; frames->free_iterations && d < plan->frame_count; ++d) {
    while (frames->free_iterations[d]) {
      iteration_t* it = frames->free_iterations[d];
      frames->free_iterations[d] = it->next;
      rn_free(frames->allocator, it, iteration_size(&plan->frames[d]));
    }
  }
  while (frames->free_frames) {
    frame_t* frame = frames->free_frames;
    frames->free_frames = frame->next;
    rn_vec_free(&frame->invariants, frames->allocator);
    rn_vec_free(&frame->waiting, frames->allocator);
    rn_vec_free(&frame->dead_exits, frames->allocator);
    RN_FREE(frames->allocator, frame);
  }
  RN_FREE_ARRAY(frames->allocator, frames->free_iterations, plan->frame_count);
  rn_vec_free(&frames->ready, frames->allocator);
  RN_FREE(frames->allocator, frames);
}
