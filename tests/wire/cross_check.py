"""Round trips of random messages between wire/ and stock protobuf, both ways, binary and text.

    cross_check.py WIRE_TOOL [ROUNDS]     check every message type
    cross_check.py --record FOLDER        write the fixtures that the C tests read:
                                          NAME.pb and NAME.txt of each message
"""
import os
import random
import struct
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow  # noqa: F401  (registers the descriptors)
from tensorflow.core.framework import api_def_pb2, kernel_def_pb2  # noqa: F401
from tensorflow.core.protobuf import config_pb2, tensorflow_server_pb2  # noqa: F401
from google.protobuf import descriptor_pool, message_factory, text_format

INT_EDGES = [0, 1, 127, 128, 300, 16383, 16384, 2**31 - 1, -1, -2, -2**31]
LONG_EDGES = INT_EDGES + [2**31, 2**35, 2**63 - 1, -2**63]
REALS = [0.0, -0.0, 1.0, 0.1, -2.5, 1e-30, 3e38, float("inf"), float("-inf"), 1 / 3, 123456.789]
STRINGS = ["", "a", "node/name:0", "quote\"'\\", "line\nbreak\ttab\r", "žluť", "x" * 200,
           "?? \x01\x7f"]


def random_scalar(field, rng):
    kind = field.type
    if kind in (3, 16, 18):
        return rng.choice(LONG_EDGES + [rng.getrandbits(63)])
    if kind in (4, 6):
        return rng.choice([0, 1, 127, 128, 2**32, 2**64 - 1, rng.getrandbits(64)])
    if kind in (5, 15, 17):
        return rng.choice(INT_EDGES + [rng.getrandbits(31)])
    if kind in (7, 13):
        return rng.choice([0, 1, 127, 128, 2**32 - 1, rng.getrandbits(32)])
    if kind == 8:
        return rng.random() < 0.6
    if kind == 9:
        return rng.choice(STRINGS)
    if kind == 12:
        noise = bytes(rng.getrandbits(8) for _ in range(9))
        return rng.choice([s.encode() for s in STRINGS] + [noise])
    if kind == 14:
        values = [v.number for v in field.enum_type.values]
        closed = field.enum_type.is_closed
        return rng.choice(values if closed else values + [12345, -7])
    value = rng.choice(REALS + [rng.uniform(-1e6, 1e6)])
    return value if kind == 1 else struct.unpack("f", struct.pack("f", value))[0]


def fill(message, rng, depth, density=0.5):
    for field in message.DESCRIPTOR.fields:
        if rng.random() > density:
            continue
        sub = field.message_type
        if field.is_repeated and sub and sub.GetOptions().map_entry:
            value = sub.fields_by_name["value"]
            for _ in range(rng.randrange(4)):
                key = random_scalar(sub.fields_by_name["key"], rng)
                target = getattr(message, field.name)
                if value.message_type:
                    if depth > 0:
                        fill(target[key], rng, depth - 1, density)
                    else:
                        target[key].SetInParent()
                else:
                    target[key] = random_scalar(value, rng)
        elif sub and depth <= 0:
            continue
        elif field.is_repeated:
            for _ in range(rng.randrange(4)):
                if sub:
                    fill(getattr(message, field.name).add(), rng, depth - 1, density)
                else:
                    getattr(message, field.name).append(random_scalar(field, rng))
        elif sub:
            getattr(message, field.name).SetInParent()
            fill(getattr(message, field.name), rng, depth - 1, density)
        else:
            setattr(message, field.name, random_scalar(field, rng))
    return message


def canonical(message):
    return message.SerializeToString(deterministic=True)


def run(tool, mode, name, data):
    done = subprocess.run([tool, mode, name], input=data, capture_output=True)
    if done.returncode:
        raise AssertionError(f"{mode} {name}: {done.stderr.decode()}")
    return done.stdout


def check_message(tool, cls, name, rng):
    message = fill(cls(), rng, depth=rng.choice([1, 2, 3]), density=rng.choice([0.15, 0.3, 0.6]))
    data = canonical(message)
    back = cls.FromString(run(tool, "b2b", name, message.SerializeToString()))
    assert canonical(back) == data, f"{name}: binary changed"
    ours = run(tool, "b2s", name, message.SerializeToString())
    assert canonical(cls.FromString(ours)) == data and len(ours) == len(data), f"{name}: sorted"
    same = ours == data
    for mode in ("b2t", "b2l"):
        text = run(tool, mode, name, data).decode()
        parsed = canonical(text_format.Parse(text, cls()))
        assert parsed == data, f"{name}: text not read by stock:\n{text}"
    for kwargs in ({}, {"as_one_line": True}, {"as_utf8": True}, {"pointy_brackets": True},
                   {"use_short_repeated_primitives": True}):
        text = text_format.MessageToString(message, **kwargs)
        back = canonical(cls.FromString(run(tool, "t2b", name, text.encode())))
        assert back == data, f"{name}: text not read by us:\n{text}"
    return same, len(data)


def our_messages(tool):
    lines = subprocess.run([tool, "list"], check=True, capture_output=True, text=True).stdout
    return [line.split()[1] for line in lines.splitlines() if line.startswith("message ")]


def classes(names):
    """Those that the wheel has Python for: all but the messages of clusters."""
    pool, found = descriptor_pool.Default(), {}
    for name in names:
        try:
            found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        except KeyError:
            continue
    return found


def record(folder):
    names = ["GraphDef", "AttrValue", "TensorProto", "OpDef", "FunctionDef", "KernelDef",
             "ConfigProto", "RunOptions", "RunMetadata", "DeviceAttributes", "ApiDef", "ServerDef",
             "GraphDebugInfo"]
    os.makedirs(folder, exist_ok=True)
    for name, cls in classes("tensorflow." + n for n in names).items():
        rng = random.Random(name)
        tries = [fill(cls(), rng, depth=2, density=0.4) for _ in range(100)]
        message = max((m for m in tries if m.ByteSize() < 2000), key=lambda m: m.ByteSize())
        short = os.path.join(folder, name.split(".")[-1])
        with open(short + ".pb", "wb") as out:
            out.write(canonical(message))
        with open(short + ".txt", "w", encoding="utf-8") as out:
            out.write(text_format.MessageToString(message))


def main():
    if sys.argv[1] == "--record":
        return record(sys.argv[2])
    tool, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
    count = size = identical = 0
    for name, cls in classes(our_messages(tool)).items():
        for i in range(rounds):
            same, bytes_ = check_message(tool, cls, name, random.Random(f"{name} {i}"))
            count, size, identical = count + 1, size + bytes_, identical + same
    print(f"{count} messages, {size} bytes, {identical} with the very bytes of stock")
    return 0


if __name__ == "__main__":
    sys.exit(main())
