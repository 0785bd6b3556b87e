"""Functions of tf.io with the parameters of 2.x."""

from runnel import raw_ops


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """Reads the bytes of strings as numbers. With `fixed_length`, strings are cut or padded with zeros to that many bytes."""
    if fixed_length is not None:
        return raw_ops.DecodePaddedRaw(input_bytes=input_bytes, fixed_length=fixed_length, out_type=out_type, little_endian=little_endian, name=name)
    return raw_ops.DecodeRaw(bytes=input_bytes, out_type=out_type, little_endian=little_endian, name=name)
