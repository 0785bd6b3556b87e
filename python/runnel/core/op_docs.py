"""One sentence per op, which the build collects from the .ops files."""

import os

_summaries = None


def summary(name):
    """Returns the sentence of an op, or None."""
    global _summaries
    if _summaries is None:
        _summaries = {}
        import runnel
        for folder in runnel.__path__:
            path = os.path.join(folder, "op_docs.txt")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as stream:
                    for line in stream:
                        op, _, text = line.rstrip("\n").partition("\t")
                        _summaries[op] = text
                break
    return _summaries.get(name)
