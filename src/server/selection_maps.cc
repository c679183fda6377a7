#include "server/selection_maps.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace winnow {
namespace {

constexpr int kMaxSide = 64;
constexpr double kMaxMapBytes = 16 << 20;

void append_cell(std::string& text, const SelectionMap::Cell& cell) {
  switch (cell.kind) {
    case SelectionMap::Kind::kUnseen:
      text += "null";
      return;
    case SelectionMap::Kind::kDense:
      text += "-1";
      return;
    case SelectionMap::Kind::kSparse:
      char share[16];
      std::snprintf(share, sizeof(share), "%.2g", std::round(cell.kept * 100) / 100);
      text += share;
  }
}

void append_head(std::string& text, const SelectionMap& map, const SelectionMap::Head& head,
                 int64_t cached_tokens) {
  text += "{\"layer\":" + std::to_string(head.layer_idx) +
          ",\"head\":" + std::to_string(head.head) + ",\"cells\":[";
  for (int row = 0; row < map.side(); ++row) {
    // Nothing was read for tokens that were in the cache.
    const bool cached = (row + 1) * map.cell_tokens() <= cached_tokens;
    for (int column = 0; column < map.side(); ++column) {
      if (row + column > 0) text += ',';
      append_cell(text, cached ? SelectionMap::Cell{} : map.cell(head, row, column));
    }
  }
  text += "]}";
}

}  // namespace

std::shared_ptr<SelectionRecord> SelectionMaps::begin(std::string answer_id, std::string tenant,
                                                      std::vector<TokenId> prompt,
                                                      const ModelConfig& config) {
  const std::lock_guard lock(mutex_);
  std::erase_if(recording_, [](const auto& record) { return record.expired(); });
  if (recording_.size() >= kMaxRecording) return nullptr;
  const auto num_tokens = static_cast<int64_t>(prompt.size());
  std::shared_ptr<SelectionRecord> record(new SelectionRecord{
      .answer_id = std::move(answer_id),
      .tenant = std::move(tenant),
      .prompt = std::move(prompt),
      .map = SelectionMap(num_tokens, selection_map_side(config), std::nullopt, std::nullopt)});
  recording_.push_back(record);
  return record;
}

void SelectionMaps::end(const std::shared_ptr<SelectionRecord>& record, const RequestEnd& end) {
  std::shared_ptr<const SelectionRecord> dropped;  // is freed outside the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(recording_, [&](const auto& other) { return other.lock() == record; });
  if (end.error || end.finish == FinishReason::kCancelled || record->map.heads().empty()) return;
  record->cached_tokens = end.cached_tokens;
  kept_.push_back(record);
  if (kept_.size() <= kMaxKept) return;
  dropped = std::move(kept_.front());
  kept_.pop_front();
}

std::shared_ptr<const SelectionRecord> SelectionMaps::find(std::string_view answer_id,
                                                           std::string_view tenant) const {
  const std::lock_guard lock(mutex_);
  for (const auto& record : kept_) {
    if (record->answer_id == answer_id && record->tenant == tenant) return record;
  }
  return nullptr;
}

int selection_map_side(const ModelConfig& config) {
  double num_heads = 0;
  for (const LayerConfig& layer : config.layers) num_heads += static_cast<double>(layer.heads);
  // A cell has two floats.
  const double side = std::sqrt(kMaxMapBytes / (2 * sizeof(float) * std::max(1.0, num_heads)));
  return std::clamp(static_cast<int>(side), 1, kMaxSide);
}

std::string selection_json(const SelectionRecord& record, const Tokenizer& tokenizer) {
  const SelectionMap& map = record.map;
  boost::json::array texts;
  for (const std::string& text : cell_texts(map, tokenizer, record.prompt)) {
    texts.emplace_back(valid_utf8(text));
  }
  std::string text = "{\"side\":" + std::to_string(map.side()) +
                     ",\"cell_tokens\":" + std::to_string(map.cell_tokens()) +
                     ",\"texts\":" + boost::json::serialize(texts) + ",\"heads\":[";
  for (const SelectionMap::Head& head : map.heads()) {
    if (&head != &map.heads().front()) text += ',';
    append_head(text, map, head, record.cached_tokens);
  }
  return text + "]}";
}

std::vector<std::string> cell_texts(const SelectionMap& map, const Tokenizer& tokenizer,
                                    std::span<const TokenId> ids) {
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(map.cell_tokens())) {
    const size_t count = std::min(static_cast<size_t>(map.cell_tokens()), ids.size() - begin);
    texts.push_back(tokenizer.decode(ids.subspan(begin, count), true));
  }
  return texts;
}

}  // namespace winnow
