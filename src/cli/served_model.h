// ServedModel: what a server tells of itself before it is measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/http_calls.h"

namespace winnow {

struct ServedModel {
  std::string name;
  std::optional<int64_t> context_tokens = {};
  std::vector<TokenId> text_ids = {};  // of builtin_prose(); empty if the server has no /tokenize
};

// `name` stands in for the first model of /v1/models, which is then not asked for. kIo if the
// server does not answer, or not with what it should; the message holds its reason.
Result<ServedModel> ask_served_model(HttpCalls& calls, const std::optional<std::string>& name);

}  // namespace winnow
