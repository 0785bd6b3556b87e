"""Chains of nodes in bfloat16, rounded as in stock TensorFlow."""

import os

from both import both


@both
def test_bfloat16(tf, np):
    """Every node rounds: so does stock, where its optimizer does not make one of several."""
    # Hypervisors may hide the matrix unit that stock's library would use otherwise. It looks once.
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_BF16"
    from tensorflow.core.protobuf import rewriter_config_pb2
    r = np.random.RandomState(0)
    x, w, v, b, c = (tf.placeholder(tf.bfloat16, shape) for shape in ((4, 64), (64, 32), (32, 10), (32,), (10,)))
    h = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
    y = tf.nn.tanh(tf.nn.bias_add(tf.matmul(h, v), c))
    rewrite = rewriter_config_pb2.RewriterConfig(remapping=rewriter_config_pb2.RewriterConfig.OFF)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(rewrite_options=rewrite))
    with tf.Session(config=config) as sess:
        feeds = {tensor: r.randn(*tensor.shape.as_list()) for tensor in (x, w, v, b, c)}
        return [sess.run(tf.cast(tensor, tf.float32), feeds).tolist() for tensor in (h, y, tf.nn.softmax(h))]
