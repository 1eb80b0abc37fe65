// Plays a trace (docs/make_players.py) step by step. A step is a request of a warp, the time from one
// barrier to the next, or a whole block.

const trace = JSON.parse(document.getElementById("trace").textContent);
const byId = id => document.getElementById(id);
const lanesOf = mask => Array.from({length: 32}, (_, lane) => lane).filter(lane => mask >>> lane & 1);

let block, steps, position = 0, timer = null;

// --- Steps

// Of a block, in the order in which they are played: its warps go on side by side between barriers.
function stepsOf(block) {
  const steps = [];
  block.intervals.forEach((flat, interval) => {
    const made = new Map();  // warp -> its requests so far
    for (let i = 0; i < flat.length; i += 3) {
      const [warp, number, byte] = flat.slice(i, i + 3), [line, mask, way] = block.patterns[number];
      const index = made.get(warp) || 0;
      made.set(warp, index + 1);
      const active = lanesOf(mask), first = active[0];
      const lanes = active.map((lane, i) => [lane, byte + (Array.isArray(way) ? way[i] : way * (lane - first))]);
      steps.push({interval, index, warp, lanes, ...trace.kernels[block.kernel].lines[line]});
    }
  });
  return steps.sort((a, b) => a.interval - b.interval || a.index - b.index || a.warp - b.warp);
}

// Which cells of its array's picture a step touches, each with the lane.
function cellsOf(step) {
  const array = trace.arrays[step.array];
  if (!array) return [];
  const cells = [];
  for (const [lane, byte] of step.lanes) {
    for (let at = byte; at < byte + step.width; at += array.element) {
      const cell = cellAt(array, at);
      if (cell >= 0) cells.push([cell, lane]);
    }
  }
  return cells;
}

function cellAt(array, byte) {
  const element = Math.floor(byte / array.element), row = array.rowAt.get(Math.floor(element / array.columns));
  return row === undefined ? -1 : row * array.columns + element % array.columns;
}

// --- What the arrays look like after a step

const kUntouched = 0, kRead = 1, kOnItsWay = 2, kWritten = 3;

function begin() {
  for (const array of Object.values(trace.arrays)) {
    array.state = new Uint8Array(array.rows.length * array.columns);
    array.grown = new Float32Array(array.state.length);
  }
}

function apply(block, step) {
  const array = trace.arrays[step.array];
  for (const [cell] of cellsOf(step)) {
    const next = step.op === "load" ? kRead : step.op === "async" && step.space === "shared" ? kOnItsWay : step.op === "async" ? kRead : kWritten;
    array.state[cell] = next === kRead ? Math.max(array.state[cell], kRead) : next;
  }
  const growing = block.growing;
  if (step.op !== "load" || step.space !== growing.space) return;
  for (const [lane] of step.lanes) {
    const thread = step.warp * 32 + lane;
    const own = growing.threads.get(thread);
    if (!own) continue;
    ++own.loads;
    for (const [array, cell] of own.cells) array.grown[cell] = own.loads / own.all;
  }
}

function landed(block, interval) {
  for (const [when, name, byte, bytes] of block.landings) {
    const array = trace.arrays[name];
    if (when !== interval || !array) continue;
    for (let at = byte; at < byte + bytes; at += array.element) {
      const cell = cellAt(array, at);
      if (cell >= 0 && array.state[cell] === kOnItsWay) array.state[cell] = kWritten;
    }
  }
}

// A thread's sums grow with what it loads; they are seen where it stores them in the end.
function growth(steps) {
  const space = steps.some(step => step.space === "shared" && step.op === "load") ? "shared" : "global";
  const threads = new Map();
  for (const step of steps) {
    if (step.space !== "global" || (step.op !== "store" && step.op !== "atomic")) continue;
    for (const [cell, lane] of cellsOf(step)) {
      const thread = step.warp * 32 + lane;
      if (!threads.has(thread)) threads.set(thread, {cells: [], loads: 0, all: 0});
      threads.get(thread).cells.push([trace.arrays[step.array], cell]);
    }
  }
  for (const step of steps) {
    if (step.op !== "load" || step.space !== space) continue;
    for (const [lane] of step.lanes) {
      const own = threads.get(step.warp * 32 + lane);
      if (own) ++own.all;
    }
  }
  return {space, threads};
}

function stateAt(last) {
  begin();
  if (byId("unit").value === "block") {
    for (const before of trace.blocks.slice(0, trace.blocks.indexOf(block))) play(before, prepared(before), Infinity);
  }
  play(block, steps, last);
}

function play(block, steps, last) {
  for (const own of block.growing.threads.values()) own.loads = 0;
  for (let i = 0; i < steps.length && i <= last; ++i) {
    if (i > 0 && steps[i].interval !== steps[i - 1].interval) {
      for (let passed = steps[i - 1].interval; passed < steps[i].interval; ++passed) landed(block, passed);
    }
    apply(block, steps[i]);
  }
}

function prepared(block) {
  block.steps = block.steps || stepsOf(block);
  block.growing = block.growing || growth(block.steps);
  return block.steps;
}

// --- Drawing

