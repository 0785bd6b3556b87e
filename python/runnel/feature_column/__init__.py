"""tf.feature_column: columns of features, and the layers and linear models made of them."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "feature_column.feature_columns: bucketized_column categorical_column_with_hash_bucket categorical_column_with_identity "
    "categorical_column_with_vocabulary_file categorical_column_with_vocabulary_list crossed_column embedding_column indicator_column "
    "input_layer linear_model make_parse_example_spec numeric_column shared_embedding_columns weighted_categorical_column",
)
