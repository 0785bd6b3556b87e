#!/usr/bin/env python3
"""Runs op cases with stock TensorFlow and records the results.

  record_cases.py cases.jsonl -o golden.jsonl
  record_cases.py cases.jsonl --check golden.jsonl   run again and compare

Runs with any Python that has tensorflow or tensorflow-cpu.

A case is one JSON object per line ('#' starts a comment line):
  {"name": "matmul_2x3", "op": "MatMul", "attrs": {"transpose_b": true},
   "inputs": [X, Y], "grad": true}
  attrs   values of the types in the OpDef: "float", [2, 3], 1, 0.5, true, "SAME", lists of these,
          a tensor as {"dtype", "shape", "values"}.  Type, number and type-list attrs
          that the inputs determine may be left out.
  grad    also record tf.gradients of the float outputs with respect to the float inputs
          (incoming gradients are drawn like inputs, with seed 1000 + output number);
          "complex": of the complex ones, too.
  grad_outputs    indices of the outputs that grad differentiates; by default all
  before  nodes that run first, one Run each: [{"op": .., "attrs": .., "inputs": ..}, ...]
  then    nodes that run afterwards, one Run each; their results are recorded
  undefined   indices of outputs whose values are undefined; they are not recorded
  any_shape   indices of outputs whose shape depends on how stock was built
Other fields (tol, message, fd ..) are for the test that compares results.
An input (for an N * T or list(type) argument: a list of them) is one of
  {"dtype": "float", "shape": [2, 3], "values": [1, 2, 3, 4, 5, 6]}   a single value fills the shape
  {"dtype": "float", "shape": [2, 3], "seed": 5, "lo": -1, "hi": 1}   random values, see draw()
  {"dtype": "float", "shape": [3], "values": [..], "variable": "ref"}      an initialized VariableV2
  {"dtype": "float", "shape": [3], "values": [..], "variable": "resource"} an initialized VarHandleOp;
          "after" records the values of variables after the run
  {"op": .., "attrs": .., "inputs": .., "output": 0}                  the output of another node
  {"use": "q", "output": 1}     another use of the input with "id": "q" earlier in the case;
          "node" is the node under test
"const": true on an input makes it a Const node; otherwise it is a fed Placeholder.
"control": [..] on a node lists nodes that must run before it.

The result is one JSON object per line, in the order of the cases:
  name, op
  outputs   [{"dtype", "shape", "values"}]; nan, inf, -inf and integers above 2^63 - 1 are
            strings, complex numbers are [re, im], bytes that are not UTF-8 are {"b64": ..}
  static    the output shapes that shape inference gives (-1 unknown size, null unknown rank)
  grads, after    like outputs; null where there is no gradient
  grad_error      why "grad" gave no grads
  then      [{"outputs": ..} | {"error": ..}]
  error     {"stage": "build" | "run", "code", "message"}; build: adding the node failed
            (attr checks, shape inference), run: the kernel failed.  code is a TF_Code name,
            "DIED", or "PYTHON" if the Python layer failed first (nothing to compare)
  kernel    only after a build error: the result of the kernel if the Placeholders have
            unknown shapes: {"outputs"} or {"error"}

The node under test is called "node", with inputs "in0", "in1" ... in flat order.  oneDNN and
graph optimization are off and there is one thread, so that the results are those of plain kernels.
The cases run in a child process: if stock TensorFlow crashes in one, the others still run.
"""

import argparse
import base64
import json
import os
import pickle
import re
import select
import signal
import struct
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops.linalg.sparse import sparse_csr_matrix_grad  # noqa: F401 (registers)
from tensorflow.python.ops import map_ops  # noqa: F401  (registers the gradients of maps)

CODES = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS "
    "PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE "
    "UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED"
).split()
BIG = 1 << 63  # larger integers are written as strings, because the reader in C has int64


class BadCase(Exception):
    """The case itself is invalid."""


# ---- values


