"""Prints the public names of stock TensorFlow, which the pages of names and the 2.x face compare with.

    build/venv/bin/python python/tools/stock_names.py > python/tools/stock_names.txt
    build/venv/bin/python python/tools/stock_names.py --v2 > python/runnel/compat/v2/names.py

Without an option: those of tf.compat.v1, one per line ("nn.relu"). With --v2: those of tf 2.x, as a Python file. Run it with
the Python that has stock TensorFlow. Visits each module once. Omits the raw ops, which are generated, and packages of
their own (Keras, TensorFlow Lite; of 1.x TPUs); of 1.x also experimental and internal modules.
"""

import sys
import textwrap
import types

SKIPPED_V1 = {"raw_ops", "experimental", "compat", "keras", "estimator", "tpu", "contrib", "lite", "xla", "mlir", "debugging", "profiler", "autograph",
              "distribute", "nest", "tf_decorator"}
SKIPPED_V2 = {"raw_ops", "compat", "keras", "estimator", "lite", "xla", "mlir", "python", "core", "tools", "security", "dtensor", "tensorrt",
              "initializers", "losses", "metrics", "optimizers", "tsl"}
INTERNAL = ("__internal__", "__operators__")

HEAD = """\
\"\"\"The public names of TensorFlow 2: namespace -> names. Written by python/tools/stock_names.py --v2; do not edit.\"\"\"

NAMES = {}
for _row in \"\"\"
%s
\"\"\".strip().splitlines():
    _space, _, _names = _row.partition(":")
    NAMES.setdefault(_space, set()).update(_names.split())
"""


def walk(module, prefix, seen, depth, skipped, deepest):
    rows = []
    for name in sorted(dir(module)):
        if name.startswith("_") and not (skipped is SKIPPED_V2 and name in INTERNAL):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # a name that needs a package that is not installed
            continue
        if isinstance(value, types.ModuleType):
            if name in skipped or id(value) in seen or depth > deepest or "tensorflow" not in getattr(value, "__name__", "") and "_api" not in repr(value):
                continue
            rows += walk(value, prefix + name + ".", seen | {id(value)}, depth + 1, skipped, deepest)
        else:
            rows.append(prefix + name)
    return rows


def as_python(names):
    """Returns the file of the 2.x names: rows "namespace: names"; that of tf itself is empty."""
    spaces = {}
    for name in names:
        space, _, leaf = name.rpartition(".")
        spaces.setdefault(space, []).append(leaf)
    rows = []
    for space, leaves in sorted(spaces.items()):
        rows += [space + ": " + line for line in textwrap.wrap(" ".join(leaves), 155 - len(space), break_on_hyphens=False)]
    return HEAD % "\n".join(rows)


def main():
    if "--v2" in sys.argv:
        import tensorflow as tf
        print(as_python(walk(tf, "", frozenset(), 0, SKIPPED_V2, 3)), end="")
        return
    import tensorflow.compat.v1 as tf
    for name in walk(tf, "", frozenset(), 0, SKIPPED_V1, 2):
        if not name.startswith("app.flags."):  # the same as tf.flags
            print(name)


if __name__ == "__main__":
    main()
