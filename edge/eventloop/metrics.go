package eventloop

import (
	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// describe gives the server's metrics their help texts.
func describe(set *metrics.Set) {
	for name, help := range map[string]string{
		"linkstream_edge_connections":                   "Open connections of clients.",
		"linkstream_edge_connections_handed_over_total": "Connections that an event loop handed to a goroutine.",
		"linkstream_edge_connections_returned_total":    "Connections that a goroutine gave back to an event loop.",
		"linkstream_edge_connections_shed_total":        "Idle connections closed to make room for others.",
		"linkstream_edge_connections_refused_total":     "Connections refused, by reason.",
		"linkstream_edge_accept_errors_total":           "Connections that could not be accepted for the moment.",
	} {
		service.Describe(set, name, help)
	}
}
