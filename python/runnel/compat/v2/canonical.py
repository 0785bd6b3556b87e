"""The first public name of functions and classes of TensorFlow 2 that have several: what stock's tf_export lists first.

Keras names layers of operations by it and writes it to the configuration of models.
"""

CANONICAL = {}
for _row in """
debugging: Assert assert_equal assert_greater assert_less assert_rank
dtypes: DType as_dtype complex saturate_cast
graph_util: import_graph_def
linalg: eig eigvals matmul
math: abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum divide equal exp floor greater greater_equal
math: less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all reduce_any
math: reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul sigmoid sign sin sinh sqrt square
math: subtract tan tanh truediv
sparse: SparseTensor
strings: as_string
: autodiff.GradientTape=GradientTape config.experimental.VirtualDeviceConfiguration=config.LogicalDeviceConfiguration
: config.experimental.get_virtual_device_configuration=config.get_logical_device_configuration
: config.experimental.get_visible_devices=config.get_visible_devices config.experimental.list_logical_devices=config.list_logical_devices
: config.experimental.list_physical_devices=config.list_physical_devices
: config.experimental.set_virtual_device_configuration=config.set_logical_device_configuration
: config.experimental.set_visible_devices=config.set_visible_devices data.experimental.Optional=experimental.Optional
: data.experimental.ThreadingOptions=data.ThreadingOptions distribute.ParameterServerStrategy=distribute.experimental.ParameterServerStrategy
: distribute.coordinator.ClusterCoordinator=distribute.experimental.coordinator.ClusterCoordinator
: distribute.coordinator.PerWorkerValue=distribute.experimental.coordinator.PerWorkerValues
: distribute.coordinator.RemoteValue=distribute.experimental.coordinator.RemoteValue
: distribute.experimental.CollectiveCommunication=distribute.experimental.CommunicationImplementation dtypes.cast=cast
: experimental.numpy.ndarray=Tensor image.decode_and_crop_jpeg=io.decode_and_crop_jpeg image.decode_bmp=io.decode_bmp
: image.decode_gif=io.decode_gif image.decode_image=io.decode_image image.decode_jpeg=io.decode_jpeg image.decode_jxl=io.decode_jxl
: image.decode_png=io.decode_png image.decode_webp=io.decode_webp image.encode_jpeg=io.encode_jpeg image.encode_png=io.encode_png
: image.extract_jpeg_shape=io.extract_jpeg_shape image.is_jpeg=io.is_jpeg linalg.einsum=einsum linalg.eye=eye
: linalg.l2_normalize=math.l2_normalize linalg.norm=norm linalg.tensordot=tensordot math.log_softmax=nn.log_softmax math.mod=math.floormod
: math.softmax=nn.softmax math.softsign=nn.softsign math.special.bessel_i0=math.bessel_i0 math.special.bessel_i0e=math.bessel_i0e
: math.special.bessel_i1=math.bessel_i1 math.special.bessel_i1e=math.bessel_i1e matrix_square_root=linalg.sqrtm
: nn.all_candidate_sampler=random.all_candidate_sampler nn.approx_max_k=math.approx_max_k nn.approx_min_k=math.approx_min_k
: nn.fixed_unigram_candidate_sampler=random.fixed_unigram_candidate_sampler nn.in_top_k=math.in_top_k nn.l2_normalize=math.l2_normalize
: nn.learned_unigram_candidate_sampler=random.learned_unigram_candidate_sampler nn.lrn=nn.local_response_normalization nn.sigmoid=math.sigmoid
: nn.softplus=math.softplus nn.space_to_batch=space_to_batch nn.swish=nn.silu nn.tanh=math.tanh nn.top_k=math.top_k
: nn.zero_fraction=math.zero_fraction random.experimental.Algorithm=random.Algorithm random.experimental.Generator=random.Generator
: random.experimental.create_rng_state=random.create_rng_state random.experimental.get_global_generator=random.get_global_generator
: random.experimental.set_global_generator=random.set_global_generator random.experimental.stateless_fold_in=random.fold_in
: random.experimental.stateless_split=random.split types.experimental.GenericFunction=types.experimental.PolymorphicFunction
""".strip().splitlines():
    _space, _, _names = _row.partition(": ")
    for _name in _names.split():
        _path, _, _first = _name.partition("=")
        CANONICAL[_path] = _first or "%s.%s" % (_space, _path)


def canonical_name(path):
    """Returns the first public name of what has the public name `path`."""
    return CANONICAL.get(path, path)
