"""The base of tf.layers: the variables, calls and input checks of a layer."""

import re

from runnel import dtypes
from runnel.core.convert import convert_to_tensor
from runnel.core.attribute_tracking import AttributeTrackable
from runnel.core.framework import (
    GraphKeys, Tensor, add_to_collection, add_to_collections, get_default_graph, name_scope)


def _snake_case(name):
    middle = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", middle).lower()


class InputSpec:
    """The requirements for a layer's input."""

    def __init__(self, dtype=None, shape=None, ndim=None, max_ndim=None, min_ndim=None, axes=None):
        self.dtype, self.ndim = dtype, len(shape) if shape is not None else ndim
        self.shape, self.max_ndim, self.min_ndim, self.axes = shape, max_ndim, min_ndim, axes or {}

    def check(self, x, layer):
        rank = x.shape.ndims
        if rank is None:
            if self.ndim is not None or self.min_ndim is not None:
                raise ValueError("Input 0 of layer %s is incompatible with the layer: its rank is "
                                 "undefined, but the layer requires a defined rank." % layer)
            return
        if self.ndim is not None and rank != self.ndim or self.min_ndim is not None \
                and rank < self.min_ndim or self.max_ndim is not None and rank > self.max_ndim:
            wanted = ("ndim=%s" % self.ndim if self.ndim is not None else
                      "min_ndim=%s" % self.min_ndim if self.min_ndim is not None
                      else "max_ndim=%s" % self.max_ndim)
            raise ValueError("Input 0 of layer %s is incompatible with the layer: expected %s, found "
                             "ndim=%s. Full shape received: %s" % (layer, wanted, rank,
                                                                   x.shape.as_list()))
        dims = x.shape.as_list()
        for axis, value in self.axes.items():
            if value is not None and dims[axis] not in (None, int(value)):
                raise ValueError("Input 0 of layer %s is incompatible with the layer: expected axis "
                                 "%s of input shape to have value %s but received input with shape "
                                 "%s" % (layer, axis, value, dims))


