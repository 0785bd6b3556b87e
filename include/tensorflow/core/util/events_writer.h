// EventsWriter: a training log that TensorBoard reads.
//
//   EventsWriter writer("/tmp/log/events");
//   Event event;
//   … event.mutable_summary() …
//   writer.WriteEvent(event);
#ifndef TENSORFLOW_CORE_UTIL_EVENTS_WRITER_H_
#define TENSORFLOW_CORE_UTIL_EVENTS_WRITER_H_

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tensorflow/core/lib/io/record_writer.h"
#include "tensorflow/core/util/event.pb.h"

namespace tensorflow {

// One thread at a time may use a writer.
class EventsWriter {
 public:
  static constexpr const char* kVersionPrefix = "brain.Event:";
  static constexpr int kCurrentVersion = 2;

  // The file is called |file_prefix| and ".out.tfevents.<seconds>.<host>".
  explicit EventsWriter(const std::string& file_prefix) : prefix_(file_prefix) {}
  ~EventsWriter() { Close().IgnoreError(); }
  EventsWriter(const EventsWriter&) = delete;
  EventsWriter& operator=(const EventsWriter&) = delete;

  // Makes the file; otherwise the first event does.
  Status Init() { return InitWithSuffix(""); }
  Status InitWithSuffix(const std::string& suffix) {
    if (file_ && suffix == suffix_ && Env::Default()->FileExists(name_).ok()) return OkStatus();
    suffix_ = suffix;
    return Open();
  }
  std::string FileName() {
    if (name_.empty()) Init().IgnoreError();
    return name_;
  }
  void WriteEvent(const Event& event) { WriteSerializedEvent(event.SerializeAsString()); }
  void WriteSerializedEvent(StringPiece event) {
    if (!file_) {
      Status status = Init();
      if (!status.ok()) {
        LOG(ERROR) << "Write failed because file could not be opened: " << status;
        return;
      }
    }
    ++pending_;
    status_.Update(records_->WriteRecord(event));
  }
  // DATA_LOSS if events were lost since the last call.
  Status Flush() {
    if (pending_ == 0) return OkStatus();
    if (!file_) return errors::FailedPrecondition("Events file was closed");
    status_.Update(file_->Flush());
    if (status_.ok()) status_.Update(file_->Sync());
    int lost = pending_;
    pending_ = 0;
    Status result = status_;
    status_ = OkStatus();
    if (result.ok()) return result;
    return errors::DataLoss("Failed to flush ", lost, " events to ", name_, ": ", result.message());
  }
  Status Close() {
    Status status = Flush();
    if (file_) status.Update(file_->Close());
    records_.reset();
    file_.reset();
    return status;
  }

 private:
  Status Open() {
    TF_RETURN_IF_ERROR(Close());
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    double now = static_cast<double>(Env::Default()->NowMicros()) * 1e-6;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%010lld", static_cast<long long>(now));
    name_ = prefix_ + ".out.tfevents." + seconds + "." + host + suffix_;
    TF_RETURN_IF_ERROR(Env::Default()->NewWritableFile(name_, &file_));
    records_ = std::make_unique<io::RecordWriter>(file_.get());
    Event first;
    first.set_wall_time(now);
    first.set_file_version(kVersionPrefix + std::to_string(kCurrentVersion));
    WriteEvent(first);
    return Flush();
  }

  std::string prefix_, suffix_, name_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<io::RecordWriter> records_;
  Status status_;
  int pending_ = 0;
};

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_UTIL_EVENTS_WRITER_H_
