"""Writes doc/python_names.md and doc/python_names_v2.md: which public names of stock's tf.compat.v1 and of its tf 2.x are here.

    PYTHONPATH=python python3 python/tools/make_names_doc.py [--check]

--check writes nothing; it fails and prints the lines that differ if a page is not what this would write.
"""

import difflib
import os
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
DOC = os.path.join(os.path.dirname(os.path.dirname(HERE)), "doc")

INTRODUCTION = """\
# Python: the names of tf

<!-- Written by python/tools/make_names_doc.py; do not edit. -->

Of the %d public names of stock's `tf.compat.v1`, %d are here. An absent name raises AttributeError and names this page;
`runnel python-compat script.py` lists the absent names that a script uses. The guide is [python.md](python.md).
"""

INTRODUCTION_V2 = """\
# Python: the names of TensorFlow 2

<!-- Written by python/tools/make_names_doc.py; do not edit. -->

Of the %d public names of stock's `tf` 2.21, %d are in `runnel.v2`. An absent name raises AttributeError and names this page;
`python3 -m runnel --v2 --names script.py` lists the absent names that a script uses. Keras is a package of its own (`pip install keras`),
and not counted. The guide is [python.md](python.md); the names of 1.x are in [python_names.md](python_names.md).
"""

# Names that are here and differ from stock.
DIFFERENT = {
    "GradientTape": "In a graph, it is `tf.gradients` over the operations that were built while it recorded. Reading a reference variable counts as well.",
    "Print": "Prints to the library's log.",
    "Session.run": "A fetch that is also fed returns the fed value.",
    "flags": "Has the API of 1.x and does not need absl.",
    "function": "On a tape, a function with side effects (assignments, random numbers) or with "
                "`tf.custom_gradient` in it runs op by op. Called in a graph, its operations become part of that graph; without a result it returns "
                "an operation.",
    "gfile": "Reads and writes local files only.",
    "gradients": "Ignores `aggregation_method`.",
    "py_func": "Works only in the process that built the graph, as in stock.",
    "ragged": "`tf.data` supports one ragged dimension. Broadcasting supports rows of scalars, rows of equal length and columns.",
    "sparse_concat": "Requires equal shapes.",
    "test.TestCase": "Lacks the methods of absl that start other programs.",
}


DIFFERENT_V2 = {
    "Tensor": "Has a hash, that of the object; in stock a tensor has none.",
    "autograph": "Always converts `assert` and comparisons in chains, and never lists. A `return` out of a loop over tensors works, and so does "
                 "`while True` with a `break` that depends on a tensor.",
    "function": "A call in another function becomes part of that function: its Python code runs once per call there. On a tape, a function with side "
                "effects or with `tf.custom_gradient` in it runs op by op. Numbers of different types have traces of their own: 1, 1.0 and True. "
                "`structured_outputs` of a concrete function are TensorSpecs. A tensor that leaves a loop through a Python list is not noticed until "
                "the function runs.",
    "keras": "The package Keras 3.",
}

# Why names are absent: a reason, and the names or namespaces ("flags.") that it is for. Those without a reason are not written yet.
REASONS = {
    "absl has them: `from absl import flags`": "flags. logging.TaskLevelStatusMessage",
    "distributed snapshots are not written yet": "data.experimental.distributed_save",
    "the quantizer is a program of its own; see quantization.md": "quantization.experimental. train.do_quantize_training_on_graphdef",
    "they trace stock's runtime; `runnel` has its own tools, see debugging.md": "profiler.experimental. summary.trace_export summary.trace_off "
                                                                              "summary.trace_on debugging.experimental.",
    "they are types for annotations of stock's tracer": "types.experimental.",
    "servers of functions are not supported; use `runnel serve`": "distribute.experimental.rpc.",
    "tf.function does it": "wrap_function",
    "all tasks see each other's devices": "config.experimental.ClusterDeviceFilters",
    "the layer that takes them, SequenceFeatures, belongs to Keras 2": "feature_column.sequence_categorical_column_with_hash_bucket "
        "feature_column.sequence_categorical_column_with_identity feature_column.sequence_categorical_column_with_vocabulary_file "
        "feature_column.sequence_categorical_column_with_vocabulary_list feature_column.sequence_numeric_column",
    "there is no status object: functions raise errors": "errors.raise_exception_on_not_ok_status",
    "tasks drain on SIGTERM by themselves, see cluster.md": "distribute.experimental.PreemptionCheckpointHandler "
        "distribute.experimental.PreemptionWatcher distribute.experimental.TerminationConfig",
    "the cells are layers of Keras 2; use tf.compat.v1.nn.rnn_cell": "nn.RNNCellDeviceWrapper nn.RNNCellDropoutWrapper "
        "nn.RNNCellResidualWrapper",
}


