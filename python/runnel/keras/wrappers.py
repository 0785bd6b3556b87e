"""Layers that wrap other layers."""

from runnel.keras.layers import Layer


class Wrapper(Layer):
    """The base of wrappers: `layer` is the wrapped layer, whose variables are also the wrapper's."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape=None):
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        self.built = True

    def __call__(self, inputs, *args, **kwargs):
        outputs = super().__call__(inputs, *args, **kwargs)
        self._adopt(self.layer.trainable_variables, self.layer.non_trainable_variables)
        return outputs

    @property
    def activity_regularizer(self):
        return getattr(self.layer, "activity_regularizer", None)
