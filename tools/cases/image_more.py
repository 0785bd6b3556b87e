"""Colours, crops, boxes, glimpses and transforms of images."""

from .base import *


def colours(t):
    for op in ("RGBToHSV", "HSVToRGB"):
        for d in dtypes("F"):
            tol = {"half": 4e-3, "bfloat16": 3e-2}.get(d, 1e-6)
            t.row(d, op, [drawn(d, [2, 3, 3], 0, 1)], tol=tol)
        t.row("vector", op, [drawn("float", [3], 0, 1)], tol=1e-6)
        t.row("grey", op, [given("float", [2, 3], 0.5)], tol=1e-6)
        t.row("black", op, [given("float", [1, 3], 0)])
        t.row("corners", op, [given("float", [6, 3], [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1])])
        t.row("outside", op, [given("float", [3, 3], [-1, 2, 0.5, 3, 3, 3, 0.2, -0.4, 1.5])], tol=1e-5)
        t.row("empty", op, [given("float", [0, 3], [])])
        t.row("four", op, [drawn("float", [2, 4])])
        t.row("scalar", op, [scalar("float", 1)])
        t.row("large", op, [drawn("float", [37, 3], 0, 1)], tol=1e-6)


def crops(t):
    boxes = given("float", [4, 4], [0, 0, 1, 1, 0.2, 0.1, 0.7, 0.8, 0.5, 0.5, 0.5, 0.5, 0.9, 0.8, 0.1, 0.3])
    beyond = given("float", [2, 4], [-0.5, -0.25, 1.5, 1.25, 2, 2, 3, 3])
    which, two = vec("int32", [0, 1, 0, 1]), vec("int32", [1, 0])
    for d in dtypes("uint8 uint16 int8 int16 int32 int64 half float double"):
        t.row(d, "CropAndResize", [drawn(d, [2, 5, 6, 2], 0, 9), boxes, which, ivec(3, 4)], tol=1e-5)
    for method in ("bilinear", "nearest"):
        a = {"method": method}
        image = drawn("float", [2, 5, 6, 3])
        t.row(method, "CropAndResize", [image, boxes, which, ivec(4, 5)], a, tol=1e-5)
        far = vec("int32", [9] * which["shape"][0])
        # Stock's message ends with the overflowed product.
        starts = {"starts": "Encountered overflow when multiplying 8261499564 with 2065374891"}
        t.row(method + "_huge", "CropAndResize", [image, boxes, far, ivec(2065374891, 2065374891)], a, message=starts)
        t.row(method + "_far", "CropAndResize", [image, boxes, far, ivec(4, 5)], a)
        t.row(method + "_one", "CropAndResize", [image, boxes, which, ivec(1, 1)], a, tol=1e-5)
        t.row(method + "_beyond", "CropAndResize", [image, beyond, two, ivec(4, 4)], a, tol=1e-5)
        t.row(
            method + "_value",
            "CropAndResize",
            [image, beyond, two, ivec(3, 3)],
            dict(a, extrapolation_value=-7.5),
            tol=1e-5,
        )
        t.row(
            method,
            "CropAndResizeGradImage",
            [drawn("float", [4, 3, 4, 2]), boxes, which, vec("int32", [2, 5, 6, 2])],
            dict(a, T="float"),
            tol=1e-5,
        )
        for d in ("half", "double"):
            t.row(
                method + "_" + d,
                "CropAndResizeGradImage",
                [drawn("float", [2, 3, 4, 2]), beyond, two, vec("int32", [2, 5, 6, 2])],
                dict(a, T=d),
                tol=loose(d) or 1e-5,
            )
    t.row("none", "CropAndResize", [drawn("float", [2, 5, 6, 3]), given("float", [0, 4], []), given("int32", [0], []), ivec(2, 2)])
    t.row("nan", "CropAndResize", [drawn("float", [1, 4, 4, 1]), given("float", [1, 4], [NAN, 0, 1, INF]), vec("int32", [0]), ivec(2, 2)])
    image = drawn("float", [2, 5, 6, 1])
    for name, b, w, s in (
        ("box_short", given("float", [2, 3], 0.5), two, vec("int32", [2, 2])),
        ("box_rank", given("float", [4], 0.5), two, vec("int32", [2, 2])),
        ("index_short", boxes, two, vec("int32", [2, 2])),
        ("index_large", beyond, vec("int32", [0, 2]), vec("int32", [2, 2])),
        ("index_negative", beyond, vec("int32", [0, -1]), vec("int32", [2, 2])),
        ("size_zero", beyond, two, vec("int32", [0, 2])),
        ("size_negative", beyond, two, vec("int32", [2, -2])),
        ("size_short", beyond, two, vec("int32", [2])),
        ("size_scalar", beyond, two, scalar("int32", 2)),
    ):
        t.row(name, "CropAndResize", [image, b, w, s])
    t.row("rank3", "CropAndResize", [drawn("float", [5, 6, 1]), beyond, two, ivec(2, 2)])
    t.row("no_pixels", "CropAndResize", [drawn("float", [2, 0, 6, 1]), beyond, two, ivec(2, 2)])
    t.row("grad", "CropAndResize", [drawn("float", [2, 5, 6, 2]), const(boxes), const(which), ivec(3, 4)], grad=True, fd=False, grad_tol=1e-4)
    for d in dtypes("uint8 int16 int64 half float double"):
        t.row(d, "CropAndResizeGradBoxes", [drawn("float", [4, 3, 4, 2]), drawn(d, [2, 5, 6, 2], 0, 9), boxes, which], tol=1e-4)
    t.row("beyond", "CropAndResizeGradBoxes", [drawn("float", [2, 3, 1, 2]), drawn("float", [2, 5, 6, 2]), beyond, two], tol=1e-4)
    for name, g, i, b, w in (
        ("rank3", drawn("float", [2, 3, 2]), drawn("float", [2, 5, 6, 2]), beyond, two),
        ("channels", drawn("float", [2, 3, 1, 3]), drawn("float", [2, 5, 6, 2]), beyond, two),
        ("boxes", drawn("float", [3, 3, 1, 2]), drawn("float", [2, 5, 6, 2]), beyond, two),
        ("index", drawn("float", [2, 3, 1, 2]), drawn("float", [2, 5, 6, 2]), beyond, vec("int32", [0, 9])),
    ):
        t.row(name, "CropAndResizeGradBoxes", [g, i, b, w])
    for name, g, b, w, s in (
        ("rank3", drawn("float", [2, 3, 2]), beyond, two, [2, 5, 6, 2]),
        ("boxes", drawn("float", [3, 3, 1, 2]), beyond, two, [2, 5, 6, 2]),
        ("size_short", drawn("float", [2, 3, 1, 2]), beyond, two, [2, 5, 6]),
        ("size_channels", drawn("float", [2, 3, 1, 2]), beyond, two, [2, 5, 6, 3]),
        ("size_zero", drawn("float", [2, 3, 1, 2]), beyond, two, [2, 0, 6, 2]),
        ("index", drawn("float", [2, 3, 1, 2]), beyond, vec("int32", [0, 9]), [2, 5, 6, 2]),
    ):
        t.row(name, "CropAndResizeGradImage", [g, b, w, vec("int32", s)], {"T": "float"})


