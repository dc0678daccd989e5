package jsoncodec

// encoder is a function that writes one message.
type encoder struct {
	message, function string
	from              string // the parameter that has the fields: "l *interlock.Lease"
	flat              bool   // it writes the members without the braces
	with              string // further parameters of the function, for when and write: "whole bool"
	// always lists fields that are written also when they are empty, by their Go names.
	always []string
	// when has the conditions under which fields are written, by their Go names.
	when map[string]string
	// write has the statements for fields that are written in another way, by their Go names; ""
	// leaves a field to another one's.
	write map[string]string
}

// counted is for claims: writeMode writes the count that belongs to a mode.
func counted(v string) map[string]string {
	return map[string]string{
		"Mode": "writeMode(j, " + v + ".Mode, " + v + ".Count)", "Permits": "", "Parties": "", "Parts": "",
	}
}

// waiting is a condition of tasks.
const waiting = "t.State == interlock.TaskWaiting"

// documentState writes a version of a document and its author.
func documentState(function string, flat bool) encoder {
	return encoder{
		message: "DocumentState", function: function, from: "d *interlock.Document", flat: flat,
		always: []string{"ContentType", "Size", "Age"},
		when:   map[string]string{"ContentType": "!d.Absent", "Size": "!d.Absent", "Age": "d.Op != 0"},
		write:  map[string]string{"Version": `j.decimal("version", uint64(d.Version))`},
	}
}

