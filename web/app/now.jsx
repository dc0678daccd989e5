// Now: the verdict, the keys by the time that is lost at them, the longest waits, what went wrong, and the open questions.
import { h, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { fresh, lines, tick, useGet, useOverview } from './api.js';
import { at, href } from './route.js';
import { AgentLink, Bar, Card, Empty, Head, KeyLink, Missing, State, Table, Text, count, plural, span } from './ui.jsx';
import { keyOf, sentence, trouble } from './event.js';
import { Answers } from './work.jsx';

const lookBack = 3000; // entries that are searched for trouble at the start

/** The events in which something went wrong, newest first. */
export function useTrouble() {
  const [old, set] = useState([]);
  const ready = tick.value > 0;
  useEffect(() => {
    if (!ready) return undefined;
    let gone = false;
    const from = Math.max(1, tick.peek() - lookBack);
    lines('/v1/events?from=' + from + '&until=' + new Date().toISOString())
      .then((all) => { if (!gone) set(all.filter(trouble).reverse()); }, () => {});
    return () => { gone = true; };
  }, [ready]);
  const seen = new Set();
  return [...fresh.value.filter(trouble), ...old].filter((e) => {
    const id = e.index + e.event + (e.request || '') + (e.fence || '');
    return seen.has(id) ? false : seen.add(id);
  });
}

/** How urgent the verdict is. */
function urgency(o) {
  if (o.cycles.length) return 'bad';
  if (o.sums.waiters) return o.edges.some((e) => e.waited_ms > 60000) ? 'warn' : 'wait';
  return 'good';
}

const Sum = ({ label, value, to, kind }) => (
  <a class={'sum ' + (value && kind ? kind : '')} href={to}><b class="num">{count(value)}</b><span>{label}</span></a>
);

const Holders = ({ of }) => {
  const more = of.holders.length - 1 + (of.more_holders || 0);
  if (!of.holders.length) return null;
  return <><AgentLink of={of.holders[0].agent} flow={of.holders[0].flow} />{more > 0 && ' +' + count(more)}</>;
};

export function Now() {
  const overview = useOverview();
  const queues = useGet('/v1/queues');
  const bad = useTrouble();
  const now = overview.data;
  if (!now) return <><Head title="Now" json="/v1/overview" /><Missing of={overview} /></>;
  const { sums, edges } = now;
  const kind = urgency(now);
  const tasks = { waiting: 0, running: 0, asking: 0, dead: 0 };
  for (const q of (queues.data && queues.data.queues) || []) for (const s in tasks) tasks[s] += q.tasks[s] || 0;
  const longest = [];
  const seen = new Set();
  for (const e of [...edges].sort((a, b) => b.waited_ms - a.waited_ms)) {
    const id = e.waiter.session + e.waiter.flow;
    if (!seen.has(id)) { seen.add(id); longest.push(e); }
  }
  const keys = now.keys.slice(0, 20);
  const deepest = Math.max(1, ...keys.map((k) => k.row.length));
  return (
    <>
      <Head title="Now" json="/v1/overview" />
      <p class={'verdict ' + kind}><State is="" kind={kind} /><Text of="span">{now.verdict}</Text></p>
      <div class="sums">
        <Sum label="leases held" value={sums.leases} to={href('keys')} />
        <Sum label="waiters" value={sums.waiters} to={href('waits')} kind="wait" />
        <Sum label="sessions" value={sums.sessions} to={href('agents')} />
        <Sum label="tasks waiting" value={tasks.waiting} to={href('work')} />
        <Sum label="tasks running" value={tasks.running} to={href('work')} />
        <Sum label="questions" value={sums.approvals} to={href('work')} kind="warn" />
        <Sum label="dead letters" value={sums.dead_letters} to={href('work', '', { state: 'dead' })} kind="bad" />
      </div>
      <div class="grid">
        <Card title="Keys by time lost" aside={<a href={href('keys')}>all keys</a>}>
          {keys.length === 0 ? <Empty>No key is held. Agents take them with <code>interlock lock</code>.</Empty> : (
            <Table
              label="Keys by time lost" rows={keys} id={(k) => k.row.key} to={(k) => href('keys', k.row.key)}
              more={now.keys.length + now.more_keys > keys.length && plural(now.keys.length + now.more_keys - keys.length, 'more key')}
              columns={[
                { head: 'Key', wide: true, cell: (k) => <KeyLink of={k.row.key} /> },
                { head: 'Holder', cell: (k) => <Holders of={k.row} /> },
                { head: 'Waiters', right: true, cell: (k) => <>{k.row.length > 0 && <Bar of={k.row.length / deepest} />}<span class="figure">{count(k.row.length)}</span></> },
                { head: 'Lost', right: true, cell: (k) => (k.lost_ms ? span(k.lost_ms) : '') },
              ]}
            />
          )}
        </Card>
        <div class="stack">
        <Card title="Longest waits" aside={<a href={href('waits')}>graph</a>}>
          {longest.length === 0 ? <Empty>No agent waits.</Empty> : (
            <Table
              label="Longest waits" rows={longest.slice(0, 20)} id={(e) => e.waiter.session + e.waiter.flow}
              to={(e) => (e.key ? href('keys', e.key) : href('waits'))}
              more={longest.length > 20 && plural(longest.length - 20, 'more waiter')}
              columns={[
                { head: 'Waiter', cell: (e) => <AgentLink of={e.waiter.agent} flow={e.waiter.flow} /> },
                { head: 'For', wide: true, cell: (e) => (e.key ? <KeyLink of={e.key} /> : <Text>{e.purpose || 'another agent'}</Text>) },
                { head: 'Behind', cell: (e) => <AgentLink of={e.blocker.agent} flow={e.blocker.flow} /> },
                { head: 'Since', right: true, cell: (e) => span(e.waited_ms) },
              ]}
            />
          )}
        </Card>
        <Card title="What went wrong" aside={<a href={href('report')}>report of 12 hours</a>}>
          {bad.length === 0 ? <Empty>Nothing in the last {count(lookBack)} entries of the journal.</Empty> : (
            <Table
              label="What went wrong" rows={bad.slice(0, 20)} id={(e) => e.index + e.event + (e.fence || e.request || '')}
              to={(e) => href('journal', '', { at: e.index })}
              columns={[
                { head: 'Time', cell: (e) => <a class="num" href={href('journal', '', { at: e.index })}>{new Date(e.time).toLocaleTimeString('en-GB')}</a> },
                { head: 'Kind', cell: (e) => <State is={trouble(e)} kind={trouble(e) === 'start' ? 'off' : trouble(e) === 'deadlock' ? 'bad' : 'warn'} /> },
                { head: 'Event', wide: true, cell: (e) => <Text>{[e.agent, sentence(e)].filter(Boolean).join(' ')}</Text> },
              ]}
            />
          )}
        </Card>
        <Card title="Open questions" aside={<a href={href('work')}>work</a>}><Answers /></Card>
        </div>
      </div>
    </>
  );
}