def drawings(t):
    boxes = given("float", [2, 2, 4], [0.1, 0.1, 0.7, 0.8, 0.5, 0.2, 0.9, 0.4, -0.5, 0.3, 0.6, 1.5, 2, 2, 3, 3])
    for d in ("float", "half"):
        for c in (1, 3, 4):
            image = drawn(d, [2, 7, 8, c], 0, 1)
            t.row("%s_%d" % (d, c), "DrawBoundingBoxes", [image, boxes])
            t.row("%s_%d" % (d, c), "DrawBoundingBoxesV2", [image, boxes, drawn("float", [3, c], 0, 1)])
    image = drawn("float", [2, 7, 8, 3], 0, 1)
    many = drawn("float", [2, 13, 4], 0, 1)
    t.row("many", "DrawBoundingBoxes", [image, many])
    t.row("one_colour", "DrawBoundingBoxesV2", [image, many, drawn("float", [1, 3])])
    t.row("no_colours", "DrawBoundingBoxesV2", [image, many, given("float", [0, 3], [])])
    t.row("colour_short", "DrawBoundingBoxesV2", [image, many, drawn("float", [2, 2])])
    t.row("none", "DrawBoundingBoxes", [image, given("float", [2, 0, 4], [])])
    t.row("backwards", "DrawBoundingBoxes", [image, given("float", [2, 1, 4], [0.8, 0.1, 0.2, 0.5, 0.1, 0.8, 0.5, 0.2])])
    t.row("nan", "DrawBoundingBoxes", [image, given("float", [2, 1, 4], [NAN, 0.1, 0.2, 0.5, 0.1, INF, 0.5, 0.2])], message="code-only")
    t.row("two_channels", "DrawBoundingBoxes", [drawn("float", [2, 7, 8, 2]), boxes])
    t.row("batches", "DrawBoundingBoxes", [drawn("float", [1, 7, 8, 3]), boxes])
    t.row("rank3", "DrawBoundingBoxes", [drawn("float", [7, 8, 3]), boxes])
    t.row("box_short", "DrawBoundingBoxes", [image, given("float", [2, 1, 3], 0.5)])
    t.row("box_rank", "DrawBoundingBoxes", [image, given("float", [2, 4], 0.5)])


