// TextStream: token ids in, text out, as soon as it is certain. Holds back half characters and
// anything that may still become a stop string.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mark_finder.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

class TextStream {
 public:
  // `tokenizer` must outlive the stream. Null `stop_strings`: none. Control tokens are no text,
  // except those of `shown_control_tokens`: their names are.
  TextStream(const Tokenizer& tokenizer, std::shared_ptr<const MarkSet> stop_strings,
             std::vector<TokenId> shown_control_tokens = {});
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  // Text that became certain with this token, valid UTF-8. After a stop string was found it is cut
  // before it and stopped() holds; later tokens yield nothing. Of stop strings that the same token
  // completes the one that begins first counts, of several the longest.
  std::string push(TokenId id);
  // What was held back, at the end of the answer; truly broken bytes become U+FFFD.
  std::string finish();
  bool stopped() const;
  // The stop string found, empty if none.
  std::string matched_stop() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
