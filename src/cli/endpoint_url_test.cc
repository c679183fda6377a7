#include "cli/endpoint_url.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(EndpointUrl, HostPortAndRootAreFound) {
  struct Case {
    const char* text;
    const char* host;
    uint16_t port;
    const char* root;
  };
  for (const Case& c :
       {Case{"http://localhost:8080", "localhost", 8080, ""},
        Case{"http://localhost:8080/", "localhost", 8080, ""},
        Case{"http://localhost:8080/v1", "localhost", 8080, ""},
        Case{"http://localhost:8080/v1/", "localhost", 8080, ""},
        Case{"127.0.0.1:1", "127.0.0.1", 1, ""}, Case{"http://a.example", "a.example", 80, ""},
        Case{"http://a.example/llm/v1", "a.example", 80, "/llm"},
        Case{"http://a.example/llm", "a.example", 80, "/llm"},
        Case{"http://[::1]:65535/v1", "::1", 65535, ""},
        Case{"http://[fe80::2]", "fe80::2", 80, ""}}) {
    const auto url = parse_endpoint_url(c.text, "--endpoint");
    ASSERT_TRUE(url.ok()) << c.text << ": " << url.error().message;
    EXPECT_EQ(url->host, c.host) << c.text;
    EXPECT_EQ(url->port, c.port) << c.text;
    EXPECT_EQ(url->root, c.root) << c.text;
  }
}

TEST(EndpointUrl, TextIsItsFullForm) {
  EXPECT_EQ(parse_endpoint_url("[::1]:9/x/v1", "u")->text(), "http://[::1]:9/x");
  EXPECT_EQ(parse_endpoint_url("host", "u")->text(), "http://host:80");
}

TEST(EndpointUrl, WhatCannotBeReachedIsRefusedByName) {
  for (const char* text :
       {"", "http://", "https://a", "ftp://a", "http://:80", "http://a:0", "http://a:65536",
        "http://a:", "http://a:x", "http://a:8080x", "http://u@a", "http://a/?q", "http://a#f",
        "http://a b", "http://[::1", "http://[]:1", "http://[::1]x", "http://a\n"}) {
    const auto url = parse_endpoint_url(text, "--endpoint");
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(url.error().message.find("--endpoint: expected "), 0U) << url.error().message;
  }
}

}  // namespace
}  // namespace winnow