def suppressions(t):
    corners = [0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100, 1, 101]
    scores = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3]

    def boxes(d):
        return given(d, [6, 4], corners)

    def score(d):
        return vec(d, scores)

    def one(d, v):
        return scalar(d, v)

    f = "float"
    for n in (0, 2, 3, 30):
        t.row("most_%d" % n, "NonMaxSuppression", [boxes(f), score(f), scalar("int32", n)])
    t.row("threshold", "NonMaxSuppression", [boxes(f), score(f), scalar("int32", 6)], {"iou_threshold": 0.9})
    t.row("bad_threshold", "NonMaxSuppression", [boxes(f), score(f), scalar("int32", 6)], {"iou_threshold": 1.5})
    flipped = [1, 1, 0, 0, 0, 0.1, 1, 1.1, 0, 0.9, 1, -0.1, 0, 10, 1, 11, 1, 10.1, 0, 11.1, 1, 101, 0, 100]
    t.row("flipped", "NonMaxSuppression", [given(f, [6, 4], flipped), score(f), scalar("int32", 3)])
    t.row("same", "NonMaxSuppression", [given(f, [3, 4], [0, 0, 1, 1] * 3), vec(f, [0.5, 0.5, 0.5]), scalar("int32", 3)])
    t.row("ties", "NonMaxSuppression", [boxes(f), given(f, [6], 0.5), scalar("int32", 6)])
    t.row("flat", "NonMaxSuppression", [given(f, [2, 4], [0, 0, 0, 1] * 2), vec(f, [0.5, 0.6]), scalar("int32", 3)])
    t.row("empty", "NonMaxSuppression", [given(f, [0, 4], []), given(f, [0], []), scalar("int32", 3)])
    t.row("many", "NonMaxSuppression", [drawn(f, [60, 4], 0, 1), drawn(f, [60], 0, 1), scalar("int32", 40)], {"iou_threshold": 0.2})
    for d in ("float", "half"):
        for k in ("float", "half"):
            t.row(d + "_" + k, "NonMaxSuppressionV2", [boxes(d), score(d), scalar("int32", 3), one(k, 0.5)])
            t.row(d + "_" + k, "NonMaxSuppressionV3", [boxes(d), score(d), scalar("int32", 6), one(k, 0.5), one(k, 0.4)])
            for pad in (False, True):
                t.row(
                    "%s_%s_%d" % (d, k, pad),
                    "NonMaxSuppressionV4",
                    [boxes(d), score(d), scalar("int32", 5), one(k, 0.5), one(k, 0.4)],
                    {"pad_to_max_output_size": pad},
                )
        for sigma in (0.0, 0.5):
            for pad in (False, True):
                t.row(
                    "%s_%d_%d" % (d, 10 * sigma, pad),
                    "NonMaxSuppressionV5",
                    [boxes(d), score(d), scalar("int32", 5), one(d, 0.5), one(d, 0.2), one(d, sigma)],
                    {"pad_to_max_output_size": pad},
                    tol={"half": 2e-3}.get(d, 1e-6),
                )
    t.row("many", "NonMaxSuppressionV3", [drawn(f, [60, 4], 0, 1), drawn(f, [60], 0, 1), scalar("int32", 40), one(f, 0.3), one(f, 0.2)])
    t.row("many", "NonMaxSuppressionV5", [drawn(f, [60, 4], 0, 1), drawn(f, [60], 0, 1), scalar("int32", 40), one(f, 0.3), one(f, 0.1), one(f, 0.3)], tol=1e-6)
    t.row("soft_all", "NonMaxSuppressionV5", [drawn(f, [20, 4], 0, 1), drawn(f, [20], 0, 1), scalar("int32", 20), one(f, 1.0), one(f, 0.0), one(f, 1.0)], tol=1e-6)
    t.row("nan", "NonMaxSuppressionV3", [boxes(f), vec(f, [NAN, 0.5, 0.6, 0.1, INF, 0.2]), scalar("int32", 6), one(f, 0.5), one(f, 0.0)], message="code-only")
    t.row("minus", "NonMaxSuppressionV3", [boxes(f), score(f), scalar("int32", 6), one(f, 0.5), scalar(f, "-inf")])
    good = [boxes(f), score(f), scalar("int32", 3), one(f, 0.5), one(f, 0.4)]
    for name, i, bad in (
        ("box_short", 0, drawn(f, [6, 3])),
        ("box_rank", 0, drawn(f, [6])),
        ("scores_short", 1, drawn(f, [5])),
        ("scores_rank", 1, drawn(f, [6, 1])),
        ("most_vector", 2, vec("int32", [3])),
        ("most_negative", 2, scalar("int32", -1)),
        ("threshold_vector", 3, vec(f, [0.5])),
        ("threshold_large", 3, one(f, 1.5)),
        ("threshold_negative", 3, one(f, -0.5)),
        ("score_vector", 4, vec(f, [0.5])),
    ):
        inputs = list(good)
        inputs[i] = bad
        t.row(name, "NonMaxSuppressionV3", inputs)
        t.row(name, "NonMaxSuppressionV4", inputs)
        t.row(name, "NonMaxSuppressionV5", inputs + [one(f, 0.1)])
        t.row(name, "NonMaxSuppressionWithOverlaps", [drawn(f, [6, 6], 0, 1) if i else bad] + inputs[1:])
        if i < 4:
            t.row(name, "NonMaxSuppressionV2", inputs[:4])
        if i < 3:
            t.row(name, "NonMaxSuppression", inputs[:3])
    t.row("sigma_negative", "NonMaxSuppressionV5", good + [one(f, -1.0)])
    t.row("plain", "NonMaxSuppressionWithOverlaps", [drawn(f, [8, 8], 0, 1), drawn(f, [8], 0, 1), scalar("int32", 6), one(f, 0.6), one(f, 0.1)])
    t.row("square", "NonMaxSuppressionWithOverlaps", [drawn(f, [6, 5], 0, 1)] + good[1:])

    detections = [drawn(f, [2, 9, 1, 4], 0, 1), drawn(f, [2, 9, 3], 0, 1)]
    each = [drawn(f, [2, 9, 3, 4], 0, 1), drawn(f, [2, 9, 3], 0, 1)]
    limits = [scalar("int32", 4), scalar("int32", 7), one(f, 0.3), one(f, 0.2)]
    op = "CombinedNonMaxSuppression"
    for pad in (False, True):
        for clip in (False, True):
            a = {"pad_per_class": pad, "clip_boxes": clip}
            t.row("shared_%d_%d" % (pad, clip), op, detections + limits, a)
            t.row("each_%d_%d" % (pad, clip), op, each + limits, a)
    t.row("pad_few", op, detections + [scalar("int32", 2), scalar("int32", 50), one(f, 0.3), one(f, 0.2)], {"pad_per_class": True})
    t.row("outside", op, [drawn(f, [1, 5, 1, 4], -1, 2), drawn(f, [1, 5, 2], 0, 1)] + limits)
    t.row("empty", op, [given(f, [1, 0, 1, 4], []), given(f, [1, 0, 2], [])] + limits)
    combined = detections + limits
    for name, i, bad in (
        ("box_rank", 0, drawn(f, [2, 9, 4])),
        ("box_classes", 0, drawn(f, [2, 9, 2, 4])),
        ("box_short", 0, drawn(f, [2, 9, 1, 3])),
        ("score_rank", 1, drawn(f, [2, 9])),
        ("score_boxes", 1, drawn(f, [2, 8, 3])),
        ("per_class_zero", 2, scalar("int32", 0)),
        ("per_class_vector", 2, vec("int32", [4])),
        ("total_zero", 3, scalar("int32", 0)),
        ("threshold", 4, one(f, 1.5)),
        ("threshold_vector", 4, vec(f, [0.5])),
        ("score_vector", 5, vec(f, [0.5])),
    ):
        inputs = list(combined)
        inputs[i] = bad
        t.row(name, op, inputs)


