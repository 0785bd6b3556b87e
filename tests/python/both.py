"""Runs a test's program here and in stock TensorFlow, and compares. See README.md."""

import contextlib
import functools
import gzip
import hashlib
import importlib
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STOCK = os.path.join(ROOT, "build", "venv", "bin", "python")
CACHE = os.path.join(ROOT, "build", "python_stock")
IGNORED = ("_output_shapes", "_has_manual_control_dependencies")  # notes, which no runtime reads
programs = {}


def plain(value):
    """A result as arrays and builtin types only, so that it can be pickled and compared."""
    import numpy as np
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "_fields"):
        return (type(value).__name__, [plain(item) for item in value])
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    if isinstance(value, np.ndarray) and value.dtype.name == "bfloat16":
        return ("bfloat16", value.astype(np.float32))
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.ndarray, np.generic)):
        return value
    return str(value)


def attr_text(tf, attr):
    """An attribute as text; tensors by their value, which can be written in several ways."""
    if attr.WhichOneof("value") == "tensor":
        array = tf.make_ndarray(attr.tensor)
        return "%s %s %s" % (array.dtype, array.shape, array.ravel().tolist())
    return str(attr)


def graph_rows(tf, graph):
    rows = []
    for node in graph.as_graph_def().node:
        attrs = {key: attr_text(tf, node.attr[key]) for key in sorted(node.attr) if key not in IGNORED}
        rows.append((node.name, node.op, tuple(node.input), node.device, attrs))
    return rows


@contextlib.contextmanager
def eager_mode(tf):
    """Eager execution for one program: here it is switched, in stock the process has it."""
    if tf.__name__ == "runnel":
        from runnel import eager
        from runnel.graph import default_graph
        eager.start()
        default_graph._eager_enabled = True
    try:
        yield
    finally:
        if tf.__name__ == "runnel":
            default_graph._eager_enabled = False


def values(tf, result):
    """A result of 2.x with the values of its tensors and variables."""
    if isinstance(result, (tf.Tensor, tf.Variable)):
        return result.numpy()
    if isinstance(result, dict):
        return {key: values(tf, item) for key, item in result.items()}
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        return type(result)(values(tf, item) for item in result)
    return result


def run(function, tf, options):
    """("ok", result, graph) or ("error", class name, text)."""
    import numpy as np
    graph = tf.Graph()
    if options["v2"]:
        inside = contextlib.nullcontext()
    else:
        inside = eager_mode(tf) if options["eager"] else graph.as_default()
    with inside:
        try:
            result = function(tf, np)
            if options["v2"]:
                result = values(tf, result)
        except Exception as error:
            if not options["raises"]:
                raise
            return ("error", type(error).__name__, str(error) if options["message"] else str(error).split("\n")[0])
    return ("ok", plain(result), graph_rows(tf, graph) if options["graph"] else None)


def digest(path):
    """Identifies the programs of a file: a digest of it and of the modules of programs that it imports."""
    data = open(path, "rb").read()
    for name in re.findall(rb"^from ((?!both)\w+) import", data, re.MULTILINE):
        with contextlib.suppress(FileNotFoundError):
            data += open(os.path.join(HERE, name.decode() + ".py"), "rb").read()
    return hashlib.sha256(data).hexdigest()[:16]


def recording(path):
    return os.path.join(HERE, "recorded", os.path.basename(path)[:-3] + ".pickle.gz")


def recorded(path):
    """The recorded results of a file's programs; None if the file has changed since, or never was recorded."""
    import numpy as np
    if np.__version__ < "2":  # NumPy 2, which stock has, pickles under these module names
        sys.modules.setdefault("numpy._core", np.core)
        sys.modules.setdefault("numpy._core.multiarray", np.core.multiarray)
    try:
        with gzip.open(recording(path), "rb") as stream:
            key, results = pickle.load(stream)
    except FileNotFoundError:
        return None
    return results if key == digest(path) else None


@functools.lru_cache(None)
def stock_results(path):
    """What stock gives for the programs of a file: name -> outcome. Recorded, or asked now and kept under build/."""
    results = recorded(path)
    if results is not None:
        return results
    kept = os.path.join(CACHE, "%s-%s.pickle" % (os.path.basename(path)[:-3], digest(path)))
    try:
        results = pickle.load(open(kept, "rb"))
    except FileNotFoundError:
        warnings.warn("%s: the recording is out of date; tests/python/record.py makes a new one" % path, stacklevel=1)
        os.makedirs(CACHE, exist_ok=True)
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", PYTHONPATH=HERE, TF_USE_LEGACY_KERAS="1")
        part = "%s.%d" % (kept, os.getpid())
        subprocess.run([STOCK, __file__, path, part], check=True, env=environment)
        results = pickle.load(open(part, "rb"))
        os.replace(part, kept)
    if any(outcome[0] == "failed in stock" for outcome in results.values()):
        with contextlib.suppress(FileNotFoundError):
            os.remove(kept)  # perhaps something is missing there: ask again next time
    return results


