package hooks

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// modes are the flags about what hooks do.
type modes struct {
	mode, hold, prompts, unknown, commits, regions cli.Choice

	wait  time.Duration
	files int
	also  []string
}

func (m *modes) flags(cmd *cobra.Command) {
	m.mode.Among(
		cmd,
		"mode",
		"what a hook does about a file that another agent has (guard refuses the edit, warn only tells of the holder, "+
			"strict refuses also when no server answers)",
		"guard",
		"warn",
		"strict",
	)
	m.hold.Among(cmd, "hold", "until when an agent has a file", "turn", "edit")
	m.prompts.Among(cmd, "prompts", "whether others see the first line of a prompt as the purpose", "on", "off")
	m.unknown.Among(
		cmd,
		"unknown",
		"what becomes of a shell command that is not understood while another agent has a file of the checkout "+
			"(ask leaves it to a person where the agent can ask, and refuses elsewhere)",
		"allow",
		"ask",
		"deny",
	)
	m.commits.Among(
		cmd,
		"commits",
		"what becomes of a commit that would take the files of other agents (own narrows it to the agent's own files "+
			"where its hooks can change a command, and refuses elsewhere)",
		"refuse",
		"own",
	)
	m.regions.Among(
		cmd,
		"regions",
		"whether an edit of one declaration of a source file leases that alone, so that others may edit the rest",
		"off",
		"on",
	)
	f := cmd.Flags()
	cli.DurationVar(f, &m.wait, "wait", hookclient.DefaultWait, "how long an edit waits for its file, up to 50s")
	f.IntVar(&m.files, "files", hookclient.MaxFiles, "how many files one event leases; more count as a change at large")
	f.StringArrayVar(
		&m.also, "also", nil, "a `tool:field` of an MCP server that writes the file in that field; may be repeated",
	)
}

// pair is a tool with a field, in characters that mean nothing to a shell.
var pair = regexp.MustCompile(`^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$`)

// options are the flags as settings of hooks.
func (m *modes) options() (o parameters, err error) {
	if err := cli.CheckDurations(cli.Duration("--wait", m.wait, 0, hookclient.MaxWait)); err != nil {
		return o, err
	}
	for _, text := range m.also {
		if !pair.MatchString(text) {
			return o, cli.Usagef("--also %s: want TOOL:FIELD, such as mcp__fs__write_file:path", cli.Quote(cli.Clean(text)))
		}
	}
	if m.files < 1 || m.files > hookclient.MaxFiles {
		return o, cli.Usagef("--files %d: want 1 to %d", m.files, hookclient.MaxFiles)
	}
	o = parameters{
		mode: m.mode.Value, hold: m.hold.Value, prompts: m.prompts.Value, unknown: m.unknown.Value, commits: m.commits.Value,
		regions: m.regions.Value, wait: m.wait, also: m.also,
	}
	if m.files != hookclient.MaxFiles {
		o.files = strconv.Itoa(m.files)
	}
	return o, nil
}

// parameters are the settings of hooks; empty ones are those that the server has without a word.
type parameters struct {
	mode, hold, prompts, unknown, commits, regions, files string

	wait time.Duration
	also []string
}

// waits reports whether an edit waits for another time than hooks do without a word.
func (p *parameters) waits() bool { return p.wait != hookclient.DefaultWait }

// list has the parameters of an event, as names and values. Codex confirms the very line of a command, so it has no
// more in it than what was asked for.
func (p *parameters) list(e event) (all [][2]string) {
	for _, one := range []struct {
		name, value string
		before      bool // it is about events before a tool only
	}{
		{"mode", p.mode, true},
		{"hold", p.hold, false},
		{"prompts", p.prompts, false},
		{"unknown", p.unknown, true},
		{"commits", p.commits, true},
		{"regions", p.regions, true},
		{"files", p.files, false},
	} {
		if one.value != "" && (e.before || !one.before) {
			all = append(all, [2]string{one.name, one.value})
		}
	}
	for _, text := range p.also {
		all = append(all, [2]string{"also", text})
	}
	return all
}

// command is the command of an event.
func (p *parameters) command(harness string, e event) string {
	line := "interlock-hook " + harness
	for _, one := range p.list(e) {
		line += " --" + one[0] + " " + one[1]
	}
	if p.waits() && e.before {
		line += " --wait " + strconv.Itoa(int(p.wait.Seconds())) + "s"
	}
	return line
}

// query is the query of an event's URL.
func (p *parameters) query(e event) string {
	query := url.Values{}
	for _, one := range p.list(e) {
		query.Add(one[0], one[1])
	}
	if p.waits() && e.before {
		query.Set("wait_s", strconv.Itoa(int(p.wait.Seconds())))
	}
	return query.Encode()
}

// adapt is an event with the time that the wait needs, and with the tools that are named.
func (p *parameters) adapt(e event) event {
	if e.before {
		e.seconds += int((p.wait - hookclient.DefaultWait).Seconds())
	}
	if !strings.Contains(e.matcher, "|") { // it is not about tools
		return e
	}
	for _, text := range p.also {
		tool, _, _ := strings.Cut(text, ":")
		list, group := strings.CutSuffix(e.matcher, ")$")
		e.matcher = list + "|" + tool
		if group {
			e.matcher += ")$"
		}
	}
	return e
}
