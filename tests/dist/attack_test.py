#!/usr/bin/env python3
"""A client that tries to read a server's memory: attack_test.py RUNNEL

It claims to be a task of its own cluster, makes a server fetch a tensor from it, and answers with a loan that points into
the server's own memory, using what the server sent about itself and arbitrary addresses. The server must not read it,
whatever its options are; and without --allow network it must not even connect.
"""

import concurrent.futures
import ctypes
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # support
from support.ports import free_ports  # noqa: E402
from support.wire import field, fields, fixed64  # noqa: E402

import grpc  # noqa: E402

RUNNEL = sys.argv[1]
VICTIM, EVIL = "/job:worker/replica:0/task:0", "/job:evil/replica:0/task:0"
UINT8 = 4
SIZE = 4096  # bytes of a loan: a page
TOKEN = "a-token-of-32-visible-characters"


def device(task):
    return (task + "/device:CPU:0").encode()


def attr(name, value):
    return field(5, field(1, name.encode()) + field(2, value))


def job(name, address):
    return field(1, name.encode()) + field(2, field(1, 0) + field(2, address.encode()))


def tensor(data):
    return field(1, UINT8) + field(2, field(2, field(1, len(data)))) + field(4, data)


def transfer(kind, op, dtype, sender, receiver, value=None, incarnation=1):
    """A queue's item: _Send or _Recv."""
    body = field(1, op) + field(2, kind.encode()) + dtype
    for name, text in (("tensor_name", b"t%d" % op), ("send_device", device(sender)), ("recv_device", device(receiver))):
        body += attr(name, field(2, text))
    body += attr("send_device_incarnation", field(3, incarnation)) + attr("client_terminated", field(5, 1))
    body += field(6, device(VICTIM))
    if value is not None:
        body += field(10, field(1, field(1, value) + field(3, device(VICTIM)) + field(4, device(VICTIM))))
    return field(2, body)


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
                        return field(1000, 1)
                    return b""
                return grpc.unary_unary_rpc_method_handler(handle, lambda x: x, lambda x: x)

        self.server.add_generic_rpc_handlers((Handler(),))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()


class Victim:
    def __init__(self, *options, others=""):
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.process = subprocess.Popen([RUNNEL, "server", "--cluster", "worker=" + self.address + others, "--job", "worker",
                                         *options], stdout=subprocess.PIPE)
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
        jobs = field(1, job("worker", self.address)) + field(1, job("evil", lender.address))
        answer = self.call("eager.EagerService", "CreateContext",
                           field(1, field(1, jobs) + field(2, b"worker")) + field(3, 60) + fixed64(7, 5))
        self.incarnation = dict(fields(dict(fields(answer))[2]))[6]

    def enqueue(self, *items):
        self.call("eager.EagerService", "Enqueue", fixed64(1, 5) + b"".join(field(3, item) for item in items))

    def receive(self):
        """Has the victim fetch a tensor from the attacker."""
        self.ops += 1
        self.enqueue(transfer("_Recv", self.ops, attr("tensor_type", field(6, UINT8)), EVIL, VICTIM))

    def fetch(self, more):
        """The fields of what the victim answers when it is asked for a value, with |more| in the request."""
        self.ops += 1
        key = f"{VICTIM}/device:CPU:0;{self.incarnation:016x};{EVIL}/device:CPU:0;t{self.ops};0:0"
        value = 1000 + self.ops
        sent = field(3, field(1, value) + field(2, tensor(b"x" * 8)) + field(3, device(VICTIM)))
        self.enqueue(sent, transfer("_Send", self.ops, attr("T", field(6, UINT8)), VICTIM, EVIL, value,
                                    self.incarnation))
        return dict(fields(self.call("WorkerService", "RecvTensor", field(1, 5) + field(2, key.encode()) + more)))

    def lender_of(self, machine):
        """What the victim says of itself when asked as by a task of its own machine: field 1000."""
        return self.fetch(field(1000, field(1, machine))).get(1000, b"")


