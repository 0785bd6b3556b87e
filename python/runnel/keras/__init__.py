"""tf.keras: models of layers, trained by `fit`."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "submodules: activations backend callbacks constraints initializers layers losses metrics models optimizers preprocessing "
    "regularizers utils",
    "keras.models: Model Sequential",
    "keras.layers: Input",
)
