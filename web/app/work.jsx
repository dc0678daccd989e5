// Work: questions to answer, queues, tasks and dead letters, single writers, runs, merge lines, workspaces.
import { h, Fragment } from 'preact';
import { caller, may, useGet } from './api.js';
import { href, query, refine } from './route.js';
import { Act, AgentLink, Card, Empty, Head, KeyLink, Missing, Mono, State, StateOf, Table, Text, change, count, plural, span } from './ui.jsx';

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
          <Act name="Approve" person={caller.value.open} title="Approve" send={answer(q, 'approved')} consequence={<><p><Text of="span">{q.ask}</Text></p><p>{q.what}.</p>{q.payload && <pre>{q.payload}</pre>}</>} />
          <Act name="Deny" danger person={caller.value.open} title="Deny" send={answer(q, 'denied')} consequence={<><p><Text of="span">{q.ask}</Text></p><p>{q.no}.</p>{q.payload && <pre>{q.payload}</pre>}</>} />
        </div>
      )}
    </div>
  ));
}

function Queues() {
  const list = useGet('/v1/queues');
  if (!list.data) return <Missing of={list} />;
  const rows = list.data.queues;
  if (!rows.length) return <Empty>There is no queue. <code>interlock queue set NAME</code> makes one.</Empty>;
  const post = (q, what) => ({ reason, key }) => change('POST', '/v1/queues/' + encodeURIComponent(q.name) + '/' + what, { reason }, key);
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
          <Act name="Resume" title={'Resume ' + q.name} send={post(q, 'resume')} consequence={<p>Workers get tasks again, and new ones are taken: {plural(q.tasks.waiting, 'task')} waiting, {plural(q.idle_workers, 'idle worker')}.</p>} />
        ) : (
          <span class="looks">
            <Act name="Pause" title={'Pause ' + q.name} send={post(q, 'pause')} consequence={<ul><li>{plural(q.tasks.waiting, 'waiting task')}: no worker gets one until the queue is resumed.</li><li>{plural(q.tasks.running, 'running task')}: not stopped.</li><li>New tasks are taken, and wait.</li></ul>} />
            <Act name="Drain" title={'Drain ' + q.name} send={post(q, 'drain')} consequence={<ul><li>New tasks are refused until the queue is resumed.</li><li>{plural(q.tasks.waiting + q.tasks.scheduled, 'waiting task')}: still done by workers.</li></ul>} />
          </span>
        )) },
      ].filter(Boolean)}
    />
  );
}

const states = ['', 'scheduled', 'waiting', 'running', 'asking', 'dead'];

/** The call that changes a task. */
const changeTask = (t, what) => ({ reason, key }) => change('POST', '/v1/tasks/' + t.id + '/' + what, { reason }, key);

function Actions({ of: t }) {
  const what = <p><Text of="span">{t.purpose || t.kind || t.id}</Text></p>;
  if (t.state === 'dead') {
    return (
      <span class="looks">
        <Act
          name="Retry" title="Retry the dead letter" send={changeTask(t, 'replay')}
          consequence={<>{what}<p>The task goes back into the queue <Mono>{t.queue}</Mono> with fresh attempts. A worker may carry out again what the failed attempts already did.</p>{t.reason && <p class="quiet">Last reason: <Text>{t.reason}</Text></p>}</>}
        />
        <Act
          name="Discard" danger title="Discard the dead letter" send={changeTask(t, 'discard')}
          consequence={<>{what}<p>The task is forgotten with its payload and the reasons of its attempts. It cannot be retried afterwards. The journal keeps its events.</p></>}
        />
      </span>
    );
  }
  return (
    <span class="looks">
      {t.state === 'scheduled' && (
        <Act
          name="Run now" title="Run the task now" send={changeTask(t, 'reschedule')}
          consequence={<>{what}<p>It may run at once instead of in {span(t.due_in_ms)}.</p></>}
        />
      )}
      <Act
        name="Cancel task" danger title="Cancel the task" send={changeTask(t, 'cancel')}
        consequence={<>{what}<ul><li>The task is not done: its submitter is told that it was cancelled.</li>{t.state === 'running' && <li>The running attempt loses its lease. Its writes are refused.</li>}<li>It can be retried later.</li></ul></>}
      />
    </span>
  );
}

