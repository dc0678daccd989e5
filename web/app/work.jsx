// Work: questions to answer, queues, tasks and dead letters, single writers, runs.
import { h, Fragment } from 'preact';
import { caller, may, useGet } from './api.js';
import { href, query, refine } from './route.js';
import { Act, AgentLink, Card, Empty, Head, KeyLink, Missing, Mono, StateOf, Table, Text, change, count, plural, span } from './ui.jsx';

const payload = (t) => (t.payload === undefined ? '' : JSON.stringify(t.payload, null, 1).slice(0, 2000));

/** The open questions. */
export function Answers() {
  const list = useGet('/v1/approvals');
  if (!list.data) return <Missing of={list} />;
  const tasks = list.data.tasks || [], leases = list.data.leases || [];
  const open = [
    ...tasks.map((t) => ({ id: t.id, ask: t.approval.question, agent: t.approval.agent, age: t.approval.asked_ms, purpose: t.purpose, what: 'The task goes on to a worker of ' + t.queue, no: 'The task fails and is not worked on', payload: payload(t), limit: t.approval.on_limit })),
    ...leases.map((l) => ({ id: l.id || l.fence, ask: l.question, agent: l.agent, age: l.asked_ms, purpose: l.purpose, what: 'The agent may go on with its lease', no: 'The agent is told not to go on', payload: '' })),
  ];
  if (!open.length) return <Empty>No question is open.</Empty>;
  const answer = (q, verdict) => ({ reason, by, key }) =>
    change('POST', '/v1/approvals/' + encodeURIComponent(q.id), { verdict, reason, by }, key);
  return open.slice(0, 50).map((q) => (
    <div class="question" key={q.id}>
      <blockquote><Text of="span">{q.ask}</Text></blockquote>
      <p class="quiet"><AgentLink of={q.agent} />, {span(q.age)} ago{q.purpose && <>: <Text>{q.purpose}</Text></>}</p>
      {may('approver') && (
        <div class="buttons">
          <Act name="Approve" reason person={caller.value.open} title="Approve" send={answer(q, 'approved')} consequence={<><p><Text of="span">{q.ask}</Text></p><p>{q.what}.</p>{q.payload && <pre>{q.payload}</pre>}</>} />
          <Act name="Deny" danger reason person={caller.value.open} title="Deny" send={answer(q, 'denied')} consequence={<><p><Text of="span">{q.ask}</Text></p><p>{q.no}.</p>{q.payload && <pre>{q.payload}</pre>}</>} />
        </div>
      )}
    </div>
  ));
}

function Queues() {
  const list = useGet('/v1/queues');
  if (!list.data) return <Missing of={list} />;
  const rows = list.data.queues;
  if (!rows.length) return <Empty>There is no queue. <code>interlock task create</code> makes one.</Empty>;
  const post = (q, what) => ({ key }) => change('POST', '/v1/queues/' + encodeURIComponent(q.name) + '/' + what, {}, key);
  const manage = may('agent', 'operator');
  return (
    <Table
      label="Queues" rows={rows} id={(q) => q.name}
      columns={[
        { head: 'Queue', wide: true, cell: (q) => <a href={href('work', '', { queue: q.name })}><Text>{q.name}</Text></a> },
        { head: 'State', cell: (q) => <StateOf is={q.paused ? 'paused' : q.drain ? 'draining' : 'open'} /> },
        { head: 'Waiting', right: true, cell: (q) => count(q.tasks.waiting + q.tasks.scheduled) },
        { head: 'Running', right: true, cell: (q) => count(q.tasks.running) + (q.max_running ? ' of ' + q.max_running : '') },
        { head: 'Asking', right: true, cell: (q) => count(q.tasks.asking) },
        { head: 'Dead', right: true, cell: (q) => count(q.tasks.dead) },
        { head: 'Idle workers', right: true, cell: (q) => count(q.idle_workers) },
        { head: 'Oldest', right: true, cell: (q) => span(q.oldest_ms) },
        manage && { head: 'Actions', cell: (q) => (q.paused || q.drain ? (
          <Act name="Resume" title={'Resume ' + q.name} send={post(q, 'resume')} consequence={<p>Workers get tasks again: {plural(q.tasks.waiting, 'task')} waiting, {plural(q.idle_workers, 'idle worker')}.</p>} />
        ) : (
          <Act name="Pause" title={'Pause ' + q.name} send={post(q, 'pause')} consequence={<ul><li>{plural(q.tasks.waiting, 'waiting task')} stay until the queue is resumed.</li><li>{plural(q.tasks.running, 'running task')} go on.</li><li>New tasks are taken, and wait.</li></ul>} />
        )) },
      ].filter(Boolean)}
    />
  );
}

