"""Checkpoints both ways with stock TensorFlow, compared byte by byte where the format is canonical.

    checkpoint_stock_test.py CHECKPOINT_TOOL

Stock writes, the tool reads everything and writes it again: the same index and the same data, and
stock reads the same values out of what the tool wrote.
"""
import filecmp
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import numpy as np
    import tensorflow as tf
except ImportError:
    sys.exit(77)

TOOL = sys.argv[1]
ops = tf.raw_ops
NAMES = ("float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128 "
         "qint8 quint8 qint32").split()
V1_NAMES = [n for n in NAMES if n not in ("bfloat16", "uint32", "uint64")]
STORED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}


def tool(*args, fails=None):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True)
    if fails is None:
        assert done.returncode == 0, (args, done.stderr)
    else:
        assert done.returncode == 1 and fails in done.stderr, (args, done.stderr)
    return done.stdout


def value(name, shape, seed=0):
    count = int(np.prod(shape))
    dtype = tf.dtypes.as_dtype(name)
    plain = tf.dtypes.as_dtype(STORED.get(name, name))
    x = tf.reshape(tf.range(count) % 100 + seed, shape)
    x = tf.cast(x, plain) if plain != tf.bool else x % 3 == 0
    if plain.is_complex:
        x = tf.complex(tf.math.real(x), tf.math.real(x) * -2 + 1)
    return tf.bitcast(x, dtype) if dtype != plain else x


def restore(prefix, names, dtypes, slices=None):
    return ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=slices or [""] * len(names), dtypes=dtypes)


def same(a, b):
    dtype = a.dtype
    if dtype.name in STORED:
        a, b = tf.bitcast(a, STORED[dtype.name]), tf.bitcast(b, STORED[dtype.name])
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.numpy(), b.numpy())


def files(prefix):
    folder, base = os.path.split(prefix)
    return sorted(f[len(base):] for f in os.listdir(folder) if f.startswith(base + "."))


def equal_files(a, b):
    assert files(a) == files(b), (files(a), files(b))
    for ending in files(a):
        assert filecmp.cmp(a + ending, b + ending, shallow=False), ending


def round_trip(folder, what, names, tensors, slices=None):
    a, b = os.path.join(folder, what + "_stock"), os.path.join(folder, what + "_ours")
    ops.SaveV2(prefix=a, tensor_names=names, shape_and_slices=slices or [""] * len(names), tensors=tensors)
    tool("copy", a, b)
    equal_files(a, b)
    return a, b


def check_types(folder):
    names, tensors = [], []
    for name in NAMES:
        for shape in ([], [0, 3], [2, 3], [1000]):
            if name.startswith("q") and shape == []:
                continue
            names.append(f"v/{name}/{'x'.join(map(str, shape))}")
            tensors.append(value(name, shape))
    texts = [b"", b"x", b"\x00\xff" * 40, "\u00e9".encode(), b"z" * 300]
    for label, tensor in (("scalar", tf.constant(b"text")), ("list", tf.constant(texts)), ("none", tf.zeros([0], tf.string)),
                          ("many", tf.strings.as_string(tf.range(3000)))):
        names.append("s/" + label)
        tensors.append(tensor)
    _, ours = round_trip(folder, "types", names, tensors)
    for tensor, back in zip(tensors, restore(ours, names, [t.dtype for t in tensors])):
        assert same(tensor, back)


def check_many(folder):
    # Several blocks of the index: 256 KiB each.
    names = [f"a/rather/long/name/of/a/variable/number_{i}/kernel" for i in range(12000)]
    _, ours = round_trip(folder, "many", names, [tf.constant(float(i)) for i in range(len(names))])
    back = restore(ours, names[::997], [tf.float32] * len(names[::997]))
    assert [float(x) for x in back] == [float(i) for i in range(0, len(names), 997)]


