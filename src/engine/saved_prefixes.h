// SavedPrefixes: pages on their way between the prefix cache and a folder of files. Files are read
// and written by a thread of its own; pages change hands on the engine's thread, between steps,
// some at a time, so that no step waits for the disk. Between steps the cache alone owns what has
// come.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batch_runner.h"
#include "engine/io_thread.h"
#include "engine/scheduler.h"
#include "kv/prefix_cache.h"
#include "store/prefix_folder.h"

namespace winnow {

// A prompt that has just been run, and whose full pages are to be kept.
struct PrefixToSave {
  RequestId id = {};
  PrefixName name;
  std::string tenant;
  PromptMode mode;
  std::vector<TokenId> prompt;
  std::function<void(Result<PrefixInfo>)> done;  // called once, unless cancelled
};

// All calls on the engine's thread, not between Scheduler's begin and commit.
class SavedPrefixes {
 public:
  using Task = std::function<void()>;

  // `bytes_at_once`: of pages that the engine copies at once. `on_engine` takes tasks for the
  // engine's thread from any other. All must outlive this.
  SavedPrefixes(PrefixFolder& folder, PrefixCache& cache, BatchRunner& runner,
                const std::optional<SparseProfile>& profile, int64_t bytes_at_once,
                std::function<void(Task)> on_engine);
  ~SavedPrefixes();  // calls nothing more

  // True if a file has more of the request's pages than the cache. They come to the cache, as far
  // as it has room, and then `done` is called.
  bool load(const ScheduledRequest& request, const std::string& tenant, Task done);
  void save(PrefixToSave prefix);
  // The save of that request ends without a file and without another call.
  void cancel_save(RequestId id);
  int64_t num_loaded_tokens() const { return num_loaded_tokens_; }

 private:
  struct Load;
  struct Save;
  struct PageCopy;
  using Bytes = std::vector<std::byte>;
  using Nodes = std::vector<PrefixCache::NodeId>;

  std::string mode_name(const PromptMode& mode) const;
  int64_t pages_that_serve(const PrefixHeader& header, const ScheduledRequest& request) const;
  // The first pages of a prefix that the cache has, `most` of them at most.
  Nodes cached_pages(const std::string& scope, const PrefixHeader& header, int64_t most) const;
  int64_t pages_at_once(int64_t begin, int64_t end) const;
  std::optional<PageId> take_page();

  // `work` on the I/O thread, then `then` with what came of it on the engine's.
  void on_disk(std::function<Status()> work, std::function<void(Status)> then);
  void start_load();
  void read_more(Load& load);
  void take_pages(Load& load, int64_t first_page, const Bytes& bytes);
  bool file_pages(const Load& load, int64_t first_page, std::span<const std::byte> bytes);
  void end_load();
  void start_save();
  void write_more(const Status& status);
  Status copy_pages(Save& save, int64_t count, PageCopy& copy);
  void tell_saved(const Status& status);
  void end_save(Result<PrefixInfo> result);

  PrefixFolder& folder_;
  PrefixCache& cache_;
  BatchRunner& runner_;
  const std::string profile_name_;
  const int64_t bytes_at_once_;
  const std::function<void(Task)> on_engine_;
  std::deque<std::shared_ptr<Load>> loads_;  // the first is under way
  std::deque<std::shared_ptr<Save>> saves_;  // likewise
  int64_t num_loaded_tokens_ = 0;
  IoThread io_;
};

}  // namespace winnow
