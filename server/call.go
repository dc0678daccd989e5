package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// call is one HTTP request on its way through.
type call struct {
	s         *Server
	w         http.ResponseWriter
	r         *http.Request
	route     string // the pattern, "" when no path fitted
	identity  Identity
	namespace interlock.Namespace
	variable  string // the escaped part of the path that the pattern leaves open
	query     url.Values
	past      *moment // what it is about; nil: the present
	active    Active  // the owner of the shard, where that is another server

	brief          bool // the caller asked for it with a parameter
	status         int
	statusOverride int // for a refusal that has another status here than elsewhere
	answered       bool
	carried        int // bytes of its body that the server's flight counts
}

// head returns the header of this call's command.
func (c *call) head() engine.Head {
	return engine.Head{Namespace: c.namespace, Actor: c.identity.name(), Principal: c.identity.Principal}
}

// mutating is head for a command that changes something: it can be repeated under
// an Idempotency-Key. ok is false when the call was already answered.
func (c *call) mutating() (h engine.Head, ok bool) {
	h = c.head()
	keys := c.r.Header["Idempotency-Key"]
	switch {
	case len(keys) == 0:
		return h, true
	case len(keys) > 1 || keys[0] == "":
		c.refuse(interlock.CodeInvalidRequest, "the header Idempotency-Key must occur once, and not be empty")
	case len(keys[0]) > interlock.MaxRequestIDBytes:
		c.refuse(
			interlock.CodeTooLong,
			fmt.Sprintf("the header Idempotency-Key has %d bytes, and the "+
				"maximum is %d", len(keys[0]), interlock.MaxRequestIDBytes),
		)
	default:
		h.RequestID = keys[0]
		return h, true
	}
	return h, false
}

// do has one command carried out. ok is false when the call was answered, or its
// caller has gone.
func (c *call) do(cmd engine.Command) (eff engine.Effect, at interlock.At, ok bool) {
	eff, at, err := c.s.shard.Do(c.r.Context(), cmd)
	if err != nil {
		c.failWith(err)
		return eff, at, false
	}
	c.s.obs.Answered(cmd, &eff)
	c.replayed(&eff)
	if eff.Outcome == engine.Refused {
		c.refused(&eff, at)
		return eff, at, false
	}
	return eff, at, true
}

// replayed marks an answer that was given before to the same request id.
func (c *call) replayed(eff *engine.Effect) {
	if eff.Repeated {
		c.w.Header().Set("Idempotency-Replayed", "true")
	}
}

// read runs a query. ok as for do.
func (c *call) read(query func(*engine.Engine, engine.Time)) (at interlock.At, ok bool) {
	if c.past != nil {
		at, err := c.lookBack(func(e *engine.Engine, now engine.Time) bool {
			query(e, now)
			return true
		})
		return at, c.wasRead(err)
	}
	at, err := c.s.shard.Read(c.r.Context(), c.namespace, query)
	return at, c.wasRead(err)
}

// wasRead reports whether a query was answered, and answers the call if it was not.
func (c *call) wasRead(err error) bool {
	if err != nil {
		c.failWith(err)
	}
	return err == nil
}

// survey asks surveys, one after the other, of one state of the namespace. ok as for
// do.
func (c *call) survey(all ...engine.Scan) (at interlock.At, ok bool) {
	return c.look(func(e *engine.Engine) (done bool) {
		if len(all) > 0 && all[0].Look(e) {
			all = all[1:]
		}
		return len(all) == 0
	})
}

// look runs a query that looks at much, piece by piece. ok as for do.
func (c *call) look(look func(*engine.Engine) (done bool)) (at interlock.At, ok bool) {
	at, err := c.surveyed(look)
	return at, c.wasRead(err)
}

// surveyed is look with an error, for a call that has not been answered.
func (c *call) surveyed(look func(*engine.Engine) (done bool)) (interlock.At, error) {
	each := func(e *engine.Engine, _ engine.Time) bool { return look(e) }
	if c.past != nil {
		return c.lookBack(each)
	}
	return c.s.shard.Survey(c.r.Context(), c.namespace, each)
}

// body reads the body and passes it to decode. ok is false when the call was answered. An empty
// body stands for {}.
func (c *call) body(decode func(*jsonIn)) (ok bool) {
	return c.bodyUpTo(interlock.MaxBodyBytes, decode)
}

