"""Clusters that clients give with their sessions (ConfigProto.cluster_def): given_test.py RUNNEL, with RUNNEL_BUILD in the environment.

Every server is started alone, at a port of the system's choice, and knows no other. Masters and workers are ours and stock's, by turns.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(HERE)), "python"), os.path.dirname(HERE)]

import runnel as tf
from support import stock

RUNNEL = sys.argv[1]


class Ours:
    def __init__(self, *options, job="local"):
        command = [RUNNEL, "server", "--cluster", job + "=127.0.0.1:0", "--job", job, "--lease", "2", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.target = self.process.stdout.readline().strip()
        assert self.target.startswith("grpc://"), self.target
        self.address = self.target[len("grpc://"):]

    def close(self):
        self.process.kill()
        self.process.wait()


class Stock:
    def __init__(self):
        self.process = stock.Server(json.dumps({"local": ["127.0.0.1:0"]}), "local", 0)
        self.target = self.process.stdout.readline().strip()
        self.address = self.target[len("grpc://"):]

    def close(self):
        self.process.kill()
        self.process.wait()


def config(shares=False, **jobs):
    made = tf.ConfigProto()
    for name, servers in jobs.items():
        job = made.cluster_def.job.add(name=name)
        for number, server in enumerate(servers):
            job.tasks[number] = server.address
    made.experimental.share_session_state_in_clusterspec_propagation = shares
    return made


def crossing(job="worker", tasks=2):
    """A value that goes through all tasks, from the last one to the first, which has a variable."""
    value = tf.constant(1.0)
    for task in reversed(range(tasks)):
        with tf.device("/job:%s/task:%d/cpu:0" % (job, task)):
            value = tf.identity(value) * 2.0 + task
    with tf.device("/job:%s/task:%d/cpu:0" % (job, tasks - 1)):
        total = tf.Variable(0.0, use_resource=True, name="total")
    return total.initializer, total.assign_add(value)


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("%s was expected: %s" % (kind.__name__, text))


def test_tasks_get_names_and_exchange_values(first, second):
    with tf.Graph().as_default():
        start, step = crossing()
        with tf.Session(first.target, config=config(worker=[first, second])) as session:
            session.run(start)
            assert [session.run(step) for _ in range(3)] == [6.0, 12.0, 18.0]
            names = [device.name for device in session.list_devices() if ":CPU:" in device.name]
            assert names == ["/job:worker/replica:0/task:%d/device:CPU:0" % i for i in range(2)], names


def test_the_master_may_have_any_number(first, second):
    with tf.Graph().as_default():
        start, step = crossing("ps")
        with tf.Session(second.target, config=config(ps=[first, second])) as session:
            session.run(start)
            assert session.run(step) == 6.0


def test_sessions_have_their_own_state(first, second):
    with tf.Graph().as_default():
        start, step = crossing()
        one = tf.Session(first.target, config=config(worker=[first, second]))
        two = tf.Session(first.target, config=config(worker=[first, second]))
        other = tf.Session(second.target, config=config(worker=[first, second]))
        for session in (one, two, other):
            session.run(start)
        assert [one.run(step), one.run(step), two.run(step), other.run(step), one.run(step)] == [6.0, 12.0, 6.0, 6.0, 18.0]
        for session in (one, two, other):
            session.close()


def test_loops_and_partial_runs_cross_tasks(first, second):
    with tf.Graph().as_default():
        def body(i, x):
            with tf.device("/job:worker/task:1/cpu:0"):
                x = x + 2.0
            return i + 1, x
        with tf.device("/job:worker/task:0/cpu:0"):
            looped = tf.while_loop(lambda i, x: i < 5, body, [0, 1.0])[1]
            fed = tf.placeholder(tf.float32, [])
        with tf.device("/job:worker/task:1/cpu:0"):
            doubled = fed * 2.0
        with tf.Session(first.target, config=config(worker=[first, second])) as session:
            assert session.run(looped) == 11.0
            handle = session.partial_run_setup([doubled], [fed])
            assert session.partial_run(handle, doubled, {fed: 4.0}) == 8.0


def test_workers_join_and_leave(home, *others):
    """The client gives another cluster with each session; the variable stays on the server that has it."""
    for count in (1, 3, 2):
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0/cpu:0"):
                total = tf.Variable(0.0, use_resource=True, name="total")
            with tf.device("/job:worker/task:%d/cpu:0" % (count - 1)):
                step = total.assign_add(tf.constant(float(count)))
            with tf.Session(home.target, config=config(shares=True, ps=[home], worker=others[:count])) as session:
                if count == 1:
                    session.run(total.initializer)
                session.run(step)
                last = session.run(total)
    assert last == 6.0, last


def test_mistakes_have_answers(first, second, closed):
    def opened(target, **jobs):
        with tf.Graph().as_default():
            one = tf.constant(1)
            with tf.Session(target, config=config(**jobs)) as session:
                return session.run(one)
    raises(tf.errors.InvalidArgumentError, "is not included in the provided cluster_def", lambda: opened(first.target, worker=[second]))
    raises(tf.errors.InvalidArgumentError, "Found multiple matching tasks", lambda: opened(first.target, worker=[first, first]))
    raises(tf.errors.PermissionDeniedError, "--allow network", lambda: opened(closed.target, worker=[closed, first]))
    assert opened(closed.target, worker=[closed]) == 1


def test_a_task_that_dies_is_named(first):
    victim = Ours("--allow", "network")
    with tf.Graph().as_default():
        start, step = crossing()
        with tf.Session(first.target, config=config(worker=[first, victim])) as session:
            session.run(start)
            assert session.run(step) == 6.0
            victim.close()
            raises(tf.errors.UnavailableError, "/job:worker/replica:0/task:1", lambda: session.run(step))


def main():
    network = ("--allow", "network")
    ours = [Ours(*network), Ours(*network)]
    test_tasks_get_names_and_exchange_values(*ours)
    test_the_master_may_have_any_number(*ours)
    test_sessions_have_their_own_state(*ours)
    test_loops_and_partial_runs_cross_tasks(*ours)
    test_a_task_that_dies_is_named(ours[0])
    closed = Ours()
    test_mistakes_have_answers(*ours, closed)
    more = [Ours(*network), Ours(*network, job="ps")]
    test_workers_join_and_leave(more[1], *ours, more[0])
    test_workers_join_and_leave(more[0], *ours, more[1])
    if stock.is_there():
        theirs = Stock()
        test_tasks_get_names_and_exchange_values(ours[0], theirs)
        test_tasks_get_names_and_exchange_values(theirs, ours[0])
        theirs.close()
    for server in ours + more + [closed]:
        server.close()


if __name__ == "__main__":
    main()
