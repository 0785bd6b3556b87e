"""Programs of the package deepxde, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["DDE_BACKEND"] = "tensorflow"

import contextlib
import io

import numpy as np

with contextlib.redirect_stdout(io.StringIO()):
    import deepxde
    import tensorflow as tf
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def trained(data, net, iterations):
    model = deepxde.Model(data, net)
    model.compile("adam", lr=0.01)
    history, _ = model.train(iterations=iterations, display_every=5)
    points = np.linspace(-1, 1, 3)[:, None] if data.geom.dim == 1 else np.array([[0.0, 0.5], [0.5, 0.5]])
    return [*np.array(history.loss_train).ravel(), *model.predict(points).ravel()]


@program
def poisson():
    """The equation of Poisson on a line."""
    line = deepxde.geometry.Interval(-1, 1)

    def equation(x, y):
        return -deepxde.grad.hessian(y, x) - np.pi**2 * tf.sin(np.pi * x)
    edge = deepxde.icbc.DirichletBC(line, lambda x: 0, lambda x, is_on: is_on)
    data = deepxde.data.PDE(line, equation, edge, 16, 2, train_distribution="uniform")
    return trained(data, deepxde.nn.FNN([1, 10, 10, 1], "tanh", "Glorot uniform"), 20)


@program
def heat():
    """The equation of heat, with first values and values at the edge."""
    where = deepxde.geometry.GeometryXTime(deepxde.geometry.Interval(0, 1), deepxde.geometry.TimeDomain(0, 1))

    def equation(x, y):
        return deepxde.grad.jacobian(y, x, i=0, j=1) - 0.4 * deepxde.grad.hessian(y, x, i=0, j=0)
    edge = deepxde.icbc.DirichletBC(where, lambda x: 0, lambda _, is_on: is_on)
    first = deepxde.icbc.IC(where, lambda x: np.sin(np.pi * x[:, 0:1]), lambda _, is_first: is_first)
    data = deepxde.data.TimePDE(where, equation, [edge, first], 40, 10, 10, train_distribution="uniform")
    return trained(data, deepxde.nn.FNN([2, 8, 8, 1], "tanh", "Glorot normal"), 10)


for name, function in PROGRAMS.items():
    deepxde.config.set_random_seed(7)
    with contextlib.redirect_stdout(io.StringIO()):
        made = function()
    print(name, *[float(x) for x in made])
