"""Tensors as (dtype, shape, data): random values, conversion, parts."""

import numpy as np

NUMPY = {
    "float": "f4", "double": "f8", "half": "f2", "int8": "i1", "int16": "i2", "int32": "i4",
    "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4", "uint64": "u8", "bool": "?",
    "complex64": "c8", "complex128": "c16", "qint8": "i1", "quint8": "u1", "qint16": "i2",
    "quint16": "u2", "qint32": "i4",
}  # fmt: skip
FLOATS = ("half", "bfloat16", "float", "double")
COMPLEX = ("complex64", "complex128")
INTS = tuple(d for d in NUMPY if NUMPY[d][0] in "iu")
# mantissa bits, smallest normal number, largest number
LIMITS = {
    "half": (10, 2.0**-14, 65504.0),
    "bfloat16": (7, 2.0**-126, 3.3895313892515355e38),
    "float": (23, 2.0**-126, 3.4028234663852886e38),
    "double": (52, 2.0**-1022, 1.7976931348623157e308),
}
LIMITS["complex64"], LIMITS["complex128"] = LIMITS["float"], LIMITS["double"]
STRINGS = [
    b"", b"a", b"b", b"abc", b" ", b"a b", b"\xff\xfe", b"\xc3\x28", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80",
    b"A\xc3\x84z", b"\x00", b"a\x00b", b"1", b"-1.5", b" 7 ", b"nan", b"inf", b"-0", b"1e400",
    b"99999999999999999999", b"0x10", b"a,b;c", b"x" * 40, b"\xed\xa0\x80", b"\n", b"%s", b"true",
]  # fmt: skip


def can_draw(dtype):
    return dtype in NUMPY or dtype in ("bfloat16", "string")


def array_of(dtype, shape, data):
    if dtype == "bfloat16":
        bits = np.frombuffer(data, "u2").astype("u4") << 16
        return bits.view("f4").reshape(shape)
    return np.frombuffer(data, NUMPY[dtype]).reshape(shape)


def data_of(dtype, array):
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            wide = np.ascontiguousarray(array, "f4").reshape(-1)
            bits = wide.view("u4")
            rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
            rounded = np.where(np.isnan(wide), 0x7FC0, rounded)
            return rounded.astype("u2").tobytes()
        if dtype in INTS:
            return ints(dtype, np.asarray(array)).tobytes()
        if dtype == "bool":
            return np.asarray(array).astype(bool).tobytes()
        return np.asarray(array).astype(NUMPY[dtype]).tobytes()


def ints(dtype, array):
    """Anything as integers: numbers out of range are clipped, NaN is 0."""
    if array.dtype.kind in "fc":
        info = np.iinfo(NUMPY[dtype])
        array = np.nan_to_num(array.real.astype("f8"), nan=0)
        low, high = float(info.min), np.nextafter(float(info.max), 0)
        array = np.clip(array, low, high)
    return array.astype(NUMPY[dtype])


def float_pool(dtype):
    """Values at which functions and roundings change their ways."""
    bits, normal, largest = LIMITS[dtype]
    eps = 2.0**-bits
    pool = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 2.0, -2.0, 3.0]
    pool += [normal * eps, -normal * eps, normal / 2, -normal / 2, normal, -normal, largest, -largest]
    pool += [1 + eps, 1 - eps / 2, -1 - eps, eps, -eps, 1 / eps, -1 / eps, largest / 2, largest**0.5]
    pool += [0.49999997, 6.0, 5.9999, np.pi, np.pi / 2, 1e-3, 10.0, -10.0, 20.0, 88.5, 88.8, 89.5, -88.0]
    pool += [-104.0, 709.5, 709.9, 710.5, -745.5, 4.5, 127.5, 128.0, 255.5, 2147483648.0, 9.3e18, 1.9e19]
    return pool


def draw_float(rng, dtype, n, tame=False):
    """n floats as double. |tame| leaves out numbers whose sums depend on their order."""
    style = rng.random()
    _, normal, largest = LIMITS[dtype]
    plain = np.array([rng.uniform(-2, 2) for _ in range(n)])
    if style < 0.45 or (tame and style < 0.75):
        return plain * rng.choice([1, 1, 1, 0.1, 5])
    if tame:
        pool = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, np.nan, np.inf, -np.inf]
        return np.array([rng.choice(pool) if rng.random() < 0.2 else x for x in plain])
    if style < 0.6:
        low, high = np.log10(normal) - 3, np.log10(largest)
        with np.errstate(over="ignore"):
            return np.array([rng.choice([1, -1]) * 10.0 ** rng.uniform(low, high) for _ in range(n)])
    if style < 0.7:
        return np.array([rng.randint(-20, 20) / 2 for _ in range(n)])
    pool, some = float_pool(dtype), 1 if style < 0.85 else 0.2
    return np.array([rng.choice(pool) if rng.random() < some else x for x in plain])


def draw_int(rng, dtype, n):
    info = np.iinfo(NUMPY[dtype])
    low, high = int(info.min), int(info.max)
    pool = [low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 8, high // 2, max(low, -1), max(low, -2)]
    style = rng.random()
    if style < 0.6:
        values = [rng.randint(max(low, -4), 9) for _ in range(n)]
    elif style < 0.75:
        values = [rng.randint(low, high) for _ in range(n)]
    else:
        values = [rng.choice(pool) for _ in range(n)]
    return np.array(values, dtype=object).astype(NUMPY[dtype]) if n else np.zeros(0, NUMPY[dtype])


def draw(rng, dtype, shape, tame=False):
    """A tensor with drawn values, as data."""
    n = int(np.prod(shape, dtype=np.int64))
    if dtype == "string":
        return [rng.choice(STRINGS) for _ in range(n)]
    if dtype == "bool":
        return bytes(rng.randrange(2) for _ in range(n))
    if dtype in COMPLEX:
        real, imaginary = draw_float(rng, dtype, n, tame), draw_float(rng, dtype, n, tame)
        whole = np.empty(n, "c16")
        whole.real, whole.imag = real, imaginary
        return data_of(dtype, whole)
    if dtype in FLOATS:
        return data_of(dtype, draw_float(rng, dtype, n, tame))
    return draw_int(rng, dtype, n).tobytes()


def text(dtype, shape, data, most=24):
    """A tensor for people."""
    if data is None:
        return "%s handle" % dtype
    if not can_draw(dtype):
        return "%s%s {%s}" % (dtype, list(shape), data[:most].hex())
    if dtype == "string":
        flat = [repr(x)[1:] for x in data[:most]]
        count = len(data)
    else:
        array = array_of(dtype, shape, data).reshape(-1)
        count = array.size
        digits = {"half": 5, "bfloat16": 4, "float": 9, "complex64": 9}.get(dtype, 17)
        flat = ["%.*g" % (digits, x) if dtype in FLOATS else str(x) for x in array[:most].tolist()]
    return "%s%s {%s%s}" % (dtype, list(shape), ", ".join(flat), " ..." if count > most else "")
