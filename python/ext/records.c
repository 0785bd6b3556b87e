// The checksum of record files, which would be slow in Python.
#include "core.h"

static uint32_t table[8][256];

static void fill_table(void) {
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
    table[0][i] = value;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (int k = 1; k < 8; ++k)
      table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
}

static uint32_t crc32c(const uint8_t* data, size_t size) {
  uint32_t crc = 0xFFFFFFFFu;
  for (; size >= 8; size -= 8, data += 8) {  // eight bytes at a time
    uint32_t low, high;
    memcpy(&low, data, 4);
    memcpy(&high, data + 4, 4);
    low ^= crc;
    crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
          table[4][low >> 24] ^ table[3][high & 255] ^ table[2][high >> 8 & 255] ^
          table[1][high >> 16 & 255] ^ table[0][high >> 24];
  }
  for (; size; --size, ++data) crc = crc >> 8 ^ table[0][(crc ^ *data) & 255];
  return crc ^ 0xFFFFFFFFu;
}

// masked_crc32c(bytes): CRC-32C, rotated and offset as record files have it.
static PyObject* masked_crc32c(PyObject* self, PyObject* arg) {
  (void)self;
  Py_buffer view;
  if (PyObject_GetBuffer(arg, &view, PyBUF_SIMPLE) < 0) return NULL;
  if (!table[0][1]) fill_table();
  uint32_t crc = crc32c(view.buf, (size_t)view.len);
  PyBuffer_Release(&view);
  return PyLong_FromUnsignedLong((uint32_t)((crc >> 15 | crc << 17) + 0xA282EAD8u));
}

PyMethodDef rnpy_record_methods[] = {
    {"masked_crc32c", masked_crc32c, METH_O, "Returns the checksum of a record."},
    {NULL, NULL, 0, NULL},
};
