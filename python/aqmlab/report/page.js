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
    legend: {
      labelColor: ink, labelFontSize: 13, labelLimit: 320, orient: "bottom", direction: "horizontal",
      columns: window.innerWidth < 700 ? 1 : 3, symbolOpacity: 1,
      columnPadding: 20, rowPadding: 4, offset: 14,
    },
  };
}

function draw() {
  for (const [id, spec] of Object.entries(specs)) {
    // Charts of several panels have sizes of their own.
    const whole = "concat" in spec ? spec
      : { ...spec, width: "container", height: 430, autosize: { type: "fit", contains: "padding", resize: true } };
    vegaEmbed(document.getElementById(id), whole, { actions: false, renderer: "svg", config: config() });
  }
}

dark.addEventListener("change", draw);
draw();
