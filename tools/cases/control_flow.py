"""Switch, Merge, Enter and Exit without loops, NoOp and the like. The API tests cover loops."""

from .base import *


def fill(t):
    yes, no = scalar("bool", True), scalar("bool", False)
    t.row("plain", "NoOp")
    t.row("plain", "ControlTrigger")
    t.row("plain", "SyncDevice")
    t.row(
        "after",
        "NoOp",
        control=[node("AssignAdd", [ref(drawn("float", [2]), id="v"), drawn("float", [2])])],
    )
    for d in dtypes("F I U C b s"):
        t.row(
            d,
            "Merge",
            [[node("Switch", [drawn(d, [2], id="x"), dict(yes, id="p")], id="sw"), use("sw", 1)]],
            tol=0,
        )
    t.row("true", "Switch", [drawn("float", [2]), yes])
    t.row("false", "Switch", [drawn("float", [2]), no])
    t.row("vector_pred", "Switch", [drawn("float", [2]), vec("bool", [True, False])])
    t.row("pred_type", "Switch", [drawn("float", [2]), scalar("int32", 1)])
    sw = lambda p: node("Switch", [drawn("float", [2]), p], id="sw")
    t.row("dead", "Neg", [sw(yes)])
    t.row("live", "Neg", [dict(sw(yes), output=1)])
    t.row("then_branch", "Merge", [[node("Neg", [sw(yes)]), node("Square", [use("sw", 1)])]])
    t.row("else_branch", "Merge", [[node("Neg", [sw(no)]), node("Square", [use("sw", 1)])]])
    t.row(
        "unlike_shapes",
        "Merge",
        [
            [
                node("Switch", [drawn("float", [2]), dict(yes, id="p")]),
                dict(node("Switch", [drawn("float", [3]), use("p")]), output=1),
            ]
        ],
    )
    t.row("all_dead", "Merge", [[node("Neg", [sw(yes)]), node("Square", [use("sw")])]])
    t.row("none", "Merge", [[]], {"T": "float"})
    t.row("bool", "LoopCond", [yes])
    t.row("float", "LoopCond", [scalar("float", 1)])
    frame = {"frame_name": "f"}
    enter = lambda x, **a: node("Enter", [x], dict(frame, **a))
    for d in ("float", "int64", "string", "bool"):
        t.row(d, "Exit", [enter(drawn(d, [2]))])
    t.row("constant", "Exit", [enter(drawn("float", [2]), is_constant=True)])
    t.row(
        "nested",
        "Exit",
        [node("Exit", [node("Enter", [enter(drawn("float", [2]))], {"frame_name": "inner"})])],
    )
    t.row("inside", "Exit", [node("Neg", [enter(drawn("float", [2]))])])
    t.row("one_iteration", "Exit", [node("NextIteration", [enter(drawn("float", [2]))])])
    t.row("fetched", "Enter", [drawn("float", [2])], frame, message="code-only")
    t.row("no_frame", "Enter", [drawn("float", [2])])
    t.row("plain", "NextIteration", [drawn("float", [2])], message="code-only")
    t.row("true", "RefSwitch", [ref(drawn("float", [2])), yes])
    t.row("live", "Neg", [dict(node("RefSwitch", [ref(drawn("float", [2])), yes]), output=1)])
    t.row(
        "merged",
        "RefMerge",
        [[node("RefSwitch", [ref(drawn("float", [2])), yes], id="sw"), use("sw", 1)]],
    )
    for i in (0, 1):
        t.row(
            "index%d" % i,
            "RefSelect",
            [scalar("int32", i), [ref(drawn("float", [2])), ref(drawn("float", [2]))]],
        )
    t.row(
        "high",
        "RefSelect",
        [scalar("int32", 2), [ref(drawn("float", [2])), ref(drawn("float", [2]))]],
    )
    t.row("variable", "RefExit", [node("RefEnter", [ref(drawn("float", [2]))], frame)])
    t.row("fetched", "RefEnter", [ref(drawn("float", [2]))], frame, message="code-only")
    t.row("plain", "RefNextIteration", [ref(drawn("float", [2]))], message="code-only")
    t.row("dies", "Abort", [], {"error_msg": "gone"})
    t.row("exits", "Abort", [], {"exit_without_error": True})
