"""Arithmetic, comparisons, reductions, matrix products, and the operators of tensors."""

import builtins
import functools

from runnel import _core, dtypes, raw_ops as _ops
from runnel.core import fallbacks
from runnel.core.composite import IndexedSlices, SparseTensor
from runnel.core.convert import constant, constant_value, convert_to_tensor, evaluated_value, register_tensor_conversion_function
from runnel.core.framework import Tensor, name_scope
from runnel.core.naming import named
from runnel.eager import quick


# --- Binary functions

def _two(x, y):
    x = convert_to_tensor(x, name="x")
    return x, convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")


def add(x, y, name=None):
    """Returns x + y element-wise, with broadcasting."""
    if isinstance(x, _core.EagerTensor) and x._dtype_number != dtypes.string._number and _core.current() is None:
        return _ops.AddV2(x, y)
    with name_scope(name, "Add", [x]) as scope:
        x, y = _two(x, y)
        op = _ops.Add if x.dtype == dtypes.string else _ops.AddV2
        return op(x, y, name=scope)


def subtract(x, y, name=None):
    """Returns x - y element-wise, with broadcasting."""
    return _ops.Sub(x, y, name=name)


def multiply(x, y, name=None):
    """Returns x * y element-wise, with broadcasting."""
    return _ops.Mul(x, y, name=name)


def _mul_dispatch(x, y, name=None):
    if isinstance(y, SparseTensor):
        values = _ops.SparseDenseCwiseMul(y.indices, y.values, y.dense_shape, x, name=name)
        return SparseTensor(y.indices, values, y.dense_shape)
    return _ops.Mul(x, y, name=name)


_TRUEDIV = {
    dtypes.uint8: dtypes.float32, dtypes.int8: dtypes.float32, dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32, dtypes.int32: dtypes.float64, dtypes.int64: dtypes.float64,
    dtypes.uint32: dtypes.float64, dtypes.uint64: dtypes.float64,
}


def truediv(x, y, name=None):
    """Returns x / y as in Python 3: integers are converted to floats first."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError("`x` and `y` must have the same dtype, got %r != %r." % (
                x.dtype.base_dtype, y.dtype.base_dtype))
        wanted = _TRUEDIV.get(x.dtype.base_dtype)
        if wanted is not None:
            x, y = cast(x, wanted), cast(y, wanted)
        return _ops.RealDiv(x, y, name=scope)


def div(x, y, name=None):
    """Returns x / y as in Python 2: integers are divided with floor."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        op = _ops.RealDiv if x.dtype.is_floating or x.dtype.is_complex else _ops.FloorDiv
        return op(x, y, name=scope)


def divide(x, y, name=None):
    """Returns x / y as in Python 3."""
    if name is not None:
        return truediv(x, y, name=name)
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, dtype_hint=y.dtype.base_dtype if isinstance(y, Tensor) else None)
    return x / y


def div_no_nan(x, y, name=None):
    """Returns x / y, and 0 where y is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y", dtype_hint=x.dtype.base_dtype)
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError("`x` and `y` must have the same dtype, got %r != %r." % (x.dtype.base_dtype, y.dtype.base_dtype))
        wanted = _TRUEDIV.get(x.dtype.base_dtype)
        if wanted is not None:
            x, y = cast(x, wanted), cast(y, wanted)
        return _ops.DivNoNan(x, y, name=scope)


def floordiv(x, y, name=None):
    """Returns the floor of x / y."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return _ops.FloorDiv(x, y, name=scope)


def realdiv(x, y, name=None):
    """Returns x / y of floats."""
    return _ops.RealDiv(x, y, name=name)


def pow(x, y, name=None):  # noqa: A001
    """Returns x to the power of y."""
    with name_scope(name, "Pow", [x]) as scope:
        return _ops.Pow(x, y, name=scope)


def logical_xor(x, y, name="LogicalXor"):
    """Returns true where exactly one of x and y is true."""
    return logical_and(_ops.LogicalOr(x, y), _ops.LogicalNot(_ops.LogicalAnd(x, y)), name=name)


def logical_and(x, y, name=None):
    """Returns true where both x and y are true."""
    return _ops.LogicalAnd(x, y, name=name)


def and_(x, y, name=None):
    """Returns x & y: logical for bools, bitwise for integers."""
    op = _ops.LogicalAnd if _base(x) == dtypes.bool else _ops.BitwiseAnd
    return op(x, y, name=name)


def or_(x, y, name=None):
    """Returns x | y: logical for bools, bitwise for integers."""
    op = _ops.LogicalOr if _base(x) == dtypes.bool else _ops.BitwiseOr
    return op(x, y, name=name)


def xor_(x, y, name=None):
    """Returns x ^ y: logical for bools, bitwise for integers."""
    if _base(x) == dtypes.bool:
        return logical_xor(x, y, name or "LogicalXor")
    return _ops.BitwiseXor(x, y, name=name)


def invert_(x, name=None):
    """Returns ~x: logical for bools, bitwise for integers."""
    op = _ops.LogicalNot if _base(x) == dtypes.bool else _ops.Invert
    return op(x, name=name)


