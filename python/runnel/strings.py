"""tf.strings."""

from runnel._namespace import namespace

__getattr__, __dir__ = namespace(
    __name__,
    "as_string reduce_join regex_replace substr",
    "format=string_ops.string_format join=string_join length=string_ops.string_length lower=string_ops.string_lower "
    "upper=string_ops.string_upper regex_full_match=string_ops.regex_full_match split=string_ops.string_split_v2 strip=string_strip "
    "to_hash_bucket=string_to_hash_bucket to_hash_bucket_fast=string_to_hash_bucket_fast "
    "to_hash_bucket_strong=string_to_hash_bucket_strong to_number=string_to_number unicode_script=string_ops.unicode_script "
    "bytes_split=ragged_strings.bytes_split ngrams=ragged_strings.ngrams unicode_decode=ragged_strings.unicode_decode "
    "unicode_decode_with_offsets=ragged_strings.unicode_decode_with_offsets unicode_encode=ragged_strings.unicode_encode "
    "unicode_split=ragged_strings.unicode_split unicode_split_with_offsets=ragged_strings.unicode_split_with_offsets "
    "unicode_transcode=string_ops.unicode_transcode unsorted_segment_join=string_ops.unsorted_segment_join",
)
