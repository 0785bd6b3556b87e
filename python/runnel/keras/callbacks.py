"""tf.keras.callbacks: objects that are called while a model trains."""

import collections


class Callback:
    """The base of callbacks: its methods are called at the beginning and end of training, epochs and batches."""

    model = None
    params = None

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def on_train_begin(self, logs=None):
        pass

    def on_train_end(self, logs=None):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        pass

    def on_epoch_end(self, epoch, logs=None):
        pass

    def on_batch_begin(self, batch, logs=None):
        pass

    def on_batch_end(self, batch, logs=None):
        pass

    def on_train_batch_begin(self, batch, logs=None):
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self.on_batch_end(batch, logs)

    def on_test_begin(self, logs=None):
        pass

    def on_test_end(self, logs=None):
        pass

    def on_test_batch_begin(self, batch, logs=None):
        pass

    def on_test_batch_end(self, batch, logs=None):
        pass

    def on_predict_begin(self, logs=None):
        pass

    def on_predict_end(self, logs=None):
        pass

    def on_predict_batch_begin(self, batch, logs=None):
        pass

    def on_predict_batch_end(self, batch, logs=None):
        pass


class History(Callback):
    """Records the results of every epoch: `history` is {name: [values]}."""

    def __init__(self):
        from runnel.keras.metrics import Figures
        self.epoch, self.history = [], Figures()

    def on_train_begin(self, logs=None):
        self.epoch = []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)


class ProgbarLogger(Callback):
    """Shows the progress bar."""

    def __init__(self, verbose=1):
        self.verbose = verbose

    def on_epoch_begin(self, epoch, logs=None):
        from runnel.keras.utils import Progbar
        if self.verbose:
            print("Epoch %d/%d" % (epoch + 1, self.params["epochs"]))
        self._line = Progbar(self.params["samples"] or self.params["steps"],
                             verbose=1 if self.verbose == 1 else 0)
        self._seen = 0

    def on_batch_end(self, batch, logs=None):
        self._seen += logs["size"] if self.params["samples"] else 1
        total = self.params["samples"] or self.params["steps"]
        self._values = [(key, value) for key, value in logs.items() if key not in ("size", "batch")]
        if total is None or self._seen < total:
            self._line.update(self._seen, self._values)

    def on_epoch_end(self, epoch, logs=None):
        total = self.params["samples"] or self.params["steps"] or self._seen
        self._line.target = total
        self._line._fixed = set(logs or ())
        if self.verbose == 2:
            print(" - ".join(["%ds" % _since(self._line._start)] + [
                "%s: %.4f" % item for item in (logs or {}).items()]))
            return
        self._line.update(total, list((logs or {}).items()))


def _since(start):
    import time
    return time.time() - start


class EarlyStopping(Callback):
    """Stops when a result has not improved for `patience` epochs."""

    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto",
                 baseline=None, restore_best_weights=False):
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.sign = _direction(monitor, mode)
        self.min_delta, self.baseline = abs(min_delta), baseline
        self.restore_best_weights = restore_best_weights
        self.stopped_epoch = 0

    def on_train_begin(self, logs=None):
        self.wait, self.best_weights = 0, None
        self.best = self.baseline if self.baseline is not None else -self.sign * float("inf")

    def on_epoch_end(self, epoch, logs=None):
        current = (logs or {}).get(self.monitor)
        if current is None:
            _warn_missing("Early stopping", self.monitor, logs)
            return
        if self.sign * current > self.sign * self.best + self.min_delta:
            self.best, self.wait = current, 0
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            return
        self.wait += 1
        if self.wait >= self.patience:
            self.stopped_epoch, self.model.stop_training = epoch, True
            if self.best_weights is not None:
                self.model.set_weights(self.best_weights)

    def on_train_end(self, logs=None):
        if self.stopped_epoch and self.verbose:
            print("Epoch %05d: early stopping" % (self.stopped_epoch + 1))


def _direction(monitor, mode):
    if mode == "max" or mode == "auto" and "acc" in monitor:
        return 1
    return -1


def _warn_missing(what, monitor, logs):
    import warnings
    warnings.warn("%s conditioned on metric `%s` which is not available. Available metrics are: %s" % (
        what, monitor, ",".join(logs or {})), RuntimeWarning, stacklevel=3)


