#!/usr/bin/env python3
"""A client that wants more than it may have: attack_test.py RUNNEL

It names itself as a task of its cluster, has a server fetch a tensor from there, and answers as a lender of the server's
own memory: with what the server said of itself, and any address. Nothing may be read that way, whatever the server was
started with; and without leave the server does not even connect.
"""

import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ports import free_ports  # noqa: E402

import grpc  # noqa: E402

RUNNEL = sys.argv[1]
VICTIM, EVIL = "/job:worker/replica:0/task:0", "/job:evil/replica:0/task:0"
UINT8 = 4
SIZE = 4096  # bytes of a loan: a page
TOKEN = "a-token-of-32-visible-characters"


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def nested(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed(field, value):
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def fields(data):
    """(number, value) of a message: bytes, or a number."""
    at = 0

    def take():
        nonlocal at
        shift = value = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value

    while at < len(data):
        key = take()
        if key & 7 == 0:
            yield key >> 3, take()
        elif key & 7 == 1:
            at += 8
            yield key >> 3, int.from_bytes(data[at - 8:at], "little")
        elif key & 7 == 2:
            size = take()
            at += size
            yield key >> 3, data[at - size:at]


def device(task):
    return (task + "/device:CPU:0").encode()


def attr(name, value):
    return nested(5, nested(1, name.encode()) + nested(2, value))


def job(name, address):
    return nested(1, name.encode()) + nested(2, number(1, 0) + nested(2, address.encode()))


def tensor(data):
    return number(1, UINT8) + nested(2, nested(2, number(1, len(data)))) + nested(4, data)


def transfer(kind, op, dtype, sender, receiver, value=None, incarnation=1):
    """A queue's item: _Send or _Recv."""
    body = number(1, op) + nested(2, kind.encode()) + dtype
    for name, text in (("tensor_name", b"t%d" % op), ("send_device", device(sender)), ("recv_device", device(receiver))):
        body += attr(name, nested(2, text))
    body += attr("send_device_incarnation", number(3, incarnation)) + attr("client_terminated", number(5, 1))
    body += nested(6, device(VICTIM))
    if value is not None:
        body += nested(10, nested(1, number(1, value) + nested(3, device(VICTIM)) + nested(4, device(VICTIM))))
    return nested(2, body)


class Lender:
    """The attacker's server: answers RecvTensor with |answer| of the request."""

    def __init__(self):
        self.calls, self.metadata, self.answer = [], [], lambda request: b""
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        outer = self

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                def handle(request, _):
                    outer.calls.append((details.method, request))
                    outer.metadata += [key for key, _ in details.invocation_metadata]
                    if details.method.endswith("/RecvTensor"):
                        return outer.answer(request)
                    if details.method.endswith("/MarkRecvFinished"):
                        return number(1000, 1)
                    return b""
                return grpc.unary_unary_rpc_method_handler(handle, lambda x: x, lambda x: x)

        self.server.add_generic_rpc_handlers((Handler(),))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()


class Victim:
    def __init__(self, *options):
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.process = subprocess.Popen([RUNNEL, "server", "--cluster", "worker=" + self.address, *options],
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline().startswith(b"grpc://")
        self.channel = grpc.insecure_channel(self.address)
        self.ops = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def call(self, service, method, data):
        ask = self.channel.unary_unary(f"/tensorflow.{service}/{method}", lambda x: x, lambda x: x)
        return ask(data, timeout=20, metadata=[("authorization", "Bearer " + TOKEN)])

    def open(self, lender):
        """A context whose cluster has the victim and the attacker."""
        jobs = nested(1, job("worker", self.address)) + nested(1, job("evil", lender.address))
        answer = self.call("eager.EagerService", "CreateContext",
                           nested(1, nested(1, jobs) + nested(2, b"worker")) + number(3, 60) + fixed(7, 5))
        self.incarnation = dict(fields(dict(fields(answer))[2]))[6]

    def enqueue(self, *items):
        self.call("eager.EagerService", "Enqueue", fixed(1, 5) + b"".join(nested(3, item) for item in items))

    def receive(self):
        """Has the victim fetch a tensor from the attacker."""
        self.ops += 1
        self.enqueue(transfer("_Recv", self.ops, attr("tensor_type", number(6, UINT8)), EVIL, VICTIM))

    def lender_of(self, machine):
        """What the victim says of itself to who asks as a task of its machine would: field 1000."""
        self.ops += 1
        key = f"{VICTIM}/device:CPU:0;{self.incarnation:016x};{EVIL}/device:CPU:0;t{self.ops};0:0"
        value = 1000 + self.ops
        sent = nested(3, number(1, value) + nested(2, tensor(b"x" * 8)) + nested(3, device(VICTIM)))
        self.enqueue(sent, transfer("_Send", self.ops, attr("T", number(6, UINT8)), VICTIM, EVIL, value,
                                    self.incarnation))
        ask = number(1, 5) + nested(2, key.encode()) + nested(1000, nested(1, machine))
        answer = self.call("WorkerService", "RecvTensor", ask)
        return dict(fields(answer)).get(1000, b"")


def plain(more=b""):
    """A tensor, and more."""
    return nested(1, tensor(b"abcd")) + more


def loan(address):
    return nested(1001, fixed(1, 77) + fixed(2, address) + number(3, UINT8) + number(4, SIZE))


def addresses(victim):
    """Where the victim has memory."""
    with open(f"/proc/{victim.process.pid}/maps", encoding="ascii") as maps:
        return [int(line.split("-")[0], 16) for line in maps if line.split()[1].startswith("r")]


def machine_of():
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read(39)


def expect_refused(victim, codes):
    try:
        victim.receive()
    except grpc.RpcError as error:
        assert error.code() in codes, error
        return error.details()
    raise AssertionError("the victim took it")


def no_connection_without_leave():
    """An address that is not of the server's cluster is not connected to: not by default, not with folders alone."""
    for options in ([], ["--allow", ""], ["--allow", "read:/tmp"], ["--no-loans"]):
        lender = Lender()
        with Victim(*options) as victim:
            victim.open(lender)
            text = expect_refused(victim, [grpc.StatusCode.PERMISSION_DENIED])
            assert lender.address in text and "--allow" in text, text
            assert not lender.calls, lender.calls


def nothing_is_read(*options):
    lender = Lender()
    with Victim(*options) as victim:
        victim.open(lender)
        own = victim.lender_of(machine_of())
        assert bool(own) == ("--no-loans" not in options), own
        forged = [own, b"",
                  nested(1, machine_of()) + number(2, victim.process.pid) + fixed(3, addresses(victim)[0]),
                  nested(1, machine_of()) + number(2, os.getpid()) + fixed(3, 4096) + fixed(4, 1) + fixed(5, 1),
                  nested(1, machine_of()) + fixed(2, 5) + fixed(3, 7)]
        known = dict(fields(own)) if own else {}
        places = [known[3]] if known.get(3) else []
        for reach in forged:
            # As an honest lender at first, so that the victim learns the lender's name; then with loans.
            lender.answer = lambda request, reach=reach: plain(nested(1000, reach) if reach else b"")
            for _ in range(3):
                victim.receive()
            for address in places + addresses(victim)[:3] + [4096]:
                lender.answer = lambda request, address=address: loan(address)
                expect_refused(victim, [grpc.StatusCode.UNAVAILABLE])
        lender.answer = lambda request: plain()
        victim.receive()  # it serves on
        asked = [dict(fields(request)) for method, request in lender.calls if method.endswith("/RecvTensor")]
        assert not any(1001 in request for request in asked), "the victim asked for a loan"
        if "--no-loans" in options:
            assert not any(1000 in request for request in asked), "the victim asked for a lender"


def the_token_stays_in_the_cluster():
    """A server sends its token to the tasks of its own cluster, and not to an address that a client names."""
    lender = Lender()
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(TOKEN)
        file.flush()
        with Victim("--allow", "all", "--token", file.name) as victim:
            victim.open(lender)
            lender.answer = lambda request: plain()
            victim.receive()
            assert lender.calls and "authorization" not in lender.metadata, lender.metadata
            bare = victim.channel.unary_unary("/tensorflow.MasterService/Reset", lambda x: x, lambda x: x)
            try:
                bare(b"", timeout=20)
                raise AssertionError("a stranger may reset")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAUTHENTICATED, error


if __name__ == "__main__":
    the_token_stays_in_the_cluster()
    no_connection_without_leave()
    nothing_is_read("--allow", "all")
    nothing_is_read("--allow", "network")
    nothing_is_read("--allow", "all", "--no-loans")
    print("ok", flush=True)
    os._exit(0)
