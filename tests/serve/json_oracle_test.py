#!/usr/bin/env python3
"""Numbers in JSON against Python's json and NumPy: json_oracle_test.py TOOL

What Python writes, the tool reads to the same bits, and the other way round; floats are laid out as C's %g does, with six digits if
these suffice. Samples all floats evenly, doubles by random bits, and takes all halves.
"""
import json
import subprocess
import sys

import numpy as np

TOOL = sys.argv[1]


def tool(verb, name, data):
    result = subprocess.run([TOOL, verb, name], input=data, stdout=subprocess.PIPE, check=True)
    return result.stdout


def same(left, right):
    """Equal bits; NaNs are equal whatever theirs."""
    kind = {2: np.uint16, 4: np.uint32, 8: np.uint64}[left.dtype.itemsize]
    nan = np.isnan(left) & np.isnan(right) if left.dtype.kind == "f" else np.zeros(left.shape, bool)
    different = (left.view(kind) != right.view(kind)) & ~nan
    assert left.shape == right.shape and not different.any(), (left[different][:5], right[different][:5])


def check_reading(values, name):
    text = json.dumps(values.tolist())
    same(np.frombuffer(tool("read", name, text.encode()), values.dtype), values)


def check_writing(values, name):
    text = tool("write", name, values.tobytes()).decode()
    same(np.array(json.loads(text), values.dtype), values)
    return text[1:-1].split(", ")


def layout(value, digits, is_same):
    text = "%g" % value
    if not is_same(float(text), value):
        text = "%.*g" % (digits, value)
    return text if "." in text or "e" in text else text + ".0"


def main():
    random = np.random.default_rng(7)
    floats = np.arange(0, 1 << 32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)
    check_reading(floats, "float")
    texts = check_writing(floats, "float")
    for value, text in list(zip(floats.tolist(), texts))[::7]:
        if value == value and abs(value) != float("inf"):
            wanted = layout(value, 9, lambda a, b: np.float32(a) == np.float32(b))
            assert text == wanted, (text, wanted)

    doubles = random.integers(0, 1 << 64, 200000, np.uint64).view(np.float64)
    doubles = np.concatenate([doubles, random.random(50000), random.normal(size=50000) * 1e3,
                              np.float64(random.integers(-10**6, 10**6, 20000)) / 1000])
    check_reading(doubles, "double")
    texts = check_writing(doubles, "double")
    for value, text in list(zip(doubles.tolist(), texts))[::11]:
        if value == value and abs(value) != float("inf"):
            assert text == layout(value, 17, lambda a, b: a == b), text

    # Doubles read as floats round once: NumPy's conversion of a double is that of the text, too, where the double is exact.
    exact = (random.integers(0, 1 << 53, 100000) * 2.0 ** random.integers(-60, 20, 100000)).astype(np.float64)
    read = np.frombuffer(tool("read", "float", json.dumps(exact.tolist()).encode()), np.float32)
    same(read, exact.astype(np.float32))

    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    check_reading(halves, "half")
    check_writing(halves, "half")
    for name, kind in (("int32", np.int32), ("int64", np.int64), ("uint32", np.uint32), ("uint64", np.uint64)):
        info = np.iinfo(kind)
        values = np.concatenate([random.integers(info.min, info.max, 20000, kind, True), np.array([info.min, info.max, 0], kind)])
        check_reading(values, name)
        check_writing(values, name)
    print("ok")


main()
