"""Optimizer updates, dense and sparse, of reference and resource variables."""

from .base import *

# Op without its prefix: the arguments in order. Upper case is a variable of the parameter's shape
# (P any values, S positive slots); g is the gradient, i its indices (sparse ops only).
RULES = {
    "GradientDescent": (["P", 0.1, "g"], []),
    "Momentum": (["P", "S", 0.1, "g", "i", 0.9], ["use_nesterov"]),
    "Adagrad": (["P", "S", 0.1, "g", "i"], ["update_slots"]),
    "AdagradV2": (["P", "S", 0.1, 1e-2, "g", "i"], ["update_slots"]),
    "Adam": (["P", "S", "S", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-2, "g"], ["use_nesterov"]),
    "Adadelta": (["P", "S", "S", 0.5, 0.95, 1e-2, "g", "i"], []),
    "RMSProp": (["P", "S", "S", 0.1, 0.9, 0.5, 1e-2, "g", "i"], []),
    "CenteredRMSProp": (["P", "M", "S", "S", 0.1, 0.9, 0.5, 1e-2, "g", "i"], []),
    "Ftrl": (["P", "S", "S", "g", "i", 0.1, 0.02, 0.3, -0.5], ["multiply_linear_by_lr"]),
    "FtrlV2": (["P", "S", "S", "g", "i", 0.1, 0.02, 0.3, 0.01, -0.5], ["multiply_linear_by_lr"]),
    "AdaMax": (["P", "S", "S", 0.9, 0.01, 0.9, 0.99, 1e-2, "g"], []),
    "AddSign": (["P", "M", 0.1, 0.5, 0.7, 0.9, "g"], []),
    "PowerSign": (["P", "M", 0.1, 1.5, 0.7, 0.9, "g"], []),
    "ProximalAdagrad": (["P", "S", 0.1, 0.02, 0.3, "g", "i"], []),
    "ProximalGradientDescent": (["P", 0.1, 0.02, 0.3, "g", "i"], []),
    "AdagradDA": (["P", "S", "S", "g", "i", 0.1, 0.02, 0.3, "step"], []),
}
RESOURCE_ONLY = {
    "AdamWithAmsgrad": (["P", "S", "S", "S", 0.9, 0.99, 0.01, 0.9, 0.99, 1e-2, "g"], []),
    "KerasMomentum": (["P", "S", 0.1, "g", "i", 0.9], ["use_nesterov"]),
}
DENSE_KINDS = {
    "AdagradDA": "f",
    "Ftrl": "F",
    "FtrlV2": "F",
    "AdaMax": "half f",
    "AddSign": "F",
    "PowerSign": "F",
    "ProximalAdagrad": "f",
    "ProximalGradientDescent": "f",
    "AdamWithAmsgrad": "F",
}


def arguments(rule, d, var, shape, rows=None, grad_shape=None):
    out = []
    for a in rule:
        if a == "P":
            out.append(var(drawn(d, shape)))
        elif a == "S":
            out.append(var(drawn(d, shape, 0.5, 2)))
        elif a == "M":
            out.append(var(drawn(d, shape, 0.1, 0.4)))
        elif a == "g":
            out.append(
                drawn(d, grad_shape or ([len(rows)] + shape[1:] if rows is not None else shape))
            )
        elif a == "i":
            if rows is not None:
                out.append(vec("int32", rows))
        elif a == "step":
            out.append(scalar("int64", 3))
        else:
            out.append(scalar(d, a))
    return out


def with_odd_numbers(rule, inputs):
    """Puts NaN and infinities into the gradient, and NaN into each slot."""
    given_to = [a for a in rule if a != "i" or len(inputs) == len(rule)]
    for k, (a, spec) in enumerate(zip(given_to, inputs)):
        if a == "g":
            inputs[k] = vec("float", [NAN, INF, "-inf", 0.5, -0.5, 0.25, 1, -1, 0.0])
        elif k and a in ("S", "M"):
            values = [0.5, 0.5, 0.5, 0.25, 0.75, 1, 0.5, 0.25, 2]
            values[3 + k] = NAN
            inputs[k] = {key: v for key, v in spec.items() if key != "seed"}
            inputs[k]["values"] = values
    return inputs


