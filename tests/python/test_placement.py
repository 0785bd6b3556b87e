"""runnel.placement, which stock does not have: costs of steps, sessions that place by them, the command."""

import time

import numpy as np
import pytest

import runnel as tf
from runnel import placement


def sleeper(seconds):
    def run(*_):
        time.sleep(seconds)
        return np.float32(1)

    return run


def towers(seconds=0.004):
    """Two chains of nodes that take time, over a variable each."""
    ends = []
    for c in range(2):
        variable = tf.Variable(float(c), name="v%d" % c)
        end = tf.assign_add(variable, 1.0, name="add%d" % c)
        for i in range(3):
            end = tf.py_func(sleeper(seconds), [end], tf.float32, name="n%d_%d" % (c, i))
        ends.append(end)
    return tf.add_n(ends, name="step"), tf.global_variables_initializer()


def config():
    made = tf.ConfigProto(device_count={"CPU": 2})
    made.intra_op_parallelism_threads = 1
    made.inter_op_parallelism_threads = 2
    return made


def devices_of(session, fetch):
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    session.run(fetch, options=options, run_metadata=metadata)
    return {
        node.node_name: device.device[-5:]
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    }


def measured(graph, step, init, folder):
    with tf.Session(graph=graph) as session:
        session.run(init)
        return placement.measure(session, step, steps=2, folder=str(folder))


def test_a_session_places_by_costs(tmp_path):
    with tf.Graph().as_default() as graph:
        step, init = towers()
    costs = measured(graph, step, init, tmp_path)
    assert len(costs) == 2
    asked = placement.options(config(), step, costs, threads=1, apart=True)
    with tf.Session(graph=graph, config=asked) as session:
        session.run(init)
        found = devices_of(session, step)
        assert found["n0_0"] == found["n0_1"] == found["n0_2"] == found["add0"]
        assert found["n1_0"] == found["n1_1"] == found["n1_2"] == found["add1"]
        assert found["n0_0"] != found["n1_0"]
        assert session.run("add1:0") == 3.0  # the second addition


def test_the_command_places_a_graph(tmp_path):
    with tf.Graph().as_default() as graph:
        step, init = towers()
    costs = measured(graph, step, init, tmp_path)
    picture = tmp_path / "step.svg"
    placed, result = placement.place(graph, step, ["CPU:0", "CPU:1"], costs, apart=True, timeline=str(picture))
    found = {node.name: node.device for node in placed.node}
    assert {found["n0_0"], found["n1_0"]} == {"/device:CPU:0", "/device:CPU:1"}
    assert found["v0"] == found["add0"]
    assert result["found_ns"] < 0.7 * result["before_ns"]
    assert "groups moved" in result["report"]
    assert picture.read_text().startswith("<svg")
    with tf.Graph().as_default() as again:
        tf.import_graph_def(placed, name="")
        with tf.Session(graph=again, config=config()) as session:
            session.run("init")
            assert session.run("step:0") == 2.0


def test_slow_links_keep_a_step_together(tmp_path):
    with tf.Graph().as_default() as graph:
        step, init = towers()
    costs = measured(graph, step, init, tmp_path)
    devices = ["/job:a/task:0/device:CPU:0", "/job:b/task:0/device:CPU:0"]
    _, slow = placement.place(graph, step, devices, costs, link=(1e6, 1))
    _, fast = placement.place(graph, step, devices, costs, link=(10, 10000))
    assert slow["found_ns"] == slow["before_ns"]
    assert fast["found_ns"] < 0.8 * fast["before_ns"]


def test_mistakes(tmp_path):
    with tf.Graph().as_default() as graph:
        step, _ = towers()
        damaged = tmp_path / "damaged"
        damaged.write_bytes(b"runnel-costs 1\nnode CPU a Relu")
        with pytest.raises(tf.errors.DataLossError, match="not complete"):
            tf.Session(config=placement.options(step=step, costs=[str(damaged)]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="speeds must be positive"):
            tf.Session(config=placement.options(speeds=[1, 0]))
        asked = placement.options()
        asked.graph_options.rewrite_options.custom_optimizers[0].parameter_map["cost"].s = b"x"
        with pytest.raises(tf.errors.InvalidArgumentError, match="no parameter 'cost'"):
            tf.Session(config=asked)
        with pytest.raises(ValueError, match="no node of that name|is no device"):
            placement.place(graph, step, ["CPU"])
        with pytest.raises(ValueError, match="at least 1"):
            placement.measure(None, step, steps=0)
