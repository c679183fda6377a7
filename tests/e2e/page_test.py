"""The page at / in a real browser, as a person goes through it, on a real model. Pictures of it go to build/page-screenshots."""
import json
import re
import tempfile
import unittest

from browser import ENTER, ESCAPE, SHIFT, TAB, Browser, require_browser
from program import ROOT
from real_models_test import model
from server_program import Server

PICTURES = ROOT / "build/page-screenshots"
DESK, PHONE = (1280, 800), (390, 844)
MARKUP = "<img src=x onerror=\"window.harmed=1\"><script>window.harmed=1</script><b>bold</b>"

# Every request's body is kept in window.sent; window.answer, if set, is what the next chat gets. With window.endless no
# answer ends by itself.
RECORDER = """
window.sent = [];
const ask = window.fetch;
window.fetch = (resource, options) => {
  if (options?.body) window.sent.push(JSON.parse(options.body));
  if (options?.body && window.endless) {
    options = { ...options, body: JSON.stringify({ ...JSON.parse(options.body), ignore_eos: true }) };
  }
  if (!window.answer || !String(resource).includes("chat/completions")) return ask(resource, options);
  const answer = window.answer;
  delete window.answer;
  return Promise.resolve(new Response(answer, { headers: { "Content-Type": "text/event-stream" } }));
};
"""
ENDED = "document.querySelector('article.assistant:last-of-type').getAttribute('aria-busy') === 'false' && document.querySelector('#stop').hidden"
LAST = "document.querySelector('article.assistant:last-of-type')"
FOCUS = "document.activeElement.id || document.activeElement.textContent.trim()"


def setUpModule():
    require_browser()
    model("smollm2-135m-instruct-q4_1.gguf")
    PICTURES.mkdir(parents=True, exist_ok=True)
    PageTest.browser = Browser()  # one for all: to start it takes longer than most tests
    unittest.addModuleCleanup(PageTest.browser.close)
    PageTest.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=RECORDER)


