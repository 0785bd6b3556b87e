"""tf.keras.models: models made of layers."""

import json
import os

from runnel import nest
from runnel.core.framework import Tensor, executing_eagerly
from runnel.keras import layers as _layers
from runnel.keras.custom_objects import custom_object_scope
from runnel.keras.metrics import snake_case
from runnel.core.attribute_tracking import AttributeTrackable
from runnel.keras.training import Trainable


class Model(AttributeTrackable, Trainable):
    """A model from inputs to outputs: Model(inputs, outputs), or a subclass with `call`."""

    _is_keras = True  # a model may be a layer of another model
    _nodes = ()

    def __init__(self, inputs=None, outputs=None, name=None):
        super().__init__()
        self.name = name or ("model" if type(self) is Model else snake_case(type(self).__name__))
        self.inputs = self.outputs = None
        self._layers = []
        if inputs is not None:
            self._set(inputs, outputs)

    def _set(self, inputs, outputs):
        self._input_structure, self._output_structure = inputs, outputs
        self.inputs, self.outputs = nest.flatten(inputs), nest.flatten(outputs)
        self._layers = _layers_between(self.inputs, self.outputs)

    @property
    def input(self):
        return self._input_structure

    @property
    def output(self):
        return self._output_structure

    @property
    def layers(self):
        return list(self._all_layers())

    def get_layer(self, name=None, index=None):
        """Returns a layer by its name or index."""
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError("No such layer: %s" % name)

    def call(self, inputs, training=None):
        raise NotImplementedError("A subclass of Model must define `call`")

    def __call__(self, inputs, *args, training=None, **kwargs):
        if self.inputs is None:
            self._build_once(inputs)
            if training is not None and _takes_training(self):
                kwargs["training"] = training
            return self.call(inputs, *args, **kwargs)
        return _again(self, inputs, args[0] if args else training)

    _is_built = False

    def _build_once(self, inputs):
        """Calls a subclass's `build`, if it has one, with the shapes of the first inputs."""
        if not self._is_built and getattr(type(self), "build", None) not in (None, getattr(Model, "build", None)):
            self.build(nest.map_structure(lambda x: x.shape, inputs))
        self._is_built = True

    def _all_layers(self):
        """Returns the layers; those of a subclass are in its attributes, including lists and dicts."""
        if self._layers:
            return self._layers
        found, todo = [], [value for name, value in vars(self).items() if not name.startswith("_") and name not in ("inputs", "outputs", "history")]
        while todo:
            value = todo.pop(0)
            if getattr(value, "_is_keras", False):
                if not any(value is other for other in found):
                    found.append(value)
            elif isinstance(value, (list, tuple)):
                todo = list(value) + todo
            elif isinstance(value, dict):
                todo = list(value.values()) + todo
        return found

    def _collected(self, what):
        found = []
        for layer in self._all_layers():
            for variable in getattr(layer, what):
                if variable not in found:
                    found.append(variable)
        return found

    @property
    def trainable_weights(self):
        return self._collected("trainable_variables")

    trainable_variables = trainable_weights

    @property
    def weights(self):
        return self._collected("variables")

    variables = weights

    @property
    def non_trainable_weights(self):
        trained = self.trainable_weights
        return [v for v in self.weights if v not in trained]

    @property
    def losses(self):
        return [loss for layer in self._all_layers() for loss in layer.losses]

    @property
    def updates(self):
        return [op for layer in self._all_layers() for op in layer.updates]

    @property
    def input_shape(self):
        return nest.map_structure(lambda x: tuple(x.shape.as_list()), self._input_structure)

    @property
    def output_shape(self):
        return nest.map_structure(lambda x: tuple(x.shape.as_list()), self._output_structure)

    def count_params(self):
        return sum(v.shape.num_elements() for v in self.weights)

    def get_weights(self):
        """Returns the values of all variables."""
        if executing_eagerly():
            return [v.numpy() for v in self.weights]
        from runnel.keras import backend
        return backend.get_session().run(self.weights)

    def set_weights(self, weights):
        """Sets the values of all variables."""
        if executing_eagerly():
            for variable, value in zip(self.weights, weights):
                variable.assign(value)
            return
        from runnel.keras import backend
        session = backend.get_session()
        for variable, value in zip(self.weights, weights):
            variable.load(value, session)

    def summary(self, line_length=65, print_fn=print):
        """Prints the layers, their shapes and their numbers of parameters."""
        if not any(layer.weights or layer._nodes for layer in self.layers):
            raise ValueError("This model has not yet been built. Build the model first by calling `build()` or calling the model on a batch of data.")
        rows = [("Layer (type)", "Output Shape", "Param #")]
        print_fn("Model: \"%s\"" % self.name)
        print_fn("_" * line_length)
        total = 0
        for layer in self.layers:
            count = layer.count_params()
            total += count
            rows.append(("%s (%s)" % (layer.name, type(layer).__name__), _shape_text(self, layer),
                         str(count)))
        for number, row in enumerate(rows):
            print_fn("%-29s%-26s%s" % row)
            print_fn(("=" if number in (0, len(rows) - 1) else "_") * line_length)
        trained = sum(v.shape.num_elements() for v in self.trainable_weights)
        print_fn(f"Total params: {total:,}")
        print_fn(f"Trainable params: {trained:,}")
        print_fn(f"Non-trainable params: {total - trained:,}")
        print_fn("_" * line_length)

    # Files

    def _saver(self):
        from runnel.train.saver import Saver
        if getattr(self, "_saver_object", None) is None:
            self._saver_object = Saver(self._keys(), max_to_keep=None)
        return self._saver_object

    def _keys(self):
        """Returns {key in a file: variable}; keys do not depend on the variables' names."""
        keys = {}
        number = 0
        for layer in self._all_layers():
            variables = [v for v in layer.variables if not any(v is other for other in keys.values())]
            for i, variable in enumerate(variables):
                last = variable.name.split(":")[0].rsplit("/", 1)[-1]
                key = "layer_with_weights-%d/%s" % (number, last)
                keys[(key if key + "/.ATTRIBUTES/VARIABLE_VALUE" not in keys else "%s_%d" % (key, i)) + "/.ATTRIBUTES/VARIABLE_VALUE"] = variable
            number += bool(variables)
        return keys

    def save_weights(self, filepath, overwrite=True, save_format=None):
        """Writes the variables as a checkpoint."""
        from runnel.keras import backend
        _refuse_other_formats("save_weights writes checkpoints", filepath, save_format)
        folder = os.path.dirname(str(filepath))
        if folder:
            os.makedirs(folder, exist_ok=True)
        session = backend.get_session()
        self._saver().save(session, str(filepath), write_meta_graph=False)

    def load_weights(self, filepath, by_name=False):
        """Reads what save_weights wrote."""
        from runnel.keras import backend
        _refuse_other_formats("load_weights reads checkpoints", filepath)
        session = backend.get_session()
        self._saver().restore(session, str(filepath))

    def save(self, filepath, overwrite=True, include_optimizer=True, save_format=None):
        """Writes the model as a SavedModel folder, with what load_model needs."""
        from runnel.keras import backend
        from runnel.saved_model import meta_graphs as saved_model
        _refuse_other_formats("Model.save writes SavedModel folders", filepath, save_format)
        path = str(filepath)
        if os.path.isdir(path) and os.listdir(path):
            if not overwrite:
                raise FileExistsError(path)
            import shutil
            shutil.rmtree(path)
        if executing_eagerly():
            self._save_twin(path)
            return
        session = backend.get_session()
        names = ["input_%d" % (i + 1) for i in range(len(self.inputs))]
        outputs = {layer.name if layer is not None else "output_%d" % i: x for i, (x, layer) in
                   enumerate((x, getattr(x, "_keras_history", (None,))[0]) for x in self.outputs)}
        saved_model.simple_save(session, path, dict(zip(names, self.inputs)), outputs)
        with open(os.path.join(path, "keras_model.json"), "w") as file:
            json.dump({"class_name": type(self).__name__, "config": self.get_config(),
                       "training": getattr(self, "_training_config", None)}, file, indent=1)

    # tf.saved_model.save calls these methods.

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        rows = {name: child for name, child in super()._trackable_children(save_type, **kwargs).items() if name not in ("inputs", "outputs")}
        if save_type == "savedmodel":
            rows.update(layers=self.layers, variables=list(self.variables), trainable_variables=list(self.trainable_variables))
        return rows

    def _default_save_signature(self):
        """Returns the signature: a function from the inputs to {name: output}."""
        from runnel.eager.def_function import Function, TensorSpec
        if self.inputs is None:
            return {}
        specs = [TensorSpec(x.shape, x.dtype, x._keras_history[0].name) for x in self.inputs]
        names = [x._keras_history[0].name for x in self.outputs]
        if len(set(names)) < len(names):
            names = ["output_%d" % i for i in range(len(names))]

        def serving_default(*tensors):
            results = self(nest.pack_sequence_as(self._input_structure, tensors) if nest.is_nested(self._input_structure) else tensors[0])
            return dict(zip(names, nest.flatten(results)))
        return Function(serving_default, input_signature=specs)

    def _save_twin(self, path):
        """Builds a copy of the model in a new graph, and saves the copy."""
        from runnel.core.framework import Graph
        if self.inputs is None:
            raise NotImplementedError("Only a Sequential or a Model(inputs, outputs) can be saved to a file. Use save_weights instead.")
        values = self.get_weights()
        with Graph().as_default():
            twin = clone_model(self)
            twin.set_weights(values)
            twin._training_config = getattr(self, "_training_config", None)
            twin.save(path)

    def to_json(self):
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()})

    def get_config(self):
        """Returns the layers and their connections."""
        config, names = [], {}
        for layer in self.layers:
            names[id(layer)] = layer.name
            inbound = []
            for inputs, _ in layer._nodes[:1]:
                if not isinstance(layer, _layers.InputLayer):
                    inbound = [names[id(x._keras_history[0])] for x in nest.flatten(inputs)]
            config.append({"class_name": type(layer).__name__, "config": layer.get_config(),
                           "name": layer.name, "inbound": inbound})
        return {"name": self.name, "layers": config,
                "inputs": [x._keras_history[0].name for x in self.inputs],
                "outputs": [x._keras_history[0].name for x in self.outputs]}

    @classmethod
    def from_config(cls, config):
        tensors = {}
        for row in config["layers"]:
            layer = _layers.deserialize(row)
            if row["class_name"] == "InputLayer":
                tensors[row["name"]] = layer.output
            else:
                inputs = [tensors[name] for name in row["inbound"]]
                tensors[row["name"]] = layer(inputs[0] if len(inputs) == 1 else inputs)

        def one(names):
            found = [tensors[name] for name in names]
            return found[0] if len(found) == 1 else found
        return Model(one(config["inputs"]), one(config["outputs"]), name=config["name"])


