package try

import "testing"

func TestRefuse(t *testing.T) {
	for system, refused := range map[string]bool{"linux": false, "darwin": false, "windows": true} {
		if err := refuse(system); (err != nil) != refused {
			t.Errorf("%s: %v", system, err)
		}
	}
}
