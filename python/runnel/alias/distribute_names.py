"""Names of tensorflow.python.distribute.* that differ from those of the modules that implement them."""

from runnel.data.sharding import _AutoShardDataset
from runnel.distribute.cluster_resolver import UnionResolver as UnionClusterResolver
from runnel.distribute.cluster_resolver.environment import hosts_of as expand_hostlist, tasks_of as expand_tasks_per_node
from runnel.distribute.contexts import ReplicaContext, default_replica, default_strategy
from runnel.distribute.extended import StrategyExtended
from runnel.distribute.input_data import _Divided, _Iterator
from runnel.distribute.multi_worker import (
    CollectiveHints, CommunicationImplementation, CommunicationOptions, ExperimentalMultiWorkerMirroredStrategy, MultiWorkerExtended,
    MultiWorkerMirroredStrategy)
from runnel.distribute.parameter_server import ParameterServerExtended, ParameterServerStrategy
from runnel.distribute.strategy import ParameterServerStrategyV1, Strategy, StrategyV1, TPUStrategy

StrategyBase, StrategyExtendedV1, StrategyExtendedV2 = Strategy, StrategyExtended, StrategyExtended
ReplicaContextBase = ReplicaContextV1 = ReplicaContext
_get_default_strategy, _get_default_replica_context = default_strategy, default_replica

Options, _OptionsExported, Hints, CollectiveCommunication = CommunicationOptions, CommunicationOptions, CollectiveHints, CommunicationImplementation
CollectiveAllReduceExtended, CollectiveAllReduceStrategy = MultiWorkerExtended, MultiWorkerMirroredStrategy
_CollectiveAllReduceStrategyExperimental = ExperimentalMultiWorkerMirroredStrategy
ParameterServerStrategyV2, ParameterServerStrategyExtended = ParameterServerStrategy, ParameterServerExtended
ParameterServerStrategyV2Extended = ParameterServerExtended
DistributedDatasetV1, DistributedIteratorV1 = _Divided, _Iterator


def auto_shard_dataset(dataset, num_shards, index, num_replicas_in_sync=None):
    """Returns the part of a dataset for one of several workers."""
    return _AutoShardDataset(dataset, num_shards, index, num_replicas_in_sync)


class CollectiveAllReduceStrategyV1(StrategyV1):
    """MultiWorkerMirroredStrategy of 1.x, which there is not."""


class TPUStrategyV1(TPUStrategy):
    """TPUStrategy of 1.x."""


class TPUStrategyV2(TPUStrategy):
    """TPUStrategy of 2.x."""


class TPUExtended(StrategyExtended):
    """That of TPUStrategy; there are no TPUs."""


class TPUMirroredVariable:
    """A variable on TPUs; there is none."""


class TPUSyncOnReadVariable:
    """A variable on TPUs; there is none."""


__all__ = ["ParameterServerStrategyV1", "UnionClusterResolver", "expand_hostlist", "expand_tasks_per_node"]
