// Static frames: the loop of each instruction, the edges between instructions, and the initial
// state of an iteration.
#include "exec/compile.h"

#include "base/hash.h"

// Values up to this many bytes live in their iteration's own memory; larger ones get buffers that
// travel between iterations.
#define SMALL_BYTES 256

typedef struct frames_t {
  rn_compile_t* c;
  int32_t* frame;  // by IR node: the frame its *outputs* belong to; -1: not known yet
  RN_VEC(rn_frame_def_t) defs;
} frames_t;

static rn_status_t find_frame(frames_t* f, int32_t parent, const rn_ir_node_t* enter,
                              int32_t* out) {
  const rn_attr_value_t* name = rn_ir_attr(enter, RN_STR("frame_name"));
  const rn_attr_value_t* parallel = rn_ir_attr(enter, RN_STR("parallel_iterations"));
  rn_str_t text = name ? name->s : RN_STR("");
  for (size_t d = 1; d < f->defs.count; ++d) {
    if (f->defs.items[d].parent == parent && rn_str_eq(f->defs.items[d].name, text)) {
      *out = (int32_t)d;
      return RN_OK;
    }
  }
  rn_frame_def_t def = {.name_hash = rn_murmur_hash64(text, RN_HASH64_SEED),
                        .parent = parent,
                        .parallel_iterations = parallel ? (int32_t)parallel->i : 10};
  if (def.parallel_iterations < 1)
    return rn_invalid_argument("parallel_iterations of '%.*s' must be at least 1",
                               RN_STR_ARGS(enter->name));
  RN_RETURN_IF_ERROR(rn_arena_str(&f->c->plan->arena, text, &def.name));
  *out = (int32_t)f->defs.count;
  return rn_vec_push(&f->defs, f->c->plan->allocator, def);
}

static rn_status_t frames_differ(const frames_t* f, const rn_ir_node_t* node, int32_t a,
                                 int32_t b) {
  const rn_ir_node_t* x = rn_compile_node(f->c, a);
  const rn_ir_node_t* y = rn_compile_node(f->c, b);
  return rn_invalid_argument(
      "{{node %.*s}} has inputs from different frames. The input {{node %.*s}} is in frame '%.*s'. "
      "The input "
      "{{node %.*s}} is in frame '%.*s'.",
      RN_STR_ARGS(node->name), RN_STR_ARGS(x->name), RN_STR_ARGS(f->defs.items[f->frame[a]].name),
      RN_STR_ARGS(y->name), RN_STR_ARGS(f->defs.items[f->frame[b]].name));
}

// The frame a node runs in is that of its inputs, which must agree; back edges into a Merge are
// checked afterwards.
static rn_status_t input_frame(frames_t* f, int32_t index, int32_t* out) {
  const rn_ir_node_t* node = rn_compile_node(f->c, index);
  int32_t from = -1;
  for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
    int32_t source = rn_ir_source(node, k);
    if (source < 0 || f->c->fate[source] == RN_FATE_ELSEWHERE || f->frame[source] < 0) continue;
    if (from >= 0 && f->frame[source] != f->frame[from])
      return frames_differ(f, node, from, source);
    if (from < 0) from = source;
  }
  *out = from < 0 ? 0 : f->frame[from];
  return RN_OK;
}