class PageTest(unittest.TestCase):
    FLAGS = ("--attention", "dense")  # no profile is made, which takes long
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server("-m", model("smollm2-135m-instruct-q4_1.gguf"), "--quiet", *cls.FLAGS)
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.show(DESK)
        self.browser.devtools("Storage.clearDataForOrigin", origin=self.server.url, storageTypes="all")
        self.browser.console()
        self.browser.open(self.server.url + "/")

    def show(self, size, dark=False):
        width, height = size
        self.browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size is PHONE)
        self.browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, name):
        (PICTURES / f"{name}.png").write_bytes(self.browser.screenshot())

    def wait_for_model(self):
        self.browser.wait("document.querySelector('#model').textContent.includes('smollm2')")

    def set(self, **values):
        """Through the dialog; an empty text clears a field."""
        self.browser.click("#open-settings")
        for name, value in values.items():
            self.browser.clear(f"#set-{name}")
            self.browser.type(f"#set-{name}", value)
        self.browser.click("#settings button.primary")
        self.browser.wait("!document.querySelector('#settings').open")

    def ask(self, question):
        self.browser.type("#question", question)
        self.browser.click("#send")

    def add_document(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/{name}"
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            self.browser.type("#file", path)
            return self.browser.wait("(() => { const text = document.querySelector('#documents li:last-child')?.innerText; return /tokens,/.test(text) && text; })()")

    def chats(self):
        return [body for body in self.browser.value("window.sent") if "messages" in body]

    def check_is_quiet(self):
        """Nothing in the console, nothing from elsewhere."""
        self.assertEqual(self.browser.console(), [])
        self.assertEqual(self.browser.value("performance.getEntriesByType('resource').map((entry) => entry.name).filter((name) => new URL(name).origin !== location.origin)"), [])


class Conversation(PageTest):
    def test_a_document_is_read_and_asked_about(self):
        browser = self.browser
        self.wait_for_model()
        self.picture("1-opened")
        self.set(temperature="0", max="24")
        note = self.add_document("garden.txt", "The gate opens with the word marigold. Rain fell on the hills. " * 110)
        tokens = int(re.search(r"(\d[\d\u202f]*) tokens", note)[1].replace("\u202f", ""))
        self.assertEqual(tokens, self.server.post("/tokenize", {"prompt": browser.value("state.documents[0].text"), "add_special_tokens": False})["count"])
        self.assertRegex(note, r"\d+ % of the context")
        self.assertNotIn("to read", note)  # how long that takes is not known yet
        self.picture("2-document")
        browser.script("window.shares = []; new MutationObserver(() => shares.push(Number(document.querySelector('#bar').getAttribute('aria-valuenow'))))"
                       ".observe(document.querySelector('#bar'), { attributes: true });")
        self.ask("Which word opens the gate?")
        browser.wait("!document.querySelector('#progress').hidden && document.querySelector('#bar-done').offsetWidth > 0")
        self.assertRegex(browser.value("document.querySelector('#progress-text').textContent"), r"^Reading the prompt: \d+ %, [\d\u202f]+ of [\d\u202f]+ tokens")
        self.picture("3-reading")
        browser.wait(ENDED)
        shares = browser.value("window.shares")
        self.assertGreater(len(set(shares)), 1, shares)
        self.assertEqual(shares, sorted(shares))
        self.assertTrue(browser.value("document.querySelector('#progress').hidden"))
        numbers = browser.value(f"{LAST}.querySelector('.numbers').innerText")
        self.assertRegex(numbers, r"first token after [\d.]+ s")
        self.assertRegex(numbers, r"read [\d\u202f]+ at [\d\u202f]+ tokens/s")
        self.assertRegex(numbers, r"wrote \d+ at [\d.]+ tokens/s")
        self.assertTrue(browser.value(f"{LAST}.querySelector('.text').textContent.trim()"))
        sent = self.chats()[-1]
        self.assertTrue(sent["return_progress"] and sent["stream"])
        self.assertIn("marigold", sent["messages"][0]["content"])
        self.picture("4-answered")
        # One prompt was timed: the next document's wait can be told.
        self.assertRegex(self.add_document("hills.txt", "Rain fell on the hills. " * 200), r"about [\d.]+ s to read")
        browser.click("#documents button")
        self.assertEqual(browser.value("document.querySelectorAll('#documents li').length"), 0)
        self.check_is_quiet()

    def test_an_answer_streams_and_is_stopped_by_key_and_by_button(self):
        browser = self.browser
        self.wait_for_model()
        browser.script("window.endless = true")
        growing = f"{LAST}.querySelector('.text').textContent.length > %d"
        for stop in (lambda: browser.press(ESCAPE), lambda: browser.click("#stop")):
            self.ask("Tell me a very long story about a river and all the towns on it.")
            browser.wait(growing % 20)
            length = browser.value(f"{LAST}.querySelector('.text').textContent.length")
            browser.wait(growing % length)
            self.assertEqual(browser.value("document.querySelector('#send').hidden"), True)
            stop()
            browser.wait(ENDED)
            self.assertIn("Stopped", browser.value(f"{LAST}.innerText"))
            self.assertRegex(browser.value(f"{LAST}.querySelector('.numbers').innerText"), r"wrote \d+ at [\d.]+ tokens/s")
            self.assertEqual(browser.value(FOCUS), "question")
            self.server.wait_until_idle()
        self.assertEqual(browser.value("document.querySelectorAll('article').length"), 4)
        self.assertEqual([message["role"] for message in self.chats()[-1]["messages"]], ["user", "assistant", "user"])
        self.picture("5-stopped")
        browser.click("#new-chat")
        self.assertEqual(browser.value("document.querySelectorAll('article').length"), 0)
        self.assertTrue(browser.value("document.querySelector('#welcome').offsetHeight > 0"))
        self.check_is_quiet()

    def test_settings_reach_the_server_and_are_kept(self):
        browser = self.browser
        self.wait_for_model()
        self.set(system="Answer in one word.", temperature="0", max="3")
        browser.click("#open-settings")
        self.picture("6-settings")
        browser.press(ESCAPE)
        browser.wait("!document.querySelector('#settings').open")
        browser.open(self.server.url + "/")
        self.wait_for_model()
        self.ask("What is the capital of France?")
        browser.wait(ENDED)
        sent = self.chats()[-1]
        self.assertEqual((sent["temperature"], sent["max_tokens"]), (0, 3))
        self.assertEqual(sent["messages"][0], {"role": "system", "content": "Answer in one word."})
        self.assertNotIn("attention", sent)
        self.check_is_quiet()

    def test_a_keyboard_is_enough(self):
        browser = self.browser
        self.wait_for_model()
        self.assertEqual(browser.value(FOCUS), "question")
        order = []
        for _ in range(4):
            browser.press(TAB)
            order.append(browser.value(FOCUS))
        self.assertEqual(order, ["attach", "send", "Requests in flight", order[3]])
        browser.script("document.querySelector('.skip').focus();")
        order = []
        for _ in range(4):
            browser.press(TAB)
            order.append(browser.value(FOCUS))
        self.assertEqual(order, ["new-chat", "open-settings", "log", "question"])
        self.assertGreaterEqual(browser.value("parseFloat(getComputedStyle(document.querySelector('#question')).outlineWidth)"), 2)
        self.set(max="4")
        browser.script("document.querySelector('#question').focus();")
        browser.press("a")
        browser.press(SHIFT, ENTER)
        browser.press("b")
        self.assertEqual(browser.value("document.querySelector('#question').value"), "a\nb")
        browser.press(ENTER)
        browser.wait(ENDED)
        self.assertEqual(browser.value("document.querySelector('#question').value"), "")
        self.assertEqual(self.chats()[-1]["messages"][-1]["content"], "a\nb")
        browser.press(ENTER)  # nothing to send
        self.assertEqual(browser.value("document.querySelectorAll('article').length"), 2)
        self.check_is_quiet()


class Looks(PageTest):
    def answer(self, *deltas):
        """The next chat is answered by the page's own reading of these deltas."""
        chunks = [{"id": "chatcmpl-x", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"id": "chatcmpl-x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.browser.script("window.answer = arguments[0];", "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def test_an_answer_never_becomes_markup(self):
        browser = self.browser
        self.wait_for_model()
        call = {"index": 0, "id": "a", "function": {"name": MARKUP, "arguments": MARKUP}}
        self.answer({"role": "assistant", "content": ""}, {"reasoning_content": MARKUP}, {"content": MARKUP[:9]}, {"content": MARKUP[9:]},
                    {"content": "\n```html\n" + MARKUP + "\n```\n"}, {"tool_calls": [call]})
        self.add_document("notes.txt", MARKUP)
        self.ask(MARKUP)
        browser.wait(ENDED)
        self.assertEqual(browser.value("document.querySelectorAll('main img, main script, main b').length"), 0)
        self.assertFalse(browser.value("Boolean(window.harmed)"))
        self.assertEqual(browser.value("document.querySelector('#log').textContent").count(MARKUP), 6)
        self.assertTrue(browser.value(f"{LAST}.querySelector('.text pre').textContent").startswith("<img"))
        self.check_is_quiet()

    def drag(self, step, name, text):
        self.browser.script("const data = new DataTransfer(); data.items.add(new File([arguments[2]], arguments[1]));"
                            "document.body.dispatchEvent(new DragEvent(arguments[0], { bubbles: true, cancelable: true, dataTransfer: data }));", step, name, text)

    def test_documents_are_dropped_on_the_page(self):
        browser = self.browser
        self.wait_for_model()
        self.drag("dragenter", "dropped.txt", "Rain fell on the hills.")
        self.assertTrue(browser.value("document.body.classList.contains('dropping')"))
        self.drag("drop", "dropped.txt", "Rain fell on the hills.")
        self.assertFalse(browser.value("document.body.classList.contains('dropping')"))
        browser.wait("document.querySelector('#documents').innerText.match(/dropped.txt.* tokens/)")
        self.drag("drop", "picture.png", "\x89PNG\0\0")
        browser.wait("document.querySelector('#alert').textContent === 'picture.png is not a text document.'")
        self.assertEqual(browser.value("document.querySelectorAll('#documents li').length"), 1)
        self.check_is_quiet()

    def test_an_error_in_a_stream_is_told_and_the_question_comes_back(self):
        browser = self.browser
        self.wait_for_model()
        browser.script("window.answer = arguments[0];", 'data: {"error": {"message": "no pages are left"}}\n\ndata: [DONE]\n\n')
        self.ask("Is anybody there?")
        browser.wait(ENDED)
        self.assertIn("no pages are left", browser.value(f"{LAST}.innerText"))
        self.assertEqual(browser.value("document.querySelector('#alert').textContent"), "no pages are left")
        self.assertEqual(browser.value("document.querySelector('#question').value"), "Is anybody there?")
        self.assertEqual(browser.value("state.messages.length"), 0)

    def test_it_is_told_to_those_who_do_not_see_it(self):
        browser = self.browser
        self.wait_for_model()
        for selector, told in {"#question": ("textbox", "Question"), "#send": ("button", "Send"), "#attach": ("button", "Add document"),
                               "#log": ("log", "Conversation"), "#open-settings": ("button", "Settings")}.items():
            self.assertEqual(browser.role(selector), told)
        self.assertEqual(browser.value("[...document.querySelectorAll('[role=status], [role=alert]')].map((place) => place.id)"), ["status", "alert"])
        self.assertEqual(browser.value("document.documentElement.lang"), "en")
        unlabelled = "[...document.querySelectorAll('input:not([hidden]), select, textarea')].filter((field) => !field.labels.length).map((field) => field.id)"
        self.assertEqual(browser.value(unlabelled), [])
        # A few words are said, not every token.
        browser.script("window.said = []; new MutationObserver(() => said.push(document.querySelector('#status').textContent))"
                       ".observe(document.querySelector('#status'), { childList: true });")
        self.answer(*[{"content": f"word {i} "} for i in range(200)])
        self.ask("Count.")
        browser.wait(ENDED)
        self.assertEqual(browser.wait("said.length >= 2 && said"), ["The answer begins", "The answer is complete"])

    def test_it_fits_a_phone_and_the_dark(self):
        browser = self.browser
        self.wait_for_model()
        self.answer({"content": "A reply of several lines.\n\n```c\n" + "int wide = 1; " * 20 + "\n```\n" + "unbroken" * 40})
        self.add_document("a-long-name-of-a-document-that-nobody-would-choose.txt", "word " * 100)
        self.ask("Show me some code.")
        browser.wait(ENDED)
        browser.click("#slots summary")
        browser.wait("document.querySelector('#slot-note').textContent === 'None.'")
        grounds = set()
        for size in (DESK, PHONE):
            for dark in (False, True):
                self.show(size, dark)
                browser.wait(f"innerWidth === {size[0]}")
                self.assertEqual(browser.value("document.documentElement.scrollWidth"), size[0])
                outside = f"[...document.querySelectorAll('button, textarea, article')].filter((e) => e.offsetWidth && e.getBoundingClientRect().right > {size[0]}).length"
                self.assertEqual(browser.value(outside), 0)
                grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
                self.picture(f"7-{'phone' if size is PHONE else 'desk'}-{'dark' if dark else 'light'}")
        self.assertEqual(len(grounds), 2)
        browser.click("#open-settings")
        self.picture("8-phone-settings")
        self.assertLessEqual(browser.value("document.querySelector('#settings').getBoundingClientRect().right"), PHONE[0])
        self.check_is_quiet()


class BlockMap(PageTest):
    FLAGS = ("--attention", "sparse", "--sparse-profile", "none")

    def test_a_sparse_answer_shows_what_was_kept(self):
        browser = self.browser
        self.wait_for_model()
        self.set(temperature="0", max="2")
        self.assertTrue(browser.value("document.querySelector('#map').hidden"))
        self.add_document("garden.txt", "".join(f"Bed {i} holds {'marigolds' if i % 3 else 'roses and thyme'}. " for i in range(150)))
        self.ask("What grows in bed 7?")
        browser.wait(ENDED)
        self.assertRegex(browser.value(f"{LAST}.querySelector('.numbers').innerText"), r"\d+ % of the attention kept")
        self.assertEqual(browser.value("performance.getEntriesByType('resource').filter((entry) => entry.name.includes('winnow/map')).length"), 0)
        browser.click("#map summary")
        browser.wait("document.querySelector('#map-share').textContent.includes('kept where it was sparse')")
        self.assertGreater(browser.value("document.querySelectorAll('#map-layer option').length"), 1)
        drawn = "(() => { const c = document.querySelector('#map-canvas'); return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((x, i) => i % 4 === 3 && x).length; })()"
        self.assertGreater(browser.value(drawn), 100)
        text = browser.value("document.querySelector('#map-text').textContent")
        self.assertRegex(text, r"^Tokens [\d\u202f]+ to [\d\u202f]+ on tokens 0 to \d+: ")
        self.assertIn("garden.txt", text)  # the prompt's first tokens
        browser.script("document.querySelector('#map-canvas').focus();")
        browser.press("\ue014")
        self.assertNotEqual(browser.value("document.querySelector('#map-text').textContent"), text)
        self.assertEqual(browser.role("#map-canvas")[0], "image")
        self.picture("10-block-map")
        self.show(PHONE, dark=True)
        browser.wait(f"innerWidth === {PHONE[0]}")
        self.assertEqual(browser.value("document.documentElement.scrollWidth"), PHONE[0])
        self.picture("10-block-map-phone")
        browser.click("#new-chat")
        self.assertTrue(browser.value("document.querySelector('#map').hidden"))
        self.check_is_quiet()


class WithAKey(PageTest):
    FLAGS = (*PageTest.FLAGS, "--api-key", "open-sesame")

    def test_a_key_is_asked_for_and_used(self):
        browser = self.browser
        browser.wait("document.querySelector('#model').textContent.includes('API key')")
        refused = browser.console()
        self.assertEqual(len(refused), 1, refused)  # the browser's own note of the 401
        self.assertIn("401", refused[0]["message"])
        self.picture("9-key-wanted")
        self.set(key="open-sesame", max="3")
        self.wait_for_model()
        self.ask("Hello!")
        browser.wait(ENDED)
        self.assertTrue(browser.value(f"{LAST}.querySelector('.text').textContent"))
        self.assertEqual(browser.value("Object.values(localStorage).filter((value) => value.includes('sesame')).length"), 0)
        self.check_is_quiet()


if __name__ == "__main__":
    unittest.main()
