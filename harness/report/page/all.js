'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const report = data.report;
const main = document.getElementById('main');
const hues = { input: '#8e8c99', forward: '#3e63dd', backward: '#8e4ec6', exchange: '#e93d82', optimizer: '#12a594',
  save: '#f76808', commit: '#e5484d', validate: '#ffb224', retire: '#ad7f58', find: '#05a2c2', restore: '#46a758',
  rendezvous: '#697177', other: '#b4b4bb', productive: '#46a758', checkpoint: '#f76808', detect: '#e5484d',
  restart: '#697177', redo: '#ffb224', start: '#05a2c2' };

// An element with text or children; text is never read as markup.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}
function section(id, title) {
  const part = make('section', { id }, make('h2', {}, title));
  main.append(part);
  return part;
}
function table(heads, rows) {
  const body = make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map(cell =>
    cell instanceof Node ? make('td', {}, cell) : make('td', typeof cell === 'number' ? { class: 'number' } : {},
      String(cell))))));
  return make('div', { class: 'wide', tabindex: 0 }, make('table', {}, make('thead', {}, make('tr', {},
    ...heads.map(head => make('th', { scope: 'col' }, head)))), body));
}
const verdict = word => make('b', { class: word }, word);
const ms = nanoseconds => nanoseconds >= 1e9 ? (nanoseconds / 1e9).toFixed(2) + ' s' :
  (nanoseconds / 1e6).toFixed(2) + ' ms';
const percent = share => (100 * share).toFixed(1) + ' %';

function bar(parts, whole) {
  const line = make('div', { class: 'bar', role: 'img', 'aria-label': parts.map(([n, v]) =>
    `${n} ${percent(v / whole)}`).join(', ') });
  const key = make('p', { class: 'key' });
  for (const [name, value] of parts.filter(part => part[1] > 0)) {
    line.append(make('span', { style: `flex: ${value} 0 0; background: ${hues[name]}`, title:
      `${name} ${ms(value)}` }));
    key.append(make('span', {}, make('i', { style: `background: ${hues[name]}` }),
      `${name} ${percent(value / whole)}`));
  }
  return [line, key];
}

function head() {
  main.append(make('h1', { id: 'verdict', class: report.verdict }, report.verdict.toUpperCase(), ' ',
    make('span', { class: 'soft' }, `firedrill ${report.verb}`)));
  main.append(make('p', { class: 'soft' }, `version ${report.environment.version} (${report.environment.commit}), ` +
    `seed ${report.seed}, exit status ${report.exit_code}`));
}

function properties(run, part) {
  const only = make('select', { 'aria-label': 'Which properties' }, ...['all', 'fail', 'unknown', 'pass']
    .map(word => make('option', {}, word)));
  const place = make('div', {});
  const draw = () => place.replaceChildren(table(['property', 'verdict', 'checked', 'evidence'], run.properties
    .filter(line => only.value === 'all' || line.verdict === only.value)
    .map(line => [line.name, verdict(line.verdict), line.checked, line.evidence || (line.checked ? '' : 'vacuous')])));
  only.id = 'properties-filter';
  only.addEventListener('change', draw);
  draw();
  part.append(make('label', {}, 'show ', only), place);
}

function showRun(run, index) {
  const part = section(`run-${index}`, `${run.scenario} (${run.world}, ${run.layout})`);
  part.append(make('p', {}, verdict(run.verdict), run.reason ? ` ${run.reason}` : '', run.mutant ?
    ` — mutant ${run.mutant}` : ''));
  const equal = run.final_digest && run.final_digest === run.golden_digest;
  part.append(table(['', ''], [['final digest', run.final_digest || 'none'], ['golden digest', run.golden_digest ||
    'none'],
    ['they are', equal ? 'equal' : 'not equal'], ['first difference', run.first_difference ?
      `${run.first_difference.tensor} after step ${run.first_difference.step}` : 'none'],
    ['reproduce', run.reproduce ? make('code', {}, run.reproduce) : '']]));
  properties(run, part);
  part.append(make('h2', {}, 'Attempts'), table(['attempt', 'began', 'what happened', 'ended'], run.attempts.map(line =>
    [line.attempt, line.began, make('div', {}, ...line.what.map(text => make('div', {}, text))), line.ended])));
  const worth = run.metrics;
  if (worth && worth.wall > 0) {
    part.append(make('h2', {}, 'What it was worth'), make('p', {},
      `${worth.tokens_per_second.toFixed(0)} useful tokens a second; ` +
      `${percent(worth.ettr)} of ${ms(worth.wall)} productive (ETTR)` +
      (worth.estimate ? `; published estimate ${percent(worth.estimate.ettr)}` : '')));
    part.append(...bar([['productive', worth.productive], ['checkpoint', worth.checkpoint],
      ...Object.entries(worth.lost),
      ['start', worth.start], ['other', worth.other]], worth.wall));
  }
  const sent = run.accounting ? run.accounting.exchanges : [];
  if (sent.length) part.append(make('h2', {}, 'Exchange'), table(['group', 'operation', 'calls', 'bytes',
    'waited at p50', 'at most', 'rank'],
    sent.map(line => [line.group, line.operation, line.calls, line.bytes, ms(line.waiting.p50), ms(line.waiting.max),
      line.waiting.max_rank])));
}

