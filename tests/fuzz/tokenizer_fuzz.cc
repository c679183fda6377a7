// Links: tokenizer
// Any text with a byte-level and with a SentencePiece vocabulary, both able to spell every byte:
// the text comes back, and no control token appears that the text only names.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace winnow {
namespace {

constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;

// The printable character by which byte-level vocabularies write each byte.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174);
    const uint32_t code = shown ? byte : next++;
    if (code < 128) {
      characters.emplace_back(1, static_cast<char>(code));
    } else {
      characters.push_back(
          {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))});
    }
  }
  return characters;
}

std::unique_ptr<Tokenizer> create(const Metadata& metadata) {
  auto tokenizer = Tokenizer::create(metadata);
  if (!tokenizer.ok()) std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
  CHECK(tokenizer.ok());
  return std::move(tokenizer).value();
}

std::unique_ptr<Tokenizer> byte_level(const std::string& pre_tokenizer) {
  std::vector<std::string> tokens = byte_characters();
  tokens.insert(tokens.end(), {"th", "the", "\u0120the", "in", "ing", "<|end|>"});
  std::vector<int64_t> types(tokens.size(), kNormal);
  types.back() = kControl;
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.set("tokenizer.ggml.pre", pre_tokenizer);
  metadata.set("tokenizer.ggml.tokens", tokens);
  metadata.set("tokenizer.ggml.token_type", types);
  metadata.set("tokenizer.ggml.merges",
               std::vector<std::string>{"t h", "th e", "\u0120 the", "i n", "in g"});
  metadata.set("tokenizer.ggml.eos_token_id", static_cast<int64_t>(tokens.size() - 1));
  return create(metadata);
}

std::unique_ptr<Tokenizer> sentence_piece() {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int64_t> types = {kUnknown, kControl, kControl};
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
    tokens.emplace_back(name);
    types.push_back(kByte);
  }
  std::vector<double> scores(tokens.size(), 0.0);
  for (const char* piece :
       {"\u2581", "t", "h", "e", "th", "the", "\u2581the", "i", "n", "in", "\n"}) {
    tokens.emplace_back(piece);
    types.push_back(kNormal);
    scores.push_back(-static_cast<double>(tokens.size()));
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string("llama"));
  metadata.set("tokenizer.ggml.tokens", tokens);
  metadata.set("tokenizer.ggml.token_type", types);
  metadata.set("tokenizer.ggml.scores", scores);
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set("tokenizer.ggml.bos_token_id", int64_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", int64_t{2});
  return create(metadata);
}

void check_encoding(const Tokenizer& tokenizer, std::string_view text, bool comes_back) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  for (const TokenId id : ids)
    CHECK(id >= 0 && id < tokenizer.vocab_size() && !tokenizer.is_control(id));
  if (comes_back) CHECK(tokenizer.decode(ids, false) == text);
  for (const TokenId id : tokenizer.encode_with_special(text)) CHECK(id < tokenizer.vocab_size());
}

}  // namespace
}  // namespace winnow

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace winnow;
  static const std::array kByteLevel = {byte_level("gpt-2"), byte_level("llama-bpe"),
                                        byte_level("qwen2"), byte_level("smollm")};
  static const std::unique_ptr<Tokenizer> kSentencePiece = sentence_piece();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  check_encoding(*kByteLevel[data[0] % kByteLevel.size()], text, true);
  check_encoding(*kSentencePiece, text, text.find("\u2581") == std::string_view::npos);
  return 0;
}
