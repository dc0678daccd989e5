package record

// The codecs as they were by hand, against which the generated ones are compared.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// oldFields writes a list of fields. The zero value is an empty list.
type oldFields struct{ Bytes []byte }

// Number appends a number, unless it is zero.
func (f *oldFields) Number(id, v uint64) {
	if v != 0 {
		f.Bytes = binary.AppendUvarint(binary.AppendUvarint(f.Bytes, id<<1), v)
	}
}

// Text appends a text, also an empty one.
func (f *oldFields) Text(id uint64, s string) {
	f.Bytes = appendText(binary.AppendUvarint(f.Bytes, id<<1|1), s)
}

// Flag appends a flag that is set.
func (f *oldFields) Flag(id uint64, v bool) {
	if v {
		f.Number(id, 1)
	}
}

// oldEachField calls visit with the number of each field and its value, which is a
// number or a text. visit returns false for a field that it does not know.
func oldEachField(b []byte, visit func(id, number uint64, text string) bool) error {
	d := decoder{b: b}
	for len(d.b) > 0 {
		var number uint64
		var text string
		id := d.number()
		if id&1 == 0 {
			number = d.number()
		} else {
			text = d.text()
		}
		if d.failed {
			return ErrMalformed
		}
		if !visit(id>>1, number, text) {
			return ErrNewer
		}
	}
	return nil
}

func oldAppendPattern(b []byte, p *interlock.Pattern) []byte {
	f := oldFields{b}
	f.Text(1, p.Name)
	f.Text(2, p.Shape)
	for _, s := range p.Aliases {
		f.Text(3, s)
	}
	for _, s := range p.Members {
		f.Text(4, s)
	}
	f.Number(5, uint64(p.Capacity))
	f.Number(6, uint64(p.Rate))
	f.Number(7, uint64(p.Per))
	f.Number(8, uint64(p.Burst))
	for _, g := range p.Groups { // a name, then the numbers that belong to it
		f.Text(9, g.Name)
		f.Number(10, uint64(g.Min))
		f.Number(11, uint64(g.Max))
	}
	f.Number(12, uint64(p.TTL))
	f.Number(13, uint64(p.MaxTTL))
	f.Number(14, uint64(p.Grace))
	f.Number(15, uint64(p.MaxGrace))
	f.Number(16, uint64(p.MaxHold))
	f.Number(17, uint64(p.Stall))
	f.Number(18, uint64(p.LockDelay))
	f.Number(19, uint64(p.MaxWait))
	f.Number(20, uint64(p.MaxWaiters))
	for _, r := range p.Allow { // a principal, then its modes
		f.Text(21, r.Principal)
		for _, m := range r.Modes {
			f.Number(22, uint64(m))
		}
	}
	f.Number(23, uint64(p.Preempt))
	f.Number(24, uint64(p.Park))
	f.Number(25, uint64(p.MaxPark))
	f.Number(26, uint64(p.OnDeadlock))
	f.Number(27, uint64(p.Write))
	if p.Writer != "" {
		f.Text(28, p.Writer)
	}
	if p.WriterQueue != "" {
		f.Text(29, p.WriterQueue)
	}
	f.Flag(30, p.AuditRefusals)
	return f.Bytes
}

