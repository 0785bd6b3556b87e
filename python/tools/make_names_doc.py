"""Writes doc/python_names.md: which public names of stock's tf.compat.v1 (stock_names.txt) are here.

    PYTHONPATH=python python3 python/tools/make_names_doc.py [--check]

--check writes nothing; it fails and prints the lines that differ if the page is not what this would write.
"""

import difflib
import os
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "doc", "python_names.md")

INTRODUCTION = """\
# Python: the names of tf

<!-- Written by python/tools/make_names_doc.py; do not edit. -->

Of the %d public names of stock's `tf.compat.v1`, %d are here. An absent name raises AttributeError and names this page;
`runnel python-compat script.py` lists the absent names that a script uses. The guide is [python.md](python.md).
"""

# Names that are here and differ from stock.
DIFFERENT = {
    "GradientTape": "In a graph, it is `tf.gradients` over the operations that were built while it recorded. Reading a reference variable counts as well.",
    "Print": "Prints to the library's log.",
    "Session.run": "A fetch that is also fed returns the fed value.",
    "flags": "Has the API of 1.x and does not need absl.",
    "function": "Runs the Python function as it is, without autograph. On a tape, a function with side effects (assignments, random numbers) or with "
                "`tf.custom_gradient` in it runs op by op. Called in a graph, its operations become part of that graph; without a result it returns "
                "an operation.",
    "gfile": "Reads and writes local files only.",
    "gradients": "Ignores `aggregation_method`.",
    "py_func": "Works only in the process that built the graph, as in stock.",
    "ragged": "`tf.data` supports one ragged dimension. Broadcasting supports rows of scalars, rows of equal length and columns.",
    "sparse_concat": "Requires equal shapes.",
    "test.TestCase": "Lacks the methods of absl that start other programs.",
}


def names():
    """Returns the public names of stock."""
    with open(os.path.join(HERE, "stock_names.txt"), encoding="utf-8") as stream:
        return [line.strip() for line in stream if line.strip()]


def find(name):
    """Tells whether the package has the name."""
    import runnel as value
    try:
        for part in name.split("."):
            value = getattr(value, part)
    except (AttributeError, ImportError):
        return False
    return True


def rows():
    """Returns {namespace: (supported, absent)}."""
    table = {}
    for name in names():
        space, _, leaf = name.rpartition(".")
        supported, absent = table.setdefault(space, ([], []))
        (supported if find(name) else absent).append(leaf)
    return table


def listed(label, leaves):
    """Returns the lines of a paragraph that lists names; none if there are none."""
    if not leaves:
        return []
    return textwrap.wrap(label + " ".join("`%s`" % leaf for leaf in leaves), 120, break_long_words=False, break_on_hyphens=False) + [""]


def text():
    """Returns the page."""
    table = rows()
    have = sum(len(supported) for supported, _ in table.values())
    lines = [INTRODUCTION % (sum(len(s) + len(a) for s, a in table.values()), have), "## Different from stock", ""]
    for name, how in sorted(DIFFERENT.items()):
        lines += textwrap.wrap("- `tf.%s`: %s" % (name, how), 120, subsequent_indent="  ", break_on_hyphens=False)
    lines += [""]
    for space, (supported, absent) in table.items():
        lines += ["## " + ("tf." + space if space else "tf"), ""] + listed("", supported) + listed("Absent: ", absent)
    return "\n".join(lines)


def main():
    new = text()
    if "--check" in sys.argv:
        with open(PAGE, encoding="utf-8") as stream:
            old = stream.read()
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "the page", "what it should be"))
        return int(old != new)
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
