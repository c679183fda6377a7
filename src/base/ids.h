// Identities shared by every folder. Token ids are plain integers because they are data: they come
// from files, go out as JSON and index the vocabulary. Page ids are not, so that none can index
// tokens.
#pragma once

#include <cstdint>

namespace winnow {

using TokenId = int32_t;
enum class PageId : int32_t {};

// Which arithmetic a row gets: chosen by what the row is, never by how many rows share the step.
enum class Phase {
  kPrompt,    // a prompt token: packed panels, matrix unit
  kGenerate,  // a generated token: weights read once, as stored
};

}  // namespace winnow
