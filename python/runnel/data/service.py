"""tf.data.experimental.service: datasets that other machines prepare. See doc/data_service.md."""

import enum

from runnel import dtypes, errors, raw_ops
from runnel.core import framework
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.protobuf import message_class
from runnel.data import structure
from runnel.data.dataset import AUTOTUNE, Dataset
from runnel.data.options import AutoShardPolicy, ExternalStatePolicy, Options
from runnel.data.service_servers import (  # noqa: F401
    DispatcherConfig, DispatchServer, WorkerConfig, WorkerServer, library)
from runnel.eager.tracing import trace

COMPRESSION_AUTO, COMPRESSION_NONE, COMPRESSION_SNAPPY = "AUTO", None, "SNAPPY"
_COMPRESSIONS = {COMPRESSION_AUTO: 2, COMPRESSION_NONE: 1, COMPRESSION_SNAPPY: 3}  # DataServiceMetadata.Compression
_PARALLEL_EPOCHS, _DISTRIBUTED_EPOCH = "parallel_epochs", "distributed_epoch"


class ShardingPolicy(enum.IntEnum):
    """How the elements of a dataset are divided among workers.

    OFF: every worker makes all elements. DYNAMIC: workers ask the dispatcher what to make next. FILE: each worker has its own files.
    DATA: each worker keeps its share of all elements. FILE_OR_DATA: by files if there are any. HINT: `shard(SHARD_HINT, SHARD_HINT)` in
    the pipeline says where.
    """

    OFF, DYNAMIC, FILE, DATA, FILE_OR_DATA, HINT = range(6)


class CrossTrainerCache:
    """Lets several trainers read the same elements.

    Args:
      trainer_id: who reads; elements that others have read are read again.
    """

    def __init__(self, trainer_id):
        if not trainer_id:
            raise ValueError("tf.data service cross-trainer cache requires a non-empty trainer ID.")
        self.trainer_id = trainer_id

    def _to_proto(self):
        return message_class("CrossTrainerCacheOptions")(trainer_id=self.trainer_id)


def _get_validated_sharding_policy(processing_mode):
    if isinstance(processing_mode, ShardingPolicy):
        return processing_mode
    if processing_mode == _PARALLEL_EPOCHS:
        return ShardingPolicy.OFF
    if processing_mode == _DISTRIBUTED_EPOCH:
        return ShardingPolicy.DYNAMIC
    raise ValueError("tf.data service processing mode should be a `tf.data.experimental.service.ShardingPolicy`, `\"parallel_epochs\"`, "
                     "or `\"distributed_epoch\"`. Got %r." % (processing_mode,))


def _validate_job_name(job_name):
    if job_name is None:
        return
    if not isinstance(job_name, str):
        raise ValueError("`job_name` must be a string, but `job_name` was of type %s. job_name=%s" % (type(job_name), job_name))
    if not job_name:
        raise ValueError("`job_name` must not be empty")


def _validate_compression(compression):
    if compression not in _COMPRESSIONS:
        raise ValueError("Invalid `compression` argument: %s. Must be one of %s." % (compression, list(_COMPRESSIONS)))


def _parse_service(service):
    """Returns protocol and address of "grpc://host:port" or "host:port"."""
    if isinstance(service, tuple):
        return service
    if not isinstance(service, str):
        raise ValueError("`service` must be a string, but `service` was of type %s. service=%s" % (type(service), service))
    if not service:
        raise ValueError("`service` must not be empty")
    parts = service.split("://")
    if len(parts) > 2:
        raise ValueError("Malformed `service` string has multiple '://': %s." % service)
    return ("grpc", parts[0]) if len(parts) == 1 else tuple(parts)


def _register_dataset(service, dataset, compression, dataset_id=None):
    from runnel.saved_model.structured_value import encode_structure
    _validate_compression(compression)
    protocol, address = _parse_service(service)
    policy = getattr(dataset.options(), "experimental_external_state_policy", None) or ExternalStatePolicy.WARN
    metadata = message_class("DataServiceMetadata")(compression=_COMPRESSIONS[compression])
    if framework.executing_eagerly():
        metadata.element_spec = encode_structure(dataset.element_spec).SerializeToString()
    if compression is not COMPRESSION_NONE:
        spec = dataset.element_spec
        dataset = dataset.map(lambda *x: raw_ops.CompressElement(
            components=structure.to_tensor_list(spec, x if isinstance(spec, tuple) else x[0])), num_parallel_calls=AUTOTUNE)
    return raw_ops.RegisterDatasetV2(
        dataset=dataset._variant_tensor, address=address, protocol=protocol, external_state_policy=policy.value,
        requested_dataset_id=dataset_id or "", metadata=metadata.SerializeToString())


