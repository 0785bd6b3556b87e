"""Warm starts of matrices with a row or a column per word, when the vocabulary has changed."""

import os
import tempfile

from both import both


def _words(folder, name, words):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write("\n".join(words) + "\n")
    return path


def _trained(tf, np, folder):
    """Writes a checkpoint with a matrix of rows of words and one of columns of words."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.get_variable("rows", initializer=np.arange(8, dtype=np.float32).reshape(4, 2))
        tf.get_variable("columns", initializer=np.arange(8, dtype=np.float32).reshape(2, 4))
        tf.get_variable("plain", initializer=7.0)
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, os.path.join(folder, "model"))
    return _words(folder, "old", ["apple", "banana", "guava", "orange"])


def _started(tf, variables, folder, **how):
    tf.train.warm_start(folder, **how)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(variables)


@both
def test_rows_and_columns(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        old = _trained(tf, np, folder)
        new = _words(folder, "new", ["orange", "guava", "banana", "apple", "raspberry", "blueberry"])
        rows = tf.get_variable("rows", [8, 2], initializer=tf.zeros_initializer())
        columns = tf.get_variable("columns", [2, 7], initializer=tf.zeros_initializer())
        plain, own = tf.get_variable("plain", initializer=0.0), tf.get_variable("own", initializer=5.0, trainable=False)
        fill = tf.ones_initializer()
        info = {"rows": tf.train.VocabInfo(new, 6, 2, old, backup_initializer=fill), "columns": tf.train.VocabInfo(new, 6, 1, old, axis=1)}
        return _started(tf, [rows, columns, plain, own], folder, vars_to_warm_start=".*", var_name_to_vocab_info=info)


@both
def test_parts_and_a_part_of_the_words(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        old = _trained(tf, np, folder)
        new = _words(folder, "new", ["orange", "guava", "banana", "apple", "raspberry"])
        with tf.variable_scope("", partitioner=tf.fixed_size_partitioner(2)):
            other = tf.get_variable("other", [6, 2], initializer=tf.zeros_initializer())
        info = {"other": tf.train.VocabInfo(new, 5, 1, old, old_vocab_size=3)}
        return _started(tf, list(other), folder, vars_to_warm_start="other", var_name_to_vocab_info=info,
                        var_name_to_prev_var_name={"other": "rows"})


@both
def test_only_those_with_vocabularies(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        old = _trained(tf, np, folder)
        rows = tf.get_variable("rows", [4, 2], initializer=tf.ones_initializer())
        plain = tf.get_variable("plain", initializer=0.0)
        info = {"rows": tf.train.VocabInfo(old, 4, 0, old)}
        return _started(tf, [rows, plain], folder, vars_to_warm_start=None, var_name_to_vocab_info=info)


@both(raises=True)
def test_matrices_of_another_width(tf, np):
    with tempfile.TemporaryDirectory() as folder:
        old = _trained(tf, np, folder)
        columns = tf.get_variable("columns", [2, 9], initializer=tf.zeros_initializer())
        info = {"columns": tf.train.VocabInfo(old, 4, 0, old, axis=1)}
        return _started(tf, [columns], folder, var_name_to_vocab_info=info)
