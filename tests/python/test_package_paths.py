"""Names that packages for 1.x import from tensorflow.python: decorators, deprecation, evaluation, timelines."""

import json
import os
import subprocess
import sys

import pytest

from both import ROOT
from support import stock

UTIL = '''
import functools
from tensorflow.python.util import (
    all_util, deprecation, function_utils, keyword_args, object_identity, tf_contextlib, tf_decorator, tf_inspect)

def tracing(target):
    def wrapper(*args, **kwargs):
        return target(*args, **kwargs)
    return tf_decorator.make_decorator(target, wrapper)

@tracing
def f(a, b=2, *rest, **more):
    return a + b

print(f(1), f.__name__, tf_decorator.unwrap(f)[1] is not f, [d.decorator_name for d in tf_decorator.unwrap(f)[0]])
print(tuple(tf_inspect.getfullargspec(f))[:4], list(function_utils.fn_args(f)), function_utils.has_kwargs(f))
print(tf_inspect.getargspec(functools.partial(f, b=3)).args, function_utils.get_func_name(f))

@tf_contextlib.contextmanager
def inside(x):
    yield x + 1

with inside(1) as y:
    print(y, tf_inspect.getfullargspec(inside).args)

@deprecation.deprecated("2031-01-01", "Use another.")
def old(x):
    return x

@deprecation.deprecated_args(None, "Use axis.", "dim")
def reduce(x, axis=None, dim=None):
    return x, deprecation.deprecated_argument_lookup("axis", axis, "dim", dim)

print(old(3), reduce(1, dim=4), reduce(1, 5))
for wrong in (lambda: deprecation.deprecated_argument_lookup("axis", 1, "dim", 2), lambda: deprecation.deprecated("soon", "x"),
              lambda: keyword_args.keyword_args_only(old)(3)):
    try:
        wrong()
    except ValueError as error:
        print(error)
a, b = [1], [1]
table = object_identity.ObjectIdentityDictionary()
table[a] = "a"
found = object_identity.ObjectIdentitySet([a])
print(len(table), b in table, a in table, b in found, a in found)
'''

EVALUATE = '''
import os, sys, tempfile
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.python.training import evaluation
folder = tempfile.mkdtemp()
with tf.Graph().as_default(), tf.Session() as sess:
    v = tf.get_variable("v", initializer=3.0)
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(sess, os.path.join(folder, "model"))
for ops in (lambda x: x, lambda x: [x], lambda x: {"x": x}):
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", initializer=0.0)
        seen = tf.get_variable("seen", initializer=0.0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
        result = evaluation._evaluate_once(path, eval_ops=ops(tf.assign_add(seen, v)), final_ops=seen + 0.5,
                                           hooks=[evaluation._StopAfterNEvalsHook(4, log_progress=False)])
        print(float(result), [w.name for w in tf.local_variables()], evaluation._get_or_create_eval_step().name)
'''

TIMELINE = '''
import json
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.python.client import timeline
x = tf.placeholder(tf.float32, [8, 8])
y = tf.reduce_sum(tf.matmul(x, x))
with tf.Session() as sess:
    data = tf.RunMetadata()
    sess.run(y, {x: np.ones((8, 8))}, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=data)
trace = json.loads(timeline.Timeline(data.step_stats).generate_chrome_trace_format(show_memory=True))
events = trace["traceEvents"]
print(json.dumps([[e["args"]["name"] for e in events if e["ph"] == "M"],
                  sorted(e["args"]["name"] for e in events if e["ph"] == "X" and e["args"]["name"] in ("MatMul", "Sum")),
                  sorted({tuple(sorted(e)) for e in events if e["ph"] == "X"})]))
'''

FLOW = '''
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.python.ops import control_flow_ops, control_flow_util
found = []
def body(i):
    y = tf.cond(i > 1, lambda: i + 1, lambda: i + 2)
    found.append(y.op)
    return y
r = tf.while_loop(lambda i: i < 5, body, [0])
op = found[0]
print(control_flow_util.IsInWhileLoop(op), control_flow_util.IsInCond(op), control_flow_util.IsInWhileLoop(r.op))
print(control_flow_util.IsMerge(op), control_flow_util.IsCondMerge(op), control_flow_util.IsLoopExit(r.op))
kinds = [(o.type, control_flow_util.IsCondSwitch(o), control_flow_util.IsLoopSwitch(o), control_flow_util.IsLoopMerge(o))
         for o in tf.get_default_graph().get_operations() if o.type in ("Switch", "Merge") and o.name != "while/cond/Switch"]
print(sorted(kinds))
no, yes = control_flow_ops.switch(tf.constant(3), tf.constant(True))
value, index = control_flow_ops.merge([no + 1, yes + 2])
with tf.Session() as sess:
    print(sess.run([value, index]), value.op.name, no.op.name)
'''

WALK = '''
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.python.ops.op_selector import get_backward_walk_ops
a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
c = tf.add(a, b, name="c")
with tf.control_dependencies([tf.no_op("n")]):
    d = tf.multiply(c, c, name="d")
e = tf.exp(d, name="e")
for options in ({}, {"inclusive": False}, {"control_inputs": True}, {"stop_at_ts": [c]}, {"within_ops": [c.op, d.op, e.op]}):
    print(sorted(op.name for op in get_backward_walk_ops([e.op], **options)))
'''


@pytest.mark.parametrize("name", ["util", "evaluate", "timeline", "flow", "walk"])
def test_script(name, tmp_path):
    script = globals()[name.upper()]
    path = tmp_path / "script.py"
    path.write_text(script)
    ours = subprocess.run([sys.executable, "-m", "runnel", str(path)], stdout=subprocess.PIPE, text=True, check=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))).stdout
    stocks = stock.printed("package_paths/" + name, script, TF_USE_LEGACY_KERAS="1")
    if name == "timeline":
        ours, stocks = json.loads(ours), json.loads(stocks)
    assert ours == stocks
