package view

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/prose"
)

// ShowApproval prints a question and its answer.
func ShowApproval(a *cli.App, p *api.Approval) {
	for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(p.Question)), "\n") {
		a.Say("  | %s\n", line)
	}
	when := cli.ShortMillis(p.Asked) + " ago"
	if p.Left > 0 {
		when += ", " + cli.Clean(p.OnLimit) + " in " + cli.ShortMillis(p.Left) + " without an answer"
	}
	Fact(a, "asked", when)
	for _, x := range p.Approvals {
		text := interlock.Answerer(cli.Clean(x.Principal), cli.Clean(x.By))
		if reason := cli.Clean(x.Reason); reason != "" {
			text += ": " + reason
		}
		Fact(a, "approved", text)
	}
	if p.Needed > 1 {
		Fact(a, "needs", fmt.Sprintf("%d of %d approvals", p.Needed-len(p.Approvals), p.Needed))
	}
	Fact(a, "answer", approvalAnswer(p))
	if p.Packet == nil {
		return
	}
	for i := range p.Packet.Changes {
		showChange(a, &p.Packet.Changes[i])
	}
}

// showChange prints how a document has changed since the asker read it.
func showChange(a *cli.App, c *api.StaleDocument) {
	how := "is at version " + cli.Clean(c.Now.Version) + ", " + writtenState(&c.Now)
	if c.Now.Absent {
		how = "was removed " + writtenState(&c.Now)
	}
	Fact(a, "changed", fmt.Sprintf("%s was read at version %s and %s", cli.Clean(c.Key), cli.Clean(c.Then.Version), how))
	if c.Left > 0 {
		Fact(a, "before", fmt.Sprintf("%d writes that are not shown", c.Left))
	}
	for i := range c.Between {
		b := &c.Between[i]
		fact := "version " + cli.Clean(b.Version) + ", " + writtenState(b)
		if b.Absent {
			fact = "version " + cli.Clean(b.Version) + ", removed " + writtenState(b)
		}
		Fact(a, "before", fact)
	}
	text := c.Diff.Text
	if len(c.Diff.Patch) > 0 {
		operations := make([]string, len(c.Diff.Patch))
		for i, op := range c.Diff.Patch {
			operations[i] = string(op)
		}
		text = "[" + strings.Join(operations, ",") + "]"
	}
	for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(text)), "\n") {
		if line != "" {
			a.Say("  | %s\n", cli.Cut(line, cli.TableWidth-4))
		}
	}
}

func writtenState(d *api.DocumentState) string { return Written(&d.DocumentInfo, d.Age) }

// approvalAnswer returns the verdict in half a sentence, or nothing while it is open.
func approvalAnswer(p *api.Approval) string {
	if p.Verdict == "" {
		return ""
	}
	text := prose.Verdict(p.Verdict, p.Principal, p.By, p.Reason)
	if p.UsedIn > 0 {
		text += fmt.Sprintf("; used in attempt %d", p.UsedIn)
	}
	return text
}

// TellApproval prints to standard error what a person has answered, and what has changed since the
// question.
func TellApproval(a *cli.App, p *api.Approval) {
	if p == nil {
		return
	}
	if answer := approvalAnswer(p); answer != "" {
		if p.UsedIn > 0 {
			answer += ": what it was given for may have been done"
		}
		a.Complain("%s", answer)
	}
	tellPacket(a, p.Packet)
}

// Fact prints what is known of something under its name, unless it is nothing.
func Fact(a *cli.App, name, value string) {
	if value != "" {
		a.Say("  %-9s %s\n", name, value)
	}
}

// FactWidth is the rest of a line behind a fact's name.
const FactWidth = cli.TableWidth - 12
