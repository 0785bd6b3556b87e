// Gradients of neural network ops, images, rounding and linear algebra.
#define GRAD_SUITE grad_nn
#include "differences.h"

#define TWICE(...) OPTIONS(SHAPES(__VA_ARGS__), .is_twice = true)
#define FLOAT(...) OPTIONS(SHAPES(__VA_ARGS__), .is_float = true)
static const int64_t ones[5] = {1, 1, 1, 1, 1}, twos[4] = {1, 2, 2, 1}, wide[4] = {1, 3, 2, 1};
static const int64_t cube[5] = {1, 2, 2, 2, 1}, slab[5] = {1, 1, 2, 2, 1};

GRAD(Relu, TWICE("2,3"), rn_Relu(s, x[0]))
GRAD(Relu6, OPTIONS(SHAPES("8"), .low = -2, .high = 9, .is_twice = true), rn_Relu6(s, x[0]))
GRAD(Elu, TWICE("2,3"), rn_Elu(s, x[0]))
GRAD(Selu, TWICE("2,3"), rn_Selu(s, x[0]))
GRAD(LeakyRelu, TWICE("2,3"), rn_LeakyRelu(s, x[0], .alpha = RN_SET(0.1f)))
GRAD(Softplus, TWICE("2,3"), rn_Softplus(s, x[0]))
GRAD(Softsign, TWICE("2,3"), rn_Softsign(s, x[0]))
GRAD(ReluGrad, SHAPES("2,3", "2,3"), rn_ReluGrad(s, x[0], x[1]))
GRAD(EluGrad, SHAPES("2,3", "2,3"), rn_EluGrad(s, x[0], x[1]))
GRAD(SeluGrad, SHAPES("2,3", "2,3"), rn_SeluGrad(s, x[0], x[1]))
GRAD(SoftplusGrad, SHAPES("2,3", "2,3"), rn_SoftplusGrad(s, x[0], x[1]))
GRAD(SoftsignGrad, SHAPES("2,3", "2,3"), rn_SoftsignGrad(s, x[0], x[1]))
GRAD(LeakyReluGrad, SHAPES("2,3", "2,3"), rn_LeakyReluGrad(s, x[0], x[1]))
GRAD(BiasAdd, TWICE("2,2,3", "3"), rn_BiasAdd(s, rn_Square(s, x[0]), rn_Square(s, x[1])))
GRAD(BiasAddNchw, OPTIONS(SHAPES("2,3,2,2", "3"), .is_twice = true, .is_static = true),
     rn_BiasAdd(s, rn_Square(s, x[0]), rn_Square(s, x[1]), .data_format = "NCHW"))
GRAD(BiasAddV1, SHAPES("2,3", "3"), rn_BiasAddV1(s, x[0], x[1]))
GRAD(Softmax, TWICE("2,3"), rn_Softmax(s, x[0]))
GRAD(LogSoftmax, TWICE("2,3"), rn_LogSoftmax(s, x[0]))
GRAD(SoftmaxXent, SHAPES("2,3", "2,3"),
     rn_SoftmaxCrossEntropyWithLogits(s, x[0], rn_Softmax(s, x[1])).loss)
GRAD(SoftmaxXentTwice, TWICE("2,3"),
     rn_SoftmaxCrossEntropyWithLogits(
         s, x[0], rn_Softmax(s, rn_Cast(s, MATRIX(3, 1, 2, 0, 2, 1, 1), RN_DOUBLE)))
         .loss)
GRAD(SparseSoftmaxXent, TWICE("2,3"),
     rn_SparseSoftmaxCrossEntropyWithLogits(s, x[0], INTS(2, 0)).loss)
GRAD(L2Loss, TWICE("2,3"), rn_L2Loss(s, x[0]))
GRAD(LRN, FLOAT("1,2,2,6"), rn_LRN(s, x[0], .depth_radius = RN_SET(2), .beta = RN_SET(0.75f)))
GRAD(TopKV2, SHAPES("2,2,5"), rn_TopKV2(s, x[0], INT(3)).values)
GRAD(NthElement, SHAPES("2,5"), rn_NthElement(s, x[0], INT(2)))

GRAD(Conv2D, TWICE("2,5,4,2", "3,2,2,3"), rn_Conv2D(s, x[0], x[1], ones, 4, "SAME"))
GRAD(Conv2DStrides, SHAPES("1,5,5,2", "3,3,2,2"), rn_Conv2D(s, x[0], x[1], twos, 4, "VALID"))
GRAD(Conv2DExplicit, SHAPES("1,4,4,1", "3,3,1,2"),
     rn_Conv2D(s, x[0], x[1], ones, 4, "EXPLICIT",
               .explicit_paddings = RN_LIST(((const int64_t[]){0, 0, 1, 0, 2, 1, 0, 0}), 8)))
