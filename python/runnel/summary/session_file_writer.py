"""Writes events through a session: writers of one folder in one session share a file, also with the summary operations of its graph."""

import os

from runnel import dtypes, raw_ops
from runnel.core.framework import name_scope
from runnel.io import any_files
from runnel.summary import graph_writers


class EventFileWriterV2:
    """Writes events to the file that a session holds for a folder. The operations for it are added to the session's graph."""

    def __init__(self, session, logdir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._session, self._logdir = session, os.fspath(logdir)
        self._is_closed = False
        any_files.makedirs(self._logdir)
        with session.graph.as_default(), name_scope("filewriter"):
            writer = graph_writers.create_file_writer(self._logdir, max_queue, flush_secs * 1000, filename_suffix or "")
            with graph_writers.always_record_summaries(), writer.as_default():
                self._event = raw_ops.PlaceholderWithDefault(input=raw_ops.Const(value=b"", dtype=dtypes.string), shape=[])
                self._add_op = graph_writers.import_event(self._event)
            self._init_op, self._flush_op, self._close_op = writer.init(), writer.flush(), writer.close()
        session.run(self._init_op)

    def get_logdir(self):
        return self._logdir

    def add_event(self, event):
        """Adds an event."""
        if not self._is_closed:
            self._session.run(self._add_op, {self._event: event.SerializeToString()})

    def flush(self):
        """Waits until all events are in the file."""
        self._session.run(self._flush_op)

    def close(self):
        """Writes pending events and closes the file."""
        if not self._is_closed:
            self.flush()
            self._session.run(self._close_op)
            self._is_closed = True

    def reopen(self):
        """Continues in a new file."""
        if self._is_closed:
            self._is_closed = False
            self._session.run(self._init_op)
