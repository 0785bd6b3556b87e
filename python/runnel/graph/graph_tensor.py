"""Tensors of graphs: outputs of operations. The type is C (python/ext/graph.c); this adds shapes, text forms and messages."""

from runnel import _core, errors
from runnel.core import tensor_shape
from runnel.graph.operation import _session_for

# Libraries recognize tensors by a base of this name and module, without importing TensorFlow.
RecognizedTensor = type("Tensor", (), {"__module__": "tensorflow.python.types.core", "__doc__": "The base of tensors.", "__slots__": ()})


class _NumPyName:
    """A name that tensors have once NumPy's behaviour is enabled, which puts a method in this place."""

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, tensor, owner=None):
        kind = (owner if tensor is None else type(tensor)).__name__
        raise AttributeError("%s object has no attribute '%s'. \n        If you are looking for numpy-related methods, please run the "
                             "following:\n        tf.experimental.numpy.experimental_enable_numpy_behavior()\n      " % (kind, self._name))


class Tensor(_core.Tensor, RecognizedTensor):  # type: ignore[misc, valid-type]
    """An output of an operation: `op`, `value_index`, `dtype`, `shape`, `name`, `graph`.

    It holds no value; `Session.run` computes it.
    """

    __array_priority__ = 100
    _graph = _core.Tensor.graph  # None for an eager tensor, whose `graph` raises AttributeError
    OVERLOADABLE_OPERATORS = {"__%s__" % name for name in """
    abs add and div eq floordiv ge getitem gt invert le lt matmul mod mul ne neg or pow radd rand rdiv
    rfloordiv rmatmul rmod rmul ror rpow rsub rtruediv rxor sub truediv xor""".split()}

    @property
    def shape(self):
        """The static shape, a TensorShape."""
        return tensor_shape.TensorShape(self._dims())

    def get_shape(self):
        """Returns the static shape, a TensorShape."""
        return tensor_shape.TensorShape(self._dims())

    @property
    def ndim(self):
        """The number of dimensions, or None."""
        return self._rank()

    def set_shape(self, shape):
        """Refines the static shape. Raises ValueError if the shapes contradict each other."""
        dims = tensor_shape.as_shape(shape)._dims
        if dims is not None:
            self._set_dims([-1 if d is None else d for d in dims])

    def __tf_tracing_type__(self, context):
        from runnel.core.type_spec import TensorSpec
        return TensorSpec(self.shape, self.dtype)

    def _shape_tuple(self):
        return self._dims()

    def _as_tf_output(self):
        return self

    @property
    def device(self):
        """The device that the operation asks for."""
        return self.op.device

    def eval(self, feed_dict=None, session=None):
        """Returns the value in a session, by default the default one."""
        return _session_for(self.graph, session).run(self, feed_dict)

    def _as_graph_element(self):
        return self

    def _as_node_def_input(self):
        return self.name.removesuffix(":0")

    def _rank(self):
        dims = self._dims()
        return None if dims is None else len(dims)

    def __repr__(self):
        return "<tf.Tensor '%s' shape=%s dtype=%s>" % (self.name, self.shape, self.dtype.name)

    def __str__(self):
        return "Tensor(\"%s\"%s, dtype=%s%s)" % (
            self.name,
            "" if self._dims() is None else ", shape=%s" % self.shape,
            self.dtype.name,
            ", device=%s" % self.op.device if self.op.device else "")

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other

    def __copy__(self):
        return self

    def ref(self):
        """Returns a reference: an object with a hash, which `deref()` turns into this tensor."""
        from runnel.core.identity import Reference
        return Reference(self)

    def __bool__(self):
        where = ("a tf.function is traced before %s has a value" if self.graph._building_function else "%s has a value only when a session runs"
                 ) % self.name
        raise errors.OperatorNotAllowedInGraphError(
            "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed: %s. Write tf.cond(condition, true_fn, false_fn) instead of `if`, "
            "tf.while_loop(cond, body, loop_vars) instead of `while`, tf.logical_and instead of `and`; `if t is not None:` tests if a tensor "
            "is defined." % where)

    __nonzero__ = __bool__
    T, astype, ravel, transpose, reshape, clip, size, tolist, data = (_NumPyName() for _ in range(9))

    @property
    def numpy(self):
        """Raises an error: a tensor of a graph has no value."""
        raise AttributeError("%r object has no attribute 'numpy': %s is a node of a graph. %s" % (
            type(self).__name__, self.name, _how_to_get_values(self.graph)))

    def __len__(self):
        raise TypeError("len is not well defined for a symbolic Tensor (%s). Please call `x.shape` "
                        "rather than `len(x)` for shape information." % self.name)

    def __iter__(self):
        dims = self._dims()
        if dims is None or not dims or dims[0] is None:
            raise errors.OperatorNotAllowedInGraphError(
                "Cannot iterate over a tensor with %s first dimension." % ("no" if dims == () else "unknown"))
        return (self[i] for i in range(dims[0]))

    def __array__(self, *args, **kwargs):
        raise NotImplementedError(
            "Cannot convert a symbolic tf.Tensor (%s) to a numpy array. This error may indicate "
            "that you're trying to pass a Tensor to a NumPy call, which is not supported." % self.name)


def _how_to_get_values(graph):
    """For messages: returns how the program can get the value of a tensor."""
    if graph._building_function:
        return "A tf.function is traced before there are values; return the tensor, or use tf.py_function."
    return ("tf.Session().run(x) computes its value; with tf.enable_eager_execution() at the start of the program "
            "tensors have values.")


def is_tensor(value):
    """Tells whether `value` is a tensor or an object that stands for tensors."""
    return isinstance(value, (Tensor, *_tensor_like)) or hasattr(value, "_as_graph_element") or hasattr(
        value, "_is_composite") and getattr(value, "_counts_as_tensor", True)


def is_dense_tensor_like(value):
    """Tells whether `value` is a tensor or a variable."""
    return is_tensor(value) and not hasattr(value, "_is_composite")


_tensor_like: list = []  # types of libraries that count as tensors


def register_dense_tensor_like_type(tensor_type):
    """Makes a type count as a tensor; it must have the properties `name` and `dtype`."""
    for attribute in ("name", "dtype"):
        if not isinstance(getattr(tensor_type, attribute, None), property):
            raise TypeError("Type %s does not define a `%s` property" % (tensor_type.__name__, attribute))
    if tensor_type not in _tensor_like:
        _tensor_like.append(tensor_type)
