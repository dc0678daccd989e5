package engine_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock"
)

func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// patternOf reads the words of the script's command pattern.
func patternOf(w *words) interlock.Pattern {
	p := interlock.Pattern{
		Name: w.get("name"), Shape: w.get("shape"),
		Capacity: uint32(w.number("capacity")), Rate: uint32(w.number("rate")), Per: w.duration("per"),
		Burst: uint32(w.number("burst")),
		TTL:   w.duration("ttl"), MaxTTL: w.duration("max_ttl"), Grace: w.duration("grace"),
		MaxGrace: w.duration("max_grace"),
		MaxHold:  w.duration("max_hold"), Stall: w.duration("stall"), LockDelay: w.duration("lock_delay"),
		MaxWait: w.duration("max_wait"), MaxWaiters: int(w.number("max_waiters")), MaxPark: w.duration("max_park"),
	}
	known := true
	p.Preempt, known = orFirst(interlock.ParsePreemptPolicy, w.get("preempt"), known)
	p.Park, known = orFirst(interlock.ParseParkPolicy, w.get("park"), known)
	p.OnDeadlock, known = orFirst(interlock.ParseDeadlockPolicy, w.get("on_deadlock"), known)
	p.Write, known = orFirst(interlock.ParseWritePolicy, w.get("write"), known)
	p.Writer, p.WriterQueue = w.get("writer"), w.get("writer_queue")
	p.AuditRefusals = w.has("audit_refusals")
	if !known {
		panic(fmt.Errorf("no such policy"))
	}
	for _, x := range w.list {
		switch x.key {
		case "alias":
			p.Aliases = append(p.Aliases, x.value)
		case "member":
			p.Members = append(p.Members, x.value)
		case "group":
			parts := strings.Split(x.value, ":")
			p.Groups = append(
				p.Groups, interlock.Group{Name: parts[0], Min: uint32(parseNumber(parts[1])), Max: uint32(parseNumber(parts[2]))},
			)
		case "allow":
			who, list := x.value, ""
			if i := strings.LastIndexByte(who, ':'); i >= 0 { // allow=group:NAME: has no modes
				who, list = who[:i], who[i+1:]
			}
			rule := interlock.Rule{Principal: who}
			for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
				mode, ok := modes[name]
				if !ok {
					mode = interlock.Permits
				}
				rule.Modes = append(rule.Modes, mode)
			}
			p.Allow = append(p.Allow, rule)
		}
	}
	for _, key := range []string{"alias", "member", "group", "allow"} {
		w.used[key] = true
	}
	return p
}

func orFirst[T any](parse func(string) (T, bool), text string, known bool) (T, bool) {
	var first T
	if text == "" {
		return first, known
	}
	v, ok := parse(text)
	return v, known && ok
}

// settingsOf reads the words of the script's command settings.
func settingsOf(w *words) interlock.Settings {
	quota := func(prefix string) interlock.Quota {
		return interlock.Quota{
			Keys: int(w.number(prefix + "keys")), Leases: int(w.number(prefix + "leases")),
			Waiters: int(w.number(prefix + "waiters")), Sessions: int(w.number(prefix + "sessions")),
			Documents: int(w.number(prefix + "documents")), State: int(w.number(prefix + "state")),
		}
	}
	return interlock.Settings{
		StrictOrder: w.has("strict_order"), Closed: w.has("closed"), NearMisses: w.has("near_misses"),
		EffectRetention: w.duration("effect_retention"),
		Quota:           quota(""), PrincipalQuota: quota("each_"),
	}
}
