"""tf.keras.utils: one-hot labels, normalization, sequences, progress bars."""

from runnel.keras.custom_objects import (  # noqa: F401
    CustomObjectScope, custom_object_scope, deserialize_keras_object, get_custom_objects, get_registered_name,
    get_registered_object, register_keras_serializable, serialize_keras_object)


def to_categorical(y, num_classes=None, dtype="float32"):
    """Converts class indices to one-hot rows."""
    import numpy
    y = numpy.array(y, dtype="int")
    shape = y.shape[:-1] if y.ndim > 1 and y.shape[-1] == 1 else y.shape
    flat = y.ravel()
    count = num_classes or int(flat.max()) + 1
    rows = numpy.zeros((len(flat), count), dtype=dtype)
    rows[numpy.arange(len(flat)), flat] = 1
    return rows.reshape(shape + (count,))


def normalize(x, axis=-1, order=2):
    """Divides rows by their norm."""
    import numpy
    norms = numpy.atleast_1d(numpy.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / numpy.expand_dims(norms, axis)


class Sequence:
    """Batches by index: a subclass defines __getitem__ and __len__."""

    def on_epoch_end(self):
        pass

    def __iter__(self):
        for index in range(len(self)):
            yield self[index]


class Progbar:
    """A progress bar: steps, remaining time and results."""

    def __init__(self, target, width=30, verbose=1, interval=0.05, stateful_metrics=None):
        import time
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self._totals, self._start, self._shown, self._length = {}, time.time(), 0, 0
        self._fixed = set(stateful_metrics or ())
        self._seen = 0

    def update(self, current, values=None):
        """Shows step `current`; values are [(name, value)] of this step."""
        import sys
        import time
        for name, value in values or []:
            weight = current - self._seen
            if name in self._fixed:
                self._totals[name] = [value, 1]
            else:
                total = self._totals.setdefault(name, [0, 0])
                total[0] += value * weight
                total[1] += weight
        self._seen = current
        now = time.time()
        is_last = self.target is not None and current >= self.target
        if not self.verbose or (now - self._shown < self.interval and not is_last):
            return
        over = "\r" if sys.stdout.isatty() else ""  # a terminal overwrites the line; a file gets the last one only
        if not over and not is_last:
            return
        self._shown = now
        text = "" if is_last or self.verbose == 2 else over
        if self.verbose == 1:
            text = over + self._bar(current, is_last)
        spent = now - self._start
        each = spent / current if current else 0
        text += " - %s" % _duration(spent) if is_last or self.target is None else \
            " - ETA: %s" % _duration(each * (self.target - current))
        for name, (total, count) in self._totals.items():
            value = total / max(1, count)
            text += " - %s: %s" % (name, "%.4f" % value if abs(value) > 1e-3 else "%.4e" % value)
        padding = " " * max(0, self._length - len(text))
        self._length = len(text)
        sys.stdout.write(text + padding + ("\n" if is_last else ""))
        sys.stdout.flush()

    def _bar(self, current, is_last):
        if self.target is None:
            return "%7d/Unknown" % current
        digits = len(str(self.target))
        done = int(self.width * current / self.target)
        bar = "=" * self.width if is_last else "=" * max(0, done - 1) + ">" + "." * (
            self.width - max(done, 1))
        return "%*d/%d [%s]" % (digits, current, self.target, bar)

    def add(self, n, values=None):
        self.update(self._seen + n, values)


def _duration(seconds):
    if seconds >= 3600:
        return "%d:%02d:%02d" % (seconds // 3600, seconds % 3600 // 60, seconds % 60)
    if seconds >= 60:
        return "%d:%02d" % (seconds // 60, seconds % 60)
    return "%ds" % seconds
