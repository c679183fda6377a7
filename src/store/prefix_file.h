// The file of one saved prefix (its layout: prefix_header.h), read page by page and written as a
// whole: it is complete or not there.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "store/prefix_header.h"

namespace winnow {

class PrefixFile {
 public:
  // Reads the header only. kNotFound, kIo, kCorruptFile or kUnsupported naming the file.
  static Result<std::unique_ptr<PrefixFile>> open(const std::string& path);

  const PrefixHeader& header() const { return header_; }
  // kCorruptFile if the page is not what was written. Requires header().page_bytes bytes. From any
  // thread.
  Status read_page(int64_t page_idx, std::span<std::byte> page) const;

 private:
  PrefixFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status read_header();

  const std::string path_;
  const FileDescriptor fd_;
  PrefixHeader header_;
};

class PrefixFileWriter {
 public:
  // What it writes stands beside `path`, under that name and a point with kSuffixLetters letters,
  // and is gone with the writer unless finish() succeeds. `header` holds all but the pages'
  // checksums. kStorageFull or kIo naming the file.
  static Result<std::unique_ptr<PrefixFileWriter>> create(const std::string& path,
                                                          PrefixHeader header);
  ~PrefixFileWriter();
  PrefixFileWriter(const PrefixFileWriter&) = delete;
  PrefixFileWriter& operator=(const PrefixFileWriter&) = delete;

  static constexpr size_t kSuffixLetters = 6;

  // The next page, on the disk when this returns. Requires header.page_bytes bytes.
  Status append(std::span<const std::byte> page, bool has_summaries);
  // Puts the file in its place, where it replaces another. Requires all pages.
  Status finish();
  const PrefixHeader& header() const { return header_; }

 private:
  PrefixFileWriter(std::string path, std::string unfinished, int fd, PrefixHeader header)
      : path_(std::move(path)),
        unfinished_(std::move(unfinished)),
        fd_(fd),
        header_(std::move(header)) {}
  Status write_at(std::span<const std::byte> bytes, int64_t offset);
  Error error(int code) const;

  const std::string path_;
  std::string unfinished_;  // empty once the file is in its place
  const FileDescriptor fd_;
  PrefixHeader header_;
  int64_t num_written_ = 0;  // pages
};

}  // namespace winnow
