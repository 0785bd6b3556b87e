// Finds straight loops, and puts the instructions of each in an order in which frames_loop.c runs
// them: see plan.h.
#include "exec/compile.h"

// When an instruction of a loop runs: in every iteration, or only if the condition is true, or only
// if it is false.
enum { ALWAYS = 0, IF_TRUE = 1, IF_FALSE = 2 };

enum { NOBODY = -1, LATER = INT32_MAX };

typedef struct straight_t {
  rn_compile_t* c;
  int32_t frame;
  const rn_frame_def_t* def;
  rn_straight_loop_t* loop;
  const int32_t* members;  // the frame's instructions in order, and its Enters
  int32_t member_count;
  // By instruction of the plan:
  uint8_t* when;
  bool* follows_exit;
  // By slot of the frame:
  int32_t* root;  // the slot whose value it has
  int32_t* last;  // by root: the step that reads it last; LATER if it is needed after all steps
  bool* is_kept;  // by root: the same value in all iterations
  bool* is_for_exits;   // by root: needed when the loop ends
  bool* is_step_value;  // by root: a step makes it
} straight_t;

static const rn_instr_t* instr_at(const straight_t* s, int32_t n) { return &s->c->plan->instrs[n]; }

static int32_t input_slot(const straight_t* s, int32_t n, int32_t i) {
  return s->c->plan->input_locals[instr_at(s, n)->first_input + i];
}

// The instruction that makes the value of input |i| of |n|.
static int32_t maker_of(const straight_t* s, int32_t n, int32_t i) {
  const rn_plan_t* plan = s->c->plan;
  return plan->slots[plan->inputs[instr_at(s, n)->first_input + i]].producer;
}

static bool shares_input(const rn_instr_t* instr) {
  return instr->role == RN_ROLE_MERGE || instr->role == RN_ROLE_SWITCH ||
         instr->role == RN_ROLE_LOOP_COND || instr->role == RN_ROLE_IDENTITY;
}

// An Enter of the parent's that leads into the frame.
static bool is_enter(const straight_t* s, const rn_instr_t* instr) {
  return instr->role == RN_ROLE_ENTER && instr->out_frame == s->frame;
}

static bool is_constant(const straight_t* s, const rn_instr_t* instr) {
  return !instr->compute && instr->output_count > 0 &&
         s->c->plan->slots[instr->first_output].kind == RN_SLOT_CONSTANT;
}

// Whether an instruction may be part of a straight loop, wherever it stands.
static bool is_plain(const straight_t* s, const rn_instr_t* instr) {
  if (instr->async >= 0 || instr->deref_count > 0 || instr->has_loop_fetch) return false;
  switch (instr->role) {
    case RN_ROLE_SWITCH:
    case RN_ROLE_LOOP_COND:
    case RN_ROLE_EXIT:
    case RN_ROLE_NEXT_ITERATION:
      return true;
    case RN_ROLE_MERGE:
      return instr->pending == 0 && instr->input_count == 2;
    case RN_ROLE_CONTROL_TRIGGER:
    case RN_ROLE_SEND:
    case RN_ROLE_RECV:
      return false;
    default:
      return instr->compute || is_constant(s, instr) || instr->output_count == 0;
  }
}

// When |n| runs, by what it waits for. False if it never would.
static bool find_when(straight_t* s, int32_t n) {
  const rn_compile_t* c = s->c;
  const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
  uint8_t when = ALWAYS;
  for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
    int32_t source = rn_ir_source(node, k);
    if (c->fate[source] != RN_FATE_INSTR) return false;
    bool is_value = k < node->input_count;
    if (is_value && rn_ir_is_back_edge(c->ir, node, k)) continue;
    const rn_instr_t* from = instr_at(s, c->instr[source]);
    if (from->frame == s->frame) when |= s->when[c->instr[source]];
    if (is_value && from->role == RN_ROLE_SWITCH)
      when |= node->inputs[k].output == 1 ? IF_TRUE : IF_FALSE;
  }
  s->when[n] = when;
  return when != (IF_TRUE | IF_FALSE);
}

