"""Names of tensorflow.python.data that have no public name: what TensorFlow's own tests of tf.data import."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.data import structure
from runnel.data.dataset import (  # noqa: F401
    INFINITE_CARDINALITY as INFINITE, UNKNOWN_CARDINALITY as UNKNOWN, Dataset, UnaryUnchangedStructureDataset, _int64, seeds)
from runnel.data.experimental import from_variant, to_variant  # noqa: F401
from runnel.data.optional import Optional
from runnel.data.options import Options

COMPRESSION_GZIP, COMPRESSION_SNAPPY, COMPRESSION_NONE = "GZIP", "SNAPPY", None


_OptionalImpl = Optional
GET_NEXT_CALL_WARNING_THRESHOLD, GET_NEXT_CALL_WARNING_MESSAGE = 32, "An unusually high number of `Iterator.get_next()` calls was detected."


# dataset_ops

def get_legacy_output_types(dataset_or_iterator):
    """Returns the types of the elements."""
    return structure.legacy_types(get_structure(dataset_or_iterator))


def get_legacy_output_shapes(dataset_or_iterator):
    """Returns the shapes of the elements."""
    return structure.legacy_shapes(get_structure(dataset_or_iterator))


def get_legacy_output_classes(dataset_or_iterator):
    """Returns the classes of the elements."""
    return structure.legacy_classes(get_structure(dataset_or_iterator))


def get_structure(dataset_or_iterator):
    """Returns the TypeSpecs of the elements."""
    try:
        return dataset_or_iterator.element_spec
    except AttributeError:
        raise TypeError("`dataset_or_iterator` must be a `tf.data.Dataset` or tf.data.Iterator object, but got %s." % (
            type(dataset_or_iterator),)) from None


class options_lib:  # noqa: N801
    """The module of Options."""

    Options = Options


# experimental.ops.testing

def _unchanged(op, **arguments):
    return lambda dataset: dataset._like(op(input_dataset=dataset._variant_tensor, **arguments, **dataset._attrs))


def assert_next(transformations):
    """Checks the names of the transformations that follow."""
    return _unchanged(raw_ops.AssertNextDataset, transformations=convert_to_tensor(transformations, dtypes.string))


def assert_prev(transformations):
    """Checks the names of the transformations before."""
    return _unchanged(raw_ops.AssertPrevDataset, transformations=convert_to_tensor([repr(x) for x in transformations], dtypes.string))


def sleep(sleep_microseconds):
    """Waits before each element."""
    return _unchanged(raw_ops.SleepDataset, sleep_microseconds=_int64(sleep_microseconds))


def non_serializable():
    """Returns the same elements; the dataset cannot be serialized."""
    return _unchanged(raw_ops.NonSerializableDataset)


def _global_shuffle(dataset, seed=None, reshuffle_each_iteration=True, name=None):
    """Shuffles a dataset with random access as a whole."""
    one, two = seeds(seed)
    return dataset._like(raw_ops.GlobalShuffleDataset(
        input_dataset=dataset._variant_tensor, seed=_int64(one), seed2=_int64(two), seed_generator=raw_ops.DummySeedGenerator(),
        reshuffle_each_iteration=reshuffle_each_iteration, **dataset._attrs))


def _weighted_flat_map(input_datasets, weights, name=None):
    """Takes elements from datasets with random access at random, with probabilities `weights`."""
    made = Dataset(None, input_datasets[0].element_spec, input_datasets)
    made._variant_tensor = raw_ops.WeightedFlatMapDataset(
        input_datasets=[one._variant_tensor for one in input_datasets], weights=[convert_to_tensor(w, dtypes.float64) for w in weights],
        **made._attrs)
    return made


def batch_sizes_for_worker(global_batch_size, num_workers, num_replicas_per_worker, worker_index):
    """Returns the sizes of the parts of a global batch that the replicas of a worker take, in the order in which it reads them."""
    from runnel.core.convert import constant_value
    size = constant_value(convert_to_tensor(global_batch_size, dtypes.int64))
    if size is None:
        raise NotImplementedError("batch_sizes_for_worker of a batch size that is known only when the graph runs")
    count = num_workers * num_replicas_per_worker
    rest, base = int(size) % count, int(size) // count
    sizes = [base + (i < rest) for i in range(count)]
    if rest == 0:
        return convert_to_tensor([base], dtypes.int64)
    mine = list(range(worker_index * num_replicas_per_worker, (worker_index + 1) * num_replicas_per_worker))
    made = []
    for turn in range(num_workers):
        made += [sizes[(i - turn * num_replicas_per_worker) % count] for i in mine]
    return convert_to_tensor(made, dtypes.int64)


def compress(element):
    """Returns a variant with the compressed tensors of an element."""
    spec = structure.type_spec_from_value(element)
    return raw_ops.CompressElement(components=structure.to_tensor_list(spec, element))


def uncompress(element, output_spec):
    """Returns the element that `compress` compressed."""
    specs = structure.flat_specs(output_spec)
    flat = raw_ops.UncompressElement(compressed=element, output_types=[s.dtype for s in specs], output_shapes=[s.shape for s in specs])
    return structure.from_tensor_list(output_spec, list(flat))


def map_defun(fn, elems, output_dtypes, output_shapes, max_intra_op_parallelism=1):
    """Applies a concrete function to each row of tensors."""
    elems = [convert_to_tensor(x) for x in elems]
    from runnel.eager.tracing import trace
    rows = trace(lambda *row: nest.flatten(fn(*row)), [(x.dtype, x.shape[1:]) for x in elems], "map_defun", in_order=True)
    return raw_ops.MapDefun(arguments=elems, captured_inputs=rows.captured, output_types=output_dtypes,
                            output_shapes=[tensor_shape.as_shape(s) for s in output_shapes], f=rows.attr,
                            max_intra_op_parallelism=max_intra_op_parallelism)


def MatchingFilesDataset(patterns):  # noqa: N802
    """Creates a dataset of the names of files that match patterns."""
    names = convert_to_tensor(patterns, dtypes.string, name="patterns")
    return Dataset(raw_ops.MatchingFilesDataset(patterns=names), TensorSpec([], dtypes.string))


def index_shuffle(file_infos, reader_factory, seed=None, reshuffle_each_iteration=False, num_parallel_calls=None):
    """Absent: needs an index of records."""
    raise NotImplementedError("index_shuffle is not in Runnel")


def map_on_gpu(map_func):
    """Applies `map_func` to each element."""
    return lambda dataset: dataset.map(map_func)


# util.convert, util.random_seed, util.traverse

def optional_param_to_tensor(argument_name, argument_value, argument_default=0, argument_dtype=dtypes.int64):
    """Returns an argument, or its default, as a tensor."""
    return convert_to_tensor(argument_default if argument_value is None else argument_value, argument_dtype, name=argument_name)


def partial_shape_to_tensor(shape_like):
    """Returns a shape as a vector with -1 for unknown sizes."""
    if hasattr(shape_like, "op") or hasattr(shape_like, "numpy"):
        tensor = convert_to_tensor(shape_like)
        if tensor.shape.rank not in (None, 1):
            raise ValueError("The given shape %s must be a 1-D tensor of `tf.int64` values, but the shape was %s." % (shape_like, tensor.shape))
        if tensor.dtype != dtypes.int64:
            raise TypeError("The given shape %s must be a 1-D tensor of `tf.int64` values, but the element type was %s." % (
                shape_like, tensor.dtype.name))
        return tensor
    shape = tensor_shape.as_shape([None if d == -1 else d for d in shape_like] if isinstance(shape_like, (list, tuple)) else shape_like)
    return convert_to_tensor([-1 if d is None else d for d in shape.as_list()], dtypes.int64)


def get_seed(seed):
    """Returns the two seeds of a random dataset as tensors."""
    return tuple(_int64(one, name=name) for one, name in zip(seeds(seed), ("seed", "seed2")))


def obtain_all_variant_tensor_ops(dataset):
    """Returns the operations of a dataset's graph that make variants."""
    found, queue = [], [dataset._variant_tensor.op]
    while queue:
        op = queue.pop(0)
        if op in found:
            continue
        found.append(op)
        queue += [x.op for x in op.inputs if x.dtype == dtypes.variant]
    return found


def obtain_capture_by_value_ops(dataset):
    """Returns the operations of a dataset's graph that are copied into a function."""
    found, queue = [], [dataset._variant_tensor.op]
    while queue:
        op = queue.pop(0)
        if op in found:
            continue
        found.append(op)
        queue += [x.op for x in op.inputs]
    return [op for op in found if op.type != "Placeholder"]


# pywrap_sanitizers

def is_asan_enabled():
    """Returns False."""
    return False


is_msan_enabled = is_tsan_enabled = is_ubsan_enabled = is_asan_enabled
