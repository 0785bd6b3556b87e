// Gradients of arithmetic, reductions, matmuls and segment ops.
#define GRAD_SUITE grad_math
#include "differences.h"

#define POSITIVE(...) OPTIONS(SHAPES(__VA_ARGS__), .low = 0.5, .high = 2)
#define INSIDE(...) OPTIONS(SHAPES(__VA_ARGS__), .low = -0.8, .high = 0.8)
#define TWICE(...) OPTIONS(SHAPES(__VA_ARGS__), .is_twice = true)
#define POSITIVE_TWICE(...) \
  OPTIONS(SHAPES(__VA_ARGS__), .low = 0.5, .high = 2, .is_twice = true, .tolerance = 1e-7)

GRAD(Abs, SHAPES("2,3"), rn_Abs(s, x[0]))
GRAD(Acos, INSIDE("2,3"), rn_Acos(s, x[0]))
GRAD(Acosh, OPTIONS(SHAPES("5"), .low = 1.5, .high = 3), rn_Acosh(s, x[0]))
GRAD(Asin, INSIDE("2,3"), rn_Asin(s, x[0]))
GRAD(Asinh, SHAPES("2,3"), rn_Asinh(s, x[0]))
GRAD(Atan, SHAPES("2,3"), rn_Atan(s, x[0]))
GRAD(Atanh, INSIDE("2,3"), rn_Atanh(s, x[0]))
GRAD(Cos, TWICE("2,3"), rn_Cos(s, x[0]))
GRAD(Cosh, SHAPES("2,3"), rn_Cosh(s, x[0]))
GRAD(Digamma, POSITIVE("5"), rn_Digamma(s, x[0]))
GRAD(Erf, TWICE("5"), rn_Erf(s, x[0]))
GRAD(Erfc, SHAPES("5"), rn_Erfc(s, x[0]))
GRAD(Erfinv, INSIDE("5"), rn_Erfinv(s, x[0]))
GRAD(Exp, TWICE("2,3"), rn_Exp(s, x[0]))
GRAD(Expm1, SHAPES("2,3"), rn_Expm1(s, x[0]))
GRAD(Inv, POSITIVE_TWICE("5"), rn_Inv(s, x[0]))
GRAD(Lgamma, POSITIVE("5"), rn_Lgamma(s, x[0]))
GRAD(Log, POSITIVE_TWICE("5"), rn_Log(s, x[0]))
GRAD(Log1p, POSITIVE("5"), rn_Log1p(s, x[0]))
GRAD(Ndtri, OPTIONS(SHAPES("5"), .low = 0.1, .high = 0.9), rn_Ndtri(s, x[0]))
GRAD(Neg, SHAPES("2,3"), rn_Neg(s, x[0]))
GRAD(Reciprocal, POSITIVE_TWICE("5"), rn_Reciprocal(s, x[0]))
GRAD(Rsqrt, POSITIVE_TWICE("5"), rn_Rsqrt(s, x[0]))
GRAD(Sigmoid, TWICE("2,3"), rn_Sigmoid(s, x[0]))
GRAD(Sign, SHAPES("2,3"), rn_Sign(s, x[0]))
GRAD(Sin, TWICE("2,3"), rn_Sin(s, x[0]))
GRAD(Sinh, SHAPES("2,3"), rn_Sinh(s, x[0]))
GRAD(Sqrt, POSITIVE_TWICE("5"), rn_Sqrt(s, x[0]))
GRAD(Square, TWICE("2,3"), rn_Square(s, x[0]))
GRAD(Tan, SHAPES("2,3"), rn_Tan(s, x[0]))
GRAD(Tanh, TWICE("2,3"), rn_Tanh(s, x[0]))
GRAD(InvGrad, POSITIVE("3", "3"), rn_InvGrad(s, x[0], x[1]))
GRAD(RsqrtGrad, POSITIVE("3", "3"), rn_RsqrtGrad(s, x[0], x[1]))
GRAD(SqrtGrad, POSITIVE("3", "3"), rn_SqrtGrad(s, x[0], x[1]))
GRAD(SigmoidGrad, TWICE("3", "3"), rn_SigmoidGrad(s, x[0], x[1]))
GRAD(TanhGrad, TWICE("3", "3"), rn_TanhGrad(s, x[0], x[1]))
GRAD(Cast, OPTIONS(SHAPES("3"), .tolerance = 0.1),
     rn_Cast(s, rn_Cast(s, rn_Square(s, x[0]), RN_FLOAT), RN_DOUBLE))

