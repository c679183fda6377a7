#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <string>

#include "base/escape.h"
#include "tokenizer/byte_symbols.h"

namespace winnow {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;

// Control pieces that end a turn in one model family or another, besides those named by id.
constexpr std::string_view kTurnEnds[] = {
    "<|im_end|>",    "<|eot_id|>",
    "<|eom_id|>",    "<|end|>",
    "<end_of_turn>", "<turn|>",
    "<|endoftext|>", "<|end_of_text|>",
    "<|eot|>",       "<|return|>",
    "<|call|>",      "<|END_OF_TURN_TOKEN|>",
    "<EOT>",         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

std::string with_blanks(std::string_view piece) {
  std::string bytes;
  bytes.reserve(piece.size());
  while (!piece.empty()) {
    const bool blank = piece.starts_with(kBlankMark);
    bytes.push_back(blank ? ' ' : piece[0]);
    piece.remove_prefix(blank ? kBlankMark.size() : 1);
  }
  return bytes;
}

// The byte of a piece such as <0x0A>.
std::optional<char> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return std::nullopt;
  int value = 0;
  for (const char digit : name.substr(3, 2)) {
    value *= 16;
    if (digit >= '0' && digit <= '9') {
      value += digit - '0';
    } else if (digit >= 'A' && digit <= 'F') {
      value += digit - 'A' + 10;
    } else if (digit >= 'a' && digit <= 'f') {
      value += digit - 'a' + 10;
    } else {
      return std::nullopt;
    }
  }
  return static_cast<char>(value);
}

Result<std::vector<TokenKind>> read_kinds(const Metadata& metadata, size_t num_tokens) {
  constexpr const char* kKey = "tokenizer.ggml.token_type";
  TRY(const std::vector<int64_t>* types, metadata.integer_array(kKey));
  if (types == nullptr) {
    return fail(ErrorCode::kCorruptFile, "%s: expected an array, found no such key", kKey);
  }
  if (types->size() != num_tokens) {
    return fail(ErrorCode::kCorruptFile, "%s: expected %zu entries, one for each token, found %zu",
                kKey, num_tokens, types->size());
  }
  std::vector<TokenKind> kinds;
  kinds.reserve(num_tokens);
  for (const int64_t type : *types) {
    if (type < 1 || type > 6) {
      return fail(ErrorCode::kCorruptFile, "%s[%zu]: expected 1 to 6, found %lld", kKey,
                  kinds.size(), static_cast<long long>(type));
    }
    kinds.push_back(static_cast<TokenKind>(type));
  }
  return kinds;
}

Result<std::string> piece_bytes(const std::string& token, TokenKind kind, PieceEncoding encoding,
                                bool* reachable) {
  *reachable = kind == TokenKind::kNormal && !token.empty();
  if (encoding == PieceEncoding::kByteSymbols) {
    if (kind != TokenKind::kNormal && kind != TokenKind::kByte) return token;
    std::optional<std::string> bytes = bytes_of_symbols(token);
    // A piece outside the byte alphabet cannot come from merging; it stands for itself.
    *reachable = *reachable && bytes.has_value();
    return bytes ? *std::move(bytes) : token;
  }
  if (kind == TokenKind::kNormal) return with_blanks(token);
  if (kind != TokenKind::kByte) return token;
  const std::optional<char> byte = byte_of_name(token);
  if (!byte) {
    return fail(ErrorCode::kCorruptFile, "expected a byte piece such as <0x0A>, found '%s'",
                escaped(token, 80).c_str());
  }
  return std::string(1, *byte);
}

Error duplicate(size_t idx, TokenId other, const std::string& token) {
  return fail(ErrorCode::kCorruptFile,
              "tokenizer.ggml.tokens[%zu]: expected a piece of its own, found '%s' as in [%d]", idx,
              escaped(token, 80).c_str(), other);
}

Status add_tokens(const std::vector<std::string>& tokens, PieceEncoding encoding,
                  Vocabulary& vocabulary) {
  for (size_t idx = 0; idx < tokens.size(); ++idx) {
    const TokenKind kind = vocabulary.kinds[idx];
    const auto id = static_cast<TokenId>(idx);
    bool reachable = false;
    auto bytes = piece_bytes(tokens[idx], kind, encoding, &reachable);
    if (!bytes.ok()) {
      return fail(ErrorCode::kCorruptFile, "tokenizer.ggml.tokens[%zu]: %s", idx,
                  bytes.error().message.c_str());
    }
    vocabulary.pieces.add(*bytes);
    std::optional<TokenId> other;
    if (reachable) {
      other = vocabulary.normal.insert(vocabulary.pieces, id);
    } else if (kind == TokenKind::kUserDefined && !tokens[idx].empty()) {
      other = vocabulary.specials.add(tokens[idx], id, SpecialKind::kUserDefined);
    } else if (vocabulary.is_control(id) && !tokens[idx].empty()) {
      other = vocabulary.specials.add(tokens[idx], id, SpecialKind::kControl);
    }
    if (other) return duplicate(idx, *other, tokens[idx]);
  }
  return Ok{};
}

Result<std::optional<TokenId>> read_id(const Metadata& metadata, std::string_view key,
                                       int32_t vocab_size) {
  if (!metadata.has(key)) return std::optional<TokenId>();
  TRY(const int64_t id, metadata.integer(key, 0, vocab_size - 1));
  return std::optional(static_cast<TokenId>(id));
}

Status read_end_tokens(const Metadata& metadata, Vocabulary& vocabulary) {
  std::vector<TokenId>& ends = vocabulary.end_tokens;
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    TRY(const std::optional<TokenId> id, read_id(metadata, key, vocabulary.size()));
    if (id) ends.push_back(*id);
  }
  const SpecialMatcher& specials = vocabulary.specials;
  // Where messages have channels, <|end|> only closes one of several messages of the same answer.
  const bool has_channels = specials.find("<|return|>") && specials.find("<|call|>");
  for (const std::string_view name : kTurnEnds) {
    const std::optional<TokenId> id = specials.find(name);
    if (id && !(has_channels && name == "<|end|>")) ends.push_back(*id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return Ok{};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const Metadata& metadata, PieceEncoding encoding) {
  constexpr const char* kKey = "tokenizer.ggml.tokens";
  TRY(const std::vector<std::string>* tokens, metadata.strings(kKey));
  if (tokens == nullptr) {
    return fail(ErrorCode::kCorruptFile, "%s: expected an array, found no such key", kKey);
  }
  if (tokens->empty() || tokens->size() > kMaxTokens) {
    return fail(ErrorCode::kCorruptFile, "%s: expected 1 to %lld tokens, found %zu", kKey,
                static_cast<long long>(kMaxTokens), tokens->size());
  }
  Vocabulary vocabulary;
  TRY(vocabulary.kinds, read_kinds(metadata, tokens->size()));
  vocabulary.normal = PieceIndex(tokens->size());
  TRY_STATUS(add_tokens(*tokens, encoding, vocabulary));
  const int32_t size = vocabulary.size();
  TRY(vocabulary.bos, read_id(metadata, "tokenizer.ggml.bos_token_id", size));
  TRY(vocabulary.eos, read_id(metadata, "tokenizer.ggml.eos_token_id", size));
  TRY(vocabulary.unknown, read_id(metadata, "tokenizer.ggml.unknown_token_id", size));
  TRY_STATUS(read_end_tokens(metadata, vocabulary));
  return vocabulary;
}

}  // namespace winnow
