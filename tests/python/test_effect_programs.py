"""Random programs of tf.functions with side effects give what they give in stock."""

from both import both
from effect_programs import CALLS, State, arguments, make


def _program(seed, tells):
    def run(tf, np):
        state = State(tf)
        state.start()
        program = make(tf, seed, state, tells)
        rows = []
        for call in range(CALLS):
            results = program(*[tf.constant(x) for x in arguments(np, call)])
            rows.append([tf.convert_to_tensor(x).numpy() for x in results] + [x.numpy() for x in state.tensors(tf)])
        return rows + [state.heard]
    run.__name__ = "test_program_%d" % seed
    return both(run, eager=True, rtol=1e-4, atol=1e-5)


for number in range(48):
    globals()["test_program_%d" % number] = _program(number, number >= 36)
