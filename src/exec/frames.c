// Frames and iterations: entering and ending them, and delivering values. See frames.h.
//
// doc/invariants.md: invariant 33.
#include "base/assert.h"
#include "exec/frames_internal.h"

static size_t iteration_size(const rn_frame_def_t* def) {
  return sizeof(rn_iteration_t) +
         (size_t)def->slot_count * (sizeof(rn_tensor_t) + sizeof(int32_t)) +
         (size_t)def->instr_count * (2 * sizeof(int32_t) + 1) + def->memory + 64;
}

static rn_status_t make_iteration(rn_frames_t* frames, rn_frame_t* frame, rn_iteration_t** out) {
  const rn_frame_def_t* def = frame->def;
  rn_iteration_t* it = frames->free_iterations[frame->number];
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
      it->slots[s].dtype = RN_INVALID;  // has memory, but no value yet
    }
  }
  memcpy(it->readers, def->readers, (size_t)def->slot_count * sizeof *it->readers);
  memcpy(it->pending, def->pending, (size_t)def->instr_count * sizeof *it->pending);
  memset(it->dead_inputs, 0, (size_t)def->instr_count * (sizeof *it->dead_inputs + 1));
  it->frame = frame;
  it->next = NULL;
  it->children = NULL;
  it->outstanding = 0;
  it->is_begun = false;
  *out = it;
  return RN_OK;
}

static void link_iteration(rn_frame_t* frame, rn_iteration_t* it) {
  it->index = frame->last ? frame->last->index + 1 : 0;
  if (frame->last)
    frame->last->next = it;
  else
    frame->first = it;
  frame->last = it;
  frame->live_count++;
}

__attribute__((noinline)) void rn_frames_reset_slot(rn_iteration_t* it, int32_t local) {
  rn_tensor_t* slot = &it->slots[local];
  size_t offset = it->frame->def->offsets[local];
  rn_tensor_clear(slot);
  if (offset == SIZE_MAX) return;
  *slot = it->frame->def->templates[local];
  slot->data = it->memory + offset;
  slot->dtype = RN_INVALID;
}

static void free_iteration(rn_frames_t* frames, rn_iteration_t* it) {
  for (int32_t s = 0; s < it->frame->def->slot_count; ++s)
    if (it->slots[s].dtype != RN_INVALID) rn_frames_clear_slot(it, s);
  it->next = frames->free_iterations[it->frame->number];
  frames->free_iterations[it->frame->number] = it;
}

static uint64_t combine(uint64_t a, uint64_t b) {
  return a ^ (b + UINT64_C(0x9e3779b97f4a7800) + (a << 10) + (a >> 4));
}

// Numbers a run of a loop by where it was entered. All parts of a step, here and in stock, compute
// the same number for the same loop and iteration: it is part of rendezvous keys.
static uint64_t frame_id(const rn_frame_def_t* def, const rn_iteration_t* parent) {
  if (!parent) return 0;
  return combine(parent->frame->id, combine((uint64_t)parent->index, def->name_hash));
}

static rn_status_t new_frame(rn_frames_t* frames, int32_t number, rn_iteration_t* parent,
                             rn_frame_t** out) {
  rn_frame_t* frame = frames->free_frames;
  if (frame)
    frames->free_frames = frame->next;
  else
    RN_RETURN_IF_ERROR(RN_NEW(frames->allocator, &frame));
  frame->def = &frames->state->plan->frames[number];
  frame->number = number;
  frame->id = frame_id(frame->def, parent);
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
  rn_iteration_t* first;
  RN_RETURN_IF_ERROR(make_iteration(frames, frame, &first));
  link_iteration(frame, first);
  return RN_OK;
}

static void clear_held(rn_frame_held_t* items, size_t count) {
  for (size_t i = 0; i < count; ++i) rn_tensor_clear(&items[i].value);
}

