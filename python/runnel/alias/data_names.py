"""Names of tensorflow.python.data that have no public name: what TensorFlow's own tests of tf.data import."""

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.data import structure
from runnel.data.dataset import (  # noqa: F401
    INFINITE_CARDINALITY as INFINITE, UNKNOWN_CARDINALITY as UNKNOWN, Dataset, UnaryUnchangedStructureDataset, _int64, seeds)
from runnel.data.experimental import from_variant, to_variant  # noqa: F401
from runnel.data.file_datasets import (  # noqa: F401
    FixedLengthRecordDataset as FixedLengthRecordDatasetV2, TextLineDataset as TextLineDatasetV2, TFRecordDataset as TFRecordDatasetV2)
from runnel.data.optional import Optional
from runnel.data.options import Options
from runnel.ops import random_ops

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


def _PrefetchDataset(input_dataset, buffer_size, slack_period=None, name=None):  # noqa: N802
    """Computes elements ahead of time."""
    return input_dataset._like(raw_ops.PrefetchDataset(
        input_dataset=input_dataset._variant_tensor, buffer_size=_int64(-1 if buffer_size is None else buffer_size, name="buffer_size"),
        slack_period=0 if slack_period is None else slack_period, **input_dataset._attrs))


def _ParallelMapDataset(input_dataset, map_func, num_parallel_calls, deterministic=None, **_):  # noqa: N802
    """Applies `map_func` to each element, several at a time."""
    return input_dataset.map(map_func, num_parallel_calls, deterministic)


# experimental.ops.snapshot

def legacy_snapshot(path, compression=None, reader_path_prefix=None, writer_path_prefix=None, shard_size_bytes=None,
                    pending_snapshot_expiry_seconds=None, num_reader_threads=None, reader_buffer_size=None, num_writer_threads=None,
                    writer_buffer_size=None, shuffle_on_read=None, shuffle_seed=None, mode=None, snapshot_name=None):
    """Writes the elements to files during the first full pass, in the first version's format, and reads them from there afterwards."""
    def given(value, otherwise):
        return otherwise if value is None else value

    def apply(dataset):
        one, two = random_ops.get_seed(shuffle_seed)
        return _unchanged(
            raw_ops.SnapshotDataset, path=convert_to_tensor(path, dtypes.string, name="path"), compression=given(compression, ""),
            reader_path_prefix=given(reader_path_prefix, ""), writer_path_prefix=given(writer_path_prefix, ""),
            shard_size_bytes=given(shard_size_bytes, -1), pending_snapshot_expiry_seconds=given(pending_snapshot_expiry_seconds, -1),
            num_reader_threads=given(num_reader_threads, -1), reader_buffer_size=given(reader_buffer_size, -1),
            num_writer_threads=given(num_writer_threads, -1), writer_buffer_size=given(writer_buffer_size, -1),
            shuffle_on_read=given(shuffle_on_read, False), seed=given(one, 0), seed2=given(two, 0), mode=given(mode, "auto"),
            snapshot_name=given(snapshot_name, ""))(dataset)
    return apply


# experimental.ops.testing

def _unchanged(op, **arguments):
    return lambda dataset: dataset._like(op(input_dataset=dataset._variant_tensor, **arguments, **dataset._attrs))


def assert_next(transformations):
    """Checks the names of the transformations that follow."""
    if transformations is None:
        raise ValueError("Invalid `transformations`. `transformations` should not be empty.")
    return _unchanged(raw_ops.AssertNextDataset, transformations=convert_to_tensor(transformations, dtypes.string))


def assert_prev(transformations):
    """Checks the names of the transformations before."""
    if transformations is None:
        raise ValueError("`transformations` cannot be empty")
    texts = [str(_transformation(*(one if isinstance(one, tuple) else (one,)))) for one in transformations]
    return _unchanged(raw_ops.AssertPrevDataset, transformations=convert_to_tensor(texts, dtypes.string))


def _transformation(name, attributes=None):
    """Returns the NameAttrList of an op and attributes of it."""
    from runnel.core.protobuf import message_class
    made = message_class("NameAttrList")(name=name)
    for key, value in (attributes or {}).items() if isinstance(attributes, dict) else ():
        if isinstance(value, bool):
            made.attr[key].b = value
        elif isinstance(value, int):
            made.attr[key].i = value
        elif isinstance(value, str):
            made.attr[key].s = value.encode()
        else:
            raise ValueError("attribute value type (%s) must be bool, int, or str" % type(value))
    return made


def sleep(sleep_microseconds):
    """Waits before each element."""
    return _unchanged(raw_ops.SleepDataset, sleep_microseconds=_int64(sleep_microseconds))


def non_serializable():
    """Returns the same elements; the dataset cannot be serialized."""
    return _unchanged(raw_ops.NonSerializableDataset)


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
