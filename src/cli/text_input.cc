#include "cli/text_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/escape.h"
#include "base/file_descriptor.h"
#include "base/utf8.h"
#include "cli/interrupt.h"

namespace winnow {
namespace {

// Whatever keeps a file from being read, it counts as missing.
Error cannot_read(const std::string& name, int error) {
  return fail(ErrorCode::kNotFound, "%s: expected a readable file, found '%s'",
              escaped(name).c_str(), std::strerror(error));
}

size_t count_broken(std::string_view text) {
  size_t broken = 0;
  while (!text.empty()) {
    text.remove_prefix(valid_utf8_prefix(text));
    if (text.empty()) break;
    text.remove_prefix(first_utf8_unit(text).num_bytes);
    ++broken;
  }
  return broken;
}

}  // namespace

Result<std::string> read_all(int fd, const std::string& name) {
  std::string bytes;
  std::array<char, 65536> part;
  for (;;) {
    if (!interrupt::wait_readable(fd)) return fail(ErrorCode::kInterrupted, "interrupted");
    const ssize_t size = read(fd, part.data(), part.size());
    if (size == 0) return bytes;
    if (size < 0) {
      if (errno == EINTR) continue;
      return cannot_read(name, errno);
    }
    bytes.append(part.data(), static_cast<size_t>(size));
    if (bytes.size() > kMaxInputBytes) {
      return fail(ErrorCode::kInvalidArgument, "%s: expected at most %zu bytes, found more",
                  escaped(name).c_str(), kMaxInputBytes);
    }
  }
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

Result<std::string> read_text_file(const std::string& path, int stdin_fd) {
  if (path == "-") return read_all(stdin_fd, input_name(path));
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (interrupt::requested()) return fail(ErrorCode::kInterrupted, "interrupted");
  if (file.get() < 0) return cannot_read(path, errno);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return cannot_read(path, errno);
  if (S_ISDIR(info.st_mode)) return cannot_read(path, EISDIR);
  if (S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) > kMaxInputBytes) {
    return fail(ErrorCode::kInvalidArgument, "%s: expected at most %zu bytes, found %lld",
                escaped(path).c_str(), kMaxInputBytes, static_cast<long long>(info.st_size));
  }
  if (S_ISCHR(info.st_mode) && isatty(file.get()) == 0 && path != "/dev/null") {
    return fail(ErrorCode::kUnsupported, "%s: expected a file or pipe, found a device",
                escaped(path).c_str());
  }
  return read_all(file.get(), path);
}

Result<DecodedText> decode_text(std::string bytes, const std::string& name) {
  const std::string_view view = bytes;
  if (view.starts_with("\xFF\xFE") || view.starts_with("\xFE\xFF") ||
      view.starts_with(std::string_view("\0\0\xFE\xFF", 4))) {
    return fail(ErrorCode::kInvalidArgument,
                "%s: expected UTF-8 text, found the byte-order mark of UTF-16 or UTF-32",
                escaped(name).c_str());
  }
  if (view.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  const size_t broken = count_broken(bytes);
  if (broken == 0) return DecodedText{std::move(bytes), 0};
  return DecodedText{valid_utf8(bytes), broken};
}

LineReader::Outcome LineReader::next(std::string& line) {
  std::array<char, 4096> part;
  size_t searched = 0;
  for (;;) {
    const size_t end = buffered_.find('\n', searched);
    if (end != std::string::npos) {
      line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return Outcome::kLine;
    }
    searched = buffered_.size();
    if (at_end_ || buffered_.size() > kMaxInputBytes) break;
    if (!interrupt::wait_readable(fd_)) return Outcome::kInterrupted;
    const ssize_t size = read(fd_, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      at_end_ = true;
    } else {
      buffered_.append(part.data(), static_cast<size_t>(size));
    }
  }
  if (buffered_.empty()) return Outcome::kEnd;
  line = std::exchange(buffered_, {});
  return Outcome::kLine;
}

}  // namespace winnow
