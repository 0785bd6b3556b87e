"""WAV files, spectrograms and mel-frequency coefficients."""

import base64
import struct

from .base import *


def riff(*chunks, kind=b"WAVE"):
    body = kind + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunk(name, body, size=None):
    return name + struct.pack("<I", len(body) if size is None else size) + body


def form(channels=1, rate=8000, bits=16, code=1, frame=None, second=None, more=b""):
    frame = channels * 2 if frame is None else frame
    second = frame * rate if second is None else second
    return chunk(b"fmt ", struct.pack("<HHIIHH", code, channels, rate, second, frame, bits) + more)


def data(*samples):
    return chunk(b"data", struct.pack("<%dh" % len(samples), *samples))


def text(raw):
    return given("string", [], [{"b64": base64.b64encode(raw).decode()}])


def files(t):
    op = "DecodeWav"
    some = (0, 1, -1, 32767, -32768, 1234)
    mono, stereo = riff(form(), data(*some)), riff(form(2, 44100), data(*some))
    t.row("mono", op, [text(mono)])
    t.row("stereo", op, [text(stereo)])
    for channels, samples in ((1, -1), (3, -1), (-1, 2), (-1, 8), (4, 4), (0, -1), (-1, 0)):
        a = {"desired_channels": channels, "desired_samples": samples}
        t.row("stereo_%d_%d" % (channels, samples), op, [text(stereo)], a)
    t.row("negative_channels", op, [text(mono)], {"desired_channels": -2})
    t.row("negative_samples", op, [text(mono)], {"desired_samples": -2})
    for name, raw in (
        ("nothing", b""),
        ("short", b"RI"),
        ("other", b"RIFX" + mono[4:]),
        ("other_kind", riff(form(), data(1), kind=b"WAVX")),
        ("junk", riff(chunk(b"JUNK", b"12345678"), form(), data(1, 2))),
        ("bext", riff(chunk(b"bext", b"1234"), form(), data(1, 2))),
        ("unknown_before", riff(chunk(b"what", b"1234"), form(), data(1, 2))),
        ("long_junk", riff(chunk(b"JUNK", b"1234", 4000), form(), data(1, 2))),
        ("after", riff(form(), chunk(b"LIST", b"1234"), data(1, 2), chunk(b"tail", b"12"))),
        ("format_18", riff(form(more=b"\0\0"), data(1, 2))),
        ("format_20", riff(form(more=b"\0\0\0\0"), data(1, 2))),
        ("float", riff(form(code=3), data(1))),
        ("no_channels", riff(form(0, frame=2), data(1))),
        ("bits", riff(form(bits=8), data(1))),
        ("frame", riff(form(frame=4), data(1))),
        ("second", riff(form(second=1), data(1))),
        ("no_data", riff(form())),
        ("two_data", riff(form(), data(1), data(2))),
        ("cut", mono[:-3]),
        ("cut_format", mono[:30]),
        ("large", riff(form(), chunk(b"data", b"", 1 << 31))),
        ("long_tail", riff(form(), data(1, 2), chunk(b"tail", b"12", 100))),
        ("empty", riff(form(), data())),
        ("odd", riff(form(2), chunk(b"data", b"123456"))),
    ):
        t.row(name, op, [text(raw)])
    t.row("vector", op, [given("string", [1], ["x"])])
    op = "EncodeWav"
    rate = const(scalar("int32", 16000))
    t.row("mono", op, [drawn("float", [7, 1]), rate])
    t.row("stereo", op, [drawn("float", [5, 2]), rate])
    t.row("clamped", op, [given("float", [8, 1], [1, -1, 2, -2, 1e9, -1e9, INF, "-inf"]), rate])
    t.row("rounded", op, [given("float", [4, 1], [0.5 / 32768, 1.5 / 32768, -0.5 / 32768, 0.9999]), rate])
    t.row("empty", op, [drawn("float", [0, 2]), rate])
    t.row("no_channels", op, [drawn("float", [2, 0]), rate])
    t.row("vector", op, [const(drawn("float", [2])), rate])
    t.row("vector_rate", op, [drawn("float", [2, 1]), ivec(1)])
    for bad in (0, -1):
        t.row("rate_%d" % bad, op, [drawn("float", [2, 1]), const(scalar("int32", bad))])


def spectra(t):
    op = "AudioSpectrogram"
    wrong = {"wrong_static": [0], "tol": 1e-6}
    for window, stride in ((8, 4), (5, 3), (16, 1), (2, 2), (37, 20)):
        for squared in (False, True):
            a = {"window_size": window, "stride": stride, "magnitude_squared": squared}
            t.row("%d_%d_%d" % (window, stride, squared), op, [drawn("float", [60, 1])], a, **wrong)
            t.row("stereo_%d_%d_%d" % (window, stride, squared), op, [drawn("float", [41, 2])], a, **wrong)
    a = {"window_size": 8, "stride": 4}
    t.row("short", op, [drawn("float", [7, 1])], a, **wrong)
    t.row("exact", op, [drawn("float", [8, 1])], a, **wrong)
    t.row("empty", op, [drawn("float", [0, 1])], a, **wrong)
    t.row("no_channels", op, [drawn("float", [9, 0])], a, **wrong)
    t.row("special", op, [given("float", [8, 1], [1, 2, NAN, 4, 5, 6, 7, 8])], a, **wrong)
    t.row("vector", op, [const(drawn("float", [8]))], a)
    t.row("one", op, [drawn("float", [8, 1])], {"window_size": 1, "stride": 4}, message="code-only")
    t.row("no_window", op, [drawn("float", [8, 1])], {"window_size": 0, "stride": 4}, message="code-only")
    t.row("no_stride", op, [drawn("float", [8, 1])], {"window_size": 8, "stride": 0}, message="code-only")
    op = "Mfcc"
    rate = const(scalar("int32", 16000))
    x = drawn("float", [2, 3, 129], 0, 9)
    for name, a in (
        ("defaults", {}),
        ("few", {"filterbank_channel_count": 8, "dct_coefficient_count": 8}),
        ("wide", {"lower_frequency_limit": 0.0, "upper_frequency_limit": 8000.0}),
        ("narrow", {"lower_frequency_limit": 1000.0, "upper_frequency_limit": 1100.0}),
        ("above", {"upper_frequency_limit": 7999.0}),
        ("one", {"dct_coefficient_count": 1}),
    ):
        t.row(name, op, [x, rate], a, tol=1e-6)
    t.row("zeros", op, [given("float", [1, 1, 65], 0.0), rate], tol=1e-6)
    t.row("negative", op, [given("float", [1, 1, 65], -1.0), rate], tol=1e-6)
    t.row("empty", op, [drawn("float", [0, 3, 65]), rate])
    for name, a in (
        ("no_bands", {"filterbank_channel_count": 0}),
        ("no_coefficients", {"dct_coefficient_count": 0}),
        ("many_coefficients", {"dct_coefficient_count": 41}),
        ("limits", {"lower_frequency_limit": 5000.0}),
        ("below", {"lower_frequency_limit": -1.0}),
    ):
        t.row(name, op, [x, rate], a)
    t.row("no_rate", op, [x, const(scalar("int32", 0))])
    t.row("one_frequency", op, [drawn("float", [1, 1, 1]), rate])
    t.row("matrix", op, [const(drawn("float", [3, 65])), rate])
    t.row("vector_rate", op, [x, ivec(1)])


def fill(t):
    files(t)
    spectra(t)
