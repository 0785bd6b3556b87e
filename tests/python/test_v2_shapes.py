"""tf.TensorShape, tf.compat.v1.Dimension and tf.DeviceSpec as in stock."""

import pickle

from both import both


def outcome(call):
    """Returns the text of a result or of an error."""
    try:
        return repr(call())
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


@both(v2=True)
def test_dimensions(tf, np):
    Dimension = tf.compat.v1.Dimension
    six, unknown = Dimension(6), Dimension(None)
    return [outcome(call) for call in (
        lambda: six / 2, lambda: 6 / six, lambda: six == 6.5, lambda: unknown == 12.5, lambda: unknown == None, lambda: six != (6,), lambda: bool(Dimension(0)),  # noqa: E711
        lambda: six.is_compatible_with([]), lambda: six.is_compatible_with(-1), lambda: six.merge_with(7), lambda: pickle.loads(pickle.dumps(six)), lambda: 13 % six)]


@both(v2=True)
def test_shapes_as_types(tf, np):
    shapes = [tf.TensorShape(dims) for dims in ([1, 2, 3], [None, 2, 3], [None] * 3, None, [1, 2])]
    return ([[a.is_subtype_of(b) for a in shapes] for b in shapes], [str(shapes[0].most_specific_common_supertype([b])) for b in shapes],
            str(tf.TensorShape.experimental_from_proto(shapes[1].experimental_as_proto())),
            outcome(lambda: tf.broadcast_static_shape(tf.TensorShape([2, 3]), tf.TensorShape([4]))))


@both(v2=True)
def test_devices(tf, np):
    names = ["/job:a/replica:1/task:2/device:GPU:3", "/cpu:0", "/gpu:*", "", "/job:a/cpu:0/device:GPU:1", "/task:x", "/foo:1", "/device:XPU:1"]
    specs = [outcome(lambda n=name: tf.DeviceSpec.from_string(n).to_string()) for name in names]
    spec = tf.DeviceSpec(job="w", task=1, device_type="gpu")
    merged = spec.make_merged_spec(tf.DeviceSpec.from_string("/task:2/cpu:1"))
    old = tf.compat.v1.DeviceSpec(job="w")
    old.task = 3
    old.merge_from(tf.compat.v1.DeviceSpec(device_type="cpu", device_index=1))
    return (specs, spec.to_string(), merged.to_string(), spec.replace(task=None).to_string(), hasattr(spec, "merge_from"), old.to_string(),
            outcome(lambda: setattr(spec, "job", "x")).split(":")[0], spec == tf.DeviceSpec.from_string(spec.to_string()))
