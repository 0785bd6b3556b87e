"""Compares two results of one case."""

import numpy as np

import hints
import values

# Units in the last place that two right implementations may be apart.
ULPS = {"half": 2, "bfloat16": 2, "float": 8, "double": 16, "complex64": 64, "complex128": 128}
LOOSE_ULPS = {"half": 16, "bfloat16": 16, "float": 512, "double": 4096, "complex64": 2048, "complex128": 4096}


def float_difference(op, dtype, ours, stock, ulps, scale):
    """None, or where and how far apart; |scale| is the size of numbers that were summed up."""
    ours, stock = ours.reshape(-1).astype("f8"), stock.reshape(-1).astype("f8")
    bits, normal, largest = values.LIMITS[dtype]
    with np.errstate(all="ignore"):
        both_nan = np.isnan(ours) & np.isnan(stock)
        size = np.maximum(np.abs(ours), np.abs(stock))
        unit = np.maximum(np.maximum(size, scale), normal) * 2.0**-bits
        apart = np.abs(ours - stock) / unit
        # The very largest number and infinity are a rounding apart.
        near = ~np.isfinite(size) & (np.minimum(np.abs(ours), np.abs(stock)) >= largest * (1 - 2.0**-bits * ulps))
        near &= np.sign(ours) == np.sign(stock)
        # What cannot be held in full counts as zero in kernels of both, in places of their own.
        tiny = (size < normal * 1.001) & (dtype != "half")
        fine = both_nan | (ours == stock) | (apart <= ulps) | near | tiny
        fine &= np.isnan(ours) == np.isnan(stock)
    if fine.all():
        return None
    i = int(np.argmin(fine))
    return "element %d: %.17g, stock %.17g (%.3g ulp)" % (i, ours[i], stock[i], apart[i])


def zero_difference(ours, stock):
    signs = (ours == 0) & (stock == 0) & (np.signbit(ours) != np.signbit(stock))
    if signs.any():
        i = int(np.argmax(signs.reshape(-1)))
        return "element %d: %+g, stock %+g" % (i, ours.reshape(-1)[i], stock.reshape(-1)[i])
    return None


def input_scale(case):
    """The largest finite number that goes in: what rounding errors of sums are measured by."""
    largest = 0.0
    for node in case["nodes"]:
        for spec in node["inputs"]:
            for one in spec if isinstance(spec, list) else [spec]:
                if one[0] == "tensor" and one[1] in values.LIMITS and one[3]:
                    array = np.abs(values.array_of(one[1], one[2], one[3]))
                    finite = array[np.isfinite(array)]
                    largest = max(largest, float(finite.max()) if finite.size else 0.0)
    return largest


def value_difference(case, ours, stock):
    """(kind, text) or None for two tensors of one output."""
    if ours[0] != stock[0]:
        return "dtype", "%s, stock %s" % (ours[0], stock[0])
    if ours[1] != stock[1]:
        return "shape", "%s, stock %s" % (ours[1], stock[1])
    dtype, shape = ours[0], ours[1]
    if ours[2] is None or stock[2] is None or ours[2] == stock[2]:
        return None
    if dtype == "string":
        i = next(i for i, (a, b) in enumerate(zip(ours[2], stock[2])) if a != b)
        return "value", "element %d: %r, stock %r" % (i, ours[2][i][:200], stock[2][i][:200])
    if not values.can_draw(dtype):
        return "value", "bytes %s, stock %s" % (ours[2][:16].hex(), stock[2][:16].hex())
    a, b = values.array_of(dtype, shape, ours[2]), values.array_of(dtype, shape, stock[2])
    if dtype not in values.LIMITS:
        i = int(np.argmax((a != b).reshape(-1)))
        return "value", "element %d: %s, stock %s" % (i, a.reshape(-1)[i], b.reshape(-1)[i])
    tame = hints.is_tame(case["op"])
    ulps, scale = (LOOSE_ULPS if tame else ULPS)[dtype], 0.0
    if tame:
        finite = np.abs(b[np.isfinite(b)])
        scale = max(input_scale(case), float(finite.max()) if finite.size else 0.0)
    if dtype in values.COMPLEX:
        size = np.abs(b.astype("c16"))
        size = np.where(np.isfinite(size), size, 0).reshape(-1)
        for name, x, y in (("real", a.real, b.real), ("imaginary", a.imag, b.imag)):
            text = float_difference(case["op"], dtype, x, y, ulps, np.maximum(size, scale))
            if text:
                return "value", name + " " + text
        return None
    text = float_difference(case["op"], dtype, a, b, ulps, scale)
    if text:
        return "value", text
    text = zero_difference(a, b)
    return ("zero sign", text) if text else None


def difference(case, ours, stock):
    """(kind, text) of the first difference, or None."""
    if ours[0] == "crash" or (ours[0] == "hang" and stock[0] != "hang"):
        return ours[0], " ".join(ours)
    if stock[0] in ("crash", "hang") or ours[0] == "hang":
        return None
    if ours[0] == "error" and stock[0] == "error":
        return None
    if ours[0] == "error":
        return "refused", "code %d: %s" % ours[1:]
    if stock[0] == "error":
        return "accepted", "stock: code %d: %s" % stock[1:]
    for number, (a, b) in enumerate(zip(ours[1], stock[1])):
        if case["nodes"][number]["op"] in case.get("hidden", ()):
            continue
        if len(a) != len(b):
            return "outputs", "node %d has %d, stock %d" % (number, len(a), len(b))
        for output, (x, y) in enumerate(zip(a, b)):
            found = value_difference(case, x, y)
            if found:
                where = "" if len(ours[1]) == 1 else "node %d (%s) " % (number, case["nodes"][number]["op"])
                return found[0], "%soutput %d %s" % (where, output, found[1])
    return None
