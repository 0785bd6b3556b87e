// Reductions over axes: sums, products, extremes, means, norms, all and any.
//
// Axes are merged into groups, alternately reduced and kept. One pass reduces the innermost reduced
// group; long groups are first split into chunks, whose results the next pass reduces. The splits
// depend on sizes alone, so any number of threads gives the same bits.
#include <complex.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/reduce.h"
#include "kernels/cpu/math/axes.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// Elements per chunk, and per piece of work.
#define CHUNK 32768
#define PIECE 65536
// Columns per piece, and the minimum rows per chunk.
#define COLUMNS 4096
#define CHUNK_ROWS 256

enum { PLAIN, MEAN, NORM };

typedef struct reduction_t {
  rn_reduce_op_t op;
  int finish;  // PLAIN, MEAN, NORM
  bool keep_dims;
} reduction_t;

static rn_dtype_t result_type(rn_reduce_op_t op, rn_dtype_t dtype) {
  if (dtype == RN_HALF || dtype == RN_BFLOAT16) return RN_FLOAT;
  if (op != RN_REDUCE_SUM_WIDE) return dtype;
  bool is_unsigned =
      dtype == RN_UINT8 || dtype == RN_UINT16 || dtype == RN_UINT32 || dtype == RN_UINT64;
  return is_unsigned ? RN_UINT64 : RN_INT64;
}

static rn_status_t reduce_init(const rn_kernel_init_t* init, void* state) {
  static const struct {
    const char* name;
    rn_reduce_op_t op;
    int finish;
  } ops[] = {{"Sum", RN_REDUCE_SUM, PLAIN}, {"Prod", RN_REDUCE_PROD, PLAIN},
             {"Max", RN_REDUCE_MAX, PLAIN}, {"Min", RN_REDUCE_MIN, PLAIN},
             {"Mean", RN_REDUCE_SUM, MEAN}, {"EuclideanNorm", RN_REDUCE_SUM_SQUARES, NORM},
             {"All", RN_REDUCE_AND, PLAIN}, {"Any", RN_REDUCE_OR, PLAIN}};
  reduction_t* reduce = state;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i)
    if (rn_str_is(rn_str(ops[i].name), init->op->name)) {
      reduce->op = ops[i].op;
      reduce->finish = ops[i].finish;
    }
  if (reduce->finish == MEAN && rn_dtype_is_integer(rn_dtype_base(init->input_types[0])))
    reduce->op = RN_REDUCE_SUM_WIDE;
  reduce->keep_dims = rn_init_bool(init, "keep_dims");
  return RN_OK;
}

// The axes with those of size 1 dropped, and neighbours of a kind merged.
typedef struct groups_t {
  int count;
  int64_t size[RN_MAX_RANK];
  bool goes[RN_MAX_RANK];
} groups_t;

static void make_groups(const rn_tensor_t* input, const bool* goes, groups_t* groups) {
  const int64_t* dims = rn_tensor_dims(input);
  groups->count = 0;
  for (int d = 0; d < input->rank; ++d) {
    if (dims[d] == 1) continue;
    if (groups->count > 0 && groups->goes[groups->count - 1] == goes[d]) {
      groups->size[groups->count - 1] *= dims[d];
    } else {
      groups->size[groups->count] = dims[d];
      groups->goes[groups->count++] = goes[d];
    }
  }
}

// One pass over [outer, rows, inner], in chunks of rows and blocks of columns.
typedef struct reduce_pass_t {
  rn_reduce_fn_t fn;
  const char* in;
  char* out;
  size_t in_size, out_size;
  int64_t rows, inner, chunk, chunks, columns, blocks;
} reduce_pass_t;

