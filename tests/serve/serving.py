"""A server under test, and clients of its services whose messages come from its own reflection.

    server = Server(runnel, "--model_name=half", ...)
    api = Api(server.grpc)
    api.wait_until_ready()
    response = api.call("tensorflow.serving.PredictionService.Predict", request)
"""
import os
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HOST = "127.0.0.1"
START_SECONDS = 60
CALL_SECONDS = 30


class Server:
    """A process of `runnel serve` on ports of its own; |log| is what it wrote to stderr so far."""

    def __init__(self, runnel, *flags):
        self.log = ""
        command = [runnel, "serve", "--any_port", "--host=" + HOST, *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.log += line
                self.changed.notify_all()
        with self.changed:
            self.log += "\0"  # the end
            self.changed.notify_all()

    def wait_for(self, pattern):
        """The first match of |pattern| in the log."""
        found = lambda: re.search(pattern, self.log) or self.log.endswith("\0")
        with self.changed:
            self.changed.wait_for(found, START_SECONDS)
            match = re.search(pattern, self.log)
        if not match:
            raise RuntimeError("no %r in: %s" % (pattern, self.log))
        return match

    @property
    def grpc(self):
        return HOST + ":" + self.wait_for(r"gRPC and REST at port (\d+)").group(1)

    @property
    def rest(self):
        return HOST + ":" + self.wait_for(r"(?m)^REST at port (\d+)").group(1)

    def stop(self):
        """Ends the process; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.reader.join()
        self.process.stderr.close()
        return code


# What reflection needs to begin with.
def _reflection_file():
    file = descriptor_pb2.FileDescriptorProto(name="bootstrap.proto", package="b", syntax="proto3")

    def message(name, *fields):
        kept = file.message_type.add(name=name)
        for field, number, label, kind, sub in fields:
            kept.field.add(name=field, number=number, label=label, type=kind, type_name=sub)

    message("Request", ("file_by_filename", 3, 1, 9, None), ("file_containing_symbol", 4, 1, 9, None),
            ("all_extension_numbers_of_type", 6, 1, 9, None), ("list_services", 7, 1, 9, None))
    message("Response", ("files", 4, 1, 11, ".b.Files"), ("services", 6, 1, 11, ".b.Services"),
            ("error", 7, 1, 11, ".b.Error"))
    message("Files", ("file", 1, 3, 12, None))
    message("Services", ("service", 1, 3, 11, ".b.Service"))
    message("Service", ("name", 1, 1, 9, None))
    message("Error", ("code", 1, 1, 5, None), ("message", 2, 1, 9, None))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName("b." + name)) for name in ("Request", "Response")]


ReflectionRequest, ReflectionResponse = _reflection_file()


class Api:
    """Every service of a server, by its descriptors."""

    def __init__(self, address, metadata=()):
        self.channel = grpc.insecure_channel(
            address, options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        self.metadata = metadata
        self.pool = descriptor_pool.DescriptorPool()
        self.files = {}

    def close(self):
        self.channel.close()

    def reflect(self, version="v1", **questions):
        """The answers to ServerReflectionRequests, one per question."""
        stream = self.channel.stream_stream(
            "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo" % version,
            request_serializer=ReflectionRequest.SerializeToString, response_deserializer=ReflectionResponse.FromString)
        requests = [ReflectionRequest(**{name: value}) for name, value in questions.items()]
        return list(stream(iter(requests), timeout=CALL_SECONDS, metadata=self.metadata, wait_for_ready=True))

    def wait_until_ready(self):
        """Waits until every model was loaded."""
        request = self.type("grpc.health.v1.HealthCheckRequest")()
        for response in self.call("grpc.health.v1.Health.Watch", request, timeout=START_SECONDS):
            if response.status == 1:
                return

    def _load(self, symbol):
        response = self.reflect(file_containing_symbol=symbol)[0]
        if response.error.code:
            raise KeyError(response.error.message)
        files = [descriptor_pb2.FileDescriptorProto.FromString(data) for data in response.files.file]
        while files:  # imports first
            for file in list(files):
                if all(name in self.files for name in file.dependency):
                    if file.name not in self.files:
                        self.pool.Add(file)
                        self.files[file.name] = file
                    files.remove(file)

    def type(self, name):
        try:
            descriptor = self.pool.FindMessageTypeByName(name)
        except KeyError:
            self._load(name)
            descriptor = self.pool.FindMessageTypeByName(name)
        return message_factory.GetMessageClass(descriptor)

    def method(self, name):
        service, _, method = name.rpartition(".")
        try:
            found = self.pool.FindServiceByName(service)
        except KeyError:
            self._load(service)
            found = self.pool.FindServiceByName(service)
        return found.FindMethodByName(method)

    def call(self, name, request, timeout=CALL_SECONDS, metadata=(), with_call=False):
        """A unary call of "package.Service.Method"; a generator of messages if the server streams."""
        method = self.method(name)
        make = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        stub = make("/%s/%s" % (method.containing_service.full_name, method.name),
                    request_serializer=lambda message: message.SerializeToString(),
                    response_deserializer=message_factory.GetMessageClass(method.output_type).FromString)
        run = stub.with_call if with_call else stub
        return run(request, timeout=timeout, metadata=(*self.metadata, *metadata), wait_for_ready=True)


def rest(address, path, body=None, headers=()):
    """(status, text) of an HTTP request; a POST if there is a body."""
    request = urllib.request.Request("http://%s%s" % (address, path), data=body, headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def models_folder():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
