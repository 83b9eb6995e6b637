// Who sent how much to whom: messages between ranks, and bytes, waiting and calls of each rank by group and operation.

const ranksMax = 64;  // of a matrix; what is beyond is named, and not shown

function exchange() {
  if (!data.sent || !(data.sent.length || data.messages.length)) return;
  const part = section('exchange', 'Exchange');
  const few = ranks => {
    const all = [...new Set(ranks)].sort((a, b) => a - b);
    if (all.length > ranksMax) {
      part.append(make('p', { class: 'soft' }, `of ${all.length} ranks the first ${ranksMax} are shown`));
    }
    return all.slice(0, ranksMax);
  };
  if (data.messages.length) {
    // A real process tells only the first message of a peer; the simulated world tells all.
    const real = report.runs[0] && report.runs[0].world === 'process';
    part.append(make('h3', {}, (real ? 'Who heard of whom, in how many attempts' : 'Messages') +
      ': from the rank on the left to the rank above'));
    const ranks = few(data.messages.flatMap(row => [row[0], row[1]]));
    const counts = new Map(data.messages.map(([from, to, count]) => [`${from} ${to}`, count]));
    part.append(heat('from', ranks, ranks, (from, to) => counts.get(`${from} ${to}`), count => String(count)));
  }
  if (!data.sent.length) return;
  const columns = [...new Set(data.sent.map(row => row[1]))];
  const ranks = few(data.sent.map(row => row[0]));
  const kinds = { 'bytes sent': [2, bytes], 'time waited': [3, duration], calls: [4, String] };
  const place = make('div', {});
  const draw = () => {
    const [field, words] = kinds[chosen('exchange-figure')];
    const values = new Map(data.sent.map(row => [`${row[0]} ${row[1]}`, row[field]]));
    place.replaceChildren(heat('rank', columns, ranks, (rank, column) => values.get(`${rank} ${column}`), words));
  };
  part.append(make('h3', {}, 'By group and operation'),
    make('p', {}, select('exchange-figure', 'show', Object.keys(kinds), draw)), place);
  draw();
}
