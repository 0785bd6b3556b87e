"""tf.data.Options: settings of a dataset, merged along its transformations.

`deterministic` is the only one that changes what a dataset does; the others choose optimizations that stock performs and
that change no element.
"""

import enum


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


class _Settings:
    """Attributes of fixed names, None unless set. `_FIELDS` has their names, and classes for groups of them."""

    _FIELDS: dict = {}

    def __init__(self):
        for name, kind in self._FIELDS.items():
            object.__setattr__(self, name, kind() if isinstance(kind, type) else None)

    def __setattr__(self, name, value):
        if name not in self._FIELDS:
            raise AttributeError("Cannot set the property %s on %s." % (name, type(self).__name__))
        object.__setattr__(self, name, value)

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def _merged(self, other):
        made = type(self)()
        for name, kind in self._FIELDS.items():
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(kind, type):
                value = mine._merged(theirs)
            else:
                value = mine if theirs is None else theirs
            object.__setattr__(made, name, value)
        return made


class AutotuneOptions(_Settings):
    """How the degree of parallelism is chosen."""

    _FIELDS = dict.fromkeys("enabled cpu_budget ram_budget autotune_algorithm initial_parallelism min_parallelism".split())


class DistributeOptions(_Settings):
    """How a dataset is divided among workers."""

    _FIELDS = dict.fromkeys("auto_shard_policy num_devices".split())

    def __init__(self):
        super().__init__()
        self.auto_shard_policy = AutoShardPolicy.AUTO

    def _merged(self, other):
        made = super()._merged(other)
        if other.auto_shard_policy == AutoShardPolicy.AUTO:
            made.auto_shard_policy = self.auto_shard_policy
        return made


class OptimizationOptions(_Settings):
    """Which rewrites of the pipeline are made."""

    _FIELDS = dict.fromkeys("""apply_default_optimizations filter_fusion filter_parallelization inject_prefetch map_and_batch_fusion
    map_and_filter_fusion map_fusion map_parallelization noop_elimination parallel_batch seq_interleave_prefetch shuffle_and_repeat_fusion""".split())


class ServiceOptions(_Settings):
    """Options of tf.data's service."""

    _FIELDS = dict.fromkeys("pinned".split())


class ThreadingOptions(_Settings):
    """How many threads a pipeline uses."""

    _FIELDS = dict.fromkeys("max_intra_op_parallelism private_threadpool_size".split())


class Options(_Settings):
    """Settings of a dataset: `dataset.with_options(options)`."""

    _FIELDS = dict.fromkeys("""deterministic dataset_name experimental_external_state_policy experimental_symbolic_checkpoint experimental_warm_start
    framework_type experimental_slack""".split()) | {
        "autotune": AutotuneOptions, "experimental_distribute": DistributeOptions, "experimental_optimization": OptimizationOptions,
        "experimental_service": ServiceOptions, "threading": ThreadingOptions}
    _OLD = {"experimental_deterministic": "deterministic", "experimental_threading": "threading"}

    def __setattr__(self, name, value):
        super().__setattr__(self._OLD.get(name, name), value)

    def __getattr__(self, name):
        if name in self._OLD:
            return getattr(self, self._OLD[name])
        raise AttributeError("Cannot get the property %s on Options." % name)

    def merge(self, options):
        """Returns these options with those of `options` that are set."""
        return self._merged(options)
