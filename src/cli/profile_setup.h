// The profile of a model's attention: kept below the cache folder, made where there is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/sparse_profile.h"
#include "cli/console.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

// Where this model's profile is kept: below $XDG_CACHE_HOME or ~/.cache; none without a home.
std::optional<std::string> profile_path(const Model& model);
// Puts it there, making the folder. kIo naming the path.
Status keep_profile(const SparseProfile& profile, const Model& model, const std::string& path);

// The tokens of a text that a profile is made on: not more than it needs.
std::vector<TokenId> profile_ids(const Engine& engine, const Tokenizer& tokenizer,
                                 std::string_view text);
// Profiles the model on them; notes on `console` what it does and how long it took.
Result<SparseProfile> make_profile(Engine& engine, std::span<const TokenId> ids, Console& console);

// The profile in the file `given`; without one that kept for the model, or one made now on
// profile_text() and kept.
Result<SparseProfile> find_profile(const std::optional<std::string>& given, Engine& engine,
                                   const Tokenizer& tokenizer, Console& console);

}  // namespace winnow