def register_dataset(service, dataset, compression="AUTO", dataset_id=None):
    """Registers a dataset with the tf.data service, for `from_dataset_id`; returns its id.

    Args:
      service: the address of the dispatcher, "grpc://host:port".
      dataset: the dataset.
      compression: "AUTO" or "SNAPPY" if elements travel compressed, else None.
      dataset_id: the id; by default the dispatcher chooses one.
    """
    return _register_dataset(service, dataset, compression, dataset_id)


def _fetch_element_spec(address, dataset_id):
    import ctypes

    from runnel.saved_model.structured_value import decode_proto
    value = constant_value(dataset_id)
    text = value.item() if hasattr(value, "item") else value
    text = text if isinstance(text, bytes) else str(text).encode()

    class Buffer(ctypes.Structure):
        _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t))

    functions = library()
    spec = b""
    try:
        buffer = functions.call("rn_data_service_get_metadata", address.encode(), text)
        found = Buffer.from_address(buffer)
        spec = message_class("DataServiceMetadata").FromString(ctypes.string_at(found.data, found.length)).element_spec
        functions.lib.TF_DeleteBuffer(buffer)
    except errors.OpError:
        pass  # as in stock: the message below says what to do
    if not spec:
        raise ValueError("Failed to fetch element spec for dataset id %s from tf.data service. If the dataset was registered in graph mode "
                         "or inside a tf.function, the `element_spec` must be specified as an argument to `from_dataset_id`." % (value,))
    return decode_proto(message_class("StructuredValue").FromString(spec))


def _int64(value, default, name):
    return convert_to_tensor(default if value is None else value, dtypes.int64, name=name)


def _from_dataset_id(processing_mode, service, dataset_id, element_spec, job_name=None, consumer_index=None, num_consumers=None,
                     max_outstanding_requests=None, task_refresh_interval_hint_ms=None, data_transfer_protocol=None,
                     cross_trainer_cache=None, target_workers="AUTO"):
    policy = _get_validated_sharding_policy(processing_mode)
    protocol, address = _parse_service(service)
    if not isinstance(dataset_id, framework.Tensor):
        dataset_id = convert_to_tensor(dataset_id, dtypes.string if isinstance(dataset_id, (str, bytes)) else dtypes.int64, name="dataset_id")
    if not element_spec:
        if not framework.executing_eagerly():
            raise ValueError("In graph mode `element_spec` must be provided manually.")
        element_spec = _fetch_element_spec(address, dataset_id)
    if (consumer_index is None) != (num_consumers is None):
        raise ValueError("Must either set both `consumer_index` and `num_consumers`, or neither. ",
                         "consumer_index=%s, num_consumers=%s" % (consumer_index, num_consumers))
    if num_consumers is not None and job_name is None:
        raise ValueError("`job_name` must be set when setting `num_consumers`. num_consumers was set to %s." % num_consumers)
    if dataset_id.dtype != dtypes.string:
        dataset_id = raw_ops.AsString(input=dataset_id)
    made = Dataset(None, element_spec)
    made._variant_tensor = raw_ops.DataServiceDatasetV4(
        dataset_id=dataset_id,
        processing_mode=convert_to_tensor(message_class("ProcessingModeDef")(sharding_policy=int(policy)).SerializeToString(), dtypes.string),
        address=convert_to_tensor(address, dtypes.string), protocol=convert_to_tensor(protocol, dtypes.string),
        job_name=convert_to_tensor("" if job_name is None else job_name, dtypes.string),
        consumer_index=_int64(consumer_index, -1, "consumer_index"), num_consumers=_int64(num_consumers, -1, "num_consumers"),
        max_outstanding_requests=_int64(max_outstanding_requests, AUTOTUNE, "max_outstanding_requests"),
        iteration_counter=raw_ops.DummyIterationCounter(),
        task_refresh_interval_hint_ms=-1 if task_refresh_interval_hint_ms is None else task_refresh_interval_hint_ms,
        data_transfer_protocol=data_transfer_protocol or "", target_workers=target_workers, uncompress=True,
        uncompress_fn=_uncompress_function(element_spec),
        cross_trainer_cache_options=cross_trainer_cache._to_proto().SerializeToString() if cross_trainer_cache else "",
        **made._attrs)
    if job_name is not None:
        options = Options()
        options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
        made = made.with_options(options)
    return made


