// Initialisers and regularisers.
#include <math.h>

#include "runnel/variables.h"
#include "train/words.h"

#define MAKER(name)                                                                       \
  static rn_edge_t name(rn_scope_t* s, const rn_initializer_t* self, const int64_t* dims, \
                        int rank, int dtype)

MAKER(make_constant) {
  rn_edge_t value = rn_const_scalar(s, dtype, self->a);
  return rank == 0 ? value : rn_Fill(s, rn_shape_const(s, dims, rank), value);
}

MAKER(make_values) { return rn_const(s, dtype, dims, rank, self->arg); }

MAKER(make_uniform) {
  rn_edge_t shape = rn_shape_const(s, dims, rank);
  rn_edge_t unit =
      rn_RandomUniform(s, shape, dtype, .seed = rn_graph_seed(self->seed), .seed2 = self->seed);
  rn_edge_t min = rn_const_scalar(s, dtype, self->a);
  rn_edge_t range = rn_Sub(s, rn_const_scalar(s, dtype, self->b), min);
  return rn_AddV2(s, rn_Mul(s, unit, range), min);
}

static rn_edge_t shifted(rn_scope_t* s, rn_edge_t unit, double mean, double deviation) {
  return rn_AddV2(s, rn_Mul(s, unit, rn_like(s, unit, deviation)), rn_like(s, unit, mean));
}

MAKER(make_normal) {
  rn_edge_t unit = rn_RandomStandardNormal(s, rn_shape_const(s, dims, rank), dtype,
                                           .seed = rn_graph_seed(self->seed), .seed2 = self->seed);
  return shifted(s, unit, self->a, self->b);
}

MAKER(make_truncated) {
  rn_edge_t unit = rn_TruncatedNormal(s, rn_shape_const(s, dims, rank), dtype,
                                      .seed = rn_graph_seed(self->seed), .seed2 = self->seed);
  return shifted(s, unit, self->a, self->b);
}

// Fan-in and fan-out: the last two dimensions, times the window of a convolution.
static double fan_of(rn_fan_t fan, const int64_t* dims, int rank) {
  double window = 1, in = 1, out = 1;
  for (int i = 0; i < rank - 2; ++i) window *= (double)dims[i];
  if (rank == 1) in = out = (double)dims[0];
  if (rank >= 2) in = window * (double)dims[rank - 2], out = window * (double)dims[rank - 1];
  return fan == RN_FAN_IN ? in : fan == RN_FAN_OUT ? out : (in + out) / 2;
}

// The standard deviation of a normal distribution truncated at two standard deviations.
#define CUT_DEVIATION .87962566103423978

MAKER(make_scaled) {
  double variance = self->a / fmax(1, fan_of(self->fan, dims, rank));
  rn_initializer_t drawn = {.seed = self->seed};
  switch (self->distribution) {
    case RN_UNIFORM:
      drawn.a = -sqrt(3 * variance);
      drawn.b = sqrt(3 * variance);
      return make_uniform(s, &drawn, dims, rank, dtype);
    case RN_UNTRUNCATED_NORMAL:
      drawn.b = sqrt(variance);
      return make_normal(s, &drawn, dims, rank, dtype);
    default:
      drawn.b = sqrt(variance) / CUT_DEVIATION;
      return make_truncated(s, &drawn, dims, rank, dtype);
  }
}

// |a| with columns made orthonormal, each pointing where it did: the Q of the one QR whose R has a
// positive diagonal. R is the Cholesky factor of AᵀA, because RᵀR = AᵀA.
static rn_edge_t orthonormal(rn_scope_t* s, rn_edge_t a) {
  rn_edge_t lower = rn_Cholesky(s, rn_MatMul(s, a, a, .transpose_a = true));
  rn_edge_t swap = rn_axes(s, (const int32_t[]){1, 0}, 2);
  rn_edge_t q = rn_MatrixTriangularSolve(s, lower, rn_Transpose(s, a, swap));
  return rn_Transpose(s, q, swap);
}

// The orthogonal part of a random matrix, with signs fixed so that the distribution is uniform.
MAKER(make_orthogonal) {
  if (rank < 2) {
    rn_refuse(s, "The tensor to initialize must be at least two-dimensional");
    return RN_NO_EDGE;
  }
  int64_t rows = 1, columns = dims[rank - 1];
  for (int i = 0; i < rank - 1; ++i)
    if (!rn_mul_i64_ok(rows, dims[i], &rows)) rows = 0;
  int64_t flat[2] = {rows > columns ? rows : columns, rows > columns ? columns : rows};
  rn_initializer_t drawn = {.b = 1, .seed = self->seed};
  rn_edge_t a = rn_as(s, make_normal(s, &drawn, flat, 2, dtype), RN_DOUBLE);
  // AᵀA squares the condition number, which costs half the digits. The second pass starts from a
  // nearly orthogonal matrix and loses none.
  rn_edge_t q = rn_as(s, orthonormal(s, orthonormal(s, a)), dtype);
  if (rows < columns) q = rn_Transpose(s, q, rn_axes(s, (const int32_t[]){1, 0}, 2));
  return rn_Mul(s, rn_reshape(s, q, dims, rank), rn_const_scalar(s, dtype, self->a));
}

