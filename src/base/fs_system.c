// Files and directories of the operating system.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sync_file_range
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/pages.h"

typedef struct system_file_t {
  rn_file_t file;  // first
  rn_allocator_t allocator;
  int fd;
  size_t unwritten;  // bytes appended since the disk was last set to work
  char* path;        // Owned
} system_file_t;

// The kernel is told to start writing after this many appended bytes. Otherwise the disk idles
// until the sync, and a large file takes the time of copying plus that of the disk.
#define WRITE_BEHIND ((size_t)8 << 20)

// Bytes are read in pieces, whose pages are touched before (see pages.h), except for small ones.
#define READ_PIECE ((size_t)128 << 10)
#define TOUCHED_MIN ((size_t)16 << 10)

// The size of the next piece of a read of |size| bytes to |out|.
static size_t next_piece(void* out, size_t size) {
  if (size > READ_PIECE) size = READ_PIECE;
  if (size >= TOUCHED_MIN) rn_pages_touch(out, size);
  return size;
}

static rn_status_t outcome(const char* path, int result) {
  return result == 0 ? RN_OK : rn_status_of_errno(path, errno);
}

static rn_status_t file_read(rn_file_t* base, void* out, size_t size, size_t* out_size) {
  system_file_t* file = (system_file_t*)base;
  for (*out_size = 0; *out_size < size;) {
    char* to = (char*)out + *out_size;
    ssize_t got = read(file->fd, to, next_piece(to, size - *out_size));
    if (got < 0 && errno != EINTR) return rn_status_of_errno(file->path, errno);
    if (got == 0) break;
    if (got > 0) *out_size += (size_t)got;
  }
  return RN_OK;
}

static rn_status_t file_read_at(rn_file_t* base, uint64_t offset, void* out, size_t size,
                                size_t* out_size) {
  system_file_t* file = (system_file_t*)base;
  *out_size = 0;
  if (offset > INT64_MAX || size > INT64_MAX - offset)
    return rn_status_of_errno(file->path, EOVERFLOW);
  while (*out_size < size) {
    char* to = (char*)out + *out_size;
    ssize_t got =
        pread(file->fd, to, next_piece(to, size - *out_size), (off_t)(offset + *out_size));
    if (got < 0 && errno != EINTR) return rn_status_of_errno(file->path, errno);
    if (got == 0) break;
    if (got > 0) *out_size += (size_t)got;
  }
  return RN_OK;
}

static rn_status_t file_append(rn_file_t* base, rn_str_t data) {
  system_file_t* file = (system_file_t*)base;
  while (data.size) {
    size_t size = data.size < WRITE_BEHIND ? data.size : WRITE_BEHIND;
    ssize_t put = write(file->fd, data.data, size);
    if (put < 0 && errno != EINTR) return rn_status_of_errno(file->path, errno);
    // A device that writes nothing without an error would make this loop endless.
    if (put == 0) return rn_status_of_errno(file->path, EIO);
    if (put < 0) continue;
    data = rn_str_n(data.data + put, data.size - (size_t)put);
    file->unwritten += (size_t)put;
    if (file->unwritten < WRITE_BEHIND) continue;
    sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);  // a hint: pipes refuse it
    file->unwritten = 0;
  }
  return RN_OK;
}

static rn_status_t file_sync(rn_file_t* base) {
  system_file_t* file = (system_file_t*)base;
  return outcome(file->path, fsync(file->fd));
}

static rn_status_t file_truncate(rn_file_t* base, int64_t size) {
  system_file_t* file = (system_file_t*)base;
  return outcome(file->path, ftruncate(file->fd, size));
}

static void describe(const struct stat* from, rn_file_stat_t* out) {
  *out = (rn_file_stat_t){
      .size = from->st_size,
      .modified_ns = (int64_t)from->st_mtim.tv_sec * 1000000000 + from->st_mtim.tv_nsec,
      .is_directory = S_ISDIR(from->st_mode)};
}

static rn_status_t file_stat(rn_file_t* base, rn_file_stat_t* out) {
  system_file_t* file = (system_file_t*)base;
  struct stat found;
  if (fstat(file->fd, &found) != 0) return rn_status_of_errno(file->path, errno);
  describe(&found, out);
  return RN_OK;
}

