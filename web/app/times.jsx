// Times: how long waits for a key and holds of it took, as bars in a table.
import { h, Fragment } from 'preact';
import { useSlow, useTimeOf } from './api.js';
import { at, query, refine } from './route.js';
import { Bar, Card, Empty, Missing, Table, Twin, count, plural, span } from './ui.jsx';

const hour = 3600000;
const windows = { '1h': hour, '12h': 12 * hour, '7d': 168 * hour };
const bounds = [10, 100, 1000, 3000, 10000, 30000, 60000, 180000, 600000, 1800000, hour, Infinity]; // ms, of the rows

/** The times of some bars of a timeline, sorted, in ms. */
const timesOf = (bars) => bars.map((b) => Date.parse(b.to) - Date.parse(b.from)).sort((a, b) => a - b);

/** How many of some sorted times there are between each bound and the one before. */
const rowsOf = (times) => bounds.map((to, i) => times.filter((t) => t <= to && (i === 0 || t > bounds[i - 1])).length);

const between = (i) => (i === 0 ? 'up to ' + span(bounds[0]) : bounds[i] === Infinity ? 'over ' + span(bounds[i - 1]) : span(bounds[i - 1]) + '–' + span(bounds[i]));

const share = (times, part) => times[Math.max(0, Math.ceil(times.length * part) - 1)];
const words = (times, one) => (times.length === 0 ? <>No {one} ended. </> : (
  <>{plural(times.length, one)}: half took at most {span(share(times, 0.5))}, 95 % at most {span(share(times, 0.95))}, the longest {span(times[times.length - 1])}. </>
));

export function Times({ name }) {
  const last = query.value.last in windows ? query.value.last : '1h';
  const moment = useTimeOf(at.value);
  const iso = (t) => new Date(t).toISOString();
  const period = at.value ? '&since=' + (moment && iso(moment - windows[last])) + '&until=' + (moment && iso(moment)) : '&since=' + last;
  const address = '/v1/timeline?ended=true&key=' + encodeURIComponent(name) + period;
  const list = useSlow(at.value && !moment ? '' : address, at.value ? 0 : 60000);
  const d = list.data;
  // Keys below this one are in the answer, too.
  const bars = d ? d.bars.filter((b) => b.to && b.claims.some((c) => c.key === name)) : [];
  const waited = bars.filter((b) => b.kind === 'wait');
  const waits = timesOf(waited), holds = timesOf(bars.filter((b) => b.kind === 'hold' || b.kind === 'attempt'));
  const left = waited.filter((b) => b.outcome !== 'granted').length;
  const byWait = rowsOf(waits), byHold = rowsOf(holds);
  const most = [Math.max(...byWait), Math.max(...byHold)];
  const used = bounds.map((_, i) => i).filter((i) => byWait[i] + byHold[i] > 0);
  const rows = used.length ? bounds.map((_, i) => i).slice(used[0], used[used.length - 1] + 1) : [];
  const bar = (n, of, kind) => <><Bar of={of && n / of} kind={kind} />{count(n)}</>;
  return (
    <Card title="Wait and hold times" aside={<Twin path={address} />} wide>
      <span class="choice" role="group" aria-label="Time">
        {Object.keys(windows).map((w) => (
          <button type="button" aria-pressed={last === w} onClick={() => refine({ last: w === '1h' ? '' : w })}>{w.replace('h', ' h').replace('d', ' d')}</button>
        ))}
      </span>
      <Missing of={list} />
      {d && !rows.length && <Empty>No wait for this key and no hold of it ended in this time.{last !== '7d' && ' Choose a longer one.'}</Empty>}
      {rows.length > 0 && (
        <div class="times">
          <p>{words(waits, 'wait')}{left > 0 && <>{plural(left, 'of them', 'of them')} ended without the key. </>}{words(holds, 'hold')}</p>
          <Table
            label="Wait and hold times" rows={rows} id={(i) => i}
            columns={[
              { head: 'Time', cell: between },
              { head: 'Waits', wide: true, cell: (i) => bar(byWait[i], most[0], '') },
              { head: 'Holds', wide: true, cell: (i) => bar(byHold[i], most[1], 'held') },
            ]}
          />
        </div>
      )}
      {d && (d.more || d.more_bars > 0) && <p class="quiet foot">Not all of this time is counted: choose a shorter one.</p>}
    </Card>
  );
}
