"""Python's grpc as a client of the gRPC server: headers, trailers, TLS."""

import pathlib
import sys
import tempfile

import grpc

import echo

BINARY = sys.argv[1]


def call(channel, path="/service/echo", data=b"data", **options):
    return channel.unary_unary(path)(data, timeout=60, **options)


def check_metadata(channel):
    reply, state = channel.unary_unary("/service/echo").with_call(
        b"data", timeout=60, metadata=[("authorization", "Bearer abc"), ("x-other", "1")])
    trailers = dict(state.trailing_metadata())
    assert reply == b"data"
    assert trailers["runnel-marks"] == "local" and trailers["runnel-who"] == "Bearer abc", trailers
    try:
        call(channel, "/service/fail")
        raise AssertionError("it did not fail")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND and error.details() == "as you wish"
        assert dict(error.trailing_metadata())["runnel-marks"] == "local"


def check_compression(channel):
    for how in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        for data in (b"", b"x", b"data" * 100000):
            assert call(channel, data=data, compression=how) == data
    try:
        call(channel, data=bytes(70 << 20), compression=grpc.Compression.Gzip)  # a bomb: 1 to 1000
        raise AssertionError("it was decompressed")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error


def check_tls(folder):
    keys = ["--cert", folder / "server.pem", "--key", folder / "server-key.pem"]
    ca = (folder / "ca.pem").read_bytes()
    mine = [(folder / name).read_bytes() for name in ("client-key.pem", "client.pem")]
    with echo.server(BINARY, *keys) as ports:
        with grpc.secure_channel(f"localhost:{ports[1]}", grpc.ssl_channel_credentials(ca)) as channel:
            assert call(channel, data=b"x" * 1000000) == b"x" * 1000000
    with echo.server(BINARY, *keys, "--ca", folder / "ca.pem") as ports:
        with grpc.secure_channel(f"localhost:{ports[1]}", grpc.ssl_channel_credentials(ca, *mine)) as channel:
            assert call(channel) == b"data"
        with grpc.secure_channel(f"localhost:{ports[1]}", grpc.ssl_channel_credentials(ca)) as channel:
            try:
                call(channel)
                raise AssertionError("it needed no certificate")
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNAVAILABLE, error


for threads in (0, 2):
    with echo.server(BINARY, "--loops", 2, "--threads", threads) as ports:
        with grpc.insecure_channel(f"127.0.0.1:{ports[1]}") as channel:
            check_metadata(channel)
            check_compression(channel)
            futures = [channel.unary_unary("/service/echo").future(b"%d" % i, timeout=60) for i in range(500)]
            assert [future.result() for future in futures] == [b"%d" % i for i in range(500)]
echo.need("openssl")
with tempfile.TemporaryDirectory() as name:
    echo.certificates(pathlib.Path(name))
    check_tls(pathlib.Path(name))
