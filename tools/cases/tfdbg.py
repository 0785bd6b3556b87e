"""The ops of TensorFlow's debugger."""

from .base import *

ODD = [NAN, "-inf", INF, INF, 0, 1, 2, -3, 5]
REAL = "F I U"


def odd(d):
    return given(d, [3, 3], ODD if d in F else [0, 1, 2, 3, 0, 1, 2, 3, 5])


def fill(t):
    for op in ("Copy", "CopyHost", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"):
        named = {} if op == "DebugIdentityV2" else {"tensor_name": "n:0"}
        for d in dtypes("F I U C b s qint8"):
            t.row(d, op, [drawn(d, [2, 3])], named)
        t.row("empty", op, [drawn("float", [0, 2])], named)
        t.row("reference", op, [ref(drawn("float", [3]))], named)
        t.row("no_name", op, [drawn("float", [2])])
        if op.startswith("Copy"):
            t.row("spec", op, [drawn("float", [2])], dict(named, debug_ops_spec=["DebugIdentity;file:///tmp/x;0"]))
            t.row("bad_spec", op, [drawn("float", [2])], dict(named, debug_ops_spec=["DebugIdentity"]))
        elif named:
            t.row("gated", op, [drawn("float", [2])], dict(named, gated_grpc=True), wrong_static=[0])
        if named:
            t.row("no_slot", op, [drawn("float", [2])], {"tensor_name": "n"})
    t.row("grad", "DebugIdentityV2", [drawn("double", [3])], grad=True)
    t.row("url", "DebugIdentity", [drawn("float", [2])], {"tensor_name": "x:0", "debug_urls": ["nope:///tmp/x"]},
          message={"starts": "Invalid debug target URL: nope:///tmp/x"})
    for d in dtypes(REAL):
        t.row(d, "DebugNanCount", [odd(d)], {"tensor_name": "n:0"}, wrong_static=[0])
    name = {"tensor_name": "n:0"}
    for d in dtypes("float double I U bool"):
        t.row(d, "DebugNumericSummary", [odd(d) if d != "bool" else drawn(d, [5])], name)
    for attrs in ({"lower_bound": -2.0}, {"upper_bound": 1.0}, {"lower_bound": 0.0, "upper_bound": 0.0},
                  {"mute_if_healthy": True}):
        t.row("bounds", "DebugNumericSummary", [odd("float")], dict(attrs, **name))
    for attrs in ({"lower_bound": INF}, {"upper_bound": "-inf"}, {"gated_grpc": True}):
        t.row("odd_bounds", "DebugNumericSummary", [odd("float")], dict(attrs, **name))
    t.row("large", "DebugNumericSummary", [vec("uint64", [str(2**64 - 2048), 5])], name)
    t.row("gated", "DebugNanCount", [drawn("float", [2])], {"tensor_name": "n:0", "gated_grpc": True}, wrong_static=[0])
    t.row("empty", "DebugNumericSummary", [drawn("float", [0, 2])], name)
    t.row("scalar", "DebugNumericSummary", [drawn("float", [])], name)
    t.row("all_nan", "DebugNumericSummary", [given("float", [2], [NAN])], name)
    t.row("no_name", "DebugNumericSummary", [drawn("float", [2])])
    t.row("half", "DebugNumericSummary", [drawn("half", [2])], name, message="code-only")
    v2 = "DebugNumericSummaryV2"
    for mode in (2, 3, 4, 5, 8):
        for d in dtypes(REAL + " bool"):
            for out in ("float", "double"):
                t.row("%s_%s" % (d, out), v2, [odd(d) if d != "bool" else drawn(d, [5])],
                      {"tensor_debug_mode": mode, "tensor_id": 5, "output_dtype": out})
        attrs = {"tensor_debug_mode": mode, "tensor_id": 7}
        t.row("empty", v2, [drawn("float", [0, 2])], attrs)
        t.row("healthy", v2, [drawn("float", [])], attrs)
        t.row("deep", v2, [drawn("float", [1, 2, 3, 1, 2, 1, 2, 1])], attrs)
        t.row("large_id", v2, [drawn("float", [2])], dict(attrs, tensor_id=1 << 25))
        t.row("larger_id", v2, [drawn("float", [2])], dict(attrs, tensor_id=1 << 54, output_dtype="double"))
    for mode in (-1, 0, 1, 6, 7, 9):
        t.row("mode_%d" % mode, v2, [drawn("float", [2])], {"tensor_debug_mode": mode})
    t.row("complex", v2, [drawn("complex64", [2])], {"tensor_debug_mode": 2}, message="code-only")
