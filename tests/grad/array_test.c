// Gradients of ops that rearrange elements, of checks and prints, and of queues and other ops that
// pass values on.
#define GRAD_SUITE grad_array
#include "differences.h"

GRAD(Identity, SHAPES("2,3"), rn_Identity(s, x[0]))
GRAD(Snapshot, SHAPES("2,3"), rn_Snapshot(s, x[0]))
GRAD(DeepCopy, SHAPES("2,3"), rn_DeepCopy(s, x[0]))
GRAD(EnsureShape, SHAPES("2,3"), rn_EnsureShape(s, x[0], ((const int64_t[]){2, -1}), 2))
GRAD(PlaceholderWithDefault, SHAPES("2,3"),
     rn_PlaceholderWithDefault(s, x[0], ((const int64_t[]){2, 3}), 2))
GRAD_LIST(IdentityN, SHAPES("2,3", "4"), rn_IdentityN(s, x, 2))
GRAD(Reshape, SHAPES("2,3"), rn_Reshape(s, x[0], INTS(3, -1)))
GRAD(ExpandDims, SHAPES("2,3"), rn_ExpandDims(s, x[0], INT(1)))
GRAD(Squeeze, SHAPES("2,1,3,1"), rn_Squeeze(s, x[0]))
GRAD(SqueezeOne, SHAPES("2,1,3,1"),
     rn_Squeeze(s, x[0], .squeeze_dims = RN_LIST(((const int64_t[]){1}), 1)))
GRAD(Transpose, SHAPES("2,3,4"), rn_Transpose(s, x[0], INTS(2, 0, 1)))
GRAD(TransposeFed, SHAPES("2,3"), rn_Transpose(s, x[0], rn_Sub(s, INTS(3, 2), rn_Rank(s, x[0]))))
GRAD(Fill, SHAPES(""), rn_Fill(s, INTS(2, 3), x[0]))
GRAD(BroadcastTo, SHAPES("2,1"), rn_BroadcastTo(s, x[0], INTS(4, 2, 3)))
GRAD(Tile, SHAPES("2,3"), rn_Tile(s, x[0], INTS(2, 3)))
GRAD(TileVector, SHAPES("3"), rn_Tile(s, x[0], INTS(4)))
GRAD(Concat, SHAPES("2,3", "2,1"), rn_Concat(s, INT(1), x, 2))
GRAD(ConcatV2, SHAPES("2,3", "2,3", "2,3"), rn_ConcatV2(s, x, 3, INT(-1)))
GRAD(ConcatV2Rows, SHAPES("1,3", "2,3", "4,3"), rn_ConcatV2(s, x, 3, INT(0)))
GRAD_LIST(Split, SHAPES("2,6"), rn_Split(s, INT(1), x[0], 3))
GRAD_LIST(SplitOne, SHAPES("2,6"), rn_Split(s, INT(1), x[0], 1))
GRAD_LIST(SplitV, SHAPES("2,6"), rn_SplitV(s, x[0], INTS(1, 3, 2), INT(1), 3))
// The gradient of an unused output is zeros.
GRAD(SplitPart, SHAPES("2,6"), rn_edge_at(rn_Split(s, INT(1), x[0], 3), 1))
GRAD(Pack, SHAPES("2,3", "2,3"), rn_Pack(s, x, 2, .axis = 1))
GRAD_LIST(Unpack, SHAPES("2,3"), rn_Unpack(s, x[0], 3, .axis = 1))
GRAD(Slice, SHAPES("4,5"), rn_Slice(s, x[0], INTS(1, 2), INTS(2, -1)))
GRAD(Pad, SHAPES("2,3"), rn_Pad(s, x[0], MATRIX(2, 1, 0, 2, 1)))
GRAD(PadV2, SHAPES("2,3"), rn_PadV2(s, x[0], MATRIX(2, 1, 0, 2, 1), REAL(7)))
GRAD(MirrorPad, OPTIONS(SHAPES("3,4"), .is_twice = true),
     rn_MirrorPad(s, rn_Square(s, x[0]), MATRIX(2, 1, 2, 2, 1), "REFLECT"))
GRAD(MirrorPadSymmetric, SHAPES("3,4"), rn_MirrorPad(s, x[0], MATRIX(2, 1, 2, 2, 1), "SYMMETRIC"))
GRAD(StridedSlice, OPTIONS(SHAPES("4,6"), .is_twice = true),
     rn_StridedSlice(s, rn_Square(s, x[0]), INTS(1, 5), INTS(3, 0), INTS(1, -2)))
GRAD(StridedSliceMasks, SHAPES("4,6"),
     rn_StridedSlice(s, x[0], INTS(1, 0, 2), INTS(2, 0, 5), INTS(1, 1, 1), .shrink_axis_mask = 1,
                     .new_axis_mask = 2, .end_mask = 4))
GRAD(StridedSliceGrad, SHAPES("2,3"),
     rn_StridedSliceGrad(s, INTS(4, 6), INTS(1, 0), INTS(3, 6), INTS(1, 2), x[0]))
GRAD(Reverse, SHAPES("2,3"), rn_Reverse(s, x[0], rn_Equal(s, INTS(0, 1), INTS(1, 1))))
GRAD(ReverseV2, SHAPES("2,3"), rn_ReverseV2(s, x[0], INTS(0, 1)))
GRAD(ReverseSequence, SHAPES("2,4"), rn_ReverseSequence(s, x[0], INTS(3, 2), 1))
GRAD(BatchToSpace, SHAPES("4,2,3,2"), rn_BatchToSpace(s, x[0], MATRIX(2, 0, 1, 1, 0), 2))
GRAD(SpaceToBatch, SHAPES("1,3,5,2"), rn_SpaceToBatch(s, x[0], MATRIX(2, 0, 1, 1, 0), 2))
GRAD(BatchToSpaceND, SHAPES("4,2,3,2"),
     rn_BatchToSpaceND(s, x[0], INTS(2, 2), MATRIX(2, 0, 1, 1, 0)))
