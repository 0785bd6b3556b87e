"""tf.data.experimental.service: dispatchers and workers in this process."""

import collections

from runnel.core.protobuf import Message, message_class


def _milliseconds(value):
    """Returns a time for a message, where 0 stands for a default."""
    return {0: 1, None: 0}.get(value, value)


class DispatcherConfig(collections.namedtuple("DispatcherConfig", (
        "port protocol work_dir fault_tolerant_mode worker_addresses job_gc_check_interval_ms job_gc_timeout_ms worker_timeout_ms "
        "worker_max_concurrent_snapshots"))):
    """How a dispatcher is configured.

    Args:
      port: the port; 0 for a free one.
      protocol: "grpc".
      work_dir: folder of datasets and of the journal.
      fault_tolerant_mode: whether to keep a journal, and to go on from it after a restart.
      worker_addresses: the workers that may register, for static sharding: "host:port", or "host" for any port.
      job_gc_check_interval_ms, job_gc_timeout_ms: when jobs without clients are collected.
      worker_timeout_ms: how long a worker may be silent.
      worker_max_concurrent_snapshots: not used.
    """

    def __new__(cls, port=0, protocol=None, work_dir=None, fault_tolerant_mode=False, worker_addresses=None, job_gc_check_interval_ms=None,
                job_gc_timeout_ms=None, worker_timeout_ms=None, worker_max_concurrent_snapshots=0):
        return super().__new__(cls, port, protocol or "grpc", work_dir, fault_tolerant_mode, worker_addresses,
                               _milliseconds(job_gc_check_interval_ms), _milliseconds(job_gc_timeout_ms), worker_timeout_ms,
                               worker_max_concurrent_snapshots)


class WorkerConfig(collections.namedtuple("WorkerConfig", (
        "dispatcher_address worker_address port protocol heartbeat_interval_ms dispatcher_timeout_ms data_transfer_protocol "
        "data_transfer_address"))):
    """How a worker is configured.

    Args:
      dispatcher_address: "host:port" of its dispatcher.
      worker_address: its own address as clients see it; %port% stands for the port.
      port: the port; 0 for a free one.
      protocol: "grpc".
      heartbeat_interval_ms: between heartbeats; by default 30 seconds.
      dispatcher_timeout_ms: how long to try to reach the dispatcher; by default an hour.
      data_transfer_protocol, data_transfer_address: elements travel by gRPC.
    """

    def __new__(cls, dispatcher_address, worker_address=None, port=0, protocol=None, heartbeat_interval_ms=None, dispatcher_timeout_ms=None,
                data_transfer_protocol=None, data_transfer_address=None):
        return super().__new__(cls, dispatcher_address, "localhost:%port%" if worker_address is None else worker_address, port,
                               protocol or "grpc", _milliseconds(heartbeat_interval_ms), _milliseconds(dispatcher_timeout_ms),
                               data_transfer_protocol, "localhost:%dts_port%" if data_transfer_address is None else data_transfer_address)


_loaded = None


def library():
    """Returns the functions of the C library for the service, with `call` to raise what a status says."""
    global _loaded
    if _loaded is None:
        import ctypes

        from runnel.train.server_lib import _Library
        made = _Library()
        for name, result, arguments in (
                ("rn_data_server_open", ctypes.c_void_p,
                 (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)),
                ("rn_data_server_begin", None, (ctypes.c_void_p, ctypes.c_void_p)),
                ("rn_data_server_end", None, (ctypes.c_void_p,)),
                ("rn_data_server_wait", None, (ctypes.c_void_p,)),
                ("rn_data_server_port", ctypes.c_int, (ctypes.c_void_p,)),
                ("rn_data_server_active", ctypes.c_int64, (ctypes.c_void_p,)),
                ("rn_data_server_free", None, (ctypes.c_void_p,)),
                ("rn_data_service_get_metadata", ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)),
                ("TF_DeleteBuffer", None, (ctypes.c_void_p,))):
            function = getattr(made.lib, name)
            function.restype, function.argtypes = result, arguments
        _loaded = made
    return _loaded


class _Server:
    _server = None

    def _open(self, role, config, start):
        data = config.SerializeToString()
        # Stock's servers listen on all interfaces; ours on loopback, unless RUNNEL_DATA_HOST names another address.
        import os
        host = os.environ.get("RUNNEL_DATA_HOST", "127.0.0.1")
        self._library = library()
        self._server = self._library.call("rn_data_server_open", role, data, len(data), host.encode())
        if start:
            self.start()

    def start(self):
        """Starts the server."""
        self._library.call("rn_data_server_begin", self._server)

    def join(self):
        """Waits until the server has been stopped."""
        self._library.lib.rn_data_server_wait(self._server)

    def stop(self):
        """Stops the server."""
        self._stop()

    def _stop(self):
        if self._server:
            self._library.lib.rn_data_server_end(self._server)

    def __del__(self):
        server, self._server = self._server, None
        if server:
            self._library.lib.rn_data_server_free(server)

    @property
    def _address(self):
        return "localhost:%d" % self._library.lib.rn_data_server_port(self._server)


def _message(name, config):
    if isinstance(config, Message):
        return config
    given = {key: value for key, value in config._asdict().items() if value}
    if "worker_addresses" in given:
        given["worker_addresses"] = list(given["worker_addresses"])
    return message_class(name)(**given)


class DispatchServer(_Server):
    """A dispatcher of the tf.data service.

        dispatcher = tf.data.experimental.service.DispatchServer(DispatcherConfig(port=5050))
        dispatcher.join()

    Args:
      config: a DispatcherConfig.
      start: whether to start it at once.
    """

    def __init__(self, config=None, start=True):
        config = config or DispatcherConfig()
        if config.fault_tolerant_mode and not config.work_dir:
            raise ValueError("Cannot enable fault tolerant mode without configuring a work dir. Make sure to set `work_dir` in the "
                             "`config` object passed to `DispatcherServer`.")
        self._config = config
        self._open(0, _message("DispatcherConfig", config), start)

    @property
    def target(self):
        """The address for clients: "grpc://localhost:port"."""
        return "%s://%s" % (self._config.protocol, self._address)

    def _num_workers(self):
        return self._library.lib.rn_data_server_active(self._server)


class WorkerServer(_Server):
    """A worker of the tf.data service.

    Args:
      config: a WorkerConfig.
      start: whether to start it at once.
    """

    def __init__(self, config, start=True):
        if config.dispatcher_address is None:
            raise ValueError("Must specify a `dispatcher_address` in the `config` passed to `WorkerServer`.")
        self._open(1, _message("WorkerConfig", config), start)

    def _num_tasks(self):
        return self._library.lib.rn_data_server_active(self._server)
