"""Writes the table of names in doc/python.md: of stock's tf.compat.v1 (stock_names.txt), which are
here, which differ, which are absent.

    PYTHONPATH=python python3 python/tools/make_names_doc.py [--check]

--check writes nothing and fails if the page says of a name that it is supported and it is not.
"""

import collections
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "doc", "python.md")
START, END = "<!-- names: written by python/tools/make_names_doc.py -->", "<!-- end of names -->"

# What is here and not quite as in stock.
DIFFERENT = {
    "Print": "goes to the library's log",
    "sparse_concat": "of equal shapes only",
    "ragged": "in tf.data one ragged dimension; broadcasting over rows of scalars, of equal rows and of columns only",
    "gradients": "aggregation_method makes no difference",
    "function": "as Python runs it, without autograph; on a tape, one with effects (assigning, random numbers) or with `tf.custom_gradient` in it "
                "runs op by op; called in a graph, its operations become part of that graph, and one without a result gives an operation",
    "GradientTape": "in a graph it is tf.gradients over what was built while it ran; reading a reference variable counts, too",
    "py_func": "in the process that made the graph only, as in stock",
    "Session.run": "a fetch that is fed comes back as it was fed",
    "test.TestCase": "without the methods of absl that start other programs",
    "flags": "those of 1.x; absl is not needed",
    "gfile": "files of this machine",
}


def names():
    with open(os.path.join(HERE, "stock_names.txt"), encoding="utf-8") as stream:
        return [line.strip() for line in stream if line.strip()]


def find(name):
    """Whether the package has it."""
    import runnel as value
    try:
        for part in name.split("."):
            value = getattr(value, part)
    except (AttributeError, ImportError):
        return False
    return True


def rows():
    """namespace -> (supported, absent)"""
    table = collections.OrderedDict()
    for name in names():
        space, _, leaf = name.rpartition(".")
        supported, absent = table.setdefault(space, ([], []))
        (supported if find(name) else absent).append(leaf)
    return table


def text():
    table = rows()
    lines = [START, ""]
    total = sum(len(s) + len(a) for s, a in table.values())
    have = sum(len(s) for s, _ in table.values())
    lines += ["Of the %d public names of stock's `tf.compat.v1` that this page measures by, %d are here." % (total, have), "",
              "| namespace | supported | absent |", "|---|---|---|"]
    for space, (supported, absent) in table.items():
        lines.append("| `%s` | %s | %s |" % ("tf." + space if space else "tf", listed(supported), listed(absent)))
    lines += ["", "Different from stock:", "", "| name | how |", "|---|---|"]
    lines += ["| `tf.%s` | %s |" % row for row in sorted(DIFFERENT.items())]
    return "\n".join(lines + ["", END])


def listed(leaves):
    return " ".join("`%s`" % leaf for leaf in leaves) or "—"


def check(page):
    """Names that the page calls supported and that are not."""
    wrong = []
    for space, supported in re.findall(r"^\| `(tf[\w.]*)` \| ([^|]*) \| [^|]* \|$", page, re.M):
        for leaf in re.findall(r"`([^`]+)`", supported):
            name = (space + "." + leaf)[3:]
            if not find(name):
                wrong.append(name)
    return wrong


def main():
    with open(PAGE, encoding="utf-8") as stream:
        page = stream.read()
    if "--check" in sys.argv:
        wrong = check(page)
        print("\n".join(wrong))
        return 1 if wrong else 0
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    page = before + text() + after  # before the file is opened: a failure leaves it as it is
    with open(PAGE, "w", encoding="utf-8") as stream:
        stream.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
