"""Tests of the pages on which kernels can be watched (docs/make_players.py).

    BUILD=FOLDER python3 test_players.py

They trace three kernels and look at what the pages hold; what the script on a page does with it, a browser shows.
"""
import html.parser
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
sys.dont_write_bytecode = True
import make_players  # noqa: E402

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()


class Tags(html.parser.HTMLParser):
    """Of a page: identifiers, what it would fetch, links, and whether all that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.identifiers, self.fetched, self.links, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.identifiers += [values["id"]] if "id" in values else []
        self.fetched += [values[key] for key in ("src", "data") if key in values]
        if "href" in values:
            (self.links if tag == "a" else self.fetched).append(values["href"])
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Players(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.players = make_players.read_players()
        cls.rungs = {rung["rung"]: rung for rung in make_players.extract.table_of(BUILD)}
        cls.kept = tempfile.TemporaryDirectory()
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()

    def page(self, name):
        """The trace, the page's text, and what its script reads."""
        if name not in self.made:
            trace, texts = make_players.traced(BUILD, self.rungs, self.players[name])
            text = make_players.page_of(self.players[name], trace, texts, self.players)
            data = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, re.S).group(1)
            self.made[name] = trace, text, json.loads(data)
        return self.made[name]

    def test_each_player_is_of_a_rung_and_stands_beside_others_that_there_are(self):
        names = [player["name"] for player in json.loads((make_players.FOLDER / "players.json").read_text())]
        self.assertEqual(len(names), len(set(names)))
        for player in self.players.values():
            self.assertIn(player["rung"], self.rungs)
            self.assertTrue(set(player.get("beside", [])) <= set(names), player["name"])
            self.assertEqual("changed" in player, "bug" in player or "change" in player, player["name"])

    def test_a_page_needs_nothing_else(self):
        for name in ("tiled", "cp_async", "gemm_skipped"):
            _, text, _ = self.page(name)
            tags = Tags(text)
            self.assertEqual([tags.fetched, tags.open], [[], []])
            self.assertEqual(len(tags.identifiers), len(set(tags.identifiers)))
            self.assertLess(len(text.encode()), make_players.MOST_BYTES)
            self.assertFalse([link for link in tags.links if not re.fullmatch(r"(\.\./)?\w+\.html", link)])
            self.assertNotIn(str(ROOT), text)
            self.assertNotIn(tempfile.gettempdir() + "/", text)
            script = text[text.rindex("<script>"):]
            asked = set(re.findall(r'byId\("(\w+)"\)', script)) - {"cursor"}  # which the script draws
            self.assertLessEqual(asked, set(tags.identifiers))

    def test_it_holds_every_request_of_the_trace(self):
        for name in ("tiled", "cp_async"):
            trace, _, page = self.page(name)
            self.assertEqual(len(page["blocks"]), len(trace["blocks"]))
            for before, block in zip(sorted(trace["blocks"], key=lambda one: (one["launch"], one["block"])), page["blocks"]):
                expected = [(request[0], request[1], request[2], request[3]) for request in before["requests"]]
                kept = [(interval, flat[i], *block["patterns"][flat[i + 1]][:2])
                        for interval, flat in enumerate(block["intervals"]) for i in range(0, len(flat), 3)]
                self.assertEqual(sorted(kept), sorted(expected))
            for array in page["arrays"].values():
                self.assertEqual(len(array["rows"]), len(array["tops"]))
                self.assertEqual(array["tops"], sorted(set(array["tops"])))

    def test_readers_without_a_script_see_what_was_written(self):
        _, text, page = self.page("tiled")
        stills = text[text.index('<details id="stills"'):text.index("</details>")]
        self.assertIn("At the end", stills)
        # 8 rows of 32 outputs; a tile of 10 x 34, one channel after the other.
        self.assertIn("<b>y</b>: 0 elements read, 256 written", stills)
        self.assertIn("<b>dynamic shared memory</b>: 340 elements read, 340 written", stills)

    def test_copies_land_after_they_were_issued(self):
        _, _, page = self.page("cp_async")
        for block in page["blocks"]:
            lines = page["kernels"][block["kernel"]]["lines"]
            issued = [interval for interval, flat in enumerate(block["intervals"])
                      for number in flat[1::3] if lines[block["patterns"][number][0]]["op"] == "async"]
            landed = [landing[0] for landing in block["landings"]]
            self.assertTrue(issued and landed)
            self.assertGreaterEqual(min(landed), min(issued))
            self.assertGreater(max(landed), max(issued))

    def test_a_trace_of_ones_own_is_a_page(self):
        trace, _, _ = self.page("tiled")
        tags = Tags(make_players.own_page(trace))
        self.assertEqual([tags.fetched, tags.links, tags.open], [[], [], []])
        self.assertIn("timeline", tags.identifiers)

    def test_a_mistake_is_seen(self):
        trace, text, _ = self.page("gemm_skipped")
        self.assertFalse(trace["agrees"])
        blocks = {block["block"] for block in trace["blocks"] if block["requests"]}
        self.assertLess(len(blocks), 3 * 5)  # tiles
        self.assertIn("super-columns", text)


if __name__ == "__main__":
    unittest.main()
