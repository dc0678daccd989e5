package server

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// The bodies of the calls, field by field as openapi.json names them: here what several of them
// have, and the small ones; those about leases are in request_lease.go, those for operators in
// request_pattern.go. A field's value is checked here as far as that is possible without the state:
// its kind, its range, and whether it goes together with the others.

// whole reads a number from least to most, such as a count.
func (d *jsonIn) whole(least, most int64) int64 {
	v := d.int()
	if (v < least || v > most) && d.err == nil {
		d.fail("field %s: want a whole number from %d to %d, found %d", d.path, least, most, v)
	}
	return v
}

// yes reads true or false.
func (d *jsonIn) yes() bool {
	switch {
	case d.err != nil:
	case d.word("true"):
		return true
	case !d.word("false"):
		d.want("true or false")
	}
	return false
}

// named reads a name that parse knows; known lists the names for the message.
func named[T any](d *jsonIn, known string, parse func(string) (T, bool)) T {
	name := d.str()
	v, ok := parse(name)
	if !ok && d.err == nil {
		d.fail("field %s: want %s, found %q", d.path, known, clipped(name))
	}
	return v
}

// choice reads one of some words; known lists them for the message.
func (d *jsonIn) choice(known string, words ...string) string {
	return named(d, known, func(name string) (string, bool) { return name, slices.Contains(words, name) })
}

// ms reads a duration. A value that is too long for a duration becomes the longest one, which
// is above every limit, so that the engine's refusal names the limit.
func (d *jsonIn) ms() time.Duration {
	v := d.int()
	switch {
	case v < 0:
		if d.err == nil {
			d.err = &interlock.Error{
				Code: interlock.CodeInvalidTTL, Message: fmt.Sprintf("field %s: a duration cannot be negative", d.path),
			}
		}
		return 0
	case v > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(v) * time.Millisecond
}

func (d *jsonIn) priority() int {
	v := d.int()
	if (v < -interlock.MaxPriority || v > interlock.MaxPriority) && d.err == nil {
		d.err = &interlock.Error{Code: interlock.CodeInvalidPriority, Message: fmt.Sprintf(
			"field %s: a priority must be from %d to %d", d.path, -interlock.MaxPriority, interlock.MaxPriority,
		)}
	}
	return int(v)
}

func (d *jsonIn) sessionID() interlock.SessionID {
	id, err := interlock.ParseSessionID(d.str())
	// The id of zeros means "no session" further in.
	if (err != nil || id.IsZero()) && d.err == nil {
		d.err = badID("session", "s_")
	}
	return id
}

func (d *jsonIn) fence() interlock.Fence { return interlock.Fence(d.decimal("a fence")) }

func (d *jsonIn) version() interlock.Version { return interlock.Version(d.decimal("a version")) }

// decimal reads a counter, which is a decimal string.
func (d *jsonIn) decimal(what string) uint64 {
	if d.i < len(d.b) && (d.b[d.i] >= '0' && d.b[d.i] <= '9') {
		d.fail("field %s: %s must be a decimal string, such as \"17\": a JSON number loses precision "+
			"above 2^53", d.path, what)
		return 0
	}
	text := d.str()
	v, err := parseDecimal(text)
	if err != nil && d.err == nil {
		d.fail("field %s: want a decimal string such as \"17\", found %q", d.path, clipped(text))
	}
	return v
}

// parseDecimal takes exactly what the counters are written as: no sign, no
// leading zero.
func parseDecimal(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil && strconv.FormatUint(v, 10) != s {
		err = strconv.ErrSyntax
	}
	return v, err
}

// progress reads a text, or any JSON object, which is kept as its text.
func (d *jsonIn) progress() string {
	if d.i < len(d.b) && d.b[d.i] == '{' {
		return string(d.any(maxJSONDepth))
	}
	return d.str()
}

// decodeCheckFence reads the body of POST /v1/fences/check: a fence, or the statement
// of one.
func decodeCheckFence(d *jsonIn, cmd *engine.CheckFence) (statement string) {
	has := d.checkFenceRequest(cmd, &statement)
	switch {
	case d.err != nil:
	case has&checkFenceHasStatement == 0:
		d.required(cmd.Key, cmd.Fence)
	case has&checkFenceHasFence != 0:
		d.fail("field statement: it contains its fence: omit one of the two")
	case cmd.Key == "":
		d.fail("field key is missing")
	case statement == "":
		d.fail("field statement is empty")
	}
	return statement
}

func decodeRevoke(d *jsonIn, cmd *engine.Revoke) {
	d.revokeRequest(cmd)
	d.required(cmd.Key, cmd.Fence)
}

func decodeRequestYield(d *jsonIn, cmd *engine.RequestYield) {
	d.yieldRequest(cmd)
	d.required(cmd.Key, cmd.Fence)
}

func (d *jsonIn) required(key interlock.Key, fence interlock.Fence) {
	switch {
	case d.err != nil:
	case key == "":
		d.fail("field key is missing")
	case fence == 0:
		d.fail("field fence is missing or 0")
	}
}