/** Takes up all dead letters that are listed. A refusal ends it; those before it are taken up. */
const retryAll = (tasks) => async ({ reason, key }) => {
  for (const t of tasks) await change('POST', '/v1/tasks/' + t.id + '/replay', { reason }, key + t.id);
};

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
      {manage && state === 'dead' && rows.length > 1 && (
        <p><Act
          name={'Retry all ' + count(rows.length)} title={'Retry ' + plural(rows.length, 'dead letter')} send={retryAll(rows)}
          consequence={<>
            <p>They go back into their queues with fresh attempts. Workers may carry out again what the failed attempts already did.</p>
            <ul>{rows.slice(0, 10).map((t) => <li><Text of="span">{t.purpose || t.kind || t.id}</Text>{t.reason && <span class="quiet">: <Text>{t.reason}</Text></span>}</li>)}</ul>
            {rows.length > 10 && <p>and {plural(rows.length - 10, 'other')}</p>}
          </>}
        /></p>
      )}
      {list.data && !rows.length && <Empty>{queue || state ? 'No task fits the filters.' : <>No task is open. <code>interlock task create QUEUE</code> submits one.</>}</Empty>}
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
            manage && { head: 'Actions', cell: (t) => <Actions of={t} /> },
          ].filter(Boolean)}
        />
      )}
    </>
  );
}

function Writers() {
  const list = useGet('/v1/writers');
  const queues = useGet('/v1/queues');
  const rows = (list.data && list.data.writers) || [];
  const of = (w) => queues.data && queues.data.queues.find((q) => q.name === w.queue);
  return (
    <Card title="Mailboxes of single writers" wide>
      <Missing of={list} />
      {list.data && !rows.length && <Empty>No pattern has a single writer. <code>interlock writer set account --shape 'account:{'{id}'}' --queue accounts</code> makes one.</Empty>}
      {rows.length > 0 && (
        <Table
          label="Single writers" rows={rows} id={(w) => w.name}
          columns={[
            { head: 'Pattern', cell: (w) => <Text>{w.name}</Text> },
            { head: 'Keys', wide: true, cell: (w) => <Mono>{w.pattern}</Mono> },
            { head: 'Queue', cell: (w) => <a href={href('work', '', { queue: w.queue })}><Text>{w.queue}</Text></a> },
            { head: 'Messages', right: true, cell: (w) => of(w) && count(of(w).tasks.waiting + of(w).tasks.scheduled) },
            { head: 'In work', right: true, cell: (w) => of(w) && count(of(w).tasks.running) },
            { head: 'Dead', right: true, cell: (w) => of(w) && (of(w).tasks.dead ? <a href={href('work', '', { queue: w.queue, state: 'dead' })}>{count(of(w).tasks.dead)}</a> : 0) },
            { head: 'Idle writers', right: true, cell: (w) => of(w) && count(of(w).idle_workers) },
            { head: 'Oldest', right: true, cell: (w) => of(w) && span(of(w).oldest_ms) },
          ]}
        />
      )}
    </Card>
  );
}

function Runs() {
  const list = useGet('/v1/runs?limit=200');
  const rows = (list.data && list.data.runs) || [];
  return (
    <Card title="Runs of workflows" wide>
      <Missing of={list} />
      {list.data && !rows.length && <Empty>No run is going on. <code>interlock workflow start --org ORG --workflow NAME</code> starts one.</Empty>}
      {rows.length > 0 && (
        <Table
          label="Runs" rows={rows} id={(r) => r.holder.fence} more={list.data.cursor && 'and more'}
          columns={[
            { head: 'Organisation', cell: (r) => <Text>{r.org}</Text> },
            { head: 'Workflow', cell: (r) => <Text>{r.workflow}</Text> },
            { head: 'Agent', cell: (r) => <AgentLink of={r.holder.agent} flow={r.holder.flow} /> },
            { head: 'State', cell: (r) => <StateOf is={r.holder.liveness} /> },
            { head: 'Key', wide: true, cell: (r) => r.holder.key && <KeyLink of={r.holder.key} /> },
            { head: 'Purpose', wide: true, cell: (r) => <Text>{r.holder.purpose}</Text> },
            { head: 'Runs for', right: true, cell: (r) => span(r.holder.held_ms) },
          ]}
        />
      )}
    </Card>
  );
}

