// SelectionMaps: what attention kept of the prompts of the last few requests that asked for it.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/selection_map.h"
#include "base/ids.h"
#include "engine/generation_service.h"
#include "model/config.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

struct SelectionRecord {
  std::string answer_id;
  std::string tenant;
  std::vector<TokenId> prompt;
  SelectionMap map;  // the observer of the request
  int64_t cached_tokens = 0;
};

// From any thread.
class SelectionMaps {
 public:
  static constexpr size_t kMaxRecording = 4;
  static constexpr size_t kMaxKept = 4;

  // A record that a request of this model may fill; null while so many are being filled.
  // Requires a prompt of at least one token.
  std::shared_ptr<SelectionRecord> begin(std::string answer_id, std::string tenant,
                                         std::vector<TokenId> prompt, const ModelConfig& config);
  // The request of `record` has ended. Dense and broken ones are not kept; the oldest is dropped
  // for a new one.
  void end(const std::shared_ptr<SelectionRecord>& record, const RequestEnd& end);
  // Null if none of that answer is kept, or it is another tenant's.
  std::shared_ptr<const SelectionRecord> find(std::string_view answer_id,
                                              std::string_view tenant) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<const SelectionRecord>> recording_;
  std::deque<std::shared_ptr<const SelectionRecord>> kept_;
};

// Cells on a side for a map of all heads of the model: fewer where it has many heads.
int selection_map_side(const ModelConfig& config);

// {"side", "cell_tokens", "texts": [side], "heads": [{"layer", "head", "cells": [side * side]}]}: a
// cell is the share of its pairs that was kept, -1 where attention was dense, null where nothing
// was read. Takes milliseconds: not for the engine's thread.
std::string selection_json(const SelectionRecord& record, const Tokenizer& tokenizer);

// The text of each cell of a side, in any bytes.
std::vector<std::string> cell_texts(const SelectionMap& map, const Tokenizer& tokenizer,
                                    std::span<const TokenId> ids);

}  // namespace winnow
