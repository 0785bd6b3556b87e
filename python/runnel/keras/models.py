"""Models: layers put together."""

import json
import os

from runnel import nest
from runnel.framework import executing_eagerly
from runnel.keras import layers as _layers
from runnel.keras.training import Trainable


class Model(Trainable):
    """A model from inputs to outputs: Model(inputs, outputs), or a subclass with `call`."""

    def __init__(self, inputs=None, outputs=None, name=None):
        super().__init__()
        self.name = name or "model"
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
        return list(self._layers)

    def get_layer(self, name=None, index=None):
        """A layer by its name or number."""
        if index is not None:
            return self._layers[index]
        for layer in self._layers:
            if layer.name == name:
                return layer
        raise ValueError("No such layer: %s" % name)

    def call(self, inputs, training=None):
        raise NotImplementedError("A subclass of Model has a method `call`")

    def __call__(self, inputs, training=None, **kwargs):
        if self.inputs is None:
            if training is not None and _takes_training(self):
                kwargs["training"] = training
            return self.call(inputs, **kwargs)
        return _again(self, inputs, training)

    def _all_layers(self):
        if self._layers:
            return self._layers
        return [x for x in vars(self).values() if getattr(x, "_is_keras", False)]

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
        """The values of all variables."""
        if executing_eagerly():
            return [v.numpy() for v in self.weights]
        from runnel.keras import backend
        return backend.get_session().run(self.weights)

    def set_weights(self, weights):
        """Gives all variables values."""
        if executing_eagerly():
            for variable, value in zip(self.weights, weights):
                variable.assign(value)
            return
        from runnel.keras import backend
        session = backend.get_session()
        for variable, value in zip(self.weights, weights):
            variable.load(value, session)

    def summary(self, line_length=65, print_fn=print):
        """Prints the layers, their shapes and how many numbers they hold."""
        rows = [("Layer (type)", "Output Shape", "Param #")]
        print_fn("Model: \"%s\"" % self.name)
        print_fn("_" * line_length)
        total = 0
        for layer in self.layers:
            count = layer.count_params()
            total += count
            rows.append(("%s (%s)" % (layer.name, type(layer).__name__), str(layer.output_shape),
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
        from runnel.saver import Saver
        if getattr(self, "_saver_object", None) is None:
            self._saver_object = Saver(self.weights, max_to_keep=None)
        return self._saver_object

    def save_weights(self, filepath, overwrite=True, save_format=None):
        """Writes the variables as a checkpoint."""
        from runnel.keras import backend
        folder = os.path.dirname(str(filepath))
        if folder:
            os.makedirs(folder, exist_ok=True)
        session = backend.get_session()
        self._saver().save(session, str(filepath), write_meta_graph=False, write_state=False)

    def load_weights(self, filepath, by_name=False):
        """Reads what save_weights wrote."""
        from runnel.keras import backend
        session = backend.get_session()
        self._saver().restore(session, str(filepath))

    def save(self, filepath, overwrite=True, include_optimizer=True, save_format=None):
        """Writes the model as a SavedModel folder, with what load_model needs."""
        from runnel import saved_model
        from runnel.keras import backend
        path = str(filepath)
        if os.path.isdir(path) and os.listdir(path):
            if not overwrite:
                raise FileExistsError(path)
            import shutil
            shutil.rmtree(path)
        session = backend.get_session()
        names = ["input_%d" % (i + 1) for i in range(len(self.inputs))]
        outputs = {layer.name if layer is not None else "output_%d" % i: x for i, (x, layer) in
                   enumerate((x, getattr(x, "_keras_history", (None,))[0]) for x in self.outputs)}
        saved_model.simple_save(session, path, dict(zip(names, self.inputs)), outputs)
        with open(os.path.join(path, "keras_model.json"), "w") as file:
            json.dump({"class_name": type(self).__name__, "config": self.get_config(),
                       "training": getattr(self, "_training_config", None)}, file, indent=1)

    def to_json(self):
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()})

    def get_config(self):
        """The layers and how they are connected."""
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


def _layers_between(inputs, outputs):
    """The layers that make `outputs`, those first that others read."""
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
    """The layers of a model on other inputs."""
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
    """Layers one after the other."""

    def __init__(self, layers=None, name=None):
        super().__init__(name=name or "sequential")
        self._waiting = []  # layers before the shape of the input is known
        for layer in layers or []:
            self.add(layer)

    def add(self, layer):
        """Adds a layer at the end."""
        if isinstance(layer, _layers.InputLayer):
            self._begin(layer.output)
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
        self._input_structure, self.inputs = tensor, [tensor]
        self._output_structure, self.outputs = tensor, [tensor]
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
        """A model whose first layer has no shape gets that of the data."""
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
        """The class of each example."""
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


def load_model(filepath, custom_objects=None, compile=True):  # noqa: A002
    """Reads what Model.save wrote: the layers and their variables."""
    path = str(filepath)
    description = os.path.join(path, "keras_model.json")
    if not os.path.exists(description):
        raise OSError("%s is no model that Model.save wrote: it has no keras_model.json" % path)
    with open(description) as file:
        saved = json.load(file)
    for name, value in (custom_objects or {}).items():
        setattr(_layers, name, value)
    cls = Sequential if saved["class_name"] == "Sequential" else Model
    model = cls.from_config(saved["config"])
    from runnel.checkpoint_reader import NewCheckpointReader
    from runnel.keras import backend
    reader = NewCheckpointReader(os.path.join(path, "variables", "variables"))
    session = backend.get_session()
    order = list(model.weights)
    names = [v.op.name for v in order]
    known = reader.get_variable_to_shape_map()
    if not all(name in known for name in names):  # names were made unique: the order is the same
        prefixes = sorted(known)
        names = _by_shape(order, prefixes, known)
    for variable, name in zip(order, names):
        variable.load(reader.get_tensor(name), session)
    if compile and saved.get("training"):
        model.compile(**saved["training"])
    return model


def _by_shape(variables, names, shapes):
    """Names for variables whose scopes were renamed: the same last part and shape, in order."""
    left, found = list(names), []
    for variable in variables:
        last = variable.op.name.rsplit("/", 1)[-1]
        for name in left:
            if name.rsplit("/", 1)[-1] == last and list(shapes[name]) == variable.shape.as_list():
                found.append(name)
                left.remove(name)
                break
        else:
            raise ValueError("No value for %s was saved" % variable.name)
    return found