def dtype_of(name):
    try:
        return tf.as_dtype(types_pb2.DataType.Value("DT_" + name.upper()))
    except ValueError:
        return tf.as_dtype(name)


def dtype_name(d):
    return types_pb2.DataType.Name(d.as_datatype_enum)[3:].lower()


def splitmix64(seed, n):
    """Returns n values: element i is the finalizer of splitmix64 at seed * 2^32 + i + 1."""
    with np.errstate(over="ignore"):
        x = (np.uint64(seed) << np.uint64(32)) + np.arange(1, n + 1, dtype=np.uint64)
        x = x * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def plain(d):
    """Returns the NumPy type that holds the bits of d; for a quantized type, an integer type."""
    return np.dtype(
        {"qint8": "i1", "quint8": "u1", "qint32": "i4", "qint16": "i2", "quint16": "u2"}.get(
            dtype_name(d), d.as_numpy_dtype
        )
    )


def has_gradient(case, d):
    return d.is_floating or (d.is_complex and case.get("grad") == "complex")


def draw(d, shape, seed, lo=None, hi=None):
    """Returns pseudo-random values that a C program can easily draw, too.

    z = splitmix64; floats: lo + (hi - lo) * (z >> 40) / 2^24 in double, then rounded to the
    type (default -1, 1); integers: lo + z % (hi - lo) (default -8, 8; unsigned 0, 16);
    bool: z & 1; complex: real and imaginary part from two draws; string: "s" + z % 100.
    """
    n = int(np.prod(shape, dtype=np.int64))
    if d.is_complex:
        z = splitmix64(seed, 2 * n)
    else:
        z = splitmix64(seed, n)
    if d.is_floating or d.is_complex:
        lo, hi = -1.0 if lo is None else lo, 1.0 if hi is None else hi
        v = lo + (hi - lo) * ((z >> np.uint64(40)).astype(np.float64) / 2.0**24)
        if d.is_complex:
            v = v[0::2] + 1j * v[1::2]
    elif d == tf.bool:
        v = (z & np.uint64(1)).astype(bool)
    elif d == tf.string:
        v = np.array([b"s%d" % (int(x) % 100) for x in z], dtype=object)
    else:
        unsigned = plain(d).kind == "u"
        lo, hi = (0 if unsigned else -8) if lo is None else lo, (
            (16 if unsigned else 8) if hi is None else hi
        )
        v = np.array([lo + int(x) % (hi - lo) for x in z], dtype=object)
    return v.astype(object if d == tf.string else plain(d)).reshape(shape)


def scalar(d, v):
    if isinstance(v, dict) and "b64" in v:
        return base64.b64decode(v["b64"])
    if d == tf.string:
        return v.encode() if isinstance(v, str) else v
    if d.is_complex and isinstance(v, list):
        return complex(v[0], v[1])
    if isinstance(v, str):
        return float(v) if d.is_floating or d.is_complex else int(v)
    return v


def array_of(spec):
    """Returns the NumPy array of an input spec, and its tf dtype."""
    d = dtype_of(spec["dtype"])
    shape = spec.get("shape", [])
    if "seed" in spec:
        return draw(d, shape, spec["seed"], spec.get("lo"), spec.get("hi")), d
    flat = [scalar(d, v) for v in spec.get("values", [])]
    n = int(np.prod(shape, dtype=np.int64))
    if len(flat) == 1 and n != 1:
        flat = flat * n
    if len(flat) != n:
        raise BadCase("%d values for shape %s" % (len(flat), shape))
    a = np.empty(n, dtype=object if d == tf.string else plain(d))
    for i, v in enumerate(flat):
        a[i] = v
    return a.reshape(shape), d


def to_feed(a, d):
    return a if d == tf.string else a.view(d.as_numpy_dtype) if d.is_quantized else a


def value_out(x):
    if isinstance(x, bytes):
        try:
            return x.decode("utf-8")
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(x).decode()}
    if isinstance(x, (complex, np.complexfloating)):
        return [value_out(x.real), value_out(x.imag)]
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x) if int(x) < BIG else str(int(x))
    y = float(x)
    if y != y or y in (float("inf"), float("-inf")):
        return str(y)
    return float(np.format_float_scientific(x, unique=True)) if isinstance(x, np.floating) else y


