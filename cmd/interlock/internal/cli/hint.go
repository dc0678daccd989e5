package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Foreign are names that other tools, and earlier versions of this one, have for commands.
var Foreign = map[string][]string{
	"acquire": {"lock", "run"}, "mutex": {"lock", "run"}, "flock": {"run"}, "exec": {"run"}, "with": {"run"},
	"release": {"unlock"}, "ls": {"key list"}, "list": {"key list"}, "locks": {"key list"}, "leases": {"key list"},
	"keys": {"key list"}, "ps": {"key list"}, "holders": {"key list"}, "get": {"key get"}, "show": {"key get", "lease get"},
	"describe": {"key get", "lease get"}, "waits": {"key waits"}, "graph": {"key waits"}, "deadlocks": {"key waits"},
	"hot": {"key hot"}, "htop": {"top"}, "dashboard": {"top"}, "contention": {"key contention"},
	"events": {"log"}, "logs": {"log"}, "history": {"log", "state history"}, "audit": {"log"}, "tail": {"log --follow"},
	"watch": {"log --follow", "state watch"}, "renew": {"lease renew"}, "heartbeat": {"lease renew"}, "extend": {"lease renew"},
	"keepalive": {"lease renew"}, "convert": {"lease convert"}, "upgrade": {"lease convert"},
	"downgrade": {"lease convert"}, "park": {"lease park"}, "resume": {"lease resume"}, "revoke": {"lease revoke"},
	"break": {"lease revoke"}, "steal": {"lease revoke"}, "kick": {"lease revoke"}, "arrive": {"barrier arrive"},
	"partition": {"pool join"}, "join": {"pool join"}, "semaphore": {"run --permits", "pattern set --capacity"},
	"limit": {"pattern set --capacity", "pattern set --rate"}, "wait-for": {"agent wait"}, "wait": {"agent wait", "task wait"},
	"commit": {"state commit"}, "put": {"state set"}, "set": {"state set"}, "cat": {"state get", "file read"},
	"read": {"file read"}, "write": {"file write"}, "rm": {"state delete"}, "delete": {"state delete"},
	"approve": {"approval approve"}, "deny": {"approval deny"}, "approvals": {"approval list"},
	"mailbox": {"message"}, "messages": {"message"}, "send": {"message send"}, "ask": {"message ask", "task ask"},
	"submit": {"task create"}, "enqueue": {"task create"}, "work": {"task work"}, "worker": {"task work"},
	"session": {"agent list"}, "sessions": {"agent list"}, "tasks": {"task list"}, "queues": {"queue list"}, "runs": {"workflow list"}, "start": {"serve", "workflow start"},
	"patterns": {"pattern list"}, "login": {"credential create"}, "token": {"credential create"},
	"effects": {"effect list"}, "server": {"serve"}, "up": {"serve"}, "journal": {"admin journal"},
	"verify": {"admin journal verify"}, "dump": {"admin journal dump"}, "migrate": {"admin migrate"},
	"ns": {"namespace"}, "tenant": {"namespace"}, "blame": {"why"}, "explain": {"why"},
}

// verbs are other words for the acts of commands below a noun.
var verbs = map[string][]string{
	"add": {"create", "set"}, "make": {"create", "set"}, "new": {"create", "set"}, "put": {"set"}, "update": {"set"}, "submit": {"create"},
	"edit": {"set"}, "apply": {"set"}, "register": {"set"}, "configure": {"set"}, "create": {"set"}, "start": {"create"},
	"remove": {"delete"}, "del": {"delete"}, "drop": {"delete"}, "forget": {"delete"}, "discard": {"delete"},
	"all": {"list"}, "read": {"get"}, "describe": {"get"}, "info": {"get"}, "print": {"get"}, "view": {"get"},
	"yes": {"approve"}, "no": {"deny"}, "reject": {"deny"}, "release": {"unlock"}, "log": {"history"}, "list": {"log"}, "ls": {"log"}, "delete": {"revoke"}, "rm": {"revoke"},
}

