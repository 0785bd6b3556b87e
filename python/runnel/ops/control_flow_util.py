"""Which loop or conditional an operation is part of (tensorflow.python.ops.control_flow_util)."""


def IsInXLAContext(op):
    """Whether XLA is to compile it: there is none here."""
    return False


InXlaContext = GraphOrParentsInXlaContext = IsInXLAContext


def GetContainingXLAContext(ctxt):
    return None


def GetContainingWhileContext(ctxt, stop_ctxt=None):
    """The innermost loop around a context; None if it is `stop_ctxt`, or further out."""
    while ctxt is not None and not ctxt.IsWhileContext():
        if ctxt is stop_ctxt:
            return None
        ctxt = ctxt.outer_context
    return ctxt


def GetContainingCondContext(ctxt):
    """The innermost conditional around a context, or None."""
    while ctxt is not None and not ctxt.IsCondContext():
        ctxt = ctxt.outer_context
    return ctxt


def GetWhileContext(op):
    """The loop that an operation is in, or None."""
    return GetContainingWhileContext(op._get_control_flow_context())


def IsInWhileLoop(op):
    return GetWhileContext(op) is not None


def IsInCond(op):
    return GetContainingCondContext(op._get_control_flow_context()) is not None


def GetOutputContext(op):
    """The context that an operation's results are in: those of an Exit are outside its loop."""
    context = op._get_control_flow_context()
    return context.outer_context if context is not None and IsLoopExit(op) else context


def IsContainingContext(ctxt, maybe_containing_ctxt):
    """Whether a context is another, or within it."""
    while ctxt not in (None, maybe_containing_ctxt):
        ctxt = ctxt.outer_context
    return ctxt is maybe_containing_ctxt


def OpInContext(op, ctxt):
    return IsContainingContext(op._get_control_flow_context(), ctxt)


def TensorInContext(tensor, ctxt):
    return OpInContext(tensor.op, ctxt)


def IsSwitch(op):
    return op.type in ("Switch", "RefSwitch")


def IsMerge(op):
    return op.type in ("Merge", "RefMerge")


def IsLoopEnter(op):
    return op.type in ("Enter", "RefEnter")


def IsLoopExit(op):
    return op.type in ("Exit", "RefExit")


def IsLoopConstantEnter(op):
    return IsLoopEnter(op) and op.get_attr("is_constant")


def GetLoopConstantEnter(value):
    """The Enter of what does not change in a loop that `value` comes from, or None."""
    op = value.op
    while op.type in ("Identity", "RefIdentity", "Switch", "RefSwitch"):
        op = op.inputs[0].op
    return op if IsLoopConstantEnter(op) else None


def IsLoopSwitch(op):
    """Whether a Switch ends a turn of a loop."""
    context = op._get_control_flow_context()
    return IsSwitch(op) and context is not None and context.IsWhileContext() and not IsCondSwitch(op)


def IsLoopMerge(op):
    context = op._get_control_flow_context()
    return IsMerge(op) and context is not None and context.IsWhileContext() and not IsCondMerge(op)


def IsCondSwitch(op):
    """Whether a Switch brings something into a branch."""
    def place(consumer):
        context = consumer._get_control_flow_context()
        return context.outer_context if context is not None and IsLoopEnter(consumer) else context

    places = [place(c) for output in op.outputs for c in output.consumers()] if IsSwitch(op) else []
    return IsSwitch(op) and all(c is not None and c.IsCondContext() for c in places)


def IsCondMerge(op):
    """Whether a Merge joins branches."""
    contexts = [GetOutputContext(x.op) for x in op.inputs] if IsMerge(op) else []
    return bool(contexts) and all(c is not None and c.IsCondContext() for c in contexts)
