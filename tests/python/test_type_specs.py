"""TypeSpecs, tf.nest over composite tensors, and trackable containers, as in stock's TensorFlow 2."""

import pickle

from both import both


def specs(tf):
    return [tf.TensorSpec([None, 3], tf.int32, "x"), tf.SparseTensorSpec([2, None], tf.float32), tf.RaggedTensorSpec([None, None, 4], tf.float32, 1),
            tf.RaggedTensorSpec([5, None, None], tf.int64, row_splits_dtype=tf.int32), tf.IndexedSlicesSpec([7, 2])]


@both(v2=True)
def test_texts_and_equality(tf, np):
    made = specs(tf)
    again = specs(tf)
    return [[repr(s) for s in made], [a == b for a in made for b in again], [hash(a) == hash(b) for a, b in zip(made, again)],
            [s.value_type.__name__ for s in made], [pickle.loads(pickle.dumps(s)) == s for s in made]]


@both(v2=True)
def test_of_values(tf, np):
    ragged = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    sparse = tf.SparseTensor([[0, 1]], [2.0], [3, 4])
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    return [repr(tf.type_spec_from_value(v)) for v in (ragged, sparse, slices, tf.constant([1, 2]), np.ones([2, 2], "float32"), 3)]


@both(v2=True)
def test_no_spec(tf, np):
    return repr(tf.type_spec_from_value(tf.ragged.constant([["a"]]))), tf.TensorSpec([None], tf.string).is_compatible_with(tf.constant(["a"]))


@both(v2=True, raises=True)
def test_type_without_spec(tf, np):
    tf.type_spec_from_value(object())


@both(v2=True)
def test_compatibility(tf, np):
    a, b = tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([2, 3], tf.float32, "b")
    ragged, sparse = tf.RaggedTensorSpec([None, None], tf.float32), tf.SparseTensorSpec([None, 2], tf.float32)
    return [a.is_compatible_with(b), b.is_compatible_with(tf.ones([2, 3])), a.is_compatible_with(tf.ones([3])), b.is_subtype_of(a), a.is_subtype_of(b),
            repr(b.most_specific_compatible_type(tf.TensorSpec([4, 3], tf.float32, "b"))), repr(a.most_specific_common_supertype([tf.TensorSpec([1], tf.int32)])),
            ragged.is_compatible_with(tf.ragged.constant([[1.0], []])), ragged.is_compatible_with(tf.ones([2, 2])),
            sparse.is_compatible_with(tf.SparseTensorSpec([3, None], tf.float32)), sparse.is_compatible_with(tf.SparseTensorSpec([3, 1], tf.float32)),
            repr(sparse.most_specific_compatible_type(tf.SparseTensorSpec([3, 1], tf.float32))),
            repr(tf.TensorSpec.from_tensor(tf.constant([1.0]))), repr(tf.TensorSpec.from_spec(b, "c"))]


@both(v2=True, raises=True)
def test_nothing_in_common(tf, np):
    tf.SparseTensorSpec([1]).most_specific_compatible_type(tf.RaggedTensorSpec([1, None]))


@both(v2=True)
def test_nest_expands(tf, np):
    ragged = tf.ragged.constant([[[1], [2, 3]], []])
    value = {"r": ragged, "s": (tf.SparseTensor([[0, 1]], [2.0], [3, 4]), 5)}
    flat = tf.nest.flatten(value, expand_composites=True)
    packed = tf.nest.pack_sequence_as(value, flat, expand_composites=True)
    doubled = tf.nest.map_structure(lambda x: x, value, expand_composites=True)
    shapes = [repr(s) for s in tf.nest.flatten([tf.RaggedTensorSpec([2, None, None], tf.int32), tf.SparseTensorSpec([None, 3])], expand_composites=True)]
    return [len(flat), packed["r"].to_list(), packed["s"][0].values, doubled["r"].to_list(), shapes, len(tf.nest.flatten(value))]


@both(v2=True)
def test_sparse_shapes(tf, np):
    x = tf.SparseTensor([[0, 1]], [2.0], [3, 4])
    x.set_shape([3, None])
    return repr(x.shape), repr(x.with_values([1.0]).shape)


@both(v2=True)
def test_tracking(tf, np):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.parts = [tf.Variable(1.0), {"a": tf.Variable(2.0)}]
            self.pair = (tf.Variable(3.0), 4)
            self.plain = 5
            self.gone = tf.Variable(6.0)
            self.gone = None

    net = Net()
    net.parts.append(tf.Variable(7.0))
    net.parts[1]["b"] = tf.Variable(8.0)
    view = tf.train.TrackableView(net)
    tracking = tf.__internal__.tracking
    return [sorted(view.children(net)), sorted(view.children(net.parts)), sorted(view.children(net.parts[1])), sorted(view.children(net.pair)),
            len(view.descendants()), isinstance(net.parts, list), net.parts[2:], net.pair[1], isinstance(net, tracking.AutoTrackable),
            isinstance(tf.Variable(1), tracking.Trackable), isinstance(net.parts, tracking.Trackable), [float(v) for v in net.variables]]


@both(v2=True)
def test_not_tracked(tf, np):
    class Holder(tf.__internal__.tracking.AutoTrackable):
        @tf.__internal__.tracking.no_automatic_dependency_tracking
        def __init__(self):
            self.hidden = tf.Variable(1.0)

    holder = Holder()
    holder.seen = tf.Variable(2.0)
    return list(holder._trackable_children()), [r.name for r in holder._checkpoint_dependencies]


@both(v2=True, raises=True)
def test_tracked_twice(tf, np):
    holder = tf.__internal__.tracking.AutoTrackable()
    holder._track_trackable(tf.Variable(1.0), "a")
    holder._track_trackable(tf.Variable(2.0), "a")


@both(v2=True)
def test_internal(tf, np):
    smart_cond = tf.__internal__.smart_cond.smart_cond
    graph = tf.__internal__.FuncGraph("g")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 2])
        y = tf.matmul(x, tf.ones([2, 3]))
        shape = y.shape.as_list()
    return [smart_cond(True, lambda: 1, lambda: 2), smart_cond(tf.constant(False), lambda: 1, lambda: 2), shape,
            isinstance(tf.constant(1), tf.__internal__.types.Tensor), isinstance(tf.constant(1), tf.__internal__.EagerTensor),
            isinstance(tf.Variable(1), tf.__internal__.types.Tensor)]
