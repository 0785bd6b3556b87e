"""Conditionals and loops as Switch, Merge, Enter, Exit and NextIteration nodes: what other modules import."""

from runnel.flow.branches import build_cond, cond, cond_v2, smart_cond  # noqa: F401
from runnel.flow.cases import Assert, case, switch_case  # noqa: F401
from runnel.flow.flow_contexts import CondContext, ControlFlowContext, GradientContext, merge, switch  # noqa: F401
from runnel.flow.groups import group, no_op, tuple, with_dependencies  # noqa: A004, F401
from runnel.flow.while_loops import while_loop  # noqa: F401
from runnel.flow.loop_context import WhileContext, _is_within  # noqa: F401
