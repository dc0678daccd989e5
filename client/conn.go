package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/endpoint"
	"github.com/interlockdev/interlock/proto"
)

// conn is one link to a server, with a session bound to it.
type conn struct {
	link  proto.ClientLink
	owner string        // the address of the server that the other side relays to; "" if it is the owner itself
	wake  chan struct{} // something is ready to be sent
	acked uint64        // the last acknowledgement that the server has
	dead  bool          // guarded by Client.mu
}

// newConn begins to use a link.
func newConn(link proto.ClientLink) *conn {
	return &conn{link: link, wake: make(chan struct{}, 1)}
}

func (n *conn) ring() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run keeps the client connected until it is closed.
func (c *Client) run(n *conn) {
	for follows := 0; ; {
		direct := make(chan proto.ClientLink, 1)
		linked, broke := context.WithCancel(c.ctx)
		go func(n *conn, follows int) { direct <- c.toOwner(linked, n, follows) }(n, follows)
		c.serve(n)
		broke() // an owner that does not answer must not hold up what another server can take
		n = nil
		if link := <-direct; link == nil {
			follows = 0
		} else {
			follows++
			n, _ = c.bind(c.ctx, link) // if it fails, another server is tried
		}
		for pace := c.pace(); n == nil; {
			c.mu.Lock()
			away := c.goAway
			c.goAway = 0
			c.mu.Unlock()
			if pace.Wait(c.ctx, away) != nil {
				return
			}
			var err error
			if n, err = c.reach(c.ctx); err != nil {
				c.failed(err)
			}
		}
	}
}

// toOwner opens a link to the owner of the shard, if the server at the other end of n only relays to it, and then ends
// n. Until then n goes on, and it stays if the owner cannot be reached from here. follows is how many links in a row
// ended so: servers with different tables must not send a client around for ever.
//
// An owner that is not on the client's own list is not followed, because the credential would go to an address of the
// answering server's choice.
func (c *Client) toOwner(ctx context.Context, n *conn, follows int) proto.ClientLink {
	if n.owner == "" || !c.several() || follows >= c.servers.Places() || !c.servers.FollowOwner(n.owner) {
		return nil
	}
	link, err := c.dialOnce(ctx)
	if err != nil {
		return nil
	}
	n.link.Close(nil)
	return link
}

const (
	dialTimeout   = 5 * time.Second  // of one address
	attachTimeout = 10 * time.Second // of opening or resuming the session on a link
	reconnectMost = 5 * time.Second  // between two attempts to connect
	takeover      = 10 * time.Second // by when a standby has taken over, also on a busy machine
)

// attempt is the time of an attempt to connect when there is another server to go to.
var attempt = endpoint.Share(endpoint.Attentive)

// several reports whether there is another server to go to.
func (c *Client) several() bool { return c.servers != nil && c.servers.Places() > 1 }

// pace is that of attempts to connect.
func (c *Client) pace() Backoff {
	if c.several() {
		return Backoff{Most: endpoint.MostPause}
	}
	return Backoff{Most: reconnectMost}
}

// reach connects to the server that owns the shard. It tries each server at most once; one that
// does not answer, or only stands by, sends on to the next at once.
func (c *Client) reach(ctx context.Context) (n *conn, err error) {
	for tried := 1; ; tried++ {
		if n, err = c.connect(ctx); errors.Is(err, errSilent) {
			c.mu.Lock()
			c.silences++
			c.mu.Unlock()
		}
		refusal, refused := errors.AsType[*interlock.Error](err)
		if err == nil || refused && !leavesServer(refusal.Code) || ctx.Err() != nil || !c.several() ||
			tried >= c.servers.Places() {
			return n, err
		}
	}
}

// attemptTimeout bounds one attempt to connect, or to attach the session, that may take most. With other servers to
// try it gets 1.5 s, and twice that after each that was too short, as all servers may be slow; but at most a quarter
// of the shortest ttl, so that a silent one costs no lease.
func (c *Client) attemptTimeout(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.several() || c.sess == nil {
		return most
	}
	return min(most, endpoint.Share(c.sess.shortest), attempt<<min(c.silences, 8))
}

