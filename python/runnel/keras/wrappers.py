"""Layers around other layers."""

from runnel.keras.layers import Layer


class Wrapper(Layer):
    """The base of layers around another, which is `layer`: its variables are this one's, too."""

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
