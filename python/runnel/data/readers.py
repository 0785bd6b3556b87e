"""Datasets of the rows of databases and CSV files (tf.data.experimental)."""

import csv
import gzip
import io

from runnel import dtypes, nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import TensorSpec
from runnel.data.dataset import AUTOTUNE, Dataset, _int64
from runnel.data.file_datasets import TFRecordDataset, _compression

_SCALAR = tensor_shape.TensorShape([])
_CSV_TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)


def _text(value, name=None):
    return convert_to_tensor(value, dtypes.string, name=name)


class SqlDataset(Dataset):
    """A dataset of the rows of a query; `driver_name` is "sqlite"."""

    def __init__(self, driver_name, data_source_name, query, output_types):
        spec = nest.map_structure(lambda t: TensorSpec([], t), output_types)
        types = [s.dtype for s in nest.flatten(spec)]
        super().__init__(raw_ops.SqlDataset(driver_name=_text(driver_name), data_source_name=_text(data_source_name), query=_text(query),
                                            output_types=types, output_shapes=[_SCALAR] * len(types)), spec)


def _csv_default(value):
    """Returns the tensor of a default value: a type means that the column is required."""
    if isinstance(value, dtypes.DType) or isinstance(value, type) and not isinstance(value, Tensor):
        return convert_to_tensor([], dtypes.as_dtype(value))
    tensor = value if isinstance(value, Tensor) else convert_to_tensor(value)
    if tensor.dtype not in _CSV_TYPES:
        raise TypeError("record_defaults must be one of float32, float64, int32, int64 or string, not %s" % tensor.dtype.name)
    return tensor


class CsvDataset(Dataset):
    """A dataset of the records of CSV files, one tensor per column."""

    def __init__(self, filenames, record_defaults, compression_type=None, buffer_size=None, header=False, field_delim=",",
                 use_quote_delim=True, na_value="", select_cols=None, exclude_cols=None):
        if select_cols is not None and exclude_cols is not None:
            raise ValueError("Only one of `select_cols` and `exclude_cols` is allowed.")
        defaults = [_csv_default(x) for x in record_defaults]
        spec = tuple(TensorSpec([], x.dtype) for x in defaults)
        variant = raw_ops.CSVDatasetV2(
            filenames=_text(filenames, "filenames"), compression_type=_compression(compression_type),
            buffer_size=_int64(4 * 1024 * 1024 if buffer_size is None else buffer_size), header=convert_to_tensor(header, dtypes.bool),
            field_delim=_text(field_delim), use_quote_delim=convert_to_tensor(use_quote_delim, dtypes.bool), na_value=_text(na_value),
            select_cols=_int64([] if select_cols is None else select_cols), record_defaults=defaults,
            exclude_cols=_int64([] if exclude_cols is None else exclude_cols), output_shapes=[_SCALAR] * len(spec))
        super().__init__(variant, spec)


def _rows(name, field_delim, use_quote_delim, compression_type):
    """Yields the rows of a file as lists of strings."""
    with open(name, "rb") as raw:
        file = gzip.open(raw) if compression_type == "GZIP" else raw
        text = io.TextIOWrapper(file, newline="")
        yield from csv.reader(text, delimiter=field_delim, quoting=csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE)


def _type_of_text(text, na_value, before):
    """Returns the narrowest type that holds a value, no narrower than the one `before`."""
    if text in ("", na_value):
        return before
    order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string]
    for dtype in order[0 if before is None else order.index(before):]:
        try:
            if dtype is dtypes.string:
                return dtype
            if dtype in (dtypes.int32, dtypes.int64):
                if -2 ** (8 * dtype.size - 1) <= int(text) < 2 ** (8 * dtype.size - 1):
                    return dtype
            elif abs(float(text)) <= (3.4028235e38 if dtype is dtypes.float32 else float("inf")) or float(text) != float(text):
                return dtype
        except ValueError:
            pass
    return dtypes.string


def _infer_defaults(files, columns, field_delim, use_quote_delim, na_value, header, rows_for_inference, compression_type):
    found = [None] * len(columns)
    seen = 0
    for name in files:
        for i, row in enumerate(_rows(name, field_delim, use_quote_delim, compression_type)):
            if header and i == 0:
                continue
            if rows_for_inference is not None and seen >= rows_for_inference:
                break
            seen += 1
            for j, column in enumerate(columns):
                found[j] = _type_of_text(row[column], na_value, found[j])
    return [convert_to_tensor([b"" if t is dtypes.string else 0], t) for t in (x or dtypes.string for x in found)]


def _selected(names, wanted):
    """Returns the indices of columns given as names or as indices."""
    made = [names.index(x) if isinstance(x, str) else x for x in wanted]
    if sorted(made) != made or len(set(made)) != len(made):
        order = sorted(set(made))
        if len(order) != len(made):
            raise ValueError("`select_columns` has duplicate columns")
        made = order
    return made