/** Reads all documents below a prefix, up to 1,000. */
const documents = (prefix) => '/v1/state?values=true&limit=1000&prefix=' + encodeURIComponent(prefix);

const outcomes = { landed: 'good', returned: 'bad', waiting: 'wait' };
const reasons = { conflict: 'conflict', checks: 'checks failed', sequence: 'number taken', policy: 'not allowed' };

/** Why a submission came back, from its outcome. */
function why(o) {
  if (!o) return '';
  if (o.conflicts && o.conflicts.length) return 'conflict in ' + o.conflicts.map((c) => c.path).join(', ');
  if (o.checks && o.checks.length) return 'failed: ' + o.checks.map((c) => c.name).join(', ');
  return (o.sequence && o.sequence[0]) || reasons[o.reason] || '';
}

/** The line of one target of a merge queue: what is in line, what came back, and what has landed. */
function Line({ target, head, queue }) {
  const prefix = 'merge:' + target + '/';
  const submissions = useGet(documents(prefix + 'submission/'));
  const from = Math.max(0, ((head && head.seq) || 0) - 20);
  const landed = useGet(head ? '/v1/state?values=true&' + Array.from({ length: Math.min(20, head.seq) }, (_, i) => 'key=' + encodeURIComponent(prefix + 'landing/' + String(from + i + 1).padStart(8, '0'))).join('&') : '');
  const all = ((submissions.data && submissions.data.documents) || []).filter((d) => d.value && d.value.state).map((d) => ({ ...d.value, key: d.key, id: d.value.id || d.key.slice((prefix + 'submission/').length), age: d.age_ms }));
  const rank = { waiting: 0, returned: 1, landed: 2 };
  const rows = all.filter((r) => r.state !== 'landed').sort((a, b) => rank[a.state] - rank[b.state] || a.place - b.place);
  const landings = ((landed.data && landed.data.documents) || []).map((d) => d.value).filter((v) => v && v.seq).sort((a, b) => b.seq - a.seq);
  return (
    <Card title={<>Merge line <Mono>{target}</Mono></>} wide aside={<a href={href('work', '', { queue: queue.name })}>{plural(queue.tasks.waiting + queue.tasks.running, 'submission')} in the queue</a>}>
      {head && <p class="quiet">{plural(head.seq, 'landing')}, head <Mono>{String(head.head).slice(0, 12)}</Mono>{head.staged && <>, {plural(head.staged.landings.length, 'landing')} staged as <Mono>{String(head.staged.new).slice(0, 12)}</Mono></>}{queue.paused && ', paused'}</p>}
      <h3>Submissions</h3>
      {submissions.data && !rows.length && <Empty>No submission waits or came back. <code>interlock workspace submit</code> submits one.</Empty>}
      {rows.length > 0 && (
        <Table
          label={'Submissions to ' + target} rows={rows} id={(r) => r.key}
          columns={[
            { head: 'Submission', cell: (r) => <KeyLink of={r.key} text={r.id} /> },
            { head: 'State', cell: (r) => <State is={r.resolving ? 'being resolved' : r.state} kind={outcomes[r.state] || 'off'} /> },
            { head: 'Author', cell: (r) => r.agent && <AgentLink of={r.agent} /> },
            { head: 'Purpose', wide: true, cell: (r) => <Text>{r.purpose || r.message}</Text> },
            { head: 'Why it came back, or clashes with', wide: true, cell: (r) => <Text>{why(r.outcome) || (r.clashes || []).map((c) => c.submission + (c.agent ? ' of ' + c.agent : '')).join(', ')}</Text> },
            { head: 'Returns', right: true, cell: (r) => r.tries || '' },
            { head: 'Head', cell: (r) => <Mono>{String(r.head || '').slice(0, 8)}</Mono> },
          ]}
        />
      )}
      {landings.length > 0 && <h3>Landings</h3>}
      {landings.length > 0 && (
        <Table
          label={'Landings of ' + target} rows={landings} id={(l) => l.seq} more={head.seq > landings.length && plural(head.seq - landings.length, 'earlier landing') + ': interlock merge report ' + target}
          columns={[
            { head: 'Landing', right: true, cell: (l) => l.seq },
            { head: 'When', cell: (l) => (l.at_ms ? <time class="num">{new Date(l.at_ms).toLocaleString('en-GB')}</time> : '') },
            { head: 'Author', cell: (l) => l.agent && <AgentLink of={l.agent} /> },
            { head: 'Purpose', wide: true, cell: (l) => <Text>{l.purpose}</Text> },
            { head: 'Paths', wide: true, cell: (l) => <Text>{(l.paths || []).join(', ')}</Text> },
            { head: 'Checks', cell: (l) => <Text>{(l.checks || []).join(', ') || (l.apart ? 'apart' : '')}</Text> },
            { head: 'Commit', cell: (l) => <Mono>{String(l.commit || '').slice(0, 8)}</Mono> },
          ]}
        />
      )}
    </Card>
  );
}

