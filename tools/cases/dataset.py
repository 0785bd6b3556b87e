"""Iterators over one tensor."""

from .base import *


def fill(t):
    shape = {"output_types": ["float"], "output_shapes": [[2]]}
    data = node("TensorDataset", [[drawn("float", [2])]], {"output_shapes": [[2]]})
    it = lambda: node("Iterator", attrs=dict(shape, shared_name="it", container=""))
    t.row("made", "TensorDataset", [[drawn("float", [2])]], {"output_shapes": [[2]]})
    t.row(
        "bad_shapes",
        "TensorDataset",
        [[drawn("float", [2])]],
        {"output_shapes": [[3]]},
        message="code-only",
    )
    t.row("made", "Iterator", [], dict(shape, shared_name="", container=""))
    t.row("made", "MakeIterator", [data, it()])
    t.row(
        "once",
        "IteratorGetNext",
        [it()],
        shape,
        before=[node("MakeIterator", [data, it()])],
        then=[node("IteratorGetNext", [it()], shape)],
        message="code-only",
    )
    t.row("not_made", "IteratorGetNext", [it()], shape, message="code-only")
