"""Collective ops between the devices of one process."""

import numpy as np
import pytest
import runnel as tf
from runnel.ops import collective_ops

raw = tf.raw_ops
N = 4


def keys(group, instance):
    return {"group_size": N, "group_key": group, "instance_key": instance}


def values(dtype, shape=(8,)):
    rng = np.random.RandomState(3)
    return [(rng.uniform(-4, 4, shape) * 2).astype(dtype) for _ in range(N)]


def run_on_devices(build, times=1):
    """Runs what build(i) makes on device i of a session with N devices, several times."""
    with tf.Graph().as_default():
        outs = []
        for i in range(N):
            with tf.device("/cpu:%d" % i):
                outs.append(build(i))
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": N})) as session:
            for _ in range(times):
                result = session.run(outs)
    return result


MERGES = {"Add": np.add, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}


@pytest.mark.parametrize("merge", sorted(MERGES))
@pytest.mark.parametrize("final", ["Id", "Div"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_reduce(merge, final, dtype):
    xs = values(dtype)
    want = xs[0]
    for x in xs[1:]:
        want = MERGES[merge](want, x)
    if final == "Div":
        want = np.trunc(want / N).astype(dtype) if dtype.startswith("int") else (want / np.array(N, dtype)).astype(dtype)
    got = run_on_devices(
        lambda i: raw.CollectiveReduce(input=xs[i], merge_op=merge, final_op=final, subdiv_offsets=[0], **keys(1, 1)),
        times=3,
    )
    for one in got:
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, want)
    got = run_on_devices(lambda i: raw.CollectiveReduceV2(input=xs[i], merge_op=merge, final_op=final, ordering_token=[], timeout_seconds=30, **keys(1, 1)))
    for one in got:
        np.testing.assert_array_equal(one, want)


def test_rows():
    xs = values("float32", (4, 2))
    for gather in (
        lambda i: raw.CollectiveGather(input=xs[i], shape=[16, 2], **keys(1, 2)),
        lambda i: raw.CollectiveGatherV2(input=xs[i], ordering_token=[], **keys(1, 2)),
    ):
        for one in run_on_devices(gather):
            np.testing.assert_array_equal(one, np.concatenate(xs))
    scattered = run_on_devices(lambda i: raw.CollectiveReduceScatterV2(input=xs[i], merge_op="Add", final_op="Id", ordering_token=[], **keys(1, 3)))
    np.testing.assert_array_equal(np.concatenate(scattered), xs[0] + xs[1] + xs[2] + xs[3])
    exchanged = run_on_devices(lambda i: raw.CollectiveAllToAllV2(input=xs[i], ordering_token=[], **keys(1, 4)))
    for i, one in enumerate(exchanged):
        np.testing.assert_array_equal(one, np.stack([x[i] for x in xs]))


def test_broadcast():
    x = values("float32")[0]

    def first(i):
        if i == 1:
            return raw.CollectiveBcastSend(input=x, shape=[8], **keys(1, 1))
        return raw.CollectiveBcastRecv(T=tf.float32, shape=[8], **keys(1, 1))

    def second(i):
        if i == 3:
            return raw.CollectiveBcastSendV2(input=x, **keys(1, 1))
        return raw.CollectiveBcastRecvV2(T=tf.float32, shape=[8], **keys(1, 1))

    for build in (first, second):
        for one in run_on_devices(build, times=2):
            np.testing.assert_array_equal(one, x)


def test_communicator():
    xs = values("float32", (4, 2))

    def build(i):
        handle = raw.CollectiveInitializeCommunicator(group_key=7, rank=N - 1 - i, group_size=N)
        none = np.zeros([0, 0], np.int32)
        total = raw.CollectiveReduceV3(input=xs[i], communicator=handle, group_assignment=none, reduction="Add")
        with tf.control_dependencies([total]):
            swapped = raw.CollectiveAllToAllV3(input=xs[i], communicator=handle, group_assignment=none)
        return total, swapped

    for i, (total, swapped) in enumerate(run_on_devices(build)):
        np.testing.assert_array_equal(total, xs[3] + xs[2] + xs[1] + xs[0])
        np.testing.assert_array_equal(swapped, np.stack([x[N - 1 - i] for x in xs[::-1]]))


def test_disagreement():
    xs = values("float32")
    with pytest.raises(tf.errors.InternalError, match="instance 1 expected type"):
        run_on_devices(
            lambda i: (
                raw.CollectiveGatherV2(input=xs[i], ordering_token=[], **keys(1, 1))
                if i == 2
                else raw.CollectiveReduceV2(input=xs[i], ordering_token=[], merge_op="Add", final_op="Id", **keys(1, 1))
            )
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
        run_on_devices(lambda i: raw.CollectiveReduceV2(input=xs[i][: i + 1], ordering_token=[], merge_op="Add", final_op="Id", **keys(1, 1)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="all-to-all first dimension size"):
        run_on_devices(lambda i: raw.CollectiveAllToAllV2(input=xs[i], ordering_token=[], **keys(1, 1)))


def test_deadline():
    with pytest.raises(tf.errors.DeadlineExceededError, match="timed out"):
        run_on_devices(
            lambda i: (
                tf.constant(1.0)
                if i
                else raw.CollectiveReduceV2(input=1.0, ordering_token=[], merge_op="Add", final_op="Id", timeout_seconds=0.3, **keys(1, 1))
            )
        )


def test_group_of_one():
    with tf.Graph().as_default(), tf.Session() as session:
        one = {"group_size": 1, "group_key": 1, "instance_key": 1}
        x = np.arange(6, dtype=np.float32)
        out = raw.CollectiveReduceV2(input=x, ordering_token=[], merge_op="Add", final_op="Div", **one)
        np.testing.assert_array_equal(session.run(out), x)


def test_inner_names():
    """The functions of tensorflow.python.ops.collective_ops."""
    xs = values("float32", (4, 2))
    c = collective_ops

    def build(i):
        send = c.broadcast_send(tf.constant(xs[0]), [4, 2], tf.float32, N, 1, 3) if i == 0 else None
        recv = c.broadcast_recv([4, 2], tf.float32, N, 1, 3) if i else None
        send_v2 = c.broadcast_send_v2(xs[1], N, 1, 4) if i == 1 else None
        recv_v2 = c.broadcast_recv_v2([4, 2], tf.float32, N, 1, 4) if i != 1 else None
        communicator = c.initialize_communicator(2, i, N)
        total = c.all_reduce_v3(communicator, xs[i])
        with tf.control_dependencies([total]):
            swapped = c.all_to_all_v3(communicator, xs[i])
        return [
            c.all_reduce(xs[i], N, 1, 1),
            c.all_reduce_v2(xs[i], N, 1, 2, final_op="Div", name="mean"),
            send if send is not None else recv,
            send_v2 if send_v2 is not None else recv_v2,
            c.all_gather(xs[i], N, 1, 5),
            c.all_gather_v2(xs[i], N, 1, 6),
            c.all_to_all_v2(xs[i], N, 1, 7),
            total,
            swapped,
        ]

    total = xs[0] + xs[1] + xs[2] + xs[3]
    for i, one in enumerate(run_on_devices(build)):
        swapped = np.stack([x[i] for x in xs])
        want = [total, total / N, xs[0], xs[1], np.concatenate(xs), np.concatenate(xs), swapped, total, swapped]
        for a, b in zip(one, want):
            np.testing.assert_array_equal(a, b)
    with tf.Graph().as_default():
        for call, text in (
            (lambda: c.all_reduce(1.0, 0, 1, 1), "Parameter `group_size` to all_reduce must be at least 1. Received: 0."),
            (lambda: c.broadcast_recv([2], tf.float32, 1, 1, 1), "to broadcast_send must be at least 2. Received: 1."),
            (
                lambda: c.broadcast_send(tf.zeros([2]), [3], tf.float32, 2, 1, 1),
                "not equal to declared shape. Received (2,), expected [3].",
            ),
            (
                lambda: c.broadcast_send(tf.zeros([2]), [2], tf.int32, 2, 1, 1),
                "Received <dtype: 'float32'>, expected <dtype: 'int32'>.",
            ),
        ):
            with pytest.raises(ValueError) as error:
                call()
            assert text in str(error.value)
