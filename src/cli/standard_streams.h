// The three standard streams that every program expects to be open.
#pragma once

namespace winnow {

// Gives a stream that the caller closed a place of its own, so that no file opened later gets its
// number: an empty stdin, a stdout whose writes fail, a stderr that forgets. To be called before
// anything else is opened.
void open_missing_streams();

}  // namespace winnow