// Complex numbers, by their parts.
#define COMPLEX rn_Complex(s, x[0], x[1], .Tout = RN_COMPLEX128)
#define SIZE(value)                                               \
  rn_AddV2(s, rn_Square(s, rn_Real(s, value, .Tout = RN_DOUBLE)), \
           rn_Imag(s, value, .Tout = RN_DOUBLE))
GRAD(Complex, SHAPES("2,3", "3"), SIZE(COMPLEX))
GRAD(Conj, SHAPES("3", "3"), SIZE(rn_Conj(s, COMPLEX)))
GRAD(ComplexAbs, POSITIVE("3", "3"), rn_ComplexAbs(s, COMPLEX, .Tout = RN_DOUBLE))
GRAD(Angle, POSITIVE("3", "3"), rn_Angle(s, COMPLEX, .Tout = RN_DOUBLE))
GRAD(ComplexMul, SHAPES("3", "3"), SIZE(rn_Mul(s, COMPLEX, rn_Square(s, COMPLEX))))
GRAD(ComplexDiv, POSITIVE("3", "3"), SIZE(rn_RealDiv(s, rn_Conj(s, COMPLEX), COMPLEX)))
GRAD(ComplexExp, SHAPES("3", "3"), SIZE(rn_Exp(s, COMPLEX)))
GRAD(ComplexTanh, SHAPES("3", "3"), SIZE(rn_Tanh(s, COMPLEX)))
GRAD(ComplexSqrt, POSITIVE("3", "3"), SIZE(rn_Sqrt(s, COMPLEX)))
GRAD(ComplexPow, POSITIVE("3", "3"), SIZE(rn_Pow(s, COMPLEX, rn_Conj(s, COMPLEX))))
GRAD(ComplexMatMul, SHAPES("2,2", "2,2"),
     SIZE(rn_MatMul(s, COMPLEX, rn_Exp(s, COMPLEX), .transpose_a = true)))