def glimpses(t):
    image = drawn("float", [2, 6, 7, 2])
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        for centered in (True, False):
            for normalized in (True, False):
                places = [0.4, 0.5, 0.3, 0.35] if normalized else [3, 2.5, 2.2, 3.7]
                if centered:
                    places = [0, 0.1, -0.2, 0.3] if normalized else [0.6, -1, -1.5, 0.8]
                t.row(
                    "%d_%d" % (centered, normalized),
                    op,
                    [image, ivec(3, 4), given("float", [2, 2], places)],
                    {"centered": centered, "normalized": normalized, "noise": "zero", "uniform_noise": False},
                )
        far = given("float", [2, 2], [2, 2, -2, -2])
        near = given("float", [2, 2], [0.8, 0.9, -0.9, -0.8])
        for name, o in (("far", far), ("near", near)):
            t.row("zero_" + name, op, [image, ivec(3, 3), o], {"noise": "zero", "uniform_noise": False})
            t.row("uniform_" + name, op, [image, ivec(3, 3), o], undefined=[0])
            t.row("gaussian_" + name, op, [image, ivec(3, 3), o], {"noise": "gaussian", "uniform_noise": False}, undefined=[0])
        t.row("larger", op, [image, ivec(9, 9), given("float", [2, 2], 0)], {"noise": "zero", "uniform_noise": False})
        t.row("noise", op, [image, ivec(3, 3), near], {"noise": "pink", "uniform_noise": False})
        t.row("noises", op, [image, ivec(3, 3), near], {"noise": "zero"})
        t.row("rank3", op, [drawn("float", [6, 7, 2]), ivec(3, 3), near])
        t.row("size_short", op, [image, vec("int32", [3]), near])
        t.row("size_zero", op, [image, vec("int32", [0, 3]), near])
        t.row("size_negative", op, [image, vec("int32", [-1, 3]), near])
        t.row("offsets", op, [image, ivec(3, 3), given("float", [1, 2], 0)])
        t.row("offsets_three", op, [image, ivec(3, 3), given("float", [2, 3], 0)])


