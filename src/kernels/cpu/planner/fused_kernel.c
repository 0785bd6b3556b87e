// The ops created by fusion: they run the program in their attribute. See fused.h and
// step/fuse_elementwise.c.
#include "kernels/cpu/planner/fused_code.h"
#include "kernels/kernel_rows.h"

typedef struct fused_kernel_fused_t {
  rn_fused_t program;
  rn_fused_step_t* steps;  // Owned
  rn_fused_code_t* code;   // Owned, NULL if there is none
  rn_allocator_t allocator;
  uint64_t sharable;  // inputs whose memory the result may reuse
} fused_kernel_fused_t;

// The state of _FusedColumns, separate from fused_kernel_fused_t, which must stay small because a
// large graph has thousands of them.
typedef struct fused_kernel_columns_t {
  fused_kernel_fused_t fused;
  int rank;
  int64_t dims[RN_MAX_RANK];          // of all operands that are not scalars
  int64_t firsts[RN_FUSED_OPERANDS];  // by input: its first element; -1 if it is used whole
  int64_t parts[RN_FUSED_OPERANDS];   // by output: number of results side by side in it
} fused_kernel_columns_t;

// Four numbers per step: code, a, b, out.
static rn_status_t read_steps(const rn_kernel_init_t* init, fused_kernel_fused_t* fused) {
  const rn_attr_value_t* code = rn_init_attr(init, "program");
  int32_t count = code->count / 4;
  if (count < 1 || code->count % 4 != 0)
    return rn_invalid_argument("A fused program must have a multiple of four numbers, got %d",
                               code->count);
  fused->allocator = init->allocator;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(init->allocator, (size_t)count, &fused->steps));
  for (int32_t i = 0; i < count; ++i) {
    const int64_t* step = code->list_i + 4 * i;
    fused->steps[i] =
        (rn_fused_step_t){(uint16_t)step[0], (int16_t)step[1], (int16_t)step[2], (int16_t)step[3]};
  }
  fused->program = (rn_fused_t){.dtype = rn_init_type(init, "T"),
                                .inputs = (int16_t)init->input_count,
                                .outputs = 1,
                                .step_count = count,
                                .steps = fused->steps};
  return RN_OK;
}

// Below this number of elements a step takes less time than making code for it.
#define FEWEST_FOR_CODE 2048

// Makes code for results of |shape|, if it is known and large. Inputs of |firsts| >= 0 are parts of
// matrices; |firsts| may be NULL.
static rn_status_t make_code(const rn_kernel_init_t* init, rn_shape_t shape, const int64_t* firsts,
                             fused_kernel_fused_t* fused) {
  int64_t count = 0, input_count = 0;
  uint64_t scalars = 0;
  if (!rn_shape_count(shape, &count) || count < FEWEST_FOR_CODE) return RN_OK;
  for (int32_t i = 0; i < init->input_count; ++i) {
    bool is_part = firsts && firsts[i] >= 0;
    if (!is_part && rn_shape_count(init->input_shapes[i], &input_count) && input_count == 1)
      scalars |= UINT64_C(1) << i;
  }
  RN_RETURN_IF_ERROR(rn_fused_code_create(init->allocator, &fused->program, scalars,
                                          rn_fused_code_width(), &fused->code));
  fused->program.code = fused->code;
  return RN_OK;
}

// The result is the last operand.
static rn_status_t fused_init(const rn_kernel_init_t* init, void* state) {
  fused_kernel_fused_t* fused = state;
  RN_RETURN_IF_ERROR(read_steps(init, fused));
  rn_fused_t* program = &fused->program;
  program->temporaries = (int16_t)(fused->steps[program->step_count - 1].out - program->inputs);
  RN_RETURN_IF_ERROR(rn_fused_check(program));
  for (int i = 0; i < program->inputs; ++i)
    if (rn_fused_may_share(program, 0, i)) fused->sharable |= UINT64_C(1) << i;
  return make_code(init, init->output_shapes[0], NULL, fused);
}

