"""Settings and small values of strategies: how values are combined, which part of the input a pipeline makes."""

import enum
from typing import Any, NamedTuple, Optional


class ReduceOp(enum.Enum):
    """How values of replicas are combined."""

    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """Returns the ReduceOp of a tf.VariableAggregation."""
        from runnel.ops.variables import VariableAggregation
        known = {VariableAggregation.SUM: ReduceOp.SUM, VariableAggregation.MEAN: ReduceOp.MEAN}
        if aggregation not in known:
            raise ValueError("Could not convert from `tf.VariableAggregation` %s to`tf.distribute.ReduceOp` type" % aggregation)
        return known[aggregation]


def as_reduce_op(reduce_op):
    """Returns the ReduceOp that a string such as "sum" or a ReduceOp of another face means."""
    return ReduceOp(str(getattr(reduce_op, "value", reduce_op)).upper())


class InputReplicationMode(enum.Enum):
    """How input is divided among workers."""

    PER_WORKER, PER_REPLICA = "PER_WORKER", "PER_REPLICA"


class InputContext:
    """Which part of the input a pipeline should produce."""

    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        """Returns the batch size of one replica."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError("The `global_batch_size` %r is not divisible by `num_replicas_in_sync` %r " % (
                global_batch_size, self.num_replicas_in_sync))
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self):
        return "tf.distribute.InputContext(input pipeline id %d, total: %d)" % (self.input_pipeline_id, self.num_input_pipelines)


class ValueContext:
    """What the function of experimental_distribute_values_from_function is told."""

    def __init__(self, replica_id_in_sync_group=0, num_replicas_in_sync=1):
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync

    def __str__(self):
        return "tf.distribute.ValueContext(replica id %d,  total replicas in sync: %d)" % (
            self.replica_id_in_sync_group, self.num_replicas_in_sync)


class InputOptions(NamedTuple):
    """Options of distributed datasets: the mode is heeded, the others are kept."""

    experimental_fetch_to_device: Optional[bool] = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """Options of Strategy.run, which are kept: functions run the ordinary way."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None
