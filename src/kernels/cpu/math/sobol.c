// SobolSample: points of Sobol sequences, from the second on, in Gray code order.
#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"

#define MAX_DIMENSIONS 1024  // with known direction numbers; stock has 21200
#define BITS 32

static const uint64_t numbers[] = {
#include "kernels/cpu/math/sobol.def"
};
// Number of dimensions per degree, from 1 on; tools/sobol_numbers.py documents the bit layout.
static const uint16_t by_degree[] = {1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 543};

// A position in the bit stream.
typedef struct sobol_bits_t {
  size_t at;
  int32_t degree;     // of the next dimension
  int32_t of_degree;  // dimensions of that degree so far
} sobol_bits_t;

static uint32_t take_bits(sobol_bits_t* bits, int count) {
  uint32_t value = 0;
  for (int i = 0; i < count; ++i, ++bits->at)
    value |= (uint32_t)(numbers[bits->at / 64] >> (bits->at % 64) & 1) << i;
  return value;
}

// The direction numbers of the next dimension, as fractions of 2^32.
static void next_dimension(sobol_bits_t* bits, uint32_t* directions) {
  while (bits->of_degree == by_degree[bits->degree - 1]) {
    ++bits->degree;
    bits->of_degree = 0;
  }
  ++bits->of_degree;
  int degree = bits->degree;
  uint32_t inner = take_bits(bits, degree - 1);
  for (int k = 0; k < degree; ++k) directions[k] = (take_bits(bits, k) << 1 | 1) << (BITS - 1 - k);
  for (int k = degree; k < BITS; ++k) {
    directions[k] = directions[k - degree] ^ directions[k - degree] >> degree;
    for (int j = 1; j < degree; ++j)
      if (inner >> (degree - 1 - j) & 1) directions[k] ^= directions[k - j];
  }
}

static void fill_dimension(const uint32_t* directions, int64_t skip, rn_tensor_t* out, int64_t d) {
  int64_t count = rn_tensor_dim(out, 0), dims = rn_tensor_dim(out, 1);
  uint32_t gray = (uint32_t)(skip ^ skip >> 1), point = 0;
  for (int k = 0; k < BITS; ++k)
    if (gray >> k & 1) point ^= directions[k];
  for (int64_t i = 0; i < count; ++i) {
    // The next Gray code differs in the bit of the lowest zero of the number.
    point ^= directions[__builtin_ctzll(~(uint64_t)(skip + i))];
    double value = (double)point / 4294967296.0;
    if (out->dtype == RN_FLOAT)
      RN_DATA(out, float)[i * dims + d] = (float)value;
    else
      RN_DATA(out, double)[i * dims + d] = value;
  }
}

static rn_status_t read_count(rn_kernel_ctx_t* ctx, int i, const char* name, int64_t* out) {
  if (rn_in(ctx, i)->rank != 0) return rn_invalid_argument("%s must be a scalar", name);
  *out = rn_int_at(rn_in(ctx, i), 0);
  return RN_OK;
}

static rn_status_t sobol_sample(rn_kernel_ctx_t* ctx) {
  int64_t dims = 0, count = 0, skip = 0;
  uint32_t directions[BITS];
  sobol_bits_t bits = {0, 1, 0};
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(read_count(ctx, 0, "dim", &dims));
  RN_RETURN_IF_ERROR(read_count(ctx, 1, "num_results", &count));
  RN_RETURN_IF_ERROR(read_count(ctx, 2, "skip", &skip));
  if (dims < 1) return rn_invalid_argument("dim must be at least one");
  if (dims > 21200) return rn_invalid_argument("dim must be at most 21200");
  if (count < 1) return rn_invalid_argument("num_results must be at least one");
  if (skip < 0) return rn_invalid_argument("skip must be non-negative");
  if (count >= INT32_MAX - skip)
    return rn_invalid_argument("num_results+skip must be less than %d", INT32_MAX);
  if (count * dims >= INT32_MAX)
    return rn_invalid_argument("num_results*dim must be less than %d", INT32_MAX);
  if (dims > MAX_DIMENSIONS)
    return rn_unimplemented("SobolSample supports up to %d dimensions, got %lld", MAX_DIMENSIONS,
                            (long long)dims);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, (int64_t[]){count, dims}}, &out));
  for (int k = 0; k < BITS; ++k) directions[k] = 1u << (BITS - 1 - k);
  for (int64_t d = 0; d < dims; ++d) {
    if (d > 0) next_dimension(&bits, directions);
    fill_dimension(directions, skip, out, d);
  }
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "SobolSample",
     .device = "CPU",
     .types = {{"dtype", RN_T(FLOAT) | RN_T(DOUBLE)}},
     .compute = sobol_sample},
};
RN_KERNEL_FAMILY(cpu_sobol, rows);
