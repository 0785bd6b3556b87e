"""tf.tpu.experimental.embedding.TPUEmbeddingForServing and TPUEmbedding: embedding tables of features, with their slots."""

import functools

from runnel import nest
from runnel.core.framework import init_scope
from runnel.core.trackable import AutoTrackable
from runnel.ops import variables
from runnel.tpu.embedding_lookup import serving_embedding_lookup
from runnel.tpu.embedding_optimizers import _Optimizer


class TPUEmbeddingBase(AutoTrackable):
    """What all forms have: tables with unique names, each with an optimizer."""

    def __init__(self, feature_config, optimizer=None):
        self._feature_config = feature_config
        features = nest.flatten(feature_config)
        self._output_shapes = [feature.output_shape for feature in features]
        self._table_config = []
        for feature in features:
            if feature.table not in self._table_config:
                self._table_config.append(feature.table)
        names = set()
        for i, table in enumerate(self._table_config):
            table.optimizer = optimizer if table.optimizer is None else table.optimizer
            if table.optimizer is not None and not isinstance(table.optimizer, _Optimizer):
                raise ValueError("%s is an unsupported optimizer class. Please pass an instance of one of the optimizer classes under "
                                 "tf.tpu.experimental.embedding." % type(table.optimizer))
            table.name = "table_%d" % i if table.name is None else table.name
            if table.name in names:
                raise ValueError("Tables must have a unique name. Multiple tables with name %s found." % table.name)
            names.add(table.name)
        self._built = False

    @property
    def embedding_tables(self):
        """{TableConfig: variable}."""
        self._maybe_build()
        return {table: self._variables[table.name]["parameters"] for table in self._table_config}

    def _create_variables(self, table, trainable):
        """Returns the variable of a table and its slots by name."""
        shape = (table.vocabulary_size, table.dim)

        def make(name, shape, dtype, initializer, trainable):
            return variables.Variable(functools.partial(initializer, shape, dtype=dtype), trainable, name=name, dtype=dtype, shape=shape)

        def create(name, initializer, trainable=False):
            return self._add_variable_with_custom_getter(name=name, shape=shape, dtype=table.dtype, initializer=initializer, trainable=trainable, getter=make)

        parameters = create(table.name, table.initializer, trainable)
        slots = {} if table.optimizer is None else table.optimizer._create_slots(parameters, lambda name, initializer: create(
            "%s/%s" % (table.name, name), initializer))
        return {**slots, "parameters": parameters}

    def _create_variables_and_slots(self):
        return {table.name: self._create_variables(table, trainable=True) for table in self._table_config}

    def build(self):
        """Makes the variables, unless that is done."""
        if not self._built:
            self._variables = self._create_variables_and_slots()
            self._built = True

    def _maybe_build(self):
        if not self._built:
            with init_scope():
                self.build()

    def __call__(self, features, weights=None):
        self._maybe_build()
        return self.embedding_lookup(features, weights)


class TPUEmbeddingForServing(TPUEmbeddingBase):
    """Embedding tables on CPUs: to serve what TPUs have trained, and to train.

        table = tf.tpu.experimental.embedding.TableConfig(vocabulary_size=100, dim=8)
        feature = tf.tpu.experimental.embedding.FeatureConfig(table)
        embedding = tf.tpu.experimental.embedding.TPUEmbeddingForServing({"words": feature}, tf.tpu.experimental.embedding.Adam(0.1))
        embedding({"words": tf.ragged.constant([[1, 2], [3]])})
    """

    def embedding_lookup(self, features, weights=None):
        """Returns the embeddings of features."""
        return serving_embedding_lookup(features, weights, self.embedding_tables, self._feature_config)


def _needs_tpu(name):
    def method(self, *args, **kwargs):
        raise RuntimeError("%s is not valid when TPUEmbedding object is not created under a TPUStrategy." % name)
    return method


class TPUEmbedding(TPUEmbeddingBase):
    """Embedding tables for TPUs. Without a TPU it has tables, which checkpoints save and restore."""

    def __init__(self, feature_config, optimizer=None, pipeline_execution_with_tensor_core=False):
        super().__init__(feature_config, optimizer)
        self._pipeline_execution_with_tensor_core, self._using_tpu = pipeline_execution_with_tensor_core, False

    def build(self, per_replica_input_shapes=None, per_replica_batch_size=None):
        """Makes the variables, unless that is done. Batches have a shape on TPUs alone."""
        super().build()

    enqueue, dequeue, apply_gradients = _needs_tpu("enqueue"), _needs_tpu("dequeue"), _needs_tpu("apply_gradients")
    __call__ = _needs_tpu("embedding_lookup")


TPUEmbeddingV0 = TPUEmbedding


class TPUEmbeddingV2(TPUEmbedding):
    """Embedding tables for TPUs with SparseCores."""

    def __init__(self, feature_config, optimizer=None, pipeline_execution_with_tensor_core=False, sparse_core_embedding_config=None):
        super().__init__(feature_config, optimizer, pipeline_execution_with_tensor_core)
        self._sparse_core_embedding_config = sparse_core_embedding_config
