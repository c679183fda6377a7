#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/escape.h"
#include "base/file_descriptor.h"
#include "base/mapped_ranges.h"

namespace winnow {
namespace {

struct FreeBytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using OwnedBytes = std::unique_ptr<std::byte[], FreeBytes>;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error system_error(const std::string& path, const char* action, int code) {
  const ErrorCode kind = code == ENOENT || code == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  return fail(kind, "%s: cannot %s: %s", escaped(path).c_str(), action, std::strerror(code));
}

Result<OwnedBytes> read_all(int fd, const std::string& path, size_t size) {
  const size_t capacity = (size + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
  OwnedBytes bytes(static_cast<std::byte*>(std::aligned_alloc(kCacheLineBytes, capacity)));
  if (bytes == nullptr) {
    return fail(ErrorCode::kOutOfMemory,
                "%s: cannot be mapped, and its %zu bytes do not fit in memory",
                escaped(path).c_str(), size);
  }
  size_t filled = 0;
  while (filled < size) {
    constexpr size_t kMaxReadBytes = size_t{1} << 30;
    const ssize_t got = ::read(fd, bytes.get() + filled, std::min(size - filled, kMaxReadBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "read", errno);
    if (got == 0) {
      return fail(ErrorCode::kIo,
                  "%s: expected %zu bytes, but the file ended after %zu while being read",
                  escaped(path).c_str(), size, filled);
    }
    filled += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

struct MappedFile::State {
  std::string path;
  std::string shown_path;
  struct stat opened = {};
  void* mapping = nullptr;  // null when the bytes were read
  OwnedBytes read_bytes;
  std::span<const std::byte> bytes;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (mapping == nullptr) return;
    mapped_ranges::remove(mapping);
    ::munmap(mapping, bytes.size());
  }
};

Result<MappedFile> MappedFile::open(const std::string& path, MapMode mode) {
  if (path.find('\0') != std::string::npos) {
    return fail(ErrorCode::kNotFound, "%s: a file name cannot hold a NUL byte",
                escaped(path).c_str());
  }
  // Without O_NONBLOCK, opening a pipe would wait for its writer before fstat could refuse it.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_error(path, "open", errno);
  auto state = std::make_unique<State>();
  state->path = path;
  if (::fstat(fd.get(), &state->opened) != 0) return system_error(path, "examine", errno);
  if (!S_ISREG(state->opened.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "%s: expected a file, found %s", escaped(path).c_str(),
                kind_of(state->opened.st_mode));
  }
  if (state->opened.st_size <= 0) {
    return fail(ErrorCode::kCorruptFile, "%s: expected a model file, found an empty file",
                escaped(path).c_str());
  }
  const size_t size = static_cast<size_t>(state->opened.st_size);
  if (mode == MapMode::kMapOrRead) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (mapping != MAP_FAILED) state->mapping = mapping;
  }
  if (state->mapping != nullptr) {
    state->bytes = {static_cast<const std::byte*>(state->mapping), size};
    state->shown_path = escaped(path);
    mapped_ranges::add(state->mapping, size, state->shown_path.c_str());
  } else {
    TRY(state->read_bytes, read_all(fd.get(), path, size));
    state->bytes = {state->read_bytes.get(), size};
  }
  return MappedFile(std::move(state));
}

MappedFile::MappedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

std::span<const std::byte> MappedFile::bytes() const { return state_->bytes; }
const std::string& MappedFile::path() const { return state_->path; }
bool MappedFile::is_mapped() const { return state_->mapping != nullptr; }

Status MappedFile::check_unchanged() const {
  if (!is_mapped()) return Ok{};
  // A file that was replaced by rename leaves the mapping whole, so only the same inode counts.
  struct stat now = {};
  if (::stat(path().c_str(), &now) != 0) return Ok{};
  const struct stat& then = state_->opened;
  if (now.st_dev != then.st_dev || now.st_ino != then.st_ino) return Ok{};
  if (now.st_size != then.st_size) {
    return fail(ErrorCode::kIo, "%s: expected %lld bytes as when it was opened, found %lld",
                escaped(path()).c_str(), static_cast<long long>(then.st_size),
                static_cast<long long>(now.st_size));
  }
  if (now.st_mtim.tv_sec != then.st_mtim.tv_sec || now.st_mtim.tv_nsec != then.st_mtim.tv_nsec) {
    return fail(ErrorCode::kIo,
                "%s: expected an unchanged file, found it written to since it was opened",
                escaped(path()).c_str());
  }
  return Ok{};
}

}  // namespace winnow