const states = ['', 'scheduled', 'waiting', 'running', 'asking', 'dead'];

function Tasks() {
  const { queue = '', state = '' } = query.value;
  const address = '/v1/tasks?limit=200' + (queue ? '&queue=' + encodeURIComponent(queue) : '') + (state ? '&state=' + state : '');
  const list = useGet(address);
  const rows = (list.data && list.data.tasks) || [];
  const manage = may('agent', 'operator');
  return (
    <>
      <div class="filters">
        <label>Queue<input value={queue} onChange={(e) => refine({ queue: e.currentTarget.value })} /></label>
        <label>State
          <select value={state} onChange={(e) => refine({ state: e.currentTarget.value })}>{states.map((s) => <option value={s}>{s || 'any'}</option>)}</select>
        </label>
      </div>
      <Missing of={list} />
      {list.data && !rows.length && <Empty>{queue || state ? 'No task fits the filters.' : 'No task is open.'}</Empty>}
      {rows.length > 0 && (
        <Table
          label="Tasks" rows={rows} id={(t) => t.id} more={plural(rows.length, 'task') + (list.data.cursor ? ', and more: filter by queue and state' : '')}
          columns={[
            { head: 'Purpose', wide: true, cell: (t) => <Text>{t.purpose || t.kind || t.id}</Text> },
            { head: 'Queue', cell: (t) => <Text>{t.queue}</Text> },
            { head: 'State', cell: (t) => <StateOf is={t.state} /> },
            { head: 'Attempt', right: true, cell: (t) => t.attempt + (t.max_attempts ? ' of ' + t.max_attempts : '') },
            { head: 'Reason', wide: true, cell: (t) => <Text>{t.reason}</Text> },
            { head: 'Submitted by', cell: (t) => t.agent && <AgentLink of={t.agent} /> },
            { head: 'Age', right: true, cell: (t) => span(t.age_ms) },
            manage && { head: 'Actions', cell: (t) => t.state === 'dead' && (
              <Act
                name="Retry" title="Retry the dead letter" send={({ key }) => change('POST', '/v1/tasks/' + t.id + '/replay', {}, key)}
                consequence={<><p><Text of="span">{t.purpose || t.id}</Text></p><p>The task goes back into the queue <Mono>{t.queue}</Mono> with fresh attempts. A worker may carry out again what the failed attempts already did.</p><p class="quiet">Last reason: <Text>{t.reason}</Text></p></>}
              />
            ) },
          ].filter(Boolean)}
        />
      )}
    </>
  );
}

function Writers() {
  const list = useGet('/v1/writers');
  const rows = (list.data && list.data.writers) || [];
  if (!rows.length) return null;
  return (
    <Card title="Mailboxes of single writers" wide>
      <Table
        label="Single writers" rows={rows} id={(w) => w.pattern || w.name}
        columns={[
          { head: 'Pattern', wide: true, cell: (w) => <Mono>{w.pattern || w.name}</Mono> },
          { head: 'Writer', cell: (w) => <Text>{w.writer}</Text> },
          { head: 'Queue', cell: (w) => w.queue && <a href={href('work', '', { queue: w.queue })}><Text>{w.queue}</Text></a> },
        ]}
      />
    </Card>
  );
}

function Runs() {
  const list = useGet('/v1/runs');
  const rows = (list.data && list.data.runs) || [];
  if (!rows.length) return null;
  return (
    <Card title="Runs" wide>
      <Table
        label="Runs" rows={rows} id={(r) => r.id || r.run}
        columns={[
          { head: 'Run', wide: true, cell: (r) => <Mono>{r.id || r.run}</Mono> },
          { head: 'Workflow', cell: (r) => <Text>{r.workflow}</Text> },
          { head: 'Organisation', cell: (r) => <Text>{r.org}</Text> },
          { head: 'Agent', cell: (r) => r.agent && <AgentLink of={r.agent} /> },
        ]}
      />
    </Card>
  );
}

export function Work() {
  return (
    <>
      <Head title="Work" json="/v1/queues" />
      <div class="grid">
        <Card title="Queues" wide><Queues /></Card>
        <Card title="Open questions" wide><Answers /></Card>
        <Card title="Tasks" wide><Tasks /></Card>
        <Writers />
        <Runs />
      </div>
    </>
  );
}