static rn_status_t read_list(const rn_kernel_init_t* init, const char* name, int count, int most,
                             int64_t* out) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  if (list->count != count || count > most)
    return rn_invalid_argument("A fused program has %d %s", list->count, name);
  for (int i = 0; i < count; ++i) out[i] = list->list_i[i];
  return RN_OK;
}

static rn_status_t columns_init(const rn_kernel_init_t* init, void* state) {
  fused_kernel_columns_t* columns = state;
  fused_kernel_fused_t* fused = &columns->fused;
  const int outputs = (int)rn_init_int(init, "M");
  RN_RETURN_IF_ERROR(read_steps(init, fused));
  columns->rank = rn_init_attr(init, "dims")->count;
  RN_RETURN_IF_ERROR(read_list(init, "dims", columns->rank, RN_MAX_RANK, columns->dims));
  RN_RETURN_IF_ERROR(
      read_list(init, "firsts", init->input_count, RN_FUSED_OPERANDS, columns->firsts));
  RN_RETURN_IF_ERROR(read_list(init, "parts", outputs, RN_FUSED_OPERANDS, columns->parts));
  int64_t results = 0, temporaries = rn_init_int(init, "temporaries");
  for (int o = 0; o < outputs; ++o) {
    if (columns->parts[o] < 1 || columns->parts[o] > (columns->rank == 2 ? RN_FUSED_OPERANDS : 1))
      return rn_invalid_argument("An output of a fused program has %lld parts",
                                 (long long)columns->parts[o]);
    results += columns->parts[o];
  }
  if (results > RN_FUSED_OPERANDS || temporaries > RN_FUSED_TEMPORARIES)
    return rn_invalid_argument("A fused program has too many operands");
  fused->program.outputs = (int16_t)results;
  fused->program.temporaries = (int16_t)temporaries;
  RN_RETURN_IF_ERROR(rn_fused_check(&fused->program));
  return make_code(init, (rn_shape_t){columns->rank, columns->dims}, columns->firsts, fused);
}

static void fused_destroy(void* state) {
  fused_kernel_fused_t* fused = state;
  rn_fused_code_destroy(fused->code);
  RN_FREE_ARRAY(fused->allocator, fused->steps, fused->program.step_count);
}

static rn_status_t wrong_input(int64_t wanted, const rn_tensor_t* input) {
  return rn_internal("A fused chain over %lld elements got an operand of %lld", (long long)wanted,
                     (long long)input->count);
}

