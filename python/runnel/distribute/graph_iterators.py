"""Iterators of 1.x over datasets in strategies: `initialize()` once, then `get_next()`."""

from runnel import data
from runnel.core import framework


class DefaultInputIterator:
    """That of the default strategy, over the dataset itself."""

    def __init__(self, dataset):
        self._dataset = dataset
        self._restart()

    def _restart(self):
        make = data.make_one_shot_iterator if framework.executing_eagerly() else data.make_initializable_iterator
        self._iterator = make(self._dataset)

    def get_next(self, name=None):
        """Returns the next element."""
        return self._iterator.get_next()

    def get_next_as_optional(self):
        """Returns an Optional of the next element."""
        return self._iterator.get_next_as_optional()

    def initialize(self):
        """Starts anew. Returns the operations to run for that in a graph."""
        if framework.executing_eagerly():
            self._restart()
            return []
        return [self._iterator.initializer]

    initializer = property(lambda self: self.initialize())


class DividedInputIterator(DefaultInputIterator):
    """That of a strategy with several devices: each replica gets a part of an element (`is_divided`), or an element of its own."""

    def __init__(self, dataset, devices, is_divided):
        self._devices, self._is_divided = devices, is_divided
        super().__init__(dataset)

    def _replicas(self):
        from runnel.distribute import input_data
        return input_data._Iterator([self._iterator], self._devices, self._is_divided)

    def get_next(self, name=None):
        """Returns the next values of the replicas."""
        return self._replicas().get_next()

    def get_next_as_optional(self):
        """Returns an Optional of the next values of the replicas."""
        return self._replicas().get_next_as_optional()
