"""tf.keras.optimizers.schedules: learning rates that depend on the step."""

from runnel.train import learning_rate_decay as _decay


class LearningRateSchedule:
    """The base of schedules: a function from the step to the rate. It calls tf.train's `_function` with `_arguments`."""

    _function = None

    def __init__(self, **arguments):
        self._arguments = {key: value for key, value in arguments.items() if key != "name"}

    def __call__(self, step):
        return self._value(getattr(_decay, self._function)(**self._given(step)))

    @staticmethod
    def _value(rate):
        return rate() if callable(rate) else rate  # in eager execution, tf.train's schedules return functions

    def _given(self, step):
        found = dict(self._arguments, global_step=step)
        found["learning_rate"] = found.pop("initial_learning_rate")
        return found

    def get_config(self):
        return dict(self._arguments)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


class ExponentialDecay(LearningRateSchedule):
    """initial_learning_rate * decay_rate ** (step / decay_steps)."""

    _function = "exponential_decay"

    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name=None):
        super().__init__(initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, decay_rate=decay_rate, staircase=staircase)


class InverseTimeDecay(ExponentialDecay):
    """initial_learning_rate / (1 + decay_rate * step / decay_steps)."""

    _function = "inverse_time_decay"


class PolynomialDecay(LearningRateSchedule):
    """Decays from one rate to another over a number of steps."""

    _function = "polynomial_decay"

    def __init__(self, initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False, name=None):
        super().__init__(initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, end_learning_rate=end_learning_rate, power=power,
                         cycle=cycle)


class CosineDecay(LearningRateSchedule):
    """Decays along half a cosine to the fraction `alpha`."""

    _function = "cosine_decay"

    def __init__(self, initial_learning_rate, decay_steps, alpha=0.0, name=None):
        super().__init__(initial_learning_rate=initial_learning_rate, decay_steps=decay_steps, alpha=alpha)


class PiecewiseConstantDecay(LearningRateSchedule):
    """values[i] up to step boundaries[i], then the last value."""

    _function = "piecewise_constant"

    def __init__(self, boundaries, values, name=None):
        super().__init__(boundaries=boundaries, values=values)

    def _given(self, step):
        return dict(self._arguments, x=step)
