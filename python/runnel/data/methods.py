"""The methods of Dataset that tf.data.experimental has as functions too."""

from runnel import dtypes, raw_ops
from runnel.core.type_spec import TensorSpec


class ExperimentalMethods:
    """A base of Dataset."""

    @staticmethod
    def counter(start=0, step=1, dtype=dtypes.int64, name=None):
        """Creates a dataset that counts forever."""
        from runnel.data import experimental
        return experimental.Counter(start, step, dtype)

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Creates a dataset of random numbers, other ones in each iteration if `rerandomize_each_iteration`."""
        from runnel.data import experimental
        return experimental.RandomDataset(seed, rerandomize_each_iteration)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor):
        """Creates a dataset of the rows of a sparse tensor, each (indices, values, shape)."""
        from runnel.data.dataset import Dataset
        rank = sparse_tensor.shape.ndims
        inner = None if rank is None else rank - 1
        variant = raw_ops.SparseTensorSliceDataset(
            indices=sparse_tensor.indices, values=sparse_tensor.values, dense_shape=sparse_tensor.dense_shape)
        return Dataset(variant, (TensorSpec([None, inner], dtypes.int64), TensorSpec([None], sparse_tensor.values.dtype),
                                 TensorSpec([inner], dtypes.int64)))

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Takes elements from several datasets; `choice_dataset` has the index of the dataset for each."""
        from runnel.data import choices
        return choices.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
        """Takes elements from several datasets at random, with probabilities `weights`."""
        from runnel.data import choices
        return choices.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset, rerandomize_each_iteration)

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None,
                                  padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None):
        """Batches elements of similar length."""
        from runnel.data import experimental
        return self.apply(experimental.bucket_by_sequence_length(
            element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values, pad_to_bucket_boundary,
            no_padding, drop_remainder))

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        """Groups elements by key into windows, and applies `reduce_func(key, dataset)` to each window."""
        from runnel.data import experimental
        return self.apply(experimental.group_by_window(key_func, reduce_func, window_size, window_size_func))

    def ignore_errors(self, log_warning=False, name=None):
        """Skips elements that fail with an error."""
        from runnel.data import experimental
        return self.apply(experimental.ignore_errors(log_warning))

    def scan(self, initial_state, scan_func, name=None):
        """Applies `scan_func(state, element)`, which returns (next state, element), to each element."""
        from runnel.data import experimental
        return self.apply(experimental.scan(initial_state, scan_func))

    def take_while(self, predicate, name=None):
        """Keeps the elements before the first for which `predicate` is false."""
        from runnel.data import experimental
        return self.apply(experimental.take_while(predicate))

    def unique(self, name=None):
        """Drops elements that occurred before."""
        from runnel.data import experimental
        return self.apply(experimental.unique())

    def sparse_batch(self, batch_size, row_shape, name=None):
        """Stacks elements of different sizes into sparse tensors of the shape [batch_size, *row_shape]."""
        from runnel.data import experimental
        return self.apply(experimental.dense_to_sparse_batch(batch_size, row_shape))

    def rejection_resample(self, class_func, target_dist, initial_dist=None, seed=None, name=None):
        """Drops elements so that their classes have the distribution `target_dist`; elements are (class, element)."""
        from runnel.data import experimental
        return self.apply(experimental.rejection_resample(class_func, target_dist, initial_dist, seed))

    def fingerprint(self):
        """Returns a number that is equal for datasets that compute the same."""
        return raw_ops.DatasetFingerprint(input_dataset=self._variant_tensor)

    def map_with_legacy_function(self, map_func, num_parallel_calls=None, deterministic=None):
        """Applies `map_func` to each element."""
        return self.map(map_func, num_parallel_calls, deterministic)
