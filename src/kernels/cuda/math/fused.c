// Fused elementwise nodes (step/fuse_loops.c): one program of several operations.
#include "kernels/cuda/jit/shapes.h"
#include "kernels/cuda/loops.h"

#define NUMBERS 6  // per operation: code, type, four operands

typedef struct fused_loops_t {
  int count;
  const int64_t* program;  // Owned
  rn_allocator_t allocator;
} fused_loops_t;

static rn_status_t fused_init(const rn_kernel_init_t* init, void* state) {
  fused_loops_t* fused = state;
  const rn_attr_value_t* program = rn_init_attr(init, "program");
  if (program->count % NUMBERS) return rn_internal("The program of a fused node is cut short");
  fused->count = program->count / NUMBERS;
  for (int i = 0; i < fused->count; ++i) {
    const int64_t* row = &program->list_i[NUMBERS * i];
    if (row[0] < 1 || row[0] > RN_SCALAR_COUNT)
      return rn_internal("Operation %d of a fused node is unknown", i);
    for (int k = 2; k < NUMBERS; ++k)
      if (row[k] >= init->input_count + i) return rn_internal("Operation %d reads a later one", i);
  }
  int64_t* copy = NULL;
  fused->allocator = init->allocator;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(init->allocator, (size_t)program->count + 1, &copy));
  memcpy(copy, program->list_i, (size_t)program->count * sizeof *copy);
  fused->program = copy;
  return RN_OK;
}

static void fused_destroy(void* state) {
  fused_loops_t* fused = state;
  if (fused->program)
    RN_FREE_ARRAY(fused->allocator, (int64_t*)fused->program, NUMBERS * fused->count + 1);
}

// The shape that all inputs broadcast to.
static bool common_shape(const rn_kernel_ctx_t* ctx, int64_t* dims, int* out_rank) {
  int rank = 0;
  for (int i = 0; i < ctx->kernel->input_count; ++i)
    if (rn_in(ctx, i)->rank > rank) rank = rn_in(ctx, i)->rank;
  for (int d = 0; d < rank; ++d) dims[d] = 1;
  for (int i = 0; i < ctx->kernel->input_count; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    for (int d = 0; d < input->rank; ++d) {
      int64_t size = rn_tensor_dim(input, d), *to = &dims[rank - input->rank + d];
      if (size != 1 && *to != 1 && size != *to) return false;
      if (size != 1) *to = size;
    }
  }
  *out_rank = rank;
  return true;
}

static void write_program(const fused_loops_t* fused, const rn_kernel_ctx_t* ctx,
                          const rn_jit_view_t* view, rn_jit_program_t* program) {
  int values[RN_JIT_MAX_VALUES], count = ctx->kernel->input_count;
  rn_jit_begin(program, view->rank, 0);
  for (int i = 0; i < count; ++i)
    values[i] = rn_jit_input(program, rn_in(ctx, i)->dtype, view->access[i], RN_JIT_FULL);
  for (int i = 0; i < fused->count; ++i) {
    const int64_t* row = &fused->program[NUMBERS * i];
    int operands[RN_JIT_MAX_OPERANDS];
    for (int k = 0; k < RN_JIT_MAX_OPERANDS; ++k)
      operands[k] = row[2 + k] < 0 ? -1 : values[row[2 + k]];
    values[count++] = rn_jit_op(program, (rn_scalar_code_t)(row[0] - 1), operands);
  }
  rn_jit_output(program, values[count - 1], rn_dtype_base(ctx->kernel->output_types[0]));
}

static rn_status_t fused_compute(rn_kernel_ctx_t* ctx) {
  const fused_loops_t* fused = ctx->state;
  int64_t dims[RN_MAX_RANK];
  int rank;
  if (!common_shape(ctx, dims, &rank)) return rn_internal("Operands of a fused node do not fit");
  rn_shape_t shapes[RN_JIT_MAX_INPUTS], space = {rank, dims};
  rn_jit_operand_t operands[RN_JIT_MAX_INPUTS];
  int inputs = ctx->kernel->input_count;
  uint64_t all = inputs < 64 ? (UINT64_C(1) << inputs) - 1 : ~UINT64_C(0);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, 0, all, space, &out));
  if (out->count == 0) return RN_OK;
  for (int i = 0; i < inputs; ++i) shapes[i] = rn_tensor_shape(rn_in(ctx, i));
  rn_jit_view_t view;
  RN_RETURN_IF_ERROR(rn_jit_broadcast(space, shapes, inputs, &view, operands));
  for (int i = 0; i < inputs; ++i) operands[i].address = (uintptr_t)rn_in(ctx, i)->data;
  rn_jit_program_t program;
  write_program(fused, ctx, &view, &program);
  return rn_cuda_run(ctx, &program, &view.sizes, operands, &out);
}

static const rn_kernel_def_t rows[] = {
    {.op = "_FusedLoops",
     .device = "GPU",
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,
     .state_size = sizeof(fused_loops_t),
     .init = fused_init,
     .destroy = fused_destroy,
     .compute = fused_compute},
};
RN_KERNEL_FAMILY(cuda_fused, rows);
