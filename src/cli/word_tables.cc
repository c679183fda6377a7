#include "cli/word_tables.h"

#include <array>

namespace winnow {
namespace {

constexpr auto kAdjectives = std::to_array<std::string_view>(
    {"iron",   "velvet",  "amber",   "rapid",   "lunar",   "silver",  "marble",   "crystal",
     "golden", "copper",  "sandy",   "crimson", "frozen",  "scarlet", "wooden",   "misty",
     "quiet",  "paper",   "emerald", "hollow",  "ancient", "bitter",  "bright",   "broken",
     "calm",   "clever",  "curious", "distant", "eager",   "early",   "faithful", "famous",
     "fierce", "fragile", "gentle",  "hidden",  "honest",  "humble",  "icy",      "jolly",
     "keen",   "lively",  "lonely",  "loyal",   "mellow",  "narrow",  "noble",    "patient",
     "polite", "proud",   "rough",   "royal",   "secret",  "silent",  "steady",   "sturdy",
     "sweet",  "tender",  "vivid",   "weary"});

constexpr auto kNouns = std::to_array<std::string_view>(
    {"feather", "canyon",  "falcon",  "violin",  "basket",  "otter",   "compass", "meadow",
     "thistle", "sparrow", "temple",  "maple",   "lantern", "anchor",  "comet",   "garden",
     "harbor",  "glacier", "tunnel",  "orchard", "acorn",   "apron",   "arrow",   "badger",
     "balcony", "barrel",  "beacon",  "bishop",  "blanket", "bottle",  "bridge",  "bucket",
     "button",  "cabin",   "candle",  "carpet",  "castle",  "cellar",  "chapel",  "cherry",
     "chimney", "circle",  "cottage", "cradle",  "cricket", "curtain", "desert",  "dragon",
     "drawer",  "engine",  "fabric",  "farmer",  "ferry",   "fiddle",  "forest",  "fountain",
     "galaxy",  "goblet",  "hammer",  "helmet",  "hermit",  "island",  "jacket",  "kettle",
     "ladder",  "lemon",   "letter",  "lizard",  "magnet",  "mirror",  "monkey",  "mountain",
     "needle",  "oyster",  "palace",  "parrot",  "pebble",  "pencil",  "pepper",  "pillow",
     "pirate",  "planet",  "pocket",  "puzzle",  "rabbit",  "ribbon",  "river",   "rocket",
     "saddle",  "sailor",  "shadow",  "spider",  "statue",  "thunder", "timber",  "tower",
     "trumpet", "turtle",  "valley",  "window"});

}  // namespace

std::span<const std::string_view> adjectives() { return kAdjectives; }
std::span<const std::string_view> nouns() { return kNouns; }

}  // namespace winnow
