"""Options of datasets and the rewrites that they ask for, pipelines as graphs, and saved iterators, as in stock's TensorFlow 2."""

from both import both


def _followed_by(tf, dataset, names):
    """Returns the dataset, which fails unless the transformations after it have these names."""
    spec = dataset.element_spec
    variant = tf.raw_ops.AssertNextDataset(input_dataset=tf.data.experimental.to_variant(dataset), transformations=names,
                                           output_types=[spec.dtype], output_shapes=[spec.shape])
    return tf.data.experimental.from_variant(variant, spec)


def _with(tf, dataset, **wishes):
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    for name, value in wishes.items():
        setattr(options.experimental_optimization, name, value)
    return dataset.with_options(options)


def _numbers(dataset):
    return [x.numpy().tolist() for x in dataset]


@both(v2=True)
def test_rewrites(tf, np):
    def ten(*names):
        return _followed_by(tf, tf.data.Dataset.range(10), list(names))
    a = tf.constant(5, tf.int64)
    return [
        _numbers(_with(tf, ten("FiniteTake").skip(0).repeat(1).shard(1, 0).take(-1).map(lambda x: x).take(3), noop_elimination=True)),
        _numbers(_with(tf, ten("Map", "MemoryCacheImpl").map(lambda x: x + 1).map(lambda x: x * 2).map(lambda x: x - 1).cache(), map_fusion=True)),
        _numbers(_with(tf, ten("Map", "Map").map(lambda x: x + a).map(lambda x: x * 2), map_fusion=True)),
        _numbers(_with(tf, ten("Filter", "MemoryCacheImpl").filter(lambda x: x > 2).filter(lambda x: 10 // (x - 2) > 1).cache(), filter_fusion=True)),
        _numbers(_with(tf, ten("Map", "Filter", "Map").map(lambda x: x * x).filter(lambda x: x % 2 == 0), map_and_filter_fusion=True)),
        _numbers(_with(tf, ten("MapAndBatch").map(lambda x: x * x).batch(4), map_and_batch_fusion=True)),
        _numbers(_with(tf, ten("ParallelMap").map(lambda x: x + 1), map_parallelization=True)),
        _numbers(_with(tf, ten("ParallelFilter").filter(lambda x: x > 7), filter_parallelization=True)),
        sorted(_numbers(_with(tf, ten("ShuffleAndRepeat").shuffle(10).repeat(2), shuffle_and_repeat_fusion=True))),
        _numbers(_with(tf, ten("Batch").batch(5), parallel_batch=True)),
        _numbers(_with(tf, ten("Map").map(lambda x: x + 1, synchronous=True), map_parallelization=True)),
    ]


@both(v2=True, raises=True)
def test_a_rewrite_that_was_not_asked_for(tf, np):
    dataset = _followed_by(tf, tf.data.Dataset.range(3), ["ParallelMap"]).map(lambda x: x + 1)
    return _numbers(_with(tf, dataset, map_parallelization=False))


@both(v2=True)
def test_stateful_functions_stay_apart(tf, np):
    variable = tf.Variable(3, dtype=tf.int64)
    dataset = _followed_by(tf, tf.data.Dataset.range(3), ["Map"]).map(lambda x: x + variable)
    return _numbers(_with(tf, dataset, map_parallelization=True))


@both(v2=True)
def test_options_are_messages(tf, np):
    first, second = tf.data.Options(), tf.data.Options()
    first.deterministic, first.threading.private_threadpool_size = False, 3
    second.autotune.enabled, second.experimental_distribute.auto_shard_policy = True, tf.data.experimental.AutoShardPolicy.DATA
    dataset = tf.data.Dataset.zip((tf.data.Dataset.range(2).with_options(first), tf.data.Dataset.range(3).with_options(second))).map(lambda a, b: a + b)
    merged = dataset.options()
    found = [merged.deterministic, merged.threading.private_threadpool_size, merged.autotune.enabled, int(merged.experimental_distribute.auto_shard_policy),
             merged.experimental_slack, len(tf.raw_ops.GetOptions(input_dataset=tf.data.experimental.to_variant(dataset)).numpy())]
    for change in (lambda o: setattr(o, "deterministic", 1), lambda o: setattr(o, "no_such_option", 1)):
        try:
            change(tf.data.Options())
        except (TypeError, AttributeError) as error:
            found.append(str(error))
    try:
        merged.deterministic = True
    except ValueError as error:
        found.append(str(error))
    return found


@both(v2=True)
def test_graphs_of_datasets(tf, np):
    offset = tf.constant(7, tf.int64)
    dataset = tf.data.Dataset.range(6).map(lambda x: tf.cond(x > 2, lambda: x + offset, lambda: x)).filter(lambda x: x != 1)
    dataset = tf.data.Dataset.zip((dataset, dataset.skip(1))).map(lambda a, b: a * b).batch(2)
    variant = tf.data.experimental.to_variant(dataset)
    text = tf.raw_ops.DatasetToGraphV2(input_dataset=variant)
    graph = tf.compat.v1.GraphDef.FromString(text.numpy())
    again = tf.data.experimental.from_variant(tf.raw_ops.DatasetFromGraph(graph_def=text), dataset.element_spec)
    return [_numbers(again), sorted({node.op for node in graph.node}), [node.op for node in graph.node][-1]]


def test_many_ways_to_one_dataset():
    """2^40 ways lead to the first dataset, and we look at it once. Stock goes all of them."""
    import runnel.v2 as tf
    variant = tf.data.experimental.to_variant(tf.data.Dataset.range(1))
    for _ in range(40):
        variant = tf.raw_ops.ConcatenateDataset(input_dataset=variant, another_dataset=variant, output_types=[tf.int64], output_shapes=[[]])
    text = tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=2).numpy()
    assert text.count(b"ConcatenateDataset/_") == 40 + 2 * 39 + 1  # nodes, their inputs, the result
    assert int(tf.raw_ops.DatasetCardinality(input_dataset=variant)) == 1 << 40
    assert tf.raw_ops.GetOptions(input_dataset=variant).numpy() == b""
    assert tf.raw_ops.DatasetFingerprint(input_dataset=variant).shape == []
    tf.raw_ops.GlobalShuffleDataset(input_dataset=variant, seed=1, seed2=2, seed_generator=tf.raw_ops.DummySeedGenerator(),
                                    output_types=[tf.int64], output_shapes=[[]])
    variant = tf.data.experimental.to_variant(tf.data.TextLineDataset(["mine.txt", "theirs.txt"]))
    for _ in range(40):
        variant = tf.raw_ops.ConcatenateDataset(input_dataset=variant, another_dataset=variant, output_types=[tf.string], output_shapes=[[]])
    shard = tf.raw_ops.AutoShardDataset(input_dataset=variant, num_workers=2, index=0, auto_shard_policy=1, output_types=[tf.string],
                                        output_shapes=[[]])
    assert shard.shape == []


def test_many_ways_to_one_function():
    """2^40 ways lead through calls to the first function, and the search for state looks at it once."""
    import runnel.v2 as tf
    call = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec([], tf.int64)])
    for _ in range(40):
        call = tf.function(lambda x, call=call: call(x) * call(x), input_signature=[tf.TensorSpec([], tf.int64)])
    dataset = tf.data.Dataset.range(1).map(call)
    text = tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor, external_state_policy=2).numpy()
    assert b"MapDataset/_" in text


