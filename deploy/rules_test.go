package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// program is the path of the server, built for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "interlock-deploy-test-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "interlock")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/interlock")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// built is the folder of program, once it is there.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// flags returns the flags that "interlock serve --help" lists.
func flags(t *testing.T) []string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(path, "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^      --([a-z-]+)`).FindAllSubmatch(help, -1) {
		names = append(names, string(found[1]))
	}
	if len(names) < 30 {
		t.Fatalf("serve --help lists the flags %q only", names)
	}
	return names
}

// Every argument is a flag of the server, given once, and every variable of it is one, too.
func TestFlagsAreKnown(t *testing.T) {
	known := flags(t)
	each(t, func(t *testing.T, in install) {
		c := &pod(t, objects(t, in)).Spec.Containers[0]
		if len(c.Args) == 0 || c.Args[0] != "serve" || len(c.Command) != 0 {
			t.Errorf("the container runs %q %q", c.Command, c.Args)
		}
		var given []string
		for _, arg := range c.Args[1:] {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			given = append(given, name)
			if !strings.HasPrefix(arg, "--") || !slices.Contains(known, name) {
				t.Errorf("the argument %q is no flag of interlock serve", arg)
			}
			if name != "host" && slices.Index(given, name) != len(given)-1 {
				t.Errorf("the flag --%s is given twice", name)
			}
		}
		for _, e := range c.Env {
			if flag, ours := strings.CutPrefix(e.Name, "INTERLOCK_SERVE_"); ours {
				if !slices.Contains(known, strings.ReplaceAll(strings.ToLower(flag), "_", "-")) {
					t.Errorf("the variable %s is no flag of interlock serve", e.Name)
				}
			}
		}
		if one := slices.Contains(given, "journal"); one == hasVariable(c, "INTERLOCK_SERVE_JOURNAL") {
			t.Error("the journal is to be named by the flag or by the variable, and not by both")
		}
	})
}

func hasVariable(c *core.Container, name string) bool {
	return slices.ContainsFunc(c.Env, func(e core.EnvVar) bool { return e.Name == name })
}

// The ports of the arguments, the container, the Services, the probes, the policy and the monitor are the same ones.
func TestPortsMatch(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		all := objects(t, in)
		template := pod(t, all)
		c := &template.Spec.Containers[0]
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		listens := map[string]int32{}
		for _, arg := range c.Args {
			var port int32
			name, address, _ := strings.Cut(arg, "=")
			if _, err := fmt.Sscanf(address[strings.LastIndex(address, ":")+1:], "%d", &port); err == nil {
				listens[name] = port
			}
		}
		want := map[string]int32{"http": listens["--http"], "session": listens["--grpc"]}
		if port, ok := listens["--resp"]; ok {
			want["resp"] = port
		}
		if !reflect.DeepEqual(ports, want) {
			t.Errorf("the container has the ports %v and listens on %v", ports, want)
		}
		for _, s := range of[*service](all) {
			if len(s.Spec.Ports) != len(ports) || !selects(s.Spec.Selector, template) {
				t.Errorf("%s has the ports %v and selects %v", s.Name, s.Spec.Ports, s.Spec.Selector)
			}
			for _, p := range s.Spec.Ports {
				if p.TargetPort.StrVal != p.Name || ports[p.Name] == 0 {
					t.Errorf("%s leads the port %s to %s", s.Name, p.Name, p.TargetPort.String())
				}
			}
		}
		for _, n := range of[*network](all) {
			for _, p := range n.Spec.Ingress[0].Ports {
				delete(ports, p.Port.StrVal)
			}
			if len(ports) != 0 || !selects(n.Spec.PodSelector.MatchLabels, template) {
				t.Errorf("the policy lacks the ports %v, or the pods", ports)
			}
		}
	})
}

func selects(selector map[string]string, template *core.PodTemplateSpec) bool {
	return len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(template.Labels))
}

// Selectors find the pods, the monitor finds one Service, and nothing has the name of something else.
func TestSelectorsMatch(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		all := objects(t, in)
		template := pod(t, all)
		names := map[string]bool{}
		for _, o := range all {
			name := fmt.Sprintf("%T %s", o, o.GetName())
			if names[name] || o.GetNamespace() != in.namespace {
				t.Errorf("%s is there twice, or in the namespace %q", name, o.GetNamespace())
			}
			names[name] = true
		}
		for _, s := range of[*statefulSet](all) {
			if !selects(s.Spec.Selector.MatchLabels, template) || !names["*v1.Service "+s.Spec.ServiceName] {
				t.Errorf("the StatefulSet selects %v in the Service %s", s.Spec.Selector, s.Spec.ServiceName)
			}
		}
		for _, d := range of[*deployment](all) {
			if !selects(d.Spec.Selector.MatchLabels, template) {
				t.Errorf("the Deployment selects %v", d.Spec.Selector)
			}
		}
		for _, m := range of[*monitor](all) {
			var found []string
			for _, s := range of[*service](all) {
				if labels.SelectorFromSet(m.Spec.Selector.MatchLabels).Matches(labels.Set(s.Labels)) {
					found = append(found, s.Name)
				}
			}
			if len(found) != 1 || m.Spec.Endpoints[0].Port != "http" || m.Spec.Endpoints[0].Path != "/metrics" {
				t.Errorf("the monitor scrapes %v of the Services %q, want one: each server once", m.Spec.Endpoints, found)
			}
		}
	})
}

