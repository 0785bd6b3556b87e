"""SavedModels written here and read by stock, and vice versa."""

from support import stock

WRITE = """
x = tf.placeholder(tf.float32, [None, 3], name="x")
w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
y = tf.matmul(x, w, name="y")
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(w.assign([[1, 2], [3, 4], [5, 6.0]]))
    tf.saved_model.simple_save(sess, path, {"x": x}, {"y": y})
"""
READ = """
with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.load(sess, ["serve"], path)
    signature = meta.signature_def["serving_default"]
    found = sess.run(signature.outputs["y"].name, {signature.inputs["x"].name: [[1, 2, 3.0]]})
    assert found.tolist() == [[22, 28]], found
"""


def _ours(program, path):
    import runnel as tf
    with tf.Graph().as_default():
        exec(program, {"tf": tf, "path": path})


def _stocks(program, path):
    head = "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior(); path = %r\n" % path
    stock.run(head + program)


def test_here_and_there(tmp_path):
    _ours(WRITE, str(tmp_path / "ours"))
    _ours(READ, str(tmp_path / "ours"))
    _stocks(READ, str(tmp_path / "ours"))
    _stocks(WRITE, str(tmp_path / "stocks"))
    _ours(READ, str(tmp_path / "stocks"))