def transforms(t):
    for op in ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"):
        more = [scalar("float", 7.0)] if op.endswith("3") else []
        matrices = {
            "same": [1, 0, 0, 0, 1, 0, 0, 0],
            "shift": [1, 0, 1.5, 0, 1, -2.25, 0, 0],
            "turn": [0.8, -0.6, 1, 0.6, 0.8, -1, 0, 0],
            "tilt": [1, 0.2, 0, 0.1, 1, 0, 0.05, 0.02],
            "flat": [1, 0, 0, 0, 1, 0, 1, -1],
            "far": [1, 0, 100, 0, 1, 100, 0, 0],
        }
        for mode in ("NEAREST", "BILINEAR"):
            for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
                for name, m in matrices.items():
                    t.row(
                        "%s_%s_%s" % (mode, fill, name),
                        op,
                        [drawn("float", [1, 4, 5, 2]), given("float", [1, 8], m), ivec(5, 6)] + more,
                        {"interpolation": mode, "fill_mode": fill},
                        tol=1e-4,
                    )
        for d in dtypes("F int32 int64 uint8"):
            t.row(
                d,
                op,
                [drawn(d, [2, 4, 5, 1], 0, 9), given("float", [1, 8], matrices["turn"]), ivec(3, 3)] + more,
                {"interpolation": "BILINEAR"},
                tol=loose(d) or 1e-4,
            )
        each = given("float", [2, 8], matrices["shift"] + matrices["turn"])
        image = drawn("float", [2, 4, 5, 1])
        t.row("each", op, [image, each, ivec(4, 5)] + more, {"interpolation": "NEAREST"})
        mode = {"interpolation": "NEAREST"}
        t.row("rank3", op, [drawn("float", [4, 5, 1]), each, ivec(4, 5)] + more, mode)
        t.row("matrices", op, [image, drawn("float", [3, 8]), ivec(4, 5)] + more, mode)
        t.row("matrix_short", op, [image, drawn("float", [2, 7]), ivec(4, 5)] + more, mode)
        t.row("size_short", op, [image, each, vec("int32", [4])] + more, mode)
        t.row("size_zero", op, [image, each, vec("int32", [0, 4])] + more, mode)
        t.row("empty", op, [drawn("float", [0, 4, 5, 1]), given("float", [1, 8], 1), ivec(4, 5)] + more, mode)