def check_slices(folder):
    whole = value("float32", [6, 70, 3])
    specs = ["6 70 3 0,2:-:-", "6 70 3 2,4:0,65:-", "6 70 3 2,4:65,5:-"]
    parts = [whole[:2], whole[2:, :65], whole[2:, 65:]]
    _, ours = round_trip(folder, "slices", ["p"] * 3, parts, specs)
    assert same(whole, restore(ours, ["p"], [tf.float32])[0])
    # Cut anew by the tool, merged by the tool, read by stock; and merged by stock: the same index.
    prefixes = {who: [os.path.join(folder, f"{who}_{i}", "part") for i in range(2)] for who in ("stock", "ours")}
    for who in prefixes:
        for i, spec in enumerate(("6 70 3 -:0,30:-", "6 70 3 -:30,40:-")):
            os.makedirs(os.path.dirname(prefixes[who][i]))
            tool("part", ours, prefixes[who][i], "p", spec)
    a, b = os.path.join(folder, "merged_stock"), os.path.join(folder, "merged_ours")
    ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes["stock"], destination_prefix=a)
    tool("merge", b, *prefixes["ours"])
    equal_files(a, b)
    assert same(whole, restore(b, ["p"], [tf.float32])[0])
    assert same(whole[1:4, 20:50], restore(b, ["p"], [tf.float32], ["6 70 3 1,3:20,30:-"])[0])


def check_first_format(folder):
    names = list(V1_NAMES) + ["text"]
    tensors = [value(n, [3, 4]) for n in V1_NAMES] + [tf.constant([b"a", b"", b"c" * 400])]
    path, bundle, again = (os.path.join(folder, n) for n in ("v1_stock", "v1_bundle", "v1_ours"))
    plain = [(tf.bitcast(t, STORED[t.dtype.name]) if t.dtype.name in STORED else t).numpy() for t in tensors]
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        data = [tf.bitcast(tf.constant(x), t.dtype) if t.dtype.name in STORED else tf.constant(x)
                for x, t in zip(plain, tensors)]
        session.run(ops.Save(filename=path, tensor_names=names, data=data))
    tool("copy_v1", path, bundle)
    for tensor, back in zip(tensors, restore(bundle, names, [t.dtype for t in tensors])):
        assert same(tensor, back)
    tool("write_v1", bundle, again)
    assert filecmp.cmp(path, again, shallow=False)


def check_variants(folder):
    lists = [ops.TensorListFromTensor(tensor=value("float32", [4, 3]), element_shape=[3]),
             ops.TensorListFromTensor(tensor=tf.constant([b"a", b"bc"]), element_shape=tf.constant([], tf.int32))]
    _, ours = round_trip(folder, "variants", ["floats", "texts"], lists)
    back = restore(ours, ["floats", "texts"], [tf.variant] * 2)
    stacked = ops.TensorListStack(input_handle=back[0], element_shape=[3], element_dtype=tf.float32)
    assert same(stacked, value("float32", [4, 3]))


def check_replaced(folder):
    # A checkpoint over another: the data file gets another number, and stock reads it.
    prefix, source = os.path.join(folder, "again"), os.path.join(folder, "again_from")
    for step in range(4):
        ops.SaveV2(prefix=source, tensor_names=["a"], shape_and_slices=[""], tensors=[tf.fill([10], float(step))])
        tool("copy", source, prefix)
        assert float(restore(prefix, ["a"], [tf.float32])[0][9]) == step
        assert len(files(prefix)) == 2, files(prefix)


def check_refused(folder):
    a = os.path.join(folder, "types_stock")
    with open(a + ".index", "rb") as file:
        index = file.read()
    for cut in (0, 10, len(index) // 2, len(index) - 1):
        with open(os.path.join(folder, "cut.index"), "wb") as file:
            file.write(index[:cut])
        tool("digest", os.path.join(folder, "cut"), fails="cut.index")
    # The header of a big-endian machine.
    big = os.path.join(folder, "big")
    ops.SaveV2(prefix=big, tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant(1.0)])
    with open(big + ".index", "rb") as file:
        data = bytearray(file.read())
    assert data[:9] == b"\x00\x00\x06\x08\x01\x1a\x02\x08\x01"
    data[3:9] = b"\x10\x01\x08\x01\x1a\x00"  # endianness 1, one shard, no version
    data = seal(data)
    with open(big + ".index", "wb") as file:
        file.write(data)
    tool("digest", big, fails="big-endian")


def seal(data):
    """The checksum of the first block made right."""
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    footer = data[-48:]
    meta_offset = varints(footer)[0]
    block = data[:meta_offset - 4]
    crc = 0xFFFFFFFF
    for byte in block:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    data[meta_offset - 4:meta_offset] = masked.to_bytes(4, "little")
    return data


def varints(data):
    out, shift, number = [], 0, 0
    for byte in data[:40]:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(number)
            shift = number = 0
    return out


with tempfile.TemporaryDirectory() as folder:
    for check in (check_types, check_many, check_slices, check_first_format, check_variants, check_replaced, check_refused):
        check(folder)
        print("good", check.__name__)
