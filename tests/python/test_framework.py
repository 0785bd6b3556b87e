"""Names, scopes, devices, control dependencies, collections, shapes, types."""

from both import both


@both(graph=True)
def test_names(tf, np):
    a = tf.constant(1, name="a")
    with tf.name_scope("s"):
        b = tf.constant(1, name="a")
        with tf.name_scope("t") as scope:
            c = tf.add(a, b, name="sum")
        with tf.name_scope("t"):
            d = a + b
        with tf.name_scope(scope):
            e = a * b
        with tf.name_scope(None):
            f = tf.identity(c)
    A = tf.constant(2, name="A")
    with tf.name_scope("S"):
        g = tf.constant(2)
    with tf.name_scope(None, "default", [a]):
        h = a - A
    return [t.name for t in (a, b, c, d, e, f, A, g, h)] + [scope, tf.get_default_graph().unique_name("a"), tf.get_default_graph().unique_name("zz", mark_as_used=False)]


@both(graph=True)
def test_devices(tf, np):
    rows = []
    with tf.device("/job:ps"):
        rows.append(tf.constant(1))
        with tf.device("/task:1/cpu:0"):
            rows.append(tf.constant(1))
            with tf.device(None):
                rows.append(tf.constant(1))
            with tf.device(lambda op: "/gpu:%d" % (op.type == "Const")):
                rows.append(tf.constant(1))
                rows.append(tf.identity(rows[0]))
                with tf.device("/replica:2"):
                    rows.append(tf.constant(1))
    with tf.device("/device:GPU:1"):
        with tf.device("/cpu:*"):
            rows.append(tf.constant(1))
    with tf.device(tf.DeviceSpec(job="w", task=2)):
        rows.append(tf.constant(1))
    return [r.device for r in rows]


@both(graph=True)
def test_control_dependencies(tf, np):
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    with tf.control_dependencies([a]):
        c = tf.constant(3, name="c")
        d = tf.identity(a, name="d")
        with tf.control_dependencies([b, a.op]):
            e = tf.identity(c, name="e")
            with tf.control_dependencies(None):
                f = tf.constant(4, name="f")
            g = tf.add(e, f, name="g")
    return [[op.name for op in t.op.control_inputs] for t in (c, d, e, f, g)]


@both(graph=True)
def test_colocation(tf, np):
    with tf.device("/cpu:0"):
        a = tf.constant(1, name="a")
    b = tf.constant(1, name="b")
    with tf.colocate_with(a.op):
        c = tf.constant(2, name="c")
        with tf.colocate_with(b):
            d = tf.constant(3, name="d")
        with tf.colocate_with(b.op, ignore_existing=True):
            e = tf.constant(3, name="e")
    return [(t.op.colocation_groups(), t.device) for t in (a, b, c, d, e)]


@both
def test_collections(tf, np):
    g = tf.get_default_graph()
    tf.add_to_collection("x", tf.constant(1, name="p/one"))
    g.add_to_collections(["x", "y"], tf.constant(2, name="q/two"))
    tf.get_collection_ref("z").append(5)
    return [[t.name for t in tf.get_collection("x")], [t.name for t in tf.get_collection("x", scope="p/")], tf.get_collection("z"), tf.get_collection("none"),
            sorted(g.get_all_collection_keys()), tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.UPDATE_OPS]


@both
def test_operations(tf, np):
    g = tf.get_default_graph()
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.matmul(x, [[1.0], [2.0]], transpose_a=False, name="y")
    op = y.op
    return [op.name, op.type, [i.name for i in op.inputs], [o.name for o in op.outputs], op.get_attr("transpose_a"), op.get_attr("T").name, repr(op), repr(y), str(y), x.op.get_attr("dtype").name,
            [c.name for c in x.consumers()], y.value_index, g.get_tensor_by_name("y:0") is y, g.get_operation_by_name("y") is op, g.as_graph_element("y") is op, str(x.shape), x.shape.as_list(), x.get_shape().ndims,
            len(g.get_operations()), op.node_def.input[1], str(tf.unstack(tf.ones([2, 2]))[1]), hash(x) == hash(x), x in [x, y], {x: 1}[x]]


@both
def test_set_shape(tf, np):
    x = tf.placeholder(tf.float32)
    rows = [str(x.shape), x.shape.ndims]
    x.set_shape([None, 3])
    rows.append(str(x.shape))
    x.set_shape([2, None])
    return rows + [str(x.shape), x.shape == [2, 3], str((x + 1).shape)]


@both(raises=True)
def test_bad_shape(tf, np):
    x = tf.placeholder(tf.float32, [2, 3])
    x.set_shape([3, 3])


