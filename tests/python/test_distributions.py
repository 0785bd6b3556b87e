"""Distributions: densities, moments, divergences, and samples with the same seeds as stock."""

from both import both


@both
def test_densities(tf, np):
    d = tf.distributions
    x = tf.constant([0.2, 0.7])
    rows = []
    for dist in (d.Normal([0.0, 1.0], 2.0), d.Uniform(0.0, [1.0, 3.0]), d.Exponential([1.0, 2.0]), d.Laplace(0.0, [1.0, 2.0])):
        rows.append([dist.log_prob(x), dist.prob(x), dist.entropy(), dist.mean(), dist.variance(), dist.stddev()])
    rows.append([d.Normal(0.0, 1.0).cdf(x), d.Uniform(0.0, 2.0).cdf(x), d.Exponential(2.0).cdf(x), d.Normal(1.0, 2.0).quantile(x)])
    bernoulli = d.Bernoulli(logits=[0.5, -1.0])
    rows.append([bernoulli.log_prob([1, 0]), bernoulli.prob([0, 0]), bernoulli.entropy(), bernoulli.mean(), bernoulli.variance(), bernoulli.mode(), d.Bernoulli(probs=0.3).logits])
    categorical = d.Categorical(logits=[[0.1, 2.0, -1.0], [0.0, 0.0, 0.0]])
    rows.append([categorical.log_prob([1, 2]), categorical.prob([0, 0]), categorical.entropy(), categorical.mode(), d.Categorical(probs=[0.2, 0.8]).log_prob(1)])
    rows.append([d.kl_divergence(d.Normal(0.0, 1.0), d.Normal(1.0, 2.0)), d.kl_divergence(bernoulli, d.Bernoulli(logits=[0.0, 0.0])),
                 d.kl_divergence(categorical, d.Categorical(logits=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))])
    with tf.Session() as sess:
        return sess.run(rows)


@both
def test_samples(tf, np):
    d = tf.distributions
    rows = [d.Normal([0.0, 10.0], 2.0).sample(3, seed=1), d.Uniform(0.0, 5.0).sample([2, 2], seed=2), d.Bernoulli(probs=[0.3, 0.6]).sample(4, seed=3),
            d.Categorical(logits=[[0.1, 2.0, -1.0], [0.0, 0.0, 0.0]]).sample(5, seed=4), d.Exponential(2.0).sample([3], seed=5), d.Laplace(0.0, 1.0).sample([3], seed=6), d.Normal(0.0, 1.0).sample(seed=7)]
    with tf.Session() as sess:
        return sess.run(rows)


@both
def test_gradients(tf, np):
    mu = tf.constant(0.5)
    y = tf.reduce_mean(tf.square(tf.distributions.Normal(mu, 1.0).sample(10, seed=1)))
    with tf.Session() as sess:
        return sess.run(tf.gradients(y, mu))


@both(raises=True)
def test_no_divergence(tf, np):
    tf.distributions.kl_divergence(tf.distributions.Normal(0.0, 1.0), tf.distributions.Uniform())


@both(rtol=1e-4)
def test_more_densities(tf, np):
    d = tf.distributions
    x = tf.constant([0.2, 0.7])
    rows = []
    for dist in (d.Gamma([2.0, 3.0], 1.5), d.Beta([2.0, 0.5], 3.0), d.StudentT([3.0, 1.5], 0.5, 2.0), d.Gamma(0.5, 2.0), d.Laplace(0.5, [1.0, 2.0])):
        rows.append([dist.log_prob(x), dist.prob(x), dist.entropy(), dist.mean(), dist.variance(), dist.stddev(), dist.mode(), dist.cdf(x)])
    rows.append([d.kl_divergence(d.Gamma(2.0, 3.0), d.Gamma(1.0, 0.5)), d.kl_divergence(d.Beta(2.0, 3.0), d.Beta(1.0, 0.5))])
    with tf.Session() as sess:
        return sess.run(rows) + [d.Beta([1.0], [[2.0], [3.0]]).batch_shape.as_list(), str(d.Gamma(1.0, 2.0).concentration.shape)]


@both
def test_more_samples(tf, np):
    d = tf.distributions
    with tf.Session() as sess:
        gamma = sess.run(d.Gamma([2.0, 5.0], 2.0).sample(4, seed=3))
        beta, student = sess.run([d.Beta(2.0, 6.0).sample(4000, seed=1), d.StudentT(8.0, 3.0, 1.0).sample(4000, seed=2)])
        return [gamma, beta.shape, bool(abs(beta.mean() - 0.25) < 0.02), bool(abs(student.mean() - 3) < 0.1), bool(beta.min() > 0 and beta.max() < 1)]