def _base(x):
    return convert_to_tensor(x).dtype.base_dtype


def equal(x, y, name=None):
    """Returns x == y element-wise."""
    return _ops.Equal(x, y, name=name)


def not_equal(x, y, name=None):
    """Returns x != y element-wise."""
    return _ops.NotEqual(x, y, name=name)


# --- Unary functions

def negative(x, name=None):
    """Returns -x."""
    if isinstance(x, _core.EagerTensor) and _core.current() is None:
        return _ops.Neg(x)
    with name_scope(name, "Neg", [x]) as scope:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, _ops.Neg(x.values, name=scope), x.dense_shape)
        return _ops.Neg(x, name=scope)


def _of_values(function):
    """Extends a function of tensors that keeps zeros to sparse tensors."""
    @functools.wraps(function)
    def run(x, name=None):
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, function(x.values, name=name), x.dense_shape)
        return function(x, name)
    return run


@_of_values
def abs(x, name=None):  # noqa: A001
    """Returns the absolute value, or the magnitude of complex numbers."""
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return _ops.ComplexAbs(x, Tout=x.dtype.real_dtype, name=scope)
        return _ops.Abs(x, name=scope)


@_of_values
def sign(x, name=None):
    """Returns -1, 0 or 1 by the sign of x."""
    return _ops.Sign(x, name=name)


@_of_values
def square(x, name=None):
    """Returns x * x."""
    return _ops.Square(x, name=name)


@_of_values
def sqrt(x, name=None):
    """Returns the square root of x."""
    return _ops.Sqrt(x, name=name)


@_of_values
def erf(x, name=None):
    """Returns the error function of x."""
    return _ops.Erf(x, name=name)


def round(x, name=None):  # noqa: A001
    """Rounds to the nearest integer, halves to even."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else _ops.Round(x, name=name)


def sigmoid(x, name=None):
    """Returns 1 / (1 + exp(-x))."""
    with name_scope(name, "Sigmoid", [x]) as scope:
        return _ops.Sigmoid(convert_to_tensor(x, name="x"), name=scope)


def log_sigmoid(x, name=None):
    """Returns log(sigmoid(x))."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return negative(_ops.Softplus(-x), name=scope)


@_of_values
def tanh(x, name=None):
    """Returns the hyperbolic tangent of x."""
    return _ops.Tanh(x, name=name)


def real(input, name=None):  # noqa: A002
    """Returns the real part of complex numbers."""
    with name_scope(name, "Real", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        return _ops.Real(input, Tout=input.dtype.real_dtype, name=scope) if input.dtype.is_complex else input


def imag(input, name=None):  # noqa: A002
    """Returns the imaginary part of complex numbers."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return _ops.Imag(input, Tout=input.dtype.real_dtype, name=scope)
        from runnel.ops.array_ops import zeros_like
        return zeros_like(input)


def angle(input, name=None):  # noqa: A002
    """Returns the argument of complex numbers."""
    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if not input.dtype.is_complex:
            from runnel.ops.array_ops import where, zeros_like
            return where(input < 0, zeros_like(input) + 3.141592653589793, zeros_like(input))
        return _ops.Angle(input, Tout=input.dtype.real_dtype, name=scope)


def conj(x, name=None):
    """Returns the complex conjugate of x."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return _ops.Conj(x, name=scope) if x.dtype.is_complex else x


def complex(real, imag, name=None):  # noqa: A001
    """Makes complex numbers from real and imaginary parts."""
    real = convert_to_tensor(real, name="real")
    imag = convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kind = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}.get(real.dtype.base_dtype)
        if kind is None:
            raise TypeError("The real and imag components have incorrect types: %s %s." % (
                real.dtype.name, imag.dtype.name))
        return _ops.Complex(real, imag, Tout=kind, name=scope)


def cast(x, dtype, name=None):
    """Converts `x` to the type `dtype`."""
    base = dtypes.as_dtype(dtype).base_dtype
    if isinstance(x, _core.EagerTensor):
        if x._dtype_number == base._number:
            return x
        if _core.current() is None:
            return _ops.Cast(x, base)
    if isinstance(x, Tensor) and x.dtype == base:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, base, name=scope), x.dense_shape)
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, base, name=scope), x.indices, x.dense_shape)
        x = convert_to_tensor(x, name="x")
        if x.dtype.base_dtype == base:
            return x
        return _ops.Cast(x, base, name=scope)


def saturate_cast(value, dtype, name=None):
    """Converts `value` to `dtype`, clipping to the limits of that type."""
    import numpy as np
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        dtype = dtypes.as_dtype(dtype).base_dtype
        kind = value.dtype.base_dtype
        number = kind.as_numpy_dtype
        low = number(builtins.max(kind.min, dtype.min))
        high = number(builtins.min(float(kind.max), float(dtype.max)))
        # If a limit is not a number of this type, take the next number inside the range.
        if int(low) < dtype.min:
            low = np.nextafter(low, number(0), dtype=number)
        if int(high) > dtype.max:
            high = np.nextafter(high, number(0), dtype=number)
        low, high = convert_to_tensor(low, dtype=kind), convert_to_tensor(high, dtype=kind)
        return cast(_ops.ClipByValue(value, low, high, name="clamp"), dtype, name=scope)


