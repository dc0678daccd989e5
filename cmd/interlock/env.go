package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// Flags that may also be set by an environment variable say so in their usage
// text, and are marked with its name. A flag on the command line wins. An empty
// variable counts as one that is not there.
const (
	envMark  = "interlock_env"   // the variable's name
	envGiven = "interlock_given" // the value came from it
)

// envName is INTERLOCK_ and the flag's name.
func envName(flag string) string {
	return "INTERLOCK_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// bind lets a flag be set by a variable; without a name it is envName's.
func bind(flags *pflag.FlagSet, flag, name string) {
	f := flags.Lookup(flag)
	if name == "" {
		name = envName(flag)
	}
	_ = flags.SetAnnotation(flag, envMark, []string{name})
	f.Usage += " [" + name + "]"
}

// bindAll binds every flag of a set that is not bound yet.
func bindAll(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[envMark] == nil {
			bind(flags, f.Name, "")
		}
	})
}

// fromEnvironment sets the bound flags that were not on the command line.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := f.Annotations[envMark]
		if err != nil || f.Changed || name == nil {
			return
		}
		value := os.Getenv(name[0])
		if value == "" {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			// The value may be a secret, so the text of e, which quotes it, is not shown.
			err = usage("%s (flag --%s): the value does not fit", name[0], f.Name)
			if f.Name != "credential" {
				err = usage("%s: %w", name[0], e)
			}
			return
		}
		_ = flags.SetAnnotation(f.Name, envGiven, []string{"true"})
	})
	return err
}

// given reports whether a flag's value came from the environment.
func given(f *pflag.Flag) bool { return f.Annotations[envGiven] != nil }
