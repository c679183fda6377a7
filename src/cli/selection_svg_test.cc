#include "cli/selection_svg.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(SelectionSvg, DrawsEveryHeadAndMergesCellsThatLookAlike) {
  SelectionMap map(128, 64, std::nullopt, std::nullopt);
  const int32_t kept[] = {1};
  for (const int head : {0, 5}) {
    map.on_tile({.layer_idx = 2,
                 .head = head,
                 .first_position = 96,
                 .num_positions = 32,
                 .block_tokens = 32,
                 .kept = kept,
                 .first_candidate = 0,
                 .end_candidate = 3});
  }
  const std::string svg = selection_svg(map, "a < b");
  EXPECT_NE(svg.find(">a &lt; b<"), std::string::npos);
  EXPECT_NE(svg.find(">2.0  50 %<"), std::string::npos);
  EXPECT_NE(svg.find(">2.5  50 %<"), std::string::npos);
  // Row 3: block 1 and the diagonal kept, 0 and 2 left out. The rows above are dense.
  EXPECT_NE(svg.find("class=\"kept\" fill-opacity=\"1\" d=\"M1 3h1v1h-1zM3 3h1v1h-1z\""),
            std::string::npos);
  EXPECT_NE(svg.find("class=\"left\" d=\"M0 3h1v1h-1zM2 3h1v1h-1z\""), std::string::npos);
  EXPECT_NE(svg.find("class=\"dense\" d=\"M0 0h1v1h-1zM0 1h2v1h-2zM0 2h3v1h-3z\""),
            std::string::npos);
}

}  // namespace
}  // namespace winnow
