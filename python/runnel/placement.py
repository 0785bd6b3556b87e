"""Placement by cost: measure a step, find devices for its nodes, run it there. See doc/placement.md.

TensorFlow has nothing of this kind, so `tf` does not have it either: `from runnel import placement`.
"""

import json
import os
import shutil
import subprocess
import tempfile

from runnel.core.graph_io import ConfigProto, GraphDef, RunMetadata, RunOptions

OPTIMIZER = "runnel_placement"


def _names(step):
    """Names of nodes: "a,b" of ops, tensors or names, one or several."""
    values = step if isinstance(step, (list, tuple)) else [step]
    return [str(getattr(value, "name", value)) for value in values]


def measure(session, fetches, feed_dict=None, steps=5, folder=None):
    """Runs a step with a full trace and returns the files that its costs are in.

    Args:
      session: a session, local or of a cluster; its variables are initialized.
      fetches: what the step runs.
      feed_dict: what it is fed.
      steps: how often it is traced; the costs are medians. One more step runs before.
      folder: where the files go; None for a new temporary folder, which the caller removes.

    Returns:
      The paths of the files, each with a RunMetadata: the argument `costs` of the functions below.
    """
    if steps < 1:
        raise ValueError("steps must be at least 1, not %r" % (steps,))
    folder = folder or tempfile.mkdtemp(prefix="runnel_costs_")
    os.makedirs(folder, exist_ok=True)
    session.run(fetches, feed_dict)
    files = []
    for number in range(steps):
        metadata = RunMetadata()
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        session.run(fetches, feed_dict, options=options, run_metadata=metadata)
        files.append(os.path.join(folder, "step-%d.pb" % number))
        with open(files[-1], "wb") as file:
            file.write(metadata.SerializeToString())
    return files


def options(config=None, step=None, costs=(), threads=None, apart=None, speeds=None, margin=None):
    """A ConfigProto with which a local session places its graph by cost.

    Args:
      config: the ConfigProto to extend, which is changed; None for a new one.
      step: what the step that matters runs, as ops, tensors or names; None for the whole graph.
      costs: files of `measure` or of `runnel place --save-costs`.
      threads: nodes that run at a time; None for what the session has.
      apart: whether each device has threads of its own.
      speeds: the speed of each device, relative to where costs were measured.
      margin: how much faster than the client's placement another must be: 0.03 is 3 %.
    """
    config = ConfigProto() if config is None else config
    asked = config.graph_options.rewrite_options.custom_optimizers.add()
    asked.name = OPTIMIZER
    parameters = asked.parameter_map
    if step is not None:
        parameters["step"].s = ",".join(_names(step)).encode()
    if costs:
        parameters["costs"].s = ",".join([costs] if isinstance(costs, str) else costs).encode()
    if speeds is not None:
        parameters["speeds"].s = ",".join("%r" % float(speed) for speed in speeds).encode()
    if threads is not None:
        parameters["threads"].i = threads
    if apart is not None:
        parameters["apart"].b = apart
    if margin is not None:
        parameters["margin"].f = margin
    return config


def _command():
    """The command `runnel`: of the build folder, else beside Python, else on the path."""
    build = os.environ.get("RUNNEL_BUILD")
    tree = os.path.join(os.path.dirname(__file__), "..", "..", "build", "release")
    for folder in [build, tree]:
        path = folder and os.path.join(folder, "cli", "runnel")
        if path and os.access(path, os.X_OK):
            return path
    found = shutil.which("runnel")
    if not found:
        raise FileNotFoundError("the command runnel is not on the path; it searches placements")
    return found


def _call(arguments):
    done = subprocess.run([_command(), "place"] + arguments, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip() or "runnel place failed")
    return done.stdout


def place(graph, step, devices, costs=(), link=None, threads=None, apart=False, timeline=None):
    """Finds devices for the nodes of a step.

    Args:
      graph: a Graph or a GraphDef.
      step: the nodes that the step runs, as ops, tensors or names.
      devices: names of devices, as `runnel place --devices` takes them: "CPU:1*0.5@2G".
      costs: files of `measure` or of `runnel place --save-costs`.
      link: latency in microseconds and megabytes per second between tasks.
      threads: nodes that run at a time on the CPUs of each task.
      apart: whether each device has threads of its own.
      timeline: file for a picture of the step.

    Returns:
      A GraphDef with devices, and a dict: what `runnel place --json` prints, and the text of
      `--report` as "report".
    """
    graph_def = graph.as_graph_def() if hasattr(graph, "as_graph_def") else graph
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "graph.pb"), os.path.join(folder, "placed.pb")
        with open(before, "wb") as file:
            file.write(graph_def.SerializeToString())
        arguments = [before, "--devices", ",".join(devices)]
        for name in _names(step):
            arguments += ["--target", name.partition(":")[0]]
        for path in [costs] if isinstance(costs, str) else costs:
            arguments += ["--costs", path]
        arguments += ["--link", "%g,%g" % tuple(link)] if link else []
        arguments += ["--threads", str(threads)] if threads else []
        arguments += ["--apart"] if apart else []
        extra = ["--timeline", timeline] if timeline else []
        result = json.loads(_call(arguments + ["--json", "--out", after] + extra))
        result["report"] = _call(arguments + ["--report"])
        placed = GraphDef()
        with open(after, "rb") as file:
            placed.ParseFromString(file.read())
    return placed, result
