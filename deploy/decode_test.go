package deploy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// object is a value of one of the API's types.
type object = meta.Object

type (
	service     = core.Service
	statefulSet = apps.StatefulSet
	deployment  = apps.Deployment
	job         = batch.Job
	budget      = policy.PodDisruptionBudget
	network     = networking.NetworkPolicy
	monitor     = monitoring.ServiceMonitor
	rule        = monitoring.PrometheusRule
)

// kinds are the kinds that the chart may make.
var kinds = map[string]func() object{
	"v1 Service":                              func() object { return new(service) },
	"apps/v1 StatefulSet":                     func() object { return new(statefulSet) },
	"apps/v1 Deployment":                      func() object { return new(deployment) },
	"batch/v1 Job":                            func() object { return new(job) },
	"policy/v1 PodDisruptionBudget":           func() object { return new(budget) },
	"networking.k8s.io/v1 NetworkPolicy":      func() object { return new(network) },
	"monitoring.coreos.com/v1 ServiceMonitor": func() object { return new(monitor) },
	"monitoring.coreos.com/v1 PrometheusRule": func() object { return new(rule) },
}

// decode reads documents of YAML into the API's types, as strictly as the API server can: a field that a type does not
// have, in this spelling, or that is there twice, is an error.
func decode(text string) (all []object, err error) {
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return nil, err
		}
		fresh := kinds[kind.APIVersion+" "+kind.Kind]
		if fresh == nil {
			return nil, fmt.Errorf("unknown kind %+v", kind)
		}
		o := fresh()
		form, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, err
		}
		wrong, err := json.UnmarshalStrict(form, o)
		if err := errors.Join(append(wrong, err)...); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// of returns the objects of one type.
func of[T object](all []object) (list []T) {
	for _, o := range all {
		if found, ok := o.(T); ok {
			list = append(list, found)
		}
	}
	return list
}

// pod returns the template of the only workload.
func pod(t *testing.T, all []object) *core.PodTemplateSpec {
	t.Helper()
	var found []*core.PodTemplateSpec
	for _, s := range of[*statefulSet](all) {
		found = append(found, &s.Spec.Template)
	}
	for _, d := range of[*deployment](all) {
		found = append(found, &d.Spec.Template)
	}
	if len(found) != 1 || len(found[0].Spec.Containers) != 1 {
		t.Fatalf("there are %d workloads, want one with one container", len(found))
	}
	return found[0]
}

// A misspelt field is found.
func TestDecodeIsStrict(t *testing.T) {
	const good = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: None}\n"
	if _, err := decode(good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		strings.Replace(good, "clusterIP", "clusterIp", 1), strings.Replace(good, "name: a", "name: a, name: b", 1),
		strings.Replace(good, "kind: Service", "kind: Servise", 1), strings.Replace(good, "None", "[None]", 1),
	} {
		if _, err := decode(bad); err == nil {
			t.Errorf("decoded:\n%s", bad)
		}
	}
}