func (c *call) bodyUpTo(limit int, decode func(*jsonIn)) (ok bool) {
	content, ok := c.content(limit)
	if !ok || len(content) > 0 && !c.isJSON() {
		return false
	}
	if len(content) == 0 {
		content = []byte("{}")
	}
	d := jsonIn{b: content}
	decode(&d)
	if d.err == nil {
		d.end()
	}
	if d.err != nil {
		c.fail(d.err)
		return false
	}
	return true
}

// content reads the body, of any type. ok is false when the call was
// answered.
func (c *call) content(limit int) (content []byte, ok bool) {
	if c.r.ContentLength > int64(limit) {
		c.tooLarge(limit)
		return nil, false
	}
	if c.r.ContentLength == 0 {
		return nil, true
	}
	var err error
	if n := c.r.ContentLength; n > 0 {
		if content, err = c.readBody(int(n)); err == nil && len(content) < int(n) {
			err = io.ErrUnexpectedEOF
		}
	} else {
		content, err = c.readBody(limit + 1)
	}
	if errors.Is(err, errNoRoom) {
		c.refuseInFlight()
		return nil, false
	}
	if err != nil {
		c.bodyMissing()
		return nil, false
	}
	if len(content) > limit {
		c.tooLarge(limit)
		return nil, false
	}
	if len(content) > 0 && c.r.ContentLength < 0 && c.refusedFor(amount{bytes: int64(len(content))}, c.isVital()) {
		return nil, false
	}
	return content, true
}

// bodyMissing refuses a call with a body that did not arrive: the client has gone, or sends too slowly. The connection
// ends either way.
func (c *call) bodyMissing() {
	c.w.Header().Set("Connection", "close")
	c.refuse(interlock.CodeInvalidRequest, "the body did not arrive completely within "+readTimeout.String())
}

// errNoRoom is why a body is not read on.
var errNoRoom = errors.New("server: too many bytes in flight")

// readBody reads the body, up to n bytes of it. A body that breaks off before its end is an error.
// It takes memory for the bytes that have come, not for those announced: a caller that announces
// much and sends nothing costs nothing.
func (c *call) readBody(n int) (content []byte, err error) {
	for len(content) < n {
		if had := len(content); had == cap(content) {
			room := min(n-had, max(had, smallBytes))
			if had+room > smallBytes && !c.carry(room) {
				return nil, errNoRoom
			}
			content = append(make([]byte, 0, had+room), content...)
		}
		got, err := c.r.Body.Read(content[len(content):min(cap(content), n)])
		content = content[:len(content)+got]
		switch {
		case err == io.EOF: // io.ErrUnexpectedEOF is not the end of the body
			return content, nil
		case err != nil:
			return nil, err
		}
	}
	return content, nil
}

// isJSON insists on the content type: a form in a page of another site can send
// text/plain and form data without asking, but not this.
func (c *call) isJSON() bool {
	value := c.r.Header.Get("Content-Type")
	if value == "application/json" {
		return true
	}
	if kind, params, err := mime.ParseMediaType(value); err == nil && kind == "application/json" {
		if charset, given := params["charset"]; !given || strings.EqualFold(charset, "utf-8") {
			return true
		}
	}
	c.statusOverride = http.StatusUnsupportedMediaType
	c.refuse(
		interlock.CodeInvalidRequest,
		fmt.Sprintf("content type %q: send the header Content-Type: application/json", clipped(value)),
	)
	return false
}

func (c *call) tooLarge(limit int) {
	// The rest of the body is not read, so the connection cannot be used again.
	c.w.Header().Set("Connection", "close")
	c.refuse(interlock.CodeBodyTooLarge, fmt.Sprintf("the body has more than %d bytes", limit))
}

// parseQuery keeps the parameters. Each must be known, stand once and have a value; an empty prefix is that of
// all keys, and an empty cursor begins a listing.
func (c *call) parseQuery(known []string) bool { return c.takeQuery(c.r.URL.RawQuery, known) }

