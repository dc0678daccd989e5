package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags that may also be set by an environment variable say so in their usage
// text, and are marked with its name. A flag on the command line wins. An empty
// variable counts as one that is not there.
const (
	EnvMark  = "interlock_env"   // the variable's name
	envGiven = "interlock_given" // the value came from it
)

// envName is INTERLOCK_ and the name of a flag.
func envName(flag string) string {
	return "INTERLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Bind lets a flag be set by a variable; without a name it is envName's.
func Bind(flags *pflag.FlagSet, flag, name string) {
	f := flags.Lookup(flag)
	if name == "" {
		name = envName(flag)
	}
	_ = flags.SetAnnotation(flag, EnvMark, []string{name})
	f.Usage += " [" + name + "]"
}

// BindAll binds every flag of a command, with the command's name in the variable's, so that what
// a command of "interlock run" inherits is never meant for it.
func BindAll(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { Bind(cmd.Flags(), f.Name, envName(cmd.Name()+"-"+f.Name)) })
}

// FromEnvironment sets the bound flags that were not on the command line.
func FromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := f.Annotations[EnvMark]
		if err != nil || f.Changed || name == nil {
			return
		}
		value := os.Getenv(name[0])
		if value == "" {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			// The value may be a secret, so the text of e, which quotes it, is not shown.
			err = Usagef("%s (flag --%s): the value does not fit", name[0], f.Name)
			if f.Name != "credential" {
				err = Usagef("%s: %w", name[0], e)
			}
			return
		}
		_ = flags.SetAnnotation(f.Name, envGiven, []string{"true"})
	})
	return err
}

// Given reports whether a flag's value came from the environment.
func Given(f *pflag.Flag) bool { return f.Annotations[envGiven] != nil }

// Globals returns the shared flags that a command line has, so that another one gets them.
func Globals(cmd *cobra.Command) (args []string) {
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !Given(f) {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}