static bool is_in_its_place(const straight_t* s, int32_t n) {
  const rn_instr_t* instr = instr_at(s, n);
  switch (instr->role) {
    case RN_ROLE_EXIT:
      return s->when[n] == IF_FALSE;
    case RN_ROLE_NEXT_ITERATION:
      return s->when[n] == IF_TRUE;
    case RN_ROLE_MERGE:
      return s->when[n] == ALWAYS && instr_at(s, maker_of(s, n, 0))->role == RN_ROLE_ENTER &&
             instr_at(s, maker_of(s, n, 1))->role == RN_ROLE_NEXT_ITERATION &&
             s->def->readers[instr->local_output + 1] == 0;
    case RN_ROLE_SWITCH:
      return s->when[n] == ALWAYS && instr_at(s, maker_of(s, n, 1))->role == RN_ROLE_LOOP_COND;
    case RN_ROLE_LOOP_COND:
      return s->when[n] == ALWAYS;
    default:
      return s->when[n] != IF_FALSE;
  }
}

// Counts the instructions of each kind, and checks them.
static bool check_instrs(straight_t* s) {
  int32_t conditions = 0;
  s->loop->fork = -1;
  for (int32_t i = 0; i < s->member_count; ++i) {
    int32_t n = s->members[i];
    const rn_instr_t* instr = instr_at(s, n);
    if (is_enter(s, instr)) {
      // The value of a loop variable is there in the first iteration only: for its Merge alone.
      if (!instr->is_constant_enter &&
          (instr->edge_count != 1 || s->c->plan->edges[instr->first_edge].role != RN_ROLE_MERGE))
        return false;
      if (instr->has_loop_fetch) return false;
      continue;
    }
    if (!is_plain(s, instr) || !find_when(s, n) || !is_in_its_place(s, n)) return false;
    conditions += instr->role == RN_ROLE_LOOP_COND;
    s->loop->var_count += instr->role == RN_ROLE_MERGE;
    s->loop->exit_count += instr->role == RN_ROLE_EXIT;
    if (instr->role == RN_ROLE_SWITCH && s->loop->fork < 0) s->loop->fork = n;
    bool is_step = instr->compute && !shares_input(instr);
    s->loop->step_count += is_step;
    s->loop->condition_count += is_step && s->when[n] == ALWAYS;
    s->loop->input_total += is_step ? instr->input_count : 0;
    s->loop->constant_count += is_constant(s, instr);
  }
  return conditions == 1 && s->loop->fork >= 0;
}

// Whether a value that leaves the loop leads back into it: then not all Enters arrive before it
// starts. Only instructions between the first Exit and the last Enter can be on such a way.
static bool enters_what_left(straight_t* s) {
  const rn_compile_t* c = s->c;
  int32_t first = INT32_MAX, last = -1;
  for (int32_t i = 0; i < s->member_count; ++i) {
    int32_t n = s->members[i];
    if (instr_at(s, n)->role == RN_ROLE_EXIT && n < first) first = n;
    if (is_enter(s, instr_at(s, n))) last = n;
  }
  for (int32_t n = first; n <= last; ++n) {
    const rn_instr_t* instr = instr_at(s, n);
    s->follows_exit[n] = instr->role == RN_ROLE_EXIT && instr->frame == s->frame;
    const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
    for (int32_t k = 0; !s->follows_exit[n] && k < rn_ir_edge_count(node); ++k) {
      int32_t source = rn_ir_source(node, k);
      if (c->fate[source] != RN_FATE_INSTR) continue;
      int32_t from = c->instr[source];
      s->follows_exit[n] = from >= first && from < n && s->follows_exit[from];
    }
    if (s->follows_exit[n] && is_enter(s, instr)) return true;
  }
  return false;
}

