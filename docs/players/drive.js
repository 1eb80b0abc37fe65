// Uses a page's player as a reader does, by clicks, choices and keys, and writes what went wrong into the page.
// tools/drive_players.py puts it behind player.js, whose names it shares.

const failures = [];
const expect = (what, found, right) => {
  if (JSON.stringify(found) !== JSON.stringify(right)) failures.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(right)}`);
};
const press = key => document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const select = (id, value) => { byId(id).value = value; byId(id).dispatchEvent(new Event("change")); };
const wait = milliseconds => new Promise(done => setTimeout(done, milliseconds));
const drawn = kind => [...document.querySelectorAll(`.arrays .${kind}`)].map(path => path.getAttribute("d")).join("");

function steps_and_keys() {
  select("unit", "request");
  press("Home");
  expect("the first step", position, 0);
  byId("next").click();
  expect("the button step", position, 1);
  expect("its words", byId("words").textContent.includes(`Step 2 of ${steps.length}`), true);
  byId("back").click();
  expect("the button back", position, 0);
  byId("back").click();
  expect("back at the beginning", position, 0);
  press("ArrowRight");
  press("ArrowRight");
  press("ArrowLeft");
  expect("the arrows", position, 1);
  expect("the cells of a request are shown", drawn("load") + drawn("store") !== "" || !trace.arrays[steps[1].array], true);
  expect("the line of a request", document.querySelectorAll(".here").length, byId(`line-${steps[1].file}-${steps[1].number}`) ? 1 : 0);
  press("End");
  expect("the key end", position, steps.length - 1);
  byId("next").click();
  expect("a step at the end", position, steps.length - 1);
}

// At the end, the script shows as written what the still pictures, which another program drew, say.
function end_is_that_of_the_stills() {
  select("unit", "request");
  select("block", String(trace.begin));
  press("End");
  const last = [...document.querySelectorAll("#stills .frames")].pop();
  const said = {}, shown = {};
  for (const svg of last.querySelectorAll("svg")) {
    const [, name, written] = svg.getAttribute("aria-label").match(/^(.*): \d+ elements read, (\d+) written$/);
    if (trace.arrays[name].rows.length * trace.arrays[name].columns >= Number(written) && Number(written)) said[name] = Number(written);
  }
  for (const [name, array] of Object.entries(trace.arrays)) {
    const written = array.state.filter(state => state === kWritten || state === kOnItsWay).length;
    if (written) shown[name] = written;
  }
  const end = steps[steps.length - 1].interval;
  if (block.landings.length && block.landings.every(([when]) => when < end)) {
    const flying = Object.values(trace.arrays).some(array => array.state.includes(kOnItsWay));
    expect("a copy that has arrived is on its way", flying, false);
  }
  expect("what is written at the end", Object.entries(shown).sort(), Object.entries(said).sort());
}

function warps_and_blocks() {
  select("unit", "request");
  const warps = [...byId("warp").options].map(option => option.value);
  expect("all warps can be chosen", warps.length, new Set(steps.map(step => step.warp)).size + 1);
  const chosen = warps[warps.length - 1];
  press("Home");
  select("warp", chosen);
  const seen = new Set();
  for (let i = 0; i < 5; ++i) {
    seen.add(steps[position].warp);
    press("ArrowRight");
  }
  expect("steps of one warp", [...seen].map(String), [chosen]);
  select("warp", "all");
  expect("all blocks can be chosen", byId("block").options.length, trace.blocks.length);
  const other = trace.blocks.length - 1;
  select("block", String(other));
  expect("a block that was chosen", trace.blocks.indexOf(block), other);
  expect("it begins at its beginning", position, 0);
  select("unit", "block");
  press("Home");
  select("block", "0");
  press("ArrowRight");
  expect("a step of a block", trace.blocks.indexOf(block), Math.min(1, other));
  expect("its words", byId("words").textContent.startsWith(`Block ${block.block} of `), true);
}

function barriers_and_jumps() {
  select("unit", "request");
  select("block", String(trace.begin));
  press("Home");
  select("unit", "interval");
  const intervals = new Set(steps.map(step => step.interval));
  let passed = 1;
  while (passed <= intervals.size && move(1)) ++passed;
  expect("steps from barrier to barrier", passed, intervals.size);
  select("unit", "request");
  press("Home");
  const lines = [...document.querySelectorAll("[data-number]")];
  const run = lines.filter(line => steps.some(step => step.file === Number(line.dataset.file) && step.number === Number(line.dataset.number)));
  const line = run[run.length - 1];
  line.click();
  expect("a jump to a line", [steps[position].file, steps[position].number], [Number(line.dataset.file), Number(line.dataset.number)]);
  expect("the line that is marked", document.querySelector(".here"), line);
  run[0].dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
  expect("a jump by the keyboard", steps[position].number, Number(run[0].dataset.number));
  const box = byId("timeline").getBoundingClientRect();
  const click = x => byId("timeline").dispatchEvent(new MouseEvent("click", {clientX: box.left + x * box.width, clientY: box.top + 2, bubbles: true}));
  click(0.999);
  expect("a click at the end of the timeline", steps[position].interval, Math.max(...intervals));
  click(0.001);
  expect("a click at its beginning", steps[position].interval, Math.min(...intervals));
}

async function plays() {
  select("unit", "request");
  press("Home");
  byId("play").click();
  expect("the button while it plays", byId("play").textContent, "pause");
  await wait(1100);
  press(" ");
  expect("the button when it rests", byId("play").textContent, "play");
  expect("it has played", position, Math.min(4, steps.length - 1));
  const rests = position;
  await wait(600);
  expect("it rests", position, rests);
}

async function drive() {
  const moment = location.hash.match(/^#request-(\d+)$/);
  if (moment) expect("a link to a moment", position, Math.min(Number(moment[1]), steps.length - 1));
  expect("the player is there", byId("player").hidden, false);
  expect("the still pictures are folded", byId("stills").open, false);
  expect("nothing is wider than the window", document.documentElement.scrollWidth <= document.documentElement.clientWidth, true);
  steps_and_keys();
  end_is_that_of_the_stills();
  warps_and_blocks();
  barriers_and_jumps();
  await plays();
}

addEventListener("error", event => failures.push(event.message));
drive().catch(error => failures.push(String(error))).finally(() => {
  const told = document.createElement("pre");
  told.id = "driven";
  told.textContent = JSON.stringify(failures);
  document.body.append(told);
});
