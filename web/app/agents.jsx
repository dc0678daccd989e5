// Agents: the timeline of their waits and holds, and the sessions with all that each holds and waits for.
import { h, Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { openJSON, twin, useGet, useSlow, useTimeOf } from './api.js';
import { at, query, refine } from './route.js';
import { AgentLink, Card, Empty, Head, KeyLink, Missing, Mono, State, Table, Text, plural, span } from './ui.jsx';
import { Timeline } from './timeline.jsx';

const KeyList = ({ of }) => (
  <>{of.slice(0, 3).map((c, i) => <>{i > 0 && ', '}<KeyLink of={c.key} /></>)}{of.length > 3 && <span class="quiet"> +{of.length - 3}</span>}</>
);

const minute = 60000;
const windows = { '5m': 5 * minute, '1h': 60 * minute, '6h': 360 * minute, '12h': 720 * minute };
const iso = (t) => new Date(t).toISOString();
const local = (t) => {
  const d = new Date(t);
  return new Date(d.getTime() - d.getTimezoneOffset() * minute).toISOString().slice(0, 19);
};

/** What is asked for: the parameters since and until, and how often, in ms. */
function windowOf({ last, since, until }, moment) {
  const length = windows[last] || windows['1h'];
  const pace = Math.max(5000, length / 720);
  if (since) return { since, until, pace: until ? 0 : pace };
  if (!moment) return { since: last in windows ? last : '1h', pace };
  const end = moment + length / 4; // the moment that the page looks at stands in the right half
  return { since: iso(moment - length * 0.75), until: end < Date.now() ? iso(end) : '', pace: end < Date.now() ? 0 : pace };
}

/** The answer from its first bar on: what is older than that is empty. */
function fit(data) {
  const times = [...data.bars.map((b) => b.from), ...data.marks.filter((m) => m.kind !== 'owner').map((m) => m.time)].map((t) => Date.parse(t));
  if (!times.length) return data;
  const end = Date.parse(data.until);
  const begin = times.reduce((least, t) => Math.min(least, t), end);
  return { ...data, since: iso(Math.max(Date.parse(data.since), Math.min(begin, end - 1000) - (end - begin) / 50)) };
}

const When = ({ label, value, onSet }) => (
  <label>{label}<input type="datetime-local" step="1" value={value} onChange={(e) => e.currentTarget.value && onSet(new Date(e.currentTarget.value).getTime())} /></label>
);

function Over({ moment, asked, address }) {
  const { agent = '', key = '', order = '', as = '', last = '', since = '', until = '' } = query.value;
  // In the past, the time of the moment is needed first.
  const list = useSlow(at.value && !moment && !since ? '' : address, asked.pace);
  const data = useMemo(() => (since || last || !list.data ? list.data : fit(list.data)), [list.data, since, last]);
  const zoom = (from, to) => {
    const end = Math.min(to, Date.now());
    if (end - from < 5) return;
    refine({ last: '', since: iso(from), until: end >= Date.now() - 500 ? '' : iso(end) });
  };
  const from = data && Date.parse(data.since), to = data && Date.parse(data.until);
  const table = as === 'table';
  const chosen = since ? '' : last in windows ? last : 'fit';
  return (
    <Card title="Waits and holds" wide>
      <div class="filters">
        <span class="choice" role="group" aria-label="Time">
          {['fit', ...Object.keys(windows)].map((w) => (
            <button
              type="button" aria-pressed={chosen === w} title={w === 'fit' ? 'the last hour, from the first bar on' : 'the last ' + w}
              onClick={() => refine({ last: w === 'fit' ? '' : w, since: '', until: '' })}
            >{w.replace('m', ' min').replace('h', ' h').replace('fit', 'Fit')}</button>
          ))}
        </span>
        <When label="From" value={from ? local(from) : ''} onSet={(t) => refine({ last: '', since: iso(t), until: until || (to && to > t ? '' : iso(t + minute)) })} />
        <When label="To" value={to ? local(to) : ''} onSet={(t) => refine({ last: '', since: from && from < t ? iso(from) : iso(t - minute), until: iso(t) })} />
        <span class="choice" role="group" aria-label="Move and zoom">
          <button type="button" disabled={!data} aria-label="Earlier" onClick={() => zoom(from - (to - from) / 2, to - (to - from) / 2)}>←</button>
          <button type="button" disabled={!data} aria-label="Later" onClick={() => zoom(from + (to - from) / 2, to + (to - from) / 2)}>→</button>
          <button type="button" disabled={!data} aria-label="Zoom in" onClick={() => zoom(from + (to - from) / 4, to - (to - from) / 4)}>+</button>
          <button type="button" disabled={!data} aria-label="Zoom out" onClick={() => zoom(from - (to - from) / 2, to + (to - from) / 2)}>−</button>
        </span>
        <label>Agent<input value={agent} onChange={(e) => refine({ agent: e.currentTarget.value })} /></label>
        {agent && <button type="button" onClick={() => refine({ agent: '' })}>All agents</button>}
        <label>Key, and those below<input value={key} onChange={(e) => refine({ key: e.currentTarget.value.trim() })} /></label>
        <label>Order
          <select value={order} onChange={(e) => refine({ order: e.currentTarget.value })}>
            <option value="">first seen</option><option value="waited">most waited</option><option value="name">name</option>
          </select>
        </label>
        <button type="button" aria-pressed={table} onClick={() => refine({ as: table ? '' : 'table' })}>Table</button>
      </div>
      <Missing of={list} />
      {data && data.more && (
        <p class="verdict warn"><State is="" kind="warn" /><span>
          This is the part up to {new Date(data.until).toLocaleString('en-GB')}: one answer reads no more of the journal.{' '}
          <button type="button" class="plain" onClick={() => refine({ last: '', since: data.until, until: asked.until || '' })}>Go on from there</button>
        </span></p>
      )}
      {data && data.bars.length + data.marks.length === 0 && (
        <Empty>{agent || key ? 'Nothing that fits the filters was held or waited for in this time.' : 'No key was held or waited for in this time.'}</Empty>
      )}
      {data && data.bars.length + data.marks.length > 0 && <Timeline data={data} order={order} table={table} moment={moment} zoom={zoom} />}
      {data && data.more_bars + data.more_marks > 0 && (
        <p class="quiet foot">{plural(data.more_bars, 'shorter bar')} and {plural(data.more_marks, 'mark')} are left out. Choose a shorter time, an agent or a key to see all.</p>
      )}
    </Card>
  );
}

function Sessions() {
  const { agent = '' } = query.value;
  const address = '/v1/sessions?limit=500' + (agent ? '&agent=' + encodeURIComponent(agent) : '');
  const list = useGet(address, 5000);
  const rows = (list.data && list.data.sessions) || [];
  return (
    <Card title="Sessions" wide aside={<button type="button" class="plain" onClick={() => openJSON(twin(address, at.value))}>JSON</button>}>
      <Missing of={list} />
      {list.data && rows.length === 0 && (
        <Empty>{agent ? 'No session of this agent is open.' : <>No session is open. <code>interlock run KEY -- COMMAND</code> opens one.</>}</Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Sessions" rows={rows} id={(s) => s.session}
          more={plural(rows.length, 'session') + (list.data.cursor ? ', and more: filter by an agent' : '')}
          columns={[
            { head: 'Agent', cell: (s) => <AgentLink of={s.agent} /> },
            { head: 'State', cell: (s) => (s.connected ? <State is="connected" kind="good" /> : <State is="by calls" kind="off" />) },
            { head: 'Holds', wide: true, cell: (s) => <KeyList of={s.holds} /> },
            { head: 'Waits for', wide: true, cell: (s) => <KeyList of={s.waits_for} /> },
            { head: 'Progress', cell: (s) => <Text>{s.progress}</Text> },
            { head: 'Heartbeat', right: true, cell: (s) => span(s.heartbeat_age_ms) },
            { head: 'Ends in', right: true, cell: (s) => span(s.expires_in_ms) },
            { head: 'Session', cell: (s) => <Mono>{s.session}</Mono> },
          ]}
        />
      )}
    </Card>
  );
}

export function Agents() {
  const { agent, key, last, since, until } = query.value;
  const moment = useTimeOf(at.value);
  const asked = windowOf({ last, since, until }, moment);
  const q = new URLSearchParams({ since: asked.since });
  for (const [name, value] of Object.entries({ until: asked.until, agent, key })) if (value) q.set(name, value);
  const address = '/v1/timeline?' + q;
  return (
    <>
      <Head title="Agents" json={address} />
      <div class="grid"><Over moment={moment} asked={asked} address={address} /><Sessions /></div>
    </>
  );
}
