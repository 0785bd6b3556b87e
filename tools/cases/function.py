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
    batches(t)


def batches(t):
    """One step at a time; tests/session/batch_test.c has several. Ids are random, and so are the tables with them."""
    three = {"num_batch_threads": 1, "max_batch_size": 4, "batch_timeout_micros": 1000, "grad_timeout_micros": 1000}
    for d in ("float", "half", "complex64", "int64", "bool", "string"):
        t.row("alone_" + d, "Batch", [[drawn(d, [3, 2])]], three, undefined=[1, 2])
    t.row("two", "Batch", [[drawn("float", [2]), drawn("int32", [2, 3])]], three, undefined=[2, 3])
    t.row("padded", "Batch", [[drawn("float", [3, 2])]], dict(three, allowed_batch_sizes=[2, 4]), undefined=[1, 2])
    t.row("empty", "Batch", [[drawn("float", [0, 2])]], three)
    t.row("grad", "Batch", [[drawn("double", [3, 2])]], three, undefined=[1, 2], grad=True)
    t.row("too_many_rows", "Batch", [[drawn("float", [5])]], three)
    t.row("scalar", "Batch", [[drawn("float", [])]], three, message={"starts": "Batching input tensors must have"})
    t.row(
        "rows_differ",
        "Batch",
        [[drawn("float", [2]), drawn("float", [3])]],
        three,
        message={"starts": "Batching input tensors supplied in a given op invocation must have"},
    )
    t.row("sizes_fall", "Batch", [[drawn("float", [2])]], dict(three, allowed_batch_sizes=[4, 4]))
    t.row("last_size", "Batch", [[drawn("float", [2])]], dict(three, allowed_batch_sizes=[1, 2]))

    def lines(*values):
        return given("int64", [len(values) // 3, 3], list(values))

    soon = {"timeout_micros": 1000}
    ids = (scalar("int64", 7), scalar("int64", -8))
    for d in ("float", "half", "complex64", "int64", "bool", "string"):
        t.row("own_" + d, "Unbatch", [drawn(d, [3, 2]), lines(7, 0, 3), ids[0]], soon)
    t.row("first", "Unbatch", [drawn("float", [5, 2]), lines(7, 0, 2, -8, 2, 5), ids[0]], soon)
    t.row("second", "Unbatch", [drawn("float", [5, 2]), lines(7, 0, 2, -8, 2, 5), ids[1]], soon)
    t.row("grad", "Unbatch", [drawn("double", [3, 2]), lines(7, 0, 3), ids[0]], soon, grad=True)
    t.row("padded", "Unbatch", [drawn("float", [6]), lines(7, 0, 2, -8, 2, 4), ids[1]], soon)
    t.row("late", "Unbatch", [drawn("float", [2]), lines(7, 0, 2), ids[1]], soon)
    t.row("nothing", "Unbatch", [drawn("float", [0, 2]), lines(), ids[0]], soon)
    t.row("more_lines", "Unbatch", [drawn("float", [1]), lines(7, 0, 1, -8, 1, 1), ids[0]], soon)
    t.row("four_columns", "Unbatch", [drawn("float", [2]), given("int64", [1, 4], [7, 0, 1, 2]), ids[0]], soon)
    t.row("id_vector", "Unbatch", [drawn("float", [2]), lines(7, 0, 2), vec("int64", [7])], soon, message="code-only")
    t.row("same_key", "Unbatch", [drawn("float", [4]), lines(5, 0, 2, 5, 2, 4), ids[0]], soon)

    for d in ("float", "half", "complex64", "int64", "bool", "string"):
        own = [drawn(d, [3, 2]), lines(7, 0, 3), drawn(d, [3, 2]), ids[0]]
        t.row("own_" + d, "UnbatchGrad", own)
    t.row("other_shape", "UnbatchGrad", [drawn("float", [3, 2]), lines(7, 0, 3), drawn("float", [1, 4]), ids[0]])
    t.row("no_rows", "UnbatchGrad", [drawn("float", [0, 2]), lines(), drawn("float", [3, 2]), ids[0]])
    t.row("no_lines", "UnbatchGrad", [drawn("float", [2]), lines(), drawn("float", [2]), ids[0]])
    t.row("flat", "UnbatchGrad", [drawn("float", [2]), vec("int64", [7, 0, 2]), drawn("float", [2]), ids[0]])
    vector_id = [drawn("float", [2]), lines(7, 0, 2), drawn("float", [2]), vec("int64", [7])]
    t.row("id_vector", "UnbatchGrad", vector_id, message="code-only")
