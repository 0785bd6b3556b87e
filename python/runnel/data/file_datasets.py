"""Datasets of the records of files (tf.data)."""

import os

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.type_spec import TensorSpec
from runnel.data.dataset import Dataset, _int64
from runnel.ops import array_ops


def _file_names(filenames):
    if isinstance(filenames, Dataset):
        if filenames._types != [dtypes.string]:
            raise TypeError("The `filenames` argument must contain `tf.string` elements. Got a dataset of `%r` elements." % (filenames._types[0],))
        if filenames._shapes[0].ndims not in (0, None):
            raise TypeError("The `filenames` argument must contain `tf.string` elements of shape [] (i.e. scalars). Got a dataset of element shape "
                            "%s." % (filenames._shapes[0],))
        return filenames
    if isinstance(filenames, (list, tuple)):
        filenames = [os.fspath(name) if isinstance(name, os.PathLike) else name for name in filenames]
    elif isinstance(filenames, os.PathLike):
        filenames = os.fspath(filenames)
    names = convert_to_tensor(filenames, dtype_hint=dtypes.string, name="filenames")
    if names.dtype != dtypes.string:
        raise TypeError("The `filenames` argument must contain `tf.string` elements. Got `%r` elements." % (names.dtype,))
    return names if names.shape.ndims == 0 else array_ops.reshape(names, [-1], name="flat_filenames")


def _compression(compression_type):
    return convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")


class _FileDataset(Dataset):
    """The records of files, one file after the other or several in turn."""

    def __init__(self, filenames, num_parallel_reads, make):
        names = _file_names(filenames)
        if isinstance(names, Dataset) or num_parallel_reads is not None:
            if not isinstance(names, Dataset):
                names = Dataset.from_tensor_slices(array_ops.reshape(names, [-1]))

            def one(name):
                return Dataset(make(name), TensorSpec([], dtypes.string))
            merged = names.flat_map(one) if num_parallel_reads is None else names.interleave(
                one, cycle_length=num_parallel_reads, num_parallel_calls=num_parallel_reads)
            variant = merged._variant_tensor
        else:
            variant = make(names)
        super().__init__(variant, TensorSpec([], dtypes.string), [names] if isinstance(names, Dataset) else ())


class TFRecordDataset(_FileDataset):
    """A dataset of the records of TFRecord files."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None,
                 name=None):
        super().__init__(filenames, num_parallel_reads, lambda names: raw_ops.TFRecordDataset(
            filenames=names, compression_type=_compression(compression_type),
            buffer_size=_int64(256 * 1024 if buffer_size is None else buffer_size)))


class TextLineDataset(_FileDataset):
    """A dataset of the lines of text files."""

    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None,
                 name=None):
        super().__init__(filenames, num_parallel_reads, lambda names: raw_ops.TextLineDataset(
            filenames=names, compression_type=_compression(compression_type),
            buffer_size=_int64(256 * 1024 if buffer_size is None else buffer_size)))


class FixedLengthRecordDataset(_FileDataset):
    """A dataset of records of a fixed length in files."""

    def __init__(self, filenames, record_bytes, header_bytes=None, footer_bytes=None,
                 buffer_size=None, compression_type=None, num_parallel_reads=None, name=None):
        super().__init__(
            filenames, num_parallel_reads, lambda names: raw_ops.FixedLengthRecordDatasetV2(
                filenames=names, header_bytes=_int64(header_bytes or 0),
                record_bytes=_int64(record_bytes), footer_bytes=_int64(footer_bytes or 0),
                buffer_size=_int64(256 * 1024 if buffer_size is None else buffer_size),
                compression_type=_compression(compression_type)))