def plain(more=b""):
    """A tensor, and more."""
    return field(1, tensor(b"abcd")) + more


def loan(address):
    return field(1001, fixed64(1, 77) + fixed64(2, address) + field(3, UINT8) + field(4, SIZE))


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
                  field(1, machine_of()) + field(2, victim.process.pid) + fixed64(3, addresses(victim)[0]),
                  field(1, machine_of()) + field(2, os.getpid()) + fixed64(3, 4096) + fixed64(4, 1) + fixed64(5, 1),
                  field(1, machine_of()) + fixed64(2, 5) + fixed64(3, 7)]
        known = dict(fields(own)) if own else {}
        places = [known[3]] if known.get(3) else []
        for reach in forged:
            # As an honest lender at first, so that the victim learns the lender's name; then with loans.
            lender.answer = lambda request, reach=reach: plain(field(1000, reach) if reach else b"")
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


def has_ucx():
    try:
        ctypes.CDLL("libucp.so.0")
    except OSError:
        print("without UCX (Debian: libucx0): no lies about wires")
        return False
    return True


def wires_that_lie():
    """A task of the own cluster gives bad addresses, and says that values are on lines where they are not."""
    lender = Lender()
    with Victim("--wire", "ucx", "--no-loans", "--lease", "2", others=",evil=" + lender.address) as victim:
        victim.open(lender)
        line = fixed64(1, 5) + fixed64(2, 7) + fixed64(3, 9) + field(4, 1)
        answers = [victim.fetch(field(1002, line)), victim.fetch(field(1002, field(4, 1))), victim.fetch(b"")]
        assert all(4 in dict(fields(answer[1])) for answer in answers), "values are in the responses"
        own = dict(fields(answers[0][1002]))[2]
        assert dict(fields(answers[1][1002]))[2] == own and 1002 not in answers[2]
        for address in b"x", b"RNUX" + bytes(200), own[:-1], own[:16] + os.urandom(len(own) - 16), bytes(20000):
            lender.answer = lambda request, address=address: plain(field(1002, field(2, address)))
            victim.receive()
        lender.answer = lambda request: field(1002, field(1, 1))
        expect_refused(victim, [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL])
        victim.fetch(b"")  # it serves on
    with Victim("--wire", "ucx", "--no-loans", "--lease", "2", others=",evil=" + lender.address) as victim:
        victim.open(lender)
        own = dict(fields(victim.fetch(field(1002, field(4, 1)))[1002]))[2]
        lender.answer = lambda request: plain(field(1002, field(2, own)))
        victim.receive()  # it dials itself
        lender.answer = lambda request: field(1002, field(1, 1))
        assert "did not come" in expect_refused(victim, [grpc.StatusCode.UNAVAILABLE])
        asked = [dict(fields(request)) for method, request in lender.calls if method.endswith("/RecvTensor")]
        assert 3 in dict(fields(asked[-1][1002])), "the victim named no line"
        victim.fetch(b"")


def no_wires_to_strangers():
    """Addresses that a client names get no wire, even where the server may connect to them."""
    lender = Lender()
    with Victim("--wire", "ucx", "--allow", "all") as victim:
        victim.open(lender)
        lender.answer = lambda request: plain()
        victim.receive()
        asked = [dict(fields(request)) for method, request in lender.calls if method.endswith("/RecvTensor")]
        assert asked and not any(1002 in request for request in asked), asked


if __name__ == "__main__":
    if has_ucx():
        wires_that_lie()
        no_wires_to_strangers()
    the_token_stays_in_the_cluster()
    no_connection_without_leave()
    nothing_is_read("--allow", "all")
    nothing_is_read("--allow", "network")
    nothing_is_read("--allow", "all", "--no-loans")
    print("ok", flush=True)
    os._exit(0)
