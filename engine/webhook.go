package engine

import (
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/engine/record"
)

// Webhooks: what an operator sets, and how far the messages of each have come. The engine neither
// sends a message nor knows which events become one: package webhook does, and reports its
// progress with AckWebhook. What it reported is delivered for good, after a restart too; a message
// that it delivered and did not report is delivered again.

func (c *SetWebhook) decide(e *Engine) {
	if problem := checkWebhook(&c.Webhook); problem != nil {
		e.refuse(interlock.CodeInvalidWebhook, problem)
		return
	}
	if !e.configurable() {
		return
	}
	known := e.PendingWork.NS.Webhook(c.Webhook.Name)
	if known == nil && !e.roomForWebhook(c.Namespace) {
		return
	}
	w := record.WebhookState{
		ID: c.ID, Generation: 1, Secret: c.Secret, LinkKey: c.LinkKey, Rotated: e.Clock, Cursor: c.Cursor,
	}
	if known != nil {
		w = *known
		if w.URL != c.Webhook.URL {
			w.Generation++
		}
	}
	c.own(&w, known)
	w.Webhook, w.Gone = c.Webhook, false
	e.setWebhook(record.WebhookSet, &w).NewSecret = known == nil
}

// own notes the principals that an answer by a link of the webhook counts for, before it gets its new settings. Another
// receiver has another owner. It is confirmed by a principal that may answer itself. A change of a confirmed
// receiver needs that again.
func (c *SetWebhook) own(w, known *record.WebhookState) {
	same := known != nil && known.URL == c.Webhook.URL
	if !same {
		w.Owners = nil
	}
	if !same || !known.ApproveLinks || !c.Webhook.ApproveLinks {
		w.Approver = ""
	}
	confirms := c.Webhook.ApproveLinks && c.Principal != nil && c.Principal.Has(interlock.RoleApprover)
	if confirms {
		w.Approver = c.Actor
	}
	if c.Actor != "" && (confirms || !same) && !slices.Contains(w.Owners, c.Actor) {
		w.Owners = append(slices.Clip(w.Owners), c.Actor)
	}
}

func (c *RotateWebhook) decide(e *Engine) {
	known := e.webhook(c.Name)
	if known == nil {
		return
	}
	w := *known
	w.Former, w.FormerUntil = w.Secret, e.Clock.Add(interlock.WebhookSecretTime)
	w.Secret, w.LinkKey, w.Rotated = c.Secret, c.LinkKey, e.Clock
	w.Generation++
	e.setWebhook(record.WebhookRotated, &w).NewSecret = true
}

