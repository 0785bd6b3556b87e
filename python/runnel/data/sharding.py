"""Datasets divided among workers and replicas: tensorflow.python.data.experimental.ops.distribute."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import colocate_with, device as on_device
from runnel.data.dataset import Dataset, _int64
from runnel.data.padding import normalize_to_dense
from runnel.ops import array_ops

SHARD_HINT = -1


def _AutoShardDataset(input_dataset, num_workers, index, num_replicas=None):  # noqa: N802
    """Returns the share of one of several workers, by the policy in the options of the dataset."""
    policy = input_dataset.options().experimental_distribute.auto_shard_policy
    return input_dataset._like(raw_ops.AutoShardDataset(
        input_dataset=input_dataset._variant_tensor, num_workers=_int64(num_workers), index=_int64(index),
        auto_shard_policy=int(policy), num_replicas=num_replicas or 0, **input_dataset._attrs))


_AutoShardDatasetV1 = _AutoShardDataset


def _LegacyRebatchDataset(input_dataset, num_replicas):  # noqa: N802
    """Divides each batch into `num_replicas` smaller ones."""
    def divided(spec):
        shape = getattr(spec, "shape", None)
        size = None
        if isinstance(shape, tensor_shape.TensorShape) and shape.rank is not None:
            if shape.rank < 1:
                raise ValueError("Invalid `input_dataset`. Expected a dataset whose elements have rank >= 1 but found a dataset whose elements "
                                 "are scalars. Fix the issue by adding the `batch` transformation to the dataset.")
            first = shape.as_list()[0]
            size = first // num_replicas if first is not None and first % num_replicas == 0 else None
        return spec._unbatch()._batch(size)
    made = input_dataset._like(None, nest.map_structure(divided, input_dataset.element_spec))
    made._variant_tensor = raw_ops.RebatchDataset(
        input_dataset=normalize_to_dense(input_dataset)._variant_tensor, num_replicas=_int64(num_replicas), **made._attrs)
    return made


def _RemoteDataset(graph_def, device, element_spec):  # noqa: N802
    """Returns the dataset of a serialized graph, made on a device."""
    with on_device(device):
        return Dataset(raw_ops.DatasetFromGraph(graph_def=graph_def), element_spec)


def replicate(dataset, devices):
    """Returns a dict of the same dataset on several devices."""
    if not isinstance(dataset, Dataset):
        raise TypeError("Invalid `dataset`. Expected a `tf.data.Dataset` object but got %s." % type(dataset))
    if len(devices) == 1 and devices[0] == dataset._variant_tensor.device:
        return {devices[0]: dataset}
    from runnel.data.options import ExternalStatePolicy
    with colocate_with(dataset._variant_tensor):
        dataset = dataset._apply_debug_options()
        graph_def = dataset._as_serialized_graph(strip_device_assignment=True, external_state_policy=ExternalStatePolicy.WARN)
    return {name: _RemoteDataset(graph_def, name, dataset.element_spec) for name in devices}


def batch_sizes_for_worker(global_batch_size, num_workers, num_replicas_per_worker, worker_index):
    """Returns the sizes of the parts of a global batch that the replicas of a worker take, in the order in which it reads them.

    All workers have the same sizes, and each begins at another one, so that every step consumes a whole batch.
    """
    count, first = num_workers * num_replicas_per_worker, worker_index * num_replicas_per_worker
    size = _int64(global_batch_size)
    known = constant_value(size)
    if known is not None:
        base, larger = divmod(int(known), count)
        sizes = [base + 1] * larger + [base] * (count - larger)
        return convert_to_tensor(sizes[first:] + sizes[:first], dtypes.int64, name="batch_sizes")
    larger = raw_ops.Cast(x=raw_ops.Less(x=_int64(list(range(count))), y=raw_ops.FloorMod(x=size, y=_int64(count))), DstT=dtypes.int64)
    sizes = raw_ops.FloorDiv(x=size, y=_int64(count)) + larger
    return array_ops.concat([sizes[first:], sizes[:first]], axis=0)


def compute_batch_size(dataset):
    """Returns the batch size of a dataset without its last batch, -1 if it is not known."""
    def first(spec):
        shape = getattr(spec, "shape", None)
        return shape.as_list()[0] if isinstance(shape, tensor_shape.TensorShape) and shape.rank else None
    sizes = [first(spec) for spec in nest.flatten(dataset.element_spec)]
    if None in sizes:
        return raw_ops.ComputeBatchSize(input_dataset=dataset._variant_tensor)
    return convert_to_tensor(sizes[0] if len(set(sizes)) == 1 else -1, dtypes.int64, name="static_batch_size")
