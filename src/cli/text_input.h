// Text that comes in from files, pipes and the terminal.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace winnow {

// No prompt is longer than this; an endless source is refused instead of filling the memory.
inline constexpr size_t kMaxInputBytes = size_t{1} << 30;

// Everything up to the end of `fd`; `name` is for messages. kInterrupted after Ctrl+C.
Result<std::string> read_all(int fd, const std::string& name);
// What messages call the input at `path`: "standard input" for "-".
std::string input_name(const std::string& path);
// The bytes of a file or pipe; "-" is `stdin_fd`.
Result<std::string> read_text_file(const std::string& path, int stdin_fd);

struct DecodedText {
  std::string text;     // well-formed UTF-8
  size_t replaced = 0;  // ill-formed parts, each of which became U+FFFD
};
// Bytes as a text for people: a UTF-8 byte-order mark is dropped, ill-formed parts are replaced,
// NUL and other control characters stay. kInvalidArgument for UTF-16 and UTF-32, which their
// byte-order marks give away.
Result<DecodedText> decode_text(std::string bytes, const std::string& name);

// Reads lines as they come. A line has no length limit but kMaxInputBytes.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  enum class Outcome { kLine, kEnd, kInterrupted };
  // Puts the next line, without its end, into `line`.
  Outcome next(std::string& line);

 private:
  int fd_;
  std::string buffered_;
  bool at_end_ = false;
};

}  // namespace winnow
