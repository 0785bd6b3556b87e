"""tf.random: random tensors, seeds and candidate samplers."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "gamma=random_gamma get_seed multinomial normal=random_normal poisson=random_poisson set_random_seed shuffle=random_shuffle "
    "truncated_normal uniform=random_uniform",
    "ops.random_ops: categorical",
    "ops.generators: Algorithm Generator create_rng_state get_global_generator set_global_generator",
    "ops.stateless_random: fold_in split stateless_binomial=stateless_random_binomial stateless_gamma=stateless_random_gamma "
    "stateless_parameterized_truncated_normal stateless_poisson=stateless_random_poisson",
    "ops.stateless_random: stateless_categorical stateless_multinomial stateless_normal=stateless_random_normal "
    "stateless_truncated_normal stateless_uniform=stateless_random_uniform",
    "nn.nn_sampling: all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler "
    "log_uniform_candidate_sampler uniform_candidate_sampler",
)
