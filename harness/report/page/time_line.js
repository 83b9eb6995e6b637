// The time line: a row for each rank, its phases as slices, the attempts as bands, and marks for faults, deaths,
// checkpoints and recoveries. The keyboard goes from mark to mark; what it stands on is told in words below.

const glyphs = { fault_fired: ['▼', 'bad'], rank_ended: ['✖', 'bad'], node_lost: ['✖', 'bad'],
  save_failed: ['✖', 'odd'], damage: ['✖', 'odd'], rejected: ['✖', 'odd'], suspected: ['?', 'odd'],
  committed: ['◆', 'good'], acknowledged: ['●', 'good'], restored: ['↺', 'ink'], started_fresh: ['↺', 'ink'] };
const gutter = 38;
const strip = 18;  // of the attempts, above the rows

// Of what all ranks tell, the first one speaks.
function marksOf() {
  const seen = new Set();
  const fallen = new Set();  // by a fault that has a mark of its own
  const marks = [];
  for (const [time, attempt, rank, kind, step, text] of data.events) {
    const name = data.kinds[kind];
    if (!glyphs[name]) continue;
    const words = data.texts[text];
    if (name === 'rank_ended' && (words === 'finished' || fallen.has(`${attempt} ${rank} ${time}`))) continue;
    if (name === 'fault_fired') fallen.add(`${attempt} ${rank} ${time}`);
    const key = ['acknowledged', 'restored', 'started_fresh'].includes(name) ? `${name} ${attempt} ${step} ${words}` :
      '';
    if (key && seen.has(key)) continue;
    seen.add(key);
    marks.push({ time, attempt, rank, name, told: `${duration(time)}, attempt ${attempt}` +
      (rank < 0 ? '' : `, rank ${rank}`) + (step > 0 ? `, step ${step}` : '') +
      `: ${name === 'fault_fired' ? 'fault: ' : ''}${words}` });
  }
  return marks;
}

// What the canvas shows: from when to when, and where a time and a rank lie in it.
function viewOf(canvas, ranks, zoom) {
  const attempt = chosen('timeline-attempt');
  const band = data.attempts.find(row => String(row[0]) === attempt);
  const whole = band ? [band[1], Math.max(band[2], band[1] + 1)] : [0, data.end];
  const span = (whole[1] - whole[0]) / zoom.times;
  const from = Math.max(whole[0], Math.min(whole[1] - span, zoom.middle - span / 2));
  const to = from + span;
  const width = Math.max(50, canvas.clientWidth);
  const row = Math.max(3, Math.min(24, 900 / ranks.length));
  const index = new Map(ranks.map((rank, i) => [rank, i]));
  return { from, to, width, row, height: strip + ranks.length * row + 16,
    x: time => gutter + (time - from) / (to - from) * (width - gutter - 6),
    y: rank => rank < 0 ? 0 : strip + index.get(rank) * row,
    time: x => from + (x - gutter) / (width - gutter - 6) * (to - from),
    rank: y => ranks[Math.floor((y - strip) / row)] };
}

function drawBands(pen, view, colours) {
  pen.font = '11px system-ui, sans-serif';
  data.attempts.forEach(([number, from, to], i) => {
    const [left, right] = [Math.max(gutter, view.x(from)), Math.min(view.width, view.x(to))];
    if (right <= gutter || left >= view.width) return;
    pen.fillStyle = i % 2 ? colours.line : colours.raised;
    pen.fillRect(left, 0, right - left, view.height - 16);
    pen.fillStyle = colours.soft;
    if (right - left > 12) pen.fillText(right - left > 60 ? `attempt ${number}` : number, left + 2, 12);
  });
}

function drawRows(pen, view, colours, ranks) {
  const every = Math.ceil(12 / view.row);
  pen.fillStyle = colours.soft;
  ranks.forEach((rank, i) => {
    if (i % every === 0) pen.fillText(`r${rank}`, 2, view.y(rank) + Math.min(view.row, 11));
  });
  // What is narrower than a pixel is drawn as half of one, and not twice at the same place.
  const last = new Map();
  for (const [, rank, phase, from, length] of data.slices) {
    if (from + length < view.from || from > view.to) continue;
    const left = Math.max(gutter, view.x(from));
    const wide = Math.max(.5, view.x(from + length) - left);
    const key = rank * 16 + phase;
    if (last.get(key) > left + wide - .25) continue;
    last.set(key, left + wide);
    pen.fillStyle = hues[data.phases[phase]];
    pen.fillRect(left, view.y(rank), wide, Math.max(1, view.row - 1));
  }
}

function drawAxis(pen, view, colours) {
  pen.fillStyle = colours.soft;
  const ticks = view.width < 600 ? 3 : 6;
  for (let i = 0; i <= ticks; ++i) {
    const time = view.from + (view.to - view.from) * i / ticks;
    pen.textAlign = i === 0 ? 'left' : i === ticks ? 'right' : 'center';
    pen.fillText(duration(time), i === ticks ? view.width - 2 : view.x(time), view.height - 4);
  }
  pen.textAlign = 'left';
}

