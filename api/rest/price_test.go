package rest_test

import (
	"log/slog"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/request"
	"linkstream/api/rest"
)

// A handler whose work is not constant takes turns, and its route has the price.
func TestEveryHandlerHasAPrice(t *testing.T) {
	api := rest.New(nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, request.NewWork(),
		request.NewRecorder(metrics.NewSet()), slog.New(slog.DiscardHandler))
	prices := api.Prices()
	if len(prices) < 30 {
		t.Errorf("%d handlers are found", len(prices))
	}
	for handler, price := range prices {
		if price.IsZero() {
			t.Errorf("%s has no price", handler)
		}
	}
}