static rn_status_t assign_frames(frames_t* f) {
  rn_compile_t* c = f->c;
  rn_plan_t* plan = c->plan;
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] == RN_FATE_ELSEWHERE) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    int32_t runs_in = 0;
    RN_RETURN_IF_ERROR(input_frame(f, index, &runs_in));
    int32_t belongs_to = runs_in;
    bool is_instr = c->fate[index] == RN_FATE_INSTR;
    if (is_instr && node->op->role == RN_ROLE_ENTER) {
      RN_RETURN_IF_ERROR(find_frame(f, runs_in, node, &belongs_to));
      f->defs.items[belongs_to].enter_count++;
    } else if (is_instr && node->op->role == RN_ROLE_EXIT) {
      belongs_to = f->defs.items[runs_in].parent;
      if (belongs_to < 0)
        return rn_invalid_argument(
            "Invalid Exit op: Cannot find a corresponding Enter op.\n\t [[{{node %.*s}}]]",
            RN_STR_ARGS(node->name));
    }
    f->frame[index] = belongs_to;
    if (!is_instr) continue;
    rn_instr_t* instr = &plan->instrs[c->instr[index]];
    instr->frame = runs_in;
    instr->out_frame = belongs_to;
    instr->local = f->defs.items[runs_in].instr_count++;
    if (node->op->role == RN_ROLE_ENTER) {
      const rn_attr_value_t* is_constant = rn_ir_attr(node, RN_STR("is_constant"));
      instr->is_constant_enter = is_constant && is_constant->b;
    }
  }
  return RN_OK;
}

// Topological order skips back edges: the one from a NextIteration to its Merge must stay within
// the loop.
static rn_status_t check_back_edges(frames_t* f) {
  rn_compile_t* c = f->c;
  for (int32_t n = 0; n < c->plan->instr_count; ++n) {
    const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
    for (int32_t i = 0; i < node->input_count; ++i) {
      int32_t source = node->inputs[i].node;
      if (c->fate[source] == RN_FATE_INSTR && f->frame[source] != c->plan->instrs[n].frame)
        return rn_invalid_argument(
            "{{node %.*s}} takes an input from {{node %.*s}}, which is in another frame: '%.*s'",
            RN_STR_ARGS(node->name), RN_STR_ARGS(rn_compile_node(c, source)->name),
            RN_STR_ARGS(f->defs.items[f->frame[source]].name));
      if (c->fate[source] == RN_FATE_INSTR && rn_ir_is_back_edge(c->ir, node, i) &&
          c->plan->instrs[n].frame == 0)
        return rn_invalid_argument("{{node %.*s}} closes a loop that no Enter opens",
                                   RN_STR_ARGS(node->name));
    }
  }
  return RN_OK;
}

// Edges by source: counted, then placed.
static rn_status_t make_edges(frames_t* f) {
  rn_compile_t* c = f->c;
  rn_plan_t* plan = c->plan;
  int32_t total = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t n = 0; n < plan->instr_count; ++n) {
      const rn_ir_node_t* node = rn_compile_node(c, c->node_of[n]);
      rn_instr_t* instr = &plan->instrs[n];
      for (int32_t k = 0; k < rn_ir_edge_count(node); ++k) {
        bool is_control = k >= node->input_count;
        int32_t source = rn_ir_source(node, k);
        if (c->fate[source] != RN_FATE_INSTR) continue;
        rn_instr_t* from = &plan->instrs[c->instr[source]];
        if (pass == 0) {
          from->edge_count++;
          if (is_control || instr->role != RN_ROLE_MERGE) instr->pending++;
          continue;
        }
        int32_t slot = is_control ? -1 : plan->slot_local[rn_compile_slot(c, node->inputs[k])];
        plan->edges[from->first_edge + from->edge_count++] =
            (rn_edge_out_t){n, instr->local, slot, instr->role};
      }
    }
    if (pass == 1) break;
    for (int32_t n = 0; n < plan->instr_count; ++n) {
      plan->instrs[n].first_edge = total;
      total += plan->instrs[n].edge_count;
      plan->instrs[n].edge_count = 0;
    }
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)total + 1, &plan->edges));
  }
  return RN_OK;
}

