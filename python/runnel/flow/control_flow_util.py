"""Finds the loop or conditional that an operation is in (tensorflow.python.ops.control_flow_util)."""


def IsInXLAContext(op):
    """Returns False: XLA is not supported."""
    return False


InXlaContext = GraphOrParentsInXlaContext = IsInXLAContext


def GetContainingXLAContext(ctxt):
    """Returns None: XLA is not supported."""
    return None


def GetContainingWhileContext(ctxt, stop_ctxt=None):
    """Returns the innermost loop around a context, or None if the search reaches `stop_ctxt`."""
    while ctxt is not None and not ctxt.IsWhileContext():
        if ctxt is stop_ctxt:
            return None
        ctxt = ctxt.outer_context
    return ctxt


def GetContainingCondContext(ctxt):
    """Returns the innermost conditional around a context, or None."""
    while ctxt is not None and not ctxt.IsCondContext():
        ctxt = ctxt.outer_context
    return ctxt


def GetWhileContext(op):
    """Returns the loop that an operation is in, or None."""
    return GetContainingWhileContext(op._get_control_flow_context())


def IsInWhileLoop(op):
    """Tells whether an operation is in a loop."""
    return GetWhileContext(op) is not None


def IsInCond(op):
    """Tells whether an operation is in a conditional."""
    return GetContainingCondContext(op._get_control_flow_context()) is not None


def GetOutputContext(op):
    """Returns the context of an operation's outputs; those of an Exit are outside its loop."""
    context = op._get_control_flow_context()
    return context.outer_context if context is not None and IsLoopExit(op) else context


def IsContainingContext(ctxt, maybe_containing_ctxt):
    """Tells whether `maybe_containing_ctxt` is `ctxt` or contains it."""
    while ctxt not in (None, maybe_containing_ctxt):
        ctxt = ctxt.outer_context
    return ctxt is maybe_containing_ctxt


def OpInContext(op, ctxt):
    """Tells whether an operation is in a context or inside it."""
    return IsContainingContext(op._get_control_flow_context(), ctxt)


def TensorInContext(tensor, ctxt):
    """Tells whether a tensor is in a context or inside it."""
    return OpInContext(tensor.op, ctxt)


def IsSwitch(op):
    """Tells whether an operation is a Switch."""
    return op.type in ("Switch", "RefSwitch")


def IsMerge(op):
    """Tells whether an operation is a Merge."""
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op):
    """Tells whether an operation is an Enter."""
    return op.type in ("Enter", "RefEnter")


def IsLoopExit(op):
    """Tells whether an operation is an Exit."""
    return op.type in ("Exit", "RefExit")


def IsLoopConstantEnter(op):
    """Tells whether an operation is the Enter of a loop invariant."""
    return IsLoopEnter(op) and op.get_attr("is_constant")


def GetLoopConstantEnter(value):
    """Returns the Enter of the loop invariant that `value` comes from, or None."""
    op = value.op
    while op.type in ("Identity", "RefIdentity", "Switch", "RefSwitch"):
        op = op.inputs[0].op
    return op if IsLoopConstantEnter(op) else None


def IsLoopSwitch(op):
    """Tells whether a Switch ends an iteration of a loop."""
    context = op._get_control_flow_context()
    return IsSwitch(op) and context is not None and context.IsWhileContext() and not IsCondSwitch(op)


def IsLoopMerge(op):
    """Tells whether a Merge begins an iteration of a loop."""
    context = op._get_control_flow_context()
    return IsMerge(op) and context is not None and context.IsWhileContext() and not IsCondMerge(op)


def IsCondSwitch(op):
    """Tells whether a Switch brings a value into a branch."""
    def place(consumer):
        context = consumer._get_control_flow_context()
        return context.outer_context if context is not None and IsLoopEnter(consumer) else context

    places = [place(c) for output in op.outputs for c in output.consumers()] if IsSwitch(op) else []
    return IsSwitch(op) and all(c is not None and c.IsCondContext() for c in places)


def IsCondMerge(op):
    """Tells whether a Merge joins branches."""
    contexts = [GetOutputContext(x.op) for x in op.inputs] if IsMerge(op) else []
    return bool(contexts) and all(c is not None and c.IsCondContext() for c in contexts)
