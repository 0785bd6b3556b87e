"""Iterators over a dataset of one tensor."""

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
    steps = [scalar("int64", 0), scalar("int64", 3), scalar("int64", 1)]
    for name, metadata in (("named", "\n\001x"), ("broken", "a"), ("cut", "\n\005x"), ("other", "\020\001")):
        t.row("metadata_" + name, "RangeDataset", steps, {"output_types": ["int64"], "output_shapes": [[]], "metadata": metadata})
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

    # The types and shapes that an op declares are checked against the dataset and each element.
    makes = [node("MakeIterator", [data, it()])]
    for name, types, shapes in (
        ("type", ["int32"], [[2]]),
        ("count", ["float", "float"], [[2], [2]]),
        ("shape", ["float"], [[3]]),
        ("rank", ["float"], [[2, 1]]),
        ("scalar", ["float"], [[]]),
        ("open", ["float"], [[-1]]),
        ("any", ["float"], [None]),
    ):
        a = {"output_types": types, "output_shapes": shapes}
        other = node("Iterator", attrs=dict(a, shared_name="other", container=""))
        t.row(name, "MakeIterator", [data, other])
        for op in ("IteratorGetNext", "IteratorGetNextSync"):
            t.row(name, op, [it()], a, before=makes)
        if name != "count":  # stock reads past the end of its lists
            optional = node("IteratorGetNextAsOptional", [it()], a)
            t.row(name, "OptionalHasValue", [optional], before=makes)
        optional = node("OptionalFromValue", [[drawn("float", [2])]])
        t.row(name, "OptionalGetValue", [optional], a)
        t.row(name, "DatasetToSingleElement", [data], a)