/** The merge lines: the queues merge.REPO.TARGET. Names may have dots, so the documents tell which part is which. */
function Lines() {
  const list = useGet('/v1/queues');
  const lines = ((list.data && list.data.queues) || []).filter((q) => /^merge\.[^.]+\../.test(q.name)).slice(0, 10).map((queue) => {
    const parts = queue.name.split('.').slice(1);
    return { queue, targets: parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('.') + '/' + parts.slice(i + 1).join('.')) };
  });
  const keys = lines.flatMap((l) => l.targets.map((t) => 'key=' + encodeURIComponent('merge:' + t)));
  const heads = useGet(keys.length ? '/v1/state?values=true&' + keys.join('&') : '');
  if (!list.data) return null;
  if (!lines.length) {
    return <Card title="Merge lines" wide><Empty>There is no merge queue. <code>interlock merge serve REPO/TARGET --repo DIR --check NAME=COMMAND</code> serves one.</Empty></Card>;
  }
  const documentOf = (t) => ((heads.data && heads.data.documents) || []).find((d) => d.key === 'merge:' + t && d.value);
  return lines.map(({ queue, targets }) => {
    const target = targets.find(documentOf) || targets[0];
    const d = documentOf(target);
    return <Line key={queue.name} target={target} head={d && d.value} queue={queue} />;
  });
}

function Workspaces() {
  const list = useGet(documents('workspace:'));
  const held = useGet('/v1/keys?limit=200&state=held&prefix=' + encodeURIComponent('workspace:'));
  const rows = ((list.data && list.data.documents) || []).filter((d) => d.value && d.value.kind);
  const holder = (d) => { const row = held.data && held.data.keys.find((k) => k.key === d.key); return row && row.holders[0]; };
  return (
    <Card title="Workspaces" wide>
      <Missing of={list} />
      {list.data && !rows.length && <Empty>No workspace is known. <code>interlock workspace new NAME</code> makes one in a repository.</Empty>}
      {rows.length > 0 && (
        <Table
          label="Workspaces" rows={rows} id={(d) => d.key} to={(d) => href('keys', d.key)} more={plural(rows.length, 'workspace')}
          columns={[
            { head: 'Workspace', wide: true, cell: (d) => <KeyLink of={d.key} /> },
            { head: 'In use by', cell: (d) => (holder(d) ? <AgentLink of={holder(d).agent} /> : <StateOf is="free" />) },
            { head: 'Kind', cell: (d) => <Text>{d.value.kind}</Text> },
            { head: 'Target', cell: (d) => <Text>{d.value.target}</Text> },
            { head: 'Purpose', wide: true, cell: (d) => <Text>{d.value.purpose}</Text> },
            { head: 'Host', cell: (d) => <Text>{d.value.host}</Text> },
            { head: 'Last submission', cell: (d) => <Text>{d.value.submission && d.value.submission.id}</Text> },
          ]}
        />
      )}
    </Card>
  );
}

export function Work() {
  return (
    <>
      <Head title="Work" json="/v1/queues" />
      <div class="grid">
        <Card title="Open questions" wide><Answers /></Card>
        <Card title="Queues" wide><Queues /></Card>
        <Card title="Tasks" wide><Tasks /></Card>
        <Writers />
        <Runs />
        <Lines />
        <Workspaces />
      </div>
    </>
  );
}
