"""File names, missing files, and one checkpoint that is written and read back."""

from .base import *

NOWHERE = "/dev/null/nowhere"


def fill(t):
    t.row(
        "plain",
        "ShardedFilename",
        [scalar("string", "model"), scalar("int32", 3), scalar("int32", 20)],
    )
    t.row(
        "vector",
        "ShardedFilename",
        [vec("string", ["model"]), scalar("int32", 3), scalar("int32", 20)],
    )
    t.row("plain", "ShardedFilespec", [scalar("string", "model"), scalar("int32", 20)])
    t.row("missing", "ReadFile", [scalar("string", NOWHERE)], message="code-only")
    t.row("vector", "ReadFile", [vec("string", ["a", "b"])])
    t.row(
        "missing",
        "WriteFile",
        [scalar("string", NOWHERE), scalar("string", "x")],
        message="code-only",
    )
    t.row("none", "MatchingFiles", [scalar("string", NOWHERE + "/*")])
    t.row(
        "missing",
        "Restore",
        [scalar("string", NOWHERE), scalar("string", "x")],
        {"dt": "float"},
        message="code-only",
    )
    t.row(
        "missing",
        "RestoreSlice",
        [scalar("string", NOWHERE), scalar("string", "x"), scalar("string", "")],
        {"dt": "float"},
        message="code-only",
    )
    t.row(
        "missing",
        "RestoreV2",
        [scalar("string", NOWHERE), vec("string", ["x"]), vec("string", [""])],
        {"dtypes": ["float"]},
        message="code-only",
    )
    t.row(
        "missing",
        "Save",
        [scalar("string", NOWHERE), vec("string", ["x"]), [drawn("float", [2])]],
        message="code-only",
    )
    t.row(
        "missing",
        "SaveSlices",
        [
            scalar("string", NOWHERE),
            vec("string", ["x"]),
            vec("string", [""]),
            [drawn("float", [2])],
        ],
        message="code-only",
    )
    t.row(
        "missing",
        "SaveV2",
        [
            scalar("string", NOWHERE + "/x"),
            vec("string", ["x"]),
            vec("string", [""]),
            [drawn("float", [2])],
        ],
        message="code-only",
    )
    t.row(
        "counts",
        "SaveV2",
        [
            scalar("string", NOWHERE),
            vec("string", ["x", "y"]),
            vec("string", [""]),
            [drawn("float", [2])],
        ],
        message="code-only",
    )
    t.row(
        "missing",
        "MergeV2Checkpoints",
        [vec("string", [NOWHERE]), scalar("string", NOWHERE + "2")],
        message="code-only",
    )
    for op, a in (
        ("WholeFileReader", {}),
        ("TextLineReader", {}),
        ("TFRecordReader", {}),
        ("IdentityReader", {}),
        ("FixedLengthRecordReader", {"record_bytes": 4}),
    ):
        t.row("made", op + "V2", [], a)
        t.row("old", op, [], a, **({"undefined": [0]} if op == "WholeFileReader" else {}))
    t.row("removed", "LMDBReader", [])
    for v2 in ("V2", ""):
        reader = node("WholeFileReader" + v2, attrs={"shared_name": "r"})
        queue = node("FIFOQueue" + v2, attrs={"component_types": ["string"], "shared_name": "q"})
        closed = [node("QueueClose" + v2, [queue])]
        t.row("none", "ReaderRead" + v2, [reader, queue], before=closed, message="code-only")
        t.row(
            "none",
            "ReaderReadUpTo" + v2,
            [reader, queue, scalar("int64", 2)],
            before=closed,
            message="code-only",
        )
        t.row("none", "ReaderNumRecordsProduced" + v2, [reader])
        t.row("none", "ReaderNumWorkUnitsCompleted" + v2, [reader])
        t.row("none", "ReaderReset" + v2, [reader])
        t.row("unsupported", "ReaderSerializeState" + v2, [reader], message="code-only")
        t.row(
            "unsupported",
            "ReaderRestoreState" + v2,
            [reader, scalar("string", "x")],
            message="code-only",
        )
        fill_readers(t, v2)


def fill_readers(t, v2):
    """Adds identity readers, whose records are the items of the queue."""
    reader = node("IdentityReader" + v2, attrs={"shared_name": "ir"})
    queue = node("FIFOQueue" + v2, attrs={"component_types": ["string"], "shared_name": "iq"})
    many = {"Tcomponents": ["string"]}
    put = [
        node("QueueEnqueueMany" + v2, [queue, [vec("string", ["a", "bb", ""])]], many),
        node("QueueClose" + v2, [queue]),
    ]
    counts = [
        node("ReaderNumRecordsProduced" + v2, [reader]),
        node("ReaderNumWorkUnitsCompleted" + v2, [reader]),
        node("ReaderSerializeState" + v2, [reader]),
    ]
    read = node("ReaderRead" + v2, [reader, queue])
    t.row("items", "ReaderRead" + v2, [reader, queue], before=put, then=counts)
    t.row("second", "ReaderRead" + v2, [reader, queue], before=put + [read], then=counts)
    t.row(
        "used_up",
        "ReaderRead" + v2,
        [reader, queue],
        before=put + [read] * 3,
        then=counts,
        message="code-only",
    )
    for n in (0, 1, 2, 5):
        t.row(
            "items_%d" % n,
            "ReaderReadUpTo" + v2,
            [reader, queue, scalar("int64", n)],
            before=put,
            then=counts,
        )
    t.row("read", "ReaderReset" + v2, [reader], before=put + [read], then=counts + [read])
    state = {"b64": "CAUQBRgDIgFh"}
    t.row(
        "numbers",
        "ReaderRestoreState" + v2,
        [reader, scalar("string", state)],
        before=put + [read],
        then=counts + [read],
    )
    for name, state in (("in_work", "CAUQAg=="), ("negative", "CP///////////wE="), ("bad", "eno=")):
        t.row(
            name,
            "ReaderRestoreState" + v2,
            [reader, scalar("string", {"b64": state})],
            then=counts,
            message="code-only",
        )
    numbers = node("FIFOQueue" + v2, attrs={"component_types": ["int32"], "shared_name": "nq"})
    put = [node("QueueEnqueue" + v2, [numbers, [scalar("int32", 1)]], {"Tcomponents": ["int32"]})]
    t.row("numbers", "ReaderRead" + v2, [reader, numbers], before=put)
    pairs = node(
        "FIFOQueue" + v2, attrs={"component_types": ["string", "string"], "shared_name": "pq"}
    )
    put = [
        node(
            "QueueEnqueue" + v2,
            [pairs, [scalar("string", "a"), scalar("string", "b")]],
            {"Tcomponents": ["string", "string"]},
        )
    ]
    t.row("pairs", "ReaderRead" + v2, [reader, pairs], before=put)
    put = [
        node("QueueEnqueue" + v2, [queue, [vec("string", ["a", "b"])]], {"Tcomponents": ["string"]})
    ]
    t.row("vector", "ReaderRead" + v2, [reader, queue], before=put)
    t.row("no_queue", "ReaderRead" + v2, [reader, reader], message="code-only")
    if v2:
        for name, bad in (("header", {"header_bytes": -1}), ("hop", {"hop_bytes": -1})):
            t.row(name, "FixedLengthRecordReaderV2", [], dict(bad, record_bytes=2))
