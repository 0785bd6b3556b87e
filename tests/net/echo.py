"""Starts the echo server, and makes certificates for it with openssl's command."""

import contextlib
import shutil
import subprocess
import sys


def need(*programs):
    """Ends with 77, which skips the test, unless all programs are installed."""
    for program in programs:
        if not shutil.which(program):
            print(f"{program} is not installed")
            sys.exit(77)


@contextlib.contextmanager
def server(binary, *args):
    """Yields the ports of HTTP and of gRPC."""
    process = subprocess.Popen([binary, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield [int(port) for port in process.stdout.readline().split()]
        process.stdin.close()
        assert process.wait(60) == 0, process.returncode
    finally:
        process.kill()
        process.wait()


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def certificates(folder):
    """An authority, and a server's and a client's certificate of it; in PEM files."""
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
            "-keyout", "ca-key.pem", "-out", "ca.pem")
    (folder / "server.cnf").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    (folder / "client.cnf").write_text("basicConstraints=CA:FALSE\n")
    for name in ("server", "client"):
        openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem",
                "-out", f"{name}.csr")
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem",
                "-CAcreateserial", "-days", "2", "-extfile", f"{name}.cnf", "-out", f"{name}.pem")