@both(v2=True, raises=True)
def test_graph_of_a_dataset_with_state(tf, np):
    dataset = tf.data.Dataset.range(3).map(lambda x: x + tf.random.uniform([], 0, 2, tf.int64))
    tf.raw_ops.DatasetToGraphV2(input_dataset=tf.data.experimental.to_variant(dataset), external_state_policy=2)


@both(v2=True, raises=True)
def test_dataset_of_a_graph_without_result(tf, np):
    tf.raw_ops.DatasetFromGraph(graph_def=tf.compat.v1.GraphDef().SerializeToString())


@both(v2=True)
def test_saved_groups(tf, np):
    def made():
        dataset = tf.data.Dataset.range(20).group_by_window(lambda x: x % 3, lambda key, rows: rows.map(lambda x: x * 100 + key), window_size=4)
        return iter(dataset)
    found = []
    for stop in (0, 3, 7, 15, 20):
        iterator, other = made(), made()
        before = [int(next(iterator)) for _ in range(stop)]
        saved = tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource)
        tf.raw_ops.DeserializeIterator(resource_handle=other._iterator_resource, serialized=saved)
        found.append(before + [int(x) for x in other])
    return found


@both(v2=True)
def test_saved_seeds(tf, np):
    dataset = tf.data.Dataset.random(seed=4, rerandomize_each_iteration=True).take(2).repeat(3)
    iterator, found = iter(dataset), []
    saved = tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource)
    found.append([int(next(iterator)) for _ in range(6)])
    tf.raw_ops.DeserializeIterator(resource_handle=iterator._iterator_resource, serialized=saved)
    found.append([int(next(iterator)) for _ in range(6)])
    return found


@both(v2=True)
def test_cardinalities(tf, np):
    endless, three = tf.data.Dataset.range(2).repeat(), tf.data.Dataset.range(3)
    return [int(x.cardinality()) for x in (
        endless.flat_map(lambda _: tf.data.Dataset.range(2)), endless.interleave(lambda _: tf.data.Dataset.range(2), cycle_length=2),
        endless.group_by_window(lambda x: x, lambda _, rows: rows, window_size=2),
        tf.data.Dataset.sample_from_datasets([endless, endless]), tf.data.Dataset.sample_from_datasets([endless, three]),
        tf.data.Dataset.sample_from_datasets([endless, three], stop_on_empty_dataset=True),
        three.apply(tf.data.experimental.assert_cardinality(3)))]


