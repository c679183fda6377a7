"""The real openai package against the real server with a real model."""
import json
import unittest

from real_models_test import model
from server_program import Server

try:
    import jsonschema
    import openai
except ImportError:
    openai = None

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 30}, "people": {"type": "integer", "minimum": 0},
                   "tags": {"type": "array", "items": {"enum": ["old", "new"]}, "maxItems": 3}},
    "required": ["city", "people", "tags"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 40}}, "required": ["city"], "additionalProperties": False}}}
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@unittest.skipIf(openai is None, "missing Python packages openai and jsonschema (./dev test installs them)")
class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("-m", model("qwen2.5-coder-0.5b-instruct.gguf"), "-c", "8192", "--attention", "dense", "--api-key", "secret")
        cls.addClassCleanup(cls.server.close)
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="secret", max_retries=0)

    def chat(self, **more):
        arguments = {"model": "any", "messages": QUESTION, "max_tokens": 24, "temperature": 0} | more
        return self.client.chat.completions.create(**arguments)

    def test_models_are_listed(self):
        models = self.client.models.list().data
        self.assertEqual(len(models), 1)
        self.assertEqual(self.client.models.retrieve(models[0].id).id, models[0].id)

    def test_a_chat_is_answered_alike_whole_and_streamed(self):
        whole = self.chat()
        self.assertIn("Paris", whole.choices[0].message.content)
        self.assertEqual(whole.choices[0].finish_reason, "stop")
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual([len(c.choices) for c in chunks].count(0), 1)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_a_text_is_completed_with_logprobs(self):
        done = self.client.completions.create(model="any", prompt="one two three", max_tokens=4, temperature=0, logprobs=2, echo=True)
        choice = done.choices[0]
        self.assertTrue(choice.text.startswith("one two three"))
        self.assertIsNone(choice.logprobs.token_logprobs[0])
        self.assertEqual(len(choice.logprobs.tokens), done.usage.total_tokens)
        for token, logprob, top in list(zip(choice.logprobs.tokens, choice.logprobs.token_logprobs, choice.logprobs.top_logprobs))[1:]:
            self.assertLessEqual(logprob, max(top.values()))

    def test_several_prompts_and_choices_keep_their_order(self):
        done = self.client.completions.create(model="any", prompt=["red", "green"], n=2, max_tokens=3, temperature=0.8, seed=5)
        self.assertEqual([c.index for c in done.choices], [0, 1, 2, 3])

    def test_chat_logprobs_have_as_many_alternatives_as_asked_for(self):
        for count in (0, 1, 5, 20):
            done = self.chat(logprobs=True, top_logprobs=count, max_tokens=3)
            entries = done.choices[0].logprobs.content
            self.assertEqual(len(entries), 3)
            self.assertTrue(all(len(e.top_logprobs) == count for e in entries))

    def test_an_answer_satisfies_its_schema(self):
        for stream in (False, True):
            form = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA, "strict": True}}
            done = self.chat(messages=[{"role": "user", "content": "Describe Rome as JSON."}], response_format=form, max_tokens=200, temperature=1, seed=3, stream=stream)
            text = "".join(c.choices[0].delta.content or "" for c in done if c.choices) if stream else done.choices[0].message.content
            jsonschema.validate(json.loads(text), SCHEMA)

    def test_a_required_tool_is_called_with_arguments_that_fit(self):
        ask = {"messages": [{"role": "user", "content": "What is the weather in Oslo?"}], "tools": [TOOL], "tool_choice": "required", "max_tokens": 80}
        choice = self.chat(**ask).choices[0]
        self.assertEqual(choice.finish_reason, "tool_calls")
        call = choice.message.tool_calls[0]
        self.assertEqual(call.function.name, "get_weather")
        jsonschema.validate(json.loads(call.function.arguments), TOOL["function"]["parameters"])
        deltas = [c.choices[0].delta for c in self.chat(**ask, stream=True) if c.choices]
        streamed = [t for d in deltas for t in d.tool_calls or []]
        self.assertEqual("".join(t.function.arguments or "" for t in streamed), call.function.arguments)
        back = [{"role": "user", "content": "What is the weather in Oslo?"}, choice.message.model_dump(exclude_none=True),
                {"role": "tool", "tool_call_id": call.id, "content": "snow, -3 degrees"}]
        # What so small a model makes of it is its own affair; it must have been told.
        self.assertGreater(self.chat(messages=back, tools=[TOOL], max_tokens=8).usage.completion_tokens, 0)
        key = {"Authorization": "Bearer secret"}
        ids = self.server.post("/v1/chat/completions/render", {"messages": back, "tools": [TOOL]}, key)["token_ids"]
        told = self.server.post("/detokenize", {"tokens": ids}, key)["text"]
        self.assertIn("<tool_response>\nsnow, -3 degrees\n</tool_response>", told)
        self.assertIn('"name": "get_weather"', told.rpartition("<tool_call>")[2])

    def test_the_responses_api_answers(self):
        whole = self.client.responses.create(model="any", input="What is the capital of France?", max_output_tokens=24, temperature=0)
        self.assertIn("Paris", whole.output_text)
        with self.client.responses.stream(model="any", input="What is the capital of France?", max_output_tokens=24, temperature=0) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
            self.assertEqual(text, whole.output_text)
            self.assertEqual(stream.get_final_response().output_text, whole.output_text)

    def test_errors_have_their_classes(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual(caught.exception.body["param"], "temperature")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="any", prompt=[1] * 9000, max_tokens=1)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.url + "/v1", api_key="wrong", max_retries=0).models.list()
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("another")
        with self.assertRaises(openai.BadRequestError):
            self.client.embeddings.create(model="any", input="text")

    def test_a_client_that_goes_away_frees_its_slot(self):
        stream = self.chat(stream=True, max_tokens=4000, extra_body={"ignore_eos": True})
        for _ in zip(range(3), stream):
            pass
        stream.close()
        self.server.wait_until_idle()
        self.assertIn("Paris", self.chat().choices[0].message.content)


if __name__ == "__main__":
    unittest.main()
