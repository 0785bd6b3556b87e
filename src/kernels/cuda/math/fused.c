// Fused elementwise nodes and reductions (step/fuse_loops.c): one program of several operations.
#include "device/part.h"
#include "kernels/cuda/ahead.h"
#include "kernels/cuda/jit/shapes.h"
#include "kernels/cuda/loops.h"

#define NUMBERS 6  // per operation: code, type, four operands

typedef struct fused_loops_t {
  int count, result_count;
  const int64_t* program;  // Owned, with |results| behind it
  const int64_t* results;
  int begin, end;  // the axes that reductions take out
  bool keeps_dims, reduces;
  rn_allocator_t allocator;
} fused_loops_t;

static bool is_known(int64_t code) {
  if (code == RN_LOOP_CASTS || code == RN_LOOP_REPEATS) return true;
  if (code & RN_LOOP_REDUCES) return (code & ~(int64_t)RN_LOOP_REDUCES) <= RN_JIT_VARIANCE;
  return code >= 1 && code <= RN_SCALAR_COUNT;
}

static rn_status_t check_program(const rn_kernel_init_t* init, fused_loops_t* fused) {
  const rn_attr_value_t* program = rn_init_attr(init, "program");
  if (program->count % NUMBERS) return rn_internal("The program of a fused node is cut short");
  fused->count = program->count / NUMBERS;
  for (int i = 0; i < fused->count; ++i) {
    const int64_t* row = &program->list_i[NUMBERS * i];
    if (!is_known(row[0])) return rn_internal("Operation %d of a fused node is unknown", i);
    for (int k = 2; k < NUMBERS; ++k)
      if (row[k] >= init->input_count + i) return rn_internal("Operation %d reads a later one", i);
    fused->reduces |= row[0] & RN_LOOP_REDUCES;
  }
  const rn_attr_value_t* results = rn_init_attr(init, "results");
  fused->result_count = results->count;
  if (results->count != init->output_count || results->count > RN_JIT_MAX_OUTPUTS ||
      init->input_count > RN_JIT_MAX_INPUTS)
    return rn_internal("A fused node has %d results", results->count);
  for (int i = 0; i < results->count; ++i)
    if (results->list_i[i] < 0 || results->list_i[i] >= init->input_count + fused->count)
      return rn_internal("Result %d of a fused node is unknown", i);
  return RN_OK;
}

static rn_status_t fused_init(const rn_kernel_init_t* init, void* state) {
  fused_loops_t* fused = state;
  RN_RETURN_IF_ERROR(check_program(init, fused));
  fused->begin = (int)rn_init_int(init, "begin");
  fused->end = (int)rn_init_int(init, "end");
  fused->keeps_dims = rn_init_bool(init, "keep_dims");
  fused->allocator = init->allocator;
  int64_t* copy = NULL;
  size_t numbers = (size_t)(NUMBERS * fused->count);
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(init->allocator, numbers + (size_t)fused->result_count, &copy));
  memcpy(copy, rn_init_attr(init, "program")->list_i, numbers * sizeof *copy);
  memcpy(copy + numbers, rn_init_attr(init, "results")->list_i,
         (size_t)fused->result_count * sizeof *copy);
  fused->program = copy;
  fused->results = copy + numbers;
  rn_cuda_rehearse(init, state);
  return RN_OK;
}

static void fused_destroy(void* state) {
  fused_loops_t* fused = state;
  if (fused->program)
    RN_FREE_ARRAY(fused->allocator, (int64_t*)fused->program,
                  NUMBERS * fused->count + fused->result_count);
}

// The shape that all inputs broadcast to.
static bool common_shape(const rn_shape_t* shapes, int count, int64_t* dims, int* out_rank) {
  int rank = 0;
  for (int i = 0; i < count; ++i)
    if (shapes[i].rank > rank) rank = shapes[i].rank;
  for (int d = 0; d < rank; ++d) dims[d] = 1;
  for (int i = 0; i < count; ++i) {
    for (int d = 0; d < shapes[i].rank; ++d) {
      int64_t size = shapes[i].dims[d], *to = &dims[rank - shapes[i].rank + d];
      if (size != 1 && *to != 1 && size != *to) return false;
      if (size != 1) *to = size;
    }
  }
  *out_rank = rank;
  return true;
}

