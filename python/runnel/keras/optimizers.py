"""tf.keras.optimizers: optimizers by name, with Keras's arguments.

Each creates an optimizer of tf.train (`build`) when it is first used.
"""

from runnel import raw_ops
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.ops import math_ops
from runnel.train import optimizers as _optimizers
from runnel.train.optimizer import Optimizer as _Base


class _Formula(_Base):
    """An update written in Python: `_step(g, var, lr)` returns what to subtract, and sets slots with `_keep`."""

    _slots_of = ()

    def __init__(self, learning_rate, name, **parameters):
        super().__init__(False, name)
        self._rate = learning_rate
        self.__dict__.update(parameters)

    def _create_slots(self, var_list):
        first = min(var_list, key=lambda v: v.name)
        self._create_non_slot_variable(1.0, "iteration", first)
        for name, value in self._scalars():
            self._create_non_slot_variable(value, name, first)
        for variable in var_list:
            for slot in self._slots_of:
                self._zeros_slot(variable, slot, self._name)

    def _scalars(self):
        """Returns [(name, initial value)] of the state shared by all variables."""
        return ()

    def _scalar(self, name):
        from runnel.core import framework
        return self._get_non_slot_variable(name, None if framework.executing_eagerly() else framework.get_default_graph())

    def _prepare(self):
        self._now = math_ops.cast(convert_to_tensor(self._scalar("iteration")), "float32")

    def _keep(self, var, slot, value):
        self._kept.append(self.get_slot(var, slot).assign(value))
        return value

    def _slot(self, var, slot):
        return convert_to_tensor(self.get_slot(var, slot))

    def _apply_dense(self, grad, var):
        from runnel.ops.control_flow import group
        self._kept = []
        change = self._step(grad, var, math_ops.cast(convert_to_tensor(self._call_if_callable(self._rate)), grad.dtype))
        return group(var.assign_sub(change), *self._kept)

    _resource_apply_dense = _apply_dense

    def _apply_sparse(self, grad, var):
        from runnel.ops import array_ops
        dense = convert_to_tensor(IndexedSlices(grad.values, grad.indices, array_ops.shape(var)))
        return self._apply_dense(dense, var)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._apply_sparse(IndexedSlices(grad, indices), handle)

    def _finish(self, update_ops, name_scope):
        from runnel.core import framework
        from runnel.ops.control_flow import group
        done = [op for op in update_ops if op is not None]
        with framework.control_dependencies(done):
            after = [self._scalar("iteration").assign_add(1.0)] + self._after()
        return group(*done, *after, name=name_scope)

    def _after(self):
        return []


class _RMSprop(_Formula):
    _slots_of = ("rms", "mean", "momentum")

    def _step(self, g, var, lr):
        rms = self._keep(var, "rms", self.rho * self._slot(var, "rms") + (1.0 - self.rho) * g * g)
        if self.centered:
            mean = self._keep(var, "mean", self.rho * self._slot(var, "mean") + (1.0 - self.rho) * g)
            rms = rms - mean * mean
        if self.momentum:
            return self._keep(var, "momentum", self.momentum * self._slot(var, "momentum") + lr * g * raw_ops.Rsqrt(x=rms + self.epsilon))
        return lr * g / (raw_ops.Sqrt(x=rms) + self.epsilon)


class _Amsgrad(_Formula):
    _slots_of = ("m", "v", "vhat")

    def _step(self, g, var, lr):
        m = self._keep(var, "m", self.beta_1 * self._slot(var, "m") + (1.0 - self.beta_1) * g)
        v = self._keep(var, "v", self.beta_2 * self._slot(var, "v") + (1.0 - self.beta_2) * g * g)
        top = self._keep(var, "vhat", raw_ops.Maximum(x=self._slot(var, "vhat"), y=v))
        rate = lr * raw_ops.Sqrt(x=1.0 - self.beta_2 ** self._now) / (1.0 - self.beta_1 ** self._now)
        return rate * m / (raw_ops.Sqrt(x=top) + self.epsilon)


class _Adamax(_Formula):
    _slots_of = ("m", "v")

    def _step(self, g, var, lr):
        m = self._keep(var, "m", self.beta_1 * self._slot(var, "m") + (1.0 - self.beta_1) * g)
        v = self._keep(var, "v", raw_ops.Maximum(x=self.beta_2 * self._slot(var, "v"), y=math_ops.abs(g)))
        return lr / (1.0 - self.beta_1 ** self._now) * m / (v + self.epsilon)


