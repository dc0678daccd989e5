package otlp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// The paths of a collector.
const (
	MetricsPath = "/v1/metrics"
	TracesPath  = "/v1/traces"
)

// Environment reads the variables that OpenTelemetry has for headers and attributes. A variable about one signal,
// METRICS or TRACES, comes before the one about everything. The resource has a service.name, too.
func Environment(signal, version string) (headers http.Header, resource map[string]string, err error) {
	headers = http.Header{}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"} {
		some, err := ParseHeaders(os.Getenv(name))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		maps.Copy(headers, some)
	}
	own, err := ParseResource(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	resource = map[string]string{"service.name": "interlock", "service.version": version}
	maps.Copy(resource, own)
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		resource["service.name"] = name
	}
	return headers, resource, nil
}

// ParseEndpoint checks the URL of a collector. Without a path it gets that one.
func ParseEndpoint(text, path string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", errors.New("want a URL such as http://127.0.0.1:4318")
	case u.User != nil:
		return "", errors.New("a URL with a password would be seen by other processes: use OTEL_EXPORTER_OTLP_HEADERS")
	case u.Fragment != "":
		return "", errors.New("a URL of a collector has no part behind #")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = path
	}
	return u.String(), nil
}

// ParseHeaders reads the form of OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value, with values in the escapes of URLs.
// Its errors have no value in them.
func ParseHeaders(text string) (http.Header, error) {
	headers := http.Header{}
	err := pairs(text, func(name, value string) error {
		for _, r := range name {
			if r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) {
				return fmt.Errorf("%q is no name of a header", name)
			}
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("the value of %s has more than one line", name)
		}
		headers.Set(name, value)
		return nil
	})
	return headers, err
}

// ParseResource reads the form of OTEL_RESOURCE_ATTRIBUTES, likewise.
func ParseResource(text string) (map[string]string, error) {
	attributes := map[string]string{}
	err := pairs(text, func(name, value string) error {
		attributes[name] = value
		return nil
	})
	return attributes, err
}

// pairs calls take with each name and value of a list.
func pairs(text string, take func(name, value string) error) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return errors.New("want name=value,name=value")
		}
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if err != nil {
			return fmt.Errorf("the value of %s has a %% that is no escape: write %%25", name)
		}
		if err := take(name, value); err != nil {
			return err
		}
	}
	return nil
}
