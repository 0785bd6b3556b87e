"""Ops without a family: those that stock defines without a CPU kernel; sends and receives."""

from .base import *


def fill(t):
    t.row("no_kernel", "InfeedEnqueueTuple", [[drawn("float", [2])]], {"shapes": [[2]]}, message="code-only")
    t.row("no_shapes", "InfeedEnqueueTuple", [[drawn("float", [2])]])
    here = "/job:localhost/replica:0/task:0/device:CPU:0"
    pair = {"tensor_name": "t", "send_device": here, "recv_device": here, "send_device_incarnation": 1}
    sent = node("Send", [drawn("float", [2])], pair)
    t.row("sent", "Recv", [], dict(pair, tensor_type="float"), control=[sent])
    t.row("plain", "Send", [drawn("float", [2])], pair)
