package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/home"
	"github.com/interlockdev/interlock/internal/hookclient"
)

// release is the version, which a release is linked with.
var release = "devel"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// hook is one event on its way.
type hook struct {
	hookclient.Settings
	out io.Writer
}

// run carries out one command line and returns the exit code.
func run(args []string, in io.Reader, out, report io.Writer) (code int) {
	h := &hook{out: out}
	defer func() { // a panic would end with the exit code of a refusal
		if p := recover(); p != nil {
			code = h.Fail(report, fmt.Errorf("a mistake in interlock-hook: %v", p))
		}
	}()
	switch done, err := h.parse(args, out); {
	case done:
		return hookclient.ExitOK
	case err != nil:
		return h.Fail(report, err)
	}
	settings, err := home.LoadHook()
	if err == nil && strings.Contains(settings.URL, "https://") {
		err = relay(args, &settings)
	} else if err == nil {
		err = h.pass(in, &settings)
	}
	if err != nil {
		return h.Fail(report, err)
	}
	return hookclient.ExitOK
}

const usage = `interlock-hook passes an event of a coding agent from standard input to an Interlock server.

Usage:
  interlock-hook HARNESS [--mode warn|guard|strict] [--hold turn|edit] [--wait 30s] [--prompts on|off]
                 [--unknown allow|ask|deny] [--commits refuse|own] [--regions off|on] [--files 32]
                 [--also TOOL:FIELD]...

The server is that of INTERLOCK_URL, or of the file that ` + "`interlock hooks install`" + ` has written.
`

// parse reads the command line. done is set after a request for help or the version.
func (h *hook) parse(args []string, out io.Writer) (done bool, err error) {
	flags := flag.NewFlagSet("interlock-hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&h.Mode, "mode", "", "")
	flags.StringVar(&h.Hold, "hold", "", "")
	flags.StringVar(&h.Prompts, "prompts", "", "")
	flags.StringVar(&h.Unknown, "unknown", "", "")
	flags.StringVar(&h.Commits, "commits", "", "")
	flags.StringVar(&h.Regions, "regions", "", "")
	flags.StringVar(&h.Files, "files", "", "")
	flags.Func("also", "", func(pair string) error {
		h.Also = append(h.Also, pair)
		return nil
	})
	flags.DurationVar(&h.Wait, "wait", hookclient.DefaultWait, "")
	version := flags.Bool("version", false, "")
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		h.Harness, args = args[0], args[1:]
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return true, nil
	case err != nil:
		return false, err
	case *version:
		fmt.Fprintln(out, "interlock-hook "+release)
		return true, nil
	case h.Harness == "":
		return false, errors.New("name the harness: interlock-hook HARNESS, such as interlock-hook codex")
	case flags.NArg() > 0:
		return false, fmt.Errorf("there is one harness, and %q stands behind it", flags.Arg(0))
	case h.Wait < 0:
		return false, fmt.Errorf("--wait %v: want 0s or more", h.Wait)
	}
	return false, nil
}

// pass sends the event to the first server that takes it, and prints the answer.
func (h *hook) pass(in io.Reader, settings *home.Hook) error {
	event, err := io.ReadAll(io.LimitReader(in, hookclient.MaxEvent+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the event: %w", err)
	case len(event) > hookclient.MaxEvent:
		return fmt.Errorf("the event has more than %d bytes", hookclient.MaxEvent)
	}
	secret, err := settings.Secret()
	if err != nil {
		return fmt.Errorf("read the credential: %w", err)
	}
	servers, err := addresses(settings.URL)
	if err != nil {
		return err
	}
	var headers []string
	for _, h := range hookclient.Where(event) {
		headers = append(headers, h.Name+": "+h.Value)
	}
	r := &request{
		headers: headers,
		path:    h.Path() + "?" + h.Query().Encode(), body: event, credential: secret, namespace: settings.Namespace,
		until: time.Now().Add(hookclient.Limit(event, h.Wait)),
	}
	answer, err := r.visit(servers)
	if h, ok := hookclient.Asked(answer); ok {
		r.headers = append(r.headers, h.Name+": "+h.Value)
		answer, err = r.visit(servers)
	}
	if err != nil {
		return err
	}
	_, err = h.out.Write(answer)
	return err
}
