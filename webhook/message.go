package webhook

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/internal/invisible"
	"github.com/interlockdev/interlock/internal/prose"
)

// maxPayload bounds the payload of a task in a message; a longer one is left out.
const maxPayload = 8 << 10

// Body is the body of a message in the format standard.
type Body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data is the content of a message.
type Data struct {
	Namespace string `json:"namespace"`
	Text      string `json:"text"` // one sentence
	// Event is the event as GET /v1/events shows it.
	Event    json.RawMessage `json:"event,omitempty"`
	Question *Question       `json:"question,omitempty"`
	Effect   *Effect         `json:"effect,omitempty"`
	Commands []string        `json:"commands,omitempty"` // that answer, or show more
	Links    *Links          `json:"links,omitempty"`
	Gap      *Gap            `json:"gap,omitempty"`
}

// Links are addresses below the server's public URL.
type Links struct {
	API    string `json:"api,omitempty"`
	Answer string `json:"answer,omitempty"` // opens a page with the question; its bearer may answer
}

// Gap is a part of the journal that was not looked at.
type Gap struct {
	From interlock.Index `json:"from,string"`
	To   interlock.Index `json:"to,string"`
}

// Question is all that a person needs to decide. The texts are agents' own.
type Question struct {
	ID           string          `json:"id"` // of the task, or the fence of the parked lease
	Question     string          `json:"question"`
	Agent        string          `json:"agent,omitempty"`
	Principal    string          `json:"principal,omitempty"`
	Purpose      string          `json:"purpose,omitempty"`
	Queue        string          `json:"queue,omitempty"`
	Kind         string          `json:"kind,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	PayloadBytes int             `json:"payload_bytes,omitempty"` // of one that is too long to be shown
	Claims       []Claim         `json:"claims,omitempty"`
	Documents    []Document      `json:"documents,omitempty"` // that the question rests on
	Asked        time.Time       `json:"asked_at"`
	Deadline     *time.Time      `json:"deadline,omitempty"`
	AtDeadline   string          `json:"at_deadline,omitempty"` // approved, denied, or lost: the lease ends
	Needed       int             `json:"approvals_needed,omitempty"`
}

// Effect is the effect that an event is about. The texts are agents' own.
type Effect struct {
	Action    string          `json:"action"`    // the digest, which names it
	Canonical json.RawMessage `json:"canonical"` // tool, target and arguments
	Agent     string          `json:"agent,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Attempt   int             `json:"attempt"`
}

// Claim is a key with a mode.
type Claim struct {
	Key  interlock.Key `json:"key"`
	Mode string        `json:"mode"`
}

// Document is a document in the version that the asker has read.
type Document struct {
	Key     interlock.Key     `json:"key"`
	Version interlock.Version `json:"version,string"`
}

// event is an event of the journal with its place.
type event struct {
	record.Event
	index   interlock.Index
	epoch   interlock.Epoch
	ordinal int // in its entry
	typ     string
}