// Two arguments, and all ways to broadcast them.
GRAD(Add, SHAPES("2,3", "2,3"), rn_Add(s, x[0], x[1]))
GRAD(AddRow, SHAPES("2,3", "3"), rn_AddV2(s, x[0], x[1]))
GRAD(AddColumn, SHAPES("2,3", "2,1"), rn_AddV2(s, x[0], x[1]))
GRAD(AddBoth, SHAPES("2,1,4", "3,1"), rn_AddV2(s, x[0], x[1]))
GRAD(AddScalar, SHAPES("", "2,3"), rn_AddV2(s, x[0], x[1]))
GRAD(AddDeep, SHAPES("4,1,2,3", "2,1"), rn_AddV2(s, x[0], x[1]))
GRAD(AddItself, SHAPES("3"), rn_AddV2(s, x[0], x[0]))
GRAD(Sub, SHAPES("2,3", "3"), rn_Sub(s, x[0], x[1]))
GRAD(SubFrom, SHAPES("3", "2,1"), rn_Sub(s, x[0], x[1]))
GRAD(Mul, TWICE("2,3", "2,3"), rn_Mul(s, x[0], x[1]))
GRAD(MulScalar, TWICE("2,3", ""), rn_Mul(s, x[0], x[1]))
GRAD(MulOuter, TWICE("2,1", "3"), rn_Mul(s, x[0], x[1]))
GRAD(Div, POSITIVE_TWICE("2,3", "3"), rn_Div(s, x[0], x[1]))
GRAD(RealDiv, POSITIVE("2,1", "3"), rn_RealDiv(s, x[0], x[1]))
GRAD(DivNoNan, POSITIVE("2,3", "3"), rn_DivNoNan(s, x[0], x[1]))
GRAD(Maximum, SHAPES("2,3", "3"), rn_Maximum(s, x[0], x[1]))
GRAD(Minimum, SHAPES("2,3", "2,1"), rn_Minimum(s, x[0], x[1]))
GRAD(Pow, POSITIVE("2,3", "3"), rn_Pow(s, x[0], x[1]))
GRAD(SquaredDifference, TWICE("2,3", "3"), rn_SquaredDifference(s, x[0], x[1]))
GRAD(Atan2, POSITIVE("2,3", "3"), rn_Atan2(s, x[0], x[1]))
GRAD(MulNoNan, SHAPES("2,3", "3"), rn_MulNoNan(s, x[0], x[1]))
GRAD(Xlogy, POSITIVE("2,3", "3"), rn_Xlogy(s, x[0], x[1]))
GRAD(Xlog1py, POSITIVE("2,3", "3"), rn_Xlog1py(s, x[0], x[1]))
GRAD(Xdivy, POSITIVE("2,3", "3"), rn_Xdivy(s, x[0], x[1]))
GRAD(FloorMod, OPTIONS(SHAPES("5", ""), .low = 1.1, .high = 1.9), rn_FloorMod(s, x[0], x[1]))
GRAD(TruncateMod, OPTIONS(SHAPES("5", ""), .low = 1.1, .high = 1.9), rn_TruncateMod(s, x[0], x[1]))
GRAD(Igamma, OPTIONS(SHAPES("3", "3"), .low = 0.5, .high = 2, .tolerance = 1e-6),
     rn_Igamma(s, x[0], x[1]))
GRAD(Igammac, OPTIONS(SHAPES("3", "3"), .low = 0.5, .high = 2, .tolerance = 1e-6),
     rn_Igammac(s, x[0], x[1]))
GRAD(Zeta, OPTIONS(SHAPES("3", "3"), .low = 2, .high = 4, .skipped = 1), rn_Zeta(s, x[0], x[1]))
GRAD(Polygamma, POSITIVE("3"), rn_Polygamma(s, REAL(2), x[0]))
GRAD(NextAfter, OPTIONS(SHAPES("3", "3"), .skipped = 2), rn_NextAfter(s, x[0], x[1]))
GRAD(Cross, SHAPES("2,3", "2,3"), rn_Cross(s, x[0], x[1]))
GRAD(AddN, SHAPES("2,3", "2,3", "2,3"), rn_AddN(s, x, 3))
GRAD(AccumulateNV2, SHAPES("2,3", "2,3"), rn_AccumulateNV2(s, x, 2, ((const int64_t[]){2, 3}), 2))
GRAD(ClipByValue, SHAPES("2,3", "", ""),
     rn_ClipByValue(s, x[0], rn_Sub(s, x[1], REAL(0.5)), rn_AddV2(s, x[2], REAL(0.5))))
#define IS_POSITIVE(value) rn_Greater(s, value, REAL(0))
GRAD(Select, SHAPES("2,3", "2,3"), rn_Select(s, IS_POSITIVE(x[0]), x[0], x[1]))
GRAD(SelectRows, SHAPES("2,3", "2,3"),
     rn_Select(s, rn_Equal(s, INTS(0, 1), INTS(1, 1)), x[0], x[1]))
GRAD(SelectV2, SHAPES("2,3", "3"), rn_SelectV2(s, IS_POSITIVE(x[0]), x[0], x[1]))
GRAD(SelectV2Mask, SHAPES("2,1", ""),
     rn_SelectV2(s, rn_Equal(s, INTS(0, 1, 2), INTS(0, 0, 2)), x[0], x[1]))