// encoders are the messages that the server writes by generated functions.
var encoders = []encoder{
	{message: "Claim", function: "writeClaim", from: "c *interlock.Claim", write: counted("c")},
	{message: "Lease", function: "writeLease", from: "l *interlock.Lease", write: map[string]string{
		"Holder": `writeLeaseHolder(j, "holder", l)`,
		"Grace":  `j.ms("grace_ms", max(l.Grace, 0))`,
	}},
	{message: "Name", function: "writeLeaseHolder", from: "l *interlock.Lease"},
	{message: "Yield", function: "writeYield", from: "y *interlock.Yield"},
	{message: "Parking", function: "writeParking", from: "p *interlock.ParkStatus", write: map[string]string{
		"Keys": `j.str("keys", parkedKeys(p))`,
	}},
	{message: "Decision", function: "writeDecision", from: "d *interlock.Decision"},
	{message: "HeldPart", function: "writePart", from: "p *interlock.Part"},
	{message: "Note", function: "writeNote", from: "n *interlock.Note"},
	{message: "Ticket", function: "writeTicket", from: "t *interlock.Ticket"},
	{message: "Session", function: "writeSession", from: "s *engine.Session"},
	{message: "Holder", function: "writeHolder", from: "h *interlock.Holder", write: counted("h")},
	{message: "CycleStep", function: "writeCycleStep", from: "c *interlock.CycleStep"},
	{message: "Attempt", function: "writeAttempt", from: "a *interlock.Attempt"},
	{message: "Advice", function: "writeAdviceMembers", from: "a *interlock.Advice", flat: true},
	{message: "Line", function: "writeLine", from: "q *interlock.Line"},
	{
		message: "Capacity", function: "writeCapacity", from: "c *interlock.Capacity",
		always: []string{"Permits", "Used", "Tokens", "Available"},
		when: map[string]string{
			"Permits": "c.Permits > 0", "Used": "c.Permits > 0", "Tokens": "c.Tokens > 0", "Available": "c.Tokens > 0",
			"Refill": "c.Tokens > 0",
		},
	},
	{message: "GroupUse", function: "writeGroupUse", from: "g *interlock.GroupUse"},

	{
		message: "KeyView", function: "writeKeyView", from: "v *engine.KeyView", flat: true,
		with: "version interlock.Version",
		write: map[string]string{
			"State":   `j.str("state", keyState(len(v.Holders)+v.More, v.Length))`,
			"Version": `j.decimal("version", uint64(version))`,
			"Part":    "",
		},
	},
	{message: "KeyRow", function: "writeKeyRow", from: "r *engine.KeyRow", write: map[string]string{
		"State": `j.str("state", keyState(len(r.Holders)+r.More, r.Length))`,
	}},
	{
		message: "Waiter", function: "writeWaiter", from: "w *engine.WaiterView", write: counted("w"),
		always: []string{"Task", "Queue", "Dormant"},
		when: map[string]string{
			"Task": "!w.Task.IsZero()", "Queue": "!w.Task.IsZero()", "Dormant": "!w.Task.IsZero()",
		},
	},
	{
		message: "Part", function: "writePartView", from: "p *engine.PartView", with: "resource string",
		write: map[string]string{"Resource": `j.text("resource", resource)`},
	},
	{message: "ParkedLease", function: "writeParkedLease", from: "r *engine.ParkedRow"},
	{message: "NamespaceStatus", function: "writeNamespaceStatus", from: "c *engine.NamespaceCounts"},
	{message: "ListedLease", function: "writeListedLease", from: "r *engine.LeaseRow"},
	{message: "ListedTicket", function: "writeListedTicket", from: "r *engine.TicketRow", write: map[string]string{
		"On": "if r.On != nil {\nwriteFlow(j, \"on\", r.On)\n}",
	}},
	{message: "OwnLease", function: "writeOwnLease", from: "r *engine.LeaseRow"},
	{message: "OwnTicket", function: "writeOwnTicket", from: "r *engine.TicketRow"},
	{message: "Name", function: "writeFlow", from: "f *engine.FlowRef"},
	{message: "ListedSession", function: "writeListedSession", from: "r *engine.SessionRow"},
	{message: "HotKey", function: "writeHotKey", from: "k *engine.HotKey"},
	{message: "WaitEdge", function: "writeWaitEdge", from: "w *engine.WaitEdge"},
	{message: "Party", function: "writeParty", from: "f *engine.FlowRef"},
	{message: "WaitLink", function: "writeWaitLink", from: "l *prose.Link"},

	{message: "OverviewSums", function: "writeOverviewSums", from: "c *engine.NamespaceCounts"},
	{message: "OverviewKey", function: "writeOverviewKey", from: "k *engine.OverviewKey", write: map[string]string{
		"Row": `writeKeyRow(j, "row", &k.KeyRow)`,
	}},
	{
		message: "OverviewEdge", function: "writeOverviewEdge", from: "e *engine.WaitEdge", with: "ends [2]int",
		when: map[string]string{"To": "ends[1] >= 0"},
		write: map[string]string{
			"From": `j.int("from", int64(ends[0]))`,
			"To":   `j.int("to", int64(ends[1]))`,
		},
	},
	{message: "LeaseThen", function: "writeLeaseThen", from: "h *interlock.Holder"},
	{message: "WaiterThen", function: "writeWaiterThen", from: "r *engine.TicketRow"},
	{message: "DocumentThen", function: "writeDocumentThen", from: "d *interlock.Document"},
	{message: "TaskThen", function: "writeTaskThen", from: "t *interlock.Task"},

	{
		message: "TimelineBar", function: "writeBar", from: "b *timeline.Bar", with: "linked bool",
		when: map[string]string{"Links": "linked"},
	},
	{message: "TimelineTarget", function: "writeTarget", from: "t *timeline.Target"},
	{message: "TimelineTask", function: "writeTimelineTask", from: "t *timeline.Task", write: map[string]string{
		"Task": `j.str("task", t.ID.String())`,
	}},
	{message: "TimelineMark", function: "writeMark", from: "m *timeline.Mark", write: map[string]string{
		"Lease":   "if m.Holder != nil {\nwriteLeaseOf(j, m.Holder)\n}",
		"TraceID": "", "Task": "",
	}},
	{message: "TimelineLink", function: "writeLink", from: "l *timeline.Link"},
	{message: "ReportSums", function: "writeReportSums", from: "s *report.Sums", write: map[string]string{
		"WaitP50": `j.ms("wait_p50_ms", s.Wait(50))`, "WaitP99": `j.ms("wait_p99_ms", s.Wait(99))`,
		"HoldP50": `j.ms("hold_p50_ms", s.Hold(50))`, "HoldP99": `j.ms("hold_p99_ms", s.Hold(99))`,
	}},
	{message: "ReportKey", function: "writeReportKey", from: "k *report.Key"},
	{message: "Incident", function: "writeIncident", from: "x *incident.Incident"},
	{message: "ReportAdvice", function: "writeReportAdvice", from: "a *advice.Advice"},

	{
		message: "DocumentInfo", function: "writeDocumentInfo", from: "d *interlock.Document", flat: true,
		always: []string{"ContentType", "Size"},
		when:   map[string]string{"ContentType": "!d.Absent", "Size": "!d.Absent"},
	},
	documentState("writeVersion", true),
	documentState("writeDocumentState", false),
	{
		message: "EarlierState", function: "writeEarlierState", from: "d *interlock.Document", with: "known bool",
		always: []string{"ContentType", "Size"},
		when:   map[string]string{"ContentType": "known && !d.Absent", "Size": "known && !d.Absent"},
		write:  map[string]string{"Version": `j.decimal("version", uint64(d.Version))`},
	},
	{message: "StaleDocument", function: "writeStaleDocument", from: "c *interlock.Change", write: map[string]string{
		"Key":  `j.text("key", string(c.Now.Key))`,
		"Then": `writeEarlierState(j, "then", &c.Then, c.Known)`,
		"Diff": "writeDifference(j, c)",
	}},
	{message: "Packet", function: "writePacket", from: "p *interlock.Packet"},
	{
		message: "Effect", function: "writeEffect", from: "x *interlock.Effect",
		when: map[string]string{"ExpiresIn": "x.State == interlock.EffectClaimed"},
		write: map[string]string{
			"Digest": `j.str("action", hex.EncodeToString(x.Digest[:]))`,
			"State":  `j.str("state", effectState(x.State))`,
		},
	},
	{
		message: "PatternContention", function: "writeContention", from: "c *interlock.Contention",
		write: map[string]string{"Advice": "writeAdvice(j, prose.ForContention(c))"},
	},

	{
		message: "Task", function: "writeTask", from: "t *interlock.Task", with: "c *call, whole bool",
		always: []string{"Queue", "Claims", "Priority", "State", "Age", "Attempt", "MaxAttempts"},
		when: map[string]string{
			"Payload": "whole", "Result": "whole",
			"Position": waiting, "ETA": waiting, "Blocker": waiting, "Barred": waiting,
		},
		write: map[string]string{
			"ID":       "j.str(\"id\", t.ID.String())\nif t.State == 0 {\nj.close()\nreturn\n}",
			"Approval": "if t.Approval != nil {\nwriteApproval(j, \"approval\", t.Approval, c, whole)\n}",
		},
	},
	{
		message: "Approval", function: "writeApproval", from: "a *interlock.Approval", with: "c *call, whole bool",
		when:  map[string]string{"By": "a.Verdict != 0", "Principal": "a.Verdict != 0", "Reason": "a.Verdict != 0"},
		write: map[string]string{"Packet": "if whole {\nc.writeStale(j, a.Stale, a.StaleMore, packet.Answer)\n}"},
	},
	{message: "EarlierApproval", function: "writeEndorsement", from: "e *interlock.Endorsement"},
	{message: "LeaseQuestion", function: "writeLeaseQuestion", from: "q *engine.LeaseQuestion", write: map[string]string{
		"Kind":  `j.str("kind", "lease")`,
		"Asked": `j.ms("asked_ms", q.Parking.Since)`,
		"Left":  `j.ms("left_ms", q.Parking.Left)`,
		"Keys":  `j.str("keys", parkedKeys(&q.Parking))`,
	}},
	{message: "LogEntry", function: "writeLogEntry", from: "x *interlock.LogEntry", write: map[string]string{
		"Document": `writeDocument(j, "document", &x.Document, x.Changed)`,
	}},

	{message: "Writer", function: "writeWriter", from: "p *interlock.Pattern"},
	{message: "PatternRevision", function: "writeRevision", from: "r *interlock.PatternRevision", write: map[string]string{
		"Pattern": "if !r.Dropped {\nj.open(\"policy\")\nwritePattern(j, &r.Pattern)\nj.close()\n}",
	}},
	{message: "Run", function: "writeRun", from: "r *engine.RunView"},
	{message: "ActiveServer", function: "writeActive", from: "a *Active"},

	{message: "KeyPattern", function: "writePattern", from: "p *interlock.Pattern", flat: true},
	{message: "GroupRequest", function: "writeGroup", from: "g *interlock.Group", write: map[string]string{
		"Name": `j.text("name", g.Name)`,
	}},
	{message: "RuleRequest", function: "writeRule", from: "r *interlock.Rule"},
	{message: "NamespaceSettings", function: "writeSettings", from: "s *interlock.Settings", flat: true},
	{message: "Quota", function: "writeQuota", from: "q *interlock.Quota"},
	{message: "QueueSettings", function: "writeQueue", from: "q *interlock.TaskQueue", flat: true},
	{message: "ShareRequest", function: "writeShare", from: "s *interlock.Share", write: map[string]string{
		"Group": `j.text("name", s.Group)`,
	}},
	{message: "QueueStatus", function: "writeQueueStatus", from: "q *interlock.QueueStatus", write: map[string]string{
		"Tasks": `writeQueueTasks(j, "tasks", q)`,
	}},
	{message: "QueueTasks", function: "writeQueueTasks", from: "q *interlock.QueueStatus"},
}
