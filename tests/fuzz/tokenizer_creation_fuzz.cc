// Links: tokenizer
// Any tokens, kinds, merges, scores and ids: refused with a message, or a tokenizer that encodes
// and decodes without leaving its vocabulary.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace winnow {
namespace {

// Lines are tokens; the first character of each is its kind, what follows a tab its merge.
struct Lines {
  std::vector<std::string> tokens, merges;
  std::vector<int64_t> kinds;
  std::vector<double> scores;
};

Lines read_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    lines.kinds.push_back(line[0] - '0');
    lines.scores.push_back(static_cast<double>(line.size() % 7));
    line.remove_prefix(1);
    const size_t tab = line.find('\t');
    if (tab != std::string_view::npos) lines.merges.emplace_back(line.substr(tab + 1));
    lines.tokens.emplace_back(line.substr(0, tab));
  }
  return lines;
}

void check_tokenizer(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode_with_special(text);
  TextStream stream(tokenizer, std::make_shared<const MarkSet>(std::vector<std::string>{"ab"}));
  for (const TokenId id : ids) {
    CHECK(id >= 0 && id < tokenizer.vocab_size());
    stream.push(id);
  }
  stream.finish();
  tokenizer.decode(ids, true);
  for (const TokenId id : tokenizer.encode_raw_prompt(text))
    CHECK(id >= 0 && id < tokenizer.vocab_size());
}

}  // namespace
}  // namespace winnow

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace winnow;
  if (size < 3) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const Lines lines = read_lines(text);
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", std::string(data[0] % 2 == 0 ? "gpt2" : "llama"));
  metadata.set("tokenizer.ggml.pre", std::string(data[0] % 4 == 0 ? "gpt-2" : "tekken"));
  metadata.set("tokenizer.ggml.tokens", lines.tokens);
  metadata.set("tokenizer.ggml.token_type", lines.kinds);
  metadata.set("tokenizer.ggml.merges", lines.merges);
  metadata.set("tokenizer.ggml.scores", lines.scores);
  metadata.set("tokenizer.ggml.bos_token_id", static_cast<int64_t>(data[1] % 16));
  metadata.set("tokenizer.ggml.add_space_prefix", data[0] % 8 < 4);
  const auto tokenizer = Tokenizer::create(metadata);
  if (!tokenizer.ok()) {
    CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  check_tokenizer(**tokenizer, text);
  return 0;
}
