"""Strings, records, files, flags and the log."""

import os
import subprocess
import sys

from both import both


@both(graph=True)
def test_texts(tf, np):
    t = tf.constant(["one two", "three", ""])
    rows = [tf.string_join([t, t], separator="-"), tf.substr(t, 0, 3), tf.string_strip(["  a b "]), tf.regex_replace(t, "[aeiou]", "_"), tf.string_to_number(["1.5", "-2"]), tf.string_to_number(["7"], tf.int64),
            tf.string_to_hash_bucket_fast(t, 100), tf.as_string([1.5, 2.25], precision=1), tf.as_string([1, 2]), tf.strings.length(t), tf.strings.upper(t), tf.strings.lower(["ABC"]),
            tf.strings.regex_full_match(t, "t.*"), tf.encode_base64("abc"), tf.decode_base64("YWJj"), tf.string_to_hash_bucket(t, 10)]
    with tf.Session() as sess:
        return sess.run(rows)


@both
def test_more_texts(tf, np):
    t = tf.constant(["one two", "three", ""])
    rows = [tf.string_split(t), tf.string_split(["a,b", "c"], ","), tf.strings.split(["a b", "c"]), tf.reduce_join([["a", "b"], ["c", "d"]], 0), tf.reduce_join([["a", "b"], ["c", "d"]]), tf.strings.format("x = {}", [tf.constant([1, 2])])]
    with tf.Session() as sess:
        return sess.run(rows)


@both
def test_raw(tf, np):
    rows = [tf.decode_raw(["abcd", "efgh"], tf.uint8), tf.decode_raw([b"\x01\x00\x02\x00"], tf.int16), tf.decode_csv(["1,2.5,x", "3,,y"], [[0], [9.0], [""]]), tf.parse_tensor(tf.serialize_tensor(tf.constant([1, 2])), tf.int32)]
    with tf.Session() as sess:
        return sess.run(rows)


