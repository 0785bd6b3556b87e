"""The optimizers of TPU embeddings (tf.tpu.experimental.embedding): descriptions, which optimizers of the program follow on CPUs."""

from runnel.ops import init_ops


class _WithSlots:
    """What describes variables beside a table: their names and initializers."""

    slot_variable_creation_fn = None

    def _slot_names(self):
        return []

    def _slot_initializers(self):
        return []

    def _create_slots(self, table, variable_creator):
        """Returns the slot variables of a table by name."""
        if self.slot_variable_creation_fn is not None:
            return self.slot_variable_creation_fn(table, self._slot_names(), self._slot_initializers())
        return {name: variable_creator(name, initializer) for name, initializer in zip(self._slot_names(), self._slot_initializers())}

    def __eq__(self, other):
        return isinstance(other, type(self)) and list(self.__dict__.items()) == list(other.__dict__.items())

    def __hash__(self):
        return hash(tuple(self.__dict__.items()))


class _Optimizer(_WithSlots):
    """What all optimizers have. `clipvalue` limits gradients: a number, or a pair of bounds."""

    def __init__(self, learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                 multiply_weight_decay_factor_by_learning_rate, clipvalue=None, slot_variable_creation_fn=None, low_dimensional_packing_status=False):
        if not use_gradient_accumulation and clipvalue is not None:
            raise ValueError("When `use_gradient_accumulation` is False, gradient clipping cannot be used and `clipvalue` should be left as None. "
                             "Received value %s for argument `clipvalue`." % (clipvalue,))
        if slot_variable_creation_fn is not None and not callable(slot_variable_creation_fn):
            raise ValueError("Argument `slot_variable_creation_fn` must be either None or a callable. Received: %s" % (slot_variable_creation_fn,))
        bounds = clipvalue if isinstance(clipvalue, tuple) else (None, None) if clipvalue is None else (-1.0 * clipvalue, clipvalue)
        self.learning_rate, self.use_gradient_accumulation = learning_rate, use_gradient_accumulation
        self.clip_weight_min, self.clip_weight_max = clip_weight_min, clip_weight_max
        self.clip_gradient_min, self.clip_gradient_max = bounds
        self.weight_decay_factor = weight_decay_factor
        self.multiply_weight_decay_factor_by_learning_rate = multiply_weight_decay_factor_by_learning_rate
        self.slot_variable_creation_fn = slot_variable_creation_fn
        self.low_dimensional_packing_status = low_dimensional_packing_status


def _check_accumulator(value):
    if value <= 0:
        raise ValueError("Argument `initial_accumulator_value` must be a positive float. Received: %s" % (value,))


class SGD(_Optimizer):
    """Stochastic gradient descent."""

    def __init__(self, learning_rate=0.01, use_gradient_accumulation=True, clip_weight_min=None, clip_weight_max=None, weight_decay_factor=None,
                 multiply_weight_decay_factor_by_learning_rate=None, clipvalue=None, low_dimensional_packing_status=False):
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, None, low_dimensional_packing_status)


class Adagrad(_Optimizer):
    """Adagrad."""

    def __init__(self, learning_rate=0.001, initial_accumulator_value=0.1, use_gradient_accumulation=True, clip_weight_min=None,
                 clip_weight_max=None, weight_decay_factor=None, multiply_weight_decay_factor_by_learning_rate=None,
                 slot_variable_creation_fn=None, clipvalue=None, low_dimensional_packing_status=False):
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, slot_variable_creation_fn, low_dimensional_packing_status)
        _check_accumulator(initial_accumulator_value)
        self.initial_accumulator_value = initial_accumulator_value

    def _slot_names(self):
        return ["accumulators"]

    def _slot_initializers(self):
        return [init_ops.Constant(self.initial_accumulator_value)]


class AdagradMomentum(_Optimizer):
    """Adagrad with a momentum."""

    def __init__(self, learning_rate=0.001, momentum=0.0, use_nesterov=False, exponent=2, beta2=1, epsilon=1e-10,
                 use_gradient_accumulation=True, clip_weight_min=None, clip_weight_max=None, weight_decay_factor=None,
                 multiply_weight_decay_factor_by_learning_rate=None, slot_variable_creation_fn=None, clipvalue=None,
                 low_dimensional_packing_status=False):
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, slot_variable_creation_fn, low_dimensional_packing_status)
        if epsilon <= 0:
            raise ValueError("Adagrad momentum: epsilon must be positive")
        if exponent <= 0:
            raise ValueError("Adagrad momentum: Precondition exponent must >0")
        self.momentum, self.use_nesterov, self.exponent, self.beta2, self.epsilon = momentum, use_nesterov, exponent, beta2, epsilon

    def _slot_names(self):
        return ["accumulators", "momenta"]

    def _slot_initializers(self):
        return [init_ops.Constant(), init_ops.Constant()]


