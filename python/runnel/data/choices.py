"""Datasets that take their elements from several others: choose_from_datasets and sample_from_datasets."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import TensorSpec
from runnel.data import structure
from runnel.data.dataset import Dataset
from runnel.math import log
from runnel.ops import array_ops


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    """Takes elements from several datasets; `choice_dataset` has the index of the dataset for each."""
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    if not isinstance(choice_dataset, Dataset):
        raise TypeError("Invalid `choice_dataset`. `choice_dataset` should be a `tf.data.Dataset` but is %s." % type(choice_dataset))
    if not structure.are_compatible(choice_dataset.element_spec, TensorSpec([], dtypes.int64)):
        raise TypeError("Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are %s." % (
            choice_dataset.element_spec,))
    datasets = list(datasets)
    spec = datasets[0].element_spec
    for i, one in enumerate(datasets[1:], 1):
        try:
            spec = structure.common(spec, one.element_spec)
        except (TypeError, ValueError):
            raise TypeError("Invalid `datasets`. `datasets` must have compatible element specs.\n Dataset 0 element_spec=%s.\nDataset %d "
                            "element_spec=%s." % (datasets[0].element_spec, i, one.element_spec)) from None
    made = Dataset(None, spec, [choice_dataset, *datasets])
    made._variant_tensor = raw_ops.DirectedInterleaveDataset(
        selector_input_dataset=choice_dataset._variant_tensor, data_input_datasets=[x._variant_tensor for x in datasets],
        stop_on_empty_dataset=stop_on_empty_dataset, **made._attrs)
    return made


def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
    """Takes elements from several datasets at random, with probabilities `weights`: numbers, a tensor, or a dataset of them."""
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    seeds = Dataset.random(seed=seed, rerandomize_each_iteration=rerandomize_each_iteration).batch(2)
    if isinstance(weights, Dataset):
        logits = weights.map(lambda *row: log(row))
        return choose_from_datasets(datasets, Dataset.zip((logits, seeds)).map(_draw), stop_on_empty_dataset)
    datasets, logits = _constant_logits(datasets, weights)
    if len(datasets) == 1:
        return datasets[0]
    return choose_from_datasets(datasets, seeds.map(lambda pair: _draw(logits, pair)), stop_on_empty_dataset)


def _draw(logits, seeds):
    return array_ops.squeeze(raw_ops.StatelessMultinomial(logits=logits, num_samples=1, seed=seeds), axis=[0, 1])


def _constant_logits(datasets, weights):
    """Returns the datasets that can be drawn, and a row of the logarithms of their probabilities."""
    if weights is None:
        return datasets, convert_to_tensor([[1.0] * len(datasets)], dtypes.float32)
    if isinstance(weights, Tensor):
        if not weights.shape.is_compatible_with([len(datasets)]):
            raise ValueError("Invalid `weights`. The shape of `weights` should be compatible with `[len(datasets)]` but is %s." % weights.shape)
    else:
        if len(datasets) != len(weights):
            raise ValueError("Invalid `weights`. `weights` should have the same length as `datasets` but got `len(weights)=%d` vs. "
                             "`len(datasets)=%d`." % (len(weights), len(datasets)))
        kept = [pair for pair in zip(datasets, weights) if pair[1] > 0] or [(datasets[0].take(0), 1.0)]
        datasets, weights = [one for one, _ in kept], [weight for _, weight in kept]
    weights = convert_to_tensor(weights, name="weights")
    if weights.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError("Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but is %s." % weights.dtype)
    return datasets, array_ops.expand_dims(log(weights, name="logits"), 0)
