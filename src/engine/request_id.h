// RequestId: names a request inside the engine. Made by the engine, never by a client.
#pragma once

#include <cstdint>

namespace winnow {

enum class RequestId : uint64_t {};

}  // namespace winnow
