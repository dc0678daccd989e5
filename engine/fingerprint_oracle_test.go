package engine_test

// The fingerprints as they were by hand, against which the generated ones are compared.

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

func TestFingerprintOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range engine.Repeatables {
		for range 20_000 {
			cmd := reflect.New(reflect.TypeOf(c).Elem())
			anything(r, cmd.Elem())
			if got, want := engine.Fingerprint(cmd.Interface().(engine.Command)), oldFingerprint(cmd.Interface()); got != want {
				t.Fatalf("%T: %x, want %x: %+v", c, got, want, cmd.Interface())
			}
		}
	}
}

func anything(r *rand.Rand, v reflect.Value) {
	if r.IntN(3) == 0 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Head" {
				anything(r, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		anything(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			anything(r, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			anything(r, v.Index(i))
		}
	case reflect.String:
		v.SetString("the text of a field"[r.IntN(19):])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()) >> r.IntN(60) >> (64 - v.Type().Bits()))
	default:
		v.SetUint(r.Uint64() >> (r.IntN(8) + 64 - v.Type().Bits()))
	}
}

func oldFingerprint(cmd any) uint64 {
	var p record.Fingerprint
	switch c := cmd.(type) {
	case *engine.Acquire:
		oldAcquireprint(c, &p)
	case *engine.Release:
		oldReleaseprint(c, &p)
	case *engine.Leave:
		oldLeaveprint(c, &p)
	case *engine.Revoke:
		oldRevokeprint(c, &p)
	case *engine.OpenSession:
		oldOpenSessionprint(c, &p)
	case *engine.Arrive:
		oldArriveprint(c, &p)
	case *engine.Convert:
		oldConvertprint(c, &p)
	case *engine.Declare:
		oldDeclareprint(c, &p)
	case *engine.Park:
		oldParkprint(c, &p)
	case *engine.Resume:
		oldResumeprint(c, &p)
	case *engine.SetPattern:
		oldSetPatternprint(c, &p)
	case *engine.DropPattern:
		oldDropPatternprint(c, &p)
	case *engine.Configure:
		oldConfigureprint(c, &p)
	case *engine.Commit:
		oldCommitprint(c, &p)
	case *engine.ClaimEffect:
		oldClaimEffectprint(c, &p)
	case *engine.SettleEffect:
		oldSettleEffectprint(c, &p)
	case *engine.SetQueue:
		oldSetQueueprint(c, &p)
	case *engine.SwitchQueue:
		oldSwitchQueueprint(c, &p)
	case *engine.DropQueue:
		oldDropQueueprint(c, &p)
	case *engine.Submit:
		oldSubmitprint(c, &p)
	case *engine.Ack:
		oldAckprint(c, &p)
	case *engine.Nack:
		oldNackprint(c, &p)
	case *engine.ChangeTask:
		oldChangeTaskprint(c, &p)
	case *engine.AskHuman:
		oldAskHumanprint(c, &p)
	case *engine.Answer:
		oldAnswerprint(c, &p)
	case *engine.StartRun:
		oldStartRunprint(c, &p)
	case *engine.RevertPattern:
		oldRevertPatternprint(c, &p)
	default:
		panic("unknown")
	}
	return uint64(p)
}

func oldAcquireprint(c *engine.Acquire, p *record.Fingerprint) {
	p.Number(1)
	p.Text(c.Agent)
	p.Text(c.Flow)
	p.Text(c.Purpose)
	for i := range c.Claims {
		p.Text(string(c.Claims[i].Key))
		mode := c.Claims[i].Mode
		if mode == 0 {
			mode = interlock.Exclusive
		}
		p.Number(uint64(mode))
	}
	p.Number(uint64(c.TTL))
	p.Number(uint64(c.Grace))
	p.Number(uint64(c.MaxHold))
	p.Number(uint64(c.Priority))
	p.Number(uint64(c.OnConflict))
	oldAcquireprintMore(c, p)
}

func oldReleaseprint(c *engine.Release, p *record.Fingerprint) {
	p.Number(2)
	p.ID(c.Lease)
	p.Text(c.Outcome)
	p.Text(c.Note)
	if c.Run { // the first version had none
		p.Flags(c.Run)
	}
}

func oldLeaveprint(c *engine.Leave, p *record.Fingerprint) {
	p.Number(3)
	p.ID(c.Ticket)
}

func oldRevokeprint(c *engine.Revoke, p *record.Fingerprint) {
	p.Number(4)
	p.Text(string(c.Key))
	p.Number(uint64(c.Fence))
	p.Text(c.Reason)
}

func oldOpenSessionprint(c *engine.OpenSession, p *record.Fingerprint) {
	p.Number(5)
	p.Text(c.Agent)
	p.Number(uint64(c.TTL))
}

