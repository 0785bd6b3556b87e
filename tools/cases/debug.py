"""Ops that check and print tensors."""

from .base import *


def fill(t):
    t.row("holds", "Assert", [scalar("bool", True), [drawn("float", [2])]])
    t.row(
        "fails",
        "Assert",
        [
            scalar("bool", False),
            [vec("float", [1, 2.5]), vec("string", ["why", "not"]), vec("int32", [1, 2, 3, 4, 5])],
        ],
    )
    t.row(
        "summary",
        "Assert",
        [scalar("bool", False), [vec("int32", [1, 2, 3, 4, 5])]],
        {"summarize": 2},
    )
    t.row(
        "summary_all",
        "Assert",
        [scalar("bool", False), [given("int32", [2, 2], [1, 2, 3, 4])]],
        {"summarize": -1},
    )
    t.row(
        "scalar_data",
        "Assert",
        [
            scalar("bool", False),
            [scalar("string", "message"), scalar("bool", True), scalar("double", 0.1)],
        ],
    )
    t.row("empty_data", "Assert", [scalar("bool", False), [vec("float", [])]])
    t.row("vector", "Assert", [vec("bool", [True]), [drawn("float", [2])]])
    t.row("no_data", "Assert", [scalar("bool", False), []], {"T": []})
    for d in F:
        t.row(d, "CheckNumerics", [drawn(d, [5])], {"message": "checked"})
        t.row("nan_" + d, "CheckNumerics", [vec(d, [1, NAN])], {"message": "checked"})
        t.row(d, "CheckNumericsV2", [drawn(d, [5])], {"message": "checked"})
        t.row("minus_" + d, "CheckNumericsV2", [vec(d, [1, "-inf"])], {"message": "checked"})
    for name, values in (
        ("nan", [NAN]),
        ("inf", [1, INF]),
        ("signs", ["-inf", INF]),
        ("nan_inf", [NAN, INF]),
        ("nan_minus", [NAN, "-inf"]),
        ("all", [NAN, "-inf", INF]),
        ("empty", []),
    ):
        t.row(name, "CheckNumericsV2", [vec("float", values)], {"message": "m"})
    t.row("grad", "CheckNumericsV2", [drawn("double", [3])], {"message": "m"}, grad=True, beyond=True)
    t.row("inf", "CheckNumerics", [vec("float", [1, INF])], {"message": "m"})
    t.row("minus_inf", "CheckNumerics", [vec("float", ["-inf"])], {"message": "m"})
    t.row("both", "CheckNumerics", [vec("float", [NAN, INF])], {"message": "m"})
    t.row("empty", "CheckNumerics", [vec("float", [])], {"message": "m"})
    t.row("int32", "CheckNumerics", [vec("int32", [1])], {"message": "m"})
    t.row("grad", "CheckNumerics", [drawn("double", [3])], {"message": "m"}, grad=True)
    t.row("passes", "Print", [drawn("float", [2]), [drawn("int32", [2])]], {"message": "printed: "})
    t.row("no_data", "Print", [drawn("string", [2]), []], {"U": [], "first_n": 0})
    t.row("stderr", "PrintV2", [scalar("string", "printed")])
    t.row("bad_stream", "PrintV2", [scalar("string", "printed")], {"output_stream": "nowhere"})
    t.row("vector", "PrintV2", [vec("string", ["a"])])
    t.row("now", "Timestamp", undefined=[0])
    t.row("true", "Fact")
    t.row("cpu", "CheckPinned", [drawn("float", [2])])
    dump = {"log_dir_path": "/dev/null/no", "file_name": "a.pb", "enabled": True, "func_name": "f", "node_name": "n"}
    t.row("nowhere", "DumpTensor", [drawn("float", [2])], dump, message="code-only")
