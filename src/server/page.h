// The page at "/": a static file that is part of the program.
#pragma once

#include "server/http_message.h"

namespace winnow {

HttpReply page_reply();

}  // namespace winnow