func oldDecodePattern(b []byte) (p interlock.Pattern, err error) {
	failed := false
	err = oldEachField(b, func(id, n uint64, s string) bool {
		switch id {
		case 1:
			p.Name = s
		case 2:
			p.Shape = s
		case 3:
			p.Aliases = append(p.Aliases, s)
		case 4:
			p.Members = append(p.Members, s)
		case 5:
			p.Capacity = uint32(n)
		case 6:
			p.Rate = uint32(n)
		case 7:
			p.Per = time.Duration(n)
		case 8:
			p.Burst = uint32(n)
		case 9:
			p.Groups = append(p.Groups, interlock.Group{Name: s})
		case 10, 11:
			if len(p.Groups) == 0 {
				failed = true
			} else if g := &p.Groups[len(p.Groups)-1]; id == 10 {
				g.Min = uint32(n)
			} else {
				g.Max = uint32(n)
			}
		case 12:
			p.TTL = time.Duration(n)
		case 13:
			p.MaxTTL = time.Duration(n)
		case 14:
			p.Grace = time.Duration(n)
		case 15:
			p.MaxGrace = time.Duration(n)
		case 16:
			p.MaxHold = time.Duration(n)
		case 17:
			p.Stall = time.Duration(n)
		case 18:
			p.LockDelay = time.Duration(n)
		case 19:
			p.MaxWait = time.Duration(n)
		case 20:
			p.MaxWaiters = int(n)
		case 21:
			p.Allow = append(p.Allow, interlock.Rule{Principal: s})
		case 22:
			if len(p.Allow) == 0 {
				failed = true
			} else {
				r := &p.Allow[len(p.Allow)-1]
				r.Modes = append(r.Modes, interlock.Mode(n))
			}
		case 23:
			p.Preempt = interlock.PreemptPolicy(n)
		case 24:
			p.Park = interlock.ParkPolicy(n)
		case 25:
			p.MaxPark = time.Duration(n)
		case 26:
			p.OnDeadlock = interlock.DeadlockPolicy(n)
		case 27:
			p.Write = interlock.WritePolicy(n)
		case 28:
			p.Writer = s
		case 29:
			p.WriterQueue = s
		case 30:
			p.AuditRefusals = n != 0
		default:
			return false
		}
		return true
	})
	if err == nil && failed {
		err = ErrMalformed
	}
	return p, err
}

func oldAppendQueue(b []byte, q *interlock.TaskQueue) []byte {
	f := oldFields{b}
	f.Text(1, q.Name)
	f.Flag(2, q.Paused)
	f.Flag(3, q.Drain)
	f.Number(4, uint64(q.MaxAttempts))
	f.Number(5, uint64(q.Backoff))
	f.Number(6, uint64(q.MaxBackoff))
	f.Number(7, uint64(q.TTL))
	f.Number(8, uint64(q.Grace))
	f.Number(9, uint64(q.MaxHold))
	f.Number(10, uint64(q.Stall))
	f.Number(11, uint64(q.MaxRunning))
	f.Number(12, uint64(q.MaxTasks))
	for _, g := range q.Groups { // a name, then the numbers that belong to it
		f.Text(13, g.Group)
		f.Number(14, uint64(g.Weight))
		f.Number(15, uint64(g.Max))
	}
	for i, list := range [][]string{q.Pull, q.Submit, q.Admin} {
		for _, entry := range list {
			f.Text(uint64(16+i), entry)
		}
	}
	for _, entry := range q.Approvers {
		f.Text(19, entry)
	}
	f.Number(20, uint64(q.MinApprovals))
	return f.Bytes
}

func oldDecodeQueue(b []byte) (q interlock.TaskQueue, err error) {
	failed := false
	err = oldEachField(b, func(id, n uint64, s string) bool {
		switch id {
		case 1:
			q.Name = s
		case 2:
			q.Paused = true
		case 3:
			q.Drain = true
		case 4:
			q.MaxAttempts = int(n)
		case 5:
			q.Backoff = time.Duration(n)
		case 6:
			q.MaxBackoff = time.Duration(n)
		case 7:
			q.TTL = time.Duration(n)
		case 8:
			q.Grace = time.Duration(n)
		case 9:
			q.MaxHold = time.Duration(n)
		case 10:
			q.Stall = time.Duration(n)
		case 11:
			q.MaxRunning = int(n)
		case 12:
			q.MaxTasks = int(n)
		case 13:
			q.Groups = append(q.Groups, interlock.Share{Group: s})
		case 14, 15:
			if len(q.Groups) == 0 {
				failed = true
			} else if g := &q.Groups[len(q.Groups)-1]; id == 14 {
				g.Weight = int(n)
			} else {
				g.Max = int(n)
			}
		case 16:
			q.Pull = append(q.Pull, s)
		case 17:
			q.Submit = append(q.Submit, s)
		case 18:
			q.Admin = append(q.Admin, s)
		case 19:
			q.Approvers = append(q.Approvers, s)
		case 20:
			q.MinApprovals = int(n)
		default:
			return false
		}
		return true
	})
	if err == nil && (failed || q.Name == "") {
		err = ErrMalformed
	}
	return q, err
}