def scales(t):
    one, none = vec("float", [1.5, 0.7]), vec("float", [0, 0])
    kernels = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    for k in kernels:
        for anti in (True, False):
            a = {"kernel_type": k, "antialias": anti}
            t.row("%s_%d" % (k, anti), "ScaleAndTranslate", [drawn("float", [1, 6, 7, 2]), ivec(8, 5), one, vec("float", [-1, 1.5])], a, tol=2e-5)
            t.row("%s_%d_down" % (k, anti), "ScaleAndTranslate", [drawn("float", [2, 9, 8, 1]), ivec(3, 4), vec("float", [0.33, 0.5]), none], a, tol=2e-5)
            t.row("%s_%d" % (k, anti), "ScaleAndTranslateGrad", [drawn("float", [1, 8, 5, 2]), drawn("float", [1, 6, 7, 2]), one, vec("float", [-1, 1.5])], a, tol=2e-5)
    for d in dtypes("F I uint8 uint16"):
        t.row(d, "ScaleAndTranslate", [drawn(d, [1, 4, 4, 1], 0, 9), ivec(6, 6), one, none], tol=2e-5)
    t.row("grad", "ScaleAndTranslate", [drawn("float", [1, 4, 4, 2]), ivec(6, 5), const(one), const(none)], grad=True, grad_tol=1e-4)
    image = drawn("float", [1, 4, 4, 1])
    t.row("far", "ScaleAndTranslate", [image, ivec(3, 3), one, vec("float", [50, 50])], tol=2e-5)
    t.row("scale_zero", "ScaleAndTranslate", [image, ivec(3, 3), vec("float", [0, 1]), none])
    t.row("scale_negative", "ScaleAndTranslate", [image, ivec(3, 3), vec("float", [-1, 1]), none])
    t.row("size_zero", "ScaleAndTranslate", [image, vec("int32", [0, 3]), one, none])
    t.row("size_short", "ScaleAndTranslate", [image, vec("int32", [3]), one, none])
    t.row("scale_short", "ScaleAndTranslate", [image, ivec(3, 3), vec("float", [1]), none])
    t.row("kernel", "ScaleAndTranslate", [image, ivec(3, 3), one, none], {"kernel_type": "sinc"})
    t.row("rank3", "ScaleAndTranslate", [drawn("float", [4, 4, 1]), ivec(3, 3), one, none])
    t.row("empty", "ScaleAndTranslate", [given("float", [0, 4, 4, 1], []), ivec(3, 3), one, none])
    t.row("no_pixels", "ScaleAndTranslate", [given("float", [1, 0, 4, 1], []), ivec(3, 3), one, none])


