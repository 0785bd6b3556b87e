"""Adapters, by which an object restores values that a checkpoint has in another layout."""

import abc


class ReshardCallback:
    """Computes an object's value from those of a checkpoint. This one takes the value as it is."""

    def object_name(self):
        """Returns the name under which the object is held now, or None if it has not changed."""
        return None

    def reshard(self, checkpoint_values, shape_and_slice_spec):
        """Returns the value, given what was read."""
        if len(checkpoint_values) != 1:
            raise ValueError("Default reshard expects a single checkpoint value.")
        return checkpoint_values[0]

    def update_restore_inputs(self, checkpoint_key, shape_and_slice_spec):
        """Returns (keys to read, slices of them)."""
        return [checkpoint_key], [shape_and_slice_spec]


class AbstractCheckpointAdapter(abc.ABC):
    """The base of adapters, which Trackable._checkpoint_adapter returns."""

    @classmethod
    @abc.abstractmethod
    def create_from_checkpoint(cls, path):
        """Makes the adapter for a checkpoint."""

    @abc.abstractmethod
    def is_applicable(self, trackable):
        """Tells whether the adapter is for an object."""

    @abc.abstractmethod
    def get_reshard_callback(self, name):
        """Returns the ReshardCallback of a child of that name in the checkpoint, or None."""

    def maybe_reshard(self, name):
        """Returns (the name of the child now, its ReshardCallback or None)."""
        callback = self.get_reshard_callback(name)
        return (callback is not None and callback.object_name()) or name, callback
