"""Inner paths of TensorFlow that tf_keras and libraries on top of it use."""