def _matching(file_pattern):
    from runnel import gfile
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    names = sorted(name for pattern in patterns for name in gfile.glob(pattern))
    if not names:
        raise ValueError("No files match `file_pattern` %s." % file_pattern)
    return names


def _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed):
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    return dataset if num_epochs == 1 else dataset.repeat(num_epochs)


def make_csv_dataset(file_pattern, batch_size, column_names=None, column_defaults=None, label_name=None, select_columns=None,
                     field_delim=",", use_quote_delim=True, na_value="", header=True, num_epochs=None, shuffle=True,
                     shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None, num_parallel_reads=None, sloppy=False,
                     num_rows_for_inference=100, compression_type=None, ignore_errors=False, encoding="utf-8"):
    """Creates a dataset of batches of CSV records: dictionaries of columns, and the labels if `label_name` is given."""
    files = _matching(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Expected `column_names` or `header` arguments. Neither was provided.")
        column_names = next(_rows(files[0], field_delim, use_quote_delim, compression_type))
    if len(set(column_names)) != len(column_names):
        raise ValueError("Cannot have duplicate column names. Found: %s." % column_names)
    columns = list(range(len(column_names))) if select_columns is None else _selected(column_names, select_columns)
    names = [column_names[i] for i in columns]
    if label_name is not None and label_name not in names:
        raise ValueError("`label_name` provided must be one of the columns. Found: %s." % label_name)
    if column_defaults is None:
        column_defaults = _infer_defaults(files, columns, field_delim, use_quote_delim, na_value, header, num_rows_for_inference,
                                          compression_type)
    elif len(column_defaults) != len(names):
        raise ValueError("If `column_defaults` is provided, its length must match the number of columns: %d vs. %d." % (
            len(column_defaults), len(names)))
    names_of_files = Dataset.from_tensor_slices(files)
    if shuffle:
        names_of_files = names_of_files.shuffle(len(files), shuffle_seed)

    def one(name):
        return CsvDataset(name, column_defaults, compression_type, None, header, field_delim, use_quote_delim, na_value,
                          None if select_columns is None else columns)
    dataset = names_of_files.interleave(one, num_parallel_reads or 1)
    if ignore_errors:
        dataset = dataset.ignore_errors()

    def as_features(*values):
        features = dict(zip(names, values))
        return features if label_name is None else (features, features.pop(label_name))
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(as_features)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def parse_example_dataset(features, num_parallel_calls=1, deterministic=None):
    """Parses batches of serialized Example messages into dictionaries of tensors."""
    from runnel.io.parsing_ops import parse_example
    if features is None:
        raise ValueError("Argument `features` cannot be None.")

    def apply(dataset):
        if dataset._types != [dtypes.string] or dataset._shapes[0].ndims not in (1, None):
            raise TypeError("Input dataset should be a dataset of vectors of strings.")
        return dataset.map(lambda messages: parse_example(messages, features), None if num_parallel_calls == 1 else num_parallel_calls)
    return apply


def make_tf_record_dataset(file_pattern, batch_size, parser_fn=None, num_epochs=None, shuffle=True, shuffle_buffer_size=None, shuffle_seed=None,
                           prefetch_buffer_size=AUTOTUNE, num_parallel_reads=None, num_parallel_parser_calls=None, drop_final_batch=False):
    """Creates a dataset of batches of the records of TFRecord files, parsed by `parser_fn`."""
    names = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    reads = 24 if num_parallel_reads is None else num_parallel_reads
    dataset = TFRecordDataset(names, num_parallel_reads=reads)
    if shuffle_buffer_size is None:
        shuffle_buffer_size = 10000
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    drop_final_batch = drop_final_batch or num_epochs is None
    if parser_fn is not None:
        dataset = dataset.map(parser_fn, num_parallel_calls=num_parallel_parser_calls or 2)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch)
    return dataset if prefetch_buffer_size == 0 else dataset.prefetch(prefetch_buffer_size)


def make_batched_features_dataset(file_pattern, batch_size, features, reader=None, label_key=None, reader_args=None, num_epochs=None,
                                  shuffle=True, shuffle_buffer_size=10000, shuffle_seed=None, prefetch_buffer_size=None,
                                  reader_num_threads=None, parser_num_threads=None, sloppy_ordering=False, drop_final_batch=False):
    """Creates a dataset of batches of parsed Example messages from files."""
    names = Dataset.from_tensor_slices(_matching(file_pattern))
    if shuffle:
        names = names.shuffle(shuffle_buffer_size, shuffle_seed)
    make = TFRecordDataset if reader is None else reader
    dataset = names.interleave(lambda name: make(name, *(reader_args or [])), reader_num_threads or 1)
    dataset = _shuffled(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.apply(parse_example_dataset(features, parser_num_threads or 1))
    if label_key is not None:
        if label_key not in features:
            raise ValueError("The `label_key` provided (%r) must be one of the `features` keys: %s." % (label_key, list(features)))
        dataset = dataset.map(lambda parsed: ({k: v for k, v in parsed.items() if k != label_key}, parsed[label_key]))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
