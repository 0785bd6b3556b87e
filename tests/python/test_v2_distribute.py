"""tf.distribute over one device and over two logical CPUs, as in stock."""

from both import both


def devices(tf):
    """Makes two logical CPUs, once per process."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(cpu) is None or len(tf.config.get_logical_device_configuration(cpu)) != 2:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return ["CPU:0", "CPU:1"]


def mirrored(tf):
    return tf.distribute.MirroredStrategy(devices(tf))


def outcome(call):
    try:
        return str(call())
    except Exception as error:
        return type(error).__name__


@both(v2=True)
def test_contexts(tf, np):
    strategy = mirrored(tf)
    d = tf.distribute
    found = [d.has_strategy(), d.in_cross_replica_context(), d.get_replica_context() is None, strategy.num_replicas_in_sync]
    with strategy.scope():
        found += [d.has_strategy(), d.in_cross_replica_context(), d.get_replica_context() is None, d.get_strategy() is strategy]

    def replica():
        context = d.get_replica_context()
        found.append((d.in_cross_replica_context(), context.replica_id_in_sync_group if isinstance(context.replica_id_in_sync_group, int) else int(context.replica_id_in_sync_group),
                      context.num_replicas_in_sync, d.get_strategy() is strategy))
        return context.replica_id_in_sync_group
    values = strategy.experimental_local_results(strategy.run(replica))
    return found, [int(v) for v in values], d.get_strategy().num_replicas_in_sync, type(d.get_strategy()).__name__ != ""


@both(v2=True)
def test_reduce_and_merge(tf, np):
    strategy = mirrored(tf)
    x = strategy.experimental_distribute_values_from_function(lambda context: tf.constant([1.0, 2.0]) * (context.replica_id_in_sync_group + 1.0))

    def step(value):
        context = tf.distribute.get_replica_context()
        merged = context.merge_call(lambda s, v: s.reduce("SUM", v, axis=None), args=(value,))
        return {"sum": context.all_reduce(tf.distribute.ReduceOp.SUM, value), "mean": context.all_reduce("MEAN", [value, value * 2]), "merged": merged}
    eager = strategy.run(step, (x,))
    traced = tf.function(lambda v: strategy.run(step, (v,)))(x)
    unpacked = [[strategy.experimental_local_results(r["sum"]), [strategy.experimental_local_results(m) for m in r["mean"]]] for r in (eager, traced)]
    squares = strategy.run(lambda v: v * v, (x,))
    return unpacked, strategy.reduce("SUM", squares, axis=None), strategy.reduce(tf.distribute.ReduceOp.MEAN, squares, axis=None), strategy.reduce("MEAN", squares, axis=0), strategy.gather(x, 0)


@both(v2=True)
def test_variables(tf, np):
    strategy = mirrored(tf)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], name="v")
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        average = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        count = tf.Variable(0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM, trainable=False)

    def step():
        number = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32) + 1.0
        total.assign_add(number)
        average.assign(number)
        first.assign(number * 10.0)
        count.assign_add(number)
        return v * number + count
    outputs = [strategy.experimental_local_results(strategy.run(step)), strategy.experimental_local_results(tf.function(lambda: strategy.run(step))())]
    v.assign([5.0, 6.0])
    copies = strategy.experimental_local_results(v)
    return [outputs, total.numpy(), average.numpy(), first.numpy(), count.read_value(), [c.numpy() for c in copies], [c.name for c in copies], isinstance(v, tf.Variable),
            isinstance(v, tf.distribute.DistributedValues), v.name, v + 1.0]


@both(v2=True)
def test_training_by_hand(tf, np):
    strategy = mirrored(tf)
    with strategy.scope():
        w = tf.Variable([[1.0], [2.0]])
    x = np.arange(16, dtype="float32").reshape(8, 2) / 10
    dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(4)
    divided = strategy.experimental_distribute_dataset(dataset)

    @tf.function
    def step(iterator):
        def replica(data):
            rows, labels = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((rows @ w - labels) ** 2) / 4
            gradient = tape.gradient(loss, w)
            gradient = tf.distribute.get_replica_context().all_reduce("SUM", gradient)
            tf.distribute.get_replica_context().merge_call(lambda s, g: s.extended.update(w, lambda v, d: v.assign_sub(0.1 * d), args=(g,)), args=(gradient,))
            return loss
        return strategy.reduce("SUM", strategy.run(replica, args=(next(iterator),)), axis=None)
    losses = []
    for _ in range(3):
        iterator = iter(divided)
        losses += [step(iterator), step(iterator)]
    return losses, w, [v.numpy() for v in strategy.experimental_local_results(w)]


@both(v2=True)
def test_datasets(tf, np):
    strategy = mirrored(tf)
    rows = [[[v.numpy() for v in strategy.experimental_local_results(x)] for x in strategy.experimental_distribute_dataset(tf.data.Dataset.range(n).batch(b))] for n, b in ((8, 4), (7, 4), (5, 3))]
    pairs = [[v.numpy() for v in strategy.experimental_local_results(x)] for x in strategy.distribute_datasets_from_function(
        lambda context: tf.data.Dataset.range(8).batch(context.get_per_replica_batch_size(4)))]
    return rows, pairs


@both(v2=True)
def test_gradient_of_all_reduce(tf, np):
    strategy = mirrored(tf)
    x = strategy.experimental_distribute_values_from_function(lambda context: tf.constant([1.0, 2.0]) * (context.replica_id_in_sync_group + 1.0))

    def step(value):
        with tf.GradientTape() as tape:
            tape.watch(value)
            y = tf.reduce_sum(tf.distribute.get_replica_context().all_reduce("SUM", value * value) * value)
        return y, tape.gradient(y, value)
    y, gradient = tf.function(lambda v: strategy.run(step, (v,)))(x)
    return strategy.experimental_local_results(y), strategy.experimental_local_results(gradient)


@both(v2=True)
def test_one_device(tf, np):
    devices(tf)
    strategy = tf.distribute.OneDeviceStrategy("CPU:1")
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    y = strategy.run(lambda x: v * x, args=(tf.constant(3.0),))
    found = [list(x.numpy()) for x in strategy.experimental_distribute_dataset(tf.data.Dataset.range(3).batch(2))]
    return y, v.device, y.device, strategy.reduce("SUM", y, axis=None), strategy.reduce("MEAN", y, axis=0), found, strategy.num_replicas_in_sync


@both(v2=True)
def test_mistakes(tf, np):
    strategy, other = mirrored(tf), tf.distribute.OneDeviceStrategy("CPU:0")

    def nested():
        with strategy.scope(), other.scope():
            pass

    def uneven():
        context = tf.distribute.get_replica_context()
        if context.replica_id_in_sync_group == 0:
            context.merge_call(lambda s: None)
    return [outcome(call) for call in (nested, lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:0"]), lambda: strategy.run(uneven), lambda: strategy.run(lambda: 1 / 0),
                                       lambda: strategy.run(lambda x: x, args=3), lambda: strategy.reduce("SUM", 1.0, axis=None), lambda: strategy.reduce("MEAN", 1.0, axis=None))]


@both(v2=True)
def test_variables_made_in_replicas(tf, np):
    strategy = mirrored(tf)
    made = []

    def step():
        if not made:
            made.append(tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.SUM))
        made[0].assign_add(tf.constant([1.0, 1.0]))
        return made[0] * 2.0

    traced = []

    @tf.function
    def first_call():
        def replica():
            if len(traced) < 2:
                traced.append(tf.Variable(3.0, name="inner"))
            return traced[0] + 1.0
        return strategy.run(replica)
    return strategy.experimental_local_results(strategy.run(step)), made[0], strategy.experimental_local_results(first_call()), traced[0] is traced[-1], str(strategy.run(lambda: tf.constant(1)))


@both(v2=True)
def test_variables_of_the_default_strategy_belong_to_no_other(tf, np):
    default = tf.distribute.get_strategy()
    with default.scope():
        outside = tf.Variable(1.0)
    inside = default.run(lambda: tf.Variable(2.0))
    return [default.extended.variable_created_in_scope(outside), default.extended.variable_created_in_scope(inside)]
