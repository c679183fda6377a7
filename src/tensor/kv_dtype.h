// Element types of the KV cache.
#pragma once

namespace winnow {

enum class KvDType { kBf16, kF16 };

}  // namespace winnow
