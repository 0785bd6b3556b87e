"""Objects of which checkpoints reach all that is in their attributes, without wrapping lists and dicts there."""

from runnel.core.data_structures import wrap_or_unwrap
from runnel.core.trackable import Trackable, is_function


class AttributeTrackable(Trackable):
    """The base of layers and models. Private attributes of Runnel's own classes do not count."""

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        is_ours = type(self).__module__.startswith("runnel.")
        wrapped = self.__dict__.setdefault("_self_wrapped", {})  # attribute -> (its value, the wrapper of that)
        for name, value in list(vars(self).items()):
            if name.startswith("_self_") or is_ours and name.startswith("_"):
                continue
            if isinstance(value, (list, dict, tuple)) and not isinstance(value, Trackable):
                if not _has_trackables(value):
                    continue
                if name not in wrapped or wrapped[name][0] is not value or wrapped[name][1] != value:
                    wrapped[name] = value, wrap_or_unwrap(type(value)(value) if type(value) in (list, dict) else value)
                value = wrapped[name][1]
            if isinstance(value, Trackable):
                children.setdefault(name, value)
        if save_type == "savedmodel":
            for cls in type(self).__mro__:
                for name, member in vars(cls).items():
                    if is_function(member):
                        children.setdefault(name, getattr(self, name))
        return children

    def _lookup_dependency(self, name, cached_dependencies=None):
        if cached_dependencies:
            return cached_dependencies.get(name)
        return super()._lookup_dependency(name) or getattr(self, name, None)


def _has_trackables(value):
    return any(isinstance(item, Trackable) or isinstance(item, (list, dict, tuple)) and _has_trackables(item)
               for item in (value.values() if isinstance(value, dict) else value))
