// Console: the three standard streams as the commands see them. The answer goes to `out`,
// everything else to `err`.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace winnow {

// A file descriptor that is written at once. After a failure further writes do nothing, so that a
// long answer into a closed pipe ends quietly.
class OutputStream {
 public:
  explicit OutputStream(int fd);

  // Whether the text was written.
  bool write(std::string_view text);
  bool writable() const { return error_ == 0; }
  // kIo if a write failed; a reader that went away is no error.
  Status status(const char* name) const;

  bool is_terminal() const { return is_terminal_; }
  // Columns of the terminal, 80 if unknown.
  int width() const;

 private:
  int fd_;
  bool is_terminal_;
  int error_ = 0;  // errno of the write that failed
};

struct Console {
  OutputStream out{1};
  OutputStream err{2};
  int in = 0;  // file descriptor
  bool quiet = false;

  // One line on `err`, unless quiet.
  void note(std::string_view line);
  // `text` in the terminal's colour `code` ("1" bold, "2" dim) where `stream` is a terminal and
  // NO_COLOR is not set.
  static std::string styled(const OutputStream& stream, const char* code, std::string_view text);
};

}  // namespace winnow
