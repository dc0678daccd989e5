// Report: what happened in a time, what went wrong with the waits of that moment, and what would help.
import { h, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from './api.js';
import { href, namespace, query, refine } from './route.js';
import { Bar, Card, Empty, Head, KeyLink, Missing, State, Table, Text, count, plural, span } from './ui.jsx';

const lengths = ['1h', '12h', '1d', '7d'];
const bad = ['deadlock', 'lost_lease', 'dead_letter'];
const when = (time) => new Date(time).toLocaleString('en-GB');

/** Reads a path once, and again when told to: a report costs the server more than other answers. */
function useOnce(path) {
  const [turn, again] = useState(0);
  const [state, set] = useState({ data: null, error: null, busy: true });
  useEffect(() => {
    let gone = false;
    set((old) => ({ ...old, busy: true }));
    get(path).then(
      (data) => { if (!gone) set({ data, error: null, busy: false }); },
      (error) => { if (!gone) set({ data: null, error, busy: false }); },
    );
    return () => { gone = true; };
  }, [path, turn, namespace.value]);
  return [state, () => again(turn + 1)];
}

const Command = ({ children }) => (children ? <div><code class="txt">{children}</code></div> : null);

function Incident({ of }) {
  return (
    <li class="incident">
      <p class="row">
        <State is={of.kind.replaceAll('_', ' ')} kind={bad.includes(of.kind) ? 'bad' : of.kind === 'fail_over' ? 'off' : 'warn'} />
        <time class="num" dateTime={of.time}>{when(of.time)}</time>
        {of.count > 1 && <span class="quiet">{plural(of.count, 'time')}, up to {when(of.last)}</span>}
        {of.before && <a href={href('waits', '', { at: of.before })}>Waits at that moment</a>}
        <a href={href('journal', '', { at: of.index })}>Journal</a>
      </p>
      <p><Text>{of.text}</Text></p>
      <p class="quiet"><Text>{of.next}</Text></p>
      <Command>{of.command}</Command>
    </li>
  );
}

const Advice = ({ of }) => (
  <li class="incident">
    <p class="row">
      <b>{of.kind.replaceAll('_', ' ')}</b>
      {of.indexes.length > 0 && (
        <span class="quiet">for example {of.indexes.map((i, n) => <>{n > 0 && ', '}<a class="num" href={href('journal', '', { at: i })}>entry {i}</a></>)}</span>
      )}
    </p>
    <p><Text>{of.text}</Text></p>
    <Command>{of.command}</Command>
  </li>
);

const sums = [
  ['Grants', (s) => count(s.grants)], ['Waits', (s) => count(s.waits)], ['Failed', (s) => count(s.failures)],
  ['Lost', (s) => span(s.lost_ms)], ['Wait p50', (s) => span(s.wait_p50_ms)], ['Wait p99', (s) => span(s.wait_p99_ms)],
  ['Hold p50', (s) => span(s.hold_p50_ms)], ['Hold p99', (s) => span(s.hold_p99_ms)],
].map(([head, cell]) => ({ head, right: true, cell }));

function Found({ of }) {
  const most = Math.max(1, ...of.keys.map((k) => k.lost_ms));
  return (
    <>
      <p class={'verdict ' + (of.incidents.some((i) => bad.includes(i.kind)) ? 'bad' : of.incidents.length ? 'warn' : '')}>
        <Text of="span">{of.verdict}</Text>
      </p>
      {of.more && <p class="error">There is more than one report reads: this one ends at {when(of.until)}. Choose a shorter time.</p>}
      <div class="grid">
        <Card title="Incidents" aside={of.more_incidents > 0 && plural(of.more_incidents, 'more incident')} wide>
          {of.incidents.length === 0 ? <Empty>No incidents.</Empty> : <ol class="incidents">{of.incidents.map((i) => <Incident key={i.kind + i.index} of={i} />)}</ol>}
        </Card>
        <Card title="Advice" wide>
          {of.advice.length === 0 ? <Empty>The journal supports no advice for this time. A longer time teaches more.</Empty> : <ul class="incidents">{of.advice.map((a) => <Advice key={a.kind + a.keys} of={a} />)}</ul>}
        </Card>
        <Card title="Time lost by key" wide>
          {of.keys.length === 0 ? <Empty>No agent waited for a key.</Empty> : (
            <Table
              label="Time lost by key" rows={of.keys} id={(k) => k.key} to={(k) => href('keys', k.key)}
              columns={[
                { head: 'Key', wide: true, cell: (k) => <KeyLink of={k.key} /> },
                { head: 'Waits', right: true, cell: (k) => count(k.waits) },
                { head: 'Lost', right: true, cell: (k) => <><Bar of={k.lost_ms / most} /><span class="figure">{span(k.lost_ms)}</span></> },
              ]}
            />
          )}
        </Card>
        <Card title="Classes of keys" wide>
          <Table
            label="Classes of keys" rows={[...of.classes, { ...of.all, all: true }]} id={(s) => (s.all ? ' ' : s.class || '')}
            columns={[{ head: 'Class', wide: true, cell: (s) => (s.all ? <b>all</b> : s.class ? <Text>{s.class}</Text> : 'plain words') }, ...sums]}
          />
        </Card>
      </div>
    </>
  );
}

export function Report() {
  const { last = '', since = '', until = '' } = query.value;
  const length = lengths.includes(last) ? last : '12h';
  const address = '/v1/report?since=' + encodeURIComponent(since || length) + (until ? '&until=' + encodeURIComponent(until) : '');
  const [report, again] = useOnce(address);
  return (
    <>
      <Head title="Report" json={address}>
        {report.data && <span class="quiet">{when(report.data.since)} to {when(report.data.until)}</span>}
      </Head>
      <div class="filters">
        <span class="choice" role="group" aria-label="Time">
          {lengths.map((l) => (
            <button type="button" aria-pressed={!since && length === l} onClick={() => refine({ last: l, since: '', until: '' })}>{l}</button>
          ))}
        </span>
        <button type="button" disabled={report.busy} onClick={again}>Read again</button>
        <span class="quiet" role="status">{report.busy ? 'Reading the journal.' : ''}</span>
      </div>
      <Missing of={report} />
      {report.data && <Found of={report.data} />}
    </>
  );
}