def compare(ours, stock, where, rtol, atol):
    import numpy as np
    assert type(ours) is type(stock) or (
        isinstance(ours, (int, float)) and isinstance(stock, (int, float))), (
        "%s: %s here, %s in stock" % (where, type(ours), type(stock)))
    if isinstance(stock, dict):
        assert list(ours) == list(stock), where
        for key in stock:
            compare(ours[key], stock[key], "%s[%r]" % (where, key), rtol, atol)
    elif isinstance(stock, (list, tuple)):
        assert len(ours) == len(stock), "%s: %d here, %d in stock" % (where, len(ours), len(stock))
        for i, (a, b) in enumerate(zip(ours, stock)):
            compare(a, b, "%s[%d]" % (where, i), rtol, atol)
    elif isinstance(stock, (np.ndarray, np.generic)):
        assert ours.dtype == stock.dtype, "%s: %s here, %s in stock" % (where, ours.dtype, stock.dtype)
        assert ours.shape == stock.shape, "%s: %s here, %s in stock" % (where, ours.shape, stock.shape)
        if stock.dtype.kind in "fc":
            np.testing.assert_allclose(ours, stock, rtol=rtol, atol=atol, err_msg=where)
        else:
            np.testing.assert_array_equal(ours, stock, err_msg=where)
    elif isinstance(stock, float):
        np.testing.assert_allclose(ours, stock, rtol=rtol, atol=atol, err_msg=where)
    else:
        assert ours == stock, "%s: %r here, %r in stock" % (where, ours, stock)


def compare_graphs(ours, stock):
    for i, (a, b) in enumerate(zip(ours, stock)):
        assert a == b, "node %d:\n%r here\n%r in stock" % (i, a, b)
    assert len(ours) == len(stock), "%d nodes here, %d in stock: %r" % (
        len(ours), len(stock), [row[:2] for row in (ours if len(ours) > len(stock) else stock)][
            min(len(ours), len(stock)):][:5])


def both(function=None, graph=False, raises=False, message=False, rtol=1e-5, atol=1e-6, eager=False, v2=False):
    """Makes a test of a program f(tf, np). A file's programs are all eager, or none is; the same holds for v2."""
    if function is None:
        return functools.partial(both, graph=graph, raises=raises, message=message, rtol=rtol, atol=atol,
                                 eager=eager, v2=v2)
    options = {"graph": graph, "raises": raises, "message": message, "eager": eager, "v2": v2}
    programs[function.__name__] = (function, options)
    path = function.__code__.co_filename

    def test():
        tf = importlib.import_module("runnel.v2" if v2 else "runnel")
        stock = stock_results(path)[function.__name__]
        ours = run(function, tf, options)
        assert ours[0] == stock[0], "%r here, %r in stock" % (ours, stock)
        if stock[0] == "error":
            assert ours[1] == stock[1], "%s: %s here, %s: %s in stock" % (ours[1:] + stock[1:])
            assert not message or ours[2] == stock[2], "%s here\n%s in stock" % (ours[2], stock[2])
            return
        compare(ours[1], stock[1], "result", rtol, atol)
        if graph:
            compare_graphs(ours[2], stock[2])

    test.__name__ = function.__name__
    return test


def run_in_stock(path):
    """In stock, in a process that has run no other file: the results of all programs of a file."""
    import logging

    import tensorflow.compat.v1 as tf
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    sys.modules["both"] = sys.modules[__name__]  # the file's programs register here
    sys.path.append(os.path.dirname(HERE))  # tests/support
    spec = importlib.util.spec_from_file_location("programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if any(options["v2"] for _, options in programs.values()):
        import tensorflow as tf
    else:
        tf.disable_v2_behavior()
        if any(options["eager"] for _, options in programs.values()):
            tf.enable_eager_execution()
    results = {}
    for name, (function, options) in programs.items():
        try:
            results[name] = run(function, tf, options)
        except Exception as error:  # the test of it fails, with this text
            results[name] = ("failed in stock", type(error).__name__, str(error))
    return results


if __name__ == "__main__":
    with open(sys.argv[2], "wb") as stream:
        pickle.dump(run_in_stock(sys.argv[1]), stream)
