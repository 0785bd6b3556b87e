"""Loops, containers and ops that stock runs only on GPUs, against the same on the CPU."""

import numpy as np
import pytest
import runnel as tf


def run(build, device, feeds=()):
    """Fetches what |build| returns, three times, so that what a step leaves behind shows."""
    with tf.Graph().as_default() as graph:
        with tf.device(device):
            inputs, fetches = build()
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(graph=graph, config=config) as session:
            return [session.run(fetches, dict(zip(inputs, feeds))) for _ in range(3)]


def check(build, *feeds):
    for on_cpu, on_gpu in zip(run(build, "/cpu:0", feeds), run(build, "/gpu:0", feeds)):
        for a, b in zip(on_cpu, on_gpu):
            if a.dtype == object:
                assert np.array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_there_is_a_gpu():
    with tf.Session() as session:
        assert any("GPU" in device.name for device in session.list_devices())


def test_loop_variables_of_all_memories():
    def build():
        def body(i, x, s, n):
            return i + 1, x * 2.0, tf.string_join([s, "a"]), n + tf.cast(i, tf.int64)

        start = [0, tf.constant(1.0), tf.constant("s"), tf.constant(0, tf.int64)]
        i, x, s, n = tf.while_loop(lambda i, *_: i < 5, body, start)
        return [], [i, x, tf.reshape(s, [1]), n]

    check(build)


def test_recurrent_network_and_its_gradients():
    def build():
        x = tf.placeholder(tf.float32, [5, 2, 3])
        w = tf.constant(np.linspace(-1, 1, 9).reshape(3, 3).astype(np.float32))
        steps = tf.TensorArray(tf.float32, 5, clear_after_read=False).unstack(x)
        outputs, numbers = tf.TensorArray(tf.float32, 5), tf.TensorArray(tf.int32, 5)

        def body(i, h, outputs, numbers):
            # The first step is read in each iteration, so its gradients add up.
            h = tf.tanh(tf.matmul(h, w) + steps.read(i) + steps.read(0))
            return i + 1, h, outputs.write(i, h), numbers.write(i, 3 * i)

        start = [0, tf.zeros([2, 3]), outputs, numbers]
        _, h, outputs, numbers = tf.while_loop(lambda i, *_: i < 5, body, start)
        y = outputs.stack()
        return [x], [y, h, numbers.stack()] + tf.gradients(tf.reduce_sum(y * y), [w, x])

    check(build, np.random.RandomState(0).randn(5, 2, 3).astype(np.float32))