def array_out(a, d):
    """Returns an array as JSON data."""
    a = np.asarray(a, dtype=object if d == tf.string else None)  # NumPy's "S" type would drop trailing zero bytes
    out = {"dtype": dtype_name(d), "shape": list(a.shape)}
    if d.is_quantized:
        a = a.view(plain(d)).reshape(a.shape)
    out["values"] = [value_out(x) for x in a.ravel()]
    return out


# ---- attrs


def shape_proto(proto, v):
    if v is None or v == "?":
        proto.unknown_rank = True
    else:
        proto.SetInParent()
        for n in v:
            proto.dim.add().size = -1 if n is None else n


def set_attr(av, kind, v):
    if kind.startswith("list("):
        av.list.SetInParent()
        kind = kind[5:-1]
        for x in v:
            if kind == "type":
                av.list.type.append(dtype_of(x).as_datatype_enum)
            elif kind == "shape":
                shape_proto(av.list.shape.add(), x)
            elif kind == "string":
                av.list.s.append(x.encode())
            elif kind == "int":
                av.list.i.append(x)
            elif kind == "float":
                av.list.f.append(float(x))
            elif kind == "bool":
                av.list.b.append(x)
            elif kind == "tensor":
                a, d = array_of(x)
                av.list.tensor.add().CopyFrom(tf.make_tensor_proto(to_feed(a, d), dtype=d))
            else:
                raise BadCase("attr of type list(%s)" % kind)
    elif kind == "type":
        av.type = dtype_of(v).as_datatype_enum
    elif kind == "shape":
        shape_proto(av.shape, v)
    elif kind == "string":
        av.s = v.encode()
    elif kind == "int":
        av.i = v
    elif kind == "float":
        av.f = float(v)
    elif kind == "bool":
        av.b = v
    elif kind == "tensor":
        a, d = array_of(v)
        av.tensor.CopyFrom(tf.make_tensor_proto(to_feed(a, d), dtype=d))
    else:
        raise BadCase("attr of type %s" % kind)


def guess_attr(av, v):
    """Sets an attr that the OpDef does not have, so that the library reports the error."""
    if isinstance(v, bool):
        av.b = v
    elif isinstance(v, int):
        av.i = v
    elif isinstance(v, float):
        av.f = v
    else:
        av.s = str(v).encode()


# ---- building and running one case


