// Admin: patterns, the settings of the namespace, the server.
import { h, Fragment } from 'preact';
import { get, may, useGet } from './api.js';
import { Act, Card, Empty, Head, Missing, Mono, Table, Text, change, count, span } from './ui.jsx';

const bytes = (n) => (n >= 1 << 30 ? (n / (1 << 30)).toFixed(1) + ' GiB' : n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + ' MiB' : count(n) + ' B');

async function setCapacity(p, value, reason, key) {
  const fresh = await get('/v1/patterns/' + encodeURIComponent(p.name));
  const { name, at, server_time: _t, revision: _r, ...body } = fresh.pattern && fresh.pattern.pattern ? fresh.pattern : fresh;
  return change('PUT', '/v1/patterns/' + encodeURIComponent(p.name), { ...body, capacity: Number(value), reason }, key);
}

function Patterns() {
  const list = useGet('/v1/patterns');
  if (!list.data) return <Missing of={list} />;
  const rows = list.data.patterns;
  if (!rows.length) return <Empty>No pattern is set: all keys have the defaults. <code>interlock pattern set</code> makes one.</Empty>;
  return (
    <Table
      label="Patterns" rows={rows} id={(p) => p.name}
      columns={[
        { head: 'Name', cell: (p) => <Text>{p.name}</Text> },
        { head: 'Keys', wide: true, cell: (p) => <Mono>{p.pattern}</Mono> },
        { head: 'Capacity', right: true, cell: (p) => p.capacity || '' },
        { head: 'Rate', right: true, cell: (p) => (p.rate ? p.rate + ' per ' + span(p.per_ms) : '') },
        { head: 'TTL', right: true, cell: (p) => span(p.ttl_ms) },
        { head: 'Max hold', right: true, cell: (p) => span(p.max_hold_ms) },
        { head: 'Waiters', right: true, cell: (p) => p.max_waiters || '' },
        { head: 'Preempt', cell: (p) => p.preempt },
        { head: 'Write', cell: (p) => p.write },
        may('operator') && { head: 'Actions', cell: (p) => p.capacity > 0 && (
          <Act
            name="Set capacity" title={'Set the capacity of ' + p.name} value={{ label: 'Permits at a time', type: 'number', min: 1, start: p.capacity }}
            send={({ value, reason, key }) => setCapacity(p, value, reason, key)}
            consequence={<ul><li>Each key of <Mono>{p.pattern}</Mono> then has that many permits; now it has {p.capacity}.</li><li>With more, waiters get permits at once. With fewer, no lease ends, and new ones wait until there is room.</li></ul>}
          />
        ) },
      ].filter(Boolean)}
    />
  );
}

const Facts = ({ of }) => (
  <dl class="facts">{of.filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => <><dt>{k}</dt><dd class="num">{v}</dd></>)}</dl>
);

/** What only operators of the whole server are told. */
const whole = ({ journal, ...all }) => [
  ['Namespaces', count(all.namespaces)],
  ['Keys, all namespaces', count(all.keys)], ['Leases, all namespaces', count(all.leases)],
  ['Waiters, all namespaces', count(all.waiters)], ['Sessions, all namespaces', count(all.sessions)],
  ['Journal', journal.kind], ['Oldest entry', count(journal.first)],
  ['Snapshot', count(journal.snapshot)], ['Journal takes', journal.bytes && bytes(journal.bytes)],
  ['Free on the disk', journal.free_bytes && bytes(journal.free_bytes)],
];

export function Admin() {
  const status = useGet('/v1/status', 5000);
  const settings = useGet('/v1/namespace');
  const s = status.data, n = settings.data;
  const yes = (b) => (b ? 'yes' : 'no');
  return (
    <>
      <Head title="Admin" json="/v1/patterns" />
      {s && s.warnings && s.warnings.map((w) => <p class="verdict warn"><span class="state warn">▲</span><Text of="span">{w}</Text></p>)}
      <div class="grid">
        <Card title="Patterns" wide><Patterns /></Card>
        <Card title="Server">
          <Missing of={status} />
          {s && <Facts of={[
            ['Role', s.role], ['Version', s.version], ['Up', span(s.up_ms)], ['Newest entry', count(s.at.index)],
            ['Epoch', count(s.at.epoch)],
            ...(s.server ? whole(s.server) : []),
          ]} />}
        </Card>
        <Card title="Namespace" aside={s && <Mono>{s.namespace.name}</Mono>}>
          <Missing of={settings} />
          {n && s && <Facts of={[
            ['Strict order', yes(n.strict_order)], ['Closed', yes(n.closed)], ['Near misses', yes(n.near_misses)],
            ['Effects are kept', n.effect_retention_ms ? span(n.effect_retention_ms) : 'for good'],
            ['Documents', count(s.namespace.documents)], ['State', bytes(s.namespace.state_bytes)],
            ...Object.entries(n.quota || {}).map(([k, v]) => ['Quota: ' + k.replaceAll('_', ' '), count(v)]),
            ...Object.entries(n.principal_quota || {}).map(([k, v]) => ['Quota of a credential: ' + k.replaceAll('_', ' '), count(v)]),
          ]} />}
        </Card>
      </div>
    </>
  );
}
