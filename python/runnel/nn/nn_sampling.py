"""Candidate samplers, and losses over sampled classes (tf.nn)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.nn import nn_ops
from runnel.nn.embedding_ops import _as_list, embedding_lookup
from runnel.ops import array_ops, math_ops


def _sample(op, true_classes, num_true, num_sampled, unique, seed, name, **attrs):
    from runnel.ops import random_ops
    seed1, seed2 = random_ops.get_seed(seed)
    return op(true_classes=true_classes, num_true=num_true, num_sampled=num_sampled, unique=unique,
              seed=seed1 or 0, seed2=seed2 or 0, name=name, **attrs)


def uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None,
                              name=None):
    """Samples classes uniformly. Returns (sampled classes, expected counts of the true ones, of the sampled ones)."""
    return _sample(raw_ops.UniformCandidateSampler, true_classes, num_true, num_sampled, unique, seed,
                   name, range_max=range_max)


def log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed=None,
                                  name=None):
    """Like uniform_candidate_sampler, with class k in proportion to log(k + 2) - log(k + 1)."""
    return _sample(raw_ops.LogUniformCandidateSampler, true_classes, num_true, num_sampled, unique,
                   seed, name, range_max=range_max)


def learned_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                      seed=None, name=None):
    """Like uniform_candidate_sampler, with classes in proportion to their counts among the true ones so far."""
    return _sample(raw_ops.LearnedUnigramCandidateSampler, true_classes, num_true, num_sampled, unique,
                   seed, name, range_max=range_max)


def fixed_unigram_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max,
                                    vocab_file="", distortion=1.0, num_reserved_ids=0, num_shards=1,
                                    shard=0, unigrams=(), seed=None, name=None):
    """Like uniform_candidate_sampler, with the probabilities of a file or a list."""
    return _sample(raw_ops.FixedUnigramCandidateSampler, true_classes, num_true, num_sampled, unique,
                   seed, name, range_max=range_max, vocab_file=vocab_file, distortion=distortion,
                   num_reserved_ids=num_reserved_ids, num_shards=num_shards, shard=shard,
                   unigrams=list(unigrams))


def all_candidate_sampler(true_classes, num_true, num_sampled, unique, seed=None, name=None):
    """Like uniform_candidate_sampler, with all classes."""
    return _sample(raw_ops.AllCandidateSampler, true_classes, num_true, num_sampled, unique, seed,
                   name)


def compute_accidental_hits(true_classes, sampled_candidates, num_true, seed=None, name=None):
    """Returns (rows, positions, weights of minus a huge number) of samples that are true classes."""
    from runnel.ops import random_ops
    seed1, seed2 = random_ops.get_seed(seed)
    return raw_ops.ComputeAccidentalHits(
        true_classes=true_classes, sampled_candidates=sampled_candidates, num_true=num_true,
        seed=seed1 or 0, seed2=seed2 or 0, name=name)


def _sum_rows(x):
    """Sums rows by a matrix product, which has a fast gradient."""
    ones = array_ops.ones(array_ops.stack([array_ops.shape(x)[1], 1]), x.dtype)
    return array_ops.reshape(math_ops.matmul(x, ones), [-1])


def _compute_sampled_logits(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
                            sampled_values=None, subtract_log_q=True, remove_accidental_hits=False,
                            partition_strategy="mod", name=None, seed=None):
    """Returns (logits, labels): the true classes first, then the sampled ones."""
    weights = _as_list(weights)
    with name_scope(name, "compute_sampled_logits", weights + [biases, inputs, labels]):
        labels = convert_to_tensor(labels)
        if labels.dtype != dtypes.int64:
            labels = math_ops.cast(labels, dtypes.int64)
        flat = array_ops.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True,
                                                           num_classes, seed=seed)
        sampled, true_expected, sampled_expected = (
            raw_ops.StopGradient(input=x) for x in sampled_values)
        sampled = math_ops.cast(sampled, dtypes.int64)
        ids = array_ops.concat([flat, sampled], 0)
        all_w = embedding_lookup(weights, ids, partition_strategy=partition_strategy)
        if all_w.dtype != inputs.dtype:
            all_w = math_ops.cast(all_w, inputs.dtype)
        count = array_ops.shape(flat)[0]
        start = array_ops.stack([count, 0])
        true_w = array_ops.slice(all_w, [0, 0], array_ops.stack([count, -1]))
        sampled_w = array_ops.slice(all_w, start, [-1, -1])
        sampled_logits = math_ops.matmul(inputs, sampled_w, transpose_b=True)
        all_b = embedding_lookup(biases, ids, partition_strategy=partition_strategy)
        if all_b.dtype != inputs.dtype:
            all_b = math_ops.cast(all_b, inputs.dtype)
        true_b = array_ops.slice(all_b, [0], array_ops.expand_dims(count, 0))
        sampled_b = array_ops.slice(all_b, array_ops.expand_dims(count, 0), [-1])
        dim = array_ops.shape(true_w)[1:2]
        by_row = array_ops.concat([[-1, num_true], dim], 0)
        products = math_ops.multiply(array_ops.expand_dims(inputs, 1),
                                     array_ops.reshape(true_w, by_row))
        flat_products = array_ops.reshape(products, array_ops.concat([[-1], dim], 0))
        true_logits = array_ops.reshape(_sum_rows(flat_products), [-1, num_true])
        true_logits += array_ops.reshape(true_b, [-1, num_true])
        sampled_logits += sampled_b
        if remove_accidental_hits:
            sampled_logits = _without_hits(labels, sampled, sampled_logits, num_true, num_sampled)
        if subtract_log_q:
            true_logits -= raw_ops.Log(true_expected)
            sampled_logits -= raw_ops.Log(sampled_expected)
        logits = array_ops.concat([true_logits, sampled_logits], 1)
        targets = array_ops.concat([array_ops.ones_like(true_logits) / num_true,
                                    array_ops.zeros_like(sampled_logits)], 1)
        return logits, targets


def _without_hits(labels, sampled, logits, num_true, num_sampled):
    """Gives samples that are true classes the lowest possible logits."""
    rows, places, weights = compute_accidental_hits(labels, sampled, num_true=num_true)
    where = array_ops.concat([array_ops.reshape(rows, [-1, 1]),
                              array_ops.reshape(math_ops.cast(places, dtypes.int32), [-1, 1])], 1)
    shape = array_ops.concat([array_ops.shape(labels)[:1], array_ops.expand_dims(num_sampled, 0)], 0)
    if logits.dtype != weights.dtype:
        weights = math_ops.cast(weights, logits.dtype)
    return logits + raw_ops.SparseToDense(sparse_indices=where, output_shape=shape,
                                          sparse_values=weights, default_value=convert_to_tensor(
                                              0, logits.dtype), validate_indices=False)


def nce_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
             sampled_values=None, remove_accidental_hits=False, partition_strategy="mod",
             name="nce_loss"):
    """Returns the loss of noise-contrastive estimation, one value per row.

    Args:
      weights, biases: of all classes: [num_classes, dim] (or parts of it) and [num_classes].
      labels: [batch, num_true] class indices.
      inputs: [batch, dim].
      num_sampled: how many classes to sample.
      sampled_values: the result of a sampler; by default a log-uniform one.
      remove_accidental_hits: ignores samples that are true classes.
      partition_strategy: how weights are split: "mod" or "div".
      name: name of the scope.
    """
    with name_scope(name, "nce_loss"):
        logits, targets = _compute_sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
            remove_accidental_hits, partition_strategy, None)
        losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits,
                                                          name="sampled_losses")
        return _sum_rows(losses)


def sampled_softmax_loss(weights, biases, labels, inputs, num_sampled, num_classes, num_true=1,
                         sampled_values=None, remove_accidental_hits=True, partition_strategy="mod",
                         name="sampled_softmax_loss", seed=None):
    """Returns the cross entropy of softmax over the true classes and a sample. The arguments are those of nce_loss."""
    with name_scope(name, "sampled_softmax_loss"):
        logits, targets = _compute_sampled_logits(
            weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
            remove_accidental_hits, partition_strategy, None, seed)
        targets = raw_ops.StopGradient(input=targets, name="labels_stop_gradient")
        return nn_ops.softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)
