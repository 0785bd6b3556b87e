"""tensorflow.python.keras.saving.saving_utils: a model's call as a function, which exporters of models ask for."""

from runnel import nest


def trace_model_call(model, input_signature=None):
    """Returns a tf.function of a model's inputs, which returns {name of the output: output}."""
    from runnel.core.type_spec import TensorSpec
    from runnel.eager import def_function
    if input_signature is None:
        names = getattr(model, "input_names", None) or [None] * len(model.inputs)
        input_signature = [TensorSpec(tensor.shape, tensor.dtype, name=name) for tensor, name in zip(model.inputs, names)]
        if isinstance(model.input, (list, tuple)):
            input_signature = [input_signature]

    def call(*args):
        outputs = nest.flatten(model(*args))
        names = getattr(model, "output_names", None) or ["output_%d" % (i + 1) for i in range(len(outputs))]
        return dict(zip(names, outputs))
    return def_function.function(call, input_signature=input_signature, autograph=False)