def _caster(dtype, name):
    old = "to_" + name[2:].lower()

    def to(x, name=name):
        from runnel.core.deprecation import warn_once
        warn_once(old, "cast")
        return cast(x, dtype, name=name)
    return named(to, old, "Converts x to %s. Use tf.cast instead." % dtype.name)


to_float = _caster(dtypes.float32, "ToFloat")
to_double = _caster(dtypes.float64, "ToDouble")
to_int32 = _caster(dtypes.int32, "ToInt32")
to_int64 = _caster(dtypes.int64, "ToInt64")
to_bfloat16 = _caster(dtypes.bfloat16, "ToBFloat16")
to_complex64 = _caster(dtypes.complex64, "ToComplex64")
to_complex128 = _caster(dtypes.complex128, "ToComplex128")


# --- Reductions

_OLD_ARGUMENTS = frozenset("batch_dim dimension keep_dims reduction_indices seq_dim split_dim squeeze_dims".split())


def _pick(new_name, new, old_name, old):
    """Returns the value of an argument given by its new or its old name."""
    if old is not None:
        if new is not None:
            raise ValueError("Cannot specify both '%s' and '%s'" % (old_name, new_name))
        if old_name in _OLD_ARGUMENTS:
            from runnel.core.deprecation import warn_argument_once
            warn_argument_once(old_name, new_name)
        return old
    return new


def _reduction_dims(x, axis):
    if axis is not None:
        return axis
    if isinstance(x, _core.EagerTensor) and _core.current() is None:
        return quick.vector(tuple(builtins.range(len(x._dims()))))
    if isinstance(x, Tensor):
        rank = x._rank()
        if rank or rank == 0 and x.op is None:  # for a scalar in a graph, nodes compute the axes, as in stock
            return constant(list(builtins.range(rank)), dtype=dtypes.int32)
    if isinstance(x, SparseTensor) and x.dense_shape.shape.is_fully_defined():
        return constant(list(builtins.range(x.dense_shape.shape.dims[0].value)), dtype=dtypes.int32)
    from runnel.ops.array_ops import rank as rank_op
    return range(0, rank_op(x))


def reduced_shape(input_shape, axes):
    """Returns `input_shape` with 1 for every reduced dimension."""
    from runnel.core.convert import constant_value
    shape, where = constant_value(input_shape), constant_value(axes)
    if shape is not None and where is not None:
        import numpy
        shape = numpy.array(shape, numpy.int32)
        shape[numpy.array(where, numpy.int32)] = 1
        return shape
    from runnel.ops import array_ops
    axes = convert_to_tensor(axes)
    rank = array_ops.size(input_shape, out_type=axes.dtype)
    axes = (axes + rank) % rank
    count = array_ops.shape(axes)
    indices = [range(rank), axes]
    return _ops.DynamicStitch(indices=indices, data=[input_shape, array_ops.ones(count, input_shape.dtype)])


def _reducer(op_name, name, doc):
    hint = dtypes.bool if op_name in ("All", "Any") else None

    def reduce(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None,
               keep_dims=None):
        if isinstance(input_tensor, _core.EagerTensor) and type(axis) is int and keep_dims is None and _core.current() is None:
            return getattr(_ops, op_name)(input_tensor, quick.vector(axis), keep_dims=keepdims) if keepdims else getattr(_ops, op_name)(
                input_tensor, quick.vector(axis))
        axis = _pick("axis", axis, "reduction_indices", reduction_indices)
        keepdims = _pick("keepdims", keepdims, "keep_dims", keep_dims)
        if not isinstance(input_tensor, Tensor):
            if hasattr(input_tensor, "ragged_rank"):
                from runnel.ragged import ragged_functions
                return ragged_functions.reduction(reduce)(input_tensor, axis, keepdims, name)
            input_tensor = convert_to_tensor(input_tensor, dtype_hint=hint, name="input_tensor")
        dims = _reduction_dims(input_tensor, axis)
        result = getattr(_ops, op_name)(input_tensor, dims, keep_dims=bool(keepdims), name=name)
        if axis is None and not keepdims and result._rank() is None:
            result.set_shape(())
        return result
    return named(reduce, name, doc + """

    Args:
      input_tensor: the tensor to reduce.
      axis: the dimensions to reduce, a number or a list; by default all.
      keepdims: keeps reduced dimensions with size 1.
      name: name of the operation.
      reduction_indices: the old name of axis.
      keep_dims: the old name of keepdims.
    """)


def _input(value):
    return value if isinstance(value, Tensor) else convert_to_tensor(value, name="input_tensor")