def example(pairs):
    """A serialized tf.Example, by hand."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    rows = b""
    for key, (kind, data) in sorted(pairs.items()):
        feature = field(kind, data)
        rows += field(1, field(1, key.encode()) + field(2, feature))
    return field(1, rows)


def ints(*values):
    return (3, bytes([0x0A, len(values)]) + bytes(values))


def texts(*values):
    return (1, b"".join(bytes([0x0A, len(v)]) + v for v in values))


@both
def test_examples(tf, np):
    rows = [example({"a": ints(1, 2), "s": texts(b"u"), "v": ints(5)}), example({"a": ints(3, 4), "v": ints(6, 7)})]
    features = {"a": tf.FixedLenFeature([2], tf.int64), "s": tf.FixedLenFeature([], tf.string, "none"), "v": tf.VarLenFeature(tf.int64),
                "q": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    with tf.Session() as sess:
        batch = tf.parse_example(rows, features)
        del features["q"]
        one = tf.parse_single_example(rows[0], features)
        return sess.run([[batch[k] for k in sorted(batch)], [one[k] for k in sorted(one)]])


@both
def test_py_func(tf, np):
    x = tf.constant([1.0, 2.0])
    y = tf.py_func(lambda a, b: a * b, [x, tf.constant(3.0)], tf.float32)
    pair = tf.py_func(lambda a: (a + 1, np.array(b"text")), [x], [tf.float32, tf.string])
    none = tf.py_func(lambda a: None, [x], [])
    with tf.Session() as sess:
        return [sess.run(y), sess.run(pair), sess.run(none), str(y.shape)]


@both(raises=True)
def test_py_func_fails(tf, np):
    def bad(a):
        raise ValueError("no")
    tf.Session().run(tf.py_func(bad, [tf.constant(1)], tf.int32))


@both(raises=True)
def test_py_func_of_wrong_type(tf, np):
    tf.Session().run(tf.py_func(lambda: np.float64(1), [], tf.int32))


@both
def test_records(tf, np):
    import tempfile
    rows = []
    for options in (None, tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP), tf.python_io.TFRecordOptions("ZLIB")):
        with tempfile.NamedTemporaryFile() as file:
            with tf.python_io.TFRecordWriter(file.name, options) as writer:
                for record in (b"a", b"", b"x" * 100000, b"last"):
                    writer.write(record)
            rows.append([len(r) for r in tf.python_io.tf_record_iterator(file.name, options)])
            if options is None:
                rows.append(open(file.name, "rb").read())
    return rows


@both(raises=True)
def test_damaged_records(tf, np):
    import tempfile
    with tempfile.NamedTemporaryFile() as file:
        with tf.python_io.TFRecordWriter(file.name) as writer:
            writer.write(b"hello")
        with open(file.name, "r+b") as stream:
            stream.seek(14)
            stream.write(b"X")
        return list(tf.python_io.tf_record_iterator(file.name))


@both
def test_files(tf, np):
    import tempfile
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a", "b.txt")
        tf.gfile.MakeDirs(os.path.dirname(path))
        with tf.gfile.GFile(path, "w") as stream:
            stream.write("one\ntwo\n")
        with tf.gfile.Open(path) as stream:
            rows.append(list(stream))
        rows += [tf.gfile.Exists(path), tf.gfile.IsDirectory(folder), tf.gfile.ListDirectory(os.path.dirname(path)), [os.path.basename(p) for p in tf.gfile.Glob(os.path.join(folder, "a", "*.txt"))], tf.gfile.Stat(path).length]
        tf.gfile.Copy(path, path + "2")
        tf.gfile.Rename(path + "2", path + "3")
        tf.gfile.Remove(path + "3")
        rows.append([(os.path.relpath(p, folder), d, f) for p, d, f in tf.gfile.Walk(folder)])
        for call in (lambda: tf.gfile.Copy(path, path), lambda: tf.gfile.Remove(path + "x"), lambda: tf.gfile.GFile(path + "x").read(), lambda: tf.gfile.ListDirectory(path + "x")):
            try:
                call()
            except tf.errors.OpError as error:
                rows.append(type(error).__name__)
        tf.gfile.DeleteRecursively(folder + "/a")
        rows.append(tf.gfile.Exists(path))
    return rows


FLAGS = """
import tensorflow as tf
tf.flags.DEFINE_integer("n", 5, "a number")
tf.flags.DEFINE_string("s", None, "a text")
tf.flags.DEFINE_boolean("b", False, "a switch")
tf.flags.DEFINE_float("f", 0.5, "a fraction")
tf.flags.DEFINE_enum("e", "x", ["x", "y"], "one of two")
tf.flags.DEFINE_list("l", "a,b", "some")
FLAGS = tf.flags.FLAGS
def main(argv):
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.logging.info("shown %d", 1)
    tf.logging.debug("hidden")
    print(FLAGS.n, FLAGS.s, FLAGS.b, FLAGS.f, FLAGS.e, FLAGS.l, argv[1:])
if __name__ == "__main__":
    tf.app.run()
"""


def test_flags(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FLAGS)
    done = subprocess.run([sys.executable, "-m", "runnel", str(script), "--n=7", "--s", "text", "--b", "--e=y", "rest"], text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert done.stdout == "7 text True 0.5 y ['a', 'b'] ['rest']\n"
    assert done.stderr == "INFO:tensorflow:shown 1\n"
    bad = subprocess.run([sys.executable, "-m", "runnel", str(script), "--n=x"], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
    assert bad.returncode == 1 and "flag --n=x" in bad.stderr


@both
def test_readers(tf, np):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines")
        with open(path, "w") as stream:
            stream.write("one\ntwo\nthree\n")
        rows = []
        for reader in (tf.TextLineReader(skip_header_lines=1), tf.WholeFileReader(), tf.FixedLengthRecordReader(4), tf.IdentityReader()):
            queue = tf.FIFOQueue(5, [tf.string], shapes=[[]])
            key, value = reader.read(queue)
            fill = queue.enqueue_many([[path]])
            with tf.Session() as sess:
                sess.run(fill)
                sess.run(queue.close())
                values = []
                while True:
                    try:
                        k, v = sess.run([key, value])
                    except tf.errors.OutOfRangeError:
                        break
                    values.append((k.decode().replace(folder, ""), v.decode().replace(folder, "")))
                rows.append((values, sess.run(reader.num_records_produced())))
        return rows
