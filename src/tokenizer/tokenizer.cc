#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/escape.h"
#include "tokenizer/bpe.h"
#include "tokenizer/spm.h"
#include "tokenizer/vocabulary.h"

namespace winnow {

struct Tokenizer::Common {
  Vocabulary vocabulary;
  std::unique_ptr<StretchEncoder> encoder;
  bool adds_bos = false;
  bool drops_first_blank = false;  // encoding put it there

  // Control pieces count inside `control_spans` only.
  std::vector<TokenId> encode(std::string_view text, std::span<const ByteSpan> control_spans) const;
  void append(std::string_view text, std::span<const ByteSpan> control_spans,
              EncodeState& state) const;
};

void Tokenizer::Common::append(std::string_view text, std::span<const ByteSpan> control_spans,
                               EncodeState& state) const {
  const SpecialMatcher& specials = vocabulary.specials;
  size_t stretch_begin = 0;
  bool starts_text = true;
  auto span = control_spans.begin();
  for (size_t pos = 0; pos < text.size();) {
    if (!specials.may_begin(text[pos])) {
      ++pos;
      continue;
    }
    while (span != control_spans.end() && span->end <= pos) ++span;
    const bool in_span = span != control_spans.end() && span->begin <= pos;
    const auto match = specials.match_at(text, pos, in_span ? span->end : 0);
    if (!match) {
      ++pos;
      continue;
    }
    if (pos > stretch_begin) {
      encoder->encode(text.substr(stretch_begin, pos - stretch_begin), starts_text, state);
    }
    state.ids.push_back(match->id);
    starts_text = match->kind == SpecialKind::kControl;
    pos = stretch_begin = match->end;
  }
  if (stretch_begin < text.size()) {
    encoder->encode(text.substr(stretch_begin), starts_text, state);
  }
}

std::vector<TokenId> Tokenizer::Common::encode(std::string_view text,
                                               std::span<const ByteSpan> control_spans) const {
  EncodeState state(text.size());
  append(text, control_spans, state);
  return std::move(state.ids);
}

namespace {

// The tokenizer of a model file; the families differ in their StretchEncoder.
class FileTokenizer final : public Tokenizer {
 public:
  explicit FileTokenizer(std::unique_ptr<Common> common) : Tokenizer(std::move(common)) {}
  using Tokenizer::encode;
  std::vector<TokenId> encode(std::string_view text) const override {
    return common_->encode(text, {});
  }
  std::string_view piece(TokenId id) const override {
    CHECK(id >= 0 && id < vocab_size());
    return common_->vocabulary.pieces[id];
  }
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Common> common) : common_(std::move(common)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const Metadata& metadata) {
  constexpr const char* kModelKey = "tokenizer.ggml.model";
  TRY(const std::string model, metadata.string(kModelKey));
  auto common = std::make_unique<Common>();
  bool adds_bos = false;
  if (model == "gpt2") {
    TRY(common->vocabulary, read_vocabulary(metadata, PieceEncoding::kByteSymbols));
    TRY(auto encoder, BpeEncoder::create(metadata, common->vocabulary));
    adds_bos = encoder->adds_bos();
    common->encoder = std::move(encoder);
  } else if (model == "llama") {
    TRY(common->vocabulary, read_vocabulary(metadata, PieceEncoding::kBlankSymbol));
    TRY(auto encoder, SpmEncoder::create(metadata, common->vocabulary));
    adds_bos = true;
    common->drops_first_blank = encoder->adds_blank();
    common->encoder = std::move(encoder);
  } else {
    return fail(ErrorCode::kUnsupported, "%s: expected gpt2 or llama, found '%s'", kModelKey,
                escaped(model, 80).c_str());
  }
  TRY(adds_bos, metadata.boolean_or("tokenizer.ggml.add_bos_token", adds_bos));
  common->adds_bos = adds_bos && common->vocabulary.bos.has_value();
  return std::unique_ptr<Tokenizer>(new FileTokenizer(std::move(common)));
}

std::vector<TokenId> Tokenizer::encode(const RenderedText& rendered) const {
  return common_->encode(rendered.text, rendered.template_spans);
}

std::vector<TokenId> Tokenizer::encode_with_special(std::string_view text) const {
  const ByteSpan all{0, text.size()};
  return common_->encode(text, {&all, 1});
}

int64_t Tokenizer::least_tokens(size_t num_bytes) const {
  const std::optional<size_t> of_stretch = common_->encoder->max_token_bytes();
  if (!of_stretch) return 0;
  const size_t most = std::max(*of_stretch, common_->vocabulary.specials.max_piece_bytes());
  return static_cast<int64_t>((num_bytes + most - 1) / most);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::string text;
  bool first = common_->drops_first_blank;
  for (const TokenId id : ids) {
    if (is_control(id)) {
      if (with_special) text += piece(id);
      continue;
    }
    std::string_view bytes = piece(id);
    if (first && bytes.starts_with(' ')) bytes.remove_prefix(1);
    first = false;
    text += bytes;
  }
  return text;
}

int32_t Tokenizer::vocab_size() const { return common_->vocabulary.size(); }

bool Tokenizer::is_control(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size());
  return common_->vocabulary.is_control(id);
}

std::optional<TokenId> Tokenizer::bos() const { return common_->vocabulary.bos; }
std::optional<TokenId> Tokenizer::eos() const { return common_->vocabulary.eos; }
bool Tokenizer::adds_bos() const { return common_->adds_bos; }
std::span<const TokenId> Tokenizer::end_tokens() const { return common_->vocabulary.end_tokens; }

std::vector<TokenId> Tokenizer::encode_raw_prompt(std::string_view prompt) const {
  EncodeState state(prompt.size());
  if (adds_bos()) {
    const TokenId bos_id = *bos();
    state.ids.push_back(bos_id);
    const std::string_view name = piece(bos_id);
    if (!name.empty() && prompt.starts_with(name)) prompt.remove_prefix(name.size());
  }
  common_->append(prompt, {}, state);
  return std::move(state.ids);
}

}  // namespace winnow
