package client

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/proto"
)

// call is one operation on its way. Client.mu guards it from send until its phase is done; its
// waiter owns it afterwards.
type call struct {
	op    proto.Op
	phase phase
	// forgotten reports that no caller waits for it: its results are returned to the server.
	forgotten bool
	// since is when it was made or sent first: a confirmed heartbeat counts from then, and a lease.
	since time.Time
	// target is the acquire that a poll goes back to the line for, and poll the other
	// direction. The first to end cuts the tie: a call that is done may soon be another one.
	target, poll *call
	beat         uint64 // the number of a heartbeat

	// news has the newest phase that was reported to its waiter and not yet received. With done
	// the call is the waiter's alone.
	news chan phase

	ticket   interlock.Ticket // with phase standing
	second   uint64           // the number whose second answer ends the wait
	holders  []interlock.Holder
	warnings []string
	grant    *grant       // with phase done; at most one of grant and err is set
	handed   []assignment // the tasks of a pull
	err      error
	found    *found             // the result of a query, a commit or an effect
	lease    *interlock.LeaseID // of a leave: look at this lease afterwards
	member   *Member            // of an acquire that joins
	task     interlock.TaskID   // with phase standing: the task that it waits for
	least    time.Duration      // of a pull: the shortest ttl that its leases are known to have

	withdrawn bool        // a pull is to be given up
	bulky     bool        // it delays the calls behind it
	repeated  bool        // it was sent over an earlier link too, so it may have been carried out
	begun     bool        // it was sent in an earlier session too, and its effects are not that session's
	later     *time.Timer // not nil while it is held back, see postpone.go
	pace      *Backoff
}

// found is an answer that contains more than whether it was done.
type found struct {
	proto.Reply
	at interlock.At
}

// stands reports whether the operation may stand in line.
func (k *call) stands() bool {
	switch k.op.Kind {
	case proto.OpAcquire, proto.OpConvert, proto.OpArrive, proto.OpResume, proto.OpDeclare, proto.OpStartRun,
		proto.OpPullTasks:
		return true
	}
	return false
}

// ttl returns the shortest possible ttl of a lease that the operation brings or renews; 0 for the
// session's. That of a parked lease is known only when it is back.
func (k *call) ttl() time.Duration {
	switch k.op.Kind {
	case proto.OpAcquire, proto.OpStartRun, proto.OpRenew:
		return k.op.TTL
	case proto.OpResume:
		return interlock.MinTTL
	case proto.OpPullTasks:
		return k.least
	}
	return 0
}

// ofLease is the lease that an operation changes by standing in line, if it does.
func (k *call) ofLease() (id interlock.LeaseID, ok bool) {
	switch k.op.Kind {
	case proto.OpConvert, proto.OpArrive:
		return k.op.ID, true
	}
	return id, false
}

// outlives reports whether an operation that is under way when its session ends is
// asked again in the next one. lost are the flows that lost a lease with the
// session: what they were going to do next may rest on it.
func (k *call) outlives(lost map[string]bool) bool {
	switch k.op.Kind {
	case proto.OpAcquire, proto.OpResume, proto.OpDeclare, proto.OpStartRun:
		return !lost[k.flow()]
	case proto.OpCommit, proto.OpClaimEffect:
		return k.phase == ready && !lost[k.flow()]
	case proto.OpSubmitTask:
		return k.op.RequestID != "" || k.phase == ready && !lost[k.flow()]
	case proto.OpSetPattern, proto.OpDropPattern, proto.OpRevertPattern, proto.OpConfigure, proto.OpSetQueue, proto.OpDropQueue,
		proto.OpChangeTask, proto.OpAnswerTask:
		return k.phase == ready
	case proto.OpPullTasks:
		return !k.withdrawn
	case proto.OpCheckFence, proto.OpSettleEffect, proto.OpFollowTask: // which is the same if it happens twice
		return true
	}
	return k.reads()
}

// reads reports whether the operation is a query.
func (k *call) reads() bool {
	switch k.op.Kind {
	case proto.OpListPatterns, proto.OpGetSettings, proto.OpReadState, proto.OpReadHistory,
		proto.OpGetEffect, proto.OpListEffects, proto.OpGetContention,
		proto.OpGetTask, proto.OpListTasks, proto.OpListQueues, proto.OpReadLog:
		return true
	}
	return false
}

// goesOn reports whether the operation is still to be carried out when no caller waits for it
// any more.
func (k *call) goesOn() bool {
	return k.op.Kind == proto.OpRelease || k.op.Kind == proto.OpSettleEffect || k.endsAttempt()
}

// endsAttempt reports whether the operation ends an attempt at a task.
func (k *call) endsAttempt() bool {
	switch k.op.Kind {
	case proto.OpAckTask, proto.OpNackTask, proto.OpAskHuman:
		return true
	}
	return false
}

