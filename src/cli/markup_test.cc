#include "cli/markup.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(Markup, WhatMeansSomethingInMarkupBecomesAnEntity) {
  EXPECT_EQ(markup_text("</a> & \"b\" 'c'"), "&lt;/a&gt; &amp; &quot;b&quot; &#39;c&#39;");
}

TEST(Markup, WhatXmlDoesNotAllowIsReplaced) {
  EXPECT_EQ(markup_text(std::string_view("a\0b\x1B\tc\n", 7)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\tc\n");
  EXPECT_EQ(markup_text("\xFF\xEF\xBF\xBE"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(markup_text("na\xC3\xAFve \xF0\x9F\x98\x80"), "na\xC3\xAFve \xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace winnow
