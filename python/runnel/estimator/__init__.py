"""tf.estimator: the package tensorflow_estimator, which is Python on top of TensorFlow, running on Runnel.

    pip install --no-deps tensorflow_estimator==1.15.1

It imports `tensorflow.python.*`, which from then on means Runnel in this process (alias/finder.py).
"""


def _package():
    import sys
    from runnel.alias import finder as alias
    loaded = sys.modules.get("tensorflow")
    if loaded is not None and not loaded.__name__.startswith("runnel"):
        raise AttributeError("tf.estimator needs `import tensorflow` to mean Runnel, but another TensorFlow is already imported")
    if loaded is None:
        alias.install()
    try:
        from tensorflow_estimator import estimator
    except ModuleNotFoundError as error:
        if error.name != "tensorflow_estimator":
            raise
        raise AttributeError("tf.estimator needs a package: pip install --no-deps tensorflow_estimator==1.15.1") from None
    return estimator


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_package(), name)


def __dir__():
    return dir(_package())
