#!/usr/bin/env python3
"""Stock TensorFlow's clients, dispatcher and workers with ours: stock_test.py RUNNEL"""

import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from servers import Server

RUNNEL = sys.argv[1]
service = tf.data.experimental.service
Dataset = tf.data.Dataset


def check(condition, *what):
    if not condition:
        print("FAILED in line %d:" % sys._getframe(1).f_lineno, *what)
        sys.exit(1)


class Cluster:
    """A dispatcher and workers of ours."""

    def __init__(self, workers, *options):
        self.dispatcher = Server(RUNNEL, *options)
        self.target = "grpc://" + self.dispatcher.address
        self.workers = [self.worker() for _ in range(workers)]

    def worker(self):
        return Server(RUNNEL, "--dispatcher", self.dispatcher.address, "--heartbeat=100")

    def read(self, dataset, mode="parallel_epochs", **options):
        return dataset.apply(service.distribute(mode, self.target, **options))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        codes = [each.stop() for each in (*self.workers, self.dispatcher)]
        check(kind or codes == [0] * len(codes), "exit statuses", codes)


def numbers(dataset):
    return [int(each) for each in dataset]


def part_elements():
    """Every worker gives all elements, compressed or not, of several components and types."""
    with Cluster(2) as cluster:
        for compression in ("AUTO", None):
            made = Dataset.range(10).map(lambda x: (x * x, tf.strings.as_string(x), tf.fill([2, x], 1.5)))
            found = sorted((int(a), b.numpy(), c.shape[1]) for a, b, c in cluster.read(made, compression=compression))
            expected = sorted(2 * [(x * x, b"%d" % x, x) for x in range(10)])
            check(found == expected, compression, found)
        check(numbers(cluster.read(Dataset.range(0))) == [])


def part_names():
    """Datasets by name; consumers that share a job get each element once per worker."""
    with Cluster(1) as cluster:
        service.register_dataset(cluster.target, Dataset.range(5), dataset_id="mine")
        check(numbers(service.from_dataset_id("parallel_epochs", cluster.target, "mine")) == list(range(5)))
        try:
            numbers(service.from_dataset_id("parallel_epochs", cluster.target, "other", element_spec=tf.TensorSpec([], tf.int64)))
            check(False, "there is no such dataset")
        except tf.errors.NotFoundError as error:
            check("Dataset id other not found" in str(error), error)
        iterators = [iter(cluster.read(Dataset.range(1000), job_name="shared", max_outstanding_requests=1)) for _ in range(2)]
        found = []
        while iterators:
            for iterator in list(iterators):
                try:
                    found.append(int(next(iterator)))
                except StopIteration:
                    iterators.remove(iterator)
        check(sorted(found) == list(range(1000)), len(found))


def part_errors():
    """An element that fails is an error with its message; the other elements come."""
    with Cluster(1) as cluster:
        made = Dataset.range(3).map(lambda x: tf.debugging.check_numerics(1.0 / tf.cast(x, tf.float32), "bad element"))
        iterator = iter(cluster.read(made))
        try:
            next(iterator)
            check(False, "no error")
        except tf.errors.InvalidArgumentError as error:
            check("bad element" in str(error), error)


