// Where the lanes of one request go: for `./ladder inspect --html`, and for docs/players.

// request: space ("global", "shared" or "constant"), width in bytes a lane, begin (the array's
// address, modulo 128), lanes as [lane, byte of the array]. Returns an SVG, and the same in words:
// of shared memory rows of the 32 banks, of other memory sectors of 32 bytes.
function requestPicture(request) {
  const isShared = request.space === "shared", unit = isShared ? 128 : 32, words = unit / 4;
  const touched = new Map();  // unit -> for each of its words, the lanes
  for (const [lane, byte] of request.lanes) {
    for (let at = byte + request.begin; at < byte + request.begin + request.width; at += 4) {
      const number = Math.floor(at / unit);
      if (!touched.has(number)) touched.set(number, Array.from({length: words}, () => []));
      touched.get(number)[Math.floor((at - number * unit) / 4)].push(lane);
    }
  }
  const numbers = [...touched.keys()].sort((a, b) => a - b), shown = numbers.slice(0, 32);
  const cell = isShared ? 24 : 40, left = 130, height = 22 * shown.length + 26;
  let svg = `<svg viewBox="0 0 ${left + words * cell + 10} ${height}" role="img" aria-label="lanes and the words they ask for">`;
  for (let word = 0; word < words; ++word)
    svg += `<text x="${left + word * cell + 3}" y="14">${isShared ? word : "+" + 4 * word}</text>`;
  shown.forEach((number, row) => {
    const y = 20 + 22 * row, byte = number * unit - request.begin;
    svg += `<text x="0" y="${y + 15}">${isShared ? "byte" : "sector at byte"} ${byte}</text>`;
    touched.get(number).forEach((lanes, word) => {
      const x = left + word * cell, fill = lanes.length ? "hsl(210 70% 55% / .45)" : "none";
      svg += `<rect x="${x}" y="${y}" width="${cell - 2}" height="19" fill="${fill}" stroke="currentColor" stroke-opacity=".25"><title>lanes ${lanes.join(", ") || "none"}</title></rect>`;
      if (lanes.length)
        svg += `<text x="${x + 3}" y="${y + 14}">${lanes.length > 2 ? lanes[0] + "…" : [...new Set(lanes)].join(" ")}</text>`;
    });
  });
  const more = numbers.length > shown.length ? `, ${numbers.length - shown.length} more not drawn` : "";
  const ending = numbers.length === 1 ? "" : "s";
  const what = isShared ? `row${ending} of 32 banks` : `sector${ending} of 32 bytes`;
  return {svg: svg + "</svg>", words: `${request.lanes.length} lanes; ${numbers.length} ${what}${more}`};
}