static rn_status_t file_close(rn_file_t* base) {
  system_file_t* file = (system_file_t*)base;
  // Some file systems report a full disk only here. The descriptor is gone even if it fails.
  rn_status_t status = file->fd < 0 ? RN_OK : outcome(file->path, close(file->fd));
  if (file->path) rn_free(file->allocator, file->path, strlen(file->path) + 1);
  RN_FREE(file->allocator, file);
  return status;
}

static const rn_file_vtable_t system_file = {
    .read = file_read,
    .read_at = file_read_at,
    .append = file_append,
    .sync = file_sync,
    .truncate = file_truncate,
    .stat = file_stat,
    .close = file_close,
};

static rn_status_t system_open(void* self, const char* path, rn_open_mode_t mode,
                               rn_allocator_t allocator, rn_file_t** out_file) {
  (void)self;
  static const int flags[] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND,
                              O_WRONLY | O_CREAT | O_APPEND,
                              O_WRONLY | O_CREAT | O_TRUNC | O_APPEND};
  *out_file = NULL;
  system_file_t* file = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &file));
  *file = (system_file_t){.file = {&system_file}, .allocator = allocator, .fd = -1};
  rn_status_t status = rn_str_dup(allocator, rn_str(path), &file->path);
  if (rn_ok(status)) file->fd = open(path, flags[mode] | O_CLOEXEC, 0666);
  if (rn_ok(status) && file->fd < 0) status = rn_status_of_errno(path, errno);
  // The system releases the lock when the process ends in any way. Without locks, is_in_use is
  // unknown.
  if (rn_ok(status) && mode == RN_OPEN_TEMPORARY) flock(file->fd, LOCK_SH | LOCK_NB);
  if (!rn_ok(status)) {
    rn_status_free(file_close(&file->file));
    return status;
  }
  *out_file = &file->file;
  return RN_OK;
}

static rn_status_t system_stat(void* self, const char* path, rn_file_stat_t* out) {
  (void)self;
  struct stat found;
  if (stat(path, &found) != 0) return rn_status_of_errno(path, errno);
  describe(&found, out);
  return RN_OK;
}

static rn_status_t system_remove(void* self, const char* path) {
  (void)self;
  return outcome(path, unlink(path));
}

static rn_status_t system_rename(void* self, const char* from, const char* to) {
  (void)self;
  return outcome(from, rename(from, to));
}

static rn_status_t system_make_directory(void* self, const char* path) {
  (void)self;
  return outcome(path, mkdir(path, 0755));
}

static rn_status_t system_remove_directory(void* self, const char* path) {
  (void)self;
  return outcome(path, rmdir(path));
}

static rn_status_t system_sync_directory(void* self, const char* path) {
  (void)self;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return rn_status_of_errno(path, errno);
  rn_status_t status = outcome(path, fsync(fd));
  close(fd);
  return status;
}

static rn_status_t system_list(void* self, const char* path, rn_names_t* names) {
  (void)self;
  DIR* directory = opendir(path);
  if (!directory) return rn_status_of_errno(path, errno);
  rn_status_t status = RN_OK;
  while (rn_ok(status)) {
    errno = 0;
    const struct dirent* entry = readdir(directory);
    if (!entry) {
      if (errno) status = rn_status_of_errno(path, errno);
      break;
    }
    bool is_self = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (!is_self) status = rn_names_add(names, rn_str(entry->d_name));
  }
  closedir(directory);
  return status;
}

static rn_status_t system_is_in_use(void* self, const char* path, bool* out) {
  (void)self;
  // For writing: locks on file servers require it.
  int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return rn_status_of_errno(path, errno);
  int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  close(fd);
  *out = error == EWOULDBLOCK;
  return error && !*out ? rn_status_of_errno(path, error) : RN_OK;
}

const rn_fs_t rn_fs_local = {
    .open = system_open,
    .stat = system_stat,
    .remove = system_remove,
    .rename = system_rename,
    .make_directory = system_make_directory,
    .remove_directory = system_remove_directory,
    .sync_directory = system_sync_directory,
    .list = system_list,
    .is_in_use = system_is_in_use,
};
