package view

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/prose"
)

// ShowApproval prints a question and its answer.
func ShowApproval(a *cli.App, p *Approval) {
	for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(p.Question)), "\n") {
		a.Say("  | %s\n", line)
	}
	when := cli.Short(cli.Millis(p.Asked)) + " ago"
	if p.Left > 0 {
		when += ", " + cli.Clean(p.OnLimit) + " in " + cli.Short(cli.Millis(p.Left)) + " without an answer"
	}
	Fact(a, "asked", when)
	for _, x := range p.Given {
		text := interlock.Answerer(cli.Clean(x.Name), cli.Clean(x.By))
		if reason := cli.Clean(x.Reason); reason != "" {
			text += ": " + reason
		}
		Fact(a, "approved", text)
	}
	if p.Needed > 1 {
		Fact(a, "needs", fmt.Sprintf("%d of %d approvals", p.Needed-len(p.Given), p.Needed))
	}
	Fact(a, "answer", p.answer())
	if p.Packet == nil {
		return
	}
	for i := range p.Packet.Stale {
		c := &p.Packet.Stale[i]
		how := "is at version " + c.Now.Version.String() + ", " + c.Now.Writer()
		if c.Now.Absent {
			how = "was removed " + c.Now.Writer()
		}
		Fact(a, "changed", fmt.Sprintf("%s was read at version %s and %s", cli.Clean(string(c.Key)), c.Then.Version, how))
		if c.Left > 0 {
			Fact(a, "before", fmt.Sprintf("%d writes that are not shown", c.Left))
		}
		for i := range c.Between {
			b := &c.Between[i]
			fact := "version " + b.Version.String() + ", " + b.Writer()
			if b.Absent {
				fact = "version " + b.Version.String() + ", removed " + b.Writer()
			}
			Fact(a, "before", fact)
		}
		text := string(c.Diff.Patch)
		if text == "" {
			text = c.Diff.Text
		}
		for line := range strings.SplitSeq(strings.TrimSpace(cli.CleanLines(text)), "\n") {
			if line != "" {
				a.Say("  | %s\n", cli.Cut(line, cli.TableWidth-4))
			}
		}
	}
}

// answer is the verdict in half a sentence, or nothing while it is open.
func (p *Approval) answer() string {
	if p.Verdict == "" {
		return ""
	}
	return prose.Verdict(p.Verdict, p.Name, p.By, p.Reason)
}

// TellApproval prints to standard error what a person has answered, and what has changed since the
// question.
func TellApproval(a *cli.App, p *Approval) {
	if p == nil {
		return
	}
	if answer := p.answer(); answer != "" {
		a.Complain("%s", answer)
	}
	if p.Packet != nil {
		tellPacket(a, p.Packet.Packet)
	}
}

// Fact prints what is known of something under its name, unless it is nothing.
func Fact(a *cli.App, name, value string) {
	if value != "" {
		a.Say("  %-9s %s\n", name, value)
	}
}

// FactWidth is the rest of a line behind a fact's name.
const FactWidth = cli.TableWidth - 12
