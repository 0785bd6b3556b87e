"""Functions applied to the rows of tensors: map_fn, foldl, foldr, scan."""

from runnel import dtypes, nest
from runnel.autograph.conversion import traceable_in_graph
from runnel.core import composite_rows
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops.array_ops import shape
from runnel.ops.control_flow import while_loop
from runnel.ops.tensor_array import TensorArray


class _Rows:
    """The rows of nested tensors, which may be sparse or ragged, and their number."""

    def __init__(self, elems, shaped=False):
        self.structure = elems
        given = [composite_rows.as_batch(x, "elem") for x in nest.flatten(elems)]
        flat = [composite_rows.encode_batch(x) for x in given]
        self.specs = [None if x is value else composite_rows.spec_of(value)._unbatch() for x, value in zip(flat, given)]
        if not flat:
            raise ValueError("elems must be a Tensor or a (possibly nested) sequence of them.")
        for x in flat:
            if x.shape.ndims == 0:
                raise ValueError("elements in elems must be 1+ dimensional Tensors, not scalars")
        self.static = given[0].shape.dims[0].value if given[0].shape.ndims else None
        self.count = self.static or shape(flat[0])[0]
        self.given = given
        arrays = [TensorArray(x.dtype, size=self.count, dynamic_size=False, infer_shape=True,
                              element_shape=x.shape[1:] if shaped else None) for x in flat]
        self.arrays = [array.unstack(x) for array, x in zip(arrays, flat)]

    def read(self, i):
        rows = [array.read(i) for array in self.arrays]
        return nest.pack_sequence_as(self.structure, [
            row if spec is None else composite_rows.decode(row, spec) for row, spec in zip(rows, self.specs)])


def _parallel(parallel_iterations):
    return 10 if parallel_iterations is None else parallel_iterations


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,
           infer_shape=True, name=None, fn_output_signature=None):
    """Applies `fn` to each row of `elems` and stacks the results.

    Args:
      fn: a function of one row, nested like `elems`.
      elems: a nest of tensors with equal first dimensions.
      dtype: the types of the results of `fn`, in their structure; by default those of `elems`.
      parallel_iterations, back_prop, swap_memory: as for while_loop.
      infer_shape: False if the results differ in shape.
      name: name of the scope of the new operations.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    fn = traceable_in_graph(fn)
    dtype = fn_output_signature if dtype is None else dtype
    with name_scope(name, "map", nest.flatten(elems)):
        rows = _Rows(elems)
        like = elems if dtype is None else dtype
        if dtype is None:
            specs = [composite_rows.spec_of(x) if spec is None else spec for x, spec in zip(rows.given, rows.specs)]
        else:
            specs = [composite_rows.spec_of(t) for t in nest.flatten(dtype)]
        start = constant(0)
        results = [TensorArray(composite_rows.encoded_type(spec), size=rows.count, dynamic_size=False, infer_shape=infer_shape)
                   for spec in specs]

        def body(i, arrays):
            out = fn(rows.read(i))
            nest.assert_same_structure(like, out)
            made = [composite_rows.encode_row(value, spec) for value, spec in zip(nest.flatten(out), specs)]
            arrays = [array.write(i, value) for array, value in zip(arrays, made)]
            return i + 1, arrays

        _, arrays = while_loop(
            lambda i, _: i < rows.count, body, (start, results),
            parallel_iterations=_parallel(parallel_iterations), back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=rows.count)
        stacked = [array.stack() for array in arrays]
        _set_first(stacked, rows.static)
        for x, spec in zip(stacked, specs):
            if x.dtype != dtypes.variant and spec.shape.rank is not None:
                x.set_shape([rows.static, *spec.shape])
        return nest.pack_sequence_as(like, [
            x if x.dtype != dtypes.variant else composite_rows.decode(x, spec._batch(rows.static)) for x, spec in zip(stacked, specs)])


def _set_first(tensors, count):
    for x in tensors:
        if count is not None and x.shape.dims is not None:
            x.set_shape([count] + x.shape.as_list()[1:])


def _fold(fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, backward):
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "foldr" if backward else "foldl", nest.flatten(elems)):
        rows = _Rows(elems)
        if initializer is None:
            state = rows.read(rows.count - 1 if backward else 0)
            begin = rows.count - 1 if backward else constant(1)
        else:
            state = initializer
            begin = rows.count if backward else constant(0)

        def body(i, state):
            if backward:
                i = i - 1
            state = fn(state, rows.read(i))
            return (i if backward else i + 1), state

        _, state = while_loop(
            (lambda i, _: i > 0) if backward else (lambda i, _: i < rows.count), body, (begin, state),
            parallel_iterations=_parallel(parallel_iterations), back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=rows.count)
        return state


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    """Computes `state = fn(state, row)` from the first row to the last. Returns the last state.

    `initializer` is the first state; by default it is the first row.
    """
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, False)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    """Like foldl, from the last row to the first."""
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, True)


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
         infer_shape=True, reverse=False, name=None):
    """Computes `state = fn(state, row)` for each row and stacks all states.

    Args:
      fn: a function of the state and of one row of `elems`, nested like them.
      elems: a nest of tensors with equal first dimensions.
      initializer: the first state; by default the first row, which is then also the first result.
      parallel_iterations, back_prop, swap_memory: as for while_loop.
      infer_shape: False if the states differ in shape.
      reverse: goes from the last row to the first; each state stays at the place of its row.
      name: name of the scope of the new operations.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "scan", nest.flatten(elems)):
        rows = _Rows(elems, shaped=True)
        first = rows.count - 1 if reverse else 0
        state = (rows.read(first) if initializer is None
                 else nest.map_structure(convert_to_tensor, initializer))
        flat = nest.flatten(state)
        arrays = [TensorArray(x.dtype, size=rows.count, dynamic_size=False, infer_shape=infer_shape,
                              element_shape=x.shape if infer_shape else None) for x in flat]
        done = 0
        if initializer is None:
            arrays = [array.write(first, x) for array, x in zip(arrays, flat)]
            done = 1
        begin = rows.count - 1 - done if reverse else done

        def body(i, values, arrays):
            row = rows.read(i)
            after = fn(nest.pack_sequence_as(state, values), row)
            nest.assert_same_structure(state, after)
            values = nest.flatten(after)
            arrays = [array.write(i, x) for array, x in zip(arrays, values)]
            return (i - 1 if reverse else i + 1), values, arrays

        _, _, arrays = while_loop(
            (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < rows.count), body,
            (begin, flat, arrays), parallel_iterations=_parallel(parallel_iterations),
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=rows.count)
        stacked = [array.stack() for array in arrays]
        _set_first(stacked, rows.static)
        return nest.pack_sequence_as(state, stacked)
