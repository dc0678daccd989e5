// Journal: the events, and a slider over the moments that the page can look at.
import { h, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { fresh, lines, tick, useGet } from './api.js';
import { at, href, query, refine } from './route.js';
import { AgentLink, Empty, Head, Missing, Mono, State, Table, Text, count, plural } from './ui.jsx';
import { keyOf, sentence, trouble } from './event.js';
import { Differences } from './differences.jsx';

const windowSize = 2000; // entries that the list goes back

function fits(e, { agent, prefix, event }) {
  if (agent && e.agent !== agent) return false;
  if (event && e.event !== event) return false;
  return !prefix || (e.claims || [{ key: keyOf(e) }]).some((c) => c.key && c.key.startsWith(prefix));
}

export function Journal() {
  const { agent = '', prefix = '', event = '', against = '' } = query.value;
  const status = useGet(at.value ? '' : '/v1/status', 60000);
  const newest = tick.value || (status.data && Number(status.data.at.index)) || at.value;
  const first = (status.data && status.data.server && Number(status.data.server.journal.first)) || 1;
  const end = at.value || newest;
  const [list, set] = useState({ events: null, error: null });
  const from = Math.max(1, (at.value || tick.peek() || end) - windowSize);
  const address = '/v1/events?from=' + from + (agent ? '&agent=' + encodeURIComponent(agent) : '') +
    (prefix ? '&prefix=' + encodeURIComponent(prefix) : '') + (event ? '&event=' + event : '');
  const ready = newest > 0;
  useEffect(() => {
    if (!ready) return undefined;
    let gone = false;
    lines(address + '&until=' + new Date().toISOString()).then(
      (events) => { if (!gone) set({ events: events.filter((e) => e.index).reverse(), error: null }); },
      (error) => { if (!gone) set({ events: [], error }); },
    );
    return () => { gone = true; };
    // Again when the stream has begun, which goes on from there.
  }, [ready, tick.value > 0, agent, prefix, event, at.value]);
  const old = list.events || [];
  const top = old.length ? Number(old[0].index) : 0;
  const rows = [...(at.value ? [] : fresh.value.filter((e) => Number(e.index) > top && fits(e, query.value))), ...old]
    .filter((e) => !at.value || Number(e.index) <= at.value);
  return (
    <>
      <Head title="Journal" json={address}><span class="quiet">entry {count(end)}</span></Head>
      <label class="slider">
        <span>Look at the state after entry <b class="num">{count(end)}</b></span>
        <input
          type="range" min={first} max={Math.max(first, newest)} value={end}
          onChange={(e) => refine({ at: Number(e.currentTarget.value) >= newest ? '' : e.currentTarget.value })}
        />
      </label>
      {at.value > 0 && (
        <p>The state at this moment: <a href={href('')}>Now</a>, <a href={href('keys')}>Keys</a>, <a href={href('waits')}>Waits</a>, <a href={href('agents')}>Agents</a>, <a href={href('work')}>Work</a>.</p>
      )}
      <Differences />
      <div class="filters">
        <label>Agent<input value={agent} onChange={(e) => refine({ agent: e.currentTarget.value })} /></label>
        <label>Key begins with<input value={prefix} onChange={(e) => refine({ prefix: e.currentTarget.value })} /></label>
        <label>Event
          <select value={event} onChange={(e) => refine({ event: e.currentTarget.value })}>
            {['', 'granted', 'queued', 'left', 'ended', 'task_submitted', 'task_dispatched', 'task_attempt_failed', 'session_opened', 'session_ended', 'pattern_set'].map((x) => <option value={x}>{x.replaceAll('_', ' ') || 'any'}</option>)}
          </select>
        </label>
      </div>
      {list.error && <Missing of={{ error: list.error }} />}
      {list.events && rows.length === 0 && <Empty>No event in the last {count(windowSize)} entries fits.</Empty>}
      {rows.length > 0 && (
        <Table
          label="Events" rows={rows} id={(e) => e.index + e.event + (e.request || '') + (e.fence || '') + (e.task || '')}
          to={(e) => href('journal', '', { agent, prefix, event, against, at: e.index })} more={plural(rows.length, 'event')}
          columns={[
            { head: 'Entry', right: true, cell: (e) => <a class="num" href={href('journal', '', { agent, prefix, event, against, at: e.index })}>{e.index}</a> },
            { head: 'Time', cell: (e) => <time class="num" dateTime={e.time} title={e.time}>{new Date(e.time).toLocaleTimeString('en-GB')}</time> },
            { head: 'Event', cell: (e) => (trouble(e) ? <State is={e.event.replaceAll('_', ' ')} kind={trouble(e) === 'start' ? 'off' : 'bad'} /> : e.event.replaceAll('_', ' ')) },
            { head: 'Agent', cell: (e) => e.agent && <AgentLink of={e.agent} flow={e.flow} /> },
            { head: 'What', wide: true, cell: (e) => <Text>{sentence(e)}</Text> },
            { head: 'Purpose, note', wide: true, cell: (e) => <Text>{[e.purpose, e.note].filter(Boolean).join(' · ')}</Text> },
            { head: 'Credential', cell: (e) => <Text>{e.actor || e.principal}</Text> },
          ]}
        />
      )}
    </>
  );
}
