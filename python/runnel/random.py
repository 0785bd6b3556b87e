"""tf.random."""

from runnel._namespace import namespace

__getattr__, __dir__ = namespace(
    __name__,
    "get_seed multinomial set_random_seed truncated_normal",
    "categorical=random_ops.categorical gamma=random_gamma normal=random_normal poisson=random_poisson shuffle=random_shuffle "
    "uniform=random_uniform all_candidate_sampler=nn.all_candidate_sampler fixed_unigram_candidate_sampler=nn.fixed_unigram_candidate_sampler "
    "learned_unigram_candidate_sampler=nn.learned_unigram_candidate_sampler log_uniform_candidate_sampler=nn.log_uniform_candidate_sampler "
    "uniform_candidate_sampler=nn.uniform_candidate_sampler stateless_uniform=stateless_random.stateless_random_uniform "
    "stateless_normal=stateless_random.stateless_random_normal stateless_truncated_normal=stateless_random.stateless_truncated_normal "
    "stateless_multinomial=stateless_random.stateless_multinomial stateless_categorical=stateless_random.stateless_categorical",
)