// message makes the message about an event; nil if the webhook's key leaves the event out. Details
// that stand in no event, such as the payload of a task, are as they are by now.
func (s *Sender) message(
	ctx context.Context, w *engine.WebhookView, keys *engine.WebhookKeys, ev *event,
) (*Body, error) {
	var task *interlock.Task
	var asked engine.TaskQuestion
	id := interlock.TaskID(ev.ID)
	if isAboutTask(ev) {
		_, err := s.cfg.Shard.Read(ctx, "", func(e *engine.Engine, _ engine.Time) {
			if t, ok := e.Task(ev.Namespace, id); ok {
				task, asked = prose.Task(&t), e.TaskQuestion(ev.Namespace, id)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	claims := ev.Claims
	if task != nil && len(claims) == 0 {
		claims = task.Claims
	}
	if !keys.All() && !slices.ContainsFunc(claims, func(c interlock.Claim) bool { return keys.Match(c.Key) }) {
		return nil, nil
	}
	at := time.Unix(0, int64(ev.At)).UTC()
	b := &Body{Type: ev.typ, Timestamp: at, Data: Data{Namespace: string(ev.Namespace)}}
	b.Data.Event = s.cfg.Event(&ev.Event, ev.index, ev.epoch)
	facts := prose.Notice{
		Agent: ev.Agent, Actor: ev.Actor, Reason: ev.Reason.String(), Words: ev.Outcome, Held: ev.Held, Keys: claims,
		Name: firstOf(ev.PatternName, ev.QueueName),
	}
	if isAboutTask(ev) {
		facts.Task = id.String()
		b.Data.Commands = append(b.Data.Commands, "interlock task get "+id.String())
	} else if len(claims) > 0 {
		b.Data.Commands = append(b.Data.Commands, "interlock why "+shellWord(string(claims[0].Key)))
	}
	switch ev.typ {
	case "approval_requested":
		s.ask(w, ev, task, &asked, b)
		facts.Question = b.Data.Question.Question
		facts.Agent = b.Data.Question.Agent
	case "approval_decided":
		facts.Verdict, facts.Words = verdictOf(&ev.Event), prose.EventNote(&ev.Event)
	case "dead_letter":
		b.Data.Commands = append(b.Data.Commands, "interlock task replay "+id.String())
	case "effect_unknown":
		if err := s.tellEffect(ctx, ev, &facts, b); err != nil {
			return nil, err
		}
	}
	b.Data.Text = prose.NoticeOf(ev.typ, &facts)
	return b, nil
}

// tellEffect adds the effect of an event, and how to settle it. One that is settled by now under another
// claim is left out.
func (s *Sender) tellEffect(ctx context.Context, ev *event, facts *prose.Notice, b *Body) error {
	var effect engine.SideEffect
	var known bool
	_, err := s.cfg.Shard.Read(ctx, "", func(e *engine.Engine, _ engine.Time) {
		effect, known = e.ClaimedEffect(ev.Namespace, ev.ID)
	})
	if err != nil || !known {
		return err
	}
	digest := hex.EncodeToString(effect.Digest[:])
	b.Data.Effect = &Effect{
		Action: digest, Canonical: json.RawMessage(effect.Action), Agent: invisible.Line(effect.Agent),
		Principal: effect.Principal, Reason: invisible.Lines(ev.Outcome), Attempt: effect.Attempt,
	}
	b.Data.Commands = append(
		b.Data.Commands,
		"interlock effect get "+digest, "interlock effect reconcile "+digest+" --happened",
		"interlock effect reconcile "+digest+" --did-not-happen",
	)
	var action struct{ Tool, Target string }
	if err := json.Unmarshal([]byte(effect.Action), &action); err != nil {
		return fmt.Errorf("effect %s: %w", digest, err)
	}
	facts.Agent, facts.Effect = effect.Agent, action.Tool+" on "+action.Target
	return nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// isAboutTask reports whether an event's id is that of a task.
func isAboutTask(ev *event) bool {
	switch ev.Kind {
	case record.TaskSubmitted, record.TaskMoved, record.AttemptFailed, record.ApprovalRequested, record.ApprovalDecided:
		return true
	}
	return false
}

// verdictOf returns the answer that an event of the type approval_decided has.
func verdictOf(ev *record.Event) string {
	switch {
	case ev.Kind == record.Decided:
		return interlock.Verdict(ev.Op).String()
	case stateOf(ev) == interlock.TaskDead:
		return interlock.Denied.String()
	}
	return interlock.Approved.String()
}

// ask adds the question of an event, and how to answer it.
func (s *Sender) ask(
	w *engine.WebhookView, ev *event, task *interlock.Task, asked *engine.TaskQuestion, b *Body,
) {
	q := &Question{Asked: b.Timestamp, Agent: invisible.Line(ev.Agent), Purpose: invisible.Line(ev.Purpose)}
	b.Data.Question = q
	link := Link{Namespace: ev.Namespace, Asked: ev.At, Expires: b.Timestamp.Add(maxLink)}
	for _, c := range ev.Claims {
		q.Claims = append(q.Claims, Claim{c.Key, c.Mode.String()})
	}
	if ev.Kind == record.Parked {
		q.ID, q.Question, q.Principal = fmt.Sprint(uint64(ev.Fence)), invisible.Lines(ev.Note), ev.Actor
		until := b.Timestamp.Add(ev.TTL)
		q.Deadline, q.AtDeadline = &until, "lost"
		link.Fence, link.Asked = ev.Fence, 0
	} else {
		link.Task = ev.ID
		q.ID = link.Task.String()
		if task != nil {
			q.describe(task, asked)
		}
	}
	if q.Deadline != nil && q.Deadline.Before(link.Expires) {
		link.Expires = *q.Deadline
	}
	b.Data.Commands = append([]string{
		"interlock approval approve " + q.ID, "interlock approval deny " + q.ID + " --reason WHY",
	}, b.Data.Commands...)
	if s.cfg.PublicURL != "" {
		base := strings.TrimSuffix(s.cfg.PublicURL, "/")
		b.Data.Links = &Links{API: base + "/v1/approvals/" + q.ID, Answer: s.url(w, link)}
	}
}

// describe takes over the details of a task and its question.
func (q *Question) describe(t *interlock.Task, asked *engine.TaskQuestion) {
	q.Queue, q.Kind, q.Purpose = t.Queue, invisible.Line(t.Kind), invisible.Line(t.Purpose)
	q.Agent, q.Principal = invisible.Line(firstOf(q.Agent, t.Agent)), t.Principal
	if len(t.Payload) <= maxPayload {
		q.Payload = t.Payload
	} else {
		q.PayloadBytes = len(t.Payload)
	}
	if q.Claims == nil {
		for _, c := range t.Claims {
			q.Claims = append(q.Claims, Claim{c.Key, c.Mode.String()})
		}
	}
	a := t.Approval
	if a == nil {
		return
	}
	q.Question, q.Agent, q.Needed = invisible.Lines(a.Question), invisible.Line(firstOf(a.Agent, q.Agent)), a.Needed
	if asked.Until != record.Never {
		until := time.Unix(0, int64(asked.Until)).UTC()
		q.Deadline, q.AtDeadline = &until, a.OnLimit.String()
	}
	for _, r := range asked.Reads {
		q.Documents = append(q.Documents, Document{r.Key, r.Version})
	}
}

// ping makes the message with which an operator tries a webhook.
func ping(ns interlock.Namespace, name string) *Body {
	return &Body{Type: TypePing, Timestamp: time.Now().UTC(), Data: Data{
		Namespace: string(ns), Text: "Webhook " + name + " of namespace " + string(ns) + " works.",
	}}
}

// encode returns the body of a message in the format of a webhook.
func encode(w *engine.WebhookView, b *Body) ([]byte, error) {
	if w.Format != interlock.WebhookSlack {
		return json.Marshal(b)
	}
	text := slackText(b.Data.Text)
	if q := b.Data.Question; q != nil {
		for _, line := range q.lines() {
			text += "\n" + slackText(line)
		}
	}
	if l := b.Data.Links; l != nil && l.Answer != "" {
		text += "\n<" + l.Answer + "|Read and answer>"
	}
	for _, c := range b.Data.Commands {
		text += "\n`" + strings.ReplaceAll(slackText(c), "`", "'") + "`"
	}
	return json.Marshal(map[string]string{"text": text})
}

// lines describes a question for a reader that gets text alone.
func (q *Question) lines() (list []string) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, name+": "+value)
		}
	}
	add("Purpose", q.Purpose)
	add("Queue", q.Queue)
	add("Payload", string(q.Payload))
	for _, c := range q.Claims {
		add("Key", string(c.Key)+" ("+c.Mode+")")
	}
	for _, d := range q.Documents {
		add("Document", fmt.Sprintf("%s at version %d", d.Key, d.Version))
	}
	add("Principal", q.Principal)
	if q.Deadline != nil {
		add("Deadline", q.Deadline.Format(time.RFC3339)+", then "+q.AtDeadline)
	}
	return list
}

// slackText escapes what has a meaning in the text of Slack: only these three characters can begin
// a link, a mention or an entity.
func slackText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// shellWord quotes a key for a shell, if it must be.
func shellWord(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(":/._-@=+,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
