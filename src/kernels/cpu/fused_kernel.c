// The op that fusion makes: runs the program in its attribute. See fused.h and graph/pass_fuse.c.
#include "kernels/cpu/fused.h"
#include "kernels/kernel_rows.h"

typedef struct fused_t {
  rn_fused_t program;
  rn_fused_step_t* steps;  // Owned
  uint64_t sharable;       // inputs whose memory the result may take over
  rn_allocator_t allocator;
} fused_t;

// Four numbers a step: code, a, b, out. The result is the last operand.
static rn_status_t fused_init(const rn_kernel_init_t* init, void* state) {
  fused_t* fused = state;
  const rn_attr_value_t* code = rn_init_attr(init, "program");
  int32_t count = code->count / 4;
  if (count < 1 || code->count % 4 != 0)
    return rn_invalid_argument("A fused program of %d numbers", code->count);
  fused->allocator = init->allocator;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(init->allocator, (size_t)count, &fused->steps));
  for (int32_t i = 0; i < count; ++i) {
    const int64_t* step = code->list_i + 4 * i;
    fused->steps[i] =
        (rn_fused_step_t){(uint16_t)step[0], (int16_t)step[1], (int16_t)step[2], (int16_t)step[3]};
  }
  int16_t inputs = (int16_t)init->input_count;
  fused->program = (rn_fused_t){.dtype = rn_init_type(init, "T"),
                                .inputs = inputs,
                                .temporaries = (int16_t)(fused->steps[count - 1].out - inputs),
                                .outputs = 1,
                                .step_count = count,
                                .steps = fused->steps};
  RN_RETURN_IF_ERROR(rn_fused_check(&fused->program));
  for (int i = 0; i < inputs; ++i)
    if (rn_fused_may_share(&fused->program, 0, i)) fused->sharable |= UINT64_C(1) << i;
  return RN_OK;
}

static void fused_destroy(void* state) {
  fused_t* fused = state;
  RN_FREE_ARRAY(fused->allocator, fused->steps, fused->program.step_count);
}

// The planner fuses over known shapes only; what was inferred is checked again, for nobody else
// does.
static rn_status_t fused_compute(rn_kernel_ctx_t* ctx) {
  const fused_t* fused = ctx->state;
  const rn_tensor_t* widest = rn_in(ctx, 0);
  uint64_t candidates = 0;
  for (int i = 1; i < fused->program.inputs; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    if (input->count > widest->count ||
        (input->count == widest->count && input->rank > widest->rank))
      widest = input;
  }
  const void* in[RN_FUSED_OPERANDS];
  int steps[RN_FUSED_OPERANDS];
  for (int i = 0; i < fused->program.inputs; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    bool is_whole = rn_tensor_same_shape(input, widest);
    if (!is_whole && input->count != 1)
      return rn_internal("A fused chain over %lld elements got one of %lld",
                         (long long)widest->count, (long long)input->count);
    in[i] = input->data;
    steps[i] = is_whole && widest->count != 1;
    if (is_whole) candidates |= UINT64_C(1) << i;
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output_in_place(ctx, 0, candidates & fused->sharable, rn_tensor_shape(widest), &out));
  void* outs[1] = {out->data};
  rn_fused_run(rn_ctx_pool(ctx), &fused->program, in, steps, outs, out->count);
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "_FusedElementwise",
     .device = "CPU",
     .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .flags = RN_KERNEL_IN_PLACE,
     .state_size = sizeof(fused_t),
     .init = fused_init,
     .destroy = fused_destroy,
     .compute = fused_compute},
};
RN_KERNEL_FAMILY(cpu_fused, rows);
