"""tensorflow.core.config.flags: experiments of TensorFlow's build. A program may turn off and on what is a choice here, too."""

from runnel.saved_model import fingerprinting

_ON = frozenset(("op_building_optimization", "test_only_experiment_1"))


class _Flag:
    """An experiment that is as it is."""

    def __init__(self, is_on):
        self._is_on = is_on

    def value(self):
        """Returns whether the experiment is on."""
        return self._is_on

    def reset(self, value):
        """Raises an error, unless the experiment stays as it is."""
        if bool(value) != self.value():
            raise NotImplementedError("An experiment of TensorFlow's build, which Runnel has not")


class _Fingerprinting(_Flag):
    """Whether SavedModels get fingerprints."""

    def value(self):
        return fingerprinting.is_enabled

    def reset(self, value):
        fingerprinting.is_enabled = bool(value)


class _Flags:
    saved_model_fingerprinting = _Fingerprinting(True)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _Flag(name in _ON)


def config():
    """Returns the experiments."""
    return _Flags()
