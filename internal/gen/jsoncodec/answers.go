package jsoncodec

// encoder is a function that writes one message.
type encoder struct {
	message, function string
	from              string // the parameter that has the fields: "l *interlock.Lease"
	flat              bool   // it writes the members without the braces
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
