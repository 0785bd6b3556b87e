"""Two fully connected layers with a ReLU between them: graph, session, feeds, fetches and a gradient.

The program builds the graph first; a step then feeds x and fetches tensors. The weights are given,
so there is no training and the result is known.
"""

import numpy as np
import runnel as tf

x = tf.placeholder(tf.float32, shape=[None, 3], name="x")
with tf.name_scope("hidden"):
    W1 = tf.Variable([[1.0, -1.0], [2.0, 0.0], [0.0, 3.0]], name="W")
    b1 = tf.Variable(tf.constant([0.5, -0.5]), name="b")
    h = tf.nn.relu(tf.matmul(x, W1) + b1)
with tf.name_scope("output"):
    W2 = tf.Variable([[1.0], [10.0]], name="W")
    b2 = tf.Variable(tf.zeros([1]), name="b")
    y = tf.matmul(h, W2) + b2
print(", ".join(op.name for op in tf.get_default_graph().get_operations()))
slope, = tf.gradients(y, x)

data = np.array([[1, 2, 3], [-1, 0, 0]], np.float32)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print("h =", sess.run(h, feed_dict={x: data}).tolist())
    values, slopes = sess.run([y, slope], feed_dict={x: data})
print("y =", values.ravel().tolist())
print("dy/dx =", slopes.tolist())
