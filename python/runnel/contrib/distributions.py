"""tf.contrib.distributions: the same as tf.distributions."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, *("%s=distributions.%s" % (name, name) for name in (
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential Gamma Laplace "
        "Multinomial Normal StudentT Uniform kl_divergence RegisterKL NOT_REPARAMETERIZED "
        "FULLY_REPARAMETERIZED ReparameterizationType").split()))
