"""Tests of what makes the pages of ./ladder docs (docs/*.py) and of tools/check_site.py."""
import json
import pathlib
import sys
import tempfile
import unittest

from program import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]
sys.dont_write_bytecode = True
import benchmark_run  # noqa: E402
import check_site  # noqa: E402
import code_index  # noqa: E402
import forge_links  # noqa: E402
import inner_loop  # noqa: E402
import predicted_times  # noqa: E402
import rung_page  # noqa: E402
import search_index  # noqa: E402
import show_code  # noqa: E402
import site_frame  # noqa: E402
import solutions  # noqa: E402


def rung_table():
    return {row["rung"]: row for row in json.loads(run("list", "--json", "-").stdout)}


class Sources:
    """Files in a folder of their own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def index(self, *names):
        index = code_index.CodeIndex(None, self.root)
        for name, scope, kind, file, line in names:
            index.add(code_index.Name(name, scope, kind, file, line, line, "", kind == "member"), f"{name}{line}.html")
        return index


class ShownPrograms(Sources, unittest.TestCase):
    def test_a_name_leads_to_what_the_program_includes(self):
        self.file("a.hpp", "int f();\n")
        self.file("b.hpp", "int f();\n")
        self.file("c.cu", '#include "a.hpp"\nint g() { return f(); }\n')
        index = self.index(("f", "", "function", "a.hpp", 1), ("f", "", "function", "b.hpp", 1))
        self.assertIn('<a class="name" href="file_a_hpp.html#l1">f</a>', show_code.Shown(index, "c.cu").block(1, 2))

    def test_no_link_where_two_could_be_meant_or_the_file_has_the_name_itself(self):
        self.file("a.hpp", "int f();\n")
        self.file("b.hpp", "int f();\n")
        self.file("c.cu", '#include "a.hpp"\n#include "b.hpp"\nint g() { return f(); }\n')
        self.file("d.cu", '#include "a.hpp"\nint f(int x) {\n  return f(x - 1);\n}\n')
        index = self.index(("f", "", "function", "a.hpp", 1), ("f", "", "function", "b.hpp", 1))
        for file in ("c.cu", "d.cu"):
            self.assertNotIn('class="name"', show_code.Shown(index, file).block(1, 3))

    def test_a_name_of_another_namespace_needs_a_qualifier(self):
        self.file("a.hpp", "namespace n { int f(); }\n")
        self.file("c.cu", '#include "a.hpp"\nint g() { return f() + n::f(); }\n')
        index = self.index(("f", "n", "function", "a.hpp", 1))
        self.assertEqual(show_code.Shown(index, "c.cu").block(1, 2).count('class="name"'), 1)

    def test_a_member_of_a_standard_type_leads_nowhere(self):
        self.file("a.hpp", "struct A {\n  int size();\n  int rows;\n};\n")
        self.file("c.cu", '#include "a.hpp"\nint g(A a) { return a.size() + a.rows; }\n')
        index = self.index(("size", "A", "function", "a.hpp", 2), ("rows", "A", "variable", "a.hpp", 3))
        index.by_name = {name: [one._replace(member=True) for one in found] for name, found in index.by_name.items()}
        shown = show_code.Shown(index, "c.cu").block(1, 2)
        self.assertIn('href="file_a_hpp.html#l3">rows</a>', shown)
        self.assertNotIn("size</a>", shown)

    def test_strings_comments_and_includes(self):
        self.file("a.hpp", "\n")
        self.file("c.cu", '#include "a.hpp"\nint x = 0x1F;  // a < b\nconst char* s = "<&>";\n')
        shown = show_code.Shown(self.index(), "c.cu").block(1, 3)
        self.assertIn('<a href="file_a_hpp.html">', shown)
        self.assertIn('<span class="c">// a &lt; b</span>', shown)
        self.assertIn("&lt;&amp;&gt;", shown)

    def test_changed_lines_are_marked_and_removed_ones_are_there(self):
        before = "/// header\nint a;\nint b;\n"
        after = "/// another header\nint a;\nint c;\n"
        found = show_code.change(before, after)
        self.assertEqual([(kind, what) for kind, what in found if kind != "same"], [("removed", "int b;"), ("added", 3)])
        self.assertEqual((found.added, found.removed, found.same), (1, 1, 1))

    def test_the_inner_loop_is_found_where_it_lies(self):
        self.file("cuda_optimized/shared/tile.cuh", "__device__ void multiply(float* s) {\n  for (int i = 0; i < 8; ++i) {\n    s[i] += a[i] * b[i];\n  }\n}\n")
        self.file("cuda_optimized/r.cu", '#include "cuda_optimized/shared/tile.cuh"\n__global__ void r(float* s) {\n'
                                         "  for (int c = 0; c < 4; ++c) {\n    multiply(s);\n  }\n}\n")
        found = inner_loop.of_program(self.index(), "cuda_optimized/r.cu")
        self.assertEqual(found, [("cuda_optimized/r.cu", 3, 5, "r"), ("cuda_optimized/shared/tile.cuh", 2, 4, "multiply")])


class FramesOfPages(unittest.TestCase):
    def test_headings_are_in_order(self):
        self.assertEqual(site_frame.in_order("<h1>a</h1><h3>b</h3><h3>c</h3><h1>d</h1>"), "<h2>a</h2><h3>b</h3><h3>c</h3><h2>d</h2>")

    def test_a_picture_takes_its_caption_as_its_text(self):
        found = site_frame.improved('<div class="image">\n<img src="a.png" alt=""/>\n<div class="caption">\nA <em>tile</em></div></div>')
        self.assertIn('<img src="a.png" alt="A tile"', found)

    def test_the_search_indexes_prose_and_names(self):
        contents = '<p>bank <b>conflict</b></p><pre class="program"><span>ldmatrix(x)</span></pre>'
        self.assertEqual(search_index.plain(contents), "bank conflict")
        self.assertEqual(search_index.names_in(contents), ["ldmatrix"])

    def test_links_in_both_forms(self):
        with tempfile.TemporaryDirectory() as folder:
            docs = pathlib.Path(folder).resolve() / "docs"
            (docs / "ladders").mkdir(parents=True)
            (docs / "layouts.md").write_text("# Layouts {#layouts}\n\n## Strides {#strides}\n")
            (docs / "ladders/gemm.md").write_text("# gemm {#ladder_gemm}\n")
            places = forge_links.Places(docs, {"rung_cuda_optimized_gemm_tiled": "cuda_optimized/gemm/tiled.cu"})
            path = docs / "ladders/gemm.md"
            refs = '\\ref layouts "Layouts", \\ref rung_cuda_optimized_gemm_tiled "tiled", `\\ref code`, \\ref strides.\n\n    \\ref layouts\n\n\\ref layouts "two\nlines"'
            links = "[Layouts](../layouts.md), [tiled](../../cuda_optimized/gemm/tiled.cu), `\\ref code`, \\ref strides.\n\n    \\ref layouts\n\n[two\nlines](../layouts.md)"
            self.assertEqual(places.to_links(refs, path), links)
            self.assertEqual(places.to_refs(links, path), refs)


class PredictedTimes(unittest.TestCase):
    def test_a_number_of_cycles_names_no_product(self):
        problems = ["cube-1024", "cube-4096", "B4", "sweep-64-subm3"]
        for text, problem in (("1024 cycles of the tensor cores; 202 us at 4096", "cube-4096"), ("at 1024 cycles", None), ("B4 takes 90 us", "B4"),
                              ("70 us for sweep-64-subm3", "sweep-64-subm3"), ("B40", None)):
            self.assertEqual(rung_page.named_problem(text, problems), problem)

    def test_a_line_of_a_header_predicts_a_time(self):
        (time,) = predicted_times.expect.times_of(None, "/// @expect time B4 fp32 85 us, with the launch\n/// @expect blocks 4\n")
        self.assertEqual((time.problem, time.dtype, time.text), ("B4", "fp32", "85 us"))
        with self.assertRaises(predicted_times.expect.Mistake):
            predicted_times.expect.lines_of(ROOT / "x.cu", "conv2d", "/// @expect time B4\n")

    def test_what_is_listed_is_what_headers_say_of_problems_that_there_are(self):
        found, wrong = predicted_times.read(ROOT, rung_table())
        self.assertEqual(wrong, [])
        run_of_all = benchmark_run.newest_run(ROOT)
        problems = {row["problem"] for row in run_of_all["rows"]}
        self.assertEqual([(rung, time.problem) for rung, times in found.items() for time in times if time.problem not in problems], [])


class ListsOfTheSite(unittest.TestCase):
    def test_every_technique_has_a_rung(self):
        rows = rung_table()
        former = {old for row in rows.values() for old in row.get("was") or []}
        entries = json.loads((ROOT / "docs/techniques.json").read_text())
        unknown = [rung for entry in entries for rung in entry["rungs"] if rung not in rows and rung not in former]
        self.assertEqual(unknown, [])
        names = {word.lower() for entry in entries for word in [entry["technique"], *entry.get("also", [])]}
        for word in ("bank conflict", "float4", "cp.async", "hopper", "submanifold", "hash", "wgmma", "split-k"):
            self.assertIn(word, names)

    def test_solutions_are_of_rungs(self):
        for rung, parts in solutions.read(ROOT, rung_table()).items():
            self.assertEqual(list(parts), ["Hint", "Solution"], rung)


class VisitsOfTheSite(Sources, unittest.TestCase):
    def page(self, contents, head="<h1>x</h1>"):
        return check_site.Page(f'<html lang="en"><body><header></header><nav></nav><main>{head}{contents}</main></body></html>')

    def test_structure(self):
        self.assertEqual(list(self.page("<h2>a</h2><h3>b</h3>").structure()), [])
        self.assertEqual(list(self.page("<h3>b</h3>").structure()), ["a heading h3 below a heading h1"])
        self.assertEqual(list(self.page("<h1>b</h1>").structure()), ["2 headings h1"])
        self.assertEqual(list(check_site.Page("<p>x</p>").structure()), ["no lang", "0 headings h1", "no <main>", "no <nav>", "no <header>"])

    def test_pictures_need_a_text(self):
        self.assertEqual(self.page('<img src="a.png" alt="">').findings, ["a picture without a text: a.png"])

    def test_names_lead_to_what_is_included(self):
        self.file("a.hpp", "")
        self.file("b.hpp", "")
        self.file("c.cu", '#include "a.hpp"\n')
        page = self.page('<pre class="program" data-source="c.cu"><a class="name" href="file_a_hpp.html#l1">f</a>'
                         '<a class="name" href="file_b_hpp.html#l1">g</a><a class="name" href="#l1">h</a></pre>')
        self.assertEqual(list(check_site.wrong_names(page, self.index(), {})), ["a name in c.cu leads to file_b_hpp.html#l1, which it does not include"])

    def test_terms_of_other_pages(self):
        page = self.page('<a class="term" href="glossary.html#term_line">line</a>')
        terms = {"term_line": "line"}
        self.assertEqual(list(check_site.wrong_terms("ladder_fft", page, terms)), [])
        self.assertEqual(len(list(check_site.wrong_terms("ladder_gemm", page, terms))), 1)

    def test_labels_stand_at_their_points(self):
        svg = '<circle cx="100" cy="50" r="4"><title>fp32, nchw: 5.00 us</title></circle><text x="{}" y="54" class="value">{}</text>'
        self.assertEqual(list(check_site.wrong_labels(svg.format(91, "5.00 us"))), [])
        self.assertEqual(len(list(check_site.wrong_labels(svg.format(200, "5.00 us")))), 1)
        self.assertEqual(len(list(check_site.wrong_labels(svg.format(91, "6.00 us")))), 1)

    def test_points_are_of_the_run(self):
        svg = '<circle cx="100" cy="50" r="4"><title>fp32, nchw: 5.00 us</title></circle>'
        self.assertEqual(list(check_site.wrong_points(svg, {"fp32, nchw: 5.00 us"})), [])
        self.assertEqual(list(check_site.wrong_points(svg, {"fp32, nchw: 5.01 us"})), ["a point of fp32, nchw: 5.00 us, which is not in the committed run"])

    def test_contrast(self):
        self.assertAlmostEqual(check_site.contrast("#000", "#ffffff"), 21)
        self.assertEqual(list(check_site.weak_colours((ROOT / "docs/style.css").read_text())), [])
        weak = ":root { --comment: #999999; --code: #ffffff }\n}"
        self.assertIn("light: --comment on --code has a contrast of 2.85, less than 4.5", list(check_site.weak_colours(weak)))

    def test_clicks(self):
        pages = {"index.html": self.page('<a href="a.html">a</a>'), "a.html": self.page('<a href="b.html#x">b</a>'), "b.html": self.page(""), "c.html": self.page("")}
        self.assertEqual(check_site.clicks_from("index.html", pages), {"index.html": 0, "a.html": 1, "b.html": 2})


if __name__ == "__main__":
    unittest.main()
