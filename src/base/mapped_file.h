// MappedFile: the bytes of one file, read-only, mapped where the system allows it and read
// otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace winnow {

enum class MapMode {
  kMapOrRead,  // map; read everything if mapping is refused
  kRead,       // always read: immune to later changes of the file, costs its size in memory
};

// Move-only owner. The bytes start at an address aligned to at least 64.
// A mapped file that another process shortens is a trap: touching the lost pages raises SIGBUS,
// whose handler finds the file's name in mapped_ranges. check_unchanged() lets a caller refuse such
// a file before it touches the data; replacing a file by rename is always safe.
class MappedFile {
 public:
  // Regular, non-empty files only: a directory, device or pipe is refused at once and never read.
  static Result<MappedFile> open(const std::string& path, MapMode mode = MapMode::kMapOrRead);

  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const;
  const std::string& path() const;
  bool is_mapped() const;
  // An error if the file behind the mapping has changed its size or time of modification since it
  // was opened.
  Status check_unchanged() const;

 private:
  struct State;
  explicit MappedFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace winnow
