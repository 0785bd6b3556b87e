"""The methods of Dataset that concern its options, and the graph that it is made of."""

from runnel import raw_ops
from runnel.data import debug_mode
from runnel.data.options import ExternalStatePolicy, Options


class OptionMethods:
    """A base of Dataset."""

    _options_attr = None  # the options of the datasets that it reads, and its own

    def _take_options(self, sources):
        for source in sources:
            if source._options_attr is not None:
                self._options_attr = source._options_attr if self._options_attr is None else self._options_attr.merge(source._options_attr)

    def with_options(self, options, name=None):
        """Returns the same dataset with options."""
        made = self._like(raw_ops.OptionsDataset(
            input_dataset=self._variant_tensor, serialized_options=options._to_proto().SerializeToString(), **self._attrs))
        made._options_attr = Options().merge(options) if self._options_attr is None else self._options_attr.merge(options)
        return made

    def options(self):
        """Returns the options of the dataset, which cannot be changed: see with_options."""
        made = Options() if self._options_attr is None else self._options_attr
        made._set_mutable(False)
        return made

    def _options(self):
        """Returns the options as a tensor, also those that functions set which made the dataset."""
        return raw_ops.GetOptions(input_dataset=self._variant_tensor)

    @classmethod
    def _options_tensor_to_options(cls, serialized_options):
        """Returns the options that `_options` returned, of its value."""
        from runnel.core.protobuf import message_class
        made = Options()
        if hasattr(serialized_options, "numpy"):
            serialized_options = serialized_options.numpy()
        made._from_proto(message_class("Options").FromString(serialized_options))
        return made

    def _apply_debug_options(self):
        """In debug mode, returns the dataset without what would run it in the background."""
        if not debug_mode.is_debug_mode():
            return self
        options = Options()
        options.autotune.enabled = False
        options.experimental_optimization.filter_parallelization = False
        options.experimental_optimization.map_and_batch_fusion = False
        options.experimental_optimization.map_parallelization = False
        return self.with_options(options)

    def _as_serialized_graph(self, allow_stateful=None, strip_device_assignment=None, external_state_policy=ExternalStatePolicy.WARN):
        """Returns a scalar string, the GraphDef of the ops that make the dataset."""
        strip = bool(strip_device_assignment)
        if external_state_policy:
            return raw_ops.DatasetToGraphV2(input_dataset=self._variant_tensor, external_state_policy=external_state_policy.value,
                                            strip_device_assignment=strip)
        return raw_ops.DatasetToGraph(input_dataset=self._variant_tensor, allow_stateful=bool(allow_stateful), strip_device_assignment=strip)
