"""Fourier transforms and audio."""

from . import audio
from .base import *

# Every radix, a first pass of each power of two, primes with a pass of their own and those that become convolutions.
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 24, 25, 27, 30, 31, 32, 37, 40, 49, 61, 64, 67, 96, 127, 128, 134)
REAL = {"complex64": "float", "complex128": "double"}
TOLERANCE = {"complex64": 1e-5, "complex128": 1e-13}


def types(c):
    return {"Treal": REAL[c], "Tcomplex": c}


def one_axis(t):
    """Adds all lengths in both precisions, one row and several."""
    for c in C:
        tol = TOLERANCE[c]
        for n in LENGTHS:
            for shape in ([n], [11, n]):
                name = "%s_%s" % (c, "x".join(map(str, shape)))
                t.row(name, "FFT", [drawn(c, shape)], tol=tol)
                t.row(name, "RFFT", [drawn(REAL[c], shape), ivec(n)], types(c), tol=tol)
                half = shape[:-1] + [n // 2 + 1]
                t.row(name, "IRFFT", [drawn(c, half), ivec(n)], types(c), tol=tol)
            t.row("%s_%d" % (c, n), "IFFT", [drawn(c, [2, n])], tol=tol)
    for n in (1000, 1024, 2187, 4099):
        t.row("long_%d" % n, "FFT", [drawn("complex128", [n])], tol=1e-11)
        t.row("long_%d" % n, "RFFT", [drawn("double", [2, n]), ivec(n)], types("complex128"), tol=1e-11)
    for op in ("FFT", "IFFT"):
        t.row("scalar", op, [given("complex64", [], [1])])
        t.row("empty", op, [drawn("complex64", [0])])
        t.row("empty_batch", op, [drawn("complex64", [0, 4])])
        t.row("empty_rows", op, [drawn("complex64", [3, 0])])


def lengths(t):
    """Adds crops, fed lengths and bad ones."""
    for op, d in (("RFFT", "float"), ("IRFFT", "complex64")):
        t.row("crop", op, [drawn(d, [2, 9]), ivec(6)], tol=1e-5)
        t.row("crop_odd", op, [drawn(d, [2, 9]), ivec(5)], tol=1e-5)
        t.row("fed", op, [drawn(d, [2, 9]), vec("int32", [8])], tol=1e-5)
        t.row("short", op, [drawn(d, [2, 3]), ivec(8)])
        t.row("zero", op, [drawn(d, [2, 3]), ivec(0)])
        t.row("negative", op, [drawn(d, [2, 3]), vec("int32", [-1])])
        t.row("two_lengths", op, [drawn(d, [2, 3]), ivec(2, 2)])
        t.row("scalar_length", op, [drawn(d, [2, 3]), iscalar(2)])
        t.row("fed_two_lengths", op, [drawn(d, [2, 3]), vec("int32", [2, 2])])
        t.row("scalar", op, [drawn(d, []), ivec(1)])
        t.row("empty", op, [drawn(d, [2, 0]), ivec(0)])
        t.row("empty_padded", op, [drawn(d, [0, 3]), ivec(2)])
    t.row("wrong_types", "RFFT", [drawn("float", [4]), ivec(4)], {"Tcomplex": "complex128"})
    t.row("wrong_types", "IRFFT", [drawn("complex128", [3]), ivec(4)], {"Treal": "float"})


def several_axes(t):
    for k, shapes in ((2, ([4, 6], [3, 5, 8], [2, 1, 7, 3], [1, 1], [2, 67, 3], [33, 40])), (3, ([2, 3, 4], [2, 4, 5, 6], [3, 1, 1, 9]))):
        for c in C:
            tol = TOLERANCE[c]
            for shape in shapes:
                name = "%s_%s" % (c, "x".join(map(str, shape)))
                for op in ("FFT%dD", "IFFT%dD"):
                    t.row(name, op % k, [drawn(c, shape)], tol=tol)
                size = ivec(*shape[-k:])
                t.row(name, "RFFT%dD" % k, [drawn(REAL[c], shape), size], types(c), tol=tol)
                half = shape[:-1] + [shape[-1] // 2 + 1]
                t.row(name, "IRFFT%dD" % k, [drawn(c, half), size], types(c), tol=tol)
    for op, d in (("RFFT2D", "float"), ("IRFFT2D", "complex64")):
        t.row("crop", op, [drawn(d, [2, 7, 9]), ivec(4, 6)], tol=1e-5)
        t.row("crop_odd", op, [drawn(d, [2, 7, 9]), ivec(3, 5)], tol=1e-5)
        t.row("short", op, [drawn(d, [2, 3, 4]), ivec(8, 4)])
        t.row("rank", op, [drawn(d, [3]), ivec(1, 1)])
        t.row("empty", op, [drawn(d, [2, 0, 3]), ivec(0, 2)])
    t.row("crop", "RFFT3D", [drawn("float", [2, 4, 5, 7]), ivec(3, 4, 6)], tol=1e-5)
    t.row("crop", "IRFFT3D", [drawn("complex64", [2, 4, 5, 7]), ivec(3, 4, 6)], tol=1e-5)
    for op in ("FFT2D", "IFFT3D"):
        t.row("rank", op, [drawn("complex64", [3])])
        t.row("empty", op, [drawn("complex64", [2, 0, 3])])


def any_axes(t):
    """Adds the ND ops, which stock has on GPUs only; tests/python compares their values with NumPy."""
    more = {"beyond": True, "message": "code-only", "wrong_static": [0]}
    for c in C:
        for rank in (1, 2, 3):
            shape = [3, 4, 5]
            axes = ivec(*range(-rank, 0))
            size = ivec(*shape[-rank:])
            half = shape[:-1] + [shape[-1] // 2 + 1]
            name = "%s_%d" % (c, rank)
            t.row(name, "FFTND", [drawn(c, shape), size, axes], **more)
            t.row(name, "IFFTND", [drawn(c, shape), size, axes], **more)
            t.row(name, "RFFTND", [drawn(REAL[c], shape), size, axes], types(c), **more)
            t.row(name, "IRFFTND", [drawn(c, half), size, axes], types(c), **more)
    x, r = drawn("complex64", [2, 4, 6]), drawn("float", [2, 4, 6])
    t.row("fed", "RFFTND", [r, vec("int32", [6]), vec("int32", [-1])], **more)
    bad = {"message": "code-only", "wrong_static": [0]}
    for op, v in (("FFTND", x), ("RFFTND", r), ("IRFFTND", x)):
        t.row("gap", op, [v, ivec(2, 6), ivec(0, 2)], **bad)
        t.row("not_last", op, [v, ivec(4), ivec(1)], **bad)
        t.row("many_axes", op, [v, ivec(1, 1, 1, 1), ivec(0, 1, 2, 3)], **bad)
        t.row("lengths", op, [v, ivec(4), ivec(1, 2)], **bad)
        t.row("negative", op, [v, ivec(-1), ivec(2)], **bad)
        t.row("matrix", op, [v, given("int32", [1, 1], [6]), given("int32", [1, 1], [2])], **bad)
        t.row("scalar", op, [drawn(v["dtype"], []), ivec(1), ivec(0)], message="code-only")
    t.row("short", "RFFTND", [r, ivec(9), ivec(-1)], **bad)
    t.row("short", "IRFFTND", [x, ivec(19), ivec(-1)], **bad)


def gradients(t):
    grads = {"grad": "complex", "grad_tol": 1e-10, "fd_tol": 1e-6}
    c = "complex128"
    for k in (1, 2, 3):
        name = "" if k == 1 else "%dD" % k
        shape = [2, 3, 4][-k:]
        for op in ("FFT", "IFFT"):
            t.row("grad", op + name, [drawn(c, [2] + shape)], **grads)
        for last in (4, 5):
            inner = shape[:-1] + [last]
            size = ivec(*inner)
            half = [2] + inner[:-1] + [last // 2 + 1]
            t.row("grad_%d" % last, "RFFT" + name, [drawn("double", [2] + inner), size], types(c), **grads)
            t.row("grad_%d" % last, "IRFFT" + name, [drawn(c, half), size], types(c), **grads)
    for op, d, size in (("FFTND", c, (5, 2)), ("IFFTND", c, (2, 5)), ("RFFTND", "double", (3, 4)), ("IRFFTND", c, (2, 5))):
        nd = dict(grads, beyond=True, message="code-only", wrong_static=[0])
        t.row("grad", op, [drawn(d, [2, 3, 4]), ivec(*size), ivec(-2, -1)], types(c) if "R" in op else None, **nd)
    t.row("grad_fed", "RFFT", [drawn("double", [2, 6]), vec("int32", [6])], types(c), **grads)


def old_names(t):
    """Adds the ops of graphs before version 15; new graphs cannot hold them."""
    for name, shape in (("", [2, 6]), ("2D", [2, 3, 4]), ("3D", [2, 3, 4])):
        for inverse in ("", "I"):
            t.row("new_graph", "Batch%sFFT%s" % (inverse, name), [drawn("complex64", shape)])


def fill(t):
    one_axis(t)
    lengths(t)
    several_axes(t)
    any_axes(t)
    gradients(t)
    old_names(t)
    audio.fill(t)
