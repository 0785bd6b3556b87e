"""The variables and resources that the feature columns of a layer own, by column and name."""

import collections

from runnel.feature_column.feature_kinds import Dense


class SequenceDenseColumn(Dense):
    """The base of columns of sequences."""


class StateManager:
    """Makes and keeps the variables and resources of the columns of a layer."""

    def __init__(self, layer, trainable):
        self._layer, self._trainable = layer, trainable
        self._cols_to_vars_map = collections.defaultdict(dict)
        self._cols_to_resources_map = collections.defaultdict(dict)

    def create_variable(self, feature_column, name, shape, dtype=None, trainable=True, use_resource=True, initializer=None):
        """Makes a variable of a column."""
        if name in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable already exists.")
        made = self._layer.add_weight(name=name, shape=shape, dtype=dtype, initializer=initializer,
                                      trainable=self._trainable and trainable, use_resource=use_resource)
        self._cols_to_vars_map[feature_column][name] = made
        return made

    def get_variable(self, feature_column, name):
        """Returns a variable of a column. Raises ValueError if there is none."""
        if name not in self._cols_to_vars_map[feature_column]:
            raise ValueError("Variable does not exist.")
        return self._cols_to_vars_map[feature_column][name]

    def add_resource(self, feature_column, resource_name, resource):
        """Keeps a resource of a column, such as a table."""
        self._cols_to_resources_map[feature_column][resource_name] = resource

    def has_resource(self, feature_column, resource_name):
        """Tells whether a column has a resource of a name."""
        return resource_name in self._cols_to_resources_map[feature_column]

    def get_resource(self, feature_column, resource_name):
        """Returns a resource of a column. Raises ValueError if there is none."""
        if not self.has_resource(feature_column, resource_name):
            raise ValueError("Resource does not exist.")
        return self._cols_to_resources_map[feature_column][resource_name]