@both(v2=True)
def test_choices(tf, np):
    sets = [tf.data.Dataset.range(i * 10, i * 10 + 5) for i in range(3)]
    weights = tf.data.Dataset.from_tensors([0.2, 0.5, 0.3]).repeat()
    found = [_numbers(tf.data.Dataset.sample_from_datasets(sets, weights=[0.5, 0.0, 0.5], seed=3)),
             _numbers(tf.data.Dataset.sample_from_datasets(sets, weights=weights, seed=3)),
             _numbers(tf.data.Dataset.sample_from_datasets(sets, seed=3, stop_on_empty_dataset=True)),
             _numbers(tf.data.Dataset.choose_from_datasets(sets, tf.data.Dataset.from_tensor_slices(np.int64([0, 2, 2, 1]))))]
    for call in (lambda: tf.data.Dataset.sample_from_datasets(sets, weights=[1.0]), lambda: tf.data.Dataset.sample_from_datasets([]),
                 lambda: tf.data.Dataset.sample_from_datasets(sets, weights=[1, 2, 3]), lambda: tf.data.Dataset.choose_from_datasets(sets, None),
                 lambda: tf.data.Dataset.choose_from_datasets(sets, tf.data.Dataset.from_tensors("x"))):
        try:
            call()
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return found


@both(v2=True)
def test_datasets_of_datasets(tf, np):
    three = [tf.data.Dataset.range(i) for i in (1, 3, 2)]
    nested = tf.data.Dataset.range(4).map(lambda i: tf.data.Dataset.from_tensors(i)).batch(2).map(lambda x: x)
    return [_numbers(tf.data.Dataset.from_tensor_slices(three).flat_map(lambda x: x)), repr(tf.data.Dataset.from_tensor_slices(three).element_spec),
            _numbers(nested.unbatch().flat_map(lambda x: x))]


@both(v2=True)
def test_sparse_values_and_ragged_batches(tf, np):
    def sparse(i):
        return tf.compat.v1.SparseTensorValue(indices=[[0, 0]], values=(i * [1]), dense_shape=[1, 1])
    batches = [tf.sparse.to_dense(x).numpy().tolist() for x in tf.data.Dataset.range(4).map(sparse).batch(2)]
    ragged = tf.data.Dataset.range(1, 4).map(lambda i: tf.fill([i, 2, i], i)).ragged_batch(2)
    return [batches, [x.to_list() for x in ragged], repr(ragged.element_spec)]


@both(v2=True)
def test_rebatches(tf, np):
    dataset = tf.data.Dataset.range(12).batch(4)
    found = [[repr(x.element_spec), _numbers(x)] for x in (
        dataset.rebatch(2), dataset.rebatch([1, 3]), dataset.rebatch(5), dataset.rebatch(5, drop_remainder=True),
        tf.data.Dataset.range(12).batch(4, drop_remainder=True).rebatch(2), tf.data.Dataset.range(12).batch(4, drop_remainder=True).rebatch(3))]
    for call in (lambda: tf.data.Dataset.range(3).batch(2).rebatch([[1]]), lambda: tf.data.Dataset.range(3).rebatch(2)):
        try:
            call()
        except ValueError as error:
            found.append(str(error))
    return found


@both(v2=True)
def test_elements_that_are_no_arrays(tf, np):
    found = []
    for call in (lambda: tf.data.Dataset.range(4).window(2).as_numpy_iterator(), lambda: tf.data.Dataset.from_tensors(1.5).unique(),
                 lambda: tf.data.TFRecordDataset([1]), lambda: tf.data.TextLineDataset(tf.data.Dataset.range(2))):
        try:
            call()
        except TypeError as error:
            found.append(str(error).replace("runnel.data.dataset.", "").replace("tensorflow.python.data.ops.dataset_ops.", "").replace("DatasetV2", "Dataset"))
    return found


@both(v2=True)
def test_fused_transformations(tf, np):
    dataset = tf.data.Dataset.range(10)
    return [_numbers(dataset.apply(tf.data.experimental.map_and_batch(lambda x: x * x, 4))),
            _numbers(dataset.apply(tf.data.experimental.map_and_batch(lambda x: x * x, 4, drop_remainder=True, num_parallel_calls=2))),
            _numbers(dataset.apply(tf.data.experimental.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 3, 2))),
            _numbers(dataset.apply(tf.data.experimental.shuffle_and_repeat(5, 2, seed=7)))]


@both(v2=True)
def test_paths_of_files(tf, np):
    import pathlib
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "lines"
        path.write_text("one\ntwo\n")
        return [[x.numpy() for x in tf.data.TextLineDataset(names)] for names in (path, [path, str(path)])]