// failed takes note of an attempt to connect that did not succeed, and ends the
// calls that have waited long enough.
func (c *Client) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case refused && !refusal.Code.Retryable():
		c.refusal = refusal
	case c.cfg.RetryFor > 0 && time.Since(c.outage) >= c.cfg.RetryFor:
	default:
		return
	}
	for _, k := range c.everything() {
		if k.forgotten || k.op.Kind == proto.OpPoll || k.op.Kind == proto.OpHeartbeat || k.op.Kind == proto.OpClose {
			continue
		}
		switch {
		case k.phase == ready && k.left() == ready && c.refusal != nil:
			c.fail(k, c.refusal)
		case k.phase == ready && k.goesOn():
			c.fail(k, &interlock.Error{
				Code:    interlock.CodeOutcomeUnknown,
				Message: "no server answers: it is sent as soon as one does, and its outcome is unknown",
			})
		case k.phase == ready && k.left() == ready:
			c.fail(k, c.unreachable(err))
		default:
			c.fail(k, &interlock.Error{
				Code:    interlock.CodeOutcomeUnknown,
				Message: "the connection broke before the answer arrived, and no server has answered since: the outcome is unknown",
			})
		}
	}
}

// fail ends a call without the server: its waiter gets err, and what the call may still bring
// is returned to the server. mu is held.
func (c *Client) fail(k *call, err error) {
	if k.phase == ready && !k.goesOn() {
		c.unqueue(k)
		k.finish(nil, err)
		return
	}
	// The call itself continues, so that nothing stays behind: another takes its place.
	heir := *k
	heir.forgotten = true
	heir.news = make(chan phase, 1)
	if k.poll != nil {
		k.poll.target, k.poll = &heir, nil
	}
	c.replace(k, &heir)
	k.finish(nil, err)
}

var errSilent = errors.New("the server does not respond")

// whyClosed returns the error of a connection that was to be made, in words if it was made and closed again.
func whyClosed(err error) error {
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, closed) {
			return endpoint.ErrClosed
		}
	}
	return err
}

// connect makes a link and binds the session to it: the one that there is, or a
// new one.
func (c *Client) connect(ctx context.Context) (*conn, error) {
	link, err := c.dialOnce(ctx)
	if err != nil {
		return nil, err
	}
	return c.bind(ctx, link)
}

// bind binds the session to a link.
func (c *Client) bind(ctx context.Context, link proto.ClientLink) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.attemptTimeout(attachTimeout), errSilent)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		link.Close(&interlock.Error{
			Code: interlock.CodeUnreachable, Message: "the server does not respond: trying the next one",
		})
	})
	defer stop()
	n := newConn(link)
	if err := c.handshake(n); err != nil {
		link.Close(nil)
		if _, refused := errors.AsType[*interlock.Error](err); !refused && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, whyClosed(err)
	}
	return n, nil
}

// dialOnce makes a link to the current server.
func (c *Client) dialOnce(ctx context.Context) (proto.ClientLink, error) {
	c.mu.Lock()
	first := c.sess == nil
	c.mu.Unlock()
	if first && c.several() {
		return c.dialAny(ctx)
	}
	return c.dialFor(ctx, c.attemptTimeout(dialTimeout))
}

// dialFor makes a link in a time.
func (c *Client) dialFor(ctx context.Context, limit time.Duration) (proto.ClientLink, error) {
	if c.servers != nil { // else the Dialer bounds itself
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errSilent)
		defer cancel()
	}
	return c.dial(ctx, proto.Hello{Namespace: c.cfg.Namespace, Credential: c.cfg.Credential})
}

// dialAny makes a link to the first server that answers: to the current one, and to the next one beside it when that
// has been silent for the time of an attempt. So a lost server holds up no start, and slow ones lose no time.
func (c *Client) dialAny(ctx context.Context) (proto.ClientLink, error) {
	type answer struct {
		link    proto.ClientLink
		refusal error
	}
	var asked atomic.Int64
	a, err := endpoint.Race(ctx, c.servers.Places(), attempt, func(ctx context.Context, i int) (answer, error) {
		if i > 0 {
			c.servers.Silent(int(asked.Load()))
		}
		asked.Store(int64(c.servers.Current()))
		link, err := c.dialFor(ctx, dialTimeout)
		if _, refused := errors.AsType[*interlock.Error](err); refused {
			return answer{refusal: err}, nil
		}
		return answer{link: link}, err
	}, func(a answer) {
		if a.link != nil {
			a.link.Close(nil)
		}
	})
	if err == nil {
		err = a.refusal
	}
	return a.link, err
}

// handshake attaches the session, or opens one first. Nothing else is on the link
// before it is done.
func (c *Client) handshake(n *conn) error {
	c.mu.Lock()
	sess := c.sess
	c.mu.Unlock()
	if sess != nil {
		err := c.attach(n, sess)
		if !sessionGone(err) {
			return err
		}
		refusal, _ := errors.AsType[*interlock.Error](err)
		c.mu.Lock()
		c.sessionOver(sess, refusal)
		closing := c.closed != nil
		c.mu.Unlock()
		if closing {
			return refusal
		}
	}
	since := c.now()
	c.mu.Lock()
	c.slot++
	slot := c.slot
	if c.openID == "" {
		c.openID = requestID()
	}
	id := c.openID
	c.mu.Unlock()
	open := proto.Op{Kind: proto.OpOpen, Slot: slot, Seq: 1, RequestID: id, Agent: c.cfg.Agent}
	open.TTL = c.cfg.SessionTTL
	reply, err := c.ask(n, open)
	if err != nil {
		return err
	}
	if reply.Session == nil {
		return errors.New("the server opened no session")
	}
	c.mu.Lock()
	c.openID = ""
	isFirst := c.sess == nil
	c.mu.Unlock()
	if err := c.seat.note(reply.Session.ID); err != nil && isFirst { // later the work goes on, and nothing is taken over
		return err
	}
	return c.attach(n, newSession(reply.Session, slot, since))
}

