package redirect_test

import (
	"net/url"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestCampaign(t *testing.T) {
	long := strings.Repeat("x", schema.MaxCampaignLen)
	e := newEdge(t, nil)
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
		testkit.Equal(t, test.location+" with "+test.query, e.campaign(t, test.location, test.query), test.want)
	}
}

// campaign returns the campaign of the click of a visitor with a query, on a link that forwards it.
func (e *edge) campaign(t testing.TB, target, query string) string {
	t.Helper()
	hash := schema.NewHash()
	e.create(t, schema.Link{Hash: hash, URL: target, ForwardQuery: true})
	e.location(t, hash, query)
	clicks := e.clicks(t)
	testkit.Equal(t, "clicks", len(clicks), 1)
	return string(clicks[0].Campaign)
}

// FuzzCampaign checks that a campaign is within its limit.
func FuzzCampaign(f *testing.F) {
	f.Add("a&utm_medium=%zz", "utm_campaign=%C3%BC")
	e := newEdge(f, nil)
	f.Fuzz(func(t *testing.T, own, query string) {
		got := e.campaign(t, "https://example.com/?utm_source="+url.PathEscape(own), query)
		if len(got) > schema.MaxCampaignLen {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