class Run:
    def __init__(self, case, static):
        self.case = case
        self.static = static  # whether Placeholders have the shape of their value
        self.feeds, self.leaves, self.vars, self.init = {}, [], [], []
        self.count = 0
        self.ids = {}
        self.node = self.ids["node"] = self.build(case, "node")
        self.before = [self.build(s, "before%d" % i) for i, s in enumerate(case.get("before", []))]
        self.then = [self.build(s, "then%d" % i) for i, s in enumerate(case.get("then", []))]

    def leaf(self, spec):
        a, d = array_of(spec)
        name = "in%d" % self.count
        self.count += 1
        kind = spec.get("variable")
        if kind == "ref":
            t = tf.raw_ops.VariableV2(shape=a.shape, dtype=d, name=name)
            c = tf.constant(to_feed(a, d), dtype=d, name=name + "_value")
            self.init.append(tf.raw_ops.Assign(ref=t, value=c).op)
            self.vars.append((t, d))
        elif kind == "resource":
            t = tf.raw_ops.VarHandleOp(shape=a.shape, dtype=d, shared_name=name, name=name)
            c = tf.constant(to_feed(a, d), dtype=d, name=name + "_value")
            self.init.append(tf.raw_ops.AssignVariableOp(resource=t, value=c))
            self.vars.append((tf.raw_ops.ReadVariableOp(resource=t, dtype=d), d))
        elif spec.get("const"):
            t = tf.constant(to_feed(a, d), dtype=d, shape=a.shape, name=name)
        else:
            shape = a.shape if self.static else None
            t = tf.placeholder(d, shape, name=name)
            self.feeds[t] = to_feed(a, d)
            if has_gradient(self.case, d):
                self.leaves.append(t)
        return t

    def tensor(self, spec):
        n = spec.get("output", 0)
        if "use" in spec:
            x = self.ids[spec["use"]]
            return x if isinstance(x, tf.Tensor) else x.outputs[n]
        if "op" in spec:
            self.count += 1
            x = self.build(spec, "in%d" % (self.count - 1))
            t = x.outputs[n]
        else:
            x = t = self.leaf(spec)
        if "id" in spec:
            self.ids[spec["id"]] = x
        return t

    def operation(self, spec):
        self.count += 1
        x = self.build(spec, "in%d" % (self.count - 1))
        if "id" in spec:
            self.ids[spec["id"]] = x
        return x

    def build(self, case, name):
        op_def = op_def_registry.get(case["op"])
        control = [self.operation(x) for x in case.get("control", [])]
        given = case.get("inputs", [])
        if op_def is None:  # let the library report the error
            flat = [self.tensor(x) for x in given]
            return tf.get_default_graph().create_op(case["op"], flat, [], name=name)
        kinds = {a.name: a.type for a in op_def.attr}
        attrs, flat = {}, []
        for k, v in case.get("attrs", {}).items():
            attrs[k] = attr_value_pb2.AttrValue()
            if k in kinds:
                set_attr(attrs[k], kinds[k], v)
            else:
                guess_attr(attrs[k], v)
        for i, spec in enumerate(given):
            arg = op_def.input_arg[i] if i < len(op_def.input_arg) else None
            if isinstance(spec, list):
                ts = [self.tensor(x) for x in spec]
            else:
                ts = [self.tensor(spec)]
            flat += ts
            if arg is None:
                continue
            if arg.type_list_attr and arg.type_list_attr not in attrs:
                av = attrs[arg.type_list_attr] = attr_value_pb2.AttrValue()
                av.list.SetInParent()
                av.list.type.extend(t.dtype.base_dtype.as_datatype_enum for t in ts)
            if arg.number_attr and arg.number_attr not in attrs:
                attrs[arg.number_attr] = attr_value_pb2.AttrValue(i=len(ts))
            if arg.type_attr and arg.type_attr not in attrs and ts:
                attrs[arg.type_attr] = attr_value_pb2.AttrValue(
                    type=ts[0].dtype.base_dtype.as_datatype_enum
                )
        with tf.control_dependencies(control):
            return tf.get_default_graph().create_op(
                case["op"], flat, input_types=None, attrs=attrs, name=name, op_def=op_def
            )


def in_order(message):
    """Returns |message| with a node's attributes by name: stock lists them in another order in each process."""
    sort = lambda found: "with these attrs: [%s]" % ", ".join(sorted(found.group(1).split(", ")))
    return re.sub(r"with these attrs: \[([^]]*)\]", sort, message)


def error_of(stage, e):
    if isinstance(e, tf.errors.OpError):
        code = CODES[e.error_code] if e.error_code < len(CODES) else str(e.error_code)
        return {"stage": stage, "code": code, "message": in_order(e.message)}
    if isinstance(e, RuntimeError) and "not registered" in str(e):
        return {
            "stage": stage,
            "code": "NOT_FOUND",
            "message": str(e).split(" in binary")[0] + " in binary",
        }
    if isinstance(e, ValueError):  # graph construction raises it for INVALID_ARGUMENT
        return {"stage": stage, "code": "INVALID_ARGUMENT", "message": str(e)}
    return {"stage": stage, "code": "PYTHON", "message": repr(e)}


def run_session(sess, fetches, targets, feeds):
    """Session.run without the text that Python adds to error messages."""
    sess._extend_graph()
    return sess._call_tf_sessionrun(
        None,
        {t._as_tf_output(): v for t, v in feeds.items()},
        [t._as_tf_output() for t in fetches],
        [o._c_op if hasattr(o, "_c_op") else o for o in targets],
        None,
    )