// sessionGone reports whether err is the server's refusal because there is no such session.
func sessionGone(err error) bool {
	refusal, ok := errors.AsType[*interlock.Error](err)
	return ok && (refusal.Code == interlock.CodeSessionEnded || refusal.Code == interlock.CodeUnknownSession)
}

// attach resumes a session on a link: its pushes come here, unanswered calls are sent again
// under the same numbers, and waits go back to their places.
func (c *Client) attach(n *conn, s *session) error {
	since := c.now()
	reply, err := c.ask(n, proto.Op{Kind: proto.OpAttach, Slot: s.slot, Seq: 1, ID: s.id})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.answered(since)
	s.beats++
	s.renewed(s.beats, since) // it counts as a heartbeat for all of them
	clear(s.gaveUp)
	s.beatSent, s.told = s.beatAt, ""
	s.nextBeat = s.beatAt.Add(c.beatAfter(s.shortest))
	c.sess, c.conn, c.outage, c.refusal, c.trouble, c.silences = s, n, time.Time{}, nil, nil, 0
	c.losses(s, &reply)
	c.resume(s)
	for _, g := range s.leases {
		if g.isMember() {
			c.refresh(&g.id) // its parts may have changed meanwhile
		}
	}
	n.ring()
	c.look()
	return nil
}

// resume prepares the calls of an earlier link to be sent again. mu is held.
func (c *Client) resume(s *session) {
	var front []*call
	for _, k := range s.tickets {
		if k.op.Kind == proto.OpPullTasks {
			front = append(front, s.pullAgain(k))
			continue
		}
		poll := c.newCall(proto.OpPoll)
		k.untie()
		poll.op.ID, poll.target, k.poll = k.ticket.ID, k, poll
		front = append(front, poll)
	}
	for k := range s.followers {
		s.unfollow(k)
		k.followAgain()
		front = append(front, k)
	}
	clear(s.waits)
	for _, k := range s.window.all() {
		if k.op.Kind == proto.OpHeartbeat || k.op.Kind == proto.OpPoll {
			s.window.remove(k.op.Seq)
			continue
		}
		c.dismiss(k)
		k.repeated = true
		front = append(front, k)
	}
	for _, k := range c.front {
		if k.op.Kind != proto.OpHeartbeat && k.op.Kind != proto.OpPoll && k.op.Seq == 0 {
			front = append(front, k)
		}
	}
	c.front = front
}

// ask sends one operation of a handshake and waits for its answer.
func (c *Client) ask(n *conn, op proto.Op) (reply proto.Reply, err error) {
	if err := n.link.Send(&proto.ClientFrame{Ops: []proto.Op{op}}); err != nil {
		return reply, c.because(n, err)
	}
	var frame proto.ServerFrame
	for {
		if err := n.link.Recv(&frame); err != nil {
			return reply, err
		}
		if frame.Owner != "" {
			n.owner = frame.Owner
		}
		for i := range frame.Replies {
			r := &frame.Replies[i]
			if r.Slot != op.Slot || r.Seq != op.Seq {
				continue // pushes of the session come again with the answer to attach
			}
			if r.Outcome == proto.Refused {
				return reply, r.Error(frame.Shard, frame.Epoch)
			}
			return *r, nil
		}
	}
}

// because finds out why a Send failed: the reason is the error of Recv.
func (c *Client) because(n *conn, err error) error {
	var frame proto.ServerFrame
	for {
		if why := n.link.Recv(&frame); why != nil {
			return why
		}
	}
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// serve sends and receives on a link until it breaks.
func (c *Client) serve(n *conn) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.write(n)
	}()
	var in proto.ServerFrame
	for n.link.Recv(&in) == nil {
		c.mu.Lock()
		c.dispatch(n, &in)
		c.mu.Unlock()
	}
	n.link.Close(nil)
	c.mu.Lock()
	n.dead = true
	if c.conn == n {
		c.conn, c.outage = nil, time.Now()
	}
	c.mu.Unlock()
	n.ring()
	<-stopped
}
