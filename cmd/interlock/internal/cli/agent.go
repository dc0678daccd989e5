package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

// sessionVariables are those that name a coding agent's session to the commands that it runs,
// with the agent's name.
var sessionVariables = []struct{ variable, agent string }{
	{"CLAUDE_SESSION_ID", "claude"},
	{"CLAUDE_CODE_SESSION_ID", "claude"},
	{"CODEX_SESSION_ID", "codex"},
	{"CODEX_THREAD_ID", "codex"},
	{"CURSOR_TRACE_ID", "cursor"},
	{"GEMINI_SESSION_ID", "gemini"},
}

// AgentVar adds --agent, which names the agent for others to read.
func AgentVar(f *pflag.FlagSet, p *string, what string) {
	f.StringVar(
		p, "agent", "",
		what+" (default: a coding agent's session, or user@host with the Git branch)",
	)
	Bind(f, "agent", "")
}

// OwnName is the default name of an agent: the session of the coding agent that runs the command,
// else user@host:repository/branch, or without a repository user@host. All commands of one job
// have it in common.
var OwnName = sync.OnceValue(func() string {
	for _, v := range sessionVariables {
		if id := os.Getenv(v.variable); id != "" {
			return tail(v.agent + ":" + Clean(id))
		}
	}
	name := Person()
	if branch := gitBranch(); branch != "" {
		name += ":" + branch
	}
	return tail(name)
})

// Person is user@host, the name of the person at the keyboard as far as the system knows it.
func Person() string {
	name := "somebody"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return name + "@" + host
}

// tail leaves of a name what fits.
func tail(name string) string {
	return strings.ToValidUTF8(name[max(0, len(name)-interlock.MaxNameBytes):], "")
}

// gitBranch is the repository and the branch of the working directory, "" without them. It reads
// the two files that have them: most commands would wait longer for git than for the server.
func gitBranch() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		git := filepath.Join(dir, ".git")
		if info, err := os.Stat(git); err == nil {
			if !info.IsDir() { // a worktree or a submodule
				link, err := os.ReadFile(git)
				target, ok := strings.CutPrefix(strings.TrimSpace(string(link)), "gitdir: ")
				if err != nil || !ok {
					return ""
				}
				if !filepath.IsAbs(target) {
					target = filepath.Join(dir, target)
				}
				git = target
			}
			head, err := os.ReadFile(filepath.Join(git, "HEAD"))
			if err != nil {
				return ""
			}
			branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
			if !ok {
				branch = "detached"
			}
			return Clean(filepath.Base(dir) + "/" + branch)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}
