"""Reference and resource variables, and scatter updates."""

from .base import *

VARIABLE = {"dtype": "float", "shape": [2]}
HANDLE = dict(VARIABLE, shared_name="w")
EXACT = {"tol": 0}


def ref_variables(t):
    for d in dtypes("F I U C b s Q"):
        t.row(d, "Assign", [ref(drawn(d, [3])), drawn(d, [3])], **EXACT)
        t.row(d, "AssignVariableOp", [resource(drawn(d, [3])), drawn(d, [3])], **EXACT)
        t.row(d, "ReadVariableOp", [resource(drawn(d, [2, 3]))], {"dtype": d}, **EXACT)
    for op in ("AssignAdd", "AssignSub"):
        for d in dtypes("F I U C"):
            t.row(d, op, [ref(drawn(d, [3])), drawn(d, [3])])
            t.row(d, op + "VariableOp", [resource(drawn(d, [3])), drawn(d, [3])])
        for lock in (True, False):
            t.row(
                "locking_%d" % lock,
                op,
                [ref(drawn("float", [3])), drawn("float", [3])],
                {"use_locking": lock},
            )
        t.row("scalar", op, [ref(drawn("float", [])), drawn("float", [])])
        t.row("300", op, [ref(drawn("float", [300])), drawn("float", [300])])
        t.row("bad_shape", op, [ref(drawn("float", [3])), drawn("float", [2])])
        t.row("broadcast", op, [ref(drawn("float", [3])), drawn("float", [])])
        t.row("uninitialised", op, [node("VariableV2", attrs=VARIABLE), drawn("float", [2])])
        t.row("string", op, [ref(drawn("string", [3])), drawn("string", [3])])
        t.row("empty", op, [ref(drawn("float", [0])), drawn("float", [0])])
        t.row(
            "twice",
            op,
            [ref(drawn("float", [2])), drawn("float", [2])],
            then=[node("Identity", [use("node")])],
        )
        t.row("scalar", op + "VariableOp", [resource(drawn("float", [])), drawn("float", [])])
        t.row("bad_shape", op + "VariableOp", [resource(drawn("float", [3])), drawn("float", [2])])
        t.row("broadcast", op + "VariableOp", [resource(drawn("float", [3])), drawn("float", [])])
        t.row(
            "uninitialised",
            op + "VariableOp",
            [node("VarHandleOp", attrs=HANDLE), drawn("float", [2])],
        )
        t.row("bad_type", op + "VariableOp", [resource(drawn("float", [3])), drawn("double", [3])])
        t.row("not_a_ref", op, [drawn("float", [3]), drawn("float", [3])])
    t.row("scalar", "Assign", [ref(drawn("float", [])), drawn("float", [])])
    t.row("empty", "Assign", [ref(drawn("float", [0, 2])), drawn("float", [0, 2])])
    t.row("bad_shape", "Assign", [ref(drawn("float", [3])), drawn("float", [2])])
    t.row(
        "reshape",
        "Assign",
        [ref(drawn("float", [3])), drawn("float", [2, 2])],
        {"validate_shape": False},
    )
    t.row(
        "no_lock", "Assign", [ref(drawn("float", [3])), drawn("float", [3])], {"use_locking": False}
    )
    t.row("uninitialised", "Assign", [node("VariableV2", attrs=VARIABLE), drawn("float", [2])])
    t.row(
        "unknown_shape",
        "Assign",
        [node("VariableV2", attrs={"dtype": "float", "shape": None}), drawn("float", [2])],
    )
    t.row("type_mismatch", "Assign", [ref(drawn("float", [3])), drawn("double", [3])])
    t.row("from_variable", "Assign", [ref(drawn("float", [3])), ref(drawn("float", [3]))])
    for op in ("VariableV2", "Variable"):
        t.row(
            "uninitialised",
            op,
            [],
            VARIABLE,
            message={"starts": "Attempting to use uninitialized value node"},
        )
        t.row(
            "scalar_shape",
            op,
            [],
            {"dtype": "float", "shape": []},
            message={"starts": "Attempting to use uninitialized value node"},
        )
        t.row(
            "unknown",
            op,
            [],
            {"dtype": "int32", "shape": None},
            message={"starts": "Attempting to use uninitialized value node"},
        )
    t.row(
        "named",
        "VariableV2",
        [],
        dict(VARIABLE, shared_name="other", container="box"),
        message={"starts": "Attempting to use uninitialized value node"},
    )
    t.row("uninitialised_read", "Identity", [node("VariableV2", attrs=VARIABLE)])
    t.row("initialised", "IsVariableInitialized", [ref(drawn("float", [2]))])
    t.row("uninitialised", "IsVariableInitialized", [node("VariableV2", attrs=VARIABLE)])
    t.each(
        "",
        "CountUpTo",
        "i",
        lambda d: ([ref(scalar(d, 3))], {"limit": 5}),
        then=[node("Identity", [use("node")])],
    )
    for d in ("int32", "int64"):
        t.row(
            d,
            "ResourceCountUpTo",
            [resource(scalar(d, 3))],
            {"limit": 5, "T": d},
            then=[node("Identity", [use("node")])] * 2,
        )
        t.row(
            d,
            "ResourceGatherNd",
            [resource(drawn(d, [3, 4])), given("int32", [2, 2], [2, 3, 0, 1])],
            {"dtype": d},
        )
    t.row(
        "high",
        "ResourceGatherNd",
        [resource(drawn("float", [3])), given("int32", [1, 1], [3])],
        {"dtype": "float"},
    )
    t.row("at_limit", "CountUpTo", [ref(scalar("int32", 5))], {"limit": 5})
    t.row("vector", "CountUpTo", [ref(vec("int32", [1]))], {"limit": 5})
    t.row(
        "scalar",
        "TemporaryVariable",
        [],
        {"dtype": "float", "shape": [2], "var_name": "tmp"},
        undefined=[0],
    )
    assigned = node(
        "Assign",
        [
            node("TemporaryVariable", attrs={"dtype": "float", "shape": [2], "var_name": "tmp"}),
            drawn("float", [2]),
        ],
    )
    t.row("value", "DestroyTemporaryVariable", [assigned], {"var_name": "tmp"})
    t.row(
        "wrong_name",
        "DestroyTemporaryVariable",
        [assigned],
        {"var_name": "other"},
        message="code-only",
    )