def _uncompress_function(element_spec):
    """The function that other implementations call on each element; ours needs none, and the op has an attribute for it."""
    types = structure.get_flat_tensor_types(element_spec)
    shapes = structure.get_flat_tensor_shapes(element_spec)
    return trace(lambda x: raw_ops.UncompressElement(compressed=x, output_types=types, output_shapes=shapes),
                 [(dtypes.variant, [])], "DataServiceDataset_uncompress").attr


def from_dataset_id(processing_mode, service, dataset_id, element_spec=None, job_name=None, consumer_index=None, num_consumers=None,
                    max_outstanding_requests=None, data_transfer_protocol=None, cross_trainer_cache=None, target_workers="AUTO"):
    """Returns a dataset that reads a registered one.

    Args:
      processing_mode: a ShardingPolicy, "parallel_epochs" or "distributed_epoch".
      service: the address of the dispatcher, "grpc://host:port".
      dataset_id: what `register_dataset` returned.
      element_spec: the structure of elements; by default the dispatcher tells it.
      job_name: consumers with the same name share a job.
      consumer_index, num_consumers: for coordinated reads.
      max_outstanding_requests: how many elements may be on their way.
      data_transfer_protocol: elements travel by gRPC.
      cross_trainer_cache: a CrossTrainerCache.
      target_workers: "AUTO", "ANY" or "LOCAL".
    """
    _validate_job_name(job_name)
    if job_name is not None:
        text = dataset_id.decode() if isinstance(dataset_id, bytes) else dataset_id
        if isinstance(text, framework.Tensor):
            text = text if text.dtype == dtypes.string else raw_ops.AsString(input=text)
        else:
            text = str(text)
        job_name = raw_ops.StringJoin(inputs=[convert_to_tensor(part) for part in ("dataset_id=", text, job_name)], separator="/")
    return _from_dataset_id(processing_mode, service, dataset_id, element_spec, job_name, consumer_index, num_consumers,
                            max_outstanding_requests, None, data_transfer_protocol, cross_trainer_cache, target_workers)


def _distribute(processing_mode, service, job_name=None, consumer_index=None, num_consumers=None, max_outstanding_requests=None,
                task_refresh_interval_hint_ms=None, data_transfer_protocol=None, compression="AUTO", cross_trainer_cache=None,
                target_workers="AUTO"):
    processing_mode = _get_validated_sharding_policy(processing_mode)
    _validate_compression(compression)

    def apply(dataset):
        dataset_id = _register_dataset(service, dataset, compression)
        return _from_dataset_id(processing_mode, service, dataset_id, dataset.element_spec, job_name, consumer_index, num_consumers,
                                max_outstanding_requests, task_refresh_interval_hint_ms, data_transfer_protocol, cross_trainer_cache,
                                target_workers)

    return apply


def distribute(processing_mode, service, job_name=None, consumer_index=None, num_consumers=None, max_outstanding_requests=None,
               data_transfer_protocol=None, compression="AUTO", cross_trainer_cache=None, target_workers="AUTO"):
    """Returns a transformation, for Dataset.apply, that lets workers of the tf.data service prepare the elements.

    Args:
      processing_mode: a ShardingPolicy, "parallel_epochs" or "distributed_epoch".
      service: the address of the dispatcher, "grpc://host:port".
      job_name: consumers with the same name share a job.
      consumer_index, num_consumers: for coordinated reads.
      max_outstanding_requests: how many elements may be on their way.
      data_transfer_protocol: elements travel by gRPC.
      compression: "AUTO" or "SNAPPY" if elements travel compressed, else None.
      cross_trainer_cache: a CrossTrainerCache.
      target_workers: "AUTO", "ANY" or "LOCAL".
    """
    _validate_job_name(job_name)
    return _distribute(processing_mode, service, job_name, consumer_index, num_consumers, max_outstanding_requests, None,
                       data_transfer_protocol, compression, cross_trainer_cache, target_workers)