// A row for each attempt and rank; what is narrower than a pixel is drawn as one.
function timeLine() {
  if (!data.slices) return;
  const part = section('timeline', 'Time line');
  const rows = [...new Set(data.slices.map(s => s[0] + '/' + s[1]))].sort((a, b) => {
    const [x, y] = [a.split('/').map(Number), b.split('/').map(Number)];
    return x[0] - y[0] || x[1] - y[1];
  });
  const place = new Map(rows.map((row, i) => [row, i]));
  const canvas = make('canvas', { role: 'img', 'aria-label':
    `${rows.length} rows of ranks by attempt, ${data.slices.length} slices` });
  part.append(canvas, make('p', { class: 'key' }, ...data.phases.map(name => make('span', {}, make('i', { style:
    `background: ${hues[name]}` }), name)),
    make('span', {}, '▼ fault'), make('span', {}, '● acknowledged')));
  const draw = () => {
    const [width, height] = [canvas.clientWidth, Math.max(4, Math.min(16, 900 / rows.length))];
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = rows.length * height * ratio;
    canvas.style.height = rows.length * height + 'px';
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    const x = time => time / data.end * width;
    for (const [attempt, rank, phase, from, length] of data.slices) {
      pen.fillStyle = hues[data.phases[phase]];
      pen.fillRect(x(from), place.get(attempt + '/' + rank) * height, Math.max(.5, x(length)), height - 1);
    }
    pen.fillStyle = getComputedStyle(document.body).color;
    for (const [time, attempt, rank, kind] of data.events) {
      const mark = { fault_fired: '▼', acknowledged: '●' }[data.kinds[kind]];
      const row = place.get(attempt + '/' + rank);
      if (mark && row !== undefined) pen.fillText(mark, Math.min(x(time), width - 10), row * height + Math.min(height,
        11));
    }
  };
  new ResizeObserver(draw).observe(canvas);
  draw();
}

function tensors() {
  if (!data.tensors || !data.tensors.length) return;
  const part = section('tensors', 'Tensors against the golden');
  const bad = data.tensors.filter(tensor => tensor[1] >= 0);
  part.append(make('p', {}, bad.length ? `${bad.length} of ${data.tensors.length} differ` :
    `all ${data.tensors.length} are equal after every step`));
  const groups = new Map();
  for (const tensor of data.tensors) {
    const group = tensor[0].split(/[./]/)[0];
    groups.set(group, [...(groups.get(group) || []), tensor]);
  }
  for (const [group, list] of groups) {
    const worse = list.filter(tensor => tensor[1] >= 0).length;
    const box = make('details', {}, make('summary', { class: worse ? 'fail' : '' },
      `${group}: ${list.length} tensors` + (worse ? `, ${worse} differ` : '')),
      table(['tensor', 'first differs after step'], list.map(([name, step]) => [name, step < 0 ? 'never' : step])));
    if (worse) box.open = true;
    part.append(box);
  }
}

function explored() {
  for (const profile of report.profiles || []) {
    const part = section(`profile-${profile.profile}`, `Crash states: ${profile.profile}`);
    part.append(make('p', {}, verdict(profile.violations ? 'fail' : 'pass'),
      ` ${profile.proof}: ${profile.legal_states} legal states, ` +
      `${profile.covered_states} covered, ${profile.checked_states} restored and compared ` +
      `by the ${profile.engine} engine`));
    if (!profile.violation) continue;
    part.append(make('p', { class: 'fail' }, profile.violation.message), make('h2', {},
      'What the disk had been told, and what was left'),
      table(['operation', 'state'], profile.violation.operations.map(line => [line.what, line.state])),
      make('h2', {}, 'What was read'), make('pre', { class: 'wide mono' }, profile.violation.reads.join('\n')));
  }
  if (report.killed) {
    section('mutants', `Mutants: ${report.killed.length} killed, ${report.survived.length} survived`).append(
      table(['mutant', 'caught by', 'trials', 'evidence'], [...report.survived.map(name => [name, verdict('fail'), '',
        'survived']),
        ...report.killed.map(line => [line.mutant, line.property, line.trials, line.evidence])]));
  }
  const named = ['trials', 'trials_per_second', 'distinct_histories', 'doubled', 'failures', 'positions', 'complete',
    'coverage', 'never_reached'];
  const found = named.filter(name => report[name] !== undefined);
  if (found.length) section('coverage', 'Coverage').append(table(['', ''], found.map(name => [name,
    typeof report[name] === 'object' ? make('pre', { class: 'mono' }, JSON.stringify(report[name], null, 1)) :
      report[name]])));
}

function events() {
  if (!data.events) return;
  const part = section('events', `Events: ${data.total}`);
  const kind = make('select', { id: 'events-kind', 'aria-label': 'Kind of event' }, make('option', {}, 'all'),
    ...data.kinds.map(name => make('option', {}, name)));
  const words = make('input', { id: 'events-text', type: 'search', placeholder: 'text', 'aria-label':
    'Text in an event' });
  const count = make('span', { class: 'soft', id: 'events-count', 'aria-live': 'polite' });
  const place = make('div', {});
  const draw = () => {
    const wanted = words.value.toLowerCase();
    const chosen = data.events.filter(event => (kind.value === 'all' || data.kinds[event[3]] === kind.value) &&
      (!wanted || data.texts[event[5]].toLowerCase().includes(wanted)));
    count.textContent = ` ${chosen.length} events` + (chosen.length > 200 ? ', the first 200 are shown' : '');
    place.replaceChildren(table(['time', 'attempt', 'rank', 'step', 'event', 'what'], chosen.slice(0, 200)
      .map(([time, attempt, rank, k, step, text]) => [ms(time), attempt, rank < 0 ? '' : rank, step, data.kinds[k],
        data.texts[text]])));
  };
  kind.addEventListener('change', draw);
  words.addEventListener('input', draw);
  part.append(make('p', {}, kind, ' ', words, count), place);
  draw();
}

head();
if (Array.isArray(report.runs)) report.runs.forEach(showRun);
explored();
timeLine();
tensors();
events();
document.body.dataset.ready = 'yes';
