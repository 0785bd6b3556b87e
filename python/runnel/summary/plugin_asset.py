"""Files that plug-ins of TensorBoard want beside the events of a graph."""

import abc
import os

from runnel.core import framework

_PREFIX = "__tensorboard_plugin_asset__"
_PLUGINS_DIR = "plugins"


class PluginAsset(metaclass=abc.ABCMeta):
    """The files of one plug-in, whose name a class states in `plugin_name`."""

    plugin_name: str | None = None

    @abc.abstractmethod
    def assets(self):
        """Returns {name of a file: its contents}."""
        raise NotImplementedError


def get_plugin_asset(plugin_asset_cls, graph=None):
    """Returns the graph's one instance of a class, which is made at the first call."""
    graph = graph or framework.get_default_graph()
    if not plugin_asset_cls.plugin_name:
        raise ValueError("Class %s has no plugin_name" % plugin_asset_cls.__name__)
    key = _PREFIX + plugin_asset_cls.plugin_name
    known = graph.get_collection(key)
    if not known:
        known = [plugin_asset_cls()]
        graph.add_to_collection(key, known[0])
        graph.add_to_collection(_PREFIX, plugin_asset_cls.plugin_name)
    elif len(known) != 1:
        raise ValueError("Collection for %s had %d items, expected 1" % (key, len(known)))
    elif not isinstance(known[0], plugin_asset_cls):
        raise ValueError("Plugin name collision between classes %s and %s" % (plugin_asset_cls.__name__, type(known[0]).__name__))
    return known[0]


def get_all_plugin_assets(graph=None):
    """Returns the instances that a graph has."""
    graph = graph or framework.get_default_graph()
    found = []
    for name in graph.get_collection(_PREFIX):
        known = graph.get_collection(_PREFIX + name)
        if len(known) != 1:
            raise ValueError("Collection for %s had %d items, expected 1" % (name, len(known)))
        found.append(known[0])
    return found


def write_assets(graph, folder):
    """Writes the files of a graph's plug-ins below a folder of events."""
    from runnel.io import file_io
    for asset in get_all_plugin_assets(graph):
        inside = os.path.join(folder, _PLUGINS_DIR, asset.plugin_name)
        file_io.makedirs(inside)
        for name, contents in asset.assets().items():
            with file_io.GFile(os.path.join(inside, name), "w") as file:
                file.write(contents)