// What went wrong is drawn above all else; a mark that another one hides is left out, and still told by the keys.
function drawMarks(pen, view, colours, marks, current) {
  pen.font = '12px system-ui, sans-serif';
  pen.textAlign = 'center';
  const weight = ([mark, i]) => (i === current ? 0 : { bad: 1, odd: 2, ink: 3, good: 4 }[glyphs[mark.name][1]]);
  const placed = new Map();  // by rank: where marks stand
  const shown = marks.map((mark, i) => [mark, i]).filter(([mark]) => mark.time >= view.from && mark.time <= view.to)
    .sort((a, b) => weight(a) - weight(b)).filter(([mark]) => {
      const cell = Math.round(view.x(mark.time) / 6);
      const key = `${mark.rank} ${cell}`;
      if (placed.has(key)) return false;
      placed.set(key, true);
      return true;
    });
  shown.reverse().forEach(([mark, i]) => {
    const [glyph, colour] = glyphs[mark.name];
    const [x, y] = [view.x(mark.time), view.y(mark.rank) + 11];
    pen.strokeStyle = colours.back;
    pen.lineWidth = 3;
    pen.strokeText(glyph, x, y);
    pen.fillStyle = colours[colour];
    pen.fillText(glyph, x, y);
    if (i !== current) return;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(x - 8, y - 12, 16, 16);
  });
  pen.textAlign = 'left';
}

function coloursNow() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(['ink', 'soft', 'line', 'back', 'raised', 'good', 'bad', 'odd'].map(name =>
    [name, style.getPropertyValue('--' + name).trim()]));
}

function sliceAt(view, x, y) {
  const [rank, time] = [view.rank(y), view.time(x)];
  const found = data.slices.find(([, of, , from, length]) => of === rank && from <= time && time < from + length);
  return found ? `attempt ${found[0]}, rank ${found[1]}: ${data.phases[found[2]]}, ${duration(found[4])} ` +
    `from ${duration(found[3])} on` : '';
}

function timeLineKey() {
  const used = data.phases.filter((name, i) => data.slices.some(slice => slice[2] === i));
  return make('p', { class: 'key' }, ...used.map(name => make('span', {}, make('i', { style:
    `background: ${hues[name]}` }), name)), ...['▼ fault', '✖ died or failed', '◆ committed', '● acknowledged',
    '↺ recovered'].map(text => make('span', {}, text)));
}

function timeLine() {
  if (!data.events) return;
  const part = section('timeline', 'Time line');
  const ranks = [...new Set(data.slices.map(slice => slice[1]).concat(data.events.map(event => event[2])))]
    .filter(rank => rank >= 0).sort((a, b) => a - b);
  const marks = marksOf();
  const canvas = make('canvas', { id: 'timeline-canvas', tabindex: 0, role: 'img', 'aria-describedby': 'timeline-told',
    'aria-label': `Time line of ${times(ranks.length, 'rank')}, ${times(data.attempts.length, 'attempt')} and ` +
    `${times(marks.length, 'mark')}; left and right go from mark to mark, plus and minus zoom` });
  const told = make('p', { id: 'timeline-told', class: 'told', 'aria-live': 'polite' },
    'Arrow keys go from mark to mark, + and - zoom there, 0 shows all; a click tells what lies there.');
  let current = -1;
  const zoom = { times: 1, middle: data.end / 2 };
  const draw = () => {
    const view = viewOf(canvas, ranks, zoom);
    const ratio = window.devicePixelRatio || 1;
    canvas.width = view.width * ratio;
    canvas.height = view.height * ratio;
    canvas.style.height = view.height + 'px';
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    const colours = coloursNow();
    drawBands(pen, view, colours);
    drawRows(pen, view, colours, ranks);
    drawAxis(pen, view, colours);
    drawMarks(pen, view, colours, marks, current);
  };
  const goTo = next => {
    const attempt = chosen('timeline-attempt');
    const step = next < current ? -1 : 1;
    while (marks[next] && attempt !== 'all' && String(marks[next].attempt) !== attempt) next += step;
    if (!marks[next]) return;
    current = next;
    zoom.middle = marks[current].time;
    told.textContent = marks[current].told;
    draw();
  };
  const zoomBy = factor => {
    zoom.times = factor === 0 ? 1 : Math.max(1, Math.min(1e5, zoom.times * factor));
    draw();
  };
  canvas.addEventListener('keydown', event => {
    const factor = { '+': 2, '-': .5, 0: 0 }[event.key];
    if (factor !== undefined) zoomBy(factor);
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: marks.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (event.key === 'Home') current = -1;
    if (event.key === 'End') current = marks.length;
    goTo(next);
  });
  canvas.addEventListener('click', event => {
    const view = viewOf(canvas, ranks, zoom);
    const far = mark => Math.hypot(view.x(mark.time) - event.offsetX, view.y(mark.rank) + 7 - event.offsetY);
    const near = marks.map((mark, i) => [far(mark), i]).sort((a, b) => a[0] - b[0])[0];
    if (near && near[0] < 9) {
      goTo(near[1]);
    } else {
      told.textContent = sliceAt(view, event.offsetX, event.offsetY) || 'Nothing was told of this moment.';
    }
  });
  part.append(make('p', {}, select('timeline-attempt', 'attempt', ['all', ...data.attempts.map(row => row[0])], () => {
    current = -1;
    zoomBy(0);
  }), button('+', 'nearer', () => zoomBy(2)), button('-', 'farther', () => zoomBy(.5)),
  button('0', 'all of it', () => zoomBy(0))), canvas, told, timeLineKey());
  new ResizeObserver(draw).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  draw();
}
