"""Files of events: a thread writes them from a queue, so a training loop does not wait for the disk."""

import collections
import os
import socket
import threading
import time

from runnel.core.protobuf import message_class
from runnel.io import any_files
from runnel.io.record_io import TFRecordWriter

_CLOSE, _FLUSH = object(), object()


class EventsWriter:
    """Writes one file of events, from the calling thread. `prefix` and the time, the host and the process are its name."""

    def __init__(self, prefix, suffix=""):
        self._path = "%s.out.tfevents.%010d.%s.%d%s" % (prefix, int(time.time()), socket.gethostname(), os.getpid(), suffix or "")
        self._records = TFRecordWriter(self._path)
        first = message_class("Event")()
        first.wall_time = time.time()
        first.file_version = "brain.Event:2"
        self.WriteEvent(first)
        self.Flush()

    def FileName(self):
        return self._path

    def WriteEvent(self, event):
        self._records.write(event.SerializeToString())

    def Flush(self):
        self._records.flush()

    def Close(self):
        self._records.close()


class _Queue:
    """A bounded queue between the callers and the thread. A failure of the thread reaches every caller, those that wait included."""

    def __init__(self, limit):
        self._limit = limit
        self._items = collections.deque()
        self._changed = threading.Condition()
        self.failure = None

    def put(self, item):
        with self._changed:
            while len(self._items) >= self._limit and self.failure is None:
                self._changed.wait()
            if self.failure is not None:
                raise self.failure
            self._items.append(item)
            self._changed.notify_all()

    def get(self):
        with self._changed:
            while not self._items:
                self._changed.wait()
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def fail(self, error):
        with self._changed:
            self.failure = error
            self._items.clear()
            self._changed.notify_all()


class _Thread(threading.Thread):
    """Writes what arrives in a queue. Ends after _CLOSE, or when a write fails."""

    def __init__(self, queue, events_writer, flush_secs):
        super().__init__(name="runnel-events", daemon=True)
        self._queue, self._ev_writer, self._flush_secs = queue, events_writer, flush_secs
        self.has_flushed = threading.Event()

    def run(self):
        try:
            self._work()
        except Exception as error:  # the next call raises it: no caller would see it in this thread
            self._queue.fail(error)
        finally:
            self.has_flushed.set()

    def _work(self):
        due = time.time() + self._flush_secs
        while True:
            item = self._queue.get()
            is_event = item is not _CLOSE and item is not _FLUSH
            if is_event:
                self._ev_writer.WriteEvent(item)
            if not is_event or time.time() > due:
                self._ev_writer.Flush()
                due = time.time() + self._flush_secs
            if item is _FLUSH:
                self.has_flushed.set()
            if item is _CLOSE:
                return

    def close_file(self):
        self._ev_writer.Close()


class EventFileWriter:
    """Writes events to a new file in a folder.

    Args:
      logdir: the folder, created if needed.
      max_queue: how many events may wait to be written.
      flush_secs: how long events may stay in memory.
      filename_suffix: suffix of the file's name.
    """

    def __init__(self, logdir, max_queue=10, flush_secs=120, filename_suffix=None):
        self._logdir = os.fspath(logdir)
        self._options = max(1, max_queue), flush_secs, filename_suffix
        any_files.makedirs(self._logdir)
        self._open()

    def _open(self):
        max_queue, flush_secs, suffix = self._options
        self._queue = _Queue(max_queue)
        self._worker = _Thread(self._queue, EventsWriter(os.path.join(self._logdir, "events"), suffix), flush_secs)
        self._worker.start()
        self._is_closed = False

    def get_logdir(self):
        return self._logdir

    def add_event(self, event):
        """Adds an event. Raises what an earlier write failed with."""
        if not self._is_closed:
            self._queue.put(event)

    def flush(self):
        """Waits until all events are in the file."""
        if self._is_closed:
            return
        self._worker.has_flushed.clear()
        self._queue.put(_FLUSH)
        self._worker.has_flushed.wait()
        if self._queue.failure is not None:
            raise self._queue.failure

    def close(self):
        """Writes pending events and closes the file."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._queue.put(_CLOSE)
            self._worker.join()
            if self._queue.failure is not None:
                raise self._queue.failure
        finally:
            self._worker.close_file()

    def reopen(self):
        """Continues in a new file."""
        if self._is_closed:
            self._open()
