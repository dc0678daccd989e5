package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/endpoint"
)

// Results go to standard output; everything else, which is errors, progress and messages while a
// command waits, goes to standard error. With -o json standard output has the server's answers as
// they came, one a line, also when an answer is a refusal.

// JSON reports whether -o json was given.
func (a *App) JSON() bool { return a.Output == "json" }

// Raw prints an answer of the server as one line.
func (a *App) Raw(answer []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, answer); err != nil {
		return fmt.Errorf("the server's answer is no JSON: %w", err)
	}
	line.WriteByte('\n')
	return a.Content(line.Bytes())
}

// Content prints what other agents wrote, byte by byte. On a terminal the characters that
// could steer it, or hide or reorder text, are printed as \u escapes, and the last line ends.
func (a *App) Content(b []byte) error {
	if a.screen {
		b = []byte(escaped(string(b)))
		if len(b) > 0 && b[len(b)-1] != '\n' {
			b = append(b, '\n')
		}
	}
	_, err := a.Out.Write(b)
	return err
}

// Print writes a value of our own as one line of JSON.
func (a *App) Print(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Say writes a result for people to standard output.
func (a *App) Say(format string, args ...any) { fmt.Fprintf(a.Out, format, args...) }

// Warn passes on what the server found odd about a request.
func (a *App) Warn(warnings []string) {
	for _, w := range warnings {
		a.Complain("%s", Clean(w))
	}
}

// Sentence is an error as a person reads it: what is wrong, and the next step.
func (a *App) Sentence(err error) string {
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return RefusalText(refusal)
	}
	if own, ok := errors.AsType[*exitError](err); ok && own.err == nil {
		return ""
	}
	if errors.Is(err, client.ErrUnreachable) && a.Server.Bases != nil {
		if failed := a.Server.handshake(strings.Join(a.Server.Sessions, ", "), err); failed != nil {
			return Clean(failed.Error())
		}
		short := errors.New(reason(err))
		if errors.Is(err, endpoint.ErrClosed) {
			short = endpoint.ErrClosed
		}
		return a.Server.unreachable(true, short).Error()
	}
	return Clean(err.Error())
}

// reason returns why there was no answer, without the words that each layer below has put around
// it.
func reason(err error) string {
	text := Clean(err.Error())
	if _, after, ok := strings.Cut(text, `desc = "`); ok {
		text = strings.TrimRight(after, `"`)
	}
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}

// RefusalText is the server's message and its advice, the next step.
func RefusalText(e *interlock.Error) string {
	text, next := Clean(e.Message), Clean(e.Advice.Message)
	if e.Code == interlock.CodeForbidden {
		return strings.ReplaceAll(text, "leave the header out", "leave --namespace out")
	}
	if own, ok := nextSteps[e.Code]; ok {
		if strings.Contains(text, own) {
			return text
		}
		return text + ": " + own
	}
	next = AsFlags(next)
	switch {
	case text == "" && next == "":
		return "refused: " + string(e.Code)
	case text == "":
		return next
	case next == "" || saysHow[e.Code]:
		return text
	}
	return text + ": " + next
}

// saysHow has the codes with messages that describe how the request should be.
var saysHow = map[interlock.Code]bool{
	interlock.CodeForbidden: true, interlock.CodeInvalidRequest: true, interlock.CodeInvalidKey: true,
	interlock.CodeInvalidMode: true, interlock.CodeInvalidNamespace: true, interlock.CodeInvalidID: true,
	interlock.CodeInvalidTTL: true, interlock.CodeInvalidPriority: true, interlock.CodeTooManyClaims: true,
	interlock.CodeTooLong: true, interlock.CodeBodyTooLarge: true, interlock.CodeUnsupported: true,
	interlock.CodeInvalidPattern: true, interlock.CodeInvalidQueue: true, interlock.CodeInvalidWebhook: true,
	interlock.CodeInvalidPath: true, interlock.CodeKeyOrder: true,
}

// flagNames add flags to the server's advice.
var flagNames = strings.NewReplacer(
	"wait in line for it", "wait in line for it with --wait 30s",
	"wait in line for the key", "wait in line for the key with --wait 30s",
	"wait in line", "wait in line with --wait 30s",
	"wait longer in line", "use a longer --wait",
	"resume it and wait for the decision", "resume it with --wait",
	"accept a later position in the line", "use a larger --max-position",
	"list the patterns", "list the patterns with `interlock pattern list`",
	"under the same request id", "with the same --id",
)

// AsFlags returns the server's advice with the flags that follow it.
func AsFlags(advice string) string { return flagNames.Replace(advice) }

// nextSteps are for refusals with server advice that speaks of HTTP, or repeats the message.
var nextSteps = map[interlock.Code]string{
	interlock.CodeUnauthenticated: "set INTERLOCK_CREDENTIAL, or use --credential-file",
	interlock.CodeNoSpace:         "try again when there is room on the server's disk",
	interlock.CodeRevoked:         "write nothing more under it, and ask before you acquire again",
	interlock.CodeExpired:         "write nothing more under it",
	interlock.CodeTaken:           "write nothing more under it",
	interlock.CodeUnknownPattern:  "`interlock pattern list` lists the existing ones",
	interlock.CodeUnknownRevision: "`interlock pattern revisions` lists the remembered ones",
	interlock.CodeUnknownQueue:    "`interlock queue list` lists the existing ones, and `interlock queue set` makes one",
	interlock.CodeUnknownTask:     "`interlock task list` lists the known ones",
	interlock.CodeTaskSettled:     "`interlock task get` has its history",
	interlock.CodeNoWriter:        "`interlock writer set` names one for the key's pattern",
	interlock.CodePreempted:       "write nothing more under it",
	interlock.CodeParked:          "resume it with `interlock lease resume`",
	interlock.CodeDenied:          "`interlock unlock` ends it, and `interlock lease resume --unapproved` continues with something else under it",
	interlock.CodeOutcomeUnknown:  "look before you ask again",
	interlock.CodeNotOwner:        "with the addresses of all servers in --url (INTERLOCK_URL) the active one is found",
}

// Complain writes a line to standard error, without what would steer the terminal: file names and purposes are an
// agent's.
func (a *App) Complain(format string, args ...any) {
	fmt.Fprintln(a.Err, "interlock: "+CleanLines(fmt.Sprintf(format, args...)))
}

// PrintResult prints a result: text as it is, other JSON on one line.
func (a *App) PrintResult(result json.RawMessage) error {
	if len(result) == 0 {
		return nil
	}
	var text string
	if a.JSON() || json.Unmarshal(result, &text) != nil {
		return a.Raw(result)
	}
	if text == "" {
		return nil
	}
	return a.Content([]byte(text + "\n"))
}
