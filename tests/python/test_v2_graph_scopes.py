"""Scopes of graphs in TensorFlow 2: per thread, nested, around functions; and what graphs say about wrong arguments."""

import threading

from both import both


def _in_threads(count, work):
    """Runs `work(i, wait)` in threads: all of them reach `wait()` before the first one goes on."""
    barrier = threading.Barrier(count)
    threads = [threading.Thread(target=work, args=(i, barrier.wait)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _scoped(tf, graph):
    """Returns what nodes get that three threads add, each inside of scopes of its own."""
    with graph.as_default():
        anchors = [tf.constant(i, name="anchor_%d" % i) for i in range(3)]
    found = {}

    def work(i, wait):
        with graph.as_default(), tf.device("/job:worker/task:%d" % i), tf.name_scope("scope_%d" % i), \
                tf.control_dependencies([anchors[i]]), graph.colocate_with(anchors[2 - i].op, ignore_existing=True):
            wait()
            op = tf.constant(1.0, name="node").op
            found[i] = op.name, op.device, [one.name for one in op.control_inputs], [str(one) for one in op.colocation_groups()]
            wait()

    _in_threads(3, work)
    with graph.as_default():
        after = tf.constant(1.0, name="after").op
    return [found[i] for i in range(3)], after.name, after.device, len(after.control_inputs)


@both(v2=True)
def test_threads_have_scopes_of_their_own(tf, np):
    return _scoped(tf, tf.Graph())


@both(v2=True)
def test_a_thread_begins_without_scopes(tf, np):
    graph, found = tf.Graph(), []

    def work():
        with graph.as_default():
            found.append(tf.constant(1.0).op)

    with graph.as_default(), tf.device("CPU:0"), tf.name_scope("outer"), tf.control_dependencies([tf.constant(0)]):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        inside = tf.constant(1.0).op
    return found[0].name, found[0].device, len(found[0].control_inputs), inside.name, inside.device, len(inside.control_inputs)


@both(v2=True)
def test_scopes_with_slashes(tf, np):
    names = []
    with tf.Graph().as_default(), tf.name_scope("outer"):
        for name in ("/", "//", "a/", "a//b/c", "a//"):
            with tf.compat.v1.name_scope(name) as scope:
                names.append((scope, "" if name == "//" else tf.constant(1).name))
    return names


@both(v2=True, message=True, raises=True)
def test_names_of_scopes_have_a_pattern(tf, np):
    with tf.Graph().as_default(), tf.name_scope("/"):
        pass


@both(v2=True, message=True, raises=True)
def test_devices_end_in_order(tf, np):
    graph = tf.Graph()
    scope = graph.device("CPU:0")
    scope.__enter__()
    with graph.device("CPU:1"):
        scope.__exit__(None, None, None)


@both(v2=True, message=True, raises=True)
def test_eager_devices_end_in_order(tf, np):
    scope = tf.device("CPU:0")
    scope.__enter__()
    try:
        with tf.device(None):
            scope.__exit__(None, None, None)
    finally:
        tf.device(None).__enter__()


@both(v2=True)
def test_init_scope_keeps_devices_and_leaves_functions(tf, np):
    outer, inner = tf.Graph(), tf.Graph()
    inner._building_function = True
    devices = []
    with outer.as_default(), tf.device("CPU:0"), inner.as_default():
        with tf.device("CPU:1"):
            with tf.init_scope():
                devices.append(tf.constant(1.0).device)
            devices.append(tf.constant(1.0).device)
        with tf.init_scope():
            devices.append(tf.constant(1.0).device)
    return devices, len(outer.get_operations()), len(inner.get_operations())


@both(v2=True)
def test_eager_control_dependencies_call_functions(tf, np):
    calls = []
    with tf.control_dependencies([tf.constant(1), lambda: calls.append(1)]):
        calls.append(2)
    return calls


@both(v2=True)
def test_consumers_are_listed_per_input(tf, np):
    with tf.Graph().as_default():
        x, y = tf.constant(1), tf.constant(2)
        z = x + y
        z.op._update_input(0, y)
        return [op.name for op in x.consumers()], [op.name for op in y.consumers()], [t.name for t in z.op.inputs]


@both(v2=True)
def test_messages_about_arguments(tf, np):
    ops, texts = tf.raw_ops, []
    with tf.Graph().as_default():
        t, text, flag = tf.constant(1.0), tf.constant("a"), tf.constant(True)
        for call in (
                lambda: ops.BitwiseAnd(x=text, y=text), lambda: ops.BitwiseAnd(x=text, y="a"), lambda: ops.MatMul(a=t, b=flag),
                lambda: ops.MatMul(a=flag, b=t), lambda: ops.MatMul(a=t, b="x"), lambda: ops.StringLower(input=1),
                lambda: ops.StringLower(input=t), lambda: ops.InvertPermutation(x={}), lambda: ops.InvertPermutation(x=1.5),
                lambda: ops.AddN(inputs=[]), lambda: ops.AddN(inputs=[t, tf.constant(1)]), lambda: ops.Pack(values=[t, {}]),
                lambda: ops.ConcatV2(values=[t], axis=0), lambda: ops.ConcatV2(values=[t, "a"], axis=0),
                lambda: ops.Cast(x=t, DstT="foo"), lambda: ops.MatMul(a=None, b=t), lambda: ops.Pack(values=[t], axis="a"),
                lambda: ops.Unpack(value=t, num=-1), lambda: ops.Conv2D(input=t, filter=t, strides=[1, 1, 1, 1], padding="FOO"),
                lambda: ops.Conv2D(input=t, filter=t, strides=["a"], padding="SAME"), lambda: ops.Assert(condition=True, data=[]),
                lambda: ops.Fill(dims=[1.5], value=1), lambda: tf.constant(1) + 1.5, lambda: tf.reshape(t, "a"), lambda: tf.constant({}),
                lambda: tf.constant(1.5, tf.int32), lambda: tf.convert_to_tensor(t.op), lambda: tf.nn.relu("a"),
                lambda: len(t), lambda: t.reshape((1, 1))):
            try:
                call()
                texts.append("no error")
            except Exception as error:
                texts.append("%s: %s" % (type(error).__name__, str(error).replace("SymbolicTensor", "Tensor")))
    return texts


@both(v2=True)
def test_numbers_in_a_list_follow_its_tensors(tf, np):
    with tf.Graph().as_default():
        x = tf.raw_ops.Pack(values=[1, tf.constant(2.5)])
        return x.dtype.name


@both(v2=True)
def test_messages_of_eager_conversions(tf, np):
    texts = []
    for call in (lambda: tf.constant(1.5, tf.int32), lambda: tf.constant("a", tf.int32), lambda: tf.constant(1.0).T):
        try:
            call()
        except Exception as error:
            texts.append("%s: %s" % (type(error).__name__, error))
    return texts


@both(v2=True)
def test_shapes_from_parts_of_sizes(tf, np):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [16, 37, None, 48])
        sizes = tf.shape(x)
        found = [tf.reshape(tf.compat.v1.placeholder(tf.float32), part).shape.as_list() for part in (
            sizes[1:], sizes[::2], sizes[:-1], tf.cast(tf.cast(sizes, tf.int64)[1:3], tf.int32), tf.concat([sizes[:1], [5]], 0))]
        packed = tf.stack([np.ones((2, 3)), tf.compat.v1.placeholder(tf.float64, [2, 3])])
        rows = [tf.get_static_value(row, partial=True) for row in tf.unstack(packed) + tf.split(packed, 2)]
        return found, rows[0], rows[1], rows[2][0], len(rows[2]), [one is None for one in rows[3]]
