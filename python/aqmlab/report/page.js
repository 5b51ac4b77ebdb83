const specs = JSON.parse(document.getElementById("specs").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function config() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = colour("--ink"), soft = colour("--soft"), line = colour("--line");
  return {
    background: "transparent",
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    title: { color: ink },
    axis: {
      labelColor: soft, titleColor: ink, gridColor: line, domainColor: soft, tickColor: soft,
      titleFontWeight: "normal", labelFontSize: 12.5, titleFontSize: 13.5, titlePadding: 10,
    },
    axisQuantitative: { labelOverlap: true, labelSeparation: 6 },
    legend: {
      labelColor: ink, labelFontSize: 13, labelLimit: 320, orient: "bottom", direction: "horizontal",
      columns: window.innerWidth < 700 ? 1 : 3, symbolOpacity: 1,
      columnPadding: 20, rowPadding: 4, offset: 14,
    },
  };
}

// Charts of several panels have sizes of their own: no wider than the page, and as many side by
// side as there is room for.
function fitted(spec, room) {
  const axis = 90;
  const narrow = (panel) => ({ ...panel, width: Math.min(panel.width, room - axis) });
  if ("vconcat" in spec) return { ...spec, vconcat: spec.vconcat.map(narrow) };
  if ("concat" in spec) {
    const panels = spec.concat.map(narrow);
    const side = Math.max(1, Math.floor(room / (panels[0].width + axis)));
    return { ...spec, concat: panels, columns: Math.min(spec.columns, side) };
  }
  const size = { type: "fit", contains: "padding", resize: true };
  return { ...spec, width: "container", height: 430, autosize: size };
}

function draw() {
  for (const [id, spec] of Object.entries(specs)) {
    const place = document.getElementById(id);
    const whole = fitted(spec, place.clientWidth);
    vegaEmbed(place, whole, { actions: false, renderer: "svg", config: config() });
  }
}

dark.addEventListener("change", draw);
draw();
