// PrefixFolder: the saved prefixes of one folder, each a file (prefix_file.h), and what may be kept
// there. Owners do not see one another's names; tenants do not get one another's pages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/prefix_file.h"

namespace winnow {

struct PrefixFolderOptions {
  std::string path;
  int64_t limit_bytes = 0;  // of all files together
  // What serves the model at hand. Other files are left alone, and count.
  std::string identity;
  int64_t page_bytes = 0;
  // Told of files that are of no use. From any thread.
  std::function<void(const Error&)> on_useless_file = [](const Error&) {};
};

struct PrefixName {
  std::string owner;  // any text, the same for all names of one owner
  std::string name;
};
// kInvalidArgument unless it has 1 to 64 of A-Z a-z 0-9 . _ -
Status check_prefix_name(std::string_view name);

struct PrefixInfo {
  std::string name;
  int64_t num_tokens = 0;
  int64_t file_bytes = 0;
  bool sparse = false;
  int64_t saved = 0;  // seconds since 1970
};

// A usable file. Stays what it is when the file is replaced or removed.
struct SavedPrefix {
  std::string path;
  PrefixHeader header;
  int64_t saved = 0;
};

class PrefixSave;

// What asks for a prefix to be saved, listed or removed is told where no folder is given.
Error no_prefix_folder();

// From any thread.
class PrefixFolder {
 public:
  // Makes the folder if it is not there, and reads the headers of its files; what an interrupted
  // save left is removed. kIo or kInvalidArgument naming the folder; kOverloaded if another process
  // uses it.
  static Result<std::unique_ptr<PrefixFolder>> open(PrefixFolderOptions options);
  ~PrefixFolder();

  const std::string& identity() const;
  int64_t page_bytes() const;
  int64_t limit_bytes() const;

  // By name.
  std::vector<PrefixInfo> list(std::string_view owner) const;
  // kNotFound if the owner has none of that name.
  Status remove(const PrefixName& name);

  // Those whose pages `tenant` may have in that mode.
  std::vector<std::shared_ptr<const SavedPrefix>> find(const TenantHash& tenant,
                                                       std::string_view mode) const;
  // The file of a prefix that was found. kNotFound if it is no longer the same.
  Result<std::unique_ptr<PrefixFile>> open_file(const SavedPrefix& prefix) const;
  // It is found no more. Tells why, unless it was replaced or removed.
  void set_aside(const SavedPrefix& prefix, const Error& why);

  // `header` holds all but identity, bytes of a page and the pages' checksums. kStorageFull telling
  // what is free; kInvalidArgument for the name. The folder must outlive the save.
  Result<std::unique_ptr<PrefixSave>> save(const PrefixName& name, PrefixHeader header);

 private:
  friend class PrefixSave;
  struct Impl;
  explicit PrefixFolder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A prefix on its way to the folder, whose room is kept for it. Not finished, it leaves nothing.
class PrefixSave {
 public:
  ~PrefixSave();
  PrefixSave(const PrefixSave&) = delete;
  PrefixSave& operator=(const PrefixSave&) = delete;

  const PrefixHeader& header() const { return writer_->header(); }
  // As those of PrefixFileWriter.
  Status append(std::span<const std::byte> page, bool has_summaries) {
    return writer_->append(page, has_summaries);
  }
  Status finish();

 private:
  friend class PrefixFolder;
  PrefixSave(PrefixFolder::Impl& folder, std::string file_name)
      : folder_(folder), file_name_(std::move(file_name)) {}

  PrefixFolder::Impl& folder_;
  const std::string file_name_;
  std::unique_ptr<PrefixFileWriter> writer_;
  int64_t reserved_bytes_ = 0;
};

}  // namespace winnow
