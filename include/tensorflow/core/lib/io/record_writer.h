// RecordWriter: records in a file (TFRecord), without compression.
#ifndef TENSORFLOW_CORE_LIB_IO_RECORD_WRITER_H_
#define TENSORFLOW_CORE_LIB_IO_RECORD_WRITER_H_

#include <string>

#include "tensorflow/core/lib/hash/crc32c.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace io {

class RecordWriter {
 public:
  // |file| must outlive the writer.
  explicit RecordWriter(WritableFile* file) : file_(file) {}
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  // Appends the length, its checksum, |data| and its checksum.
  Status WriteRecord(StringPiece data) {
    if (!file_) return errors::FailedPrecondition("Writer not initialized or previously closed");
    std::string header, footer;
    Put(static_cast<uint64>(data.size()), 8, &header);
    Put(crc32c::Mask(crc32c::Value(header.data(), 8)), 4, &header);
    Put(crc32c::Mask(crc32c::Value(data.data(), data.size())), 4, &footer);
    TF_RETURN_IF_ERROR(file_->Append(header));
    TF_RETURN_IF_ERROR(file_->Append(data));
    return file_->Append(footer);
  }
  Status Flush() { return file_ ? file_->Flush() : OkStatus(); }
  // The file stays open.
  Status Close() {
    file_ = nullptr;
    return OkStatus();
  }

 private:
  static void Put(uint64 value, int bytes, std::string* out) {
    for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  WritableFile* file_;
};

}  // namespace io
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_LIB_IO_RECORD_WRITER_H_
