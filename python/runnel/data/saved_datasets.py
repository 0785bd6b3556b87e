"""Datasets in files, in stock's format: Dataset.save, load and snapshot."""

import os
import time

from runnel import dtypes, raw_ops
from runnel.core import tensor_shape, text_format
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import executing_eagerly
from runnel.core.protobuf import message_class
from runnel.data import structure
from runnel.eager.tracing import trace

_SPEC_FILE = "dataset_spec.pb"
_RETRY_SECONDS = 5


class SavedMethods:
    """A base of Dataset."""

    _tracker = None  # the object of a SavedModel that makes the dataset again

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel" and executing_eagerly():
            from runnel.data.variant_tracker import VariantTracker
            if self._tracker is None:
                self._tracker = VariantTracker(self._variant_tensor)
            children["_variant_tracker"] = self._tracker
        return children

    def _sharding(self, shard_func):
        """Returns the function that maps an element to its shard; without `shard_func`, all go to the first."""
        return self._trace(shard_func or (lambda *_: convert_to_tensor(0, dtypes.int64)), "Dataset_shard_func")

    def save(self, path, compression=None, shard_func=None, checkpoint_args=None):
        """Writes all elements to a folder, for Dataset.load.

        `shard_func` maps an element to one of the folder's shards. In a graph, returns the operation that writes.
        """
        from runnel.saved_model import structured_value
        if checkpoint_args is not None:
            raise NotImplementedError("Dataset.save does not support checkpoint_args: it does not save its progress")
        path = os.fspath(path)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, _SPEC_FILE), "wb") as file:
            file.write(structured_value.encode(self.element_spec).SerializeToString())
        f = self._sharding(shard_func)
        written = self._like(raw_ops.SaveDatasetV2(
            input_dataset=self._variant_tensor, path=convert_to_tensor(path, dtypes.string, name="path"), shard_func_other_args=f.captured,
            shard_func=f.attr, use_shard_func=shard_func is not None, compression=compression or "", **self._attrs))
        if not executing_eagerly():
            return written.reduce(convert_to_tensor(0, dtypes.int64), lambda count, *_: count + 1).op
        for _ in written:
            pass
        return None

    @staticmethod
    def load(path, element_spec=None, compression=None, reader_func=None, wait=False):
        """Creates a dataset of the elements that `save`, or the tf.data service, wrote.

        `reader_func` turns the dataset of shards into one dataset. With `wait`, waits until there is something.
        """
        from runnel import errors
        from runnel.data.dataset import Dataset
        from runnel.saved_model import structured_value
        path = os.fspath(path)
        while wait:
            try:
                return Dataset.load(path, element_spec, compression, reader_func)
            except errors.NotFoundError:
                time.sleep(_RETRY_SECONDS)
        distributed = _distributed_metadata(path)
        if distributed is not None:
            return _load_distributed(path, distributed, element_spec, compression, reader_func)
        if element_spec is None:
            name = os.path.join(path, _SPEC_FILE)
            try:
                with open(name, "rb") as file:
                    element_spec = structured_value.decode(message_class("StructuredValue").FromString(file.read()))
            except FileNotFoundError:
                raise errors.NotFoundError(None, None, "tf.data snapshot element_spec file not found: %s." % name) from None
        made = Dataset(None, element_spec)
        f = _reading(reader_func, element_spec)
        made._variant_tensor = raw_ops.LoadDataset(
            path=convert_to_tensor(path, dtypes.string, name="path"), reader_func_other_args=f.captured, reader_func=f.attr,
            compression=compression or "", **made._attrs)
        return made

    def snapshot(self, path, compression="AUTO", reader_func=None, shard_func=None, name=None):
        """Writes the elements to files during the first full pass, and reads them from there afterwards.

        `shard_func` maps an element to a shard. Without it, there are as many shards as this machine has processors.
        """
        if shard_func is None:
            count = os.cpu_count()
            numbered = self.enumerate().snapshot(path, compression, reader_func, lambda index, _: index % count)
            return numbered.map(lambda _, element: element)
        reader, shard = _reading(reader_func, self.element_spec), self._sharding(shard_func)
        if not any(structure.are_compatible(shard.element_spec, structure.TensorSpec([], t)) for t in (dtypes.int32, dtypes.int64)):
            raise TypeError("Invalid `shard_func`. `shard_func` must return `tf.int64` scalar tensor but its return type is %s." % (
                shard.element_spec,))
        return self._like(raw_ops.SnapshotDatasetV2(
            input_dataset=self._variant_tensor, path=convert_to_tensor(path, dtypes.string, name="path"),
            reader_func_other_args=reader.captured, shard_func_other_args=shard.captured, reader_func=reader.attr, shard_func=shard.attr,
            compression=compression or "", **self._attrs))


def _distributed_metadata(path):
    """Returns what lies beside a distributed snapshot; None if there is none at `path`."""
    try:
        with open(os.path.join(path, "snapshot.metadata"), "rb") as file:
            return text_format.Parse(file.read(), message_class("DistributedSnapshotMetadata")())
    except (FileNotFoundError, text_format.ParseError, UnicodeDecodeError):
        return None


def _load_distributed(path, metadata, element_spec, compression, reader_func):
    from runnel.data.dataset import Dataset
    from runnel.saved_model import structured_value
    failed = "Failed to load tf.data snapshot at %s." % path
    if os.path.exists(os.path.join(path, "ERROR")):
        with open(os.path.join(path, "ERROR"), encoding="utf-8", errors="replace") as file:
            raise ValueError("%s The save job failed to write it. Status: %s" % (failed, file.read()))
    spec = structured_value.decode(message_class("StructuredValue").FromString(metadata.element_spec))
    if element_spec and element_spec != spec:
        raise ValueError("%s User specified element_spec %s, but the actual element_spec is %s." % (failed, element_spec, spec))
    if compression and compression != metadata.compression:
        raise ValueError("%s User specified compression %s, but the actual compression is %s." % (failed, compression, metadata.compression))
    chunks = Dataset(None, structure.TensorSpec([], dtypes.string))
    chunks._variant_tensor = raw_ops.ListSnapshotChunksDataset(
        snapshot_path=convert_to_tensor(path, dtypes.string, name="snapshot_path"), **chunks._attrs)

    def chunk(file):
        made = Dataset(None, spec)
        made._variant_tensor = raw_ops.SnapshotChunkDataset(chunk_file=file, compression=metadata.compression, **made._attrs)
        return made
    return _default_reader(reader_func)(chunks.map(chunk))


def _default_reader(reader_func):
    return reader_func or (lambda shards: shards.interleave(lambda shard: shard, cycle_length=os.cpu_count(), num_parallel_calls=-1))


def _reading(reader_func, element_spec):
    """Returns the function from a dataset of shards to a dataset; by default it interleaves the shards."""
    from runnel.data.dataset import Dataset, DatasetSpec
    read = _default_reader(reader_func)
    return trace(lambda variant: read(Dataset(variant, DatasetSpec(element_spec)))._variant_tensor,
                 [(dtypes.variant, tensor_shape.TensorShape([]))], "Dataset_reader_func")
