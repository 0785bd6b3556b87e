"""Checks of tensors: what is known now is checked now, the rest when a step runs."""

from runnel import array_ops, dtypes, math_ops, raw_ops
from runnel.control_flow import Assert, group, no_op, with_dependencies  # noqa: F401
from runnel.convert import constant_value, convert_to_tensor
from runnel.errors import InvalidArgumentError
from runnel.framework import executing_eagerly, name_scope


def _checked(holds, data, message, summarize, name):
    """An operation that checks, or nothing to do if it is known that `holds`."""
    known = constant_value(holds) if not executing_eagerly() else holds.numpy()
    if known is not None and not known:
        raise InvalidArgumentError(None, None, "\n".join(
            str(x) for x in ([message] if message else []) + [
                x if isinstance(x, str) else "%s" % (x,) for x in data]))
    if known is not None and executing_eagerly():
        return None
    values = ([message] if message is not None else []) + list(data)
    return Assert(holds, values, summarize=summarize, name=name)


def _binary(op, symbol, kind):
    def check(x, y, data=None, summarize=None, message=None, name=None):
        if kind == "assert_equal":  # a scope for this alone, so that the names are stock's
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
            return _checked(holds, data, message, summarize, None)
    check.__name__ = check.__qualname__ = kind
    check.__doc__ = "Checks that x %s y, element by element." % symbol
    return check


def _name(x):
    return x.name if not executing_eagerly() else "shape=%s" % (x.shape,)


assert_equal = _binary("Equal", "==", "assert_equal")
assert_none_equal = _binary("NotEqual", "!=", "assert_none_equal")
assert_less = _binary("Less", "<", "assert_less")
assert_less_equal = _binary("LessEqual", "<=", "assert_less_equal")
assert_greater = _binary("Greater", ">", "assert_greater")
assert_greater_equal = _binary("GreaterEqual", ">=", "assert_greater_equal")


def _with_zero(check, kind, what, turned):
    def one(x, data=None, summarize=None, message=None, name=None):
        with name_scope(name, kind, [x, data]):
            x = convert_to_tensor(x, name="x")
            if data is None:
                data = ["Condition x %s 0 did not hold element-wise:" % what, "x (%s) = " % _name(x), x]
            zero = convert_to_tensor(0, x.dtype)
            pair = (zero, x) if turned else (x, zero)
            return check(*pair, data=data, summarize=summarize, message=message or "")
    one.__name__ = one.__qualname__ = kind
    one.__doc__ = "Checks that x %s 0, element by element." % what
    return one


assert_positive = _with_zero(assert_less, "assert_positive", ">", True)
assert_negative = _with_zero(assert_less, "assert_negative", "<", False)
assert_non_negative = _with_zero(assert_less_equal, "assert_non_negative", ">=", True)
assert_non_positive = _with_zero(assert_less_equal, "assert_non_positive", "<=", False)


def assert_near(x, y, rtol=None, atol=None, data=None, summarize=None, message=None, name=None):
    """Checks that |x - y| <= atol + rtol |y|; both are ten times the type's precision if not given."""
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
    """Checks the type, now."""
    tensor = convert_to_tensor(tensor)
    if tensor.dtype != dtypes.as_dtype(tf_type):
        raise TypeError("%s%s tensor must be of type %s; got %s" % (
            message + ". " if message else "", _name(tensor), tf_type, tensor.dtype))
    return no_op("statically_determined_correct_type") if not executing_eagerly() else None


def _rank_check(x, holds_now, holds, data, message, summarize, name):
    x = convert_to_tensor(x, name="x")
    rank = x.shape.ndims
    if rank is not None:
        if not holds_now(rank):
            raise ValueError("%sTensor %s must have %s. Received rank %d, shape %s" % (
                message + ". " if message else "", _name(x), data, rank, x.shape))
        return no_op(name="static_checks_determined_all_ok")
    values = [message or "", "Tensor %s must have %s" % (x.name, data), "Received shape: ",
              array_ops.shape(x)]
    return Assert(holds(array_ops.rank(x)), values, summarize=summarize, name=name)


def assert_rank(x, rank, data=None, summarize=None, message=None, name=None):
    """Checks that the rank is `rank`."""
    with name_scope(name, "assert_rank", [x]):
        rank = int(constant_value(convert_to_tensor(rank)))
        return _rank_check(x, lambda r: r == rank, lambda r: math_ops.equal(r, rank), "rank %d" % rank,
                           message, summarize, None)


def assert_rank_at_least(x, rank, data=None, summarize=None, message=None, name=None):
    """Checks that the rank is `rank` or more."""
    with name_scope(name, "assert_rank_at_least", [x]):
        rank = int(constant_value(convert_to_tensor(rank)))
        return _rank_check(x, lambda r: r >= rank, lambda r: raw_ops.GreaterEqual(x=r, y=rank),
                           "rank at least %d" % rank, message, summarize, None)


def assert_rank_in(x, ranks, data=None, summarize=None, message=None, name=None):
    """Checks that the rank is one of `ranks`."""
    with name_scope(name, "assert_rank_in", [x]):
        ranks = [int(constant_value(convert_to_tensor(r))) for r in ranks]
        return _rank_check(
            x, lambda r: r in ranks,
            lambda r: math_ops.reduce_any(raw_ops.Equal(x=r, y=ranks)),
            "rank in %s" % (ranks,), message, summarize, None)


def assert_integer(x, message=None, name=None):
    """Checks that the type is one of integers, now."""
    x = convert_to_tensor(x, name="x")
    if not x.dtype.is_integer:
        raise TypeError("%sExpected \"x\" to be integer type. Found: %s" % (
            message + ". " if message else "", x.dtype))
    return no_op("statically_determined_was_integer")


def assert_scalar(tensor, name=None, message=None):
    """Checks that it is a scalar, now."""
    tensor = convert_to_tensor(tensor)
    if tensor.shape.ndims != 0:
        raise ValueError("%sExpected scalar shape, saw shape: %s." % (message or "", tensor.shape))
    return tensor


def assert_same_float_dtype(tensors=None, dtype=None):
    """The type that all have, one of floating point; ValueError if they differ."""
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
    """Whether elements never fall, in order."""
    with name_scope(name, "is_non_decreasing", [x]):
        first, second = _neighbours(x)
        return math_ops.reduce_all(second >= first)


def is_strictly_increasing(x, name=None):
    """Whether elements always rise, in order."""
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
    """Whether it is a tensor of numbers."""
    return hasattr(tensor, "dtype") and (tensor.dtype.is_floating or tensor.dtype.is_integer
                                         or tensor.dtype.is_complex)


def ensure_shape(x, shape, name=None):
    """x, whose shape is checked when the step runs and known from now on."""
    from runnel import tensor_shape
    return raw_ops.EnsureShape(input=x, shape=tensor_shape.as_shape(shape), name=name)
