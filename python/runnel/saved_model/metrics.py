"""Counts and times of saving and loading of models and checkpoints, under the names of TensorFlow's C++ module.

A counter has IncrementX and GetX; a gauge SetX and GetX; a sampler AddX and GetXs, which returns a serialized HistogramProto.
"""

import json
import math
import os
import types

kFingerprintFound, kFingerprintNotFound, kFingerprintError = "FOUND", "NOT_FOUND", "ERROR"  # noqa: N816


class MetricException(Exception):
    """A metric was given values that it cannot have."""


class _Histogram:
    """Samples in buckets whose limits grow by a factor."""

    def __init__(self):
        self.limits = [1000 * 1.5 ** i for i in range(41)]
        self.counts = [0] * (len(self.limits) + 1)
        self.samples = 0
        self.sum = self.squares = 0.0
        self.range = math.inf, -math.inf

    def add(self, value):
        self.counts[sum(value >= limit for limit in self.limits)] += 1
        self.samples += 1
        self.sum, self.squares = self.sum + value, self.squares + value * value
        self.range = min(self.range[0], value), max(self.range[1], value)

    def serialized(self):
        from runnel.core.protobuf import message_class
        out = message_class("HistogramProto")(num=self.samples, sum=self.sum, sum_squares=self.squares)
        if self.samples:
            out.min, out.max = self.range
        out.bucket_limit.extend([*self.limits, 1.7976931348623157e308])
        out.bucket.extend(self.counts)
        return out.SerializeToString()


_state = types.SimpleNamespace(counts={}, histograms={}, gauges={})


def _counter(name, get, label, amount=None):
    """Makes a counter by labels: `name` adds 1, or the argument `amount`."""
    def add(*args, **kwargs):
        given = dict(zip([x for x in (label, amount) if x], args), **kwargs)
        key = name, given.get(label)
        _state.counts[key] = _state.counts.get(key, 0) + (given[amount] if amount else 1)

    def read(*args, **kwargs):
        return _state.counts.get((name, dict(zip([label], args), **kwargs).get(label)), 0)
    globals()[name], globals()[get] = add, read


def _sampler(name, get, label, amount):
    def add(**kwargs):
        _state.histograms.setdefault((name, kwargs.get(label)), _Histogram()).add(kwargs[amount])

    def read(**kwargs):
        return _state.histograms.get((name, kwargs.get(label)), _Histogram()).serialized()
    globals()[name], globals()[get] = add, read


def _gauge(name, argument, convert=str):
    def put(*args, **kwargs):
        _state.gauges[name] = convert(args[0] if args else kwargs[argument])

    def read():
        return _state.gauges.get(name, "")
    globals()["Set" + name], globals()["Get" + name] = put, read


def _fingerprint(serialized):
    from runnel.core.protobuf import message_class
    message = message_class("FingerprintDef").FromString(serialized)
    names = ("saved_model_checksum", "graph_def_program_hash", "signature_def_hash", "saved_object_graph_hash", "checkpoint_hash")
    return json.dumps({name: getattr(message, name) for name in names}, indent=1, separators=(",", " : "))


_counter("IncrementWrite", "GetWrite", "write_version")
_counter("IncrementWriteApi", "GetWriteApi", "api_label")
_counter("IncrementRead", "GetRead", "write_version")
_counter("IncrementReadApi", "GetReadApi", "api_label")
_counter("AddTrainingTimeSaved", "GetTrainingTimeSaved", "api_label", "microseconds")
_counter("AddNumCheckpointShardsWritten", "GetNumCheckpointShardsWritten", None, "num_shards")
_counter("AddShardingCallbackDuration", "GetShardingCallbackDuration", None, "callback_duration")
_sampler("AddCheckpointWriteDuration", "GetCheckpointWriteDurations", "api_label", "microseconds")
_sampler("AddCheckpointReadDuration", "GetCheckpointReadDurations", "api_label", "microseconds")
_sampler("AddAsyncCheckpointWriteDuration", "GetAsyncCheckpointWriteDurations", "api_label", "microseconds")
_gauge("ReadFingerprint", "fingerprint", _fingerprint)
_gauge("WriteFingerprint", "fingerprint", _fingerprint)
_gauge("ReadPath", "saved_model_path")
_gauge("WritePath", "saved_model_path")
_gauge("FoundFingerprintOnLoad", "found_status")
_gauge("ShardingCallbackDescription", "description")


def _pair(name):
    def put(path, singleprint):
        for what, value in (("path", path), ("singleprint", singleprint)):
            if not value:
                raise MetricException("Invalid path_and_singleprint argument. Empty %s." % what)
        _state.gauges[name] = path, singleprint

    def read():
        return _state.gauges.get(name, ("", ""))
    globals()["Set" + name], globals()["Get" + name] = put, read


_pair("ReadPathAndSingleprint")
_pair("WritePathAndSingleprint")


def RecordCheckpointSize(api_label, filesize):  # noqa: N802
    """Counts a checkpoint of a size in megabytes."""
    key = "size", api_label, filesize
    _state.counts[key] = _state.counts.get(key, 0) + 1


def GetCheckpointSize(api_label, filesize):  # noqa: N802
    """Returns the number of checkpoints of a size in megabytes."""
    return _state.counts.get(("size", api_label, filesize), 0)


def CalculateFileSize(filename):  # noqa: N802
    """Returns the size of a file in megabytes, rounded; -1 if there is no such file."""
    try:
        return round(os.path.getsize(filename) / 1e6)
    except OSError:
        return -1