static int write_operation(rn_jit_program_t* program, const int64_t* row, const int* values) {
  int operands[RN_JIT_MAX_OPERANDS];
  for (int k = 0; k < RN_JIT_MAX_OPERANDS; ++k)
    operands[k] = row[2 + k] < 0 ? -1 : values[row[2 + k]];
  if (row[0] == RN_LOOP_REPEATS) return operands[0];
  if (row[0] == RN_LOOP_CASTS)
    return rn_jit_cast(program, operands[0], rn_dtype_base((rn_dtype_t)row[1]));
  if (row[0] & RN_LOOP_REDUCES)
    return rn_jit_reduce(program, (rn_jit_reduction_t)(row[0] & ~(int64_t)RN_LOOP_REDUCES),
                         operands[0]);
  return rn_jit_op(program, (rn_scalar_code_t)(row[0] - 1), operands);
}

static rn_shape_t reduced_shape(const fused_loops_t* fused, rn_shape_t space, int64_t* dims) {
  int rank = 0;
  for (int d = 0; d < space.rank; ++d) {
    bool goes = d >= fused->begin && d < fused->end;
    if (!goes || fused->keeps_dims) dims[rank++] = goes ? 1 : space.dims[d];
  }
  return (rn_shape_t){rank, dims};
}

// Whether an input of |shape| has an element per sum, and is in the order of the sums.
static bool is_reduced(const fused_loops_t* fused, rn_shape_t space, rn_shape_t shape) {
  int64_t dims[RN_MAX_RANK];
  if (!fused->reduces || rn_shape_eq(shape, space)) return false;
  return (fused->keeps_dims || fused->begin == 0) &&
         rn_shape_eq(shape, reduced_shape(fused, space, dims));
}

static void write_program(const fused_loops_t* fused, const rn_kernel_ctx_t* ctx, rn_shape_t space,
                          const rn_jit_view_t* view, rn_jit_program_t* program) {
  int values[RN_JIT_MAX_INPUTS + RN_JIT_MAX_VALUES], count = ctx->kernel->input_count;
  rn_jit_begin(program, view->rank, 0);
  for (int i = 0; i < count; ++i) {
    rn_dtype_t dtype = rn_in(ctx, i)->dtype;
    values[i] = is_reduced(fused, space, rn_tensor_shape(rn_in(ctx, i)))
                    ? rn_jit_input(program, dtype, RN_JIT_LINEAR, RN_JIT_REDUCED)
                    : rn_jit_input(program, dtype, view->access[i], RN_JIT_FULL);
  }
  for (int i = 0; i < fused->count; ++i)
    values[count++] = write_operation(program, &fused->program[NUMBERS * i], values);
  for (int o = 0; o < fused->result_count; ++o)
    rn_jit_output(program, values[fused->results[o]], rn_dtype_base(ctx->kernel->output_types[o]));
}

// The space of the reductions.
static void set_reduced(const fused_loops_t* fused, rn_shape_t space, rn_jit_sizes_t* sizes) {
  sizes->outer = sizes->reduced = sizes->inner = 1;
  for (int d = 0; d < space.rank; ++d)
    *(d < fused->begin ? &sizes->outer
      : d < fused->end ? &sizes->reduced
                       : &sizes->inner) *= space.dims[d];
}

// The inputs that output 0 may overwrite.
static uint64_t in_place(const rn_kernel_ctx_t* ctx, rn_shape_t space) {
  const size_t size = rn_dtype_size(rn_dtype_base(ctx->kernel->output_types[0]));
  uint64_t candidates = 0;
  for (int i = 0; i < ctx->kernel->input_count; ++i)
    if (rn_shape_eq(rn_tensor_shape(rn_in(ctx, i)), space) &&
        rn_dtype_size(rn_in(ctx, i)->dtype) == size)
      candidates |= UINT64_C(1) << i;
  return candidates;
}

static rn_status_t make_outputs(rn_kernel_ctx_t* ctx, const rn_jit_program_t* program,
                                rn_shape_t space, rn_tensor_t** out) {
  const fused_loops_t* fused = ctx->state;
  if (!fused->reduces && fused->result_count == 1)
    return rn_output_in_place(ctx, 0, in_place(ctx, space), space, &out[0]);
  for (int o = 0; o < fused->result_count; ++o) {
    int64_t dims[RN_MAX_RANK];
    bool is_full = !fused->reduces || program->values[program->outputs[o]].space == RN_JIT_FULL;
    RN_RETURN_IF_ERROR(
        rn_output(ctx, o, is_full ? space : reduced_shape(fused, space, dims), &out[o]));
  }
  return RN_OK;
}

