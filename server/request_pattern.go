package server

import (
	"math"

	"github.com/interlockdev/interlock"
)

// The bodies of operators' settings. The engine checks whether a pattern contradicts itself; a
// field that is left out is as if it had never been set.

var patternFields = []string{
	"pattern", "aliases", "members", "capacity", "rate", "per_ms", "burst", "groups", "ttl_ms", "max_ttl_ms", "grace_ms", "max_grace_ms",
	"max_hold_ms", "stall_ms", "lock_delay_ms", "max_wait_ms", "max_waiters", "allow", "preempt", "park", "max_park_ms", "on_deadlock",
	"write", "writer", "writer_queue", "audit_refusals",
}

// decodePattern reads the body of PUT /v1/patterns/{name}.
func decodePattern(d *jsonIn, p *interlock.Pattern) {
	d.object(patternFields, func(field int) {
		switch patternFields[field] {
		case "pattern":
			p.Shape = d.str()
		case "aliases":
			p.Aliases = d.texts(maxAliases)
		case "members":
			p.Members = d.texts(interlock.MaxMembers)
		case "capacity":
			p.Capacity = d.permits()
		case "rate":
			p.Rate = d.permits()
		case "per_ms":
			p.Per = d.ms()
		case "burst":
			p.Burst = d.permits()
		case "groups":
			d.array(interlock.MaxGroups, d.tooLong(interlock.MaxGroups), func() { p.Groups = append(p.Groups, d.group()) })
		case "ttl_ms":
			p.TTL = d.ms()
		case "max_ttl_ms":
			p.MaxTTL = d.ms()
		case "grace_ms":
			p.Grace = d.ms()
		case "max_grace_ms":
			p.MaxGrace = d.ms()
		case "max_hold_ms":
			p.MaxHold = d.ms()
		case "stall_ms":
			p.Stall = d.ms()
		case "lock_delay_ms":
			p.LockDelay = d.ms()
		case "max_wait_ms":
			p.MaxWait = d.ms()
		case "max_waiters":
			p.MaxWaiters = d.limit()
		case "allow":
			d.array(interlock.MaxGroups, d.tooLong(interlock.MaxGroups), func() { p.Allow = append(p.Allow, d.rule()) })
		case "preempt":
			p.Preempt = named(d, "ask, revoke or never", interlock.ParsePreemptPolicy)
		case "park":
			p.Park = named(d, "choice, keep, free or never", interlock.ParseParkPolicy)
		case "max_park_ms":
			p.MaxPark = d.ms()
		case "on_deadlock":
			p.OnDeadlock = named(d, "refuse or revoke", interlock.ParseDeadlockPolicy)
		case "write":
			p.Write = named(d, "guarded, version, lease, single-writer or open", interlock.ParseWritePolicy)
		case "writer":
			p.Writer = d.str()
		case "writer_queue":
			p.WriterQueue = d.str()
		case "audit_refusals":
			p.AuditRefusals = d.yes()
		}
	})
	if p.Shape == "" {
		d.fail("field pattern is missing: give the shape of the keys, such as {\"pattern\": \"account:{id}\"}")
	}
}

var groupFields = []string{"name", "min", "max"}

func (d *jsonIn) group() (g interlock.Group) {
	d.object(groupFields, func(field int) {
		switch groupFields[field] {
		case "name":
			g.Name = d.str()
		case "min":
			g.Min = d.permits()
		case "max":
			g.Max = d.permits()
		}
	})
	return g
}

var ruleFields = []string{"principal", "modes"}

func (d *jsonIn) rule() (r interlock.Rule) {
	d.object(ruleFields, func(field int) {
		switch ruleFields[field] {
		case "principal":
			r.Principal = d.str()
		case "modes":
			most := int(interlock.Member)
			d.array(most, d.tooLong(most), func() { r.Modes = append(r.Modes, d.mode()) })
		}
	})
	if r.Principal == "" {
		d.fail("field %s: principal is missing: name a credential, or \"*\" for everybody", d.path)
	}
	return r
}

var settingsFields = []string{"strict_order", "closed", "near_misses", "effect_retention_ms", "quota", "principal_quota"}

// decodeSettings reads the body of PUT /v1/namespace.
func decodeSettings(d *jsonIn, s *interlock.Settings) {
	d.object(settingsFields, func(field int) {
		switch settingsFields[field] {
		case "strict_order":
			s.StrictOrder = d.yes()
		case "closed":
			s.Closed = d.yes()
		case "near_misses":
			s.NearMisses = d.yes()
		case "effect_retention_ms":
			s.EffectRetention = d.ms()
		case "quota":
			s.Quota = d.quota()
		case "principal_quota":
			s.PrincipalQuota = d.quota()
		}
	})
}

var quotaFields = []string{"keys", "leases", "waiters", "sessions", "documents", "state_bytes", "requests_per_s", "bytes_per_s"}

func (d *jsonIn) quota() (q interlock.Quota) {
	d.object(quotaFields, func(field int) {
		switch quotaFields[field] {
		case "keys":
			q.Keys = d.limit()
		case "leases":
			q.Leases = d.limit()
		case "waiters":
			q.Waiters = d.limit()
		case "sessions":
			q.Sessions = d.limit()
		case "documents":
			q.Documents = d.limit()
		case "state_bytes":
			q.State = d.limit()
		case "requests_per_s":
			q.Requests = d.limit()
		case "bytes_per_s":
			q.Bytes = d.limit()
		}
	})
	return q
}

// permits reads how many permits or tokens; 0 stands for none.
func (d *jsonIn) permits() uint32 { return uint32(d.whole(0, interlock.MaxCount)) }

// maxAliases is the engine's limit, here only so that a body of nothing but aliases
// ends early.
const maxAliases = 16

// limit reads a limit; 0 stands for the version's own.
func (d *jsonIn) limit() int { return int(d.whole(0, math.MaxInt32)) }

// texts reads a list of at most limit texts.
func (d *jsonIn) texts(limit int) (list []string) {
	d.array(limit, d.tooLong(limit), func() { list = append(list, d.str()) })
	return list
}
