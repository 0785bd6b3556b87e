"""Assertions about tensors. What is known while the graph is built is checked then, the rest when a step runs."""

import operator

from runnel import dtypes, raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import Tensor, executing_eagerly, name_scope
from runnel.core.naming import named
from runnel.errors import InvalidArgumentError
from runnel.ops import array_ops, math_ops
from runnel.ops.control_flow import Assert, group, no_op, with_dependencies  # noqa: F401


def _checked(holds, data, message, summarize, name, known=None):
    """Returns an operation that asserts `holds`. `known` is the static outcome: True, False, or None if unknown."""
    known = known if not executing_eagerly() else holds.numpy()
    if known is not None and not known:
        raise InvalidArgumentError(None, None, "\n".join(
            str(x) for x in ([message] if message else []) + [
                x if isinstance(x, str) else "%s" % (x,) for x in data]))
    if known is not None and executing_eagerly():
        return None
    values = ([message] if message is not None else []) + list(data)
    return Assert(holds, values, summarize=summarize, name=name)


_NUMPY = {"Equal": operator.eq, "NotEqual": operator.ne, "Less": operator.lt, "LessEqual": operator.le,
          "Greater": operator.gt, "GreaterEqual": operator.ge}


def _binary(op, symbol, kind):
    def check(x, y, data=None, summarize=None, message=None, name=None):
        if kind == "assert_equal":  # only here a scope around the check, so that node names are stock's
            with name_scope(name, kind, [x, y, data]):
                if x is y:
                    return None if executing_eagerly() else no_op()
        with name_scope(name, kind, [x, y, data]):
            x = convert_to_tensor(x, name="x")
            y = convert_to_tensor(y, dtype_hint=x.dtype, name="y")
            if data is None:
                data = ["Condition x %s y did not hold element-wise:" % symbol,
                        "x (%s) = " % _name(x), x, "y (%s) = " % _name(y), y]
            holds = math_ops.reduce_all(getattr(raw_ops, op)(x=x, y=y))
            left, right = (None, None) if executing_eagerly() else (constant_value(x), constant_value(y))
            known = None if left is None or right is None else bool(_NUMPY[op](left, right).all())
            return _checked(holds, data, message, summarize, None, known)
    return named(check, kind, "Asserts that x %s y element-wise." % symbol)


def _name(x):
    return x.name if not executing_eagerly() else "shape=%s" % (x.shape,)


assert_equal = _binary("Equal", "==", "assert_equal")
assert_none_equal = _binary("NotEqual", "!=", "assert_none_equal")
assert_less = _binary("Less", "<", "assert_less")
assert_less_equal = _binary("LessEqual", "<=", "assert_less_equal")
assert_greater = _binary("Greater", ">", "assert_greater")
assert_greater_equal = _binary("GreaterEqual", ">=", "assert_greater_equal")


def _prefix(message):
    return "%s.  " % message if message else ""


def _with_zero(check, kind, what, turned):
    def one(x, data=None, summarize=None, message=None, name=None):
        with name_scope(name, kind, [x, data]):
            x = convert_to_tensor(x, name="x")
            if data is None:
                data = [_prefix(message), "Condition x %s 0 did not hold element-wise:" % what, "x (%s) = " % _name(x), x]
            zero = convert_to_tensor(0, x.dtype)
            pair = (zero, x) if turned else (x, zero)
            return check(*pair, data=data, summarize=summarize)
    return named(one, kind, "Asserts that x %s 0 element-wise." % what)


assert_positive = _with_zero(assert_less, "assert_positive", ">", True)
assert_negative = _with_zero(assert_less, "assert_negative", "<", False)
assert_non_negative = _with_zero(assert_less_equal, "assert_non_negative", ">=", True)
assert_non_positive = _with_zero(assert_less_equal, "assert_non_positive", "<=", False)