static rn_status_t make_arrays(straight_t* s) {
  rn_arena_t* arena = &s->c->plan->arena;
  rn_straight_loop_t* loop = s->loop;
  size_t slots = (size_t)s->def->slot_count + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->step_count + 1, &loop->steps));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->input_total + 1, &loop->inputs));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, slots, &loop->releases));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, slots, &loop->late));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->constant_count + 1, &loop->constants));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->var_count + 1, &loop->vars));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->exit_count + 1, &loop->exits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)loop->exit_count + 1, &loop->exit_sources));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->c->scratch, slots, &s->root));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->c->scratch, slots, &s->last));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->c->scratch, slots, &s->is_kept));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->c->scratch, slots, &s->is_for_exits));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(s->c->scratch, slots, &s->is_step_value));
  for (size_t i = 0; i < slots; ++i) {
    s->root[i] = (int32_t)i;
    s->last[i] = NOBODY;
  }
  return RN_OK;
}

// A step reads its inputs; |number| is the step's.
static void add_step(straight_t* s, int32_t n, int32_t number, int32_t* inout_inputs) {
  const rn_instr_t* instr = instr_at(s, n);
  s->loop->steps[number] = (rn_loop_step_t){.instr = n, .first_input = *inout_inputs};
  for (int32_t i = 0; i < instr->input_count; ++i) {
    int32_t root = s->root[input_slot(s, n, i)];
    s->loop->inputs[(*inout_inputs)++] = root;
    s->last[root] = number;
  }
  for (int32_t o = 0; o < instr->output_count; ++o)
    s->is_step_value[instr->local_output + o] = true;
}

// Follows shared values to their roots, and lists variables, constants, exits and the condition. A
// Merge stands before everything that reads it, its NextIteration after.
static void list_parts(straight_t* s) {
  rn_straight_loop_t* loop = s->loop;
  int32_t vars = 0, constants = 0, exits = 0;
  for (int32_t i = 0; i < s->member_count; ++i) {
    int32_t n = s->members[i];
    const rn_instr_t* instr = instr_at(s, n);
    if (is_enter(s, instr)) {
      s->is_kept[instr->local_output] = instr->is_constant_enter;
    } else if (instr->role == RN_ROLE_MERGE) {
      loop->vars[vars++] = (rn_loop_var_t){
          .enter = maker_of(s, n, 0), .next = maker_of(s, n, 1), .slot = instr->local_output};
    } else if (shares_input(instr)) {
      for (int32_t o = 0; o < instr->output_count; ++o)
        s->root[instr->local_output + o] = s->root[input_slot(s, n, 0)];
      if (instr->role == RN_ROLE_LOOP_COND) loop->condition = s->root[input_slot(s, n, 0)];
    } else if (instr->role == RN_ROLE_EXIT) {
      loop->exits[exits] = n;
      loop->exit_sources[exits++] = s->root[input_slot(s, n, 0)];
    } else if (is_constant(s, instr)) {
      loop->constants[constants++] = n;
      s->is_kept[instr->local_output] = true;
    }
  }
  for (int32_t v = 0; v < vars; ++v)
    loop->vars[v].source = s->root[input_slot(s, loop->vars[v].next, 0)];
}

// Puts the steps that the condition does not decide first; both parts stay in the plan's order.
static void list_steps(straight_t* s) {
  int32_t number = 0, inputs = 0;
  for (int when = ALWAYS; when <= IF_TRUE; ++when)
    for (int32_t i = 0; i < s->member_count; ++i) {
      int32_t n = s->members[i];
      const rn_instr_t* instr = instr_at(s, n);
      if (instr->compute && !shares_input(instr) && s->when[n] == when)
        add_step(s, n, number++, &inputs);
    }
}

// What is needed after the steps: values of the next iteration, and, as long as it may be the last,
// those of the exits and the condition.
static void find_last_readers(straight_t* s) {
  rn_straight_loop_t* loop = s->loop;
  s->is_for_exits[loop->condition] = true;
  for (int32_t e = 0; e < loop->exit_count; ++e) s->is_for_exits[loop->exit_sources[e]] = true;
  for (int32_t v = loop->var_count; v-- > 0;) {
    int32_t source = loop->vars[v].source;
    loop->vars[v].is_last = !s->is_kept[source] && s->last[source] != LATER;
    s->last[source] = LATER;
  }
}

