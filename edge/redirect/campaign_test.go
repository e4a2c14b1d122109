package redirect_test

import (
	"strings"
	"testing"

	"linkstream/edge/redirect"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestCampaign(t *testing.T) {
	long := strings.Repeat("x", schema.MaxCampaignLen)
	for _, test := range []struct{ location, query, want string }{
		{"https://example.com/utm_source=a", "", ""},
		{"https://example.com/?utm_source=a#b", "", "a"},
		{"https://example.com/#?utm_source=a", "", ""},
		{"https://example.com/?utm_campaign=c&utm_source=a%2Fb+c&utm_medium=m&utm_source=d", "", "a/b c / m / c"},
		{"https://example.com/?utm_medium=m", "", "- / m"},
		{"https://example.com/?utm_campaign=c&utm_source=", "", "- / - / c"},
		{"https://example.com/?utm_term=t", "", ""},
		{"https://example.com/", "utm_source=a", "a"},
		{"https://example.com/?utm_source=a", "utm_source=b&utm_medium=m", "a / m"},
		{"https://example.com/?utm_source=" + long + "y&utm_medium=m", "", long},
		{"https://example.com/?utm_source=" + long[2:] + "&utm_medium=m", "", long[2:] + " /"},
	} {
		testkit.Equal(t, test.location+" with "+test.query, redirect.Campaign(test.location, test.query), test.want)
	}
}

// FuzzCampaign checks that a campaign is within its limit.
func FuzzCampaign(f *testing.F) {
	f.Add("https://example.com/?utm_source=a&utm_medium=%zz", "utm_campaign=%C3%BC")
	f.Fuzz(func(t *testing.T, location, query string) {
		if got := redirect.Campaign(location, query); len(got) > schema.MaxCampaignLen {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
