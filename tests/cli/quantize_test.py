"""runnel quantize: a net trained here keeps its accuracy, stock TensorFlow runs the 8-bit model with the same results, the report is
right, and data that does not fit is refused with a message that helps.

usage: quantize_test.py RUNNEL DIGITS.bin
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np

try:
    import tensorflow as tf
except ImportError:
    sys.exit(77)

RUNNEL = os.path.abspath(sys.argv[1])
failures = 0


def fail(text):
    global failures
    failures += 1
    print("FAILED:", text)


def call(*arguments):
    return subprocess.run([RUNNEL, *arguments], capture_output=True, text=True)


def good(*arguments):
    got = call(*arguments)
    if got.returncode:
        sys.exit(f"FAILED: {arguments}: {got.stderr}")
    return got.stdout


def refused(text, *arguments):
    got = call("quantize", *arguments, "--output", "refused")
    if got.returncode == 0 or text not in got.stderr or len(got.stderr.splitlines()) != 1:
        fail(f"{arguments} should be refused with '{text}', not {got.returncode}: {got.stderr}")
    if os.path.exists("refused"):
        fail(f"{arguments} left a model")


def write(path, rows):
    kinds = {"f": lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             "i": lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
             "S": lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}
    with tf.io.TFRecordWriter(path) as out:
        for row in rows:
            feature = {key: kinds[np.asarray(value).dtype.kind](np.ravel(value)) for key, value in row.items()}
            out.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def digits():
    raw = np.frombuffer(open(sys.argv[2], "rb").read()[20:], np.uint8).reshape(-1, 65)
    return (raw[:, :64] / 16).reshape(-1, 8, 8, 1).astype(np.float32), raw[:, 64].astype(np.int64)


def train(images, labels):
    """Has all that is quantized: biases, folded batch norms, a depthwise convolution, a shortcut, padding, pooling, dense layers."""
    tf.keras.utils.set_random_seed(1)
    k = tf.keras.layers
    x = tf.keras.Input((8, 8, 1), name="images")
    y = k.ReLU()(k.BatchNormalization(momentum=0.8)(k.Conv2D(16, 3, padding="same", use_bias=False)(x)))
    z = k.ReLU(6.0)(k.BatchNormalization(momentum=0.8)(k.DepthwiseConv2D(3, padding="same", use_bias=False)(y)))
    z = k.BatchNormalization(momentum=0.8)(k.Conv2D(16, 1, use_bias=False)(z))
    y = k.MaxPool2D()(k.ReLU()(k.Add()([z, y])))
    y = k.ReLU()(k.Conv2D(32, 3, strides=2)(k.ZeroPadding2D(1)(y)))
    y = k.Dense(48, activation="gelu")(k.Flatten()(y))
    model = tf.keras.Model(x, k.Dense(10)(y))
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, epochs=4, batch_size=32, verbose=0)
    return model


def decibels(wanted, got):
    with np.errstate(divide="ignore"):  # equal: infinite
        return 10 * np.log10(np.sum(np.square(wanted)) / np.sum(np.square(wanted - got)))


def check_report(report, plain, small):
    for row in report["layers"]:
        if not row["is_8bit"]:
            fail(f"{row['name']} is left in float: {row['reason']}")
    if len(report["layers"]) != 6:
        fail(f"{len(report['layers'])} layers, not 6")
    output = report["outputs"][0]
    if abs(output["sqnr_db"] - decibels(plain, small)) > 0.01:
        fail(f"the report says {output['sqnr_db']} dB, it is {decibels(plain, small)}")
    if abs(output["max_error"] - np.abs(plain - small).max()) > 1e-4:
        fail(f"the report says an error of {output['max_error']}, it is {np.abs(plain - small).max()}")
    if abs(output["same_top1"] - np.mean(plain.argmax(1) == small.argmax(1))) > 1e-6:
        fail("the share of equal classes is wrong")


def check_model(method, images, labels, keras):
    folder = f"small_{method}"
    report = json.loads(good("quantize", "model", "--data", "test.tfrecord", "--output", folder, "--method", method,
                             "--labels", "label", "--examples", "2000", "--json", "--compare"))
    good("run", folder, "--feed", "images=@images.npy", "--save", "output_0=ours.npy")
    ours = np.load("ours.npy")
    plain = keras.predict(images, verbose=0)
    loaded = tf.saved_model.load(folder).signatures["serving_default"]
    stock = loaded(images=tf.constant(images))["output_0"].numpy()
    check_report(report, plain, ours)
    # Where stock's float sums fall on the other side of a tie, a level differs.
    if decibels(stock, ours) < 40 or np.median(np.abs(stock - ours)) > 1e-4 * np.abs(stock).max():
        fail(f"{method}: stock's results differ: {decibels(stock, ours)} dB, median {np.median(np.abs(stock - ours))}")
    accuracy = [np.mean(scores.argmax(1) == labels) for scores in (plain, ours, stock)]
    if accuracy[0] < 0.9 or min(accuracy[1:]) < accuracy[0] - 0.01:
        fail(f"{method}: accuracy in float, here and in stock: {accuracy}")
    top1 = report["outputs"][0]["top1"]
    if abs(top1[0] - accuracy[0]) > 1e-6 or abs(top1[1] - accuracy[1]) > 1e-6:
        fail(f"{method}: the report says {top1}, it is {accuracy}")


def check_float():
    """Layers that --float names stay in float, with that reason."""
    report = json.loads(good("quantize", "model", "--data", "images=images.npy", "--output", "half", "--json",
                             *(f"--float={name}" for name in LAYERS[1:])))
    kept = {row["name"]: row.get("reason") for row in report["layers"] if not row["is_8bit"]}
    if sorted(kept) != sorted(LAYERS[1:]) or set(kept.values()) != {"--float keeps it"}:
        fail(f"--float: {kept}")


def check_refusals(images):
    row = {"images": images[0], "label": 1}
    write("other.tfrecord", [{"pixels": images[0]}])
    refused("example 0 has no feature 'images'; it has 'pixels'", "model", "--data", "other.tfrecord")
    write("half.tfrecord", [row, {"images": images[0]}])
    refused("example 1 has no feature 'label'; it has 'images'", "model", "--data", "half.tfrecord", "--labels", "label")
    write("wrong.tfrecord", [{"images": images[0][:4]}])
    refused("has 32 numbers, not 64; the input is float [?,8,8,1]", "model", "--data", "wrong.tfrecord")
    write("nan.tfrecord", [row, {"images": np.where(images[0] > 0.9, np.nan, images[0]).astype(np.float32)}])
    refused("example 1: the feature 'images' has NaN at", "model", "--data", "nan.tfrecord")
    write("text.tfrecord", [{"images": np.array([b"png"])}])
    refused("is a bytes_list, but float needs a float_list or int64_list", "model", "--data", "text.tfrecord")
    write("empty.tfrecord", [])
    refused("has no examples", "model", "--data", "empty.tfrecord")
    with open("cut.tfrecord", "wb") as out:
        out.write(open("test.tfrecord", "rb").read()[:100])
    refused("truncated record at 0", "model", "--data", "cut.tfrecord")
    with tf.io.TFRecordWriter("noise.tfrecord") as records:
        records.write(b"\x0a\xff")
    refused("record 0 is not a tf.Example", "model", "--data", "noise.tfrecord")
    refused("no_such.tfrecord", "model", "--data", "no_such.tfrecord")
    np.save("flat.npy", images.reshape(-1, 64))
    refused("the input is float [?,8,8,1]", "model", "--data", "images=flat.npy")
    np.save("none.npy", images[:0])
    refused("the array has no examples", "model", "--data", "images=none.npy")
    refused("the model has no input 'x'", "model", "--data", "x=images.npy")
    refused("--data is missing", "model")
    refused("no layer of that name", "model", "--data", "test.tfrecord", "--float", "nothing")
    refused("a number above 50", "model", "--data", "test.tfrecord", "--percentile", "5")
    refused("no_such_model", "no_such_model", "--data", "test.tfrecord")


with tempfile.TemporaryDirectory() as folder:
    sys.argv[2] = os.path.abspath(sys.argv[2])
    os.chdir(folder)
    all_images, all_labels = digits()
    net = train(all_images[:1400], all_labels[:1400])
    net.export("model", verbose=False)
    test_images, test_labels = all_images[1400:], all_labels[1400:]
    np.save("images.npy", test_images)
    write("test.tfrecord", [{"images": i, "label": int(j)} for i, j in zip(test_images, test_labels)])
    for name in ("minmax", "percentile", "entropy"):
        check_model(name, test_images, test_labels, net)
    LAYERS = [row["name"] for row in json.loads(
        good("quantize", "model", "--data", "test.tfrecord", "--output", "names", "--json"))["layers"]]
    check_float()
    check_refusals(test_images)
    if call("quantize", "model", "--data", "test.tfrecord", "--output", "names").returncode == 0:
        fail("an existing model is replaced")
    good("quantize", "model", "--data", "test.tfrecord", "--output", "names", "--overwrite")
sys.exit(1 if failures else 0)