GRAD(SpaceToBatchND, SHAPES("1,3,5,2"),
     rn_SpaceToBatchND(s, x[0], INTS(2, 2), MATRIX(2, 0, 1, 1, 0)))
GRAD(DepthToSpace, SHAPES("1,2,2,8"), rn_DepthToSpace(s, x[0], 2))
GRAD(SpaceToDepth, SHAPES("1,4,2,3"), rn_SpaceToDepth(s, x[0], 2))
GRAD(Diag, SHAPES("3"), rn_Diag(s, x[0]))
GRAD(DiagPart, SHAPES("3,3"), rn_DiagPart(s, x[0]))
GRAD(MatrixDiag, SHAPES("2,3"), rn_MatrixDiag(s, x[0]))
GRAD(MatrixDiagPart, SHAPES("2,3,3"), rn_MatrixDiagPart(s, x[0]))
GRAD(MatrixDiagPartWide, SHAPES("2,3,4"), rn_MatrixDiagPart(s, x[0]))
GRAD(MatrixSetDiag, SHAPES("2,3,4", "2,3"), rn_MatrixSetDiag(s, x[0], x[1]))
GRAD(MatrixBandPart, SHAPES("3,4"), rn_MatrixBandPart(s, x[0], INT(1), INT(0)))

// Gathers and scatters.
GRAD(Gather, SHAPES("4,3"), rn_Gather(s, x[0], INTS(3, 1, 3)))
GRAD(GatherDeep, SHAPES("4,3"), rn_Gather(s, x[0], MATRIX(2, 3, 1, 3, 0)))
GRAD(GatherV2, SHAPES("4,3"), rn_GatherV2(s, x[0], INTS(3, 1, 3), INT(0)))
GRAD(GatherV2Scalar, SHAPES("4,3"), rn_GatherV2(s, x[0], INT(2), INT(0)))
GRAD(GatherV2Axis, SHAPES("2,4,3"), rn_GatherV2(s, x[0], INTS(3, 1, 3), INT(1)))
GRAD(GatherV2Last, SHAPES("2,4"), rn_GatherV2(s, x[0], MATRIX(2, 3, 1, 3, 0), INT(1)))
GRAD(GatherV2Negative, OPTIONS(SHAPES("2,4"), .is_static = true),
     rn_GatherV2(s, x[0], INTS(3, 1), INT(-1)))
GRAD(GatherV2Batch, SHAPES("2,4,3"),
     rn_GatherV2(s, x[0], MATRIX(3, 3, 1, 3, 0, 0, 2), INT(1), .batch_dims = 1))
GRAD(GatherV2BatchAxis, SHAPES("2,2,4"),
     rn_GatherV2(s, x[0], MATRIX(3, 3, 1, 3, 0, 0, 2), INT(2), .batch_dims = 1))
GRAD(GatherNd, SHAPES("4,3"), rn_GatherNd(s, x[0], MATRIX(2, 3, 1, 0, 2, 3, 1)))
GRAD(GatherNdRows, SHAPES("4,3"), rn_GatherNd(s, x[0], MATRIX(1, 3, 1, 3)))
GRAD(ScatterNd, SHAPES("3,2"), rn_ScatterNd(s, MATRIX(1, 3, 1, 3), x[0], INTS(4, 2)))
GRAD(TensorScatterAdd, SHAPES("4,2", "2,2"), rn_TensorScatterAdd(s, x[0], MATRIX(1, 3, 1), x[1]))
GRAD(TensorScatterSub, SHAPES("4,2", "2,2"), rn_TensorScatterSub(s, x[0], MATRIX(1, 3, 1), x[1]))
GRAD(TensorScatterUpdate, SHAPES("4,2", "2,2"),
     rn_TensorScatterUpdate(s, x[0], MATRIX(1, 3, 1), x[1]))
GRAD_LIST(DynamicPartition, SHAPES("4,2"), rn_DynamicPartition(s, x[0], INTS(1, 0, 2, 0), 3))
GRAD_LIST(DynamicPartitionDeep, SHAPES("2,2,3"),
          rn_DynamicPartition(s, x[0], MATRIX(2, 1, 0, 1, 0), 2))
GRAD(DynamicStitch, SHAPES("2,3", "1,3"),
     rn_DynamicStitch(s, ((rn_edge_t[]){INTS(0, 2), INTS(1)}), 2, x, 2))
GRAD(SparseToDense, SHAPES("2", ""),
     rn_SparseToDense(s, MATRIX(2, 0, 1, 2, 0), INTS(3, 2), x[0], x[1]))
GRAD(SparseToDenseVector, SHAPES("", ""), rn_SparseToDense(s, INTS(1, 3), INTS(5), x[0], x[1]))
GRAD(SparseToDenseScalar, SHAPES("", ""), rn_SparseToDense(s, INT(2), INTS(5), x[0], x[1]))
GRAD(CheckNumerics, SHAPES("3"), rn_CheckNumerics(s, x[0], "here"))
GRAD(Print, SHAPES("3"), rn_Print(s, x[0], NULL, 0, .first_n = RN_SET(0)))
GRAD(MatrixDiagV2, SHAPES("2,2,3"), rn_MatrixDiagV2(s, x[0], INTS(0, 1), INT(-1), INT(-1), REAL(0)))
