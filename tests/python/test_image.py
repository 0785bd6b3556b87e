"""tf.image, function by function."""

from both import both


@both
def test_images(tf, np):
    r = np.random.RandomState(0)
    tf.set_random_seed(2)
    u = tf.constant(r.randint(0, 256, (2, 17, 13, 3)).astype("u1"))
    f = tf.constant(r.rand(2, 17, 13, 3).astype("f"))
    f2 = tf.constant(r.rand(2, 17, 13, 3).astype("f"))
    image = tf.image
    o = {}
    for m in range(4):
        o["rs%d" % m] = image.resize_images(f, [9, 20], m)
    o["rsu"] = image.resize_images(u, [9, 20], 1)
    o["rs3"] = image.resize_images(f[0], [9, 20], preserve_aspect_ratio=True)
    o["crop"] = image.crop_to_bounding_box(f, 1, 2, 5, 6)
    o["pad"] = image.pad_to_bounding_box(f, 1, 2, 30, 30)
    o["cop"] = image.resize_image_with_crop_or_pad(f, 10, 20)
    o["rwp"] = image.resize_image_with_pad(f, 20, 20)
    o["cc"] = image.central_crop(f, 0.5)
    o["flr"] = image.flip_left_right(f)
    o["fud"] = image.flip_up_down(f[0])
    o["tr"] = image.transpose_image(f)
    for k in range(4):
        o["rot%d" % k] = image.rot90(f, k)
    o["cvt"] = image.convert_image_dtype(u, tf.float32)
    o["cvt2"] = image.convert_image_dtype(f, tf.uint8, saturate=True)
    o["cvt3"] = image.convert_image_dtype(u, tf.uint16)
    o["cvt4"] = image.convert_image_dtype(u, tf.int32)
    for n in "rgb_to_grayscale rgb_to_hsv rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb hsv_to_rgb per_image_standardization total_variation image_gradients sobel_edges".split():
        o[n] = getattr(image, n)(f)
    o["gu"] = image.rgb_to_grayscale(u)
    o["g2"] = image.grayscale_to_rgb(image.rgb_to_grayscale(f))
    o["br"] = image.adjust_brightness(u, 0.1)
    o["co"] = image.adjust_contrast(f, 2.0)
    o["ga"] = image.adjust_gamma(f, 2.0)
    o["hu"] = image.adjust_hue(u, 0.1)
    o["sa"] = image.adjust_saturation(f, 1.5)
    o["jq"] = image.adjust_jpeg_quality(u[0], 50)
    o["psnr"] = image.psnr(f, f2, 1.0)
    o["ssim"] = image.ssim(f, f2, 1.0)
    o["ssimu"] = image.ssim(u, u, 255)
    o["rfl"] = image.random_flip_left_right(f[0], seed=4)
    o["rb"] = image.random_brightness(f, 0.3, seed=1)
    o["rc"] = image.random_contrast(f, 0.5, 2.0, seed=1)
    o["rh"] = image.random_hue(f, 0.3, seed=1)
    o["rsat"] = image.random_saturation(f, 0.5, 2.0, seed=1)
    o["nms"] = image.non_max_suppression([[0.0, 0, 1, 1], [0, 0, 0.9, 1], [0.5, 0.5, 2, 2]], [0.9, 0.8, 0.7], 3)
    o["car"] = image.crop_and_resize(f, [[0.0, 0, 0.5, 0.5]], [1], [4, 4])
    o["rt"] = image.decode_png(image.encode_png(u[0]))
    o["di"] = image.decode_image(image.encode_png(u[0]))
    o["ij"] = image.is_jpeg(image.encode_jpeg(u[0]))
    with tf.Session() as sess:
        return sess.run(o)
