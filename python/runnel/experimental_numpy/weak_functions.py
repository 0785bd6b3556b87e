"""The functions of tf in the modes of promotion "safe" and "all": weak results for weak arguments, operands of one common type.

The first of these modes puts wrappers in place of the public functions, which ask for the mode at each call. Programs that never choose one
pay nothing.
"""

import functools
import inspect
import sys

from runnel import logging
from runnel.experimental_numpy import promotion_modes
from runnel.core.framework import Tensor
from runnel.experimental_numpy.promotion_modes import is_auto_dtype_conversion_enabled
from runnel.core.tensor_type import Tensor as TensorType
from runnel.core.type_spec import CompositeTensor
from runnel.experimental_numpy.weak_tensor import WeakTensor, convert_to_weak_tensor_or_tensor

# Functions whose result has the type of their first argument.
UNARY = frozenset("""
abs softplus sign real imag angle round sigmoid log_sigmoid conj reciprocal_no_nan erfinv ndtri erfcinv ceil sqrt exp rsqrt acos floor
invert acosh asin asinh atan atanh cos cosh digamma erf erfc expm1 lgamma log log1p neg negative reciprocal rint sin sinh square tan tanh
zeros_like zeros_like_v2 ones_like ones_like_v2 check_numerics relu6 leaky_relu gelu log_softmax log_softmax_v2 swish silu elu relu selu softsign
random_brightness stateless_random_brightness adjust_brightness adjust_gamma clip_by_value dawsn expint fresnel_cos fresnel_sin spence
bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_j0 bessel_j1 bessel_y0 bessel_y1
reduce_euclidean_norm reduce_logsumexp reduce_max reduce_max_v1 reduce_mean reduce_mean_v1 reduce_min reduce_min_v1 reduce_prod
reduce_prod_v1 reduce_std reduce_sum reduce_sum_v1 reduce_variance trace reshape depth_to_space depth_to_space_v2 expand_dims expand_dims_v2
extract_image_patches extract_image_patches_v2 identity matrix_diag matrix_diag_part matrix_transpose space_to_depth space_to_depth_v2
squeeze squeeze_v2 stop_gradient tensor_diag_part transpose transpose_v2 diag_part
""".split())
# Functions whose first two arguments become of one type.
BINARY = frozenset("""
add sub subtract multiply mul multiply_no_nan matmul divide div_no_nan divide_no_nan truediv _truediv_python3 realdiv real_div truncatediv
truncate_div floordiv floor_div truncatemod truncate_mod floormod floor_mod mod pow _pow
""".split())
COMPARISONS = frozenset("maximum minimum equal".split())
_PLACES = frozenset(["", "math", "math.special", "linalg", "nn", "image", "bitwise", "debugging"])

NUMPY_UNARY = frozenset("""
abs absolute angle arccos arcsin arcsinh arctan arctanh bitwise_not cbrt ceil conj conjugate cos cosh deg2rad exp exp2 expm1 fabs fix floor log
negative rad2deg reciprocal sin sinh sqrt tan tanh nanmean log2 log10 log1p positive sinc square diff sort average trace amax amin around
arange array asanyarray asarray ascontiguousarray copy cumprod cumsum diag diagflat diagonal empty_like expand_dims flatten flip fliplr
flipud full_like imag max mean min moveaxis ones_like prod ravel real reshape repeat rot90 round squeeze std sum swapaxes transpose triu
vander var zeros_like
""".split())
NUMPY_BINARY = frozenset("""
add subtract multiply divide true_divide floor_divide mod remainder power float_power maximum minimum arctan2 logaddexp logaddexp2 heaviside
nextafter gcd lcm bitwise_and bitwise_or bitwise_xor hypot matmul tensordot inner outer dot vdot cross kron polyval
""".split())
_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "truediv", "div": "divide", "floordiv": "floordiv", "mod": "floormod",
              "pow": "pow", "matmul": "matmul"}
_ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")  # they do not promote

_TF_UNARY_APIS: list = []
_TF_BINARY_APIS: list = []
_wrappers: dict = {}  # id of a function -> (the function, its wrapper)


