"""Conditionals and loops in MetaGraphDefs: contexts to messages and back."""

from runnel.core import framework
from runnel.ops.control_flow import CondContext, WhileContext


def to_proto(context, export_scope=None):
    """Returns the message of a context, or None if it is outside the scope."""
    from runnel.core.protobuf import message_class
    if export_scope is not None and not context.name.startswith(export_scope):
        return None

    def name(item):
        return framework.strip_name_scope(item if isinstance(item, str) else item.name, export_scope)

    is_cond = context.IsCondContext()
    out = message_class("CondContextDef" if is_cond else "WhileContextDef")()
    out.context_name = name(context.name)
    out.pivot_name = name(context.pivot)
    if is_cond:
        out.pred_name = name(context.pred)
        out.branch = context.branch
    else:
        out.parallel_iterations = context.parallel_iterations
        if context.maximum_iterations is not None:
            out.maximum_iterations_name = name(context.maximum_iterations)
        out.back_prop = context.back_prop
        out.swap_memory = context.swap_memory
        out.pivot_for_pred_name = name(context._pivot_for_pred)
        out.pivot_for_body_name = name(context._pivot_for_body)
        out.loop_exit_names.extend(name(x) for x in context.loop_exits)
        out.loop_enter_names.extend(name(x) for x in context.loop_enters)
    # As in stock, `values` also contains the outside tensors that were brought in.
    out.values_def.values.extend(name(v) for v in sorted(context._inside | set(context._brought)))
    for outside, inside in context._brought.items():
        inside = outside if outside in context._passed else inside
        out.values_def.external_values[name(outside)] = name(inside)
    for nested in context._nested_contexts:
        one = to_proto(nested, export_scope)
        if one is not None:
            field = "cond_ctxt" if nested.IsCondContext() else "while_ctxt"
            getattr(out.nested_contexts.add(), field).CopyFrom(one)
    return out


def from_proto(context_def, import_scope=None):
    """Rebuilds a context whose operations are already in the default graph."""
    graph = framework.get_default_graph()

    def name(text):
        return framework.prepend_name_scope(text, import_scope)

    def element(text):
        return graph.as_graph_element(name(text))

    is_cond = hasattr(context_def, "pred_name")
    context = CondContext.__new__(CondContext) if is_cond else WhileContext.__new__(WhileContext)
    super(type(context), context).__init__()
    context.name = name(context_def.context_name)
    context._pivot = element(context_def.pivot_name)
    if is_cond:
        context._pred = element(context_def.pred_name)
        context._branch = context_def.branch
    else:
        _fill_loop(context, context_def, element)
    values = context_def.values_def
    for outside, inside in values.external_values.items():
        context._brought[name(outside)] = element(inside)
    context._inside = {name(v) for v in values.values} - (
        set(context._brought) - {x.name for x in context._brought.values()})
    for op in {graph.get_operation_by_name(v.rpartition(":")[0]) for v in context._inside}:
        op._set_control_flow_context(context)
        if import_scope and not is_cond and op.type in ("Enter", "RefEnter"):
            _rename_frame(op, context.name)
    with context.entered():
        for nested in context_def.nested_contexts:
            from_proto(getattr(nested, nested.WhichOneof("ctxt")), import_scope)
    return context


def _fill_loop(context, context_def, element):
    limit = context_def.maximum_iterations_name
    context._maximum_iterations = element(limit) if limit else None
    context._parallel_iterations = context_def.parallel_iterations
    context._back_prop = context_def.back_prop
    context._swap_memory = context_def.swap_memory
    context._pivot_for_pred = element(context_def.pivot_for_pred_name)
    context._pivot_for_body = element(context_def.pivot_for_body_name)
    context._exits = [element(x) for x in context_def.loop_exit_names]
    context._enters = [element(x) for x in context_def.loop_enter_names]
    context._tell_gradients(context._pivot.op)


def _rename_frame(op, frame):
    """Renames the frame of an imported loop, so that importing it twice makes two loops."""
    from runnel.core.protobuf import message_class
    op._set_attr("frame_name", message_class("AttrValue")(s=frame.encode()))
