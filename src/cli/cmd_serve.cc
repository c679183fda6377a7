// winnow serve: the OpenAI HTTP API on one model.
#include <algorithm>
#include <boost/json/object.hpp>
#include <ctime>
#include <filesystem>
#include <optional>

#include "base/escape.h"
#include "base/thread_pool.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/serve_engine.h"
#include "cli/service_manager.h"
#include "cli/text_input.h"
#include "cli/version.h"
#include "server/api.h"
#include "server/drain.h"
#include "server/token_routes.h"

namespace winnow {
namespace {

struct ServeFlags {
  ModelFlags model;
  AttentionFlags attention;
  ServeEngineFlags engine;
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::optional<std::string> alias;
  bool strict_model_name = false;
  std::vector<std::string> api_keys;
  std::optional<std::string> api_key_file;
  std::string cors_origins = "localhost";
  std::optional<std::string> allowed_hosts;
  std::string prefix_reuse = "exact";
  int64_t max_body_mib = 64;
  int64_t max_connections = 4096;
  int64_t http_threads = 2;
  float head_timeout_s = 10;
  float body_timeout_s = 60;
  float write_timeout_s = 30;
  float idle_timeout_s = 120;
  float ping_interval_s = 15;
  float watchdog_s = 60;
  float drain_timeout_s = 30;
};

constexpr const char* kServeFooter =
    "The first Ctrl+C or SIGTERM lets running requests finish, the second ends the program.\n"
    "One line of JSON per request goes to stderr, unless -q is given.\n\n"
    "Examples:\n"
    "  winnow serve -m model.gguf\n"
    "  winnow serve -m model.gguf --host 0.0.0.0 --api-key-file keys.txt\n";

void add_http_flags(FlagSet& set, ServeFlags& flags) {
  set.text("--host", flags.host, "address to listen on [127.0.0.1]");
  set.integer("--port", flags.port, {0, 65535}, "0 = any that is free [8080]");
  set.text("--alias", flags.alias, "name of the model in answers [its file's]");
  set.toggle("--strict-model-name", flags.strict_model_name,
             "404 for requests that name another model");
  set.texts("--api-key", flags.api_keys, "key that clients must show, may be repeated");
  set.text("--api-key-file", flags.api_key_file, "file with one key per line");
  set.text("--cors-origins", flags.cors_origins,
           "pages that may ask: localhost, none, * or ORIGIN,... [localhost]");
  set.text("--allowed-hosts", flags.allowed_hosts,
           "names it may be asked under, besides localhost: HOST,... or * [with keys or "
           "on other addresses: *]");
  set.integer("--max-body", flags.max_body_mib, {1, 4096}, "MiB of a request [64]");
  set.integer("--max-connections", flags.max_connections, {1, 1 << 20}, "open at once [4096]");
  set.integer("--http-threads", flags.http_threads, {1, 64}, "threads for the network [2]");
  set.number("--head-timeout", flags.head_timeout_s, {0.1F, 3600}, "s for a request's head [10]");
  set.number("--body-timeout", flags.body_timeout_s, {0.1F, 86400}, "s for its body [60]");
  set.number("--write-timeout", flags.write_timeout_s, {0.1F, 86400},
             "s without the client taking a byte [30]");
  set.number("--idle-timeout", flags.idle_timeout_s, {0.1F, 86400}, "s between requests [120]");
  set.number("--ping-interval", flags.ping_interval_s, {0.1F, 3600},
             "s of silence in a stream until a comment is sent [15]");
  set.number("--watchdog", flags.watchdog_s, {1, 86400},
             "s of one step after which health fails [60]");
  set.number("--drain-timeout", flags.drain_timeout_s, {0, 86400},
             "s for running requests at the end [30]");
}

void add_flags(FlagSet& set, ServeFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_http_flags(set, flags);
  add_serve_engine_flags(set, flags.engine);
  add_engine_flags(set, flags.model);
  set.choice("--prefix-reuse", flags.prefix_reuse, {"exact", "all"},
             "cached tokens that serve a prompt; exact: answers as without them [exact]");
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  add_decode_flags(set, flags.attention);
  set.toggle("-q,--quiet", quiet, "no notes and no line per request on stderr");
}

Result<ApiKeys> read_keys(const ServeFlags& flags, Console& console) {
  std::vector<std::string> keys = flags.api_keys;
  if (flags.api_key_file) {
    TRY(const std::string text, read_text_file(*flags.api_key_file, console.in));
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && !line.starts_with('#')) keys.push_back(std::move(line));
      begin = end + 1;
    }
    if (keys.empty()) {
      return fail(ErrorCode::kInvalidArgument, "--api-key-file: expected at least one key in '%s'",
                  escaped(input_name(*flags.api_key_file)).c_str());
    }
  }
  return ApiKeys::create(std::move(keys));
}

// Without keys whoever reaches a server of this machine alone may use it, so that a page must not
// reach it under a name of its own. Elsewhere names are those of a network that is not known here.
Result<HostPolicy> host_policy(const ServeFlags& flags, const ApiKeys& keys) {
  if (!flags.allowed_hosts && (!keys.empty() || !is_loopback(flags.host))) return HostPolicy();
  return HostPolicy::local(flags.host, flags.allowed_hosts.value_or(""));
}

