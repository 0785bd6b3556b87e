"""A mixin of objects that are saved as another object would be."""

from runnel.core.trackable import Trackable


def _method(name):
    def call(self, *args, **kwargs):
        return getattr(self._trackable, name)(*args, **kwargs)
    call.__name__ = name
    call.__doc__ = getattr(Trackable, name).__doc__
    return call


def _attribute(name, is_settable=False):
    def put(self, value):
        setattr(self._trackable, name, value)
    return property(lambda self: getattr(self._trackable, name), put if is_settable else None)


class DelegatingTrackableMixin:
    """Passes all that concerns checkpoints and SavedModels on to `trackable_obj`."""

    def __init__(self, trackable_obj):
        self._trackable = trackable_obj

    def _copy_trackable_to_cpu(self, object_map):
        self._trackable._copy_trackable_to_cpu(object_map)
        if self not in object_map:
            object_map[self] = DelegatingTrackableMixin(object_map[self._trackable])


for _name in ("_setattr_tracking", "_update_uid"):
    setattr(DelegatingTrackableMixin, _name, _attribute(_name, is_settable=True))
for _name in ("_unconditional_checkpoint_dependencies", "_unconditional_dependency_names", "_name_based_restores", "_object_identifier",
              "_checkpoint_dependencies", "_deferred_dependencies"):
    setattr(DelegatingTrackableMixin, _name, _attribute(_name))
for _name in ("_maybe_initialize_trackable", "_no_dependency", "_name_based_attribute_restore", "_lookup_dependency",
              "_add_variable_with_custom_getter", "_preload_simple_restoration", "_track_trackable", "_handle_deferred_dependencies",
              "_gather_saveables_for_checkpoint", "_trackable_children", "_deserialization_dependencies", "_export_to_saved_model_graph",
              "_serialize_to_tensors", "_restore_from_tensors"):
    setattr(DelegatingTrackableMixin, _name, _method(_name))