def _shape_text(model, layer):
    """Returns the shape of a layer's output; a subclass may call the layer in any way."""
    if model.inputs is None or not getattr(layer, "_nodes", None) or (type(model) is not Model and not isinstance(model, Sequential)):
        return "multiple"
    return str(layer.output_shape)


def _layers_between(inputs, outputs):
    """Returns the layers that compute `outputs`, in topological order."""
    found, seen = [], set()

    def visit(tensor):
        history = getattr(tensor, "_keras_history", None)
        if history is None:
            raise ValueError("Output tensors to a Model must be the output of a Keras layer. Found: %s" %
                             tensor)
        layer, before, _ = history
        if id(layer) in seen:
            return
        seen.add(id(layer))
        if before is not None and not any(tensor is x for x in inputs):
            for x in nest.flatten(before):
                visit(x)
        found.append(layer)
    for output in outputs:
        visit(output)
    return found


def _again(model, inputs, training=None):
    """Applies the layers of a model to other inputs."""
    values = {id(old): new for old, new in zip(model.inputs, nest.flatten(inputs))}

    def value(tensor):
        if id(tensor) not in values:
            layer, before, kwargs = tensor._keras_history
            if training is not None and _takes_training(layer):
                kwargs = dict(kwargs, training=training)
            values[id(tensor)] = layer(nest.map_structure(value, before), **kwargs)
        return values[id(tensor)]
    return nest.map_structure(value, model._output_structure)


