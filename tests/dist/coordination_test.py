#!/usr/bin/env python3
"""Eager contexts that are tasks of a cluster: coordination_test.py LIBTENSORFLOW

Contexts of the C API, each in a process of its own, reduce together, meet at barriers, share keys and values, and learn of each other's
end; alone and with stock TensorFlow's contexts.
"""

import ctypes
import os
import struct
import subprocess
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support

SILENCE_MS = 2000
STOCK = """
import os, sys
import numpy as np, tensorflow as tf
from tensorflow.core.protobuf import tensorflow_server_pb2
from tensorflow.python.eager import context
index, count = int(sys.argv[2]), int(sys.argv[3])
server_def = tensorflow_server_pb2.ServerDef.FromString(bytes.fromhex(sys.argv[1]))
ctx = context.context()
ctx.configure_coordination_service(service_type="standalone", service_leader="/job:worker/replica:0/task:0", coordinated_jobs=[])
ctx.configure_collective_ops(collective_leader="/job:worker/replica:0/task:0")
ctx.enable_collective_ops(server_def)
for step in range(3):
    out = tf.raw_ops.CollectiveReduceV2(input=tf.constant([1.0, 2.0, 3.0]) * (index + 1), group_size=count, group_key=1, instance_key=7,
                                        ordering_token=[], merge_op="Add", final_op="Id")
ctx.set_config_key_value("from/%d" % index, "value %d" % index)
values = [ctx.get_config_key_value("from/%d" % i) for i in range(count)]
print(out.numpy().tolist(), values, flush=True)
ctx.wait_at_barrier("end", 30000)
"""


def field(number, value):
    """A field of a message: bytes, or a number."""

    def varint(n):
        out = b""
        while n >= 0x80:
            out += bytes([n & 0x7F | 0x80])
            n >>= 7
        return out + bytes([n])

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def server_def(addresses, index):
    leader = b"/job:worker/replica:0/task:0"
    tasks = b"".join(field(2, field(1, i) + field(2, a.encode())) for i, a in enumerate(addresses))
    cluster = field(1, field(1, b"worker") + tasks)
    job = field(1, b"worker") + field(2, len(addresses))
    coordination = field(1, b"standalone") + field(2, leader) + field(4, 60000) + field(5, SILENCE_MS) + field(10, job)
    experimental = field(1, leader) + field(23, coordination)
    return field(1, cluster) + field(2, b"worker") + field(3, index) + field(4, field(16, experimental)) + field(5, b"grpc")


class Context:
    """A context of the C API."""

    def __init__(self, library, definition):
        self.tf = ctypes.CDLL(library)
        for name in ("TF_NewStatus", "TFE_NewContextOptions", "TFE_NewContext", "TFE_NewOp", "TF_AllocateTensor", "TF_TensorData",
                     "TFE_NewTensorHandle", "TFE_TensorHandleResolve", "TF_NewBuffer", "TF_NewBufferFromString"):
            getattr(self.tf, name).restype = ctypes.c_void_p
        self.tf.TF_Message.restype = ctypes.c_char_p
        self.status = ctypes.c_void_p(self.tf.TF_NewStatus())
        self.context = self.call("TFE_NewContext", ctypes.c_void_p(self.tf.TFE_NewContextOptions()))
        self.call("TFE_EnableCollectiveOps", self.context, definition, ctypes.c_size_t(len(definition)))

    def call(self, name, *arguments):
        result = getattr(self.tf, name)(*arguments, self.status)
        code = self.tf.TF_GetCode(self.status)
        if code:
            raise RuntimeError("%d: %s" % (code, self.tf.TF_Message(self.status).decode()))
        return ctypes.c_void_p(result)

    def handle(self, dtype, shape, data):
        dims = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        tensor = ctypes.c_void_p(self.tf.TF_AllocateTensor(dtype, dims, len(shape), ctypes.c_size_t(len(data))))
        ctypes.memmove(self.tf.TF_TensorData(tensor), data, len(data))
        return self.call("TFE_NewTensorHandle", tensor)

    def reduce(self, values, count, instance=7):
        op = self.call("TFE_NewOp", self.context, b"CollectiveReduceV2")
        self.call("TFE_OpAddInput", op, self.handle(1, [len(values)], struct.pack("%df" % len(values), *values)))
        for key in (count, 1, instance):
            self.call("TFE_OpAddInput", op, self.handle(3, [], struct.pack("i", key)))
        self.call("TFE_OpAddInputList", op, (ctypes.c_void_p * 1)(), 0)
        for name, text in ((b"merge_op", b"Add"), (b"final_op", b"Id")):
            self.tf.TFE_OpSetAttrString(op, name, text, ctypes.c_size_t(len(text)))
        outs = (ctypes.c_void_p * 1)()
        self.call("TFE_Execute", op, outs, ctypes.byref(ctypes.c_int(1)))
        tensor = self.call("TFE_TensorHandleResolve", ctypes.c_void_p(outs[0]))
        return list(struct.unpack("%df" % len(values), ctypes.string_at(self.tf.TF_TensorData(tensor), 4 * len(values))))

    def put(self, key, value):
        self.call("TFE_InsertConfigKeyValue", self.context, key.encode(), value.encode())

    def get(self, key, timeout_ms=30000):
        buffer = ctypes.c_void_p(self.tf.TF_NewBuffer())
        self.call("TFE_GetConfigKeyValue", self.context, key.encode(), ctypes.c_int64(timeout_ms), buffer)
        data, length = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_size_t * 2)).contents
        return ctypes.string_at(data, length).decode()

    def barrier(self, name, timeout_ms=30000):
        self.call("TFE_WaitAtBarrier", self.context, name.encode(), ctypes.c_int64(timeout_ms))

    def states(self, count):
        names = "\n".join("/job:worker/replica:0/task:%d" % i for i in range(count)).encode()
        buffer = ctypes.c_void_p(self.tf.TF_NewBufferFromString(names, ctypes.c_size_t(len(names))))
        states = (ctypes.c_int * count)()
        self.call("TFE_GetTaskStates", self.context, buffer, states)
        return list(states)

    def close(self):
        self.tf.TFE_DeleteContext(self.context)


