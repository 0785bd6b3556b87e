#!/usr/bin/env python3
"""TFRecords and Examples both ways between this library and stock TensorFlow.

  record_stock_test.py RECORD_TOOL
"""

import base64
import json
import os
import struct
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import tensorflow as tf

TOOL = sys.argv[1]
RECORDS = [b"", b"a", bytes(range(256)), b"x" * 300000, b"\n\r\0"] + [b"r%d" % i for i in range(500)]


def tool(*args, text=""):
    done = subprocess.run([TOOL, *args], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit("record_tool %s: %s" % (" ".join(args), done.stderr))
    return done.stdout


def check(what, got, want):
    if got != want:
        sys.exit("%s: %r is not %r" % (what, got, want))


def records(folder, compression):
    path = os.path.join(folder, "r" + compression)
    if compression != "SNAPPY":  # which Python reads, but writes in snapshots of datasets alone
        with tf.io.TFRecordWriter(path, compression) as writer:
            for record in RECORDS:
                writer.write(record)
        read = [bytes.fromhex(line) for line in tool("read", path, compression).splitlines()]
        check("stock's records, " + compression, read, RECORDS)
    ours = path + "_ours"
    tool("write", ours, compression, text="".join(r.hex() + "\n" for r in RECORDS))
    read = list(tf.data.TFRecordDataset(ours, compression).as_numpy_iterator())
    check("our records, " + compression, read, RECORDS)
    if not compression:
        check("the bytes of a file", open(ours, "rb").read(), open(path, "rb").read())


def examples(folder):
    rows = [(3, b"\0\xffpixels", [1.5, -2.25]), (-7, b"", []), (1 << 40, b"z" * 784, [0.1])]
    path = os.path.join(folder, "examples")
    with tf.io.TFRecordWriter(path) as writer:
        for label, image, v in rows:
            feature = {
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                "v": tf.train.Feature(float_list=tf.train.FloatList(value=v)),
                "other": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    single = lambda x: struct.unpack("f", struct.pack("f", x))[0]
    want = []
    for label, image, v in rows:
        words = [str(label)] + ["%.9g" % single(x) for x in v] + [image.hex()]
        want.append(" ".join(words))
    check("stock's Examples", tool("parse", path).splitlines(), [w for w in want])
    lines = []
    for label, image, v in rows:
        feature = {
            "label": {"int64List": {"value": [str(label)]}},
            "image": {"bytesList": {"value": [base64.b64encode(image).decode()]}},
            "v": {"floatList": {"value": v}},
        }
        lines.append(json.dumps({"features": {"feature": feature}}) + "\n")
    ours = path + "_ours"
    tool("make", ours, text="".join(lines))
    spec = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image": tf.io.FixedLenFeature([], tf.string),
        "v": tf.io.VarLenFeature(tf.float32),
    }
    got = []
    for record in tf.data.TFRecordDataset(ours):
        parsed = tf.io.parse_single_example(record, spec)
        values = list(parsed["v"].values.numpy())
        got.append((int(parsed["label"]), parsed["image"].numpy(), [float(x) for x in values]))
    check("our Examples", got, [(a, b, [single(x) for x in v]) for a, b, v in rows])


with tempfile.TemporaryDirectory() as folder:
    for compression in ("", "ZLIB", "GZIP", "SNAPPY"):
        records(folder, compression)
    examples(folder)
print("records and Examples agree with stock TensorFlow, both ways")
