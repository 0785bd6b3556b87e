"""The C API of one libtensorflow through ctypes: runs a case eagerly or as a graph.

A case is a dict: "mode" ("eager" or "graph") and "nodes", a list of
  {"op": name, "attrs": {name: (kind, value)}, "inputs": [INPUT or [INPUT ...] ...]}
where INPUT is ("tensor", dtype, shape, data, how) or ("node", number of an earlier node, output).
data is the raw bytes, or a list of bytes for strings; how is "const", "shaped" or "open" (a
placeholder with or without a static shape; eager execution ignores it).

Nodes run one after the other. A graph has control edges between neighbours and runs in one step.
The answer is ("ok", [[(dtype, shape, data or None) ...] per node]) or ("error", code, message).
"""

import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_float, c_int, c_int64, c_size_t, c_ubyte, c_void_p

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from support import wire  # noqa: E402

DTYPES = (
    "invalid float double int32 uint8 int16 int8 string complex64 int64 bool qint8 quint8 qint32 "
    "bfloat16 qint16 quint16 uint16 complex128 half resource variant uint32 uint64 float8_e5m2 "
    "float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz int4 uint4"
).split()
CODE = {name: i for i, name in enumerate(DTYPES)}
OPAQUE = (CODE["resource"], CODE["variant"])
MAX_OUTPUTS = 64
MAX_BYTES = 1 << 24  # of larger results, dtype and shape are compared
ONE_THREAD = b"\x10\x01\x28\x01"  # ConfigProto: intra_op and inter_op threads
# graph_options: optimizer_options.opt_level -1, rewrite_options.disable_meta_optimizer
PLAIN = b"\x52\x12\x1a\x0b\x18" + b"\xff" * 9 + b"\x01\x52\x03\x98\x01\x01"


class Output(ctypes.Structure):
    _fields_ = [("oper", c_void_p), ("index", c_int)]


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p)]


class Failed(Exception):
    """The library answered with an error."""