static void run_pass(void* arg, int64_t begin, int64_t end) {
  const reduce_pass_t* p = arg;
  if (p->chunks == 1 && p->blocks == 1) {
    p->fn(p->in + (size_t)(begin * p->rows * p->inner) * p->in_size, end - begin, p->rows, p->inner,
          p->inner, p->out + (size_t)(begin * p->inner) * p->out_size);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    int64_t block = i % p->blocks, chunk = i / p->blocks % p->chunks,
            outer = i / p->blocks / p->chunks;
    int64_t row = chunk * p->chunk, column = block * p->columns;
    int64_t rows = p->rows - row < p->chunk ? p->rows - row : p->chunk;
    int64_t width = p->inner - column < p->columns ? p->inner - column : p->columns;
    p->fn(p->in + (size_t)((outer * p->rows + row) * p->inner + column) * p->in_size, 1, rows,
          p->inner, width,
          p->out + (size_t)((outer * p->chunks + chunk) * p->inner + column) * p->out_size);
  }
}

static void plan_pass(reduce_pass_t* p, int64_t rows, int64_t inner) {
  p->rows = rows;
  p->inner = inner;
  p->chunk = CHUNK / inner > CHUNK_ROWS ? CHUNK / inner : CHUNK_ROWS;
  if (rows < 2 * p->chunk) p->chunk = rows;
  p->chunks = (rows + p->chunk - 1) / p->chunk;
  p->columns = inner > COLUMNS ? COLUMNS : inner;
  p->blocks = (inner + p->columns - 1) / p->columns;
}

// Runs the passes that |groups| need from |in| to |out|, in the accumulation type, with scratch
// memory in between.
static rn_status_t run_passes(rn_kernel_ctx_t* ctx, rn_reduce_op_t op, groups_t* groups,
                              const void* in, rn_dtype_t dtype, void* out) {
  const rn_reduce_table_t* table = RN_ISA_PICK_NARROW(&rn_reduce_table_);
  rn_tensor_t scratch[2] = {{0}, {0}};
  rn_status_t status = RN_OK;
  for (int turn = 0;; turn ^= 1) {
    int g = groups->count - 1, left = 0;
    while (g >= 0 && !groups->goes[g]) --g;
    if (g < 0) break;
    for (int i = 0; i < g; ++i) left += groups->goes[i];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < g; ++i) outer *= groups->size[i];
    for (int i = g + 1; i < groups->count; ++i) inner *= groups->size[i];
    rn_dtype_t type = result_type(op, dtype);
    reduce_pass_t p = {.fn = table->fn[op][dtype],
                       .in = in,
                       .in_size = rn_dtype_size(dtype),
                       .out_size = rn_dtype_size(type)};
    plan_pass(&p, groups->size[g], inner);
    const bool is_last = left == 0 && p.chunks == 1;
    if (is_last) {
      p.out = out;
    } else {
      const int64_t count = outer * p.chunks * inner;
      rn_tensor_clear(&scratch[turn]);
      status = rn_temp(ctx, type, (rn_shape_t){1, &count}, &scratch[turn]);
      if (!rn_ok(status)) break;
      p.out = scratch[turn].data;
    }
    int64_t each = p.chunk * p.columns, grain = PIECE / (each > 0 ? each : 1);
    rn_pool_for(rn_ctx_pool(ctx), outer * p.chunks * p.blocks, grain < 1 ? 1 : grain, run_pass, &p);
    if (is_last) break;
    groups->size[g] = p.chunks;
    if (p.chunks == 1) groups->goes[g] = false;
    in = p.out;
    dtype = type;
    if (op == RN_REDUCE_SUM_SQUARES || op == RN_REDUCE_SUM_WIDE) op = RN_REDUCE_SUM;
  }
  rn_tensor_clear(&scratch[0]);
  rn_tensor_clear(&scratch[1]);
  return status;
}

static void finish_float(const float* in, int finish, float count, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = finish == MEAN ? in[i] / count : finish == NORM ? sqrtf(in[i]) : in[i];
}

