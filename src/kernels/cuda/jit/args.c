// The argument struct of emitted kernels: see schedule.h.
#include "kernels/cuda/divisor.h"
#include "kernels/cuda/jit/schedule.h"

static bool has_period(const rn_jit_input_t* input) {
  return input->access == RN_JIT_ROW || input->access == RN_JIT_COLUMN;
}

void rn_jit_layout(const rn_jit_program_t* program, const rn_jit_variant_t* variant,
                   rn_jit_layout_t* out) {
  int strided = 0, periods = 0, host = 0;
  for (int i = 0; i < program->input_count; ++i) {
    strided += program->inputs[i].access == RN_JIT_STRIDED;
    periods += has_period(&program->inputs[i]);
    host += program->inputs[i].access == RN_JIT_HOST;
  }
  out->data = program->input_count + program->output_count + variant->split;
  out->host = 2 * host;
  out->size = variant->schedule == RN_JIT_POINTWISE ? 1
              : variant->split                      ? RN_JIT_SIZE_PLACES + program->reduction_count
                                                    : RN_JIT_SIZE_PLACES;
  out->stride = strided * program->rank;
  out->first_period = strided ? program->rank - 1 : 0;
  out->by = out->first_period + periods;
  const size_t stride_size = variant->wide ? sizeof(int64_t) : sizeof(int32_t);
  const size_t by_size = variant->wide ? sizeof(int64_t) : sizeof(rn_div32);
  size_t bytes = 8 * (size_t)(out->data + out->host + out->size);
  bytes += stride_size * (size_t)out->stride + by_size * (size_t)out->by;
  out->bytes = (bytes + 7) / 8 * 8;
}

size_t rn_jit_sum_size(rn_jit_reduction_t kind, rn_dtype_t dtype) {
  if (kind == RN_JIT_VARIANCE) return dtype == RN_DOUBLE ? 32 : 16;
  if (kind == RN_JIT_ARG_MAX || kind == RN_JIT_ARG_MIN) return 16;  // with the place
  if (dtype == RN_HALF || dtype == RN_BFLOAT16) return sizeof(float);
  if (kind == RN_JIT_MEAN && rn_dtype_is_integer(dtype)) return sizeof(int64_t);
  return rn_dtype_size(rn_dtype_stored(dtype));
}

// Appends to the struct under construction.
typedef struct args_writer_t {
  char* at;
  bool wide;
} args_writer_t;

static void put(args_writer_t* writer, const void* bytes, size_t size) {
  memcpy(writer->at, bytes, size);
  writer->at += size;
}
static void put_i64(args_writer_t* writer, int64_t number) { put(writer, &number, sizeof number); }
static void put_stride(args_writer_t* writer, int64_t stride) {
  const int32_t narrow = (int32_t)stride;
  if (writer->wide)
    put_i64(writer, stride);
  else
    put(writer, &narrow, sizeof narrow);
}
static void put_divisor(args_writer_t* writer, int64_t divisor) {
  if (writer->wide) {
    put_i64(writer, divisor);
  } else {
    // An empty dimension divides nothing.
    const rn_div32 by = rn_divisor(divisor > 0 ? (uint32_t)divisor : 1);
    put(writer, &by, sizeof by);
  }
}

static void put_sizes(args_writer_t* writer, const rn_jit_program_t* program,
                      const rn_jit_grid_t* grid, const rn_jit_sizes_t* sizes) {
  put_i64(writer, sizes->count);
  if (grid->variant.schedule == RN_JIT_POINTWISE) return;
  put_i64(writer, sizes->outer);
  put_i64(writer, sizes->reduced);
  put_i64(writer, sizes->inner);
  put_i64(writer, grid->chunk);
  put_i64(writer, grid->chunks);
  if (!grid->variant.split) return;
  int64_t place = 0;
  for (int i = 0; i < program->value_count; ++i) {
    const rn_jit_value_t* value = &program->values[i];
    if (value->kind != RN_JIT_REDUCE) continue;
    put_i64(writer, place);
    int64_t bytes = (int64_t)rn_jit_sum_size(value->code, value->dtype) * sizes->outer *
                    sizes->inner * grid->chunks;
    place += (bytes + 255) / 256 * 256;
  }
}

size_t rn_jit_args_fill(const rn_jit_program_t* program, const rn_jit_grid_t* grid,
                        const rn_jit_sizes_t* sizes, const rn_jit_operand_t* inputs,
                        const uint64_t* outputs, uint64_t workspace, void* out) {
  args_writer_t writer = {out, grid->variant.wide};
  bool has_strided = false;
  for (int i = 0; i < program->input_count; ++i) put(&writer, &inputs[i].address, 8);
  for (int i = 0; i < program->output_count; ++i) put(&writer, &outputs[i], 8);
  if (grid->variant.split) put(&writer, &workspace, 8);
  for (int i = 0; i < program->input_count; ++i)
    if (program->inputs[i].access == RN_JIT_HOST) put(&writer, inputs[i].number, 16);
  put_sizes(&writer, program, grid, sizes);
  for (int i = 0; i < program->input_count; ++i) {
    if (program->inputs[i].access != RN_JIT_STRIDED) continue;
    has_strided = true;
    for (int d = 0; d < program->rank; ++d) put_stride(&writer, inputs[i].strides[d]);
  }
  for (int d = 1; has_strided && d < program->rank; ++d) put_divisor(&writer, sizes->dims[d]);
  for (int i = 0; i < program->input_count; ++i)
    if (has_period(&program->inputs[i])) put_divisor(&writer, inputs[i].period);
  size_t bytes = (size_t)(writer.at - (char*)out);
  while (bytes % 8) ((char*)out)[bytes++] = 0;
  return bytes;
}
