"""tf.layers: layers of a network, as functions and as classes that own their variables."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "layers.base: InputSpec Layer",
    "layers.core: AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D Conv1D Conv2D Conv2DTranspose Conv3D "
    "Conv3DTranspose Convolution1D Convolution2D Convolution2DTranspose Convolution3D Convolution3DTranspose Deconv2D Deconv3D "
    "Deconvolution2D Deconvolution3D Dense Dropout Flatten MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D "
    "SeparableConv1D SeparableConv2D SeparableConvolution1D SeparableConvolution2D",
    "layers.core: average_pooling1d average_pooling2d average_pooling3d batch_normalization conv1d conv2d conv2d_transpose conv3d "
    "conv3d_transpose dense dropout flatten max_pooling1d max_pooling2d max_pooling3d separable_conv1d separable_conv2d",
    "layers.normalization: BatchNormalization",
)