func oldAppendApproval(b []byte, a *Approval, base Time) []byte {
	f := oldFields{b}
	f.Text(1, a.Text)
	if a.Agent != "" {
		f.Text(2, a.Agent)
	}
	f.Number(3, uint64(a.Asked.Sub(base)))
	f.Number(4, uint64(a.Limit))
	f.Number(5, uint64(a.OnLimit))
	f.Number(6, uint64(a.Verdict))
	if a.By != "" {
		f.Text(7, a.By)
	}
	if a.Reason != "" {
		f.Text(8, a.Reason)
	}
	for _, r := range a.Reads { // a key, then what belongs to it
		f.Text(9, string(r.Key))
		f.Number(10, uint64(r.Version))
		f.Flag(11, r.Absent)
		f.Flag(12, r.Present)
	}
	if a.Principal != "" {
		f.Text(13, a.Principal)
	}
	for _, name := range a.Askers {
		f.Text(14, name)
	}
	f.Number(15, uint64(a.Paused))
	for i := range a.Given { // a name, then what belongs to it
		x := &a.Given[i]
		f.Text(16, x.By)
		if x.Principal != "" {
			f.Text(17, x.Principal)
		}
		if x.Reason != "" {
			f.Text(18, x.Reason)
		}
	}
	return f.Bytes
}

func oldAppendPrincipal(b []byte, principal string) []byte {
	f := oldFields{b}
	if principal != "" {
		f.Text(1, principal)
	}
	return f.Bytes
}

func oldDecodePrincipal(b []byte) (principal string, err error) {
	err = oldEachField(b, func(id, _ uint64, text string) bool {
		principal = text
		return id == 1
	})
	return principal, err
}

func oldDecodeApproval(b []byte, base Time) (*Approval, error) {
	a := &Approval{Asked: base}
	failed := false
	err := oldEachField(b, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			a.Text = text
		case 2:
			a.Agent = text
		case 3:
			a.Asked = base.Add(time.Duration(n))
		case 4:
			a.Limit = time.Duration(n)
		case 5:
			a.OnLimit = interlock.Verdict(n)
		case 6:
			a.Verdict = interlock.Verdict(n)
		case 7:
			a.By = text
		case 8:
			a.Reason = text
		case 9:
			a.Reads = append(a.Reads, interlock.Read{Key: interlock.Key(text)})
		case 10, 11, 12:
			if len(a.Reads) == 0 {
				failed = true
				return true
			}
			switch r := &a.Reads[len(a.Reads)-1]; id {
			case 10:
				r.Version = interlock.Version(n)
			case 11:
				r.Absent = true
			default:
				r.Present = true
			}
		case 13:
			a.Principal = text
		case 14:
			a.Askers = append(a.Askers, text)
		case 15:
			a.Paused = time.Duration(n)
		case 16:
			a.Given = append(a.Given, interlock.Endorsement{By: text})
		case 17, 18:
			if len(a.Given) == 0 {
				failed = true
				return true
			}
			if x := &a.Given[len(a.Given)-1]; id == 17 {
				x.Principal = text
			} else {
				x.Reason = text
			}
		default:
			return false
		}
		return true
	})
	if err == nil && failed {
		err = ErrMalformed
	}
	return a, err
}

func oldAppendSettings(b []byte, s *interlock.Settings, rule KeyRule) []byte {
	f := oldFields{b}
	f.Flag(1, s.StrictOrder)
	f.Flag(2, rule == OpenKeys)
	f.Flag(3, s.NearMisses)
	f.Flag(5, rule == ClosedKeys)
	f.Number(6, uint64(s.EffectRetention))
	for i, q := range []*interlock.Quota{&s.Quota, &s.PrincipalQuota} {
		for j, v := range oldQuotaValues(q) {
			f.Number(uint64(16+16*i+j), uint64(*v))
		}
	}
	if len(f.Bytes) == len(b) {
		f.Number(4, 1) // an event's blob is not empty
	}
	return f.Bytes
}

func oldDecodeSettings(b []byte) (s interlock.Settings, rule KeyRule, err error) {
	rule = ImpliedKeys
	err = oldEachField(b, func(id, n uint64, _ string) bool {
		switch {
		case id == 1:
			s.StrictOrder = true
		case id == 2:
			rule = OpenKeys
		case id == 3:
			s.NearMisses = true
		case id == 4:
		case id == 5:
			s.Closed, rule = true, ClosedKeys
		case id == 6:
			s.EffectRetention = time.Duration(n)
		case id >= 16 && id < 24:
			*oldQuotaValues(&s.Quota)[id-16] = int(n)
		case id >= 32 && id < 40:
			*oldQuotaValues(&s.PrincipalQuota)[id-32] = int(n)
		default:
			return false
		}
		return true
	})
	return s, rule, err
}