func oldArriveprint(c *engine.Arrive, p *record.Fingerprint) {
	p.Number(7)
	p.ID(c.Lease)
	p.Number(uint64(c.MaxWait))
}

func oldConvertprint(c *engine.Convert, p *record.Fingerprint) {
	p.Number(6)
	p.ID(c.Lease)
	oldClaims(p, c.Claims)
	p.Number(uint64(c.MaxWait))
	p.Number(uint64(c.OnConflict))
}

func oldDeclareprint(c *engine.Declare, p *record.Fingerprint) {
	p.Number(10)
	for _, s := range []string{c.Agent, c.Flow, c.Purpose, c.On.Session, c.On.Agent, c.On.Flow} {
		p.Text(s)
	}
	p.Number(uint64(c.MaxWait))
}

func oldParkprint(c *engine.Park, p *record.Fingerprint) {
	p.Number(9)
	p.ID(c.Lease)
	p.Flags(c.Free, c.Keep)
	p.Number(uint64(c.For))
	p.Text(c.Reason)
}

func oldResumeprint(c *engine.Resume, p *record.Fingerprint) {
	p.Number(8)
	p.ID(c.Lease)
	p.Text(c.Flow)
	p.Number(uint64(c.MaxWait))
	p.Number(uint64(c.OnConflict))
	if c.Unapproved {
		p.Number(1)
	}
}

func oldSetPatternprint(c *engine.SetPattern, p *record.Fingerprint) {
	p.Number(11)
	p.Text(string(record.AppendPattern(nil, &c.Pattern)))
}

func oldDropPatternprint(c *engine.DropPattern, p *record.Fingerprint) {
	p.Number(12)
	p.Text(c.Name)
}

func oldConfigureprint(c *engine.Configure, p *record.Fingerprint) {
	p.Number(13)
	p.Text(string(record.AppendSettings(nil, &c.Settings)))
}

func oldCommitprint(c *engine.Commit, p *record.Fingerprint) {
	p.Number(14)
	oldCommitprintBody(c, p)
}

func oldClaimEffectprint(c *engine.ClaimEffect, p *record.Fingerprint) {
	p.Number(15)
	p.Text(c.Agent)
	p.Text(c.Flow)
	p.Text(c.Action)
	p.ID(c.Lease)
	p.Number(uint64(c.TTL))
}

func oldSettleEffectprint(c *engine.SettleEffect, p *record.Fingerprint) {
	p.Number(16)
	p.ID(c.ID)
	p.Text(string(c.Digest[:]))
	p.Number(uint64(c.State))
	p.Text(c.Result)
	p.Text(c.Reason)
}

func oldSetQueueprint(c *engine.SetQueue, p *record.Fingerprint) {
	p.Number(17)
	p.Text(string(record.AppendQueue(nil, &c.Queue)))
}

func oldSwitchQueueprint(c *engine.SwitchQueue, p *record.Fingerprint) {
	p.Number(32)
	p.Text(c.Name)
	p.Number(uint64(c.Paused))
	p.Number(uint64(c.Drain))
}

func oldDropQueueprint(c *engine.DropQueue, p *record.Fingerprint) {
	p.Number(18)
	p.Text(c.Name)
}

func oldSubmitprint(c *engine.Submit, p *record.Fingerprint) {
	p.Number(19)
	p.Text(c.Agent)
	p.Text(c.Flow)
	oldTaskSpecprint(&c.Task, p)
}

func oldAckprint(c *engine.Ack, p *record.Fingerprint) {
	p.Number(20)
	oldAckprintBody(c, p)
}

func oldNackprint(c *engine.Nack, p *record.Fingerprint) {
	p.Number(21)
	p.ID(c.Lease)
	p.Text(c.Reason)
	p.Number(uint64(c.Delay))
	p.Flags(c.Dead, c.Unseen)
}

func oldChangeTaskprint(c *engine.ChangeTask, p *record.Fingerprint) {
	p.Number(22)
	p.ID(c.Task)
	p.Number(uint64(c.Change))
	p.Number(uint64(c.Delay))
	p.Text(c.Reason)
}

func oldAskHumanprint(c *engine.AskHuman, p *record.Fingerprint) {
	p.Number(23)
	p.ID(c.Lease)
	oldQuestion(p, &c.Question)
}

func oldAnswerprint(c *engine.Answer, p *record.Fingerprint) {
	p.Number(24)
	p.ID(c.Task)
	if c.Fence != 0 {
		p.Number(uint64(c.Fence))
	}
	p.Number(uint64(c.Verdict))
	p.Text(c.By)
	p.Text(c.Reason)
}