def assert_near(x, y, rtol=None, atol=None, data=None, summarize=None, message=None, name=None):
    """Asserts that |x - y| <= atol + rtol * |y|. Both tolerances default to ten times the type's precision."""
    with name_scope(name, "assert_near", [x, y, rtol, atol, data]):
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, dtype=x.dtype, name="y")
        import numpy
        eps = 10 * numpy.finfo(x.dtype.as_numpy_dtype).eps if x.dtype.is_floating else 0
        kind = x.dtype.real_dtype
        rtol = convert_to_tensor(eps if rtol is None else rtol, kind)
        atol = convert_to_tensor(eps if atol is None else atol, kind)
        if data is None:
            data = ["x and y not equal to tolerance rtol = %s, atol = %s" % (rtol, atol),
                    "x (%s) = " % _name(x), x, "y (%s) = " % _name(y), y]
        distance = math_ops.abs(x - y)
        holds = math_ops.reduce_all(distance < atol + rtol * math_ops.abs(y))
        return _checked(holds, data, message, summarize, None)


def assert_type(tensor, tf_type, message=None, name=None):
    """Raises TypeError unless `tensor` has the type `tf_type`."""
    tf_type = dtypes.as_dtype(tf_type)
    with name_scope(name, "assert_type", [tensor]):
        tensor = tensor if isinstance(tensor, SparseTensor) else convert_to_tensor(tensor, name="tensor")
        if tensor.dtype != tf_type:
            raise TypeError("%s%s must be of type %r; got %r" % (
                _prefix(message), "tensor" if executing_eagerly() or isinstance(tensor, SparseTensor) else tensor.name,
                tf_type, tensor.dtype))
        return None if executing_eagerly() else no_op("statically_determined_correct_type")


def _rank_check(kind, words, holds_now, holds):
    """Makes a function that asserts a rank; "rank_in" takes several. Known ranks are checked at once."""
    def check(x, rank, data=None, summarize=None, message=None, name=None):
        ranks = tuple(rank) if kind == "assert_rank_in" else (rank,)
        with name_scope(name, kind, [x, *ranks, *(data or [])]):
            x = x if isinstance(x, SparseTensor) else convert_to_tensor(x, name="x")
            ranks = tuple(convert_to_tensor(r, name="rank") for r in ranks)
            label = "" if executing_eagerly() or isinstance(x, SparseTensor) else x.name
            if data is None:
                shape = x.dense_shape if isinstance(x, SparseTensor) else array_ops.shape(x)
                data = [_prefix(message), "Tensor %s must have %s" % (label, words), *ranks, "Received shape: ", shape]
            for r in ranks:
                assert_type(r, dtypes.int32)
            known = [constant_value(r) for r in ranks]
            if any(k is not None and k.ndim != 0 for k in known):
                raise ValueError("Rank must be a scalar.")
            if x.shape.ndims is not None and None not in known:
                known = tuple(int(k) for k in known)
                if not holds_now(x.shape.ndims, known):
                    raise ValueError("%sTensor %s must have %s %s.  Received rank %d, shape %s" % (
                        _prefix(message), label, words, known if kind == "assert_rank_in" else known[0], x.shape.ndims, x.shape))
                return None if executing_eagerly() else no_op(name="static_checks_determined_all_ok")
            condition = holds(array_ops.rank(x), ranks)
            for r, k in zip(ranks, known):
                if k is None:
                    scalar = assert_rank(r, 0, data=["Rank must be a scalar. Received rank: ", r])
                    condition = with_dependencies([scalar], condition)
            return Assert(condition, data, summarize=summarize)
    check.__name__ = check.__qualname__ = kind
    return check


def _one_of(actual, ranks):
    if not ranks:
        return convert_to_tensor(False)
    result = math_ops.equal(ranks[0], actual)
    for rank in ranks[1:]:
        result = raw_ops.LogicalOr(x=result, y=math_ops.equal(rank, actual))
    return result


_rank_is = _rank_check("assert_rank", "rank", lambda r, known: r == known[0], lambda r, ranks: math_ops.equal(r, ranks[0]))
_rank_is_at_least = _rank_check("assert_rank_at_least", "rank at least", lambda r, known: r >= known[0],
                                lambda r, ranks: raw_ops.GreaterEqual(x=r, y=ranks[0]))