static bool is_released_by(const straight_t* s, int32_t root, int32_t step) {
  bool is_early = step < s->loop->condition_count;
  return s->last[root] == step && !s->is_kept[root] && !(is_early && s->is_for_exits[root]);
}

static void list_releases(straight_t* s) {
  rn_straight_loop_t* loop = s->loop;
  int32_t count = 0;
  bool* is_done = s->is_step_value;  // from here on: by root, a step makes it and none releases it
  for (int32_t k = 0; k < loop->step_count; ++k) {
    rn_loop_step_t* step = &loop->steps[k];
    const rn_instr_t* instr = instr_at(s, step->instr);
    step->first_release = count;
    for (int32_t i = 0; i < instr->input_count; ++i) {
      int32_t root = loop->inputs[step->first_input + i];
      if (!is_released_by(s, root, k)) continue;
      if (i < 64) step->dying |= instr->dying & (UINT64_C(1) << i);
      bool is_repeated = false;
      for (int32_t r = step->first_release; r < count; ++r)
        is_repeated |= loop->releases[r] == root;
      if (!is_repeated) loop->releases[count++] = root;
      is_done[root] = false;
    }
    for (int32_t o = instr->local_output; o < instr->local_output + instr->output_count; ++o) {
      if (s->last[o] != NOBODY || s->is_for_exits[o]) continue;
      loop->releases[count++] = o;
      is_done[o] = false;
    }
    step->release_count = count - step->first_release;
  }
  for (int32_t v = 0; v < loop->var_count; ++v)
    if (loop->vars[v].is_last) is_done[loop->vars[v].source] = false;
  for (int32_t i = 0; i < s->def->slot_count; ++i)
    if (is_done[i]) loop->late[loop->late_count++] = i;
}

static rn_status_t try_frame(straight_t* s) {
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&s->c->plan->arena, &s->loop));
  if (!check_instrs(s) || enters_what_left(s)) return RN_OK;
  RN_RETURN_IF_ERROR(make_arrays(s));
  list_parts(s);
  list_steps(s);
  find_last_readers(s);
  list_releases(s);
  s->c->plan->frames[s->frame].loop = s->loop;
  return RN_OK;
}

// The frame whose loop |instr| is a part of.
static int32_t loop_of(const rn_instr_t* instr) {
  return instr->role == RN_ROLE_ENTER ? instr->out_frame : instr->frame;
}

rn_status_t rn_compile_loops(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  if (!plan->device->is_host || plan->frame_count < 2) return RN_OK;
  straight_t s = {.c = c};
  size_t count = (size_t)plan->instr_count + 1;
  int32_t *members = NULL, *ends = NULL;
  bool* has_inner = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, count, &s.when));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, count, &s.follows_exit));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, count, &members));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)plan->frame_count + 1, &ends));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, (size_t)plan->frame_count, &has_inner));
  for (int32_t n = 0; n < plan->instr_count; ++n) ends[loop_of(&plan->instrs[n]) + 1]++;
  for (int32_t d = 0; d < plan->frame_count; ++d) ends[d + 1] += ends[d];
  for (int32_t n = 0; n < plan->instr_count; ++n)
    members[ends[loop_of(&plan->instrs[n])]++] = n;  // ends[d] is the frame's end afterwards
  for (int32_t d = 1; d < plan->frame_count; ++d) has_inner[plan->frames[d].parent] = true;
  for (int32_t d = 1; d < plan->frame_count; ++d) {
    if (has_inner[d]) continue;
    s.frame = d;
    s.def = &plan->frames[d];
    s.members = members + ends[d - 1];
    s.member_count = ends[d] - ends[d - 1];
    RN_RETURN_IF_ERROR(try_frame(&s));
  }
  return RN_OK;
}
