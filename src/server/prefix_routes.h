// /winnow/kv: prefixes that are kept on disk under names. What a request does not name is found by
// its tokens all the same.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "server/http_message.h"
#include "server/server_context.h"

namespace winnow {

// As the functions of generation_routes.h: runs the prompt of a chat or a text completion,
// whichever the request is, and saves its pages.
void save_prefix(const ServerContext& context, const boost::json::object& request,
                 const Caller& caller, const std::string& name, std::shared_ptr<Exchange> exchange);

// The caller's own. These use the disk: not for an I/O thread.
HttpReply prefixes_reply(const ServerContext& context, const Caller& caller);
HttpReply remove_prefix_reply(const ServerContext& context, const Caller& caller,
                              const std::string& name);

}  // namespace winnow