class Library:
    """One loaded library. Nothing but loading happens before the first run, so it may be forked."""

    def __init__(self, path, optimize=False, timeout_s=3):
        self.lib = ctypes.CDLL(path)
        self.config = ONE_THREAD if optimize else ONE_THREAD + PLAIN
        self.timeout_ms = int(timeout_s * 1000)
        self.context = None
        pointers = """TF_NewStatus TF_NewGraph TF_NewSession TF_NewSessionOptions TF_NewOperation
            TF_FinishOperation TF_AllocateTensor TF_TensorData TF_StringGetDataPointer
            TFE_NewContextOptions TFE_NewContext TFE_NewOp TFE_NewTensorHandle
            TFE_TensorHandleResolve"""
        for name in pointers.split():
            getattr(self.lib, name).restype = c_void_p
        for name in "TF_Message TF_GetAllOpList TF_GetRegisteredKernelsForOp".split():
            getattr(self.lib, name).restype = c_char_p if "Message" in name else POINTER(Buffer)
        for name in "TF_TensorByteSize TF_StringGetSize".split():
            getattr(self.lib, name).restype = c_size_t
        self.lib.TF_Dim.restype = c_int64
        self.lib.TF_TensorElementCount.restype = c_int64
        self.lib.TF_OperationOutputType.argtypes = [Output]

    def bytes_of(self, buffer):
        data = ctypes.string_at(buffer.contents.data, buffer.contents.length)
        self.lib.TF_DeleteBuffer(buffer)
        return data

    def op_list(self):
        return self.bytes_of(self.lib.TF_GetAllOpList())

    def kernels(self, op):
        status = self.new_status()
        found = self.lib.TF_GetRegisteredKernelsForOp(op.encode(), c_void_p(status))
        return self.bytes_of(found) if found else b""

    # ---- statuses and tensors

    def new_status(self):
        return self.lib.TF_NewStatus()

    def check(self, status):
        code = self.lib.TF_GetCode(c_void_p(status))
        if code:
            raise Failed(code, self.lib.TF_Message(c_void_p(status)).decode("utf-8", "replace"))

    def tensor(self, dtype, shape, data):
        dims = (c_int64 * max(1, len(shape)))(*shape)
        size = 24 * len(data) if dtype == "string" else len(data)
        made = self.lib.TF_AllocateTensor(CODE[dtype], dims, len(shape), c_size_t(size))
        if not made:
            raise Failed(8, "no memory for a tensor")
        at = self.lib.TF_TensorData(c_void_p(made))
        if dtype == "string":
            for i, text in enumerate(data):
                self.lib.TF_StringInit(c_void_p(at + 24 * i))
                self.lib.TF_StringCopy(c_void_p(at + 24 * i), text, c_size_t(len(text)))
        elif size:
            ctypes.memmove(at, data, size)
        return made

    def value(self, tensor):
        """(dtype, shape, data) of a TF_Tensor, which is deleted."""
        lib, tensor = self.lib, c_void_p(tensor)
        dtype = lib.TF_TensorType(tensor)
        shape = tuple(lib.TF_Dim(tensor, i) for i in range(lib.TF_NumDims(tensor)))
        at = lib.TF_TensorData(tensor)
        if dtype in OPAQUE or lib.TF_TensorByteSize(tensor) > MAX_BYTES:
            data = None
        elif dtype == CODE["string"]:
            data = []
            for i in range(lib.TF_TensorElementCount(tensor)):
                text = c_void_p(at + 24 * i)
                data.append(ctypes.string_at(lib.TF_StringGetDataPointer(text), lib.TF_StringGetSize(text)))
        else:
            size = lib.TF_TensorByteSize(tensor)
            data = ctypes.string_at(at, size) if size else b""
        lib.TF_DeleteTensor(tensor)
        return (DTYPES[dtype] if dtype < len(DTYPES) else str(dtype), shape, data)

    # ---- attributes: TFE_OpSetAttr* and TF_SetAttr* take the same arguments

    def set_attr(self, prefix, op, name, kind, value, status):
        lib, op, name = self.lib, c_void_p(op), name.encode()
        call = lambda what, *args: getattr(lib, prefix + what)(op, name, *args)
        if kind == "string":
            call("String", value, c_size_t(len(value)))
        elif kind == "int":
            call("Int", c_int64(value))
        elif kind == "float":
            call("Float", c_float(value))
        elif kind == "bool":
            call("Bool", c_ubyte(bool(value)))
        elif kind == "type":
            call("Type", CODE[value])
        elif kind == "shape":
            args = (None, -1) if value is None else ((c_int64 * max(1, len(value)))(*value), len(value))
            call("Shape", *args, *([c_void_p(status)] if prefix.startswith("TFE") else []))
        elif kind == "tensor":
            tensor = self.tensor(*value)
            call("Tensor", c_void_p(tensor), c_void_p(status))
            lib.TF_DeleteTensor(c_void_p(tensor))
        elif kind == "list(string)":
            texts = (c_char_p * max(1, len(value)))(*value)
            lengths = (c_size_t * max(1, len(value)))(*map(len, value))
            call("StringList", texts, lengths, len(value))
        elif kind == "list(shape)":
            dims = [(c_int64 * max(1, len(s or ())))(*(s or ())) for s in value]
            at = (c_void_p * max(1, len(value)))(*(ctypes.addressof(d) for d in dims))
            counts = (c_int * max(1, len(value)))(*(-1 if s is None else len(s) for s in value))
            more = [c_void_p(status)] if prefix.startswith("TFE") else []
            call("ShapeList", at, counts, len(value), *more)
        else:
            what, of = {
                "list(int)": ("IntList", c_int64),
                "list(float)": ("FloatList", c_float),
                "list(bool)": ("BoolList", c_ubyte),
                "list(type)": ("TypeList", c_int),
            }[kind]
            value = [CODE[v] for v in value] if kind == "list(type)" else value
            call(what, (of * max(1, len(value)))(*value), len(value))
        self.check(status)

    # ---- eager

    def eager_context(self, status):
        if not self.context:
            options = self.lib.TFE_NewContextOptions()
            self.lib.TFE_ContextOptionsSetConfig(
                c_void_p(options), ONE_THREAD, c_size_t(len(ONE_THREAD)), c_void_p(status)
            )
            self.context = self.lib.TFE_NewContext(c_void_p(options), c_void_p(status))
            self.lib.TFE_DeleteContextOptions(c_void_p(options))
            self.check(status)
        return self.context

    def run_eager(self, case, status, keep):
        lib = self.lib
        context = self.eager_context(status)
        handles, answers = [], []

        def handle(spec):
            if spec[0] == "node":
                return handles[spec[1]][spec[2]]
            tensor = self.tensor(*spec[1:4])
            made = lib.TFE_NewTensorHandle(c_void_p(tensor), c_void_p(status))
            lib.TF_DeleteTensor(c_void_p(tensor))
            self.check(status)
            keep.append(("TFE_DeleteTensorHandle", made))
            return made

        for node in case["nodes"]:
            op = lib.TFE_NewOp(c_void_p(context), node["op"].encode(), c_void_p(status))
            self.check(status)
            keep.append(("TFE_DeleteOp", op))
            for name, (kind, value) in node["attrs"].items():
                self.set_attr("TFE_OpSetAttr", op, name, kind, value, status)
            for spec in node["inputs"]:
                if isinstance(spec, list):
                    all_of = (c_void_p * max(1, len(spec)))(*map(handle, spec))
                    lib.TFE_OpAddInputList(c_void_p(op), all_of, len(spec), c_void_p(status))
                else:
                    lib.TFE_OpAddInput(c_void_p(op), c_void_p(handle(spec)), c_void_p(status))
                self.check(status)
            out, count = (c_void_p * MAX_OUTPUTS)(), c_int(MAX_OUTPUTS)
            lib.TFE_Execute(c_void_p(op), out, ctypes.byref(count), c_void_p(status))
            self.check(status)
            handles.append(list(out[: count.value]))
            keep += [("TFE_DeleteTensorHandle", h) for h in handles[-1]]
            answers.append([self.resolve(h, status) for h in handles[-1]])
        return answers

    def resolve(self, handle, status):
        if self.lib.TFE_TensorHandleDataType(c_void_p(handle)) in OPAQUE:
            return (DTYPES[self.lib.TFE_TensorHandleDataType(c_void_p(handle))], None, None)
        tensor = self.lib.TFE_TensorHandleResolve(c_void_p(handle), c_void_p(status))
        self.check(status)
        return self.value(tensor)

    # ---- graphs

    def run_graph(self, case, status, keep):
        lib, graph = self.lib, c_void_p(self.lib.TF_NewGraph())
        keep.append(("TF_DeleteGraph", graph.value))
        feeds, feed_values, nodes, count = [], [], [], [0]

        def begin(op):
            count[0] += 1
            return lib.TF_NewOperation(graph, op.encode(), b"n%d" % count[0])

        def finish(description):
            made = lib.TF_FinishOperation(c_void_p(description), c_void_p(status))
            self.check(status)
            return made

        def output(spec):
            if spec[0] == "node":
                return Output(nodes[spec[1]], spec[2])
            tensor = self.tensor(*spec[1:4])
            keep.append(("TF_DeleteTensor", tensor))
            if spec[4] == "const":
                made = begin("Const")
                lib.TF_SetAttrTensor(c_void_p(made), b"value", c_void_p(tensor), c_void_p(status))
                lib.TF_SetAttrType(c_void_p(made), b"dtype", CODE[spec[1]])
                return Output(finish(made), 0)
            made = begin("Placeholder")
            lib.TF_SetAttrType(c_void_p(made), b"dtype", CODE[spec[1]])
            if spec[4] == "shaped":
                self.set_attr("TF_SetAttr", made, "shape", "shape", spec[2], status)
            feeds.append(Output(finish(made), 0))
            feed_values.append(tensor)
            return feeds[-1]

        for node in case["nodes"]:
            inputs = [[output(s) for s in spec] if isinstance(spec, list) else output(spec) for spec in node["inputs"]]
            made = begin(node["op"])
            for spec in inputs:
                if isinstance(spec, list):
                    all_of = (Output * max(1, len(spec)))(*spec)
                    lib.TF_AddInputList(c_void_p(made), all_of, len(spec))
                else:
                    lib.TF_AddInput(c_void_p(made), spec)
            for name, (kind, value) in node["attrs"].items():
                self.set_attr("TF_SetAttr", made, name, kind, value, status)
            if nodes:
                lib.TF_AddControlInput(c_void_p(made), c_void_p(nodes[-1]))
            nodes.append(finish(made))

        fetches, owners = [], []
        for number, node in enumerate(nodes):
            for i in range(lib.TF_OperationNumOutputs(c_void_p(node))):
                dtype = lib.TF_OperationOutputType(Output(node, i))
                if dtype < 100 and dtype not in OPAQUE:
                    fetches.append(Output(node, i))
                    owners.append(number)
        return self.step(graph, feeds, feed_values, fetches, owners, nodes, status, keep)

    def step(self, graph, feeds, feed_values, fetches, owners, nodes, status, keep):
        lib = self.lib
        options = c_void_p(lib.TF_NewSessionOptions())
        lib.TF_SetConfig(options, self.config, c_size_t(len(self.config)), c_void_p(status))
        session = lib.TF_NewSession(graph, options, c_void_p(status))
        lib.TF_DeleteSessionOptions(options)
        self.check(status)
        keep.append(("session", session))
        out = (c_void_p * max(1, len(fetches)))()
        run_options = b"\x10" + wire.varint(self.timeout_ms)
        buffer = Buffer(ctypes.cast(c_char_p(run_options), c_void_p), len(run_options), None)
        lib.TF_SessionRun(
            c_void_p(session),
            ctypes.byref(buffer),
            (Output * max(1, len(feeds)))(*feeds),
            (c_void_p * max(1, len(feeds)))(*feed_values),
            len(feeds),
            (Output * max(1, len(fetches)))(*fetches),
            out,
            len(fetches),
            (c_void_p * 1)(nodes[-1]),
            1,
            None,
            c_void_p(status),
        )
        self.check(status)
        answers = [[] for _ in nodes]
        for owner, tensor in zip(owners, out[: len(fetches)]):
            answers[owner].append(self.value(tensor))
        return answers

    # ---- both

    def run(self, case):
        status, keep = self.new_status(), []
        run = self.run_eager if case["mode"] == "eager" else self.run_graph
        try:
            return ("ok", run(case, status, keep))
        except Failed as error:
            return ("error",) + error.args
        finally:
            spare = self.new_status()
            for what, it in reversed(keep):
                if what == "session":
                    self.lib.TF_CloseSession(c_void_p(it), c_void_p(spare))
                    self.lib.TF_DeleteSession(c_void_p(it), c_void_p(spare))
                else:
                    getattr(self.lib, what)(c_void_p(it))
            self.lib.TF_DeleteStatus(c_void_p(spare))
            self.lib.TF_DeleteStatus(c_void_p(status))
