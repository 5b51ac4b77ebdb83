// Guided tours: files of steps, each with a text, what it sets, and until when it plays.
const tours = {
  all: [], tour: null, place: 0, waiting: null,
  fill() {
    this.all = JSON.parse(byId("tours").textContent);
    byId("tour").append(element("option", { value: "", textContent: "none: try it yourself" }),
      ...this.all.map((tour, index) => element("option", { value: String(index), textContent: tour.title })));
    byId("tour").addEventListener("change", () => {
      const index = byId("tour").value;
      if (index === "") this.end(); else this.begin(this.all[Number(index)]);
    });
    byId("guide-next").addEventListener("click", () => this.go(this.place + 1));
    byId("guide-back").addEventListener("click", () => this.begin(this.tour, this.place - 1));
    byId("guide-end").addEventListener("click", () => this.end());
  },
  // Opens a tour at a step: nothing of the tour or step before remains.
  begin(tour, place = 0) {
    Object.assign(this, { tour, place: 0, waiting: null });
    byId("tour").value = String(this.all.indexOf(tour));
    lab.playing = false;
    setSpeed(1);
    ui.attempt(() => openScene(makeScene(tour.scene)));
    // What the steps before did is done without being played.
    for (let step = 0; step < place; step += 1) { this.apply(tour.steps[step]); this.skip(tour.steps[step]); }
    byId("guide").hidden = false; // Before the text, which is not read out while it is hidden.
    this.go(place);
  },
  go(place) {
    if (!this.tour) return;
    if (place >= this.tour.steps.length) { this.end(); return; }
    if (this.waiting !== null) this.skip(this.tour.steps[this.place]);
    this.place = place;
    const step = this.tour.steps[place];
    const parts = step.text.split("`");
    byId("guide-text").replaceChildren(...parts.map((part, place) => place % 2 ? element("code", { textContent: part }) : part));
    byId("guide-place").textContent = `${place + 1} of ${this.tour.steps.length}`;
    byId("guide-back").disabled = place === 0;
    byId("guide-next").textContent = place + 1 === this.tour.steps.length ? "Done" : "Next";
    this.apply(step);
    this.waiting = step.until ?? null;
    if (this.waiting !== null && this.mayPlay) play();
  },
  // Where motion is not wanted, a page does not begin to play by itself.
  mayPlay: true,
  welcome() {
    this.mayPlay = !still.matches;
    this.begin(this.all[0]);
    this.mayPlay = true;
  },
  apply(step) {
    ui.attempt(() => {
      for (const [number, queue] of Object.entries(step.queue ?? {})) {
        const { discipline, ...params } = typeof queue === "string" ? { discipline: queue } : queue;
        setQueue("ab".indexOf(number), discipline, params);
      }
      for (const key of ["rate", "rtt", "buffer"]) if (step[key]) setPath(key, step[key]);
      for (const flow of step.add ?? []) addFlow(flow.kind, flow);
      for (const name of step.stop ?? []) {
        const flows = [...lab.scene.flows, ...lab.scene.later];
        const flow = flows.find((each) => each.name === name);
        if (!flow) throw new Error(`the tour stops ${name}, which is not there`);
        stopFlow(flow);
      }
      if (step.speed) setSpeed(step.speed);
    });
  },
  skip(step) { if (step.until && lab.time < step.until) { goTo(step.until); this.waiting = null; } },
  until() { return this.waiting !== null && this.waiting > lab.time ? this.waiting : null; },
  arrived() { this.waiting = null; pause(); this.offerNext(); },
  // Who is typing keeps the focus.
  offerNext() { if (!document.activeElement.matches("input, select, textarea")) byId("guide-next").focus({ preventScroll: true }); },
  end() {
    if (byId("guide").contains(document.activeElement)) byId("play").focus();
    Object.assign(this, { tour: null, waiting: null });
    byId("guide").hidden = true;
    byId("tour").value = "";
  },
};
