"""Collectives: what works without other members."""

from .base import *


def groups(t):
    op = "CollectiveAssignGroupV2"
    i32 = lambda value: scalar("int32", value)
    rows = given("int32", [2, 2], [0, 1, 2, 3])
    for device, base in [(0, 10), (1, 10), (2, 10), (3, -5), (0, -1), (3, 2147483647)]:
        t.row("d%d_%d" % (device, base), op, [rows, i32(device), i32(base)])
    t.row("twice", op, [given("int32", [2, 2], [0, 1, 1, 2]), i32(1), i32(5)])
    t.row("missing", op, [rows, i32(5), i32(10)])
    t.row("reserved", op, [rows, i32(3), i32(-1)])
    t.row("empty", op, [given("int32", [1, 0], []), i32(3), i32(7)])
    t.row("vector", op, [vec("int32", [0, 1]), i32(0), i32(1)])
    t.row("device_vector", op, [rows, vec("int32", [0]), i32(1)])
    t.row("base_vector", op, [rows, i32(0), vec("int32", [1])])


def fill(t):
    groups(t)
