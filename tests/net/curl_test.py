"""curl as a client of the HTTP server: plain and over TLS, on its own port and on that of gRPC."""

import gzip
import pathlib
import subprocess
import sys
import tempfile

import echo

BINARY = sys.argv[1]


def curl(*args, code=0, data=None):
    result = subprocess.run(["curl", "-sS", "--max-time", "60", *map(str, args)], capture_output=True, input=data)
    assert (result.returncode == 0) == (code == 0), (args, result)
    return result.stdout


def check_plain(folder):
    (folder / "big").write_bytes(bytes(range(256)) * 20000)
    (folder / "packed").write_bytes(gzip.compress(b"packed" * 1000))
    with echo.server(BINARY, "--loops", 2) as ports:
        for port in ports:
            url = f"http://127.0.0.1:{port}/x"
            assert curl(url) == b"hello\n"
            assert curl("--http1.0", url) == b"hello\n"
            assert curl("--data", "body", url, url, url) == b"body" * 3
            assert b"200 OK" in curl("--head", url)
            assert curl("--data-binary", f"@{folder}/big", url) == (folder / "big").read_bytes()  # Expect: 100-continue
            assert curl("-H", "Transfer-Encoding: chunked", "--data-binary", f"@{folder}/big", url) == (
                folder / "big").read_bytes()
            assert curl("-H", "Content-Encoding: gzip", "--data-binary", f"@{folder}/packed", url) == b"packed" * 1000


def check_tls(folder):
    keys = ["--cert", folder / "server.pem", "--key", folder / "server-key.pem"]
    trust = ["--cacert", folder / "ca.pem"]
    mine = ["--cert", folder / "client.pem", "--key", folder / "client-key.pem"]
    with echo.server(BINARY, *keys) as ports:
        for port in ports:
            url = f"https://localhost:{port}/x"
            for version in ("--http1.1", "--tls-max", "--http1.1 --tlsv1.3"):
                more = [version, "1.2", "--http1.1"] if version == "--tls-max" else version.split()
                assert curl(*trust, *more, "--data", "body", url, url) == b"bodybody"
            curl("--http1.1", url, code=1)  # it does not trust the server
        # A client that may choose gets HTTP/1 on the port that has nothing else.
        assert curl(*trust, f"https://localhost:{ports[0]}/x") == b"hello\n"
        assert curl(*trust, "--http1.1", "--data-binary", f"@{folder}/big", f"https://localhost:{ports[0]}/x") == (
            folder / "big").read_bytes()
    with echo.server(BINARY, *keys, "--ca", folder / "ca.pem") as ports:
        url = f"https://localhost:{ports[0]}/x"
        assert curl(*trust, *mine, url) == b"hello\n"
        curl(*trust, url, code=1)
    text = [(folder / name).read_text() for name in ("server.pem", "server-key.pem", "ca.pem")]
    with echo.server(BINARY, "--cert", text[0] + text[2], "--key", text[1], "--ca", text[2]) as ports:
        assert curl(*trust, *mine, f"https://localhost:{ports[0]}/x") == b"hello\n"


echo.need("curl", "openssl")
with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    check_plain(place)
    echo.certificates(place)
    check_tls(place)
