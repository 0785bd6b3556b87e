"""Cancellation of functions that run eagerly."""

import threading

import numpy as np
import pytest


@pytest.fixture(scope="module")
def tf():
    import runnel.v2 as tf
    return tf


def test_a_function_that_waits_is_cancelled(tf):
    from runnel.eager.cancellation import CancellationManager
    queue = tf.queue.FIFOQueue(1, [tf.int32])
    take = tf.function(queue.dequeue).get_concrete_function()
    manager = CancellationManager()
    timer = threading.Timer(0.1, manager.start_cancel)
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        manager.get_cancelable_function(take)()
    timer.join()
    assert manager.is_cancelled


def test_a_manager_that_was_cancelled_refuses(tf):
    from runnel.eager.cancellation import CancellationManager
    queue = tf.queue.FIFOQueue(1, [tf.int32])
    take = tf.function(queue.dequeue).get_concrete_function()
    manager = CancellationManager()
    queue.enqueue(37)
    assert int(manager.get_cancelable_function(take)()) == 37
    manager.start_cancel()
    with pytest.raises(tf.errors.CancelledError):
        manager.get_cancelable_function(take)()
    queue.enqueue(38)  # ops outside run as ever
    assert int(take()) == 38


def test_a_manager_outlives_the_op_under_it(tf):
    from runnel import _core

    def leave():
        _core.cancellation_enter(None)  # ends the last reference but that of the op which runs this
        return np.float32(3)

    _core.cancellation_enter(_core.cancellation_new())
    try:
        assert float(tf.function(lambda: 2 * tf.numpy_function(leave, [], tf.float32))()) == 6
    finally:
        _core.cancellation_enter(None)