class ModelCheckpoint(Callback):
    """Saves the model after epochs; `filepath` may contain {epoch} and {names of results}."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False,
                 save_weights_only=False, mode="auto", save_freq="epoch", period=1):
        self.filepath, self.monitor, self.verbose = filepath, monitor, verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.sign, self.period = _direction(monitor, mode), period
        self.best = -self.sign * float("inf")

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.period:
            return
        if self.save_best_only:
            current = (logs or {}).get(self.monitor)
            if current is None:
                _warn_missing("Can save best model only with", self.monitor, logs)
                return
            if self.sign * current <= self.sign * self.best:
                return
            self.best = current
        path = str(self.filepath).format(epoch=epoch + 1, **(logs or {}))
        if self.verbose:
            print("Epoch %05d: saving model to %s" % (epoch + 1, path))
        if self.save_weights_only:
            self.model.save_weights(path)
        else:
            self.model.save(path)


class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of epochs: schedule(epoch(, rate))."""

    def __init__(self, schedule, verbose=0):
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        from runnel.keras import backend
        rate = self.model.optimizer.lr
        before = float(backend.get_value(rate))
        try:
            after = self.schedule(epoch, before)
        except TypeError:
            after = self.schedule(epoch)
        backend.set_value(rate, after)
        if self.verbose:
            print("Epoch %05d: LearningRateScheduler setting learning rate to %s." % (epoch + 1, after))

    def on_epoch_end(self, epoch, logs=None):
        from runnel.keras import backend
        if logs is not None:
            logs["lr"] = float(backend.get_value(self.model.optimizer.lr))


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate when a result has not improved for `patience` epochs."""

    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto",
                 min_delta=1e-4, cooldown=0, min_lr=0, **kwargs):
        self.monitor, self.factor, self.patience = monitor, factor, patience
        self.verbose, self.sign, self.min_delta = verbose, _direction(monitor, mode), min_delta
        self.cooldown, self.min_lr = cooldown, min_lr

    def on_train_begin(self, logs=None):
        self.best, self.wait, self.resting = -self.sign * float("inf"), 0, 0

    def on_epoch_end(self, epoch, logs=None):
        from runnel.keras import backend
        current = (logs or {}).get(self.monitor)
        rate = float(backend.get_value(self.model.optimizer.lr))
        logs["lr"] = rate
        if current is None:
            _warn_missing("Reduce LR on plateau", self.monitor, logs)
            return
        if self.resting:
            self.resting -= 1
            self.wait = 0
        if self.sign * current > self.sign * self.best + self.min_delta:
            self.best, self.wait = current, 0
        elif not self.resting:
            self.wait += 1
            if self.wait >= self.patience and rate > self.min_lr:
                backend.set_value(self.model.optimizer.lr, max(rate * self.factor, self.min_lr))
                self.resting, self.wait = self.cooldown, 0
                if self.verbose:
                    print("Epoch %05d: ReduceLROnPlateau reducing learning rate to %s." % (
                        epoch + 1, max(rate * self.factor, self.min_lr)))


class LambdaCallback(Callback):
    """A callback made of functions."""

    def __init__(self, on_epoch_begin=None, on_epoch_end=None, on_batch_begin=None,
                 on_batch_end=None, on_train_begin=None, on_train_end=None):
        for name, fn in list(locals().items()):
            if name.startswith("on_") and fn is not None:
                setattr(self, name, fn)


class TerminateOnNaN(Callback):
    """Stops when the loss is NaN."""

    def on_batch_end(self, batch, logs=None):
        import math
        loss = (logs or {}).get("loss")
        if loss is not None and (math.isnan(loss) or math.isinf(loss)):
            print("Batch %d: Invalid loss, terminating training" % batch)
            self.model.stop_training = True


class CSVLogger(Callback):
    """Writes the results of every epoch to a file."""

    def __init__(self, filename, separator=",", append=False):
        self.filename, self.separator, self.append = filename, separator, append
        self._keys = None

    def on_train_begin(self, logs=None):
        self._file = open(self.filename, "a" if self.append else "w")  # noqa: SIM115

    def on_epoch_end(self, epoch, logs=None):
        if self._keys is None:
            self._keys = sorted(logs or {})
            self._file.write(self.separator.join(["epoch"] + self._keys) + "\n")
        self._file.write(self.separator.join([str(epoch)] + [str(logs.get(k, "NA"))
                                                             for k in self._keys]) + "\n")
        self._file.flush()

    def on_train_end(self, logs=None):
        self._file.close()


class TensorBoard(Callback):
    """Writes the results of every epoch, and the graph, for TensorBoard."""

    def __init__(self, log_dir="logs", histogram_freq=0, write_graph=True, update_freq="epoch",
                 **kwargs):
        self.log_dir, self.write_graph, self.histogram_freq = log_dir, write_graph, histogram_freq
        self._writers = {}

    def _writer(self, name):
        import os

        from runnel.summary.event_writer import FileWriter
        if name not in self._writers:
            self._writers[name] = FileWriter(os.path.join(self.log_dir, name))
        return self._writers[name]

    def on_train_begin(self, logs=None):
        if self.write_graph:
            from runnel.core.framework import get_default_graph
            self._writer("train").add_graph(get_default_graph())

    def on_epoch_end(self, epoch, logs=None):
        from runnel.core.protobuf import message_class
        groups = collections.defaultdict(list)
        for key, value in (logs or {}).items():
            name = "validation" if key.startswith("val_") else "train"
            groups[name].append((key[4:] if key.startswith("val_") else key, value))
        for name, values in groups.items():
            summary = message_class("Summary")()
            for key, value in values:
                summary.value.add(tag="epoch_" + key, simple_value=float(value))
            self._writer(name).add_summary(summary, epoch)
            self._writer(name).flush()

    def on_train_end(self, logs=None):
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
