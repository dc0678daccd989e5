package home

import (
	"fmt"
	"os"
	"path/filepath"
)

// Config returns the path of the configuration file: $INTERLOCK_CONFIG, else config.json in the
// directory interlock of the user's configuration.
func Config() (string, error) {
	if file := os.Getenv("INTERLOCK_CONFIG"); file != "" {
		return file, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no configuration file: set INTERLOCK_CONFIG (%w)", err)
	}
	return filepath.Join(dir, "interlock", "config.json"), nil
}

// HookFile returns the path of the settings of the hooks, see Hook.
func HookFile() (string, error) { return beside("hook.env") }

// Backups returns the directory for the copies of other programs' files from before they were
// changed. They are not beside those files, where a `git add` would find them.
func Backups() (string, error) { return beside("backup") }

// beside returns a path beside the configuration file.
func beside(name string) (string, error) {
	file, err := Config()
	if err != nil {
		return "", err
	}
	if file == os.DevNull {
		return "", fmt.Errorf("INTERLOCK_CONFIG is %s, and %s would stand beside it: set it to a file", file, name)
	}
	return filepath.Join(filepath.Dir(file), name), nil
}
