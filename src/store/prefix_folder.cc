#include "store/prefix_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/escape.h"

namespace winnow {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 64;
constexpr size_t kOwnerDigits = 16;
constexpr std::string_view kExtension = ".prefix";

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string owner_part(std::string_view owner) {
  char text[kOwnerDigits + 2];
  std::snprintf(text, sizeof(text), ".%016llx",
                static_cast<unsigned long long>(tenant_hash(owner)[0]));
  return text;
}

// "NAME.OWNER.prefix": no two names of any owners have the same.
std::string file_name(const PrefixName& name) {
  return name.name + owner_part(name.owner) + std::string(kExtension);
}

bool is_prefix_file(std::string_view file) {
  return file.size() > kOwnerDigits + 1 + kExtension.size() && file.ends_with(kExtension);
}

// What PrefixFileWriter writes before it is done.
bool is_unfinished(std::string_view file) {
  constexpr size_t kSuffixBytes = 1 + PrefixFileWriter::kSuffixLetters;
  return file.size() > kSuffixBytes && file[file.size() - kSuffixBytes] == '.' &&
         is_prefix_file(file.substr(0, file.size() - kSuffixBytes));
}

long long mib(int64_t bytes) { return static_cast<long long>(bytes >> 20); }

struct Entry {
  int64_t file_bytes = 0;
  std::shared_ptr<const SavedPrefix> prefix;  // null: of no use here
};

}  // namespace

struct PrefixFolder::Impl {
  Impl(PrefixFolderOptions given, int folder_fd) : options(std::move(given)), fd(folder_fd) {}

  std::string path_of(const std::string& file) const {
    return (fs::path(options.path) / file).string();
  }
  Status read();
  void add(const fs::directory_entry& file);
  Result<std::shared_ptr<const SavedPrefix>> read_prefix(const std::string& path) const;
  int64_t used_bytes_beside(const std::string& file) const;

  const PrefixFolderOptions options;
  const FileDescriptor fd;  // holds the lock

  mutable std::mutex mutex;
  std::map<std::string, Entry> entries;  // by file name
  int64_t reserved_bytes = 0;            // of saves under way
};

Error no_prefix_folder() {
  return fail(ErrorCode::kUnsupported,
              "saved prefixes: expected a server with a folder for them (--kv-store), found none");
}

Status check_prefix_name(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, is_name_letter)) {
    return Ok{};
  }
  return fail(ErrorCode::kInvalidArgument,
              "name: expected 1 to %zu of A-Z a-z 0-9 . _ -, found '%s'", kMaxNameBytes,
              escaped(name, 80).c_str());
}

Result<std::unique_ptr<PrefixFolder>> PrefixFolder::open(PrefixFolderOptions options) {
  const std::string shown = escaped(options.path);
  std::error_code error;
  fs::create_directories(fs::path(options.path).parent_path(), error);
  if (::mkdir(options.path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(ErrorCode::kIo, "%s: cannot be made: %s", shown.c_str(), std::strerror(errno));
  }
  const int fd = ::open(options.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorCode::kIo, "%s: expected a folder, found: %s", shown.c_str(),
                std::strerror(errno));
  }
  auto impl = std::make_unique<Impl>(std::move(options), fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::kOverloaded, "%s: expected a folder of its own, found another server's",
                shown.c_str());
  }
  TRY_STATUS(impl->read());
  return std::unique_ptr<PrefixFolder>(new PrefixFolder(std::move(impl)));
}

Status PrefixFolder::Impl::read() {
  std::error_code error;
  fs::directory_iterator files(options.path, error);
  for (; !error && files != fs::directory_iterator(); files.increment(error)) add(*files);
  if (!error) return Ok{};
  return fail(ErrorCode::kIo, "%s: cannot read the folder: %s", escaped(options.path).c_str(),
              error.message().c_str());
}

void PrefixFolder::Impl::add(const fs::directory_entry& file) {
  std::error_code error;
  const std::string name = file.path().filename().string();
  if (is_unfinished(name) && file.symlink_status(error).type() == fs::file_type::regular) {
    fs::remove(file.path(), error);
    return;
  }
  if (!is_prefix_file(name)) return;
  const uintmax_t size = file.file_size(error);
  Entry& entry = entries[name];
  entry.file_bytes = error ? 0 : static_cast<int64_t>(size);
  Result<std::shared_ptr<const SavedPrefix>> prefix = read_prefix(path_of(name));
  if (!prefix.ok()) return options.on_useless_file(prefix.error());
  entry.prefix = std::move(prefix).value();
}

Result<std::shared_ptr<const SavedPrefix>> PrefixFolder::Impl::read_prefix(
    const std::string& path) const {
  TRY(const auto file, PrefixFile::open(path));
  const PrefixHeader& header = file->header();
  if (header.identity != options.identity || header.page_bytes != options.page_bytes) {
    return fail(ErrorCode::kUnsupported, "%s: expected a prefix made by '%s', found '%s'",
                escaped(path).c_str(), options.identity.c_str(), escaped(header.identity).c_str());
  }
  struct stat info = {};
  const bool found = ::stat(path.c_str(), &info) == 0;
  return std::make_shared<const SavedPrefix>(
      SavedPrefix{path, header, found ? info.st_mtim.tv_sec : 0});
}

