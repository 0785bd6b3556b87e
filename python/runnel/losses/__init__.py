"""tf.losses: losses of a batch, which are also added to the graph's collection of losses."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "losses.losses_impl: Reduction absolute_difference add_loss compute_weighted_loss cosine_distance get_losses get_regularization_loss "
    "get_regularization_losses get_total_loss hinge_loss huber_loss log_loss mean_pairwise_squared_error mean_squared_error "
    "sigmoid_cross_entropy softmax_cross_entropy sparse_softmax_cross_entropy",
)
