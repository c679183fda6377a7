// Builds with sanitizers, or for another CPU under its emulator, run many times slower than others.
#pragma once

namespace winnow {

#ifdef WINNOW_SLOW
inline constexpr bool kSlowBuild = true;
#else
inline constexpr bool kSlowBuild = false;
#endif

}  // namespace winnow