class FTRL(_Optimizer):
    """Follow the regularized leader."""

    def __init__(self, learning_rate=0.001, learning_rate_power=-0.5, l1_regularization_strength=0.0, l2_regularization_strength=0.0, beta=0.0,
                 initial_accumulator_value=0.1, use_gradient_accumulation=True, clip_weight_min=None, clip_weight_max=None,
                 weight_decay_factor=None, multiply_weight_decay_factor_by_learning_rate=None, slot_variable_creation_fn=None, clipvalue=None,
                 multiply_linear_by_learning_rate=False, allow_zero_accumulator=False, low_dimensional_packing_status=False):
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, slot_variable_creation_fn, low_dimensional_packing_status)
        _check_accumulator(initial_accumulator_value)
        self.initial_accumulator_value, self.learning_rate_power, self.beta = initial_accumulator_value, learning_rate_power, beta
        self.l1_regularization_strength, self.l2_regularization_strength = l1_regularization_strength, l2_regularization_strength
        self.multiply_linear_by_learning_rate = multiply_linear_by_learning_rate
        self.allow_zero_accumulator = allow_zero_accumulator

    def _slot_names(self):
        return ["accumulators", "linears"]

    def _slot_initializers(self):
        return [init_ops.Constant(self.initial_accumulator_value), init_ops.Constant()]


class Adam(_Optimizer):
    """Adam. `lazy_adam` updates the rows alone that a step has used."""

    def __init__(self, learning_rate=0.001, beta_1=0.9, beta_2=0.999, epsilon=1e-07, lazy_adam=True, sum_inside_sqrt=True,
                 use_gradient_accumulation=True, clip_weight_min=None, clip_weight_max=None, weight_decay_factor=None,
                 multiply_weight_decay_factor_by_learning_rate=None, slot_variable_creation_fn=None, clipvalue=None,
                 low_dimensional_packing_status=False):
        super().__init__(learning_rate, use_gradient_accumulation, clip_weight_min, clip_weight_max, weight_decay_factor,
                         multiply_weight_decay_factor_by_learning_rate, clipvalue, slot_variable_creation_fn, low_dimensional_packing_status)
        for name, value in (("beta_1", beta_1), ("beta_2", beta_2)):
            if not 0.0 <= value < 1.0:
                raise ValueError("Argument `%s` must be >= 0 and < 1. Received: %s." % (name, value))
        if epsilon <= 0.0:
            raise ValueError("epsilon must be positive; got %s." % (epsilon,))
        if not use_gradient_accumulation and not lazy_adam:
            raise ValueError("When disabling lazy Adam (`lazy_adam=False`), gradient accumulation must be used. Set `use_gradient_accumulation` "
                             "to False.")
        self.beta_1, self.beta_2, self.epsilon, self.lazy_adam, self.sum_inside_sqrt = beta_1, beta_2, epsilon, lazy_adam, sum_inside_sqrt

    def _slot_names(self):
        return ["momenta", "velocities"]

    def _slot_initializers(self):
        return [init_ops.Constant(), init_ops.Constant()]


class CustomOptimizer(_Optimizer):
    """An optimizer whose computation is a function of the program."""

    def __init__(self, custom_computation, learning_rate=0.01, slot_names=None, slot_initializers=None, hyperparameters=None, slot_dims=None):
        super().__init__(learning_rate, False, None, None, None, None)
        names, initializers, dims = (tuple(given or ()) for given in (slot_names, slot_initializers, slot_dims))
        if len(names) != len(initializers):
            raise ValueError("The number of slot_names (%d) must match the number of slot_initializers (%d)." % (len(names), len(initializers)))
        if dims and len(dims) != len(names):
            raise ValueError("The number of slot_dims (%d) must match the number of slot_names (%d)." % (len(dims), len(names)))
        for name, dim in zip(names, dims):
            if dim not in (1, 2):
                raise ValueError("Unsupported slot dim '%s' for slot '%s'. Only 1D and 2D are supported." % (dim, name))
        self._slot_names_attr, self._slot_initializers_attr, self._slot_dims_attr = names, initializers, dims
        self._hyperparameters, self._custom_computation = tuple(hyperparameters or ()), custom_computation

    custom_computation = property(lambda self: self._custom_computation)
    hyperparameters = property(lambda self: self._hyperparameters)

    def _slot_names(self):
        return list(self._slot_names_attr)

    def _slot_initializers(self):
        return list(self._slot_initializers_attr)


class CustomCombiner(_WithSlots):
    """A combiner of the rows of a table that is a function of the program."""

    CUSTOM_COMBINER_SLOT_NAME = "custom_combiner_variables"

    def __init__(self, combiner_computation, max_valency, num_weights=0, initializer=None, combiner_weights_learning_rate=0.01):
        if num_weights > 0 and initializer is None:
            raise ValueError("When `num_weights` is greater than 0, `initializer` must be set.")
        self.combiner = "custom_combiner_%s" % hash(combiner_computation)
        self.combiner_computation, self.max_valency, self.num_weights = combiner_computation, max_valency, num_weights
        self.combiner_weights_learning_rate, self._initializer = combiner_weights_learning_rate, initializer

    def _slot_names(self):
        return [self.CUSTOM_COMBINER_SLOT_NAME] if self.num_weights > 0 else []

    def _slot_initializers(self):
        return [self._initializer] if self.num_weights > 0 else []

    def __str__(self):
        return self.combiner
