package link

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
)

const (
	dialTimeout   = 10 * time.Second
	LeaveTimeout  = 10 * time.Second // to release a lease or a place in line, also while a standby takes over
	hangUpTimeout = time.Second
)

// Dial opens a session.
func Dial(ctx context.Context, a *cli.App, agent string, ttl time.Duration) (*client.Client, error) {
	return DialSeat(ctx, a, agent, ttl, "")
}

// DialSeat opens a session in a seat: see client.Config.Seat.
func DialSeat(ctx context.Context, a *cli.App, agent string, ttl time.Duration, seat string) (*client.Client, error) {
	if agent == "" {
		agent = cli.OwnName()
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return client.Dial(ctx, client.Config{
		Addrs: a.Server.Sessions, TLS: a.Server.TLS, Credential: a.Server.Credential, Namespace: a.Server.Tenant(),
		Agent: agent, SessionTTL: ttl, Seat: seat,
	})
}

// HangUp ends the session, and with it what it still holds or waits for. Without an answer it ends
// by its ttl.
func HangUp(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
	defer cancel()
	_ = c.Close(ctx)
}

// Environment is ours with what a command should know that works in a flow of a session of an agent;
// own is what it should know of its lease, and pass the flags as variables. A client that is made in the
// command joins the session by them.
func Environment(a *cli.App, agent, session, flow string, pass []string, own ...string) []string {
	if agent == "" {
		agent = cli.OwnName()
	}
	if tenant := a.Server.Tenant(); tenant != "" {
		own = append(own, "INTERLOCK_NAMESPACE="+string(tenant))
	}
	if lease := os.Getenv("INTERLOCK_LEASE"); lease != "" && lease != value(own, "INTERLOCK_LEASE") {
		own = append(own, "INTERLOCK_OUTER="+strings.TrimSpace(lease+" "+os.Getenv("INTERLOCK_OUTER")))
	}
	own = append(append(
		own,
		"INTERLOCK_AGENT="+agent,
		"INTERLOCK_SESSION="+session,
		"INTERLOCK_FLOW="+flow,
		"INTERLOCK_URL="+strings.Join(a.Server.URLs(), ","),
		"INTERLOCK_GRPC="+strings.Join(a.Server.Sessions, ","),
	), pass...)
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") })
	})
	return append(env, own...)
}

// value is that of a variable in a list, "" if it has none.
func value(list []string, name string) string {
	for _, v := range list {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			return text
		}
	}
	return ""
}

// Around returns the session and the flow around this command, if it is on the same server and in the same
// namespace: those of an "interlock run", or of the work at a task.
func Around(a *cli.App) (session, flow string, ok bool) {
	session, flow = os.Getenv("INTERLOCK_SESSION"), os.Getenv("INTERLOCK_FLOW")
	_, err := interlock.ParseSessionID(session)
	ok = err == nil && flow != "" && os.Getenv("INTERLOCK_URL") == strings.Join(a.Server.URLs(), ",") &&
		os.Getenv("INTERLOCK_NAMESPACE") == string(a.Server.Tenant())
	return session, flow, ok
}

// Repeated are the flags about the connection to the server, as variables for the command; its
// address is passed on anyway. A credential is none of them: it was given to us alone, and all that
// can read the command's environment would see it.
func Repeated(flags *pflag.FlagSet) (env []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if name := f.Annotations[cli.EnvMark]; name != nil && f.Changed && !cli.Given(f) &&
			!slices.Contains([]string{"credential", "url", "grpc-addr"}, f.Name) {
			env = append(env, name[0]+"="+f.Value.String())
		}
	})
	return env
}
