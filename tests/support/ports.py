"""Finds free ports of this machine, and keeps them free for the servers of a test."""

import os
import socket

_held = []


def free_ports(count):
    """Returns |count| ports. Until this process ends, only a server that names one of them gets it.

    Each stays bound here without listening, so the system gives it to no other program. A server that sets SO_REUSEADDR,
    as all do, may listen there nevertheless; until one does, connections are refused.
    """
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    _held.extend(sockets)
    return [each.getsockname()[1] for each in sockets]


def free_port():
    return free_ports(1)[0]


def free_block(count):
    """The first of |count| ports in a row, kept as by free_ports.

    The search stays below the ports that Linux gives to connections. A socket without SO_REUSEADDR gets only a port that
    nobody else has bound, so two tests that search at the same time end up with different ones; it allows sharing afterwards.
    """
    for first in range(20000 + os.getpid() * count % 10000, 32768 - count, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for i, each in enumerate(sockets):
                each.bind(("", first + i))
        except OSError:
            for each in sockets:
                each.close()
            continue
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _held.extend(sockets)
        return first
    raise OSError(f"there are no {count} free ports in a row")
