#include "jinja/template.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "jinja/build.h"
#include "support/slow_build.h"

namespace winnow::jinja {
namespace {

namespace json = boost::json;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The clock of the golden file.
std::tm golden_time() {
  std::tm now{};
  std::istringstream text("2026-02-03T04:05:06");
  text >> std::get_time(&now, "%Y-%m-%dT%H:%M:%S");
  now.tm_isdst = -1;
  std::mktime(&now);
  return now;
}

std::vector<Variable> to_variables(const json::object& context) {
  std::vector<Variable> variables;
  for (const auto& member : context) {
    const bool is_piece = member.key() == "bos_token" || member.key() == "eos_token";
    variables.push_back({member.key(), is_piece ? Value::template_text(member.value().as_string())
                                                : from_json(member.value()).value()});
  }
  return variables;
}

struct Outcome {
  std::string text;
  std::vector<ByteSpan> spans;
  std::string error;
  bool raised = false;
};

Outcome run(std::string_view source, const json::object& context, const Limits& limits = {}) {
  const auto parsed = Template::parse(source);
  if (!parsed.ok()) return {"", {}, parsed.error().message, false};
  auto rendered = parsed->render(to_variables(context), golden_time(), limits);
  if (auto* failure = std::get_if<RenderFailure>(&rendered)) {
    return {"", {}, failure->error.message, failure->raised_by_template};
  }
  const auto& output = std::get<Rendering>(rendered).output;
  return {output.text, output.template_spans, "", false};
}

const json::object& golden() {
  static const json::object file =
      json::parse(read_file(WINNOW_SOURCE_DIR "/tests/golden/templates.json")).as_object();
  return file;
}

// Python's outcome: the same text, or an error too (with the template's own words if it raised it).
void expect_same(const json::object& want, const Outcome& got) {
  if (const json::value* text = want.if_contains("text")) {
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.text, std::string_view(text->as_string()));
    return;
  }
  EXPECT_NE(got.error, "") << "expected the error: " << want.at("error").as_string()
                           << "\nfound the text: " << got.text;
  EXPECT_EQ(got.raised, want.at("raised").as_bool()) << got.error;
  if (got.raised) {
    EXPECT_EQ(got.error, std::string_view(want.at("error").as_string()));
  }
}

TEST(Template, PopularTemplatesRenderAsInPython) {
  size_t num_cases = 0;
  for (const auto& entry : golden().at("templates").as_object()) {
    const std::string name(entry.key());
    const std::string source =
        read_file(WINNOW_SOURCE_DIR "/tests/golden/templates/" + name + ".jinja");
    for (const auto& result : entry.value().as_object()) {
      SCOPED_TRACE(name + " x " + std::string(result.key()));
      const json::value& conversation = golden().at("conversations").at(result.key());
      expect_same(result.value().as_object(), run(source, conversation.as_object()));
      ++num_cases;
    }
  }
  EXPECT_GE(num_cases, 34u * 14u);
}

TEST(Template, SnippetsRenderAsInPython) {
  for (const json::value& snippet : golden().at("snippets").as_array()) {
    const json::object& want = snippet.as_object();
    const std::string source(want.at("source").as_string());
    SCOPED_TRACE(source);
    expect_same(want, run(source, want.contains("data") ? golden().at("data").as_object()
                                                        : json::object()));
  }
}

TEST(Template, TemplatesFromPublicReportsRenderAsInPython) {
  const json::value reports =
      json::parse(read_file(WINNOW_SOURCE_DIR "/tests/golden/templates_reports.json"));
  for (const json::value& report : reports.at("templates").as_array()) {
    SCOPED_TRACE(std::string(report.at("id").as_string()));
    expect_same(report.as_object(),
                run(report.at("source").as_string(), report.at("context").as_object()));
  }
}

// The output with data in angle quotes.
std::string marked(std::string_view source, const json::object& context) {
  const Outcome outcome = run(source, context);
  std::string out;
  size_t at = 0;
  for (const ByteSpan& span : outcome.spans) {
    if (span.begin > at) out += "«" + outcome.text.substr(at, span.begin - at) + "»";
    out += outcome.text.substr(span.begin, span.end - span.begin);
    at = span.end;
  }
  if (at < outcome.text.size()) out += "«" + outcome.text.substr(at) + "»";
  return outcome.error + out;
}

TEST(Template, EveryByteKnowsWhetherTheTemplateWroteIt) {
  const json::object data = {
      {"x", " a<|e|>b "}, {"n", 7}, {"l", json::array{"p", "q"}}, {"d", json::object{{"k", "v"}}}};
  EXPECT_EQ(marked("<s>{{ x }}</s>", data), "<s>« a<|e|>b »</s>");
  EXPECT_EQ(marked("{{ '<' + x | trim + '>' }}", data), "<«a<|e|>b»>");
  EXPECT_EQ(marked("{{ x.split('<|e|>') | join('<|e|>') }}", data), "« a»<|e|>«b »");
  EXPECT_EQ(marked("{{ x.replace('a', '[A]') | upper }}", data), "« »[A]«<|E|>B »");
  EXPECT_EQ(marked("{{ x[1:3] ~ x[::-1] }}|{{ x[3] }}", data), "«a< b>|e|<a »|«|»");
  EXPECT_EQ(marked("{{ '<|%s|>' % x.strip() }}{{ '{}!'.format(n) }}", data), "<|«a<|e|>b»|>«7»!");
  EXPECT_EQ(marked("{{ n + 1 }}{{ 1 + 1 }}{{ l | length }}", data), "«8»22");
  EXPECT_EQ(marked("{{ d | tojson }}:{{ d }}", data), "«{\"k\": \"v\"}»:«{'k': 'v'}»");
  EXPECT_EQ(marked("{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", data), "«k»=«v»");
  EXPECT_EQ(marked("{% macro m(t) %}<{{ t }}>{% endmacro %}{% set y = m(l[0]) %}{{ y * 2 }}", data),
            "<«p»><«p»>");
  EXPECT_EQ(marked("{% set ns = namespace(t='') %}{% for i in l %}{% set ns.t = ns.t ~ '[' ~ i ~ "
                   "']' %}{% endfor %}{{ ns.t }}",
                   data),
            "[«p»][«q»]");
  EXPECT_EQ(marked("{% filter indent(2) %}a\n{{ l[0] }}\n{{ l[1] }}{% endfilter %}", data),
            "a\n  «p»\n  «q»");
}

TEST(Template, ErrorsNameTheLineAndTheConstruct) {
  const auto message = [](std::string_view source) { return run(source, {}).error; };
  EXPECT_EQ(message("a\n{{ m.a.b }}"), "chat template, line 2: 'm' is undefined");
  EXPECT_EQ(message("{% set m = {} %}\n\n{{ m.a.b }}"),
            "chat template, line 3: 'dict object' has no attribute 'a'");
  EXPECT_EQ(message("\n{% frobnicate %}"), "chat template, line 2: unknown tag 'frobnicate'");
  EXPECT_EQ(message("{{ 1 | frob }}"), "chat template, line 1: unknown filter 'frob'");
  EXPECT_EQ(message("{{ ''.__class__.__mro__ }}"),
            "chat template, line 1: access to attribute '__class__' of 'str' object is unsafe.");
  EXPECT_EQ(Template::parse("{{ 1 is frob }}").error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(Template::parse("{{ 1 + }}").error().code, ErrorCode::kInvalidArgument);
}

TEST(Template, NoTemplateRunsOrWritesWithoutBound) {
  const Limits limits{
      .max_steps = 200'000, .max_output_bytes = 10'000, .max_created_bytes = 1'000'000};
  const auto error = [&](std::string_view source) { return run(source, {}, limits).error; };
  const std::string loops =
      "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
  EXPECT_NE(error(loops).find("steps"), std::string::npos) << error(loops);
  EXPECT_NE(error("{{ 'ab' * 10000000000 }}").find("bytes"), std::string::npos);
  EXPECT_NE(
      error("{% for a in range(9999) %}0123456789{% endfor %}").find("writes more than 10000"),
      std::string::npos);
  EXPECT_NE(error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("deep"),
            std::string::npos);
  EXPECT_NE(error("{% set ns = namespace(l=[]) %}{% for i in range(200) %}{% set ns.l = [ns.l] "
                  "%}{% endfor %}")
                .find("deep"),
            std::string::npos);
  EXPECT_NE(error("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, "
                  "ns.l] %}{% endfor %}")
                .find("parts"),
            std::string::npos);
  EXPECT_NE(error("{{ 10 ** 99 ** 9 }}").find("overflow"), std::string::npos);
  EXPECT_NE(error("{{ '%99999999d' % 1 }}").find("width"), std::string::npos);
  EXPECT_NE(
      error("{{ " + std::string(100'000, '(') + std::string(100'000, ')') + " }}").find("deep"),
      std::string::npos);
  std::string chain = "{{ 1";
  for (int i = 0; i < 50'000; ++i) chain += " + 1";
  EXPECT_NE(error(chain + " }}").find("deep"), std::string::npos);
}

TEST(Template, WhateverATemplateDoesItsDefaultBudgetEndsIt) {
  // Each would take seconds or gigabytes if it was counted only after it was done.
  const std::string doubled =
      "{% set ns = namespace(t='0123456789', l=[]) %}{% for i in range(40) %}"
      "{% set ns.t = ns.t ~ ns.t %}{% endfor %}";
  const std::string a_and_b =
      "{% set a = 'aaaaaaaaaa' * 100000 %}{% set b = 'aaaaaaaaaa' * 50000 ~ 'b' %}";
  const std::string many = a_and_b + "{% set many = ['aaaaaaaaaa' * 100] * 500000 %}";
  for (const std::string& source : {
           std::string("{{ [0] * 10000000000 }}"),
           std::string("{% for i in [0] * 1000000000 %}{% endfor %}"),
           std::string("{{ 'x' * 10000000000 }}"),
           std::string("{% set a = 'x' * 30000000 %}{{ a | list | length }}"),
           doubled,
           many + "{{ many | join | length }}",
           many + "{{ ''.join(many) | length }}",
           a_and_b + "{{ a | replace('a', a) | length }}",
           a_and_b + "{{ a.replace('', a) | length }}",
           many + "{{ many | tojson(indent=a) | length }}",
           a_and_b + "{{ [1, 2, 3] | tojson(separators=(a * 30, a * 30)) | length }}",
           many + "{{ many | string | length }}",
           a_and_b + "{{ a.rfind(b) }}",
           a_and_b + "{{ a.strip(a) }}",
           std::string("{{ dict(range(100000) | batch(2)) }}"),
           std::string("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l "
                       "+ ns.l %}{% endfor %}"),
       }) {
    SCOPED_TRACE(source);
    const std::string found = run(source, {}).error;
    const bool named = found.find("steps") != std::string::npos ||
                       found.find("bytes") != std::string::npos ||
                       found.find("parts") != std::string::npos;
    EXPECT_TRUE(named) << found;
  }
  // Here the steps themselves take long, and slow builds count to an eighth of them.
  Limits counted;
  if (kSlowBuild) counted.max_steps /= 8;
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  const std::string found = run(loops, {}, counted).error;
  EXPECT_NE(found.find("steps"), std::string::npos) << found;
  // A search is linear, so this one may be done.
  const auto searched = run(a_and_b + "{{ b in a }} {{ a.count(b) }} {{ a.find(b) }}", {});
  EXPECT_EQ(searched.text, "False 0 -1") << searched.error;
}

TEST(Template, BudgetsGrowWithTheData) {
  const Limits limits{.max_steps = 1000, .max_output_bytes = 1000, .max_created_bytes = 1000};
  const json::object data = {{"x", std::string(3'000'000, 'x')}};
  EXPECT_EQ(run("{{ '<' + x | trim + '>' }}", data, limits).text.size(), 3'000'002u);
  EXPECT_NE(run("{{ x * 100 }}", data, limits).error.find("bytes"), std::string::npos);
}

TEST(Template, NumbersAreReadAndRoundedAsInPython) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"'0x1A'|int(base=16)", "26"},
      {"'-0x1A'|int(base=16)", "-26"},
      {"'+0X1a '|int(base=16)", "26"},
      {"'1A'|int(base=16)", "26"},
      {"'0b101'|int(base=2)", "5"},
      {"'0o17'|int(base=8)", "15"},
      {"'0x1A'|int(base=0)", "26"},
      {"'17'|int(base=0)", "17"},
      {"'0b1'|int(base=16)", "177"},
      {"'0x1A'|int", "0"},
      {"'0x'|int(base=16)", "0"},
      {"'0x-5'|int(base=16)", "0"},
      {"'-5'|int", "-5"},
      {"'--5'|int", "0"},
      {"1234|round(-2)", "1200"},
      {"1250|round(-2)", "1200"},
      {"1350|round(-2)", "1400"},
      {"(-1250)|round(-2)", "-1200"},
      {"49|round(-2)", "0"},
      {"1234567|round(-3)", "1235000"},
      {"5|round(-20)", "0"},
      {"1250.0|round(-2)", "1200.0"},
      {"51.0|round(-2)", "100.0"},
      {"1234.5|round(-2, 'ceil')", "1300.0"},
      {"2.5|round", "2.0"},
      {"1234.5|round(-2, 'floor')", "1200.0"},
  };
  for (const auto& [expression, want] : cases) {
    EXPECT_EQ(run("{{ " + expression + " }}", {}).text, want) << expression;
  }
}

TEST(Template, AReplacedValueGivesItsWeightBack) {
  EXPECT_EQ(
      run("{% set row = range(1000) | list %}{% set ns = namespace(l=0) %}"
          "{% for i in range(30) %}{% set ns.l = [row] * 1000 %}{% endfor %}{{ ns.l | length }}",
          {})
          .text,
      "1000");
}

TEST(Template, VariablesTogetherMayWeighMoreThanOneValue) {
  const Value row = build_list(std::vector<Value>(4000, Value::number(1))).value();
  const Value heavy = build_list(std::vector<Value>(4000, row)).value();
  EXPECT_FALSE(build_list({heavy, heavy}).ok());
  const std::vector<Variable> variables = {{"a", heavy}, {"b", heavy}};
  const auto rendered =
      Template::parse("{{ a | length + b | length }}")->render(variables, golden_time());
  ASSERT_TRUE(std::holds_alternative<Rendering>(rendered));
  EXPECT_EQ(std::get<Rendering>(rendered).output.text, "8000");
}

TEST(Template, ValuesThatReferToThemselvesAreReleased) {
  // The leak checker of the sanitizer build judges this one.
  EXPECT_EQ(run("{% set ns = namespace() %}{% set ns.me = ns %}{% macro m() %}{% endmacro %}{% set "
                "ns.m = m %}"
                "{% for i in [1] %}{% set ns.loop = loop %}{{ loop.changed(loop) }}{% endfor %}{{ "
                "ns.loop.index }}",
                {})
                .text,
            "True1");
}

TEST(Template, WideIntegersKeepTheirDigits) {
  const json::object data = {{"u", uint64_t{18446744073709551615u}},
                             {"i", int64_t{-9223372036854775807 - 1}}};
  EXPECT_EQ(run("{{ u }} {{ u | tojson }} {{ i - 1 }}", data).text,
            "18446744073709551615 18446744073709551615 -9223372036854775809");
}

}  // namespace
}  // namespace winnow::jinja
