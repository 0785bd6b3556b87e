"""tf.debugging: assertions and checks of tensors."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "check_numerics assert_equal assert_greater assert_greater_equal assert_integer assert_less assert_less_equal assert_near assert_negative "
    "assert_non_negative assert_non_positive assert_none_equal assert_positive assert_rank assert_rank_at_least assert_rank_in "
    "assert_same_float_dtype assert_scalar assert_type is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing Assert "
    "assert_all_finite=verify_tensor_all_finite assert_proper_iterable",
    "eager.check_numerics: enable_check_numerics disable_check_numerics",
)
