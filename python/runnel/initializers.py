"""tf.initializers: initial values of variables."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "ops.init_ops: Initializer constant=Constant get glorot_normal=GlorotNormal glorot_uniform=GlorotUniform he_normal he_uniform "
    "identity=Identity lecun_normal lecun_uniform ones=Ones orthogonal=Orthogonal random_normal=RandomNormal "
    "random_uniform=RandomUniform truncated_normal=TruncatedNormal uniform_unit_scaling=UniformUnitScaling "
    "variance_scaling=VarianceScaling zeros=Zeros",
    "ops.variables: global_variables=global_variables_initializer local_variables=local_variables_initializer "
    "variables=variables_initializer",
    "ops.lookup_ops: tables_initializer",
)
