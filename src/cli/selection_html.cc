#include "cli/selection_html.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>

#include "base/check.h"
#include "cli/json_output.h"
#include "cli/markup.h"

namespace winnow {
namespace {

constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --kept: #0b4f94; --left: #e6ebf2; --dense: #b3a583; }
@media (prefers-color-scheme: dark) { :root { --kept: #7cc4ff; --left: #2a323d; --dense: #7d7153; } }
body { font: 14px system-ui, sans-serif; margin: 1rem 1rem 19rem; }
h1 { font-size: 1.1rem; margin: 0 0 .3rem; }
p { margin: .2rem 0 .8rem; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; }
td { padding: 2px 4px; text-align: center; font-size: 12px; }
canvas { width: 96px; height: 96px; image-rendering: pixelated; display: block; }
td canvas { cursor: crosshair; }
#detail { position: fixed; left: 0; right: 0; bottom: 0; height: 17rem; display: flex; gap: 1rem;
  padding: .6rem 1rem; box-sizing: border-box; background: Canvas; border-top: 1px solid GrayText; }
#detail canvas { width: 14rem; height: 14rem; margin-top: .3rem; }
.text { flex: 1; min-width: 0; display: flex; flex-direction: column; }
pre { flex: 1; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0 0;
  font-size: 12px; }
)";

// A cell is one character of a head's "cells": # for dense, a space where nothing is seen, else a
// to p for what was kept, from nothing to all. Row r holds r + 1 of them.
constexpr int kLetterShades = 15;

constexpr const char* kScript = R"(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const side = data.texts.length;
const byId = (id) => document.getElementById(id);
const at = (head, row, column) => head.cells[row * (row + 1) / 2 + column];
const shade = (cell) => (cell.charCodeAt(0) - 97) / 15;

function draw(canvas, head, mark) {
  canvas.width = canvas.height = side;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const [kept, left, dense] = [colour('--kept'), colour('--left'), colour('--dense')];
  const context = canvas.getContext('2d');
  const fill = (row, column, width, height, colour, alpha) => {
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    context.fillRect(column, row, width, height);
  };
  for (let row = 0; row < side; ++row) {
    for (let column = 0; column <= row; ++column) {
      const cell = at(head, row, column);
      if (cell === ' ') continue;
      fill(row, column, 1, 1, cell === '#' ? dense : left, 1);
      if (cell >= 'b') fill(row, column, 1, 1, kept, .15 + .85 * shade(cell));
    }
  }
  if (mark) {
    fill(mark.row, 0, side, 1, 'red', .4);
    fill(0, mark.column, 1, side, 'red', .4);
  }
}

function tokens(cell) {
  const begin = cell * data.cell_tokens;
  return begin + ' to ' + (Math.min(begin + data.cell_tokens, data.tokens) - 1);
}

function show(head, row, column) {
  const cell = column <= row ? at(head, row, column) : ' ';
  const kept = cell === ' ' ? 'not seen' : cell === '#' ? 'dense'
    : 'about ' + Math.round(100 * shade(cell)) + ' % kept';
  byId('what').textContent = 'layer ' + head.layer + ', head ' + head.head + ': ' + kept;
  byId('queries').textContent = 'queries ' + tokens(row);
  byId('keys').textContent = 'keys ' + tokens(column);
  byId('query_text').textContent = data.texts[row];
  byId('key_text').textContent = data.texts[column];
  draw(byId('large'), head, {row, column});
}

function follow(canvas, head) {
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const cell = (offset, size) => Math.max(0, Math.min(side - 1, Math.floor(offset / size * side)));
    show(head(), cell(event.clientY - box.top, box.height), cell(event.clientX - box.left, box.width));
  });
}

let shown = data.heads[0];
let line = null;
for (const head of data.heads) {
  if (!line || line.dataset.layer !== String(head.layer)) {
    line = byId('heads').insertRow();
    line.dataset.layer = head.layer;
  }
  const cell = line.insertCell();
  cell.append(head.layer + '.' + head.head + '  ' + Math.round(100 * head.density) + ' %');
  const canvas = cell.appendChild(document.createElement('canvas'));
  draw(canvas, head);
  follow(canvas, () => (shown = head));
}
follow(byId('large'), () => shown);
show(shown, side - 1, 0);
)";

constexpr const char* kBody = R"html(
<p>Rows are queries from top to bottom, columns are keys:
<span class="key" style="background: var(--kept)"></span>kept
<span class="key" style="background: var(--left)"></span>left out
<span class="key" style="background: var(--dense)"></span>dense.
Above each picture stand layer.head and the share of pairs that its sparse rows multiplied.</p>
<table id="heads"></table>
<div id="detail">
<div><b id="what"></b><canvas id="large"></canvas></div>
<div class="text"><b id="queries"></b><pre id="query_text"></pre></div>
<div class="text"><b id="keys"></b><pre id="key_text"></pre></div>
</div>
)html";

std::string cells_of(const SelectionMap& map, const SelectionMap::Head& head) {
  std::string cells;
  for (int row = 0; row < map.side(); ++row) {
    for (int column = 0; column <= row; ++column) {
      const SelectionMap::Cell cell = map.cell(head, row, column);
      switch (cell.kind) {
        case SelectionMap::Kind::kUnseen:
          cells += ' ';
          break;
        case SelectionMap::Kind::kDense:
          cells += '#';
          break;
        case SelectionMap::Kind::kSparse:
          // The least that was kept is told from nothing.
          cells += static_cast<char>('a' + std::ceil(cell.kept * kLetterShades - 1e-6));
      }
    }
  }
  return cells;
}

// JSON that no part of ends the script element it stands in.
std::string json_in_script(const boost::json::value& value) {
  std::string text;
  for (const char c : json_line(value)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string selection_html(const SelectionMap& map, const std::string& title,
                           const std::vector<std::string>& texts) {
  CHECK(std::ssize(texts) == map.side());
  boost::json::array heads;
  for (const SelectionMap::Head& head : map.heads()) {
    heads.push_back({{"layer", head.layer_idx},
                     {"head", head.head},
                     {"density", SelectionMap::density(head)},
                     {"cells", cells_of(map, head)}});
  }
  boost::json::array text_array;
  for (const std::string& text : texts) text_array.push_back(json_text(text));
  const boost::json::object data{{"tokens", map.num_tokens()},
                                 {"cell_tokens", map.cell_tokens()},
                                 {"texts", std::move(text_array)},
                                 {"heads", std::move(heads)}};
  const std::string name = markup_text(title);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>" + name +
         "</title>\n<style>" + kPageStyle + "</style>\n<h1>" + name + "</h1>" + kBody +
         "<script type=\"application/json\" id=\"data\">" + json_in_script(data) + "</script>\n" +
         "<script>" + kScript + "</script>\n</html>\n";
}

}  // namespace winnow