// The inputs and releases of each instruction, by number within its frame.
static rn_status_t number_inputs(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  size_t total = (size_t)plan->input_total + 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, total, &plan->input_locals));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, total, &plan->releases));
  for (int32_t n = 0; n < plan->instr_count; ++n) {
    rn_instr_t* instr = &plan->instrs[n];
    instr->first_release = plan->release_total;
    for (int32_t i = instr->first_input; i < instr->first_input + instr->input_count; ++i) {
      int32_t local = plan->input_locals[i] = plan->slot_local[plan->inputs[i]];
      bool is_repeated = false;
      for (int32_t k = instr->first_input; k < i; ++k)
        is_repeated |= plan->input_locals[k] == local;
      if (!is_repeated) plan->releases[plan->release_total++] = local;
      bool may_die = plan->slots[plan->inputs[i]].kind == RN_SLOT_DYNAMIC;
      if (may_die && i - instr->first_input < 64)
        instr->dying |= UINT64_C(1) << (i - instr->first_input);
    }
    instr->release_count = plan->release_total - instr->first_release;
    if (instr->output_count) instr->local_output = plan->slot_local[instr->first_output];
    bool is_loop = instr->out_frame != 0;
    for (int32_t o = instr->first_output; o < instr->first_output + instr->output_count; ++o) {
      instr->has_unread |= plan->slots[o].readers == 0 && (is_loop || !c->is_fetched[o]);
      instr->has_loop_fetch |= is_loop && c->is_fetched[o];
    }
  }
  return RN_OK;
}

static bool has_own_memory(const rn_compile_t* c, int32_t slot, rn_shape_t shape) {
  const rn_plan_t* plan = c->plan;
  if (c->producer[slot] < 0 || !plan->device->is_host) return false;
  const rn_instr_t* instr = &plan->instrs[c->producer[slot]];
  // Switch, Merge and identities forward their input; only a value that changes iteration is
  // copied.
  bool crosses = instr->role == RN_ROLE_ENTER || instr->role == RN_ROLE_EXIT ||
                 instr->role == RN_ROLE_NEXT_ITERATION;
  bool computes = instr->compute && instr->async < 0 &&
                  !(rn_instr_flags(instr) & (RN_KERNEL_FORWARDS | RN_KERNEL_OWN_OUTPUTS));
  rn_dtype_t dtype = plan->slots[slot].dtype;
  int64_t count;
  return (crosses || computes) && !rn_dtype_is_ref(dtype) && rn_dtype_is_plain(dtype) &&
         rn_shape_is_full(shape) && rn_shape_count(shape, &count) && count > 0 &&
         count <= SMALL_BYTES && (size_t)count * rn_dtype_size(dtype) <= SMALL_BYTES &&
         slot - instr->first_output < 64;
}

static rn_status_t number_slots(frames_t* f) {
  rn_compile_t* c = f->c;
  rn_plan_t* plan = c->plan;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)plan->slot_count + 1, &plan->slot_local));
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] != RN_FATE_VALUE && c->fate[index] != RN_FATE_INSTR) continue;
    rn_frame_def_t* def = &f->defs.items[f->frame[index]];
    for (int32_t o = 0; o < rn_compile_node(c, index)->output_count; ++o)
      plan->slot_local[c->first_slot[index] + o] = def->slot_count++;
  }
  for (size_t d = 0; d < f->defs.count; ++d) {
    rn_frame_def_t* def = &f->defs.items[d];
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->instr_count + 1, &def->pending));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->slot_count + 1, &def->slots));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->slot_count + 1, &def->readers));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->slot_count + 1, &def->offsets));
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->slot_count + 1, &def->templates));
  }
  return RN_OK;
}

// For a plan that sends from within loops: counted, then listed.
static rn_status_t list_shared(frames_t* f) {
  rn_plan_t* plan = f->c->plan;
  bool is_shared = false;
  for (int32_t n = 0; n < plan->instr_count; ++n)
    is_shared |= plan->instrs[n].role == RN_ROLE_SEND && plan->instrs[n].frame != 0;
  for (int pass = 0; is_shared && pass < 2; ++pass) {
    for (int32_t n = 0; n < plan->instr_count; ++n) {
      rn_frame_def_t* def = &f->defs.items[plan->instrs[n].frame];
      if (plan->instrs[n].role == RN_ROLE_SEND) {
        if (pass == 1) def->sends[def->send_count] = n;
        def->send_count++;
      } else if (plan->instrs[n].role == RN_ROLE_NEXT_ITERATION) {
        if (pass == 1) def->nexts[def->next_count] = n;
        def->next_count++;
      }
    }
    for (size_t d = 0; pass == 0 && d < f->defs.count; ++d) {
      rn_frame_def_t* def = &f->defs.items[d];
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->send_count, &def->sends));
      RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&plan->arena, (size_t)def->next_count, &def->nexts));
      def->send_count = def->next_count = 0;
    }
  }
  return RN_OK;
}

