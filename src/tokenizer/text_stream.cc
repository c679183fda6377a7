#include "tokenizer/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace winnow {

struct TextStream::Impl {
  Impl(const Tokenizer& the_tokenizer, std::shared_ptr<const MarkSet> the_stops,
       std::vector<TokenId> the_shown_controls)
      : tokenizer(the_tokenizer),
        stops(std::move(the_stops)),
        shown_controls(std::move(the_shown_controls)),
        finder(*stops) {}

  const Tokenizer& tokenizer;
  const std::shared_ptr<const MarkSet> stops;
  const std::vector<TokenId> shown_controls;
  MarkFinder finder;
  std::string bytes;  // the beginning of a character
  std::string held;   // whole characters that may be the beginning of a stop string
  size_t num_released = 0;
  bool stopped = false;

  bool is_text(TokenId id) const;
  void accept(std::string_view piece);
  void hold(std::string_view text);
  bool cut_at_stop();
  std::string release();
};

bool TextStream::Impl::is_text(TokenId id) const {
  return !tokenizer.is_control(id) ||
         std::find(shown_controls.begin(), shown_controls.end(), id) != shown_controls.end();
}

void TextStream::Impl::hold(std::string_view text) {
  held += text;
  finder.push(text);
}

// Moves all that is decided from the piece to `held`.
void TextStream::Impl::accept(std::string_view piece) {
  bytes += piece;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    hold(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Unit unit = first_utf8_unit(rest);
    if (unit.kind == Utf8Kind::kUnfinished) break;
    hold(kReplacementCharacter);
    rest.remove_prefix(unit.num_bytes);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

// Whether a stop string is in `held`; then it and what follows is dropped.
bool TextStream::Impl::cut_at_stop() {
  if (!finder.found()) return false;
  held.resize(finder.found()->begin - num_released);
  stopped = true;
  return true;
}

std::string TextStream::Impl::release() {
  if (cut_at_stop()) {
    bytes.clear();
    return std::exchange(held, {});
  }
  std::string text = held.substr(0, held.size() - finder.num_possible_bytes());
  held.erase(0, text.size());
  num_released += text.size();
  return text;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::shared_ptr<const MarkSet> stop_strings,
                       std::vector<TokenId> shown_control_tokens) {
  if (stop_strings == nullptr) {
    stop_strings = std::make_shared<const MarkSet>(std::vector<std::string>());
  }
  impl_ =
      std::make_unique<Impl>(tokenizer, std::move(stop_strings), std::move(shown_control_tokens));
}
TextStream::~TextStream() = default;
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;

std::string TextStream::push(TokenId id) {
  if (impl_->stopped || !impl_->is_text(id)) return {};
  impl_->accept(impl_->tokenizer.piece(id));
  return impl_->release();
}

std::string TextStream::finish() {
  if (impl_->stopped) return {};
  impl_->hold(valid_utf8(std::exchange(impl_->bytes, {})));
  impl_->cut_at_stop();
  return std::exchange(impl_->held, {});
}

bool TextStream::stopped() const { return impl_->stopped; }
std::string TextStream::matched_stop() const {
  return impl_->stopped ? std::string(impl_->finder.found()->text) : std::string();
}

}  // namespace winnow
