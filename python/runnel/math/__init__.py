"""tf.math: arithmetic, comparisons, reductions and special functions."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "abs accumulate_n acos acosh add add_n angle argmax argmin asin asinh atan atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil "
    "confusion_matrix conj cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma divide equal erf erfc erfinv exp expm1 floor "
    "floordiv floormod greater greater_equal igamma igammac imag invert_permutation is_finite is_inf is_nan is_non_decreasing "
    "is_strictly_increasing lbeta less less_equal lgamma log log1p log_sigmoid logical_and logical_not logical_or logical_xor maximum minimum mod "
    "multiply negative nextafter not_equal polygamma pow real reciprocal reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp "
    "reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max segment_mean "
    "segment_min segment_prod segment_sum sigmoid sign sin sinh sqrt square squared_difference subtract tan tanh truediv unsorted_segment_max "
    "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum zeta",
    "divide_no_nan=div_no_nan in_top_k=nn.in_top_k top_k=nn.top_k approx_max_k=nn.approx_max_k approx_min_k=nn.approx_min_k "
    "l2_normalize=nn.l2_normalize log_softmax=nn.log_softmax "
    "softmax=nn.softmax softplus=nn.softplus softsign=nn.softsign zero_fraction=nn.zero_fraction",
    "ops.special_ops: erfcinv multiply_no_nan ndtri polyval reciprocal_no_nan sobol_sample xdivy xlog1py xlogy",
    "submodules: special",
)