@both
def test_shapes(tf, np):
    s = tf.TensorShape([None, 2, 3])
    t = tf.TensorShape(None)
    rows = [str(s), repr(s), str(t), repr(t), s.ndims, t.ndims, str(s[1:]), s[1] == 2, str(s[0]), str(s.merge_with([4, None, 3])), str(s.concatenate([1])), s.is_compatible_with([1, 2, 3]), s.is_compatible_with([1, 2]),
            s.is_fully_defined(), tf.TensorShape([2, 3]).num_elements(), [str(d) for d in s], str(s.with_rank(3)), str(t.with_rank(2)), s == tf.TensorShape([None, 2, 3]), bool(t), bool(s), str(s.as_proto()), len(s),
            str(tf.Dimension(3) + 2), str(tf.Dimension(None) * 2), tf.Dimension(4) > 3, str(tf.Dimension(7) // 2), repr(tf.Dimension(3)), str(tf.TensorShape([3])), str(tf.TensorShape([])), str(tf.TensorShape(5))]
    return rows


@both
def test_types(tf, np):
    rows = []
    for name in ("float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "bfloat16", "float16", "uint16", "uint32", "uint64", "complex128", "resource", "variant"):
        d = getattr(tf, name)
        rows.append([d.name, repr(d), str(d), d.as_datatype_enum, d.is_floating, d.is_integer, d.is_complex, d.is_unsigned, d.is_bool, d.is_quantized, d.size, d == name, tf.as_dtype(name) is d, d.real_dtype.name, d.base_dtype.name])
    rows += [tf.as_dtype(np.float32).name, tf.as_dtype(np.dtype("int64")).name, tf.as_dtype(float).name, tf.as_dtype(object).name, tf.as_dtype(1).name,
             tf.int32.max, tf.uint8.min, float(tf.float32.max), tf.float32 == np.float32, tf.float32 != tf.int32, tf.half is tf.float16, tf.float32.is_compatible_with(tf.float32), tf.as_dtype("float32_ref").name, tf.uint8.limits]
    return rows


@both
def test_graph_def(tf, np):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(x, 1.0, name="y")
    data = tf.get_default_graph().as_graph_def()
    copy = tf.GraphDef()
    copy.ParseFromString(data.SerializeToString())
    with tf.Graph().as_default() as g:
        z, op = tf.import_graph_def(copy, {"x:0": tf.constant([5.0, 6.0])}, ["y:0", "y"], name="in")
        tf.import_graph_def(copy, name="")
        names = [o.name for o in g.get_operations()]
        with tf.Session() as sess:
            value = sess.run(z)
    shapes = str(tf.get_default_graph().as_graph_def(add_shapes=True).node[2].attr["_output_shapes"])
    return [value, z.name, op.type, names, str(data.node[2]), shapes, y.name, copy == data]


@both(raises=True)
def test_import_of_unknown_input(tf, np):
    tf.constant(1, name="a")
    data = tf.get_default_graph().as_graph_def()
    tf.import_graph_def(data, {"nothing:0": tf.constant(1)})


@both
def test_finalize(tf, np):
    g = tf.Graph()
    with g.as_default():
        tf.constant(1)
        g.finalize()
        try:
            tf.constant(2)
        except RuntimeError as error:
            return [g.finalized, str(error)]


@both(raises=True)
def test_tensor_is_no_bool(tf, np):
    return bool(tf.constant(True))


@both(raises=True)
def test_bad_scope_name(tf, np):
    with tf.name_scope("a b"):
        pass


@both(raises=True)
def test_mixed_graphs(tf, np):
    x = tf.constant(1)
    with tf.Graph().as_default():
        y = tf.constant(2)
        return x + y


@both(graph=True)
def test_other_graphs_inputs(tf, np):
    g = tf.Graph()
    with g.as_default():
        x = tf.constant(1)
    y = x + 1
    return [y.graph is g, y.name]


@both(raises=True)
def test_no_such_tensor(tf, np):
    tf.get_default_graph().get_tensor_by_name("a:0")


@both(raises=True)
def test_no_output_number(tf, np):
    tf.get_default_graph().get_tensor_by_name("a")


def test_raw_ops():
    import inspect
    import runnel as tf
    with tf.Graph().as_default(), tf.Session() as sess:
        assert sess.run(tf.raw_ops.Add(x=1, y=2)) == 3
        assert sess.run(tf.raw_ops.mat_mul([[1.0]], [[2.0]])).tolist() == [[2.0]]
        values, indices = tf.raw_ops.TopKV2(input=[1.0, 3.0, 2.0], k=2)
        assert sess.run(values).tolist() == [3.0, 2.0] and sess.run(indices).tolist() == [1, 2]
    assert str(inspect.signature(tf.raw_ops.MatMul)).startswith("(a, b, transpose_a=False, transpose_b=False")
    assert "Multiplies two matrices" in tf.raw_ops.MatMul.__doc__


def test_absent_names_point_to_the_manual():
    import pytest
    import runnel as tf
    with pytest.raises(AttributeError, match="doc/python_names.md"):
        tf.no_such_thing
    with pytest.raises(AttributeError, match="runnel ops"):
        tf.raw_ops.NoSuchOp


def test_the_users_line():
    import runnel as tf
    with tf.Graph().as_default():
        x = tf.reduce_sum(tf.ones([2]))
    file, line, function = x.op.traceback[-1][:3]
    assert file == __file__ and function == "test_the_users_line"
    assert line == test_the_users_line.__code__.co_firstlineno + 3


def test_picture():
    import xml.etree.ElementTree as ElementTree
    import runnel as tf
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        for i in range(100):
            with tf.name_scope("layer%d" % (i // 10)):
                x = tf.tanh(x + 1.0)
        root = ElementTree.fromstring(graph._repr_svg_())
    texts = [e.text for e in root.iter() if e.tag.endswith("title")]
    assert "x" in texts and "layer0" in texts and len(texts) <= 120
    with tf.Graph().as_default() as loop:
        a = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        assert a is not None
        ElementTree.fromstring(loop._repr_svg_())
