package service_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestHealth(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{})
	_, port, err := net.SplitHostPort(ops.Addr())
	testkit.Must(t, err)
	alive, ready := []string{"health"}, []string{"health", "ready"}
	t.Run("a program that waits is alive but not ready", func(t *testing.T) {
		for _, listen := range []string{ops.Addr(), ":" + port, "0.0.0.0:" + port, "localhost:" + port} {
			cfg := service.OpsConfig{Listen: listen}
			if err := cfg.Health(t.Context(), alive); err != nil {
				t.Errorf("%s: %v", listen, err)
			}
			err := cfg.Health(t.Context(), ready)
			if err == nil || !strings.HasSuffix(err.Error(), "/readyz answers 503: not ready: waiting for its start") {
				t.Errorf("%s: error %v", listen, err)
			}
		}
	})
	cfg := service.OpsConfig{Listen: ops.Addr()}
	t.Run("a program that can do its work is ready", func(t *testing.T) {
		ops.Add(readyNow, metrics.NewSet())
		testkit.Must(t, cfg.Health(t.Context(), ready))
	})
	t.Run("no listener is an error", func(t *testing.T) {
		ops.Close()
		for _, command := range [][]string{alive, ready} {
			if err := cfg.Health(t.Context(), command); err == nil || !strings.Contains(err.Error(), ops.Addr()) {
				t.Errorf("%q: error %v", command, err)
			}
		}
	})
	t.Run("no answer is an error in time", func(t *testing.T) {
		ln, err := service.Listen("127.0.0.1:0")
		testkit.Must(t, err)
		defer ln.Close()
		silent := service.OpsConfig{Listen: ln.Addr().String()}
		testkit.Takes(t, 10*time.Second, func(int) {
			if err := silent.Health(t.Context(), alive); err == nil {
				t.Error("no error")
			}
		})
	})
	t.Run("other commands are invalid", func(t *testing.T) {
		for _, command := range [][]string{{"health", "steady"}, {"health", "ready", "now"}, {"help"}} {
			if err := cfg.Health(t.Context(), command); schema.ErrorCode(err) != schema.CodeInvalid {
				t.Errorf("%q: error %v", command, err)
			}
		}
		if service.AsksHealth([]string{"account", "health"}) || service.AsksHealth(nil) || !service.AsksHealth(alive) {
			t.Error("only commands that begin with health ask for it")
		}
	})
}