def resource_variables(t):
    t.row("scalar", "AssignVariableOp", [resource(drawn("float", [])), drawn("float", [])])
    t.row(
        "reshape",
        "AssignVariableOp",
        [node("VarHandleOp", attrs=dict(HANDLE, shape=None)), drawn("float", [3])],
        then=[
            node(
                "ReadVariableOp",
                [node("VarHandleOp", attrs=dict(HANDLE, shape=None))],
                {"dtype": "float"},
            )
        ],
    )
    t.row("bad_shape", "AssignVariableOp", [resource(drawn("float", [3])), drawn("float", [2])])
    t.row(
        "validate",
        "AssignVariableOp",
        [resource(drawn("float", [3])), drawn("float", [2])],
        {"validate_shape": True},
    )
    t.row("bad_type", "AssignVariableOp", [resource(drawn("float", [3])), drawn("double", [3])])
    t.row(
        "dtype_attr",
        "AssignVariableOp",
        [resource(drawn("float", [3])), drawn("float", [3])],
        {"dtype": "double"},
    )
    t.row(
        "new",
        "AssignVariableOp",
        [node("VarHandleOp", attrs=HANDLE), drawn("float", [2])],
        then=[
            node("ReadVariableOp", [node("VarHandleOp", attrs=HANDLE)], {"dtype": "float"}),
            node("VarIsInitializedOp", [node("VarHandleOp", attrs=HANDLE)]),
        ],
    )
    t.row(
        "uninitialised",
        "ReadVariableOp",
        [node("VarHandleOp", attrs=HANDLE)],
        {"dtype": "float"},
        message={"starts": "Could not find variable w. This could mean"},
    )
    t.row("bad_type", "ReadVariableOp", [resource(drawn("float", [2]))], {"dtype": "int32"})
    t.row(
        "after_write",
        "ReadVariableOp",
        [resource(drawn("float", [2]), id="v")],
        {"dtype": "float"},
        before=[node("AssignAddVariableOp", [use("v"), drawn("float", [2])])],
    )
    t.row(
        "control",
        "ReadVariableOp",
        [resource(drawn("float", [2]), id="v")],
        {"dtype": "float"},
        then=[
            node(
                "ReadVariableOp",
                [use("v")],
                {"dtype": "float"},
                control=[node("AssignAddVariableOp", [use("v"), drawn("float", [2])])],
            )
        ],
    )
    t.row("plain", "VarHandleOp", [], VARIABLE)
    t.row("named", "VarHandleOp", [], dict(HANDLE, container="box"))
    t.row("initialised", "VarIsInitializedOp", [resource(drawn("float", [2]))])
    t.row("uninitialised", "VarIsInitializedOp", [node("VarHandleOp", attrs=HANDLE)])
    for out in ("int32", "int64"):
        t.row(out, "VariableShape", [resource(drawn("float", [2, 3]))], {"out_type": out})
    t.row("uninitialised", "VariableShape", [node("VarHandleOp", attrs=HANDLE)])
    t.row("variable", "DisableCopyOnRead", [resource(drawn("float", [2]))])
    t.row(
        "uninitialised",
        "DestroyResourceOp",
        [node("VarHandleOp", attrs=HANDLE)],
        message="code-only",
    )
    t.row(
        "ignored",
        "DestroyResourceOp",
        [node("VarHandleOp", attrs=HANDLE)],
        {"ignore_lookup_error": True},
    )
    t.row(
        "destroys",
        "DestroyResourceOp",
        [node("VarHandleOp", attrs=HANDLE)],
        before=[node("AssignVariableOp", [node("VarHandleOp", attrs=HANDLE), drawn("float", [2])])],
        then=[node("VarIsInitializedOp", [node("VarHandleOp", attrs=HANDLE)])],
    )
    for d in dtypes("F I U C b s"):
        t.row(
            d,
            "ResourceGather",
            [resource(drawn(d, [4, 3])), vec("int32", [3, 0, 3])],
            {"dtype": d},
            **EXACT
        )
    for name, i in [
        ("scalar", scalar("int32", 2)),
        ("matrix", given("int32", [2, 2], [0, 1, 2, 3])),
        ("int64", vec("int64", [1])),
        ("none", vec("int32", [])),
        ("high", vec("int32", [0, 4])),
        ("negative", vec("int32", [-1])),
    ]:
        t.row(name, "ResourceGather", [resource(drawn("float", [4, 3])), i], {"dtype": "float"})
    t.row(
        "batch",
        "ResourceGather",
        [resource(drawn("float", [2, 4])), given("int32", [2, 2], [0, 1, 2, 3])],
        {"dtype": "float", "batch_dims": 1},
    )
    t.row(
        "uninitialised",
        "ResourceGather",
        [node("VarHandleOp", attrs=HANDLE), vec("int32", [0])],
        {"dtype": "float"},
    )


