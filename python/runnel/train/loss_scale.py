"""Loss scales: factors that keep small gradients from vanishing in half precision.

A loss is multiplied by the scale, and its gradients are divided by it. A dynamic scale shrinks if a gradient is not
finite and grows after a number of steps without that.
"""

import abc

from runnel import _core, dtypes, nest, raw_ops
from runnel.core import convert, framework
from runnel.core.composite import IndexedSlices
from runnel.core.trackable import SaveType, Trackable
from runnel.ops import array_ops, control_flow, math_ops, variables


def _graph():
    return None if _core.current() is None else framework.get_default_graph()


def _op_of(value):
    """The operation of a tensor in a graph; the value itself in eager execution."""
    return value if _core.current() is None else value.op


class LossScale(Trackable, metaclass=abc.ABCMeta):
    """The base of loss scales: calling one returns the scale as a tensor."""

    def __init__(self):
        self._weights = {}

    @abc.abstractmethod
    def __call__(self):
        """Returns the current scale, a scalar float32 tensor."""

    @abc.abstractmethod
    def update(self, grads):
        """Returns (an operation that updates the scale, whether the gradients should be applied)."""

    @abc.abstractmethod
    def get_config(self):
        """Returns the arguments that make an equal object."""

    @classmethod
    def from_config(cls, config):
        """Makes an object with the arguments that get_config returned."""
        return cls(**config)

    def _add_weight(self, name, initial_value, dtype=None):
        variable = variables.VariableV1(initial_value=initial_value, name=name, dtype=dtype, trainable=False,
                                        use_resource=True)
        key = (name, _graph())
        if key in self._weights:
            raise RuntimeError("Duplicate variables detected. %s" % (key,))
        self._handle_deferred_dependencies(name=name, trackable=variable)
        self._weights[key] = variable
        return variable

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, **kwargs):
        weights = {name: variable for (name, graph), variable in sorted(self._weights.items(), key=lambda row: row[0][0]) if graph is _graph()}
        return {**weights, **super()._trackable_children(save_type, **kwargs)}

    def _lookup_dependency(self, name, cached_dependencies=None):
        found = super()._lookup_dependency(name, cached_dependencies)
        return self._weights.get((name, _graph())) if found is None else found


class FixedLossScale(LossScale):
    """A scale that stays the same."""

    def __init__(self, loss_scale_value):
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._loss_scale_value = float(loss_scale_value)

    def __call__(self):
        return convert.convert_to_tensor(self._loss_scale_value)

    def update(self, grads):
        return control_flow.no_op(), True

    def __repr__(self):
        return "FixedLossScale(%s)" % self._loss_scale_value

    def get_config(self):
        return {"loss_scale_value": self._loss_scale_value}


def _is_all_finite(grads):
    """Whether all elements of all gradients are finite."""
    parts = [part for g in grads if g is not None for part in (g.values if hasattr(g, "_primary") else [g])]
    values = [g.values if isinstance(g, IndexedSlices) else g for g in parts]
    each = [math_ops.reduce_all(raw_ops.IsFinite(x=value)) for value in values]
    return raw_ops.All(each, math_ops.range(0, array_ops.rank(each)))  # stock's nodes: each of the two packs the list


class DynamicLossScale(LossScale):
    """A scale that shrinks if a gradient is not finite, and grows after some steps without that.

    It is divided or multiplied by `multiplier`, and never falls below 1.

    Args:
      initial_loss_scale: the first scale.
      increment_period: the number of steps with finite gradients before the scale grows.
      multiplier: the factor.
    """

    def __init__(self, initial_loss_scale=2 ** 15, increment_period=2000, multiplier=2.0):
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current_loss_scale = self._add_weight("current_loss_scale", self._initial_loss_scale, dtypes.float32)
        self._num_good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    @property
    def initial_loss_scale(self):
        """The first scale."""
        return self._initial_loss_scale

    @property
    def increment_period(self):
        """The number of steps with finite gradients before the scale grows."""
        return self._increment_period

    @property
    def multiplier(self):
        """The factor by which the scale changes."""
        return self._multiplier

    def __call__(self):
        return convert.convert_to_tensor(self._current_loss_scale)

    def update(self, grads):
        is_finite = _is_all_finite(nest.flatten(grads))
        return control_flow.cond(is_finite, self._after_good_step, self._after_bad_step), is_finite

    def _after_good_step(self):
        def grow():
            larger = self._current_loss_scale * self._multiplier
            assign = control_flow.cond(raw_ops.IsFinite(x=larger),
                                       lambda: _op_of(self._current_loss_scale.assign(larger)), control_flow.no_op)
            return control_flow.group(assign, self._num_good_steps.assign(0))

        return control_flow.cond(self._num_good_steps + 1 >= self._increment_period, grow,
                                 lambda: _op_of(self._num_good_steps.assign_add(1)))

    def _after_bad_step(self):
        smaller = raw_ops.Maximum(x=self._current_loss_scale / self._multiplier, y=1.0)
        return control_flow.group(self._num_good_steps.assign(0), self._current_loss_scale.assign(smaller))

    def __repr__(self):
        current = ""
        if _core.current() is None:
            current = "current_loss_scale=%s, num_good_steps=%s, " % (
                self._current_loss_scale.numpy(), self._num_good_steps.numpy())
        return "DynamicLossScale(%sinitial_loss_scale=%s, increment_period=%s, multiplier=%s)" % (
            current, self.initial_loss_scale, self.increment_period, self.multiplier)

    def get_config(self):
        return {"initial_loss_scale": self.initial_loss_scale, "increment_period": self.increment_period,
                "multiplier": self.multiplier}


def get(identifier):
    """Returns the loss scale that a number, "dynamic" or a loss scale stands for."""
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if identifier == "dynamic":
        return DynamicLossScale()
    if identifier is None or isinstance(identifier, LossScale):
        return identifier
    raise ValueError("Could not interpret loss scale identifier: %s" % identifier)
