package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/home"
)

const (
	maxEvent    = 1 << 20 // bytes of an event, the limit of the server
	defaultWait = 30 * time.Second
	// margin is how long a server may take beyond the wait that it was asked for.
	margin = 2 * time.Second

	exitOK = 0
	// exitRefuse, with the reason on standard error, is a refusal to every harness.
	exitRefuse = 2
)

// release is the version, which a release is linked with.
var release = "devel"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// hook is one event on its way.
type hook struct {
	harness    string
	mode, hold string
	wait       time.Duration
	out        io.Writer
}

// run carries out one command line and returns the exit code.
func run(args []string, in io.Reader, out, report io.Writer) (code int) {
	h := &hook{out: out}
	defer func() { // a panic would end with the exit code of a refusal
		if p := recover(); p != nil {
			code = h.fail(report, fmt.Errorf("a mistake in interlock-hook: %v", p))
		}
	}()
	switch done, err := h.parse(args, out); {
	case done:
		return exitOK
	case err != nil:
		return h.fail(report, err)
	}
	settings, err := home.LoadHook()
	if err == nil && strings.Contains(settings.URL, "https://") {
		err = relay(args, &settings)
	} else if err == nil {
		err = h.pass(in, &settings)
	}
	if err != nil {
		return h.fail(report, err)
	}
	return exitOK
}

const usage = `interlock-hook passes an event of a coding agent from standard input to an Interlock server.

Usage:
  interlock-hook HARNESS [--mode warn|guard|strict] [--hold turn|edit] [--wait 30s]

The server is that of INTERLOCK_URL, or of the file that ` + "`interlock hooks install`" + ` has written.
`

// parse reads the command line. done is set after a request for help or the version.
func (h *hook) parse(args []string, out io.Writer) (done bool, err error) {
	flags := flag.NewFlagSet("interlock-hook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&h.mode, "mode", "", "")
	flags.StringVar(&h.hold, "hold", "", "")
	flags.DurationVar(&h.wait, "wait", defaultWait, "")
	version := flags.Bool("version", false, "")
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		h.harness, args = args[0], args[1:]
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
	case h.harness == "":
		return false, errors.New("name the harness: interlock-hook HARNESS, such as interlock-hook codex")
	case flags.NArg() > 0:
		return false, fmt.Errorf("there is one harness, and %q stands behind it", flags.Arg(0))
	case h.wait < 0:
		return false, fmt.Errorf("--wait %v: want 0s or more", h.wait)
	}
	return false, nil
}

// pass sends the event to the first server that takes it, and prints the answer.
func (h *hook) pass(in io.Reader, settings *home.Hook) error {
	event, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	switch {
	case err != nil:
		return fmt.Errorf("read the event: %w", err)
	case len(event) > maxEvent:
		return fmt.Errorf("the event has more than %d bytes", maxEvent)
	}
	secret, err := settings.Secret()
	if err != nil {
		return fmt.Errorf("read the credential: %w", err)
	}
	servers, err := addresses(settings.URL)
	if err != nil {
		return err
	}
	r := &request{
		path: h.path(), body: event, credential: secret, namespace: settings.Namespace,
		until: time.Now().Add(h.wait + margin),
	}
	answer, err := r.visit(servers)
	if err != nil {
		return err
	}
	_, err = h.out.Write(answer)
	return err
}

// path is the path of the request, with the settings that were given.
func (h *hook) path() string {
	query := url.Values{"wait_s": {strconv.Itoa(int(h.wait.Seconds()))}}
	if h.mode != "" {
		query.Set("mode", h.mode)
	}
	if h.hold != "" {
		query.Set("hold", h.hold)
	}
	return "/v1/hooks/" + url.PathEscape(h.harness) + "?" + query.Encode()
}
