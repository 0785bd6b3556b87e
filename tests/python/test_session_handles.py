"""Tensors that a session keeps between steps, methods of signatures, calls in batches."""

import threading

from both import both


@both
def test_handles(tf, np):
    a = tf.constant([[10.0, 4.0]])
    c = tf.multiply(a, 5.0)
    d = c * c
    with tf.Session() as sess:
        h, value = sess.run([tf.get_session_handle(c), d])
        f, x = tf.get_session_tensor(h.handle, tf.float32)
        results = [value, h.eval(), sess.run(x * 10, {f: h.handle}), sess.run(d, {c: h}), sess.run([c, d], {c: h}), type(h).__name__, str(h) == h.handle]
        more = tf.get_session_handle(x + 1)
        for _ in range(25):  # handles without a reference are deleted now and then
            h = sess.run(more, {f: h.handle})
        results.append(h.eval())
        raw = h.get_raw_handle()
        p, delete = tf.delete_session_tensor(raw)
        sess.run(delete, {p: raw})
        for call in (h.eval, h.delete, lambda: sess.run(x, {f: raw}), lambda: tf.get_session_handle(3)):
            try:
                call()
                results.append("no error")
            except (TypeError, tf.errors.InvalidArgumentError) as error:
                results.append(type(error).__name__)
        return results


@both(graph=True)
def test_nodes_of_handles(tf, np):
    a = tf.constant(1.0, name="a")
    tf.get_session_handle(a, name="h")
    device = "a;1;/job:localhost/replica:0/task:0/device:CPU:0"
    tf.get_session_tensor(device, tf.float32, name="t")
    tf.delete_session_tensor(device.encode(), name="d")
    return []


def test_handles_of_a_closed_loop_are_freed():
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as sess:
        h = sess.run(tf.get_session_handle(tf.constant(0)))
        f, x = tf.get_session_tensor(h.handle, tf.int32)
        first, more = h.handle, tf.get_session_handle(x + 1)
        for _ in range(30):
            h = sess.run(more, {f: h.handle})
        try:
            sess.run(x, {f: first})
            raise AssertionError("the first tensor is still there")
        except tf.errors.InvalidArgumentError as error:
            assert "is not in the session store" in str(error)


@both
def test_batch_function(tf, np):
    sizes = []

    @tf.nondifferentiable_batch_function(1, 4, 200000)
    def double(x, y):
        return x * 2.0, [tf.reduce_sum(y, -1) + 1]

    x = tf.placeholder(tf.float32, [None])
    y = tf.placeholder(tf.float32, [None, 2])
    out = double(x, y)
    try:
        double(3.0, y)
    except (ValueError, AttributeError) as error:
        sizes.append(isinstance(error, Exception))
    with tf.Session() as sess:
        results = {}

        def step(i):
            results[i] = sess.run(out, {x: [i, i + 1.0], y: [[i, 1.0], [2.0, i]]})

        threads = [threading.Thread(target=step, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    node = [op for op in tf.get_default_graph().get_operations() if op.type == "BatchFunction"][0]
    return [results[i] for i in range(4)], type(out).__name__, node.name, [node.get_attr(key) for key in ("max_batch_size", "shared_name", "enable_large_batch_splitting")]


@both
def test_names_of_few_programs(tf, np):
    def outcome(call):
        try:
            with tf.Session() as sess:
                return sess.run(call())
        except tf.errors.OpError as error:
            return type(error).__name__
    x = np.zeros((1, 4, 4, 1), "f")
    filters, dy = np.zeros((2, 2, 1, 1), "f"), np.zeros((1, 3, 3, 1), "f")
    with tf.Graph().as_default():  # ops without a kernel
        made = list(tf.image.generate_bounding_box_proposals(np.zeros((1, 2, 2, 1), "f"), np.zeros((1, 2, 2, 4), "f"), np.zeros((1, 5), "f"), np.zeros((2, 2, 4), "f")))
        made += [op(input=x, filter=filters, out_backprop=dy, strides=[1] * 4, padding="VALID") for op in (
            tf.conv2d_backprop_filter_v2, tf.conv2d_backprop_input_v2)]
        made.append(tf.LMDBReader().reader_ref)
        results = [(str(x.shape), x.dtype.name) for x in made]
    return results + [outcome(tf.user_ops.my_fact), outcome(lambda: tf.check_pinned(1.0)), {"", "file", "ram"} <= set(tf.io.gfile.get_registered_schemes())]


@both
def test_method_names(tf, np):
    import os
    import tempfile
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        x = tf.placeholder(tf.float32, [None], name="x")
        with tf.Session() as sess:
            signature = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": x + 1})
            for as_text in (False, True):
                builder = tf.saved_model.Builder(path + str(as_text))
                builder.add_meta_graph_and_variables(sess, ["serve"], {"a": signature, "b": signature})
                builder.add_meta_graph(["serve", "gpu"], {"a": signature})
                builder.save(as_text)
        for as_text in (False, True):
            updater = tf.saved_model.signature_def_utils.MethodNameUpdater(path + str(as_text))
            updater.replace_method_name("a", "first")
            updater.replace_method_name("b", "second", tags="serve")
            for args in (("", "m"), ("a", ""), ("b", "m"), ("a", "m", ["none"])):
                try:
                    updater.replace_method_name(*args)
                except ValueError as error:
                    results.append(str(error))
            os.mkdir(path + "new%s" % as_text)
            for target in (None, path + "new%s" % as_text):
                updater.save(target)
                again = tf.saved_model.signature_def_utils.MethodNameUpdater(target or path + str(as_text))
                results.append([[(key, meta.signature_def[key].method_name) for key in sorted(meta.signature_def)] for meta in again._saved_model.meta_graphs])
            results.append(sorted(os.listdir(path + "new%s" % as_text)))
        try:
            tf.saved_model.signature_def_utils.MethodNameUpdater(folder)
        except OSError as error:
            results.append(str(error).replace(folder, "FOLDER"))
    return results