// takeQuery is parseQuery for a query that may stand elsewhere.
func (c *call) takeQuery(query string, known []string) bool {
	values, err := url.ParseQuery(query)
	if err != nil {
		c.refuse(
			interlock.CodeInvalidRequest, "the query is malformed: write each parameter as name=value, percent-encoded",
		)
		return false
	}
	if !c.takeView(values) {
		return false
	}
	for name, list := range values {
		many := slices.Contains(known, name+"...")
		switch {
		case many:
		case !slices.Contains(known, name) && len(known) == 0:
			c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("unknown parameter %q: this call takes none", clipped(name)))
			return false
		case !slices.Contains(known, name):
			c.refuse(
				interlock.CodeInvalidRequest,
				fmt.Sprintf(
					"unknown parameter %q: known are %s", clipped(name), strings.ReplaceAll(strings.Join(known, ", "), "...", ""),
				),
			)
			return false
		case len(list) > 1:
			c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s occurs twice", name))
			return false
		case list[0] == "" && name != "prefix" && name != "cursor":
			c.refuse(
				interlock.CodeInvalidRequest, fmt.Sprintf("parameter %s has no value: leave it out, or name one", name),
			)
			return false
		}
	}
	c.query = values
	return true
}

// intParam reads a parameter from min to max; fallback when it is not there.
func (c *call) intParam(name string, fallback, least, most int64) (v int64, ok bool) {
	text := c.query.Get(name)
	if text == "" {
		return fallback, true
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < least || v > most {
		c.refuse(
			interlock.CodeInvalidRequest,
			fmt.Sprintf("parameter %s: want a whole number from %d to %d, found %q", name, least, most, clipped(text)),
		)
		return 0, false
	}
	return v, true
}

// The ids of the path. One that has not the form of an id is refused with invalid_id; one of
// another client is as unknown as one that never was.

func (c *call) leaseID() (interlock.LeaseID, bool) {
	id, err := interlock.ParseLeaseID(c.variable)
	return id, c.idIsGood(err, "lease", "l_")
}

func (c *call) ticketID() (interlock.TicketID, bool) {
	id, err := interlock.ParseTicketID(c.variable)
	return id, c.idIsGood(err, "ticket", "t_")
}

func (c *call) sessionID() (interlock.SessionID, bool) {
	id, err := interlock.ParseSessionID(c.variable)
	return id, c.idIsGood(err, "session", "s_")
}

func (c *call) effectID() (interlock.EffectID, bool) {
	id, err := interlock.ParseEffectID(c.variable)
	return id, c.idIsGood(err, "claimed effect", "e_")
}

func (c *call) idIsGood(err error, what, prefix string) bool {
	if err != nil {
		c.fail(badID(what, prefix))
	}
	return err == nil
}

func badID(what, prefix string) *interlock.Error {
	return &interlock.Error{
		Code: interlock.CodeInvalidID,
		Message: fmt.Sprintf(
			"invalid id of a %s: want %s and 32 hexadecimal digits, as the server returned it", what, prefix,
		),
	}
}

// freshID is 128 random bits. crypto/rand never fails.
func freshID() (id [16]byte) {
	_, _ = rand.Read(id[:])
	return id
}

// The header values that nearly every answer shares.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
)

// reply begins an answer of JSON; send ends it.
func (c *call) reply() *jsonOut {
	j := newJSON()
	j.open("")
	return j
}

// send adds the common members to an answer and writes it.
func (c *call) send(status int, j *jsonOut, at interlock.At) { c.sendAs(status, jsonType, j, at) }

func (c *call) sendAs(status int, contentType []string, j *jsonOut, at interlock.At) {
	j.at(at)
	j.serverTime()
	j.close()
	if c.past != nil && status == http.StatusOK {
		j = c.past.wrap(j, at)
	}
	if c.wantsBrief() && hasBrief(contentType, j.b) {
		c.shorten(j)
	}
	j.b = append(j.b, '\n')
	c.answered, c.status = true, status
	h := c.w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	if len(j.b) > 2000 {
		// Shorter ones are measured by net/http; longer ones would go in chunks.
		h["Content-Length"] = []string{strconv.Itoa(len(j.b))}
	}
	c.w.WriteHeader(status)
	c.write(j.b)
	j.free()
}

// write sends a part of the answer. A caller that has gone does not hear it.
func (c *call) write(b []byte) {
	if len(b) > smallBytes {
		c.s.flight.count(c.namespace, len(b))
		defer c.s.flight.count(c.namespace, -len(b))
	}
	_, _ = c.w.Write(b)
}

// retryAfter sets the header, in whole seconds rounded up.
func (c *call) retryAfter(d time.Duration) {
	if d > 0 {
		c.w.Header().Set("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	}
}
