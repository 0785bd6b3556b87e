// Env: files and the clock, and messages in files.
//
// Programs write, delete and list files of any scheme that the library knows (plain paths,
// "file://", those of plug-ins). They read plain files only, because the C API has no function for
// it.
#ifndef TENSORFLOW_CORE_PLATFORM_ENV_H_
#define TENSORFLOW_CORE_PLATFORM_ENV_H_

#include <fnmatch.h>
#include <sys/stat.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/c/env.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

namespace protobuf = google::protobuf;

// A file that is read at any place.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(std::FILE* file) : file_(file, std::fclose) {}
  // Reads |n| bytes at |offset| into |scratch|; OUT_OF_RANGE if the file has less.
  Status Read(uint64 offset, size_t n, StringPiece* result, char* scratch) const {
    *result = StringPiece();
    if (fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET))
      return errors::OutOfRange("cannot seek");
    size_t got = std::fread(scratch, 1, n, file_.get());
    *result = StringPiece(scratch, got);
    return got == n ? OkStatus() : errors::OutOfRange("Read less bytes than requested");
  }
  Status Read(uint64 offset, StringPiece& result, absl::Span<char> scratch) const {
    return Read(offset, scratch.size(), &result, scratch.data());
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class WritableFile {
 public:
  explicit WritableFile(TF_WritableFileHandle* handle) : handle_(handle) {}
  ~WritableFile() {
    if (handle_) Close().IgnoreError();
  }
  Status Append(StringPiece data) {
    if (!handle_) return errors::FailedPrecondition("the file is closed");
    CStatus status;
    TF_AppendWritableFile(handle_, data.data(), data.size(), status);
    return status.Get();
  }
  Status Flush() {
    if (!handle_) return errors::FailedPrecondition("the file is closed");
    CStatus status;
    TF_FlushWritableFile(handle_, status);
    return status.Get();
  }
  Status Sync() {
    if (!handle_) return errors::FailedPrecondition("the file is closed");
    CStatus status;
    TF_SyncWritableFile(handle_, status);
    return status.Get();
  }
  Status Close() {
    if (!handle_) return OkStatus();
    CStatus status;
    TF_CloseWritableFile(handle_, status);
    handle_ = nullptr;
    return status.Get();
  }

 private:
  TF_WritableFileHandle* handle_;
};

struct ThreadOptions {
  size_t stack_size = 0;  // not used
  size_t guard_size = 0;  // not used
  int numa_node = -1;     // not used
};

// A thread; deleting the object waits until it has ended.
class Thread {
 public:
  explicit Thread(std::function<void()> work) : thread_(std::move(work)) {}
  ~Thread() { thread_.join(); }

 private:
  std::thread thread_;
};

class Env {
 public:
  static Env* Default() {
    static Env env;
    return &env;
  }
  Status FileExists(const std::string& name) {
    struct stat found;
    if (stat(name.c_str(), &found) == 0) return OkStatus();
    return errors::NotFound(name, " not found");
  }
  Status IsDirectory(const std::string& name) {
    struct stat found;
    if (stat(name.c_str(), &found)) return errors::NotFound(name, "; No such file or directory");
    return S_ISDIR(found.st_mode) ? OkStatus()
                                  : Status(errors::FailedPrecondition("Not a directory"));
  }
  Status GetFileSize(const std::string& name, uint64* size) {
    CStatus status;
    TF_FileStatistics stats;
    TF_FileStat(name.c_str(), &stats, status);
    if (status.ok()) *size = static_cast<uint64>(stats.length);
    return status.Get();
  }
  Status GetChildren(const std::string& folder, std::vector<std::string>* names) {
    names->clear();
    CStatus status;
    TF_StringStream* list = TF_GetChildren(folder.c_str(), status);
    if (!status.ok()) return status.Get();
    const char* name;
    while (TF_StringStreamNext(list, &name)) names->push_back(name);
    TF_StringStreamDone(list);
    return OkStatus();
  }
  // Paths whose last part matches; wildcards in folders are not expanded.
  Status GetMatchingPaths(const std::string& pattern, std::vector<std::string>* paths) {
    paths->clear();
    std::string folder(io::Dirname(pattern)), base(io::Basename(pattern));
    std::vector<std::string> names;
    TF_RETURN_IF_ERROR(GetChildren(folder.empty() ? "." : folder, &names));
    for (const std::string& name : names) {
      if (fnmatch(base.c_str(), name.c_str(), 0) == 0) paths->push_back(io::JoinPath(folder, name));
    }
    return OkStatus();
  }
  Status CreateDir(const std::string& name) { return Call(TF_CreateDir, name); }
  Status RecursivelyCreateDir(const std::string& name) {
    for (size_t slash = name.find('/', 1); slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
      std::string part = name.substr(0, slash);
      if (!FileExists(part).ok()) TF_RETURN_IF_ERROR(CreateDir(part));
    }
    return FileExists(name).ok() ? OkStatus() : CreateDir(name);
  }
  Status DeleteFile(const std::string& name) { return Call(TF_DeleteFile, name); }
  Status DeleteDir(const std::string& name) { return Call(TF_DeleteDir, name); }
  // The counts are those of what could not be deleted.
  Status DeleteRecursively(const std::string& name, int64_t* files, int64_t* folders) {
    *files = *folders = 0;
    bool is_folder = IsDirectory(name).ok();
    std::vector<std::string> names;
    if (is_folder) TF_RETURN_IF_ERROR(GetChildren(name, &names));
    for (const std::string& child : names) {
      int64_t more_files, more_folders;
      DeleteRecursively(io::JoinPath(name, child), &more_files, &more_folders).IgnoreError();
      *files += more_files;
      *folders += more_folders;
    }
    Status last = is_folder ? DeleteDir(name) : DeleteFile(name);
    if (!last.ok()) ++*(is_folder ? folders : files);
    return last;
  }
  Status RenameFile(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return errors::NotFound(from, "; cannot be renamed to ", to);
  }
  Status NewWritableFile(const std::string& name, std::unique_ptr<WritableFile>* file) {
    CStatus status;
    TF_WritableFileHandle* handle = nullptr;
    TF_NewWritableFile(name.c_str(), &handle, status);
    if (status.ok()) *file = std::make_unique<WritableFile>(handle);
    return status.Get();
  }
  Status NewRandomAccessFile(const std::string& name, std::unique_ptr<RandomAccessFile>* file) {
    std::FILE* opened = std::fopen(name.c_str(), "rb");
    if (!opened) return errors::NotFound(name, "; No such file or directory");
    *file = std::make_unique<RandomAccessFile>(opened);
    return OkStatus();
  }
  uint64 NowMicros() const { return TF_NowMicros(); }
  uint64 NowNanos() const { return TF_NowNanos(); }
  uint64 NowSeconds() const { return TF_NowSeconds(); }
  void SleepForMicroseconds(int64_t micros) {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }
  Thread* StartThread(const ThreadOptions&, const std::string&, std::function<void()> work) {
    return new Thread(std::move(work));
  }
  // Runs |work| on a thread of its own.
  void SchedClosure(std::function<void()> work) { std::thread(std::move(work)).detach(); }
  void SchedClosureAfter(int64_t micros, std::function<void()> work) {
    SchedClosure([this, micros, work = std::move(work)] {
      SleepForMicroseconds(micros);
      work();
    });
  }
  bool LocalTempFilename(std::string* name) {
    char* made = TF_GetTempFileName("");
    if (!made) return false;
    *name = made;
    std::free(made);
    return true;
  }

 private:
  static Status Call(void (*function)(const char*, TF_Status*), const std::string& name) {
    CStatus status;
    function(name.c_str(), status);
    return status.Get();
  }
};

inline Status ReadFileToString(Env*, const std::string& name, std::string* data) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rb"), std::fclose);
  if (!file) return errors::NotFound(name, "; No such file or directory");
  data->clear();
  char part[1 << 16];
  while (size_t got = std::fread(part, 1, sizeof part, file.get())) data->append(part, got);
  if (std::ferror(file.get())) return errors::FailedPrecondition(name, " cannot be read");
  return OkStatus();
}
inline Status WriteStringToFile(Env* env, const std::string& name, StringPiece data) {
  std::unique_ptr<WritableFile> file;
  TF_RETURN_IF_ERROR(env->NewWritableFile(name, &file));
  TF_RETURN_IF_ERROR(file->Append(data));
  return file->Close();
}
inline Status ReadBinaryProto(Env* env, const std::string& name, protobuf::MessageLite* message) {
  std::string bytes;
  TF_RETURN_IF_ERROR(ReadFileToString(env, name, &bytes));
  if (message->ParseFromString(bytes)) return OkStatus();
  return errors::DataLoss("Can't parse ", name, " as binary proto");
}
inline Status WriteBinaryProto(Env* env, const std::string& name,
                               const protobuf::MessageLite& message) {
  std::string bytes;
  message.AppendToString(&bytes);
  return WriteStringToFile(env, name, bytes);
}
inline Status ReadTextProto(Env* env, const std::string& name, protobuf::Message* message) {
  std::string text;
  TF_RETURN_IF_ERROR(ReadFileToString(env, name, &text));
  if (protobuf::TextFormat::ParseFromString(text, message)) return OkStatus();
  return errors::DataLoss("Can't parse ", name, " as text proto");
}
inline Status WriteTextProto(Env* env, const std::string& name, const protobuf::Message& message) {
  std::string text;
  if (!protobuf::TextFormat::PrintToString(message, &text)) {
    return errors::FailedPrecondition("Unable to convert proto to text.");
  }
  return WriteStringToFile(env, name, text);
}
inline Status ReadTextOrBinaryProto(Env* env, const std::string& name, protobuf::Message* message) {
  if (ReadTextProto(env, name, message).ok()) return OkStatus();
  return ReadBinaryProto(env, name, message);
}

}  // namespace tensorflow

namespace tsl {
using tensorflow::Env;
using tensorflow::ReadBinaryProto;
using tensorflow::ReadFileToString;
}  // namespace tsl

#endif  // TENSORFLOW_CORE_PLATFORM_ENV_H_
