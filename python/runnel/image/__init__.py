"""tf.image: reading, resizing, cropping, adjusting and comparing images."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "image.boxes: combined_non_max_suppression draw_bounding_boxes extract_glimpse extract_patches generate_bounding_box_proposals non_max_suppression "
    "non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores sample_distorted_bounding_box",
    "image.codecs: decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_jxl decode_png decode_webp encode_jpeg encode_png "
    "extract_jpeg_shape is_jpeg",
    "image.colors: adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation "
    "convert_image_dtype grayscale_to_rgb hsv_to_rgb per_image_standardization random_brightness random_contrast random_hue "
    "random_jpeg_quality random_saturation rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb",
    "image.measures: image_gradients psnr sobel_edges ssim ssim_multiscale total_variation",
    "image.orientation: flip_left_right flip_up_down random_flip_left_right random_flip_up_down rot90 transpose transpose_image",
    "image.resizing: ResizeMethod central_crop crop_and_resize crop_to_bounding_box pad_to_bounding_box resize resize_area "
    "resize_bicubic resize_bilinear resize_image_with_crop_or_pad resize_image_with_pad resize_images resize_nearest_neighbor "
    "resize_with_crop_or_pad",
    "ops.array_ops: extract_image_patches",
    "ops.random_ops: random_crop",
)