// Pods keep to the profile "restricted" of Kubernetes, have no token, and write to nothing but the journal's volume.
func TestPodsAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		all := objects(t, in)
		restricted(t, &pod(t, all).Spec)
		for _, j := range of[*job](all) {
			restricted(t, &j.Spec.Template.Spec)
		}
	})
}

func restricted(t *testing.T, spec *core.PodSpec) {
	t.Helper()
	c := &spec.Containers[0]
	inPod, inContainer := spec.SecurityContext, c.SecurityContext
	for _, rule := range []struct {
		name string
		kept bool
	}{
		{"runAsNonRoot", *inPod.RunAsNonRoot && *inPod.RunAsUser == 65532 && *inPod.RunAsGroup == 65532},
		{"seccompProfile", inPod.SeccompProfile.Type == core.SeccompProfileTypeRuntimeDefault},
		{"allowPrivilegeEscalation", !*inContainer.AllowPrivilegeEscalation},
		{"readOnlyRootFilesystem", *inContainer.ReadOnlyRootFilesystem},
		{"capabilities", slices.Equal(inContainer.Capabilities.Drop, []core.Capability{"ALL"}) &&
			len(inContainer.Capabilities.Add) == 0},
		{"privileged", inContainer.Privileged == nil && inContainer.RunAsUser == nil},
		{"host", !spec.HostNetwork && !spec.HostPID && !spec.HostIPC},
		{"token", !*spec.AutomountServiceAccountToken},
		{"service links", !*spec.EnableServiceLinks},
		{"memory limit", !c.Resources.Limits.Memory().IsZero()},
	} {
		if !rule.kept {
			t.Errorf("the pod breaks the rule %s", rule.name)
		}
	}
	for _, v := range spec.Volumes {
		if v.Secret == nil && v.PersistentVolumeClaim == nil {
			t.Errorf("the volume %s is neither a Secret nor a claim", v.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly && m.MountPath != "/data" {
			t.Errorf("%s is mounted for writing at %s", m.Name, m.MountPath)
		}
	}
}

// No object has a secret in it: what is secret comes by reference.
func TestSecretsAreReferences(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		for _, e := range pod(t, objects(t, in)).Spec.Containers[0].Env {
			if e.Value != "" || e.ValueFrom == nil {
				t.Errorf("the variable %s has its value in the open", e.Name)
			}
		}
		files, err := render(in)
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if strings.Contains(text, "kind: Secret\n") || strings.Contains(text, "stringData") {
				t.Errorf("%s makes a Secret", name)
			}
		}
	})
}

// A journal on a volume has one server and nothing that blocks a drain. Several servers spread, are exchanged without a
// gap, and lose one at a time.
func TestForms(t *testing.T) {
	each(t, func(t *testing.T, in install) {
		all := objects(t, in)
		spec := &pod(t, all).Spec
		budgets := of[*budget](all)
		if sets := of[*statefulSet](all); len(sets) == 1 {
			if *sets[0].Spec.Replicas != 1 || len(budgets) != 0 || len(sets[0].Spec.VolumeClaimTemplates) != 1 ||
				sets[0].Spec.PersistentVolumeClaimRetentionPolicy != nil {
				t.Errorf("the server on a volume has %+v and %d budgets", sets[0].Spec, len(budgets))
			}
			return
		}
		update := of[*deployment](all)[0].Spec
		jobs := of[*job](all)
		if len(jobs) > 0 {
			if *update.Replicas != 0 || len(jobs) != 1 || selects(of[*service](all)[0].Spec.Selector, &jobs[0].Spec.Template) {
				t.Errorf("beside a restore there are %d servers, or a Service leads to it", *update.Replicas)
			}
		} else if *update.Replicas < 2 || update.MinReadySeconds < 18 ||
			update.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 ||
			update.Strategy.RollingUpdate.MaxSurge.IntValue() != 1 {
			t.Errorf("the servers are exchanged by %+v", update.Strategy.RollingUpdate)
		}
		if len(budgets) != 1 || budgets[0].Spec.MaxUnavailable.IntValue() != 1 ||
			!selects(budgets[0].Spec.Selector.MatchLabels, pod(t, all)) {
			t.Errorf("the budgets are %+v, want one of one pod", budgets)
		}
		var spread []string
		for _, c := range spec.TopologySpreadConstraints {
			spread = append(spread, c.TopologyKey)
		}
		if !slices.Equal(spread, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}) {
			t.Errorf("the servers spread over %q", spread)
		}
		if sleep := spec.Containers[0].Lifecycle.PreStop.Sleep; sleep == nil ||
			*spec.TerminationGracePeriodSeconds < sleep.Seconds+20 {
			t.Errorf("a server stops after %v, and is killed %d s after the request", sleep, *spec.TerminationGracePeriodSeconds)
		}
	})
}
