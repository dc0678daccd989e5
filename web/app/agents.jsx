// Agents: the sessions, with all that each holds and waits for.
import { h, Fragment } from 'preact';
import { useGet } from './api.js';
import { query, refine } from './route.js';
import { AgentLink, Empty, Head, KeyLink, Missing, Mono, State, Table, Text, plural, span } from './ui.jsx';

const KeyList = ({ of }) => (
  <>{of.slice(0, 3).map((c, i) => <>{i > 0 && ', '}<KeyLink of={c.key} /></>)}{of.length > 3 && <span class="quiet"> +{of.length - 3}</span>}</>
);

export function Agents() {
  const { agent = '' } = query.value;
  const address = '/v1/sessions?limit=500' + (agent ? '&agent=' + encodeURIComponent(agent) : '');
  const list = useGet(address, 5000);
  const rows = (list.data && list.data.sessions) || [];
  return (
    <>
      <Head title="Agents" json={address} />
      <div class="filters">
        <label>Agent<input value={agent} onChange={(e) => refine({ agent: e.currentTarget.value })} /></label>
        {agent && <button type="button" onClick={() => refine({ agent: '' })}>All agents</button>}
      </div>
      <Missing of={list} />
      {list.data && rows.length === 0 && <Empty>{agent ? 'No session of this agent is open.' : 'No session is open.'}</Empty>}
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
    </>
  );
}