def samples(t):
    boxes = given("float", [1, 2, 4], [0.1, 0.2, 0.6, 0.7, 0.4, 0.4, 0.9, 0.8])
    covered = scalar("float", 0.3)
    for d in dtypes("uint8 int8 int16 int32 int64"):
        for i, a in enumerate(
            (
                {"seed": 3, "seed2": 5},
                {"seed": 7, "seed2": 1, "aspect_ratio_range": [0.9, 1.1], "area_range": [0.2, 0.5]},
                {"seed": 2, "seed2": 9, "max_attempts": 1},
            )
        ):
            size = vec(d, [100, 90, 3])
            t.row("%s_%d" % (d, i), "SampleDistortedBoundingBox", [size, boxes], a)
            t.row("%s_%d" % (d, i), "SampleDistortedBoundingBoxV2", [size, boxes, covered], a)
        for seed in ("int32", "int64"):
            t.row(d + "_" + seed, "StatelessSampleDistortedBoundingBox", [vec(d, [100, 90, 3]), boxes, covered, vec(seed, [4, 5])])
    size, none = vec("int32", [50, 60, 3]), given("float", [1, 0, 4], [])
    seeded = {"seed": 3, "seed2": 5}
    for seed in range(1, 9):
        t.row("stream_%d" % seed, "SampleDistortedBoundingBoxV2", [size, boxes, scalar("float", 0.5)], {"seed": seed, "seed2": 11, "area_range": [0.05, 1.0]})
    t.row("again", "SampleDistortedBoundingBoxV2", [size, boxes, covered], seeded, then=[node("SampleDistortedBoundingBoxV2", [size, boxes, covered], seeded)])
    for op in ("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox"):
        more = [] if op == "SampleDistortedBoundingBox" else [covered]
        extra = dict(seeded)
        if op.startswith("Stateless"):
            more, extra = more + [vec("int32", [1, 2])], {}
        t.row("no_boxes", op, [size, none] + more, extra)
        t.row("no_boxes_image", op, [size, none] + more, dict(extra, use_image_if_no_bounding_boxes=True))
        t.row("size_short", op, [vec("int32", [50, 60]), boxes] + more, extra)
        t.row("size_zero", op, [vec("int32", [0, 60, 3]), boxes] + more, extra)
        t.row("size_negative", op, [vec("int32", [50, -60, 3]), boxes] + more, extra)
        t.row("box_rank", op, [size, given("float", [2, 4], 0.5)] + more, extra)
        t.row("box_short", op, [size, given("float", [1, 2, 3], 0.5)] + more, extra)
        t.row("box_beyond", op, [size, given("float", [1, 1, 4], [0.1, 0.1, 1.2, 0.9])] + more, extra)
        t.row("box_backwards", op, [size, given("float", [1, 1, 4], [0.6, 0.1, 0.2, 0.9])] + more, extra)
        for name, a in (
            ("ratio_short", {"aspect_ratio_range": [0.5]}),
            ("ratio_zero", {"aspect_ratio_range": [0.0, 1.0]}),
            ("area_short", {"area_range": [0.5]}),
            ("area_large", {"area_range": [0.5, 1.5]}),
            ("area_zero", {"area_range": [0.0, 0.5]}),
            ("attempts", {"max_attempts": 0}),
            ("hard", {"area_range": [0.9, 0.95], "aspect_ratio_range": [5.0, 6.0]}),
        ):
            t.row(name, op, [size, boxes] + more, dict(extra, **a))
    t.row("covered_negative", "SampleDistortedBoundingBoxV2", [size, boxes, scalar("float", -0.5)], seeded)
    for much in (1.0, 1.5):
        t.row("covered_%g" % much, "SampleDistortedBoundingBox", [size, boxes], dict(seeded, min_object_covered=much, max_attempts=2))
        t.row("covered_%g" % much, "SampleDistortedBoundingBoxV2", [size, boxes, scalar("float", much)], dict(seeded, max_attempts=2))
    t.row("covered_vector", "SampleDistortedBoundingBoxV2", [size, boxes, vec("float", [0.5])], seeded)
    t.row("seed_short", "StatelessSampleDistortedBoundingBox", [size, boxes, covered, vec("int32", [1])])


def fill(t):
    colours(t)
    crops(t)
    drawings(t)
    suppressions(t)
    glimpses(t)
    transforms(t)
    scales(t)
    samples(t)
