// Values of a chart under the pointer, and by the arrow keys.
for (const area of document.querySelectorAll("[data-v]")) {
  const values = area.dataset.v.split("\n"), out = area.closest("figure").querySelector("output");
  const line = area.appendChild(document.createElement("i"));
  let at = -1;
  const show = (n) => {
    at = Math.max(0, Math.min(values.length - 1, n));
    line.style.left = ((at + 0.5) / values.length) * 100 + "%";
    out.textContent = values[at];
  };
  area.onpointermove = area.onpointerdown = (event) => {
    const box = area.getBoundingClientRect();
    show(Math.floor(((event.clientX - box.left) / box.width) * values.length));
  };
  area.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (by) { show(at + by); event.preventDefault(); }
  };
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));
