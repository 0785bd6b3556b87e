"""Coordinator: threads that stop together and report their errors."""

import contextlib
import sys
import threading
import time

from runnel import errors, logging


class Coordinator:
    """Stops a group of threads when one of them asks for it or fails.

        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        while not coord.should_stop():
            ...
        coord.request_stop()
        coord.join(threads)

    Args:
      clean_stop_exception_types: exceptions that end the work but are not errors; by default OutOfRangeError, the end of
        the input.
    """

    def __init__(self, clean_stop_exception_types=None):
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (errors.OutOfRangeError,)
        self._clean = tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._exc_info = None
        self._joined = False
        self._registered_threads = set()

    def _filtered(self, ex):
        """Returns (whether it is a clean stop, the exception to raise)."""
        value = ex[1] if isinstance(ex, tuple) else ex
        return isinstance(value, self._clean), value

    def request_stop(self, ex=None):
        """Asks all threads to stop. `ex` is the reason, an exception or the result of sys.exc_info(), which join raises."""
        with self._lock:
            clean, value = (True, None) if ex is None else self._filtered(ex)
            if self._joined:
                if value is not None and not clean:
                    logging.info("Error reported to Coordinator: %s", value)
                    raise value
                return
            if self._stop_event.is_set():
                return
            if value is not None:
                if clean:
                    logging.info("Stop requested by the end of the input: %s", value)
                else:
                    if not isinstance(value, BaseException):
                        value = TypeError("Expected an exception, got %r" % (value,))
                    logging.info("Error reported to Coordinator: %s, %s", type(value), value)
                    self._exc_info = value
            self._stop_event.set()

    def clear_stop(self):
        """Makes the coordinator usable again."""
        with self._lock:
            self._joined = False
            self._exc_info = None
            self._stop_event.clear()

    def should_stop(self):
        """Tells whether a stop was requested."""
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self):
        """A context manager that passes exceptions to request_stop."""
        try:
            yield
        except BaseException:  # any exception stops the other threads
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout=None):
        """Waits for a stop request. Returns whether there was one before the timeout."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread):
        """Adds a thread that join waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(self, threads=None, stop_grace_period_secs=120, ignore_live_threads=False):
        """Waits for the threads to end, and raises the exception that one of them reported."""
        with self._lock:
            threads = self._registered_threads.union(threads or ())
            threads = list(threads)
        while any(t.is_alive() for t in threads) and not self.wait_for_stop(1.0):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in threads:
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(min(1.0, max(0.0, deadline - time.monotonic())))
        with self._lock:
            self._joined = True
            self._stop_event.set()
            late = [t.name for t in threads if t.is_alive()]
            self._registered_threads = set()
            if self._exc_info is not None:
                raise self._exc_info
            if late and not ignore_live_threads:
                raise RuntimeError("Coordinator stopped with threads still running: %s" % " ".join(late))
            if late:
                logging.info("Coordinator stopped with threads still running: %s", " ".join(late))

    @property
    def joined(self):
        return self._joined

    def raise_requested_exception(self):
        """Raises the reported exception, if there is one."""
        with self._lock:
            if self._exc_info is not None:
                raise self._exc_info


class LooperThread(threading.Thread):
    """A thread that calls a function repeatedly until the coordinator stops.

    `target(*args, **kwargs)` is called every `timer_interval_secs`, or without a pause if that is None. A subclass may
    define `run_loop`, `start_loop` and `stop_loop` instead.
    """

    def __init__(self, coord, timer_interval_secs, target=None, args=None, kwargs=None):
        super().__init__()
        self.daemon = True
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" % (coord,))
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        self._coord = coord
        self._interval = timer_interval_secs
        self._target_function = target
        self._call_args = args or ()
        self._call_kwargs = kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(coord, timer_interval_secs, target, args=None, kwargs=None):
        """Creates and starts such a thread."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self):
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._interval is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                following = time.time()
                while not self._coord.wait_for_stop(max(0.0, following - time.time())):
                    following += self._interval
                    self.run_loop()
            self.stop_loop()

    def start_loop(self):
        pass

    def stop_loop(self):
        pass

    def run_loop(self):
        if self._target_function:
            self._target_function(*self._call_args, **self._call_kwargs)
