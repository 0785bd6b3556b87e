// The state of iterators as bytes: see data.h.
//
// A sequence of fields, in the order in which each kind writes them. A field is a byte, its sort,
// and then: 'i' an integer as a zig-zag varint; 't' a length as a varint and that many bytes; 'T'
// the same, the bytes being a TensorProto; '0' nothing, for a tensor or an iterator that is not
// there; 'I' an iterator: the name of its op as a text, then its own fields; 'R' a tensor that is a
// dataset of rows in memory: their number, the number of components, then type and shape of each (a
// tensor of them), then the rows; 'S' one that is a shard of a snapshot: the same of components,
// its path, compression, version and first element. Everything read is checked, since states come
// from files.
#include "kernels/cpu/dataset/shard.h"
#include "kernels/cpu/dataset/window.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

#define MAX_STATE_TENSOR ((size_t)1 << 31)  // as messages are limited

static void put_byte(rn_data_writer_t* writer, char byte) {
  rn_strbuf_append_n(&writer->bytes, &byte, 1);
}

void rn_data_put_int(rn_data_writer_t* writer, int64_t value) {
  put_byte(writer, 'i');
  rn_pb_put_varint(&writer->bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_bytes(rn_data_writer_t* writer, char sort, rn_str_t bytes) {
  put_byte(writer, sort);
  rn_pb_put_varint(&writer->bytes, bytes.size);
  rn_strbuf_append(&writer->bytes, bytes);
}

void rn_data_put_text(rn_data_writer_t* writer, rn_str_t text) { put_bytes(writer, 't', text); }

static rn_status_t put_tensor(rn_data_writer_t* writer, const rn_tensor_t* tensor) {
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, writer->bytes.allocator);
  rn_status_t status = rn_tensor_put_proto(tensor, RN_TENSOR_CONTENT, &bytes);
  if (rn_ok(status)) put_bytes(writer, 'T', rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  return status;
}

void rn_data_put_row(rn_data_writer_t* writer, const rn_tensor_t* row, int32_t count) {
  for (int32_t i = 0; i < count && rn_ok(writer->status); ++i) {
    const rn_dataset_t* rows = rn_data_rows_of(&row[i]);
    const rn_dataset_t* shard = rn_data_shard_of(&row[i]);
    if (shard) {
      put_byte(writer, 'S');
      rn_data_shard_put(writer, shard);
    } else if (rows) {
      put_byte(writer, 'R');
      rn_data_rows_put(writer, rows);
    } else if (rn_tensor_is_set(&row[i])) {
      writer->status = put_tensor(writer, &row[i]);
    } else {
      put_byte(writer, '0');
    }
  }
}

// The op of an iterator's dataset; empty if no op made it.
static rn_str_t name_of(const rn_data_iterator_t* iterator) {
  const rn_data_node_t* node = iterator->dataset->node;
  return rn_str(node->attrs ? node->op->name : "");
}

rn_status_t rn_data_put_iterator(rn_data_writer_t* writer, rn_data_iterator_t* iterator) {
  if (!rn_ok(writer->status)) return RN_OK;
  if (!iterator) {
    put_byte(writer, '0');
    return RN_OK;
  }
  const rn_data_kind_t* kind = iterator->dataset->kind;
  if (!kind->save)
    return rn_unimplemented("The state of a %s cannot be saved", iterator->dataset->node->op->name);
  put_byte(writer, 'I');
  rn_data_put_text(writer, name_of(iterator));
  return kind->save(iterator, writer);
}

rn_status_t rn_data_bad_state(void) {
  return rn_data_loss("The state of an iterator is corrupt or belongs to another dataset");
}

static bool take_byte(rn_data_reader_t* reader, char* out) {
  if (!reader->bytes.size) return false;
  *out = *reader->bytes.data;
  reader->bytes = rn_str_n(reader->bytes.data + 1, reader->bytes.size - 1);
  return true;
}

static bool take_varint(rn_data_reader_t* reader, uint64_t* out) {
  char byte = 0;
  *out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (!take_byte(reader, &byte)) return false;
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

rn_status_t rn_data_take_int(rn_data_reader_t* reader, int64_t* out) {
  char sort = 0;
  uint64_t bits = 0;
  if (!take_byte(reader, &sort) || sort != 'i' || !take_varint(reader, &bits))
    return rn_data_bad_state();
  *out = (int64_t)(bits >> 1 ^ -(bits & 1));
  return RN_OK;
}

static bool take_bytes(rn_data_reader_t* reader, rn_str_t* out) {
  uint64_t size = 0;
  if (!take_varint(reader, &size) || size > reader->bytes.size) return false;
  *out = rn_str_n(reader->bytes.data, (size_t)size);
  reader->bytes = rn_str_n(reader->bytes.data + size, reader->bytes.size - (size_t)size);
  return true;
}

rn_status_t rn_data_take_text(rn_data_reader_t* reader, rn_str_t* out) {
  char sort = 0;
  return take_byte(reader, &sort) && sort == 't' && take_bytes(reader, out) ? RN_OK
                                                                            : rn_data_bad_state();
}

static rn_status_t take_tensor(rn_data_reader_t* reader, rn_tensor_t* out) {
  rn_str_t bytes;
  if (!take_bytes(reader, &bytes)) return rn_data_bad_state();
  return rn_tensor_take_proto(bytes, MAX_STATE_TENSOR, reader->memory, out);
}

rn_status_t rn_data_take_row(rn_data_reader_t* reader, const rn_dtype_t* types, int32_t count,
                             rn_tensor_t* row) {
  for (int32_t i = 0; i < count; ++i) {
    char sort = 0;
    if (!take_byte(reader, &sort)) return rn_data_bad_state();
    rn_tensor_clear(&row[i]);
    if (sort == '0') continue;
    if (sort != 'T' && sort != 'R' && sort != 'S') return rn_data_bad_state();
    RN_RETURN_IF_ERROR(sort == 'R'   ? rn_data_rows_take(reader, &row[i])
                       : sort == 'S' ? rn_data_shard_take(reader, &row[i])
                                     : take_tensor(reader, &row[i]));
    if (types && row[i].dtype != types[i]) return rn_data_bad_state();
  }
  return RN_OK;
}

static rn_status_t take_fields(rn_data_reader_t* reader, rn_data_iterator_t* iterator) {
  rn_str_t op;
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &op));
  const rn_data_kind_t* kind = iterator->dataset->kind;
  if (!rn_str_eq(op, name_of(iterator)))
    return rn_invalid_argument("The saved state is of a %.*s, not of a %s", RN_STR_ARGS(op),
                               iterator->dataset->node->op->name);
  if (!kind->restore)
    return rn_unimplemented("The state of a %.*s cannot be restored", RN_STR_ARGS(op));
  return kind->restore(iterator, reader);
}

rn_status_t rn_data_take_iterator(rn_data_reader_t* reader, rn_data_iterator_t* iterator) {
  char sort = 0;
  if (!take_byte(reader, &sort) || sort != 'I') return rn_data_bad_state();
  return take_fields(reader, iterator);
}

rn_status_t rn_data_restore_source(rn_data_reader_t* reader, rn_data_source_t* source,
                                   rn_data_iterator_t* owner, rn_dataset_t* dataset) {
  char sort = 0;
  if (!take_byte(reader, &sort) || (sort != 'I' && sort != '0')) return rn_data_bad_state();
  rn_data_source_stop(source);
  if (sort == '0') {
    source->owner = owner;
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_data_source_start(source, owner, dataset));
  return take_fields(reader, source->iterator);
}