def _as_type(x, dtype, name):
    """Returns a value as a tensor of a type: tensors are cast, other values converted."""
    import runnel as tf
    if isinstance(x, WeakTensor):
        x = x.tensor
    if isinstance(x, (TensorType, CompositeTensor)):
        return tf.cast(x, dtype, name=name)
    return tf.convert_to_tensor(x, dtype, name=name)


def _fall_back(op, *values):
    logging.warning("The new dtype semantics do not support %s.%s(%s). Falling back to old semantics.",
                    op.__module__, op.__name__, ", ".join(str(type(value)) for value in values))


def _registered(op, wrapper, apis):
    functools.update_wrapper(wrapper, op)
    _wrappers[id(op)] = op, wrapper
    apis.append(wrapper)
    return wrapper


def _bound(signature, args, kwargs):
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound


def weak_tensor_unary_op_wrapper(op, x_arg_name=None):
    """Returns a function that does what `op` does, and returns weak tensors for weak arguments."""
    found = _wrappers.get(id(op))
    if found is not None:
        return found[1]
    signature = inspect.signature(op)
    x_name = x_arg_name or next(iter(signature.parameters))

    def wrapper(*args, **kwargs):
        if not is_auto_dtype_conversion_enabled():
            return op(*args, **kwargs)
        bound = _bound(signature, args, kwargs)
        given = bound.arguments
        x = given[x_name]
        if isinstance(x, Tensor) or given.get("dtype") is not None:
            return op(*bound.args, **bound.kwargs)
        try:
            dtype, is_weak = promotion_modes.result_type(x)
        except NotImplementedError:
            _fall_back(op, x)
            return op(*bound.args, **bound.kwargs)
        given[x_name] = _as_type(x, dtype, "x")
        return convert_to_weak_tensor_or_tensor(op(*bound.args, **bound.kwargs), is_weak)
    return _registered(op, wrapper, _TF_UNARY_APIS)


def weak_tensor_binary_op_wrapper(op, y_arg_name=None, special_handling=None):
    """Returns a function that does what `op` does with its first two arguments promoted to one type."""
    found = _wrappers.get(id(op))
    if found is not None:
        return found[1]
    signature = inspect.signature(op)
    names = list(signature.parameters)
    x_name, y_name = names[0], y_arg_name or names[1]

    def wrapper(*args, **kwargs):
        if not is_auto_dtype_conversion_enabled():
            return op(*args, **kwargs)
        bound = _bound(signature, args, kwargs)
        given = bound.arguments
        try:
            dtype, is_weak = promotion_modes.result_type(given[x_name], given[y_name])
        except NotImplementedError:
            _fall_back(op, given[x_name], given[y_name])
            return op(*bound.args, **bound.kwargs)
        given[x_name], given[y_name] = _as_type(given[x_name], dtype, "x"), _as_type(given[y_name], dtype, "y")
        return convert_to_weak_tensor_or_tensor(op(*bound.args, **bound.kwargs), is_weak and special_handling != "comparison-method")
    return _registered(op, wrapper, _TF_BINARY_APIS)


def _constant(op):
    """Returns tf.constant with weak results for Python's values, and casts of tensors to the type."""
    found = _wrappers.get(id(op))
    if found is not None:
        return found[1]
    signature = inspect.signature(op)

    @functools.wraps(op)
    def constant(*args, **kwargs):
        if not is_auto_dtype_conversion_enabled():
            return op(*args, **kwargs)
        bound = _bound(signature, args, kwargs)
        given = bound.arguments
        value, dtype = given["value"], given["dtype"]
        try:
            target, is_weak = promotion_modes.result_type(value, dtype)
        except NotImplementedError:
            _fall_back(op, value, dtype)
            return op(*bound.args, **bound.kwargs)
        if isinstance(value, WeakTensor):
            given["value"] = value.tensor
        if dtype is None:
            given["dtype"] = target
        elif target == dtype and isinstance(value, TensorType):
            given["value"] = _as_type(value, target, "x")
        return convert_to_weak_tensor_or_tensor(op(*bound.args, **bound.kwargs), is_weak and dtype is None)
    _wrappers[id(op)] = op, constant
    return constant


