"""tensorflow.python.client.timeline: the statistics of a step as a trace for chrome://tracing."""

import collections
import copy
import json
import re

AllocationMaximum = collections.namedtuple("AllocationMaximum", ("timestamp", "num_bytes", "tensors"))
StepStatsAnalysis = collections.namedtuple("StepStatsAnalysis", ("chrome_trace", "allocator_maximums"))


class _Trace:
    """Events of Chrome's trace format."""

    def __init__(self):
        self._names, self._events = [], []

    def process(self, name, pid):
        self._names.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})

    def event(self, kind, category, name, pid, tid, time, **more):
        self._events.append({"ph": kind, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": time, **more})

    def format_to_string(self, pretty=False):
        trace = {"traceEvents": self._names + self._events}
        if pretty:
            return json.dumps(trace, indent=4, separators=(",", ": "))
        return json.dumps(trace, separators=(",", ":"))


class _Output:
    """A tensor of the step: where and when it was computed, and when it was last read."""

    def __init__(self, number, allocator, size, start, end, pid, tid, device):
        self.number, self.allocator, self.size = number, allocator, size
        self.start, self.end, self.last = start, end, end
        self.pid, self.tid, self.device = pid, tid, device


def _label(text):
    """Returns (op, inputs) of "node = Op(inputs)"."""
    match = re.match(r"(.*) = (.*)\((.*)\)", text)
    if match is None:
        return "unknown", []
    return match.group(2), match.group(3).split(", ") if match.group(3) else []


class Timeline:
    """What ran when, by device.

    Args:
      step_stats: RunMetadata.step_stats of a traced step.
      graph: not used.
    """

    def __init__(self, step_stats, graph=None):
        self._given = step_stats

    def analyze_step_stats(self, show_dataflow=True, show_memory=True, op_time="schedule"):
        """Returns (trace, {allocator: AllocationMaximum})."""
        stats = self._given if op_time == "schedule" else copy.deepcopy(self._given)
        trace, outputs, flows = _Trace(), {}, iter(range(1 << 30))
        trace.process("Allocators", 0)
        for i, device in enumerate(stats.dev_stats):
            trace.process(device.device + " Compute", 2 * i + 1)
            trace.process(device.device + " Tensors", 2 * i + 2)
            _assign_lanes(device)
            for node in device.node_stats:
                _note_outputs(trace, outputs, node, 2 * i + 1, show_memory)
        for i, device in enumerate(stats.dev_stats):
            for node in device.node_stats:
                _show_node(trace, outputs, node, 2 * i + 1, flows if show_dataflow else None)
        return StepStatsAnalysis(trace, _show_memory(trace, outputs) if show_memory else {})

    def generate_chrome_trace_format(self, show_dataflow=True, show_memory=False, op_time="schedule"):
        """Returns the trace as JSON text."""
        return self.analyze_step_stats(show_dataflow, show_memory, op_time).chrome_trace.format_to_string(pretty=True)


def _assign_lanes(device):
    """Puts nodes that ran at the same time into separate rows."""
    ends = [0]
    for node in device.node_stats:
        lane = next((i for i, end in enumerate(ends) if node.all_start_micros > end), len(ends))
        ends[lane:lane + 1] = [node.all_start_micros + node.all_end_rel_micros]
        node.thread_id = lane


def _note_outputs(trace, outputs, node, pid, show_memory):
    start, end = node.all_start_micros, node.all_start_micros + node.all_end_rel_micros
    for index, output in enumerate(node.output):
        name = "%s:%d" % (node.node_name, index) if index else node.node_name
        allocation = output.tensor_description.allocation_description
        outputs[name] = made = _Output(len(outputs), allocation.allocator_name, allocation.requested_bytes, start, end,
                                       pid + 1, node.thread_id, pid)
        if show_memory:
            trace.event("N", "Tensor", name, pid + 1, node.thread_id, start, id=made.number)
            text = str(output.tensor_description).replace('"', "")
            trace.event("O", "Tensor", name, pid + 1, node.thread_id, end - 1, id=made.number,
                        args={"snapshot": {"tensor_description": text}})


def _show_node(trace, outputs, node, pid, flows):
    op, inputs = ("RecvTensor", []) if node.node_name == "RecvTensor" else _label(node.timeline_label)
    args = {"name": node.node_name, "op": op}
    args.update(("input%d" % i, name) for i, name in enumerate(inputs))
    start, tid = node.all_start_micros, node.thread_id
    trace.event("X", "Op", op, pid, tid, start, dur=node.all_end_rel_micros, args=args)
    for name in inputs:
        if name not in outputs and name.rfind("/_") > 0:  # received from another device
            name = name[:name.rfind("/_")]
        made = outputs.get(name)
        if made is None:
            continue
        made.last = max(made.last, start + node.all_end_rel_micros - 1)
        if flows is not None and (made.device, made.tid) != (pid, tid):
            number = next(flows)
            trace.event("s", "DataFlow", name, made.device, made.tid, made.end, id=number)
            trace.event("t", "DataFlow", name, pid, tid, start, id=number)


def _show_memory(trace, outputs):
    """Adds counters of the memory that allocators held. Returns their maxima."""
    changes = {}
    for name, made in outputs.items():
        trace.event("D", "Tensor", name, made.pid, 0, made.last, id=made.number)
        changes.setdefault(made.allocator, []).extend([(made.start, made.size, name), (made.last, -made.size, name)])
    maxima = {}
    for allocator, rows in changes.items():
        total, held = 0, set()
        maxima[allocator] = AllocationMaximum(0, 0, set())
        for time, size, name in sorted(rows):
            total += size
            (held.discard if size < 0 else held.add)(name)
            if total > maxima[allocator].num_bytes:
                maxima[allocator] = AllocationMaximum(time, total, set(held))
            trace.event("C", "Memory", allocator, 0, 0, time, args={allocator: total})
    return maxima
