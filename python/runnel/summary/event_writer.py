"""Event files: tf.summary.FileWriter."""

import os
import threading
import time

from runnel.core.protobuf import message_class
from runnel.summary.event_file_writer import EventFileWriter


class FileWriter:
    """Writes summaries and events to a new file in a folder. A context manager.

    Args:
      logdir: the folder, created if needed.
      graph: a graph to write first.
      max_queue: how many events may wait to be written.
      flush_secs: how long events may stay in memory.
      graph_def: a GraphDef instead of `graph`.
      filename_suffix: suffix of the file's name.
      session: a session that holds the file: its writers of one folder share it.
    """

    def __init__(self, logdir, graph=None, max_queue=10, flush_secs=120, graph_def=None,
                 filename_suffix=None, session=None):
        logdir = os.fspath(logdir)
        if session is None:
            self.event_writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        else:
            from runnel.summary.session_file_writer import EventFileWriterV2
            self.event_writer = EventFileWriterV2(session, logdir, max_queue, flush_secs, filename_suffix)
        self._is_closed = False
        self._seen = set()  # tags whose metadata has been written
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            from runnel.core.meta_graph import create_meta_graph_def
            is_graph = hasattr(graph, "as_graph_def")
            # With the collections of the default graph, as in TensorFlow.
            self.add_meta_graph(create_meta_graph_def(graph_def=graph.as_graph_def(add_shapes=True) if is_graph else graph_def or graph))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def get_logdir(self):
        return self.event_writer.get_logdir()

    def add_summary(self, summary, global_step=None):
        """Adds a Summary, or the bytes that a summary op returned."""
        if isinstance(summary, (bytes, bytearray)):
            summary = message_class("Summary").FromString(bytes(summary))
        elif hasattr(summary, "item"):
            summary = message_class("Summary").FromString(bytes(summary.item()))
        for value in summary.value:
            if not value.HasField("metadata"):
                continue
            if value.tag in self._seen:
                value.ClearField("metadata")
            else:
                self._seen.add(value.tag)
        event = message_class("Event")()
        event.summary.CopyFrom(summary)
        self._add(event, global_step)

    def add_session_log(self, session_log, global_step=None):
        event = message_class("Event")()
        event.session_log.CopyFrom(session_log)
        self._add(event, global_step)

    def add_graph(self, graph=None, global_step=None, graph_def=None):
        """Adds a graph, for TensorBoard's graph page."""
        if graph_def is None and graph is not None and not hasattr(graph, "as_graph_def"):
            graph, graph_def = None, graph
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if graph is not None:
            from runnel.summary.plugin_asset import write_assets
            graph_def = graph.as_graph_def(add_shapes=True)
            write_assets(graph, self.get_logdir())
        if not hasattr(graph_def, "node"):
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated "
                            "`GraphDef`")
        event = message_class("Event")()
        event.graph_def = graph_def.SerializeToString()
        self._add(event, global_step)

    def add_meta_graph(self, meta_graph_def, global_step=None):
        event = message_class("Event")()
        event.meta_graph_def = meta_graph_def.SerializeToString()
        self._add(event, global_step)

    def add_run_metadata(self, run_metadata, tag, global_step=None):
        """Adds the RunMetadata of a step under a unique tag."""
        if tag in self._seen:
            raise ValueError("The provided tag was already used for this event type")
        self._seen.add(tag)
        event = message_class("Event")()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._add(event, global_step)

    def _add(self, event, step):
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def add_event(self, event):
        """Adds an Event."""
        if self._is_closed:
            import warnings
            warnings.warn("Attempting to use a closed FileWriter. The operation will be a noop unless "
                          "the FileWriter is explicitly reopened.", stacklevel=2)
            return
        self.event_writer.add_event(event)

    def flush(self):
        """Waits until all events are in the file."""
        if not self._is_closed:
            self.event_writer.flush()

    def close(self):
        """Writes pending events and closes the file."""
        if not self._is_closed:
            self._is_closed = True
            self.event_writer.close()

    def reopen(self):
        """Continues in a new file."""
        if self._is_closed:
            self.event_writer.reopen()
            self._is_closed = False


class FileWriterCache:
    """One writer per folder."""

    _cache = {}
    _lock = threading.RLock()

    @staticmethod
    def clear():
        """Closes all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache = {}

    @staticmethod
    def get(logdir):
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._cache:
                from runnel.core.framework import get_default_graph
                FileWriterCache._cache[logdir] = FileWriter(logdir, graph=get_default_graph())
            return FileWriterCache._cache[logdir]
