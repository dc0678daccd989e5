// Keys: the list, and one key with its holders, line, history and actions.
import { h, Fragment } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, lines, may, useGet, useSlow } from './api.js';
import { at, href, path, query, refine } from './route.js';
import {
  Act, AgentLink, Bar, Card, Empty, Head, KeyLink, Missing, Mono, State, StateOf, Table, Text, change, count, plural, span,
} from './ui.jsx';
import { sentence } from './event.js';
import { Times } from './times.jsx';

const pageSize = 200;

export function Keys() {
  const { prefix = '', state = '' } = query.value;
  const base = '/v1/keys?limit=' + pageSize + '&prefix=' + encodeURIComponent(prefix) + (state ? '&state=' + state : '');
  const first = useGet(base);
  const [more, set] = useState({ base: '', rows: [], cursor: '' });
  const [busy, setBusy] = useState(false);
  const mine = more.base === base + at.value;
  const rows = first.data ? [...first.data.keys, ...(mine ? more.rows : [])] : [];
  const cursor = mine ? more.cursor : first.data && first.data.cursor;
  const next = async () => {
    if (!cursor || busy) return;
    setBusy(true);
    try {
      const page = await get(base + '&cursor=' + encodeURIComponent(cursor), at.value);
      set({ base: base + at.value, rows: [...(mine ? more.rows : []), ...page.keys], cursor: page.cursor || '' });
    } catch { /* the list is shown as far as it came */ }
    setBusy(false);
  };
  return (
    <>
      <Head title="Keys" json={base} />
      <div class="filters">
        <label>Begins with<input value={prefix} onInput={(e) => refine({ prefix: e.currentTarget.value })} /></label>
        <label>State
          <select value={state} onChange={(e) => refine({ state: e.currentTarget.value })}>
            <option value="">any</option><option value="held">held</option><option value="waiting">waiting</option>
          </select>
        </label>
      </div>
      <Missing of={first} />
      {first.data && rows.length === 0 && <Empty>{prefix || state ? 'No key fits the filters.' : <>No key is held or asked for. <code>interlock run KEY -- COMMAND</code> holds one.</>}</Empty>}
      {rows.length > 0 && (
        <Table
          label="Keys" rows={rows} id={(k) => k.key} to={(k) => href('keys', k.key)} onEnd={next}
          more={<>{plural(rows.length, 'key')}{cursor && <>, and more. <button type="button" onClick={next} disabled={busy}>Load more</button></>}</>}
          columns={[
            { head: 'Key', wide: true, cell: (k) => <KeyLink of={k.key} /> },
            { head: 'State', cell: (k) => <StateOf is={k.state} /> },
            { head: 'Holder', cell: (k) => k.holders[0] && (
              <><AgentLink of={k.holders[0].agent} flow={k.holders[0].flow} />{k.holders.length > 1 && <span class="quiet"> +{k.holders.length - 1}</span>}</>
            ) },
            { head: 'Purpose', wide: true, cell: (k) => k.holders[0] && <Text>{k.holders[0].purpose}</Text> },
            { head: 'Held', right: true, cell: (k) => k.holders[0] && span(k.holders[0].held_ms) },
            { head: 'Waiters', right: true, cell: (k) => count(k.length) },
          ]}
        />
      )}
    </>
  );
}

function Past({ name }) {
  const [events, set] = useState(null);
  const version = at.value;
  useEffect(() => {
    let gone = false;
    lines('/v1/events?about=' + encodeURIComponent(name) + '&until=' + new Date().toISOString())
      .then((all) => { if (!gone) set(all.reverse().slice(0, 50)); }, () => { if (!gone) set([]); });
    return () => { gone = true; };
  }, [name, version]);
  if (!events) return <Empty>Loading.</Empty>;
  if (!events.length) return <Empty>The journal has no event of this key any more.</Empty>;
  return (
    <Table
      label="Events of this key" rows={events} id={(e) => e.index + e.event + (e.request || '')}
      to={(e) => href('keys', name, { at: e.index })}
      columns={[
        { head: 'Time', cell: (e) => <a class="num" href={href('keys', name, { at: e.index })}>{new Date(e.time).toLocaleTimeString('en-GB')}</a> },
        { head: 'Agent', cell: (e) => e.agent && <AgentLink of={e.agent} flow={e.flow} /> },
        { head: 'Event', wide: true, cell: (e) => <Text>{sentence(e)}</Text> },
        { head: 'Fence', right: true, cell: (e) => e.fence },
      ]}
    />
  );
}

