"""tf.image: reading, resizing, cropping, adjusting and comparing images."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "image.image_ops: ResizeMethod adjust_brightness adjust_contrast adjust_gamma adjust_hue adjust_jpeg_quality adjust_saturation "
    "central_crop combined_non_max_suppression convert_image_dtype crop_and_resize crop_to_bounding_box decode_and_crop_jpeg decode_bmp "
    "decode_gif decode_image decode_jpeg decode_png draw_bounding_boxes encode_jpeg encode_png extract_glimpse "
    "extract_jpeg_shape extract_patches flip_left_right flip_up_down grayscale_to_rgb hsv_to_rgb image_gradients is_jpeg "
    "non_max_suppression non_max_suppression_overlaps non_max_suppression_padded non_max_suppression_with_scores pad_to_bounding_box "
    "per_image_standardization psnr random_brightness random_contrast random_flip_left_right random_flip_up_down random_hue "
    "random_jpeg_quality random_saturation resize resize_area resize_bicubic resize_bilinear resize_image_with_crop_or_pad "
    "resize_image_with_pad resize_images resize_nearest_neighbor resize_with_crop_or_pad rgb_to_grayscale rgb_to_hsv rgb_to_yiq "
    "rgb_to_yuv rot90 sample_distorted_bounding_box sobel_edges ssim ssim_multiscale total_variation transpose transpose_image "
    "yiq_to_rgb yuv_to_rgb",
    "ops.array_ops: extract_image_patches",
    "ops.random_ops: random_crop",
)
