// Text to token ids and back, and what a prompt becomes before it runs.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "server/http_message.h"
#include "server/server_context.h"

namespace winnow {

// As the functions of generation_routes.h; none of these runs the engine.
void tokenize(const ServerContext& context, const boost::json::object& request,
              const Caller& caller, std::shared_ptr<Exchange> exchange);
void detokenize(const ServerContext& context, const boost::json::object& request,
                const Caller& caller, std::shared_ptr<Exchange> exchange);
void render_chat(const ServerContext& context, const boost::json::object& request,
                 const Caller& caller, std::shared_ptr<Exchange> exchange);
void render_completion(const ServerContext& context, const boost::json::object& request,
                       const Caller& caller, std::shared_ptr<Exchange> exchange);
void count_chat_tokens(const ServerContext& context, const boost::json::object& request,
                       const Caller& caller, std::shared_ptr<Exchange> exchange);
void refuse_embeddings(const ServerContext& context, const boost::json::object& request,
                       const Caller& caller, std::shared_ptr<Exchange> exchange);

HttpReply tokenizer_info_reply(const ServerContext& context);

// The model's chat template; empty if it has none.
std::string template_source(const Model& model);

}  // namespace winnow