reduce_sum = _reducer("Sum", "reduce_sum", "Returns the sum over dimensions.")
reduce_mean = _reducer("Mean", "reduce_mean", "Returns the mean over dimensions.")
reduce_prod = _reducer("Prod", "reduce_prod", "Returns the product over dimensions.")
reduce_max = _reducer("Max", "reduce_max", "Returns the maximum over dimensions.")
reduce_min = _reducer("Min", "reduce_min", "Returns the minimum over dimensions.")
reduce_all = _reducer("All", "reduce_all", "Returns the logical and over dimensions.")
reduce_any = _reducer("Any", "reduce_any", "Returns the logical or over dimensions.")


def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    """Returns the square root of the sum of squares over dimensions."""
    input_tensor = _input(input_tensor)
    return _ops.EuclideanNorm(input_tensor, _reduction_dims(input_tensor, axis),
                              keep_dims=bool(keepdims), name=name)


def reduce_logsumexp(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None,
                     keep_dims=None):
    """Returns log(sum(exp(x))) over dimensions, without overflow."""
    axis = _pick("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(_pick("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        input_tensor = _input(input_tensor)
        largest = reduce_max(input_tensor, axis=axis, keepdims=True)
        shift = _ops.StopGradient(_ops.SelectV2(_ops.IsFinite(largest), largest, 0))
        total = reduce_sum(_ops.Exp(_ops.Sub(input_tensor, shift)), axis=axis, keepdims=keepdims)
        result = _ops.Log(total)
        if not keepdims:
            shift = _ops.Reshape(shift, _ops.Shape(result))
        return add(result, shift, name=scope)


def reduce_variance(input_tensor, axis=None, keepdims=False, name=None):
    """Returns the variance over dimensions."""
    with name_scope(name or "reduce_variance"):
        input_tensor = _input(input_tensor)
        means = reduce_mean(input_tensor, axis=axis, keepdims=True)
        if means.dtype.is_integer:
            raise TypeError("Input must be either real or complex. Received integer type %s." % means.dtype)
        diff = input_tensor - means
        squares = _ops.Real(_ops.Mul(_ops.Conj(diff), diff), Tout=diff.dtype.real_dtype) if diff.dtype.is_complex else _ops.Square(diff)
        return reduce_mean(squares, axis=axis, keepdims=keepdims)


def reduce_std(input_tensor, axis=None, keepdims=False, name=None):
    """Returns the standard deviation over dimensions."""
    with name_scope(name or "reduce_std"):
        return _ops.Sqrt(reduce_variance(input_tensor, axis=axis, keepdims=keepdims))


def count_nonzero(input_tensor=None, axis=None, keepdims=None, dtype=dtypes.int64, name=None,
                  reduction_indices=None, keep_dims=None, input=None):  # noqa: A002
    """Counts the nonzero elements over dimensions."""
    axis = _pick("axis", axis, "reduction_indices", reduction_indices)
    keepdims = _pick("keepdims", keepdims, "keep_dims", keep_dims)
    value = _pick("input", input, "input_tensor", input_tensor)
    with name_scope(name, "count_nonzero", [value]):
        value = convert_to_tensor(value, name="input")
        from runnel.ops.array_ops import zeros
        hits = cast(not_equal(value, zeros([], dtype=value.dtype.base_dtype)), dtypes.int64)
        return cast(reduce_sum(hits, axis=axis, keepdims=keepdims), dtype)


def _arg(op, input, axis, name, dimension, output_type):  # noqa: A002
    axis = _pick("axis", axis, "dimension", dimension)
    return op(input, quick.number(0 if axis is None else axis), output_type=output_type, name=name)


def argmax(input, axis=None, name=None, dimension=None, output_type=dtypes.int64):  # noqa: A002
    """Returns the index of the largest element along a dimension."""
    return _arg(_ops.ArgMax, input, axis, name, dimension, output_type)


def argmin(input, axis=None, name=None, dimension=None, output_type=dtypes.int64):  # noqa: A002
    """Returns the index of the smallest element along a dimension."""
    return _arg(_ops.ArgMin, input, axis, name, dimension, output_type)


def arg_max(input, dimension, output_type=dtypes.int64, name=None):  # noqa: A002
    """The old spelling of argmax."""
    return _ops.ArgMax(input, dimension, output_type=output_type, name=name)


def arg_min(input, dimension, output_type=dtypes.int64, name=None):  # noqa: A002
    """The old spelling of argmin."""
    return _ops.ArgMin(input, dimension, output_type=output_type, name=name)


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    """Returns cumulative sums along a dimension."""
    with name_scope(name, "Cumsum", [x]) as scope:
        return _ops.Cumsum(convert_to_tensor(x, name="x"), axis, exclusive=exclusive, reverse=reverse,
                           name=scope)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None):
    """Returns cumulative products along a dimension."""
    with name_scope(name, "Cumprod", [x]) as scope:
        return _ops.Cumprod(convert_to_tensor(x, name="x"), axis, exclusive=exclusive, reverse=reverse,
                            name=scope)


def cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False, name=None):
    """Returns cumulative log(sum(exp(x))) along a dimension."""
    with name_scope(name, "CumulativeLogsumexp", [x]) as scope:
        return _ops.CumulativeLogsumexp(convert_to_tensor(x, name="x"), axis, exclusive=exclusive,
                                        reverse=reverse, name=scope)


