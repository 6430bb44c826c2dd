// The page's own script: the theme, and the graph as a picture. No library. Texts are written as texts, never as markup.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const made = (tag, text = "", attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // Light and dark

  const root = document.documentElement, toggle = byId("theme");
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => { toggle.textContent = isDark() ? "Light" : "Dark"; };
  toggle.hidden = false;
  nameTheme();
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("trueport-theme", root.dataset.theme); } catch { /* a file without storage */ }
    nameTheme();
  });

  const data = JSON.parse(byId("data").textContent);
  const ready = () => {
    for (const list of document.querySelectorAll(".source")) {   // begin at the first line that matters
      const first = list.querySelector("li.found") ?? list.querySelector("button")?.closest("li");
      if (first) list.scrollTop = first.offsetTop - 60;
    }
    root.dataset.ready = String(Math.round(performance.now()));
  };
  if (!data.graph) { ready(); return; }

  // Boxes: the graph as a tree. A module, the bodies of an If, and long runs of nodes are boxes that fold.

  const MOST = 40;        // boxes in one box; more of them are put together, by line, then in runs
  const AT_FIRST = 36;    // boxes that the reader meets
  const boxes = [], wires = [], edges = [];

  class Box {
    constructor(kind, label, parent, node = null) {
      Object.assign(this, { kind, label, parent, node, id: boxes.length, children: [], links: new Map(), folded: true });
      this.count = 0;          // nodes inside, itself included
      this.x = this.y = this.w = this.h = 0;
      boxes.push(this);
      if (parent) parent.children.push(this);
    }
    get folds() { return this.children.length > 0; }
    get open() { return this.folds && !this.folded; }
    inside(other) { for (let box = this; box; box = box.parent) if (box === other) return true; return false; }
  }

  class Scope {              // which box gives a value, as seen from a graph and the graphs around it
    constructor(outer) { this.outer = outer; this.own = new Map(); this.types = new Map(); }
    find(name) { return this.own.get(name) ?? this.outer?.find(name); }
    type(name) { return this.types.get(name) ?? this.outer?.type(name) ?? ""; }
  }

  function build(graph, parent, outer, prefix) {
    const scope = new Scope(outer), modules = new Map();
    for (const [name, text] of Object.entries(graph.types)) scope.types.set(name, text);
    const read = new Set(graph.outputs);
    const collect = (nodes) => { for (const node of nodes) {
      for (const name of node.in ?? []) read.add(name);
      for (const body of node.bodies ?? []) { body.outputs.forEach((name) => read.add(name)); collect(body.nodes); }
    } };
    collect(graph.nodes);
    const moduleOf = (path) => {
      if (!path) return parent;
      if (!modules.has(path)) {
        const cut = path.lastIndexOf(".");
        const above = moduleOf(cut < 0 ? "" : path.slice(0, cut));
        const box = new Box("module", path.slice(cut + 1), above);
        box.path = prefix ? `${prefix}.${path}` : path;
        modules.set(path, box);
      }
      return modules.get(path);
    };
    for (const name of graph.inputs) {
      if (parent.parent && !read.has(name)) continue;   // a loop's counter that nobody asks for
      const port = new Box("port", name, parent);
      port.gives = [name];
      port.scope = scope;
      scope.own.set(name, port);
    }
    for (const node of graph.nodes) {
      if (node.op === "Constant" && !graph.outputs.includes(node.out[0])) {
        scope.own.set(node.out[0], { held: node.held ?? "" });
        continue;
      }
      const path = node.mod ?? "";
      const inner = prefix && (path === prefix || path.startsWith(`${prefix}.`)) ? path.slice(prefix.length + 1) : path;
      const box = new Box(node.bodies ? "control" : "node", node.op, moduleOf(inner), node);
      box.scope = scope;
      box.gives = node.out;
      box.count = 1;
      for (const name of node.in ?? []) {
        const from = scope.find(name);
        if (from instanceof Box) edges.push([from, box, name]);
      }
      for (const body of node.bodies ?? []) {
        const held = new Box("body", body.name.replace(/_\d+$/, "").replace(/_/g, " "), box);
        held.folded = false;
        build(body, held, scope, path);
      }
      for (const name of node.out) scope.own.set(name, box);
    }
    for (const name of graph.outputs) {
      const from = scope.find(name);
      const port = new Box("port", name, parent);
      port.takes = [name];
      port.scope = scope;
      if (from instanceof Box) edges.push([from, port, name]);
    }
  }

  const main = new Box("graph", "", null);
  main.folded = false;
  build(data.graph, main, null, "");

  const lineOf = (box) => (box.node?.at ? `${data.files[box.node.at[0]]}:${box.node.at[1]}` : box.node?.far ?? "");

  function merge(box) {      // a module with nothing but one module in it is one box: layers.0
    for (const child of [...box.children]) merge(child);
    for (const child of box.children) {
      while (child.kind === "module" && child.children.length === 1 && child.children[0].kind === "module") {
        const only = child.children[0];
        child.label = `${child.label}.${only.label}`;
        child.path = only.path;
        child.children = only.children;
        for (const each of child.children) each.parent = child;
        only.gone = true;
      }
    }
  }

  function together(children, parent, label) {
    const box = new Box("group", label, null);
    box.parent = parent;
    box.children = children;
    for (const child of children) child.parent = box;
    return box;
  }

  function divide(box) {     // no box holds more than MOST others, whatever the model looks like
    for (const child of [...box.children]) divide(child);
    if (box.children.length <= MOST) return;
    const runs = [];
    for (const child of box.children) {
      const line = child.kind === "node" ? lineOf(child) : "", last = runs.at(-1);
      if (line && last?.line === line) last.children.push(child);
      else runs.push({ line, children: [child] });
    }
    box.children = runs.flatMap(({ line, children }) => {
      if (children.length < 2) return children;
      const group = together(children, box, line);
      divide(group);
      return [group];
    });
    while (box.children.length > MOST) {
      const step = Math.min(MOST, Math.ceil(box.children.length / MOST)), all = box.children;
      box.children = [];
      for (let start = 0; start < all.length; start += step) {
        const part = all.slice(start, start + step);
        box.children.push(part.length > 1 ? together(part, box, "") : part[0]);
      }
    }
  }

  function tally(box) {
    for (const child of box.children) box.count += tally(child);
    if (box.kind === "group" && !box.label) {
      const lines = [...new Set(box.children.map((child) => child.label))];
      box.label = lines.length > 1 ? `${lines[0]} … ${lines.at(-1)}` : `${lines[0]} × ${box.children.length}`;
    }
    return box.count;
  }

  merge(main);
  divide(main);
  tally(main);

  const depth = (box) => { let steps = 0; for (let at = box.parent; at; at = at.parent) steps++; return steps; };
  for (const edge of edges) {   // each wire belongs to the innermost box that holds both of its ends
    let [a, b] = edge, down = depth(a), up = depth(b);
    while (down > up) { a = a.parent; down--; }
    while (up > down) { b = b.parent; up--; }
    if (a === b) continue;
    while (a.parent !== b.parent) { a = a.parent; b = b.parent; }
    const key = `${a.id},${b.id}`;
    if (!a.parent.links.has(key)) a.parent.links.set(key, { a, b, edges: [], bends: [] });
    a.parent.links.get(key).edges.push(edge);
  }

  function openSome() {
    let shown = main.children.length;
    const waiting = [...main.children];
    while (waiting.length) {
      const box = waiting.shift();
      if (!box.folds) continue;
      const more = box.kind === "control"
        ? box.children.reduce((sum, body) => sum + 1 + body.children.length, 0) : box.children.length;
      if (shown + more > AT_FIRST) continue;
      box.folded = false;
      shown += more;
      waiting.push(...box.children);
    }
  }

  // Layout: layers from top to bottom, box by box; a box that is open is as large as what it holds.

  const PAD = 14, HEAD = 24, GAP = 22, BETWEEN = 34, LETTER = 7.3;
  const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

  function texts(box) {
    if (box.kind === "port") return [cut(box.label, 30), cut(typeOf(box), 32)];
    if (box.node) return [cut(box.label, 30), cut(typeOf(box), 32)];
    return [cut(box.label, 34), `${box.count} node${box.count === 1 ? "" : "s"}`];
  }
  function typeOf(box) {
    const name = (box.gives ?? box.takes ?? [])[0];
    return name === undefined ? "" : box.scope.type(name);
  }

  function measure(box) {
    if (!box.open) {
      const [first, second] = box.texts ??= texts(box);
      box.w = Math.max(72, Math.ceil(Math.max((first.length + (box.folds ? 2 : 0)) * LETTER, second.length * 6.4)) + 22);
      box.h = second ? 40 : 28;
      return;
    }
    for (const child of box.children) measure(child);
    arrange(box);
  }

  function arrange(box) {
    const kids = box.children, rank = new Map(), order = new Map(kids.map((kid, index) => [kid, index]));
    const forward = [...box.links.values()].filter(({ a, b }) => order.get(a) < order.get(b));
    const into = new Map(kids.map((kid) => [kid, []])), outOf = new Map(kids.map((kid) => [kid, []]));
    for (const link of box.links.values()) link.bends = [];
    for (const link of forward) { into.get(link.b).push(link); outOf.get(link.a).push(link); }
    for (const kid of kids) rank.set(kid, into.get(kid).reduce((most, { a }) => Math.max(most, rank.get(a) + 1), 0));
    for (const kid of [...kids].reverse()) {   // what depends on nothing stands near those who read it
      const after = outOf.get(kid);
      if (!into.get(kid).length && after.length && kid.kind !== "port")
        rank.set(kid, Math.max(0, Math.min(...after.map(({ b }) => rank.get(b))) - 1));
    }
    const layers = [];
    const put = (item, at) => { (layers[at] ??= []).push(item); };
    const items = new Map(kids.map((kid) => [kid, { w: kid.w, h: kid.h, kid, up: [], down: [] }]));
    for (const kid of kids) put(items.get(kid), rank.get(kid));
    for (const link of forward) {
      let last = items.get(link.a);
      const end = items.get(link.b);
      for (let at = rank.get(link.a) + 1; at < rank.get(link.b); at++) {
        const bend = { w: 6, h: 0, link, up: [last], down: [] };
        last.down.push(bend);
        put(bend, at);
        last = bend;
      }
      last.down.push(end);
      end.up.push(last);
    }
    const full = layers.filter(Boolean);
    for (let sweep = 0; sweep < 6; sweep++) {
      const down = sweep % 2 === 0;
      full.forEach((layer) => layer.forEach((item, index) => { item.at = index; }));
      for (let i = 1; i < full.length; i++) {
        const layer = down ? full[i] : full[full.length - 1 - i];
        for (const item of layer) {
          const near = down ? item.up : item.down;
          item.key = near.length ? near.reduce((sum, other) => sum + other.at, 0) / near.length : item.at;
        }
        layer.sort((a, b) => a.key - b.key || a.at - b.at);
        layer.forEach((item, index) => { item.at = index; });
      }
    }
    for (const layer of full) {
      let x = 0;
      for (const item of layer) { item.x = x + item.w / 2; x += item.w + GAP; }
    }
    const apart = (a, b) => (a.w + b.w) / 2 + (a.kid && b.kid ? GAP : GAP / 2);
    for (let sweep = 0; sweep < 10; sweep++) {
      const down = sweep % 2 === 0;
      for (let i = 0; i < full.length; i++) {
        const layer = down ? full[i] : full[full.length - 1 - i];
        const wish = layer.map((item) => {
          const near = down ? item.up : item.down;
          return near.length ? near.reduce((sum, other) => sum + other.x, 0) / near.length : item.x;
        });
        const right = [...wish], left = [...wish];
        for (let j = 1; j < layer.length; j++) right[j] = Math.max(right[j], right[j - 1] + apart(layer[j - 1], layer[j]));
        for (let j = layer.length - 2; j >= 0; j--) left[j] = Math.min(left[j], left[j + 1] - apart(layer[j], layer[j + 1]));
        layer.forEach((item, j) => { item.x = (left[j] + right[j]) / 2; });
      }
    }
    const first = Math.min(...full.flatMap((layer) => layer.map((item) => item.x - item.w / 2)));
    const head = box === main ? 0 : HEAD;
    let y = PAD + head, widest = 0;
    for (const layer of full) {
      const tall = Math.max(...layer.map((item) => item.h));
      for (const item of layer) {
        item.x += PAD - first;
        widest = Math.max(widest, item.x + item.w / 2);
        if (item.kid) Object.assign(item.kid, { x: item.x - item.w / 2, y });
        else item.link.bends.push([item.x, y], [item.x, y + tall]);
      }
      y += tall + BETWEEN;
    }
    const title = box === main ? 0 : (box.label.length + 8) * LETTER + 30;
    box.w = Math.max(widest + PAD, title);
    box.h = y - BETWEEN + PAD;
  }

  // What is shown: boxes with their places on the canvas, and the wires between those that can be seen

  let shown = [], selected = null, lit = new Set();

  function settle() {
    measure(main);
    shown = [];
    wires.length = 0;
    const place = (box, x, y) => {
      box.left = x; box.top = y;
      if (box !== main) shown.push(box);
      if (box.open) for (const child of box.children) place(child, x + child.x, y + child.y);
    };
    place(main, 0, 0);
    const seen = (box) => {       // the innermost box that stands for it
      let found = box;
      for (let at = box.parent; at; at = at.parent) if (at !== main && !at.open) found = at;
      return found;
    };
    for (const box of [main, ...shown.filter((each) => each.open)]) {
      for (const link of box.links.values()) {
        const pairs = new Set();
        for (const [from, to] of link.edges) {
          const a = seen(from), b = seen(to), key = `${a.id},${b.id}`;
          if (pairs.has(key)) continue;
          pairs.add(key);
          wires.push(route(a, b, link.bends.map(([x, y]) => [box.left + x, box.top + y])));
        }
      }
    }
  }

  function route(a, b, bends) {
    const points = [[a.left + a.w / 2, a.top + a.h], ...bends, [b.left + b.w / 2, b.top]];
    let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    points.forEach(([x, y], index) => {
      box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
      if (!index) return;
      const [px, py] = points[index - 1], middle = ((py + y) / 2).toFixed(1);
      path += `C${px.toFixed(1)} ${middle} ${x.toFixed(1)} ${middle} ${x.toFixed(1)} ${y.toFixed(1)}`;
    });
    return { a, b, path, box };
  }

  // Drawing: only what lies in the window

  const canvas = byId("canvas"), side = byId("side");
  const svg = (tag, attributes = {}) => {
    const element = document.createElementNS(canvas.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const world = svg("g"), lower = svg("g"), middle = svg("g"), upper = svg("g");
  world.append(lower, middle, upper);   // open boxes, wires, closed boxes
  canvas.append(world);
  const view = { x: 0, y: 0, scale: 1 };
  const drawn = new Map();

  function draw() {
    world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    canvas.classList.toggle("far", view.scale < 0.3);
    const { width, height } = size, margin = 150 / view.scale;
    const left = -view.x / view.scale - margin, top = -view.y / view.scale - margin;
    const right = left + width / view.scale + 2 * margin, bottom = top + height / view.scale + 2 * margin;
    const wanted = new Set();
    const want = (item, x0, y0, x1, y1, make, layer) => {
      if (x1 < left || x0 > right || y1 < top || y0 > bottom) return;
      wanted.add(item);
      if (!drawn.has(item)) {
        const element = make(item);
        drawn.set(item, element);
        layer.append(element);
      }
    };
    for (const box of shown)
      want(box, box.left, box.top, box.left + box.w, box.top + box.h, drawBox, box.open ? lower : upper);
    for (const wire of wires) want(wire, ...wire.box, drawWire, middle);
    for (const [item, element] of drawn) if (!wanted.has(item)) { element.remove(); drawn.delete(item); }
  }

  function drawBox(box) {
    const group = svg("g", { id: `box-${box.id}`, "data-box": box.id, "aria-label": spoken(box) });
    group.setAttribute("class", classes(box));
    group.append(svg("rect", { x: box.left, y: box.top, width: box.w, height: box.h, rx: box.kind === "port" ? 14 : 6 }));
    const write = (text, x, y, anchor, small) => {
      const element = svg("text", { x, y, "text-anchor": anchor });
      if (small) element.setAttribute("class", "small");
      element.textContent = text;
      group.append(element);
    };
    if (box.open) write(`▾ ${cut(box.label, 60)}`, box.left + 8, box.top + 16, "start");
    else {
      const [first, second] = box.texts, middleX = box.left + box.w / 2;
      write(box.folds ? `▸ ${first}` : first, middleX, box.top + (second ? 17 : 18), "middle");
      if (second) write(second, middleX, box.top + 32, "middle", true);
    }
    return group;
  }
  const classes = (box) =>
    `box ${box.kind}${box.open ? " open" : ""}${box === selected ? " selected" : ""}${lit.has(box) ? " lit" : ""}`;
  const spoken = (box) => {
    const what = box.kind === "port" ? (box.gives ? "input" : "output") : box.kind === "node" ? "node" : box.kind;
    return `${what} ${box.label}${box.folds ? `, ${box.count} nodes, ${box.open ? "unfolded" : "folded"}` : ""}`;
  };
  function drawWire(wire) {
    const near = selected && (wire.a === selected || wire.b === selected);
    return svg("path", { d: wire.path, class: near ? "wire near" : "wire" });
  }
  function forget() { for (const element of drawn.values()) element.remove(); drawn.clear(); }
  function redraw() { forget(); draw(); }

  let size = canvas.getBoundingClientRect(), asked = false;
  function later() { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } }
  new ResizeObserver(() => { size = canvas.getBoundingClientRect(); later(); }).observe(canvas);

  function fit() {
    const whole = Math.min((size.width - 20) / main.w, (size.height - 20) / main.h, 1.1);
    view.scale = Math.max(whole, 0.5);         // letters must stay readable: of a large graph, its beginning
    const start = main.children[0], middleX = start.left + start.w / 2;
    view.x = main.w * view.scale > size.width ? size.width / 2 - middleX * view.scale : (size.width - main.w * view.scale) / 2;
    view.y = Math.max(10, (size.height - main.h * view.scale) / 2);
    draw();
  }
  function zoom(factor, x = size.width / 2, y = size.height / 2) {
    const scale = Math.min(Math.max(view.scale * factor, 0.03), 4), by = scale / view.scale;
    view.x = x - (x - view.x) * by;
    view.y = y - (y - view.y) * by;
    view.scale = scale;
    later();
  }
  function show(box) {         // bring it into the window, if it is not there
    const x = (box.left + Math.min(box.w, 300) / 2) * view.scale + view.x, y = (box.top + Math.min(box.h, 60) / 2) * view.scale + view.y;
    if (view.scale < 0.4) view.scale = 0.8;
    else if (x > 60 && x < size.width - 60 && y > 40 && y < size.height - 40) return;
    view.x = size.width / 2 - (box.left + box.w / 2) * view.scale;
    view.y = size.height / 2 - (box.top + Math.min(box.h / 2, 60)) * view.scale;
  }

  // Folding, selecting, finding

  function fold(box, folded) {
    const x = box.left, y = box.top;
    box.folded = folded;
    if (selected && selected !== box && folded && selected.inside(box)) selected = box;
    settle();
    view.x += (x - box.left) * view.scale;    // its corner stays where the reader looks
    view.y += (y - box.top) * view.scale;
    redraw();
    describe();
  }
  function foldAll(folded) {
    for (const box of boxes) if (box.folds && box !== main && box.kind !== "body") box.folded = folded;
    if (selected && folded) select(null);
    settle();
    forget();
    fit();
  }
  function reveal(box) {
    let hidden = false;
    for (let at = box.parent; at && at !== main; at = at.parent) if (at.folded) { at.folded = false; hidden = true; }
    if (hidden) settle();
  }
  function select(box, focus = false) {
    const changed = box && (() => { const before = shown; reveal(box); return before !== shown; })();
    selected = box;
    if (box) show(box);
    if (changed) forget();
    redraw();
    describe();
    if (box) canvas.setAttribute("aria-activedescendant", `box-${box.id}`);
    else canvas.removeAttribute("aria-activedescendant");
    if (focus) canvas.focus({ preventScroll: true });
  }

  const leaves = boxes.filter((box) => box.node && !box.gone);
  const ofLine = new Map();
  for (const box of leaves) {
    if (!box.node.at) continue;
    const key = `L${box.node.at[0]}-${box.node.at[1]}`;
    ofLine.set(key, [...(ofLine.get(key) ?? []), box]);
  }
  function light(key) {
    for (const line of document.querySelectorAll(".source li.lit")) line.classList.remove("lit");
    lit = new Set(ofLine.get(key) ?? []);
    byId(key)?.classList.add("lit");
  }
  function toLine(key) {
    light(key);
    redraw();
    const line = byId(key);
    line?.scrollIntoView({ block: "center" });
    (line?.querySelector("button") ?? line?.closest("ol"))?.focus({ preventScroll: true });
  }
  function toNodes(key) {
    light(key);
    const found = ofLine.get(key);
    byId("picture").scrollIntoView({ block: "nearest" });
    select(found[0], true);
    list(`${found.length} node${found.length > 1 ? "s" : ""} of this line`, found);
  }
  for (const [key, found] of ofLine) {
    const mark = byId(key)?.children[1];
    if (!mark) continue;
    const many = `${found.length} node${found.length > 1 ? "s" : ""}`;
    const button = made("button", String(found.length), { type: "button", title: `${many} of the graph`, "aria-label": `line ${key.split("-")[1]}: show its ${many} in the graph` });
    button.addEventListener("click", () => toNodes(key));
    mark.replaceWith(button);
  }

  const link = (text, act) => {
    const button = made("button", text, { type: "button", class: "link mono" });
    button.addEventListener("click", act);
    return button;
  };
  const title = (box) => (box.node ? `${box.label}  ${box.node.name}` : box.label);

  function list(heading, found) {
    side.replaceChildren(made("h3", heading));
    for (const box of found.slice(0, 200)) {
      const more = [box.node?.mod, lineOf(box)].filter(Boolean).join(" · ");
      side.append(link(more ? `${title(box)} — ${more}` : title(box), () => select(box, true)));
    }
    if (found.length > 200) side.append(made("p", `… ${found.length - 200} more`));
  }

  function describe() {
    if (!selected) {
      side.replaceChildren(made("h3", "Nothing selected"),
        made("p", `${leaves.length} nodes without constants. Click a box, or search.`));
      return;
    }
    const box = selected, about = made("dl");
    const say = (term, ...parts) => {
      const kept = parts.filter(Boolean);
      if (kept.length) about.append(made("dt", term), ...kept.map((part) => {
        const line = made("dd");
        line.append(part);
        return line;
      }));
    };
    const mono = (text) => text && made("code", text);
    side.replaceChildren(made("h3", box.kind === "module" ? box.path : box.label));
    if (box.folds) side.append(link(box.open ? "Fold" : "Unfold", () => fold(box, box.open)));
    if (box.kind === "port") say(box.gives ? "input of" : "output of", box.parent === main ? "the model" : box.parent.label);
    if (box.node) {
      say("name", mono(box.node.name));
      say("line", box.node.at ? link(lineOf(box), () => toLine(`L${box.node.at[0]}-${box.node.at[1]}`)) : mono(box.node.far));
      say("module", mono(box.node.mod));
      say("torch", mono(box.node.aten));
      say("reads", ...(box.node.in ?? []).map((name) => {
        if (!name) return mono("(left out)");
        const from = box.scope.find(name), type = box.scope.type(name);
        const text = type ? `${name}: ${type}` : name;
        if (from instanceof Box) return link(text, () => select(from, true));
        return mono(from ? `${name} = ${from.held}` : `${text} (weight)`);
      }));
    } else if (box.folds) say("nodes", mono(String(box.count)));
    for (const name of box.gives ?? []) {
      const readers = edges.filter(([from, , value]) => from === box && value === name).map(([, to]) => to);
      const type = box.scope.type(name);
      say(box.node ? "gives" : "value", mono(type ? `${name}: ${type}` : name));
      say(`${name} is read by`, ...[...new Set(readers)].slice(0, 30).map((to) => link(title(to), () => select(to, true))));
    }
    for (const name of box.takes ?? []) {
      const from = box.scope.find(name);
      say("from", from instanceof Box ? link(title(from), () => select(from, true)) : mono(name));
    }
    side.append(about);
    side.scrollTop = 0;
  }

  const search = byId("search");
  let hits = [], hit = -1;
  const ports = boxes.filter((box) => box.kind === "port"), modules = boxes.filter((box) => box.kind === "module" && !box.gone);
  const haystack = new Map();
  function look() {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    hits = [];
    hit = -1;
    lit = new Set();
    if (words.length) {
      for (const box of [...modules, ...ports, ...leaves]) {
        if (!haystack.has(box)) {
          const parts = [box.label, box.path, box.node?.name, box.node?.mod, box.node?.aten, ...(box.node?.out ?? [])];
          const line = box.node?.at ? `line ${box.node.at[1]} ${lineOf(box)}` : lineOf(box);
          haystack.set(box, [...parts, line].filter(Boolean).join("\n").toLowerCase());
        }
        const text = haystack.get(box);
        if (words.every((word) => text.includes(word))) hits.push(box);
      }
      const meant = (box) => Number(box.label.toLowerCase() !== words.join(" "));   // what is called so comes first
      hits.sort((a, b) => meant(a) - meant(b));
      lit = new Set(hits);
      list(hits.length ? `${hits.length} found` : "Nothing found", hits);
    } else describe();
    redraw();
  }
  search.addEventListener("input", look);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.length) {
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      select(hits[hit]);
      event.preventDefault();
    } else if (event.key === "Escape") { search.value = ""; look(); canvas.focus({ preventScroll: true }); }
  });

  // Pointer and keys

  const boxAt = (target) => { const group = target.closest?.("[data-box]"); return group ? boxes[Number(group.dataset.box)] : null; };
  const pointers = new Map();
  let moved = 0, pressed = null;
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) { moved = 0; pressed = boxAt(event.target); }
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY], [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const far = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
      zoom(far(now) / far(before), (now[0] + other[0]) / 2 - size.left, (now[1] + other[1]) / 2 - canvas.getBoundingClientRect().top);
    }
    pointers.set(event.pointerId, now);
    moved += Math.abs(dx) + Math.abs(dy);
    view.x += dx / pointers.size;
    view.y += dy / pointers.size;
    later();
  });
  const release = (event) => {
    const alone = pointers.size === 1 && pointers.delete(event.pointerId);
    pointers.delete(event.pointerId);
    if (!alone || event.type === "pointercancel" || moved > 6) return;
    canvas.focus({ preventScroll: true });
    if (!pressed) { select(null); return; }
    const again = pressed === selected || pressed.open;
    select(pressed);
    if (again && pressed.folds) fold(pressed, pressed.open);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("dblclick", (event) => event.preventDefault());
  canvas.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey || document.activeElement === canvas)) return;   // else the page scrolls
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });

  function neighbour(key) {
    if (!selected) return shown[0] ?? null;
    const middleOf = (box) => [box.left + box.w / 2, box.top + (box.open ? 12 : box.h / 2)];
    if (key === "ArrowDown" || key === "ArrowUp") {
      const down = key === "ArrowDown";
      const next = wires.filter((wire) => (down ? wire.a : wire.b) === selected).map((wire) => (down ? wire.b : wire.a));
      if (next.length) return next.sort((a, b) => Math.abs(a.left - selected.left) - Math.abs(b.left - selected.left))[0];
      if (selected.open && down) return selected.children[0];
    }
    const [x, y] = middleOf(selected);
    const [ax, ay] = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key];
    let best = null, least = Infinity;
    for (const box of shown) {
      if (box === selected) continue;
      const [bx, by] = middleOf(box), along = (bx - x) * ax + (by - y) * ay, across = Math.abs((bx - x) * ay) + Math.abs((by - y) * ax);
      if (along > 4 && along + 3 * across < least) { best = box; least = along + 3 * across; }
    }
    return best;
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: fit,
      Enter: () => selected?.folds && fold(selected, selected.open), " ": () => selected?.folds && fold(selected, selected.open),
      Escape: () => (byId("picture").classList.contains("wide") ? enlarge() : select(null)),
    };
    if (event.key.startsWith("Arrow")) { const to = neighbour(event.key); if (to) select(to); }
    else if (acts[event.key]) acts[event.key]();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName)) { event.preventDefault(); search.focus(); }
  });
  function enlarge() {
    const wide = byId("picture").classList.toggle("wide");
    byId("wide").setAttribute("aria-pressed", String(wide));
    byId("wide").textContent = wide ? "Small" : "Large";
    canvas.focus({ preventScroll: true });
  }
  byId("fold").addEventListener("click", () => foldAll(true));
  byId("unfold").addEventListener("click", () => foldAll(false));
  byId("in").addEventListener("click", () => zoom(1.25));
  byId("out").addEventListener("click", () => zoom(0.8));
  byId("fit").addEventListener("click", fit);
  byId("wide").addEventListener("click", enlarge);

  openSome();
  settle();
  fit();
  describe();
  ready();
})();
