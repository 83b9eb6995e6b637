// What all parts of the page use: the data, elements, tables, figures in words.

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

// A part of the page with a heading, and a link to it in the list on top.
function section(id, title) {
  const part = make('section', { id }, make('h2', {}, title));
  main.append(part);
  if (!id.startsWith('run-') || report.runs.length < 9) {  // many runs are listed in their overview
    document.getElementById('parts').append(make('a', { href: '#' + id }, title), ' ');
  }
  return part;
}

function cellOf(value) {
  if (value instanceof Node) return make('td', value.textContent.length > 24 ? { class: 'text' } : {}, value);
  if (typeof value === 'number') return make('td', { class: 'number' }, value.toLocaleString('en'));
  const text = value === null || value === undefined ? '' : String(value);
  return make('td', text.length > 24 ? { class: 'text' } : {}, text);
}

// Wide tables scroll by themselves, which needs a place that the keyboard can reach.
function table(heads, rows) {
  const body = make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map(cellOf))));
  const head = heads.some(Boolean) ? make('thead', {}, make('tr', {}, ...heads.map(name =>
    make('th', { scope: 'col' }, name)))) : null;
  return make('div', { class: 'wide', tabindex: 0, role: 'group', 'aria-label': 'table' }, make('table', {}, head,
    body));
}

// A table whose cells are shaded by their share of the largest; undefined: an empty cell.
function heat(corner, columns, rows, valueOf, textOf) {
  const most = Math.max(1, ...rows.flatMap(row => columns.map(column => valueOf(row, column) || 0)));
  const cell = (row, column) => {
    const value = valueOf(row, column);
    return value === undefined ? make('td', {}) : make('td', { class: 'number', style:
      `background: rgba(var(--heat), ${(.6 * value / most).toFixed(3)})` }, textOf(value, row, column));
  };
  return make('div', { class: 'wide heat', tabindex: 0, role: 'group', 'aria-label': 'table' }, make('table', {},
    make('thead', {}, make('tr', {}, make('th', {}, corner), ...columns.map(name => make('th', { scope: 'col', class:
      'number' }, String(name))))),
    make('tbody', {}, ...rows.map(row => make('tr', {}, make('th', { scope: 'row' }, String(row)),
      ...columns.map(column => cell(row, column)))))));
}

function select(id, label, words, changed) {
  const control = make('select', { id }, ...words.map(word => make('option', {}, String(word))));
  control.addEventListener('change', changed);
  return make('label', {}, label + ' ', control);
}
function button(words, label, pressed) {
  const control = make('button', { type: 'button', 'aria-label': label, title: label }, words);
  control.addEventListener('click', pressed);
  return control;
}
const chosen = id => document.getElementById(id).value;

const verdict = word => make('b', { class: word }, word);
const percent = share => (100 * share).toFixed(1) + ' %';

function duration(nanoseconds) {
  if (nanoseconds >= 1e9) return (nanoseconds / 1e9).toFixed(2) + ' s';
  if (nanoseconds >= 1e6) return (nanoseconds / 1e6).toFixed(2) + ' ms';
  return (nanoseconds / 1e3).toFixed(1) + ' µs';
}

function bytes(count) {
  if (count >= 1 << 20) return (count / (1 << 20)).toFixed(1) + ' MiB';
  if (count >= 1 << 10) return (count / (1 << 10)).toFixed(1) + ' KiB';
  return count + ' B';
}

const times = (count, word) => `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