// The planner fuses only known shapes; the inferred shapes are checked here because nothing else
// does.
static rn_status_t fused_compute(rn_kernel_ctx_t* ctx) {
  const fused_kernel_fused_t* fused = ctx->state;
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
    if (!is_whole && input->count != 1) return wrong_input(widest->count, input);
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

// The operands of a _FusedColumns.
typedef struct operands_t {
  const void* in[RN_FUSED_OPERANDS];
  int steps[RN_FUSED_OPERANDS];
  void* out[RN_FUSED_OPERANDS];
  int64_t in_rows[RN_FUSED_OPERANDS], out_rows[RN_FUSED_OPERANDS];
  bool has_columns;  // some operand is part of a wider matrix
} operands_t;

// Whether the matrix |input| contains a part of |shape| that starts at element |first|.
static bool has_part(const rn_tensor_t* input, int64_t first, rn_shape_t shape) {
  if (first < 0 || shape.rank != 2 || input->rank != 2 || input->count == 0) return false;
  const int64_t rows = rn_tensor_dim(input, 0), columns = rn_tensor_dim(input, 1);
  return first / columns <= rows - shape.dims[0] && first % columns <= columns - shape.dims[1];
}

static rn_status_t find_inputs(const rn_kernel_ctx_t* ctx, int64_t count, operands_t* operands) {
  const fused_kernel_columns_t* columns = ctx->state;
  const fused_kernel_fused_t* fused = &columns->fused;
  const rn_shape_t shape = {columns->rank, columns->dims};
  const size_t size = rn_dtype_size(fused->program.dtype);
  for (int i = 0; i < fused->program.inputs; ++i) {
    const rn_tensor_t* input = rn_in(ctx, i);
    const int64_t first = columns->firsts[i], width = shape.rank == 2 ? shape.dims[1] : 0;
    bool is_whole = first < 0 && rn_shape_eq(rn_tensor_shape(input), shape);
    bool is_part = has_part(input, first, shape);
    if (!is_whole && !is_part && (first >= 0 || input->count != 1))
      return wrong_input(count, input);
    operands->in[i] = (const char*)input->data + (is_part ? (size_t)first * size : 0);
    operands->steps[i] = is_part || (is_whole && count != 1);
    operands->in_rows[i] = is_part ? rn_tensor_dim(input, 1) : width;
    operands->has_columns |= operands->in_rows[i] != width;
  }
  return RN_OK;
}

static rn_status_t make_outputs(rn_kernel_ctx_t* ctx, operands_t* operands) {
  const fused_kernel_columns_t* columns = ctx->state;
  const fused_kernel_fused_t* fused = &columns->fused;
  const size_t size = rn_dtype_size(fused->program.dtype);
  int64_t dims[RN_MAX_RANK];
  memcpy(dims, columns->dims, sizeof dims);
  for (int o = 0, result = 0; o < ctx->kernel->output_count; ++o) {
    rn_tensor_t* out = NULL;
    if (columns->parts[o] > 1 && !rn_mul_i64_ok(columns->dims[1], columns->parts[o], &dims[1]))
      return rn_invalid_argument("A fused program has too many columns");
    RN_RETURN_IF_ERROR(rn_output(ctx, o, (rn_shape_t){columns->rank, dims}, &out));
    for (int64_t p = 0; p < columns->parts[o]; ++p, ++result) {
      operands->out[result] =
          (char*)out->data + (p > 0 ? (size_t)(p * columns->dims[1]) * size : 0);
      operands->out_rows[result] = columns->rank == 2 ? dims[1] : 0;
    }
    operands->has_columns |= columns->parts[o] > 1;
    if (columns->rank == 2) dims[1] = columns->dims[1];
  }
  return RN_OK;
}

static rn_status_t columns_compute(rn_kernel_ctx_t* ctx) {
  const fused_kernel_columns_t* columns = ctx->state;
  const fused_kernel_fused_t* fused = &columns->fused;
  operands_t operands;  // as many as there are
  operands.has_columns = false;
  int64_t count = 0;
  if (!rn_shape_count((rn_shape_t){columns->rank, columns->dims}, &count) || count < 0)
    return rn_invalid_argument("A fused program needs a known shape");
  RN_RETURN_IF_ERROR(find_inputs(ctx, count, &operands));
  RN_RETURN_IF_ERROR(make_outputs(ctx, &operands));
  if (count == 0) return RN_OK;
  if (!operands.has_columns) {
    rn_fused_run(rn_ctx_pool(ctx), &fused->program, operands.in, operands.steps, operands.out,
                 count);
    return RN_OK;
  }
  const rn_fused_rows_t rows = {columns->dims[0], columns->dims[1], operands.in_rows,
                                operands.out_rows};
  rn_fused_run_rows(rn_ctx_pool(ctx), &fused->program, &rows, operands.in, operands.steps,
                    operands.out);
  return RN_OK;
}

#define ROW(name, flags_, state_, init_, compute_)                                              \
  {                                                                                             \
    .op = name, .device = "CPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}}, .flags = flags_, \
    .state_size = sizeof(state_), .init = init_, .destroy = fused_destroy, .compute = compute_  \
  }
static const rn_kernel_def_t rows[] = {
    ROW("_FusedElementwise", RN_KERNEL_IN_PLACE, fused_kernel_fused_t, fused_init, fused_compute),
    ROW("_FusedColumns", 0, fused_kernel_columns_t, columns_init, columns_compute),
};
RN_KERNEL_FAMILY(cpu_fused, rows);
