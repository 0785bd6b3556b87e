"""tf.distribute.cluster_resolver, as in stock."""

import contextlib
import json
import os

from both import both


@contextlib.contextmanager
def variables(**values):
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def outcome(call):
    try:
        return call()
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def described(resolver, **more):
    return [resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id, resolver.rpc_layer, resolver.environment, resolver.master(**more)]


@both(v2=True)
def test_simple(tf, np):
    r = tf.distribute.cluster_resolver
    spec = tf.train.ClusterSpec({"worker": ["a:1", "b:2"], "ps": ["c:3"]})
    one = r.SimpleClusterResolver(spec, master="m", task_type="worker", task_id=1, environment="e", num_accelerators={"GPU": 3}, rpc_layer="grpc")
    found = [described(one), one.num_accelerators(), described(r.SimpleClusterResolver(spec)), one.master("ps", 0), one.master("ps", 0, "x"), one.master("ps")]
    one.task_type, one.task_id, one.rpc_layer = "ps", 0, None
    return found + [described(one), outcome(lambda: r.SimpleClusterResolver({"worker": []})), outcome(lambda: r.SimpleClusterResolver(spec, master=3)),
                    r.SimpleClusterResolver(spec).num_accelerators()]


@both(v2=True)
def test_environment(tf, np):
    r = tf.distribute.cluster_resolver
    found = []
    config = {"cluster": {"worker": ["a:1", "b:2"], "ps": ["c:3"]}, "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"}
    for value in (None, "{}", json.dumps(config), json.dumps({**config, "session_master": "s"}), json.dumps({"cluster": {"worker": ["a:1"]}})):
        with variables(TF_CONFIG=value):
            found.append(outcome(lambda: described(r.TFConfigClusterResolver())))
            found.append(outcome(lambda: described(r.TFConfigClusterResolver("ps", 0, "other", "e"))))
            found.append(outcome(lambda: r.TFConfigClusterResolver().master("worker", 0, "z")))
    return found


@both(v2=True)
def test_union(tf, np):
    r = tf.distribute.cluster_resolver
    def one(jobs, **more):
        return r.SimpleClusterResolver(tf.train.ClusterSpec(jobs), **more)
    first, second = one({"worker": ["a:1"]}, master="m", task_type="worker", task_id=0, rpc_layer="grpc"), one({"worker": ["b:2"], "ps": ["c:3"]})
    return [described(r.UnionResolver(first, second)), described(r.UnionResolver(second, first, task_type="ps", task_id=2, rpc_layer="x")),
            r.UnionResolver(first, second).master("ps", 0), outcome(lambda: r.UnionResolver(first, one({"worker": {3: "d:4"}})).cluster_spec().as_dict()),
            outcome(lambda: r.UnionResolver(first, one({"worker": {0: "d:4", 2: "e:5"}})).cluster_spec()), outcome(lambda: r.UnionResolver()),
            outcome(lambda: r.UnionResolver(3)), outcome(lambda: r.UnionResolver(first, other=1))]


@both(v2=True)
def test_slurm(tf, np):
    r = tf.distribute.cluster_resolver
    found = []
    for tasks, nodes, per_node, rank in (("5", "t[02-04,7],n1", "1(x5)", "3"), ("6", "a[1-2],b", "2(x3)", "4"), ("3", "x,y", "2,1", "0")):
        with variables(SLURM_PROCID=rank, SLURM_STEP_NUM_TASKS=tasks, SLURM_STEP_NODELIST=nodes, SLURM_STEP_TASKS_PER_NODE=per_node, CUDA_VISIBLE_DEVICES="0,1"):
            one = r.SlurmClusterResolver(auto_set_gpu=False, gpus_per_task=1)
            found += [one.get_task_info(), one.cluster_spec().as_dict(), one.get_task_info(), one.master(), one.num_accelerators(), one.rpc_layer]
            jobs = {"ps": 1, "worker": int(tasks) - 1}
            two = r.SlurmClusterResolver(jobs, port_base=100, gpus_per_node=4, rpc_layer="x")
            found += [two.cluster_spec().as_dict(), two.get_task_info(), os.environ["CUDA_VISIBLE_DEVICES"], two.master("ps", 0)]
            found += [outcome(lambda: r.SlurmClusterResolver({"ps": 9}, gpus_per_node=2)), outcome(lambda: r.SlurmClusterResolver(gpus_per_node=1, gpus_per_task=2))]
    with variables(SLURM_PROCID=None):
        found.append(outcome(r.SlurmClusterResolver))
    return found


@both(v2=True)
def test_kubernetes(tf, np):
    r = tf.distribute.cluster_resolver

    class Record:
        def __init__(self, **values):
            self.__dict__.update(values)

    class Client:
        def list_pod_for_all_namespaces(self, label_selector):
            phase = "Pending" if label_selector == "late" else "Running"
            return Record(items=[Record(metadata=Record(name=name), status=Record(phase=phase, host_ip="10.0.%s" % label_selector[-1] + name)) for name in (".2", ".1")])
    one = r.KubernetesClusterResolver({"worker": ["job=1", "job=2"], "ps": ["job=3"]}, tf_server_port=77, override_client=Client())
    found = [one.cluster_spec().as_dict(), one.master(), one.master("ps", 1), one.task_type, one.rpc_layer]
    one.task_type, one.task_id = "worker", 1
    return found + [one.master(), outcome(lambda: r.KubernetesClusterResolver({"worker": ["late"]}, override_client=Client()).cluster_spec())]
