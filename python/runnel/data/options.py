"""tf.data.Options: settings of a dataset, merged along its transformations.

An OptionsDataset carries them, as the message tensorflow.data.Options. `deterministic` says whether parallel stages keep the order of
elements, `experimental_optimization` asks for rewrites of the pipeline, `experimental_distribute` says how it is divided among workers.
The others choose what stock does about threads and memory, and change no element.
"""

import enum

from runnel.data.options_base import OptionsBase, create_option, merge_options


class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among the workers of a strategy."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """What happens to state outside of a dataset when its pipeline is serialized."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """How the degree of parallelism is chosen."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _MessageOptions(OptionsBase):
    """Options with a message. `_FIELDS` has the name of the message's field for each option whose name differs."""

    _MESSAGE = ""
    _FIELDS: dict = {}

    @classmethod
    def _each(cls):
        """Returns (option, field, type) of all options."""
        return [(name, cls._FIELDS.get(name, name), kind) for name, kind in cls._KINDS.items()]

    def _to_proto(self):
        from runnel.core.protobuf import message_class
        made = message_class(self._MESSAGE)()
        for name, field, kind in self._each():
            value = getattr(self, name)
            if isinstance(value, OptionsBase):
                getattr(made, field).CopyFrom(value._to_proto())
            elif kind is list and value is not None:
                getattr(made, field).extend(value)
            elif value is not None:
                setattr(made, field, value.value if isinstance(value, enum.Enum) else value)
        return made

    def _from_proto(self, pb):
        for name, field, kind in self._each():
            value = getattr(pb, field)
            if issubclass(kind, OptionsBase):
                getattr(self, name)._from_proto(value)
            elif kind is list:
                if len(value):
                    setattr(self, name, list(value))
            elif (name == "auto_shard_policy") or pb.WhichOneof("optional_" + field) is not None:
                setattr(self, name, kind(value) if issubclass(kind, enum.Enum) else value)


def _options(cls):
    """A decorator that makes a property of each entry of `_KINDS`, the types of options by name."""
    for name, kind in cls._KINDS.items():
        default = kind if issubclass(kind, OptionsBase) else cls._DEFAULTS.get(name, lambda: None)
        setattr(cls, name, create_option(name, kind, "The option `%s`, of type %s." % (name, kind.__name__), default))
    return cls


@_options
class AutotuneOptions(_MessageOptions):
    """How the degree of parallelism is chosen."""

    _MESSAGE, _DEFAULTS = "AutotuneOptions", {}
    _KINDS = {"enabled": bool, "cpu_budget": int, "ram_budget": int, "autotune_algorithm": AutotuneAlgorithm, "initial_parallelism": int,
              "min_parallelism": int}


@_options
class DistributeOptions(_MessageOptions):
    """How a dataset is divided among workers."""

    _MESSAGE, _DEFAULTS = "DistributeOptions", {"auto_shard_policy": lambda: AutoShardPolicy.AUTO}
    _KINDS = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}


@_options
class OptimizationOptions(_MessageOptions):
    """Which rewrites of the pipeline are made."""

    _MESSAGE, _DEFAULTS = "OptimizationOptions", {}
    _KINDS = dict.fromkeys("""apply_default_optimizations filter_fusion filter_parallelization inject_prefetch map_and_batch_fusion
    map_and_filter_fusion map_fusion map_parallelization noop_elimination parallel_batch seq_interleave_prefetch
    shuffle_and_repeat_fusion""".split(), bool)


@_options
class ServiceOptions(_MessageOptions):
    """Options of tf.data's service."""

    _MESSAGE, _DEFAULTS, _KINDS = "ServiceOptions", {}, {"pinned": bool}


@_options
class ThreadingOptions(_MessageOptions):
    """How many threads a pipeline uses."""

    _MESSAGE, _DEFAULTS, _KINDS = "ThreadingOptions", {}, {"max_intra_op_parallelism": int, "private_threadpool_size": int}


def _warm_start():
    from runnel.data import debug_mode
    return True if debug_mode.is_test_mode() else None


@_options
class Options(_MessageOptions):
    """Settings of a dataset: `dataset.with_options(options)`."""

    _MESSAGE, _DEFAULTS = "Options", {"experimental_warm_start": _warm_start}
    _KINDS = {"autotune": AutotuneOptions, "deterministic": bool, "experimental_distribute": DistributeOptions,
              "experimental_external_state_policy": ExternalStatePolicy, "experimental_optimization": OptimizationOptions,
              "experimental_slack": bool, "experimental_symbolic_checkpoint": bool, "experimental_service": ServiceOptions,
              "experimental_warm_start": bool, "dataset_name": str, "framework_type": list, "threading": ThreadingOptions}
    _FIELDS = {"autotune": "autotune_options", "experimental_distribute": "distribute_options", "experimental_slack": "slack",
               "experimental_external_state_policy": "external_state_policy", "experimental_optimization": "optimization_options",
               "experimental_symbolic_checkpoint": "symbolic_checkpoint", "experimental_service": "service_options",
               "experimental_warm_start": "warm_start", "threading": "threading_options"}
    _OLD = {"experimental_deterministic": "deterministic", "experimental_threading": "threading"}

    def __setattr__(self, name, value):
        super().__setattr__(self._OLD.get(name, name), value)

    def __getattr__(self, name):
        if name in self._OLD:
            return getattr(self, self._OLD[name])
        raise AttributeError("Cannot get the property %s on Options." % name)

    def merge(self, options):
        """Returns these options with those of `options` that are set."""
        return merge_options(self, options)
