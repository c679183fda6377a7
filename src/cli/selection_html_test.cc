#include "cli/selection_html.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace winnow {
namespace {

TEST(SelectionHtml, HoldsEveryCellAndTheTextsAndNothingCanEndItsScript) {
  SelectionMap map(96, 64, std::nullopt, std::nullopt);
  map.on_tile({.layer_idx = 1,
               .head = 2,
               .first_position = 64,
               .num_positions = 32,
               .block_tokens = 32,
               .kept = {},
               .first_candidate = 1,
               .end_candidate = 2});
  const std::vector<std::string> texts = {"</script><b>", "a\xFF\"\n", ""};
  const std::string html = selection_html(map, "<x>", texts);
  EXPECT_NE(html.find("<title>&lt;x&gt;</title>"), std::string::npos);
  EXPECT_EQ(html.find("</script><b>"), std::string::npos);

  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t from = html.find(begin) + begin.size();
  const std::string json = html.substr(from, html.find("</script>", from) - from);
  const boost::json::value data = boost::json::parse(json);
  EXPECT_EQ(data.at("texts").at(0).as_string(), texts[0]);
  EXPECT_EQ(data.at("texts").at(1).as_string(), "a\xEF\xBF\xBD\"\n");
  EXPECT_EQ(data.at("heads").at(0).at("cells").as_string(), "###pap");
  EXPECT_EQ(data.at("heads").at(0).at("layer").as_int64(), 1);
}

}  // namespace
}  // namespace winnow
