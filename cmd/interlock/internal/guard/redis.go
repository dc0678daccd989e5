package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/guard/redis"
)

func newGuardRedis(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redis",
		Short: "Let Redis refuse stale writers",
		Long: `Let Redis compare a fence and run a command in one step. A script does it, or on
Redis 7 a function that the server keeps:

  FCALL interlock_fenced 2 'fence:{account:12345}' '{account:12345}' FENCE \
      HSET '{account:12345}' balance 900

There is no attach: Redis has no triggers, and a client that may run a command inside a
script may run it outside, too. A client that writes without the script is not refused, so
let agents reach Redis through a program that runs it. docs/guards.md states the guarantees
and their limits.`,
		Example: `  interlock guard redis print
  interlock guard redis install --url redis://cache1:6379`,
		Args:        cli.NoCommand,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGuardRedisPrint(a), newGuardRedisInstall(a))
	return cmd
}

func newGuardRedisPrint(a *cli.App) *cobra.Command {
	var library, sha bool
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the script, or the library that install loads",
		Args:  cli.NoArgs,
		Annotations: map[string]string{
			cli.Offline: "true", cli.TextOnly: "true",
		},
		RunE: func(*cobra.Command, []string) error {
			switch {
			case library && sha:
				return cli.Usagef("--library and --sha exclude each other")
			case library:
				a.Say("%s", redis.Library())
			case sha:
				a.Say("%s\n", redis.SHA())
			default:
				a.Say("%s", redis.Script)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&library, "library", false, "print the library of Redis 7 that install loads")
	cmd.Flags().BoolVar(&sha, "sha", false, "print the script's SHA1 for EVALSHA")
	return cmd
}

func newGuardRedisInstall(a *cli.App) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "install --url URL",
		Short: "Put the guard into a Redis server",
		Long: `Load the library interlock, with the function interlock_fenced, into a Redis server (7
or later), which keeps it over restarts and passes it on to its replicas. Running it
again brings an older one up to date. In a cluster, run it for each primary. Before
Redis 7, load the script in the program that uses it: interlock guard redis print.

It runs the program redis-cli. A password in the URL does not appear in the list of
processes.`,
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.Offline: "true", cli.TextOnly: "true"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address == "" {
				return cli.Usagef("name the server: %s", cli.UseLine(cmd))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if err := loadLibrary(ctx, address); err != nil {
				return err
			}
			a.Say("installed: FCALL %s\n", redis.Function)
			return nil
		},
	}
	cmd.Flags().StringVar(
		&address, "url", "", "the server, as redis://[USER:PASSWORD@]HOST[:PORT], rediss://... with TLS, or unix:///PATH",
	)
	return cmd
}

// loadLibrary loads the library with redis-cli. The parts of the URL are the value of an option
// each, so that none can be taken for one.
func loadLibrary(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return cli.Usagef("--url: it is no URL: want one such as redis://127.0.0.1:6379")
	}
	args := []string{"-e"}
	switch {
	case u.Scheme == "unix" && u.Host == "" && u.Path != "":
		args = append(args, "-s", u.Path)
	case (u.Scheme == "redis" || u.Scheme == "rediss") && u.Hostname() != "" && (u.Path == "" || u.Path == "/"):
		port := u.Port()
		if port == "" {
			port = "6379"
		}
		args = append(args, "-h", u.Hostname(), "-p", port)
		if u.Scheme == "rediss" {
			args = append(args, "--tls")
		}
	default:
		return cli.Usagef(
			"--url: %s is no address of a Redis server: want one such as redis://127.0.0.1:6379", cli.Clean(u.Redacted()),
		)
	}
	env := os.Environ()
	if password, ok := u.User.Password(); ok {
		if u.User.Username() != "" {
			args = append(args, "--user", u.User.Username())
		}
		env = append(env, "REDISCLI_AUTH="+password)
	}
	cmd := exec.CommandContext(ctx, "redis-cli", append(args, "-x", "FUNCTION", "LOAD", "REPLACE")...)
	cmd.Env, cmd.Stdin = env, strings.NewReader(redis.Library())
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err = cmd.Run()
	said := cli.Clean(strings.TrimSpace(complaint.String() + out.String()))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New(
			"the program redis-cli is not installed here: install it, or load what interlock guard redis print --library prints in another way",
		)
	case strings.Contains(said, "Could not connect"):
		return cli.ExitWith(cli.ExitUnreachable, errors.New(said))
	case strings.Contains(said, "NOPERM") || strings.Contains(said, "NOAUTH") || strings.Contains(said, "WRONGPASS"):
		return cli.ExitWith(cli.ExitForbidden, errors.New(said))
	case strings.Contains(said, "unknown command"):
		return fmt.Errorf(
			"%s: this server is older than Redis 7: load the script in the program that uses it: interlock guard redis print",
			said,
		)
	case err != nil || said != "interlock":
		return fmt.Errorf("%s", said)
	}
	return nil
}
