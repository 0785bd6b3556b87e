#!/usr/bin/env python3
"""Many requests to one `runnel serve`: soak.py --ours BUILD [--requests N] [--flips N]

memory  N requests over every protocol by turns: how much memory the server has at each tenth, and how much it grows by a
        million requests after the first three tenths
flips   N times, another version of the model takes the place of the one that is served, while requests come over REST and gRPC

Ends with 1 if a request failed, or if memory grows by more than a tenth from the third tenth to the last. A night's run:
soak.py --ours build/release --requests 10000000 --flips 1000
"""

import argparse
import pathlib
import signal
import sys
import tempfile
import threading
import time

import servers

MODELS = servers.ROOT / "tests" / "serve" / "models"
BODY = '{"instances": [1.0]}'
PROTOCOLS = ("rest", "grpc", "oip", "oip-grpc")


def port_of(server, protocol):
    return server.second if "grpc" in protocol else server.port


def slope(points):
    """Least squares over (requests, MB): MB per request."""
    count, x, y = len(points), sum(p[0] for p in points) / len(points), sum(p[1] for p in points) / len(points)
    spread = sum((p[0] - x) ** 2 for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / spread if count > 1 and spread else 0


def memory(runnel, requests):
    """Whether no request failed and memory stayed flat."""
    done, failed, points, seconds = 0, 0, [], 1.0
    with servers.Server(servers.ours(runnel, MODELS, "half_plus_two"), "/v1/models/half_plus_two:predict", BODY) as server:
        turn = 0
        while done < requests:
            protocol = PROTOCOLS[turn % len(PROTOCOLS)]
            turn += 1
            result = servers.load(runnel, port_of(server, protocol), "half_plus_two", "--protocol", protocol, "--seed", turn,
                                  seconds=seconds, warmup=0)
            done += result["answered"]
            failed += result["answered"] - result["ok"]
            # A tenth has at least one round of all protocols, and a round at least a fifth of a second each.
            rate = result["answered"] / seconds
            seconds = max(0.2, min(30, requests / 40 / max(rate, 1)))
            if done >= (len(points) + 1) * requests / 10:
                points.append((done, server.memory()))
                print("memory  %10d requests %7d failed %8.1f MB" % (done, failed, points[-1][1]), flush=True)
    late = points[3:] or points
    growth = slope(late) * 1e6
    print("memory  grows by %.3f MB per million requests" % growth)
    return failed == 0 and late[-1][1] <= 1.1 * late[0][1]


def config_of(version):
    return """model_config_list { config { name: "m" base_path: "%s" model_platform: "tensorflow"
      model_version_policy { specific { versions: %d } } } }""" % (MODELS / "half_plus_two_2_versions", version)


def flips(runnel, count, folder):
    file = folder / "models.pbtxt"
    file.write_text(config_of(123))
    command = [runnel, "serve", "--host=127.0.0.1", "--rest_api_port={port}", "--port={second}", f"--model_config_file={file}"]
    sums, is_over = {"answered": 0, "ok": 0}, threading.Event()

    def ask(server, protocol):
        while not is_over.is_set():
            result = servers.load(runnel, port_of(server, protocol), "m", "--protocol", protocol, "--rate", 200, seconds=2, warmup=0)
            for key in sums:
                sums[key] += result[key] if key == "ok" else result["sent"]

    begun = time.monotonic()
    with servers.Server(command, "/v1/models/m:predict", BODY) as server:
        threads = [threading.Thread(target=ask, args=(server, protocol)) for protocol in ("rest", "grpc")]
        for thread in threads:
            thread.start()
        try:
            for i in range(count):
                version = 124 - i % 2
                # Renamed, so that the server never reads half of it.
                (folder / "next").write_text(config_of(version))
                (folder / "next").rename(file)
                server.process.send_signal(signal.SIGHUP)
                while b'"version": "%d"' % version not in server.ask(f"/v1/models/m/versions/{version}")[1] or \
                        b'"AVAILABLE"' not in server.ask(f"/v1/models/m/versions/{version}")[1]:
                    time.sleep(0.002)
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
    print("flips   %d in %.0f s, %d requests, %d failed" %
          (count, time.monotonic() - begun, sums["answered"], sums["answered"] - sums["ok"]), flush=True)
    return sums["answered"] == sums["ok"] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--requests", type=int, default=1000000)
    parser.add_argument("--flips", type=int, default=100)
    options = parser.parse_args()
    runnel = servers.find_runnel(options.ours)
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        if options.flips:
            is_good &= flips(runnel, options.flips, pathlib.Path(folder))
        if options.requests:
            is_good &= memory(runnel, options.requests)
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
