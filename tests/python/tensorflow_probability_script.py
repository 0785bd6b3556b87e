"""Programs of the package tensorflow_probability, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfb, tfd = tfp.bijectors, tfp.distributions
SEED = (1, 2)
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def line():
    """Returns points near a line."""
    draw = np.random.RandomState(0)
    x = np.linspace(-1, 1, 20).astype("float32")
    return x, (2 * x - 0.5 + 0.1 * draw.randn(20)).astype("float32")


def regression(x):
    """A line with unknown slope, intercept and noise."""
    def model():
        slope = yield tfd.Normal(0.0, 1.0, name="slope")
        intercept = yield tfd.Normal(0.0, 1.0, name="intercept")
        scale = yield tfd.HalfNormal(1.0, name="scale")
        yield tfd.Normal(slope[..., tf.newaxis] * x + intercept[..., tf.newaxis], scale[..., tf.newaxis], name="y")
    return tfd.JointDistributionCoroutineAutoBatched(model)


@program
def distributions():
    mixture = tfd.MixtureSameFamily(tfd.Categorical(probs=[0.3, 0.7]), tfd.Normal([-1.0, 1.0], [0.1, 0.5]))
    normal = tfd.MultivariateNormalTriL([1.0, -1.0], [[1.0, 0.0], [0.5, 2.0]])
    return [*mixture.log_prob([-1.0, 0.0, 1.0]), *normal.sample(seed=SEED), normal.log_prob([0.0, 0.0]), normal.entropy(),
            tfd.kl_divergence(tfd.Gamma(2.0, 3.0), tfd.Gamma(1.0, 1.5)), *tfd.Dirichlet([1.0, 2.0, 3.0]).mean()]


@program
def bijectors():
    chain = tfb.Chain([tfb.Softplus(), tfb.Scale(2.0), tfb.Shift(1.0)])
    tri = tfb.FillScaleTriL()
    made = tri.forward([0.5, -1.0, 2.0])
    return [*chain.forward([0.0, 1.0]), *chain.inverse([1.0, 2.0]), *chain.forward_log_det_jacobian([0.0, 1.0], 0),
            *tf.reshape(made, [-1]), *tri.inverse(made)]


@program
def joint():
    chained = tfd.JointDistributionSequential([tfd.Normal(0.0, 1.0), lambda z: tfd.Normal(z, 1.0)])
    named = tfd.JointDistributionNamed({"a": tfd.Normal(0.0, 1.0), "b": lambda a: tfd.Normal(a, 1.0)})
    x, _ = line()
    model = regression(x[:3])
    drawn = model.sample(2, seed=SEED)
    both = named.sample(2, seed=SEED)
    return [chained.log_prob([0.5, 1.0]), *both["a"], *both["b"], *drawn.slope, *tf.reshape(drawn.y, [-1]), *model.log_prob(drawn)]


@program
def hamiltonian():
    """Draws from the posterior of a regression."""
    x, y = line()
    posterior = regression(x).experimental_pin(y=y)
    kernel = tfp.mcmc.SimpleStepSizeAdaptation(
        tfp.mcmc.TransformedTransitionKernel(
            tfp.mcmc.HamiltonianMonteCarlo(posterior.unnormalized_log_prob, step_size=0.05, num_leapfrog_steps=3),
            [tfb.Identity(), tfb.Identity(), tfb.Exp()]), num_adaptation_steps=20)

    @tf.function(autograph=False)
    def run():
        return tfp.mcmc.sample_chain(10, [0.0, 0.0, 1.0], kernel=kernel, num_burnin_steps=5, trace_fn=None, seed=SEED)
    return [value for part in run() for value in part.numpy()]


@program
def no_u_turn():
    kernel = tfp.mcmc.NoUTurnSampler(tfd.Normal([0.0, 1.0], [1.0, 2.0]).log_prob, step_size=0.3, max_tree_depth=4)

    @tf.function(autograph=False)
    def run():
        return tfp.mcmc.sample_chain(5, tf.zeros([2]), kernel=kernel, trace_fn=None, seed=SEED)
    return run().numpy().ravel()


@program
def surrogate():
    """Fits a normal distribution to a posterior."""
    x, y = line()
    posterior = regression(x).experimental_pin(y=y)
    surrogate = tfp.experimental.vi.build_factored_surrogate_posterior_stateless
    init, build = surrogate(event_shape=posterior.event_shape, bijector=posterior.experimental_default_event_space_bijector())
    values = [tf.Variable(v) for v in tf.nest.flatten(init(seed=SEED))]
    structure = init(seed=SEED)

    def loss():
        drawn = build(*tf.nest.pack_sequence_as(structure, [tf.convert_to_tensor(v) for v in values]))
        samples, log = drawn.experimental_sample_and_log_prob(4, seed=SEED)
        return tf.reduce_mean(log - posterior.unnormalized_log_prob(samples))
    found = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            value = loss()
        for v, g in zip(values, tape.gradient(value, values)):
            v.assign_sub(0.01 * g)
        found.append(value)
    return found


@program
def minimizers():
    def rosenbrock(x):
        return tf.reduce_sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def with_gradient(x):
        return tfp.math.value_and_gradient(rosenbrock, x)
    start = tf.constant([-1.0, 1.5], tf.float64)
    found = tfp.optimizer.lbfgs_minimize(with_gradient, start, tolerance=1e-8)
    simplex = tfp.optimizer.nelder_mead_minimize(rosenbrock, initial_vertex=start, func_tolerance=1e-8)
    return [*found.position, *tfp.optimizer.bfgs_minimize(with_gradient, start).position, *simplex.position]


@program
def integration():
    solver = tfp.math.ode.BDF()
    found = solver.solve(lambda t, y: -0.5 * y, 0.0, tf.constant([1.0, 2.0], tf.float64), solution_times=[1.0, 2.0])
    return [*tf.reshape(found.states, [-1]), *tfp.math.lbeta([1.0, 2.0], [3.0, 4.0]), *tfp.stats.percentile([1.0, 4.0, 2.0, 8.0], [25.0, 50.0])]


@program
def series():
    x = np.sin(np.arange(24) / 3).astype("float32")
    trend = tfp.sts.LocalLinearTrend(observed_time_series=x)
    model = tfp.sts.Sum([trend, tfp.sts.Seasonal(num_seasons=6, observed_time_series=x)], observed_time_series=x)
    values = [tf.constant(0.1 + 0.05 * i) for i in range(len(model.parameters))]
    return [model.make_state_space_model(24, values).log_prob(x[:, None]),
            *tfp.sts.forecast(model, x, [v[None] for v in values], 3).mean()[:, 0]]


if __name__ == "__main__":
    for name, function in PROGRAMS.items():
        print(name, *[float(x) for x in function()])