func (c *DeleteWebhook) decide(e *Engine) {
	if e.webhook(c.Name) == nil {
		return
	}
	*e.draft() = record.Event{
		Kind: record.WebhookDeleted, Namespace: c.Namespace, WebhookName: c.Name, Actor: c.Actor,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	e.reply(Done)
}

func (c *AckWebhook) decide(e *Engine) {
	w := e.webhook(c.Name)
	switch {
	case w == nil:
		return
	case w.ID != c.ID:
		no := store.UnknownWebhook(c.Name)
		e.refuse(no.Code, no.Message)
		return
	case c.Cursor <= w.Cursor && c.Delivered+c.GivenUp == 0 && !c.Gone:
		e.reply(Done)
		return
	}
	*e.draft() = record.Event{
		Kind: record.WebhookDelivered, Namespace: c.Namespace, WebhookName: c.Name,
		Blob: record.AppendWebhookProgress(nil, &c.WebhookProgress),
	}
	e.emit(e.ev)
	e.reply(Done)
}

// setWebhook emits the new settings of a webhook, and answers the command.
func (e *Engine) setWebhook(kind record.Kind, w *record.WebhookState) *Effect {
	*e.draft() = record.Event{
		Kind: kind, Namespace: e.head.Namespace, WebhookName: w.Name, Blob: record.AppendWebhook(nil, w),
		Actor: e.head.Actor,
	}
	e.tag(e.ev, Done)
	e.emit(e.ev)
	eff := e.reply(Done)
	eff.Webhook = e.PendingWork.NS.Webhook(w.Name)
	return eff
}

// webhook returns the webhook with a name. If there is none, the command is refused.
func (e *Engine) webhook(name string) *record.WebhookState {
	w := e.PendingWork.NS.Webhook(name)
	if w == nil {
		no := store.UnknownWebhook(name)
		e.refuse(no.Code, no.Message)
	}
	return w
}

// roomForWebhook refuses a new webhook past a limit.
func (e *Engine) roomForWebhook(ns interlock.Namespace) bool {
	switch {
	case e.PendingWork.NS != nil && len(e.PendingWork.NS.Webhooks) >= interlock.MaxWebhooks:
		e.refuse(
			interlock.CodeTooManyWebhooks,
			message.New(message.WebhooksAtLimit, message.Str(ns), message.Num(interlock.MaxWebhooks)),
		)
		return false
	case e.Webhooks >= interlock.MaxAllWebhooks:
		e.refuse(
			interlock.CodeTooManyWebhooks, message.New(message.AllWebhooksAtLimit, message.Num(interlock.MaxAllWebhooks)),
		)
		return false
	}
	return true
}

// checkWebhook checks the form of a webhook; it returns nil for a correct one. The server
// checks the types of events and whether the URL may be called.
func checkWebhook(w *interlock.Webhook) *message.Text {
	if problem := store.CheckName("webhook", w.Name); problem != nil {
		return problem
	}
	if most := interlock.MaxNameBytes - len(interlock.WebhookPrefix); len(w.Name) > most {
		return message.New(
			message.NameLength, message.Str("webhook"), message.Str(keypath.Clip(w.Name, 64)), message.Num(most),
		)
	}
	switch {
	case w.URL == "" || len(w.URL) > interlock.MaxURLBytes:
		return message.New(message.WebhookURLLength, message.Num(interlock.MaxURLBytes))
	case len(w.Events) == 0 || len(w.Events) > interlock.MaxWebhookEvents:
		return message.New(message.WebhookEventCount, message.Num(interlock.MaxWebhookEvents))
	case w.Format > interlock.WebhookSlack:
		return message.New(message.WebhookFormatUnknown)
	}
	for _, name := range w.Events {
		if name != "*" {
			if problem := store.CheckName("event", name); problem != nil {
				return problem
			}
		}
	}
	if w.Key != "" {
		if _, problem := keypath.ParseShape(string(w.Key)); problem != nil {
			return message.New(message.InField, message.Str("key"), message.Sub(problem))
		}
	}
	return nil
}

// WebhookKeys decides which keys a webhook is about.
type WebhookKeys struct {
	shape keypath.Shape
	plain string // a key without variables, which is it and all below it
	all   bool
}

// NewWebhookKeys returns the filter of interlock.Webhook.Key. One that cannot be read matches no key.
func NewWebhookKeys(key interlock.Key) (f WebhookKeys) {
	if f.all = key == ""; f.all {
		return f
	}
	f.shape, _ = keypath.ParseShape(string(key))
	if !strings.ContainsRune(string(key), '{') {
		f.plain = string(key)
	}
	return f
}

// All reports whether f matches every event, also one without a key.
func (f *WebhookKeys) All() bool { return f.all }

// Match reports whether f matches a key.
func (f *WebhookKeys) Match(key interlock.Key) bool {
	if f.all {
		return true
	}
	if f.plain != "" {
		return string(key) == f.plain || keypath.IsBelow(string(key), f.plain)
	}
	_, ok := f.shape.Match(nil, string(key))
	return ok
}

// Webhook returns a webhook; ok is false if there is none.
func (e *Engine) Webhook(ns interlock.Namespace, name string) (w WebhookView, ok bool) {
	if known := e.turnTo(ns).Webhook(name); known != nil {
		return *known, true
	}
	return w, false
}

// WebhooksOf lists the webhooks of a namespace in the order of their names. A copy that has not opened yet
// sends nothing; the source sends what was due when it closed.
func (e *Engine) WebhooksOf(ns interlock.Namespace) (list []WebhookView) {
	s := e.turnTo(ns)
	if s == nil || s.Move.IsCopy() {
		return nil
	}
	for _, w := range s.SortedWebhooks() {
		list = append(list, *w)
	}
	return list
}

// WebhookNamespaces lists the namespaces that have webhooks, in the order of their names.
func (e *Engine) WebhookNamespaces() (list []interlock.Namespace) {
	if e.Webhooks == 0 {
		return nil
	}
	for _, s := range e.Sorted() {
		if len(s.Webhooks) > 0 && !s.Move.IsCopy() {
			list = append(list, s.Name)
		}
	}
	return list
}

// again repeats the answer, with the secret that the command made, as long as it is in use.
func (c *SetWebhook) again(e *Engine, a *store.StoredAnswer) { e.webhookAgain(c.Webhook.Name, a) }

// again repeats the answer, likewise.
func (c *RotateWebhook) again(e *Engine, a *store.StoredAnswer) { e.webhookAgain(c.Name, a) }

func (e *Engine) webhookAgain(name string, a *store.StoredAnswer) {
	eff := e.answerAgain(a, false)
	if w := e.PendingWork.NS.Webhook(name); eff != nil && w != nil {
		eff.Webhook, eff.NewSecret = w, w.Rotated == a.At
	}
}

// TaskQuestion is the last question about a task: a task that asks again has the same id and
// another question.
type TaskQuestion struct {
	Asked, Until Time // Until is Never for one without a limit
	Open         bool
	Reads        []interlock.Read // the versions on which it rests
}

// TaskQuestion returns the last question about a task, zero if there is none.
func (e *Engine) TaskQuestion(ns interlock.Namespace, id interlock.TaskID) (q TaskQuestion) {
	s := e.turnTo(ns)
	if s == nil || s.Tasks.Known[id] == nil || s.Tasks.Known[id].Spec.Approval == nil {
		return q
	}
	t := s.Tasks.Known[id]
	a := t.Spec.Approval
	return TaskQuestion{Asked: a.Asked, Until: a.Until(), Open: t.State == interlock.TaskAsking, Reads: a.Reads}
}
