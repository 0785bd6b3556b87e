"""The container's end of the protocol of doc/containers.md: Python functions behind `runnel serve`.

This file imports nothing of Runnel, so that a container needs NumPy alone. It runs by its path, too:

    python3 container.py MODULE:NAME
"""

import argparse
import collections
import hmac
import importlib
import mmap
import os
import socket
import ssl
import struct
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np

__all__ = ["Error", "Signature", "main", "serve", "signature"]

MAGIC, VERSION = 0x54434E52, 1
HELLO, WELCOME, REGION, PREDICT, REPLY, ERROR, BEAT, CANCEL, DRAIN = range(1, 10)
ABSENT, IN_PAYLOAD, IN_REGION = range(3)
HEADER = struct.Struct("<IHHQ")
PREDICT_HEAD = struct.Struct("<IIIIqQQ")
ENTRY = struct.Struct("<iHHQQ")
STRING = 7
# Numbers of TensorFlow's types.
NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10, "uint16": 17,
    "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}
NAMES = {number: name for name, number in NUMBERS.items()}
CODES = {
    "CANCELLED": 1, "UNKNOWN": 2, "INVALID_ARGUMENT": 3, "DEADLINE_EXCEEDED": 4, "NOT_FOUND": 5, "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8, "FAILED_PRECONDITION": 9, "OUT_OF_RANGE": 11, "UNIMPLEMENTED": 12, "INTERNAL": 13, "UNAVAILABLE": 14,
}
MIN_SHARED = 16 << 10  # bytes: smaller replies travel in the frame
ALIGN, REGION_ALIGN = 8, 64
CHUNK = 64 << 10

Spec = Union[str, type, tuple[Any, Optional[Sequence[Optional[int]]]]]
Arrays = dict[str, np.ndarray]