func oldQuotaValues(q *interlock.Quota) [8]*int {
	return [8]*int{&q.Keys, &q.Leases, &q.Waiters, &q.Sessions, &q.Requests, &q.Bytes, &q.Documents, &q.State}
}

func oldAppendRun(b []byte, x *Run) []byte {
	if x == nil {
		return b
	}
	f := oldFields{b}
	f.Text(1, x.Org)
	if x.Workflow != "" {
		f.Text(2, x.Workflow)
	}
	return f.Bytes
}

func oldDecodeRun(b []byte) (x Run, err error) {
	err = oldEachField(b, func(id, _ uint64, s string) bool {
		switch id {
		case 1:
			x.Org = s
		case 2:
			x.Workflow = s
		default:
			return false
		}
		return true
	})
	return x, err
}

func oldDecodeTask(ev *Event) (*Task, error) {
	s := &Task{
		Claims: ev.Claims, Purpose: ev.Purpose, Priority: int32(ev.Priority), Submitted: ev.At,
		Address: &Address{Group: ev.Group, Agent: ev.Agent, Flow: ev.Flow, Principal: ev.Actor},
	}
	var x TaskExtras
	var failed error
	err := oldEachField(ev.Blob, func(id, n uint64, text string) bool {
		switch id {
		case 1:
			s.Queue = text
		case 2:
			s.Kind = text
		case 3:
			s.Payload = []byte(text)
		case 4:
			x.Due = ev.At.Add(time.Duration(n))
		case 5:
			x.Deadline = ev.At.Add(time.Duration(n))
		case 6:
			x.Attempts = int(n)
		case 7:
			x.Backoff = time.Duration(n)
		case 8:
			x.MaxBackoff = time.Duration(n)
		case 9:
			s.Session = text
		case 10:
			x.Result = []byte(text)
		case 11:
			x.Approval, failed = oldDecodeApproval([]byte(text), ev.At)
		case 12:
			s.Message = true
		case 13:
			s.Sender = text
		default:
			return false
		}
		return true
	})
	s.TaskExtras = x.Kept()
	if err == nil && (s.Queue == "" || s.Message && len(s.Claims) != 1) {
		err = ErrMalformed
	}
	return s, cmp.Or(err, failed)
}

func oldDescribe(s *Task, ev *Event) {
	f := oldFields{}
	f.Text(1, s.Queue)
	if s.Kind != "" {
		f.Text(2, s.Kind)
	}
	if len(s.Payload) > 0 {
		f.Text(3, string(s.Payload))
	}
	if s.Due != 0 {
		f.Number(4, uint64(s.Due.Sub(s.Submitted)))
	}
	if s.Deadline != 0 {
		f.Number(5, uint64(s.Deadline.Sub(s.Submitted)))
	}
	f.Number(6, uint64(s.Attempts))
	f.Number(7, uint64(s.Backoff))
	f.Number(8, uint64(s.MaxBackoff))
	if s.Session != "" {
		f.Text(9, s.Session)
	}
	if len(s.Result) > 0 {
		f.Text(10, string(s.Result))
	}
	if s.Approval != nil {
		f.Text(11, string(oldAppendApproval(nil, s.Approval, s.Submitted)))
	}
	f.Flag(12, s.Message)
	if s.Sender != "" {
		f.Text(13, s.Sender)
	}
	ev.Blob, ev.Claims, ev.Purpose, ev.Group, ev.Priority = f.Bytes, s.Claims, s.Purpose, s.Group, int(s.Priority)
	ev.Agent, ev.Flow, ev.Actor = s.Agent, s.Flow, s.Principal
}

// randomly sets v to random values, and leaves many zero.
func randomly(r *rand.Rand, v reflect.Value) {
	if r.IntN(3) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			randomly(r, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		randomly(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			randomly(r, v.Index(i))
		}
	case reflect.String:
		v.SetString(string([]byte("the text of a field")[r.IntN(19):]))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> (r.IntN(60) + 33*(1-v.Type().Bits()/64)))
	default:
		v.SetUint(r.Uint64() >> (r.IntN(8) + 64 - v.Type().Bits()))
	}
}