// follows reports whether the operation waits for the end of a task.
func (k *call) follows() bool {
	switch k.op.Kind {
	case proto.OpSubmitTask, proto.OpFollowTask:
		return k.op.Task.Attach
	}
	return false
}

// finds reports whether the answer to the operation contains more than whether it was done.
func (k *call) finds() bool {
	switch k.op.Kind {
	case proto.OpCommit, proto.OpClaimEffect, proto.OpSettleEffect,
		proto.OpSubmitTask, proto.OpFollowTask, proto.OpChangeTask, proto.OpAnswerTask:
		return true
	}
	return k.reads()
}

// changesMore reports whether the operation changes state that outlives the session, so
// that it must not be asked a second time under another number.
func (k *call) changesMore() bool {
	switch k.op.Kind {
	case proto.OpPark, proto.OpSetPattern, proto.OpDropPattern, proto.OpRevertPattern, proto.OpConfigure, proto.OpCommit, proto.OpClaimEffect,
		proto.OpSetQueue, proto.OpDropQueue, proto.OpSubmitTask, proto.OpAckTask, proto.OpAskHuman, proto.OpChangeTask, proto.OpAnswerTask:
		return true
	}
	return false
}

// left returns how far a call with phase ready has come at most: to standing if it has waited
// for the end of a task before, and to sent if it may have been carried out.
func (k *call) left() phase {
	switch {
	case !k.task.IsZero():
		return standing
	case k.begun:
		return sent
	}
	return ready
}

// what returns the name of an operation for the error of a caller that gave it up.
func (k *call) what() string {
	o := &k.op
	switch o.Kind {
	case proto.OpConvert:
		return "the conversion"
	case proto.OpArrive:
		return "the other parties of the barrier"
	case proto.OpResume:
		return "the parked lease"
	case proto.OpDeclare:
		return "another agent"
	case proto.OpPullTasks:
		return "tasks of queue " + o.Task.Queue
	case proto.OpStartRun:
		return "a run of " + o.Run.Org
	}
	switch {
	case o.Prefix != "":
		return "any of " + o.Prefix
	case len(o.Claims) == 0:
		return "nothing"
	}
	return string(o.Claims[0].Key)
}

// phase is how far a call has come.
//
//	ready ──► sent ──► done
//	            │        ▲
//	            └► standing (in line)
//
// A call goes back to ready when its session has ended and it may be asked again
// in the next one.
type phase uint8

const (
	ready phase = iota
	sent
	standing
	done
)

// newCall makes a call, out of one that is done where there is one. They are kept
// per client, because a client in a test with a clock of its own must not share
// channels with others.
func (c *Client) newCall(kind proto.OpKind) *call {
	k, ok := c.calls.Get().(*call)
	if !ok {
		k = &call{news: make(chan phase, 1)}
	}
	k.op.Kind = kind
	return k
}

// free returns a done call to the pool. Nothing else may refer to it any more.
func (c *Client) free(k *call) {
	k.untie()
	if k.target != nil && k.target.poll == k {
		k.target.poll = nil
	}
	select {
	case <-k.news:
	default:
	}
	*k = call{news: k.news}
	c.calls.Put(k)
}

// untie lets a wait end without its poll; the poll's answer then means nothing.
func (k *call) untie() {
	if k.poll != nil {
		k.poll.target, k.poll = nil, nil
	}
}

// tell wakes the caller that waits for the call.
func (k *call) tell() {
	select {
	case <-k.news: // it was not heard yet
	default:
	}
	k.news <- k.phase // no other goroutine puts anything there: mu is held
}

// next waits for news of the call and returns its phase. ended reports that ctx ended first.
func (k *call) next(ctx context.Context) (p phase, ended bool) {
	end := ctx.Done()
	if end == nil { // one channel is cheaper to wait for than two
		return <-k.news, false
	}
	select {
	case p = <-k.news:
		return p, false
	case <-end:
		return p, true
	}
}

// finish ends a call.
func (k *call) finish(g *grant, err error) {
	k.untie()
	k.phase, k.grant, k.err = done, g, err
	k.tell()
}

// check refuses an operation that a server could not even read: it would end the stream of
// every other agent of this process.
func (k *call) check() error {
	o := &k.op
	size := o.Size()
	if size > proto.MaxOpBytes {
		return &interlock.Error{
			Code:    interlock.CodeBodyTooLarge,
			Message: "the request is larger than 2 MiB: write less at once, shorten its texts, or claim fewer keys",
		}
	}
	k.bulky = size > proto.BulkBytes
	if !valid(
		o.Agent, o.Flow, o.Purpose, o.Trace, o.Prefix, o.Group, string(o.Key), o.Outcome, o.Note, o.RequestID, o.Name,
	) ||
		!valid(rareTexts(o)...) {
		return errNotUTF8
	}
	for i := range o.Claims {
		if !utf8.ValidString(string(o.Claims[i].Key)) {
			return errNotUTF8
		}
	}
	return nil
}

