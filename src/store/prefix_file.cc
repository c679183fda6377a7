#include "store/prefix_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/escape.h"
#include "store/byte_hash.h"

namespace winnow {
namespace {

Error system_error(const std::string& path, const char* action, int code) {
  ErrorCode kind = ErrorCode::kIo;
  if (code == ENOENT || code == ENOTDIR) kind = ErrorCode::kNotFound;
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) kind = ErrorCode::kStorageFull;
  return fail(kind, "%s: cannot %s: %s", escaped(path).c_str(), action, std::strerror(code));
}

Status read_at(int fd, std::span<std::byte> bytes, int64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "read", errno);
    if (got == 0) {
      return fail(ErrorCode::kCorruptFile, "%s: expected %zu more bytes at %lld, found its end",
                  escaped(path).c_str(), bytes.size(), static_cast<long long>(offset));
    }
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return Ok{};
}

// A rename is on the disk once its folder is.
bool sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.get() >= 0 && ::fsync(fd.get()) == 0;
}

}  // namespace

Result<std::unique_ptr<PrefixFile>> PrefixFile::open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer before fstat could refuse it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return system_error(path, "open", errno);
  std::unique_ptr<PrefixFile> file(new PrefixFile(path, fd));
  TRY_STATUS(file->read_header());
  return file;
}

Status PrefixFile::read_header() {
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0) return system_error(path_, "examine", errno);
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kCorruptFile, "%s: expected a file, found another thing of that name",
                escaped(path_).c_str());
  }
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  std::vector<std::byte> bytes(std::min<uint64_t>(kPrefixHeadBytes, file_bytes));
  TRY_STATUS(read_at(fd_.get(), bytes, 0, path_));
  TRY(const uint64_t header_bytes, prefix_header_bytes(bytes, file_bytes, path_));
  bytes.resize(header_bytes);
  TRY_STATUS(read_at(fd_.get(), bytes, 0, path_));
  TRY(header_, decode_prefix_header(bytes, file_bytes, path_));
  return Ok{};
}

Status PrefixFile::read_page(int64_t page_idx, std::span<std::byte> page) const {
  CHECK(page_idx >= 0 && page_idx < header_.num_pages() && std::ssize(page) == header_.page_bytes);
  const int64_t offset = header_.pages_offset() + page_idx * header_.page_bytes;
  TRY_STATUS(read_at(fd_.get(), page, offset, path_));
  if (byte_hash(page) == header_.pages[static_cast<size_t>(page_idx)].checksum) return Ok{};
  return fail(ErrorCode::kCorruptFile, "%s: expected the checksum of page %lld, found another",
              escaped(path_).c_str(), static_cast<long long>(page_idx));
}

Result<std::unique_ptr<PrefixFileWriter>> PrefixFileWriter::create(const std::string& path,
                                                                   PrefixHeader header) {
  std::string unfinished = path + "." + std::string(kSuffixLetters, 'X');
  const int fd = ::mkostemp(unfinished.data(), O_CLOEXEC);
  if (fd < 0) return system_error(path, "be made", errno);
  const int64_t size = header.file_bytes();
  std::unique_ptr<PrefixFileWriter> writer(
      new PrefixFileWriter(path, std::move(unfinished), fd, std::move(header)));
  // Where the file system can, a full disk is found out before the work is done.
  if (::fallocate(fd, 0, 0, size) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    return writer->error(errno);
  }
  return writer;
}

PrefixFileWriter::~PrefixFileWriter() {
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

Error PrefixFileWriter::error(int code) const { return system_error(path_, "be written", code); }

Status PrefixFileWriter::write_at(std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd_.get(), bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return error(errno);
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += done;
  }
  return Ok{};
}

Status PrefixFileWriter::append(std::span<const std::byte> page, bool has_summaries) {
  CHECK(num_written_ < header_.num_pages() && std::ssize(page) == header_.page_bytes);
  SavedPage& entry = header_.pages[static_cast<size_t>(num_written_)];
  entry.checksum = byte_hash(page);
  entry.has_summaries = has_summaries;
  TRY_STATUS(write_at(page, header_.pages_offset() + num_written_ * header_.page_bytes));
  ++num_written_;
  // Bit by bit: to wait for all of it at the end would hold up those who want to read.
  return ::fdatasync(fd_.get()) == 0 ? Status(Ok{}) : Status(error(errno));
}

Status PrefixFileWriter::finish() {
  CHECK(num_written_ == header_.num_pages() && !unfinished_.empty());
  TRY_STATUS(write_at(encode_prefix_header(header_), 0));
  if (::ftruncate(fd_.get(), header_.file_bytes()) != 0) return error(errno);
  if (::fsync(fd_.get()) != 0) return error(errno);
  if (::rename(unfinished_.c_str(), path_.c_str()) != 0) return error(errno);
  unfinished_.clear();
  return sync_folder(path_) ? Status(Ok{}) : Status(error(errno));
}

}  // namespace winnow
