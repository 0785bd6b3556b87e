"""Makes the pictures of examples/README.md from runs of examples/python.

    PYTHONPATH=python python python/tools/make_example_pictures.py [example ...]

Runs the examples unchanged. To read values that an example does not print, it calls `during` after each session step and `end` before a
session closes, both with the session and the program's global names.
"""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import runnel as tf
from runnel.core.session import BaseSession
from svg_chart import COLOURS, Panel, blue, diverging, ink, picture

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "examples", "python")
PICTURES = os.path.join(ROOT, "examples", "pictures")
sys.path.insert(0, FOLDER)


def run(name, *arguments, during=None, end=None):
    """Runs an example. Returns its global names, with its output under "printed"."""
    path = os.path.join(FOLDER, name + ".py")
    names = {"__name__": "__main__", "__file__": path}
    step, close, busy = BaseSession.run, BaseSession.close, []

    def watched_run(self, fetches, feed_dict=None, *more, **options):
        result = step(self, fetches, feed_dict, *more, **options)
        if during and not busy:
            busy.append(True)
            during(self, names, fetches, feed_dict, result)
            busy.clear()
        return result

    def watched_close(self):
        if end and not self._closed:
            busy.append(True)
            end(self, names)
            busy.clear()
        close(self)

    printed, argv = io.StringIO(), sys.argv
    BaseSession.run, BaseSession.close, sys.argv = watched_run, watched_close, [path, *arguments]
    try:
        with tf.Graph().as_default(), open(path, encoding="utf-8") as stream, contextlib.redirect_stdout(printed):
            exec(compile(stream.read(), path, "exec"), names)
            if isinstance(names.get("sess"), tf.InteractiveSession):
                names["sess"].close()
    finally:
        BaseSession.run, BaseSession.close, sys.argv = step, close, argv
    names["printed"] = printed.getvalue()
    return names


def losses(name, *arguments, train="train", loss="loss", every=1, end=None):
    """Returns the loss after every `every` training steps of a program, and the program's names."""
    values = []

    def during(sess, names, fetches, feed, _):
        if train in names and names[train] in (fetches if isinstance(fetches, (list, tuple)) else [fetches]):
            count[0] += 1
            if count[0] % every == 0:
                values.append((count[0], float(sess.run(names[loss], feed))))

    count = [0]
    names = run(name, *arguments, during=during, end=end)
    return np.array(values).T, names


def average(values, over):
    """Returns the moving average over `over` values."""
    return [float(np.mean(values[max(0, i - over + 1):i + 1])) for i in range(len(values))]


def two_layers():
    drawn = run("two_layers")["x"].graph._repr_svg_()
    return drawn.replace(">", '><rect width="100%" height="100%" fill="#ffffff"/>', 1)


def perceptrons():
    side = np.linspace(-0.5, 1.5, 40)
    grids = []

    def during(sess, names, fetches, feed, result):
        if not isinstance(fetches, tf.Tensor):
            return
        x = next(t for t in feed if t.shape[1] == 2)
        points = np.array([[a, b] for b in side[::-1] for a in side]).reshape(-1, 4, 2)
        grids.append(np.concatenate([sess.run(fetches, {x: four}) for four in points]).reshape(40, 40))

    names = run("perceptrons", during=during)
    panels = []
    for grid, (gate, title) in zip(grids, [("AND", "AND"), ("OR", "OR"), ("XOR", "XOR, one neuron"), ("XOR", "XOR, a hidden layer")]):
        panel = Panel(172, 196, title)
        panel.x = panel.y = (-0.5, 1.5)
        panel.image(2 * grid - 1, diverging)
        for (a, b), answer in zip(names["INPUTS"], names["GATES"][gate]):
            panel.points([a], [b], COLOURS[1] if answer else COLOURS[0], 8, edge="#ffffff")
            panel.text(panel.at(a, b)[0], panel.at(a, b)[1] + 4, answer, "middle", 11, "#ffffff", "600")
        panels.append(panel)
    return picture(panels)


def linear_regression():
    lines = []

    def during(sess, names, fetches, feed, _):
        if fetches is names.get("train") or fetches is names.get("init"):
            lines.append(sess.run([names["W"], names["b"], names["loss"]]))

    names = run("linear_regression", during=during)
    left = Panel(340, 230, "the points, and the line after so many steps").axes((0, 1), (-0.1, 0.5), "x")
    left.points(names["x_data"][::8], names["y_data"][::8], "#999999", 1.6)
    for count, colour in zip((0, 4, 20, 400), COLOURS):
        w, b, _ = lines[count]
        left.line([0, 1], [b[0], w[0] + b[0]], colour)
    for row, (count, colour) in enumerate(zip((0, 4, 20, 400), COLOURS)):
        left.text(78 + 72 * row, 184, "%d steps" % count, "middle", 11, colour, "600")
    right = Panel(340, 230, "the squared error").axes((0, 100), (5e-5, 0.5), "step", log=True)
    right.line(range(101), [loss for _, _, loss in lines[:101]])
    return picture([left, right])


