#!/usr/bin/env python3
"""Sends calls that normally only masters make to stock's tasks and to ours: logging_test.py RUNNEL

Compares the transfers between tasks that Logging reports, the numbers of GetStepSequence, and the same transfers in
the metadata of a step. Both kinds of tasks must answer alike.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
import grpc  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as stock  # noqa: E402
from support.ports import free_ports  # noqa: E402
from support.stock import SERVER  # noqa: E402
from support.wire import field, fields, varint  # noqa: E402
from tensorflow.core.framework import device_attributes_pb2, graph_pb2, step_stats_pb2  # noqa: E402

RUNNEL = sys.argv[1]
SESSION = "0123456789abcdef"
PS, WORKER = "/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:0"


def part(incarnation, device, is_sender):
    graph = graph_pb2.GraphDef()
    graph.versions.producer = 2474
    if is_sender:
        value = graph.node.add(name="v", op="Const", device=device)
        value.attr["dtype"].type = 1
        value.attr["value"].tensor.CopyFrom(stock.make_tensor_proto([1.0] * 100))
    node = graph.node.add(name="v_S1", op="_Send" if is_sender else "_Recv", device=device,
                          input=["v"] if is_sender else [])
    node.attr["T" if is_sender else "tensor_type"].type = 1
    node.attr["tensor_name"].s = b"edge_6_v"
    node.attr["send_device"].s, node.attr["recv_device"].s = PS.encode(), WORKER.encode()
    node.attr["send_device_incarnation"].i = incarnation if incarnation < 2**63 else incarnation - 2**64
    return graph.SerializeToString()


def received(metadata):
    """(device, bytes, what from where) of each value that came from another task."""
    rows = set()
    for device in metadata.step_stats.dev_stats:
        for row in device.node_stats:
            if row.node_name == "RecvTensor":
                size = row.output[0].tensor_description.allocation_description.requested_bytes
                label = re.sub(r"\[[\d.]+Mb/s\] |edge_\d+_", "", row.timeline_label)
                rows.add((device.device, size, label))
    return rows


def numberless(text):
    """Without the numbers of Sends and Recvs, which count on from session to session in stock."""
    return re.sub(r"_[GS]\d+", "_N", text)


class Pair:
    """A worker and a parameter server of one kind, and the calls a master would make."""

    def __init__(self, is_stock):
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
        cluster = json.dumps({"worker": self.addresses[:1], "ps": self.addresses[1:]})
        start = [sys.executable, "-c", SERVER, cluster] if is_stock else [RUNNEL, "server", "--cluster", cluster]
        self.tasks = [subprocess.Popen(start + ([job, "0"] if is_stock else ["--job", job, "--task", "0"]),
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                      for job in ("worker", "ps")]
        for task in self.tasks:
            assert task.stdout.readline().startswith("grpc://")
        self.channels = [grpc.insecure_channel(address) for address in self.addresses]

    def call(self, task, method, request):
        try:
            return self.channels[task].unary_unary("/tensorflow.WorkerService/" + method)(request, timeout=20)
        except grpc.RpcError as error:
            return error.code().name, error.details()

    def open(self):
        device = device_attributes_pb2.DeviceAttributes.FromString(next(fields(self.call(1, "GetStatus", b"")))[1])
        self.handles = []
        for task, (job, name) in enumerate((("worker", WORKER), ("ps", PS))):
            self.call(task, "CreateWorkerSession", field(1, SESSION) + field(2, field(2, job) + field(5, "grpc")))
            graph = part(device.incarnation, name, job == "ps")
            answer = self.call(task, "RegisterGraph", field(1, SESSION) + field(2, graph) + field(6, 1))
            self.handles.append(dict(fields(answer))[1])

    def step(self, number):
        def run(task):
            return self.call(task, "RunGraph", field(1, self.handles[task]) + field(2, number) + field(8, SESSION) +
                             field(9, 1) + field(10, 1))
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(run, (0, 1))) == [b"\x1a\x00"] * 2
        for task in (0, 1):
            self.call(task, "CleanupGraph", field(1, number))

    def logged(self, task, request):
        """What an answer to Logging says, without its times."""
        out = []
        for _, labeled in fields(self.call(task, "Logging", request)):
            step, stats = (value for _, value in fields(labeled))
            text = str(step_stats_pb2.StepStats.FromString(stats))
            row = step_stats_pb2.StepStats.FromString(stats).dev_stats[0].node_stats[0]
            assert row.op_end_rel_micros == row.all_end_rel_micros > 0 and row.all_start_micros > 10**15
            size = row.output[0].tensor_description.allocation_description.requested_bytes
            rate = np.float32(8 * size) / np.float32(row.op_end_rel_micros)
            assert f"[{rate:f}Mb/s]" in row.timeline_label, row
            out.append((step, re.sub(r"micros: \d+|\[[\d.]+Mb/s\]", "", text)))
        return out

    def tell(self):
        """The answers to everything."""
        self.open()
        off, on, clear = field(4, 1), field(1, 1), field(2, 1)
        yield self.logged(0, off)
        self.step(70)
        yield "not switched on", self.logged(0, field(3, 70))
        self.call(0, "Logging", on)
        self.call(1, "Logging", on)
        for number in (71, 72, 73):
            self.step(number)
        yield "received", self.logged(0, field(3, 71))
        yield "fetched before", self.logged(0, field(3, 71))
        yield "the sender", self.logged(1, field(3, 71))
        yield "several, packed", self.logged(0, field(3, varint(73) + varint(72) + varint(1)))
        self.step(74)
        self.call(0, "Logging", off)
        yield "switched off since", self.logged(0, field(3, 74))
        self.step(75)
        yield "switched off", self.logged(0, field(3, 75))
        for request in (on, on, off):
            self.call(0, "Logging", request)
        self.step(76)
        yield "switched on twice, off once", self.logged(0, field(3, 76) + clear)
        self.step(77)
        self.call(0, "Logging", clear)
        yield "cleared", self.logged(0, field(3, 77))
        yield self.call(0, "Tracing", b"")
        first = self.call(0, "GetStepSequence", field(1, 5) + field(1, 9))
        yield "the same numbers again", first == self.call(0, "GetStepSequence", field(1, varint(5) + varint(9)))
        rows = [(number, list(fields(each))) for number, each in fields(first)]
        yield [(number, graph, 0 < step[1] < 2**57) for number, (graph, step) in rows]
        yield self.call(0, "GetStepSequence", b"")

    def traced(self):
        """Which values the metadata of each of some steps says that tasks have got of others."""
        tf = stock.compat.v1
        steps = []
        with tf.Graph().as_default():
            fed = tf.placeholder(tf.float32, [], name="fed")
            with tf.device("/job:ps"):
                v = tf.get_variable("v", [1000], use_resource=False)
                back = tf.add(fed, 1.0, name="back")
            with tf.device("/job:worker"):
                total = tf.reduce_sum(v.read_value() * back, name="total")
            with tf.Session("grpc://" + self.addresses[0]) as session:
                session.run(v.initializer)
                for i in range(6):
                    metadata = tf.RunMetadata()
                    session.run(total, {fed: i}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
                                run_metadata=metadata)
                    steps.append(received(metadata))
        return steps

    def described(self):
        """Nodes of the parts of a step, of its trace and of its cost model."""
        tf = stock.compat.v1
        config = tf.ConfigProto()
        config.graph_options.build_cost_model = 2
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        steps = []
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [2], name="x")
            with tf.device("/job:ps"):
                y = tf.add(x, 1.0, name="y")
            with tf.device("/job:worker"):
                z = tf.nn.relu(y, name="z")
            with tf.Session("grpc://" + self.addresses[0], config=config) as session:
                for i in range(4):
                    metadata = tf.RunMetadata()
                    session.run([z, y], {x: [1, 2]}, options=options if i < 2 else None, run_metadata=metadata)
                    graphs = sorted(sorted((numberless(node.name), node.op, [numberless(each) for each in node.input], node.device)
                                           for node in graph.node) for graph in metadata.partition_graphs)
                    ran = {numberless(node.timeline_label) for device in metadata.step_stats.dev_stats for node in device.node_stats
                           if node.node_name != "RecvTensor"}
                    costs = sorted((numberless(node.name), node.device, node.is_final, len(node.input_info), len(node.output_info))
                                   for node in metadata.cost_graph.node)
                    steps.append((graphs, sorted(ran), metadata.HasField("cost_graph"), costs))
        return steps

    def close(self):
        for task in self.tasks:
            task.kill()
            task.wait()


def main():
    pairs = [Pair(is_stock) for is_stock in (True, False)]
    try:
        # A row of stock's is missing now and then: its task answers before it has noted it.
        theirs, ours = (pair.traced() for pair in pairs)
        assert set().union(*theirs) == ours[0] and len(ours[0]) == 3, f"stock: {theirs}\nours:  {ours}"
        assert all(step == ours[0] for step in ours), ours
        for theirs, ours in zip(*(pair.described() for pair in pairs), strict=True):
            assert theirs == ours, f"stock: {theirs}\nours:  {ours}"
        for theirs, ours in zip(*(pair.tell() for pair in pairs), strict=True):
            assert theirs == ours, f"stock: {theirs}\nours:  {ours}"
            print(theirs)
    finally:
        for pair in pairs:
            pair.close()


main()
