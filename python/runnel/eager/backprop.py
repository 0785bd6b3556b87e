"""GradientTape, and functions with gradients of their own.

In eager execution, tapes are C (python/ext/tape.c) and record what runs. While a graph is built, the graph itself
is the record, and a tape calls tf.gradients.
"""

import contextlib
import functools
import itertools
import threading

from runnel import _core, nest, raw_ops
from runnel.core import composite_gradients, framework
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.core.gradients_impl import RegisterGradient, UnconnectedGradients, gradients, unconnected
from runnel.ops import resource_variable


class _Active(threading.local):
    def __init__(self):
        self.tapes = []     # recording tapes, outermost first
        self.watchers = []  # lists that collect the trainable variables that are read


_active = _Active()


def _accessed(variable):
    """Records that a trainable variable is about to be read."""
    for tape in _active.tapes:
        tape._variable_accessed(variable)
    for found in _active.watchers:
        if not any(variable is v for v in found):
            found.append(variable)


resource_variable._on_read.append(_accessed)


@contextlib.contextmanager
def watch_variables():
    """A context manager whose value is a list of the trainable variables that are read inside it."""
    found = []
    _active.watchers.append(found)
    try:
        yield found
    finally:
        _active.watchers[:] = [other for other in _active.watchers if other is not found]


class VariableWatcher:
    """A context manager that collects the trainable variables that are read or assigned inside it."""

    def __init__(self):
        self._found = []

    def __enter__(self):
        self._entered = watch_variables()
        self._found = self._entered.__enter__()
        return self

    def __exit__(self, *error):
        self._entered.__exit__(*error)

    def watched_variables(self):
        """Returns the variables so far."""
        return tuple(self._found)


@contextlib.contextmanager
def stop_recording():
    """A context manager in which the tapes of this thread record nothing."""
    before = list(_active.tapes)
    for tape in before:
        tape._pop()
    try:
        yield
    finally:
        for tape in before:
            tape._push()


def _is_variable(x):
    return isinstance(x, resource_variable.ResourceVariable)


def _own(x):
    """Returns the variable inside a library's variable, which converts like one and has its handle."""
    if getattr(x, "_should_act_as_resource_variable", False) and not _is_variable(x):
        found = x.value if _is_variable(x.value) else resource_variable.variable_of(x.handle)
        return x if found is None else found
    return x


def _eager(x):
    """Returns the eager tensor to differentiate by: for a variable, its handle."""
    if _is_variable(x):
        return x.handle
    return x if isinstance(x, framework.Tensor) else convert_to_tensor(x)


def _inside(x):
    """Returns the tensor that stands in the current graph for a variable or an eager tensor."""
    tensor = x.handle if _is_variable(x) else x
    if isinstance(tensor, framework.Tensor) and tensor.op is None:
        from runnel.eager.context import capture_constant
        return capture_constant(tensor)
    return x


_PASSAGES = frozenset(("Enter", "RefEnter", "Switch", "RefSwitch"))  # nodes that bring values into loops and branches


def _reads_reference(op):
    """Tells whether `op` is the read that was created with a reference variable."""
    return op.type == "Identity" and op.inputs[0].dtype._is_ref_dtype


def _call_before(op, graph):
    """Returns the call in whose place a gradient has put `op`, and calls that were inside the call, or None."""
    call = None
    while True:
        try:
            op = call = graph.get_operation_by_name(op.get_attr("_runnel_opened_from").decode())
        except ValueError:
            return call