def _takes_training(layer):
    import inspect
    return "training" in inspect.signature(layer.call).parameters


class Sequential(Model):
    """A model of layers one after the other."""

    def __init__(self, layers=None, name=None):
        super().__init__(name=name or "sequential")
        self._waiting = []  # layers added before the shape of the input is known
        for layer in layers or []:
            self.add(layer)

    def add(self, layer):
        """Appends a layer."""
        if isinstance(layer, _layers.InputLayer):
            layer = layer.output
        if isinstance(layer, Tensor):  # of tf.keras.Input
            self._begin(layer)
            return
        if self.inputs is None:
            shape = getattr(layer, "_first_shape", None)
            if shape is None:
                self._waiting.append(layer)
                return
            kind = "int32" if isinstance(layer, _layers.Embedding) else None
            self._begin(_layers.Input(shape, dtype=kind))
        self._append(layer)

    def _begin(self, tensor):
        self._input_structure, self.inputs = tensor, nest.flatten(tensor)
        self._output_structure, self.outputs = tensor, nest.flatten(tensor)
        for layer in self._waiting:
            self._append(layer)
        self._waiting = []

    def _append(self, layer):
        output = layer(self._output_structure)
        self._output_structure, self.outputs = output, nest.flatten(output)
        self._layers.append(layer)

    def call(self, inputs, training=None):
        for layer in self.layers:
            extra = {"training": training} if _takes_training(layer) else {}
            inputs = layer(inputs, **extra)
        return inputs

    def _build_for(self, shape, dtype=None):
        """Builds a model whose first layer has no input shape, with the shape of the data."""
        if self.inputs is None:
            self._begin(_layers.Input(tuple(shape), dtype=dtype))

    def build(self, input_shape=None):
        self._build_for(tuple(input_shape)[1:])

    def pop(self):
        """Removes the last layer."""
        self._layers.pop()
        self._output_structure = self._layers[-1].output if self._layers else self._input_structure
        self.outputs = nest.flatten(self._output_structure)

    @property
    def layers(self):
        return list(self._layers) + list(self._waiting)

    def _all_layers(self):
        return self.layers

    def predict_classes(self, x, batch_size=32, verbose=0):
        """Returns the class of each example."""
        p = self.predict(x, batch_size, verbose)
        return p.argmax(axis=-1) if p.shape[-1] > 1 else (p > 0.5).astype("int32")

    predict_proba = Model.predict

    def get_config(self):
        return {"name": self.name, "input_shape": list(self.input_shape[1:]),
                "dtype": self.inputs[0].dtype.name,
                "layers": [{"class_name": type(x).__name__, "config": x.get_config()}
                           for x in self._layers]}

    @classmethod
    def from_config(cls, config):
        model = cls(name=config["name"])
        model._begin(_layers.Input(tuple(config["input_shape"]), dtype=config["dtype"]))
        for row in config["layers"]:
            model.add(_layers.deserialize(row))
        return model


