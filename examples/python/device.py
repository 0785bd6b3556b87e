"""--device cpu or --device gpu, for the examples that are worth a GPU."""

import runnel as tf


def add_option(parser):
    parser.add_argument("--device", choices=["cpu", "gpu"], help="where to compute; by default, on a GPU if there is one")


def session(options):
    """A session on the chosen device."""
    sess = tf.Session(config=tf.ConfigProto(device_count={"GPU": 0} if options.device == "cpu" else {}))
    if options.device == "gpu" and all(device.device_type != "GPU" for device in sess.list_devices()):
        raise SystemExit("--device gpu: there is none")
    return sess