static void free_frame(rn_frames_t* frames, rn_frame_t* frame) {
  while (frame->first) {
    rn_iteration_t* it = frame->first;
    frame->first = it->next;
    while (it->children) {
      rn_frame_t* child = it->children;
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

static inline rn_status_t push_ready(rn_frames_t* frames, rn_iteration_t* it, int32_t instr,
                                     bool is_dead) {
  it->outstanding++;
  if (__builtin_expect(frames->ready.count == frames->ready.capacity, 0))
    RN_RETURN_IF_ERROR(rn_vec_reserve(&frames->ready, frames->allocator, frames->ready.count + 1));
  frames->ready.items[frames->ready.count++] = (rn_ready_t){it, instr, is_dead};
  return RN_OK;
}

static void release_inputs(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr) {
  const int32_t* release = &frames->state->plan->releases[instr->first_release];
  for (const int32_t* end = release + instr->release_count; release < end; ++release) {
    RN_ASSERT(it->readers[*release] > 0);
    if (--it->readers[*release] == 0) rn_frames_clear_slot(it, *release);
  }
}

// A dead Exit or NextIteration does not run. Exits are dead in all iterations but the loop's last,
// so only those of the newest iteration are recorded.
static rn_status_t leave_dead(rn_frames_t* frames, rn_iteration_t* it, int32_t number) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  release_inputs(frames, it, instr);
  if (instr->role != RN_ROLE_EXIT || it != it->frame->last) return RN_OK;
  return rn_vec_push(&it->frame->dead_exits, frames->allocator, number);
}

// A Merge starts with the first live input, or when all are dead; a dead Enter or NextIteration
// alone makes a loop's Merge dead, because the other belongs to another iteration.
static rn_status_t activate_merge(rn_frames_t* frames, rn_iteration_t* it,
                                  const rn_edge_out_t* edge, bool is_dead, uint8_t from) {
  int32_t local = edge->local;
  int32_t inputs = frames->state->plan->instrs[edge->instr].input_count;
  if (edge->slot < 0)
    it->pending[local]--;
  else if (!is_dead)
    it->marks[local] |= MARK_LIVE;
  else
    it->dead_inputs[local] += from == RN_ROLE_ENTER || from == RN_ROLE_NEXT_ITERATION ? inputs : 1;
  bool is_live = it->marks[local] & MARK_LIVE;
  bool all_dead = it->dead_inputs[local] >= inputs;
  if (it->marks[local] & MARK_DONE || it->pending[local] > 0 || (!is_live && !all_dead))
    return RN_OK;
  it->marks[local] |= MARK_DONE;
  return push_ready(frames, it, edge->instr, !is_live);
}

// Puts |value| (moved) where |instr|'s output |o| belongs in |it|. Bytes that live in another
// iteration's memory are copied.
static rn_status_t deliver(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr,
                           int32_t o, rn_tensor_t* value, bool crosses) {
  int32_t local = instr->local_output + o;
  rn_tensor_t* slot = &it->slots[local];
  if (!crosses || value->buffer || value->is_ref) {
    rn_tensor_t moved = *value;
    *value = (rn_tensor_t){0};
    if (slot->dtype != RN_INVALID) rn_frames_clear_slot(it, local);
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
  rn_status_t status = rn_plan_keep(frames->state->plan, instr, o, value, &kept);
  rn_tensor_clear(value);
  if (rn_ok(status)) *slot = kept;
  return status;
}

// A fetch within a loop takes the first value; a second one is an error, as in stock.
static __attribute__((noinline)) rn_status_t keep_fetched(rn_frames_t* frames, rn_iteration_t* it,
                                                          const rn_instr_t* instr) {
  rn_state_t* state = frames->state;
  const rn_plan_t* plan = state->plan;
  for (int32_t i = 0; i < plan->fetch_count; ++i) {
    int32_t slot = plan->fetch_slots[i], o = slot - instr->first_output;
    if (slot == RN_NO_SLOT || o < 0 || o >= instr->output_count) continue;
    const rn_tensor_t* value = &it->slots[instr->local_output + o];
    bool is_repeated = false;  // one value, fetched twice
    for (int32_t k = 0; k < i; ++k) is_repeated |= plan->fetch_slots[k] == slot;
    if (is_repeated || value->dtype == RN_INVALID) continue;
    if (rn_tensor_is_set(&state->slots[slot]))
      return rn_status_annotate(rn_internal("Retval[%d] has already been set.", i),
                                "\n\t [[{{node _retval_%.*s_%d_%d}}]]",
                                RN_STR_ARGS(plan->names[plan->slots[slot].producer]), o, i);
    RN_RETURN_IF_ERROR(rn_plan_keep(plan, instr, o, value, &state->slots[slot]));
  }
  return RN_OK;
}

// Notifies all of |instr|'s consumers in |it| that it is done.
static rn_status_t notify(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr,
                          bool is_dead) {
  const rn_edge_out_t* edge = &frames->state->plan->edges[instr->first_edge];
  if (__builtin_expect(instr->has_loop_fetch && !is_dead, 0))
    RN_RETURN_IF_ERROR(keep_fetched(frames, it, instr));
  for (const rn_edge_out_t* end = edge + instr->edge_count; edge < end; ++edge) {
    bool is_dead_edge = is_dead || (edge->slot >= 0 && it->slots[edge->slot].dtype == RN_INVALID);
    if (__builtin_expect(edge->role == RN_ROLE_MERGE, 0)) {
      RN_RETURN_IF_ERROR(activate_merge(frames, it, edge, is_dead_edge, instr->role));
      continue;
    }
    RN_ASSERT(it->pending[edge->local] > 0);
    if (is_dead_edge) it->marks[edge->local] |= MARK_DEAD;
    if (--it->pending[edge->local] > 0) continue;
    bool runs_dead = it->marks[edge->local] & MARK_DEAD && edge->role != RN_ROLE_CONTROL_TRIGGER;
    bool leaves = edge->role == RN_ROLE_EXIT || edge->role == RN_ROLE_NEXT_ITERATION;
    RN_RETURN_IF_ERROR(runs_dead && leaves ? leave_dead(frames, it, edge->instr)
                                           : push_ready(frames, it, edge->instr, runs_dead));
  }
  for (int32_t o = 0; instr->has_unread && o < instr->output_count; ++o) {
    int32_t local = instr->local_output + o;
    if (it->readers[local] == 0) rn_frames_clear_slot(it, local);
  }
  return RN_OK;
}

static rn_status_t finish_iterations(rn_frames_t* frames, rn_frame_t* frame);

static rn_status_t deliver_invariant(rn_frames_t* frames, rn_iteration_t* it,
                                     const rn_frame_held_t* held) {
  const rn_instr_t* enter = &frames->state->plan->instrs[held->instr];
  bool is_dead = !rn_tensor_is_set(&held->value);
  if (!is_dead) {
    rn_tensor_t copy = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&held->value, &copy));
    RN_RETURN_IF_ERROR(deliver(frames, it, enter, 0, &copy, false));
  }
  return notify(frames, it, enter, is_dead);
}

static rn_status_t start_iteration(rn_frames_t* frames, rn_frame_t* frame, rn_iteration_t* it) {
  link_iteration(frame, it);
  frame->dead_exits.count = 0;
  for (size_t i = 0; i < frame->invariants.count; ++i)
    RN_RETURN_IF_ERROR(deliver_invariant(frames, it, &frame->invariants.items[i]));
  return RN_OK;
}

static rn_status_t enter_invariant(rn_frames_t* frames, rn_frame_t* frame, int32_t number,
                                   const rn_tensor_t* value, bool is_dead) {
  rn_frame_held_t held = {number, {0}};
  const rn_plan_t* plan = frames->state->plan;
  if (!is_dead)
    RN_RETURN_IF_ERROR(rn_plan_keep(plan, &plan->instrs[number], 0, value, &held.value));
  rn_status_t status = rn_vec_push(&frame->invariants, frames->allocator, held);
  if (!rn_ok(status)) rn_tensor_clear(&held.value);
  if (frame->def->loop) return status;  // start_loop delivers it
  for (rn_iteration_t* to = frame->first; rn_ok(status) && to; to = to->next)
    status = deliver_invariant(frames, to, &held);
  return status;
}

// All values of a straight loop have arrived. With a dead one among them, or in a traced step, it
// runs like any other loop.
static rn_status_t start_loop(rn_frames_t* frames, rn_frame_t* frame) {
  const rn_plan_t* plan = frames->state->plan;
  const rn_straight_loop_t* loop = frame->def->loop;
  rn_iteration_t* first = frame->first;
  bool is_plain = !frames->state->execution->run->stats;
  for (size_t i = 0; i < frame->invariants.count; ++i)
    is_plain &= rn_tensor_is_set(&frame->invariants.items[i].value);
  for (int32_t v = 0; v < loop->var_count; ++v)
    is_plain &= first->slots[plan->instrs[loop->vars[v].enter].local_output].dtype != RN_INVALID;
  if (is_plain) return push_ready(frames, first, RN_WHOLE_LOOP, false);
  for (size_t i = 0; i < frame->invariants.count; ++i)
    RN_RETURN_IF_ERROR(deliver_invariant(frames, first, &frame->invariants.items[i]));
  for (int32_t v = 0; v < loop->var_count; ++v) {
    const rn_instr_t* enter = &plan->instrs[loop->vars[v].enter];
    RN_RETURN_IF_ERROR(
        notify(frames, first, enter, first->slots[enter->local_output].dtype == RN_INVALID));
  }
  return finish_iterations(frames, frame);
}

static rn_status_t enter_frame(rn_frames_t* frames, rn_iteration_t* it, int32_t number,
                               rn_tensor_t* value, bool is_dead) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_frame_t* child = it->children;
  while (child && child->number != instr->out_frame) child = child->next;
  if (!child) RN_RETURN_IF_ERROR(new_frame(frames, instr->out_frame, it, &child));
  RN_ASSERT(child->pending_enters > 0);
  child->pending_enters--;
  if (instr->is_constant_enter) {
    RN_RETURN_IF_ERROR(enter_invariant(frames, child, number, value, is_dead));
  } else {
    if (!is_dead) RN_RETURN_IF_ERROR(deliver(frames, child->first, instr, 0, value, true));
    if (!child->def->loop) RN_RETURN_IF_ERROR(notify(frames, child->first, instr, is_dead));
  }
  if (!child->def->loop) return finish_iterations(frames, child);
  return child->pending_enters == 0 ? start_loop(frames, child) : RN_OK;
}

