"""Programs of the package gpflow, for test_library_programs.py: prints a line "name number number ..." per program."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import gpflow
import numpy as np
import tensorflow as tf

X = np.linspace(0, 1, 20)[:, None]
Y = np.sin(6 * X) + 0.05 * np.random.RandomState(0).randn(20, 1)
NEW = np.array([[0.25], [0.75]])
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def predicted(model):
    mean, variance = model.predict_f(NEW)
    return [*tf.reshape(mean, [-1]), *tf.reshape(variance, [-1])]


@program
def regression():
    """Regression, fitted by L-BFGS."""
    model = gpflow.models.GPR((X, Y), gpflow.kernels.SquaredExponential() + gpflow.kernels.Linear())
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options={"maxiter": 10})
    return [model.log_marginal_likelihood(), *predicted(model)]


@program
def sparse():
    """Sparse variational regression, with natural gradients and Adam in turn."""
    model = gpflow.models.SVGP(gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian(0.1), X[::4].copy(), num_data=20)
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    loss = model.training_loss_closure((X, Y))
    natural, adam = gpflow.optimizers.NaturalGradient(0.5), tf.keras.optimizers.Adam(0.05)
    found = []
    for _ in range(3):
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        adam.minimize(loss, model.trainable_variables)
        found.append(loss())
    return [*found, *predicted(model)]


@program
def classes():
    """Classification."""
    model = gpflow.models.VGP((X, (Y > 0).astype(float)), gpflow.kernels.RBF(), gpflow.likelihoods.Bernoulli())
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options={"maxiter": 5})
    return [model.elbo(), *tf.reshape(model.predict_y(NEW)[0], [-1])]


for name, function in PROGRAMS.items():
    print(name, *[float(x) for x in function()])