def fill(t):
    for name, (rule, flags) in list(RULES.items()) + list(RESOURCE_ONLY.items()):
        kinds = (
            (("Resource", resource),)
            if name in RESOURCE_ONLY
            else (("", ref), ("Resource", resource))
        )
        for prefix, var in kinds:
            op = prefix + "Apply" + name
            for d in dtypes(DENSE_KINDS.get(name, "F C")):
                t.row(d, op, arguments(rule, d, var, [5]), tol=loose(d))
            t.row("37", op, arguments(rule, "float", var, [37]))
            t.row("matrix", op, arguments(rule, "double", var, [3, 4]))
            t.row("scalar", op, arguments(rule, "float", var, []))
            t.row("empty", op, arguments(rule, "float", var, [0]))
            t.row("odd", op, with_odd_numbers(rule, arguments(rule, "float", var, [9])))
            t.row("locking", op, arguments(rule, "float", var, [3]), {"use_locking": True})
            t.row("bad_grad", op, arguments(rule, "float", var, [3], grad_shape=[2]))
            for flag in flags:
                t.row(flag, op, arguments(rule, "float", var, [6]), {flag: flag != "update_slots"})
            bad = arguments(rule, "float", var, [3])
            scalars = [k for k, x in enumerate(bad) if x["shape"] == []]
            bad[scalars[0]] = vec(bad[scalars[0]]["dtype"], [1, 2])
            t.row("vector_for_scalar", op, bad)
            uninitialised = arguments(rule, "float", var, [2])
            uninitialised[0] = (
                node("VariableV2", attrs={"dtype": "float", "shape": [2]})
                if var is ref
                else node("VarHandleOp", attrs={"dtype": "float", "shape": [2], "shared_name": "w"})
            )
            t.row("uninitialised", op, uninitialised)
            if "i" in rule:
                sparse(t, name, rule, flags, prefix, var)
    # More indices than a GPU's block sorts at once, and most of them repeat.
    many = [ref(drawn("double", [700, 3])), ref(drawn("double", [700, 3], 0.5, 2))]
    many += [scalar("double", 0.01), drawn("double", [9000, 3]), drawn("int32", [9000], 0, 699)]
    t.row("many", "SparseApplyAdagrad", many)


def ranges(t, op, rule, flags, make):
    """Adds positive and negative numbers, 0 and NaN for each scalar argument."""
    numbers = [k for k, a in enumerate(rule) if isinstance(a, float)]
    for at, k in enumerate(numbers):
        for value in (-1.0, 0.0, 1.0, NAN):
            changed = rule[:k] + [value] + rule[k + 1 :]
            # Powers of 0 and NaN: only checks whether it runs.
            t.row("range_%d_%s" % (at, value), op, make(changed), undefined=[0])
    for flag in flags:
        changed = rule[: numbers[0]] + [0.0] + rule[numbers[0] + 1 :]
        t.row("range_" + flag, op, make(changed), {flag: True}, undefined=[0])


def sparse(t, name, rule, flags, prefix, var):
    op = prefix + "SparseApply" + name
    if "Ftrl" in name or name == "ProximalAdagrad":
        ranges(t, op, rule, flags, lambda r: arguments(r, "float", var, [2, 2], [1]))
    kinds = {
        "RMSProp": "half f",
        "CenteredRMSProp": "half f",
        "AdagradDA": "f",
        "ProximalAdagrad": "f",
        "ProximalGradientDescent": "f",
    }.get(name, "F")
    if name in ("Momentum", "KerasMomentum", "Adagrad", "AdagradV2", "Adadelta", "RMSProp", "CenteredRMSProp"):
        kinds += " C"
    for d in dtypes(kinds):
        # Stock rounds each intermediate step, and divides the difference of two roots by a small learning rate.
        tol = 5e-2 if (name, d) == ("FtrlV2", "bfloat16") else loose(d)
        t.row(d, op, arguments(rule, d, var, [5, 3], [4, 0]), tol=tol)
    t.row("odd", op, with_odd_numbers(rule, arguments(rule, "float", var, [9], list(range(9)))))
    t.row("twice", op, arguments(rule, "float", var, [5, 3], [1, 1]))
    t.row("vector", op, arguments(rule, "float", var, [5], [1, 3]))
    t.row("none", op, arguments(rule, "float", var, [5, 2], []))
    t.row("high", op, arguments(rule, "float", var, [3, 2], [3]))
    t.row("negative", op, arguments(rule, "float", var, [3, 2], [-1]))
    t.row("bad_grad", op, arguments(rule, "float", var, [3, 2], [1], grad_shape=[2, 2]))
    for flag in flags:
        t.row(
            flag, op, arguments(rule, "float", var, [4, 2], [2, 0]), {flag: flag != "update_slots"}
        )
