"""Queues, queue runners, the coordinator, batches."""

import threading

import pytest
from both import both


@both(graph=True)
def test_queues(tf, np):
    fifo = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []])
    add = fifo.enqueue_many([np.arange(6, dtype=np.float32).reshape(3, 2), [1, 2, 3]])
    one, two, size = fifo.dequeue(), fifo.dequeue_many(2), fifo.size()
    named = tf.FIFOQueue(3, [tf.string], names=["a"])
    add_named, take_named = named.enqueue({"a": "x"}), named.dequeue()
    priority = tf.PriorityQueue(5, [tf.string], [[]])
    add_priority = priority.enqueue_many([np.array([3, 1, 2], np.int64), ["c", "a", "b"]])
    take_priority = priority.dequeue()
    padding = tf.PaddingFIFOQueue(5, [tf.int32], [[None]])
    add_short, add_long, padded = padding.enqueue([[1]]), padding.enqueue([[1, 2, 3]]), padding.dequeue_many(2)
    closed, close = fifo.is_closed(), fifo.close()
    left = fifo.dequeue_up_to(5)
    with tf.Session() as sess:
        sess.run(add)
        out = [sess.run(size), sess.run(one), sess.run(two)]
        sess.run(add_named)
        out.append(sess.run(take_named))
        sess.run(add_priority)
        out.append([sess.run(take_priority)[1] for _ in range(3)])
        sess.run([add_short])
        sess.run([add_long])
        out.append(sess.run(padded))
        sess.run(add)
        sess.run(close)
        return out + [sess.run(closed), sess.run(left)], [fifo.name, fifo.dtypes == [tf.float32, tf.int32]], two[0].shape.as_list()


@both(raises=True)
def test_closed(tf, np):
    queue = tf.FIFOQueue(2, tf.int32)
    close, take = queue.close(), queue.dequeue()
    with tf.Session() as sess:
        sess.run(close)
        sess.run(take)


@both(raises=True)
def test_wrong_shape(tf, np):
    tf.FIFOQueue(2, tf.int32, shapes=[[2]]).enqueue([[1, 2, 3]])


@both
def test_batches(tf, np):
    tf.set_random_seed(7)
    x, y = tf.train.slice_input_producer([np.arange(10, dtype=np.float32), np.arange(10) * 2], num_epochs=2, shuffle=True, seed=3)
    batch = tf.train.batch([x, y], 4, allow_smaller_final_batch=True)
    names = tf.train.string_input_producer(["u", "v", "w"], shuffle=False).dequeue()
    shuffled = tf.train.shuffle_batch({"name": names}, 2, 20, 2, seed=4)
    joined = tf.train.batch_join([[tf.constant(1)], [tf.constant(2)]], 4)
    kept = tf.train.maybe_batch([names], tf.not_equal(names, "v"), 2)
    out = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        rows = []
        try:
            while not coord.should_stop():
                rows.append(sess.run(batch))
        except tf.errors.OutOfRangeError:
            out.append("end")
        out += [[len(row[0]) for row in rows], np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])]
        out.append(sorted(set(np.concatenate([sess.run(shuffled)["name"] for _ in range(6)]).tolist())))
        out.append(sorted(set(np.concatenate([sess.run(kept) for _ in range(6)]).tolist())))
        out.append(sess.run(joined).shape)
        coord.request_stop()
        coord.join(threads)
    return out, len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)), len(tf.get_collection(tf.GraphKeys.SUMMARIES))


@both
def test_sparse_batch(tf, np):
    number = tf.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    sparse = tf.SparseTensor([[0], [2]], tf.stack([number, number * 10]), [4])
    batch = tf.train.batch([sparse, number], 3)
    with tf.train.MonitoredSession() as sess:
        return [sess.run(batch) for _ in range(2)]