// Converts from the accumulation type to the output's; |count| elements were reduced into each.
static void finish(int finish, int64_t count, const void* in, rn_dtype_t dtype, void* out,
                   int64_t n) {
#define EACH(T, A, EXPRESSION)      \
  for (int64_t i = 0; i < n; ++i) { \
    const A x = ((const A*)in)[i];  \
    ((T*)out)[i] = (T)(EXPRESSION); \
  }
// The square root of a sum that wrapped to a negative number: x86's conversion of NaN.
#define NO_ROOT(T) (T)(sizeof(T) == 8 ? INT64_MIN : (int64_t)INT32_MIN)
#define SIGNED(T)                                       \
  if (finish == MEAN) {                                 \
    EACH(T, int64_t, count ? x / count : 0)             \
  } else {                                              \
    EACH(T, T, x < 0 ? NO_ROOT(T) : (T)sqrt((double)x)) \
  }                                                     \
  break
#define UNSIGNED(T)                                    \
  if (finish == MEAN) {                                \
    EACH(T, uint64_t, count ? x / (uint64_t)count : 0) \
  } else {                                             \
    EACH(T, T, sqrt((double)x))                        \
  }                                                    \
  break
  switch (dtype) {
    case RN_FLOAT:
      finish_float(in, finish, (float)count, out, n);
      break;
    case RN_HALF:
    case RN_BFLOAT16:
      for (int64_t i = 0; i < n; ++i) {
        float value;
        finish_float((const float*)in + i, finish, (float)count, &value, 1);
        ((uint16_t*)out)[i] =
            dtype == RN_HALF ? rn_float_to_half(value) : rn_float_to_bfloat16(value);
      }
      break;
    case RN_DOUBLE:
      EACH(double, double, finish == MEAN ? x / (double)count : sqrt(x))
      break;
    case RN_COMPLEX64:
      EACH(float complex, float complex, finish == MEAN ? x / (float)count : sqrtf(crealf(x)))
      break;
    case RN_COMPLEX128:
      EACH(double complex, double complex, finish == MEAN ? x / (double)count : sqrt(creal(x)))
      break;
    case RN_INT8:
      SIGNED(int8_t);
    case RN_INT16:
      SIGNED(int16_t);
    case RN_INT32:
      SIGNED(int32_t);
    case RN_INT64:
      SIGNED(int64_t);
    case RN_UINT8:
      UNSIGNED(uint8_t);
    case RN_UINT16:
      UNSIGNED(uint16_t);
    case RN_UINT32:
      UNSIGNED(uint32_t);
    case RN_UINT64:
      UNSIGNED(uint64_t);
    default:
      break;
  }
#undef EACH
#undef SIGNED
#undef NO_ROOT
#undef UNSIGNED
}

// The result of an empty reduction.
static void fill_empty(const reduction_t* reduce, rn_tensor_t* out) {
  uint64_t value[2] = {0, 0};
  const bool is_max = reduce->op == RN_REDUCE_MAX, is_min = reduce->op == RN_REDUCE_MIN;
  const rn_dtype_t dtype = out->dtype;
  const size_t size = rn_dtype_size(dtype);
#define PUT(T, v)                      \
  do {                                 \
    T put_ = (T)(v);                   \
    memcpy(value, &put_, sizeof put_); \
  } while (0)
  if (reduce->finish == MEAN) {
    switch (dtype) {
      case RN_FLOAT:
        PUT(float, NAN);
        break;
      case RN_DOUBLE:
        PUT(double, NAN);
        break;
      case RN_HALF:
        PUT(uint16_t, 0x7e00);
        break;
      case RN_BFLOAT16:
        PUT(uint16_t, 0x7fc0);
        break;
      case RN_COMPLEX64: {
        float nans[2] = {NAN, NAN};
        memcpy(value, nans, sizeof nans);
        break;
      }
      case RN_COMPLEX128: {
        double nans[2] = {NAN, NAN};
        memcpy(value, nans, sizeof nans);
        break;
      }
      default:
        break;
    }
  } else if (reduce->op == RN_REDUCE_PROD || reduce->op == RN_REDUCE_AND) {
    switch (dtype) {
      case RN_FLOAT:
      case RN_COMPLEX64:
        PUT(float, 1);
        break;
      case RN_DOUBLE:
      case RN_COMPLEX128:
        PUT(double, 1);
        break;
      case RN_HALF:
        PUT(uint16_t, 0x3c00);
        break;
      case RN_BFLOAT16:
        PUT(uint16_t, 0x3f80);
        break;
      default:
        value[0] = 1;
    }
  } else if (is_max || is_min) {
    const bool is_unsigned =
        dtype == RN_UINT8 || dtype == RN_UINT16 || dtype == RN_UINT32 || dtype == RN_UINT64;
    const uint64_t top = UINT64_C(1) << (8 * size - 1);
    switch (dtype) {
      case RN_FLOAT:
        PUT(float, is_max ? -INFINITY : INFINITY);
        break;
      case RN_DOUBLE:
        PUT(double, is_max ? -INFINITY : INFINITY);
        break;
      case RN_HALF:
        PUT(uint16_t, is_max ? 0xfc00 : 0x7c00);
        break;
      case RN_BFLOAT16:
        PUT(uint16_t, is_max ? 0xff80 : 0x7f80);
        break;
      default:
        value[0] = is_unsigned ? (is_max ? 0 : UINT64_MAX) : (is_max ? top : top - 1);
    }
  }
#undef PUT
  for (int64_t i = 0; i < out->count; ++i) memcpy((char*)out->data + (size_t)i * size, value, size);
}