def config():
    c = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    c.graph_options.rewrite_options.disable_meta_optimizer = True
    c.graph_options.optimizer_options.opt_level = -1
    return c


def run_then(sess, r):
    """Returns the results of the nodes of "then"."""
    for node in r.then:
        outs = fetchable(node)
        try:
            got = run_session(sess, outs, [] if outs else [node], r.feeds)
            yield {"outputs": [array_out(v, t.dtype.base_dtype) for t, v in zip(outs, got)]}
        except tf.errors.OpError as e:
            yield {"error": error_of("run", e)}


def record_grads(sess, r, res, grads, ys, gys):
    """Records the values of the gradients, or why stock TensorFlow has none."""
    some = [x for x in grads if x is not None]
    outs = [id(t) for t in fetchable(r.node)]
    for i, (t, gy) in enumerate(zip(ys, gys)):
        shape = res["outputs"][outs.index(id(t))]["shape"]
        r.feeds[gy] = draw(t.dtype.base_dtype, shape, 1000 + i)
    try:
        got = iter(run_session(sess, some, [], r.feeds)) if some else iter([])
    except tf.errors.OpError as e:
        res["grad_error"] = e.message.split("\n")[0]
        return
    res["grads"] = [None if x is None else array_out(next(got), x.dtype) for x in grads]


def fetchable(node):
    return [t for t in node.outputs if t.dtype.base_dtype not in (tf.resource, tf.variant)]


def attempt(case, static):
    """Builds and runs a case once. Returns the fields of the result."""
    with tf.Graph().as_default() as g:
        try:
            r = Run(case, static)
        except (BadCase, KeyError):
            raise
        except Exception as e:
            return {"error": error_of("build", e)}
        res = {}
        if static:
            res["static"] = [
                (
                    None
                    if t.shape.rank is None
                    else [-1 if n is None else n for n in t.shape.as_list()]
                )
                for t in r.node.outputs
            ]
        outs = fetchable(r.node)
        grads = None
        if case.get("grad"):
            wanted = case.get("grad_outputs")
            ys = [
                t
                for t in outs
                if has_gradient(case, t.dtype) and (wanted is None or t.value_index in wanted)
            ]
            try:
                gys = [tf.placeholder(t.dtype.base_dtype, t.shape) for t in ys]
                grads = tf.gradients(ys, r.leaves, gys)
                grads = [None if x is None else tf.convert_to_tensor(x) for x in grads]
            except Exception as e:
                res["grad_error"] = str(e).split("\n")[0]
                grads = None
        with tf.Session(graph=g, config=config()) as sess:
            try:
                if r.init:
                    run_session(sess, [], r.init, {})
                for node in r.before:
                    try:
                        run_session(sess, [], [node], r.feeds)
                    except tf.errors.OpError as e:
                        raise BadCase("before: " + e.message)
                got = run_session(sess, outs, [] if outs else [r.node], r.feeds)
                res["outputs"] = [array_out(v, t.dtype.base_dtype) for t, v in zip(outs, got)]
                for i in case.get("undefined", []) + case.get("any_shape", []):
                    res["outputs"][i].pop("values", None)
                for i in case.get("any_shape", []):
                    del res["outputs"][i]["shape"]
                if r.vars:
                    got = run_session(sess, [t for t, _ in r.vars], [], {})
                    res["after"] = [array_out(v, d) for (_, d), v in zip(r.vars, got)]
                if grads is not None:
                    record_grads(sess, r, res, grads, ys, gys)
            except tf.errors.OpError as e:
                res["error"] = error_of("run", e)
            if r.then:
                res["then"] = list(run_then(sess, r))
        return res


def answer(case):
    out = {"name": case["name"], "op": case["op"]}
    try:
        out.update(attempt(case, True))
        if out.get("error", {}).get("stage") == "build":
            k = attempt(case, False)
            if k.get("error") != out["error"]:
                out["kernel"] = k
    except (BadCase, KeyError) as e:
        out["bad_case"] = repr(e)
    return out