def add_n(inputs, name=None):
    """Returns the sum of tensors of equal shape."""
    if not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be an iterable of at least one Tensor/IndexedSlices with the "
                         "same dtype and shape.")
    inputs = [x if isinstance(x, (Tensor, IndexedSlices)) else convert_to_tensor(x) for x in inputs]
    if not inputs:
        raise ValueError("inputs must be an iterable of at least one Tensor/IndexedSlices with the "
                         "same dtype and shape.")
    inputs = [convert_to_tensor(x) for x in inputs]
    if len(inputs) == 1:
        from runnel.ops.array_ops import identity
        return identity(inputs[0], name=name) if name else inputs[0]
    return _ops.AddN(inputs, name=name)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """Returns the sum of tensors of equal shape, adding each as soon as it is computed."""
    from runnel.core import tensor_shape
    inputs = [convert_to_tensor(x) for x in inputs]
    known = tensor_shape.as_shape(shape)
    for x in inputs:
        known = known.merge_with(x.shape)
    if len(inputs) == 1 and name is None:
        return inputs[0]
    if len(inputs) == 1:
        return _ops.Identity(inputs[0], name=name)
    return add_n(inputs, name=name)


# --- Matrix products

def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
           a_is_sparse=False, b_is_sparse=False, output_type=None, name=None):
    """Multiplies matrix `a` by matrix `b`; with more dimensions, the last two are the matrices."""
    if isinstance(a, _core.EagerTensor) and isinstance(b, _core.EagerTensor) and _core.current() is None and not (
            adjoint_a or adjoint_b or a_is_sparse or b_is_sparse or output_type) and len(a._dims()) == 2 == len(b._dims()):
        return _ops.MatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b) if transpose_a or transpose_b else _ops.MatMul(a, b)
    with name_scope(name, "MatMul", [a, b]) as scope:
        if transpose_a and adjoint_a or transpose_b and adjoint_b:
            raise ValueError("Only one of `transpose_a` and `adjoint_a` (or of those of b) can be True.")
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, dtype_hint=a.dtype.base_dtype, name="b")
        ranks = (a._rank(), b._rank())
        if output_type is not None and not a.dtype.base_dtype == b.dtype.base_dtype == output_type:
            return _ops.BatchMatMulV3(a, b, Tout=output_type, adj_x=transpose_a or adjoint_a, adj_y=transpose_b or adjoint_b, name=scope)
        if (ranks[0] is None or ranks[0] > 2) and (ranks[1] is None or ranks[1] > 2) or (
                (ranks[0] or 0) > 2 or (ranks[1] or 0) > 2):
            if transpose_a:
                a, adjoint_a = conj(a), True
            if transpose_b:
                b, adjoint_b = conj(b), True
            return _ops.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        sparse = (dtypes.bfloat16, dtypes.float32)
        if (a_is_sparse or b_is_sparse) and a.dtype.base_dtype in sparse and b.dtype.base_dtype in sparse:
            return _ops.SparseMatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b,
                                     a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=scope)
        return _ops.MatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


def sparse_matmul(a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """Multiplies two matrices of which at least one has many zeros."""
    return _ops.SparseMatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=name)


def batch_matmul(x, y, adj_x=False, adj_y=False, name=None):
    """Multiplies batches of matrices."""
    return _ops.BatchMatMul(x, y, adj_x=adj_x, adj_y=adj_y, name=name)


