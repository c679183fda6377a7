#include "server/framing_check.h"

#include <gtest/gtest.h>

#include <string>

namespace winnow {
namespace {

std::string head(const std::string& headers) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(FramingCheck, PlainHeadsPass) {
  for (const std::string& headers :
       {std::string(), std::string("Content-Length: 5\r\n"), std::string("Content-Length:5\r\n"),
        std::string("Transfer-Encoding: chunked\r\n"), std::string("transfer-encoding:CHUNKED\r\n"),
        std::string("X: a\tb \xC3\xA4\r\n")}) {
    const Status status = check_framing(head(headers));
    EXPECT_TRUE(status.ok()) << headers << status.error().message;
  }
}

TEST(FramingCheck, AmbiguousHeadsAreRefused) {
  for (const std::string& headers :
       {std::string("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Content-Length: 5\r\nContent-Length: 6\r\n"),
        std::string("Content-Length: 5\r\nContent-Length: 5\r\n"),
        std::string("Content-Length: 5, 5\r\n"),
        std::string("Content-Length: +5\r\n"),
        std::string("Content-Length: -5\r\n"),
        std::string("Content-Length: 0x5\r\n"),
        std::string("Content-Length: 5 5\r\n"),
        std::string("Content-Length:\r\n"),
        std::string("Content-Length: 99999999999999999999\r\n"),
        std::string("Transfer-Encoding: chunked, gzip\r\n"),
        std::string("Transfer-Encoding: gzip, chunked\r\n"),
        std::string("Transfer-Encoding: identity\r\n"),
        std::string("Transfer-Encoding:  chunked\r\n"),
        std::string("Transfer-Encoding: \x0b"
                    "chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Content-Length : 5\r\n"),
        std::string("X: a\r\n folded\r\n"),
        std::string("X: a\nContent-Length: 5\r\n"),
        std::string("X: a\rb\r\n"),
        std::string("no colon\r\n"),
        std::string(": none\r\n"),
        std::string("Host: b\r\n"),
        std::string("X: a\0b\r\n", 8)}) {
    EXPECT_FALSE(check_framing(head(headers)).ok()) << headers;
  }
  EXPECT_FALSE(check_framing("\r\n\n").ok()) << "no request line";
  EXPECT_FALSE(check_framing("GET / HTTP/1.1\r\n\r\n").ok()) << "no Host";
  EXPECT_FALSE(check_framing("GET / HTTP/1.1\nHost: a\n\n").ok()) << "bare LF";
}

TEST(FramingCheck, TheEndOfAHeadIsFoundWhereverItIsCut) {
  for (const std::string& text :
       {std::string("GET /\r\nA: b\r\n\r\nrest"), std::string("GET /\nA: b\n\nrest"),
        std::string("GET /\r\nA: b\n\r\nrest")}) {
    const size_t end = text.find("rest");
    for (size_t scanned = 0; scanned < end; ++scanned) {
      EXPECT_FALSE(find_head_end(text.substr(0, scanned), 0).has_value());
      EXPECT_EQ(find_head_end(text, scanned), end) << text << scanned;
    }
  }
}

}  // namespace
}  // namespace winnow
