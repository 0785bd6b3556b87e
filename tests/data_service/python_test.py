#!/usr/bin/env python3
"""tf.data.experimental.service of the Python client, with our servers and with stock's: python_test.py RUNNEL STOCK"""

import subprocess
import sys
import tempfile

import runnel.v2 as tf
from servers import Server

RUNNEL, STOCK = sys.argv[1:3]
service = tf.data.experimental.service
Dataset = tf.data.Dataset

# Stock's dispatcher and two workers; they end with their input.
STOCK_SERVERS = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
s = tf.data.experimental.service
d = s.DispatchServer()
w = [s.WorkerServer(s.WorkerConfig(d.target.split("://")[1], heartbeat_interval_ms=100)) for _ in range(2)]
print(d.target, flush=True)
sys.stdin.read()
"""


def check(condition, *what):
    if not condition:
        print("FAILED in line %d:" % sys._getframe(1).f_lineno, *what)
        sys.exit(1)


def numbers(dataset):
    return [int(each) for each in dataset]


def read(dataset, target, mode="parallel_epochs", **options):
    return dataset.apply(service.distribute(mode, target, **options))


def check_service(target, workers):
    for compression in ("AUTO", None):
        made = Dataset.range(10).map(lambda x: {"square": x * x, "text": (tf.strings.as_string(x), tf.fill([2, 3], 0.5))})
        found = sorted((int(e["square"]), e["text"][0].numpy(), e["text"][1].shape[1]) for e in read(made, target, compression=compression))
        check(found == sorted(workers * [(x * x, b"%d" % x, 3) for x in range(10)]), compression, found)
    check(sorted(numbers(read(Dataset.range(7), target).map(lambda x: x + 1))) == sorted(workers * list(range(1, 8))))
    twice = read(Dataset.range(4), target)
    check([sorted(numbers(twice)) for _ in range(2)] == 2 * [sorted(workers * list(range(4)))])
    service.register_dataset(target, Dataset.range(5), dataset_id="mine")
    check(sorted(numbers(service.from_dataset_id("parallel_epochs", target, "mine"))) == sorted(workers * list(range(5))))
    parts = Dataset.range(5, 50, 3).concatenate(Dataset.from_tensor_slices(tf.range(100, 120, dtype=tf.int64)))
    expected = [*range(5, 50, 3), *range(100, 120)]
    check(sorted(numbers(read(parts.repeat(2), target, "distributed_epoch"))) == sorted(2 * expected))
    zipped = Dataset.zip((Dataset.range(10), Dataset.from_tensor_slices([b"a", b"b", b"c"]).repeat()))
    check(sorted(int(a) for a, _ in read(zipped, target, "distributed_epoch")) == list(range(10)))
    rounds = read(Dataset.range(1 << 40).repeat(), target, job_name="rounds", consumer_index=0, num_consumers=1)
    check(numbers(rounds.take(3 * workers)) == sorted(workers * list(range(3))))
    cached = read(Dataset.range(1 << 40).repeat(), target, job_name="cached", cross_trainer_cache=service.CrossTrainerCache("a"))
    check(len(numbers(cached.take(10))) == 10)
    failing = Dataset.range(3).map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x, tf.float32), "bad element"))
    try:
        list(read(failing, target))
        check(False, "no error")
    except tf.errors.InvalidArgumentError as error:
        check("bad element" in str(error), error)


def part_own_servers():
    dispatcher = service.DispatchServer()
    workers = [service.WorkerServer(service.WorkerConfig(dispatcher._address, heartbeat_interval_ms=100)) for _ in range(2)]
    check(dispatcher._num_workers() == 2)
    check_service(dispatcher.target, 2)
    for each in (*workers, dispatcher):
        each.stop()


def part_stock_servers():
    process = subprocess.Popen([STOCK, "-c", STOCK_SERVERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target = process.stdout.readline().strip()
    check(target, "stock's servers did not start")
    check_service(target, 2)
    process.stdin.close()
    process.wait(timeout=60)


def part_restarts():
    with tempfile.TemporaryDirectory() as folder:
        dispatcher = Server(RUNNEL, "--work-dir", folder, "--fault-tolerant")
        worker = Server(RUNNEL, "--dispatcher", dispatcher.address, "--heartbeat=100")
        iterator = iter(read(Dataset.range(1 << 40), "grpc://" + dispatcher.address, max_outstanding_requests=1))
        check([int(next(iterator)) for _ in range(5)] == list(range(5)))
        worker.kill()
        worker.restart()
        values = [int(next(iterator)) for _ in range(20)]
        check(0 in values, values)
        dispatcher.kill()
        dispatcher.restart()
        after = [int(next(iterator)) for _ in range(5)]
        check(after == list(range(values[-1] + 1, values[-1] + 6)), after)
        del iterator
        check([worker.stop(), dispatcher.stop()] == [0, 0])


def main():
    for name, part in list(globals().items()):
        if name.startswith("part_"):
            print(name, flush=True)
            part()
    sys.stdout.flush()


main()
