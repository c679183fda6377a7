#include "cli/filler_text.h"

#include "base/check.h"
#include "cli/random_choice.h"

namespace winnow {
namespace {

// A piece ends at the first line or sentence end after this many bytes, or else at the first blank
// after twice as many.
constexpr size_t kPieceBytes = 120;

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

bool may_end(std::string_view piece) {
  const char last = piece.back();
  if (last == '\n') return true;
  if (last != ' ') return false;
  return piece.size() >= 2 * kPieceBytes || (piece.size() > 1 && piece[piece.size() - 2] == '.');
}

size_t piece_size(std::string_view text) {
  const size_t most = std::min(text.size(), kMaxPieceBytes);
  for (size_t size = kPieceBytes; size < most; ++size) {
    if (may_end(text.substr(0, size))) return size;
  }
  if (most == text.size()) return most;
  // Ill-formed text may have no place to cut at.
  for (size_t size = most; size > kPieceBytes; --size) {
    if (begins_character(text[size])) return size;
  }
  return most;
}

}  // namespace

std::string_view builtin_prose() {
  return "The ferry crosses the wide river every morning before the fog has lifted. Most of the "
         "passengers are farmers on their way to the market, and they stand near the rail with "
         "their baskets between their feet. Nobody talks much until the far bank comes into view. "
         "Then someone laughs, the engine slows, and the ropes are thrown.\n\n"
         "In the old quarter the houses lean towards each other as if they shared a secret. Their "
         "doors are painted in colours that have faded in the sun, and cats sleep on the window "
         "sills. A baker who has worked there all his life says that the street wakes up with the "
         "smell of his ovens. He leaves the door open in winter so that people can warm their "
         "hands.\n\n"
         "A good carpenter looks at the grain before he picks up a tool. Wood that grew slowly on "
         "a northern slope is dense and takes a fine edge, while timber from the valley splits "
         "easily and is better used for fences. He keeps the offcuts in a box under the bench. "
         "Sooner or later, he likes to say, every piece finds its place.\n\n"
         "The library closed its reading room during the storm because rain came through the "
         "roof. Volunteers carried the atlases and the bound newspapers down to the cellar. When "
         "the shelves were dry again they put everything back, although not quite in the order in "
         "which they had found it. A student later came across a letter between two pages and "
         "nobody could tell how long it had been there.\n\n"
         "Bees find their way home by the position of the sun, and on cloudy days by the pattern "
         "of light that people cannot see. A hive that is moved a short distance confuses them "
         "more than one that is carried over the hills. The beekeeper knows this and waits for the "
         "cold weather. He walks softly, because the frames are heavy with honey.\n\n"
         "The orchestra rehearsed in a hall that had once been a warehouse for tea. Its walls "
         "gave the low strings a warm sound, but the flutes were lost under the roof. After a few "
         "weeks the players moved their chairs closer together. The conductor pretended not to "
         "notice and beat time a little more quietly.\n\n"
         "Along the coast the lighthouses are no longer manned. Their lamps are switched by a "
         "clock and inspected by a crew that comes by boat when the sea allows it. One former "
         "keeper still lives nearby and climbs the hill on clear evenings. He says that the beam "
         "looks thinner now, but his visitors see no difference.\n\n"
         "Gardeners in this region cover their beds with straw before the first frost. The straw "
         "holds the warmth of the ground and keeps the wind from drying it. In spring they rake it "
         "aside, and the earth below is dark and loose. Seeds sown there come up a week before "
         "those of their neighbours.\n\n"
         "The train stops at a station where almost nobody gets on or off. There is a bench, a "
         "clock that runs slow, and a vending machine that sells peppermints. The guard steps "
         "down, looks along the empty platform and steps up again. For a while the only sound is "
         "the ticking of the rails as they cool.\n\n"
         "Every autumn the village holds a fair on the meadow behind the school. Children race "
         "wheelbarrows, and the older people judge the pumpkins by knocking on them. There is a "
         "prize for the best jam and another for the worst. The worst jam is always eaten "
         "first.\n\n"
         "A mapmaker explained that no map is ever finished. Rivers shift their beds, roads are "
         "renamed, and forests grow over the paths that surveyors once walked. He corrects his "
         "plates with a fine needle and a great deal of patience. What he likes best are the blank "
         "corners, where he may draw a ship.\n\n"
         "The museum keeps its collection of kettles in the basement. Some are plain and some are "
         "covered with enamel birds, and all of them whistle at a slightly different pitch. On "
         "rainy afternoons the attendant puts a few of them on the stove. Visitors follow the "
         "sound down the stairs and stay for tea.\n\n";
}

std::vector<std::string_view> text_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    pieces.push_back(text.substr(0, piece_size(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

FillerText::FillerText(std::string_view text, uint64_t seed)
    : pieces_(text_pieces(text)), random_(seed) {
  CHECK(!pieces_.empty());
}

std::string_view FillerText::next() {
  if (num_given_ == pieces_.size()) {
    shuffle(pieces_, random_);
    num_given_ = 0;
  }
  return pieces_[num_given_++];
}

}  // namespace winnow
