"""Function calls and functional control flow. Cases have no function bodies, so these only check arguments."""

from .base import *


def fill(t):
    yes = scalar("bool", True)
    for op in ("PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient"):
        t.row("no_function", op, [[drawn("float", [2])]], {"Tout": ["float"]})
    for op in ("If", "StatelessIf"):
        t.row("no_branches", op, [yes, [drawn("float", [2])]], {"Tout": ["float"]})
    for op in ("While", "StatelessWhile"):
        t.row("no_body", op, [[drawn("float", [2])]])
    for op in ("Case", "StatelessCase"):
        t.row("no_branches", op, [scalar("int32", 0), [drawn("float", [2])]], {"Tout": ["float"]})
    t.row("no_function", "RemoteCall", [scalar("string", "CPU:0"), [drawn("float", [2])]], {"Tout": ["float"]})
    t.row("no_body", "For", [scalar("int32", 0), scalar("int32", 1), scalar("int32", 1), [drawn("float", [2])]])
    t.row("made", "FakeParam", [], {"dtype": "float", "shape": [2, 3]}, undefined=[0])
    t.row("scalar", "FakeParam", [], {"dtype": "int32", "shape": []}, undefined=[0])
    t.row("here", "DeviceIndex", [], {"device_names": ["GPU", "CPU"]})
    t.row("nowhere", "DeviceIndex", [], {"device_names": ["GPU", "TPU"]})
    for d in ("float", "double", "int32", "uint8", "int16", "int8", "int64"):
        t.row(d, "ToBool", [scalar(d, 3)])
        t.row("zero_" + d, "ToBool", [scalar(d, 0)])
    t.row("bool", "ToBool", [yes])
    t.row("string", "ToBool", [scalar("string", "a")])
    t.row("empty_string", "ToBool", [scalar("string", "")])
    t.row("list", "ToBool", [vec("float", [0, 0])])
    t.row("empty_list", "ToBool", [vec("float", [])])
    t.row("half", "ToBool", [scalar("half", 1)])
    three = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 1000}
    t.row("no_function", "BatchFunction", [[drawn("float", [2])], []], dict(three, Tout=["float"], Tcaptured=[]))
