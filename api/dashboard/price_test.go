package dashboard_test

import (
	"log/slog"
	"testing"

	"linkstream/api/dashboard"
	"linkstream/api/links"
	"linkstream/schema"
)

// A handler whose work is not constant takes turns, and its route has the price.
func TestEveryHandlerHasAPrice(t *testing.T) {
	d, err := dashboard.New(dashboard.Config{URL: schema.MustParseBaseURL("http://localhost"), SignUp: true,
		PagesPerSecond: 1},
		dashboard.Parts{Shortener: links.New(schema.MustParseBaseURL("http://localhost"), nil, nil, nil),
			Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	prices := d.Prices()
	if len(prices) < 50 {
		t.Errorf("%d handlers are found", len(prices))
	}
	for handler, price := range prices {
		if price.IsZero() {
			t.Errorf("%s has no price", handler)
		}
	}
}