static rn_status_t reduce_into(rn_kernel_ctx_t* ctx, const reduction_t* reduce, groups_t* groups,
                               const rn_tensor_t* input, rn_tensor_t* out) {
  rn_dtype_t type = result_type(reduce->op, input->dtype);
  if (type == out->dtype) {
    RN_RETURN_IF_ERROR(run_passes(ctx, reduce->op, groups, input->data, input->dtype, out->data));
    if (reduce->finish != PLAIN)
      finish(reduce->finish, input->count / out->count, out->data, out->dtype, out->data,
             out->count);
    return RN_OK;
  }
  uint64_t few[8];
  rn_tensor_t wide = {0};
  void* place = few;
  if (out->count > 8) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, type, (rn_shape_t){1, &out->count}, &wide));
    place = wide.data;
  }
  rn_status_t status = run_passes(ctx, reduce->op, groups, input->data, input->dtype, place);
  if (rn_ok(status))
    finish(reduce->finish, input->count / out->count, place, out->dtype, out->data, out->count);
  rn_tensor_clear(&wide);
  return status;
}

static rn_status_t reduce(rn_kernel_ctx_t* ctx) {
  const reduction_t* reduce = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  bool goes[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(rn_read_axes(input, rn_in(ctx, 1), goes));
  int64_t dims[RN_MAX_RANK];
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(
      rn_output(ctx, 0, rn_reduced_shape(input, goes, reduce->keep_dims, dims), &out));
  if (out->count == 0) return RN_OK;
  if (input->count == 0) {
    fill_empty(reduce, out);
    return RN_OK;
  }
  if (input->count == out->count && reduce->op != RN_REDUCE_SUM_SQUARES) {
    memcpy(out->data, input->data, rn_tensor_bytes(out));
    return RN_OK;
  }
  groups_t groups;
  make_groups(input, goes, &groups);
  if (input->count == out->count)  // nothing to sum: only takes magnitudes
    groups = (groups_t){2, {1, input->count}, {true, false}};
  return reduce_into(ctx, reduce, &groups, input, out);
}

#define ROW(name, types_)                                                              \
  {                                                                                    \
    .op = name, .device = "CPU", .types = {types_}, .state_size = sizeof(reduction_t), \
    .init = reduce_init, .compute = reduce                                             \
  }
#define TYPES(set) \
  { "T", set }

static const rn_kernel_def_t rows[] = {
    ROW("Sum", TYPES(RN_TYPES_NUMBERS)),
    ROW("Mean", TYPES(RN_TYPES_NUMBERS)),
    ROW("Prod", TYPES(RN_TYPES_NUMBERS)),
    ROW("Max", TYPES(RN_TYPES_REAL)),
    ROW("Min", TYPES(RN_TYPES_REAL)),
    ROW("EuclideanNorm", TYPES(RN_TYPES_NUMBERS)),
    {.op = "All",
     .device = "CPU",
     .state_size = sizeof(reduction_t),
     .init = reduce_init,
     .compute = reduce},
    {.op = "Any",
     .device = "CPU",
     .state_size = sizeof(reduction_t),
     .init = reduce_init,
     .compute = reduce},
};
RN_KERNEL_FAMILY(cpu_reduce, rows);
