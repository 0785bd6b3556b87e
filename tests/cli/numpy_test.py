"""Passes NumPy's files through `runnel run`: arrays come back with the same bits, and are printed as NumPy prints them."""
import os
import subprocess
import sys
import tempfile

import numpy as np

TYPES = {
    "bool": "DT_BOOL", "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64",
    "uint8": "DT_UINT8", "uint16": "DT_UINT16", "uint32": "DT_UINT32", "uint64": "DT_UINT64",
    "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128", "S": "DT_STRING",
}


def graph(dtype):
    return f"""node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: {dtype} }} }}
      attr {{ key: "shape" value {{ shape {{ unknown_rank: true }} }} }} }}
    node {{ name: "y" op: "Identity" input: "x" attr {{ key: "T" value {{ type: {dtype} }} }} }}
    versions {{ producer: 2474 }}"""


def arrays(rng, name):
    for shape in [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 4), (40, 30), (1, 1, 1, 1, 2)]:
        if name == "S":
            yield np.array([b"x" * int(n) for n in rng.integers(0, 5, int(np.prod(shape)))], dtype="S5").reshape(shape)
            continue
        dtype = np.dtype(name)
        if dtype.kind == "f":
            yield (rng.standard_normal(shape) * 10).astype(dtype)
            yield np.asarray(rng.integers(-4, 4, shape) / 4).astype(dtype)
        elif dtype.kind == "c":
            yield (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        elif dtype.kind == "b":
            yield rng.integers(0, 2, shape).astype(dtype)
        else:
            info = np.iinfo(dtype)
            yield rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def main():
    runnel = sys.argv[1]
    rng = np.random.default_rng(1)
    failures = count = 0
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        for name, dtype in TYPES.items():
            with open("graph.pbtxt", "w") as file:
                file.write(graph(dtype))
            for array in arrays(rng, name):
                for version in [(1, 0), (2, 0)]:
                    with open("in.npy", "wb") as file:
                        np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), version)
                    done = subprocess.run([runnel, "run", "graph.pbtxt", "--feed", "x=@in.npy", "--save", "y=out.npy",
                                           "--fetch", "y"], capture_output=True, text=True)
                    back = np.load("out.npy") if done.returncode == 0 else None
                    same = back is not None and back.shape == array.shape and (
                        back.tolist() == array.tolist() if name == "S"
                        else back.dtype == array.dtype and back.tobytes() == array.tobytes())
                    shown = done.stdout.partition("\n")[2].rstrip("\n")
                    if name not in ("S", "complex64", "complex128") and shown != str(array):
                        print(f"{name} {array.shape}: printed\n{shown}\nNumPy prints\n{array}")
                        failures += 1
                    if not same:
                        print(f"{name} {array.shape} version {version}: {done.stderr or 'differs'}")
                        failures += 1
                    count += 1
    print(f"{count} arrays, {failures} failures")
    return failures > 0


sys.exit(main())
