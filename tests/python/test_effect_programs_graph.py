"""The same programs, called in a graph that a session runs."""

from both import both
from effect_programs import CALLS, State, arguments, make


def _program(seed):
    def run(tf, np):
        state = State(tf)
        program = make(tf, seed, state)
        x, given = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [4])
        results, start, tensors = program(x, given), state.start(), state.tensors(tf)
        rows = []
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), start])
            for call in range(CALLS):
                rows.append(sess.run(results, dict(zip((x, given), arguments(np, call)))) + sess.run(tensors))
        return rows
    run.__name__ = "test_program_%d" % seed
    return both(run, rtol=1e-4, atol=1e-5)


for number in range(100, 112):
    globals()["test_program_%d" % number] = _program(number)
