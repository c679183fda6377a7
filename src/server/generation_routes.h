// /v1/chat/completions, /v1/completions and /v1/responses: from a request's JSON to the engine.
#pragma once

#include <boost/json/object.hpp>
#include <memory>

#include "server/chat_request.h"
#include "server/http_message.h"
#include "server/server_context.h"

namespace winnow {

// These parse, render and tokenise: not for an I/O thread. The exchange is answered in any case,
// now or when the engine is done. `context` must outlive the answer.
void answer_chat(const ServerContext& context, const boost::json::object& request,
                 const Caller& caller, std::shared_ptr<Exchange> exchange);
void answer_completion(const ServerContext& context, const boost::json::object& request,
                       const Caller& caller, std::shared_ptr<Exchange> exchange);
void answer_response(const ServerContext& context, const boost::json::object& request,
                     const Caller& caller, std::shared_ptr<Exchange> exchange);

// kNotFound if the request names a model that is not served, and names matter.
Status check_model(const ServerContext& context, const boost::json::object& request);
// A conversation as the template writes it. kUnsupported if the model holds none.
Result<RenderedText> render_conversation(const ServerContext& context, const ChatRequest& chat);
// Whose prefixes a request shares: those of the caller, in the scope that the request names.
std::string prefix_tenant(const Caller& caller, const GenerationSettings& settings);
// Sends an answer from whatever thread.
void post_reply(const std::shared_ptr<Exchange>& exchange, HttpReply reply);

}  // namespace winnow