def child(cases, start, w):
    """Runs cases[start:] and sends the results through the pipe w."""
    for i in range(start, len(cases)):
        blob = pickle.dumps(answer(cases[i]))
        os.write(w, struct.pack("<Q", len(blob)))
        view = memoryview(blob)
        while view:
            view = view[os.write(w, view) :]
    os._exit(0)


def record(cases, timeout):
    """Returns the results of all cases."""
    answers = []
    while len(answers) < len(cases):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(r)
            try:
                child(cases, len(answers), w)
            finally:
                os._exit(1)
        os.close(w)

        def read(n):
            b = b""
            while len(b) < n:
                if not select.select([r], [], [], timeout)[0]:
                    return None
                x = os.read(r, n - len(b))
                if not x:
                    return None
                b += x
            return b

        while len(answers) < len(cases):
            head = read(8)
            body = read(struct.unpack("<Q", head)[0]) if head else None
            if body is None:
                break
            answers.append(pickle.loads(body))
        os.close(r)
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done:
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
        if len(answers) < len(cases):
            c = cases[len(answers)]
            sig = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            what = "no answer in %g s" % timeout if sig == signal.SIGKILL else "signal %d" % sig
            answers.append(
                {
                    "name": c["name"],
                    "op": c["op"],
                    "error": {
                        "stage": "run",
                        "code": "DIED",
                        "message": "stock TensorFlow: " + what,
                    },
                }
            )
    return answers


def read_cases(path):
    cases, names = [], set()
    with open(path) as f:
        for n, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            c = json.loads(line)
            c.setdefault("name", "%s_%d" % (c["op"], n))
            if c["name"] in names:
                sys.exit("%s:%d: name %s is used twice" % (path, n, c["name"]))
            names.add(c["name"])
            cases.append(c)
    return cases


def without_messages(x):
    """Returns a result without messages, for cases with "message": "code-only", whose messages vary from run to run."""
    if isinstance(x, list):
        return [without_messages(y) for y in x]
    if isinstance(x, dict):
        return {k: without_messages(v) for k, v in x.items() if k != "message"}
    return x


def compare(cases, answers, path):
    """Returns how many results differ from those in a golden file."""
    with open(path) as f:
        old = {a["name"]: a for a in map(json.loads, f)}
    bad = 0
    for c, a in zip(cases, answers):
        b = old.pop(a["name"], None)
        new = json.loads(json.dumps(a))
        if c.get("message") == "code-only":
            b, new = without_messages(b), without_messages(new)
        if b != new:
            bad += 1
            print("%s: %s" % (a["name"], "differs" if b else "not in the golden file"))
    for n in old:
        bad += 1
        print("%s: no such case" % n)
    return bad


def main():
    ap = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ap.add_argument("cases")
    ap.add_argument("-o", metavar="FILE", help="golden file to write (.jsonl)")
    ap.add_argument("--check", metavar="FILE", help="compare with this golden file")
    ap.add_argument("--timeout", type=float, default=60, help="seconds that a case may take")
    args = ap.parse_args()
    if bool(args.o) == bool(args.check):
        ap.error("give -o or --check")
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.FATAL)
    cases = read_cases(args.cases)
    answers = record(cases, args.timeout)

    bad = 0
    for a in answers:
        if "bad_case" in a:
            bad += 1
            print("%s: bad case: %s" % (a["name"], a["bad_case"]), file=sys.stderr)
    if args.o:
        with open(args.o, "w") as f:
            for a in answers:
                f.write(json.dumps(a) + "\n")
    else:
        bad += compare(cases, answers, args.check)
    print(
        "%d cases: %d ran, %d failed in stock TensorFlow, %d bad"
        % (
            len(answers),
            sum("outputs" in a for a in answers),
            sum("error" in a for a in answers),
            bad,
        )
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
