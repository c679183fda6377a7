// Tokenizer: text <-> token ids, from the vocabulary in the model file's metadata.
// Byte-level BPE ("gpt2") and SentencePiece BPE ("llama").
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "jinja/rendered_text.h"
#include "weights/metadata.h"

namespace winnow {

// Immutable after creation; safe to use from many threads.
class Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> create(const Metadata& metadata);
  virtual ~Tokenizer();

  // Ids of plain text: control tokens are never produced, whatever the text says. No BOS.
  // Ill-formed UTF-8 is encoded byte by byte as the vocabulary allows.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
  // Control tokens are recognised only where they lie wholly inside template_spans.
  std::vector<TokenId> encode(const RenderedText& rendered) const;
  // Control tokens are recognised everywhere.
  std::vector<TokenId> encode_with_special(std::string_view text) const;

  // So many tokens at least are any text of so many bytes; costs nothing.
  int64_t least_tokens(size_t num_bytes) const;

  // The bytes that a token stands for; a control token's own name ("<|im_end|>").
  virtual std::string_view piece(TokenId id) const = 0;
  // Nothing for none.
  std::string_view piece_or_empty(std::optional<TokenId> id) const {
    return id ? piece(*id) : std::string_view();
  }
  std::string decode(std::span<const TokenId> ids, bool with_special) const;

  int32_t vocab_size() const;
  bool is_control(TokenId id) const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;
  // All tokens that end an answer: EOS, EOT, EOM and the family's turn ends.
  std::span<const TokenId> end_tokens() const;

  // Ids of `prompt` as a raw completion: BOS first if the model wants it and the text does not
  // already begin with it.
  std::vector<TokenId> encode_raw_prompt(std::string_view prompt) const;

 protected:
  struct Common;
  explicit Tokenizer(std::unique_ptr<Common> common);
  std::unique_ptr<Common> common_;
};

}  // namespace winnow
