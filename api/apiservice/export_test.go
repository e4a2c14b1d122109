package apiservice

import (
	"log/slog"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/request"
)

// NewServer returns a server without a dashboard, for tests in a synctest bubble.
func NewServer(owner bodySite, log *slog.Logger) *fasthttp.Server {
	return newServer(&router{api: owner, anonymous: request.NewAnonymous(metrics.NewSet()), log: log}, 100, log)
}

// ConnLimits is connLimits.
type ConnLimits = connLimits

// For tests of listeners.
var (
	NewListener = newListener
	Track       = track
	CloseUnread = closeUnread
)
