"""Finds free ports of this machine, and keeps them free for the servers of a test."""

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
