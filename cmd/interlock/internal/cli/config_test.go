package cli

import "testing"

// Commands work in a container, where there is no home and so no configuration file.
func TestNoHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "INTERLOCK_CONFIG", "AppData"} {
		t.Setenv(name, "")
	}
	c, err := LoadConfig()
	if err != nil || len(c.Contexts) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.Save(); err == nil {
		t.Error("contexts were saved without a place for them")
	}
}