def _method(cls, name):
    """Returns a variable's method, such as assign_add, that casts its value to the variable's type if the mode allows it."""
    op = getattr(cls, name)

    @functools.wraps(op)
    def run(self, value, *args, **kwargs):
        if is_auto_dtype_conversion_enabled():
            try:
                dtype = promotion_modes.result_type(self, value)[0]
            except NotImplementedError:
                _fall_back(op, self, value)
                return op(self, value, *args, **kwargs)
            if dtype != self.dtype.base_dtype:
                raise TypeError("Variable dtype is immutable. Calling %s of Variable (with dtype %s) on %s requires converting %s to %s. This is "
                                "disabled in the current promotion semantics. Please convert %s manually before calling %s." % (
                                    name, self.dtype, value, value, self.dtype, value, name))
            value = _as_type(value, dtype, "y")
        return op(self, value, *args, **kwargs)
    return run


def _wrapped(name, value, unary, binary):
    if not callable(value) or isinstance(value, type):
        return value
    if name in unary:
        return weak_tensor_unary_op_wrapper(value)
    if name in COMPARISONS and binary is BINARY:
        return weak_tensor_binary_op_wrapper(value, special_handling="comparison-method")
    if name in binary:
        return weak_tensor_binary_op_wrapper(value)
    if name in ("scalar_mul", "scalar_mul_v2"):
        return weak_tensor_unary_op_wrapper(value, "x")
    return _constant(value) if name == "constant" else value


def public(path, value):
    """Returns what stands for a public function of TensorFlow 2, "math.add"."""
    space, _, name = path.rpartition(".")
    if space == "experimental.numpy":
        return _wrapped(name, value, NUMPY_UNARY, NUMPY_BINARY)
    return _wrapped(name, value, UNARY, BINARY) if space in _PLACES else value


def inner(module, name, value):
    """Returns what stands for a function of a module behind the public names, "python.ops.math_ops"."""
    if ".numpy_ops." in module:
        return _wrapped(name, value, NUMPY_UNARY, NUMPY_BINARY)
    return _wrapped(name, value, UNARY, BINARY)


def _operand(method, name, is_right):
    """Returns an operator of tensors that promotes its operands. The result of comparisons is not weak."""
    import runnel as tf

    def run(self, other):
        if other is None or not is_auto_dtype_conversion_enabled():
            return method(self, other)
        try:
            dtype, is_weak = promotion_modes.result_type(self, other)
        except NotImplementedError:
            _fall_back(method, self, other)
            return method(self, other)
        x, y = _as_type(self, dtype, "x"), _as_type(other, dtype, "y")
        if name in ("eq", "ne"):
            return method(x, y)
        function = getattr(tf, _OPERATORS[name])
        return convert_to_weak_tensor_or_tensor(function(y, x) if is_right else function(x, y), is_weak)
    return functools.update_wrapper(run, method)


def _install_operators():
    from runnel.ops.resource_variable import ResourceVariable
    for name in [*_OPERATORS, "eq", "ne"]:
        for prefix in ("", "r") if name in _OPERATORS else ("",):
            full = "__%s%s__" % (prefix, name)
            method = _operand(getattr(Tensor, full), name, prefix == "r")
            setattr(Tensor, full, method)
            setattr(WeakTensor, full, method)
            if full in vars(ResourceVariable):
                setattr(ResourceVariable, full, _operand(vars(ResourceVariable)[full], name, prefix == "r"))
    for full in (*_ORDERS, *("__%s%s__" % (r, name) for r in ("", "r") for name in ("and", "or", "xor"))):
        setattr(WeakTensor, full, lambda self, other, _name=full: getattr(self.tensor, _name)(other))
    for name in ("__neg__", "__abs__", "__invert__"):
        setattr(WeakTensor, name, lambda self, _name=name: WeakTensor.from_tensor(getattr(self.tensor, _name)()))
    WeakTensor.__getitem__ = lambda self, key: self.tensor[key]
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(ResourceVariable, name, _method(ResourceVariable, name))


_state = {"installed": False}


def install():
    """Puts the wrappers in place of the public functions and of the operators of tensors, once."""
    if _state["installed"]:
        return
    _state["installed"] = True
    _install_operators()
    from runnel.compat.v2 import places
    places.forget_found()
    inner_paths = sys.modules.get("runnel.alias.inner_paths")
    if inner_paths is not None:
        inner_paths.forget_found()
