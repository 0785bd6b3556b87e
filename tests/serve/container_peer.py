"""The server's end of the protocol of doc/containers.md, written from that document alone: what a container says is checked against it."""

import fcntl
import mmap
import os
import socket
import struct
import subprocess

import numpy as np

HELLO, WELCOME, REGION, PREDICT, REPLY, ERROR, BEAT, CANCEL, DRAIN = range(1, 10)
TYPES = {1: "float32", 2: "float64", 3: "int32", 4: "uint8", 9: "int64", 10: "bool"}
NUMBERS = {name: number for number, name in TYPES.items()}


class Failed(Exception):
    """An ERROR frame: code and message."""


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        size = self.take("I")
        self.at += size
        return self.data[self.at - size:self.at].decode()


class Peer:
    """A container that this process has started, and its connection."""

    def __init__(self, command, folder, environment=None):
        self.stream, theirs = socket.socketpair(socket.AF_UNIX)
        self.stream.settimeout(60)
        variables = dict(os.environ, RUNNEL_CONTAINER="fd:%d" % theirs.fileno(), **(environment or {}))
        self.process = subprocess.Popen(command, cwd=folder, env=variables, pass_fds=[theirs.fileno()])
        theirs.close()
        self.batch, self.region = 0, None
        kind, _, payload = self.frame()
        assert kind == HELLO
        self.hello(Reader(payload))
        self.send(WELCOME, 0, struct.pack("<IIIIq", 1, 100, 1000, 1, 1) + b"\1\0\0\0m" + b"\0\0\0\0")
        assert self.frame()[0] == BEAT

    def read(self, size):
        data = b""
        while len(data) < size:
            some = self.stream.recv(size - len(data))
            assert some, "the container has closed the connection"
            data += some
        return data

    def frame(self):
        size, kind, zero, number = struct.unpack("<IHHQ", self.read(16))
        assert zero == 0
        return kind, number, self.read(size)

    def send(self, kind, number, payload):
        self.stream.sendall(struct.pack("<IHHQ", len(payload), kind, 0, number) + payload)

    def hello(self, reader):
        magic, version, self.lanes, self.flags, self.max_rows = reader.take("IIIIQ")
        assert magic == 0x54434E52 and version == 1
        self.model = reader.text()
        self.signatures = {}
        for _ in range(reader.take("I")):
            name, method, (flags, inputs, outputs) = reader.text(), reader.text(), reader.take("III")
            ports = []
            for _ in range(inputs + outputs):
                port, number, rank = reader.text(), *reader.take("ii")
                ports.append((port, TYPES[number], [reader.take("q") for _ in range(rank)]))
            self.signatures[name] = (method, flags, ports[:inputs], ports[inputs:])
        assert list(self.signatures) == sorted(self.signatures)
        assert reader.at == len(reader.data)

    def share(self, size):
        """Gives the container shared memory."""
        descriptor = os.memfd_create("peer", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.region = mmap.mmap(descriptor, size)
        payload = struct.pack("<IIQ", 0, 0, size)
        socket.send_fds(self.stream, [struct.pack("<IHHQ", len(payload), REGION, 0, 0) + payload], [descriptor])
        os.close(descriptor)

    def predict(self, inputs, signature="serving_default"):
        """Runs a batch: the outputs by name."""
        index = list(self.signatures).index(signature)
        _, _, in_ports, out_ports = self.signatures[signature]
        self.batch += 1
        entries, data = b"", b""
        head = 40 + (len(out_ports) + 7) // 8 * 8 + sum(24 + 8 * inputs[name].ndim for name, _, _ in in_ports)
        room = 0
        for name, dtype, _ in in_ports:
            array = np.ascontiguousarray(inputs[name], dtype)
            if self.region:
                place, offset = 2, room
                self.region[offset:offset + array.nbytes] = array.tobytes()
                room = (room + array.nbytes + 63) // 64 * 64
            else:
                place, offset = 1, head + len(data)
                data += array.tobytes() + bytes(-array.nbytes % 8)
            entries += struct.pack("<iHHQQ%dq" % array.ndim, NUMBERS[dtype], array.ndim, place, offset, array.nbytes, *array.shape)
        free = len(self.region) - room if self.region else 0
        fixed = struct.pack("<IIIIqQQ", index, 0, len(in_ports), len(out_ports), -1, room, free)
        wanted = bytes([1] * len(out_ports)) + bytes(-len(out_ports) % 8)
        self.send(PREDICT, self.batch, fixed + wanted + entries + data)
        return self.answer(out_ports)

    def answer(self, ports):
        kind = BEAT
        while kind == BEAT:
            kind, number, payload = self.frame()
        assert number == self.batch
        reader = Reader(payload)
        if kind == ERROR:
            raise Failed(reader.take("I"), reader.text())
        assert kind == REPLY and reader.take("II") == (len(ports), 0)
        outputs = {}
        for name, dtype, _ in ports:
            number, rank, place, offset, size = reader.take("iHHQQ")
            shape = [reader.take("q") for _ in range(rank)]
            assert TYPES[number] == dtype and place in (1, 2)
            source = payload if place == 1 else bytes(self.region)
            outputs[name] = np.frombuffer(source[offset:offset + size], dtype).reshape(shape)
        return outputs

    def drain(self):
        """Lets the container end: its exit status."""
        self.send(DRAIN, 0, b"")
        status = self.process.wait(60)
        self.stream.close()
        return status
