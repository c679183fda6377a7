// ServerContext: what the endpoints work with.
#pragma once

#include <string>

#include "engine/generation_service.h"
#include "server/answer_shape.h"
#include "server/generation_settings.h"
#include "server/metrics.h"
#include "server/selection_maps.h"
#include "store/prefix_folder.h"
#include "tokenizer/chat_prompt.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

struct ServerOptions {
  std::string model_id = "model";
  bool strict_model_name = false;  // refuse other names; otherwise any name means the model
  AttentionDefaults attention = {};
  PrefixReuse reuse = PrefixReuse::kExact;
  double ping_interval_s = 15;
  double watchdog_s = 60;  // a step that lasts longer counts as stuck
  std::string version = "0";
};

// All members outlive the server's use of it.
struct ServerContext {
  GenerationService& service;
  const Tokenizer& tokenizer;
  const ChatPrompt* chat = nullptr;  // null: the model holds no conversations
  Metrics& metrics;
  SelectionMaps& maps;  // outlives the service
  const AnswerShaper& shaper;
  ServerOptions options = {};
  PrefixFolder* prefixes = nullptr;  // null: prefixes are not kept
  AnswerParserFactory parsers = make_answer_parser;
  int64_t started = 0;  // seconds since 1970

  SettingsContext settings() const {
    return {tokenizer, options.attention, options.ping_interval_s};
  }
};

// Who asks: its prefixes are shared with nobody else.
struct Caller {
  std::string tenant;
};

}  // namespace winnow
