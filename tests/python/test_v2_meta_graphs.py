"""MetaGraphDefs in scopes, copies of scopes, moving averages by weight, and names of eager variables that end with a slash."""

from both import both


def _modules(tf):
    """Returns the modules of MetaGraphDefs and moving averages, here or in stock."""
    if tf.__name__.startswith("runnel"):
        from runnel.core import meta_graph
        from runnel.train import moving_averages
        return meta_graph, moving_averages
    from tensorflow.python.framework import meta_graph
    from tensorflow.python.training import moving_averages
    return meta_graph, moving_averages


def _program(tf):
    with tf.name_scope("part"):
        v = tf.compat.v1.Variable(2.0, name="v", use_resource=False)
        tf.add(v, 1.0, name="sum")
    return tf.compat.v1.train.export_meta_graph()


@both(v2=True)
def test_scoped_imports(tf, np):
    meta_graph, _ = _modules(tf)
    with tf.Graph().as_default():
        _program(tf)
        meta, found = meta_graph.export_scoped_meta_graph(export_scope="part")
    results = [sorted(found)]
    for scope in ("s", "s", None):
        with tf.Graph().as_default() as graph:
            for outside in ("", "outer"):
                with tf.compat.v1.name_scope(outside or None):
                    made = meta_graph.import_scoped_meta_graph(meta, import_scope=scope)
                results.append([(key, variable.name) for key, variable in sorted(made.items())])
            results.append([op.name for op in graph.get_operations()])
    return results


@both(v2=True)
def test_scopes_are_copied(tf, np):
    meta_graph, _ = _modules(tf)
    with tf.Graph().as_default():
        _program(tf)
        made = meta_graph.copy_scoped_meta_graph("part", "copy")
        try:
            meta_graph.copy_scoped_meta_graph("part", "part")
        except ValueError as error:
            made["error"] = str(error).split("Received")[0]
    return [(key, getattr(value, "name", value)) for key, value in sorted(made.items())]


@both(v2=True)
def test_savers_follow_the_scope_around(tf, np):
    with tf.Graph().as_default():
        tf.compat.v1.Variable(2.0, name="v", use_resource=False)
        tf.compat.v1.train.Saver()
        meta = tf.compat.v1.train.export_meta_graph(saver_def=tf.compat.v1.train.Saver().as_saver_def())
    with tf.Graph().as_default(), tf.name_scope("outer"):
        saver = tf.compat.v1.train.import_meta_graph(meta)
        return saver.as_saver_def().restore_op_name


@both(v2=True)
def test_averages_by_weight(tf, np):
    _, moving_averages = _modules(tf)
    with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
        value, weight = tf.compat.v1.placeholder(tf.float32, []), tf.compat.v1.placeholder(tf.float32, [])
        average = moving_averages.weighted_moving_average(value, 0.5, weight)
        sess.run(tf.compat.v1.global_variables_initializer())
        return ([v.name for v in tf.compat.v1.global_variables()],
                [sess.run(average, {value: x, weight: w}) for x, w in ((2.0, 1.0), (4.0, 3.0), (8.0, 0.0))])


@both(v2=True)
def test_names_with_a_slash(tf, np):
    average = tf.compat.v1.train.ExponentialMovingAverage(0.5, name="mean")
    v = tf.Variable(1.0, name="v")
    average.apply([v])
    with tf.name_scope("scope"):
        names = tf.Variable(1.0, name="whole/").name, tf.Variable(1.0, name="part").name
    return names, average.average_name(v), average.average(v).name