@pytest.mark.parametrize("maker, reader", [("gpu", "cpu"), ("cpu", "gpu")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_lists_pass_from_device_to_device(maker, reader, dtype):
    ops = tf.raw_ops
    value = np.arange(12).reshape(3, 4).astype(dtype)
    with tf.Graph().as_default() as graph:
        shape = tf.constant([4])
        with tf.device("/%s:0" % maker):
            made = ops.TensorListFromTensor(tensor=tf.constant(value), element_shape=shape)
            made = ops.TensorListPushBack(input_handle=made, tensor=tf.constant(value[0]) * 2)
        with tf.device("/%s:0" % reader):
            more = ops.TensorListPushBack(input_handle=made, tensor=tf.constant(value[1]))
            there = ops.TensorListStack(
                input_handle=more, element_shape=shape, element_dtype=tf.as_dtype(dtype))
        with tf.device("/%s:0" % maker):
            zeros = ops.ZerosLike(x=more)
            both = ops.AddN(inputs=[more, more, zeros])
            here = ops.TensorListStack(
                input_handle=both, element_shape=shape, element_dtype=tf.as_dtype(dtype))
        want = np.concatenate([value, value[:1] * 2, value[1:2]])
        with tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            for _ in range(3):
                a, b = session.run([there, here])
                assert np.array_equal(a, want) and np.array_equal(b, 2 * want)


def placed_on(session, fetches, feed_dict=None):
    """Which device type ran each node of a step."""
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    session.run(fetches, feed_dict, options=options, run_metadata=metadata)
    where = {}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            where[node.node_name] = "GPU" if "GPU" in device.device.upper() else "CPU"
    return where


@pytest.mark.parametrize("kind", ["queue", "stage", "map"])
def test_kept_values_survive_later_steps(kind):
    # From the second step on, the product is recorded, in memory that the next step uses again.
    ops = tf.raw_ops
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [64])
        key = tf.placeholder(tf.int64, [])
        y = tf.tanh(tf.tanh(x) * 2.0 + 1.0)
        if kind == "queue":
            queue = ops.FIFOQueueV2(component_types=[tf.float32], shapes=[[64]])
            put = ops.QueueEnqueueV2(handle=queue, components=[y])
            get = ops.QueueDequeueV2(handle=queue, component_types=[tf.float32])
        elif kind == "stage":
            put = ops.Stage(values=[y], shared_name="area")
            get = ops.Unstage(dtypes=[tf.float32], shared_name="area")
        else:
            where = {"key": key, "indices": tf.constant([0]), "dtypes": [tf.float32], "shared_name": "map"}
            put, get = ops.MapStage(values=[y], **where), ops.MapUnstage(**where)
        with tf.Session(graph=graph) as session:
            feeds = [np.full(64, 0.1 * i, np.float32) for i in range(6)]
            for i, feed in enumerate(feeds):
                session.run(put, {x: feed, key: i})
            for i, feed in enumerate(feeds):
                got = np.reshape(session.run(get, {key: i}), [64])
                np.testing.assert_allclose(got, np.tanh(np.tanh(feed) * 2 + 1), rtol=1e-5)
            where = placed_on(session, [put], {x: feeds[0], key: 7})
            assert where[put.name] == "GPU", where


def test_iterators_are_on_the_cpu_unless_a_gpu_is_asked_for():
    ops = tf.raw_ops
    for device, expected in [(None, "CPU"), ("/gpu:0", "GPU")]:
        with tf.Graph().as_default() as graph:
            data = ops.RangeDataset(start=tf.constant(0, tf.int64), stop=tf.constant(5, tf.int64),
                                    step=tf.constant(1, tf.int64), output_types=[tf.int64], output_shapes=[[]])
            with tf.device(device):
                iterator = ops.IteratorV2(shared_name="", container="", output_types=[tf.int64], output_shapes=[[]])
            make = ops.MakeIterator(dataset=data, iterator=iterator)
            value = ops.IteratorGetNext(iterator=iterator, output_types=[tf.int64], output_shapes=[[]])[0]
            with tf.Session(graph=graph) as session:
                session.run(make)
                assert session.run(value) == 0
                assert placed_on(session, [value])[value.op.name] == expected
                assert session.run(value) == 2


@pytest.mark.parametrize("merges", [True, False])
@pytest.mark.parametrize("collapses", [True, False])
def test_ctc_loss(merges, collapses):
    # Stock has CTCLossV2 on GPUs only, so there is no recorded answer. The last sequence is too short for its labels.
    time, classes = 19, 300
    labels = [[3, 3, 5, 2], [7, 299], [1, 2, 3, 4, 5, 6, 7], [9, 9, 9]]
    indices = [[b, i] for b, row in enumerate(labels) for i in range(len(row))]

    def build():
        x = tf.placeholder(tf.float32, [time, 4, classes])
        loss, gradient = tf.raw_ops.CTCLossV2(
            inputs=x, labels_indices=tf.constant(indices, tf.int64), labels_values=tf.constant(sum(labels, [])),
            sequence_length=tf.constant([19, 7, 12, 2]), preprocess_collapse_repeated=collapses,
            ctc_merge_repeated=merges, ignore_longer_outputs_than_inputs=True)
        return [x], [loss, gradient]

    check(build, np.random.RandomState(1).randn(time, 4, classes).astype(np.float32))


@pytest.mark.parametrize("count, most", [(1, 5), (700, 40), (3000, 3000)])
def test_many_boxes(count, most):
    def build():
        boxes, scores = tf.placeholder(tf.float32, [count, 4]), tf.placeholder(tf.float32, [count])
        args = {"boxes": boxes, "scores": scores, "max_output_size": tf.constant(most), "iou_threshold": tf.constant(0.3)}
        found = tf.raw_ops.NonMaxSuppressionV3(score_threshold=tf.constant(-0.5), **args)
        padded, valid = tf.raw_ops.NonMaxSuppressionV4(
            score_threshold=tf.constant(0.0), pad_to_max_output_size=True, **args)
        return [boxes, scores], [found, padded, valid]

    random = np.random.RandomState(2)
    corner, size = random.rand(count, 2), random.rand(count, 2) * 0.2
    scores = np.round(random.randn(count), 2)  # many are equal
    check(build, np.concatenate([corner, corner + size], 1).astype(np.float32), scores.astype(np.float32))