// print leaves out for how long the run may wait.
func oldStartRunprint(c *engine.StartRun, p *record.Fingerprint) {
	p.Number(30)
	for _, s := range []string{c.Org, c.Workflow, c.Agent, c.Flow, c.Purpose} {
		p.Text(s)
	}
	for _, n := range []int64{int64(c.Priority), int64(c.TTL), int64(c.MaxHold)} {
		p.Number(uint64(n))
	}
}

func oldRevertPatternprint(c *engine.RevertPattern, p *record.Fingerprint) {
	p.Number(31)
	p.Text(c.Name)
	p.Number(c.Revision)
}

// print adds the body of a task to a fingerprint.
func oldTaskSpecprint(x *engine.TaskSpec, p *record.Fingerprint) {
	for _, s := range []string{x.Queue, x.Kind, string(x.Payload), x.Purpose, x.Group, string(x.Key)} {
		p.Text(s)
	}
	oldClaims(p, x.Claims)
	for _, n := range []int64{
		int64(x.Priority), int64(x.Delay), int64(x.Deadline), int64(x.MaxAttempts), int64(x.Backoff), int64(x.MaxBackoff),
	} {
		p.Number(uint64(n))
	}
	p.Flags(x.Message, x.Ask != nil)
	if x.Ask != nil {
		oldQuestion(p, x.Ask)
	}
}

// printBody adds the body of an acknowledgement to its fingerprint.
func oldAckprintBody(c *engine.Ack, p *record.Fingerprint) {
	p.ID(c.Lease)
	p.Text(string(c.Result))
	commit := engine.Commit{CommitRequest: c.CommitRequest}
	oldCommitprintBody(&commit, p)
	p.Number(uint64(len(c.Tasks)))
	for i := range c.Tasks {
		oldTaskSpecprint(&c.Tasks[i], p)
	}
}

// printMore adds what requests of the first version did not have, so that a body
// without any of it keeps its fingerprint.
func oldAcquireprintMore(c *engine.Acquire, p *record.Fingerprint) {
	extra := func(field, v uint64) {
		if v != 0 {
			p.Number(field)
			p.Number(v)
		}
	}
	for i := range c.Claims {
		extra(1, uint64(c.Claims[i].Count))
	}
	if c.Any {
		extra(2, 1)
	}
	if c.Prefix != "" {
		extra(3, 1)
		p.Text(c.Prefix)
	}
	if c.Group != "" {
		extra(4, 1)
		p.Text(c.Group)
	}
	extra(5, uint64(c.Division))
	extra(6, uint64(c.Stall))
	extra(7, uint64(c.LockDelay))
	extra(8, uint64(c.MaxWait))
	extra(9, uint64(c.AsOf))
	if c.Documents {
		extra(10, 1)
	}
	extra(11, uint64(c.MaxPosition))
}

// printBody adds the body of a commit to its fingerprint.
func oldCommitprintBody(c *engine.Commit, p *record.Fingerprint) {
	p.Text(c.Agent)
	p.Text(c.Flow)
	p.Text(c.Note)
	p.Number(uint64(c.AsOf))
	oldReads(p, c.Reads)
	p.Number(uint64(len(c.Writes)))
	for i := range c.Writes {
		w := &c.Writes[i]
		p.Text(string(w.Key))
		p.Number(uint64(w.Op))
		p.Text(cmp.Or(w.ContentType, interlock.JSONType))
		p.Text(string(w.Body))
		p.Number(uint64(w.Delta))
		p.Flags(w.Min != nil, w.Max != nil)
		for _, bound := range []*int64{w.Min, w.Max} {
			if bound != nil {
				p.Number(uint64(*bound))
			}
		}
	}
	for _, id := range c.Leases {
		p.ID(id)
	}
}

// Question adds a question to a fingerprint.
func oldQuestion(p *record.Fingerprint, q *interlock.Question) {
	p.Text(q.Text)
	p.Number(uint64(q.Limit))
	p.Number(uint64(cmp.Or(q.OnLimit, interlock.Denied)))
	oldReads(p, q.Reads)
}

// Claims adds a list of claims, with the zero Mode spelled out.
func oldClaims(p *record.Fingerprint, list []interlock.Claim) {
	p.Number(uint64(len(list)))
	for _, c := range list {
		if c.Mode == 0 {
			c.Mode = interlock.Exclusive
		}
		p.Text(string(c.Key))
		p.Number(uint64(c.Mode))
		p.Number(uint64(c.Count))
	}
}

// Reads adds a list of reads.
func oldReads(p *record.Fingerprint, list []interlock.Read) {
	p.Number(uint64(len(list)))
	for _, r := range list {
		p.Text(string(r.Key))
		p.Number(uint64(r.Version))
		p.Flags(r.Absent, r.Present)
	}
}
