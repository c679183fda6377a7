// TextStream: token ids in, text out, as soon as it is certain. Holds back half characters and
// anything that may still become a stop string.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace winnow {

class TextStream {
 public:
  // `tokenizer` must outlive the stream. Control tokens are no text, except those of
  // `shown_control_tokens`: their names are.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings,
             std::vector<TokenId> shown_control_tokens = {});
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;

  // Text that became certain with this token, valid UTF-8. After a stop string was found it is cut
  // before it and stopped() holds; later tokens yield nothing.
  std::string push(TokenId id);
  // What was held back, at the end of the answer; truly broken bytes become U+FFFD.
  std::string finish();
  bool stopped() const;
  // The stop string found, empty if none.
  const std::string& matched_stop() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