static rn_status_t next_iteration(rn_frames_t* frames, rn_iteration_t* it, int32_t number,
                                  rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_frame_t* frame = it->frame;
  rn_iteration_t* to = it->next;
  if (!frame->parent) {  // outside of any loop there is no next iteration: the value is forwarded
    RN_RETURN_IF_ERROR(deliver(frames, it, instr, 0, value, true));
    return notify(frames, it, instr, false);
  }
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

// An iteration is over when nothing of it is outstanding and nothing can arrive: all Enters have,
// and older iterations are gone.
static rn_status_t finish_frame(rn_frames_t* frames, rn_frame_t* frame) {
  const rn_plan_t* plan = frames->state->plan;
  rn_iteration_t* parent = frame->parent;
  for (size_t i = 0; i < frame->dead_exits.count; ++i)
    RN_RETURN_IF_ERROR(notify(frames, parent, &plan->instrs[frame->dead_exits.items[i]], true));
  rn_frame_t** link = &parent->children;
  while (*link != frame) link = &(*link)->next;
  *link = frame->next;
  free_frame(frames, frame);
  RN_ASSERT(parent->outstanding > 0);
  parent->outstanding--;
  return finish_iterations(frames, parent->frame);
}

// The end of the oldest iteration makes room for the next.
static rn_status_t start_waiting(rn_frames_t* frames, rn_frame_t* frame) {
  rn_iteration_t* to = frame->ahead;
  frame->ahead = NULL;
  RN_ASSERT(to);  // the value that waits was delivered to it
  RN_RETURN_IF_ERROR(start_iteration(frames, frame, to));
  for (size_t i = 0; i < frame->waiting.count; ++i) {
    const rn_instr_t* instr = &frames->state->plan->instrs[frame->waiting.items[i]];
    RN_RETURN_IF_ERROR(notify(frames, to, instr, false));
  }
  frame->waiting.count = 0;
  return RN_OK;
}

// Other parts of the step wait for every Send of every iteration: an unreached one sends a dead
// value.
static rn_status_t run_left_sends(rn_frames_t* frames, rn_iteration_t* it) {
  const rn_frame_def_t* def = it->frame->def;
  for (int32_t i = 0; i < def->send_count; ++i) {
    const rn_instr_t* send = &frames->state->plan->instrs[def->sends[i]];
    if (it->pending[send->local] == 0) continue;
    it->pending[send->local] = 0;
    RN_RETURN_IF_ERROR(push_ready(frames, it, def->sends[i], true));
  }
  return RN_OK;
}

// Loop variables without a live value are dead in the next iteration, where Sends may depend on
// them.
static rn_status_t pass_dead(rn_frames_t* frames, rn_iteration_t* it) {
  const rn_frame_def_t* def = it->frame->def;
  for (int32_t i = 0; it->next && i < def->next_count; ++i) {
    const rn_instr_t* next = &frames->state->plan->instrs[def->nexts[i]];
    if (it->pending[next->local] == 0 && !(it->marks[next->local] & MARK_DEAD)) continue;
    RN_RETURN_IF_ERROR(notify(frames, it->next, next, true));
  }
  return RN_OK;
}

static rn_status_t finish_iterations(rn_frames_t* frames, rn_frame_t* frame) {
  while (frame->first && frame->pending_enters == 0 && frame->first->outstanding == 0) {
    rn_iteration_t* it = frame->first;
    if (it->frame->def->send_count > 0) RN_RETURN_IF_ERROR(run_left_sends(frames, it));
    if (it->outstanding > 0 || !frame->parent) return RN_OK;  // frame 0 stays for the fetches
    if (frame->waiting.count > 0) RN_RETURN_IF_ERROR(start_waiting(frames, frame));
    if (it->frame->def->next_count > 0) RN_RETURN_IF_ERROR(pass_dead(frames, it));
    RN_ASSERT(it->outstanding == 0 && !it->children && frame->live_count > 0);  // invariant 33
    frame->first = it->next;
    if (!frame->first) frame->last = NULL;
    frame->live_count--;
    free_iteration(frames, it);
    if (!frame->first) return finish_frame(frames, frame);
  }
  return RN_OK;
}

// Readers of an Exit's value outside of all loops can wait for the end of the loop too.
static rn_status_t notify_behind(rn_frames_t* frames, rn_iteration_t* it, const rn_instr_t* instr) {
  size_t before = frames->ready.count;
  RN_RETURN_IF_ERROR(notify(frames, it, instr, false));
  while (!it->frame->parent && frames->ready.count > before) {
    RN_RETURN_IF_ERROR(rn_vec_push(&frames->behind, frames->allocator,
                                   frames->ready.items[frames->ready.count - 1]));
    frames->ready.count--;
  }
  return RN_OK;
}

rn_status_t rn_frames_propagate(rn_frames_t* frames, rn_iteration_t* it, int32_t number,
                                bool is_dead, rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  switch (instr->role) {
    case RN_ROLE_ENTER:
      return enter_frame(frames, it, number, value, is_dead);
    case RN_ROLE_EXIT:
      RN_RETURN_IF_ERROR(deliver(frames, it->frame->parent, instr, 0, value, true));
      return notify_behind(frames, it->frame->parent, instr);
    case RN_ROLE_NEXT_ITERATION:
      return next_iteration(frames, it, number, value);
    default:
      return notify(frames, it, instr, is_dead);
  }
}

rn_status_t rn_frames_count_off(rn_frames_t* frames, rn_iteration_t* it) {
  RN_ASSERT(it->outstanding > 0);
  it->outstanding--;
  return it->outstanding == 0 ? finish_iterations(frames, it->frame) : RN_OK;
}

rn_status_t rn_frames_finish(rn_frames_t* frames, rn_iteration_t* it, int32_t number, bool is_dead,
                             rn_tensor_t* value) {
  const rn_instr_t* instr = &frames->state->plan->instrs[number];
  rn_status_t status = rn_frames_propagate(frames, it, number, is_dead, value);
  release_inputs(frames, it, instr);
  RN_ASSERT(it->outstanding > 0);
  if (rn_ok(status)) return rn_frames_count_off(frames, it);
  it->outstanding--;
  return status;
}

rn_tensor_t* rn_frames_value(rn_state_t* state, int32_t slot) {
  int32_t producer = state->plan->slots[slot].producer;
  if (producer >= 0 && state->plan->instrs[producer].out_frame != 0) return &state->slots[slot];
  return &state->frames->root->first->slots[state->plan->slot_local[slot]];
}

static rn_status_t frames_create(rn_state_t* state) {
  rn_plan_t* plan = state->plan;
  rn_frames_t* frames = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(plan->allocator, &frames));
  frames->allocator = plan->allocator;
  frames->state = state;
  rn_status_t status =
      rn_alloc_array(plan->allocator, (size_t)plan->frame_count, sizeof *frames->free_iterations,
                     (void**)&frames->free_iterations);
  if (!rn_ok(status)) {
    rn_frames_destroy(frames);
    return status;
  }
  state->frames = frames;  // complete, because the state returns to the free list in any case
  return RN_OK;
}