func damaged(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range r.IntN(3) {
		if len(b) == 0 {
			break
		}
		i := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			b[i] = byte(r.Uint32())
		case 1:
			b = b[:i]
		case 2:
			b = append(b, b[i:]...)
		default:
			b = b[i:]
		}
	}
	return b
}

func TestOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	same := func(what string, a, b any) {
		t.Helper()
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %+v, want %+v", what, a, b)
		}
	}
	errs, fine := 0, 0
	both := func(what string, a any, err error, b any, want error) {
		t.Helper()
		same(what, err, want)
		if err == nil {
			fine++
			same(what, a, b)
		} else {
			errs++
		}
	}
	flags := func(b []byte) bool { // whether a flag is there and zero, or a namespace open and closed
		odd, open, closed := false, false, false
		_ = oldEachField(b, func(id, n uint64, s string) bool {
			odd = odd || id == 30 && n == 0
			open, closed = open || id == 2, closed || id == 5
			return true
		})
		return odd || open && closed
	}
	for range 30_000 {
		var p interlock.Pattern
		randomly(r, reflect.ValueOf(&p).Elem())
		b := AppendPattern(nil, &p)
		same("pattern", b, oldAppendPattern(nil, &p))
		if b = damaged(r, b); !flags(b) {
			x, err := DecodePattern(b)
			y, want := oldDecodePattern(b)
			both("pattern", x, err, y, want)
		}

		var q interlock.TaskQueue
		randomly(r, reflect.ValueOf(&q).Elem())
		b = AppendQueue(nil, &q)
		same("queue", b, oldAppendQueue(nil, &q))
		b = damaged(r, b)
		x, err := DecodeQueue(b)
		y, want := oldDecodeQueue(b)
		both("queue", x, err, y, want)

		var s interlock.Settings
		randomly(r, reflect.ValueOf(&s).Elem())
		rule := RuleFor(&s)
		if !s.Closed && r.IntN(3) == 0 {
			rule = ImpliedKeys
		}
		b = AppendSettingsWith(nil, &s, rule)
		same("settings", b, oldAppendSettings(nil, &s, rule))
		if b = damaged(r, b); !flags(b) {
			x, a, err := DecodeSettings(b)
			y, c, want := oldDecodeSettings(b)
			both("settings", x, err, y, want)
			if err == nil {
				same("rule", a, c)
			}
		}

		var a Approval
		base := Time(r.IntN(1000))
		randomly(r, reflect.ValueOf(&a).Elem())
		b = AppendApproval(nil, &a, base)
		same("approval", b, oldAppendApproval(nil, &a, base))
		b = damaged(r, b)
		{
			x, err := DecodeApproval(b, base)
			y, want := oldDecodeApproval(b, base)
			both("approval", x, err, y, want)
		}

		var run Run
		randomly(r, reflect.ValueOf(&run).Elem())
		b = AppendRun(nil, &run)
		same("run", b, oldAppendRun(nil, &run))
		b = damaged(r, b)
		{
			x, err := DecodeRun(b)
			y, want := oldDecodeRun(b)
			both("run", x, err, y, want)
			b := AppendPrincipal(nil, run.Org)
			same("principal", b, oldAppendPrincipal(nil, run.Org))
			b = damaged(r, b)
			v, err := DecodePrincipal(b)
			w, want := oldDecodePrincipal(b)
			both("principal", v, err, w, want)
		}

		task := Task{Address: &Address{}, TaskExtras: &TaskExtras{}}
		for _, x := range []any{
			task.Address, task.TaskExtras, &task.Payload, &task.Message, &task.Priority, &task.Purpose,
		} {
			randomly(r, reflect.ValueOf(x).Elem())
		}
		task.Submitted = base
		task.Claims = []interlock.Claim{{Key: "k", Mode: interlock.Exclusive}}
		var ev, old Event
		task.Describe(&ev)
		oldDescribe(&task, &old)
		same("task", ev, old)
		ev.At, ev.Blob = base, damaged(r, ev.Blob)
		approvals := 0
		_ = oldEachField(ev.Blob, func(id, _ uint64, _ string) bool {
			if id == 11 {
				approvals++
			}
			return true
		})
		if approvals < 2 { // of two the first could be broken, and now that is an error
			x, err := DecodeTask(&ev)
			y, want := oldDecodeTask(&ev)
			both("task", x, err, y, want)
		}
	}
	t.Log(errs, "errors", fine, "values")
}
