"""tf.distribute over two logical CPUs, as in stock: optimizers of 1.x, gathered values, changes in parts, models; strategies of programs."""

import os

from both import both
from test_v2_distribute import devices, outcome


def mirrored(tf):
    """Without collectives, whose numbers several strategies of one process of stock confuse."""
    return tf.distribute.MirroredStrategy(devices(tf), cross_device_ops=tf.distribute.ReductionToOneDevice())


@both(v2=True)
def test_optimizers_of_1x(tf, np):
    """Gradients are summed over the replicas before an optimizer of 1.x applies them, eagerly and in a function."""
    strategy, train = mirrored(tf), tf.compat.v1.train
    x = strategy.experimental_distribute_values_from_function(lambda context: tf.constant(context.replica_id_in_sync_group + 1.0))

    def trained(make):
        with strategy.scope():
            v, optimizer = tf.Variable([1.0, 2.0]), make()
            step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)

        def replica(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * v) * x
            optimizer.apply_gradients([(tape.gradient(loss, v), v)], global_step=step)
        for _ in range(3):
            strategy.run(replica, args=(x,))
        tf.function(lambda: strategy.run(replica, args=(x,)))()
        return [copy.numpy() for copy in v.values], step.numpy()
    return [trained(lambda: train.AdamOptimizer(0.1)), trained(lambda: train.GradientDescentOptimizer(0.1)),
            trained(lambda: train.MomentumOptimizer(0.1, 0.9))]


@both(v2=True)
def test_gathered_and_reduced(tf, np):
    """Values of replicas together: rows of different numbers, gradients of all_gather, reductions over an axis, sparse gradients."""
    strategy = mirrored(tf)
    rows = strategy.experimental_distribute_values_from_function(lambda c: tf.ones([c.replica_id_in_sync_group + 1, 2]) * (c.replica_id_in_sync_group + 1.0))
    found = [strategy.gather(rows, 0), strategy.reduce("SUM", rows, axis=0), strategy.reduce("MEAN", rows, axis=0)]

    def replica(x):
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(context.all_gather(x, 0) * [1.0, 2.0]) * (tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0)
        slices = context.all_reduce("SUM", tf.IndexedSlices(x[:1], tf.constant([1]), tf.constant([4, 2])))
        return y, tape.gradient(y, x), tf.convert_to_tensor(slices)
    found += [strategy.experimental_local_results(part) for part in strategy.run(replica, args=(rows,))]
    default = tf.distribute.get_strategy()
    found.append(default.run(lambda x: tf.distribute.get_replica_context().all_gather(x, 0), args=(tf.constant([1.0, 2.0]),)))
    return found


@both(v2=True)
def test_changed_in_parts(tf, np):
    """Rows of variables are scattered in all copies; copies are deep; a scope refuses another strategy's."""
    strategy = mirrored(tf)
    with strategy.scope():
        v = tf.Variable([0.0, 0.0, 0.0])
        w = tf.Variable(2.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
    v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 2])))
    w.assign(10.0)
    import copy
    other = copy.deepcopy(v)
    other.assign_add([1.0, 1.0, 1.0])
    with strategy.scope():
        refused = outcome(lambda: mirrored(tf).run(lambda: tf.constant(1.0)))
        sums = outcome(lambda: w.assign_add(1.0))
    parts = strategy.experimental_distribute_dataset(tf.data.Dataset.range(5).batch(4))
    batches = [[x.numpy() for x in strategy.experimental_local_results(batch)] for batch in parts]
    return [x.numpy() for x in v.values], [x.numpy() for x in other.values], [x.numpy() for x in w.values], w.read_value(), refused, sums, batches


def test_own_strategies():
    """A strategy of a program overrides the methods with an underscore."""
    import runnel.v2 as tf

    class Twice(tf.distribute.StrategyExtended):
        def _create_variable(self, next_creator, **kwargs):
            made.append(kwargs["name"])
            return next_creator(**kwargs)

        def _call_for_each_replica(self, fn, args, kwargs):
            with tf.distribute.ReplicaContext(self._container_strategy(), 0):
                return fn(*args, **kwargs), fn(*args, **kwargs)

        def _reduce_to(self, reduce_op, value, destinations, options):
            return sum(value)

    class Strategy(tf.distribute.Strategy):
        def __init__(self):
            super().__init__(Twice(self))
    made, strategy = [], Strategy()
    with strategy.scope():
        v = tf.Variable(3.0, name="mine")
    results = strategy.run(lambda: v.read_value())
    assert made == ["mine"] and [float(x) for x in results] == [3.0, 3.0]
    assert float(strategy.extended.reduce_to("sum", results, None)) == 6.0


def meta_graph(tf, folder):
    """The MetaGraphDef of a model."""
    path = os.path.join(folder, "saved_model.pb")
    if tf.__name__.startswith("runnel"):
        from runnel.core.protobuf import message_class
        kind = message_class("SavedModel")
    else:
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel as kind
    with open(path, "rb") as file:
        return kind.FromString(file.read()).meta_graphs[0]


@both(v2=True)
def test_variable_policies(tf, np):
    """What a model says of its variables, those of strategies too, by policy; names of arguments; attributes with defaults."""
    import tempfile
    strategy = mirrored(tf)
    root = tf.Module()
    with tf.device("CPU:1"):
        root.alone = tf.Variable(1.0, name="alone")
    with strategy.scope():
        root.both = tf.Variable([1.0, 1.0], name="both")

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="A/b")])
    def double(x):
        root.both.assign_add([x, x])
        return tf.complex(x, x)
    root.double = double
    found = []
    for policy in (None, "save_variable_devices", "expand_distributed_variables"):
        folder = tempfile.mkdtemp()
        tf.saved_model.save(root, folder, options=tf.saved_model.SaveOptions(experimental_variable_policy=policy))
        meta = meta_graph(tf, folder)
        variables = [node.variable for node in meta.object_graph_def.nodes if node.HasField("variable")]
        found.append(sorted((v.name, v.device, [(c.name, c.device) for c in v.experimental_distributed_variable_components]) for v in variables))
        found.append(sorted((node.name, node.device) for node in meta.graph_def.node if node.name in ("alone", "both")))
        functions = [f for f in meta.graph_def.library.function if "inference_double" in f.signature.name]
        found.append([len(f.signature.input_arg) for f in functions])
        found.append(sorted({name for f in functions for node in f.node_def if node.op == "Complex" for name in node.attr if not name.startswith("_")}))
        loaded = tf.saved_model.load(folder)
        loaded.double(tf.constant(1.0))
        found.append((loaded.both.numpy(), [x.name for x in loaded.signatures["serving_default"].inputs if x.dtype == tf.float32]))
    return found
