#include <algorithm>
#include <nlohmann/json.hpp>

#include "command/inspect/inspect.hpp"
#include "command/inspect/listing.hpp"
#include "command/inspect/request_picture.hpp"
#include "core/text.hpp"

namespace convladder::command {
namespace {

namespace microscope = cuda_on_cpu::microscope;

std::string escaped(const std::string& plain) {
  std::string html;
  for (const char c : plain) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      default: html += c;
    }
  }
  return html;
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --line: #8884; --hot: #c33; --ok: #287; --soft: #8882; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 78rem; margin: 1rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
.source { overflow-x: auto; }
td { padding: 0 .5em; vertical-align: top; }
td.code { white-space: pre; font: 13px/1.5 ui-monospace, monospace; }
td.number { color: #888; text-align: right; font: 13px/1.5 ui-monospace, monospace; }
td.access { font-size: 13px; min-width: 24rem; }
tr.seen { background: var(--soft); }
.bad { color: var(--hot); } .good { color: var(--ok); }
summary { cursor: pointer; }
svg { display: block; max-width: 100%; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
button { font: inherit; margin-right: .4em; }
</style>
)";

// Steps through the requests of an access; all data is in the page.
constexpr const char* kScript = R"js(
function draw(box, step) {
  const data = JSON.parse(box.dataset.samples), one = data.steps[step];
  const picture = requestPicture({...one, space: data.space, width: data.width});
  box.querySelector(".picture").innerHTML = picture.svg;
  box.querySelector(".words").textContent =
    `request ${step + 1} of ${data.steps.length} shown: block ${one.block}, warp ${one.warp}, ${picture.words}`;
  box.dataset.step = step;
}
function move(button, by) {
  const box = button.closest("details"), steps = JSON.parse(box.dataset.samples).steps.length;
  draw(box, (Number(box.dataset.step || 0) + by + steps) % steps);
}
for (const box of document.querySelectorAll("details[data-samples]"))
  box.addEventListener("toggle", () => { if (box.open) draw(box, Number(box.dataset.step || 0)); });
)js";

std::string samples_of(const microscope::Line& line) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const microscope::Sample& sample : line.samples) {
    nlohmann::ordered_json lanes = nlohmann::ordered_json::array();
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (sample.lanes >> lane & 1u) lanes.push_back({lane, sample.byte[lane]});
    }
    steps.push_back({{"block", sample.block},
                     {"warp", sample.warp},
                     {"begin", sample.array_begins},
                     {"lanes", lanes}});
  }
  return nlohmann::ordered_json{
      {"space", microscope::name_of(line.space)}, {"width", line.width}, {"steps", steps}}
      .dump();
}

std::string access_cell(const microscope::Line& line) {
  const bool wasteful = line.counts.excess != 0 || line.counts.sectors > line.counts.sectors_ideal;
  return text("<details data-samples=\"", escaped(samples_of(line)), "\"><summary>",
              escaped(name_of(line)), "; ", line.counts.requests, " requests<span class=\"",
              wasteful ? "bad" : "good", "\">: ", escaped(cost_of(line)), "</span></summary>",
              "<button onclick=\"move(this, -1)\">before</button>",
              "<button onclick=\"move(this, 1)\">next</button><span class=\"words\"></span>",
              "<div class=\"picture\"></div></details>");
}

}  // namespace

std::string inspect_page(const Inspection& inspection) {
  const microscope::Report& seen = inspection.seen;
  std::string html =
      text(kHead, "<title>", escaped(inspection.rung),
           " under the microscope</title></head><body>\n<h1>", escaped(inspection.rung),
           "</h1>\n<p>", escaped(inspection.source), ", on ", escaped(inspection.problem), "; ",
           seen.blocks_counted, " of ", seen.blocks_run, " blocks counted.</p>\n<ul>\n");
  for (const std::string& finding : findings(inspection))
    html += text("<li>", escaped(finding), "</li>\n");
  for (const microscope::Race& race : seen.races) {
    html += text("<li", race.is_error ? " class=\"bad\"" : "", ">", escaped(sentence_of(race)),
                 "</li>\n");
  }
  for (const microscope::Unwritten& read : seen.unwritten)
    html += text("<li class=\"bad\">", escaped(sentence_of(read, true)), "</li>\n");
  for (const microscope::Unwritten& read : inspection.unused)
    html += text("<li>", escaped(sentence_of(read, false)), "</li>\n");
  html += inspection.agrees
              ? "<li class=\"good\">agrees with the reference</li>\n"
              : text("<li class=\"bad\">differs: ", escaped(inspection.reason), "</li>\n");
  html += "</ul>\n<p>Open an access to see the addresses of a warp's lanes.</p>\n";
  for (const microscope::Kernel& kernel : seen.kernels) {
    html += text("<h2>", escaped(title_of(kernel)), "</h2>\n");
    for (const ListedFile& file : listing(inspection, kernel)) {
      html += text("<h3>", escaped(file.file), "</h3>\n<div class=\"source\"><table>\n");
      unsigned before = 0;
      for (const ListedLine& line : file.lines) {
        if (before != 0 && line.number != before + 1)
          html += "<tr><td></td><td class=\"code\">…</td><td></td></tr>\n";
        before = line.number;
        html += text("<tr", line.accesses.empty() ? "" : " class=\"seen\"",
                     "><td class=\"number\">", line.number, "</td><td class=\"code\">",
                     escaped(line.text), "</td><td class=\"access\">");
        for (const microscope::Line* access : line.accesses) html += access_cell(*access);
        html += "</td></tr>\n";
      }
      html += "</table></div>\n";
    }
  }
  return html + "<script>" + kRequestPicture + kScript + "</script>\n</body></html>\n";
}

}  // namespace convladder::command