def reason_of(name):
    """Returns why a name is absent, or None."""
    for reason, places in REASONS.items():
        if any(name == place or place.endswith(".") and name.startswith(place) for place in places.split()):
            return reason
    return None


def names():
    """Returns the public names of stock's tf.compat.v1."""
    with open(os.path.join(HERE, "stock_names.txt"), encoding="utf-8") as stream:
        return [line.strip() for line in stream if line.strip()]


def names_v2():
    """Returns the public names of stock's tf 2.x, without internal ones."""
    from runnel.compat.v2.names import NAMES
    return [(space and space + ".") + leaf for space in sorted(NAMES) if not space.startswith("__") for leaf in sorted(NAMES[space])]


def find(face, name):
    """Tells whether a face has the name."""
    try:
        for part in name.split("."):
            face = getattr(face, part)
    except (AttributeError, ImportError):
        return False
    return True


def rows(face, listed_names):
    """Returns {namespace: (supported, absent)}."""
    table = {}
    for name in listed_names:
        space, _, leaf = name.rpartition(".")
        supported, absent = table.setdefault(space, ([], []))
        (supported if find(face, name) else absent).append(leaf)
    return table


def listed(label, leaves):
    """Returns the lines of a paragraph that lists names; none if there are none."""
    if not leaves:
        return []
    return textwrap.wrap(label + " ".join("`%s`" % leaf for leaf in leaves), 120, break_long_words=False, break_on_hyphens=False) + [""]


def text(introduction, different, table):
    """Returns a page."""
    have = sum(len(supported) for supported, _ in table.values())
    lines = [introduction % (sum(len(s) + len(a) for s, a in table.values()), have), "## Different from stock", ""]
    for name, how in sorted(different.items()):
        lines += textwrap.wrap("- `tf.%s`: %s" % (name, how), 120, subsequent_indent="  ", break_on_hyphens=False)
    lines += [""]
    for space, (supported, absent) in table.items():
        lines += ["## " + ("tf." + space if space else "tf"), ""] + listed("", supported)
        reasons = {leaf: reason_of((space and space + ".") + leaf) for leaf in absent}
        lines += listed("Absent: ", [leaf for leaf in absent if reasons[leaf] is None])
        for reason in dict.fromkeys(filter(None, reasons.values())):
            lines += listed("Absent, because %s: " % reason, [leaf for leaf in absent if reasons[leaf] == reason])
    return "\n".join(lines)


def pages():
    """Yields (file, text)."""
    import runnel
    from runnel.compat import v2
    yield "python_names.md", text(INTRODUCTION, DIFFERENT, rows(runnel, names()))
    yield "python_names_v2.md", text(INTRODUCTION_V2, DIFFERENT_V2, rows(v2, names_v2()))


def main():
    differs = False
    for file, new in pages():
        path = os.path.join(DOC, file)
        if "--check" in sys.argv:
            with open(path, encoding="utf-8") as stream:
                old = stream.read()
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "the page", "what it should be"))
            differs |= old != new
        else:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(new)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