def model_from_json(json_string, custom_objects=None):
    """Returns a new model from the result of to_json, with initial values."""
    saved = json.loads(json_string)
    with custom_object_scope(custom_objects):
        return (Sequential if saved["class_name"] == "Sequential" else Model).from_config(saved["config"])


def model_from_config(config, custom_objects=None):
    """Returns a new model from {"class_name": ..., "config": {...}}."""
    return model_from_json(json.dumps(config), custom_objects)


def clone_model(model):
    """Returns a model of the same layers with variables of its own."""
    return model_from_json(model.to_json())


def _refuse_other_formats(what, filepath, save_format=None):
    """Raises NotImplementedError for HDF5 and .keras files."""
    ending = os.path.splitext(str(filepath))[1]
    if save_format in ("h5", "hdf5", "keras") or ending in (".h5", ".hdf5", ".keras"):
        raise NotImplementedError("%s, neither HDF5 nor .keras files: give a name without such an ending, not %r%s" % (
            what, str(filepath), "" if save_format is None else " with save_format=%r" % save_format))


def load_model(filepath, custom_objects=None, compile=True):  # noqa: A002
    """Reads what Model.save wrote: the layers and their variables."""
    path = str(filepath)
    if not os.path.isdir(path):
        _refuse_other_formats("load_model reads SavedModel folders", path)
    description = os.path.join(path, "keras_model.json")
    if not os.path.exists(description):
        raise OSError("%s was not written by Model.save: it has no keras_model.json" % path)
    with open(description) as file:
        saved = json.load(file)
    model = model_from_config(saved, custom_objects)
    from runnel.train.checkpoint_reader import NewCheckpointReader
    reader = NewCheckpointReader(os.path.join(path, "variables", "variables"))
    order = list(model.weights)
    names = [v.name.split(":")[0] for v in order]
    known = reader.get_variable_to_shape_map()
    if not all(name in known for name in names):  # the new variables got suffixes that make names unique
        prefixes = sorted(known)
        names = _by_shape(order, prefixes, known)
    model.set_weights([reader.get_tensor(name) for name in names])
    if compile and saved.get("training"):
        model.compile(**saved["training"])
    return model


def _by_shape(variables, names, shapes):
    """Matches names with variables whose scopes were renamed: equal last part and shape, in order."""
    left, found = list(names), []
    for variable in variables:
        last = variable.name.split(":")[0].rsplit("/", 1)[-1]
        for name in left:
            if name.rsplit("/", 1)[-1] == last and list(shapes[name]) == variable.shape.as_list():
                found.append(name)
                left.remove(name)
                break
        else:
            raise ValueError("No value for %s was saved" % variable.name)
    return found