def part_rounds():
    """Coordinated reads: in each round every consumer gets an element of the same worker."""
    with Cluster(2) as cluster:
        made = Dataset.range(1 << 40).repeat().map(lambda x: x // 3)
        consumers = [iter(cluster.read(made, job_name="rounds", consumer_index=i, num_consumers=3)) for i in range(3)]
        import concurrent.futures
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for _ in range(20):
                values = list(pool.map(lambda each: int(next(each)), consumers))
                check(len(set(values)) == 1, values)
        finite = cluster.read(Dataset.range(10), job_name="finite", consumer_index=0, num_consumers=1)
        try:
            numbers(finite)
            check(False, "a finite dataset in rounds")
        except tf.errors.FailedPreconditionError as error:
            check("Round robin reads require that the input dataset has infinite" in str(error), error)


def part_cache():
    """With the cross-trainer cache every trainer gets all elements."""
    with Cluster(1) as cluster:
        def trainer(name):
            cache = service.CrossTrainerCache(trainer_id=name)
            return cluster.read(Dataset.range(1 << 40).repeat(), job_name="cached", cross_trainer_cache=cache, max_outstanding_requests=1)

        check(numbers(trainer("a").take(20)) == list(range(20)))
        check(numbers(trainer("b").take(20)) == list(range(20)))


def part_dynamic():
    """Our dispatcher gives splits to our worker and to stock's: each element comes once."""
    with Cluster(1) as cluster:
        workers = [service.WorkerServer(service.WorkerConfig(cluster.dispatcher.address, heartbeat_interval_ms=100))]
        made = Dataset.range(5, 50, 3).concatenate(Dataset.from_tensor_slices(tf.range(100, 120, dtype=tf.int64)))
        expected = [*range(5, 50, 3), *range(100, 120)]
        check(sorted(numbers(cluster.read(made.repeat(2), "distributed_epoch"))) == sorted(2 * expected))
        del workers


def part_stock_dispatcher():
    """Our workers with stock's dispatcher."""
    dispatcher = service.DispatchServer(service.DispatcherConfig(worker_addresses=["localhost", "localhost"]))
    address = dispatcher.target.partition("://")[2]
    workers = [Server(RUNNEL, "--dispatcher", address, "--heartbeat=100") for _ in range(2)]

    def read(dataset, policy):
        return sorted(numbers(dataset.apply(service.distribute(policy, dispatcher.target))))

    check(read(Dataset.range(20), service.ShardingPolicy.OFF) == sorted(2 * list(range(20))))
    check(read(Dataset.range(20), service.ShardingPolicy.DATA) == list(range(20)))
    check(read(Dataset.range(20).repeat(2), service.ShardingPolicy.DYNAMIC) == sorted(2 * list(range(20))))
    check(read(Dataset.range(20), service.ShardingPolicy.FILE_OR_DATA) == list(range(20)))
    hinted = Dataset.range(20).shard(tf.data.experimental.SHARD_HINT, tf.data.experimental.SHARD_HINT)
    check(read(hinted, service.ShardingPolicy.HINT) == list(range(20)))
    for each in workers:
        check(each.stop() == 0)
    dispatcher._stop()


def part_restarts():
    """A worker that is killed and comes back goes on; so does a dispatcher with a journal."""
    with tempfile.TemporaryDirectory() as folder, Cluster(1, "--work-dir", folder, "--fault-tolerant") as cluster:
        made = Dataset.range(1 << 40)
        iterator = iter(cluster.read(made, max_outstanding_requests=1))
        check([int(next(iterator)) for _ in range(10)] == list(range(10)))
        cluster.workers[0].kill()
        cluster.workers[0].restart()
        # The task begins again. An element that was on its way may come before.
        values = [int(next(iterator)) for _ in range(20)]
        check(0 in values and values[-1] == values[values.index(0):][-1] == len(values) - values.index(0) - 1, values)
        service.register_dataset(cluster.target, Dataset.range(7), dataset_id="kept")
        cluster.dispatcher.kill()
        cluster.dispatcher.restart()
        following = [int(next(iterator)) for _ in range(5)]
        check(following == list(range(values[-1] + 1, values[-1] + 6)), following)
        check(numbers(service.from_dataset_id("parallel_epochs", cluster.target, "kept")) == list(range(7)))
        added = cluster.worker()  # a worker that joins later takes part
        cluster.workers.append(added)
        check(sorted(numbers(cluster.read(Dataset.range(7)))) == sorted(2 * list(range(7))))


def main():
    for name, part in list(globals().items()):
        if name.startswith("part_"):
            print(name, flush=True)
            part()


main()