GRAD(Conv2DBackpropInput, SHAPES("3,3,2,2", "1,2,2,2"),
     rn_Conv2DBackpropInput(s, INTS(1, 5, 5, 2), x[0], x[1], twos, 4, "VALID"))
GRAD(Conv2DBackpropFilter, SHAPES("1,5,5,2", "1,2,2,2"),
     rn_Conv2DBackpropFilter(s, x[0], INTS(3, 3, 2, 2), x[1], twos, 4, "VALID"))
GRAD(Conv3D, SHAPES("1,3,3,3,2", "2,2,2,2,2"), rn_Conv3D(s, x[0], x[1], ones, 5, "SAME"))
GRAD(Conv3DTwice, OPTIONS(SHAPES("1,2,3,3,1", "2,2,2,1,2"), .is_twice = true),
     rn_Conv3D(s, x[0], x[1], ones, 5, "VALID"))
GRAD(Depthwise, TWICE("1,4,4,2", "2,3,2,2"),
     rn_DepthwiseConv2dNative(s, x[0], x[1], ones, 4, "SAME"))
GRAD(Dilation2D, SHAPES("1,4,4,2", "2,2,2"),
     rn_Dilation2D(s, x[0], x[1], ones, 4, ones, 4, "VALID"))
GRAD(AvgPool, TWICE("1,5,4,2"), rn_AvgPool(s, rn_Square(s, x[0]), wide, 4, twos, 4, "SAME"))
GRAD(MaxPool, TWICE("1,5,4,2"), rn_MaxPool(s, rn_Square(s, x[0]), wide, 4, twos, 4, "VALID"))
GRAD(MaxPoolV2, SHAPES("1,5,4,2"),
     rn_MaxPoolV2(s, x[0], INTS(1, 2, 2, 1), INTS(1, 2, 2, 1), "SAME"))
GRAD(MaxPoolWithArgmax, SHAPES("1,4,4,2"),
     rn_MaxPoolWithArgmax(s, x[0], twos, 4, twos, 4, "SAME").output)
GRAD(AvgPool3D, FLOAT("1,3,4,4,2"), rn_AvgPool3D(s, x[0], cube, 5, slab, 5, "SAME"))
GRAD(MaxPool3D, FLOAT("1,2,4,4,1"), rn_MaxPool3D(s, x[0], cube, 5, slab, 5, "SAME"))
GRAD(FractionalMaxPool, SHAPES("1,5,5,1"),
     rn_FractionalMaxPool(s, x[0], ((const float[]){1.0f, 1.5f, 1.5f, 1.0f}), 4,
                          .deterministic = true, .seed = 1, .seed2 = 2)
         .output)

#define NORM FLOAT("2,3,2,2", "2", "2")
#define NOTHING rn_const(s, RN_FLOAT, (const int64_t[]){0}, 1, NULL)
#define MEAN rn_ZerosLike(s, x[1])
#define VARIANCE rn_OnesLike(s, x[1])
GRAD(FusedBatchNorm, NORM, rn_FusedBatchNorm(s, x[0], x[1], x[2], NOTHING, NOTHING).y)
GRAD(FusedBatchNormV3, OPTIONS(SHAPES("2,3,2,2", "2", "2"), .is_float = true, .tolerance = 2e-2),
     rn_FusedBatchNormV3(s, x[0], x[1], x[2], MEAN, VARIANCE).y)
GRAD(FusedBatchNormStill, NORM,
     rn_FusedBatchNormV2(s, x[0], x[1], x[2], MEAN, VARIANCE, .is_training = RN_SET(false)).y)
GRAD(FusedBatchNormTwice,
     OPTIONS(SHAPES("2,3,2,2", "2", "2"), .is_float = true, .is_twice = true, .tolerance = 3e-2),
     rn_Square(s,
               rn_FusedBatchNormV3(s, x[0], x[1], x[2], MEAN, VARIANCE, .epsilon = RN_SET(0.1f)).y))

GRAD(ResizeBilinear, FLOAT("1,3,4,2"), rn_ResizeBilinear(s, x[0], INTS(5, 6)))
GRAD(ResizeBilinearCorners, FLOAT("1,3,4,2"),
     rn_ResizeBilinear(s, x[0], INTS(5, 6), .align_corners = true))
