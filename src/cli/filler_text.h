// FillerText: prose to hide things in, piece by piece, without end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/random_stream.h"

namespace winnow {

// A few dozen plain sentences that name no numbers.
std::string_view builtin_prose();

// Pieces that make up `text` when joined: about a sentence or a paragraph each, at most
// kMaxPieceBytes, cut between characters.
inline constexpr size_t kMaxPieceBytes = 400;
std::vector<std::string_view> text_pieces(std::string_view text);

// Hands out the pieces of a text in order; once they are used up it begins again, each time in
// another order, so that no long passage comes twice.
class FillerText {
 public:
  // `text` must outlive this. Requires that it is not empty.
  FillerText(std::string_view text, uint64_t seed);
  std::string_view next();

 private:
  std::vector<std::string_view> pieces_;
  RandomStream random_;
  size_t num_given_ = 0;  // of this round
};

}  // namespace winnow