class Error(Exception):
    """An error of the model with a code of TensorFlow's: raise Error("INVALID_ARGUMENT", "rows must have 4 values")."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = CODES[code]


class Port:
    """An input or output: its name, type and shape."""

    def __init__(self, name: str, spec: Spec, batched: bool) -> None:
        dtype, shape = spec if isinstance(spec, tuple) else (spec, [None] if batched else None)
        self.name = name
        self.is_string = dtype in ("string", "bytes", str, bytes, object)
        self.dtype = np.dtype(object) if self.is_string else np.dtype(dtype)
        if not self.is_string and self.dtype.name not in NUMBERS:
            raise ValueError("'%s' has the type %s, which models cannot have" % (name, self.dtype))
        self.number = STRING if self.is_string else NUMBERS[self.dtype.name]
        self.shape = None if shape is None else tuple(-1 if dim is None else int(dim) for dim in shape)
        if batched and (not self.shape or self.shape[0] != -1):
            raise ValueError("'%s': the first dimension of a batched signature is None, the rows of the batch" % name)

    def encode(self) -> bytes:
        rank = -1 if self.shape is None else len(self.shape)
        return text(self.name) + struct.pack("<ii%dq" % max(rank, 0), self.number, rank, *(self.shape or ()))


class Signature:
    """A function with the names, types and shapes of what it takes and gives.

    `inputs` and `outputs` map names to a type, or to a pair of a type and a shape; in shapes, None is any size. The function gets a dict of
    arrays and returns one, or the array alone if there is one output.

    A batched signature gets the rows of several requests at once: dimension 0 of every array. If it is pure, equal inputs give equal
    outputs, and the server may answer from its cache.
    """

    def __init__(self, function: Callable[[Arrays], Any], inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], *, batched: bool = True,
                 pure: bool = False, method: str = "") -> None:
        self.function = function
        self.inputs = [Port(name, inputs[name], batched) for name in by_bytes(inputs)]
        self.outputs = [Port(name, outputs[name], batched) for name in by_bytes(outputs)]
        self.batched, self.pure, self.method = batched, pure, method

    def __call__(self, arrays: Arrays) -> Any:
        return self.function(arrays)

    def encode(self, name: str) -> bytes:
        head = struct.pack("<III", self.batched | self.pure << 1, len(self.inputs), len(self.outputs))
        return b"".join([text(name), text(self.method), head] + [port.encode() for port in self.inputs + self.outputs])

    def run(self, inputs: list[np.ndarray], wanted: Sequence[int]) -> list[Optional[np.ndarray]]:
        """Returns the outputs; None for those that were not requested."""
        result = self.function({port.name: array for port, array in zip(self.inputs, inputs)})
        if not isinstance(result, Mapping):
            if len(self.outputs) != 1:
                raise TypeError("the function must return a dict of its %d outputs" % len(self.outputs))
            result = {self.outputs[0].name: result}
        outputs: list[Optional[np.ndarray]] = []
        for port, is_wanted in zip(self.outputs, wanted):
            if not is_wanted:
                outputs.append(None)
            elif port.name not in result:
                raise KeyError("the function did not return '%s'" % port.name)
            else:
                outputs.append(as_output(port, result[port.name]))
        return outputs


def signature(inputs: Mapping[str, Spec], outputs: Mapping[str, Spec], **options: Any) -> Callable[[Callable[[Arrays], Any]], Signature]:
    """Decorates a function, which becomes a Signature: `python3 -m runnel.serving module:function` then serves it."""
    return lambda function: Signature(function, inputs, outputs, **options)


def by_bytes(names: Mapping[str, Any]) -> list[str]:
    return sorted(names, key=lambda name: name.encode())


def text(value: Union[str, bytes]) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(data)) + data


def as_output(port: Port, value: Any) -> np.ndarray:
    if port.is_string:
        return np.asarray(value, dtype=object)
    array = np.asarray(value)
    if array.dtype != port.dtype:
        array = array.astype(port.dtype, casting="same_kind")
    return np.ascontiguousarray(array) if array.ndim else array


def aligned(offset: int, to: int) -> int:
    return -(-offset // to) * to


def encode_strings(array: np.ndarray) -> bytes:
    items = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
    return struct.pack("<%dQ" % len(items), *map(len, items)) + b"".join(items)


def decode_strings(data: memoryview, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    lengths = struct.unpack_from("<%dQ" % count, data)
    array, at = np.empty(count, dtype=object), 8 * count
    for i, length in enumerate(lengths):
        array[i] = bytes(data[at:at + length])
        at += length
    return array.reshape(shape)


class Connection:
    """One server's connection: reads frames, runs signatures, replies."""

    def __init__(self, stream: socket.socket, signatures: Mapping[str, Signature], options: Mapping[str, Any], token: bytes,
                 lock: threading.Lock) -> None:
        self.stream = stream
        self.passes = stream.family == socket.AF_UNIX and not isinstance(stream, ssl.SSLSocket)
        self.signatures = [signatures[name] for name in by_bytes(signatures)]
        self.names = by_bytes(signatures)
        self.options, self.token, self.run_lock = options, token, lock
        self.write_lock = threading.Lock()
        self.buffer, self.start, self.end = bytearray(CHUNK), 0, 0
        self.descriptors: collections.deque[int] = collections.deque()
        self.regions: dict[int, mmap.mmap] = {}
        self.is_closed = threading.Event()
        self.model, self.version = "", 0

    # Bytes in.

    def fill(self) -> None:
        """Reads some bytes into the empty buffer, and the descriptors that come with them."""
        self.start = 0
        if self.passes:
            room = socket.CMSG_SPACE(4 * 8)
            self.end, control, _, _ = self.stream.recvmsg_into([self.buffer], room, socket.MSG_CMSG_CLOEXEC)
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.descriptors.extend(struct.unpack("<%di" % (len(data) // 4), data[:len(data) // 4 * 4]))
        else:
            self.end = self.stream.recv_into(self.buffer)
        if not self.end:
            raise EOFError

    def read(self, size: int) -> bytearray:
        """Reads exactly that many bytes."""
        data, at = bytearray(size), 0
        view = memoryview(data)
        while at < size:
            if self.start < self.end:
                some = min(size - at, self.end - self.start)
                view[at:at + some] = memoryview(self.buffer)[self.start:self.start + some]
                self.start += some
            elif size - at > CHUNK:  # the rest of a large frame, in which no descriptor travels
                some = self.stream.recv_into(view[at:])
                if not some:
                    raise EOFError
            else:
                self.fill()
                continue
            at += some
        return data

    # Bytes out.

    def send(self, kind: int, number: int, parts: Sequence[Any]) -> None:
        data = b"".join([HEADER.pack(sum(len(part) for part in parts), kind, 0, number), *parts])
        with self.write_lock:
            self.stream.sendall(data)

    def send_error(self, number: int, code: int, message: str) -> None:
        self.send(ERROR, number, [struct.pack("<I", code), text(message.encode()[:32 << 10])])

    def beat(self, interval: float) -> None:
        """Tells the server that this process lives, also while the function runs. A function that never lets go of the interpreter's
        lock looks as if it hung."""
        try:
            while not self.is_closed.wait(interval):
                self.send(BEAT, 0, [])
        except OSError:
            pass

    # Frames.

    def hello(self) -> None:
        head = struct.pack("<IIIIQ", MAGIC, VERSION, self.options["lanes"], 1 if self.passes else 0, self.options["max_batch"])
        parts = [head, text(self.options["model"]), struct.pack("<I", len(self.signatures))]
        self.send(HELLO, 0, parts + [one.encode(name) for name, one in zip(self.names, self.signatures)])

    def welcome(self, payload: bytearray) -> None:
        version, beat, _, _, self.version = struct.unpack_from("<IIIIq", payload)
        if version != VERSION:
            raise ConnectionError("the server speaks version %d of the protocol" % version)
        at, texts = 24, []
        for _ in range(2):
            size, = struct.unpack_from("<I", payload, at)
            texts.append(bytes(payload[at + 4:at + 4 + size]))
            at += 4 + size
        self.model = texts[0].decode()
        if not hmac.compare_digest(texts[1], self.token):
            raise ConnectionError("the server has another token")
        self.send(BEAT, 0, [])  # agrees to the terms
        threading.Thread(target=self.beat, args=(beat / 1000,), daemon=True).start()

    def region(self, payload: bytearray) -> None:
        lane, _, size = struct.unpack("<IIQ", payload)
        descriptor = self.descriptors.popleft()
        try:
            self.regions[lane] = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def array(self, payload: bytearray, at: int, lane: int) -> tuple[np.ndarray, int]:
        """The tensor whose entry is at `at`, and where the next entry is."""
        number, rank, place, offset, size = ENTRY.unpack_from(payload, at)
        at += ENTRY.size
        shape = struct.unpack_from("<%dq" % rank, payload, at)
        source: Any = payload if place == IN_PAYLOAD else self.regions[lane]
        if number == STRING:
            return decode_strings(memoryview(source)[offset:offset + size], shape), at + 8 * rank
        dtype = np.dtype(NAMES[number])
        if not size:
            return np.empty(shape, dtype), at + 8 * rank
        return np.frombuffer(source, dtype, size // dtype.itemsize, offset).reshape(shape), at + 8 * rank

    def predict(self, number: int, payload: bytearray) -> None:
        index, lane, count, output_count, deadline, room, room_size = PREDICT_HEAD.unpack_from(payload)
        if deadline == 0:
            self.send_error(number, CODES["DEADLINE_EXCEEDED"], "The deadline passed before the batch began")
            return
        one = self.signatures[index]
        wanted = payload[PREDICT_HEAD.size:PREDICT_HEAD.size + output_count]
        at, inputs = PREDICT_HEAD.size + aligned(output_count, 8), []
        for _ in range(count):
            array, at = self.array(payload, at, lane)
            inputs.append(array)
        try:
            with self.run_lock:
                outputs = one.run(inputs, wanted)
        except Exception as error:
            self.send_error(number, code_of(error), describe(error))
            return
        self.reply(number, one, outputs, lane, room, room_size)

    def reply(self, number: int, one: Signature, outputs: list[Optional[np.ndarray]], lane: int, room: int, room_size: int) -> None:
        values = [encode_strings(array) if port.is_string and array is not None else array for port, array in zip(one.outputs, outputs)]
        sizes = [0 if value is None else value.nbytes if isinstance(value, np.ndarray) else len(value) for value in values]
        is_shared = sum(sizes) >= MIN_SHARED and sum(aligned(size, REGION_ALIGN) for size in sizes) <= room_size
        ranks = [0 if array is None else array.ndim for array in outputs]
        offset = room if is_shared else 8 + sum(ENTRY.size + 8 * rank for rank in ranks)
        entries, data = [struct.pack("<II", len(outputs), 0)], []
        for port, array, value, size, rank in zip(one.outputs, outputs, values, sizes, ranks):
            if array is None:
                entries.append(ENTRY.pack(port.number, 0, ABSENT, 0, 0))
                continue
            start = aligned(offset, REGION_ALIGN if is_shared else ALIGN)
            entries.append(ENTRY.pack(port.number, rank, IN_REGION if is_shared else IN_PAYLOAD, start, size))
            entries.append(struct.pack("<%dq" % rank, *array.shape))
            if not is_shared:
                data += [bytes(start - offset), value.tobytes() if isinstance(value, np.ndarray) else value or b""]
            elif isinstance(value, np.ndarray):
                np.frombuffer(self.regions[lane], value.dtype, value.size, start)[:] = value.reshape(-1)
            else:
                self.regions[lane][start:start + size] = value or b""
            offset = start + size
        self.send(REPLY, number, entries + data)

    def serve(self) -> None:
        """Returns when the server has gone or wants no more."""
        try:
            self.hello()
            while True:
                size, kind, _, number = HEADER.unpack(self.read(HEADER.size))
                payload = self.read(size)
                if kind == PREDICT:
                    self.predict(number, payload)
                elif kind == REGION:
                    self.region(payload)
                elif kind == WELCOME:
                    self.welcome(payload)
                elif kind == DRAIN:
                    return
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return
        finally:
            self.is_closed.set()
            self.stream.close()


def code_of(error: Exception) -> int:
    if isinstance(error, Error):
        return error.code
    if isinstance(error, MemoryError):
        return CODES["RESOURCE_EXHAUSTED"]
    return CODES["UNIMPLEMENTED"] if isinstance(error, NotImplementedError) else CODES["INTERNAL"]


def describe(error: Exception) -> str:
    """The last line of the traceback, which goes to the caller; the whole of it goes to the log."""
    if isinstance(error, Error):
        return str(error)
    traceback.print_exception(type(error), error, error.__traceback__)
    return traceback.format_exception_only(type(error), error)[-1].strip()


def listen(address: str) -> socket.socket:
    if address.startswith("unix:"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address[5:])
    else:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        listener = socket.create_server((host, int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.listen()
    print("listening at %s" % (listener.getsockname(),), flush=True)
    return listener


def serve(function: Union[Callable[[Arrays], Any], Signature, Mapping[str, Signature]], inputs: Optional[Mapping[str, Spec]] = None,
          outputs: Optional[Mapping[str, Spec]] = None, *, batched: bool = True, pure: bool = False, max_batch: int = 0, lanes: int = 1,
          model: str = "", address: Optional[str] = None, tls: Optional[Mapping[str, str]] = None, token_file: Optional[str] = None) -> None:
    """Serves a function, a Signature, or several by name; returns when the server wants no more.

    Without `address` it talks to the server that started this process. With one, "host:port" or "unix:path", it waits there for servers whose
    container.pbtxt says `connect`; `tls` then has the files `cert`, `key` and `ca`, and servers must send the token in `token_file`.

    `max_batch` is the largest number of rows per batch (0: any). With `lanes=2` the server sends a batch while the one before it runs.
    """
    if not callable(function) and not isinstance(function, Mapping):
        raise TypeError("serve takes a function, a Signature or a dict of them")
    if isinstance(function, Mapping):
        signatures = dict(function)
    elif isinstance(function, Signature):
        signatures = {"serving_default": function}
    elif inputs is None or outputs is None:
        raise TypeError("serve needs inputs and outputs: their names, types and shapes")
    else:
        signatures = {"serving_default": Signature(function, inputs, outputs, batched=batched, pure=pure)}
    options = {"max_batch": max_batch, "lanes": lanes, "model": model}
    token = open(token_file, "rb").read().strip() if token_file else b""
    lock = threading.Lock()
    place = address or os.environ.get("RUNNEL_CONTAINER", "")
    if place.startswith("fd:"):
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "reconfigure", lambda **_: None)(line_buffering=True)
        Connection(socket.socket(fileno=int(place[3:])), signatures, options, token, lock).serve()
        return
    if not place:
        raise RuntimeError("This is a container: start it through `runnel serve`, or give it an address")
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls["cert"], tls["key"])
        context.load_verify_locations(tls["ca"])
        context.verify_mode = ssl.CERT_REQUIRED
    with listen(place) as listener:
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=answer, args=(plain, context, signatures, options, token, lock), daemon=True).start()


def answer(plain: socket.socket, context: Optional[ssl.SSLContext], signatures: Mapping[str, Signature], options: Mapping[str, Any], token: bytes,
           lock: threading.Lock) -> None:
    try:
        if plain.family != socket.AF_UNIX:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(plain, server_side=True) if context else plain
        Connection(stream, signatures, options, token, lock).serve()
    except (OSError, ConnectionError) as error:
        print("connection: %s" % error, file=sys.stderr, flush=True)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m runnel.serving", description="Serves functions of a module to `runnel serve`.")
    parser.add_argument("name", metavar="MODULE:NAME", help="a Signature (see @signature), or a dict of several by name")
    parser.add_argument("--address", help="wait for servers at host:port or unix:path, instead of being started by one")
    parser.add_argument("--max-batch", type=int, default=0, help="rows per batch, at most (0: any)")
    parser.add_argument("--lanes", type=int, default=1, help="batches that the server sends at a time")
    parser.add_argument("--token-file", help="servers must send the token in this file")
    given = parser.parse_args(arguments)
    module, _, name = given.name.partition(":")
    # The model's `from runnel.serving import ...` finds this module, also where the package is not installed.
    sys.modules.setdefault("runnel.serving", sys.modules[__name__])
    sys.path.insert(0, os.getcwd())
    target = getattr(importlib.import_module(module), name or "predict")
    if not isinstance(target, (Signature, Mapping)):
        parser.error("%s is not a Signature: decorate it with runnel.serving.signature" % given.name)
    serve(target, max_batch=given.max_batch, lanes=given.lanes, address=given.address, token_file=given.token_file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
