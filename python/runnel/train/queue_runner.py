"""Queue runners: threads that fill queues."""

import threading
import weakref

from runnel import errors, logging
from runnel.core import framework
from runnel.core.framework import GraphKeys


class QueueRunner:
    """Fills a queue with a list of operations, each run by a thread of its own.

    Args:
      queue: the queue.
      enqueue_ops: operations that add elements.
      close_op: closes the queue; by default with pending additions going on.
      cancel_op: closes the queue and cancels pending additions.
      queue_closed_exception_types: errors that mean that the queue was closed; by default OutOfRangeError.
    """

    def __init__(self, queue=None, enqueue_ops=None, close_op=None, cancel_op=None,
                 queue_closed_exception_types=None, queue_runner_def=None, import_scope=None):
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            self._init_from_args(queue, enqueue_ops, close_op, cancel_op,
                                 queue_closed_exception_types)
        self._lock = threading.Lock()
        self._runs_per_session = weakref.WeakKeyDictionary()
        self._exceptions_raised = []

    def _init_from_args(self, queue, enqueue_ops, close_op, cancel_op, closed):
        if not queue or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        self._queue = queue
        self._enqueue_ops = enqueue_ops
        self._close_op = self._queue.close() if close_op is None else close_op
        self._cancel_op = (self._queue.close(cancel_pending_enqueues=True) if cancel_op is None
                           else cancel_op)
        closed = (errors.OutOfRangeError,) if closed is None else closed
        if not isinstance(closed, tuple) or not closed or not all(
                issubclass(t, errors.OpError) for t in closed):
            raise TypeError("queue_closed_exception_types, when provided, must be a tuple of "
                            "tf.error types, but saw: %s" % (closed,))
        self._queue_closed_exception_types = closed
        self._name = None if self._enqueue_ops is None else self._queue.name

    def _init_from_proto(self, proto, import_scope):
        graph = framework.get_default_graph()

        def element(name):
            return graph.as_graph_element(framework.prepend_name_scope(name, import_scope))

        self._queue = element(proto.queue_name)
        self._enqueue_ops = [element(name) for name in proto.enqueue_op_name]
        self._close_op = element(proto.close_op_name)
        self._cancel_op = element(proto.cancel_op_name)
        codes = proto.queue_closed_exception_types
        self._queue_closed_exception_types = tuple(
            errors.exception_type_from_error_code(code) for code in codes) or (
                errors.OutOfRangeError,)
        self._name = self._queue.name

    @property
    def queue(self):
        return self._queue

    @property
    def enqueue_ops(self):
        return self._enqueue_ops

    @property
    def close_op(self):
        return self._close_op

    @property
    def cancel_op(self):
        return self._cancel_op

    @property
    def queue_closed_exception_types(self):
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self):
        """The exceptions of threads without a coordinator."""
        return self._exceptions_raised

    @property
    def name(self):
        """The name of the queue's operation."""
        return self._queue.name if hasattr(self._queue, "queue_ref") else self._queue.name.split(":")[0]

    def _run(self, sess, enqueue_op, coord=None):
        is_last_told = False
        try:
            enqueue = sess.make_callable(enqueue_op)
            while True:
                if coord and coord.should_stop():
                    break
                try:
                    enqueue()
                except self._queue_closed_exception_types:
                    with self._lock:
                        self._runs_per_session[sess] -= 1
                        is_last_told = True
                        is_last = self._runs_per_session[sess] == 0
                    if is_last:
                        self._close(sess)
                    return
        except Exception as error:  # reported to the coordinator, or kept if there is none
            if coord:
                coord.request_stop(error)
            else:
                logging.error("Exception in QueueRunner: %s", error)
                with self._lock:
                    self._exceptions_raised.append(error)
                raise
        finally:
            if not is_last_told:
                with self._lock:
                    self._runs_per_session[sess] -= 1

    def _close(self, sess):
        try:
            sess.run(self._close_op)
        except Exception as error:  # the session may be gone already
            logging.debug("Ignored exception: %s", error)

    def _close_on_stop(self, sess, cancel_op, coord):
        coord.wait_for_stop()
        try:
            sess.run(cancel_op)
        except Exception as error:  # the session may be gone already
            logging.debug("Ignored exception: %s", error)

    def create_threads(self, sess, coord=None, daemon=False, start=False):
        """Creates the threads for a session; none if they run already."""
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [threading.Thread(target=self._run, args=(sess, op, coord),
                                    name="QueueRunnerThread-%s-%s" % (self.name, op.name))
                   for op in self._enqueue_ops]
        if coord:
            threads.append(threading.Thread(
                target=self._close_on_stop, args=(sess, self._cancel_op, coord),
                name="QueueRunnerThread-%s-close_on_stop" % self.name))
        for thread in threads:
            if coord:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope=None):
        """Returns its QueueRunnerDef, or None if it is outside the scope."""
        from runnel.core.protobuf import message_class
        if export_scope is not None and not self.queue.name.startswith(export_scope):
            return None

        def stripped(item):
            return framework.strip_name_scope(item.name, export_scope)

        out = message_class("QueueRunnerDef")(
            queue_name=stripped(self.queue), close_op_name=stripped(self.close_op),
            cancel_op_name=stripped(self.cancel_op),
            enqueue_op_name=[stripped(op) for op in self.enqueue_ops],
            queue_closed_exception_types=[errors.error_code_from_exception_type(t)
                                          for t in self._queue_closed_exception_types])
        return out

    @staticmethod
    def from_proto(queue_runner_def, import_scope=None):
        """Returns the runner of the default graph that a QueueRunnerDef describes."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def add_queue_runner(qr, collection=GraphKeys.QUEUE_RUNNERS):
    """Adds a runner to those that start_queue_runners starts."""
    framework.add_to_collection(collection, qr)


def start_queue_runners(sess=None, coord=None, daemon=True, start=True,
                        collection=GraphKeys.QUEUE_RUNNERS):
    """Starts all queue runners of the graph. Returns their threads."""
    if sess is None:
        from runnel.core.session import get_default_session
        sess = get_default_session()
        if sess is None:
            raise ValueError("Cannot start queue runners: No default session is registered. Use `with "
                             "sess.as_default()` or pass an explicit session to "
                             "tf.start_queue_runners(sess=sess)")
    if not hasattr(sess, "run"):
        raise TypeError("sess must be a `tf.Session` object. Given class: %s" % type(sess))
    with sess.graph.as_default():
        runners = framework.get_collection(collection)
    if not runners:
        logging.warning("`tf.train.start_queue_runners()` was called when no queue runners were defined. "
                     "You can safely remove the call to this deprecated function.")
    return [thread for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)]