class GradientTape:
    """Records operations, so that gradients of them can be computed.

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        dx = tape.gradient(y, x)

    Args:
      persistent: whether gradients may be computed more than once.
      watch_accessed_variables: whether trainable variables are watched when they are read.
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._tape = None  # the tape in C; None in graph mode
        self._graph_mode = False
        self._recording = False
        self._used = False
        self._variables = []
        self._watched = []  # tensors of a graph
        self._spans = []    # [graph, first, end] of operations built while recording; end is None while it goes on

    # Recording

    def __enter__(self):
        self._push()
        return self

    def __exit__(self, *exc):
        if self._recording:
            self._pop()

    def _push(self):
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an "
                             "already-active tape.")
        self._graph_mode = not framework.executing_eagerly()
        if self._tape is not None:
            self._tape.resume()
        elif not self._graph_mode:
            # The C tape is always persistent; gradient() discards it if this tape is not.
            self._tape = _core.Tape(True)
        if self._graph_mode:
            graph = framework.get_default_graph()
            self._spans.append([graph, len(graph.get_operations()), None])
        _active.tapes.append(self)
        self._recording = True

    def _pop(self):
        if not self._recording:
            raise ValueError("Tape is not recording.")
        if self._tape is not None:
            self._tape.pause()
        if self._spans and self._spans[-1][2] is None:
            self._spans[-1][2] = len(self._spans[-1][0].get_operations())
        _active.tapes.remove(self)
        self._recording = False

    def _variable_accessed(self, variable):
        if self._watch_accessed_variables:
            self._watch_variable(variable)

    def _watch_variable(self, variable):
        if not any(variable is v for v in self._variables):
            self._variables.append(variable)
            if self._tape is not None and variable.handle.op is None:
                self._tape.watch(variable.handle)

    def _tracks(self, tensor):
        """Tells whether what is computed from an eager tensor is recorded."""
        return self._tape is not None and self._tape.tracks(_eager(tensor))

    def watch(self, tensor):
        """Records what is computed from a tensor or a structure of tensors."""
        for t in map(_own, nest.flatten(tensor, expand_composites=True)):
            if not (isinstance(t, framework.Tensor) or _is_variable(t) or hasattr(t, "_as_graph_element")):
                raise ValueError("Passed in object %r of type %r, not tf.Tensor or tf.Variable or "
                                 "ExtensionType." % (t, type(t).__name__))
            if not (t.dtype.is_floating or t.dtype.is_complex):
                from runnel import logging
                logging.warning("The dtype of the watched tensor must be floating (e.g. tf.float32), got %r",
                                t.dtype)
            elif _is_variable(t):
                self._watch_variable(t)
            elif t.op is not None:
                self._watched.append(t)
            elif self._tape is not None:
                self._tape.watch(t)
            else:
                self._watched.append(_inside(t))

    @contextlib.contextmanager
    def stop_recording(self):
        """A context manager in which nothing is recorded."""
        if self._tape is None and not self._recording:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        self._pop()
        try:
            yield
        finally:
            self._push()

    def reset(self):
        """Forgets what was recorded."""
        self._pop()
        self._tape = None
        self._variables = []
        self._watched = []
        self._spans = []
        self._push()

    def watched_variables(self):
        """Returns the watched variables in the order of their creation."""
        return tuple(sorted(self._variables, key=lambda v: getattr(v, "_number", -1)))

    # Gradients

    def _begin(self):
        if self._used:
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of "
                               "gradients (or jacobians)")
        if self._recording:
            if not self._persistent:
                self._pop()
            else:
                from runnel import logging
                logging.log_first_n(
                    logging.WARN, "Calling GradientTape.gradient on a persistent tape inside its context is "
                    "significantly less efficient than calling it outside the context (it causes the gradient "
                    "ops to be recorded on the tape, leading to increased CPU and memory usage). Only call "
                    "GradientTape.gradient inside the context if you actually want to trace the gradient in "
                    "order to compute higher order derivatives.", 1)

    def _end(self):
        if not self._persistent:
            self._used = True
            self._tape = None

    def gradient(self, target, sources, output_gradients=None,
                 unconnected_gradients=UnconnectedGradients.NONE):
        """Computes the gradients of `target` with respect to `sources`, in the structure of `sources`.

        Args:
          target: a tensor or a structure of tensors, whose sum is differentiated.
          sources: watched tensors, or variables.
          output_gradients: the incoming gradient of each target; by default ones.
          unconnected_gradients: the gradient of a source that no target depends on.
        """
        self._begin()
        if target is None:
            raise TypeError("Argument `target` should be a list or nested structure of Tensors, Variables "
                            "or CompositeTensors to be differentiated, but received None.")
        unconnected_gradients = unconnected(unconnected_gradients)
        try:
            values = nest.flatten(sources)
            found = self._gradients(composite_gradients.flatten(nest.flatten(target)), composite_gradients.flatten(values),
                                    output_gradients, unconnected_gradients)
            found = composite_gradients.pack(values, found)
        finally:
            self._end()
        return nest.pack_sequence_as(sources, found) if nest.is_nested(sources) else found[0]

    def _gradients(self, targets, sources, output_gradients, missing):
        given = None if output_gradients is None else [
            None if g is None else convert_to_tensor(g) for g in composite_gradients.flatten(nest.flatten(output_gradients))]
        targets, sources = [_own(t) for t in targets], [_own(s) for s in sources]
        targets = [self._read(t) if _is_variable(t) else t for t in targets]
        if self._tape is None:
            return self._graph_gradients([convert_to_tensor(t) for t in targets], sources, given, missing)
        targets, given = self._differentiable([_eager(t) for t in targets], given)
        found = self._tape.gradient(targets, [_eager(s) for s in sources], given,
                                    missing == UnconnectedGradients.ZERO)
        return [IndexedSlices(g[0], g[1], g[2]) if isinstance(g, tuple) else g for g in found]

    def _read(self, variable):
        """Reads a target that is a variable, and records the read even after the recording has ended."""
        if self._recording:
            return variable.value()
        self._push()
        try:
            return variable.value()
        finally:
            self._pop()

    def _graph_gradients(self, ys, sources, given, missing):
        if given is None and any(y.dtype.is_complex for y in ys):  # tf.gradients requires grad_ys for complex ys
            given = [raw_ops.OnesLike(x=y) for y in ys]
        recorded, stops = self._recorded(ys)
        xs = [_inside(s) for s in sources]
        found = gradients(ys, xs, grad_ys=given, stop_gradients=stops, unconnected_gradients=missing)
        for i, (source, x) in enumerate(zip(sources, xs)):
            if not self._counts(source, x, recorded):
                is_zero = missing is UnconnectedGradients.ZERO
                found[i] = raw_ops.ZerosLike(x=convert_to_tensor(source)) if is_zero else None
        return found

    def _recorded(self, ys):
        """Returns the operations built while the tape recorded, and the tensors that they read from other operations.

        To the tape those tensors are constants, unless they are sources.
        """
        graph = framework.get_default_graph()
        ops = graph.get_operations()
        recorded = set()
        for of, first, end in self._spans:
            if of is graph:
                recorded.update(ops[first:end])
        stops, seen, todo = [], set(), list(recorded)
        while todo:
            for x in todo.pop().inputs:
                if x.op in recorded or x.name in seen:
                    continue
                # Built before the recording, but part of it; or the body of a recorded call, which an earlier gradient has put in its place.
                if x.op.type in _PASSAGES or _reads_reference(x.op) or _call_before(x.op, graph) in recorded:
                    recorded.add(x.op)
                    todo.append(x.op)
                else:
                    seen.add(x.name)
                    stops.append(x)
        return recorded, stops + [y for y in ys if y.op not in recorded and y.name not in seen]

    def _counts(self, source, x, recorded):
        """Tells whether the tape watched `source`, which is `x` in the graph."""
        if _is_variable(source):
            return any(source is v for v in self._variables)
        if not isinstance(x, framework.Tensor):
            return True
        is_made = x.op in recorded and x.op.type != "StopGradient"
        return is_made or any(x is w or x.name == w.name for w in self._watched)

    @staticmethod
    def _differentiable(targets, given):
        from runnel import logging
        kept = []
        for i, t in enumerate(targets):
            if t.dtype.is_floating or t.dtype.is_complex:
                kept.append(i)
            else:
                logging.warning("The dtype of the target tensor must be floating (e.g. tf.float32) when "
                                "calling GradientTape.gradient, got %r", t.dtype)
        return [targets[i] for i in kept], None if given is None else [given[i] for i in kept]

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE,
                 parallel_iterations=None, experimental_use_pfor=True):
        """Computes the derivatives of each element of `target` with respect to each source."""
        import numpy as np
        self._check_loop(experimental_use_pfor, "jacobian")
        self._begin()
        missing = unconnected(unconnected_gradients)
        flat = nest.flatten(sources)
        dims = _static_dims(target)
        size = int(np.prod(dims))
        rows = []
        for i in range(size):
            one = np.zeros(size, target.dtype.as_numpy_dtype)
            one[i] = 1
            found = self._gradients([target], flat, [convert_to_tensor(one.reshape(dims))], missing)
            rows.append([None if g is None else convert_to_tensor(g) for g in found])
        answer = [_stacked([row[k] for row in rows], dims + _static_dims(source), 0) if rows else
                  _zeros(dims + _static_dims(source), target.dtype) for k, source in enumerate(flat)]
        self._end()
        return nest.pack_sequence_as(sources, answer) if nest.is_nested(sources) else answer[0]

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE,
                       parallel_iterations=None, experimental_use_pfor=True):
        """Computes the Jacobian of each row of `target` with respect to the same row of `source`."""
        import numpy as np
        dims, source_dims = _static_dims(target), _static_dims(source)
        for x in (target, source):
            x.shape.with_rank_at_least(2)
        if dims[0] != source_dims[0]:
            raise ValueError("Need first dimension of target shape (%s) and source shape (%s) to match." % (
                target.shape, source.shape))
        self._check_loop(experimental_use_pfor, "batch_jacobian")
        self._begin()
        missing = unconnected(unconnected_gradients)
        width = int(np.prod(dims[1:]))
        columns = []
        for i in range(width):
            one = np.zeros((dims[0], width), target.dtype.as_numpy_dtype)
            one[:, i] = 1
            found, = self._gradients([target], [source], [convert_to_tensor(one.reshape(dims))], missing)
            columns.append(found)
        self._end()
        dims = dims + source_dims[1:]
        answer = _stacked(columns, dims, 1)
        return _zeros(dims, target.dtype) if answer is None else answer  # None cannot be added to a tensor

    def _check_loop(self, use_pfor, name):
        if not use_pfor and not self._persistent and framework.executing_eagerly():
            raise RuntimeError("GradientTape must be created with persistent=True to compute the %s with "
                               "eager execution enabled and with  experimental_use_pfor set to False." % name)


def _static_dims(x):
    dims = x.shape.as_list()
    if any(d is None for d in dims):
        raise ValueError("The shape must be known: %s" % x.shape)
    return dims


def _zeros(dims, dtype):
    return raw_ops.Fill(dims=convert_to_tensor(dims), value=convert_to_tensor(0, dtype=dtype))


def _stacked(parts, dims, axis):
    if not parts or any(part is None for part in parts):
        return None
    return raw_ops.Reshape(raw_ops.Pack(parts, axis=axis), dims)


# --- Functions with gradients of their own

_numbers = itertools.count()
_RULE = "CustomGradient-"  # prefix of the registered gradients of tf.custom_gradient in graphs


def _has_own_rule(op):
    """Tells whether `op` stands for a function with tf.custom_gradient."""
    try:
        return op.get_attr("_gradient_op_type").startswith(_RULE.encode())
    except ValueError:
        return False


def custom_gradient(f=None):
    """A decorator for a function with its own gradient.

    `f` returns its results and a function from the gradients of the results to those of the arguments. If `f` reads
    variables, that function takes `variables` and also returns a list of their gradients.
    """
    if f is None:
        return custom_gradient

    return _WithOwnGradient(f)


class _WithOwnGradient:
    """What tf.custom_gradient makes of a function. As a method it is bound, so that the object is no argument with a gradient."""

    _ag_as_it_is = True

    def __init__(self, f):
        functools.update_wrapper(self, f)

    def __call__(self, *args, **kwargs):
        run = _eager_custom if framework.executing_eagerly() else _graph_custom
        return run(self.__wrapped__, args, kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else _WithOwnGradient(self.__wrapped__.__get__(instance, owner))


def _once_more(x):
    return raw_ops.Identity(input=x) if isinstance(x, framework.Tensor) else x


def recompute_grad(f):
    """A decorator: the gradient runs `f` again instead of keeping its intermediate results."""
    @custom_gradient
    @functools.wraps(f)
    def inner(*args, **kwargs):
        def grad(*dys, variables=None):
            found = list(variables or ())
            own = nest.map_structure(_once_more, list(args))  # copies, because `args` may contain a tensor twice
            with GradientTape() as tape:
                tape.watch(own)
                again = f(*own, **kwargs)
            grads = tape.gradient(again, own + found, output_gradients=list(dys))
            return (grads[:len(args)], grads[len(args):]) if found else grads
        with stop_recording():
            return f(*args, **kwargs), grad
    return inner


def grad_pass_through(f):
    """A decorator: gradients pass through `f` unchanged."""
    @custom_gradient
    @functools.wraps(f)
    def inner(*args, **kwargs):
        def grad(*dys, variables=None):
            return dys if variables is None else (dys, [None] * len(variables))
        return f(*args, **kwargs), grad
    return inner


def _both(arguments, grad_fn, grads, variables):
    """Returns the gradients of arguments and variables in one list."""
    if variables:
        found, of_variables = grad_fn(*grads, variables=variables)
        if len(of_variables) != len(variables):
            raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
    else:
        found, of_variables = grad_fn(*grads), []
    found = nest.flatten(found)
    if len(found) != len(arguments):
        raise ValueError("custom_gradient function expected to return %d gradients, but returned %d "
                         "instead." % (len(arguments), len(found)))
    return found + list(of_variables)


def _flat_args(args):
    flat = [convert_to_tensor(x) for x in nest.flatten(list(args), expand_composites=False)]
    return flat, nest.pack_sequence_as(list(args), flat)


def _eager_custom(f, args, kwargs):
    flat, packed = _flat_args(args)
    with stop_recording(), watch_variables() as variables:
        result, grad_fn = f(*packed, **kwargs)
        variables = [v for v in variables if not any(v is a for a in args)]
        results = [raw_ops.Identity(convert_to_tensor(x)) for x in nest.flatten(result)]
        zeros = [(x.shape.as_list(), x.dtype) for x in results]

    def backward(arrived):
        import runnel
        grads = [runnel.zeros(*zeros[i]) if g is None else g for i, g in enumerate(arrived)]
        found = _both(flat, grad_fn, grads, variables)
        return [None if g is None else convert_to_tensor(g) for g in found]

    for v in variables:
        _accessed(v)
    _core.tape_record(flat + [v.handle for v in variables], results, backward)
    return nest.pack_sequence_as(result, results) if nest.is_nested(result) else results[0]


def _graph_custom(f, args, kwargs):
    if kwargs:
        raise ValueError("The custom_gradient decorator currently supports keywords arguments only when "
                         "eager execution is enabled.")
    flat = [convert_to_tensor(x) for x in nest.flatten(list(args))]
    with watch_variables() as variables:
        result, grad_fn = f(*nest.pack_sequence_as(list(args), flat))
    results = [convert_to_tensor(x) for x in nest.flatten(result)]
    name = "%s%d" % (_RULE, next(_numbers))
    count = len(results)

    @RegisterGradient(name)
    def _rule(op, *grads):
        found = _both(flat, grad_fn, grads[:count], variables)
        return [None] * count + found

    given = results + flat + [v.handle for v in variables]
    graph = framework.get_default_graph()
    with graph.gradient_override_map({"IdentityN": name, "Identity": name}):
        tensors = raw_ops.IdentityN(given)
    for before, after in zip(given, tensors):
        if before.shape.ndims is not None:
            after.set_shape(before.shape)
    answer = list(tensors[:count])
    return nest.pack_sequence_as(result, answer) if nest.is_nested(result) else answer[0]