const kCell = 8;
const square = (array, cell) => {
  const row = Math.floor(cell / array.columns), column = cell % array.columns;
  return `M${column * kCell} ${array.tops[row]}h7v7h-7z`;
};

function drawArrays(now) {
  for (const array of Object.values(trace.arrays)) {
    const paths = {read: "", flying: "", written: "", grown1: "", grown2: "", grown3: "", load: "", store: ""};
    array.state.forEach((state, cell) => {
      const kind = ["", "read", "flying", "written"][state];
      if (kind) paths[kind] += square(array, cell);
      else if (array.grown[cell] > 0) paths["grown" + Math.min(3, Math.ceil(3 * array.grown[cell]))] += square(array, cell);
    });
    array.now = paths;
  }
  for (const step of now) {
    const array = trace.arrays[step.array], kind = step.op === "load" || (step.op === "async" && step.space === "global") ? "load" : "store";
    for (const [cell] of cellsOf(step)) array.now[kind] += square(array, cell);
  }
  for (const [name, array] of Object.entries(trace.arrays)) {
    for (const [kind, path] of Object.entries(array.now)) {
      byId(`array-${array.number}`).querySelector("." + kind).setAttribute("d", path);
    }
  }
}

const barriers = number => number === 1 ? "1 barrier" : `${number} barriers`;
const kWidth = 1000;

// Where the timeline has what: a place for each interval, as wide as its longest warp is busy.
function layTimeline() {
  const longest = new Array(block.intervals.length).fill(1), warps = Math.max(...steps.map(step => step.warp)) + 1;
  for (const step of steps) longest[step.interval] = Math.max(longest[step.interval], step.index + 1);
  const sum = longest.reduce((a, b) => a + b, 0), high = warps > 12 ? 5 : 10;
  let at = 0;
  const from = longest.map(length => { const x = at; at += length / sum * kWidth; return x; });
  const xOf = step => from[step.interval] + (step.index + 0.5) / sum * kWidth;
  const copies = new Map();  // "issued landed" -> bytes
  for (const step of steps) {
    if (step.op !== "async" || step.space !== "shared") continue;
    const landing = block.landings.find(([when, name, byte, bytes]) =>
      when >= step.interval && name === step.array && byte <= step.lanes[0][1] && step.lanes[0][1] < byte + bytes);
    const key = `${step.interval} ${landing ? landing[0] : block.intervals.length - 1}`;
    copies.set(key, (copies.get(key) || 0) + step.lanes.length * step.width);
  }
  return {from, warps, high, xOf, copies: [...copies]};
}

function drawTimeline() {
  const {from, warps, high, xOf, copies} = block.time, below = warps * high + 4;
  const ticks = {load: "", store: "", async: "", atomic: ""}, tick = Math.max(0.5, Math.min(4, 0.7 * kWidth / steps.length * warps));
  for (const step of steps) ticks[step.op] += `M${(xOf(step) - tick / 2).toFixed(1)} ${step.warp * high}h${tick.toFixed(1)}v${high - 2}h-${tick.toFixed(1)}z`;
  let svg = "";
  for (const [op, path] of Object.entries(ticks)) svg += `<path class="tick-${op}" d="${path}"/>`;
  from.slice(1).forEach(x => { svg += `<path class="barrier" d="M${x.toFixed(1)} 0v${below}"/>`; });
  copies.forEach(([key, bytes], row) => {
    const [issued, landing] = key.split(" ").map(Number), end = from[landing + 1] ?? kWidth;
    svg += `<rect class="copy" x="${from[issued].toFixed(1)}" y="${below + 12 * row}" width="${(end - from[issued]).toFixed(1)}" height="9"><title>${bytes} bytes on their way</title></rect>`;
  });
  svg += `<path id="cursor" d=""/>`;
  const timeline = byId("timeline");
  timeline.setAttribute("viewBox", `0 0 ${kWidth} ${below + 12 * copies.length + 4}`);
  timeline.innerHTML = svg;
}

function draw() {
  const unit = byId("unit").value;
  const now = unit === "block" ? steps : unit === "interval" ? steps.filter(step => step.interval === steps[position].interval) : [steps[position]];
  const last = unit === "block" ? steps.length - 1 : unit === "interval" ? steps.findLastIndex(step => step.interval === steps[position].interval) : position;
  stateAt(last);
  drawArrays(now);
  const step = steps[position], {xOf, warps, high} = block.time;
  byId("cursor").setAttribute("d", `M${xOf(step).toFixed(1)} 0v${warps * high}`);
  for (const line of document.querySelectorAll(".here")) line.classList.remove("here");
  const line = unit === "request" ? byId(`line-${step.file}-${step.number}`) : null;
  if (line) {
    line.classList.add("here");
    const box = line.closest(".source");
    box.scrollTop = line.offsetTop - box.clientHeight / 2;
  }
  const picture = unit === "request" ? requestPicture({...step, begin: (trace.arrays[step.array] || {begins: 0}).begins}) : null;
  byId("request").innerHTML = picture ? `<h2>Where the lanes go</h2>${picture.svg}` : "";
  byId("words").textContent = unit === "block" ? `Block ${block.block} of ${trace.kernels[block.kernel].name}: ${steps.length} requests.`
    : unit === "interval" ? `${barriers(step.interval)} passed: ${now.length} requests up to the next.`
    : `Warp ${step.warp}, line ${step.number}: ${step.op} ${step.op === "load" ? "from" : "to"} ${step.array || step.space + " memory"}, ${step.width} bytes a lane, ${picture.words}. Step ${position + 1} of ${steps.length}; ${barriers(step.interval)} passed.`;
}

