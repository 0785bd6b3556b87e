"""Optimizers by name, with Keras's names of arguments."""

from runnel import optimizers as _optimizers


def _rate(lr, learning_rate, default, kwargs):
    kwargs.pop("decay", None)
    given = lr if lr is not None else learning_rate
    return default if given is None else given


class _Rated:
    """What `fit` needs: a learning rate in a variable, that callbacks may change."""

    def _make_rate(self):
        from runnel.variables import Variable
        if not hasattr(self, "lr"):
            self.lr = Variable(float(self._rate_value), trainable=False, name="learning_rate")
        return self.lr


def _class(name, base, default, arguments):
    """An optimizer class over one of tf.train; `arguments`: Keras's name -> ours."""
    def __init__(self, learning_rate=None, *args, lr=None, **kwargs):
        names = list(arguments)
        given = dict(zip(names, args))
        given.update(kwargs)
        clip = {key: given.pop(key) for key in ("clipnorm", "clipvalue") if key in given}
        self.clipnorm, self.clipvalue = clip.get("clipnorm"), clip.get("clipvalue")
        self._rate_value = _rate(lr, learning_rate, default, given)
        self._given = {arguments[key]: value for key, value in given.items() if key in arguments}
        unknown = [key for key in given if key not in arguments and key not in ("name", "amsgrad")]
        if unknown:
            raise TypeError("Unexpected keyword argument passed to optimizer: %s" % unknown[0])

    def build(self):
        """The optimizer of tf.train, in the current graph."""
        return getattr(_optimizers, base)(self._make_rate(), **self._given)
    return type(name, (_Rated,), {"__init__": __init__, "build": build, "__doc__": name + "."})


SGD = _class("SGD", "MomentumOptimizer", 0.01, {"momentum": "momentum", "nesterov": "use_nesterov"})
_sgd_build = SGD.build


def _build_sgd(self):
    if not self._given.get("momentum"):
        return _optimizers.GradientDescentOptimizer(self._make_rate())
    return _sgd_build(self)


SGD.build = _build_sgd
RMSprop = _class("RMSprop", "RMSPropOptimizer", 0.001, {"rho": "decay", "epsilon": "epsilon",
                                                        "momentum": "momentum"})
Adagrad = _class("Adagrad", "AdagradOptimizer", 0.01, {
    "initial_accumulator_value": "initial_accumulator_value"})
Adadelta = _class("Adadelta", "AdadeltaOptimizer", 1.0, {"rho": "rho", "epsilon": "epsilon"})
Adam = _class("Adam", "AdamOptimizer", 0.001, {"beta_1": "beta1", "beta_2": "beta2",
                                               "epsilon": "epsilon"})
Ftrl = _class("Ftrl", "FtrlOptimizer", 0.001, {
    "learning_rate_power": "learning_rate_power",
    "l1_regularization_strength": "l1_regularization_strength",
    "l2_regularization_strength": "l2_regularization_strength"})
sgd, rmsprop, adagrad, adadelta, adam, ftrl = SGD, RMSprop, Adagrad, Adadelta, Adam, Ftrl


class _Native:
    """An optimizer of tf.train, as it is."""

    clipnorm = clipvalue = None

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def build(self):
        return self._optimizer


def get(identifier):
    """An optimizer, of its name or itself, or one of tf.train."""
    if isinstance(identifier, str):
        found = globals().get(identifier) or globals().get(identifier.lower())
        if found is None:
            raise ValueError("Unknown optimizer: %s" % identifier)
        return found()
    return identifier if hasattr(identifier, "build") else _Native(identifier)