def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """Multiplies a matrix by a vector."""
    from runnel.ops.array_ops import expand_dims, squeeze
    with name_scope(name, "MatVec", [a, b]):
        output = matmul(a, expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a,
                        a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
        return squeeze(output, axis=-1)


def tensordot(a, b, axes, name=None):
    """Multiplies two tensors and sums over `axes`.

    `axes` is a number n (the last n dimensions of `a` and the first n of `b`) or two lists of dimensions.
    """
    from runnel.ops.array_ops import reshape, transpose
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b")
        a_axes, b_axes = _dot_axes(a, axes)
        a_matrix, a_free = _dot_matrix(a, a_axes, False, reshape, transpose)
        b_matrix, b_free = _dot_matrix(b, b_axes, True, reshape, transpose)
        product = matmul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            if product.shape.is_fully_defined() and product.shape.as_list() == a_free + b_free:
                return product
            return reshape(product, a_free + b_free, name=scope)
        from runnel.ops.array_ops import concat
        shape = concat([convert_to_tensor(a_free, dtype=dtypes.int32),
                        convert_to_tensor(b_free, dtype=dtypes.int32)], 0)
        return reshape(product, shape, name=scope)


def _dot_axes(a, axes):
    if isinstance(axes, Tensor):
        value = constant_value(axes)
        if value is None:
            return axes[0], axes[1]
        axes = value.tolist()
    if isinstance(axes, int):
        rank = a._rank()
        if axes < 0:
            raise ValueError("`axes` must be at least 0.")
        if rank is None:
            from runnel.ops.array_ops import rank as rank_op
            rank = rank_op(a)
            return range(rank - axes, rank, dtype=dtypes.int32), range(axes, dtype=dtypes.int32)
        if axes > rank:
            raise ValueError("`axes` must not be larger than the number of dimensions of tensor %s." % a)
        return list(builtins.range(rank - axes, rank)), list(builtins.range(axes))
    if len(axes) != 2:
        raise ValueError("`axes` must be an integer or have length 2.")
    a_axes = [axes[0]] if isinstance(axes[0], int) else list(axes[0])
    b_axes = [axes[1]] if isinstance(axes[1], int) else list(axes[1])
    if len(a_axes) != len(b_axes):
        raise ValueError("Different number of contraction axes `a` and `b`, %d != %d." % (
            len(a_axes), len(b_axes)))
    return a_axes, b_axes


def _dot_matrix(a, axes, flipped, reshape, transpose):
    rank = a._rank()
    if rank is None or isinstance(axes, Tensor):
        return _dot_matrix_of_any_rank(a, axes, flipped)
    axes = [i + rank if i < 0 else i for i in axes]
    free = [i for i in builtins.range(rank) if i not in axes]
    perm = axes + free if flipped else free + axes
    dims = a.shape.as_list()
    if None not in dims:
        free_dims = [dims[i] for i in free]
        inner = _product(dims[i] for i in axes)
        outer = _product(free_dims)
        new_shape = [inner, outer] if flipped else [outer, inner]
        moved = a if perm == list(builtins.range(rank)) else transpose(a, perm)
        if moved.shape.as_list() != new_shape:
            moved = reshape(moved, new_shape)
        return moved, free_dims
    axes = convert_to_tensor(axes, dtype=dtypes.int32, name="axes")
    free = convert_to_tensor(free, dtype=dtypes.int32, name="free")
    from runnel.ops.array_ops import shape as shape_op
    return _dot_as_matrix(a, shape_op(a), axes, free, flipped)


def _dot_matrix_of_any_rank(a, axes, flipped):
    from runnel.ops.array_ops import rank as rank_op, shape as shape_op, where
    shape, rank = shape_op(a), rank_op(a)
    axes = convert_to_tensor(axes, dtype=dtypes.int32, name="axes")
    axes = where(axes >= 0, axes, axes + rank)
    free = _ops.ListDiff(range(rank), axes, out_idx=dtypes.int32)[0]
    return _dot_as_matrix(a, shape, axes, free, flipped)


def _dot_as_matrix(a, shape, axes, free, flipped):
    from runnel.ops.array_ops import concat, gather, reshape, stack, transpose
    free_dims, axes_dims = gather(shape, free), gather(shape, axes)
    outer, inner = reduce_prod(free_dims), reduce_prod(axes_dims)
    perm = concat([axes, free] if flipped else [free, axes], 0)
    new_shape = stack([inner, outer] if flipped else [outer, inner])
    return reshape(transpose(a, perm), new_shape), free_dims


def _product(values):
    total = 1
    for value in values:
        total *= value
    return total


def einsum(equation, *inputs, **kwargs):
    """Computes sums of products in Einstein's notation: einsum("ij,jk->ik", a, b)."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise TypeError("Invalid keyword arguments for this function: " + ", ".join(sorted(kwargs)))
    with name_scope(name, "einsum", list(inputs)):
        inputs = [convert_to_tensor(x) for x in inputs]
        return _ops.Einsum(inputs, equation=_full_equation(equation.replace(" ", ""), len(inputs)))


def _full_equation(equation, count):
    if "->" in equation:
        left = equation.split("->")[0]
    else:
        left = equation
        letters = [c for c in left if c.isalpha()]
        out = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
        equation = "%s->%s%s" % (left, "..." if "..." in left else "", out)
    if left.count(",") + 1 != count:
        raise ValueError("Expected %d arguments for equation %s, got %d" % (
            left.count(",") + 1, equation, count))
    return equation


def scalar_mul(scalar, x, name=None):
    """Multiplies a tensor or an IndexedSlices by a scalar."""
    scalar = convert_to_tensor(scalar, dtype=x.dtype.base_dtype, name="scalar")
    if scalar.shape.rank not in (None, 0):
        raise ValueError("The input scalar must be a 0-D value. Received shape %s." % scalar.shape)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(_ops.Mul(scalar, x.values, name=name), x.indices, x.dense_shape)
    return _ops.Mul(scalar, x, name=name)


def trace(x, name=None):
    """Returns the sum of the diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        from runnel.ops.array_ops import matrix_diag_part
        return reduce_sum(matrix_diag_part(convert_to_tensor(x, name="x")), [-1], name=scope)


# --- Sequences

def range(start, limit=None, delta=1, dtype=None, name="range"):  # noqa: A001
    """Returns numbers from `start` up to, and without, `limit` in steps of `delta`."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        hint = None if dtype is None else dtypes.as_dtype(dtype)
        start = start if isinstance(start, Tensor) else convert_to_tensor(start, dtype=hint, name="start")
        limit = limit if isinstance(limit, Tensor) else convert_to_tensor(limit, dtype=hint, name="limit")
        delta = delta if isinstance(delta, Tensor) else convert_to_tensor(delta, dtype=hint, name="delta")
        if hint is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            kinds = [x.dtype.base_dtype for x in (start, limit, delta)]
            hint = max((k for k in kinds if k in order), key=order.index, default=kinds[0])
        start, limit, delta = cast(start, hint), cast(limit, hint), cast(delta, hint)
        return _ops.Range(start, limit, delta, name=scope)


def _range_as_tensor(value, dtype=None, name=None, as_ref=False):
    return range(value.start, value.stop, value.step, dtype, name)


register_tensor_conversion_function(builtins.range, _range_as_tensor)


def linspace(start, stop, num, name=None, axis=0):
    """Returns `num` evenly spaced numbers from `start` to `stop`; for tensors, along a new dimension."""
    from runnel.ops import array_ops
    start = convert_to_tensor(start, name="start")
    stop = convert_to_tensor(stop, name="stop", dtype=start.dtype)
    known = evaluated_value(num)
    has_op = start.dtype in (dtypes.float32, dtypes.float64) and known is not None and known > 0
    if has_op and start._rank() == 0 and stop._rank() == 0 and axis in (0, -1):
        return _ops.LinSpace(start, stop, num, name=name)
    with name_scope(name, "linspace", [start, stop]):
        dims = array_ops.broadcast_dynamic_shape(array_ops.shape(start), array_ops.shape(stop))
        start = array_ops.expand_dims(_ops.BroadcastTo(start, dims), axis)
        stop = array_ops.expand_dims(_ops.BroadcastTo(stop, dims), axis)
        num = cast(convert_to_tensor(num, name="num"), dtypes.int32)
        steps = _ops.Maximum(num - 1, 1)
        step = (stop - start) / cast(steps, stop.dtype)
        start, stop = cast(start, step.dtype), cast(stop, step.dtype)
        rank = array_ops.rank(start)
        column = array_ops.where_v2(_ops.Equal(range(rank), axis if axis >= 0 else rank + axis), -1, 1)
        numbers = array_ops.reshape(cast(range(1, array_ops.where_v2(num >= 0, steps, -1)), step.dtype), column)
        # Both ends are exact. If num is less than 2, the slice removes what is too much.
        row = array_ops.concat([start, start + step * numbers, stop], axis)
        return _ops.Slice(row, array_ops.zeros_like(array_ops.shape(row)), array_ops.where_v2(column < 0, num, array_ops.shape(row)))


lin_space = linspace


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32, name=None):
    """Counts how often each integer occurs."""
    with name_scope(name, "bincount", [arr]):
        arr = convert_to_tensor(arr, name="arr", dtype=dtypes.int32)
        not_empty = reduce_prod(_ops.Shape(arr)) > 0
        size = cast(not_empty, dtypes.int32) * (reduce_max(arr) + 1)
        if minlength is not None:
            size = _ops.Maximum(convert_to_tensor(minlength, dtype=dtypes.int32), size)
        if maxlength is not None:
            size = _ops.Minimum(convert_to_tensor(maxlength, dtype=dtypes.int32), size)
        weights = constant([], dtype) if weights is None else convert_to_tensor(weights)
        return _ops.Bincount(arr, size, weights)


def unsorted_segment_mean(data, segment_ids, num_segments, name=None):
    """Returns the mean of each segment."""
    with name_scope(name, "UnsortedSegmentMean"):
        data = convert_to_tensor(data)
        count = _segment_count(data, segment_ids, num_segments)
        return _ops.UnsortedSegmentSum(data, segment_ids, num_segments) / count


def unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None):
    """Returns the sum of each segment divided by the square root of its size."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data = convert_to_tensor(data)
        count = _segment_count(data, segment_ids, num_segments)
        return _ops.UnsortedSegmentSum(data, segment_ids, num_segments) / _ops.Sqrt(count)


def _segment_count(data, segment_ids, num_segments):
    segment_ids = convert_to_tensor(segment_ids)
    ones = _ops.Fill(_ops.Shape(segment_ids), constant(1, dtype=data.dtype))
    count = _ops.UnsortedSegmentSum(ones, segment_ids, num_segments)
    if data._rank() is None or segment_ids._rank() is None:
        extra = _ops.Sub(_ops.Rank(data), _ops.Rank(segment_ids))
        ones = _ops.Fill(_ops.Reshape(extra, [1]), constant(1, dtype=dtypes.int32))
    else:
        ones = constant([1] * (data._rank() - segment_ids._rank()), dtype=dtypes.int32)
    shape = _ops.ConcatV2([_ops.Shape(count), ones], 0)
    return _ops.Maximum(_ops.Reshape(count, shape), constant(1, dtype=data.dtype))


def sparse_segment_sum(data, indices, segment_ids, name=None, num_segments=None):
    """Sums selected rows of `data` by segment."""
    if num_segments is not None:
        return _ops.SparseSegmentSumWithNumSegments(data, indices, segment_ids, num_segments, name=name)
    return _ops.SparseSegmentSum(data, indices, segment_ids, name=name)


def sparse_segment_mean(data, indices, segment_ids, name=None, num_segments=None):
    """Averages selected rows of `data` by segment."""
    if num_segments is not None:
        return _ops.SparseSegmentMeanWithNumSegments(data, indices, segment_ids, num_segments, name=name)
    return _ops.SparseSegmentMean(data, indices, segment_ids, name=name)


def sparse_segment_sqrt_n(data, indices, segment_ids, name=None, num_segments=None):
    """Sums selected rows of `data` by segment and divides by the square root of the segment's size."""
    if num_segments is not None:
        return _ops.SparseSegmentSqrtNWithNumSegments(data, indices, segment_ids, num_segments, name=name)
    return _ops.SparseSegmentSqrtN(data, indices, segment_ids, name=name)


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """Clips the elements of `t` to [clip_value_min, clip_value_max]."""
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        if isinstance(t, IndexedSlices):
            values = clip_by_value(t.values, clip_value_min, clip_value_max)
            return IndexedSlices(values, t.indices, t.dense_shape)
        t = convert_to_tensor(t, name="t")
        low = _ops.Minimum(t, clip_value_max)
        return _ops.Maximum(low, clip_value_min, name=scope)


# --- Operators

def _binary(name, function, op_name, public):
    def left(x, y):
        try:
            with name_scope(None, op_name, [x, y]) as scope:
                other = y
                if not isinstance(y, (Tensor, SparseTensor)):
                    try:
                        other = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
                    except (TypeError, ValueError):
                        if hasattr(type(y), "__r%s__" % name):
                            return fallbacks.operator(public, x, y, otherwise=NotImplemented, name=None)
                        raise
                return function(x, other, name=scope)
        except (TypeError, ValueError):
            return fallbacks.operator(public, x, y, name=None)

    def right(y, x):
        try:
            with name_scope(None, op_name, [x, y]) as scope:
                x = convert_to_tensor(x, dtype=y.dtype.base_dtype, name="x")  # dispatchers get the tensor, too
                return function(x, y, name=scope)
        except (TypeError, ValueError):
            return fallbacks.operator(public, x, y, name=None)

    return left, right


def _plain_binary(op, public):
    def run(x, y):
        try:
            return getattr(_ops, op)(x, y)
        except (TypeError, ValueError):
            return fallbacks.operator(public, x, y, name=None)
    return run


def _unary(function, public):
    def run(x):
        try:
            return function(x)
        except (TypeError, ValueError):
            return fallbacks.operator(public, x, name=None)
    return run


def _add_operator(x, y, name):
    return (_ops.Add if x.dtype == dtypes.string else _ops.AddV2)(x, y, name=name)


def _install(cls):
    """Adds Python's operators to tensors, or to a class that stands for one."""
    rows = (("add", _add_operator, "__operators__.add"), ("sub", subtract, "math.subtract"), ("mul", _mul_dispatch, "math.multiply"),
            ("truediv", truediv, "math.truediv"), ("floordiv", floordiv, "math.floordiv"),
            ("mod", lambda x, y, name: _ops.FloorMod(x, y, name=name), "math.floormod"),
            ("pow", pow, "math.pow"), ("matmul", matmul, "linalg.matmul"), ("and", and_, "math.logical_and"),
            ("or", or_, "math.logical_or"), ("xor", xor_, "math.logical_xor"))
    for name, function, public in rows:
        left, right = _binary(name, function, name, public)
        setattr(cls, "__%s__" % name, left)
        setattr(cls, "__r%s__" % name, right)
    cls.__div__, cls.__rdiv__ = cls.__truediv__, cls.__rtruediv__
    for name, op, public in (("lt", "Less", "math.less"), ("le", "LessEqual", "math.less_equal"), ("gt", "Greater", "math.greater"),
                             ("ge", "GreaterEqual", "math.greater_equal")):
        setattr(cls, "__%s__" % name, _plain_binary(op, public))
    cls.__neg__ = _unary(negative, "math.negative")
    cls.__abs__ = _unary(abs, "math.abs")
    cls.__invert__ = _unary(invert_, "math.logical_not")


def override_operators(cls):
    """Adds the operators of tensors to a class whose objects convert to tensors (variables)."""
    source = Tensor
    names = [name for name in vars(source) if name in _OPERATORS]
    for name in names:
        method = vars(source)[name]

        def run(self, *args, _method=method):
            return _method(self._as_operand(), *args)
        run.__name__ = name
        setattr(cls, name, run)


_OPERATORS = frozenset(
    ["__%s%s__" % (r, n) for r in ("", "r") for n in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "div")]
    + ["__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__abs__", "__invert__", "__getitem__"])

_install(Tensor)
# Old names.
neg, sub, mul = negative, subtract, multiply
__all__ = [name for name, value in list(globals().items())
           if not name.startswith("_") and callable(value) and getattr(
               value, "__module__", "") == __name__ and name not in (
                   "and_", "or_", "xor_", "invert_", "override_operators", "clip_by_value", "sigmoid",
                   "log_sigmoid", "tanh")] + ["clip_by_value", "sigmoid", "log_sigmoid", "tanh"]
