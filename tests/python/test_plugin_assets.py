"""Files of TensorBoard's plug-ins beside events, and what a FileWriter accepts as a graph."""

import os

import pytest

import runnel as tf
from runnel.summary import plugin_asset


class Words(plugin_asset.PluginAsset):
    plugin_name = "words"

    def assets(self):
        return {"a.txt": "one", "b.txt": "two"}


class Others(Words):
    plugin_name = "others"


class Nameless(Words):
    plugin_name = None


def test_files(tmp_path):
    with tf.Graph().as_default() as graph:
        first = plugin_asset.get_plugin_asset(Words)
        assert plugin_asset.get_plugin_asset(Words) is first
        assert plugin_asset.get_all_plugin_assets() == [first]
        other = plugin_asset.get_plugin_asset(Others, tf.Graph())
        assert other is not first
    tf.summary.FileWriter(str(tmp_path), graph).close()
    assert (tmp_path / "plugins" / "words" / "b.txt").read_text() == "two"
    assert os.listdir(tmp_path / "plugins") == ["words"]


def test_names():
    class Same(plugin_asset.PluginAsset):
        plugin_name = "words"

        def assets(self):
            return {}
    with tf.Graph().as_default():
        plugin_asset.get_plugin_asset(Words)
        with pytest.raises(ValueError, match="Plugin name collision between classes Same and Words"):
            plugin_asset.get_plugin_asset(Same)
        with pytest.raises(ValueError, match="has no plugin_name"):
            plugin_asset.get_plugin_asset(Nameless)


def test_graphs_of_a_writer(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="one")
    for i, given in enumerate(({"graph": graph}, {"graph": graph.as_graph_def()}, {"graph_def": graph.as_graph_def()})):
        folder = tmp_path / str(i)
        tf.summary.FileWriter(str(folder), **given).close()
        events = list(tf.train.summary_iterator(str(next(folder.iterdir()))))
        assert [event.WhichOneof("what") for event in events] == ["file_version", "graph_def", "meta_graph_def"]
    with pytest.raises(TypeError, match="The passed graph must be an instance of `Graph`"):
        tf.summary.FileWriter(str(tmp_path / "bad"), "graph")
    with pytest.raises(ValueError, match="not both"):
        tf.summary.FileWriter(str(tmp_path / "both"), graph, graph_def=graph.as_graph_def())


def test_events_that_come_later(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.flush()
    events = tf.train.summary_iterator(str(next(tmp_path.iterdir())))
    assert next(events).file_version
    with pytest.raises(StopIteration):
        next(events)
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=1.0)]), 7)
    writer.flush()
    assert next(events).step == 7
    writer.close()
