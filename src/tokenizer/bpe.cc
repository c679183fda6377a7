#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/escape.h"
#include "tokenizer/byte_symbols.h"

namespace winnow {
namespace {

constexpr const char* kMergesKey = "tokenizer.ggml.merges";

uint64_t packed_pair(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

Result<TokenId> find_piece(const Vocabulary& vocabulary, size_t merge_idx,
                           std::string_view symbols) {
  if (const auto bytes = bytes_of_symbols(symbols)) {
    if (const auto id = vocabulary.normal.find(vocabulary.pieces, *bytes)) return *id;
  }
  return fail(ErrorCode::kCorruptFile,
              "%s[%zu]: expected pieces of tokenizer.ggml.tokens, found '%s'", kMergesKey,
              merge_idx, escaped(symbols, 80).c_str());
}

Status add_merge(const Vocabulary& vocabulary, const std::string& merge, size_t merge_idx,
                 MergeTable& merges) {
  const size_t blank = merge.find(' ');
  if (blank == std::string::npos || blank == 0 || blank + 1 == merge.size() ||
      merge.find(' ', blank + 1) != std::string::npos) {
    return fail(ErrorCode::kCorruptFile,
                "%s[%zu]: expected two pieces with one blank between, found '%s'", kMergesKey,
                merge_idx, escaped(merge, 80).c_str());
  }
  const std::string_view left = std::string_view(merge).substr(0, blank);
  const std::string_view right = std::string_view(merge).substr(blank + 1);
  TRY(const TokenId left_id, find_piece(vocabulary, merge_idx, left));
  TRY(const TokenId right_id, find_piece(vocabulary, merge_idx, right));
  TRY(const TokenId merged_id, find_piece(vocabulary, merge_idx, std::string(left).append(right)));
  merges.insert(left_id, right_id, {static_cast<uint32_t>(merge_idx), merged_id});
  return Ok{};
}

}  // namespace

MergeTable::MergeTable(size_t max_merges)
    : slots_(std::bit_ceil(max_merges * 2 + 2)), mask_(slots_.size() - 1) {}

size_t MergeTable::slot_of(uint64_t pair) const {
  const uint64_t mixed = pair * 0x9E3779B97F4A7C15u;
  size_t idx = (mixed ^ mixed >> 32) & mask_;
  while (slots_[idx].pair != kEmpty && slots_[idx].pair != pair) idx = (idx + 1) & mask_;
  return idx;
}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  const uint64_t pair = packed_pair(left, right);
  Slot& slot = slots_[slot_of(pair)];
  if (slot.pair == kEmpty) slot = {pair, merge};
}

std::optional<Merge> MergeTable::find(TokenId left, TokenId right) const {
  const uint64_t pair = packed_pair(left, right);
  const Slot& slot = slots_[slot_of(pair)];
  if (slot.pair == kEmpty) return std::nullopt;
  return slot.merge;
}

Result<std::unique_ptr<BpeEncoder>> BpeEncoder::create(const Metadata& metadata,
                                                       const Vocabulary& vocabulary) {
  TRY(const std::string pre, metadata.string("tokenizer.ggml.pre"));
  TRY(Pretokenizer pretokenizer, Pretokenizer::create(pre));
  TRY(const std::vector<std::string>* lines, metadata.strings(kMergesKey));
  if (lines == nullptr) {
    return fail(ErrorCode::kCorruptFile, "%s: expected an array, found no such key", kMergesKey);
  }
  MergeTable merges(lines->size());
  for (size_t idx = 0; idx < lines->size(); ++idx) {
    TRY_STATUS(add_merge(vocabulary, (*lines)[idx], idx, merges));
  }
  return std::unique_ptr<BpeEncoder>(
      new BpeEncoder(vocabulary, std::move(pretokenizer), std::move(merges)));
}

BpeEncoder::BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer, MergeTable merges)
    : vocabulary_(vocabulary), pretokenizer_(std::move(pretokenizer)), merges_(std::move(merges)) {
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const auto character = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.normal.find(vocabulary.pieces, {&character, 1});
  }
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    max_piece_bytes_ = std::max(max_piece_bytes_, vocabulary.pieces[id].size());
  }
}

std::optional<size_t> BpeEncoder::max_token_bytes() const {
  const bool drops_bytes =
      std::any_of(byte_ids_.begin(), byte_ids_.end(), [](const auto& id) { return !id; });
  return drops_bytes ? std::nullopt : std::optional(max_piece_bytes_);
}

void BpeEncoder::encode(std::string_view text, bool /*starts_text*/, EncodeState& state) const {
  const auto encode_one = [&](std::string_view word) { encode_word(word, state); };
  pretokenizer_.split(text, state.pretokenize, [&](std::string_view word) {
    while (word.size() > SymbolMerger::kMaxWordBytes) {
      encode_word(word.substr(0, SymbolMerger::kMaxWordBytes), state);
      word.remove_prefix(SymbolMerger::kMaxWordBytes);
    }
    state.words.append(word, state.ids, encode_one);
  });
}

void BpeEncoder::encode_word(std::string_view word, EncodeState& state) const {
  if (pretokenizer_.ignores_merges()) {
    if (const auto id = vocabulary_.normal.find(vocabulary_.pieces, word)) {
      state.ids.push_back(*id);
      return;
    }
  }
  state.merger.clear();
  for (uint32_t i = 0; i < word.size(); ++i) {
    // A byte without a piece is dropped and its neighbours become neighbours, as in the models' own
    // tokenizers.
    if (const auto id = byte_ids_[static_cast<uint8_t>(word[i])]) state.merger.add({*id, i, i + 1});
  }
  const auto find_merge = [this](const auto& left, const auto& right) {
    return merges_.find(left.id, right.id);
  };
  for (const SymbolMerger::Symbol& symbol : state.merger.merge_all(find_merge))
    state.ids.push_back(symbol.id);
}

}  // namespace winnow