const shown = 50; // entries of the log of a mailbox

/** The log of a key that a single writer decides about: messages, decisions and states, newest first. */
function Mailbox({ name, pattern }) {
  const writers = useGet(at.value ? '' : '/v1/writers', 60000);
  const writer = writers.data && writers.data.writers.find((w) => w.name === pattern);
  const log = useSlow(writer ? '/v1/mailbox/' + encodeURIComponent(name) + '/log?limit=1024' : '', 10000);
  if (!writer) return null;
  const entries = (log.data && log.data.entries.slice(-shown).reverse()) || [];
  const json = (of) => (of === undefined ? '' : JSON.stringify(of).slice(0, 200));
  return (
    <Card title="Mailbox" aside={<>the writer is the queue <a href={href('work', '', { queue: writer.queue })}><Text>{writer.queue}</Text></a></>} wide>
      <Missing of={log} />
      {log.data && !entries.length && <Empty>No message to this key was decided yet. <code>interlock message send</code> sends one.</Empty>}
      {entries.length > 0 && (
        <Table
          label="Messages" rows={entries} id={(e) => e.seq} more={log.data.entries.length > shown && plural(log.data.entries.length - shown, 'earlier message')}
          columns={[
            { head: '#', right: true, cell: (e) => e.seq },
            { head: 'From', cell: (e) => <AgentLink of={e.agent || e.sender} /> },
            { head: 'Message', wide: true, cell: (e) => <Text>{[e.kind, json(e.body)].filter(Boolean).join(' ')}</Text> },
            { head: 'State', cell: (e) => <State is={e.state} kind={e.state === 'done' ? 'good' : e.state === 'dead' ? 'bad' : 'off'} /> },
            { head: 'Reply', wide: true, cell: (e) => <Text>{e.reason || json(e.reply)}</Text> },
            { head: 'Writer', cell: (e) => e.worker && <AgentLink of={e.worker} /> },
            { head: 'Version', right: true, cell: (e) => (e.changed ? e.document.version : '') },
            { head: 'Age', right: true, cell: (e) => span(e.age_ms) },
          ]}
        />
      )}
    </Card>
  );
}

/** What a revocation ends: the lease with all its keys, and the attempt at a task that it may be. */
function Fenced({ of, line, next, name }) {
  const q = new URLSearchParams({ limit: 200, prefix: of.key || name });
  if (of.agent) q.set('agent', of.agent);
  const leases = useGet('/v1/leases?' + q, 60000);
  const lease = leases.data && leases.data.leases.find((l) => l.fence === of.fence);
  const task = useGet(lease && lease.task ? '/v1/tasks/' + lease.task : '', 60000);
  const t = task.data && task.data.task;
  const keys = lease ? lease.claims.map((c) => c.key) : [of.key || name];
  return (
    <ul>
      <li>
        <Text of="span">{of.agent || 'The agent'}</Text>{lease && lease.principal && <> (credential <Text>{lease.principal}</Text>)</>} loses{' '}
        {keys.slice(0, 8).map((k, i) => <>{i > 0 && ', '}<Mono>{k}</Mono></>)}{keys.length > 8 && ' and ' + plural(keys.length - 8, 'other key')} at once.
        {' '}Its writes with fence {of.fence} are refused.
      </li>
      {of.purpose && <li>Its purpose: <Text of="span">{of.purpose}</Text></li>}
      {lease && lease.task && (
        <li>The attempt{t && t.attempt ? ' ' + t.attempt + (t.max_attempts ? ' of ' + t.max_attempts : '') : ''} at the task <Text>{(t && (t.purpose || t.kind)) || lease.task}</Text>{t && t.queue && <> of <Mono>{t.queue}</Mono></>} fails.
          {' '}{t && t.max_attempts && t.attempt >= t.max_attempts ? 'It was the last one: the task is dead then.' : 'The task is tried again.'}</li>
      )}
      <li>{line > 0 ? <>The next of {plural(line, 'waiter')} may get the key: <Text>{next}</Text>.</> : 'No agent waits for the key.'}</li>
      <li>Softer: without a renewal the lease ends by itself in {span(of.expires_in_ms)}.</li>
    </ul>
  );
}

