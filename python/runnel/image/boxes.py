"""Bounding boxes, non-maximum suppression and patches of images (tf.image)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops


def draw_bounding_boxes(images, boxes, name=None, colors=None):
    """Draws boxes [y1, x1, y2, x2] on images."""
    if colors is None:
        return raw_ops.DrawBoundingBoxes(images=images, boxes=boxes, name=name)
    return raw_ops.DrawBoundingBoxesV2(images=images, boxes=boxes, colors=colors, name=name)


def sample_distorted_bounding_box(image_size, bounding_boxes, seed=None, seed2=None,
                                  min_object_covered=0.1, aspect_ratio_range=None, area_range=None,
                                  max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """Returns (begin, size, box) of a random crop that covers enough of the objects."""
    with name_scope(name, "sample_distorted_bounding_box"):
        return raw_ops.SampleDistortedBoundingBoxV2(
            image_size=image_size, bounding_boxes=bounding_boxes, seed=seed or 0, seed2=seed2 or 0,
            min_object_covered=min_object_covered,
            aspect_ratio_range=list(aspect_ratio_range or (0.75, 1.33)),
            area_range=list(area_range or (0.05, 1.0)), max_attempts=max_attempts or 100,
            use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes), name=name)


def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5,
                        score_threshold=float("-inf"), name=None):
    """Returns the indices of the best boxes that do not overlap much."""
    with name_scope(name, "non_max_suppression"):
        return raw_ops.NonMaxSuppressionV3(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold"),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold"))


def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5,
                                    score_threshold=float("-inf"), soft_nms_sigma=0.0, name=None):
    """Returns (indices, scores) of the best boxes; if sigma is not 0, overlap lowers scores."""
    with name_scope(name, "non_max_suppression_with_scores"):
        result = raw_ops.NonMaxSuppressionV5(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            soft_nms_sigma=convert_to_tensor(soft_nms_sigma, dtypes.float32),
            pad_to_max_output_size=False)
        return result[0], result[1]


def generate_bounding_box_proposals(scores, bbox_deltas, image_info, anchors, nms_threshold=0.7, pre_nms_topn=6000, min_size=16,
                                    post_nms_topn=300, name=None):
    """Returns (boxes, their scores) of the best anchors, moved by `bbox_deltas`. As in TensorFlow, there is no kernel for CPUs."""
    return raw_ops.GenerateBoundingBoxProposals(
        scores=scores, bbox_deltas=bbox_deltas, image_info=image_info, anchors=anchors, nms_threshold=nms_threshold,
        pre_nms_topn=pre_nms_topn, min_size=min_size, post_nms_topn=post_nms_topn, name=name)


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                               pad_to_max_output_size=False, name=None):
    """Returns (indices, number) of the best boxes; with `pad_to_max_output_size`, the indices are padded with zeros."""
    with name_scope(name, "non_max_suppression_padded"):
        result = raw_ops.NonMaxSuppressionV4(
            boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            pad_to_max_output_size=pad_to_max_output_size)
        return result[0], result[1]


def non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold=0.5,
                                 score_threshold=float("-inf"), name=None):
    """Like non_max_suppression, for given overlaps [n, n]."""
    with name_scope(name, "non_max_suppression_overlaps"):
        return raw_ops.NonMaxSuppressionWithOverlaps(
            overlaps=overlaps, scores=scores, max_output_size=max_output_size,
            overlap_threshold=convert_to_tensor(overlap_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32))


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size,
                                 iou_threshold=0.5, score_threshold=float("-inf"),
                                 pad_per_class=False, clip_boxes=True, name=None):
    """Returns (boxes, scores, classes, counts) of the best boxes over all classes."""
    with name_scope(name, "combined_non_max_suppression"):
        return raw_ops.CombinedNonMaxSuppression(
            boxes=boxes, scores=scores, max_output_size_per_class=max_output_size_per_class,
            max_total_size=max_total_size,
            iou_threshold=convert_to_tensor(iou_threshold, dtypes.float32),
            score_threshold=convert_to_tensor(score_threshold, dtypes.float32),
            pad_per_class=pad_per_class, clip_boxes=clip_boxes)


def extract_glimpse(input, size, offsets, centered=True, normalized=True,  # noqa: A002
                    uniform_noise=True, name=None):
    """Extracts windows around points; pixels outside of the image are noise."""
    return raw_ops.ExtractGlimpse(input=input, size=size, offsets=offsets, centered=centered,
                                  normalized=normalized, uniform_noise=uniform_noise, name=name)


def extract_patches(images, sizes, strides, rates, padding, name=None):
    """Extracts windows of images; each becomes a vector in the channel dimension."""
    return array_ops.extract_image_patches(images, sizes, strides, rates, padding, name)