GRAD(ResizeNearestNeighbor, SHAPES("1,3,4,2"), rn_ResizeNearestNeighbor(s, x[0], INTS(5, 6)))

// Stacks of matrices. The factors see symmetric matrices: a a' + 2.
#define EYE rn_MatrixDiag(s, rn_OnesLike(s, rn_MatrixDiagPart(s, x[0])))
#define SPD rn_AddV2(s, rn_BatchMatMulV2(s, x[0], x[0], .adj_y = true), rn_Mul(s, REAL(2), EYE))
GRAD(Cholesky, SHAPES("2,3,3"), rn_Cholesky(s, SPD))
GRAD(MatrixDeterminant, SHAPES("2,3,3"), rn_MatrixDeterminant(s, SPD))
GRAD(MatrixInverse, SHAPES("2,3,3"), rn_MatrixInverse(s, SPD))
GRAD(MatrixInverseAdjoint, SHAPES("3,3"),
     rn_MatrixInverse(s, rn_AddV2(s, x[0], rn_Mul(s, REAL(3), EYE)), .adjoint = true))
GRAD(MatrixSolve, SHAPES("3,3", "3,2"),
     rn_MatrixSolve(s, rn_AddV2(s, x[0], rn_Mul(s, REAL(3), EYE)), x[1]))
GRAD(MatrixSolveAdjoint, SHAPES("3,3", "3,2"),
     rn_MatrixSolve(s, rn_AddV2(s, x[0], rn_Mul(s, REAL(3), EYE)), x[1], .adjoint = true))
GRAD(MatrixTriangularSolve, SHAPES("3,3", "3,2"),
     rn_MatrixTriangularSolve(s, rn_AddV2(s, x[0], rn_Mul(s, REAL(3), EYE)), x[1]))
GRAD(MatrixTriangularSolveUpper, SHAPES("3,3", "2,3,2"),
     rn_MatrixTriangularSolve(s, rn_AddV2(s, x[0], rn_Mul(s, REAL(3), EYE)), x[1],
                              .lower = RN_SET(false), .adjoint = true))

GRAD(EinsumMatMul, SHAPES("2,3", "3,4"), rn_Einsum(s, x, 2, "ij,jk->ik"))
GRAD(EinsumTranspose, SHAPES("2,3"), rn_Einsum(s, x, 1, "ij->ji"))
GRAD(EinsumSum, SHAPES("2,3"), rn_Einsum(s, x, 1, "ij->i"))
GRAD(EinsumSumBoth, SHAPES("2,3", "4,2"), rn_Einsum(s, x, 2, "ij,ki->i"))
GRAD(EinsumDiagonal, SHAPES("3,3"), rn_Einsum(s, x, 1, "ii->i"))
GRAD(EinsumTrace, SHAPES("3,3"), rn_Einsum(s, x, 1, "ii->"))
GRAD(EinsumOuter, SHAPES("2", "3"), rn_Einsum(s, x, 2, "i,j->ij"))
GRAD(EinsumBroadcast, SHAPES("2,1,2,3", "3,3,2"), rn_Einsum(s, x, 2, "...ij,...jk->...ik"))
GRAD(EinsumDotsLast, SHAPES("2,3,4", "3,5"), rn_Einsum(s, x, 2, "ij...,jk->ki..."))
GRAD(EinsumDotsAndSum, SHAPES("2,3,4", "2"), rn_Einsum(s, x, 2, "i...j,i->..."))

// Gradients that are linear in what arrives.
static rn_edge_t floats(rn_scope_t* s, const int64_t* dims, int rank) {
  float values[64];
  for (int i = 0; i < 64; ++i) values[i] = 0.25f * (float)(i % 5) - 0.5f;
  return rn_const(s, RN_FLOAT, dims, rank, values);
}
#define IMAGE floats(s, (const int64_t[]){1, 2, 3, 1}, 4)
#define STILL_FLOAT(...) OPTIONS(SHAPES(__VA_ARGS__), .is_float = true, .is_static = true)
GRAD(FakeQuantGradient, STILL_FLOAT("1,2,3,1"),
     rn_FakeQuantWithMinMaxArgsGradient(s, x[0], IMAGE, .min = RN_SET(-0.3f), .max = RN_SET(0.3f)))
GRAD(ResizeBilinearGradient, STILL_FLOAT("1,4,5,1"), rn_ResizeBilinearGrad(s, x[0], IMAGE))
GRAD(ResizeBicubicGradient, STILL_FLOAT("1,4,5,1"), rn_ResizeBicubicGrad(s, x[0], IMAGE))
