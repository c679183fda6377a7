#include "tokenizer/text_stream.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace winnow {

struct TextStream::Impl {
  const Tokenizer& tokenizer;
  std::vector<std::string> stops;
  std::vector<TokenId> shown_controls;
  std::string bytes;  // the beginning of a character
  std::string held;   // whole characters that may be the beginning of a stop string
  std::string matched_stop;
  bool stopped = false;

  bool is_text(TokenId id) const;
  void accept(std::string_view piece);
  std::string release();
  bool cut_at_stop();
  size_t num_possible_stop_bytes() const;
};

bool TextStream::Impl::is_text(TokenId id) const {
  return !tokenizer.is_control(id) ||
         std::find(shown_controls.begin(), shown_controls.end(), id) != shown_controls.end();
}

// Moves all that is decided from the piece to `held`.
void TextStream::Impl::accept(std::string_view piece) {
  bytes += piece;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    held.append(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Unit unit = first_utf8_unit(rest);
    if (unit.kind == Utf8Kind::kUnfinished) break;
    held.append(kReplacementCharacter);
    rest.remove_prefix(unit.num_bytes);
  }
  bytes.erase(0, bytes.size() - rest.size());
}

// Whether a stop string is in `held`; then it and what follows is dropped.
bool TextStream::Impl::cut_at_stop() {
  size_t begin = std::string::npos;
  for (const std::string& stop : stops) {
    const size_t found = held.find(stop);
    const bool first = found < begin;
    const bool longer =
        found == begin && found != std::string::npos && stop.size() > matched_stop.size();
    if (!first && !longer) continue;
    begin = found;
    matched_stop = stop;
  }
  if (begin == std::string::npos) return false;
  held.resize(begin);
  return true;
}

// Length of the longest end of `held` that a stop string begins with.
size_t TextStream::Impl::num_possible_stop_bytes() const {
  size_t longest = 0;
  for (const std::string& stop : stops) {
    for (size_t size = std::min(stop.size() - 1, held.size()); size > longest; --size) {
      if (held.ends_with(std::string_view(stop).substr(0, size))) longest = size;
    }
  }
  return longest;
}

std::string TextStream::Impl::release() {
  if (cut_at_stop()) {
    stopped = true;
    bytes.clear();
    return std::exchange(held, {});
  }
  const size_t num_kept = num_possible_stop_bytes();
  std::string text = held.substr(0, held.size() - num_kept);
  held.erase(0, text.size());
  return text;
}

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
                       std::vector<TokenId> shown_control_tokens)
    : impl_(new Impl{
          tokenizer, std::move(stop_strings), std::move(shown_control_tokens), {}, {}, {}, false}) {
  std::erase_if(impl_->stops, [](const std::string& stop) { return stop.empty(); });
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
  impl_->held += valid_utf8(std::exchange(impl_->bytes, {}));
  if (impl_->cut_at_stop()) impl_->stopped = true;
  return std::exchange(impl_->held, {});
}

bool TextStream::stopped() const { return impl_->stopped; }
const std::string& TextStream::matched_stop() const { return impl_->matched_stop; }

}  // namespace winnow