// --- Moving

const isStop = index => byId("warp").value === "all" || steps[index].warp === Number(byId("warp").value);

function go(index) {
  position = Math.max(0, Math.min(steps.length - 1, index));
  draw();
}

// One step forwards or backwards; false at the end.
function move(by) {
  const unit = byId("unit").value;
  if (unit === "block") {
    const next = trace.blocks.indexOf(block) + by;
    if (next < 0 || next >= trace.blocks.length) return false;
    byId("block").value = next;
    choose();
    return true;
  }
  let next = position + by;
  const inside = () => next >= 0 && next < steps.length;
  if (unit === "interval") {
    const interval = steps[position].interval;
    while (inside() && steps[next].interval === interval) next += by;
  } else {
    while (inside() && !isStop(next)) next += by;
  }
  if (!inside()) return false;
  go(next);
  return true;
}

function toggle() {
  if (timer !== null) {
    clearInterval(timer);
    timer = null;
  } else {
    timer = setInterval(() => { if (!move(1)) toggle(); }, byId("unit").value === "request" ? 250 : 900);
  }
  byId("play").textContent = timer === null ? "play" : "pause";
}

function choose() {
  block = trace.blocks[Number(byId("block").value)];
  steps = prepared(block);
  block.time = block.time || layTimeline();
  const warps = [...new Set(steps.map(step => step.warp))].sort((a, b) => a - b), chosen = byId("warp").value;
  byId("warp").innerHTML = `<option value="all">all warps</option>` + warps.map(warp => `<option value="${warp}">warp ${warp}</option>`).join("");
  byId("warp").value = warps.includes(Number(chosen)) && chosen !== "" ? chosen : "all";
  drawTimeline();
  go(byId("unit").value === "block" ? steps.length - 1 : 0);
}

function jumpToLine(line) {
  const matches = index => steps[index].file === Number(line.dataset.file) && steps[index].number === Number(line.dataset.number) && isStop(index);
  const all = steps.map((_, index) => index).filter(matches);
  if (all.length === 0) return;
  byId("unit").value = "request";
  go(all.find(index => index > position) ?? all[0]);
}

function start() {
  for (const array of Object.values(trace.arrays)) array.rowAt = new Map(array.rows.map((number, row) => [number, row]));
  byId("block").innerHTML = trace.blocks.map((block, i) =>
    `<option value="${i}">${trace.kernels[block.kernel].name}, block ${block.block}${trace.blocks.some(b => b.launch > 1) ? `, launch ${block.launch}` : ""}</option>`).join("");
  byId("unit").value = trace.unit;
  byId("block").value = trace.begin;
  byId("block").addEventListener("change", choose);
  byId("unit").addEventListener("change", () => go(position));
  byId("warp").addEventListener("change", () => { if (!isStop(position)) move(1) || move(-1); });
  byId("back").addEventListener("click", () => move(-1));
  byId("next").addEventListener("click", () => move(1));
  byId("play").addEventListener("click", toggle);
  byId("timeline").addEventListener("click", event => {
    const box = byId("timeline").getBoundingClientRect(), x = (event.clientX - box.left) / box.width * kWidth;
    const distance = index => Math.abs(block.time.xOf(steps[index]) - x);
    byId("unit").value = byId("unit").value === "block" ? "request" : byId("unit").value;
    go(steps.map((_, index) => index).filter(isStop).reduce((best, index) => distance(index) < distance(best) ? index : best));
  });
  for (const line of document.querySelectorAll("[data-number]")) {
    line.addEventListener("click", () => jumpToLine(line));
    line.addEventListener("keydown", event => { if (event.key === "Enter") jumpToLine(line); });
  }
  document.addEventListener("keydown", event => {
    if (["SELECT", "BUTTON"].includes(event.target.tagName) && event.key === " ") return;
    if (event.target.tagName === "SELECT") return;
    const act = {ArrowRight: () => move(1), ArrowLeft: () => move(-1), Home: () => go(0), End: () => go(steps.length - 1), " ": toggle}[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  byId("player").hidden = false;
  byId("stills").open = false;
  choose();
  // A link to a moment: tiled.html#request-40, gemm_hilbert.html#block-7.
  const moment = location.hash.match(/^#(request|interval|block)-(\d+)$/);
  if (moment) {
    byId("unit").value = moment[1];
    if (moment[1] === "block") byId("block").value = Math.min(Number(moment[2]), trace.blocks.length - 1);
    choose();
    for (let i = 0; moment[1] !== "block" && i < Number(moment[2]); ++i) move(1);
  }
}

start();