static rn_status_t fused_compute(rn_kernel_ctx_t* ctx) {
  const fused_loops_t* fused = ctx->state;
  int64_t dims[RN_MAX_RANK];
  int rank;
  rn_shape_t shapes[RN_JIT_MAX_INPUTS];
  int inputs = ctx->kernel->input_count;
  for (int i = 0; i < inputs; ++i) shapes[i] = rn_tensor_shape(rn_in(ctx, i));
  if (!common_shape(shapes, inputs, dims, &rank) || (fused->reduces && fused->end > rank))
    return rn_internal("Operands of a fused node do not fit");
  rn_shape_t space = {rank, dims};
  rn_jit_operand_t operands[RN_JIT_MAX_INPUTS];
  rn_jit_view_t view;
  RN_RETURN_IF_ERROR(rn_jit_broadcast(space, shapes, inputs, &view, operands));
  for (int i = 0; i < inputs; ++i) operands[i].address = (uintptr_t)rn_in(ctx, i)->data;
  if (fused->reduces) set_reduced(fused, space, &view.sizes);
  rn_jit_program_t program;
  write_program(fused, ctx, space, &view, &program);
  RN_RETURN_IF_ERROR(rn_jit_check(&program));
  rn_tensor_t* out[RN_JIT_MAX_OUTPUTS];
  RN_RETURN_IF_ERROR(make_outputs(ctx, &program, space, out));
  return rn_cuda_run(ctx, &program, &view.sizes, operands, out);
}

// How a value of the program is computed.
typedef struct fused_value_t {
  bool is_full;  // it has an element per element of the space, not one per sum
  int passes;    // over the space that must have ended before
} fused_value_t;

// Finds out about the values, of which the first are the inputs. Returns the last pass that reads
// the space.
static int find_values(const fused_loops_t* fused, const rn_shape_t* shapes, int inputs,
                       rn_shape_t space, fused_value_t* values) {
  int last = 0;
  int64_t size;
  for (int i = 0; i < inputs; ++i)
    values[i].is_full = !fused->reduces || !(is_reduced(fused, space, shapes[i]) ||
                                             (rn_shape_count(shapes[i], &size) && size == 1));
  for (int i = 0; i < fused->count; ++i) {
    const int64_t* row = &fused->program[NUMBERS * i];
    const bool reduces = row[0] & RN_LOOP_REDUCES;
    fused_value_t* value = &values[inputs + i];
    for (int k = 2; k < NUMBERS; ++k) {
      if (row[k] < 0) continue;
      const fused_value_t* operand = &values[row[k]];
      value->is_full |= !reduces && operand->is_full;
      if (operand->passes > value->passes) value->passes = operand->passes;
    }
    if (reduces && value->passes > last) last = value->passes;
    value->passes += reduces;
  }
  for (int o = 0; o < fused->result_count; ++o) {
    const fused_value_t* value = &values[fused->results[o]];
    if (value->is_full && value->passes > last) last = value->passes;
  }
  return last;
}

// A result that is stored while its elements are read for the last time may take the place of one
// of them. Sums may not: what they would overwrite may be read by all blocks.
static uint64_t overwrites(const rn_kernel_t* kernel, int o, const rn_shape_t* shapes, int count) {
  const fused_loops_t* fused = kernel->state;
  fused_value_t values[RN_JIT_MAX_INPUTS + RN_JIT_MAX_VALUES] = {{0}};
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < count; ++i)
    if (!rn_shape_is_full(shapes[i])) return 0;
  if (count != kernel->input_count || fused->count > RN_JIT_MAX_VALUES ||
      !common_shape(shapes, count, dims, &rank))
    return 0;
  const rn_shape_t space = {rank, dims};
  const int last = find_values(fused, shapes, count, space, values);
  const fused_value_t* result = &values[fused->results[o]];
  uint64_t allowed = 0;
  for (int i = 0; i < count && result->is_full && result->passes == last; ++i)
    if (rn_shape_eq(shapes[i], space)) allowed |= UINT64_C(1) << i;
  return allowed;
}

static const rn_kernel_def_t rows[] = {
    {.op = "_FusedLoops",
     .device = "GPU",
     .flags = RN_KERNEL_REPLAYS | RN_KERNEL_IN_PLACE,
     .state_size = sizeof(fused_loops_t),
     .init = fused_init,
     .destroy = fused_destroy,
     .compute = fused_compute,
     .overwrites = overwrites},
};
RN_KERNEL_FAMILY(cuda_fused, rows);
