// Differences: a second moment, and what is different between the states after both.
import { h, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from './api.js';
import { at, href, namespace, query, refine } from './route.js';
import { AgentLink, Card, Empty, KeyLink, Missing, State, Table, Text, Twin, count, plural } from './ui.jsx';

const again = 30000; // ms until the present is compared again

/** The differences at an address, with the address that they are of. */
function useDifferences(address) {
  const [state, set] = useState({});
  useEffect(() => {
    if (!address) return undefined;
    let gone = false, timer = 0;
    const read = async () => {
      const next = await get(address).then((data) => ({ address, data }), (error) => ({ address, error }));
      if (gone) return;
      set(next);
      if (!at.value) timer = setTimeout(read, again);
    };
    read();
    return () => { gone = true; clearTimeout(timer); };
  }, [address, namespace.value]);
  return state.address === address ? state : {};
}

/** The choice of the second moment, and the differences. */
export function Differences() {
  const { against = '', prefix = '' } = query.value;
  const index = /^\d+$/.test(against) ? Number(against) : 0;
  const turned = index > 0 && at.value > 0 && index > at.value;
  const address = '/v1/differences?from=' + encodeURIComponent(against) + (at.value ? '&to=' + at.value : '') +
    (prefix ? '&prefix=' + encodeURIComponent(prefix) : '');
  const list = useDifferences(against && !turned ? address : '');
  const d = list.data;
  // The URL names an entry, so that it shows the same tomorrow.
  useEffect(() => { if (d && !index) refine({ against: d.from.index }); }, [d, index]);
  return (
    <>
      <div class="filters">
        <label>Compare with the state after
          <input key={against} defaultValue={against} placeholder="entry, 8h or a time" onChange={(e) => refine({ against: e.currentTarget.value.trim() })} />
        </label>
        {at.value ? (
          <>
            <button type="button" disabled={at.value < 2} onClick={() => refine({ against: String(at.value - 1) })}>Entry before</button>
            <button type="button" onClick={() => refine({ against: String(at.value), at: '' })}>The present</button>
          </>
        ) : ['10m', '1h', '12h'].map((ago) => <button type="button" onClick={() => refine({ against: ago })}>{ago} ago</button>)}
        {against && <button type="button" onClick={() => refine({ against: '' })}>Do not compare</button>}
      </div>
      {turned && (
        <p class="error" role="alert">Entry {count(index)} is later than entry {count(at.value)}.{' '}
          <button type="button" onClick={() => refine({ against: String(at.value), at: String(index) })}>Exchange them</button>
        </p>
      )}
      {against && !turned && <Card title="Differences" aside={<Twin path={address} />} wide><Missing of={list} />{d && <Changes of={d} prefix={prefix} />}</Card>}
    </>
  );
}

const Moment = ({ of }) => (
  <>entry <b class="num">{count(of.index)}</b>{of.time && <> (<time class="num" dateTime={of.time} title={of.time}>{new Date(of.time).toLocaleString('en-GB')}</time>)</>}</>
);

const kinds = { new: 'good', gone: 'off', changed: 'wait' };
const change = { head: 'Change', cell: (x) => <State is={x.change} kind={kinds[x.change]} /> };
const sides = (show) => [
  { head: 'Before', wide: true, cell: (x) => (x.before ? show(x.before, x) : <span class="quiet">–</span>) },
  { head: 'After', wide: true, cell: (x) => (x.after ? show(x.after, x) : <span class="quiet">–</span>) },
];

const lease = (l) => (
  <><AgentLink of={l.agent} flow={l.flow} />, fence {l.fence}{l.mode !== 'exclusive' && ', ' + l.mode}{l.count && ' ' + l.count}{l.liveness !== 'live' && ', ' + l.liveness}</>
);
const place = (w) => (w.offered ? 'has an offer' : w.position ? 'position ' + w.position : 'waits');
const version = (v) => <>version {v.version}{v.agent && <> by <Text>{v.agent}</Text></>}{v.note && <>: <Text>{v.note}</Text></>}</>;
const state = (t) => t.state + (t.attempt ? ', attempt ' + t.attempt : '');

// Each kind: its list, its name, its first columns, and what a side shows.
const lists = [
  ['leases', 'lease', [{ head: 'Key', wide: true, cell: (x) => <KeyLink of={x.key} /> }], lease],
  ['waiters', 'waiter', [
    { head: 'Waiter', wide: true, cell: (x) => <AgentLink of={x.agent} flow={x.flow} /> },
    { head: 'For', wide: true, cell: (x) => (x.on ? <AgentLink of={x.on.agent} flow={x.on.flow} /> : x.keys.map((k, i) => <>{i > 0 && ', '}<KeyLink of={k} /></>)) },
  ], place],
  ['documents', 'document', [{ head: 'Key', wide: true, cell: (x) => <KeyLink of={x.key} /> }], version],
  ['tasks', 'task', [
    { head: 'Task', wide: true, cell: (x) => <Text>{[x.kind, x.purpose].filter(Boolean).join(': ') || x.task}</Text> },
    { head: 'Queue', wide: true, cell: (x) => <a href={href('work', '', { queue: x.queue })}><Text>{x.queue}</Text></a> },
  ], state],
];

function Changes({ of, prefix }) {
  const number = (name) => Object.values(of.sums[name]).reduce((a, b) => a + b, 0);
  const some = lists.filter(([name]) => number(name) > 0);
  const keys = prefix && <> at keys that begin with <Text>{prefix}</Text></>;
  return (
    <>
      <p>From <Moment of={of.from} /> to <Moment of={of.to} />{some.length > 0 && ':'}{' '}
        {some.map(([name, one], i) => (
          <>{i > 0 && ', '}{plural(number(name), one)} ({['new', 'gone', 'changed'].filter((c) => of.sums[name][c]).map((c) => count(of.sums[name][c]) + ' ' + c).join(', ')})</>
        ))}{some.length > 0 && <>{keys}.</>}
      </p>
      {!some.length && <Empty>No lease, waiter, document or task is different{keys}. Compare moments that are further apart; the events below show what came and went in between.</Empty>}
      {some.map(([name, one, first, show]) => (
        <div class="compared">
          <h3>{one[0].toUpperCase() + one.slice(1)}s</h3>
          <Table label={'Different ' + name} rows={of[name]} id={(x) => [x.key, x.request, x.task, x.before?.fence, x.after?.fence].join()} columns={[...first, change, ...sides(show)]} />
        </div>
      ))}
      {of.left_out > 0 && <p class="quiet foot">{plural(of.left_out, 'more difference')} {of.left_out === 1 ? 'is' : 'are'} left out. Choose moments that are nearer to each other, or narrow it with <i>Key begins with</i>.</p>}
    </>
  );
}
