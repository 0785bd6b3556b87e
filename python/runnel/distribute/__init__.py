"""tf.distribute: strategies that run a computation on several devices or in several processes.

`contexts` says where code runs, `values` and `variable` what replicas have. `strategy` is the base and the default, `extended` its inner part,
`options` has settings. `strategies` has those for the devices of a process, `central_storage` one whose variables exist once; `replicas` runs
functions in replicas, `input_data` divides datasets (`graph_iterators` those of 1.x), `cross_device` and `reductions` combine values,
`device_util` knows full names of devices. `multi_worker` is for several processes with equal parts: `collectives` exchanges their values.
`parameter_server` has variables on other tasks and `coordinator` runs functions there: `remote` connects to them, `partitioners` and
`sharded_variable` split large variables. `cluster_resolver/` finds out which tasks there are, `cluster_roles` what each of them is, and
`standard_server` starts the server of one.
"""

from runnel._namespace import namespace as _namespace

__getattr__, __dir__, __all__ = _namespace(
    __name__,
    "distribute.contexts: ReplicaContext experimental_set_strategy get_replica_context get_strategy has_strategy in_cross_replica_context",
    "distribute.values: DistributedValues Mirrored PerReplica",
    "distribute.options: InputContext InputOptions InputReplicationMode ReduceOp RunOptions ValueContext",
    "distribute.extended: StrategyExtended",
    "distribute.strategy: Strategy TPUStrategy get_loss_reduction init_run_config",
    "distribute.multi_worker: MultiWorkerMirroredStrategy",
    "distribute.parameter_server: ParameterServerStrategy",
    "distribute.strategy: should_run_distribute_coordinator",
    "distribute.strategies: MirroredStrategy OneDeviceStrategy",
    "distribute.cross_device: CrossDeviceOps HierarchicalCopyAllReduce NcclAllReduce ReductionToOneDevice",
    "distribute.input_data: DistributedDataset DistributedIterator",
    "train.server_lib: Server",
    "submodules: cluster_resolver experimental")