export function Key({ name }) {
  const address = '/v1/keys/' + encodeURIComponent(name);
  const view = useGet(address, 5000);
  const why = useGet('/v1/why?key=' + encodeURIComponent(name), 5000);
  const key = view.data;
  const revoke = (holder) => ({ reason, key: once }) =>
    change('POST', '/v1/revocations', { key: holder.key || name, fence: holder.fence, reason }, once);
  const ask = (holder) => ({ reason, key: once }) =>
    change('POST', '/v1/yield-requests', { key: holder.key || name, fence: holder.fence, reason }, once);
  return (
    <>
      <Head title={name} json={address}><a href={href('keys')}>all keys</a><a href={href('agents', '', { key: name })}>timeline</a></Head>
      <Missing of={view} />
      {why.data && <p class="verdict"><Text of="span">{why.data.text}</Text></p>}
      {key && (
        <div class="grid">
          <Card title="Holders" aside={plural(key.holders.length, 'holder')}>
            {key.holders.length === 0 && <Empty>The key is free. Fences below {count(key.fence_floor)} are refused.</Empty>}
            {key.holders.map((x) => (
              <div class="holder" key={x.fence}>
                <div class="row"><AgentLink of={x.agent} flow={x.flow} /><StateOf is={x.liveness} /><span class="quiet">{x.mode}</span></div>
                {x.purpose && <p><Text of="span">{x.purpose}</Text></p>}
                {x.yield && (
                  <p class="state warn">▲ <AgentLink of={x.yield.agent} /> has asked it to yield, {span(x.yield.since_ms)} ago{x.yield.purpose && <>: <Text>{x.yield.purpose}</Text></>}{x.yield.revoked && '. The lease is in its grace because of it'}</p>
                )}
                {x.progress && <p class="quiet"><Text of="span">{x.progress}</Text></p>}
                <Bar of={x.held_ms / (x.held_ms + x.expires_in_ms)} kind={x.liveness === 'live' ? '' : 'warn'} />
                <dl class="facts">
                  <dt>Held</dt><dd>{span(x.held_ms)}</dd><dt>Ends without a renewal in</dt><dd>{span(x.expires_in_ms)}</dd>
                  <dt>Last heartbeat</dt><dd>{span(x.heartbeat_age_ms)} ago</dd><dt>Fence</dt><dd class="num">{x.fence}</dd>
                  <dt>Session</dt><dd><Mono>{x.session}</Mono></dd>
                  {x.key !== name && <><dt>Through</dt><dd><KeyLink of={x.key} /></dd></>}
                </dl>
                {may('operator') && (
                  <div class="buttons">
                    {key.length > 0 && (
                      <Act
                        name="Ask to yield" title={'Ask ' + (x.agent || 'this agent') + ' to yield'} send={ask(x)}
                        consequence={<ul>
                          <li><Text of="span">{x.agent || 'The agent'}</Text> is asked to release the key for the first agent that waits behind it.</li>
                          <li>It keeps the lease with fence {x.fence} until it releases it. Nothing is taken from it.</li>
                        </ul>}
                      />
                    )}
                    <Act
                      name="Revoke" danger title={'Revoke the lease of ' + (x.agent || 'this agent')} send={revoke(x)}
                      consequence={<Fenced of={x} name={name} line={key.length} next={key.waiters[0] && key.waiters[0].agent} />}
                    />
                  </div>
                )}
              </div>
            ))}
          </Card>
          <Card title="Line" aside={plural(key.length, 'waiter')}>
            {key.waiters.length === 0 ? <Empty>No agent waits for this key.</Empty> : (
              <Table
                label="Line" rows={key.waiters} id={(w) => w.position + w.session}
                more={key.length > key.waiters.length && plural(key.length - key.waiters.length, 'more waiter')}
                columns={[
                  { head: '#', right: true, cell: (w) => w.position },
                  { head: 'Agent', cell: (w) => <AgentLink of={w.agent} flow={w.flow} /> },
                  { head: 'Mode', cell: (w) => w.mode },
                  { head: 'Purpose', wide: true, cell: (w) => <Text>{w.purpose}</Text> },
                  { head: 'Waited', right: true, cell: (w) => span(w.waited_ms) },
                  { head: 'Estimate', right: true, cell: (w) => (w.eta_ms ? span(w.eta_ms) : '') },
                ]}
              />
            )}
          </Card>
          {key.notes.length > 0 && (
            <Card title="Notes">{key.notes.map((n) => <blockquote><Text of="span">{n.text || n.note}</Text> <span class="quiet"><Text>{n.agent}</Text></span></blockquote>)}</Card>
          )}
          {key.pattern && <Mailbox name={name} pattern={key.pattern} />}
          <Times name={name} />
          <Card title="What happened" aside={key.pattern && <>pattern <Mono>{key.pattern}</Mono></>} wide><Past name={name} /></Card>
        </div>
      )}
    </>
  );
}
