// The events that a person reads, filtered by kind, rank, attempt and text.

const eventsShown = 200;  // at first, and more on each press of the button

function events() {
  if (!data.events) return;
  const part = section('events', `Events: ${data.events.length.toLocaleString('en')} of ` +
    data.total.toLocaleString('en'));
  part.append(make('p', { class: 'soft' },
    'What only counts (bytes, waits, messages, probes) stands in the sums above.'));
  let shown = eventsShown;
  const words = make('input', { id: 'events-text', type: 'search', placeholder: 'text', 'aria-label':
    'Text in an event' });
  const count = make('span', { class: 'soft', id: 'events-count', 'aria-live': 'polite' });
  const more = make('button', { id: 'events-more' }, 'more');
  const place = make('div', {});
  const draw = () => {
    const [kind, rank, attempt, wanted] = [chosen('events-kind'), chosen('events-rank'), chosen('events-attempt'),
      words.value.toLowerCase()];
    const texts = data.texts.map(text => text.toLowerCase().includes(wanted));
    const found = data.events.filter(event => (kind === 'all' || data.kinds[event[3]] === kind) && texts[event[5]] &&
      (rank === 'all' || String(event[2]) === rank) && (attempt === 'all' || String(event[1]) === attempt));
    count.textContent = times(found.length, 'event') + (found.length > shown ? `, the first ${shown} are shown ` : '');
    more.hidden = found.length <= shown;
    place.replaceChildren(table(['time', 'attempt', 'rank', 'step', 'event', 'what'], found.slice(0, shown)
      .map(([time, of, who, k, step, text]) => [duration(time), String(of), who < 0 ? '' : String(who),
        step > 0 ? String(step) : '', data.kinds[k], data.texts[text]])));
  };
  const again = () => {
    shown = eventsShown;
    draw();
  };
  more.addEventListener('click', () => {
    shown += eventsShown;
    draw();
  });
  words.addEventListener('input', again);
  const distinct = field => [...new Set(data.events.map(event => event[field]))].sort((a, b) => a - b);
  part.append(make('p', {}, select('events-kind', 'kind', ['all', ...data.kinds], again),
    select('events-attempt', 'attempt', ['all', ...distinct(1).filter(number => number > 0)], again),
    select('events-rank', 'rank', ['all', ...distinct(2).filter(number => number >= 0)], again), words),
  make('p', {}, count, more), place);
  again();
}