_rank_is_in = _rank_check("assert_rank_in", "rank in", lambda r, known: r in known, _one_of)


def assert_rank(x, rank, data=None, summarize=None, message=None, name=None):
    """Asserts that the rank of `x` is `rank`."""
    return _rank_is(x, rank, data, summarize, message, name)


def assert_rank_at_least(x, rank, data=None, summarize=None, message=None, name=None):
    """Asserts that the rank of `x` is at least `rank`."""
    return _rank_is_at_least(x, rank, data, summarize, message, name)


def assert_rank_in(x, ranks, data=None, summarize=None, message=None, name=None):
    """Asserts that the rank of `x` is one of `ranks`."""
    return _rank_is_in(x, ranks, data, summarize, message, name)


def assert_integer(x, message=None, name=None):
    """Raises TypeError unless `x` has an integer type."""
    with name_scope(name, "assert_integer", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            raise TypeError("%sExpected \"x\" to be integer type.  Found: %s of dtype %r" % (
                _prefix(message), "tensor" if executing_eagerly() else x.name, x.dtype))
        return None if executing_eagerly() else no_op("statically_determined_was_integer")


def assert_scalar(tensor, name=None, message=None):
    """Raises ValueError unless `tensor` is a scalar."""
    tensor = convert_to_tensor(tensor)
    if tensor.shape.ndims != 0:
        raise ValueError("%sExpected scalar shape, saw shape: %s." % (message or "", tensor.shape))
    return tensor


def assert_same_float_dtype(tensors=None, dtype=None):
    """Returns the floating-point type that all tensors share. Raises ValueError if they differ."""
    for x in tensors or ():
        if x is None:
            continue
        if dtype is None:
            dtype = x.dtype
        elif x.dtype.base_dtype != dtypes.as_dtype(dtype).base_dtype:
            raise ValueError("Tensors must have the same type: %s and %s" % (dtype, x.dtype))
    dtype = dtypes.as_dtype(dtype or dtypes.float32)
    if not dtype.is_floating:
        raise ValueError("Expected floating point type, got %s." % dtype)
    return dtype


def is_non_decreasing(x, name=None):
    """Tells whether no element is smaller than the one before."""
    with name_scope(name, "is_non_decreasing", [x]):
        first, second = _neighbours(x)
        return math_ops.reduce_all(second >= first)


def is_strictly_increasing(x, name=None):
    """Tells whether every element is larger than the one before."""
    with name_scope(name, "is_strictly_increasing", [x]):
        first, second = _neighbours(x)
        return math_ops.reduce_all(second > first)


def _neighbours(x):
    x = convert_to_tensor(x, name="x")
    if not x.dtype.is_floating and not x.dtype.is_integer:
        raise TypeError("Expected x to be numeric, instead found: %s" % x)
    flat = array_ops.reshape(x, [-1])
    return flat[:-1], flat[1:]


def is_numeric_tensor(tensor):
    """Tells whether `tensor` is a tensor of numbers."""
    return hasattr(tensor, "dtype") and (tensor.dtype.is_floating or tensor.dtype.is_integer
                                         or tensor.dtype.is_complex)


def ensure_shape(x, shape, name=None):
    """Returns `x` with the static shape `shape`; the step fails if the actual shape does not match."""
    from runnel.core import tensor_shape
    return raw_ops.EnsureShape(input=x, shape=tensor_shape.as_shape(shape), name=name)


def assert_proper_iterable(values):
    """Raises TypeError unless `values` is an iterable other than a tensor, an array or a string."""
    import numpy
    if isinstance(values, (Tensor, SparseTensor, numpy.ndarray, bytes, str)):
        raise TypeError("Expected argument to be a (list of) iterables, got %s: %s." % (type(values).__name__, values))
    if not hasattr(values, "__iter__"):
        raise TypeError("Expected argument to be iterable, got %s: %s." % (type(values).__name__, values))
