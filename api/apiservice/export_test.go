package apiservice

import (
	"log/slog"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
)

// NewServer returns a server without a dashboard, for tests in a synctest bubble.
func NewServer(owner bodySite, log *slog.Logger) *fasthttp.Server {
	return newServer(&router{api: owner, gate: admission.NewGate(metrics.NewSet()), log: log}, 100, log)
}
