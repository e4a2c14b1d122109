package tracing_test

import (
	"flag"
	"io"
	"math"
	"strings"
	"testing"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing"
)

func TestConfig(t *testing.T) {
	for flags, want := range map[string]string{
		"": "",
		"-trace.endpoint http://a:4318/v1/traces":   "",
		"-trace.headers authorization=Bearer%20a=b": "",
		"-trace.sample 0":                           "",
		"-trace.endpoint a:4318":                    "-trace.endpoint: ",
		"-trace.endpoint ftp://a":                   "-trace.endpoint: ",
		"-trace.endpoint http://u:secret@a":         "-trace.endpoint: ",
		"-trace.endpoint http://secret%zz":          "-trace.endpoint: ",
		"-trace.headers secret":                     "-trace.headers: ",
		"-trace.headers a=secret%zz":                "-trace.headers: ",
		"-trace.headers a=secret%0d%0ab:c":          "-trace.headers: ",
		"-trace.sample 1.1":                         "-trace.sample: ",
		"-trace.sample -1":                          "-trace.sample: ",
	} {
		t.Run(flags, func(t *testing.T) {
			cfg := tracing.DefaultConfig()
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			_, err := service.Parse(fs, strings.Fields(flags), &cfg)
			if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) ||
				strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v, want %q and no secret", err, want)
			}
		})
	}
	cfg := tracing.DefaultConfig()
	if cfg.Sample = math.NaN(); cfg.Validate() == nil {
		t.Error("a share that is no number is accepted")
	}
}

func TestEnvironment(t *testing.T) {
	collector := startCollector(t)
	other := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.TrimSuffix(collector.URL, "/v1/traces")+"/")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of%20the%20environment")
	t.Run("names the collector", func(t *testing.T) {
		p := start(t, tracing.DefaultConfig())
		p.record(p.ctx, "by the environment")
		p.Close()
		collector.Await(t, "span", named("by the environment"))
		testkit.Equal(t, "header", collector.Requests()[0].Get("X-Key"), "of the environment")
	})
	t.Run("is overridden by flags", func(t *testing.T) {
		p := start(t, config(other.URL))
		p.record(p.ctx, "by a flag")
		p.Close()
		other.Await(t, "span", named("by a flag"))
	})
	t.Run("asks for a protocol that is not spoken", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		cfg := tracing.DefaultConfig()
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "grpc") {
			t.Errorf("%v", err)
		}
	})
}
