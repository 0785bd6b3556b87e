"""tf.initializers."""

from runnel.init_ops import (  # noqa: F401
    Constant as constant, GlorotNormal as glorot_normal, GlorotUniform as glorot_uniform,
    Identity as identity, Initializer, Ones as ones, Orthogonal as orthogonal,
    RandomNormal as random_normal, RandomUniform as random_uniform, TruncatedNormal as truncated_normal,
    UniformUnitScaling as uniform_unit_scaling, VarianceScaling as variance_scaling, Zeros as zeros, get,
    he_normal, he_uniform, lecun_normal, lecun_uniform)
from runnel.variables import (  # noqa: F401
    global_variables_initializer as global_variables, local_variables_initializer as local_variables,
    variables_initializer as variables)


def tables_initializer(name="init_all_tables"):
    """An operation that fills all tables of the default graph."""
    from runnel import control_flow, framework
    fills = framework.get_collection(framework.GraphKeys.TABLE_INITIALIZERS)
    return control_flow.group(*fills, name=name) if fills else control_flow.no_op(name=name)