def error_of(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it did not fail")


def expect_late(function, *arguments):
    error = error_of(function, *arguments)
    assert error.startswith("4:"), error  # DEADLINE_EXCEEDED


def member(library, what, definition, index, count):
    context = Context(library, bytes.fromhex(definition))
    for _ in range(3):
        out = context.reduce([v * (index + 1) for v in (1.0, 2.0, 3.0)], count)
    context.put("from/%d" % index, "value %d" % index)
    values = [context.get("from//%d/" % i) for i in range(count)]
    print(out, values, flush=True)
    if what == "values":
        assert "already exists" in error_of(context.put, "from/%d" % index, "again")
        expect_late(context.get, "nothing", 100)
        assert context.states(count) == [3] * count
        if index == 0:
            expect_late(context.barrier, "alone", 300)
        for _ in range(3):
            context.barrier("again")
        if index == 0:
            context.call("TFE_DeleteConfigKeyValue", context.context, b"from")
        context.barrier("deleted")
        expect_late(context.get, "from/0", 100)
    if what == "death" and index == count - 1:
        time.sleep(60)
    if what == "death":
        start = time.monotonic()
        error = error_of(context.reduce, [1.0], count, 8)  # the last member does not come
        assert "/job:worker/replica:0/task:%d" % (count - 1) in error, error
        assert time.monotonic() - start < SILENCE_MS / 1000 * 2 + 4
        while index == 0 and context.states(count)[-1] != 4 and time.monotonic() - start < 20:
            time.sleep(0.1)  # the connection broke before the heartbeats were missed
        assert index != 0 or context.states(count)[-1] == 4
    elif what == "report" and index == count - 1:
        context.call("TFE_ReportErrorToCluster", context.context, 3, b"no more data")
    elif what == "report":
        error = error_of(context.reduce, [1.0], count, 8)
        assert error.startswith("3:") and "no more data" in error, error
    if what in ("death", "report"):
        print("ended", flush=True)
        time.sleep(60)  # until it is killed: the others may still need it
    context.barrier("end")
    context.close()


def start(library, what, addresses, index):
    arguments = [what, server_def(addresses, index).hex(), str(index), str(len(addresses))]
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), library, "member", *arguments], stdout=subprocess.PIPE, text=True)


def first_line(count):
    factor = count * (count + 1) / 2
    return str([factor, 2 * factor, 3 * factor]) + " " + str(["value %d" % i for i in range(count)])


def check_ours(library, what, count=3):
    from support.ports import free_ports
    addresses = ["127.0.0.1:%d" % port for port in free_ports(count)]
    members = [start(library, what, addresses, i) for i in range(count)]
    try:
        for one in members:
            line = one.stdout.readline().strip()
            assert line == first_line(count), line
        if what == "death":
            members[-1].kill()
        for one in members:
            if what == "values":
                assert one.wait(60) == 0
            elif one is not members[-1]:
                assert one.stdout.readline() == "ended\n"
    finally:
        for one in members:
            one.kill()
            one.wait()


def check_mixed(library, stock_index):
    from support import stock
    from support.ports import free_ports
    addresses = ["127.0.0.1:%d" % port for port in free_ports(2)]
    printed = []
    definition = server_def(addresses, stock_index).hex()
    thread = threading.Thread(target=lambda: printed.append(stock.run(STOCK, definition, str(stock_index), "2")))
    thread.start()
    ours = start(library, "mixed", addresses, 1 - stock_index)
    try:
        out = ours.communicate(timeout=120)[0]
        assert ours.returncode == 0 and out.strip() == first_line(2), out
        thread.join(60)
        assert printed and printed[0].strip() == first_line(2), printed
    finally:
        ours.kill()
        ours.wait()


def main():
    library = sys.argv[1]
    if len(sys.argv) > 2:
        member(library, sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
        return
    for what in ("values", "death", "report"):
        check_ours(library, what)
        print(what, flush=True)
    for stock_index in (1, 0):
        check_mixed(library, stock_index)
        print("with stock as task %d" % stock_index, flush=True)


main()