// Reductions.
GRAD(SumAll, SHAPES("2,3"), rn_Sum(s, x[0], INTS(0, 1)))
GRAD(SumFirst, SHAPES("2,3"), rn_Sum(s, x[0], INT(0)))
GRAD(SumLast, SHAPES("2,3,4"), rn_Sum(s, x[0], INT(-1)))
GRAD(SumMiddle, SHAPES("2,3,4"), rn_Sum(s, x[0], INTS(1)))
GRAD(SumOuter, SHAPES("2,3,4"), rn_Sum(s, x[0], INTS(0, 2)))
GRAD(SumInner, SHAPES("2,3,4"), rn_Sum(s, x[0], INTS(1, -1)))
GRAD(SumKept, SHAPES("2,3,4"), rn_Sum(s, x[0], INTS(1), .keep_dims = true))
GRAD(SumNone, SHAPES("2,3"), rn_Sum(s, x[0], rn_const_int32_list(s, NULL, 0)))
GRAD(SumFed, SHAPES("2,3,4"), rn_Sum(s, x[0], rn_Sub(s, rn_Rank(s, x[0]), INTS(1, 3))))
GRAD(MeanAll, SHAPES("2,3"), rn_Mean(s, x[0], INTS(0, 1)))
GRAD(MeanLast, SHAPES("2,3"), rn_Mean(s, x[0], INT(1)))
GRAD(MeanKept, SHAPES("2,3,4"), rn_Mean(s, x[0], INTS(0, 2), .keep_dims = true))
GRAD(Max, SHAPES("2,3,4"), rn_Max(s, x[0], INTS(1)))
GRAD(MaxAll, SHAPES("2,3"), rn_Max(s, x[0], INTS(0, 1)))
GRAD(Min, SHAPES("2,3,4"), rn_Min(s, x[0], INTS(0, 2), .keep_dims = true))
GRAD(Prod, TWICE("3"), rn_Prod(s, x[0], INT(0)))
GRAD(ProdAll, SHAPES("2,3"), rn_Prod(s, x[0], INTS(0, 1)))
GRAD(ProdTwo, SHAPES("2,3,2"), rn_Prod(s, x[0], INTS(2, 0)))
GRAD(ProdKept, SHAPES("2,3,2"), rn_Prod(s, x[0], INTS(1), .keep_dims = true))
GRAD(EuclideanNorm, POSITIVE("2,3"), rn_EuclideanNorm(s, x[0], INTS(1)))
GRAD(Cumsum, SHAPES("2,3"), rn_Cumsum(s, x[0], INT(1)))
GRAD(CumsumExclusive, SHAPES("4"), rn_Cumsum(s, x[0], INT(0), .exclusive = true))
GRAD(CumsumReverse, SHAPES("4"), rn_Cumsum(s, x[0], INT(0), .reverse = true))
GRAD(Cumprod, POSITIVE("2,3"), rn_Cumprod(s, x[0], INT(1)))
GRAD(CumprodBoth, POSITIVE("4"), rn_Cumprod(s, x[0], INT(0), .reverse = true, .exclusive = true))

// Products.
GRAD(MatMul, TWICE("2,3", "3,4"), rn_MatMul(s, x[0], x[1]))
GRAD(MatMulA, SHAPES("3,2", "3,4"), rn_MatMul(s, x[0], x[1], .transpose_a = true))
GRAD(MatMulB, SHAPES("2,3", "4,3"), rn_MatMul(s, x[0], x[1], .transpose_b = true))
GRAD(MatMulAB, SHAPES("3,2", "4,3"),
     rn_MatMul(s, x[0], x[1], .transpose_a = true, .transpose_b = true))
