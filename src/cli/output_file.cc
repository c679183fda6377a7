#include "cli/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/escape.h"

namespace winnow {

Status write_file(const std::string& path, std::string_view contents) {
  const auto failed = [&](int error) {
    return fail(ErrorCode::kIo, "%s: expected to write the file, found '%s'", escaped(path).c_str(),
                std::strerror(error));
  };
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return failed(errno);
  const bool written = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  const int error = errno;
  if (std::fclose(file) != 0) return failed(errno);
  if (!written) return failed(error);
  return Ok{};
}

}  // namespace winnow