MAKER(make_identity) {
  if (rank != 2) {
    rn_refuse(s, "Identity matrix initializer can only be used for 2D matrices.");
    return RN_NO_EDGE;
  }
  rn_edge_t ranges[2];
  for (int i = 0; i < 2; ++i)
    ranges[i] = rn_Range(s, rn_const_int32(s, 0), rn_const_scalar(s, RN_INT32, (double)dims[i]),
                         rn_const_int32(s, 1));
  rn_edge_t ones = rn_Equal(s, rn_ExpandDims(s, ranges[0], rn_const_int32(s, 1)), ranges[1]);
  return rn_Mul(s, rn_Cast(s, ones, dtype), rn_const_scalar(s, dtype, self->a));
}

RN_API rn_initializer_t rn_init_constant(double value) {
  return (rn_initializer_t){.make = make_constant, .a = value};
}
RN_API rn_initializer_t rn_init_zeros(void) { return rn_init_constant(0); }
RN_API rn_initializer_t rn_init_ones(void) { return rn_init_constant(1); }
RN_API rn_initializer_t rn_init_values(const void* data) {
  return (rn_initializer_t){.make = make_values, .arg = data};
}
RN_API rn_initializer_t rn_init_uniform(double min, double max, int64_t seed) {
  return (rn_initializer_t){.make = make_uniform, .a = min, .b = max, .seed = seed};
}
RN_API rn_initializer_t rn_init_normal(double mean, double deviation, int64_t seed) {
  return (rn_initializer_t){.make = make_normal, .a = mean, .b = deviation, .seed = seed};
}
RN_API rn_initializer_t rn_init_truncated_normal(double mean, double deviation, int64_t seed) {
  return (rn_initializer_t){.make = make_truncated, .a = mean, .b = deviation, .seed = seed};
}
RN_API rn_initializer_t rn_init_variance_scaling(double scale, rn_fan_t fan,
                                                 rn_distribution_t distribution, int64_t seed) {
  return (rn_initializer_t){
      .make = make_scaled, .a = scale, .seed = seed, .fan = fan, .distribution = distribution};
}
RN_API rn_initializer_t rn_init_glorot_uniform(int64_t seed) {
  return rn_init_variance_scaling(1, RN_FAN_AVG, RN_UNIFORM, seed);
}
RN_API rn_initializer_t rn_init_glorot_normal(int64_t seed) {
  return rn_init_variance_scaling(1, RN_FAN_AVG, RN_TRUNCATED_NORMAL, seed);
}
RN_API rn_initializer_t rn_init_he_uniform(int64_t seed) {
  return rn_init_variance_scaling(2, RN_FAN_IN, RN_UNIFORM, seed);
}
RN_API rn_initializer_t rn_init_he_normal(int64_t seed) {
  return rn_init_variance_scaling(2, RN_FAN_IN, RN_TRUNCATED_NORMAL, seed);
}
RN_API rn_initializer_t rn_init_lecun_uniform(int64_t seed) {
  return rn_init_variance_scaling(1, RN_FAN_IN, RN_UNIFORM, seed);
}
RN_API rn_initializer_t rn_init_lecun_normal(int64_t seed) {
  return rn_init_variance_scaling(1, RN_FAN_IN, RN_TRUNCATED_NORMAL, seed);
}
RN_API rn_initializer_t rn_init_orthogonal(double gain, int64_t seed) {
  return (rn_initializer_t){.make = make_orthogonal, .a = gain, .seed = seed};
}
RN_API rn_initializer_t rn_init_identity(double gain) {
  return (rn_initializer_t){.make = make_identity, .a = gain};
}

RN_API rn_edge_t rn_initial_value(rn_scope_t* scope, rn_initializer_t initializer,
                                  const int64_t* dims, int rank, int dtype) {
  if (!rn_scope_ok(scope)) return RN_NO_EDGE;
  if (rank < 0 || rank > RN_MAX_RANK || (rank > 0 && !dims)) {
    rn_refuse(scope, "An initial value needs a known shape");
    return RN_NO_EDGE;
  }
  if (!initializer.make)
    initializer =
        rn_dtype_is_floating((rn_dtype_t)dtype) ? rn_init_glorot_uniform(0) : rn_init_zeros();
  return initializer.make(scope, &initializer, dims, rank, dtype);
}

static rn_edge_t make_penalty(rn_scope_t* s, const rn_regularizer_t* self, rn_edge_t value) {
  rn_edge_t l1 = RN_NO_EDGE, l2 = RN_NO_EDGE;
  if (self->l1 != 0) l1 = rn_Mul(s, rn_like(s, value, self->l1), rn_sum_all(s, rn_Abs(s, value)));
  if (self->l2 != 0)
    l2 = rn_Mul(s, rn_like(s, value, self->l2), rn_sum_all(s, rn_Square(s, value)));
  if (l1.node && l2.node) return rn_AddV2(s, l1, l2);
  return l1.node ? l1 : l2.node ? l2 : rn_like(s, value, 0);
}

RN_API rn_regularizer_t rn_regularize(double l1, double l2) {
  return (rn_regularizer_t){.make = make_penalty, .l1 = l1, .l2 = l2};
}
