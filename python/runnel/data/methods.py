"""Methods of datasets that are also functions of tf.data.experimental."""


class ExperimentalMethods:
    """What a dataset does by functions of tf.data.experimental."""

    def scan(self, initial_state, scan_func, name=None):
        """Applies `scan_func(state, element)`, which returns (next state, element), to each element."""
        from runnel.data import experimental
        return self.apply(experimental.scan(initial_state, scan_func))

    def take_while(self, predicate, name=None):
        """Ends before the first element for which `predicate` is false."""
        from runnel.data import experimental
        return self.apply(experimental.take_while(predicate))

    def unique(self, name=None):
        """Drops elements that occurred before."""
        from runnel.data import experimental
        return self.apply(experimental.unique())

    def ignore_errors(self, log_warning=False, name=None):
        """Drops elements whose computation fails."""
        from runnel.data import experimental
        return self.apply(experimental.ignore_errors(log_warning))

    def group_by_window(self, key_func, reduce_func, window_size=None, window_size_func=None, name=None):
        """Groups elements by key, and reduces `window_size` of them at a time."""
        from runnel.data import experimental
        return self.apply(experimental.group_by_window(key_func, reduce_func, window_size, window_size_func))

    def bucket_by_sequence_length(self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, padding_values=None,
                                  pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None):
        """Batches elements of similar lengths."""
        from runnel.data import experimental
        return self.apply(experimental.bucket_by_sequence_length(
            element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values, pad_to_bucket_boundary, no_padding, drop_remainder))

    @staticmethod
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Creates an endless dataset of random numbers."""
        from runnel.data import experimental
        return experimental.RandomDataset(seed)

    @staticmethod
    def counter(start=0, step=1, dtype=None, name=None):
        """Creates an endless dataset that counts."""
        from runnel import dtypes
        from runnel.data import experimental
        return experimental.Counter(start, step, dtype or dtypes.int64)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Takes each element from the dataset that `choice_dataset` names."""
        from runnel.data import experimental
        return experimental.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
        """Takes each element from a dataset that is chosen at random."""
        from runnel.data import experimental
        return experimental.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)
