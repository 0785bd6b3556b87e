"""The tables and features of TPU embeddings: TableConfig, FeatureConfig and what they consist of."""

import dataclasses
import logging
import math
import typing

from runnel import dtypes
from runnel.core.tensor_shape import TensorShape
from runnel.ops import array_ops, init_ops, math_ops
from runnel.tpu.embedding_optimizers import CustomCombiner

_COMBINERS = ("mean", "sum", "sqrtn")


class RowIdInitializer:
    """Initializes each row of a table with its number plus an offset."""

    def __init__(self, offset=0):
        self.offset = offset

    def __call__(self, shape, dtype):
        rows = math_ops.range(self.offset, self.offset + shape[0], 1, dtype=dtype)
        return array_ops.expand_dims(rows, 1) * array_ops.ones(shape, dtype)


class QuantizationConfig:
    """The simulated quantization of a table: its values are rounded to `num_buckets` numbers between two bounds."""

    def __init__(self, num_buckets, lower, upper):
        if num_buckets < 2:
            raise ValueError("num_buckets is %s, must be at least 2 for simulated quantization." % num_buckets)
        self.num_buckets, self.lower, self.upper = num_buckets, lower, upper

    def __repr__(self):
        return "QuantizationConfig(num_buckets=%r, lower=%r, upper=%r)" % (self.num_buckets, self.lower, self.upper)


class TableConfig:
    """A table of embeddings: a row of `dim` numbers per entry of a vocabulary."""

    def __init__(self, vocabulary_size, dim, initializer=None, optimizer=None, combiner="mean", name=None, quantization_config=None, layout=None,
                 dtype=dtypes.float32):
        if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
            raise ValueError("Argument `vocabulary_size` must be an int and must be >= 1. Received: %s" % (vocabulary_size,))
        if not isinstance(dim, int) or dim < 1:
            raise ValueError("Argument `dim` (embedding dimension) must be an int and must be >= 1. Received: %s" % (dim,))
        if initializer is not None and not callable(initializer):
            raise ValueError("Argument `initializer` must be a callable (or None). Received: %s" % (initializer,))
        if isinstance(combiner, str) and combiner not in _COMBINERS:
            raise ValueError("String argument `combiner` must be in %s. Received: %s" % (_COMBINERS, combiner))
        if not isinstance(combiner, (str, CustomCombiner)):
            raise ValueError("Argument `combiner` should either be a str or a CustomCombiner. Received: %s" % type(combiner))
        if dtype not in (dtypes.float32, dtypes.int32):
            raise ValueError("Argument `dtype` must be either float32 or int32. Received: %s" % (dtype,))
        self.vocabulary_size, self.dim, self.optimizer, self.combiner, self.name = vocabulary_size, dim, optimizer, combiner, name
        self.initializer = init_ops.TruncatedNormal(mean=0.0, stddev=1 / math.sqrt(dim)) if initializer is None else initializer
        self.quantization_config, self.layout, self.dtype = quantization_config, layout, dtype

    def _is_default_initializer(self):
        made = self.initializer
        return isinstance(made, init_ops.TruncatedNormal) and made.mean == 0.0 and math.isclose(made.stddev, 1 / math.sqrt(self.dim))

    def __repr__(self):
        initializer = None if self._is_default_initializer() else self.initializer
        return "TableConfig(vocabulary_size=%r, dim=%r, initializer=%r, optimizer=%r, combiner=%r, name=%r, quantization_config=%r)" % (
            self.vocabulary_size, self.dim, initializer, self.optimizer, self.combiner, self.name, self.quantization_config)


class FeatureConfig:
    """A feature that is looked up in a table. With `max_sequence_length`, its rows are not combined."""

    def __init__(self, table, max_sequence_length=0, validate_weights_and_indices=True, output_shape=None, name=None):
        if not isinstance(table, TableConfig):
            raise ValueError("Argument `table` has invalid type %s. Expected `tf.tpu.experimental.embedding.TableConfig`." % type(table))
        if not isinstance(max_sequence_length, int) or max_sequence_length < 0:
            raise ValueError("Argument `max_sequence_length` must be an int and must be >= 0. Received: %s" % (max_sequence_length,))
        if not isinstance(validate_weights_and_indices, bool):
            raise ValueError("Argument `validate_weights_and_indices` must be a boolean. Received: %s" % (validate_weights_and_indices,))
        self.table, self.max_sequence_length, self.name = table, max_sequence_length, name
        self.output_shape, self.validate_weights_and_indices = TensorShape(output_shape), validate_weights_and_indices

    def __repr__(self):
        return "FeatureConfig(table=%r, max_sequence_length=%r, validate_weights_and_indices=%r, output_shape=%r, name=%r)" % (
            self.table, self.max_sequence_length, self.validate_weights_and_indices, self.output_shape, self.name)


@dataclasses.dataclass(frozen=True)
class SparseCoreEmbeddingConfig:
    """How tables are laid out on the SparseCores of a TPU."""

    disable_table_stacking: bool = False
    max_ids_per_chip_per_sample: int = 64
    max_ids_per_table: typing.Optional[dict] = None
    max_unique_ids_per_table: typing.Optional[dict] = None
    allow_id_dropping: bool = False
    initialize_tables_on_host: bool = True
    enable_fast_table_initialization: bool = False


def log_tpu_embedding_configuration(config):
    """Logs a configuration line by line."""
    for line in ["Beginning log of TPUEmbeddingConfiguration.", *str(config).splitlines(), "Done with log of TPUEmbeddingConfiguration."]:
        logging.info(line)


def _sort_device_spec_strings(device_strings):
    from runnel.core.device_spec import DeviceSpecV2
    specs = sorted((DeviceSpecV2.from_string(text) for text in device_strings), key=lambda spec: (spec.replica, spec.task, spec.device_index))
    return [spec.to_string() for spec in specs]
