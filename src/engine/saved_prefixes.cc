#include "engine/saved_prefixes.h"

#include <algorithm>
#include <ctime>
#include <exception>

#include "base/check.h"
#include "engine/cache_scope.h"
#include "engine/kv_identity.h"
#include "engine/prefix_match.h"

namespace winnow {
namespace {

using NodeId = PrefixCache::NodeId;

std::span<std::byte> slice(std::vector<std::byte>& bytes, int64_t page, int64_t page_bytes) {
  return std::span(bytes).subspan(static_cast<size_t>(page * page_bytes),
                                  static_cast<size_t>(page_bytes));
}

PageMake make_of(const PrefixHeader& header, int64_t page_idx) {
  return header.pages[static_cast<size_t>(page_idx)].kind;
}

std::string name_of(const std::optional<SparseProfile>& profile) {
  if (!profile) return "";
  const uint64_t hash = profile_hash(*profile);
  return {reinterpret_cast<const char*>(&hash), sizeof(hash)};
}

Error saving_cancelled() { return fail(ErrorCode::kInterrupted, "saved prefixes: cancelled"); }

}  // namespace

// Pages [next_read, end) have not been asked for. At most one read is under way, so that the next
// pages are read while the engine files those before them.
struct SavedPrefixes::Load {
  std::shared_ptr<const SavedPrefix> prefix;
  std::string scope;
  int64_t next_read = 0;
  int64_t end = 0;
  Task done;
  std::unique_ptr<PrefixFile> file = {};  // the I/O thread's
  bool reading = false;
  bool stopped = false;  // the cache has no room for more
};

struct SavedPrefixes::Save {
  PrefixToSave prefix;
  std::string scope;
  PrefixHeader header;
  std::unique_ptr<PrefixSave> file = {};  // the I/O thread's
  int64_t next_page = 0;
  bool cancelled = false;
};

// Some pages of a prefix, one behind the other.
struct SavedPrefixes::PageCopy {
  std::vector<std::byte> bytes;
  std::vector<bool> has_summaries;
};

SavedPrefixes::SavedPrefixes(PrefixFolder& folder, PrefixCache& cache, BatchRunner& runner,
                             const std::optional<SparseProfile>& profile, int64_t bytes_at_once,
                             std::function<void(Task)> on_engine)
    : folder_(folder),
      cache_(cache),
      runner_(runner),
      profile_name_(name_of(profile)),
      bytes_at_once_(bytes_at_once),
      on_engine_(std::move(on_engine)) {
  CHECK(folder.page_bytes() == runner.kv().bytes_per_page());
}

SavedPrefixes::~SavedPrefixes() = default;

std::string SavedPrefixes::mode_name(const PromptMode& mode) const {
  const std::string rule = mode_scope(mode);
  return rule.empty() ? rule : rule + profile_name_;
}

int64_t SavedPrefixes::pages_that_serve(const PrefixHeader& header,
                                        const ScheduledRequest& request) const {
  const auto prompt_tokens = std::ssize(request.prompt);
  const int64_t end = std::min(header.num_pages(), (prompt_tokens - 1) / kPageTokens);
  int64_t count = 0;
  for (; count < end; ++count) {
    const auto tokens = std::span(request.prompt).subspan(count * kPageTokens, kPageTokens);
    if (!std::ranges::equal(tokens, header.page_tokens(count))) break;
    const PageMake own = own_make(request.mode, prompt_tokens, count);
    if (!serves(make_of(header, count), own, request.cache.exact)) break;
  }
  // The sketches depend on the first tokens, which must all be the same.
  const bool alike =
      !request.mode.uses_summaries() || count * kPageTokens >= request.mode.rule->dense_tokens;
  return alike ? count : 0;
}

SavedPrefixes::Nodes SavedPrefixes::cached_pages(const std::string& scope,
                                                 const PrefixHeader& header, int64_t most) const {
  Nodes nodes;
  std::optional<NodeId> at = cache_.find_root(scope);
  for (int64_t i = 0; at && i < most; ++i) {
    at = cache_.find(*at, header.page_tokens(i), make_of(header, i));
    if (at) nodes.push_back(*at);
  }
  return nodes;
}

int64_t SavedPrefixes::pages_at_once(int64_t begin, int64_t end) const {
  return std::min(end - begin, std::max<int64_t>(1, bytes_at_once_ / folder_.page_bytes()));
}

std::optional<PageId> SavedPrefixes::take_page() {
  PagePool& pool = runner_.kv().pool();
  std::optional<PageId> page = pool.take();
  if (!page && cache_.evict_one()) page = pool.take();
  return page;
}

void SavedPrefixes::on_disk(std::function<Status()> work, std::function<void(Status)> then) {
  io_.post([this, work = std::move(work), then = std::move(then)] {
    const Status status = [&]() -> Status {
      try {
        return work();
      } catch (const std::exception& error) {
        return fail(ErrorCode::kOutOfMemory, "saved prefixes: %s", error.what());
      }
    }();
    on_engine_([then, status] { then(status); });
  });
}

bool SavedPrefixes::load(const ScheduledRequest& request, const std::string& tenant, Task done) {
  std::shared_ptr<const SavedPrefix> best;
  int64_t most = 0;
  for (const auto& prefix : folder_.find(tenant_hash(tenant), mode_name(request.mode))) {
    const int64_t count = pages_that_serve(prefix->header, request);
    if (count <= most) continue;
    best = prefix;
    most = count;
  }
  const std::string& scope = request.cache.scope;
  if (most == 0 || std::ssize(cached_pages(scope, best->header, most)) == most) return false;
  loads_.push_back(std::make_shared<Load>(
      Load{.prefix = std::move(best), .scope = scope, .end = most, .done = std::move(done)}));
  if (loads_.size() == 1) start_load();
  return true;
}

void SavedPrefixes::start_load() {
  Load& load = *loads_.front();
  load.next_read = std::ssize(cached_pages(load.scope, load.prefix->header, load.end));
  if (load.next_read == load.end) return end_load();
  read_more(load);
}

void SavedPrefixes::read_more(Load& load) {
  const int64_t first_page = load.next_read;
  const int64_t count = pages_at_once(first_page, load.end);
  load.next_read += count;
  load.reading = true;
  const auto bytes = std::make_shared<Bytes>();
  on_disk(
      [this, shared = loads_.front(), bytes, first_page, count]() -> Status {
        const int64_t page_bytes = folder_.page_bytes();
        if (!shared->file) {
          TRY(shared->file, folder_.open_file(*shared->prefix));
        }
        bytes->resize(static_cast<size_t>(count * page_bytes));
        for (int64_t i = 0; i < count; ++i) {
          TRY_STATUS(shared->file->read_page(first_page + i, slice(*bytes, i, page_bytes)));
        }
        return Ok{};
      },
      [this, shared = loads_.front(), bytes, first_page](const Status& status) {
        shared->reading = false;
        if (!status.ok()) {
          folder_.set_aside(*shared->prefix, status.error());
          shared->stopped = true;
          return end_load();
        }
        take_pages(*shared, first_page, *bytes);
      });
}

void SavedPrefixes::take_pages(Load& load, int64_t first_page, const Bytes& bytes) {
  if (load.stopped) return end_load();
  if (load.next_read < load.end) read_more(load);
  load.stopped = !file_pages(load, first_page, bytes);
  if (!load.reading) end_load();
}

// False if not all of them are in the cache now.
bool SavedPrefixes::file_pages(const Load& load, int64_t first_page,
                               std::span<const std::byte> bytes) {
  const PrefixHeader& header = load.prefix->header;
  PagePool& pool = runner_.kv().pool();
  const Nodes above = cached_pages(load.scope, header, first_page);
  if (std::ssize(above) < first_page) return false;
  // Owned while pages are taken, so that none of them is given up.
  std::vector<PageId> owned;
  for (const NodeId node : above) {
    owned.push_back(cache_.page(node));
    pool.share(owned.back());
  }
  std::optional<NodeId> parent;
  if (!above.empty()) parent = above.back();
  const auto page_bytes = static_cast<size_t>(header.page_bytes);
  int64_t page_idx = first_page;
  for (; !bytes.empty(); bytes = bytes.subspan(page_bytes), ++page_idx) {
    const std::optional<PageId> page = take_page();
    if (!page) break;
    runner_.kv().write_page(*page, bytes.first(page_bytes));
    runner_.set_summaries(*page, header.pages[static_cast<size_t>(page_idx)].has_summaries);
    if (!parent) parent = cache_.root(load.scope);
    parent = cache_.insert(*parent, header.page_tokens(page_idx), make_of(header, page_idx), *page);
    owned.push_back(cache_.page(*parent));
    if (owned.back() == *page) continue;
    pool.share(owned.back());
    pool.give_back(*page);
  }
  num_loaded_tokens_ += (page_idx - first_page) * kPageTokens;
  // From the last to the first, so that the last is the first to be given up.
  for (; !owned.empty(); owned.pop_back()) pool.give_back(owned.back());
  return bytes.empty();
}

void SavedPrefixes::end_load() {
  const Task done = std::move(loads_.front()->done);
  loads_.pop_front();
  done();
  if (!loads_.empty()) start_load();
}

void SavedPrefixes::save(PrefixToSave prefix) {
  const auto num_pages = std::ssize(prefix.prompt) / kPageTokens;
  auto save = std::make_shared<Save>();
  save->scope = cache_scope(prefix.tenant, prefix.mode, prefix.prompt);
  save->header.mode = mode_name(prefix.mode);
  save->header.tenant = tenant_hash(prefix.tenant);
  save->header.tokens.assign(prefix.prompt.begin(),
                             prefix.prompt.begin() + num_pages * kPageTokens);
  for (int64_t i = 0; i < num_pages; ++i) {
    const PageMake make = own_make(prefix.mode, std::ssize(prefix.prompt), i);
    save->header.pages.push_back({.kind = make.kind});
  }
  save->prefix = std::move(prefix);
  saves_.push_back(std::move(save));
  if (saves_.size() == 1) start_save();
}

void SavedPrefixes::cancel_save(RequestId id) {
  for (const auto& save : saves_) {
    if (save->prefix.id == id) save->cancelled = true;
  }
}

void SavedPrefixes::start_save() {
  const std::shared_ptr<Save> save = saves_.front();
  if (save->cancelled) return end_save(saving_cancelled());
  on_disk(
      [this, save]() -> Status {
        TRY(save->file, folder_.save(save->prefix.name, save->header));
        return Ok{};
      },
      [this](const Status& status) { write_more(status); });
}

void SavedPrefixes::write_more(const Status& status) {
  const std::shared_ptr<Save> save = saves_.front();
  if (!status.ok()) return end_save(status.error());
  if (save->cancelled) return end_save(saving_cancelled());
  if (save->next_page == save->header.num_pages()) {
    return on_disk([save] { return save->file->finish(); },
                   [this](const Status& finished) { tell_saved(finished); });
  }
  const int64_t count = pages_at_once(save->next_page, save->header.num_pages());
  const auto copy = std::make_shared<PageCopy>();
  if (const Status copied = copy_pages(*save, count, *copy); !copied.ok()) {
    return end_save(copied.error());
  }
  on_disk(
      [this, save, copy]() -> Status {
        for (size_t i = 0; i < copy->has_summaries.size(); ++i) {
          const auto page = slice(copy->bytes, static_cast<int64_t>(i), folder_.page_bytes());
          TRY_STATUS(save->file->append(page, copy->has_summaries[i]));
        }
        return Ok{};
      },
      [this](const Status& written) { write_more(written); });
}

// The next `count` pages. kOverloaded if the cache has given them up.
Status SavedPrefixes::copy_pages(Save& save, int64_t count, PageCopy& copy) {
  const int64_t num_pages = save.header.num_pages();
  const int64_t end = save.next_page + count;
  const Nodes nodes = cached_pages(save.scope, save.header, num_pages);
  if (std::ssize(nodes) < end) {
    return fail(ErrorCode::kOverloaded,
                "saved prefixes: expected %lld KV pages to be kept until they are written, found "
                "that other requests needed them",
                static_cast<long long>(num_pages));
  }
  // All others are given up before those that are still to be written.
  cache_.touch(nodes.back());
  const int64_t page_bytes = folder_.page_bytes();
  copy.bytes.resize(static_cast<size_t>(count * page_bytes));
  for (int64_t i = 0; i < count; ++i) {
    const PageId page = cache_.page(nodes[static_cast<size_t>(save.next_page + i)]);
    runner_.kv().read_page(page, slice(copy.bytes, i, page_bytes));
    copy.has_summaries.push_back(runner_.has_summaries(page));
  }
  save.next_page = end;
  return Ok{};
}

void SavedPrefixes::tell_saved(const Status& status) {
  if (!status.ok()) return end_save(status.error());
  const Save& save = *saves_.front();
  end_save(PrefixInfo{.name = save.prefix.name.name,
                      .num_tokens = save.header.num_tokens(),
                      .file_bytes = save.file->header().file_bytes(),
                      .sparse = !save.header.mode.empty(),
                      .saved = static_cast<int64_t>(std::time(nullptr))});
}

void SavedPrefixes::end_save(Result<PrefixInfo> result) {
  const std::shared_ptr<Save> save = saves_.front();
  saves_.pop_front();
  // Closing and removing files is the disk's affair, too.
  io_.post([save] { save->file.reset(); });
  if (!save->cancelled) save->prefix.done(std::move(result));
  if (!saves_.empty()) start_save();
}

}  // namespace winnow
