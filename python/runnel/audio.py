"""tf.audio: WAV files."""

from runnel import raw_ops


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """Decodes the bytes of a 16-bit WAV file: (samples as floats in [-1, 1] of shape [samples, channels], sample rate)."""
    return raw_ops.DecodeWav(contents=contents, desired_channels=desired_channels, desired_samples=desired_samples, name=name)


def encode_wav(audio, sample_rate, name=None):
    """Encodes samples, [samples, channels], as the bytes of a 16-bit WAV file."""
    return raw_ops.EncodeWav(audio=audio, sample_rate=sample_rate, name=name)