class _Nadam(_Formula):
    _slots_of = ("m", "v")

    def _scalars(self):
        return (("momentum_cache", 1.0),)

    def _momenta(self):
        """Returns the momentum of this step and of the next one."""
        return [self.beta_1 * (1.0 - 0.5 * 0.96 ** (0.004 * (self._now + more))) for more in (0.0, 1.0)]

    def _step(self, g, var, lr):
        now, following = self._momenta()
        product = convert_to_tensor(self._scalar("momentum_cache")) * now
        m = self._keep(var, "m", self.beta_1 * self._slot(var, "m") + (1.0 - self.beta_1) * g)
        v = self._keep(var, "v", self.beta_2 * self._slot(var, "v") + (1.0 - self.beta_2) * g * g)
        mean = (1.0 - now) * g / (1.0 - product) + following * m / (1.0 - product * following)
        return lr * mean / (raw_ops.Sqrt(x=v / (1.0 - self.beta_2 ** self._now)) + self.epsilon)

    def _after(self):
        cache = self._scalar("momentum_cache")
        return [cache.assign(convert_to_tensor(cache) * self._momenta()[0])]


class Optimizer:
    """The base of optimizers: a learning rate in a variable, which callbacks may change, and limits for gradients."""

    def __init__(self, learning_rate, lr=None, name=None, clipnorm=None, clipvalue=None, decay=0.0, **unknown):
        if unknown:
            raise TypeError("Unexpected keyword argument passed to optimizer: %s" % next(iter(unknown)))
        self._rate_value, self._name = (learning_rate if lr is None else lr), name or type(self).__name__
        self.clipnorm, self.clipvalue, self._decay = clipnorm, clipvalue, decay
        self._variable = self._built = self._steps = None

    @property
    def learning_rate(self):
        """The variable of the learning rate, or its schedule."""
        if callable(self._rate_value):
            return self._rate_value
        if self._variable is None:
            from runnel.ops.variables import Variable
            self._variable = Variable(float(self._rate_value), trainable=False, name="learning_rate")
        return self._variable

    @learning_rate.setter
    def learning_rate(self, value):
        from runnel.keras import backend
        backend.set_value(self.learning_rate, value)

    lr = learning_rate

    @property
    def iterations(self):
        """The variable that counts steps."""
        if self._steps is None:
            from runnel.ops.variables import Variable
            self._steps = Variable(0, trainable=False, name="iterations", dtype="int64")
        return self._steps

    def _rate(self):
        """Returns the learning rate: a variable, or a function that returns the rate of the next step."""
        if callable(self._rate_value):
            return lambda: self._rate_value(self.iterations)
        if self._decay:
            return lambda: self.learning_rate / (1.0 + self._decay * math_ops.cast(convert_to_tensor(self.iterations), "float32"))
        return self.learning_rate

    def build(self):
        """Creates the tf.train optimizer in the current graph."""
        raise NotImplementedError

    def _own(self):
        if self._built is None:
            self._built = self.build()
        return self._built

    def _limited(self, pairs):
        """Clips the gradients."""
        pairs = [(g, v) for g, v in pairs if g is not None]
        if self.clipnorm:
            from runnel.ops.clip_ops import clip_by_norm
            pairs = [(clip_by_norm(g, self.clipnorm), v) for g, v in pairs]
        if self.clipvalue:
            pairs = [(math_ops.clip_by_value(g, -self.clipvalue, self.clipvalue), v) for g, v in pairs]
        return pairs

    def apply_gradients(self, grads_and_vars, name=None, **kwargs):
        """Updates variables, given [(gradient, variable)]."""
        from runnel.core import framework
        from runnel.ops.control_flow import group
        applied = self._own().apply_gradients(self._limited(list(grads_and_vars)), name=name)
        if self._steps is None:  # no variable counts the steps
            return applied
        with framework.control_dependencies([applied] if applied is not None else []):
            return group(self._steps.assign_add(1), *([applied] if applied is not None else []))

    def minimize(self, loss, var_list, grad_loss=None, name=None):
        """Updates variables to reduce a loss, which is a function in eager execution."""
        variables = var_list() if callable(var_list) else var_list
        return self.apply_gradients(self._own().compute_gradients(loss, variables, grad_loss=grad_loss), name=name)

    def get_updates(self, loss, params):
        """Returns the operations of a step as a list."""
        return [self.minimize(loss, params)]

    def get_gradients(self, loss, params):
        """Returns the clipped gradients of a loss."""
        import runnel
        return [g for g, _ in self._limited(list(zip(runnel.gradients(loss, params), params)))]

    def variables(self):
        """Returns the optimizer's own variables."""
        return self._own().variables()

    weights = property(variables)

    def get_config(self):
        """Returns the arguments that make an equal optimizer."""
        from runnel.keras import backend
        rate = self._rate_value if self._variable is None else float(backend.get_value(self._variable))
        return dict({key: value for key, value in vars(self).items() if not key.startswith("_") and key not in ("clipnorm", "clipvalue")},
                    name=self._name, learning_rate=rate, decay=self._decay)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class SGD(Optimizer):
    """Gradient descent, optionally with momentum."""

    def __init__(self, learning_rate=0.01, momentum=0.0, nesterov=False, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def build(self):
        if not self.momentum:
            return _optimizers.GradientDescentOptimizer(self._rate())
        return _optimizers.MomentumOptimizer(self._rate(), self.momentum, use_nesterov=self.nesterov)


class RMSprop(Optimizer):
    """Divides steps by the root of a moving average of squared gradients."""

    def __init__(self, learning_rate=0.001, rho=0.9, momentum=0.0, epsilon=1e-7, centered=False, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.rho, self.momentum, self.epsilon, self.centered = rho, momentum, epsilon or 1e-7, centered

    def build(self):
        return _RMSprop(self._rate(), self._name, rho=self.rho, momentum=self.momentum, epsilon=self.epsilon, centered=self.centered)


class Adagrad(Optimizer):
    """Steps shrink with the sum of squared gradients."""

    def __init__(self, learning_rate=0.001, initial_accumulator_value=0.1, epsilon=1e-7, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.initial_accumulator_value, self.epsilon = initial_accumulator_value, epsilon

    def build(self):
        return _optimizers.AdagradOptimizer(self._rate(), self.initial_accumulator_value)


class Adadelta(Optimizer):
    """The Adadelta optimizer."""

    def __init__(self, learning_rate=0.001, rho=0.95, epsilon=1e-7, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.rho, self.epsilon = rho, epsilon or 1e-7

    def build(self):
        return _optimizers.AdadeltaOptimizer(self._rate(), self.rho, self.epsilon)


class Adam(Optimizer):
    """Moving averages of gradients and squared gradients; with `amsgrad`, the largest of the latter counts."""

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, amsgrad=False, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.beta_1, self.beta_2, self.epsilon, self.amsgrad = beta_1, beta_2, epsilon or 1e-7, amsgrad

    def build(self):
        if self.amsgrad:
            return _Amsgrad(self._rate(), self._name, beta_1=self.beta_1, beta_2=self.beta_2, epsilon=self.epsilon)
        return _optimizers.AdamOptimizer(self._rate(), self.beta_1, self.beta_2, self.epsilon)


class Adamax(Optimizer):
    """Adam with the largest gradient instead of the average of squares."""

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-7, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon or 1e-7

    def build(self):
        return _Adamax(self._rate(), self._name, beta_1=self.beta_1, beta_2=self.beta_2, epsilon=self.epsilon)


class Nadam(Adamax):
    """Adam with Nesterov momentum."""

    def build(self):
        return _Nadam(self._rate(), self._name, beta_1=self.beta_1, beta_2=self.beta_2, epsilon=self.epsilon)


class Ftrl(Optimizer):
    """The FTRL-proximal optimizer."""

    def __init__(self, learning_rate=0.001, learning_rate_power=-0.5, initial_accumulator_value=0.1, l1_regularization_strength=0.0,
                 l2_regularization_strength=0.0, l2_shrinkage_regularization_strength=0.0, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.learning_rate_power, self.initial_accumulator_value = learning_rate_power, initial_accumulator_value
        self.l1_regularization_strength, self.l2_regularization_strength = l1_regularization_strength, l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength

    def build(self):
        return _optimizers.FtrlOptimizer(
            self._rate(), self.learning_rate_power, self.initial_accumulator_value, self.l1_regularization_strength,
            self.l2_regularization_strength, l2_shrinkage_regularization_strength=self.l2_shrinkage_regularization_strength)


class TFOptimizer(Optimizer):
    """Wraps an optimizer of tf.train."""

    def __init__(self, optimizer):
        super().__init__(0.0)
        self._built = optimizer

    def build(self):
        return self._built


_NAMES = {cls.__name__.lower(): cls for cls in (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam, Ftrl)}


def get(identifier):
    """Returns an optimizer, given its name, itself, or one of tf.train."""
    if isinstance(identifier, str):
        if identifier.lower() not in _NAMES:
            raise ValueError("Unknown optimizer: %s" % identifier)
        return _NAMES[identifier.lower()]()
    if isinstance(identifier, dict):
        return deserialize(identifier)
    return identifier if isinstance(identifier, Optimizer) else TFOptimizer(identifier)


def __getattr__(name):
    if name == "schedules":
        import importlib
        return importlib.import_module("runnel.keras.schedules")
    raise AttributeError("tf.keras.optimizers has no %r: see doc/python_names.md" % name)


def serialize(optimizer):
    """Returns {"class_name": ..., "config": {...}}."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config):
    """Returns the optimizer from the result of serialize."""
    return _NAMES[config["class_name"].lower()].from_config(config["config"])
