// HttpCalls to a server on this machine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cli/http_calls.h"

namespace winnow::test {

// Without a limit of its own, a call ends after 60 s of silence.
inline std::unique_ptr<HttpCalls> calls_to(uint16_t port, HttpCallOptions options = {},
                                           const std::string& root = "") {
  if (options.silence_limit_s == 0) options.silence_limit_s = 60;
  auto calls = HttpCalls::create({.host = "127.0.0.1", .port = port, .root = root}, options);
  EXPECT_TRUE(calls.ok());
  return std::move(calls).value();
}

}  // namespace winnow::test
