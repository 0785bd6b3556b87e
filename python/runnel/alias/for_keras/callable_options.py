"""Steps described by a CallableOptions message: feeds, fetches and targets by name, and tensors that stand in for others."""

from runnel import errors


def make_callable(session, options):
    """Returns a function of the values of `options.feed` that runs one step and returns the values of `options.fetch` as a list."""
    graph = session.graph
    feeds = [graph.as_graph_element(name, allow_operation=False) for name in options.feed]
    fetches = [graph.as_graph_element(name, allow_operation=False) for name in options.fetch]
    targets = [graph.as_graph_element(name, allow_tensor=False) for name in options.target]
    sources = [graph.as_graph_element(connection.from_tensor, allow_operation=False) for connection in options.tensor_connection]
    replaced = [graph.as_graph_element(connection.to_tensor, allow_operation=False) for connection in options.tensor_connection]
    if sources:
        _check_separable(sources, feeds, fetches, targets, replaced)
    run_options = options.run_options if options.HasField("run_options") else None

    def call(*values, run_metadata=None):
        if len(values) != len(feeds):
            raise TypeError("Expected %d arguments, one per feed, got %d" % (len(feeds), len(values)))
        given = dict(zip(feeds, values))
        if sources:
            given.update(zip(replaced, session.run(sources, given)))
        return session.run([fetches, targets], given, run_options, run_metadata)[0]

    return call


def _check_separable(sources, feeds, fetches, targets, replaced):
    """A step before the main one computes the stand-ins. That is the same as one step unless both would run a stateful op."""
    shared = _ancestors([t.op for t in sources], feeds) & _ancestors([t.op for t in fetches] + targets, feeds + replaced)
    for op in shared:
        if op.op_def.is_stateful:
            raise errors.UnimplementedError(None, op, "The step reads %s both through a tensor connection and directly" % op.name)


def _ancestors(ops, fed):
    """Returns the operations that a step of `ops` runs if `fed` is fed."""
    fed, seen, pending = set(map(id, fed)), set(), list(ops)
    while pending:
        op = pending.pop()
        if op not in seen:
            seen.add(op)
            pending += [t.op for t in op.inputs if id(t) not in fed]
            pending += op.control_inputs
    return seen