HttpServerOptions http_options(const ServeFlags& flags) {
  HttpLimits limits;
  limits.max_body_bytes = flags.max_body_mib << 20;
  limits.max_connections = flags.max_connections;
  limits.head_timeout_s = static_cast<double>(flags.head_timeout_s);
  limits.body_timeout_s = static_cast<double>(flags.body_timeout_s);
  limits.write_timeout_s = static_cast<double>(flags.write_timeout_s);
  limits.idle_timeout_s = static_cast<double>(flags.idle_timeout_s);
  return {.host = flags.host,
          .port = static_cast<uint16_t>(flags.port),
          .num_threads = static_cast<int>(flags.http_threads),
          .limits = limits};
}

Result<ServerOptions> server_options(const ServeFlags& flags) {
  ServerOptions options;
  options.model_id =
      escaped(flags.alias.value_or(std::filesystem::path(flags.model.path).stem().string()), 200);
  options.strict_model_name = flags.strict_model_name;
  options.attention.mode = flags.attention.attention;
  TRY(options.attention.rule, sparse_rule(flags.attention));
  TRY(options.attention.auto_min_tokens, auto_sparse_tokens());
  options.reuse = flags.prefix_reuse == "all" ? PrefixReuse::kAll : PrefixReuse::kExact;
  options.ping_interval_s = static_cast<double>(flags.ping_interval_s);
  options.watchdog_s = static_cast<double>(flags.watchdog_s);
  options.version = std::string(kVersion);
  return options;
}

std::string configuration(const ServeFlags& flags, const ServerContext& context,
                          const ApiKeys& keys) {
  const ServiceStatus status = context.service.status();
  std::string stops;
  for (const TokenId id : context.tokenizer.end_tokens()) {
    stops += (stops.empty() ? "" : " ") + escaped(context.tokenizer.piece(id), 40);
  }
  boost::json::object shown;
  shown["event"] = "configuration";
  shown["model"] = context.options.model_id;
  shown["context_tokens"] = context.service.context_tokens();
  shown["kv_pages"] = status.pages.total;
  shown["threads"] = flags.model.threads == 0 ? usable_threads() : flags.model.threads;
  shown["max_running"] = status.max_running;
  shown["max_waiting"] = status.max_waiting;
  shown["attention"] = flags.attention.attention;
  shown["prefix_reuse"] = flags.prefix_reuse;
  shown["kv_store"] = flags.engine.prefix_folder.has_value();
  shown["end_tokens"] = stops;
  shown["api_keys"] = !keys.empty();
  shown["cors_origins"] = escaped(flags.cors_origins);
  shown["max_body_mib"] = flags.max_body_mib;
  return json_line(shown);
}

// Serves until a signal comes or the engine ends; an error in the second case.
Status serve(Api& api, HttpServer& http, const ServeFlags& flags, const ServerContext& context) {
  constexpr int kLookAtEngineMs = 500;
  notify_service_manager("READY=1");
  while (!interrupt::wait(kLookAtEngineMs)) {
    if (context.service.status().failed) {
      return fail(ErrorCode::kIo, "the engine has ended");
    }
  }
  notify_service_manager("STOPPING=1");
  drain_server(api, context.service, http, static_cast<double>(flags.drain_timeout_s));
  return Ok{};
}

Result<std::optional<ChatPrompt>> chat_prompt_of(const LoadedModel& loaded) {
  const Metadata& metadata = loaded.model->file().metadata();
  if (!ChatPrompt::has_template(metadata)) return std::optional<ChatPrompt>();
  TRY(ChatPrompt prompt, ChatPrompt::create(metadata, *loaded.tokenizer));
  return std::optional(std::move(prompt));
}

}  // namespace

Result<ExitCode> cmd_serve(Arguments args, Console& console) {
  ServeFlags flags;
  FlagSet set("serve", "Answers the OpenAI HTTP API.",
              kMoreAttentionFlags + std::string(kServeFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const ApiKeys keys, read_keys(flags, console));
  TRY(const CorsPolicy cors, CorsPolicy::parse(flags.cors_origins));
  TRY(const HostPolicy hosts, host_policy(flags, keys));
  TRY(const ServerOptions options, server_options(flags));
  TRY(const LoadedModel loaded, open_model(flags.model, console));
  TRY(const std::optional<ChatPrompt> chat, chat_prompt_of(loaded));
  Metrics metrics(options.model_id, loaded.model->config().context_tokens);
  SelectionMaps maps;
  RequestLog log(console.quiet ? -1 : 2);
  TRY(const auto prefixes,
      open_prefixes(flags.model, flags.engine, loaded, [&log](const Error& error) {
        log.write({{"event", "saved_prefix"}, {"message", error.message}});
      }));
  TRY(const auto service,
      create_generation_service(
          flags.model, flags.engine, flags.attention, loaded, prefixes.get(),
          [&metrics](const StepReport& step) { metrics.on_step(step); }, console));
  const AnswerShaper shaper(template_source(*loaded.model), *loaded.tokenizer);
  const ServerContext context{.service = *service,
                              .tokenizer = *loaded.tokenizer,
                              .chat = chat ? &*chat : nullptr,
                              .metrics = metrics,
                              .maps = maps,
                              .shaper = shaper,
                              .options = options,
                              .prefixes = prefixes.get(),
                              .started = static_cast<int64_t>(std::time(nullptr))};
  interrupt::handle_termination();
  Api api(context, {.keys = keys, .cors = cors, .hosts = hosts}, log);
  TRY(const auto http, HttpServer::start(http_options(flags), api));
  api.set_http(http.get());
  if (!console.quiet) console.err.write(configuration(flags, context, keys));
  console.err.write("listening on " + http->url() + "\n");
  TRY_STATUS(serve(api, *http, flags, context));
  return ExitCode::kOk;
}

}  // namespace winnow
