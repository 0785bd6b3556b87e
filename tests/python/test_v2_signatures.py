"""The parameters of TensorFlow 2's functions: the same names, in the same order, as in stock."""

import inspect
import os

from both import ROOT, both, programs, run, stock_results

# Functions that differ: what only stock has can have no effect here, or is another API.
DIFFERENT = set("""
feature_column.categorical_column_with_vocabulary_file group nest.map_structure summary.audio
test.assert_equal_graph_def
""".split())


def default_text(value):
    if value is inspect.Parameter.empty:
        return None
    if isinstance(value, (int, float, str, bool, type(None), tuple, list)):
        return repr(value)
    return str(getattr(value, "name", type(value).__name__))


@both(v2=True)
def parameters(tf, np):
    listed, found = {}, {}
    with open(os.path.join(ROOT, "python", "runnel", "compat", "v2", "names.py"), encoding="utf-8") as stream:
        exec(stream.read(), listed)
    for space, names in sorted(listed["NAMES"].items()):
        if space.startswith("__") or "numpy" in space or "experimental" in space:
            continue
        for name in sorted(names):
            value = tf
            try:
                for part in (space.split(".") if space else []) + [name]:
                    value = getattr(value, part)
                if callable(value) and not isinstance(value, type):
                    found[(space and space + ".") + name] = [
                        (p.name, default_text(p.default)) for p in inspect.signature(value).parameters.values()]
            except (AttributeError, ImportError, ValueError):
                continue
    return found


def test_parameters():
    import runnel.v2 as tf
    stock = stock_results(__file__)["parameters"][1]
    ours = run(programs["parameters"][0], tf, programs["parameters"][1])[1]
    common = set(stock) & set(ours)
    assert len(common) > 750
    differ = {name: (ours[name], stock[name]) for name in common if [p[0] for p in ours[name]] != [p[0] for p in stock[name]]}
    assert {name: rows for name, rows in differ.items() if name not in DIFFERENT} == {}
    assert set(differ) == DIFFERENT & common
