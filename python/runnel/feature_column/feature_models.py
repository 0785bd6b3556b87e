"""The models of feature columns as objects, and other names that estimators use.

The columns are those of 1.x: `is_feature_column_v2` returns False, and variables are in variable scopes.
"""

from runnel.feature_column import feature_columns as feature_column
from runnel.feature_column.feature_kinds import Categorical, Column, Dense, Features
from runnel.ops import array_ops, math_ops, variable_scopes

FeatureColumn = _FeatureColumn = Column
DenseColumn = _DenseColumn = Dense
CategoricalColumn = _CategoricalColumn = Categorical
FeatureTransformationCache = _LazyBuilder = Features
make_parse_example_spec_v2 = feature_column.make_parse_example_spec


def is_feature_column_v2(feature_columns):
    """Tells whether the first column is one of 2.x."""
    for column in feature_columns:
        if not isinstance(column, Column):
            raise ValueError("Not a feature column of Runnel: %s" % (column,))
    return False


def _transform_features(features, feature_columns):
    """Returns {column: transformed features}."""
    from runnel.core.framework import name_scope
    given = Features(features)
    with name_scope(None, default_name="transform_features", values=features.values()):
        result = {}
        for column in feature_column._in_order(feature_columns):
            with name_scope(None, default_name=column.name):
                result[column] = given.get(column)
        return result


def _internal_input_layer(features, feature_columns, weight_collections=None, trainable=True, cols_to_vars=None, scope=None,
                          cols_to_output_tensors=None, from_template=False):
    """Computes input_layer in the caller's scope."""
    arguments = features, feature_columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors
    if from_template:
        return feature_column._dense_side_by_side(*arguments)
    if scope is None:
        return feature_column.input_layer(*arguments)
    with variable_scopes.variable_scope(scope, default_name="input_layer", values=features.values()):
        return feature_column._dense_side_by_side(*arguments)


class InputLayer:
    """An input_layer whose variables are created once, in a scope of this name."""

    def __init__(self, feature_columns, weight_collections=None, trainable=True, cols_to_vars=None,
                 name="feature_column_input_layer", create_scope_now=True):
        from runnel.ops.template import make_template
        self._feature_columns, self._name = feature_columns, name
        self._weight_collections, self._trainable, self._cols_to_vars = weight_collections, trainable, cols_to_vars
        self._template = make_template(name, _internal_input_layer, create_scope_now_=create_scope_now, from_template=True)
        self._scope = self._template.variable_scope if create_scope_now else None

    def __call__(self, features):
        return self._template(features=features, feature_columns=self._feature_columns,
                              weight_collections=self._weight_collections, trainable=self._trainable, cols_to_vars=None,
                              scope=None)

    name = property(lambda self: self._name)
    non_trainable_variables = property(lambda self: self._template.non_trainable_variables)
    non_trainable_weights = property(lambda self: self._template.non_trainable_weights)
    trainable_variables = property(lambda self: self._template.trainable_variables)
    trainable_weights = property(lambda self: self._template.trainable_weights)
    variables = property(lambda self: self._template.variables)
    weights = property(lambda self: self._template.weights)


class LinearModel:
    """A linear_model whose variables can be read afterwards."""

    def __init__(self, feature_columns, units=1, sparse_combiner="sum", weight_collections=None, trainable=True, name=None,
                 **kwargs):
        self._arguments = (feature_columns, units, sparse_combiner, weight_collections, trainable)
        self._cols_to_vars, self._name = {}, name or "linear_model"

    def __call__(self, features):
        columns, units, combiner, collections, trainable = self._arguments
        return feature_column.linear_model(features, columns, units, combiner, collections, trainable, self._cols_to_vars,
                                           _scope=self._name)

    def cols_to_vars(self):
        """Returns {column, or "bias": its variables}."""
        return self._cols_to_vars

    name = property(lambda self: self._name)
    bias = property(lambda self: self._cols_to_vars["bias"][0])
    variables = property(lambda self: [v for found in self._cols_to_vars.values() for v in found])


_LinearModel = LinearModel


def sequence_length_from_sparse_tensor(sp_tensor, num_elements=1):
    """Returns the length of each sequence of a sparse tensor [batch, time, ...]."""
    from runnel.core.framework import name_scope
    with name_scope(None, "sequence_length"):
        rows, columns = sp_tensor.indices[:, 0], sp_tensor.indices[:, 1] + 1
        if sp_tensor.get_shape().ndims == 2:
            columns = math_ops.ceil(columns / num_elements)
        lengths = math_ops.cast(math_ops.segment_max(columns, segment_ids=rows), "int64")
        count = array_ops.shape(lengths)[0]
        missing = array_ops.zeros(shape=array_ops.expand_dims(
            math_ops.maximum(math_ops.cast(sp_tensor.dense_shape[0], "int32") - count, 0), 0), dtype="int64")
        return array_ops.concat([lengths, missing], axis=0)