class Layer(AttributeTrackable):
    """The base of layers: a subclass creates variables in `build` and computes in `call`."""

    def __init__(self, trainable=True, name=None, dtype=None, **kwargs):
        scope, self._reuse = kwargs.pop("_scope", None), kwargs.pop("_reuse", None)
        for ignored in ("activity_regularizer", "input_shape", "batch_input_shape"):
            setattr(self, "_" + ignored, kwargs.pop(ignored, None))
        if kwargs:
            raise TypeError("Keyword argument not understood: %s" % sorted(kwargs)[0])
        self.trainable = trainable
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.built = False
        self.input_spec = None
        self.stateful = False
        self._trainable_weights = []
        self._non_trainable_weights = []
        self._updates = []
        self._losses = []
        self._graph = get_default_graph()
        self._base_name = name or _snake_case(type(self).__name__)
        self._name = name
        self._scope = None
        if scope:
            from runnel.ops.variable_scopes import variable_scope
            with variable_scope(scope) as captured:
                self._scope = captured

    @property
    def name(self):
        return self._name or (self._scope.name if self._scope is not None else self._base_name)

    @property
    def dtype(self):
        return None if self._dtype is None else self._dtype.name

    @property
    def graph(self):
        return self._graph

    @property
    def scope_name(self):
        if self._scope is None:
            raise ValueError("No name available for layer scope because the layer \"%s\" has not been "
                             "used yet." % self._base_name)
        return self._scope.name

    @property
    def trainable_variables(self):
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_variables(self):
        return list(self._non_trainable_weights) + ([] if self.trainable else list(self._trainable_weights))

    @property
    def variables(self):
        return self.trainable_variables + self.non_trainable_variables

    weights = variables
    trainable_weights = trainable_variables
    non_trainable_weights = non_trainable_variables

    @property
    def updates(self):
        return list(self._updates)

    @property
    def losses(self):
        return list(self._losses)

    def build(self, input_shape):
        """Creates the variables. Subclasses may omit it."""
        self.built = True

    def call(self, inputs, **kwargs):
        return inputs

    def add_variable(self, name, shape, dtype=None, initializer=None, regularizer=None,
                     trainable=True, constraint=None, partitioner=None, use_resource=None, **_):
        """Creates a variable in the layer's scope. Its regularization becomes a loss of the layer."""
        from runnel.ops.variable_scopes import get_variable
        known = set() if regularizer is None else set(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES))
        variable = get_variable(
            name, shape=shape, dtype=dtypes.as_dtype(dtype or self._dtype or dtypes.float32),
            initializer=initializer, constraint=constraint, partitioner=partitioner,
            use_resource=use_resource, trainable=trainable and self.trainable)
        if regularizer is not None and not known.intersection(_parts(variable)):
            for part in _parts(variable):
                with name_scope(name + "/Regularizer"):
                    loss = regularizer(part)
                if loss is not None:
                    self.add_loss(loss)
        (self._trainable_weights if trainable else self._non_trainable_weights).append(variable)
        return variable

    add_weight = add_variable

    def _adopt(self, trainable, non_trainable=()):
        """Adds variables that other objects created to the layer's own."""
        for mine, found in ((self._trainable_weights, trainable), (self._non_trainable_weights, non_trainable)):
            mine += [v for v in found if not any(v is other for other in mine)]

    def add_update(self, updates, inputs=None):
        """Adds operations that should run with training steps."""
        updates = updates if isinstance(updates, (list, tuple)) else [updates]
        self._updates.extend(updates)
        for update in updates:
            add_to_collections([GraphKeys.UPDATE_OPS], update)

    def add_loss(self, losses, inputs=None):
        """Adds losses that should be added to a model's loss."""
        losses = losses if isinstance(losses, (list, tuple)) else [losses]
        self._losses.extend(losses)
        for loss in losses:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    def _enter(self, scope):
        from runnel.ops.variable_scopes import variable_scope
        if self._scope is None:
            if self._reuse:
                with variable_scope(scope if scope is not None else self._base_name) as captured:
                    self._scope = captured
            else:
                with variable_scope(scope, default_name=self._base_name) as captured:
                    self._scope = captured
        reuse = True if self.built else self._reuse
        return variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False)

    def __call__(self, inputs, *args, **kwargs):
        scope = kwargs.pop("scope", None)
        from runnel import nest
        with self._enter(scope) as current:
            with name_scope(current.original_name_scope):
                flat = [x if not hasattr(x, "__array__") and not isinstance(x, (int, float, list))
                        else convert_to_tensor(x) for x in nest.flatten(inputs)]
                if flat and not nest.is_nested(inputs):
                    inputs = convert_to_tensor(flat[0]) if not isinstance(flat[0], Tensor) else flat[0]
                    if self.input_spec is not None:
                        self.input_spec.check(inputs, self.name)
                first = flat[0] if flat else None
                if self._dtype is None and isinstance(first, Tensor):
                    self._dtype = first.dtype.base_dtype
                if not self.built:
                    self.build(self._shapes(inputs))
                    self.built = True
                    if self.input_spec is not None and isinstance(inputs, Tensor):
                        self.input_spec.check(inputs, self.name)
                outputs = self.call(inputs, *args, **kwargs)
        if self._activity_regularizer is not None:
            for output in nest.flatten(outputs):
                self.add_loss(self._activity_regularizer(output))
        return outputs

    def __deepcopy__(self, memo):
        """Returns a layer of the same graph with the same configuration."""
        import copy
        other = memo[id(self)] = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            other.__dict__[name] = value if name in ("_graph", "_scope") else copy.deepcopy(value, memo)
        return other

    def _shapes(self, inputs):
        from runnel import nest
        if not nest.is_nested(inputs):
            return inputs.shape
        return nest.map_structure(lambda x: x.shape, inputs)

    def apply(self, inputs, *args, **kwargs):
        return self(inputs, *args, **kwargs)

    def compute_output_shape(self, input_shape):
        raise NotImplementedError

    def count_params(self):
        """Returns the number of elements of all variables."""
        return sum(v.shape.num_elements() for v in self.weights)


def _parts(variable):
    """Returns the parts of a partitioned variable, or [variable]."""
    return list(variable._get_variable_list()) if hasattr(variable, "_get_variable_list") else [variable]


def _zeros(initializer):
    if initializer is not None:
        return initializer
    from runnel.ops.init_ops import zeros_initializer
    return zeros_initializer()


def _ones(initializer):
    if initializer is not None:
        return initializer
    from runnel.ops.init_ops import ones_initializer
    return ones_initializer()


def _in_training(training, yes, no):
    from runnel.ops.control_flow import smart_cond
    if isinstance(training, int):
        training = bool(training)
    return smart_cond(training, yes, no)
