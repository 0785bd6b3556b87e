"""tf.experimental.StructuredTensor, against stock TensorFlow 2."""

import pytest

pytest.importorskip("numpy")
from both import both

PEOPLE = [{"id": 1, "tags": ["a", "b"], "address": {"zip": [1, 2]}}, {"id": 2, "tags": [], "address": {"zip": [3]}},
          {"id": 3, "tags": ["c"], "address": {"zip": []}}]
GROUPS = [[{"x": 1, "y": [1, 2]}, {"x": 2, "y": []}], [], [{"x": 3, "y": [5]}]]


def _plain(value):
    """Returns Python values with the keys of dicts in order: that of stock's fields is not defined."""
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _all_of(value):
    return [_plain(value.to_pyval()), str(value.shape), value.rank, sorted(value.field_names()), [part.row_splits().numpy() for part in value.row_partitions],
            None if value.nrows() is None else int(value.nrows())]


@both(v2=True)
def test_values(tf, np):
    make = tf.experimental.StructuredTensor
    found = [_all_of(make.from_pyval(value)) for value in (PEOPLE, GROUPS, {"a": 1, "b": {"c": [1.5]}}, [{}, {}], [[{}], [{}, {}]], {})]
    ragged = tf.ragged.constant([[1, 2], [3]])
    found += [_all_of(make.from_fields({"a": ragged, "b": [[1, 2], [3, 4]]}, [2])), _all_of(make.from_fields({"a": ragged}, [2, None])),
              _all_of(make.from_fields({}, [None], nrows=3)), _all_of(make.from_fields_and_rank({"a": [[1, 2], [3, 4]]}, 2)),
              _all_of(make.from_fields({"a": 1}))]
    people = make.from_pyval(PEOPLE)
    return found + [people.field_value("id"), people.field_value(("address", "zip")).to_list(), repr(make.from_pyval({"a": 1, "b": {"c": 2}}))]


@both(v2=True)
def test_items(tf, np):
    people, groups = (tf.experimental.StructuredTensor.from_pyval(value) for value in (PEOPLE, GROUPS))
    return [_plain(people[0].to_pyval()), _plain(people[1:].to_pyval()), people[-1, "id"], people[0, "tags"], _plain(people[:, "address"].to_pyval()), people[2, "address", "zip"],
            _plain(groups[0].to_pyval()), _plain(groups[:, :1].to_pyval()), groups[0, 1, "x"], groups[0, 0]["y"], _plain(groups[::2].to_pyval())]


@both(v2=True)
def test_changes(tf, np):
    people, groups = (tf.experimental.StructuredTensor.from_pyval(value) for value in (PEOPLE, GROUPS))
    part = tf.experimental.RowPartition
    found = [people.with_updates({"id": lambda x: x * 10, "new": ["u", "v", "w"], ("address", "zip"): None, ("address", "n"): [7, 8, 9]}),
             people.promote(("address", "zip"), "zips"), groups.merge_dims(0, 1), people.partition_outer_dimension(part.from_row_lengths([1, 2])),
             groups.partition_outer_dimension(part.from_row_lengths([0, 3])).merge_dims(1, 2), people.with_shape_dtype(tf.int32)]
    return [_all_of(value) for value in found]


@both(v2=True)
def test_functions(tf, np):
    if tf.__name__ == "tensorflow":  # where functions take structured tensors once this is imported
        import tensorflow.python.ops.structured.structured_array_ops  # noqa: F401
    people, groups = (tf.experimental.StructuredTensor.from_pyval(value) for value in (PEOPLE, GROUPS))
    found = [tf.concat([people, people[:1]], 0), tf.concat([groups, groups], 1), tf.gather(people, [2, 0]), tf.gather(people, tf.ragged.constant([[0], [1, 2]])),
             tf.expand_dims(people, 0), tf.expand_dims(groups, -1), tf.function(lambda p: tf.concat([p, p], 0))(people)]
    likes = [tf.ones_like(groups, tf.int32), tf.zeros_like(people), tf.size(groups), tf.rank(groups), tf.shape(groups).static_lengths()[0]]
    return [_all_of(value) for value in found] + [like.to_list() if hasattr(like, "to_list") else int(like) if np.ndim(like) == 0 else like.numpy()
                                                  for like in likes]


@both(v2=True)
def test_datasets(tf, np):
    people, groups = (tf.experimental.StructuredTensor.from_pyval(value) for value in (PEOPLE, GROUPS))
    rows = tf.data.Dataset.from_tensors(people).unbatch()
    return [[_plain(row.to_pyval()) for row in rows], [_plain(batch.to_pyval()) for batch in rows.batch(2)], [_plain(g.to_pyval()) for g in tf.data.Dataset.from_tensor_slices(groups)],
            [int(x) for x in rows.map(lambda row: row["id"] + tf.size(row["tags"]))]]


@both(v2=True)
def test_errors(tf, np):
    make = tf.experimental.StructuredTensor
    people = make.from_pyval(PEOPLE)
    calls = [lambda: make.from_pyval([{"a": 1}, {"b": 2}]), lambda: make.from_pyval([{}, [{}]]), lambda: make.from_pyval([[{}], 5]),
             lambda: make.from_fields({"a": [1], "b": [1, 2]}, [None]), lambda: make.from_fields({"_": 1}), lambda: make.from_fields({1: 2}),
             lambda: make.from_fields(3), lambda: make.from_fields({}, [None]), lambda: make.from_fields({}, [None, None]), lambda: make.from_fields({}, None),
             lambda: make.from_fields_and_rank({}, 1), lambda: people[:, 1], lambda: people[None], lambda: people.field_value(("id", "x")),
             lambda: people.with_updates({"none": None}), lambda: people.with_updates({("a", "x"): 3}),
             lambda: people.with_updates({"id": 3}), lambda: people.merge_dims(1, 0), lambda: people.partition_outer_dimension(1)]
    found = []
    for call in calls:
        try:
            found.append(repr(call()))
        except Exception as error:
            found.append((type(error).__name__, "" if isinstance(error, KeyError) else str(error)))
    return found