int64_t PrefixFolder::Impl::used_bytes_beside(const std::string& file) const {
  int64_t sum = reserved_bytes;
  for (const auto& [name, entry] : entries) sum += name == file ? 0 : entry.file_bytes;
  return sum;
}

PrefixFolder::PrefixFolder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PrefixFolder::~PrefixFolder() = default;

const std::string& PrefixFolder::identity() const { return impl_->options.identity; }
int64_t PrefixFolder::page_bytes() const { return impl_->options.page_bytes; }
int64_t PrefixFolder::limit_bytes() const { return impl_->options.limit_bytes; }

std::vector<PrefixInfo> PrefixFolder::list(std::string_view owner) const {
  const std::string ending = owner_part(owner) + std::string(kExtension);
  std::vector<PrefixInfo> infos;
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [file, entry] : impl_->entries) {
    if (!file.ends_with(ending) || entry.prefix == nullptr) continue;
    const PrefixHeader& header = entry.prefix->header;
    infos.push_back({.name = file.substr(0, file.size() - ending.size()),
                     .num_tokens = header.num_tokens(),
                     .file_bytes = entry.file_bytes,
                     .sparse = !header.mode.empty(),
                     .saved = entry.prefix->saved});
  }
  return infos;
}

Status PrefixFolder::remove(const PrefixName& name) {
  TRY_STATUS(check_prefix_name(name.name));
  const std::lock_guard lock(impl_->mutex);
  const auto entry = impl_->entries.find(file_name(name));
  if (entry == impl_->entries.end()) {
    return fail(ErrorCode::kNotFound, "name: expected that of a saved prefix, found '%s'",
                name.name.c_str());
  }
  if (::unlink(impl_->path_of(entry->first).c_str()) != 0 && errno != ENOENT) {
    return fail(ErrorCode::kIo, "%s: cannot be removed: %s", entry->first.c_str(),
                std::strerror(errno));
  }
  impl_->entries.erase(entry);
  return Ok{};
}

std::vector<std::shared_ptr<const SavedPrefix>> PrefixFolder::find(const TenantHash& tenant,
                                                                   std::string_view mode) const {
  std::vector<std::shared_ptr<const SavedPrefix>> found;
  const std::lock_guard lock(impl_->mutex);
  for (const auto& [file, entry] : impl_->entries) {
    if (entry.prefix == nullptr) continue;
    const PrefixHeader& header = entry.prefix->header;
    if (header.tenant == tenant && header.mode == mode) found.push_back(entry.prefix);
  }
  return found;
}

Result<std::unique_ptr<PrefixFile>> PrefixFolder::open_file(const SavedPrefix& prefix) const {
  TRY(std::unique_ptr<PrefixFile> file, PrefixFile::open(prefix.path));
  if (file->header() == prefix.header) return file;
  return fail(ErrorCode::kNotFound, "%s: expected the prefix of before, found another",
              escaped(prefix.path).c_str());
}

void PrefixFolder::set_aside(const SavedPrefix& prefix, const Error& why) {
  {
    const std::lock_guard lock(impl_->mutex);
    for (auto& [file, entry] : impl_->entries) {
      if (entry.prefix.get() == &prefix) entry.prefix.reset();
    }
  }
  if (why.code != ErrorCode::kNotFound) impl_->options.on_useless_file(why);
}

Result<std::unique_ptr<PrefixSave>> PrefixFolder::save(const PrefixName& name,
                                                       PrefixHeader header) {
  TRY_STATUS(check_prefix_name(name.name));
  header.identity = impl_->options.identity;
  header.page_bytes = impl_->options.page_bytes;
  const int64_t file_bytes = header.file_bytes();
  std::unique_ptr<PrefixSave> save(new PrefixSave(*impl_, file_name(name)));
  {
    const std::lock_guard lock(impl_->mutex);
    const int64_t used = impl_->used_bytes_beside(save->file_name_);
    if (file_bytes > impl_->options.limit_bytes - used) {
      return fail(
          ErrorCode::kStorageFull,
          "saved prefixes: expected room for %lld MiB, found %lld of %lld MiB taken; remove "
          "one or raise --kv-store-limit",
          mib(file_bytes), mib(used), mib(impl_->options.limit_bytes));
    }
    impl_->reserved_bytes += file_bytes;
    save->reserved_bytes_ = file_bytes;
  }
  TRY(save->writer_, PrefixFileWriter::create(impl_->path_of(save->file_name_), std::move(header)));
  return save;
}

PrefixSave::~PrefixSave() {
  writer_.reset();
  const std::lock_guard lock(folder_.mutex);
  folder_.reserved_bytes -= reserved_bytes_;
}

Status PrefixSave::finish() {
  TRY_STATUS(writer_->finish());
  const std::lock_guard lock(folder_.mutex);
  folder_.reserved_bytes -= std::exchange(reserved_bytes_, 0);
  SavedPrefix prefix{.path = folder_.path_of(file_name_),
                     .header = writer_->header(),
                     .saved = static_cast<int64_t>(std::time(nullptr))};
  folder_.entries[file_name_] = {.file_bytes = prefix.header.file_bytes(),
                                 .prefix = std::make_shared<const SavedPrefix>(std::move(prefix))};
  return Ok{};
}

}  // namespace winnow
