"""Summary ops."""

from .base import *


def text(value):
    return scalar("string", value)


def b64(data):
    import base64

    return {"b64": base64.b64encode(data).decode()}


def fill(t):
    t.each("", "ScalarSummary", "F I U", lambda d: [text("a"), scalar(d, 3)])
    t.row("several", "ScalarSummary", [vec("string", ["a", "b"]), vec("float", [1.5, -2])])
    t.row(
        "matrix",
        "ScalarSummary",
        [given("string", [1, 2], ["a", "b"]), given("float", [1, 2], [1, 2])],
    )
    t.row("one_of_many", "ScalarSummary", [text("a"), vec("float", [1])])
    t.row("special", "ScalarSummary", [vec("string", ["n", "i"]), vec("float", [NAN, INF])])
    t.row("empty", "ScalarSummary", [given("string", [0], []), given("float", [0], [])])
    t.row("wrong_sizes", "ScalarSummary", [vec("string", ["a", "b"]), vec("float", [1])])
    t.row("zero", "ScalarSummary", [text(""), scalar("float", 0.0)])
    t.row("long", "ScalarSummary", [text("tag" * 60), scalar("double", 1e10)])

    t.each("", "HistogramSummary", "F I U", lambda d: [text("h"), vec(d, [1, 5, 0, 100, 5])])
    t.row("signs", "HistogramSummary", [text("h"), vec("float", [1, 2, -3, 0.0, 1e-13, 2.1, -0.5])])
    t.row("drawn", "HistogramSummary", [text("h"), drawn("double", [40], -9, 9)])
    t.row("empty", "HistogramSummary", [text("h"), given("float", [0], [])])
    t.row("large", "HistogramSummary", [text("h"), vec("double", [1e300, -1e300])])
    t.row("nan", "HistogramSummary", [text("h"), vec("float", [1, NAN])])
    t.row("infinite", "HistogramSummary", [text("h"), vec("float", [1, INF])])
    t.row("tags", "HistogramSummary", [vec("string", ["h", "g"]), vec("float", [1])])
    t.row("limits", "HistogramSummary", [text("h"), vec("double", [1e-12, -1e-12, 1.1e-12])])

    one, two = node("ScalarSummary", [text("a"), scalar("float", 1)]), node(
        "ScalarSummary", [text("b"), scalar("float", 2)]
    )
    t.row("two", "MergeSummary", [[one, two]])
    t.row("one", "MergeSummary", [[one]])
    t.row("twice", "MergeSummary", [[one, one]])
    t.row("no_summary", "MergeSummary", [[text("no"), text("")]])
    t.row("nothing", "MergeSummary", [[text(""), text("")]])
    t.row("vector", "MergeSummary", [[vec("string", ["", ""]), one]])
    t.row("histogram", "MergeSummary", [[node("HistogramSummary", [text("h"), vec("float", [1])]), one]])

    t.each("", "TensorSummary", "F I U C b", lambda d: [drawn(d, [2, 3], 0, 9)])
    t.row("string", "TensorSummary", [vec("string", ["ab", "", "c"])])
    t.row("scalar", "TensorSummary", [scalar("float", 2)])
    t.row("empty", "TensorSummary", [given("float", [0, 2], [])])
    t.row(
        "attrs",
        "TensorSummary",
        [scalar("float", 2)],
        {"description": "d", "labels": ["x"], "display_name": "n"},
    )
    for d in dtypes("float int32 string"):
        values = ["a", "b"] if d == "string" else [1, 2]
        t.row(d, "TensorSummaryV2", [text("t"), vec(d, values), text(b64(b"\n\x02\n\x00"))])
    t.row("plain", "TensorSummaryV2", [text("t"), vec("float", [1]), text("")])
    t.row("no_metadata", "TensorSummaryV2", [text("t"), vec("float", [1]), text(b64(b"\xff\xff"))])
    t.row("tags", "TensorSummaryV2", [vec("string", ["t"]), vec("float", [1]), text("")])
    t.row("metadata", "TensorSummaryV2", [text("t"), vec("float", [1]), vec("string", ["", ""])])

    rate = scalar("float", 8000)
    t.row("matrix", "AudioSummaryV2", [text("t"), drawn("float", [1, 9], -1.5, 1.5), rate])
    t.row("channels", "AudioSummaryV2", [text("t"), drawn("float", [2, 5, 2]), rate])
    t.row(
        "at_most",
        "AudioSummaryV2",
        [text("t"), drawn("float", [3, 2, 1]), scalar("float", 22050.5)],
        {"max_outputs": 2},
    )
    t.row("one", "AudioSummaryV2", [text("t"), drawn("float", [3, 2]), rate], {"max_outputs": 1})
    t.row("empty", "AudioSummaryV2", [text("t"), given("float", [0, 3], []), rate])
    t.row("silent", "AudioSummaryV2", [text("t"), given("float", [1, 0], []), rate])
    t.row("vector", "AudioSummaryV2", [text("t"), drawn("float", [3]), rate])
    t.row("no_rate", "AudioSummaryV2", [text("t"), drawn("float", [1, 3]), scalar("float", -1)])
    t.row("rates", "AudioSummaryV2", [text("t"), drawn("float", [1, 3]), vec("float", [1, 2])])
    t.row("tags", "AudioSummaryV2", [vec("string", ["t", "u"]), drawn("float", [1, 3]), rate])
    t.row("special", "AudioSummaryV2", [text("t"), given("float", [1, 3], [INF, "-inf", 1]), rate])
    t.row("deprecated", "AudioSummary", [text("t"), drawn("float", [1, 3])], {"sample_rate": 8000.0})

    t.each("", "ImageSummary", "half float double", lambda d: [text("i"), drawn(d, [2, 3, 4, 3], 0, 2)])
    t.each("signed", "ImageSummary", "half float double", lambda d: [text("i"), drawn(d, [1, 3, 4, 1], -3, 2)])
    t.row("uint8", "ImageSummary", [text("i"), drawn("uint8", [2, 3, 4, 3], 0, 256)])
    t.row("alpha", "ImageSummary", [text("i"), drawn("uint8", [1, 3, 4, 4], 0, 256)])
    t.row("float_alpha", "ImageSummary", [text("i"), drawn("float", [1, 3, 4, 4], 0, 1)])
    t.row("one", "ImageSummary", [text("i"), drawn("uint8", [3, 2, 2, 1], 0, 256)], {"max_images": 1})
    t.row("five", "ImageSummary", [text("i"), drawn("uint8", [5, 2, 2, 1], 0, 256)])
    t.row("all", "ImageSummary", [text(""), drawn("uint8", [5, 2, 2, 1], 0, 256)], {"max_images": 9})
    t.row("none", "ImageSummary", [text("i"), given("uint8", [0, 2, 2, 1], [])])
    t.row("zeros", "ImageSummary", [text("i"), given("float", [1, 2, 2, 1], 0)])
    t.row("small", "ImageSummary", [text("i"), given("float", [1, 2, 2, 1], 1e-7)])
    t.row("ones", "ImageSummary", [text("i"), given("float", [1, 2, 2, 1], 1)])
    odd = given("float", [1, 2, 2, 3], [1, 2, NAN, 0, 0, 1, INF, 1, 1, "-inf", 0, 0.5])
    t.row("odd", "ImageSummary", [text("i"), odd])
    bad = {"dtype": "uint8", "shape": [3], "values": [1, 2, 3]}
    t.row("bad_color", "ImageSummary", [text("i"), odd], {"bad_color": bad})
    nothing = given("float", [1, 1, 2, 1], [NAN, INF])
    t.row("nothing", "ImageSummary", [text("i"), nothing])
    for name, colour in (
        ("short", {"dtype": "uint8", "shape": [2], "values": [1, 2]}),
        ("scalar", {"dtype": "uint8", "shape": [], "values": [1]}),
        ("int32", {"dtype": "int32", "shape": [4], "values": [1, 2, 3, 4]}),
    ):
        t.row("bad_" + name, "ImageSummary", [text("i"), odd], {"bad_color": colour})
    t.row("rank3", "ImageSummary", [text("i"), drawn("float", [3, 4, 3])])
    t.row("two_channels", "ImageSummary", [text("i"), drawn("float", [1, 3, 4, 2])])
    t.row("tags", "ImageSummary", [vec("string", ["i"]), drawn("float", [1, 3, 4, 3])])
    t.row("flat", "ImageSummary", [text("i"), given("uint8", [1, 0, 4, 3], [])])
