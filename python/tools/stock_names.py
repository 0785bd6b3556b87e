"""Prints the public names of stock TensorFlow's tf.compat.v1, one per line ("nn.relu"). doc/python_names.md
compares this package with that list.

    build/venv/bin/python python/tools/stock_names.py > python/tools/stock_names.txt

Run it with the Python that has stock TensorFlow. Visits each module once; omits experimental and
internal modules, and the raw ops, which are generated.
"""

import types

import tensorflow.compat.v1 as tf

SKIPPED = {"raw_ops", "experimental", "compat", "keras", "estimator", "tpu", "contrib", "lite", "xla", "mlir", "debugging", "profiler", "autograph",
           "distribute", "nest", "tf_decorator"}


def walk(module, prefix, seen, depth):
    rows = []
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # a name that needs a package that is not installed
            continue
        if isinstance(value, types.ModuleType):
            if name in SKIPPED or id(value) in seen or depth > 2 or "tensorflow" not in getattr(value, "__name__", "") and "_api" not in repr(value):
                continue
            rows += walk(value, prefix + name + ".", seen | {id(value)}, depth + 1)
        else:
            rows.append(prefix + name)
    return rows


def main():
    for name in walk(tf, "", frozenset(), 0):
        if not name.startswith("app.flags."):  # the same as tf.flags
            print(name)


if __name__ == "__main__":
    main()
