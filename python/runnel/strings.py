"""tf.strings: string tensors."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "as_string join=string_join reduce_join regex_replace strip=string_strip substr to_hash_bucket=string_to_hash_bucket "
    "to_hash_bucket_fast=string_to_hash_bucket_fast to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number",
    "ops.string_ops: format=string_format length=string_length lower=string_lower regex_full_match split=string_split_v2 unicode_script "
    "unicode_transcode unsorted_segment_join upper=string_upper",
    "ragged.ragged_strings: bytes_split ngrams unicode_decode unicode_decode_with_offsets unicode_encode unicode_split "
    "unicode_split_with_offsets",
)
