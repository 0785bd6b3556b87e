"""Functions of tf.test with the parameters of 2.x."""

from runnel.core.convert import convert_to_tensor
from runnel.eager.backprop import GradientTape


def compute_gradient(f, x, delta=None):
    """Returns (the Jacobians of `f` by a tape, those by differences), a list each with one matrix for each argument in `x`."""
    import numpy as np
    xs = [convert_to_tensor(value) for value in x]
    delta = 1.0 / 1024 if delta is None else delta

    def flat(values):
        return np.asarray(f(*[convert_to_tensor(v) for v in values])).reshape(-1)
    by_tape, by_differences = [], []
    for i, source in enumerate(xs):
        with GradientTape(persistent=True) as tape:
            tape.watch(source)
            y = convert_to_tensor(f(*xs))
        size = int(np.prod(source.shape.as_list()))
        jacobian = tape.jacobian(y, source, unconnected_gradients="zero")
        by_tape.append(np.asarray(jacobian).reshape(-1, size))
        columns = []
        for k in range(size):
            ends = []
            for sign in (1, -1):
                values = [v.numpy() for v in xs]
                values[i] = values[i].astype(values[i].dtype).copy()
                values[i].reshape(-1)[k] += sign * delta
                ends.append(flat(values))
            columns.append((ends[0] - ends[1]) / (2 * delta))
        by_differences.append(np.stack(columns, 1).astype(by_tape[-1].dtype))
    return tuple(by_tape), tuple(by_differences)