@both
def test_accumulators(tf, np):
    dense = tf.ConditionalAccumulator(tf.float32, shape=[2])
    give, take, count = dense.apply_grad([1.0, 2.0]), dense.take_grad(2), dense.num_accumulated()
    sparse = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 1])
    give_rows = sparse.apply_indexed_slices_grad(tf.IndexedSlices(tf.constant([[1.0], [3.0]]), tf.constant([1, 2]), tf.constant([4, 1])))
    taken = sparse.take_indexed_slices_grad(1)
    with tf.Session() as sess:
        sess.run(give)
        sess.run(give)
        out = [sess.run(count), sess.run(take)]
        sess.run(give_rows)
        return out + [sess.run([taken.values, taken.indices])]


@both
def test_epochs(tf, np):
    value = tf.train.limit_epochs(tf.constant(5), 2)
    out = []
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        try:
            for _ in range(3):
                out.append(sess.run(value))
        except tf.errors.OutOfRangeError:
            out.append("end")
    return out, [v.name for v in tf.local_variables()]


def test_coordinator_tells_of_errors():
    import runnel as tf
    coord = tf.train.Coordinator()

    def fail():
        with coord.stop_on_exception():
            raise ValueError("from a thread")

    threads = [threading.Thread(target=fail), threading.Thread(target=coord.wait_for_stop)]
    for thread in threads:
        thread.start()
    with pytest.raises(ValueError, match="from a thread"):
        coord.join(threads)
    assert coord.should_stop() and coord.joined
    coord.clear_stop()
    assert not coord.should_stop()
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "the end"))
    coord.join([])


def test_coordinator_tells_of_late_threads():
    import runnel as tf
    coord = tf.train.Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="late", daemon=True)
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="late"):
        coord.join([thread], stop_grace_period_secs=0.1)
    coord.clear_stop()
    coord.request_stop()
    coord.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True)
    release.set()


def test_looper():
    import runnel as tf
    coord = tf.train.Coordinator()
    calls = []

    def count():
        calls.append(1)
        if len(calls) == 3:
            coord.request_stop()

    tf.train.LooperThread.loop(coord, 0.01, count)
    coord.join()
    assert len(calls) == 3


def test_runner_error_reaches_coordinator():
    import runnel as tf
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.float32)
        bad = queue.enqueue(tf.check_numerics(tf.constant(float("nan")), "not good"))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [bad]))
        with tf.Session() as sess:
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coord)
            with pytest.raises(tf.errors.InvalidArgumentError):
                coord.join(threads)


def test_runner_proto_round_trip():
    import runnel as tf
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.float32)
        runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
        again = tf.train.QueueRunner.from_proto(runner.to_proto())
        assert again.name == runner.name and again.enqueue_ops == runner.enqueue_ops
        assert again.close_op is runner.close_op and again.queue_closed_exception_types == (tf.errors.OutOfRangeError,)


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)"])
def test_exit_with_threads_running(ending):
    """Programs that do not stop their threads end all the same."""
    import os
    import subprocess
    import sys

    from both import ROOT
    program = """
import runnel as tf
batch = tf.train.batch([tf.train.string_input_producer(["a", "b"]).dequeue()], 2)
sess = tf.Session()
tf.train.start_queue_runners(sess)
print(len(sess.run(batch)))
""" + ending
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    done = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True, timeout=30)
    assert done.stdout == "2\n" and done.returncode == (3 if ending else 0)


@both
def test_stacks_of_one_name(tf, np):
    """Two stacks are two, though they are called the same."""
    ends = []
    for value in (4.0, 5.0):
        handle = tf.raw_ops.StackV2(max_size=-1, elem_type=tf.float32, stack_name="foo")
        pushes = []
        for more in (0.0, 0.5):
            with tf.control_dependencies(pushes[-1:]):
                pushes.append(tf.raw_ops.StackPushV2(handle=handle, elem=tf.constant(value + more)))
        for _ in range(2):
            with tf.control_dependencies([pushes[-1]]):
                pushes.append(tf.raw_ops.StackPopV2(handle=handle, elem_type=tf.float32))
        ends.append(pushes[2:])
    with tf.Session() as sess:
        return [sess.run(ends) for _ in range(3)]
