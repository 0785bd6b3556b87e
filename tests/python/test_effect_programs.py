"""Random tf.functions with side effects have the same results as in stock, and as when they run op by
op."""

import numpy as np
from both import both, compare, eager_mode
from effect_programs import CALLS, State, arguments, make


def _rows(tf, seed, tells):
    state = State(tf)
    state.start()
    program = make(tf, seed, state, tells)
    rows = []
    for call in range(CALLS):
        results = program(*[tf.constant(x) for x in arguments(np, call)])
        rows.append([tf.convert_to_tensor(x).numpy() for x in results] + [x.numpy() for x in state.tensors(tf)])
    return rows + [state.heard]


def _program(seed, tells):
    def run(tf, np):
        return _rows(tf, seed, tells)
    run.__name__ = "test_program_%d" % seed
    return both(run, eager=True, rtol=1e-4, atol=1e-5)


for number in range(30):
    globals()["test_program_%d" % number] = _program(number, number >= 24)


def test_as_without_functions():
    import runnel as tf
    with eager_mode(tf):
        for seed in range(200, 260):
            try:
                tf.config.run_functions_eagerly(True)
                wanted = _rows(tf, seed, seed >= 250)
            finally:
                tf.config.run_functions_eagerly(False)
            compare(_rows(tf, seed, seed >= 250), wanted, "program %d" % seed, 1e-4, 1e-5)