rn_status_t rn_frames_start(rn_state_t* state) {
  rn_plan_t* plan = state->plan;
  if (!state->frames) RN_RETURN_IF_ERROR(frames_create(state));
  rn_frames_t* frames = state->frames;
  frames->is_begun = false;
  frames->work = 0;
  RN_RETURN_IF_ERROR(new_frame(frames, 0, NULL, &frames->root));
  rn_iteration_t* it = frames->root->first;
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
      if (!rn_tensor_is_set(rn_frames_input(frames, it, instr, i)) ||
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
  frames->ready.count = frames->behind.count = 0;
  rn_frames_drop_landed(frames);
  frames->ready.count = frames->behind.count = 0;
  if (frames->root) free_frame(frames, frames->root);
  frames->root = NULL;
}

void rn_frames_destroy(rn_frames_t* frames) {
  if (!frames) return;
  const rn_plan_t* plan = frames->state->plan;
  for (int32_t d = 0; frames->free_iterations && d < plan->frame_count; ++d) {
    while (frames->free_iterations[d]) {
      rn_iteration_t* it = frames->free_iterations[d];
      frames->free_iterations[d] = it->next;
      rn_frames_free_loop(frames, &plan->frames[d], it);
      rn_free(frames->allocator, it, iteration_size(&plan->frames[d]));
    }
  }
  while (frames->free_frames) {
    rn_frame_t* frame = frames->free_frames;
    frames->free_frames = frame->next;
    rn_vec_free(&frame->invariants, frames->allocator);
    rn_vec_free(&frame->waiting, frames->allocator);
    rn_vec_free(&frame->dead_exits, frames->allocator);
    RN_FREE(frames->allocator, frame);
  }
  RN_FREE_ARRAY(frames->allocator, frames->free_iterations, plan->frame_count);
  rn_vec_free(&frames->ready, frames->allocator);
  rn_vec_free(&frames->behind, frames->allocator);
  RN_FREE(frames->allocator, frames);
}