def softmax_digits():
    kept = []
    (steps, values), names = losses("softmax_digits", train="train_step", loss="cross_entropy", every=5,
                                    end=lambda sess, names: kept.append(sess.run(names["W"])))
    curve = Panel(300, 230, "cross entropy").axes((0, 600), (0.05, 2.5), "step", log=True)
    curve.line(steps, values, opacity=0.35)
    curve.line(steps, average(values, 10))
    weights = Panel(420, 230, "what each digit looks for: orange for, blue against")
    for digit in range(10):
        column, row = digit % 5, digit // 5
        weights.image(kept[0][:, digit].reshape(8, 8) / 1.5, diverging, 6 + 82 * column, 4 + 98 * row, 74, 74)
        weights.text(6 + 82 * column + 39, 24 + 4 + 98 * row + 89, digit, "middle", 12)
    return picture([curve, weights])


def convnet_digits():
    kept = []

    def end(sess, names):
        first = sess.graph.get_tensor_by_name("Relu:0")
        kept.extend(sess.run([tf.trainable_variables()[0], first], {names["x"]: names["test_images"][:2]}))

    (steps, values), names = losses("convnet_digits", train="train_step", every=4, end=end)
    curve = Panel(270, 250, "cross entropy, with dropout").axes((0, 400), (0.02, 3), "step", log=True)
    curve.line(steps, values, opacity=0.35)
    curve.line(steps, average(values, 10))
    filters = Panel(200, 250, "16 filters of 3 x 3, learned")
    for i in range(16):
        filters.image(kept[0][:, :, 0, i] / np.abs(kept[0]).max(), diverging, 8 + 47 * (i % 4), 10 + 53 * (i // 4), 40, 40)
    maps = Panel(290, 250, "a digit, and what they see in it")
    maps.image(names["test_images"][0].reshape(8, 8), ink, 4, 76, 64, 64)
    for i in range(16):
        maps.image(kept[1][0, :, :, i] / kept[1][0].max(), blue, 84 + 51 * (i % 4), 10 + 53 * (i // 4), 46, 46)
    return picture([curve, filters, maps])


def language_model():
    panel = Panel(520, 260, "perplexity of the next word, of 200").axes((0, 400), (3.5, 220), "step", log=True)
    for kind, colour in zip(("full", "sampled"), COLOURS):
        (steps, values), names = losses("language_model", "--softmax", kind, loss="full", every=4)
        panel.line(steps, np.exp(values), colour)
        panel.legend(names["printed"].strip().splitlines()[-1].split(", ")[1], colours=[colour], row=kind == "sampled")
    panel.line([0, 400], [4, 4], "#888888", 1.2, "5 4")
    panel.note(60, 4.3, "least possible: 4", "#666666", size=10)
    return picture([panel])


def transformer():
    panel = Panel(520, 260, "perplexity of the next word, of 200").axes((0, 400), (3.5, 220), "step", log=True)
    (steps, values), _ = losses("transformer", every=4)
    panel.line(steps, np.exp(values), COLOURS[0])
    panel.line([0, 400], [4, 4], "#888888", 1.2, "5 4")
    panel.note(60, 4.3, "least possible: 4", "#666666", size=10)
    return picture([panel])


def word2vec():
    kept, values = [], []

    def during(sess, names, fetches, feed, result):
        if isinstance(fetches, tf.Operation):  # the program has just initialized its variables
            kept.append(sess.run(names["similarity"]))
        elif isinstance(fetches, list):
            values.append(float(result[1]))

    run("word2vec", during=during, end=lambda sess, names: kept.append(sess.run(names["similarity"])))
    curve = Panel(250, 226, "noise-contrastive loss").axes((0, 1500), (0, 40), "step")
    curve.line(range(1, 1501, 10), average(values, 20)[::10])
    panels = [curve]
    for title, matrix in zip(("alike before", "alike after training"), kept):
        panel = Panel(204, 226, title)
        panel.image(np.round(matrix * 5) / 5, diverging, 0, 0)
        panels.append(panel)
    return picture(panels)


def gan():
    noise, moments, kept = np.random.RandomState(9).randn(4000, 4), (1, 200, 600, 2500), []
    count = [0]

    def during(sess, names, fetches, feed, _):
        if isinstance(fetches, list):
            count[0] += 1
            if count[0] in moments:
                kept.append(sess.run(names["fake"], {names["z"]: noise}).ravel())

    names = run("gan", during=during)
    real, bins = names["real"](4000).ravel(), np.linspace(-4, 4, 41)
    panels = []
    for samples, moment in zip(kept, moments):
        panel = Panel(176, 190, "step %d" % moment).axes((-4, 4), (0, 1.5))
        panel.bars(bins[:-1], np.minimum(np.histogram(samples, bins, density=True)[0], 1.5), 0.2, COLOURS[1], 0.8)
        density = np.histogram(real, bins, density=True)[0]
        panel.line(np.repeat(bins, 2)[1:-1], np.repeat(density, 2), COLOURS[0])
        panels.append(panel)
    panels[0].legend("made up", "real", colours=[COLOURS[1], COLOURS[0]])
    return picture(panels)


def reinforce():
    names = run("reinforce")
    lengths = names["lengths"]
    panel = Panel(480, 240, "time steps until the pole falls").axes((0, 50 * -(-len(lengths) // 50)), (0, 210), "episode")
    panel.points(range(1, len(lengths) + 1), lengths, COLOURS[0], 2, 0.45)
    panel.line(range(1, len(lengths) + 1), average(lengths, 20), COLOURS[1], 2.4)
    panel.line([0, 50 * -(-len(lengths) // 50)], [200, 200], "#888888", 1.2, "5 4")
    return picture([panel])


def image_networks():
    panel = Panel(560, 270, "loss on eight synthetic pictures, an eighth of the channels").axes((1, 20), (0, 4), "step")
    for row, (net, colour) in enumerate(zip(("alexnet", "overfeat", "vgg_a", "googlenet", "inception_v3", "resnet18"), COLOURS)):
        names = run("image_networks", "--net", net, "--steps", "20")
        panel.line(range(1, 21), names["losses"], colour)
        panel.legend(net, colours=[colour], row=row)
    return picture([panel])


def keras_digits():
    history = run("keras_digits")["history"].history
    epochs = range(1, len(history["loss"]) + 1)
    panels = []
    accuracy = next(key for key in history if key.startswith("acc"))
    for title, key, top in ("loss", "loss", 2.0), ("accuracy", accuracy, 1.0):
        panel = Panel(300, 230, title).axes((1, len(epochs)), (0.4 if top == 1 else 0, top), "epoch")
        panel.line(epochs, history[key], COLOURS[0])
        panel.line(epochs, history["val_" + key], COLOURS[1])
        panel.legend("training", "held out", row=8 if top == 1 else 0)
        panels.append(panel)
    return picture(panels)


def dataset_digits():
    seen, images = [], []

    def end(sess, names):
        sess.run(names["to_test"])
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                image, label, guess = sess.run([names["image"], names["label"], tf.argmax(names["logits"], 1)])
                seen.extend(zip(label, guess))
                images.extend(image)

    (steps, values), names = losses("dataset_digits", end=end)
    curve = Panel(240, 250, "loss, batch by batch").axes((0, len(steps)), (0.02, 3), "batch of 50", log=True)
    curve.line(steps, values, width=1.4)
    table = np.zeros((10, 10))
    for label, guess in seen:
        table[label, guess] += 1
    confusion = Panel(250, 250, "297 unseen digits, as they were taken")
    left, top, wide, high = confusion.frame = (24, 28, 216, 200)
    confusion.image(table / 30, blue)
    for i in range(10):
        confusion.text(14, top + 20 * i + 14, i, "middle", 10)
        confusion.text(left + 21.6 * i + 11, 242, i, "middle", 10)
        for j in range(10):
            if table[i, j]:
                confusion.text(left + 21.6 * j + 11, top + 20 * i + 14, int(table[i, j]), "middle", 9, "#ffffff" if table[i, j] > 12 else "#222222")
    wrong = Panel(210, 250, "those taken wrongly")
    errors = [i for i, (label, guess) in enumerate(seen) if label != guess][:9]
    for place, i in enumerate(errors):
        x, y = 12 + 66 * (place % 3), 6 + 72 * (place // 3)
        wrong.image(images[i].reshape(8, 8), ink, x, y, 48, 48)
        wrong.text(x + 26, y + 24 + 61, "%d, not %d" % (seen[i][1], seen[i][0]), "middle", 10)
    return picture([curve, confusion, wrong])


def _environment():
    return dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))


def _losses_of(lines):
    """Returns the (steps, losses) that a program printed."""
    found = re.findall(r"step (\d+), loss ([\d.]+)", "".join(lines))
    return [int(step) for step, _ in found], [float(loss) for _, loss in found]


def restart_digits():
    panel = Panel(520, 240, "loss of two processes, one after the other").axes((0, 400), (0.02, 3), "step", log=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, os.path.join(FOLDER, "restart_digits.py"), "--folder", folder, "--steps", "400"]
        with subprocess.Popen([*command, "--slowly", "0.005"], env=_environment(), stdout=subprocess.PIPE, text=True) as first:
            lines = []
            for line in first.stdout:
                lines.append(line)
                if line.startswith("step 180,"):
                    break
            os.kill(first.pid, signal.SIGKILL)
        panel.line(*_losses_of(lines), COLOURS[0])
        done = subprocess.run(command, env=_environment(), stdout=subprocess.PIPE, text=True, check=True)
    begins = int(re.match(r"begins at step (\d+)", done.stdout).group(1))
    panel.line(*_losses_of(done.stdout), COLOURS[1])
    panel.line([begins, begins], [0.02, 3], "#888888", 1.2, "5 4")
    panel.note(begins + 5, 2, "kill -9; goes on from step %d" % begins, "#444444", "start")
    return picture([panel])


def distributed_digits():
    panel = Panel(520, 240, "loss of each worker, one parameter server").axes((0, 600), (0.01, 2), "step of all", log=True)
    for row, (kind, colours) in enumerate([((), COLOURS[:2]), (("--sync",), COLOURS[2:4])]):
        ports = 23400 + 10 * row + os.getpid() % 500
        places = ["--ps", "localhost:%d" % ports, "--worker", "localhost:%d,localhost:%d" % (ports + 1, ports + 2), "--steps", "600", *kind]
        command = [sys.executable, "-m", "runnel", os.path.join(FOLDER, "distributed_digits.py"), *places]
        with subprocess.Popen([*command, "--job", "ps"], env=_environment()) as server:
            workers = [subprocess.Popen([*command, "--task", str(task)], env=_environment(), stdout=subprocess.PIPE, text=True) for task in range(2)]
            for task, worker in enumerate(workers):
                panel.line(*_losses_of(worker.communicate(timeout=120)[0]), colours[task])
                panel.legend("worker %d, %s" % (task, "together" if kind else "each by itself"), colours=[colours[task]], row=2 * row + task)
            server.kill()
    return picture([panel])


def _listener(address):
    """Returns the id of the process that listens at an address of this machine."""
    import psutil  # comes with Dask
    port = int(address.rsplit(":", 1)[1])
    return next(found.pid for found in psutil.net_connections("tcp") if found.status == psutil.CONN_LISTEN and found.laddr.port == port)


def engine_digits():
    steps, seconds, lost = [], [], None
    command = [sys.executable, os.path.join(FOLDER, "engine_digits.py"), "--engine", "dask", "--steps", "400"]
    with subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout:
            if line.startswith("ps="):
                server = line.split()[0].removeprefix("ps=")
            if line.startswith("step"):
                steps.append(int(re.match(r"step (\d+)", line).group(1)))
                seconds.append(time.monotonic())
            if lost is None and steps and steps[-1] >= 200:
                lost = len(steps) - 1
                os.kill(_listener(server), signal.SIGKILL)
    seconds = [second - seconds[0] for second in seconds]
    panel = Panel(520, 240, "steps done, in Dask").axes((0, 1.05 * seconds[-1]), (0, 400), "seconds")
    panel.line(seconds, steps, COLOURS[0])
    panel.note(seconds[lost] + 0.02 * seconds[-1], steps[lost] - 45, "kill -9 of the parameter server", "#444444", "start")
    return picture([panel])


def serve_digits():
    rates = run("serve_digits")["rates"]
    panel = Panel(460, 240, "requests a second, of 32 clients")
    panel.axes((-0.5, 5.5), (0, 1.15 * max(rates.values())), "most requests in a batch", names=dict(enumerate(rates)))
    panel.bars([i - 0.35 for i in range(6)], rates.values(), 0.7)
    for i, rate in enumerate(rates.values()):
        panel.note(i, rate + 0.02 * max(rates.values()), f"{rate:,.0f}", size=10)
    return picture([panel])


ALL = [two_layers, perceptrons, linear_regression, softmax_digits, convnet_digits, language_model, transformer, word2vec, gan, reinforce, image_networks,
       keras_digits, dataset_digits, restart_digits, distributed_digits, engine_digits, serve_digits]


def main(wanted):
    os.makedirs(PICTURES, exist_ok=True)
    for make in ALL:
        if not wanted or make.__name__ in wanted:
            path = os.path.join(PICTURES, make.__name__ + ".svg")
            text = make()
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            print(path, len(text))


if __name__ == "__main__":
    main(sys.argv[1:])