func valid(texts ...string) bool {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// rareTexts are the texts that only operations of some kinds have, and none of an acquire or
// a release.
func rareTexts(o *proto.Op) (texts []string) {
	if o.On != nil {
		texts = append(texts, o.On.Session, o.On.Agent, o.On.Flow)
	}
	if p := o.Pattern; p != nil {
		texts = append(append(append(texts, p.Name, p.Shape, p.Writer), p.Aliases...), p.Members...)
		for i := range p.Groups {
			texts = append(texts, p.Groups[i].Name)
		}
		for i := range p.Allow {
			texts = append(texts, p.Allow[i].Principal)
		}
	}
	return appendTaskTexts(appendStateTexts(texts, o), o)
}

// flow returns the flow that the call is of.
func (k *call) flow() string {
	if k.op.Kind == proto.OpCommit {
		return k.op.Commit.Flow
	}
	return k.op.Flow
}

// appendStateTexts adds an operation's texts about documents and effects.
func appendStateTexts(texts []string, o *proto.Op) []string {
	if x := o.Commit; x != nil {
		texts = append(texts, x.Flow, x.Note)
		for i := range x.Reads {
			texts = append(texts, string(x.Reads[i].Key))
		}
		for i := range x.Writes {
			texts = append(texts, string(x.Writes[i].Key), x.Writes[i].ContentType)
		}
	}
	if x := o.State; x != nil {
		texts = append(texts, string(x.After))
		for _, key := range x.Keys {
			texts = append(texts, string(key))
		}
	}
	if x := o.Effect; x != nil {
		texts = append(texts, x.Tool, x.Target, x.Reason)
	}
	return texts
}

// appendTaskTexts adds an operation's texts about tasks, queues and runs.
func appendTaskTexts(texts []string, o *proto.Op) []string {
	if x := o.Task; x != nil {
		texts = appendQuestionTexts(append(texts, x.Queue, x.By, x.Reason), x.Question)
		for i := range x.Specs {
			t := &x.Specs[i]
			texts = appendQuestionTexts(append(texts, t.Queue, t.Kind, t.Purpose, t.Group, string(t.Key)), t.Ask)
			for j := range t.Claims {
				texts = append(texts, string(t.Claims[j].Key))
			}
		}
	}
	if q := o.Queue; q != nil {
		texts = append(texts, q.Name)
		for i := range q.Groups {
			texts = append(texts, q.Groups[i].Group)
		}
	}
	if x := o.Run; x != nil {
		texts = append(texts, x.Org, x.Workflow)
	}
	return texts
}

func appendQuestionTexts(texts []string, q *interlock.Question) []string {
	if q == nil {
		return texts
	}
	texts = append(texts, q.Text)
	for i := range q.Reads {
		texts = append(texts, string(q.Reads[i].Key))
	}
	return texts
}

var errNotUTF8 = &interlock.Error{
	Code: interlock.CodeInvalidRequest, Message: "a key or a text of the request is not valid UTF-8",
}

// window holds the calls of a session that were sent and have no first answer, by their
// numbers. It knows the number up to which everything was answered.
type window struct {
	ring [windowSize]*call
	last uint64 // the highest number assigned
	low  uint64 // everything up to here was answered
}

const (
	// windowSize is the number of a session's answers that the server remembers: beyond that a
	// repeated request would be refused.
	windowSize = 4096
	// windowLimit leaves room for heartbeats, polls and leaves, which do not wait.
	windowLimit = windowSize / 2
)

func (w *window) open() uint64 { return w.last - w.low }

// add assigns a call its number.
func (w *window) add(k *call) {
	w.last++
	k.op.Seq = w.last
	w.ring[w.last%windowSize] = k
}

func (w *window) get(seq uint64) *call {
	if seq <= w.low || seq > w.last {
		return nil
	}
	return w.ring[seq%windowSize]
}

// remove takes out a call when its first answer has come.
func (w *window) remove(seq uint64) {
	w.ring[seq%windowSize] = nil
	for w.low < w.last && w.ring[(w.low+1)%windowSize] == nil {
		w.low++
	}
}

// all returns the unanswered calls, in order.
func (w *window) all() (list []*call) {
	for seq := w.low + 1; seq <= w.last; seq++ {
		if k := w.ring[seq%windowSize]; k != nil {
			list = append(list, k)
		}
	}
	return list
}
