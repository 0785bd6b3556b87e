"""Tables and templates."""

import os

from both import both


@both
def test_tables(tf, np):
    import tempfile
    keys = tf.constant(["a", "b", "c"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2, 3], tf.int64)), -1)
    vocabulary = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0, 1, 2], tf.int64)), 4)
    sparse = tf.SparseTensor([[0, 0], [1, 2]], ["b", "zz"], [2, 3])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "words.txt")
        with open(path, "w") as stream:
            stream.write("emerson\nlake\npalmer\n")
        words = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), 9)
        with tf.Session() as sess:
            tf.tables_initializer().run()
            exported = [np.sort(part) for part in sess.run(table.export())]
            return exported, sess.run([table.lookup(tf.constant(["c", "x"])), table.size(), table.lookup(sparse), vocabulary.lookup(tf.constant(["a", "q", "c"])), vocabulary.size(),
                             words.lookup(tf.constant(["lake", "none"]))])


@both(raises=True)
def test_table_of_wrong_keys(tf, np):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([1])), -1)
    table.lookup(tf.constant([1]))


@both(raises=True)
def test_table_not_initialised(tf, np):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([1])), -1)
    tf.Session().run(table.lookup(tf.constant(["a"])))


@both
def test_templates(tf, np):
    def scale(x, factor):
        w = tf.get_variable("w", shape=[], initializer=tf.constant_initializer(2.0))
        return x * w * factor

    f = tf.make_template("scale", scale, factor=3.0)
    a, b = f(tf.constant(1.0)), f(tf.constant(5.0), factor=1.0)
    g = tf.make_template("scale", scale, factor=1.0)
    c = g(tf.constant(1.0))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run([a, b, c]), [v.name for v in tf.global_variables()], [v.name for v in f.trainable_variables]
