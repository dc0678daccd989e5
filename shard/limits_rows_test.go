package shard

import (
	"fmt"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// limitRows are the operations of BenchmarkLimits, each at a limit.
var limitRows = []limitRow{
	// Leases and lines.
	{
		name:  "acquire/claims=64,segments=16",
		setUp: (*neighbour).open,
		again: func(n *neighbour) {
			n.release(n.ask(
				"", "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{Claims: deepClaims(interlock.Exclusive)}},
			))
		},
	},
	{
		name: "acquire-any/alternatives=1024",
		setUp: func(n *neighbour) {
			n.open()
			n.all(interlock.MaxAlternatives, func(i int) engine.Command { return n.take("", numbered("k", i)) })
		},
		again: func(n *neighbour) {
			n.leave(n.ask("", "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{
				Claims: manyClaims(interlock.MaxAlternatives), Any: true,
			}}))
		},
	},
	{
		name: "convert/claims=64,segments=16",
		setUp: func(n *neighbour) {
			n.open()
			n.lease = n.ask("", "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{Claims: deepClaims(interlock.Shared)}})
		},
		again: func(n *neighbour) {
			for _, mode := range []interlock.Mode{interlock.Exclusive, interlock.Shared} {
				n.must(n.do(&engine.Convert{Head: n.head(), Lease: n.lease, ID: newID(), Claims: deepClaims(mode)}))
			}
		},
	},
	{
		name:  "release/waiters=10000,shared",
		setUp: (*neighbour).open,
		prepare: func(n *neighbour) {
			n.lease = n.ask("", "hot", engine.Acquire{})
			n.all(interlock.MaxWaitersPerKey-1, func(int) engine.Command { return n.takeShared("hot") })
		},
		again: func(n *neighbour) {
			n.release(n.lease)
			n.until(func(c engine.Counts) bool { return c.Waiters == 0 })
			n.reopen()
		},
	},
	{
		name: "revoke/holders=100000",
		setUp: func(n *neighbour) {
			n.open()
			n.all(100_000, func(int) engine.Command { return n.takeShared("hot") })
		},
		again: func(n *neighbour) {
			fence := n.do(n.takeShared("hot")).Lease.Fence
			n.do(&engine.CheckFence{Head: n.head(), Key: "hot", Fence: fence})
			n.must(n.do(&engine.Revoke{Head: n.head(), Key: "hot", Fence: fence}))
		},
	},
	{
		name:  "park/waiters=10000",
		setUp: func(n *neighbour) { n.open(); n.lineUp() },
		again: func(n *neighbour) {
			n.must(n.do(&engine.Park{Head: n.head(), Lease: n.lease, Keep: true, Reason: "r"}))
			n.must(n.do(&engine.Resume{Head: n.head(), Lease: n.lease, Unapproved: true}))
		},
	},
	{
		name: "park-free/claims=64,segments=16",
		setUp: func(n *neighbour) {
			n.open()
			n.lease = n.ask(
				"", "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{Claims: deepClaims(interlock.Exclusive)}},
			)
		},
		again: func(n *neighbour) {
			n.must(n.do(&engine.Park{Head: n.head(), Lease: n.lease, Free: true, Reason: "r"}))
			n.must(n.do(&engine.Resume{Head: n.head(), Lease: n.lease, Unapproved: true}))
		},
	},
	{
		name: "preempt/holders=100000",
		setUp: func(n *neighbour) {
			n.open()
			n.all(100_000, func(int) engine.Command { return n.takeShared("hot") })
		},
		again: func(n *neighbour) {
			c := n.take("pre", "hot")
			c.OnConflict = interlock.Preempt
			n.must(n.do(c))
			n.leave(c.ID)
		},
	},
	{
		name: "declare/waits=10000",
		setUp: func(n *neighbour) {
			n.standInLine(interlock.MaxWaitersPerKey)
			n.other = n.session
			n.open()
		},
		again: func(n *neighbour) {
			c := &engine.Declare{Head: n.head(), ID: newID(), Flow: "d", On: engine.FlowRef{Session: n.nameOf(n.other)}}
			n.must(n.do(c))
			n.leave(c.ID)
		},
	},
	{
		name:  "barrier/parties=256",
		setUp: (*neighbour).open,
		again: func(n *neighbour) {
			ids := make([]interlock.LeaseID, interlock.MaxParties)
			n.all(len(ids), func(i int) engine.Command {
				c := n.take(fmt.Sprint(i), "gate")
				c.Claims[0].Mode, c.Claims[0].Count = interlock.Barrier, interlock.MaxParties
				ids[i] = c.ID
				return c
			})
			n.all(len(ids), func(i int) engine.Command { return &engine.Release{Head: n.head(), Lease: ids[i]} })
		},
	},
	{
		name: "member/parts=4096,members=256",
		setUp: func(n *neighbour) {
			n.open()
			n.all(256, func(i int) engine.Command { return n.takePart(fmt.Sprint(i)) })
		},
		again: func(n *neighbour) {
			c := n.takePart("new")
			n.must(n.do(c))
			n.release(c.ID)
		},
	},
	{
		name:  "deadlock/line=10000",
		setUp: func(n *neighbour) { n.standInLine(interlock.MaxWaitersPerKey) },
		again: (*neighbour).closeCircle,
	},
	{
		name:  "deadlock/permits=1800",
		setUp: func(n *neighbour) { n.holdPermits(1800) },
		again: (*neighbour).wantPermits,
	},
	{
		name:  "ranks/chain=16000",
		setUp: func(n *neighbour) { n.chain(16_000) },
		again: (*neighbour).raise,
	},
	{
		name:  "start-run/runs=100000",
		setUp: func(n *neighbour) { n.open(); n.all(100_000, func(i int) engine.Command { return n.run(i) }) },
		again: func(n *neighbour) {
			c := n.run(1)
			n.must(n.do(c))
			n.release(interlock.LeaseID(c.ID))
		},
	},

	// Sessions.
	{
		name: "session/sessions=100000",
		setUp: func(n *neighbour) {
			n.all(interlock.MaxSessions-1, func(int) engine.Command {
				return &engine.OpenSession{Head: n.head(), ID: interlock.SessionID(newID()), Agent: "busy", TTL: interlock.MaxTTL}
			})
		},
		again: func(n *neighbour) {
			n.open()
			n.do(&engine.CloseSession{Head: n.head()})
			n.session = interlock.SessionID{}
		},
	},
	{
		name:    "close-session/leases=100000",
		setUp:   (*neighbour).open,
		prepare: func(n *neighbour) { n.own(100_000, "") },
		again:   (*neighbour).reopen,
	},
	{
		name:  "close-session/flows=100000",
		setUp: (*neighbour).open,
		prepare: func(n *neighbour) {
			n.all(100_000, func(i int) engine.Command { return n.take(fmt.Sprint(i), numbered("k", i)) })
		},
		again: (*neighbour).reopen,
	},
	{
		name:  "close-session/waits=100000",
		setUp: func(n *neighbour) { n.open(); n.holdLines() },
		prepare: func(n *neighbour) {
			n.other = n.session
			n.open()
			n.joinLines()
		},
		again: func(n *neighbour) { n.reopen(); n.session = n.other },
	},
	{
		name:  "detach/waits=100000",
		setUp: func(n *neighbour) { n.open(); n.holdLines(); n.other = n.session; n.open(); n.joinLines() },
		again: func(n *neighbour) {
			n.must(n.do(&engine.Attach{Head: n.head()}))
			if err := n.s.Submit(&engine.Detach{Head: n.head()}); err != nil {
				n.b.Error(err)
			}
			n.must(n.do(&engine.Heartbeat{Head: n.head()}))
		},
	},
	{
		name:  "expiry/leases=100000",
		setUp: (*neighbour).open,
		prepare: func(n *neighbour) {
			n.all(100_000, func(i int) engine.Command {
				c := n.take("", numbered("k", i))
				c.TTL, c.Grace = interlock.MinTTL, engine.NoGrace
				return c
			})
		},
		again: func(n *neighbour) {
			n.leap(time.Minute)
			n.until(func(c engine.Counts) bool { return c.Leases <= 1 })
		},
	},
	{
		name:    "expiry/session,leases=100000",
		prepare: func(n *neighbour) { n.openFor(time.Minute); n.own(100_000, "") },
		setUp:   func(*neighbour) {},
		again: func(n *neighbour) {
			n.session = interlock.SessionID{}
			n.leap(2 * time.Minute)
			n.leap(10 * time.Second)
			n.until(func(c engine.Counts) bool { return c.Leases <= 1 })
		},
	},
	{
		name: "heartbeat/leases=100000,near-stall",
		setUp: func(n *neighbour) {
			n.open()
			n.all(100_000, func(i int) engine.Command {
				c := n.take("", numbered("k", i))
				c.Stall = interlock.MaxStall
				return c
			})
			n.leap(interlock.MaxStall * 3 / 4)
		},
		again: func(n *neighbour) { n.do(&engine.Heartbeat{Head: n.head()}) },
	},

	// Patterns and settings.
	{
		name: "set-pattern/patterns=1000,permits=100000",
		setUp: func(n *neighbour) {
			n.open()
			n.all(interlock.MaxPatterns-1, func(i int) engine.Command {
				return &engine.SetPattern{
					Head:    n.head(),
					Pattern: interlock.Pattern{Name: fmt.Sprint("p", i), Shape: fmt.Sprintf("s%d/{id}", i), Capacity: 10},
				}
			})
			n.all(100_000, func(i int) engine.Command {
				c := n.take(fmt.Sprint(i), interlock.Key(fmt.Sprintf("s%d/%d", i%(interlock.MaxPatterns-1), i)))
				c.Claims[0].Mode, c.Claims[0].Count = interlock.Permits, 1
				return c
			})
		},
		again: func(n *neighbour) {
			n.insist(func() engine.Command {
				return &engine.SetPattern{Head: n.head(), Pattern: interlock.Pattern{Name: "new", Shape: "new/{id}", Capacity: 3}}
			})
			n.insist(func() engine.Command { return &engine.DropPattern{Head: n.head(), Name: "new"} })
		},
	},
	{
		name: "set-pattern/waiters=10000,permits",
		setUp: func(n *neighbour) {
			n.open()
			n.must(n.do(&engine.SetPattern{Head: n.head(), Pattern: interlock.Pattern{Name: "p", Shape: "p", Capacity: 1}}))
			n.all(interlock.MaxWaitersPerKey, func(i int) engine.Command {
				c := n.take(fmt.Sprint(i), "p")
				c.Claims[0].Mode, c.Claims[0].Count = interlock.Permits, 1
				return c
			})
		},
		again: func(n *neighbour) {
			n.next++
			groups := []interlock.Group{{Name: fmt.Sprint("g", n.next), Max: 1}}
			n.insist(func() engine.Command {
				return &engine.SetPattern{
					Head: n.head(), Pattern: interlock.Pattern{Name: "p", Shape: "p", Capacity: 1, Groups: groups},
				}
			})
		},
	},
	{
		name: "set-pattern/members=1024",
		setUp: func(n *neighbour) {
			n.open()
			n.fillPatterns()
		},
		again: func(n *neighbour) {
			n.must(n.do(&engine.SetPattern{
				Head: n.head(),
				Pattern: interlock.Pattern{
					Name: "new", Shape: "new:{id}", Members: []string{fmt.Sprintf("new:{0..%d}", interlock.MaxMembers-1)},
				},
			}))
			n.must(n.do(&engine.DropPattern{Head: n.head(), Name: "new"}))
		},
	},
	{
		name: "acquire/patterns=1000",
		setUp: func(n *neighbour) {
			n.open()
			n.fillPatterns()
		},
		again: func(n *neighbour) {
			n.release(n.ask(
				"", "", engine.Acquire{LeaseRequest: interlock.LeaseRequest{Claims: deepClaims(interlock.Exclusive)}},
			))
		},
	},
	{
		name:  "configure/keys=100000",
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "") },
		again: func(n *neighbour) {
			n.next++
			n.must(n.do(&engine.Configure{Head: n.head(), Settings: interlock.Settings{NearMisses: n.next%2 > 0}}))
		},
	},

	{
		name:    "delete-namespace/leases=100000",
		setUp:   func(*neighbour) {},
		prepare: func(n *neighbour) { n.open(); n.own(100_000, ""); n.must(n.do(&engine.Attach{Head: n.head()})) },
		again: func(n *neighbour) {
			n.must(n.do(&engine.DeleteNamespace{Head: n.head(), Force: true}))
			n.session = interlock.SessionID{}
		},
	},

	// Documents.
	{
		name: "commit/reads=256,writes=256,bytes=1MiB",
		setUp: func(n *neighbour) {
			n.open()
			n.documents(interlock.MaxWrites, 10)
		},
		again: func(n *neighbour) {
			body := jsonText(interlock.MaxCommitBytes/interlock.MaxWrites - 100)
			c := &engine.Commit{Head: n.head(), Agent: "busy"}
			for i := range interlock.MaxWrites {
				c.Reads = append(c.Reads, interlock.Read{Key: numbered("d", i), Present: true})
				c.Writes = append(c.Writes, interlock.Write{Key: numbered("d", i), Op: interlock.Put, Body: body})
			}
			n.must(n.do(c))
		},
	},
	{
		name: "commit/merge,bytes=1MiB",
		setUp: func(n *neighbour) {
			n.open()
			n.put("d", members(60_000))
		},
		again: func(n *neighbour) {
			n.replace(interlock.Write{Key: "d", Op: interlock.Merge, Body: members(50_000)})
		},
	},
	{
		name: "commit/delete,documents=100000",
		setUp: func(n *neighbour) {
			n.open()
			n.documents(100_000, 10)
		},
		again: func(n *neighbour) {
			n.replace(interlock.Write{Key: "d00007", Op: interlock.Delete})
			n.put("d00007", []byte("1"))
		},
	},
	{
		name: "read/keys=256,bytes=4MiB",
		setUp: func(n *neighbour) {
			n.open()
			n.documents(interlock.MaxReads, interlock.MaxReadBytes/interlock.MaxReads-100)
		},
		again: func(n *neighbour) {
			keys := make([]interlock.Key, interlock.MaxReads)
			for i := range keys {
				keys[i] = numbered("d", i)
			}
			n.read(func(e *engine.Engine) { e.Documents(n.namespace, keys, true) })
		},
	},
	{
		name:  "list-documents/documents=100000",
		setUp: func(n *neighbour) { n.open(); n.documents(100_000, 10) },
		again: func(n *neighbour) {
			n.survey(&engine.DocumentList{Namespace: n.namespace, Limit: 1000, Bodies: true})
		},
	},

	// Effects.
	{
		name:  "effect/effects=100000",
		setUp: (*neighbour).fillEffects,
		again: func(n *neighbour) {
			c := n.effect()
			n.must(n.do(c))
			n.must(n.do(&engine.SettleEffect{Head: n.head(), ID: interlock.EffectID(c.ID)}))
		},
	},
	{
		name:  "list-effects/effects=100000",
		setUp: (*neighbour).fillEffects,
		again: func(n *neighbour) { n.survey(&engine.EffectList{Namespace: n.namespace, Limit: 1000}) },
	},

	// Tasks. A tenth of interlock.MaxTasks, which would take minutes to submit.
	{
		name:  "submit/tasks=100000",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) {
			c := n.submission(0)
			n.must(n.do(c))
			n.must(n.do(&engine.ChangeTask{Head: n.head(), Task: c.Task.ID, Change: engine.CancelTask}))
		},
	},
	{
		name:  "pull-nack/tasks=100000,max=64",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) {
			for _, h := range n.pull(interlock.MaxPull) {
				n.must(n.do(&engine.Nack{Head: n.head(), Lease: h.Lease.ID, Unseen: true}))
			}
		},
	},
	{
		name:  "ack/follow-ups=64",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) {
			for i, h := range n.pull(interlock.MaxPull) {
				c := &engine.Ack{Head: n.head(), Lease: h.Lease.ID}
				for j := 0; i == 0 && j < interlock.MaxFollowUps; j++ {
					c.Tasks = append(c.Tasks, n.submission(j).Task)
				}
				n.must(n.do(c))
			}
		},
	},
	{
		name:  "release/tasks=100000,one-key",
		setUp: func(n *neighbour) { n.open(); n.lease = n.ask("", "t", engine.Acquire{}); n.fillQueue() },
		again: (*neighbour).takeAgain,
	},
	{
		name: "release/tasks=100000,below",
		setUp: func(n *neighbour) {
			n.open()
			n.queue("q")
			n.lease = n.ask("", "t", engine.Acquire{})
			n.all(100_000, func(i int) engine.Command {
				c := n.submission(i)
				c.Task.Claims[0].Key = interlock.Key(fmt.Sprintf("t/%d", i))
				return c
			})
		},
		again: (*neighbour).takeAgain,
	},
	{
		name: "submit/pulls=16384,principals=16384,none-may",
		setUp: func(n *neighbour) {
			n.open()
			n.queue("q")
			n.must(n.do(&engine.SetPattern{
				Head: n.head(), Pattern: interlock.Pattern{Name: "t", Shape: "t", Allow: []interlock.Rule{{Principal: "boss"}}},
			}))
			n.by = &interlock.Principal{Name: "boss", Roles: interlock.RoleAgent | interlock.RoleOperator}
			n.all(interlock.MaxListeners, func(i int) engine.Command {
				h := n.head()
				h.Session = interlock.SessionID{}
				h.Actor = fmt.Sprint("w", i)
				h.Principal = &interlock.Principal{Name: h.Actor, Roles: interlock.RoleWorker, Queues: []string{"*"}}
				return &engine.Pull{Head: h, ID: newID(), Leases: [][16]byte{newID()}, Queue: "q", Max: 1, Attach: true}
			})
		},
		again: func(n *neighbour) {
			c := n.submission(0)
			n.must(n.do(c))
			n.must(n.do(&engine.ChangeTask{Head: n.head(), Task: c.Task.ID, Change: engine.CancelTask}))
		},
	},
	{
		name:  "answer/questions=10000",
		setUp: (*neighbour).fillQuestions,
		again: func(n *neighbour) {
			n.must(n.do(n.submission(0)))
			n.must(n.do(&engine.Answer{Head: n.head(), Task: n.askAboutNext(), By: "eve", Verdict: interlock.Denied}))
		},
	},
	{
		name: "cancel/followers=1024",
		setUp: func(n *neighbour) {
			n.open()
			n.queue("q")
		},
		again: func(n *neighbour) {
			c := n.submission(0)
			n.must(n.do(c))
			n.all(interlock.MaxFollowers, func(int) engine.Command {
				return &engine.FollowTask{Head: n.head(), Task: c.Task.ID, Attach: true}
			})
			n.must(n.do(&engine.ChangeTask{Head: n.head(), Task: c.Task.ID, Change: engine.CancelTask}))
		},
	},
	{
		name:  "set-pattern/tasks=100000,allow",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) {
			n.must(n.do(&engine.SetPattern{
				Head:    n.head(),
				Pattern: interlock.Pattern{Name: "t", Shape: "t/{id}", Allow: []interlock.Rule{{Principal: "boss"}}},
			}))
			n.must(n.do(&engine.DropPattern{Head: n.head(), Name: "t"}))
		},
	},
	{
		name:  "switch-queue/tasks=100000",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) {
			n.must(n.do(&engine.SwitchQueue{Head: n.head(), Name: "q", Paused: engine.On, Drain: engine.On}))
			n.must(n.do(&engine.SwitchQueue{Head: n.head(), Name: "q", Paused: engine.Off, Drain: engine.Off}))
		},
	},
	{
		name:  "drop-queue/queues=1000,groups=1000",
		setUp: (*neighbour).fillQueues,
		again: func(n *neighbour) {
			n.must(n.do(&engine.DropQueue{Head: n.head(), Name: "q7"}))
			n.queue("q7")
		},
	},
	{
		name:  "list-queues/queues=1000,groups=1000",
		setUp: (*neighbour).fillQueues,
		again: func(n *neighbour) { n.survey(&engine.QueueList{Namespace: n.namespace}) },
	},
	{
		name:  "list-tasks/tasks=100000",
		setUp: func(n *neighbour) { n.open(); n.fillQueue() },
		again: func(n *neighbour) { n.survey(&engine.TaskList{Namespace: n.namespace, Limit: 1000}) },
	},

	{
		name:  "list-approvals/questions=10000",
		setUp: (*neighbour).fillQuestions,
		again: func(n *neighbour) { n.survey(&engine.Approvals{Namespace: n.namespace, Limit: 1000}) },
	},

	// The history.
	{
		name:  "events/events=100000",
		keeps: true,
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "") },
		again: (*neighbour).readEvents,
	},

	// Queries about keys.
	{
		name:  "key/holders=100000",
		setUp: func(n *neighbour) { n.open(); n.all(100_000, func(int) engine.Command { return n.takeShared("hot") }) },
		again: func(n *neighbour) { n.read(func(e *engine.Engine) { e.Key(n.namespace, "hot") }) },
	},
	{
		name:  "key/waiters=10000,below=100000",
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "hot/"); n.lineUp() },
		again: func(n *neighbour) { n.read(func(e *engine.Engine) { e.Key(n.namespace, "hot") }) },
	},
	{
		name:  "waits/waiters=10000",
		setUp: func(n *neighbour) { n.standInLine(interlock.MaxWaitersPerKey) },
		again: func(n *neighbour) { n.survey(&engine.WaitGraph{Namespace: n.namespace}) },
	},
	{
		name:  "hot/keys=100000",
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "") },
		again: func(n *neighbour) { n.survey(&engine.HotList{Namespace: n.namespace, Limit: 100}) },
	},
	{
		name:  "list-keys/keys=100000",
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "") },
		again: func(n *neighbour) {
			n.survey(&engine.KeyList{Namespace: n.namespace, Filter: engine.KeyFilter{Limit: 1000}})
		},
	},
	{
		name:  "holdings/leases=100000",
		setUp: func(n *neighbour) { n.open(); n.own(100_000, "") },
		again: func(n *neighbour) { n.survey(&engine.Holdings{Namespace: n.namespace, Agent: "busy"}) },
	},
	{
		name:  "list-parked/leases=100000",
		setUp: func(n *neighbour) { n.open(); n.parkMany() },
		again: func(n *neighbour) { n.survey(&engine.ParkedList{Namespace: n.namespace, Limit: 1000}) },
	},
	{
		name:  "list-runs/runs=100000",
		setUp: func(n *neighbour) { n.open(); n.all(100_000, func(i int) engine.Command { return n.run(i) }) },
		again: func(n *neighbour) { n.survey(&engine.RunList{Namespace: n.namespace, Limit: 1000}) },
	},
	{
		name:  "list-patterns/patterns=1000",
		setUp: func(n *neighbour) { n.open(); n.fillPatterns() },
		again: func(n *neighbour) { n.read(func(e *engine.Engine) { e.Patterns(n.namespace) }) },
	},
	{
		name: "contention/patterns=1000",
		setUp: func(n *neighbour) {
			n.open()
			n.fillPatterns()
			n.put("s0/1", []byte("1"))
			n.all(
				interlock.MaxPatterns-1, func(i int) engine.Command { return n.take("", interlock.Key(fmt.Sprintf("s%d/x", i))) },
			)
		},
		again: func(n *neighbour) { n.read(func(e *engine.Engine) { e.Contention(n.namespace) }) },
	},
}