def scatters(t):
    for op, kinds in (
        ("Update", "F I U C b s"),
        ("Add", "F I U C"),
        ("Sub", "F I U C"),
        ("Mul", "F I U C"),
        ("Div", "F I U C"),
        ("Min", "half bfloat16 f i"),
        ("Max", "half bfloat16 f i"),
    ):
        value = (lambda d, s: drawn(d, s, 1, 3)) if op == "Div" else (lambda d, s: drawn(d, s))
        for d in dtypes(kinds):
            t.row(
                d, "Scatter" + op, [ref(drawn(d, [4, 2])), vec("int32", [3, 0]), value(d, [2, 2])]
            )
            t.row(
                d,
                "ResourceScatter" + op,
                [resource(drawn(d, [4, 2])), vec("int32", [3, 0]), value(d, [2, 2])],
            )
        for prefix, var in (("", ref), ("Resource", resource)):
            full = prefix + "Scatter" + op
            for name, i, u in [
                ("twice", vec("int32", [1, 1, 1]), [3, 2]),
                ("int64", vec("int64", [2]), [1, 2]),
                ("scalar_id", scalar("int32", 2), [2]),
                ("matrix_ids", given("int32", [2, 1], [2, 0]), [2, 1, 2]),
                ("scalar_update", vec("int32", [2, 0]), []),
                ("none", vec("int32", []), [0, 2]),
                ("high", vec("int32", [4]), [1, 2]),
                ("negative", vec("int32", [-1]), [1, 2]),
                ("bad_updates", vec("int32", [0, 1]), [3, 2]),
            ]:
                t.row(name, full, [var(drawn("float", [4, 2])), i, value("float", u)])
            if op in ("Add", "Update"):
                t.row(
                    "wide",
                    full,
                    [
                        var(drawn("float", [9, 37])),
                        vec("int32", [8, 0, 3]),
                        drawn("float", [3, 37]),
                    ],
                )
                t.row(
                    "uninitialised",
                    full,
                    [
                        (
                            node("VariableV2", attrs=VARIABLE)
                            if var is ref
                            else node("VarHandleOp", attrs=HANDLE)
                        ),
                        vec("int32", [0]),
                        drawn("float", [1]),
                    ],
                )
    t.row("zero", "ScatterDiv", [ref(drawn("int32", [2])), vec("int32", [0]), vec("int32", [0])])
    for op, kinds in (("Update", "F I U C b s"), ("Add", "F I U C"), ("Sub", "F I U C")):
        for prefix, var in (("", ref), ("Resource", resource)):
            full = prefix + "ScatterNd" + op
            for d in dtypes(kinds):
                t.row(d, full, [var(drawn(d, [4])), given("int32", [2, 1], [3, 0]), drawn(d, [2])])
            for name, i, u in [
                ("deep", given("int32", [2, 2], [1, 1, 0, 2]), [2]),
                ("slices", given("int32", [2, 1], [1, 0]), [2, 3]),
                ("int64", given("int64", [1, 2], [1, 1]), [1]),
                ("none", given("int32", [0, 1], []), [0, 3]),
                ("high", given("int32", [1, 1], [2]), [1, 3]),
                ("negative", given("int32", [1, 1], [-1]), [1, 3]),
                ("bad_updates", given("int32", [2, 1], [1, 0]), [2, 2]),
            ]:
                t.row(name, full, [var(drawn("float", [2, 3])), i, drawn("float", u)])


def fill(t):
    ref_variables(t)
    resource_variables(t)
    scatters(t)
