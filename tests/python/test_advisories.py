"""Inputs that crashed TensorFlow, or read and wrote outside its tensors, as its published security advisories describe them: sizes
that overflow, empty and misshapen inputs, indices outside. Here each is an error, or an ordinary result where the op allows it."""

import pytest

pytest.importorskip("numpy")
import runnel.v2 as tf

ops = tf.raw_ops
BIG = 1 << 40


def c(value, dtype=None, shape=None):
    return tf.constant(value, dtype=dtype) if shape is None else tf.constant(value, dtype=dtype, shape=shape)


def zeros(*shape, dtype=tf.float32):
    return tf.zeros(shape, dtype)


def quint8(*shape):
    return tf.bitcast(zeros(*shape, dtype=tf.uint8), tf.quint8)


CALLS = {
    "RaggedBincount splits": lambda: ops.RaggedBincount(splits=c([0], tf.int64), values=c([1,1,1,1,1], tf.int32), size=c(5, tf.int32), weights=c([], tf.float32), binary_output=False),
    "RaggedBincount splits 7": lambda: ops.RaggedBincount(splits=c([7, 8], tf.int64), values=c([5,16,51,76,29,27,54,95], tf.int32), size=c(59, tf.int32), weights=c([0.]*8, tf.float32), binary_output=False),
    "DenseBincount negative": lambda: ops.DenseBincount(input=c([[0],[1],[2]], tf.int32), size=c(-5, tf.int32), weights=c([3,2,1], tf.float32), binary_output=False),
    "Bincount negative": lambda: ops.Bincount(arr=c([-1], tf.int32), size=c(-7, tf.int32), weights=c([], tf.float32)),
    "SparseBincount dims": lambda: ops.SparseBincount(indices=c([[0],[1],[9]], tf.int64), values=c([0,0,0], tf.int32), dense_shape=c([1,1], tf.int64), size=c(1, tf.int32), weights=c([1.,1.,1.]), binary_output=False),
    "SparseCountSparseOutput": lambda: ops.SparseCountSparseOutput(indices=c([[-1,-1]], tf.int64), values=c([2], tf.int32), dense_shape=c([1,1], tf.int64), weights=c([], tf.float32), binary_output=True),
    "SparseCountSparseOutput empty": lambda: ops.SparseCountSparseOutput(indices=c([], tf.int64, [0,2]), values=c([], tf.int32), dense_shape=c([], tf.int64), weights=c([], tf.float32), binary_output=False),
    "RaggedCountSparseOutput": lambda: ops.RaggedCountSparseOutput(splits=c([], tf.int64), values=c([2], tf.int32), weights=c([], tf.float32), binary_output=True),
    "RaggedTensorToTensor": lambda: ops.RaggedTensorToTensor(shape=c([0], tf.int64), values=c([]), default_value=c(0.), row_partition_tensors=[c([-10], tf.int64)], row_partition_types=['ROW_SPLITS']),
    "RaggedTensorToTensor first": lambda: ops.RaggedTensorToTensor(shape=c([1], tf.int64), values=c([1.]), default_value=c(0.), row_partition_tensors=[c([0,1], tf.int64)], row_partition_types=['FIRST_DIM_SIZE']),
    "RaggedTensorToSparse": lambda: ops.RaggedTensorToSparse(rt_nested_splits=[c([0,38,0], tf.int64)], rt_dense_values=c([0.]*5)),
    "RaggedTensorToVariant": lambda: ops.RaggedTensorToVariant(rt_nested_splits=[], rt_dense_values=c([1.]), batched_input=True),
    "RaggedTensorToVariant splits": lambda: ops.RaggedTensorToVariant(rt_nested_splits=[c([0,50,0], tf.int64)], rt_dense_values=c([0,1,2,3], tf.int32), batched_input=True),
    "RaggedGather": lambda: ops.RaggedGather(params_nested_splits=[c([0,0,0], tf.int64)], params_dense_values=c([1,1], tf.int32), indices=c([0,0,9,0,0], tf.int64), OUTPUT_RAGGED_RANK=1),
    "RaggedRange": lambda: ops.RaggedRange(starts=c([1.1,0.1]), limits=c([10.,1e15]), deltas=c([1.,1.])),
    "RaggedTensorFromVariant": lambda: ops.RaggedTensorFromVariant(encoded_ragged=ops.RaggedTensorToVariant(rt_nested_splits=[c([0,1], tf.int64)], rt_dense_values=c([1.]), batched_input=False), input_ragged_rank=7, output_ragged_rank=9, Tvalues=tf.float32),
    "SparseFillEmptyRows": lambda: ops.SparseFillEmptyRows(indices=c([], tf.int64, [0,1]), values=c([], tf.int64), dense_shape=c([], tf.int64), default_value=c(0, tf.int64)),
    "SparseFillEmptyRowsGrad": lambda: ops.SparseFillEmptyRowsGrad(reverse_index_map=c([42], tf.int64), grad_values=c([1.])),
    "SparseReshape": lambda: ops.SparseReshape(input_indices=c(41, tf.int64, [2,2]), input_shape=c([85,85], tf.int64), new_shape=c([83], tf.int64)),
    "SparseReshape overflow": lambda: ops.SparseReshape(input_indices=c([[0,0]], tf.int64), input_shape=c([BIG, BIG], tf.int64), new_shape=c([-1, 7], tf.int64)),
    "SparseSplit": lambda: ops.SparseSplit(split_dim=c(0, tf.int64), indices=c([[-8,5]], tf.int64), values=c([1.]), shape=c([3,5], tf.int64), num_split=2),
    "SparseSplit zero": lambda: ops.SparseSplit(split_dim=c(1, tf.int64), indices=c([[0,1]], tf.int64), values=c([1.]), shape=c([3,0], tf.int64), num_split=3),
    "SparseConcat": lambda: ops.SparseConcat(indices=[c([[514,514],[514,514]], tf.int64), c([[514,530],[599,877]], tf.int64)], values=[c([0.,0.]), c([0.,0.])], shapes=[c([442,514,514,515,606,347,943,61,2], tf.int64), c([0,0], tf.int64)], concat_dim=0),
    "SparseAdd": lambda: ops.SparseAdd(a_indices=c([], tf.int64, [10,97]), a_values=c(0, tf.int64, [10]), a_shape=c([0,0], tf.int64), b_indices=c(0, tf.int64, [1,2]), b_values=c(0, tf.int64, [1]), b_shape=c([0,0], tf.int64), thresh=c(0, tf.int64)),
    "SparseTensorDenseAdd": lambda: ops.SparseTensorDenseAdd(a_indices=c([[0,9]], tf.int64), a_values=c([1.]), a_shape=c([1,1], tf.int64), b=c([[1.]])),
    "SparseTensorDenseMatMul": lambda: ops.SparseTensorDenseMatMul(a_indices=c([[9,9]], tf.int64), a_values=c([1.]), a_shape=c([2,2], tf.int64), b=zeros(2,2), adjoint_a=False, adjoint_b=False),
    "SparseMatMul": lambda: ops.SparseMatMul(a=tf.cast(zeros(0,0), tf.bfloat16), b=tf.cast(zeros(2,0), tf.bfloat16), transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=True),
    "SparseSparseMinimum": lambda: ops.SparseSparseMinimum(a_indices=c([[1]], tf.int64), a_values=c([0.]), a_shape=c([2], tf.int64), b_indices=c([[0,0]], tf.int64), b_values=c([0.]), b_shape=c([1], tf.int64)),
    "SparseDenseCwiseMul": lambda: ops.SparseDenseCwiseMul(sp_indices=c([], tf.int64, [0,2]), sp_values=c([]), sp_shape=c([], tf.int64), dense=c([1.,1.,1.])),
    "SparseReduceMax": lambda: ops.SparseReduceMax(input_indices=c([[0,0],[9,9]], tf.int64), input_values=c([1.,2.]), input_shape=c([2,2], tf.int64), reduction_axes=c([1], tf.int32)),
    "SparseSegmentMean": lambda: ops.SparseSegmentMean(data=zeros(2,2), indices=c([0,9], tf.int32), segment_ids=c([0,0], tf.int32)),
    "SparseSegmentSumGrad": lambda: ops.SparseSegmentSumGrad(grad=zeros(1,2), indices=c([5], tf.int32), segment_ids=c([0], tf.int32), output_dim0=c(2, tf.int32)),
    "SerializeManySparse": lambda: ops.SerializeManySparse(sparse_indices=c([[-1,0]], tf.int64), sparse_values=c([1.]), sparse_shape=c([2,2], tf.int64)),
    "DeserializeSparse": lambda: ops.DeserializeSparse(serialized_sparse=c(['','','']), dtype=tf.float32),
    "AddManySparseToTensorsMap": lambda: ops.AddManySparseToTensorsMap(sparse_indices=c(530, tf.int64, [1,1]), sparse_values=c([1.]), sparse_shape=c([BIG, 0, 3], tf.int64)),
    "SparseToDense": lambda: ops.SparseToDense(sparse_indices=c([[9]], tf.int32), output_shape=c([2], tf.int32), sparse_values=c([1.]), default_value=c(0.), validate_indices=False),
    "QuantizedConv2D": lambda: ops.QuantizedConv2D(input=quint8(1,1,1,1), filter=quint8(1,1,1,1), min_input=c([1.]), max_input=c([]), min_filter=c(0.), max_filter=c(1.), strides=[1,1,1,1], padding='SAME'),
    "QuantizedAdd": lambda: ops.QuantizedAdd(x=tf.bitcast(c([140], tf.uint8), tf.quint8), y=tf.bitcast(c([26], tf.uint8), tf.quint8), min_x=c([]), max_x=c(0.), min_y=c(0.), max_y=c(0.)),
    "QuantizedMul": lambda: ops.QuantizedMul(x=tf.bitcast(c([5], tf.uint8), tf.quint8), y=tf.bitcast(c([26], tf.uint8), tf.quint8), min_x=c([]), max_x=c(0.), min_y=c(0.), max_y=c(0.)),
    "QuantizedBiasAdd": lambda: ops.QuantizedBiasAdd(input=quint8(2,2), bias=quint8(2), min_input=c([]), max_input=c(1.), min_bias=c(0.), max_bias=c(1.), out_type=tf.qint32),
    "QuantizedReshape": lambda: ops.QuantizedReshape(tensor=zeros(2), shape=c([2], tf.int32), input_min=c([]), input_max=c(1.)),
    "QuantizedMatMul": lambda: ops.QuantizedMatMul(a=quint8(1,2), b=quint8(2,1), min_a=c([]), max_a=c(1.), min_b=c(0.), max_b=c(1.)),
    "QuantizedRelu": lambda: ops.QuantizedRelu(features=quint8(2), min_features=c([]), max_features=c(1.)),
    "QuantizedMaxPool": lambda: ops.QuantizedMaxPool(input=quint8(1,2,2,1), min_input=c([]), max_input=c(1.), ksize=[1,1,1,1], strides=[1,1,1,1], padding='SAME'),
    "QuantizedInstanceNorm": lambda: ops.QuantizedInstanceNorm(x=quint8(1,2,2,1), x_min=c([]), x_max=c(1.)),
    "QuantizedBatchNormWithGlobalNormalization": lambda: ops.QuantizedBatchNormWithGlobalNormalization(t=quint8(1,1,1,1), t_min=c([]), t_max=c(1.), m=quint8(1), m_min=c(0.), m_max=c(1.), v=quint8(1), v_min=c(0.), v_max=c(1.), beta=quint8(1), beta_min=c(0.), beta_max=c(1.), gamma=quint8(1), gamma_min=c(0.), gamma_max=c(1.), out_type=tf.qint32, variance_epsilon=0.1, scale_after_normalization=True),
    "Requantize": lambda: ops.Requantize(input=tf.bitcast(zeros(2,dtype=tf.int32), tf.qint32), input_min=c([]), input_max=c(1.), requested_output_min=c(0.), requested_output_max=c(1.), out_type=tf.quint8),
    "QuantizeAndDequantizeV2 axis": lambda: ops.QuantizeAndDequantizeV2(input=zeros(2,2), input_min=c([[0.]]), input_max=c([[1.]]), range_given=True, axis=-100),
    "QuantizeAndDequantizeV4Grad": lambda: ops.QuantizeAndDequantizeV4Grad(gradients=c([1.]), input=c([1.]), input_min=c([0.]), input_max=c([2.]), axis=5),
    "QuantizeV2 axis": lambda: ops.QuantizeV2(input=zeros(2,2), min_range=c([0.]), max_range=c([1.]), T=tf.qint8, axis=3),
    "Dequantize axis": lambda: ops.Dequantize(input=quint8(2,2), min_range=c([0.]), max_range=c([1.]), axis=10),
    "FakeQuantWithMinMaxVarsPerChannel": lambda: ops.FakeQuantWithMinMaxVarsPerChannel(inputs=zeros(1), min=c(0.), max=c(1.)),
    "FakeQuantWithMinMaxVarsGradient": lambda: ops.FakeQuantWithMinMaxVarsGradient(gradients=c([1.]), inputs=c([1.]), min=c([[0.]]), max=c([1.])),
    "MaxPoolGrad": lambda: ops.MaxPoolGrad(orig_input=zeros(1,4,4,1), orig_output=zeros(1,1,1,1), grad=zeros(1,2,2,1), ksize=[1,1,1,1], strides=[1,1,1,1], padding='SAME'),
    "MaxPoolGrad zero": lambda: ops.MaxPoolGrad(orig_input=zeros(0,0,0,0), orig_output=zeros(1,1,1,1), grad=zeros(1,1,1,1), ksize=[1,2,2,1], strides=[1,2,2,1], padding='VALID'),
    "MaxPoolGradGrad": lambda: ops.MaxPoolGradGrad(orig_input=c([[[[0.]]]]), orig_output=zeros(1,3,3,1), grad=zeros(1,1,1,2), ksize=[1,1,1,1], strides=[1,1,1,1], padding='SAME'),
    "MaxPoolGradWithArgmax": lambda: ops.MaxPoolGradWithArgmax(input=zeros(1,4,4,1), grad=zeros(1,2,2,1), argmax=c(BIG, tf.int64, [1,2,2,1]), ksize=[1,2,2,1], strides=[1,2,2,1], padding='VALID'),
    "MaxPool3DGradGrad": lambda: ops.MaxPool3DGradGrad(orig_input=zeros(1,1,1,1,1), orig_output=zeros(1,1,1,1,2), grad=zeros(1,1,1,1,1), ksize=[1,1,1,1,1], strides=[1,1,1,1,1], padding='VALID'),
    "AvgPoolGrad": lambda: ops.AvgPoolGrad(orig_input_shape=c([-1,1,1,1], tf.int32), grad=zeros(1,1,1,1), ksize=[1,2,2,1], strides=[1,1,1,1], padding='VALID'),
    "AvgPool3DGrad": lambda: ops.AvgPool3DGrad(orig_input_shape=c([10,6,3,7,7], tf.int32), grad=zeros(0,0,0,0,0), ksize=[1,1,1,1,1], strides=[1,1,1,1,1], padding='SAME'),
    "AvgPool huge": lambda: ops.AvgPool(value=zeros(1,2,2,1), ksize=[1,1<<30,1<<30,1], strides=[1,1,1,1], padding='SAME'),
    "FractionalMaxPoolGrad": lambda: ops.FractionalMaxPoolGrad(orig_input=zeros(1,2,2,1), orig_output=zeros(1,1,1,1), out_backprop=zeros(1,1,1,1), row_pooling_sequence=c([-10,1,2,3], tf.int64), col_pooling_sequence=c([0,1], tf.int64)),
    "FractionalAvgPoolGrad": lambda: ops.FractionalAvgPoolGrad(orig_input_tensor_shape=c([2,2,2,2], tf.int64), out_backprop=zeros(1,2,2,2), row_pooling_sequence=c([-10,1,2], tf.int64), col_pooling_sequence=c([1,2,3], tf.int64)),
    "FractionalAvgPool ratio": lambda: ops.FractionalAvgPool(value=zeros(1,4,4,1), pooling_ratio=[1., 1e30, 1.5, 1.]),
    "FractionalMaxPool zero": lambda: ops.FractionalMaxPool(value=zeros(1,0,2,1), pooling_ratio=[1.,1.5,1.5,1.]),
    "Conv2DBackpropInput": lambda: ops.Conv2DBackpropInput(input_sizes=c([-5,1,1,1], tf.int32), filter=zeros(1,1,1,1), out_backprop=zeros(1,1,1,1), strides=[1,1,1,1], padding='SAME'),
    "Conv2DBackpropFilter": lambda: ops.Conv2DBackpropFilter(input=zeros(1,2,2,1), filter_sizes=c([1<<20,1<<20,1<<20,1], tf.int32), out_backprop=zeros(1,2,2,1), strides=[1,1,1,1], padding='SAME'),
    "Conv3DBackpropInputV2": lambda: ops.Conv3DBackpropInputV2(input_sizes=c([0,0,0,0,0], tf.int32), filter=zeros(0,0,0,0,0), out_backprop=zeros(1,1,1,1,1), strides=[1,1,1,1,1], padding='SAME'),
    "DepthwiseConv2dNativeBackpropFilter": lambda: ops.DepthwiseConv2dNativeBackpropFilter(input=zeros(1,1,1,1), filter_sizes=c([-1,1,1,1], tf.int32), out_backprop=zeros(1,1,1,1), strides=[1,1,1,1], padding='SAME'),
    "Dilation2DBackpropFilter": lambda: ops.Dilation2DBackpropFilter(input=zeros(1,1,1,1), filter=zeros(1,1,1), out_backprop=zeros(1,1,1,2), strides=[1,1,1,1], rates=[1,1,1,1], padding='VALID'),
    "Dilation2DBackpropInput": lambda: ops.Dilation2DBackpropInput(input=zeros(2,7,1,1), filter=zeros(1,1,1), out_backprop=zeros(9,9,9,1), strides=[1,1,1,1], rates=[1,1,1,1], padding='SAME'),
    "ExtractVolumePatches": lambda: ops.ExtractVolumePatches(input=zeros(1,2,2,2,1), ksizes=[1,1<<40,1<<40,1<<40,1], strides=[1,1,1,1,1], padding='SAME'),
    "ExtractImagePatches": lambda: ops.ExtractImagePatches(images=zeros(1,2,2,1), ksizes=[1,1<<30,1<<30,1], strides=[1,1,1,1], rates=[1,1<<30,1,1], padding='SAME'),
    "ResizeBilinearGrad": lambda: ops.ResizeBilinearGrad(grads=zeros(1,0,0,1), original_image=zeros(1,1,1,1)),
    "ResizeNearestNeighborGrad": lambda: ops.ResizeNearestNeighborGrad(grads=zeros(1,4,4,1), size=c([-1,BIG % (1<<31)], tf.int32)),
    "ResizeBilinear huge": lambda: ops.ResizeBilinear(images=zeros(1,1,1,1), size=c([1<<30,1<<30], tf.int32)),
    "ScaleAndTranslateGrad": lambda: ops.ScaleAndTranslateGrad(grads=zeros(1,1,1,1), original_image=zeros(1,1,1,1), scale=c([0.,0.]), translation=c([1e30,1e30]), kernel_type='lanczos3', antialias=True),
    "CropAndResize": lambda: ops.CropAndResize(image=zeros(1,1,1,1), boxes=c([[1e30,0.,1.,1.]]), box_ind=c([7], tf.int32), crop_size=c([1,1], tf.int32)),
    "CropAndResizeGradBoxes": lambda: ops.CropAndResizeGradBoxes(grads=zeros(1,1,1,1), image=zeros(1,0,1,1), boxes=c([[0.,0.,0.,0.]]), box_ind=c([0], tf.int32)),
    "CropAndResizeGradImage": lambda: ops.CropAndResizeGradImage(grads=zeros(1,2,2,1), boxes=c([[0.,0.,1e30,1.]]), box_ind=c([-3], tf.int32), image_size=c([1,BIG % (1<<31),BIG % (1<<31),1], tf.int32), T=tf.float32),
    "NonMaxSuppressionV5": lambda: ops.NonMaxSuppressionV5(boxes=c([[0.,0.,0.,0.]]), scores=c([1.]), max_output_size=c(-5, tf.int32), iou_threshold=c(0.5), score_threshold=c(0.1), soft_nms_sigma=c(0.), pad_to_max_output_size=True),
    "CombinedNonMaxSuppression": lambda: ops.CombinedNonMaxSuppression(boxes=zeros(1,1,1,4), scores=zeros(1,1,1), max_output_size_per_class=c(1<<30, tf.int32), max_total_size=c(1<<30, tf.int32), iou_threshold=c(0.5), score_threshold=c(0.1)),
    "DrawBoundingBoxesV2": lambda: ops.DrawBoundingBoxesV2(images=zeros(1,1,1,1), boxes=c([[[float('nan')]*4]]), colors=c([[1.]])),
    "DrawBoundingBoxes": lambda: ops.DrawBoundingBoxes(images=zeros(1,5,5,1), boxes=c([[[1e30,1e30,-1e30,-1e30]]])),
    "SampleDistortedBoundingBoxV2": lambda: ops.SampleDistortedBoundingBoxV2(image_size=c([0,0,0], tf.int32), bounding_boxes=c([[[0.,0.,1.,1.]]]), min_object_covered=c(0.1), max_attempts=1),
    "EncodePng": lambda: ops.EncodePng(image=zeros(0,0,1,dtype=tf.uint8)),
    "EncodeJpegVariableQuality": lambda: ops.EncodeJpegVariableQuality(images=zeros(2,2,3,dtype=tf.uint8), quality=c([], tf.int32)),
    "DecodeWav": lambda: ops.DecodeWav(contents=c(b'RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x02\0\0\0\0\0\0\0\0\0\0\0\x10\0data\xff\xff\xff\x7f')),
    "DecodeAndCropJpeg": lambda: ops.DecodeAndCropJpeg(contents=c(b'\xff\xd8\xff\xe0'), crop_window=c([-1,0,1<<30,5], tf.int32)),
    "DecodeGif": lambda: ops.DecodeGif(contents=c(b'GIF89a\xff\xff\xff\xff')),
    "DecodeBmp": lambda: ops.DecodeBmp(contents=c(b'BM' + b'\0'*8 + b'\x36\0\0\0\x28\0\0\0' + b'\xff\xff\xff\x7f' + b'\0\0\0\x80' + b'\x01\0\x18\0' + b'\0'*24)),
    "DecodePng": lambda: ops.DecodePng(contents=c(b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0')),
    "TensorScatterUpdate": lambda: ops.TensorScatterUpdate(tensor=zeros(2), indices=c([[9]], tf.int32), updates=c([1.])),
    "ScatterNd": lambda: ops.ScatterNd(indices=c([[-1]], tf.int32), updates=c([1.]), shape=c([2], tf.int32)),
    "ScatterNd shape": lambda: ops.ScatterNd(indices=c([[0]], tf.int64), updates=zeros(1,0), shape=c([BIG, BIG, 0], tf.int64)),
    "TensorListReserve": lambda: ops.TensorListReserve(element_shape=c((1,1), tf.int32), num_elements=c([1,1], tf.int32), element_dtype=tf.int32),
    "TensorListFromTensor": lambda: ops.TensorListFromTensor(tensor=c(1.), element_shape=c([], tf.int32)),
    "TensorListConcat": lambda: ops.TensorListConcat(input_handle=ops.TensorListReserve(element_shape=c([4,4], tf.int32), num_elements=c(0, tf.int32), element_dtype=tf.int32), element_dtype=tf.int32, element_shape=[-1, 3, 1]),
    "TensorListSplit": lambda: ops.TensorListSplit(tensor=zeros(3,1), element_shape=c([1], tf.int32), lengths=c([1<<60, -(1<<60), 3], tf.int64)),
    "TensorListScatter": lambda: ops.TensorListScatter(tensor=zeros(2), indices=c([-1, 1<<30], tf.int32), element_shape=c([], tf.int32)),
    "TensorListScatterV2": lambda: ops.TensorListScatterV2(tensor=c(0.), indices=c([1], tf.int32), element_shape=c([1], tf.int32), num_elements=c([3], tf.int32)),
    "TensorListGather": lambda: ops.TensorListGather(input_handle=ops.TensorListReserve(element_shape=c([], tf.int32), num_elements=c(1, tf.int32), element_dtype=tf.float32), indices=c([5], tf.int32), element_shape=c([], tf.int32), element_dtype=tf.float32),
    "TensorListGetItem": lambda: ops.TensorListGetItem(input_handle=ops.TensorListReserve(element_shape=c([], tf.int32), num_elements=c(1, tf.int32), element_dtype=tf.float32), index=c([0,1], tf.int32), element_shape=c([], tf.int32), element_dtype=tf.float32),
    "TensorListResize": lambda: ops.TensorListResize(input_handle=ops.TensorListReserve(element_shape=c([], tf.int32), num_elements=c(1, tf.int32), element_dtype=tf.float32), size=c(-1, tf.int32)),
    "TensorListPushBackBatch": lambda: ops.TensorListPushBackBatch(input_handles=c([1.]), tensor=c([1.])),
    "StringNGrams": lambda: ops.StringNGrams(data=c(['']), data_splits=c([1, -1], tf.int64), separator=' ', ngram_widths=[3], left_pad='', right_pad='', pad_width=5, preserve_short_sequences=False),
    "StringNGrams width": lambda: ops.StringNGrams(data=c(['a']*3), data_splits=c([0,3], tf.int64), separator='a'*100, ngram_widths=[0, -1, 1<<30], left_pad='x', right_pad='y', pad_width=1<<30, preserve_short_sequences=True),
    "UnicodeEncode": lambda: ops.UnicodeEncode(input_values=c([], tf.int32), input_splits=c([], tf.int32), output_encoding='UTF-8'),
    "UnicodeEncode splits": lambda: ops.UnicodeEncode(input_values=c([58], tf.int32), input_splits=c([[81,101,0]], tf.int32), output_encoding='UTF-8'),
    "Substr": lambda: ops.Substr(input=c('abc'), pos=c(-1 << 31, tf.int32), len=c((1 << 31) - 1, tf.int32)),
    "ReduceJoin": lambda: ops.ReduceJoin(inputs=c(['a']), reduction_indices=c([-(1<<31)], tf.int32)),
    "Einsum": lambda: ops.Einsum(inputs=[zeros(1), zeros(1)], equation='..A..B...,A->A'),
    "EditDistance": lambda: ops.EditDistance(hypothesis_indices=c(-1250999896764, tf.int64, [3,3]), hypothesis_values=c([0]*3, tf.int64), hypothesis_shape=c([1,1,1], tf.int64), truth_indices=c(-1250999896764, tf.int64, [3,3]), truth_values=c([2]*3, tf.int64), truth_shape=c([1,1,1], tf.int64)),
    "CTCGreedyDecoder": lambda: ops.CTCGreedyDecoder(inputs=zeros(18,8,0), sequence_length=c([1]*8, tf.int32)),
    "CTCBeamSearchDecoder": lambda: ops.CTCBeamSearchDecoder(inputs=zeros(18,8,0), sequence_length=c([11,-43,-92,11,-89,-83,-35,-100], tf.int32), beam_width=10, top_paths=3),
    "CTCLoss": lambda: ops.CTCLoss(inputs=zeros(10,16,0), labels_indices=c(8, tf.int64, [16,0]), labels_values=c([-100]*16, tf.int32), sequence_length=c([-100]*16, tf.int32)),
    "Unbatch": lambda: ops.Unbatch(batched_tensor=c([1.]), batch_index=c([[0,0,5]], tf.int64), id=c([0,1], tf.int64), timeout_micros=1),
    "UnbatchGrad": lambda: ops.UnbatchGrad(original_input=c([1.]), batch_index=c([[0,0]], tf.int64), grad=c([1.]), id=c([1,1], tf.int64)),
    "IRFFT": lambda: ops.IRFFT(input=tf.cast(zeros(1), tf.complex64), fft_length=c([0], tf.int32)),
    "RFFT huge": lambda: ops.RFFT(input=c([1.]), fft_length=c([1<<30], tf.int32)),
    "RFFT negative": lambda: ops.RFFT2D(input=zeros(2,2), fft_length=c([-1,2], tf.int32)),
    "LowerBound": lambda: ops.LowerBound(sorted_inputs=c([1.]), values=c([[2.]])),
    "UpperBound": lambda: ops.UpperBound(sorted_inputs=zeros(2,2), values=zeros(3,2)),
    "MatrixDiagV3": lambda: ops.MatrixDiagV3(diagonal=c(0.), k=c([], tf.int32), num_rows=c(0, tf.int32), num_cols=c(0, tf.int32), padding_value=c(0.)),
    "MatrixSetDiagV2": lambda: ops.MatrixSetDiagV2(input=zeros(1,2,2), diagonal=zeros(1,1), k=c([], tf.int32)),
    "MatrixTriangularSolve": lambda: ops.MatrixTriangularSolve(matrix=zeros(0,3), rhs=zeros(1,3), lower=True, adjoint=False),
    "BandedTriangularSolve": lambda: ops.BandedTriangularSolve(matrix=zeros(0,0), rhs=zeros(2,2), lower=True, adjoint=False),
    "SelfAdjointEigV2": lambda: ops.SelfAdjointEigV2(input=zeros(2,3), compute_v=True),
    "Svd": lambda: ops.Svd(input=zeros(3,0), compute_uv=True, full_matrices=True),
    "ReverseSequence": lambda: ops.ReverseSequence(input=zeros(2,2), seq_lengths=c([9,9], tf.int64), seq_dim=1, batch_dim=0),
    "ReverseSequence dims": lambda: ops.ReverseSequence(input=zeros(2,2), seq_lengths=c([0,0], tf.int64), seq_dim=0, batch_dim=-10),
    "SplitV": lambda: ops.SplitV(value=zeros(2), size_splits=c([-1 << 60, 1 << 60, 2], tf.int64), axis=c(0, tf.int32), num_split=3),
    "ConcatOffset": lambda: ops.ConcatOffset(concat_dim=c(-1, tf.int32), shape=[c([[1]], tf.int32)]),
    "ConcatV2 types": lambda: ops.ConcatV2(values=[zeros(1,0), zeros(2,0)], axis=c(1 << 30, tf.int32)),
    "MirrorPadGrad": lambda: ops.MirrorPadGrad(input=zeros(1), paddings=c([[0x77f00000, 0xa000000]], tf.int32), mode='REFLECT'),
    "Tile huge": lambda: ops.Tile(input=zeros(1,1), multiples=c([BIG, BIG], tf.int64)),
    "SpaceToBatchND": lambda: ops.SpaceToBatchND(input=zeros(1,1,1,1), block_shape=c([0,1], tf.int32), paddings=c([[0,0],[0,0]], tf.int32)),
    "BatchToSpaceND": lambda: ops.BatchToSpaceND(input=zeros(2,1,1), block_shape=c([1<<30, 1<<30], tf.int32), crops=c([[0,0],[0,0]], tf.int32)),
    "SpaceToBatch": lambda: ops.SpaceToBatch(input=zeros(1,2,2,1), paddings=c([[-5,5],[0,0]], tf.int32), block_size=2),
    "LinSpace": lambda: ops.LinSpace(start=c(0.), stop=c(1.), num=c(-5, tf.int32)),
    "Range": lambda: ops.Range(start=c(-(1<<62), tf.int64), limit=c(1<<62, tf.int64), delta=c(1, tf.int64)),
    "Range inf": lambda: ops.Range(start=c(0.), limit=c(float('inf')), delta=c(1.)),
    "StridedSlice": lambda: ops.StridedSlice(input=zeros(2), begin=c([0], tf.int32), end=c([1], tf.int32), strides=c([0], tf.int32)),
    "StridedSliceGrad": lambda: ops.StridedSliceGrad(shape=c([1<<30,1<<30], tf.int32), begin=c([0,0], tf.int32), end=c([1,1], tf.int32), strides=c([1,1], tf.int32), dy=zeros(1,1)),
    "SparseSlice": lambda: ops.SparseSlice(indices=c([[0,0]], tf.int64), values=c([1.]), shape=c([2,2], tf.int64), start=c([0,0], tf.int64), size=c([-1, BIG], tf.int64)),
    "SparseSliceGrad": lambda: ops.SparseSliceGrad(backprop_val_grad=c([1.]), input_indices=c([[0,0]], tf.int64), input_start=c([0], tf.int64), output_indices=c([[5,5]], tf.int64)),
    "ThreadPoolHandle": lambda: ops.ThreadPoolHandle(num_threads=-100, display_name='x'),
    "ParallelConcat": lambda: ops.ParallelConcat(values=[zeros(1)], shape=[0, 0]),
    "ImmutableConst": lambda: ops.ImmutableConst(dtype=tf.string, shape=[4], memory_region_name='/tmp/none'),
    "TopKV2": lambda: ops.TopKV2(input=zeros(2), k=c(-1, tf.int32)),
    "InTopKV2": lambda: ops.InTopKV2(predictions=zeros(1,2), targets=c([-5], tf.int32), k=c(1<<30, tf.int32)),
    "NthElement": lambda: ops.NthElement(input=zeros(2), n=c(-5, tf.int32)),
    "RandomPoissonV2": lambda: ops.RandomPoissonV2(shape=c([-1], tf.int32), rate=c([1.])),
    "StatelessRandomUniform": lambda: ops.StatelessRandomUniform(shape=c([1<<62, 4], tf.int64), seed=c([1,2], tf.int64)),
    "ParameterizedTruncatedNormal": lambda: ops.ParameterizedTruncatedNormal(shape=c([], tf.int32), means=c([1.]), stdevs=c([1.]), minvals=c([-1.]), maxvals=c([1.])),
    "Multinomial": lambda: ops.Multinomial(logits=zeros(1,1), num_samples=c(-5, tf.int32)),
    "LearnedUnigramCandidateSampler": lambda: ops.LearnedUnigramCandidateSampler(true_classes=c([[0,1<<40]], tf.int64), num_true=2, num_sampled=3, unique=True, range_max=2),
    "AllCandidateSampler": lambda: ops.AllCandidateSampler(true_classes=c([[1]], tf.int64), num_true=1, num_sampled=1 << 40, unique=False),
    "FusedBatchNormV3": lambda: ops.FusedBatchNormV3(x=zeros(1,1,1,1), scale=zeros(2), offset=zeros(1), mean=zeros(0), variance=zeros(0), is_training=True),
    "FusedBatchNorm empty": lambda: ops.FusedBatchNorm(x=zeros(4,4,4,0), scale=zeros(0), offset=zeros(0), mean=zeros(0), variance=zeros(0), is_training=False),
    "LRNGrad": lambda: ops.LRNGrad(input_grads=zeros(1,1,1,1), input_image=zeros(1,1,1,2), output_image=zeros(1,1,1,1)),
    "LRN overflow": lambda: ops.LRN(input=zeros(1,1,1,1), depth_radius=1 << 40),
    "SparseCross": lambda: ops.SparseCross(indices=[c([[9,9]], tf.int64)], values=[c([1], tf.int64)], shapes=[c([1,1], tf.int64)], dense_inputs=[], hashed_output=True, num_buckets=-1, hash_key=0, out_type=tf.int64, internal_type=tf.int64),
    "Bucketize": lambda: ops.Bucketize(input=c([1.]), boundaries=[3., 1.]),
    "UnravelIndex": lambda: ops.UnravelIndex(indices=c([-0x100000], tf.int32), dims=c([0x100000, 0x100000], tf.int32)),
    "UnravelIndex zero": lambda: ops.UnravelIndex(indices=c([0], tf.int32), dims=c([0, 1], tf.int32)),
    "UnsortedSegmentJoin": lambda: ops.UnsortedSegmentJoin(inputs=c(['a']), segment_ids=c([0], tf.int32), num_segments=c([1,2], tf.int32)),
    "UnsortedSegmentSum huge": lambda: ops.UnsortedSegmentSum(data=zeros(1), segment_ids=c([-1], tf.int32), num_segments=c(-5, tf.int32)),
    "SegmentSum": lambda: ops.SegmentSum(data=zeros(2), segment_ids=c([0, 1 << 40], tf.int64)),
    "BlockLSTM": lambda: ops.BlockLSTM(seq_len_max=c(1<<40, tf.int64), x=zeros(1,1,1), cs_prev=zeros(1,1), h_prev=zeros(1,1), w=zeros(2,4), wci=zeros(1), wcf=zeros(1), wco=zeros(1), b=zeros(4)),
    "GRUBlockCell": lambda: ops.GRUBlockCell(x=zeros(1,1), h_prev=zeros(1,2), w_ru=zeros(1,1), w_c=zeros(1,1), b_ru=zeros(1), b_c=zeros(1)),
    "LSTMBlockCell": lambda: ops.LSTMBlockCell(x=zeros(1,1), cs_prev=zeros(1,1), h_prev=zeros(0,1), w=zeros(2,4), wci=zeros(1), wcf=zeros(1), wco=zeros(1), b=zeros(4)),
    "Stage": lambda: ops.Stage(values=[], capacity=-1),
    "MapStage": lambda: ops.MapStage(key=c([], tf.int64), indices=c([], tf.int32), values=[zeros(1)], dtypes=[tf.float32], capacity=0, memory_limit=0),
    "MapIncompleteSize": lambda: ops.MapIncompleteSize(dtypes=[tf.float32], capacity=-1),
    "InitializeTableV2": lambda: ops.InitializeTableV2(table_handle=ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.int64), keys=c([1,2], tf.int64), values=c([1], tf.int64)),
    "MutableHashTableOfTensorsV2": lambda: ops.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.int64, value_shape=[-1]),
    "TensorArrayV3": lambda: ops.TensorArrayV3(size=c(-5, tf.int32), dtype=tf.float32),
    "RangeDataset": lambda: ops.RangeDataset(start=c(0, tf.int64), stop=c(1<<62, tf.int64), step=c(0, tf.int64), output_types=[tf.int64], output_shapes=[[]]),
    "SparseTensorSliceDataset": lambda: ops.SparseTensorSliceDataset(indices=c([[]], tf.int64, [1,0]), values=c([[]], tf.float32), dense_shape=c([], tf.int64)),
    "SaveV2": lambda: ops.SaveV2(prefix=c(['']), tensor_names=c(['a','b']), shape_and_slices=c(['']), tensors=[zeros(1)]),
    "RestoreV2": lambda: ops.RestoreV2(prefix=c(['']), tensor_names=c(['a']), shape_and_slices=c(['','']), dtypes=[tf.float32]),
    "DecodePaddedRaw": lambda: ops.DecodePaddedRaw(input_bytes=c(['abcd']), fixed_length=c(-1, tf.int32), out_type=tf.uint16),
    "DecodeCompressed": lambda: ops.DecodeCompressed(bytes=c('x'*10), compression_type='GZIP'),
    "ParseTensor": lambda: ops.ParseTensor(serialized=c(b'\x08\x01\x12\x0a\x12\x08\x08\xff\xff\xff\xff\xff\xff\x7f'), out_type=tf.float32),
    "Bitcast": lambda: ops.Bitcast(input=zeros(3, dtype=tf.uint8), type=tf.int64),
    "DynamicStitch": lambda: ops.DynamicStitch(indices=[c([0xdeadbeef - (1<<32), 405, 519], tf.int32)], data=[zeros(3)]),
    "DynamicPartition": lambda: ops.DynamicPartition(data=zeros(2), partitions=c([0, -1], tf.int32), num_partitions=1),
    "AudioSpectrogram": lambda: ops.AudioSpectrogram(input=zeros(1,1), window_size=1 << 40, stride=1),
    "Mfcc": lambda: ops.Mfcc(spectrogram=zeros(1,1,0), sample_rate=c(16000, tf.int32), dct_coefficient_count=1 << 30),
    "Roll": lambda: ops.Roll(input=zeros(2), shift=c([-(1<<63)], tf.int64), axis=c([0], tf.int64)),
    "Cumsum": lambda: ops.Cumsum(x=zeros(2), axis=c(-(1<<31), tf.int32)),
    "GatherV2": lambda: ops.GatherV2(params=zeros(2,2), indices=c([1 << 40], tf.int64), axis=c(0, tf.int32), batch_dims=-7),
    "BatchMatMulV2": lambda: ops.BatchMatMulV2(x=zeros(0,2,3), y=zeros(1,3,0)),
    "BroadcastTo": lambda: ops.BroadcastTo(input=zeros(1), shape=c([-1, 1<<40], tf.int64)),
    "BroadcastGradientArgs": lambda: ops.BroadcastGradientArgs(s0=c([BIG, 0], tf.int64), s1=c([3, 1], tf.int64)),
    "DataFormatVecPermute": lambda: ops.DataFormatVecPermute(x=c([0,1,2,3], tf.int32), src_format='abcd', dst_format='xyz1'),
    "DataFormatDimMap": lambda: ops.DataFormatDimMap(x=c([-5, 4], tf.int32)),
    "Betainc": lambda: ops.Betainc(a=zeros(1,2), b=zeros(2), x=c(0.5)),
    "HistogramFixedWidth": lambda: ops.HistogramFixedWidth(values=c([float('nan')]), value_range=c([0.,0.]), nbins=c(-1, tf.int32)),
    "AsString": lambda: ops.AsString(input=c([1.]), precision=1 << 40, width=1 << 30),
    "StringFormat": lambda: ops.StringFormat(inputs=[c([1.])], template='{}{}', placeholder=''),
    "UncompressElement": lambda: ops.UncompressElement(compressed=ops.CompressElement(components=[zeros(1)]), output_types=[tf.int64, tf.float32], output_shapes=[[], []]),
    "RecordInput": lambda: ops.RecordInput(file_pattern='nosuchfile', file_random_seed=1, file_shuffle_shift_ratio=0., file_buffer_size=-1, file_parallelism=-1, batch_size=0),
    "CollectiveGather": lambda: ops.CollectiveGather(input=zeros(1), group_size=-1, group_key=-100, instance_key=-100, shape=[]),
    "AnonymousSeedGenerator": lambda: ops.AnonymousSeedGenerator(seed=c([1,2], tf.int64), seed2=c(1, tf.int64), reshuffle=True),
    "SobolSample": lambda: ops.SobolSample(dim=c(-1, tf.int32), num_results=c(1<<30, tf.int32), skip=c(-5, tf.int32)),
    "FractionalAvgPoolGrad huge": lambda: ops.FractionalAvgPoolGrad(orig_input_tensor_shape=c([1, 1<<40, 1<<40, 1], tf.int64), out_backprop=zeros(1,1,1,1), row_pooling_sequence=c([0,1], tf.int64), col_pooling_sequence=c([0,1], tf.int64)),
}

def pipeline_of_outputs(count):
    """A GraphDef that names the second of |count| outputs."""
    graph = tf.compat.v1.GraphDef()
    graph.node.add(name="split", op="Split").attr["num_split"].i = count
    graph.node.add(name="dataset", op="_Retval", input=["split:1"])
    return graph.SerializeToString()


CALLS["DatasetFromGraph"] = lambda: ops.DatasetFromGraph(graph_def=c(pipeline_of_outputs(-(1 << 63))))

# What is allowed: empty tensors, and numbers that are clipped.
RESULTS = {
    "AvgPool huge", "BatchMatMulV2", "DataFormatDimMap", "DrawBoundingBoxes", "DrawBoundingBoxesV2", "FusedBatchNorm empty", "IRFFT",
    "InTopKV2", "RaggedTensorToVariant", "Roll", "SampleDistortedBoundingBoxV2", "Svd", "TensorListConcat",
}


def outcome(call):
    try:
        call()
    except (tf.errors.OpError, ValueError) as error:
        return type(error).__name__
    return "a result"


def test_advisories():
    found = {name for name, call in CALLS.items() if outcome(call) == "a result"}
    assert found == RESULTS