// foreignFlags are names that other tools have for flags.
var foreignFlags = map[string][]string{
	"timeout": {"wait", "ttl"}, "no-wait": {"wait"}, "nowait": {"wait"}, "wait-timeout": {"wait"}, "block": {"wait"},
	"expire": {"ttl"}, "expires": {"ttl"}, "expiry": {"ttl"}, "duration": {"ttl", "wait"}, "lease-time": {"ttl"},
	"json": {"output"}, "format": {"output"}, "name": {"agent"}, "owner": {"agent"}, "holder": {"agent"}, "user": {"agent"},
	"id": {"lease"}, "reason": {"purpose", "note"}, "message": {"note", "reason"}, "description": {"purpose"},
	"server": {"url"}, "host": {"url"}, "addr": {"url"}, "address": {"url"}, "endpoint": {"url"}, "endpoints": {"url"},
	"token": {"credential-file"}, "api-key": {"credential-file"}, "password": {"credential-file"},
	"ns": {"namespace"}, "tenant": {"namespace"}, "cacert": {"tls-ca"}, "ca": {"tls-ca"}, "read": {"shared"}, "readonly": {"shared"},
	"count": {"permits", "limit"}, "max": {"limit"}, "force": {"yes"}, "silent": {"quiet"}, "tail": {"follow"},
	"data": {"data-dir"}, "dir": {"data-dir"}, "port": {"http"}, "listen": {"http"},
}

// NoCommand is for commands that only have others below them.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := "there is no command " + Quote(Clean(args[0])) + " in " + cmd.CommandPath()
	if near := nearCommands(cmd, args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usagef("%s", text)
}

// nearCommands are the commands that may be meant by a word that is none.
func nearCommands(cmd *cobra.Command, word string) (near []string) {
	add := func(line string) {
		if line = cmd.CommandPath() + " " + line; len(near) < 3 && !slices.Contains(near, line) {
			near = append(near, line)
		}
	}
	if !cmd.HasParent() {
		for _, line := range Foreign[word] {
			add(line)
		}
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && slices.Contains(verbs[word], sub.Name()) {
			add(sub.Name())
		}
	}
	if near != nil {
		return near
	}
	names := map[string]string{} // words, with the commands that they stand for
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		names[sub.Name()] = sub.Name()
		if strings.HasPrefix(sub.Name(), word) {
			add(sub.Name())
		}
	}
	if !cmd.HasParent() {
		for name, lines := range Foreign {
			names[name] = lines[0]
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	for d := 1; d <= reach(word) && near == nil; d++ {
		for _, name := range sorted {
			if distance(word, name) == d {
				add(names[name])
			}
		}
	}
	return near
}

// reach is how far a mistyped word may be from the one that is meant.
func reach(word string) int { return min(2, len(word)/2) }

// FlagError is an error in a flag, with what may have been meant.
func FlagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return Usagef("--%s %s: %w", wrong.GetFlag().Name, Quote(Clean(wrong.GetValue())), wrong.Unwrap())
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return Usagef("%w", err)
	}
	if typed := cmd.Flags().Args(); cmd.HasSubCommands() && len(typed) > 0 {
		return NoCommand(cmd, typed) // the flag may be one of the command that was meant
	}
	name := unknown.GetSpecifiedName()
	text, near := cmd.CommandPath()+" has no flag --"+Clean(name), nearFlags
	if unknown.GetSpecifiedShortnames() != "" {
		text, near = cmd.CommandPath()+" has no flag -"+Clean(name), longFlags
	}
	if near := near(cmd, name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Usagef("%s", text)
}

// longFlags are the flags of a command that begin with a letter.
func longFlags(cmd *cobra.Command, letter string) (near []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, letter) && f.Shorthand == "" && !f.Hidden && !hidden(cmd, f) {
			near = append(near, "--"+f.Name)
		}
	})
	return near[:min(3, len(near))]
}

// nearFlags are the flags of a command that may be meant by a name that is none.
func nearFlags(cmd *cobra.Command, name string) (near []string) {
	has := func(flag string) bool {
		f := cmd.Flags().Lookup(flag)
		return f != nil && !f.Hidden && !hidden(cmd, f)
	}
	for _, flag := range foreignFlags[name] {
		if has(flag) {
			near = append(near, "--"+flag)
		}
	}
	least := reach(name) + 1
	var close string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); d < least && has(f.Name) {
			least, close = d, "--"+f.Name
		}
	})
	if close != "" && !slices.Contains(near, close) {
		near = append(near, close)
	}
	return near
}

// distance is how many letters of one word are to be added, dropped, changed or swapped with their
// neighbour to get the other.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
