"""tf.debugging.assert_shapes: tensors whose dimensions must agree with each other."""

from runnel import dtypes
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import executing_eagerly, name_scope
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ops.check_ops import _prefix

_ANY = (None, ".")
_REST = (Ellipsis, "*")


def _name_of(x):
    if executing_eagerly() or isinstance(x, SparseTensor):
        return "shape=%s dtype=%r" % (x.shape, x.dtype)
    return x.name


def _dynamic(x):
    return x.dense_shape if isinstance(x, SparseTensor) else array_ops.shape(x)


def _sizes(x):
    """Returns the sizes of a tensor of known rank: numbers where they are known, else tensors. A scalar counts as [1]."""
    static = x.shape.as_list()
    if not static:
        return [1]
    shape = _dynamic(x) if None in static else None
    return [math_ops.cast(shape[i], dtypes.int32) if size is None else size for i, size in enumerate(static)]


def _number(symbol):
    try:
        return int(symbol)
    except (TypeError, ValueError):
        return None


def _pairs(shapes, prefix):
    """Returns (tensor, symbols, whether more dimensions may come before) for each pair."""
    found = []
    for x, symbols in shapes.items() if isinstance(shapes, dict) else shapes:
        if symbols is None:
            continue
        x = x if isinstance(x, SparseTensor) else convert_to_tensor(x)
        if not hasattr(symbols, "__iter__") and not hasattr(symbols, "__getitem__"):
            raise ValueError("%sTensor %s.  Specified shape must be an iterable.  An iterable has the attribute `__iter__` or `__getitem__`.  "
                             "Received specified shape: %s" % (prefix, _name_of(x), symbols))
        symbols = tuple(symbols)
        for i, symbol in enumerate(symbols):
            if i and symbol in _REST:
                raise ValueError("%sTensor %s specified shape index %d.  Symbol `...` or `*` for a variable number of unspecified dimensions "
                                 "is only allowed as the first entry" % (prefix, _name_of(x), i))
        is_inner = bool(symbols) and symbols[0] in _REST
        found.append((x, symbols[1:] if is_inner else symbols, is_inner))
    return found


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Asserts that tensors have the given shapes.

    Args:
      shapes: pairs of a tensor and its shape, in a list or dict. A size is a number, None or "." (any size), or a symbol that stands for
        one size in all shapes. "..." or "*" in front stands for any outer dimensions.
      data, summarize, message, name: as for the other assertions.
    """
    prefix = _prefix(message)
    with name_scope(name, "assert_shapes", [data]):
        checks, known = [], {}  # symbol -> (size, how it is known)
        for x, symbols, is_inner in _pairs(shapes, prefix):
            if isinstance(x, SparseTensor) or x.shape.rank is None or x.shape.rank or len(symbols) > 1:
                rank = max(len(symbols), 0) if is_inner or symbols else None
                if is_inner:
                    checks.append(check_ops.assert_rank_at_least(x, rank, data, summarize, message, name) if rank else None)
                elif symbols:
                    checks.append(check_ops.assert_rank(x, rank, data, summarize, message, name))
                else:
                    checks.append(check_ops.assert_rank_in(x, [0, 1], data, summarize, message, name))
            checks.extend(_check_sizes(x, symbols or (() if is_inner else (1,)), known, data, summarize, prefix))
        checks = [check for check in checks if check is not None]
        if executing_eagerly():
            return None
        from runnel.flow.groups import group, no_op
        return group(*checks) if checks else no_op(name="static_checks_determined_all_ok")


def _check_sizes(x, symbols, known, data, summarize, prefix):
    if x.shape.rank is None:  # what is known of it must be looked up in the step
        shape = math_ops.cast(_dynamic(x), dtypes.int32)
        sizes = [shape[i - len(symbols)] for i in range(len(symbols))]
    else:
        sizes = _sizes(x)[-len(symbols):] if symbols else []
    for i, (symbol, size) in enumerate(zip(symbols, sizes), -len(symbols)):
        if symbol in _ANY:
            continue
        number = _number(symbol)
        where = i if x.shape.rank is None else i + max(x.shape.rank, 1)
        if number is not None:
            wanted, why = number, "Specified explicitly"
        elif symbol in known:
            wanted, why = known[symbol]
        else:
            known[symbol] = size, "Specified by tensor %s dimension %d" % (_name_of(x), where)
            continue
        if isinstance(size, int) and isinstance(wanted, int):
            if size != wanted:
                raise ValueError("%s%s.  Tensor %s dimension %s must have size %d.  Received size %d, shape %s" % (
                    prefix, why, _name_of(x), where, wanted, size, x.shape))
            continue
        if data is None:
            data = ["%s%s.  Tensor %s dimension" % (prefix, why, _name_of(x)), where, "must have size", wanted, "Received shape: ", _dynamic(x)]
        yield check_ops.Assert(math_ops.equal(size, wanted), data, summarize=summarize)


def assert_shapes_v2(shapes, data=None, summarize=None, message=None, name=None):
    """The same in TensorFlow 2, where functions keep the order of effects: returns nothing."""
    assert_shapes(shapes, data, summarize, message, name)