GRAD(BatchMatMul, SHAPES("2,2,3", "2,3,4"), rn_BatchMatMul(s, x[0], x[1]))
GRAD(BatchMatMulX, SHAPES("2,3,2", "2,3,4"), rn_BatchMatMul(s, x[0], x[1], .adj_x = true))
GRAD(BatchMatMulY, SHAPES("2,2,3", "2,4,3"), rn_BatchMatMul(s, x[0], x[1], .adj_y = true))
GRAD(BatchMatMulXY, SHAPES("2,3,2", "2,4,3"),
     rn_BatchMatMul(s, x[0], x[1], .adj_x = true, .adj_y = true))
GRAD(BatchMatMulV2, SHAPES("2,2,3", "3,4"), rn_BatchMatMulV2(s, x[0], x[1]))
GRAD(BatchMatMulV2Outer, SHAPES("2,1,2,3", "2,3,1"), rn_BatchMatMulV2(s, x[0], x[1]))
GRAD(BatchMatMulV3, SHAPES("2,2", "3,2,4"), rn_BatchMatMulV3(s, x[0], x[1], RN_DOUBLE))
GRAD(SparseMatMul, OPTIONS(SHAPES("3,2", "4,3"), .is_float = true),
     rn_SparseMatMul(s, x[0], x[1], .transpose_a = true, .transpose_b = true))

// Segments.
#define IDS INTS(0, 0, 1, 3)
GRAD(SegmentSum, SHAPES("4,2"), rn_SegmentSum(s, x[0], IDS))
GRAD(SegmentMean, SHAPES("4,2"), rn_SegmentMean(s, x[0], IDS))
GRAD(SegmentMax, SHAPES("4,2"), rn_SegmentMax(s, x[0], IDS))
GRAD(SegmentMin, SHAPES("4"), rn_SegmentMin(s, x[0], IDS))
GRAD(SegmentProd, SHAPES("4,2"), rn_SegmentProd(s, x[0], IDS))
// Nothing of a segment without rows may reach the others, in the second order either.
static rn_edge_t mixed(rn_scope_t* s, rn_edge_t rows) {
  return rn_Tanh(s, rn_MatMul(s, rows, rows, .transpose_a = true));
}
GRAD(SegmentMeanWithGap, TWICE("4,2"), mixed(s, rn_SegmentMean(s, x[0], IDS)))
GRAD(SegmentMaxWithGap, TWICE("4,2"), mixed(s, rn_SegmentMax(s, x[0], IDS)))
#define UNSORTED INTS(2, 0, -1, 2)
GRAD(UnsortedSegmentSum, SHAPES("4,2"), rn_UnsortedSegmentSum(s, x[0], UNSORTED, INT(3)))
// A segment without rows would hold the least of all numbers, which leaves no room for others.
#define FULL INTS(1, 0, -1, 1)
GRAD(UnsortedSegmentMax, SHAPES("4,2"), rn_UnsortedSegmentMax(s, x[0], FULL, INT(2)))
GRAD(UnsortedSegmentMin, SHAPES("4"), rn_UnsortedSegmentMin(s, x[0], FULL, INT(2)))
GRAD(UnsortedSegmentProd, SHAPES("4,2"), rn_UnsortedSegmentProd(s, x[0], UNSORTED, INT(3)))
GRAD(UnsortedSegmentSumDeep, SHAPES("2,2,3"),
     rn_UnsortedSegmentSum(s, x[0], MATRIX(2, 1, -1, 0, 1), INT(2)))
GRAD(SparseSegmentSum, SHAPES("4,2"), rn_SparseSegmentSum(s, x[0], INTS(3, 1, 1), INTS(0, 0, 1)))
GRAD(SparseSegmentMean, SHAPES("4,2"), rn_SparseSegmentMean(s, x[0], INTS(3, 1, 1), INTS(0, 0, 1)))
GRAD(SparseSegmentSqrtN, SHAPES("4,2"),
     rn_SparseSegmentSqrtN(s, x[0], INTS(3, 1, 1), INTS(0, 0, 1)))

GRAD(Betainc, OPTIONS(SHAPES("4"), .low = 0.2, .high = 0.8),
     rn_Betainc(s, REAL(1.5), REAL(2.5), x[0]))
