"""Public functions that are an op's own function: tf.sin is the op Sin.

NAMES maps the name in tf to the op.
"""

NAMES = {
    name: op for op, name in (row.split() for row in """
Acos acos
Acosh acosh
Asin asin
Asinh asinh
Atan atan
Atan2 atan2
Atanh atanh
BesselI0 bessel_i0
BesselI0e bessel_i0e
BesselI1 bessel_i1
BesselJ0 bessel_j0
BesselJ1 bessel_j1
BesselK0 bessel_k0
BesselK0e bessel_k0e
BesselK1 bessel_k1
BesselK1e bessel_k1e
BesselY0 bessel_y0
BesselY1 bessel_y1
BesselI1e bessel_i1e
Betainc betainc
Bitcast bitcast
BroadcastTo broadcast_to
ApproxTopK approx_top_k
Ceil ceil
Conv conv
CheckNumerics check_numerics
CheckPinned check_pinned
Conv2DBackpropFilterV2 conv2d_backprop_filter_v2
Conv2DBackpropInputV2 conv2d_backprop_input_v2
Cos cos
Cosh cosh
Cross cross
DecodeBase64 decode_base64
DecodeCompressed decode_compressed
DecodeJSONExample decode_json_example
Dawsn dawsn
Digamma digamma
DynamicPartition dynamic_partition
DynamicStitch dynamic_stitch
EncodeBase64 encode_base64
Erfc erfc
Erfinv erfinv
Exp exp
Expint expint
Expm1 expm1
ExtractVolumePatches extract_volume_patches
FakeQuantWithMinMaxArgs fake_quant_with_min_max_args
FakeQuantWithMinMaxArgsGradient fake_quant_with_min_max_args_gradient
FakeQuantWithMinMaxVars fake_quant_with_min_max_vars
FakeQuantWithMinMaxVarsGradient fake_quant_with_min_max_vars_gradient
FakeQuantWithMinMaxVarsPerChannel fake_quant_with_min_max_vars_per_channel
FakeQuantWithMinMaxVarsPerChannelGradient fake_quant_with_min_max_vars_per_channel_gradient
Floor floor
FloorDiv floor_div
FloorMod floormod
FloorMod mod
FresnelCos fresnel_cos
FresnelSin fresnel_sin
Greater greater
GreaterEqual greater_equal
GuaranteeConst guarantee_const
Igamma igamma
Igammac igammac
Invert invert
InvertPermutation invert_permutation
IsFinite is_finite
IsInf is_inf
IsNan is_nan
L2Loss l2_loss
LeftShift left_shift
Less less
LessEqual less_equal
Lgamma lgamma
Log log
Log1p log1p
LogicalAnd logical_and
LogicalNot logical_not
LogicalOr logical_or
MatchingFiles matching_files
MatrixBandPart matrix_band_part
MatrixDeterminant matrix_determinant
MatrixInverse matrix_inverse
MatrixSolve matrix_solve
MatrixSquareRoot matrix_square_root
MatrixTriangularSolve matrix_triangular_solve
Cholesky cholesky
Qr qr
Maximum maximum
Minimum minimum
NextAfter nextafter
NoOp no_op
Polygamma polygamma
PopulationCount population_count
QuantizedConcat quantized_concat
ReadFile read_file
Reciprocal reciprocal
ReverseV2 reverse_v2
RightShift right_shift
Rint rint
Rsqrt rsqrt
ScatterNd scatter_nd
ScatterNdNonAliasingAdd scatter_nd_non_aliasing_add
SegmentMax segment_max
SegmentMean segment_mean
SegmentMin segment_min
SegmentProd segment_prod
SegmentSum segment_sum
Sin sin
Sinh sinh
SpaceToBatchND space_to_batch_nd
BatchToSpaceND batch_to_space_nd
Spence spence
SquaredDifference squared_difference
StopGradient stop_gradient
Tan tan
TruncateDiv truncatediv
TruncateMod truncatemod
UnsortedSegmentMax unsorted_segment_max
UnsortedSegmentMin unsorted_segment_min
UnsortedSegmentProd unsorted_segment_prod
UnsortedSegmentSum unsorted_segment_sum
WriteFile write_file
Zeta zeta
""".strip().splitlines())
}


def function(name):
    """Returns the function of a public name, or None."""
    from runnel import raw_ops
    op = NAMES.get(name)
    return None if op is None else getattr(raw_ops, op)