static rn_status_t describe_iterations(frames_t* f) {
  rn_compile_t* c = f->c;
  rn_plan_t* plan = c->plan;
  for (int32_t n = 0; n < plan->instr_count; ++n)
    f->defs.items[plan->instrs[n].frame].pending[plan->instrs[n].local] = plan->instrs[n].pending;
  for (int32_t i = 0; i < c->order_count; ++i) {
    int32_t index = c->order[i];
    if (c->fate[index] != RN_FATE_VALUE && c->fate[index] != RN_FATE_INSTR) continue;
    const rn_ir_node_t* node = rn_compile_node(c, index);
    rn_frame_def_t* def = &f->defs.items[f->frame[index]];
    for (int32_t o = 0; o < node->output_count; ++o) {
      int32_t slot = c->first_slot[index] + o;
      int32_t local = plan->slot_local[slot];
      def->slots[local] = slot;
      def->offsets[local] = SIZE_MAX;
      // A fetched value counts one reader that never runs; within a loop it is copied at once. So
      // does a feed, which a replay of the step reads again.
      bool stays =
          (c->is_fetched[slot] || plan->slots[slot].kind == RN_SLOT_FEED) && f->frame[index] == 0;
      def->readers[local] = plan->slots[slot].readers + (stays ? 1 : 0);
      if (!has_own_memory(c, slot, node->shapes[o])) continue;
      RN_RETURN_IF_ERROR(
          rn_tensor_init(&def->templates[local], plan->slots[slot].dtype, node->shapes[o]));
      if (def->templates[local].rank > RN_INLINE_DIMS) {  // iterations copy templates as they are
        rn_tensor_clear(&def->templates[local]);
        continue;
      }
      def->offsets[local] = def->memory;
      if (plan->instrs[c->producer[slot]].compute)
        plan->instrs[c->producer[slot]].planned |= UINT64_C(1) << o;
      def->memory += (rn_tensor_bytes(&def->templates[local]) + 15) & ~(size_t)15;
    }
  }
  return RN_OK;
}

rn_status_t rn_compile_frames(rn_compile_t* c) {
  rn_plan_t* plan = c->plan;
  frames_t f = {.c = c};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(c->scratch, c->ir->nodes.count + 1, &f.frame));
  memset(f.frame, 0xff, (c->ir->nodes.count + 1) * sizeof *f.frame);
  rn_status_t status =
      rn_vec_push(&f.defs, plan->allocator,
                  (rn_frame_def_t){.name = RN_STR(""), .parent = -1, .parallel_iterations = 1});
  if (rn_ok(status)) status = rn_compile_lifetimes(c);
  if (rn_ok(status)) status = assign_frames(&f);
  if (rn_ok(status)) status = check_back_edges(&f);
  if (rn_ok(status)) status = number_slots(&f);
  if (rn_ok(status)) status = number_inputs(c);
  if (rn_ok(status)) status = make_edges(&f);
  if (rn_ok(status)) status = describe_iterations(&f);
  if (rn_ok(status)) status = list_shared(&f);
  if (rn_ok(status)) status = RN_ARENA_ARRAY(&plan->arena, f.defs.count, &plan->frames);
  if (rn_ok(status)) {
    memcpy(plan->frames, f.defs.items, f.defs.count * sizeof *plan->frames);
    plan->frame_count = (int32_t)f.defs.count;
    status = rn_compile_loops(c);
  }
  rn_vec_free(&f.defs, plan->allocator);
  return status;
}
